/*
 * decode_fuzz.c
 *	  Decoders of all formats for libFuzzer, one format at a time: FUZZ_FORMAT names it.
 *
 * Input: a table's number, a byte of flags, then messages with SEPARATOR between them.
 * Every message is decoded twice, and must give the same rows or the same error of a
 * message, from bytes of exactly its size, in bounded memory, of which nothing is left.
 * Half of the columns, asked for alone, must be the same, and what is written of a row
 * must read as it.
 */
#include "shim.h"

#include <setjmp.h>
#include <stdint.h>
#include <unistd.h>

#include "common/base64.h"
#include "format/formats.h"
#include "fuzz_registry.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tables.h"

#define SEPARATOR		"\x1e\xff\x1e"
#define MAX_MESSAGES	8
#define MAX_COLUMNS		40

#define MEMORY_FIXED	(64 * 1024 * 1024)
#define MEMORY_PER_BYTE 200

/* bits of the second byte */
#define FLAG_LATIN1		1
#define FLAG_LENIENT	2		/* from the start, not only after an error */
#define FLAG_MISSING	4
#define FLAG_SCHEMAS	8		/* of avro-schema and protobuf-source: schemas, not whole answers */
#define FLAG_ODD		16		/* which half of the columns is also asked for alone */

typedef struct Run
{
	const FuzzTable *table;
	const FormatRoutine *format;
	FormatColumn columns[MAX_COLUMNS];	/* all */
	FormatColumn wanted[MAX_COLUMNS];
	FormatColumn half[MAX_COLUMNS];
	int			ncolumns;
	int			nwanted;
	int			nhalf;
	bool		in_half[MAX_COLUMNS];
	List	   *options;
	const char *keys[1];
	bool		latin1;
	bool		lenient;
	bool		count_missing;
	Decoder    *decoder;
	Decoder    *half_decoder;
	Encoder    *encoder;
	Size		limit;
	MemoryContext decoder_context;
	MemoryContext message_context;
	MemoryContext digest_context;

	/* of the row at hand */
	RowSink		sink;
	Datum		values[MAX_COLUMNS];
	bool		isnull[MAX_COLUMNS];
	bool		missing[MAX_COLUMNS];

	/* of the message at hand */
	bool		is_half;
	StringInfo	digest;			/* all rows, in short */
	StringInfo	half_digest;	/* the same of half the columns */
	int			nrows;
	int			ntruncates;		/* of these those of a TRUNCATE */
	bool		truncates;		/* what the format says of it */
	bool		incomplete;		/* a row has values that the message does not hold */
	Datum		first_values[MAX_COLUMNS];
	bool		first_isnull[MAX_COLUMNS];
} Run;

static const char *format_name;
static int	nformat_tables = 0;

int			LLVMFuzzerInitialize(int *argc, char ***argv);
int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* === Outcomes =============================================================== */

static void
check_utf8(const char *text, const char *what)
{
	if (text && shim_encoding == PG_UTF8 && !shim_is_utf8(text, strlen(text)))
		shim_fail("%s is no UTF-8: %s", what, text);
}

static void
check_texts(const ErrorData *error)
{
	check_utf8(error->message, "the message");
	check_utf8(error->detail, "the detail");
	check_utf8(error->hint, "the hint");
}

/* What decode_run.c takes for a message's error, and what a registry's may be */
static void
check_error(const Run *run, const ErrorData *error)
{
	int			category = ERRCODE_TO_CATEGORY(error->sqlerrcode);
	bool		good = category == ERRCODE_DATA_EXCEPTION ||
		error->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION || error->sqlerrcode == ERRCODE_CHECK_VIOLATION ||
		error->sqlerrcode == ERRCODE_PROGRAM_LIMIT_EXCEEDED || error->sqlerrcode == ERRCODE_STATEMENT_TOO_COMPLEX;

	if (run->format->registry)
		good |= category == ERRCODE_CONNECTION_EXCEPTION || error->sqlerrcode == ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
	if (!good)
		shim_fail("error of class %s: %s, %s:%d", unpack_sql_state(error->sqlerrcode), error->message, error->filename, error->lineno);
	check_texts(error);
}

static void
clear_row(Run *run)
{
	for (int i = 0; i < run->ncolumns; i++)
	{
		run->values[i] = (Datum) 0xdeadbeef;
		run->isnull[i] = true;
		run->missing[i] = false;
	}
}

/* Reads all of a row.  Its memory is the fuzzer's, and not counted. */
static void
emit(RowSink *sink, RowKind kind)
{
	Run		   *run = sink->arg;
	MemoryContext old;

	shim_limit_bytes(SIZE_MAX);
	old = MemoryContextSwitchTo(run->digest_context);
	appendStringInfo(run->digest, "%d:", kind);
	appendStringInfo(run->half_digest, "%d:", kind);
	for (int i = 0; i < run->ncolumns; i++)
	{
		const FormatColumn *column = &run->columns[i];
		int			begin = run->digest->len;

		if (run->nrows == 0)
		{
			run->first_values[i] = run->values[i];
			run->first_isnull[i] = run->isnull[i];
		}
		if (run->isnull[i])
			appendStringInfo(run->digest, "%s|", bms_is_member(i, sink->unchanged) ? "unchanged" : run->missing[i] ? "missing" : "null");
		else if (bms_is_member(i, sink->unchanged))
			shim_fail("a value of column \"%s\" that is also unchanged", column->field);
		else
			appendStringInfo(run->digest, "\"%s\"|", shim_output(shim_type(column->type), run->values[i]));
		if (run->in_half[i])
			appendStringInfoString(run->half_digest, run->digest->data + begin);
	}
	appendStringInfoChar(run->digest, '\n');
	appendStringInfoChar(run->half_digest, '\n');
	MemoryContextSwitchTo(old);
	shim_limit_bytes(run->limit);
	run->nrows++;
	run->ntruncates += kind == ROW_TRUNCATE;
	run->incomplete |= sink->unchanged != NULL;
	sink->unchanged = NULL;
	clear_row(run);
}

/* === Decoding =============================================================== */

static const char *
time_zone(const Run *run)
{
	return run->table->time_zone ? run->table->time_zone : "UTC";
}

typedef enum What
{
	CREATE,
	CREATE_MORE,				/* what only good messages need */
	DECODE,
	HAS_ROW,
	TRUNCATES,
	ENCODE
} What;

static void
create_decoder(Run *run, int ncolumns, const FormatColumn *columns, Decoder **decoder)
{
	DecoderSpec spec = {0};

	spec.ncolumns = ncolumns;
	spec.columns = columns;
	spec.options = run->options;
	spec.nfields = run->ncolumns;
	spec.fields = run->columns;
	spec.is_key = run->table->is_key;
	spec.has_key = run->table->has_key;
	spec.nkeys = run->table->keys ? 1 : 0;
	spec.keys = run->keys;
	spec.upsert = run->table->upsert;
	spec.connect = run->table->connect;
	spec.time_zone = time_zone(run);
	spec.registry = &fuzz_access;
	*decoder = run->format->create(&spec);
}

static void
create_encoder(Run *run)
{
	EncoderSpec spec = {0};

	spec.ncolumns = run->ncolumns;
	spec.columns = run->columns;
	spec.options = run->options;
	spec.is_key = run->table->is_key;
	spec.topic = "topic";
	spec.time_zone = time_zone(run);
	spec.registry = &fuzz_access;
	run->encoder = run->format->create_encoder(&spec);
	run->encoder->kind = ROW_INSERT;
}

/* What may raise an error; false, with the error at hand, if it did.  Memory goes to the context. */
static bool
attempt(Run *run, What what, MemoryContext context, const char *bytes, Size len, StringInfo written)
{
	sigjmp_buf *save = PG_exception_stack;
	sigjmp_buf	here;
	DecodeSettings settings;
	MemoryContext old = MemoryContextSwitchTo(context);
	const char *column = NULL;
	bool		good = false;

	decode_settings_enter(&settings, time_zone(run));
	if (sigsetjmp(here, 0) == 0)
	{
		PG_exception_stack = &here;
		switch (what)
		{
			case CREATE:
				create_decoder(run, run->nwanted, run->wanted, &run->decoder);
				break;
			case CREATE_MORE:
				create_decoder(run, run->nhalf, run->half, &run->half_decoder);
				if (run->table->round_trip)
					create_encoder(run);
				break;
			case DECODE:
				run->format->decode(run->is_half ? run->half_decoder : run->decoder, bytes, len, &run->sink);
				break;
			case HAS_ROW:
				(void) run->format->has_row(run->decoder, bytes, len);
				break;
			case TRUNCATES:
				run->truncates = run->format->truncates(run->decoder, bytes, len);
				break;
			case ENCODE:
				if (!run->format->encode(run->encoder, run->first_values, run->first_isnull, written, &column))
					written->len = -1;
				break;
		}
		good = true;
	}
	PG_exception_stack = save;
	decode_settings_leave(&settings);
	MemoryContextSwitchTo(old);
	return good;
}

/* Rows, or the error, as text in digest_context */
static char *
outcome(Run *run, const char *bytes, Size len, bool *good)
{
	MemoryContext old = MemoryContextSwitchTo(run->digest_context);

	run->digest = makeStringInfo();
	run->half_digest = makeStringInfo();
	MemoryContextSwitchTo(old);
	run->nrows = 0;
	run->ntruncates = 0;
	run->incomplete = false;
	clear_row(run);
	run->sink.values = run->values;
	run->sink.isnull = run->isnull;
	run->sink.missing = run->count_missing ? run->missing : NULL;
	run->sink.unchanged = NULL;
	run->sink.column = NULL;
	run->sink.emit = emit;
	run->sink.arg = run;
	fuzz_registry_again();
	*good = attempt(run, DECODE, run->message_context, bytes, len, NULL);
	if (*good && run->sink.column)
		shim_fail("column \"%s\" is still being converted", run->sink.column);
	if (!*good)
	{
		check_error(run, shim_error());
		old = MemoryContextSwitchTo(run->digest_context);
		appendStringInfo(run->digest, "%s %s (%s)", unpack_sql_state(shim_error()->sqlerrcode), shim_error()->message,
						 run->sink.column ? run->sink.column : "");
		MemoryContextSwitchTo(old);
		FlushErrorState();
	}
	return run->digest->data;
}

/* The same without the row kinds, which writing may change */
static const char *
columns_of(const char *digest)
{
	return digest + strcspn(digest, ":");
}

static char *
exact_copy(const char *bytes, Size len)
{
	char	   *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, bytes, len);
	return len > 0 ? copy : copy + 1;
}

static void
free_copy(char *copy, Size len)
{
	free(len > 0 ? copy : copy - 1);
}

/* What is written of the first row must read as the same row. */
static void
round_trip(Run *run, const char *digest)
{
	StringInfo	written;
	MemoryContext old = MemoryContextSwitchTo(run->digest_context);
	char	   *copy;
	bool		good;
	char	   *again;

	written = makeStringInfo();
	MemoryContextSwitchTo(old);
	if (!attempt(run, ENCODE, run->message_context, NULL, 0, written))
	{
		if (ERRCODE_TO_CATEGORY(shim_error()->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			check_error(run, shim_error());
		FlushErrorState();
		return;
	}
	if (written->len < 0)
		return;
	copy = exact_copy(written->data, written->len);
	again = outcome(run, copy, written->len, &good);
	free_copy(copy, written->len);
	if (strcmp(columns_of(digest), columns_of(again)) != 0)
		shim_fail("a row reads as\n%sand after it was written as\n%.*s\nas\n%s", digest, written->len, written->data, again);
}

/* A column has the same value whichever other columns are wanted. */
static void
decode_half(Run *run, const char *bytes, Size len, const char *half_digest)
{
	bool		good;

	run->is_half = true;
	run->half_decoder->lenient = run->decoder->lenient;
	(void) outcome(run, bytes, len, &good);
	run->is_half = false;
	if (!good || strcmp(half_digest, run->half_digest->data) != 0)
		shim_fail("half of the columns\n%s\nand alone\n%s", half_digest, good ? run->half_digest->data : run->digest->data);
}

static void
one_message(Run *run, const char *bytes, Size len)
{
	char	   *copy = exact_copy(bytes, len);
	char	   *digests[2];
	Size		held[2];
	bool		good = false;
	int			nrows = 0;
	int			ntruncates = 0;
	bool		incomplete = false;
	Datum		first_values[MAX_COLUMNS];
	bool		first_isnull[MAX_COLUMNS];
	char	   *half_digest = NULL;

	for (int i = 0; i < 2; i++)
	{
		/* as decode_run.c does it: leniently only what has failed */
		run->decoder->lenient = run->lenient && run->decoder->ignores_errors;
		digests[i] = outcome(run, copy, len, &good);
		if (!good && run->decoder->ignores_errors && !run->decoder->lenient)
		{
			run->decoder->lenient = true;
			digests[i] = outcome(run, copy, len, &good);
		}
		nrows = run->nrows;
		ntruncates = run->ntruncates;
		incomplete = run->incomplete;
		half_digest = run->half_digest->data;
		if (i == 0)
			MemoryContextReset(run->message_context);
		held[i] = shim_context_bytes(run->decoder_context);
	}
	if (strcmp(digests[0], digests[1]) != 0)
		shim_fail("once\n%s\nand then\n%s", digests[0], digests[1]);
	if (held[1] > held[0])
		shim_fail("the decoder keeps %zu bytes more of a message that it knows", held[1] - held[0]);
	if (good && run->half_decoder == NULL && !attempt(run, CREATE_MORE, run->decoder_context, NULL, 0, NULL))
		shim_fail("an encoder: %s", shim_error()->message);
	if (good)
	{
		memcpy(first_values, run->first_values, sizeof(first_values));
		memcpy(first_isnull, run->first_isnull, sizeof(first_isnull));
		decode_half(run, copy, len, half_digest);
		memcpy(run->first_values, first_values, sizeof(first_values));
		memcpy(run->first_isnull, first_isnull, sizeof(first_isnull));
	}
	run->decoder->lenient = false;
	if (good && nrows == 1 && run->encoder && !run->count_missing && !incomplete)
	{
		shim_limit_bytes(SIZE_MAX);
		round_trip(run, digests[1]);
		shim_limit_bytes(run->limit);
	}
	MemoryContextReset(run->message_context);
	if (run->format->has_row && !attempt(run, HAS_ROW, run->message_context, copy, len, NULL))
	{
		check_error(run, shim_error());
		FlushErrorState();
	}
	MemoryContextReset(run->message_context);
	if (!run->decoder->applies_truncate)
	{
		if (ntruncates > 0)
			shim_fail("a TRUNCATE that nobody wants");
	}
	else if (attempt(run, TRUNCATES, run->message_context, copy, len, NULL))
	{
		if (good && (ntruncates != (run->truncates ? 1 : 0) || (run->truncates && nrows != 1)))
			shim_fail("a message that %s a TRUNCATE is %d rows, %d of a TRUNCATE", run->truncates ? "is" : "is no", nrows, ntruncates);
	}
	else
	{
		check_error(run, shim_error());
		FlushErrorState();
	}
	MemoryContextReset(run->message_context);
	MemoryContextReset(run->digest_context);
	free_copy(copy, len);
}

/* === Inputs ================================================================= */

static const FuzzTable *
find_table(int n)
{
	for (int i = 0; i < fuzz_ntables; i++)
	{
		if (strcmp(fuzz_tables[i].format, format_name) == 0 && n-- == 0)
			return &fuzz_tables[i];
	}
	return NULL;
}

static void
add_option(Run *run, const char *name, const char *value)
{
	DefElem    *element = palloc0(sizeof(DefElem));

	element->type = T_DefElem;
	element->defname = unconstify(char *, name);
	element->arg = (Node *) value;
	run->options = lappend(run->options, element);
}

static void
set_up(Run *run, const FuzzTable *table, unsigned flags)
{
	memset(run, 0, sizeof(*run));
	run->table = table;
	run->format = format_lookup(strcmp(table->format, "avro-schema") == 0 ? "avro-confluent" :
								strcmp(table->format, "protobuf-schema") == 0 || strcmp(table->format, "protobuf-source") == 0 ?
								"protobuf-confluent" : table->format);
	if (run->format == NULL)
		shim_fail("there is no format \"%s\"", table->format);
	run->latin1 = (flags & FLAG_LATIN1) != 0;
	run->lenient = (flags & FLAG_LENIENT) != 0;
	run->count_missing = (flags & FLAG_MISSING) != 0;
	for (const FuzzColumn *c = table->columns; c->field; c++)
	{
		FormatColumn *column = &run->columns[run->ncolumns];

		if (run->ncolumns == MAX_COLUMNS)
			shim_fail("too many columns");
		column->index = run->ncolumns;
		column->position = run->ncolumns++;
		column->field = c->field;
		column->column = c->field;
		column->type = c->type;
		column->typmod = c->typmod;
		column->is_metadata = c->metadata;
		column->not_null = c->not_null;
		if (c->unwanted)
			continue;
		run->wanted[run->nwanted++] = *column;
		run->in_half[column->index] = column->index % 2 == ((flags & FLAG_ODD) != 0);
		if (run->in_half[column->index])
			run->half[run->nhalf++] = *column;
	}
	run->keys[0] = table->keys;
	run->decoder_context = AllocSetContextCreate(TopMemoryContext, "decoder", ALLOCSET_DEFAULT_SIZES);
	run->message_context = AllocSetContextCreate(TopMemoryContext, "message", ALLOCSET_DEFAULT_SIZES);
	run->digest_context = AllocSetContextCreate(TopMemoryContext, "digest", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(run->decoder_context);
	for (const char *const *option = table->options; option && *option; option += 2)
		add_option(run, option[0], option[1]);
	MemoryContextSwitchTo(TopMemoryContext);
}

static void
set_descriptor(Run *run, const char *bytes, Size len)
{
	MemoryContext old = MemoryContextSwitchTo(run->decoder_context);
	int			size = pg_b64_enc_len((int) len);
	char	   *text = palloc(size + 1);

	text[pg_b64_encode((const void *) bytes, (int) len, text, size)] = '\0';
	add_option(run, "descriptor", text);
	MemoryContextSwitchTo(old);
}

static void
tear_down(Run *run)
{
	MemoryContextDelete(run->decoder_context);
	MemoryContextDelete(run->message_context);
	MemoryContextDelete(run->digest_context);
	fuzz_registry_forget();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	format_name = getenv("FUZZ_FORMAT");
	while (format_name && find_table(nformat_tables))
		nformat_tables++;
	if (nformat_tables == 0)
	{
		fprintf(stderr, "FUZZ_FORMAT must name a format; these have tables:");
		for (int i = 0; i < fuzz_ntables; i++)
		{
			if (i == 0 || strcmp(fuzz_tables[i].format, fuzz_tables[i - 1].format) != 0)
				fprintf(stderr, " %s", fuzz_tables[i].format);
		}
		fprintf(stderr, "\n");
		exit(2);
	}
	fuzz_registry_init();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const FuzzTable *table;
	Run			run;
	const char *messages[MAX_MESSAGES];
	Size		lens[MAX_MESSAGES];
	int			nmessages = 0;
	int			nanswers = 0;
	const char *p = (const char *) bytes + 2;
	const char *end = (const char *) bytes + len;
	Size		blocks = shim_blocks();
	long		json_blocks = fuzz_json_blocks();
	bool		is_descriptor;
	bool		is_source;

	if (len < 2)
		return 0;
	table = find_table(bytes[0]);
	if (table == NULL)
		return 0;
	for (;;)
	{
		const char *next = memmem(p, end - p, SEPARATOR, strlen(SEPARATOR));

		messages[nmessages] = p;
		lens[nmessages++] = (next ? next : end) - p;
		if (next == NULL)
			break;
		if (nmessages == MAX_MESSAGES)
			return 0;
		p = next + strlen(SEPARATOR);
	}

	shim_stack_base();
	shim_encoding = bytes[1] & FLAG_LATIN1 ? PG_LATIN1 : PG_UTF8;
	set_up(&run, table, bytes[1]);
	run.limit = shim_bytes() + MEMORY_FIXED + MEMORY_PER_BYTE * len;
	shim_limit_bytes(run.limit);

	/* the last one is the message, with a frame; the others are answers, of the registry */
	is_source = strcmp(table->format, "protobuf-source") == 0;
	if (strcmp(table->format, "avro-schema") == 0 || is_source)
		nanswers = nmessages - 1;
	fuzz_registry_answers(nanswers, messages, lens, (bytes[1] & FLAG_SCHEMAS) == 0 ? NULL : is_source ? "PROTOBUF" : "AVRO");
	is_descriptor = strcmp(table->format, "protobuf-schema") == 0;
	if (is_descriptor)
	{
		set_descriptor(&run, messages[0], lens[0]);
		nanswers = 1;
	}

	if (attempt(&run, CREATE, run.decoder_context, NULL, 0, NULL))
	{
		for (int i = nanswers; i < nmessages; i++)
			one_message(&run, messages[i], lens[i]);
	}
	else if (is_descriptor && ERRCODE_TO_CATEGORY(shim_error()->sqlerrcode) == ERRCODE_FDW_ERROR)
	{
		check_texts(shim_error());
		FlushErrorState();
	}
	else
		shim_fail("table %d of format %s: %s %s", bytes[0], table->format,
				  unpack_sql_state(shim_error()->sqlerrcode), shim_error()->message);

	shim_limit_bytes(SIZE_MAX);
	tear_down(&run);
	if (CurrentMemoryContext != TopMemoryContext)
		shim_fail("the current memory context is another one");
	if (shim_blocks() != blocks)
		shim_fail("%zu blocks of memory are left", shim_blocks() - blocks);
	if (fuzz_json_blocks() != json_blocks)
		shim_fail("%ld blocks of jansson are left", fuzz_json_blocks() - json_blocks);
	return 0;
}
