/*
 * pending.h
 *	  Writes of the current transaction that are not sent yet (issue: write path).
 *
 * INSERT, UPDATE, DELETE, COPY and TRUNCATE encode their rows into this buffer, in
 * order; it spills to disk past work_mem, follows subtransactions (ROLLBACK TO
 * cuts it), and is sent when the transaction is about to commit.  Scans of the
 * same transaction read it after the topic, so that own writes are visible.
 */
#ifndef UK_PENDING_H
#define UK_PENDING_H

#include "fdw/options.h"
#include "kafka/producer.h"

/* Queue one encoded message of a foreign table; copies everything. */
extern void pending_add(const TopicTable *table, Oid userid, const KafkaOutRecord *record);

/* Is anything of this topic (by server and name) waiting? */
extern bool pending_exists(Oid serverid, const char *topic);

/*
 * Read what is waiting for a topic, in order, as records with offsets above any
 * real one; valid until the next call.  A reader sees what was there at its
 * begin.  Belongs to the current memory context.
 */
typedef struct PendingReader PendingReader;
extern PendingReader *pending_read_begin(Oid serverid, const char *topic);
extern bool pending_read_next(PendingReader *reader, KafkaRecord *record);
extern void pending_read_end(PendingReader *reader);

#endif							/* UK_PENDING_H */
