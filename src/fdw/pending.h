/*
 * pending.h
 *	  Writes of the current transaction that are not sent yet.
 *
 * INSERT, UPDATE, DELETE, COPY and TRUNCATE encode their rows into this buffer, in
 * order; it spills to disk past work_mem, follows subtransactions (ROLLBACK TO
 * cuts it), and is sent when the transaction is about to commit (commit.c).  Scans
 * of the same transaction read it after the topic, so that own writes are visible.
 */
#ifndef UK_PENDING_H
#define UK_PENDING_H

#include "fdw/options.h"
#include "kafka/producer.h"

/*
 * A pending record that is read back has this source number and an offset from here on,
 * above any real one: so it is the last word of its key (changelog/).  Its partition is
 * the one that it will be sent to: -1, the partitioner decides.
 */
#define PENDING_SOURCE		PG_INT32_MAX
#define PENDING_OFFSET		(INT64CONST(1) << 62)

static inline bool
record_is_pending(const KafkaRecord *record)
{
	return record->offset >= PENDING_OFFSET;
}

/* Queue one encoded message of a foreign table; copies everything. */
extern void pending_add(const TopicTable *table, Oid userid, const KafkaOutRecord *record);

/* Everything queued so far lies before this mark. */
extern int64 pending_mark(void);

/*
 * Read what was waiting for the topics of a table at 'mark', in order.  NULL when there
 * was nothing.  Belongs to the current memory context, where the records' topics stay
 * after its end.
 */
typedef struct PendingReader PendingReader;
extern PendingReader *pending_read_begin(const TopicTable *table, int64 mark);

/* Records, at most max and about 1 MB, valid until the next call; 0 at the end. */
extern int	pending_read_next(PendingReader *reader, KafkaRecord *records, int max);
extern void pending_read_end(PendingReader *reader);

#endif							/* UK_PENDING_H */
