/*
 * avro.c
 *	  Formats "avro" and "avro-confluent": one message is one Avro value, whose record's
 *	  fields are columns.
 *
 * "avro" is the bare value, written with the schema that the table has or is given.
 * "avro-confluent" names the writer's schema by its id in a registry (avro_confluent.c).
 * Resolving a schema against columns is avro_read.c's and avro_write.c's.
 */
#include "postgres.h"

#include "format/avro_confluent.h"
#include "format/avro_derive.h"
#include "format/avro_program.h"
#include "format/avro_text.h"
#include "format/avro_write.h"
#include "format/formats.h"

typedef struct AvroDecoder
{
	Decoder		base;
	DecoderSpec spec;
	const AvroNode *own;		/* the option's schema, NULL: none */
	const char *empty_value;	/* error, delete or ignore */
	AvroProgram *program;		/* of "avro" */
	AvroText   *text;			/* of "avro" with encoding json */
	AvroFrames *frames;			/* of "avro-confluent" */
} AvroDecoder;

typedef struct AvroEncoder
{
	Encoder		base;
	AvroRowWriter *writer;
	AvroText   *text;			/* encoding json */
	bool		framed;			/* "avro-confluent" */
	AvroFrameWriter frame;
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
	AVRO_URL_OPTION,
	AVRO_SUBJECT_OPTION,
	{"schema", "text", "the Avro schema to write with, as JSON text, whose defaults and aliases count when reading; default: as Flink derives it from the columns"},
	{"timestamp_mapping_legacy", "bool", "timestamp columns are timestamp-millis as timestamptz columns are, instead of local-timestamp-millis"},
	TIME_UNIT_OPTION,
	{"nul_handling", "error|strip", "what NUL characters in text mean; PostgreSQL cannot store them"},
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{NULL}
};

static void
check_options(List *list, bool is_key)
{
	AvroOptions options;

	avro_read_options(list, &options);
	if (is_key && strcmp(options.empty_value, "error") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"empty_value\" takes nothing but 'error' for keys"),
				 errhint("What a message without a row means is said by its value.")));
}

/* The schema of the option, or of the columns.  *text: its JSON */
static AvroNode *
own_schema(const AvroOptions *options, int ncolumns, const FormatColumn *columns, const char **text)
{
	*text = options->schema ? options->schema : avro_derive_schema(ncolumns, columns, options->legacy);
	return avro_own_schema(options, *text);
}

/* === Reading ================================================================ */

static Decoder *
avro_create(const DecoderSpec *spec)
{
	AvroDecoder *decoder = palloc0(sizeof(AvroDecoder));
	AvroOptions options;
	const char *text;
	AvroNode   *schema;

	avro_read_options(spec->options, &options);
	schema = own_schema(&options, spec->nfields, spec->fields, &text);
	if (options.json)
		decoder->text = avro_text_create(schema, options.style.strip_nul);
	decoder->program = avro_program_create(schema, NULL, spec->ncolumns, styled_columns(spec->ncolumns, spec->columns, &options.style), spec->time_zone);
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

static void *
program_of_schema(const AvroNode *schema, void *arg)
{
	const AvroDecoder *decoder = arg;

	return avro_program_create(schema, decoder->own, decoder->spec.ncolumns, decoder->spec.columns, decoder->spec.time_zone);
}

static Decoder *
confluent_create(const DecoderSpec *spec)
{
	AvroDecoder *decoder = palloc0(sizeof(AvroDecoder));
	AvroOptions options;

	avro_read_options(spec->options, &options);
	avro_check_registry("avro-confluent", spec->registry, &options);
	decoder->spec = *spec;
	decoder->spec.columns = styled_columns(spec->ncolumns, spec->columns, &options.style);
	decoder->empty_value = options.empty_value;
	if (options.schema)
		decoder->own = avro_own_schema(&options, options.schema);
	decoder->frames = avro_frames_create(spec->registry, program_of_schema, decoder);
	return &decoder->base;
}

static void
confluent_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	AvroDecoder *decoder = (AvroDecoder *) base;
	AvroProgram *program;

	if (is_empty(decoder, len, sink))
		return;
	program = avro_frames_find(decoder->frames, &bytes, &len);
	avro_program_run(program, bytes, len, sink);
	sink->emit(sink, ROW_UPSERT);
}

/* === Writing ================================================================ */

static AvroEncoder *
create_encoder(const EncoderSpec *spec, AvroOptions *options, const char **text)
{
	AvroEncoder *encoder = palloc0(sizeof(AvroEncoder));
	AvroNode   *schema;

	avro_read_options(spec->options, options);
	schema = own_schema(options, spec->ncolumns, spec->columns, text);
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
	const char *text;

	return &create_encoder(spec, &options, &text)->base;
}

static Encoder *
confluent_create_encoder(const EncoderSpec *spec)
{
	AvroOptions options;
	const char *text;
	AvroEncoder *encoder = create_encoder(spec, &options, &text);

	avro_check_registry("avro-confluent", spec->registry, &options);
	encoder->framed = true;
	avro_frame_writer_init(&encoder->frame, spec, &options, text);
	return &encoder->base;
}

static bool
avro_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	AvroEncoder *encoder = (AvroEncoder *) base;

	if (encoder->framed)
		avro_frame_put(&encoder->frame, bytes);
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
