/*
 * decode.c
 *	  One record to rows: the one decode path (DESIGN.md, decision 1).
 *
 * Puts key, value and metadata of a record together into rows.  Knows formats by their
 * vtable only and Kafka by KafkaRecord only; whatever is wrong is an ERROR.
 */
#include "postgres.h"

#include "changelog/decode_internal.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define ROW_CHUNK_BYTES		65536	/* room that is made at once for rows */
#define ROW_CHUNK_MAX		1024

/* Longest value that a format may take for a delete: "null", framed, with blanks. */
#define DELETE_MARKER_MAX	16

/* ------------------------------------------------------------------------
 * Batches
 * ------------------------------------------------------------------------ */

ChangeBatch *
change_batch_create(MemoryContext parent)
{
	ChangeBatch *batch = MemoryContextAllocZero(parent, sizeof(ChangeBatch));

	batch->context = AllocSetContextCreate(parent, "upsert_kafka changes", ALLOCSET_DEFAULT_SIZES);
	return batch;
}

void
change_batch_reset(ChangeBatch *batch)
{
	MemoryContext context = batch->context;

	MemoryContextReset(context);
	memset(batch, 0, sizeof(*batch));
	batch->context = context;
}

/* Point the sink at the next free row, all NULL. */
static void
next_row(ChangeDecoder *decoder)
{
	ChangeBatch *batch = decoder->batch;
	int			natts = decoder->natts;

	if (batch->free_rows == 0 || batch->free_natts != natts)
	{
		int			size = Max(natts, 1) * (sizeof(Datum) + sizeof(bool));
		int			n = Max(1, Min(ROW_CHUNK_MAX, ROW_CHUNK_BYTES / size));

		batch->free_values = MemoryContextAlloc(batch->context, sizeof(Datum) * Max(natts, 1) * n);
		batch->free_isnull = MemoryContextAlloc(batch->context, sizeof(bool) * Max(natts, 1) * n);
		batch->free_rows = n;
		batch->free_natts = natts;
	}
	decoder->sink.values = batch->free_values;
	decoder->sink.isnull = batch->free_isnull;
	memset(batch->free_isnull, true, sizeof(bool) * natts);
}

static void
set_row_kind(ChangeDecoder *decoder, RowKind kind)
{
	for (int i = 0; i < decoder->nmetadata; i++)
	{
		MetadataColumn *column = &decoder->metadata[i];

		if (!column->row_kind)
			continue;
		decoder->sink.values[column->index] = metadata_row_kind(column->reader, kind);
		decoder->sink.isnull[column->index] = false;
	}
}

/* Columns of the row at hand that keep their value: for who asks, or a warning. */
static Bitmapset *
take_unchanged(ChangeDecoder *decoder)
{
	Bitmapset  *unchanged = decoder->sink.unchanged;
	const TopicTable *table = decoder->table;
	int			first = bms_next_member(unchanged, -1);

	decoder->sink.unchanged = NULL;
	if (decoder->tell_unchanged)
		return unchanged;
	if (!decoder->warned)
		ereport(WARNING,
				(errmsg("column \"%s\" of foreign table \"%s\" is null where the topic does not hold its value",
						table->columns[first].name, table->name),
				 topic_table_is_plain(table) ?
				 errdetail("The first such message is partition %d, offset %lld: the value did not change, and the source did not send it again.",
						   decoder->record->partition, (long long) decoder->record->offset) :
				 errdetail("The first such message is topic \"%s\", partition %d, offset %lld: the value did not change, and the source did not send it again.",
						   decoder->record->topic, decoder->record->partition, (long long) decoder->record->offset),
				 errhint("A maintained table keeps the value that the row had.")));
	decoder->warned = true;
	return NULL;
}

static void
append_row(ChangeDecoder *decoder, RowKind kind)
{
	ChangeBatch *batch = decoder->batch;
	const KafkaRecord *record = decoder->record;
	const Bitmapset *unchanged = NULL;
	Change	   *change;

	if (kind != ROW_TRUNCATE)
		set_row_kind(decoder, kind);
	if (unlikely(decoder->sink.unchanged != NULL))
		unchanged = take_unchanged(decoder);
	if (batch == NULL)
	{
		decoder->kind = kind;
		return;
	}
	if (batch->nchanges == batch->max_changes)
	{
		if (batch->changes == NULL)
		{
			batch->max_changes = 256;
			batch->changes = MemoryContextAlloc(batch->context, sizeof(Change) * batch->max_changes);
		}
		else
		{
			batch->max_changes *= 2;
			batch->changes = repalloc_huge(batch->changes, sizeof(Change) * batch->max_changes);
		}
	}
	change = &batch->changes[batch->nchanges++];
	memset(change, 0, sizeof(*change));
	change->kind = kind;
	change->record = batch->nrecords;
	change->source = record->source;
	change->offset = record->offset;
	change->timestamp = record->timestamp;
	change->values = decoder->sink.values;
	change->isnull = decoder->sink.isnull;
	if (kind == ROW_DELETE)
		change->moves = decoder->tell_moves && old_key_moves(decoder->old_key, record);
	else if (unlikely(unchanged != NULL))
	{
		change->unchanged = unchanged;
		if (decoder->old_key)
			change->old_key = old_key_read(decoder->old_key, record);
	}
	change_batch_keep_row(batch);
}

/* ------------------------------------------------------------------------
 * One message
 * ------------------------------------------------------------------------ */

/* A column that the value's format fills. */
static bool
is_value_column(const TopicColumn *column)
{
	return OidIsValid(column->type) && !column->is_key && column->metadata == META_NONE;
}

static void
emit_key(RowSink *sink, RowKind kind)
{
	ChangeDecoder *decoder = sink->arg;

	decoder->nrows++;
}

/* Does the field that the option delete_marker names say that the row is gone? */
static bool
is_marked(const ChangeDecoder *decoder)
{
	text	   *value;

	if (decoder->marker < 0 || decoder->sink.isnull[decoder->marker])
		return false;
	value = DatumGetTextPP(decoder->sink.values[decoder->marker]);
	return VARSIZE_ANY_EXHDR(value) == decoder->marker_len &&
		memcmp(VARDATA_ANY(value), decoder->table->delete_marker_value, decoder->marker_len) == 0;
}

static void
emit_value(RowSink *sink, RowKind kind)
{
	ChangeDecoder *decoder = sink->arg;
	const TopicTable *table = decoder->table;
	Datum	   *values = sink->values;
	bool	   *isnull = sink->isnull;

	decoder->nrows++;
	if (unlikely(kind == ROW_TRUNCATE))
	{
		append_row(decoder, kind);
		next_row(decoder);
		return;
	}
	if (is_marked(decoder))
		kind = ROW_DELETE;
	else if (decoder->marker >= 0 && !table->upsert)
	{
		/* a value without a row deletes no row of a log, as a tombstone does not */
		if (kind == ROW_DELETE)
			return;
		kind = ROW_INSERT;
	}
	if (table->upsert)
		kind = kind == ROW_DELETE ? ROW_DELETE : ROW_UPSERT;
	else if (!decoder->has_kinds)
		kind = ROW_INSERT;
	if (table->upsert && kind == ROW_DELETE)
	{
		for (int i = 0; i < table->natts; i++)
		{
			if (is_value_column(&table->columns[i]))
				isnull[i] = true;
		}
	}
	append_row(decoder, kind);
	if (decoder->batch == NULL)
		return;

	/* further rows of this message share its key and metadata */
	next_row(decoder);
	for (int i = 0; i < decoder->nshared; i++)
	{
		int			index = decoder->shared[i];

		sink->values[index] = values[index];
		sink->isnull[index] = isnull[index];
	}
}

/*
 * Before a key is refused: is the message about something else than a row of the
 * table?  Then its key is as well.
 */
static bool
tells_no_row(ChangeDecoder *decoder, const KafkaRecord *record)
{
	bool		result;

	if (!decoder->has_kinds || record->value == NULL || decoder->table->value_format->has_row == NULL)
		return false;
	decoder->in_key = false;
	result = !decoder->table->value_format->has_row(decoder->value, record->value, record->value_len);
	decoder->in_key = true;
	return result;
}

/* Is the message about no row, but about all of them?  Then its key means nothing. */
static bool
tells_truncate(ChangeDecoder *decoder, const KafkaRecord *record)
{
	decoder->in_key = false;
	decoder->nrows = 0;
	return decoder->value && decoder->value->applies_truncate && record->value != NULL &&
		decoder->table->value_format->truncates(decoder->value, record->value, record->value_len);
}

bool
decode_message_key(ChangeDecoder *decoder, const KafkaRecord *record)
{
	const TopicTable *table = decoder->table;
	RowSink    *sink = &decoder->sink;

	decoder->in_key = true;
	sink->column = NULL;
	if (record->key == NULL)
	{
		if (!table->upsert)
			return true;
		if (tells_no_row(decoder, record))
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("the message has no key")));
	}

	decoder->nrows = 0;
	sink->emit = emit_key;
	table->key_format->decode(decoder->key, record->key, record->key_len, sink);
	sink->column = NULL;
	if (decoder->nrows != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("the key holds %d rows, not one", decoder->nrows)));

	for (int i = 0; table->upsert && i < table->nkeys; i++)
	{
		const TopicColumn *column = &table->columns[table->keys[i] - 1];

		if (!sink->isnull[column->attnum - 1])
			continue;
		if (tells_no_row(decoder, record))
			return false;
		sink->column = column->name;
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("field \"%s\" of the key is missing or null", column->field)));
	}
	return true;
}

static void
read_metadata(ChangeDecoder *decoder, const KafkaRecord *record)
{
	RowSink    *sink = &decoder->sink;

	for (int i = 0; i < decoder->nmetadata; i++)
	{
		MetadataColumn *column = &decoder->metadata[i];

		sink->column = column->name;
		sink->values[column->index] = metadata_read(column->reader, record, &sink->isnull[column->index]);
	}
	sink->column = NULL;
}

static void
decode_value(ChangeDecoder *decoder, const KafkaRecord *record)
{
	const TopicTable *table = decoder->table;
	RowSink    *sink = &decoder->sink;

	decoder->in_key = false;
	sink->column = NULL;
	if (decoder->nmetadata > 0)
		read_metadata(decoder, record);

	decoder->nrows = 0;
	if (record->value == NULL)
	{
		/* a tombstone; in a log of changes it says nothing that its delete has not said */
		if (!table->upsert && decoder->has_kinds)
			return;
		decoder->nrows = 1;
		append_row(decoder, table->upsert ? ROW_DELETE : ROW_INSERT);
	}
	else if (decoder->value_use == VALUE_DECODED ||
			 (decoder->value_use == VALUE_MARKERS && record->value_len <= DELETE_MARKER_MAX))
	{
		sink->emit = emit_value;
		table->value_format->decode(decoder->value, record->value, record->value_len, sink);
		sink->column = NULL;
	}
	else
	{
		decoder->nrows = 1;
		append_row(decoder, table->upsert ? ROW_UPSERT : ROW_INSERT);
	}
}

void
decode_message(ChangeDecoder *decoder, const KafkaRecord *record)
{
	decoder->record = record;
	decoder->key_known = false;
	next_row(decoder);
	decoder->sink.unchanged = NULL;
	if (decoder->key == NULL || tells_truncate(decoder, record) || decode_message_key(decoder, record))
	{
		decoder->key_known = decoder->nrows > 0 && decoder->key != NULL && record->key != NULL;
		decode_value(decoder, record);
	}
	decoder->batch->nrecords++;
}
