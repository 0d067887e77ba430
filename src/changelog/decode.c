/*
 * decode.c
 *	  Records to changes: the one decode path (DESIGN.md, decision 1).
 *
 * Puts key, value and metadata of a record together into rows, and turns the
 * errors of a message into ChangeErrors.  Knows formats by their vtable only and
 * Kafka by KafkaRecord only.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "changelog/change.h"
#include "changelog/columns.h"
#include "changelog/metadata.h"
#include "changelog/old_key.h"
#include "compat.h"
#include "fdw/pending.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define ROW_CHUNK_BYTES		65536	/* room that is made at once for rows */
#define ROW_CHUNK_MAX		1024

/* Longest value that a format may take for a delete: "null", framed, with blanks. */
#define DELETE_MARKER_MAX	16

/* How much is kept of an error's text, in bytes */
#define ERROR_TEXT_MAX		1000

typedef enum ValueUse
{
	VALUE_UNUSED,				/* no column wanted: not looked at */
	VALUE_MARKERS,				/* only whether a short one means a delete */
	VALUE_DECODED
} ValueUse;

typedef struct MetadataColumn
{
	int			index;
	bool		row_kind;
	const char *name;
	MetadataReader *reader;
} MetadataColumn;

struct ChangeDecoder
{
	RowSink		sink;
	const TopicTable *table;
	Decoder    *key;			/* NULL: no key column wanted */
	Decoder    *value;
	ValueUse	value_use;
	bool		has_kinds;		/* values tell row kinds */
	int			natts;			/* room of a row: the table's columns, and the marker */
	int			marker;			/* where the delete marker's text is; -1: there is none */
	Size		marker_len;		/* of the text that means a delete */
	bool		tell_unchanged;
	OldKeyReader *old_key;		/* NULL: messages do not tell of it, or nobody asks */
	bool		tell_moves;
	bool		ignores_errors; /* of key or value */
	bool		warned;			/* of a value that the messages do not hold */
	int			nmetadata;
	MetadataColumn *metadata;
	int			nshared;		/* indexes of columns that all rows of a message */
	int		   *shared;			/* have in common: key and metadata */

	/* of the message at hand */
	const KafkaRecord *record;
	bool		in_key;
	bool		key_known;
	int			nrows;			/* emitted by the key or the value */
	ChangeBatch *batch;			/* NULL: a single row, nothing to append to */
	RowKind		kind;			/* of that single row */
};

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
keep_row(ChangeBatch *batch)
{
	batch->free_values += batch->free_natts;
	batch->free_isnull += batch->free_natts;
	batch->free_rows--;
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
	keep_row(batch);
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

/* False: the message is to be passed by. */
static bool
decode_key(ChangeDecoder *decoder, const KafkaRecord *record)
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

static void
decode_message(ChangeDecoder *decoder, const KafkaRecord *record)
{
	decoder->record = record;
	decoder->key_known = false;
	next_row(decoder);
	decoder->sink.unchanged = NULL;
	if (decoder->key == NULL || tells_truncate(decoder, record) || decode_key(decoder, record))
	{
		decoder->key_known = decoder->nrows > 0 && decoder->key != NULL && record->key != NULL;
		decode_value(decoder, record);
	}
	decoder->batch->nrecords++;
}

/* ------------------------------------------------------------------------
 * Errors of a message
 * ------------------------------------------------------------------------ */

/*
 * Is it the message's fault?  Everything that decoding and type input say of their
 * input, domain checks included (case B15: never cancel, memory, locks ..).
 */
static bool
is_message_error(int sqlerrcode)
{
	switch (sqlerrcode)
	{
		case ERRCODE_NOT_NULL_VIOLATION:	/* null key; domain NOT NULL */
		case ERRCODE_CHECK_VIOLATION:	/* domain */
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:	/* too long for its type */
		case ERRCODE_STATEMENT_TOO_COMPLEX: /* nested too deeply */
			return true;
		default:
			return ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_DATA_EXCEPTION;
	}
}

/* What else is raised while messages are decoded should say where, too. */
static void
decode_error_context(void *arg)
{
	ChangeDecoder *decoder = arg;
	int			code = geterrcode();

	if (decoder->record == NULL || is_message_error(code) ||
		ERRCODE_TO_CATEGORY(code) == ERRCODE_OPERATOR_INTERVENTION)
		return;
	errcontext("decoding of topic \"%s\", partition %d, offset %lld",
			   decoder->record->topic, decoder->record->partition, (long long) decoder->record->offset);
}

/*
 * Is it a document that cannot be parsed, in a part of the message where such errors are
 * ignored?  A column's error is none: of a key, or by a domain.  Nor is what only the
 * user can decide, such as a TRUNCATE (22023).
 */
static bool
is_ignored(const ChangeDecoder *decoder, int sqlerrcode)
{
	const Decoder *part = decoder->in_key ? decoder->key : decoder->value;

	if (part == NULL || !part->ignores_errors || decoder->sink.column)
		return false;
	return sqlerrcode == ERRCODE_STATEMENT_TOO_COMPLEX ||
		(ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_DATA_EXCEPTION && sqlerrcode != ERRCODE_INVALID_PARAMETER_VALUE);
}

/* Type input repeats a value in what it says of it, however long it is. */
static char *
shortened(const char *text)
{
	int			len = (int) strlen(text);

	if (len <= ERROR_TEXT_MAX)
		return pstrdup(text);
	return psprintf("%.*s...", pg_mbcliplen(text, len, ERROR_TEXT_MAX), text);
}

/* In CurrentMemoryContext. */
static void
fill_error(ChangeDecoder *decoder, const ErrorData *edata, ChangeError *error)
{
	memset(error, 0, sizeof(*error));
	error->sqlerrcode = edata->sqlerrcode;
	error->in_key = decoder->in_key;
	error->ignored = is_ignored(decoder, edata->sqlerrcode);
	error->column = decoder->sink.column ? pstrdup(decoder->sink.column) : NULL;
	error->message = shortened(edata->message);
	if (edata->detail)
		error->message = psprintf("%s (%s)", error->message, shortened(edata->detail));
	error->hint = edata->hint ? pstrdup(edata->hint) : NULL;
	error->key_known = decoder->key_known;
}

static ChangeError *
append_error(ChangeDecoder *decoder, const ErrorData *edata)
{
	ChangeBatch *batch = decoder->batch;
	const TopicTable *table = decoder->table;
	ChangeError *error;

	if (batch->nerrors == batch->max_errors)
	{
		if (batch->errors == NULL)
		{
			batch->max_errors = 16;
			batch->errors = palloc(sizeof(ChangeError) * batch->max_errors);
		}
		else
		{
			batch->max_errors *= 2;
			batch->errors = repalloc_huge(batch->errors, sizeof(ChangeError) * batch->max_errors);
		}
	}
	error = &batch->errors[batch->nerrors++];
	fill_error(decoder, edata, error);
	error->record = batch->nrecords;
	if (!error->key_known)
		return error;

	/* of the row at hand only the key is sound */
	error->values = decoder->sink.values;
	error->isnull = decoder->sink.isnull;
	for (int i = 0; i < table->natts; i++)
	{
		if (!table->columns[i].is_key)
			error->isnull[i] = true;
	}
	keep_row(batch);
	return error;
}

void
change_error_truncate(ChangeError *error)
{
	memset(error, 0, sizeof(*error));
	error->sqlerrcode = ERRCODE_INVALID_PARAMETER_VALUE;
	error->message = _("the source table was truncated, and the messages are of several partitions");
	error->hint = _("The event is in one of them, and nothing says which messages of the others were before it. The option truncate 'ignore' passes it by and keeps the rows; a DELETE on the foreign table then removes those that are older. In a topic of one partition it is applied.");
}

static char *
error_subject(const TopicTable *table, const ChangeError *error)
{
	if (error->column)
		return psprintf(error->in_key ? _("invalid key for column \"%s\" of foreign table \"%s\"")
						: _("invalid input for column \"%s\" of foreign table \"%s\""),
						error->column, table->name);
	return psprintf(error->in_key ? _("invalid key for foreign table \"%s\"")
					: _("invalid message for foreign table \"%s\""), table->name);
}

static const char *
full_stop(const char *sentence)
{
	Size		len = strlen(sentence);

	return len > 0 && strchr(".!?", sentence[len - 1]) ? "" : ".";
}

void
change_error_raise(const TopicTable *table, const KafkaRecord *record, const ChangeError *error)
{
	StringInfoData hint;

	initStringInfo(&hint);
	if (error->hint)
		appendStringInfo(&hint, "%s%s", error->hint, full_stop(error->hint));
	if (table->on_error == ON_ERROR_STOP)
		appendStringInfo(&hint, "%s%s", hint.len > 0 ? " " : "",
						 _("Use on_error 'skip' to record such messages and go on."));

	ereport(ERROR,
			(errcode(error->sqlerrcode),
			 errmsg_internal("%s", error_subject(table, error)),
			 record_is_pending(record) ?
			 errdetail("Topic \"%s\", a message of this transaction that is not sent yet: %s%s",
					   record->topic, error->message, full_stop(error->message)) :
			 errdetail("Topic \"%s\", partition %d, offset %lld: %s%s",
					   record->topic, record->partition, (long long) record->offset,
					   error->message, full_stop(error->message)),
			 hint.len > 0 ? errhint("%s", hint.data) : 0));
}

char *
change_error_text(const TopicTable *table, const KafkaRecord *record, const ChangeError *error)
{
	return psprintf(_("%s: topic \"%s\", partition %d, offset %lld: %s"),
					error_subject(table, error), record->topic, record->partition,
					(long long) record->offset, error->message);
}

/* ------------------------------------------------------------------------
 * Many messages
 * ------------------------------------------------------------------------ */

typedef enum RunKind
{
	RUN_BATCH,
	RUN_KEY
} RunKind;

/* What stands between PG_TRY and PG_CATCH. */
static void
run(ChangeDecoder *decoder, RunKind kind, const KafkaRecord *records, int n, int *done)
{
	switch (kind)
	{
		case RUN_BATCH:
			for (; *done < n; (*done)++)
			{
				CHECK_FOR_INTERRUPTS();
				decode_message(decoder, &records[*done]);
			}
			break;
		case RUN_KEY:
			decoder->record = records;
			decoder->key_known = false;
			(void) decode_key(decoder, records);
			break;
	}
}

/*
 * Decode under the message's settings, the first bad message is an ERROR with its
 * coordinates.  Datums go to CurrentMemoryContext.
 */
static void
run_or_raise(ChangeDecoder *decoder, RunKind kind, const KafkaRecord *records, int n)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorContextCallback callback;
	DecodeSettings settings;
	ErrorData  *volatile edata = NULL;
	ChangeError error;

	callback.callback = decode_error_context;
	callback.arg = decoder;
	callback.previous = error_context_stack;
	decoder->record = NULL;
	error_context_stack = &callback;
	decode_settings_enter(&settings, decoder->table->time_zone);
	PG_TRY();
	{
		int			done = 0;

		run(decoder, kind, records, n, &done);
	}
	PG_CATCH();
	{
		decode_settings_leave(&settings);
		if (!is_message_error(geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	error_context_stack = callback.previous;

	if (edata)
	{
		fill_error(decoder, edata, &error);
		change_error_raise(decoder->table, decoder->record, &error);
	}
	decode_settings_leave(&settings);
	decoder->record = NULL;
}

/*
 * Decode up to the first bad message, in an internal subtransaction: type input may
 * leave locks, pins and half-built state behind that only an abort clears.  The
 * subtransaction writes nothing and takes no transaction id.  What is decoded is in
 * the batch's context, which outlives it.  Returns the error, or NULL at the end.
 */
static ErrorData *
run_or_catch(ChangeDecoder *decoder, const KafkaRecord *records, int n, int *done)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorContextCallback callback;
	DecodeSettings settings;
	ErrorData  *volatile edata = NULL;

	callback.callback = decode_error_context;
	callback.arg = decoder;
	callback.previous = error_context_stack;
	decoder->record = NULL;
	error_context_stack = &callback;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	decode_settings_enter(&settings, decoder->table->time_zone);
	PG_TRY();
	{
		run(decoder, RUN_BATCH, records, n, done);
		decode_settings_leave(&settings);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		decode_settings_leave(&settings);
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;

	/* out of the subtransaction first: nobody above knows of it */
	if (edata && !is_message_error(edata->sqlerrcode))
		ReThrowError(edata);
	return edata;
}

/*
 * From here on, values that are no good are NULL where the option says so.  Not those of
 * an upsert table's key, of which none can be NULL: their own errors tell more.
 */
static void
set_lenient(ChangeDecoder *decoder, bool lenient)
{
	if (decoder->key)
		decoder->key->lenient = lenient && decoder->key->ignores_errors && !decoder->table->upsert;
	if (decoder->value)
		decoder->value->lenient = lenient && decoder->value->ignores_errors;
}

/* A message that turned out bad, once more; what is still wrong with it, or NULL. */
static ErrorData *
decode_leniently(ChangeDecoder *decoder, const KafkaRecord *record, ErrorData *edata)
{
	ErrorData  *volatile result = NULL;
	int			done = 0;

	FreeErrorData(edata);
	set_lenient(decoder, true);
	PG_TRY();
	{
		result = run_or_catch(decoder, record, 1, &done);
	}
	PG_FINALLY();
	{
		set_lenient(decoder, false);
	}
	PG_END_TRY();
	return result;
}

/* Rows that a message gave before it turned out bad. */
static void
drop_rows(ChangeBatch *batch)
{
	while (batch->nchanges > 0 && batch->changes[batch->nchanges - 1].record == batch->nrecords)
		batch->nchanges--;
}

void
change_decode(ChangeDecoder *decoder, const KafkaRecord *records, int n, ChangeBatch *batch, DecodeMode mode)
{
	MemoryContext old = MemoryContextSwitchTo(batch->context);
	bool		ignores_errors = decoder->ignores_errors &&
		(SUBTRANSACTION_IN_PARALLEL_MODE_compat || !IsInParallelMode());
	int			done = 0;

	decoder->batch = batch;
	if (mode == DECODE_RAISE && !ignores_errors)
		run_or_raise(decoder, RUN_BATCH, records, n);
	else
	{
		while (done < n)
		{
			ErrorData  *edata = run_or_catch(decoder, records, n, &done);
			ChangeError *error;

			if (edata == NULL)
				break;
			drop_rows(batch);
			if (ignores_errors)
			{
				edata = decode_leniently(decoder, &records[done], edata);
				if (edata == NULL)
				{
					done++;
					continue;
				}
				drop_rows(batch);
			}
			error = append_error(decoder, edata);
			FreeErrorData(edata);
			if (mode == DECODE_RAISE && !error->ignored)
				change_error_raise(decoder->table, &records[done], error);
			if (mode == DECODE_STOP && !error->ignored)
			{
				batch->stop = error;
				break;
			}
			batch->nrecords++;
			done++;
		}
		decoder->record = NULL;
	}
	decoder->batch = NULL;
	MemoryContextSwitchTo(old);
}

void
change_decode_key(ChangeDecoder *decoder, const KafkaRecord *record, Datum *values, bool *isnull)
{
	const TopicTable *table = decoder->table;

	for (int i = 0; i < table->nkeys; i++)
		isnull[table->keys[i] - 1] = true;
	if (decoder->key == NULL)
		return;
	decoder->batch = NULL;
	decoder->sink.values = values;
	decoder->sink.isnull = isnull;
	run_or_raise(decoder, RUN_KEY, record, 1);
}

/* ------------------------------------------------------------------------
 * Decoders
 * ------------------------------------------------------------------------ */

static bool
is_wanted(const Bitmapset *wanted, AttrNumber attnum)
{
	return wanted == NULL ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, wanted) ||
		bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, wanted);
}

static Decoder *
create_decoder(const TopicTable *table, const FormatRoutine *format, List *options, bool is_key,
			   int ncolumns, FormatColumn *columns)
{
	DecoderSpec spec = {0};
	FormatColumn *fields = palloc(sizeof(FormatColumn) * Max(table->natts, 1));
	int		   *positions = palloc0(sizeof(int) * (table->natts + 1));
	const char **keys = palloc(sizeof(char *) * Max(table->nkeys, 1));
	Decoder    *decoder;

	for (int i = 0; i < table->nkeys; i++)
		keys[i] = table->columns[table->keys[i] - 1].field;
	spec.nkeys = table->nkeys;
	spec.keys = keys;

	spec.nfields = is_key ? topic_key_fields(table, fields) : topic_value_fields(table, fields);
	spec.fields = fields;
	for (int i = 0; i < spec.nfields; i++)
	{
		positions[fields[i].index] = i;
		if (table->delete_marker && strcmp(fields[i].field, table->delete_marker) == 0)
			positions[table->natts] = i;
	}
	for (int i = 0; i < ncolumns; i++)
		columns[i].position = positions[columns[i].index];
	pfree(positions);
	spec.ncolumns = ncolumns;
	spec.columns = columns;
	spec.options = options;
	spec.is_key = is_key;
	spec.has_key = table->nkeys > 0;
	spec.upsert = table->upsert;
	spec.connect = is_key && table->value_format->connect;
	spec.time_zone = table->time_zone;
	if (format->registry)
		spec.registry = registry_access_get(table->serverid, table->userid);
	decoder = format->create(&spec);
	decoder->routine = format;
	return decoder;
}

ChangeDecoder *
change_decoder_create(const TopicTable *table, const Bitmapset *wanted)
{
	ChangeDecoder *decoder = palloc0(sizeof(ChangeDecoder));
	FormatColumn *keys = palloc0(sizeof(FormatColumn) * Max(table->natts, 1));
	FormatColumn *values = palloc0(sizeof(FormatColumn) * (table->natts + 1));
	int			nkeys = 0;
	int			nvalues = 0;

	decoder->table = table;
	decoder->sink.arg = decoder;
	decoder->has_kinds = topic_table_has_kinds(table);
	decoder->natts = table->natts;
	decoder->marker = -1;
	decoder->metadata = palloc0(sizeof(MetadataColumn) * Max(table->natts, 1));
	decoder->shared = palloc(sizeof(int) * Max(table->natts, 1));

	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (!OidIsValid(column->type))
			continue;
		if (column->is_key)
		{
			if (!table->upsert && !is_wanted(wanted, column->attnum))
				continue;
			format_column_init(&keys[nkeys++], column);
			decoder->shared[decoder->nshared++] = i;
		}
		else if (!is_wanted(wanted, column->attnum))
			continue;
		else if (column->metadata != META_NONE && column->metadata != META_FORMAT)
		{
			MetadataColumn *metadata = &decoder->metadata[decoder->nmetadata++];

			metadata->index = i;
			metadata->row_kind = column->metadata == META_ROW_KIND;
			metadata->name = column->name;
			metadata->reader = metadata_reader_create(table, column);
			decoder->shared[decoder->nshared++] = i;
		}
		else
			format_column_init(&values[nvalues++], column);
	}

	if (table->delete_marker)
	{
		FormatColumn *marker = &values[nvalues++];

		marker->index = decoder->marker = decoder->natts++;
		marker->field = marker->column = table->delete_marker;
		marker->type = TEXTOID;
		marker->typmod = -1;
		marker->collation = DEFAULT_COLLATION_OID;
		decoder->marker_len = strlen(table->delete_marker_value);
	}

	if (nkeys > 0)
		decoder->key = create_decoder(table, table->key_format, table->key_options, true, nkeys, keys);

	if (nvalues > 0 || decoder->has_kinds)
		decoder->value_use = VALUE_DECODED;
	else if (table->value_options != NIL && !table->value_format->single_column)
		decoder->value_use = VALUE_MARKERS;
	if (decoder->value_use != VALUE_UNUSED)
		decoder->value = create_decoder(table, table->value_format, table->value_options, false, nvalues, values);
	if (decoder->value && decoder->value->decides)
		decoder->value_use = VALUE_DECODED;
	else if (decoder->value_use == VALUE_MARKERS && !table->upsert)
		decoder->value_use = VALUE_UNUSED;
	decoder->ignores_errors = (decoder->key && decoder->key->ignores_errors) ||
		(decoder->value && decoder->value->ignores_errors);
	return decoder;
}

void
change_decoder_tell_unchanged(ChangeDecoder *decoder, int nkeys, const AttrNumber *keys, bool moves)
{
	decoder->tell_unchanged = true;
	if (nkeys > 0 && decoder->table->value_format->old_key_header)
		decoder->old_key = old_key_reader_create(decoder->table, nkeys, keys);
	decoder->tell_moves = moves && decoder->old_key != NULL;
}
