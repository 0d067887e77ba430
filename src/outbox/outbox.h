/*
 * outbox.h
 *	  Messages of exactly-once tables: written into a table by the transaction that
 *	  makes them, sent to Kafka after its commit.
 *
 * A stream is what one Kafka client can send in one order: the messages for a
 * server with one user mapping.  Numbers (seq) of a stream grow in the order of
 * commits, because they are given out under a lock that is held to the end of the
 * transaction.  The sender puts the greatest number it has sent into Kafka, in
 * the same Kafka transaction as the messages; what PostgreSQL knows of it is only a
 * shortcut.
 */
#ifndef UK_OUTBOX_H
#define UK_OUTBOX_H

#include "datatype/timestamp.h"
#include "fdw/options.h"
#include "kafka/producer.h"

typedef struct OutboxTarget
{
	Oid			serverid;
	Oid			userid;			/* whose mapping sends it */
	const char *topic;			/* any that will be written to */
} OutboxTarget;

typedef struct OutboxWriter OutboxWriter;

/*
 * Write messages at the end of a transaction (PRE_COMMIT), for these targets.  Takes
 * each stream's lock, which other writers then wait for until this transaction
 * has ended.  Belongs to the current memory context.
 */
extern OutboxWriter *outbox_write_begin(int ntargets, const OutboxTarget *targets);

/*
 * One message, of targets[target]; copies everything.  A timestamp of -1 is now.
 * ERROR 53400 when the outbox has no room for it within 'commit_timeout'.
 */
extern void outbox_write(OutboxWriter *writer, int target, Oid source, KafkaPartitioner partitioner,
						 const KafkaOutRecord *record);
extern void outbox_write_end(OutboxWriter *writer);

/* After the end: a target's stream and the greatest number in it, for a bookmark. */
extern int32 outbox_written_stream(const OutboxWriter *writer, int target, int64 *seq);

/*
 * Wait until a stream is sent up to a number, and readers of committed messages see
 * what went to the table's topics; true at once if it is of another server, false if there
 * is no such stream.  ERROR 55000 when it has stopped or nobody sends it, 57014
 * after the timeout.
 */
extern bool outbox_wait_sent(int32 stream, int64 seq, const TopicTable *table, TimestampTz until);

/* Main function of the process that sends a stream; does not return. */
extern void outbox_sender_main(int32 stream) pg_attribute_noreturn();

/* Let senders be started for what waits in this database; inside a transaction. */
extern void outbox_look(void);

#endif							/* UK_OUTBOX_H */
