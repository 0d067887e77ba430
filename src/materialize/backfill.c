/*
 * backfill.c
 *	  The first load of a maintained table, and refresh().
 *
 * One transaction: everything up to the stable ends taken at its start is decoded,
 * sorted by (key, source, offset) in bounded memory and loaded in key order,
 * so that heap and indexes grow at their ends.  What takes values from another key's row
 * waits, and what comes behind it of its key, and is applied in the log's order at last.
 * Readers see an empty table until it commits; a crash starts it again (decision 9).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "compat.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "materialize/apply_map.h"
#include "materialize/feed_internal.h"
#include "materialize/give_way.h"
#include "materialize/owner.h"
#include "materialize/progress.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "upsert_kafka.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define BACKFILL_RECORDS	8192	/* fetched and decoded at once */
#define BACKFILL_SORT_KB	(128 * 1024)

/*
 * Columns of a sorted change before the topic's own: of fixed width and in front,
 * so that comparing them costs no walk over the row.
 */
#define SORT_ORDER			0	/* source, then arrival, in one number */
#define SORT_OFFSET			1
#define SORT_TIMESTAMP		2
#define SORT_EVENT_TIME		3
#define SORT_SOURCE			4
#define SORT_KIND			5		/* bits: below */
#define SORT_NEXTRA			6

#define SORT_KIND_DELETE	1
#define SORT_KIND_BARE		2
#define SORT_KIND_MOVES		4

/* Columns behind the topic's own, nearly always null: Change.unchanged as bytes; old_key */
#define SORT_UNCHANGED(natts)	(SORT_NEXTRA + (natts))
#define SORT_OLD_KEY(natts)		(SORT_NEXTRA + (natts) + 1)

/* Arrival within a source is offset order; this many messages fit below a source. */
#define SORT_ARRIVAL_BITS	40

/* Changes that were set aside are applied by so many at once, or so many bytes. */
#define ASIDE_CHANGES		1000
#define ASIDE_BYTES			(1024 * 1024)

/* A ROW_TRUNCATE, and its place in the order of the sort */
typedef struct Truncation
{
	int64		order;
	Change		change;
} Truncation;

typedef struct Backfill
{
	FeedSource	source;
	Positions  *positions;
	int			nranges;
	KafkaRange *ranges;
	TupleDesc	desc;
	Tuplesortstate *sort;
	Tuplesortstate *aside;		/* in the log's order; NULL: nothing is */
	Applier    *applier;		/* of an append table: rows go in at once */
	int64		messages;
	int64		sorted;
	bool		stopped;
	ErrorSweep *sweep;			/* of errors that later messages clear; NULL: none */

	/* truncations, in order; of changes the values do not count */
	int			ntruncations;
	int			max_truncations;
	Truncation *truncations;
} Backfill;

/* Rows of the sort: the coordinates, then the topic's columns, dropped ones as nulls. */
static TupleDesc
sort_desc(const ApplyMap *map)
{
	const TopicTable *topic = map->topic;
	TupleDesc	desc = CreateTemplateTupleDesc(SORT_OLD_KEY(topic->natts) + map->nkeys);

	TupleDescInitEntry(desc, SORT_ORDER + 1, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, SORT_OFFSET + 1, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, SORT_TIMESTAMP + 1, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, SORT_EVENT_TIME + 1, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, SORT_SOURCE + 1, NULL, INT4OID, -1, 0);
	TupleDescInitEntry(desc, SORT_KIND + 1, NULL, INT4OID, -1, 0);
	TupleDescInitEntry(desc, SORT_UNCHANGED(topic->natts) + 1, NULL, BYTEAOID, -1, 0);
	for (int i = 0; i < topic->natts; i++)
	{
		const TopicColumn *column = &topic->columns[i];
		bool		live = OidIsValid(column->type);
		AttrNumber	attnum = SORT_NEXTRA + i + 1;

		TupleDescInitEntry(desc, attnum, NULL, live ? column->type : INT4OID, live ? column->typmod : -1, 0);
		if (live)
			TupleDescInitEntryCollation(desc, attnum, column->collation);
	}
	for (int k = 0; k < map->nkeys; k++)
		TupleDescCopyEntry(desc, SORT_OLD_KEY(topic->natts) + k + 1, desc, SORT_NEXTRA + map->keys[k]);
	return desc;
}

/* By key, or all in the log's order. */
static Tuplesortstate *
begin_sort(const ApplyMap *map, TupleDesc desc, bool by_key)
{
	int			nkeys = by_key ? map->nkeys : 0;
	int			n = nkeys + 1;
	AttrNumber *attnums = palloc(n * sizeof(AttrNumber));
	Oid		   *operators = palloc(n * sizeof(Oid));
	Oid		   *collations = palloc0(n * sizeof(Oid));
	bool	   *nulls_first = palloc0(n * sizeof(bool));

	for (int k = 0; k < nkeys; k++)
	{
		attnums[k] = SORT_NEXTRA + map->keys[k];
		operators[k] = map->key_desc->columns[k].lt_operator;
		collations[k] = map->key_desc->columns[k].collation;
	}
	attnums[n - 1] = SORT_ORDER + 1;
	operators[n - 1] = Int8LessOperator;
	return tuplesort_begin_heap(desc, n, attnums, operators, collations, nulls_first,
								by_key ? Min(maintenance_work_mem, BACKFILL_SORT_KB) : work_mem, NULL, TUPLESORT_NONE_compat);
}

static void
note_truncation(Backfill *backfill, const Change *change)
{
	if (backfill->ntruncations == backfill->max_truncations)
	{
		MemoryContext context = GetMemoryChunkContext(backfill->positions);

		backfill->max_truncations = Max(backfill->max_truncations * 2, 16);
		if (backfill->truncations == NULL)
			backfill->truncations = MemoryContextAlloc(context, backfill->max_truncations * sizeof(Truncation));
		else
			backfill->truncations = repalloc_huge(backfill->truncations, backfill->max_truncations * sizeof(Truncation));
	}
	backfill->truncations[backfill->ntruncations].order = ((int64) change->source << SORT_ARRIVAL_BITS) + backfill->sorted++;
	backfill->truncations[backfill->ntruncations++].change = *change;
	message_errors_truncate(backfill->source.table->target, change->source, change->offset, change->event_time);
}

/*
 * Sources to load; those that the table had before keep their numbers.  What was read of
 * a topic that is not read any more is gone: it starts where nothing was.
 */
static KafkaRange *
plan_sources(Backfill *backfill, Positions *positions, int *n)
{
	Oid			target = backfill->source.table->target;
	SourceState *states;
	int			nknown;

	positions->topic = pstrdup(backfill->source.topic->topic);
	positions->positions = topic_sources_get(target, &positions->nstored);
	positions->n = nknown = positions->nstored;
	positions->several = positions->nstored > 0;
	states = sources_find(backfill->source.consumer, backfill->source.topic, positions);
	for (int i = 0; i < nknown; i++)
	{
		if (states[i] != SOURCE_MISSING)
			continue;
		/* raises for a topic of a list */
		if (backfill->source.topic->topic_pattern == NULL)
			(void) kafka_partition_count(backfill->source.consumer, positions->positions[i].topic, false);
		sources_give_up(target, positions, i);
	}
	return sources_ranges(positions, states, n);
}

/* Where the first load starts, by the source's options; its ends are the stable ends now. */
static void
plan_ranges(Backfill *backfill)
{
	const TopicTable *topic = backfill->source.topic;
	KafkaConsumer *consumer = backfill->source.consumer;
	Positions  *positions = palloc0(sizeof(Positions));
	int			n;
	int64	   *low;
	int64	   *end;
	int64	   *start;

	backfill->ranges = plan_sources(backfill, positions, &n);
	backfill->nranges = n;
	low = palloc(Max(n, 1) * sizeof(int64));
	end = palloc(Max(n, 1) * sizeof(int64));
	start = palloc(Max(n, 1) * sizeof(int64));
	backfill->source.one_source = n == 1 && positions->n == 1;
	kafka_query_offsets(consumer, n, backfill->ranges, low, end);
	memcpy(start, low, n * sizeof(int64));
	switch (topic->startup_mode)
	{
		case STARTUP_EARLIEST:
			break;
		case STARTUP_LATEST:
			memcpy(start, end, n * sizeof(int64));
			break;
		case STARTUP_TIMESTAMP:
			{
				int64	   *ms = palloc(Max(n, 1) * sizeof(int64));

				for (int i = 0; i < n; i++)
					ms[i] = topic->startup_timestamp;
				kafka_offsets_for_times(consumer, n, backfill->ranges, ms, start);
				break;
			}
		case STARTUP_SPECIFIC:	/* of a plain topic only */
			for (int i = 0; i < topic->nstartup_offsets; i++)
				if (topic->startup_offsets[i].partition < n)
					start[topic->startup_offsets[i].partition] = topic->startup_offsets[i].offset;
			break;
	}

	for (int i = 0; i < n; i++)
	{
		KafkaRange *range = &backfill->ranges[i];

		range->start = Min(Max(start[i], low[i]), end[i]);
		range->end = end[i];
		positions->positions[range->source].next_offset = range->start;
		if (low[i] > 0 && topic->upsert)
			ereport(NOTICE,
					(errmsg("topic \"%s\", partition %d starts at offset %lld", range->topic, range->partition,
							(long long) low[i]),
					 errdetail("Older messages were deleted or compacted before this first load.")));
	}
	backfill->positions = positions;
}

/* A set of columns as one byte for each. */
static Datum
unchanged_bytes(const Bitmapset *unchanged, int natts)
{
	bytea	   *bytes = palloc0(VARHDRSZ + natts);
	int			member = -1;

	SET_VARSIZE(bytes, VARHDRSZ + natts);
	while ((member = bms_next_member(unchanged, member)) >= 0)
		VARDATA(bytes)[member] = 1;
	return PointerGetDatum(bytes);
}

static void
put_change(Backfill *backfill, Tuplesortstate *sort, const Change *change, int64 order, TupleTableSlot *slot)
{
	const ApplyMap *map = backfill->source.map;
	int			natts = backfill->source.topic->natts;

	ExecClearTuple(slot);
	memcpy(slot->tts_values + SORT_NEXTRA, change->values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull + SORT_NEXTRA, change->isnull, natts * sizeof(bool));
	memset(slot->tts_isnull, false, SORT_NEXTRA * sizeof(bool));
	slot->tts_values[SORT_ORDER] = Int64GetDatum(order);
	slot->tts_values[SORT_OFFSET] = Int64GetDatum(change->offset);
	slot->tts_values[SORT_TIMESTAMP] = Int64GetDatum(change->timestamp);
	slot->tts_values[SORT_EVENT_TIME] = Int64GetDatum(change->event_time);
	slot->tts_values[SORT_SOURCE] = Int32GetDatum(change->source);
	slot->tts_values[SORT_KIND] = Int32GetDatum((change->kind == ROW_DELETE ? SORT_KIND_DELETE : 0) |
												(change->bare ? SORT_KIND_BARE : 0) |
												(change->moves ? SORT_KIND_MOVES : 0));
	slot->tts_isnull[SORT_UNCHANGED(natts)] = change->unchanged == NULL;
	if (change->unchanged)
		slot->tts_values[SORT_UNCHANGED(natts)] = unchanged_bytes(change->unchanged, natts);
	for (int k = 0; k < map->nkeys; k++)
	{
		slot->tts_isnull[SORT_OLD_KEY(natts) + k] = change->old_key == NULL;
		if (change->old_key)
			slot->tts_values[SORT_OLD_KEY(natts) + k] = change->old_key[map->keys[k] - 1];
	}
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort, slot);
	if (change->unchanged)
		pfree(DatumGetPointer(slot->tts_values[SORT_UNCHANGED(natts)]));
}

static void
take_batch(Backfill *backfill, ChangeBatch *batch, TupleTableSlot *slot)
{
	for (int i = 0; i < batch->nchanges; i++)
	{
		const Change *change = &batch->changes[i];

		if (backfill->applier)
		{
			applier_append(backfill->applier, change);
			continue;
		}
		if (change->kind == ROW_TRUNCATE)
		{
			note_truncation(backfill, change);
			continue;
		}
		put_change(backfill, backfill->sort, change, ((int64) change->source << SORT_ARRIVAL_BITS) + backfill->sorted++, slot);
	}
}

/* Offsets read and to be read stand for messages: gaps are few, and the end is exact. */
static void
report_progress(const Backfill *backfill)
{
	int64		done = 0;
	int64		total = 0;

	for (int i = 0; i < backfill->nranges; i++)
	{
		const KafkaRange *range = &backfill->ranges[i];

		done += Max(Min(range->position, range->end) - range->start, 0);
		total += Max(range->end - range->start, 0);
	}
	progress_backfill(backfill->source.table->target, done, total,
					  MemoryContextMemAllocated(CurrentMemoryContext, true));
}

/* Everything up to the ends, or up to a message that stops the table. */
static void
read_all(Backfill *backfill)
{
	MemoryContext step = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka backfill step", ALLOCSET_DEFAULT_SIZES);
	ChangeBatch *batch = change_batch_create(CurrentMemoryContext);
	KafkaRecord *records = palloc(BACKFILL_RECORDS * sizeof(KafkaRecord));
	TupleTableSlot *slot = MakeSingleTupleTableSlot(backfill->desc, &TTSOpsVirtual);
	bool		open = true;

	kafka_consume_start(backfill->source.consumer, backfill->ranges, backfill->nranges);
	while (open && !backfill->stopped)
	{
		int			n = kafka_consume(backfill->source.consumer, records, BACKFILL_RECORDS, 1000, false, NULL);

		if (n > 0)
		{
			MemoryContext old = MemoryContextSwitchTo(step);
			ChangeError *stop;
			int			done = feed_decode(&backfill->source, records, n, batch, &stop);

			take_batch(backfill, batch, slot);
			feed_advance(backfill->positions, records, done);
			if (stop)
			{
				feed_stop_at(&backfill->source, &records[stop->record], stop);
				backfill->stopped = true;
			}
			MemoryContextSwitchTo(old);
			MemoryContextReset(step);
			backfill->messages += done;
			report_progress(backfill);
		}
		give_way_to_ddl(backfill->source.table->target);
		open = false;
		for (int i = 0; i < backfill->nranges; i++)
			if (!backfill->ranges[i].done)
				open = true;
	}
	if (!backfill->stopped)
		for (int i = 0; i < backfill->nranges; i++)
		{
			Position   *position = &backfill->positions->positions[backfill->ranges[i].source];

			position->next_offset = Max(position->next_offset, backfill->ranges[i].position);
		}
	kafka_consume_stop(backfill->source.consumer);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(batch->context);
	MemoryContextDelete(step);
}

/* Sets of columns and old keys are in CurrentMemoryContext, all else in the slot. */
static void
read_change(TupleTableSlot *slot, const ApplyMap *map, Change *change)
{
	int			natts = map->topic->natts;
	int			kind;

	slot_getallattrs(slot);
	kind = DatumGetInt32(slot->tts_values[SORT_KIND]);
	memset(change, 0, sizeof(Change));
	change->record = -1;
	change->values = slot->tts_values + SORT_NEXTRA;
	change->isnull = slot->tts_isnull + SORT_NEXTRA;
	change->kind = kind & SORT_KIND_DELETE ? ROW_DELETE : ROW_UPSERT;
	change->bare = (kind & SORT_KIND_BARE) != 0;
	change->moves = (kind & SORT_KIND_MOVES) != 0;
	if (!slot->tts_isnull[SORT_UNCHANGED(natts)])
	{
		bytea	   *bytes = DatumGetByteaPP(slot->tts_values[SORT_UNCHANGED(natts)]);
		Bitmapset  *unchanged = NULL;

		for (int i = 0; i < natts; i++)
			if (VARDATA_ANY(bytes)[i])
				unchanged = bms_add_member(unchanged, i);
		change->unchanged = unchanged;
	}
	if (map->nkeys > 0 && !slot->tts_isnull[SORT_OLD_KEY(natts)])
	{
		Datum	   *old_key = palloc0(natts * sizeof(Datum));

		for (int k = 0; k < map->nkeys; k++)
			old_key[map->keys[k] - 1] = slot->tts_values[SORT_OLD_KEY(natts) + k];
		change->old_key = old_key;
	}
	change->source = DatumGetInt32(slot->tts_values[SORT_SOURCE]);
	change->offset = DatumGetInt64(slot->tts_values[SORT_OFFSET]);
	change->timestamp = DatumGetInt64(slot->tts_values[SORT_TIMESTAMP]);
	change->event_time = DatumGetInt64(slot->tts_values[SORT_EVENT_TIME]);
}

/* Slots that changes of the key at hand live in; reused from key to key. */
typedef struct SlotPool
{
	TupleDesc	desc;
	List	   *unused;
	List	   *kept;			/* last changes of the key's earlier sources, that apply has */
} SlotPool;

static TupleTableSlot *
take_slot(SlotPool *pool)
{
	TupleTableSlot *slot;

	if (pool->unused == NIL)
		return MakeSingleTupleTableSlot(pool->desc, &TTSOpsMinimalTuple);
	slot = llast(pool->unused);
	pool->unused = list_delete_last(pool->unused);
	return slot;
}

/* The sorted changes, on their way to apply; a change stays while its key is at hand. */
typedef struct Loading
{
	Backfill   *backfill;
	Applier    *applier;
	SlotPool	pool;
	Change		last;			/* of the key at hand */
	int64		last_order;
	TupleTableSlot *last_slot;	/* NULL: no key is at hand */
	bool		aside;			/* from the last change on, the key's are put aside */
	bool		begun;			/* apply has some of the key's */

	/* of the delete that a truncation means */
	Datum	   *values;
	bool	   *isnull;
	TupleTableSlot *slot;
} Loading;

static void
load_change(Loading *loading, const Change *change, int64 order)
{
	Backfill   *backfill = loading->backfill;

	if (loading->aside)
	{
		if (backfill->aside == NULL)
			backfill->aside = begin_sort(backfill->source.map, backfill->desc, false);
		put_change(backfill, backfill->aside, change, order, loading->slot);
		return;
	}
	if (!loading->begun)
		applier_key_begin(loading->applier, change);
	loading->begun = true;
	applier_change(loading->applier, change);
}

/*
 * A row that is there at a truncation goes: nothing of the key at hand comes between
 * its last change and 'order'.
 */
static void
truncate_key(Loading *loading, int64 order)
{
	const Backfill *backfill = loading->backfill;
	Change		change;
	int			low = 0;
	int			high = backfill->ntruncations;

	if (high == 0 || loading->last.kind == ROW_DELETE)
		return;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (backfill->truncations[middle].order > loading->last_order)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == backfill->ntruncations || backfill->truncations[low].order > order)
		return;
	apply_truncate_change(backfill->source.map, &backfill->truncations[low].change, &loading->last, &change,
						  loading->values, loading->isnull);
	load_change(loading, &change, backfill->truncations[low].order);
	loading->last = change;
}

/* A source's last message of the key at hand clears the key's errors before it (case X12). */
static void
supersede_errors(const Backfill *backfill, const Change *last)
{
	char	   *key;

	if (backfill->sweep == NULL)
		return;
	key = apply_key_text(backfill->source.map, last->values, last->isnull);
	message_errors_sweep_key(backfill->sweep, key, last->source, last->offset);
	pfree(key);
}

static void
load_key_end(Loading *loading)
{
	SlotPool   *pool = &loading->pool;

	truncate_key(loading, PG_INT64_MAX);
	supersede_errors(loading->backfill, &loading->last);
	if (loading->begun)
		applier_key_end(loading->applier);
	pool->unused = lappend(list_concat(pool->unused, pool->kept), loading->last_slot);
	list_free(pool->kept);
	pool->kept = NIL;
	loading->last_slot = NULL;
	loading->aside = loading->begun = false;
}

/*
 * Does it need another key's row as it was then, or is it wanted so by another one, and
 * not to be found among versions?
 */
static bool
is_put_aside(const Backfill *backfill, const Change *change)
{
	return change->old_key != NULL || (change->moves && OidIsValid(backfill->source.table->origins));
}

/* Another change of the key at hand: what of the last one? */
static void
load_key_on(Loading *loading, const Change *change, int64 order)
{
	SlotPool   *pool = &loading->pool;
	bool		was_aside = loading->aside;

	truncate_key(loading, order);
	if (change->source != loading->last.source)
		supersede_errors(loading->backfill, &loading->last);
	loading->aside = was_aside || is_put_aside(loading->backfill, change);

	/* apply has it until the key ends, or until it is given the next one of the source */
	if (change->source == loading->last.source && loading->aside == was_aside)
		pool->unused = lappend(pool->unused, loading->last_slot);
	else
		pool->kept = lappend(pool->kept, loading->last_slot);
}

static void
load_sorted(Backfill *backfill)
{
	const ApplyMap *map = backfill->source.map;
	int			natts = Max(map->topic->natts, 1);
	Loading		loading = {.backfill = backfill, .pool = {backfill->desc, NIL, NIL}};
	TupleTableSlot *slot;

	loading.values = palloc0(natts * sizeof(Datum));
	loading.isnull = palloc(natts * sizeof(bool));
	loading.slot = MakeSingleTupleTableSlot(backfill->desc, &TTSOpsVirtual);
	loading.applier = applier_begin(backfill->source.table, map, &backfill->positions->next_seq, true);
	backfill->sweep = message_errors_sweep_begin(backfill->source.table->target);
	tuplesort_performsort(backfill->sort);
	while (tuplesort_gettupleslot(backfill->sort, true, true, (slot = take_slot(&loading.pool)), NULL))
	{
		Change		change;
		int64		order;

		CHECK_FOR_INTERRUPTS();
		read_change(slot, map, &change);
		order = DatumGetInt64(slot->tts_values[SORT_ORDER]);
		if (loading.last_slot && !apply_same_key(map, &loading.last, &change))
		{
			load_key_end(&loading);
			give_way_to_ddl(backfill->source.table->target);
		}
		if (loading.last_slot)
			load_key_on(&loading, &change, order);
		else
			loading.aside = is_put_aside(backfill, &change);
		load_change(&loading, &change, order);
		bms_free(unconstify(Bitmapset *, change.unchanged));
		if (change.old_key)
			pfree(unconstify(Datum *, change.old_key));
		change.unchanged = NULL;
		change.old_key = NULL;
		loading.last = change;
		loading.last_order = order;
		loading.last_slot = slot;
	}
	if (loading.last_slot)
		load_key_end(&loading);
	applier_end(loading.applier);
	if (backfill->sweep)
		message_errors_sweep_end(backfill->sweep);
}

/* In the order of the log, as a feed would. */
static void
load_aside(Backfill *backfill)
{
	MemoryContext step = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka backfill step", ALLOCSET_DEFAULT_SIZES);
	TupleTableSlot **slots = palloc0(ASIDE_CHANGES * sizeof(TupleTableSlot *));
	Change	   *changes = palloc(ASIDE_CHANGES * sizeof(Change));
	Applier    *applier;
	bool		more = true;

	PushActiveSnapshot(GetLatestSnapshot());
	applier = applier_begin(backfill->source.table, backfill->source.map, &backfill->positions->next_seq, false);
	tuplesort_performsort(backfill->aside);
	while (more)
	{
		MemoryContext old = CurrentMemoryContext;
		Size		bytes = 0;
		int			n = 0;

		while (n < ASIDE_CHANGES && bytes < ASIDE_BYTES)
		{
			if (slots[n] == NULL)
				slots[n] = MakeSingleTupleTableSlot(backfill->desc, &TTSOpsMinimalTuple);

			/* a copy, which is the slot's to free: not in a context that is reset before */
			more = tuplesort_gettupleslot(backfill->aside, true, true, slots[n], NULL);
			if (!more)
				break;
			bytes += ExecFetchSlotMinimalTuple(slots[n], NULL)->t_len;
			MemoryContextSwitchTo(step);
			read_change(slots[n], backfill->source.map, &changes[n]);
			MemoryContextSwitchTo(old);
			n++;
		}
		MemoryContextSwitchTo(step);
		applier_batch(applier, changes, n);
		applier_flush(applier);
		give_way_to_ddl(backfill->source.table->target);
		MemoryContextSwitchTo(old);
		MemoryContextReset(step);
	}
	applier_end(applier);
	PopActiveSnapshot();
}

/* False when there is nothing to load, or not any more. */
static bool
define(Backfill *backfill, Oid target)
{
	backfill->source.table = maintained_table_get(target);
	if (backfill->source.table == NULL || backfill->source.table->foreign_copy ||
		backfill->source.table->state != TABLE_BACKFILL)
		return false;
	feed_source_define(&backfill->source);
	return true;
}

/* The tables are locked, the topic's ends are known: read, sort and write. */
static void
load(Backfill *backfill)
{
	apply_map_positions(backfill->source.map, backfill->positions);
	backfill->desc = sort_desc(backfill->source.map);
	if (backfill->source.table->append)
		backfill->applier = applier_begin(backfill->source.table, backfill->source.map,
										  &backfill->positions->next_seq, true);
	else
		backfill->sort = begin_sort(backfill->source.map, backfill->desc, true);
	read_all(backfill);
	kafka_consumer_release(backfill->source.consumer);
	if (backfill->applier)
		applier_end(backfill->applier);
	else
	{
		load_sorted(backfill);
		tuplesort_end(backfill->sort);
		if (backfill->aside)
		{
			load_aside(backfill);
			tuplesort_end(backfill->aside);
		}
	}
}

int64
backfill_run(Oid target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka backfill", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Backfill	backfill;
	OwnerScope	scope;
	bool		loaded = false;

	/* a worker locks the tables only after Kafka has answered, see below */
	if (MyBackendType == B_BG_WORKER)
		(void) maintained_table_lock(target, false);
	else
		maintained_table_lock_to_apply(target);
	PushActiveSnapshot(GetLatestSnapshot());
	old = MemoryContextSwitchTo(context);
	memset(&backfill, 0, sizeof(backfill));
	if (define(&backfill, target))
	{
		owner_enter(&scope, backfill.source.table->owner);
		feed_source_connect(&backfill.source, context);
		plan_ranges(&backfill);

		/*
		 * Locked only now that Kafka has answered, so that DDL need not wait for
		 * that; hence the table may have been altered, or dropped.
		 */
		lock_table_to_load(target);
		loaded = define(&backfill, target);
		if (loaded)
			load(&backfill);
		owner_leave(&scope);
	}
	if (loaded)
	{
		positions_set(target, backfill.positions);
		if (!backfill.stopped)
			table_state_set(target, TABLE_LIVE, 0, NULL, -1, -1);
		CommandCounterIncrement();
	}
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return backfill.messages;
}

void
backfill_leave_to_feed(Oid target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka backfill", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Backfill	backfill;

	(void) maintained_table_lock(target, false);
	PushActiveSnapshot(GetLatestSnapshot());
	old = MemoryContextSwitchTo(context);
	memset(&backfill, 0, sizeof(backfill));
	backfill.source.table = maintained_table_get(target);
	if (backfill.source.table != NULL && !backfill.source.table->foreign_copy &&
		backfill.source.table->state == TABLE_BACKFILL)
	{
		feed_source_define(&backfill.source);
		feed_source_connect(&backfill.source, context);
		plan_ranges(&backfill);
		positions_set(target, backfill.positions);
		table_state_set(target, TABLE_LIVE, 0, NULL, -1, -1);
	}
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

int64
refresh_run(Oid target)
{
	MaintainedTable *table;
	int64		messages;

	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("maintained table \"%s\" cannot be refreshed in this transaction", get_rel_name(target)),
				 errdetail("Its isolation level is REPEATABLE READ or higher: it would not see what others have applied."),
				 errhint("Call refresh() in a READ COMMITTED transaction.")));

	maintained_table_lock_to_apply(target);
	PushActiveSnapshot(GetLatestSnapshot());
	table = maintained_table_require(target);
	PopActiveSnapshot();
	if (table->foreign_copy || (table->state != TABLE_BACKFILL && table->state != TABLE_LIVE))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("maintained table \"%s\" is in state \"%s\"", get_rel_name(target),
						table_state_name(table->foreign_copy ? TABLE_RESTORED : table->state)),
				 errhint("See the view upsert_kafka.tables; upsert_kafka.resume() lets it go on.")));

	if (table->state == TABLE_BACKFILL)
		messages = backfill_run(target);
	else
	{
		PushActiveSnapshot(GetLatestSnapshot());
		messages = feed_run_to_end(target);
		PopActiveSnapshot();
	}

	PushActiveSnapshot(GetLatestSnapshot());
	table = maintained_table_get(target);
	PopActiveSnapshot();
	if (table && table->state != TABLE_LIVE)
		ereport(WARNING,
				(errmsg("maintained table \"%s\" is now in state \"%s\"", get_rel_name(target), table_state_name(table->state)),
				 errhint("See the views upsert_kafka.tables and upsert_kafka.errors.")));
	return messages;
}
