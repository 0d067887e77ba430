/*
 * decode_run.c
 *	  Many records to rows: which errors are a message's fault, and how the others go on
 *	  after one.  Knows nothing of what is in a message.
 */
#include "postgres.h"

#include "access/xact.h"
#include "changelog/decode_internal.h"
#include "compat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/* How much is kept of an error's text, in bytes */
#define ERROR_TEXT_MAX		1000

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
	change_batch_keep_row(batch);
	return error;
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
			(void) decode_message_key(decoder, records);
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
