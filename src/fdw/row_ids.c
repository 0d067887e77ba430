/*
 * row_ids.c
 *	  The store behind row_ids.h: one log of raw keys, addressed by ctids.
 */
#include "postgres.h"

#include "fdw/row_ids.h"
#include "fdw/spill_log.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* A position as a ctid: its low bits make the offset number, which is never 0. */
#define OFFSET_BITS		15
#define OFFSET_MASK		((1 << OFFSET_BITS) - 1)

/* What stands in front of a key; copied in and out, so never aligned. */
typedef struct RowIdHead
{
	const char *topic;
	int32		partition;
	int32		key_len;
	bool		taken;
} RowIdHead;

struct RowIds
{
	SpillLog   *log;
	int64		next;			/* of a rescan: where the next row is */
};

RowIds *
row_ids_create(void)
{
	RowIds	   *ids = palloc0(sizeof(RowIds));

	ids->log = spill_log_create(CurrentMemoryContext, CurrentResourceOwner, work_mem * (Size) 1024);
	return ids;
}

void
row_ids_end(RowIds *ids)
{
	spill_log_free(ids->log);
	pfree(ids);
}

void
row_ids_rescan(RowIds *ids)
{
	ids->next = 0;
}

void
row_ids_put(RowIds *ids, const KafkaOutRecord *origin, ItemPointer ctid)
{
	int64		position;
	RowIdHead	head;

	if (ids->next < spill_log_end(ids->log))
	{
		position = ids->next;
		spill_log_read(ids->log, position, &head, sizeof(head));
		Assert(head.partition == origin->partition && head.key_len == origin->key_len);
	}
	else
	{
		char	   *p;

		memset(&head, 0, sizeof(head));
		head.topic = origin->topic;
		head.partition = origin->partition;
		head.key_len = (int32) origin->key_len;
		p = spill_log_append(ids->log, sizeof(head) + origin->key_len, &position);
		memcpy(p, &head, sizeof(head));
		if (origin->key_len > 0)
			memcpy(p + sizeof(head), origin->key, origin->key_len);
	}
	ids->next = position + sizeof(head) + head.key_len;
	ItemPointerSet(ctid, (BlockNumber) (position >> OFFSET_BITS),
				   (OffsetNumber) ((position & OFFSET_MASK) + 1));
}

bool
row_ids_take(RowIds *ids, const ItemPointerData *ctid, KafkaOutRecord *origin)
{
	int64		position = ((int64) ItemPointerGetBlockNumberNoCheck(ctid) << OFFSET_BITS) |
		(ItemPointerGetOffsetNumberNoCheck(ctid) - 1);
	RowIdHead	head;
	char	   *key;

	spill_log_read(ids->log, position, &head, sizeof(head));
	if (head.taken)
		return false;
	head.taken = true;
	spill_log_overwrite(ids->log, position, &head, sizeof(head));
	key = palloc(head.key_len + 1);
	spill_log_read(ids->log, position + sizeof(head), key, head.key_len);
	origin->topic = head.topic;
	origin->partition = head.partition;
	origin->key = key;
	origin->key_len = head.key_len;
	return true;
}
