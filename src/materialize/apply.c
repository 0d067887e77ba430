/*
 * apply.c
 *	  Turning changes into rows of the current table, its versions and origins.
 *
 * Owns the decision what each key's changes write where.  The rules are
 * decisions 5 and 6 of the design, the layout is versions.h, the moments are
 * timeline.c's, the writing is writer.c's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "compat.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "history/timeline.h"
#include "history/versions.h"
#include "materialize/apply_internal.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

static AttrNumber
find_column(Relation rel, const char *name, bool missing_ok)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(rel), name);

	if (attnum == InvalidAttrNumber && !missing_ok)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has no column \"%s\"", RelationGetRelationName(rel), name),
				 errhint("Its maintained table needs it; see upsert_kafka.rebuild().")));
	return attnum;
}

static void
make_layout(Layout *layout, Relation rel, const ApplyMap *map, bool system)
{
	layout->columns = palloc(Max(map->ncolumns, 1) * sizeof(AttrNumber));
	for (int i = 0; i < map->ncolumns; i++)
		layout->columns[i] = find_column(rel, map->names[i], false);
	if (!system)
		return;
	layout->valid_from = find_column(rel, VERSION_VALID_FROM, false);
	layout->seq = find_column(rel, VERSION_SEQ, false);
	layout->op = find_column(rel, VERSION_OP, false);
	layout->partition = find_column(rel, VERSION_PARTITION, false);
	layout->offset = find_column(rel, VERSION_OFFSET, false);
	layout->timestamp = find_column(rel, VERSION_TIMESTAMP, false);
	layout->event_time = find_column(rel, VERSION_EVENT_TIME, false);
	layout->cause = find_column(rel, VERSION_CAUSE, false);
}

/* The index over (keys .., last column of ours): versions end in __seq, origins in __partition. */
static Oid
find_index(Oid relid, int natts, const char *last)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	AttrNumber	attnum = find_column(rel, last, false);
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_index->indnkeyatts == natts && index->rd_index->indisvalid &&
			index->rd_index->indkey.values[natts - 1] == attnum)
			found = RelationGetRelid(index);
		index_close(index, AccessShareLock);
	}
	table_close(rel, NoLock);
	if (!OidIsValid(found))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has lost its index on the key", get_rel_name(relid)),
				 errhint("Create the index again, or rebuild the maintained table.")));
	return found;
}

static Oid
find_primary_key(Oid relid)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	Oid			index = RelationGetPrimaryKeyIndex_compat(rel);

	table_close(rel, NoLock);
	if (!OidIsValid(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("maintained table \"%s\" has lost its primary key", get_rel_name(relid)),
				 errhint("Add the primary key again.")));
	return index;
}

Applier *
applier_begin(const MaintainedTable *table, const ApplyMap *map, int64 *next_seq, bool fresh)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka apply",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Applier    *applier = palloc0(sizeof(Applier));

	applier->context = context;
	applier->key_context = AllocSetContextCreate(context, "upsert_kafka key", ALLOCSET_DEFAULT_SIZES);
	applier->table = table;
	applier->map = map;
	applier->next_seq = next_seq;
	applier->fresh = fresh;
	applier->keys = palloc0(Max(map->nkeys, 1) * sizeof(Datum));

	applier->current = table_writer_open(table->target, table->append ? InvalidOid : find_primary_key(table->target));
	make_layout(&applier->current_layout, table_writer_relation(applier->current), map, false);
	if (OidIsValid(table->versions))
	{
		applier->versions = table_writer_open(table->versions,
											  find_index(table->versions, map->nkeys + 2, VERSION_SEQ));
		make_layout(&applier->versions_layout, table_writer_relation(applier->versions), map, true);
		applier->timeline = timeline_create(context, next_seq);
	}
	else if (OidIsValid(table->origins))
	{
		applier->origins = table_writer_open(table->origins,
											 find_index(table->origins, map->nkeys + 1, VERSION_PARTITION));
		make_layout(&applier->versions_layout, table_writer_relation(applier->origins), map, true);
	}
	MemoryContextSwitchTo(old);
	return applier;
}

/* === rows of versions and origins ============================================== */

void
apply_fill_columns(Applier *applier, TupleTableSlot *slot, const Layout *layout, const RowSource *source, bool only_key)
{
	const ApplyMap *map = applier->map;

	if (source->change)
	{
		for (int i = 0; i < map->ncolumns; i++)
		{
			slot->tts_values[layout->columns[i] - 1] = source->change->values[map->sources[i]];
			slot->tts_isnull[layout->columns[i] - 1] = source->change->isnull[map->sources[i]];
		}
		if (only_key)
		{
			for (int i = 0; i < map->ncolumns; i++)
				slot->tts_isnull[layout->columns[i] - 1] = true;
			for (int k = 0; k < map->nkeys; k++)
				slot->tts_isnull[layout->columns[map->key_columns[k]] - 1] = false;
		}
	}
	else
	{
		TupleDesc	desc = RelationGetDescr(table_writer_relation(applier->versions ? applier->versions : applier->origins));
		const Layout *from = &applier->versions_layout;

		for (int i = 0; i < map->ncolumns; i++)
			slot->tts_values[layout->columns[i] - 1] =
				heap_getattr(source->tuple, from->columns[i], desc, &slot->tts_isnull[layout->columns[i] - 1]);
	}
}

void
apply_fill_key(Applier *applier, TupleTableSlot *slot, const Layout *layout)
{
	for (int k = 0; k < applier->map->nkeys; k++)
	{
		AttrNumber	attnum = layout->columns[applier->map->key_columns[k]];

		slot->tts_values[attnum - 1] = applier->keys[k];
		slot->tts_isnull[attnum - 1] = false;
	}
}

static inline void
set(TupleTableSlot *slot, AttrNumber attnum, Datum value)
{
	slot->tts_values[attnum - 1] = value;
	slot->tts_isnull[attnum - 1] = false;
}

void
apply_fill_system(TupleTableSlot *slot, const Layout *layout, const VersionRow *row)
{
	set(slot, layout->valid_from, TimestampTzGetDatum(row->valid_from));
	set(slot, layout->seq, Int64GetDatum(row->seq));
	set(slot, layout->op, CharGetDatum(row->op));
	set(slot, layout->partition, Int32GetDatum(row->partition));
	set(slot, layout->offset, Int64GetDatum(row->offset));
	if (row->timestamp >= 0)
		set(slot, layout->timestamp, TimestampTzGetDatum(kafka_timestamp(row->timestamp)));
	if (VERSION_OP_IS_DERIVED(row->op))
	{
		if (VERSION_OP_HAS_ROW(row->op))
			set(slot, layout->event_time, TimestampTzGetDatum(row->event_time));
		set(slot, layout->cause, Int64GetDatum(row->cause));
	}
}

/* A stored row as VersionRow; 'row' is a RowSource copy in the key's context if with_row. */
VersionRow
apply_read_system(Applier *applier, TupleTableSlot *slot, bool with_row)
{
	const Layout *layout = &applier->versions_layout;
	VersionRow	row;
	bool		isnull;
	Datum		value;

	memset(&row, 0, sizeof(row));
	row.valid_from = DatumGetTimestampTz(slot_getattr(slot, layout->valid_from, &isnull));
	row.seq = DatumGetInt64(slot_getattr(slot, layout->seq, &isnull));
	row.op = DatumGetChar(slot_getattr(slot, layout->op, &isnull));
	row.partition = DatumGetInt32(slot_getattr(slot, layout->partition, &isnull));
	row.offset = DatumGetInt64(slot_getattr(slot, layout->offset, &isnull));
	value = slot_getattr(slot, layout->timestamp, &isnull);
	row.timestamp = isnull ? -1 : (DatumGetTimestampTz(value) - kafka_timestamp(0)) / 1000;
	value = slot_getattr(slot, layout->event_time, &isnull);
	row.event_time = isnull ? row.valid_from : DatumGetTimestampTz(value);
	value = slot_getattr(slot, layout->cause, &isnull);
	row.cause = isnull ? -1 : DatumGetInt64(value);
	if (with_row)
	{
		MemoryContext old = MemoryContextSwitchTo(applier->key_context);
		RowSource  *source = palloc0(sizeof(RowSource));

		source->tuple = ExecCopySlotHeapTuple(slot);
		row.row = source;
		MemoryContextSwitchTo(old);
	}
	return row;
}

RowSource *
apply_copy_row(Applier *applier, const RowSource *source)
{
	MemoryContext old = MemoryContextSwitchTo(applier->key_context);
	TableWriter *writer = applier->versions ? applier->versions : applier->origins;
	RowSource  *copy = palloc0(sizeof(RowSource));

	if (source->tuple)
		copy->tuple = heap_copytuple(source->tuple);
	else
	{
		TupleTableSlot *slot = table_writer_slot(writer);

		apply_fill_columns(applier, slot, &applier->versions_layout, source, false);
		copy->tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
		ExecClearTuple(slot);
	}
	MemoryContextSwitchTo(old);
	return copy;
}

/* === versions ===================================================================== */

static void
write_added(Applier *applier)
{
	Timeline   *timeline = applier->timeline;

	for (int i = 0; i < timeline->nadded; i++)
	{
		const VersionRow *row = &timeline->added[i];
		TupleTableSlot *slot = table_writer_slot(applier->versions);

		if (VERSION_OP_HAS_ROW(row->op))
			apply_fill_columns(applier, slot, &applier->versions_layout, row->row, false);
		else
			apply_fill_key(applier, slot, &applier->versions_layout);
		apply_fill_system(slot, &applier->versions_layout, row);
		table_writer_insert(applier->versions);
	}
	timeline->nadded = 0;
}

/* The key is written by several partitions: all its rows are needed from now on. */
static void
load_shared(Applier *applier)
{
	Timeline   *timeline = applier->timeline;
	TupleTableSlot *slot;

	table_writer_refresh(applier->versions);
	timeline_reset(timeline);
	table_writer_scan(applier->versions, applier->map->nkeys, applier->keys, false, 0);
	while ((slot = table_writer_next(applier->versions, ForwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, true);

		CHECK_FOR_INTERRUPTS();
		timeline_load(timeline, &row);
	}
	timeline->shared = true;
	applier->loaded_from = DT_NOBEGIN;
}

/* One probe per key: its last row. */
static void
load_top(Applier *applier)
{
	TupleTableSlot *slot;
	VersionRow	row;

	table_writer_scan(applier->versions, applier->map->nkeys, applier->keys, false, 0);
	slot = table_writer_next(applier->versions, BackwardScanDirection);
	if (slot == NULL)
	{
		applier->loaded_from = DT_NOBEGIN;
		return;
	}
	row = apply_read_system(applier, slot, false);
	if (VERSION_OP_IS_SHARED(row.op))
	{
		load_shared(applier);
		return;
	}
	timeline_load(applier->timeline, &row);
	applier->partition = row.partition;
	applier->loaded_from = row.valid_from;
}

/* A late message: the boundaries from its moment up to those that are known already. */
static void
load_from(Applier *applier, TimestampTz moment)
{
	TupleTableSlot *slot;

	table_writer_scan(applier->versions, applier->map->nkeys, applier->keys, true, moment);
	while ((slot = table_writer_next(applier->versions, ForwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, false);

		CHECK_FOR_INTERRUPTS();
		if (row.valid_from >= applier->loaded_from)
			break;
		timeline_load(applier->timeline, &row);
	}
	applier->loaded_from = moment;
}

static void
apply_version(Applier *applier, const Change *change)
{
	Timeline   *timeline = applier->timeline;
	RowSource	source = {change, NULL};
	VersionRow	message;

	if (!timeline->shared && applier->partition >= 0 && applier->partition != change->source)
		load_shared(applier);
	applier->partition = change->source;

	memset(&message, 0, sizeof(message));
	message.op = change->kind == ROW_DELETE ? 'd' : 'u';
	message.valid_from = message.event_time = change->event_time;
	message.partition = change->source;
	message.offset = change->offset;
	message.timestamp = change->timestamp;

	if (timeline->shared)
	{
		message.row = message.op == 'u' ? apply_copy_row(applier, &source) : NULL;
		timeline_message(timeline, &message);
		return;					/* settled when the key ends */
	}

	message.row = &source;
	if (message.valid_from < applier->loaded_from)
		load_from(applier, message.valid_from);
	timeline_message(timeline, &message);

	if (applier->table->current_by_event_time)
	{
		const VersionRow *top = timeline_top(timeline);

		if (top == NULL || (top->partition == change->source && top->offset == change->offset))
		{
			if (applier->winner.tuple)
				heap_freetuple(applier->winner.tuple);
			applier->winner.tuple = top ? apply_copy_row(applier, &source)->tuple : NULL;
			applier->winner_changed = true;
		}
	}
	write_added(applier);
}

/* === the current table ========================================================== */

void
apply_write_current(Applier *applier, const RowSource *winner)
{
	TableWriter *writer = applier->current;
	TupleDesc	desc = RelationGetDescr(table_writer_relation(writer));
	const ApplyMap *map = applier->map;
	const Layout *layout = &applier->current_layout;
	TupleTableSlot *found = NULL;
	TupleTableSlot *slot;
	bool		same = true;

	if (!applier->fresh && map->nkeys > 0)
	{
		table_writer_scan(writer, map->nkeys, applier->keys, false, 0);
		found = table_writer_next(writer, ForwardScanDirection);
	}
	if (winner == NULL)
	{
		if (found)
			table_writer_delete(writer);
		return;
	}

	slot = table_writer_slot(writer);
	apply_fill_columns(applier, slot, layout, winner, false);
	if (found == NULL)
	{
		if (map->ncolumns < desc->natts)
			for (int a = 0; a < desc->natts; a++)
			{
				Datum		value;
				bool		isnull;
				bool		fed = TupleDescAttr(desc, a)->attisdropped;

				for (int i = 0; i < map->ncolumns && !fed; i++)
					fed = layout->columns[i] == a + 1;
				if (!fed && table_writer_default(writer, a + 1, &value, &isnull))
				{
					slot->tts_values[a] = value;
					slot->tts_isnull[a] = isnull;
				}
			}
		table_writer_insert(writer);
		return;
	}

	/*
	 * Columns that are not fed keep their value, and so does the key: equal
	 * keys may be spelled differently (1.0, 1.00), and a new spelling would
	 * cost the HOT update.
	 */
	slot_getallattrs(found);
	for (int k = 0; k < map->nkeys; k++)
	{
		int			a = layout->columns[map->key_columns[k]] - 1;

		slot->tts_values[a] = found->tts_values[a];
		slot->tts_isnull[a] = found->tts_isnull[a];
	}
	for (int i = 0; i < map->ncolumns && same; i++)
	{
		int			a = layout->columns[i] - 1;
		Form_pg_attribute att = TupleDescAttr(desc, a);

		if (slot->tts_isnull[a] != found->tts_isnull[a])
			same = false;
		else if (!slot->tts_isnull[a])
			same = datum_image_eq(slot->tts_values[a], found->tts_values[a], att->attbyval, att->attlen);
	}
	if (same)
		return;					/* unchanged rows are not rewritten (decision 9) */
	if (map->ncolumns < desc->natts)
		for (int a = 0; a < desc->natts; a++)
		{
			bool		fed = false;

			for (int i = 0; i < map->ncolumns && !fed; i++)
				fed = layout->columns[i] == a + 1;
			if (!fed)
			{
				slot->tts_values[a] = found->tts_values[a];
				slot->tts_isnull[a] = found->tts_isnull[a];
			}
		}
	table_writer_update(writer);
}

void
applier_any_order(Applier *applier)
{
	applier->any_order = true;
}

/* === key by key ================================================================ */

void
applier_key_begin(Applier *applier, const Change *change)
{
	const ApplyMap *map = applier->map;
	MemoryContext old = MemoryContextSwitchTo(applier->key_context);

	for (int k = 0; k < map->nkeys; k++)
	{
		applier->keys[k] = datumCopy(change->values[map->keys[k] - 1],
									 map->key_desc->columns[k].typbyval, map->key_desc->columns[k].typlen);
	}
	MemoryContextSwitchTo(old);

	applier->partition = -1;
	applier->has_last = false;
	applier->kept[0] = applier->kept[1] = NULL;
	applier->winner.change = NULL;
	applier->winner.tuple = NULL;
	applier->winner_changed = false;
	if (applier->versions)
	{
		timeline_reset(applier->timeline);
		applier->loaded_from = DT_NOBEGIN;
		if (applier->any_order)
			load_shared(applier);
		else if (!applier->fresh)
			load_top(applier);
	}
	else
		origins_load(applier);
}

void
applier_change(Applier *applier, const Change *change)
{
	change = apply_complete(applier, change);
	if (applier->versions)
		apply_version(applier, change);
	else
		origins_change(applier, change);
	applier->last = *change;
	applier->has_last = true;
}

void
applier_key_end(Applier *applier)
{
	if (!applier->has_last)
		return;
	if (applier->origins)
		origins_write(applier);
	else if (applier->timeline->shared)
	{
		const VersionRow *word;

		timeline_settle(applier->timeline, applier->last.offset);
		word = applier->table->current_by_event_time ? timeline_top(applier->timeline)
			: timeline_last_word(applier->timeline);
		apply_write_current(applier, word && VERSION_OP_HAS_ROW(word->op) ? word->row : NULL);
		write_added(applier);
	}
	else if (applier->table->current_by_event_time)
	{
		if (applier->winner_changed)
			apply_write_current(applier, applier->winner.tuple ? &applier->winner : NULL);
	}
	else
	{
		RowSource	source = {&applier->last, NULL};

		apply_write_current(applier, applier->last.kind == ROW_DELETE ? NULL : &source);
	}
	MemoryContextReset(applier->key_context);
}

void
applier_append(Applier *applier, const Change *change)
{
	RowSource	source = {change, NULL};

	apply_write_current(applier, &source);
}

void
applier_flush(Applier *applier)
{
	table_writer_refresh(applier->current);
	if (applier->versions)
		table_writer_refresh(applier->versions);
	if (applier->origins)
		table_writer_refresh(applier->origins);
}

void
applier_end(Applier *applier)
{
	if (applier->missing_values > 0)
		missing_values_add(applier->table->target, applier->missing_values);
	table_writer_close(applier->current);
	if (applier->versions)
		table_writer_close(applier->versions);
	if (applier->origins)
		table_writer_close(applier->origins);
	CommandCounterIncrement();
	MemoryContextDelete(applier->context);
}
