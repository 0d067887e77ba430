/*
 * protobuf.c
 *	  Formats "protobuf" and "protobuf-confluent": one message is one protobuf message, whose
 *	  fields are columns.
 *
 * The message type comes from a descriptor in the table's options.  "protobuf-confluent" has
 * a frame in front that names a schema of a registry and the message's type within it.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/formats.h"
#include "format/lenient.h"
#include "format/proto_read.h"
#include "format/proto_write.h"
#include "format/value_output.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "registry/registry.h"
#include "utils/memutils.h"

/* Confluent's wire format: byte 0x00, four bytes of schema id, most significant first */
#define FRAME_SIZE 5

/* Types within types; nobody nests them deeper. */
#define MAX_PATH 32

typedef struct ProtoOptions
{
	const char *descriptor;
	const char *message;
	bool		read_defaults;
	const char *null_literal;
	const char *empty_value;
	ValueStyle	style;

	/* of "protobuf-confluent" */
	const char *url;
	const char *subject;
	const char *schema;
	int			schema_id;		/* -1: not given */
} ProtoOptions;

/* Where a type stands in its file: the number of the outermost one, of one in that .. */
typedef struct TypePath
{
	int			n;
	int			index[MAX_PATH];
} TypePath;

/* A type that messages named */
typedef struct KnownType
{
	const ProtoMessage *message;
	ProtoProgram *program;
} KnownType;

typedef struct ProtoDecoder
{
	Decoder		base;
	ProtoReadOptions options;
	ProtoSchema *schema;
	const ProtoMessage *message;	/* NULL: each message's frame says */
	ProtoProgram *program;
	const char *empty_value;	/* row, error, delete or ignore */

	/* of "protobuf-confluent" */
	const ProtoFile *file;		/* whose types frames count */
	DecoderSpec spec;
	MemoryContext context;
	int			nknown;
	KnownType  *known;
} ProtoDecoder;

typedef struct ProtoEncoder
{
	Encoder		base;
	ProtoWriteOptions options;
	ProtoRowWriter *writer;

	/* of "protobuf-confluent" */
	bool		framed;
	bool		registered;		/* id is known */
	uint32		id;
	TypePath	path;
	const char *schema;
	const char *subject;
	const RegistryAccess *registry;
} ProtoEncoder;

#define PROTO_OPTIONS \
	{"descriptor", "text", "a FileDescriptorSet in base64, as protoc --include_imports --descriptor_set_out writes it"}, \
	{"message", "text", "the full name of the message type in the descriptor; Flink's Java class name does as well", "message_class_name"}, \
	IGNORE_PARSE_ERRORS_OPTION, \
	{"read_default_values", "bool", "fields that are left out have their default instead of NULL, also where absence can be told"}, \
	{"write_null_string_literal", "text", "what is written for a NULL within an array or a map of texts"}, \
	TIME_UNIT_OPTION, \
	{"nul_handling", "error|strip", "what NUL characters in text mean; PostgreSQL cannot store them"}

static const FormatOption protobuf_options[] = {
	PROTO_OPTIONS,
	{"empty_value", "row|error|delete|ignore", "what a zero-length value means; row: a message that leaves everything out"},
	{NULL}
};

static const FormatOption protobuf_confluent_options[] = {
	PROTO_OPTIONS,
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{"url", "text", "the registry; must be the server's registry_url"},
	{"subject", "text", "under which the schema is found or registered when writing; default: the topic with -key or -value"},
	{"schema", "text", "the .proto source to register when writing; default: the subject's latest schema is named"},
	{"schema_id", "int", "the schema's id in the registry to write, which then is not asked"},
	{NULL}
};

static void
read_options(List *options, ProtoOptions *result)
{
	ListCell   *lc;

	memset(result, 0, sizeof(*result));
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

/* === The schema ============================================================= */

/* The file of a descriptor that no other one imports; NULL if there are several */
static const ProtoFile *
outer_file(const ProtoSchema *schema)
{
	const ProtoFile *result = NULL;

	for (int i = 0; i < schema->nfiles; i++)
	{
		if (schema->files[i].imported)
			continue;
		if (result)
			return NULL;
		result = &schema->files[i];
	}
	return result;
}

/*
 * The schema of the options and the message type in it, all checked.  'prefix' begins the
 * options' names.  *message: NULL where it may be left out and is.
 */
static ProtoSchema *
own_schema(const ProtoOptions *options, const char *prefix, bool framed, const ProtoMessage **message)
{
	ProtoSchema *schema;
	char	   *text;

	if (options->descriptor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s_descriptor\" is required", prefix),
				 errhint("It is the output of protoc --include_imports --descriptor_set_out, in base64.")));
	schema = proto_schema_parse(options->descriptor, &text);
	if (schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s_descriptor\"", prefix),
				 errdetail("The descriptor cannot be used: %s.", text),
				 errhint("It is the output of protoc --include_imports --descriptor_set_out, in base64.")));
	*message = NULL;
	if (options->message)
	{
		*message = proto_message_find(schema, options->message, &text);
		if (*message == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("invalid value for option \"%s_message\": \"%s\"", prefix, options->message),
					 errdetail("The descriptor has no message type of that name."),
					 errhint("%s", text)));
	}
	else if (!framed || outer_file(schema) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s_message\" is required", prefix),
				 framed ? errdetail("Several files of the descriptor are imported by no other one, so messages do not tell their type.") : 0,
				 errhint("It is the full name of the message type: package.Name.")));
	return schema;
}

static const char *
option_prefix(bool is_key, bool framed)
{
	return framed ? (is_key ? "key_protobuf_confluent" : "value_protobuf_confluent") :
		(is_key ? "key_protobuf" : "value_protobuf");
}

static void
check_options(List *list, bool is_key, bool framed)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka descriptor", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	const char *prefix = option_prefix(is_key, framed);
	ProtoOptions options;
	const ProtoMessage *message;

	read_options(list, &options);
	(void) own_schema(&options, prefix, framed, &message);
	for (ListCell *lc = list_head(list); lc; lc = lnext(list, lc))
	{
		if (strcmp(((DefElem *) lfirst(lc))->defname, "schema_id") == 0 && options.schema_id < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("invalid value for option \"%s_schema_id\": \"%d\"", prefix, options.schema_id),
					 errhint("A registry counts its schemas from 1.")));
	}
	if (is_key && (strcmp(options.empty_value, "delete") == 0 || strcmp(options.empty_value, "ignore") == 0))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"%s_empty_value\" cannot be '%s'", prefix, options.empty_value),
				 errhint("What a message without a row means is said by its value.")));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
protobuf_check_options(List *options, bool is_key)
{
	check_options(options, is_key, false);
}

static void
confluent_check_options(List *options, bool is_key)
{
	check_options(options, is_key, true);
}

/* === Reading ================================================================ */

static ProtoDecoder *
create_decoder(const DecoderSpec *spec, bool framed)
{
	ProtoDecoder *decoder = palloc0(sizeof(ProtoDecoder));
	ProtoOptions options;

	read_options(spec->options, &options);
	decoder->base.ignores_errors = ignores_parse_errors(spec->options);
	decoder->options.time_zone = spec->time_zone;
	decoder->options.read_defaults = options.read_defaults;
	decoder->options.strip_nul = options.style.strip_nul;
	decoder->empty_value = options.empty_value;
	decoder->options.lenient = &decoder->base.lenient;
	decoder->schema = own_schema(&options, option_prefix(spec->is_key, framed), framed, &decoder->message);
	if (decoder->message)
		decoder->program = proto_program_create(decoder->message, spec->ncolumns,
												styled_columns(spec->ncolumns, spec->columns, &options.style), &decoder->options);
	return decoder;
}

static Decoder *
protobuf_create(const DecoderSpec *spec)
{
	return &create_decoder(spec, false)->base;
}

/* Is it a value of no bytes that the option empty_value says is no row? */
static bool
is_no_row(const ProtoDecoder *decoder, Size len, RowSink *sink)
{
	if (likely(len > 0) || strcmp(decoder->empty_value, "row") == 0)
		return false;
	if (strcmp(decoder->empty_value, "error") == 0)
		proto_raise("it is empty");
	if (strcmp(decoder->empty_value, "delete") == 0)
		sink->emit(sink, ROW_DELETE);
	return true;
}

static void
protobuf_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	ProtoDecoder *decoder = (ProtoDecoder *) base;

	if (is_no_row(decoder, len, sink))
		return;
	proto_program_run(decoder->program, bytes, len, sink);
	sink->emit(sink, ROW_UPSERT);
}

/* A column that no type of the file has a field for is a mistake. */
static void
check_columns(const ProtoDecoder *decoder, const DecoderSpec *spec)
{
	for (int i = 0; i < spec->ncolumns; i++)
	{
		bool		found = false;

		for (int j = 0; j < decoder->schema->nmessages && !found; j++)
		{
			const ProtoMessage *message = decoder->schema->messages[j];

			found = &decoder->schema->files[message->file] == decoder->file &&
				proto_field_by_name(message, spec->columns[i].field, false) != NULL;
		}
		if (!found)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("no message type of \"%s\" has a field \"%s\" for column \"%s\"", decoder->file->name,
							spec->columns[i].field, spec->columns[i].column)));
	}
}

static Decoder *
confluent_create(const DecoderSpec *spec)
{
	ProtoDecoder *decoder = create_decoder(spec, true);
	ProtoOptions options;

	read_options(spec->options, &options);
	decoder->spec = *spec;
	decoder->spec.columns = styled_columns(spec->ncolumns, spec->columns, &options.style);
	decoder->context = CurrentMemoryContext;
	if (decoder->message)
		decoder->file = &decoder->schema->files[decoder->message->file];
	else
	{
		decoder->file = outer_file(decoder->schema);
		decoder->options.any_type = true;
		check_columns(decoder, spec);
	}
	return &decoder->base;
}

/* The frame in front of a message, which 'in' is left at */
static void
read_frame(ProtoInput *in, TypePath *path)
{
	uint64		number;

	if (in->p < in->end && *in->p != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("magic byte 0x00 expected, found 0x%02x", (unsigned char) *in->p),
				 errhint("The message has no frame of a schema registry; bare protobuf is format 'protobuf'.")));
	if (in->end - in->p <= FRAME_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a frame of a schema registry has at least %d bytes, the message %d", FRAME_SIZE + 1, (int) (in->end - in->p))));
	in->p += FRAME_SIZE;
	path->n = 1;
	path->index[0] = 0;
	if (*in->p == '\0')
	{
		/* short for the file's first type */
		in->p++;
		return;
	}
	if (!proto_read_varint(in, &number))
		proto_raise(in->error);
	if ((number & 1) != 0 || number >> 1 > MAX_PATH)
		proto_raise("the frame has no indexes of a message type");
	path->n = (int) (number >> 1);
	for (int i = 0; i < path->n; i++)
	{
		if (!proto_read_varint(in, &number))
			proto_raise(in->error);
		if ((number & 1) != 0 || number >> 1 > PG_INT32_MAX)
			proto_raise("the frame has no indexes of a message type");
		path->index[i] = (int) (number >> 1);
	}
}

/* NULL: the file has no such type */
static const ProtoMessage *
type_of_path(const ProtoFile *file, const TypePath *path)
{
	const ProtoMessage *message;

	if (path->index[0] >= file->nmessages)
		return NULL;
	message = file->messages[path->index[0]];
	for (int i = 1; i < path->n; i++)
	{
		if (path->index[i] >= message->nnested)
			return NULL;
		message = message->nested[path->index[i]];
	}
	return message;
}

static char *
path_text(const TypePath *path)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < path->n; i++)
		appendStringInfo(&text, "%s%d", i > 0 ? "," : "", path->index[i]);
	return text.data;
}

static ProtoProgram *
program_of_type(ProtoDecoder *decoder, const ProtoMessage *message)
{
	MemoryContext context;
	MemoryContext old;
	ProtoProgram *program;

	for (int i = 0; i < decoder->nknown; i++)
	{
		if (decoder->known[i].message == message)
			return decoder->known[i].program;
	}
	if (decoder->known == NULL)
		decoder->known = MemoryContextAlloc(decoder->context, sizeof(KnownType) * decoder->schema->nmessages);

	/* the message's until it is whole, so that columns which do not fit leave nothing behind */
	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka protobuf type", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	program = proto_program_create(message, decoder->spec.ncolumns, decoder->spec.columns, &decoder->options);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, decoder->context);
	decoder->known[decoder->nknown].message = message;
	decoder->known[decoder->nknown++].program = program;
	return program;
}

static void
confluent_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	ProtoDecoder *decoder = (ProtoDecoder *) base;
	ProtoInput	in = {bytes, bytes + len, NULL};
	TypePath	path;
	const ProtoMessage *message;
	ProtoProgram *program = decoder->program;

	if (is_no_row(decoder, len, sink))
		return;
	read_frame(&in, &path);
	message = type_of_path(decoder->file, &path);
	if (decoder->message == NULL)
	{
		if (message == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("the descriptor's file \"%s\" has no message type of index %s", decoder->file->name, path_text(&path)),
					 errhint("The message was written with another schema.")));
		program = program_of_type(decoder, message);
	}
	else if (message && message != decoder->message)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("the message is of type \"%s\" (index %s of \"%s\"), not \"%s\"", message->name, path_text(&path),
						decoder->file->name, decoder->message->name)));
	proto_program_run(program, in.p, in.end - in.p, sink);
	sink->emit(sink, ROW_UPSERT);
}

/* === Writing ================================================================ */

static ProtoEncoder *
create_encoder(const EncoderSpec *spec, ProtoOptions *options, bool framed, ProtoSchema **schema, const ProtoMessage **message)
{
	ProtoEncoder *encoder = palloc0(sizeof(ProtoEncoder));
	Size		len;

	read_options(spec->options, options);
	*schema = own_schema(options, option_prefix(spec->is_key, framed), framed, message);
	if (*message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s_message\" is required for writing", option_prefix(spec->is_key, framed)),
				 errhint("It is the full name of the message type: package.Name.")));
	len = strlen(options->null_literal);
	encoder->options.time_zone = spec->time_zone;
	encoder->options.style = options->style;
	encoder->options.null_literal = pnstrdup(text_to_utf8(options->null_literal, &len), len);
	encoder->writer = proto_row_writer_create(*message, spec->ncolumns, spec->columns, &encoder->options);
	return encoder;
}

static Encoder *
protobuf_create_encoder(const EncoderSpec *spec)
{
	ProtoOptions options;
	ProtoSchema *schema;
	const ProtoMessage *message;

	return &create_encoder(spec, &options, false, &schema, &message)->base;
}

/* Where a type is among those of a file or of another type; false: nowhere */
static bool
find_path(const ProtoMessage *const *types, int n, const ProtoMessage *message, TypePath *path, int depth)
{
	for (int i = 0; i < n && depth < MAX_PATH; i++)
	{
		path->index[depth] = i;
		path->n = depth + 1;
		if (types[i] == message || find_path(types[i]->nested, types[i]->nnested, message, path, depth + 1))
			return true;
	}
	return false;
}

/* A registry that can be asked */
static void
check_registry(const RegistryAccess *access, const ProtoOptions *options)
{
	Size		len;

	if (options->schema_id >= 0)
		return;
	if (!registry_available())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("upsert_kafka was built without libcurl, and cannot ask a schema registry"),
				 errhint("Install libcurl4-openssl-dev (or your system's package of that kind) and build again, or give the schema's number as \"schema_id\".")));
	if (access->url == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"registry_url\"", access->server_name),
				 errdetail("Format \"protobuf-confluent\" asks a schema registry when it writes, and which one is the server's to say."),
				 errhint("ALTER SERVER .. OPTIONS (ADD registry_url 'http://..'), or give the schema's number as \"schema_id\".")));
	len = strlen(access->url);
	if (options->url && (strncmp(options->url, access->url, len) != 0 || options->url[len + strspn(options->url + len, "/")] != '\0'))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the option \"url\" of format \"protobuf-confluent\" is not the registry_url of server \"%s\"",
						access->server_name),
				 errdetail("Requests leave from the database server, so only the foreign server's owner says where they go."),
				 errhint("Leave the option out, or have \"registry_url\" of the server changed.")));
}

static Encoder *
confluent_create_encoder(const EncoderSpec *spec)
{
	ProtoOptions options;
	ProtoSchema *schema;
	const ProtoMessage *message;
	ProtoEncoder *encoder = create_encoder(spec, &options, true, &schema, &message);
	const ProtoFile *file = &schema->files[message->file];

	check_registry(spec->registry, &options);
	if (!find_path(file->messages, file->nmessages, message, &encoder->path, 0))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("message type \"%s\" is nested too deeply for a frame", message->name)));
	encoder->framed = true;
	encoder->registry = spec->registry;
	encoder->schema = options.schema;
	encoder->subject = encoder_subject(spec, options.subject);
	encoder->registered = options.schema_id >= 0;
	encoder->id = (uint32) options.schema_id;
	return &encoder->base;
}

static void
put_index(StringInfo bytes, uint32 index)
{
	uint64		zigzag = (uint64) index << 1;

	for (; zigzag > 0x7f; zigzag >>= 7)
		appendStringInfoChar(bytes, (char) (zigzag | 0x80));
	appendStringInfoChar(bytes, (char) zigzag);
}

static void
put_frame(ProtoEncoder *encoder, StringInfo bytes)
{
	const TypePath *path = &encoder->path;
	uint32		id;

	if (!encoder->registered)
	{
		encoder_subject_require(encoder->subject);
		encoder->id = encoder->schema ? registry_register_as(encoder->registry, encoder->subject, "PROTOBUF", encoder->schema)
			: registry_latest(encoder->registry, encoder->subject, "PROTOBUF");
		encoder->registered = true;
	}
	id = pg_hton32(encoder->id);
	appendStringInfoChar(bytes, '\0');
	appendBinaryStringInfo(bytes, (const char *) &id, sizeof(id));
	if (path->n == 1 && path->index[0] == 0)
	{
		appendStringInfoChar(bytes, '\0');
		return;
	}
	put_index(bytes, path->n);
	for (int i = 0; i < path->n; i++)
		put_index(bytes, path->index[i]);
}

static bool
protobuf_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	ProtoEncoder *encoder = (ProtoEncoder *) base;

	if (encoder->framed)
		put_frame(encoder, bytes);
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

const FormatRoutine protobuf_confluent_format = {
	.name = "protobuf-confluent",
	.registry = true,
	.options = protobuf_confluent_options,
	.check_options = confluent_check_options,
	.create = confluent_create,
	.decode = confluent_decode,
	.create_encoder = confluent_create_encoder,
	.encode = protobuf_encode
};
