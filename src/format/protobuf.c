/*
 * protobuf.c
 *	  Format "protobuf": one message is one protobuf message, whose fields are columns.
 *
 * The message type comes from a descriptor in the table's options.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/formats.h"
#include "format/protobuf.h"
#include "utils/memutils.h"

typedef struct ProtoDecoder
{
	Decoder		base;
	ProtoReadOptions options;
	ProtoProgram *program;
	const char *empty_value;
} ProtoDecoder;

typedef struct ProtoEncoder
{
	Encoder		base;
	ProtoWriteOptions options;
	ProtoRowWriter *writer;
} ProtoEncoder;

static const FormatOption protobuf_options[] = {
	PROTO_OPTIONS,
	{"empty_value", "row|error|delete|ignore", "what a zero-length value means; row: a message that leaves everything out"},
	{NULL}
};

/* === Options, of "protobuf-confluent" as well =============================== */

void
proto_options_read(List *options, const char *prefix, ProtoOptions *result)
{
	ListCell   *lc;

	memset(result, 0, sizeof(*result));
	result->prefix = prefix;
	result->null_literal = "";
	result->empty_value = "row";
	value_style_parse(options, &result->style);
	result->schema_id = -1;
	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "descriptor") == 0)
			result->descriptor = defGetString(option);
		else if (strcmp(option->defname, "message") == 0)
			result->message = defGetString(option);
		else if (strcmp(option->defname, "read_default_values") == 0)
			result->read_defaults = defGetBoolean(option);
		else if (strcmp(option->defname, "write_null_string_literal") == 0)
			result->null_literal = defGetString(option);
		else if (strcmp(option->defname, "empty_value") == 0)
			result->empty_value = defGetString(option);
		else if (strcmp(option->defname, "url") == 0)
			result->url = defGetString(option);
		else if (strcmp(option->defname, "subject") == 0)
			result->subject = defGetString(option);
		else if (strcmp(option->defname, "schema") == 0)
			result->schema = defGetString(option);
		else if (strcmp(option->defname, "schema_id") == 0)
			result->schema_id = atoi(defGetString(option));
	}
}

void
proto_options_check_key(const ProtoOptions *options)
{
	if (strcmp(options->empty_value, "delete") == 0 || strcmp(options->empty_value, "ignore") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"%s_empty_value\" cannot be '%s'", options->prefix, options->empty_value),
				 errhint("What a message without a row means is said by its value.")));
}

void
proto_message_required(const ProtoOptions *options, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
			 errmsg("option \"%s_message\" is required", options->prefix),
			 why ? errdetail("%s", why) : 0,
			 errhint("It is the full name of the message type: package.Name.")));
	pg_unreachable();
}

ProtoSchema *
proto_own_schema(const ProtoOptions *options, const ProtoMessage **message)
{
	ProtoSchema *schema;
	char	   *text;

	if (options->descriptor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s_descriptor\" is required", options->prefix),
				 errhint("It is the output of protoc --include_imports --descriptor_set_out, in base64.")));
	schema = proto_schema_parse(options->descriptor, &text);
	if (schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s_descriptor\"", options->prefix),
				 errdetail("The descriptor cannot be used: %s.", text),
				 errhint("It is the output of protoc --include_imports --descriptor_set_out, in base64.")));
	*message = NULL;
	if (options->message == NULL)
		return schema;
	*message = proto_message_find(schema, options->message, &text);
	if (*message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s_message\": \"%s\"", options->prefix, options->message),
				 errdetail("The descriptor has no message type of that name."),
				 errhint("%s", text)));
	return schema;
}

void
proto_read_options_set(ProtoReadOptions *result, const DecoderSpec *spec, const ProtoOptions *options, const bool *lenient)
{
	result->time_zone = spec->time_zone;
	result->read_defaults = options->read_defaults;
	result->strip_nul = options->style.strip_nul;
	result->lenient = lenient;
}

void
proto_write_options_set(ProtoWriteOptions *result, const EncoderSpec *spec, const ProtoOptions *options)
{
	Size		len = strlen(options->null_literal);
	const char *utf8 = text_to_utf8(options->null_literal, &len);

	result->time_zone = spec->time_zone;
	result->style = options->style;
	result->null_literal = pnstrdup(utf8, len);
}

bool
proto_is_no_row(const char *empty_value, Size len, RowSink *sink)
{
	if (likely(len > 0) || strcmp(empty_value, "row") == 0)
		return false;
	if (strcmp(empty_value, "error") == 0)
		proto_raise("it is empty");
	if (strcmp(empty_value, "delete") == 0)
		sink->emit(sink, ROW_DELETE);
	return true;
}

/* === The format ============================================================= */

static const char *
prefix_of(bool is_key)
{
	return is_key ? "key_protobuf" : "value_protobuf";
}

/* The options' schema, which has a message type */
static void
read_schema(List *list, bool is_key, ProtoOptions *options, const ProtoMessage **message)
{
	proto_options_read(list, prefix_of(is_key), options);
	(void) proto_own_schema(options, message);
	if (*message == NULL)
		proto_message_required(options, NULL);
}

static void
protobuf_check_options(List *list, bool is_key)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka descriptor", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ProtoOptions options;
	const ProtoMessage *message;

	read_schema(list, is_key, &options, &message);
	if (is_key)
		proto_options_check_key(&options);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static Decoder *
protobuf_create(const DecoderSpec *spec)
{
	ProtoDecoder *decoder = palloc0(sizeof(ProtoDecoder));
	ProtoOptions options;
	const ProtoMessage *message;

	read_schema(spec->options, spec->is_key, &options, &message);
	decoder->base.ignores_errors = ignores_parse_errors(spec->options);
	proto_read_options_set(&decoder->options, spec, &options, &decoder->base.lenient);
	decoder->empty_value = options.empty_value;
	decoder->program = proto_program_create(message, spec->ncolumns, styled_columns(spec->ncolumns, spec->columns, &options.style),
											&decoder->options);
	return &decoder->base;
}

static void
protobuf_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	ProtoDecoder *decoder = (ProtoDecoder *) base;

	if (proto_is_no_row(decoder->empty_value, len, sink))
		return;
	proto_program_run(decoder->program, bytes, len, sink);
	sink->emit(sink, ROW_UPSERT);
}

static Encoder *
protobuf_create_encoder(const EncoderSpec *spec)
{
	ProtoEncoder *encoder = palloc0(sizeof(ProtoEncoder));
	ProtoOptions options;
	const ProtoMessage *message;

	read_schema(spec->options, spec->is_key, &options, &message);
	proto_write_options_set(&encoder->options, spec, &options);
	encoder->writer = proto_row_writer_create(message, spec->ncolumns, spec->columns, &encoder->options);
	return &encoder->base;
}

static bool
protobuf_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	ProtoEncoder *encoder = (ProtoEncoder *) base;

	proto_row_write(encoder->writer, values, isnull, bytes, column);
	return true;
}

const FormatRoutine protobuf_format = {
	.name = "protobuf",
	.options = protobuf_options,
	.check_options = protobuf_check_options,
	.create = protobuf_create,
	.decode = protobuf_decode,
	.create_encoder = protobuf_create_encoder,
	.encode = protobuf_encode
};
