/*
 * apply_move.c
 *	  A row whose key changed at the source: it was deleted under the old key, and comes
 *	  again under the new one, without the values that did not change.
 *
 * They are those of the old key's last row before the change in the same source: the
 * delete is between the two.  Where a version of each message is kept, it is one of them.
 * Otherwise origins keep the row of a delete that says that it goes on (op 'm').  In
 * another source nothing tells how far that key had come, so nothing is taken over.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "materialize/apply_internal.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

/* The old key's row: a tuple in the layout of versions and origins, or in the current table. */
typedef struct OldRow
{
	HeapTuple	tuple;
	bool		current;
} OldRow;

static void
find_version(Applier *applier, const Change *change, OldRow *found)
{
	TupleTableSlot *slot;
	int64		offset = -1;

	while ((slot = table_writer_next(applier->versions, BackwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, false);

		CHECK_FOR_INTERRUPTS();
		if ((row.op != 'u' && row.op != 'U') || row.partition != change->source ||
			row.offset <= offset || row.offset >= change->offset)
			continue;
		if (found->tuple)
			heap_freetuple(found->tuple);
		found->tuple = ExecCopySlotHeapTuple(slot);
		offset = row.offset;
	}
}

static void
find_origin(Applier *applier, const Change *change, OldRow *found)
{
	TupleTableSlot *slot;

	while ((slot = table_writer_next(applier->origins, ForwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, false);

		/* its own delete may be of the same message */
		if (row.partition != change->source || row.offset > change->offset)
			continue;
		if (ORIGIN_OP_IS_WHOLE(row.op))
			found->tuple = ExecCopySlotHeapTuple(slot);
		else
			found->current = VERSION_OP_HAS_ROW(row.op);
		return;
	}
}

static bool
find_old_row(Applier *applier, const Change *change, OldRow *found)
{
	TableWriter *writer = applier->versions ? applier->versions : applier->origins;
	const ApplyMap *map = applier->map;
	Datum	   *keys = palloc(map->nkeys * sizeof(Datum));

	memset(found, 0, sizeof(*found));
	for (int k = 0; k < map->nkeys; k++)
		keys[k] = change->old_key[map->keys[k] - 1];
	table_writer_scan(writer, map->nkeys, keys, false, 0);
	if (applier->versions)
		find_version(applier, change, found);
	else
		find_origin(applier, change, found);
	if (found->current)
		table_writer_scan(applier->current, map->nkeys, keys, false, 0);
	return found->tuple || found->current;
}

void
apply_take_over(Applier *applier, Change *change)
{
	const ApplyMap *map = applier->map;
	TableWriter *from = applier->versions ? applier->versions : applier->origins;
	const Layout *layout = &applier->versions_layout;
	TupleTableSlot *slot = NULL;
	OldRow		found;

	if (!find_old_row(applier, change, &found))
		return;
	if (found.current)
	{
		from = applier->current;
		layout = &applier->current_layout;
		slot = table_writer_next(from, ForwardScanDirection);
		if (slot == NULL)
			return;
	}
	for (int i = 0; i < map->ncolumns; i++)
	{
		int			to = map->sources[i];
		Datum		value;
		bool		isnull;
		int16		typlen;
		bool		typbyval;

		if (!bms_is_member(to, change->unchanged))
			continue;
		if (slot)
			value = slot_getattr(slot, layout->columns[i], &isnull);
		else
			value = heap_getattr(found.tuple, layout->columns[i], RelationGetDescr(table_writer_relation(from)), &isnull);
		change->isnull[to] = isnull;
		if (isnull)
			continue;
		get_typlenbyval(map->topic->columns[to].type, &typlen, &typbyval);
		change->values[to] = datumCopy(value, typbyval, typlen);
	}
	change->unchanged = NULL;
}
