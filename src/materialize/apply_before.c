/*
 * apply_before.c
 *	  What a change takes over from the message before it: of the same key, in the same
 *	  partition.  (From another key's: apply_move.c.)
 *
 * Change events may leave out large values that did not change (case C09), and the
 * tombstone behind a delete has no time of its own.  Both are settled here, by the
 * order of the log alone, so that batches and restarts make no difference.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "materialize/apply_internal.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The message before: what is known of it, wherever that is. */
typedef struct Before
{
	bool		found;
	bool		deleted;
	TimestampTz moment;
	const Change *change;		/* its values are one of these; */
	HeapTuple	tuple;			/* in the layout of versions and origins */
	bool		current;		/* the current table's row */
} Before;

static void
before_message(Before *before, const VersionRow *message)
{
	const RowSource *source = message->row;

	before->found = true;
	before->deleted = !VERSION_OP_HAS_ROW(message->op);
	before->moment = message->valid_from;
	if (source)
	{
		before->change = source->change;
		before->tuple = source->tuple;
	}
}

/*
 * Among the stored messages of a key of one partition: the last one, or the delete with
 * this offset.
 */
static void
scan_messages(Applier *applier, int64 delete_offset, Before *before)
{
	TupleTableSlot *slot;
	VersionRow	last = {.offset = -1};

	table_writer_scan(applier->versions, applier->map->nkeys, applier->keys, false, 0);
	while ((slot = table_writer_next(applier->versions, BackwardScanDirection)) != NULL)
	{
		VersionRow	row = apply_read_system(applier, slot, false);

		CHECK_FOR_INTERRUPTS();
		if (VERSION_OP_IS_DERIVED(row.op) || row.offset <= last.offset)
			continue;
		if (delete_offset < 0)
			last = apply_read_system(applier, slot, true);
		else if (row.offset == delete_offset)
		{
			before_message(before, &row);
			return;
		}
	}
	if (last.offset >= 0)
		before_message(before, &last);
}

static void
find_version(Applier *applier, const Change *change, Before *before)
{
	const Timeline *timeline = applier->timeline;
	const VersionRow *last = NULL;
	const VersionRow *top;

	if (timeline->shared)
	{
		/* all messages are at hand */
		for (int i = 0; i < timeline->nmessages; i++)
		{
			const VersionRow *m = &timeline->messages[i];

			if (m->partition == change->source && m->offset < change->offset &&
				(last == NULL || m->offset > last->offset))
				last = m;
		}
		if (last)
			before_message(before, last);
		return;
	}

	if (applier->partition != change->source || timeline->nboundaries == 0)
		return;
	top = &timeline->boundaries[timeline->nboundaries - 1];
	if (!VERSION_OP_HAS_ROW(top->op))
	{
		/* of one partition: nothing holds at the end only if the last message is a delete */
		if (VERSION_OP_IS_DERIVED(top->op))
			scan_messages(applier, top->offset, before);
		else
			before_message(before, top);
		return;
	}
	if (applier->table->current_by_event_time)
		scan_messages(applier, -1, before);
	else
		before->found = before->current = true;
}

static void
find_origin(Applier *applier, const Change *change, Before *before)
{
	for (int i = 0; i < applier->norigins; i++)
	{
		const Origin *origin = &applier->origin[i];

		if (origin->row.partition != change->source)
			continue;
		before_message(before, &origin->row);
		before->current = origin->row.row == NULL;
	}
}

static void
find_before(Applier *applier, const Change *change, Before *before)
{
	memset(before, 0, sizeof(Before));
	if (applier->has_last && applier->last.source == change->source)
	{
		before->found = true;
		before->deleted = applier->last.kind == ROW_DELETE;
		before->moment = applier->last.event_time;
		before->change = &applier->last;
	}
	else if (applier->fresh)
		return;
	else if (applier->versions)
		find_version(applier, change, before);
	else
		find_origin(applier, change, before);
}

/*
 * Where values that are taken over live: as long as those of a change must, which is
 * until the next but one of the same partition, or until the key ends.
 */
static MemoryContext
kept_context(Applier *applier, int32 partition)
{
	MemoryContext *context;

	/* those of other partitions stay as they are: origins point there */
	if (applier->kept_partition != partition)
		applier->kept[0] = applier->kept[1] = NULL;
	applier->kept_partition = partition;
	applier->kept_last = !applier->kept_last;
	context = &applier->kept[applier->kept_last];
	if (*context)
		MemoryContextReset(*context);
	else
		*context = AllocSetContextCreate(applier->key_context, "upsert_kafka kept values", ALLOCSET_SMALL_SIZES);
	return *context;
}

static void
nothing_to_keep(Applier *applier, const Change *change)
{
	const ApplyMap *map = applier->map;
	int			first = bms_next_member(change->unchanged, -1);
	const Position *source = map->positions && change->source < map->positions->n ?
		&map->positions->positions[change->source] : NULL;
	bool		warned = applier->missing_values > 0;
	const char *topic = source ? source->topic : map->topic->topic;
	int			partition = source ? source->partition : change->source;
	bool	   *no_nulls = NULL;

	for (int i = 0; i < map->ncolumns; i++)
	{
		if (bms_is_member(map->sources[i], change->unchanged))
			applier->missing_values++;
	}
	if (warned)
		return;
	if (change->old_key)
		no_nulls = palloc0(map->topic->natts * sizeof(bool));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("column \"%s\" of maintained table \"%s\" is set to null for key %s",
					map->topic->columns[first].name, get_rel_name(applier->table->target),
					apply_key_text(map, change->values, change->isnull)),
			 change->old_key ?
			 errdetail("Topic \"%s\", partition %d, offset %lld does not hold its value, which did not change when the key did, and no earlier message of the partition has told it for the old key %s.",
					   topic, partition, (long long) change->offset, apply_key_text(map, change->old_key, no_nulls)) :
			 errdetail("Topic \"%s\", partition %d, offset %lld does not hold its value, which did not change, and no earlier message of the key has told it.",
					   topic, partition, (long long) change->offset),
			 change->old_key ? errhint("A topic of one partition has both keys' messages; with REPLICA IDENTITY FULL the source sends such values.") : 0));
}

/* Copies of the values that the change left out, from the row before. */
static void
keep_values(Applier *applier, const Before *before, const Change *change, Change *result)
{
	const ApplyMap *map = applier->map;
	int			natts = map->topic->natts;
	MemoryContext context = kept_context(applier, change->source);
	MemoryContext old;
	TupleDesc	desc = NULL;
	TupleTableSlot *found = NULL;

	/* a scan's own memory must outlive this key's */
	if (before->tuple)
		desc = RelationGetDescr(table_writer_relation(applier->versions ? applier->versions : applier->origins));
	else if (before->current)
	{
		table_writer_scan(applier->current, map->nkeys, applier->keys, false, 0);
		found = table_writer_next(applier->current, ForwardScanDirection);
	}

	old = MemoryContextSwitchTo(context);
	result->values = palloc(sizeof(Datum) * natts);
	result->isnull = palloc(sizeof(bool) * natts);
	memcpy(result->values, change->values, sizeof(Datum) * natts);
	memcpy(result->isnull, change->isnull, sizeof(bool) * natts);
	for (int i = 0; i < map->ncolumns; i++)
	{
		int			to = map->sources[i];
		Datum		value = (Datum) 0;
		bool		isnull = true;
		int16		typlen;
		bool		typbyval;

		if (!bms_is_member(to, change->unchanged))
			continue;
		if (before->tuple)
			value = heap_getattr(before->tuple, applier->versions_layout.columns[i], desc, &isnull);
		else if (before->change)
		{
			value = before->change->values[to];
			isnull = before->change->isnull[to];
		}
		else if (found)
			value = slot_getattr(found, applier->current_layout.columns[i], &isnull);
		if (isnull)
			continue;
		get_typlenbyval(map->topic->columns[to].type, &typlen, &typbyval);
		result->values[to] = datumCopy(value, typbyval, typlen);
		result->isnull[to] = false;
	}
	MemoryContextSwitchTo(old);
}

const Change *
apply_complete(Applier *applier, const Change *change)
{
	Before		before;

	if (!change->bare && change->unchanged == NULL)
		return change;
	find_before(applier, change, &before);

	/*
	 * Debezium writes a tombstone behind each delete.  It says nothing new, and its
	 * Kafka timestamp must not make it a second moment: it has that of the delete.
	 */
	if (change->bare)
	{
		if (!before.found || !before.deleted)
			return change;
		applier->completed = *change;
		applier->completed.event_time = before.moment;
		return &applier->completed;
	}

	if (!before.found || before.deleted)
	{
		nothing_to_keep(applier, change);
		return change;
	}
	applier->completed = *change;
	applier->completed.unchanged = NULL;
	keep_values(applier, &before, change, &applier->completed);
	return &applier->completed;
}
