/*
 * normalize.c
 *	  Changelog rows of an upsert topic in bounded memory: one sort brings the
 *	  messages of a key together, a second one puts the changes back into log order.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "changelog/normalize.h"
#include "changelog/record_sort.h"
#include "compat.h"
#include "fdw/pending.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#define DECODE_MESSAGES	1000
#define DECODE_BYTES	(1024 * 1024)

/* The last message of the current key in one source. */
typedef struct Origin
{
	int32		source;
	int64		timestamp;
	MinimalTuple row;			/* NULL: a delete */
} Origin;

struct Normalizer
{
	const TopicTable *table;
	ChangeDecoder *key_decoder;
	ChangeDecoder *decoder;
	KeyFilter  *filter;
	const Bitmapset *wanted;
	bool		headers;
	bool		rewindable;
	MemoryContext cxt;
	MemoryContext scratch;
	ChangeBatch *batch;

	/* messages by (key, time, source, offset) */
	RecordSortLayout *layout;
	RecordSort *messages;
	TupleTableSlot *message_slot;
	int			nsources;
	int64	   *times;			/* per source: greatest timestamp so far */
	Datum	   *key;			/* key columns and time of the message at hand */
	StoredRecord *buffer;
	Size		buffer_size;

	/* the current key */
	KeyDesc    *row_keys;
	MemoryContext group_cxt;
	bool		have_key;
	Datum	   *group_key;		/* natts wide, key columns set */
	int			norigins;
	int			max_origins;
	Origin	   *origins;

	/* changes by (time, source, offset, sequence) */
	TupleDesc	desc;			/* of a row */
	TupleDesc	out_desc;
	Tuplesortstate *changes;
	TupleTableSlot *out_slot;
	TupleTableSlot *next_slot;
	Datum	   *old_values;
	bool	   *old_isnull;
	Datum	   *new_values;
	bool	   *new_isnull;
	NormalizerStats stats;
};

Normalizer *
normalizer_create(const TopicTable *table, TupleDesc desc,
				  ChangeDecoder *key_decoder, ChangeDecoder *decoder,
				  KeyFilter *filter, const Bitmapset *wanted, bool headers, bool rewindable)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "changelog", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Normalizer *normalizer = palloc0(sizeof(Normalizer));
	int			natts = table->natts;

	normalizer->table = table;
	normalizer->key_decoder = key_decoder;
	normalizer->decoder = decoder;
	normalizer->filter = filter;
	normalizer->wanted = wanted;
	normalizer->headers = headers;
	normalizer->rewindable = rewindable;
	normalizer->cxt = cxt;
	normalizer->scratch = AllocSetContextCreate(cxt, "messages in hand", ALLOCSET_DEFAULT_SIZES);
	normalizer->group_cxt = AllocSetContextCreate(cxt, "one key", ALLOCSET_DEFAULT_SIZES);
	normalizer->batch = change_batch_create(cxt);

	normalizer->layout = record_sort_layout(table, true);
	normalizer->messages = record_sort_begin(normalizer->layout, work_mem, false);
	normalizer->message_slot = record_sort_make_slot(normalizer->layout);
	normalizer->key = palloc(sizeof(Datum) * (table->nkeys + 1));
	normalizer->old_values = palloc(sizeof(Datum) * natts);
	normalizer->old_isnull = palloc(sizeof(bool) * natts);
	normalizer->new_values = palloc(sizeof(Datum) * natts);
	normalizer->new_isnull = palloc(sizeof(bool) * natts);
	normalizer->group_key = palloc0(sizeof(Datum) * natts);

	normalizer->desc = CreateTupleDescCopy(desc);
	normalizer->row_keys = key_desc_create(normalizer->desc, table->nkeys, table->keys);
	normalizer->out_desc = CreateTemplateTupleDesc(natts + 4);
	for (int i = 1; i <= natts; i++)
		TupleDescCopyEntry(normalizer->out_desc, i, normalizer->desc, i);
	TupleDescInitEntry(normalizer->out_desc, natts + 1, "time", INT8OID, -1, 0);
	TupleDescInitEntry(normalizer->out_desc, natts + 2, "source", INT4OID, -1, 0);
	TupleDescInitEntry(normalizer->out_desc, natts + 3, "offset", INT8OID, -1, 0);
	TupleDescInitEntry(normalizer->out_desc, natts + 4, "sequence", INT4OID, -1, 0);
	normalizer->out_slot = MakeSingleTupleTableSlot(normalizer->out_desc, &TTSOpsVirtual);
	normalizer->next_slot = MakeSingleTupleTableSlot(normalizer->out_desc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
	return normalizer;
}

/*
 * When a message takes effect.  "The source whose next message has the smallest
 * (timestamp, source) goes first" is the same as sorting by the greatest timestamp so
 * far of each source: this keeps every partition's own order.
 */
static int64
effect_time(Normalizer *normalizer, const KafkaRecord *record)
{
	int64	   *time;

	if (record_is_pending(record))
		return PG_INT64_MAX;
	if (record->source >= normalizer->nsources)
	{
		int			n = Max(record->source + 1, normalizer->nsources * 2);
		Size		size = sizeof(int64) * n;

		normalizer->times = normalizer->times ? repalloc(normalizer->times, size)
			: MemoryContextAlloc(normalizer->cxt, size);
		for (int i = normalizer->nsources; i < n; i++)
			normalizer->times[i] = PG_INT64_MIN;
		normalizer->nsources = n;
	}
	time = &normalizer->times[record->source];
	*time = Max(*time, record->timestamp);
	return *time;
}

static void
add_message(Normalizer *normalizer, const KafkaRecord *record, const Datum *values, int64 time)
{
	int			nkeys = normalizer->table->nkeys;
	StoredSize	size;

	for (int i = 0; i < nkeys; i++)
		normalizer->key[i] = values[normalizer->table->keys[i] - 1];
	if (!key_filter_passes(normalizer->filter, normalizer->key))
		return;
	normalizer->key[nkeys] = Int64GetDatum(time);
	stored_record_size(record, normalizer->headers, &size);
	if (normalizer->buffer_size < size.total)
	{
		if (normalizer->buffer)
			pfree(normalizer->buffer);
		normalizer->buffer = NULL;
		normalizer->buffer_size = 0;
		normalizer->buffer = MemoryContextAlloc(normalizer->cxt, size.total);
		normalizer->buffer_size = size.total;
	}
	stored_record_fill(normalizer->buffer, record, &size);
	record_sort_put(normalizer->messages, normalizer->key, record->source, record->offset,
					normalizer->buffer);
}

static void
note_skipped(Normalizer *normalizer, const KafkaRecord *records)
{
	ChangeBatch *batch = normalizer->batch;

	if (batch->nerrors > 0 && normalizer->stats.first_skipped == NULL)
	{
		const ChangeError *error = &batch->errors[0];
		char	   *text = change_error_text(normalizer->table, &records[error->record], error);

		normalizer->stats.first_skipped = MemoryContextStrdup(normalizer->cxt, text);
	}
	normalizer->stats.skipped += batch->nerrors;
}

void
normalizer_add(Normalizer *normalizer, const KafkaRecord *records, int n)
{
	ChangeBatch *batch = normalizer->batch;
	MemoryContext old = MemoryContextSwitchTo(batch->context);

	change_decode(normalizer->key_decoder, records, n, batch,
				  normalizer->table->on_error == ON_ERROR_SKIP ? DECODE_SKIP : DECODE_RAISE);
	note_skipped(normalizer, records);
	for (int i = 0; i < batch->nchanges; i++)
	{
		const Change *change = &batch->changes[i];
		const KafkaRecord *record = &records[change->record];

		add_message(normalizer, record, change->values, effect_time(normalizer, record));
	}
	MemoryContextSwitchTo(old);
	change_batch_reset(batch);
}

static void
emit(Normalizer *normalizer, RowKind kind, const Datum *values, const bool *isnull,
	 const Change *cause, int64 time, int sequence)
{
	TupleTableSlot *slot = normalizer->out_slot;
	const TopicTable *table = normalizer->table;
	int			natts = table->natts;

	ExecClearTuple(slot);
	for (int i = 0; i < natts; i++)
	{
		bool		wanted = normalizer->wanted == NULL ||
			bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, normalizer->wanted);

		slot->tts_values[i] = values[i];
		slot->tts_isnull[i] = isnull[i] || !wanted;
		if (wanted && table->columns[i].metadata == META_ROW_KIND)
		{
			slot->tts_values[i] = CStringGetTextDatum(row_kind_text(kind));
			slot->tts_isnull[i] = false;
		}
	}
	slot->tts_values[natts] = Int64GetDatum(time);
	slot->tts_values[natts + 1] = Int32GetDatum(cause->source);
	slot->tts_values[natts + 2] = Int64GetDatum(cause->offset);
	slot->tts_values[natts + 3] = Int32GetDatum(sequence);
	memset(&slot->tts_isnull[natts], false, 4 * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(normalizer->changes, slot);
}

static void
deform_row(const Normalizer *normalizer, MinimalTuple row, Datum *values, bool *isnull)
{
	HeapTupleData tuple;

	tuple.t_len = row->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) ((char *) row - MINIMAL_TUPLE_OFFSET);
	heap_deform_tuple(&tuple, normalizer->desc, values, isnull);
}

/* Key columns are equal by their own operators; metadata is not part of the row. */
static bool
same_row(const Normalizer *normalizer, const Datum *a_values, const bool *a_isnull,
		 const Datum *b_values, const bool *b_isnull)
{
	const TopicTable *table = normalizer->table;

	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];
		Form_pg_attribute att = TupleDescAttr(normalizer->desc, i);

		if (!OidIsValid(column->type) || column->is_key || column->metadata != META_NONE)
			continue;
		if (a_isnull[i] != b_isnull[i])
			return false;
		if (!a_isnull[i] && !datum_image_eq(a_values[i], b_values[i], att->attbyval, att->attlen))
			return false;
	}
	return true;
}

static void
start_key(Normalizer *normalizer, const Change *change)
{
	MemoryContext old;

	MemoryContextReset(normalizer->group_cxt);
	normalizer->origins = NULL;
	normalizer->norigins = normalizer->max_origins = 0;
	old = MemoryContextSwitchTo(normalizer->group_cxt);
	for (int i = 0; i < normalizer->row_keys->n; i++)
	{
		const KeyColumn *column = &normalizer->row_keys->columns[i];
		int			index = column->attnum - 1;

		normalizer->group_key[index] = datumCopy(change->values[index], column->typbyval, column->typlen);
	}
	MemoryContextSwitchTo(old);
	normalizer->have_key = true;
}

/* The origin whose message decides now; NULL before the first. */
static Origin *
winner(Normalizer *normalizer)
{
	Origin	   *best = NULL;

	for (int i = 0; i < normalizer->norigins; i++)
	{
		Origin	   *origin = &normalizer->origins[i];

		/* own writes that are not sent yet are the last word */
		if (origin->source == PENDING_SOURCE)
			return origin;
		if (best == NULL || origin->timestamp > best->timestamp ||
			(origin->timestamp == best->timestamp && origin->source > best->source))
			best = origin;
	}
	return best;
}

static Origin *
origin_of(Normalizer *normalizer, int32 source)
{
	Origin	   *origin;

	for (int i = 0; i < normalizer->norigins; i++)
		if (normalizer->origins[i].source == source)
			return &normalizer->origins[i];
	if (normalizer->norigins == normalizer->max_origins)
	{
		int			max = Max(4, normalizer->max_origins * 2);

		if (normalizer->origins == NULL)
			normalizer->origins = MemoryContextAlloc(normalizer->group_cxt, sizeof(Origin) * max);
		else
			normalizer->origins = repalloc(normalizer->origins, sizeof(Origin) * max);
		normalizer->max_origins = max;
	}
	origin = &normalizer->origins[normalizer->norigins++];
	origin->source = source;
	origin->row = NULL;
	return origin;
}

static void
take_effect(Normalizer *normalizer, const Change *change, int64 time)
{
	Origin	   *before;
	Origin	   *after;
	Origin	   *origin;
	MinimalTuple old_row;
	MinimalTuple new_row;
	MinimalTuple replaced;

	if (!normalizer->have_key ||
		key_compare(normalizer->row_keys, normalizer->group_key, change->values) != 0)
		start_key(normalizer, change);

	before = winner(normalizer);
	old_row = before ? before->row : NULL;
	origin = origin_of(normalizer, change->source);
	replaced = origin->row;
	origin->timestamp = change->timestamp;
	origin->row = NULL;
	if (change->kind != ROW_DELETE)
	{
		MemoryContext old = MemoryContextSwitchTo(normalizer->group_cxt);

		origin->row = heap_form_minimal_tuple_compat(normalizer->desc, change->values, change->isnull);
		MemoryContextSwitchTo(old);
	}
	after = winner(normalizer);
	new_row = after->row;

	if (new_row != old_row)
	{
		Datum	   *old_values = normalizer->old_values;
		bool	   *old_isnull = normalizer->old_isnull;
		Datum	   *new_values = normalizer->new_values;
		bool	   *new_isnull = normalizer->new_isnull;

		if (old_row)
			deform_row(normalizer, old_row, old_values, old_isnull);
		if (new_row)
			deform_row(normalizer, new_row, new_values, new_isnull);
		if (old_row == NULL)
			emit(normalizer, ROW_INSERT, new_values, new_isnull, change, time, 0);
		else if (new_row == NULL)
			emit(normalizer, ROW_DELETE, old_values, old_isnull, change, time, 0);
		else if (!same_row(normalizer, old_values, old_isnull, new_values, new_isnull))
		{
			emit(normalizer, ROW_UPDATE_BEFORE, old_values, old_isnull, change, time, 0);
			emit(normalizer, ROW_UPDATE_AFTER, new_values, new_isnull, change, time, 1);
		}
	}
	if (replaced)
		pfree(replaced);
}

static void
changes_begin(Normalizer *normalizer)
{
	int			natts = normalizer->table->natts;
	AttrNumber	attnums[4] = {natts + 1, natts + 2, natts + 3, natts + 4};
	Oid			operators[4] = {Int8LessOperator, Int4LessOperator, Int8LessOperator, Int4LessOperator};
	Oid			collations[4] = {InvalidOid, InvalidOid, InvalidOid, InvalidOid};
	bool		nulls_first[4] = {false, false, false, false};

	normalizer->changes = tuplesort_begin_heap(normalizer->out_desc, 4, attnums, operators, collations,
											   nulls_first, work_mem, NULL,
											   normalizer->rewindable ? TUPLESORT_RANDOMACCESS_compat
											   : TUPLESORT_NONE_compat);
}

/*
 * Copies of the next messages by key, and when each takes effect, in
 * CurrentMemoryContext; 0 at the end.
 */
static int
take_messages(Normalizer *normalizer, KafkaRecord *records, int64 *times)
{
	const RecordSortLayout *layout = normalizer->layout;
	TupleTableSlot *slot = normalizer->message_slot;
	Size		bytes = 0;
	int			n = 0;

	while (n < DECODE_MESSAGES && bytes < DECODE_BYTES && record_sort_next(normalizer->messages, slot))
	{
		const StoredRecord *stored = (const StoredRecord *)
			DatumGetPointer(slot->tts_values[RECORD_SORT_RECORD(layout)]);
		Size		size = VARSIZE_ANY(stored);
		StoredRecord *copy = palloc(size);

		CHECK_FOR_INTERRUPTS();
		memcpy(copy, stored, size);
		stored_record_get(copy, &records[n]);
		times[n++] = DatumGetInt64(slot->tts_values[normalizer->table->nkeys]);
		bytes += size;
	}
	return n;
}

void
normalizer_finish(Normalizer *normalizer)
{
	MemoryContext old = MemoryContextSwitchTo(normalizer->cxt);
	DecodeMode	mode = normalizer->table->on_error == ON_ERROR_SKIP ? DECODE_SKIP : DECODE_RAISE;
	KafkaRecord *records = palloc(sizeof(KafkaRecord) * DECODE_MESSAGES);
	int64	   *times = palloc(sizeof(int64) * DECODE_MESSAGES);
	ChangeBatch *batch = normalizer->batch;
	int			n;

	record_sort_perform(normalizer->messages);
	normalizer->stats.disk_kb = tuplesort_disk_kb(normalizer->messages->state);
	changes_begin(normalizer);
	MemoryContextSwitchTo(normalizer->scratch);
	while ((n = take_messages(normalizer, records, times)) > 0)
	{
		change_decode(normalizer->decoder, records, n, batch, mode);
		note_skipped(normalizer, records);
		for (int i = 0; i < batch->nchanges; i++)
			take_effect(normalizer, &batch->changes[i], times[batch->changes[i].record]);
		change_batch_reset(batch);
		MemoryContextReset(normalizer->scratch);
	}
	MemoryContextSwitchTo(normalizer->cxt);
	pfree(records);
	pfree(times);
	record_sort_end(normalizer->messages);
	normalizer->messages = NULL;
	tuplesort_performsort(normalizer->changes);
	normalizer->stats.disk_kb += tuplesort_disk_kb(normalizer->changes);
	MemoryContextSwitchTo(old);
}

bool
normalizer_next(Normalizer *normalizer, Datum *values, bool *isnull)
{
	TupleTableSlot *slot = normalizer->next_slot;
	int			natts = normalizer->table->natts;

	if (!tuplesort_gettupleslot(normalizer->changes, true, false, slot, NULL))
		return false;
	slot_getsomeattrs(slot, natts);
	memcpy(values, slot->tts_values, sizeof(Datum) * natts);
	memcpy(isnull, slot->tts_isnull, sizeof(bool) * natts);
	return true;
}

bool
normalizer_can_rewind(const Normalizer *normalizer)
{
	return normalizer->rewindable;
}

void
normalizer_rewind(Normalizer *normalizer)
{
	tuplesort_rescan(normalizer->changes);
}

void
normalizer_end(Normalizer *normalizer)
{
	if (normalizer->messages)
		record_sort_end(normalizer->messages);
	if (normalizer->changes)
		tuplesort_end(normalizer->changes);
	MemoryContextDelete(normalizer->cxt);
}

const NormalizerStats *
normalizer_stats(Normalizer *normalizer)
{
	return &normalizer->stats;
}
