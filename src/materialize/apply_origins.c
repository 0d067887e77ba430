/*
 * apply_origins.c
 *	  The last message of each key in each partition, where no history is kept.
 *
 * Without versions the current table alone cannot tell which partition's word a row
 * is, nor that a key was deleted; origins can (decision 5, versions.h).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "materialize/apply_internal.h"
#include "utils/memutils.h"

static Origin *
add_origin(Applier *applier)
{
	Origin	   *origin;

	if (applier->norigins == applier->max_origins)
	{
		applier->max_origins = Max(4, applier->max_origins * 2);
		applier->origin = applier->origin
			? repalloc(applier->origin, applier->max_origins * sizeof(Origin))
			: MemoryContextAlloc(applier->context, applier->max_origins * sizeof(Origin));
	}
	origin = &applier->origin[applier->norigins++];
	memset(origin, 0, sizeof(Origin));
	return origin;
}

void
origins_load(Applier *applier)
{
	TupleTableSlot *slot;

	applier->norigins = 0;
	if (applier->fresh)
		return;
	table_writer_scan(applier->origins, applier->map->nkeys, applier->keys, false, 0);
	while ((slot = table_writer_next(applier->origins, ForwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, false);
		Origin	   *origin = add_origin(applier);

		origin->row = row;
		if (ORIGIN_OP_IS_WHOLE(row.op))
		{
			VersionRow	full = apply_read_system(applier, slot, true);

			origin->row.row = full.row;
		}
		origin->stored = true;
	}
}

/* The current table's row of the key as one of origins, in the key's context; NULL: none. */
static RowSource *
current_row(Applier *applier)
{
	const ApplyMap *map = applier->map;
	TupleTableSlot *slot = table_writer_slot(applier->origins);
	TupleTableSlot *found;
	RowSource  *source;
	MemoryContext old;

	table_writer_scan(applier->current, map->nkeys, applier->keys, false, 0);
	found = table_writer_next(applier->current, ForwardScanDirection);
	if (found == NULL)
		return NULL;
	slot_getallattrs(found);
	for (int c = 0; c < map->ncolumns; c++)
	{
		int			to = applier->versions_layout.columns[c] - 1;
		int			from = applier->current_layout.columns[c] - 1;

		slot->tts_values[to] = found->tts_values[from];
		slot->tts_isnull[to] = found->tts_isnull[from];
	}
	old = MemoryContextSwitchTo(applier->key_context);
	source = palloc0(sizeof(RowSource));
	source->tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	MemoryContextSwitchTo(old);
	ExecClearTuple(slot);
	return source;
}

/*
 * A delete whose row goes on under another key, or one behind that: the deleted row, which
 * the new key's may want; NULL: there was none.
 */
static RowSource *
moving_row(Applier *applier, const Origin *origin, const Change *change)
{
	bool		moved = origin->row.op == 'm' || origin->row.op == 'M';

	if (change->kind != ROW_DELETE || !(moved || (change->moves && VERSION_OP_HAS_ROW(origin->row.op))))
		return NULL;
	if (origin->row.row == NULL)
		return current_row(applier);
	return apply_copy_row(applier, origin->row.row);
}

void
origins_change(Applier *applier, const Change *change)
{
	Origin	   *origin = NULL;
	RowSource  *moving = NULL;

	for (int i = 0; i < applier->norigins && origin == NULL; i++)
		if (applier->origin[i].row.partition == change->source)
			origin = &applier->origin[i];
	if (origin == NULL)
		origin = add_origin(applier);
	else if (applier->any_order && origin->row.offset > change->offset)
		return;					/* not the partition's last */
	else
		moving = moving_row(applier, origin, change);
	origin->row.op = change->kind == ROW_DELETE ? 'd' : 'u';
	origin->row.valid_from = origin->row.event_time = change->event_time;
	origin->row.partition = change->source;
	origin->row.offset = change->offset;
	origin->row.timestamp = change->timestamp;
	origin->changed = true;
	if (moving)
	{
		origin->row.op = 'm';
		origin->row.row = moving;
		return;
	}

	/* the struct lives until the key ends; its values do as the contract says */
	if (origin->row.row == NULL || ((RowSource *) origin->row.row)->change == NULL)
	{
		RowSource  *source = MemoryContextAllocZero(applier->key_context, sizeof(RowSource));

		source->change = MemoryContextAlloc(applier->key_context, sizeof(Change));
		origin->row.row = source;
	}
	*unconstify(Change *, ((RowSource *) origin->row.row)->change) = *change;
}

void
origins_write(Applier *applier)
{
	bool		shared = applier->norigins > 1;
	bool		changed = false;
	const Origin *word = NULL;

	for (int i = 0; i < applier->norigins; i++)
		changed |= applier->origin[i].changed;
	if (!changed)
		return;

	/*
	 * A second partition comes in: the first one's row is in the current table
	 * only, and must be kept as its origin from now on.
	 */
	for (int i = 0; shared && i < applier->norigins; i++)
	{
		Origin	   *origin = &applier->origin[i];

		if (origin->row.op == 'u' && origin->row.row == NULL)
		{
			RowSource  *source = current_row(applier);

			if (source)
				origin->row.row = source;
			origin->changed = true;
		}
	}

	for (int i = 0; i < applier->norigins; i++)
	{
		Origin	   *origin = &applier->origin[i];

		if (shared)
		{
			if (!VERSION_OP_IS_SHARED(origin->row.op))
				origin->changed = true;
			origin->row.op = pg_toupper((unsigned char) origin->row.op);
		}
		if (word == NULL || origin->row.timestamp > word->row.timestamp ||
			(origin->row.timestamp == word->row.timestamp && origin->row.partition > word->row.partition))
			word = origin;
	}

	apply_write_current(applier, VERSION_OP_HAS_ROW(word->row.op) ? word->row.row : NULL);

	for (int i = 0; i < applier->norigins; i++)
	{
		Origin	   *origin = &applier->origin[i];
		TupleTableSlot *slot;
		bool		found = false;

		if (!origin->changed)
			continue;
		if (origin->stored)
		{
			TupleTableSlot *stored;
			bool		isnull;

			table_writer_scan(applier->origins, applier->map->nkeys, applier->keys, false, 0);
			while (!found && (stored = table_writer_next(applier->origins, ForwardScanDirection)) != NULL)
				found = DatumGetInt32(slot_getattr(stored, applier->versions_layout.partition, &isnull)) == origin->row.partition;
		}
		slot = table_writer_slot(applier->origins);
		if (ORIGIN_OP_IS_WHOLE(origin->row.op))
			apply_fill_columns(applier, slot, &applier->versions_layout, origin->row.row, false);
		apply_fill_key(applier, slot, &applier->versions_layout);
		apply_fill_system(slot, &applier->versions_layout, &origin->row);
		if (found)
			table_writer_update(applier->origins);
		else
			table_writer_insert(applier->origins);
	}
}
