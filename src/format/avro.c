/*
 * avro.c
 *	  Formats "avro" and "avro-confluent": one message is one Avro value, whose record's
 *	  fields are columns.
 *
 * "avro" is the bare value, written with the schema that the table has or is given.
 * "avro-confluent" names the writer's schema by its id in a registry.  Resolving a
 * schema against columns is avro_read.c's and avro_write.c's.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/avro_derive.h"
#include "format/avro_read.h"
#include "format/avro_text.h"
#include "format/avro_write.h"
#include "format/formats.h"
#include "port/pg_bswap.h"
#include "registry/registry.h"
#include "utils/memutils.h"

/* Confluent's wire format: byte 0x00, four bytes of schema id, most significant first */
#define FRAME_SIZE 5

/* Schemas that a decoder keeps programs for; beyond it, it begins anew. */
#define MAX_PROGRAMS 256

typedef struct AvroOptions
{
	const char *schema;
	const char *subject;
	const char *url;
	const char *empty_value;
	bool		legacy;
	bool		json;			/* encoding */
	ValueStyle	style;
} AvroOptions;

/* A schema of the registry, resolved against the columns */
typedef struct KnownSchema
{
	uint32		id;
	AvroProgram *program;
} KnownSchema;

typedef struct AvroDecoder
{
	Decoder		base;
	DecoderSpec spec;
	const char *empty_value;	/* error, delete or ignore */
	AvroProgram *program;		/* of "avro" */
	AvroText   *text;			/* of "avro" with encoding json */

	/* of "avro-confluent" */
	MemoryContext context;		/* of what follows */
	int			nknown;
	int			last;			/* the one that the last message had */
	KnownSchema *known;
} AvroDecoder;

typedef struct AvroEncoder
{
	Encoder		base;
	AvroRowWriter *writer;
	AvroText   *text;			/* encoding json */

	/* of "avro-confluent" */
	bool		framed;
	bool		registered;		/* id is known */
	uint32		id;
	const char *schema;
	const char *subject;
	const RegistryAccess *registry;
} AvroEncoder;

static const FormatOption avro_options[] = {
	{"schema", "text", "the Avro schema as JSON text; default: as Flink derives it from the columns"},
	{"encoding", "binary|json", "the bytes are Avro's binary encoding, or its JSON encoding"},
	{"timestamp_mapping_legacy", "bool", "timestamp columns are timestamp-millis as timestamptz columns are, instead of local-timestamp-millis"},
	TIME_UNIT_OPTION,
	{"nul_handling", "error|strip", "what NUL characters in text mean; PostgreSQL cannot store them"},
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{NULL}
};

static const FormatOption avro_confluent_options[] = {
	{"url", "text", "the registry, as in Flink's DDL; must be the server's registry_url"},
	{"subject", "text", "under which schemas are registered; default: the topic with -key or -value"},
	{"schema", "text", "the Avro schema to write with, as JSON text; default: as Flink derives it from the columns"},
	{"timestamp_mapping_legacy", "bool", "timestamp columns are timestamp-millis as timestamptz columns are, instead of local-timestamp-millis"},
	TIME_UNIT_OPTION,
	{"nul_handling", "error|strip", "what NUL characters in text mean; PostgreSQL cannot store them"},
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{NULL}
};

static void
read_options(List *options, AvroOptions *result)
{
	ListCell   *lc;

	memset(result, 0, sizeof(*result));
	result->legacy = true;
	result->empty_value = "error";
	value_style_parse(options, &result->style);
	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "schema") == 0)
			result->schema = defGetString(option);
		else if (strcmp(option->defname, "subject") == 0)
			result->subject = defGetString(option);
		else if (strcmp(option->defname, "url") == 0)
			result->url = defGetString(option);
		else if (strcmp(option->defname, "timestamp_mapping_legacy") == 0)
			result->legacy = defGetBoolean(option);
		else if (strcmp(option->defname, "encoding") == 0)
			result->json = strcmp(defGetString(option), "json") == 0;
		else if (strcmp(option->defname, "empty_value") == 0)
			result->empty_value = defGetString(option);
	}
}

static void
check_options(List *list, bool is_key)
{
	AvroOptions options;

	read_options(list, &options);
	if (is_key && strcmp(options.empty_value, "error") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"empty_value\" takes nothing but 'error' for keys"),
				 errhint("What a message without a row means is said by its value.")));
}

/* The schema of the option, or of the columns.  *text: its JSON, if it is wanted */
static AvroNode *
own_schema(const AvroOptions *options, int ncolumns, const FormatColumn *columns, const char **text)
{
	const char *json = options->schema ? options->schema : avro_derive_schema(ncolumns, columns, options->legacy);
	char	   *error;
	AvroNode   *schema = avro_schema_parse(1, &json, &error);

	if (schema == NULL)
		ereport(ERROR,
				(errcode(options->schema ? ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE : ERRCODE_FDW_INVALID_COLUMN_NAME),
				 options->schema ? errmsg("the option \"schema\" of the Avro format is no Avro schema")
				 : errmsg("the columns give no Avro schema"),
				 errdetail("%s.", error)));
	*text = json;
	return schema;
}

/* A registry that can be asked */
static void
check_registry(const RegistryAccess *access, const AvroOptions *options)
{
	if (!registry_available())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("upsert_kafka was built without libcurl, and cannot ask a schema registry"),
				 errhint("Install libcurl4-openssl-dev (or your system's package of that kind) and build again.")));
	if (access->url == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"registry_url\"", access->server_name),
				 errdetail("Format \"avro-confluent\" asks a schema registry, and which one is the server's to say."),
				 errhint("ALTER SERVER .. OPTIONS (ADD registry_url 'http://..').")));
	if (options->url && strncmp(options->url, access->url, strlen(access->url)) == 0 &&
		strspn(options->url + strlen(access->url), "/") == strlen(options->url + strlen(access->url)))
		return;
	if (options->url)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the option \"url\" of format \"avro-confluent\" is not the registry_url of server \"%s\"",
						access->server_name),
				 errdetail("Requests leave from the database server, so only the foreign server's owner says where they go."),
				 errhint("Leave the option out, or have \"registry_url\" of the server changed.")));
}

/* === Reading ================================================================ */

static Decoder *
avro_create(const DecoderSpec *spec)
{
	AvroDecoder *decoder = palloc0(sizeof(AvroDecoder));
	AvroOptions options;
	const char *text;
	AvroNode   *schema;

	read_options(spec->options, &options);
	schema = own_schema(&options, spec->nfields, spec->fields, &text);
	if (options.json)
		decoder->text = avro_text_create(schema, options.style.strip_nul);
	decoder->program = avro_program_create(schema, spec->ncolumns, styled_columns(spec->ncolumns, spec->columns, &options.style), spec->time_zone);
	decoder->empty_value = options.empty_value;
	return &decoder->base;
}

/* Is it a value of no bytes that the option empty_value gives a meaning? */
static bool
is_empty(const AvroDecoder *decoder, Size len, RowSink *sink)
{
	if (len > 0 || strcmp(decoder->empty_value, "error") == 0)
		return false;
	if (strcmp(decoder->empty_value, "delete") == 0)
		sink->emit(sink, ROW_DELETE);
	return true;
}

static void
avro_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	AvroDecoder *decoder = (AvroDecoder *) base;

	if (is_empty(decoder, len, sink))
		return;

	if (decoder->text)
	{
		StringInfoData binary;

		initStringInfo(&binary);
		avro_text_to_binary(decoder->text, bytes, len, &binary);
		avro_program_run(decoder->program, binary.data, binary.len, sink);
		pfree(binary.data);
	}
	else
		avro_program_run(decoder->program, bytes, len, sink);
	sink->emit(sink, ROW_UPSERT);
}

static Decoder *
confluent_create(const DecoderSpec *spec)
{
	AvroDecoder *decoder = palloc0(sizeof(AvroDecoder));
	AvroOptions options;

	read_options(spec->options, &options);
	check_registry(spec->registry, &options);
	decoder->spec = *spec;
	decoder->spec.columns = styled_columns(spec->ncolumns, spec->columns, &options.style);
	decoder->empty_value = options.empty_value;
	decoder->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka Avro schemas", ALLOCSET_DEFAULT_SIZES);
	decoder->last = -1;
	return &decoder->base;
}

/* Ask the registry; what fails leaves nothing behind. */
static AvroProgram *
program_of_id(AvroDecoder *decoder, uint32 id)
{
	const RegistrySchema *schema = registry_schema(decoder->spec.registry, id);
	MemoryContext context;
	MemoryContext old;
	AvroNode   *node;
	AvroProgram *program;
	char	   *error;

	if (strcmp(schema->type, "AVRO") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is of type %s, not AVRO", id, schema->type),
				 strcmp(schema->type, "JSON") == 0 ? errhint("Format \"json\" reads such messages with its option registry_framing 'strip'.") : 0));

	/* the current one is a batch's, and gone soon after an error */
	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka Avro schema", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	node = avro_schema_parse(schema->ntexts, schema->texts, &error);
	if (node == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is no Avro schema", id),
				 errdetail("%s.", error)));
	program = avro_program_create(node, decoder->spec.ncolumns, decoder->spec.columns, decoder->spec.time_zone);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, decoder->context);
	return program;
}

static AvroProgram *
known_program(AvroDecoder *decoder, uint32 id)
{
	AvroProgram *program;

	for (int i = 0; i < decoder->nknown; i++)
	{
		if (decoder->known[i].id == id)
		{
			decoder->last = i;
			return decoder->known[i].program;
		}
	}
	if (decoder->nknown == MAX_PROGRAMS)
	{
		decoder->nknown = 0;
		decoder->last = -1;
		decoder->known = NULL;
		MemoryContextReset(decoder->context);
	}
	program = program_of_id(decoder, id);
	if (decoder->known == NULL)
		decoder->known = MemoryContextAlloc(decoder->context, sizeof(KnownSchema) * MAX_PROGRAMS);
	decoder->known[decoder->nknown].id = id;
	decoder->known[decoder->nknown].program = program;
	decoder->last = decoder->nknown++;
	return program;
}

/* Also what is no frame at all: bare Avro, JSON text, an empty message (case G02) */
static uint32
frame_id(const char *bytes, Size len)
{
	uint32		id;

	if (len > 0 && bytes[0] != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("magic byte 0x00 expected, found 0x%02x", (unsigned char) bytes[0]),
				 bytes[0] == '{' ? errhint("The message looks like JSON text.") :
				 errhint("The message has no frame of a schema registry; bare Avro is format 'avro'.")));
	if (len < FRAME_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a frame of a schema registry has %d bytes, the message %zu", FRAME_SIZE, len)));
	memcpy(&id, bytes + 1, sizeof(id));
	return pg_ntoh32(id);
}

static void
confluent_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	AvroDecoder *decoder = (AvroDecoder *) base;
	uint32		id;
	AvroProgram *program;

	if (is_empty(decoder, len, sink))
		return;
	id = frame_id(bytes, len);
	if (likely(decoder->last >= 0 && decoder->known[decoder->last].id == id))
		program = decoder->known[decoder->last].program;
	else
		program = known_program(decoder, id);
	avro_program_run(program, bytes + FRAME_SIZE, len - FRAME_SIZE, sink);
	sink->emit(sink, ROW_UPSERT);
}

/* === Writing ================================================================ */

static AvroEncoder *
create_encoder(const EncoderSpec *spec, AvroOptions *options)
{
	AvroEncoder *encoder = palloc0(sizeof(AvroEncoder));
	AvroNode   *schema;

	read_options(spec->options, options);
	schema = own_schema(options, spec->ncolumns, spec->columns, &encoder->schema);
	encoder->writer = avro_row_writer_create(schema, spec->ncolumns,
											 styled_columns(spec->ncolumns, spec->columns, &options->style), spec->time_zone);
	if (options->json)
		encoder->text = avro_text_create(schema, false);
	return encoder;
}

static Encoder *
avro_create_encoder(const EncoderSpec *spec)
{
	AvroOptions options;

	return &create_encoder(spec, &options)->base;
}

static Encoder *
confluent_create_encoder(const EncoderSpec *spec)
{
	AvroOptions options;
	AvroEncoder *encoder = create_encoder(spec, &options);

	check_registry(spec->registry, &options);
	encoder->framed = true;
	encoder->registry = spec->registry;
	encoder->subject = options.subject ? options.subject : psprintf("%s-%s", spec->topic, spec->is_key ? "key" : "value");
	return &encoder->base;
}

static bool
avro_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	AvroEncoder *encoder = (AvroEncoder *) base;

	if (encoder->framed)
	{
		uint32		id;

		if (!encoder->registered)
		{
			encoder->id = registry_register(encoder->registry, encoder->subject, encoder->schema);
			encoder->registered = true;
		}
		id = pg_hton32(encoder->id);
		appendStringInfoChar(bytes, '\0');
		appendBinaryStringInfo(bytes, (const char *) &id, sizeof(id));
	}
	if (encoder->text)
	{
		StringInfoData binary;

		initStringInfo(&binary);
		avro_row_write(encoder->writer, values, isnull, &binary, column);
		avro_binary_to_text(encoder->text, binary.data, binary.len, bytes);
		pfree(binary.data);
	}
	else
		avro_row_write(encoder->writer, values, isnull, bytes, column);
	return true;
}

const FormatRoutine avro_format = {
	.name = "avro",
	.options = avro_options,
	.check_options = check_options,
	.create = avro_create,
	.decode = avro_decode,
	.create_encoder = avro_create_encoder,
	.encode = avro_encode
};

const FormatRoutine avro_confluent_format = {
	.name = "avro-confluent",
	.registry = true,
	.options = avro_confluent_options,
	.check_options = check_options,
	.create = confluent_create,
	.decode = confluent_decode,
	.create_encoder = confluent_create_encoder,
	.encode = avro_encode
};
