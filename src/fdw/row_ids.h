/*
 * row_ids.h
 *	  Which message a row came from, for UPDATE and DELETE: a row's ctid is the
 *	  place of its raw key, topic and partition in this store.
 *
 * A tombstone must meet the message that it deletes, whatever spelling of the key and
 * whatever partition its producer has chosen.  Bytes are in memory up to work_mem,
 * then on disk.
 */
#ifndef UK_ROW_IDS_H
#define UK_ROW_IDS_H

#include "kafka/producer.h"
#include "storage/itemptr.h"

typedef struct RowIds RowIds;

/* Lives in a child of CurrentMemoryContext; its file belongs to CurrentResourceOwner. */
extern RowIds *row_ids_create(void);
extern void row_ids_end(RowIds *ids);

/* The scan begins again: the same rows follow in the same order. */
extern void row_ids_rescan(RowIds *ids);

/*
 * The next row that the scan returns: topic, partition and key of the message behind
 * it.  The topic's name is not copied.
 */
extern void row_ids_put(RowIds *ids, const KafkaOutRecord *origin, ItemPointer ctid);

/*
 * Fill in key (palloc'd in CurrentMemoryContext), topic and partition of a row.  false:
 * the row was taken before; a join can bring it twice, and as everywhere the first
 * change counts.
 */
extern bool row_ids_take(RowIds *ids, const ItemPointerData *ctid, KafkaOutRecord *origin);

#endif							/* UK_ROW_IDS_H */
