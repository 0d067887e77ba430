/*
 * reduce.c
 *	  The last message of each key, before any row is built: a hash table of raw
 *	  records by typed key, dumped into an external sort whenever it is full.
 *	  Knows keys and records; values are decoded by the caller, winners only.
 */
#include "postgres.h"

#include "changelog/record_sort.h"
#include "changelog/reduce.h"
#include "common/hashfn.h"
#include "compat.h"
#include "fdw/pending.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Bytes of winners handed out at once */
#define OUTPUT_BYTES	(1024 * 1024)

/* The last record of one key in one source. */
typedef struct KeptRecord
{
	struct KeptRecord *next;	/* same key, another source */
	int32		source;
	bool		tombstone;
	int64		offset;
	int64		timestamp;
	Size		capacity;		/* of what follows: a StoredRecord */
} KeptRecord;

#define KEPT_STORED(kept) ((StoredRecord *) ((char *) (kept) + MAXALIGN(sizeof(KeptRecord))))

/* One key.  'key' is the value itself, or a pointer to nkeys Datums. */
typedef struct KeptKey
{
	Datum		key;
	KeptRecord *first;
	uint32		hash;
	char		status;
} KeptKey;

static bool kept_equal(Reducer *reducer, Datum a, Datum b);

#define SH_PREFIX kepttable
#define SH_ELEMENT_TYPE KeptKey
#define SH_KEY_TYPE Datum
#define SH_KEY key
#define SH_HASH_KEY(tb, key) ((uint32) (key))	/* not used: keys come with their hash */
#define SH_EQUAL(tb, a, b) kept_equal((Reducer *) (tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a) (a)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct Reducer
{
	const TopicTable *table;
	ChangeDecoder *decoder;
	KeyFilter  *filter;
	bool		headers;
	bool		rewindable;
	bool		single;			/* one key column, passed by value */
	bool		one_source;	/* see reducer_set_single() */
	MemoryContext cxt;
	MemoryContext table_cxt;	/* the hash table and its records */
	MemoryContext output;		/* winners of the last reducer_next() */
	RecordSortLayout *layout;
	Size		limit;			/* bytes table_cxt may take */
	struct kepttable_hash *kept;
	RecordSort *sort;			/* NULL: never full */
	bool		done;

	/* adding */
	ChangeBatch *batch;
	Datum	   *key;			/* key columns of the change at hand */
	StoredRecord *buffer;		/* for records that go straight to the sort */
	Size		buffer_size;

	/* output */
	kepttable_iterator iter;
	TupleTableSlot *previous;
	TupleTableSlot *current;
	bool		have_previous;
	ReducerStats stats;
};

static bool
kept_equal(Reducer *reducer, Datum a, Datum b)
{
	const Datum *left = &a;
	const Datum *right = &b;

	if (reducer->single)
	{
		if (a == b)
			return true;
	}
	else
	{
		left = (const Datum *) DatumGetPointer(a);
		right = (const Datum *) DatumGetPointer(b);
	}
	return key_compare(reducer->layout->keys, left, right) == 0;
}

static void
kept_table_create(Reducer *reducer, uint32 size)
{
	reducer->kept = kepttable_create(reducer->table_cxt, size, reducer);
}

Reducer *
reducer_create(const TopicTable *table, ChangeDecoder *decoder, KeyFilter *filter,
			   bool headers, bool rewindable)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "last message per key",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Reducer    *reducer = palloc0(sizeof(Reducer));
	Size		max_block;

	reducer->table = table;
	reducer->decoder = decoder;
	reducer->filter = filter;
	reducer->headers = headers;
	reducer->rewindable = rewindable;
	reducer->cxt = cxt;
	reducer->layout = record_sort_layout(table, false);
	reducer->single = table->nkeys == 1 && reducer->layout->keys->columns[0].typbyval;
	reducer->limit = get_hash_memory_limit();

	/* blocks small enough that one more of them does not overshoot the limit by much */
	max_block = ALLOCSET_DEFAULT_MAXSIZE;
	while (max_block > ALLOCSET_DEFAULT_INITSIZE && max_block * 16 > reducer->limit)
		max_block >>= 1;
	reducer->table_cxt = AllocSetContextCreate(cxt, "keys", ALLOCSET_DEFAULT_MINSIZE,
											   ALLOCSET_DEFAULT_INITSIZE, max_block);
	reducer->output = AllocSetContextCreate(cxt, "winners", ALLOCSET_DEFAULT_SIZES);

	reducer->key = palloc(sizeof(Datum) * table->nkeys);
	reducer->batch = change_batch_create(cxt);
	if (reducer->layout->keys->hashable)
		kept_table_create(reducer, 1024);
	else
		reducer->sort = record_sort_begin(reducer->layout, work_mem, rewindable);
	MemoryContextSwitchTo(old);
	return reducer;
}

/* The key columns as an own copy in table_cxt. */
static Datum
kept_key_copy(Reducer *reducer)
{
	int			n = reducer->layout->nkeys;
	MemoryContext old;
	Datum	   *copy;

	if (reducer->single)
		return reducer->key[0];
	old = MemoryContextSwitchTo(reducer->table_cxt);
	copy = palloc(sizeof(Datum) * n);
	for (int i = 0; i < n; i++)
	{
		const KeyColumn *column = &reducer->layout->keys->columns[i];

		copy[i] = datumCopy(reducer->key[i], column->typbyval, column->typlen);
	}
	MemoryContextSwitchTo(old);
	return PointerGetDatum(copy);
}

static const Datum *
kept_key(const Reducer *reducer, const KeptKey *kept)
{
	return reducer->single ? &kept->key : (const Datum *) DatumGetPointer(kept->key);
}

/* Everything in the hash table goes to the sort; the table is empty then. */
static void
kept_table_dump(Reducer *reducer, bool again)
{
	kepttable_iterator iter;
	KeptKey    *kept;
	uint32		members = reducer->kept->members;

	if (reducer->sort == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(reducer->cxt);

		reducer->sort = record_sort_begin(reducer->layout, work_mem, reducer->rewindable);
		MemoryContextSwitchTo(old);
	}
	kepttable_start_iterate(reducer->kept, &iter);
	while ((kept = kepttable_iterate(reducer->kept, &iter)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (KeptRecord *record = kept->first; record; record = record->next)
		{
			record_sort_put(reducer->sort, kept_key(reducer, kept), record->source,
							record->offset, KEPT_STORED(record));
			reducer->stats.spilled++;
		}
	}
	reducer->kept = NULL;
	MemoryContextReset(reducer->table_cxt);
	if (again)
		kept_table_create(reducer, Max(members / 2, 1024));
}

static void
keep_in_table(Reducer *reducer, const KafkaRecord *record, bool tombstone, const StoredSize *size)
{
	uint32		hash = key_hash(reducer->layout->keys, reducer->key);
	Datum		lookup = reducer->single ? reducer->key[0] : PointerGetDatum(reducer->key);
	bool		found;
	KeptKey    *kept = kepttable_insert_hash(reducer->kept, lookup, hash, &found);
	KeptRecord **link;
	KeptRecord *last;

	if (!found)
	{
		kept->first = NULL;
		kept->key = kept_key_copy(reducer);
	}
	for (link = &kept->first; *link != NULL; link = &(*link)->next)
		if ((*link)->source == record->source)
			break;
	last = *link;
	if (last == NULL || last->capacity < size->total)
	{
		KeptRecord *next = last ? last->next : NULL;

		if (last)
			pfree(last);
		/* so that an ERROR below leaves no pointer to it */
		*link = next;
		last = MemoryContextAlloc(reducer->table_cxt, MAXALIGN(sizeof(KeptRecord)) + size->total);
		last->capacity = size->total;
		last->next = next;
		*link = last;
	}
	last->source = record->source;
	last->offset = record->offset;
	last->timestamp = record->timestamp;
	last->tombstone = tombstone;
	stored_record_fill(KEPT_STORED(last), record, size);
}

static void
keep(Reducer *reducer, const KafkaRecord *record, const Change *change)
{
	StoredSize	size;

	for (int i = 0; i < reducer->table->nkeys; i++)
		reducer->key[i] = change->values[reducer->table->keys[i] - 1];
	if (!key_filter_passes(reducer->filter, reducer->key))
		return;
	stored_record_size(record, reducer->headers, &size);
	if (reducer->kept != NULL)
	{
		keep_in_table(reducer, record, change->kind == ROW_DELETE, &size);
		if (MemoryContextMemAllocated(reducer->table_cxt, false) > reducer->limit)
			kept_table_dump(reducer, true);
		return;
	}
	if (reducer->buffer_size < size.total)
	{
		if (reducer->buffer)
			pfree(reducer->buffer);
		reducer->buffer = NULL;
		reducer->buffer_size = 0;
		reducer->buffer = MemoryContextAlloc(reducer->cxt, size.total);
		reducer->buffer_size = size.total;
	}
	stored_record_fill(reducer->buffer, record, &size);
	record_sort_put(reducer->sort, reducer->key, record->source, record->offset, reducer->buffer);
	reducer->stats.spilled++;
}

void
reducer_set_single(Reducer *reducer, bool single)
{
	reducer->one_source = single;
}

/* Nothing that came so far counts any more. */
static void
forget_all(Reducer *reducer, const KafkaRecord *record)
{
	ChangeError error;

	if (!reducer->one_source)
	{
		change_error_truncate(&error);
		if (reducer->table->on_error != ON_ERROR_SKIP)
			change_error_raise(reducer->table, record, &error);
		if (reducer->stats.first_skipped == NULL)
			reducer->stats.first_skipped = MemoryContextStrdup(reducer->cxt, change_error_text(reducer->table, record, &error));
		reducer->stats.skipped++;
		return;
	}
	if (reducer->sort != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(reducer->cxt);

		record_sort_end(reducer->sort);
		reducer->sort = NULL;
		if (!reducer->layout->keys->hashable)
			reducer->sort = record_sort_begin(reducer->layout, work_mem, reducer->rewindable);
		MemoryContextSwitchTo(old);
	}
	if (reducer->layout->keys->hashable)
	{
		reducer->kept = NULL;
		MemoryContextReset(reducer->table_cxt);
		kept_table_create(reducer, 1024);
	}
}

void
reducer_add(Reducer *reducer, const KafkaRecord *records, int n)
{
	ChangeBatch *batch = reducer->batch;
	MemoryContext old = MemoryContextSwitchTo(batch->context);

	change_decode(reducer->decoder, records, n, batch,
				  reducer->table->on_error == ON_ERROR_SKIP ? DECODE_SKIP : DECODE_RAISE);
	if (batch->nerrors > 0 && reducer->stats.first_skipped == NULL)
	{
		const ChangeError *error = &batch->errors[0];
		char	   *text = change_error_text(reducer->table, &records[error->record], error);

		reducer->stats.first_skipped = MemoryContextStrdup(reducer->cxt, text);
	}
	reducer->stats.skipped += batch->nerrors;
	for (int i = 0; i < batch->nchanges; i++)
		if (unlikely(batch->changes[i].kind == ROW_TRUNCATE))
			forget_all(reducer, &records[batch->changes[i].record]);
		else
			keep(reducer, &records[batch->changes[i].record], &batch->changes[i]);
	MemoryContextSwitchTo(old);
	change_batch_reset(batch);
}

static void
output_start(Reducer *reducer)
{
	reducer->done = false;
	reducer->have_previous = false;
	if (reducer->kept != NULL)
		kepttable_start_iterate(reducer->kept, &reducer->iter);
}

void
reducer_finish(Reducer *reducer)
{
	if (reducer->sort != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(reducer->cxt);

		if (reducer->kept != NULL)
			kept_table_dump(reducer, false);
		record_sort_perform(reducer->sort);
		reducer->stats.disk_kb = tuplesort_disk_kb(reducer->sort->state);
		reducer->previous = record_sort_make_slot(reducer->layout);
		reducer->current = record_sort_make_slot(reducer->layout);
		MemoryContextSwitchTo(old);
	}
	output_start(reducer);
}

/* The one comparator of decision 5; own writes that are not sent yet are the last word. */
static inline bool
later(int64 timestamp_a, int32 source_a, int64 timestamp_b, int32 source_b)
{
	if ((source_a == PENDING_SOURCE) != (source_b == PENDING_SOURCE))
		return source_a == PENDING_SOURCE;
	if (timestamp_a != timestamp_b)
		return timestamp_a > timestamp_b;
	return source_a > source_b;
}

static int
next_from_table(Reducer *reducer, KafkaRecord *records, int max)
{
	Size		bytes = 0;
	int			n = 0;

	while (n < max && bytes < OUTPUT_BYTES)
	{
		KeptKey    *kept = kepttable_iterate(reducer->kept, &reducer->iter);
		KeptRecord *winner;

		if (kept == NULL)
		{
			reducer->done = true;
			break;
		}
		winner = kept->first;
		for (KeptRecord *record = winner->next; record; record = record->next)
			if (later(record->timestamp, record->source, winner->timestamp, winner->source))
				winner = record;
		if (winner->tombstone)
			continue;
		stored_record_get(KEPT_STORED(winner), &records[n++]);
		bytes += VARSIZE(KEPT_STORED(winner));
	}
	return n;
}

static bool
same_key(const Reducer *reducer, const TupleTableSlot *a, const TupleTableSlot *b)
{
	return key_compare(reducer->layout->keys, a->tts_values, b->tts_values) == 0;
}

/*
 * The sorted stream: a record is its source's last for the key when the next
 * one has another source or key.
 */
static int
next_from_sort(Reducer *reducer, KafkaRecord *records, int max)
{
	int			source_column = RECORD_SORT_SOURCE(reducer->layout);
	int			record_column = RECORD_SORT_RECORD(reducer->layout);
	Size		bytes = 0;
	int			n = 0;
	bool		have_winner = false;
	KafkaRecord winner;
	Size		winner_size = 0;

	/* the last group of a call is complete: its next key is in 'previous' */
	while (n < max && bytes < OUTPUT_BYTES && !reducer->done)
	{
		TupleTableSlot *previous = reducer->previous;
		TupleTableSlot *current = reducer->current;
		bool		more = record_sort_next(reducer->sort, current);
		bool		key_ends = reducer->have_previous && (!more || !same_key(reducer, previous, current));

		CHECK_FOR_INTERRUPTS();
		if (reducer->have_previous &&
			(key_ends ||
			 DatumGetInt32(previous->tts_values[source_column]) !=
			 DatumGetInt32(current->tts_values[source_column])))
		{
			const StoredRecord *stored = (const StoredRecord *)
				DatumGetPointer(previous->tts_values[record_column]);
			KafkaRecord candidate;

			stored_record_get(stored, &candidate);
			if (!have_winner ||
				later(candidate.timestamp, candidate.source, winner.timestamp, winner.source))
			{
				StoredRecord *copy = palloc(VARSIZE_ANY(stored));

				memcpy(copy, stored, VARSIZE_ANY(stored));
				stored_record_get(copy, &winner);
				winner_size = VARSIZE_ANY(stored);
				have_winner = true;
			}
		}
		if (key_ends)
		{
			if (winner.value != NULL)
				records[n++] = winner;
			bytes += winner_size;	/* of deletes too: their copies are held as long */
			have_winner = false;
		}
		reducer->previous = current;
		reducer->current = previous;
		reducer->have_previous = more;
		reducer->done = !more;
	}
	return n;
}

int
reducer_next(Reducer *reducer, KafkaRecord *records, int max)
{
	MemoryContext old;
	int			n = 0;

	old = MemoryContextSwitchTo(reducer->output);
	while (n == 0 && !reducer->done)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(reducer->output);
		n = reducer->sort ? next_from_sort(reducer, records, max)
			: next_from_table(reducer, records, max);
	}
	MemoryContextSwitchTo(old);
	return n;
}

bool
reducer_can_rewind(const Reducer *reducer)
{
	return reducer->sort == NULL || reducer->rewindable;
}

void
reducer_rewind(Reducer *reducer)
{
	if (reducer->sort != NULL)
		tuplesort_rescan(reducer->sort->state);
	output_start(reducer);
}

void
reducer_end(Reducer *reducer)
{
	if (reducer->sort != NULL)
		tuplesort_end(reducer->sort->state);
	MemoryContextDelete(reducer->cxt);
}

const ReducerStats *
reducer_stats(Reducer *reducer)
{
	return &reducer->stats;
}
