/*
 * apply_truncate.c
 *	  What a TRUNCATE of the source means (case X10): a delete of every key that has a row
 *	  then, with the offset and the moment of the event.
 *
 * So history, replay and rebuild know nothing but deletes.  Which keys have a row is
 * what the current table holds, since everything before the event has been applied:
 * it comes in the order of the one source.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "materialize/apply_internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

void
apply_truncate_change(const ApplyMap *map, const Change *truncation, const Change *like, Change *result,
					  Datum *values, bool *isnull)
{
	*result = *truncation;
	result->kind = ROW_DELETE;
	result->bare = false;		/* its moment is known */
	result->unchanged = NULL;
	result->values = values;
	result->isnull = isnull;
	memset(isnull, true, map->topic->natts * sizeof(bool));
	for (int k = 0; k < map->nkeys; k++)
	{
		values[map->keys[k] - 1] = like->values[map->keys[k] - 1];
		isnull[map->keys[k] - 1] = false;
	}
}

void
applier_truncate(Applier *applier, const Change *truncation)
{
	const ApplyMap *map = applier->map;
	Relation	rel = table_writer_relation(applier->current);
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka truncated row", ALLOCSET_SMALL_SIZES);
	Datum	   *values = palloc0(map->topic->natts * sizeof(Datum));
	Datum	   *keys = palloc0(map->topic->natts * sizeof(Datum));
	bool	   *isnull = palloc(map->topic->natts * sizeof(bool));
	Change		like = {.values = keys};
	TupleTableSlot *slot;
	TableScanDesc scan;
	Snapshot	snapshot;

	/* rows that this transaction has written are among them, those that it deletes below stay in sight */
	applier_flush(applier);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	slot = table_slot_create(rel, NULL);
	scan = table_beginscan(rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		MemoryContext old = MemoryContextSwitchTo(row_context);
		Change		change;

		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < map->nkeys; k++)
		{
			bool		null;

			keys[map->keys[k] - 1] = slot_getattr(slot, applier->current_layout.columns[map->key_columns[k]], &null);
		}
		apply_truncate_change(map, truncation, &like, &change, values, isnull);
		applier_key_begin(applier, &change);
		applier_change(applier, &change);
		applier_key_end(applier);
		MemoryContextSwitchTo(old);
		MemoryContextReset(row_context);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	MemoryContextDelete(row_context);

	/* keys come again behind it */
	applier_flush(applier);
	pfree(values);
	pfree(keys);
	pfree(isnull);
}
