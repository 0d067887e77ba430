/*
 * outbox_readable.h
 *	  Can readers of committed messages see what a stream has sent?  Private to
 *	  src/outbox.
 *
 * Kafka acknowledges the commit of a transaction before its marker is in the log, and
 * a transaction that another producer has open holds the last stable offset below
 * whatever comes behind its beginning.  What is sent and not readable is kept as the
 * text of a bookmark: per partition, the offset behind the last message.
 */
#ifndef UK_OUTBOX_READABLE_H
#define UK_OUTBOX_READABLE_H

#include "datatype/timestamp.h"
#include "outbox/outbox_catalog.h"

/*
 * 'text' (NULL: nothing) and what else was sent, as one.  palloc'd; NULL when nothing
 * is in it.
 */
extern char *outbox_unreadable_add(const char *text, int n, const KafkaWritten *written);

/* The same with everything that topics hold now, open transactions included. */
extern char *outbox_unreadable_add_topics(const char *text, const KafkaConfig *config, List *topics);

/*
 * What of it cannot be read now; palloc'd, NULL: nothing.  Topics may be gone if
 * 'old'; then there is nothing to wait for.
 */
extern char *outbox_unreadable_look(KafkaConsumer *consumer, const char *text, bool old);

/* The same for a text that a log which was made anew may never reach. */
extern char *outbox_unreadable_forget(const KafkaConfig *config, const char *text);

/*
 * Wait until what a stream has sent to a table's topics (NULL: to any) can be read.  ERROR when
 * it cannot at 'until' (57014), or after the server's timeout where 'until' is 0 (55P03).
 */
extern void outbox_wait_readable(const OutboxStream *stream, const TopicTable *table, TimestampTz until);

#endif							/* UK_OUTBOX_READABLE_H */
