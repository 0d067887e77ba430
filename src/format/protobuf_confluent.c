/*
 * protobuf_confluent.c
 *	  Format "protobuf-confluent": protobuf messages with Confluent's frame in front, which
 *	  names a schema of a registry and the message's type within it.
 *
 * With a descriptor in the table's options reading asks no registry: fields go by their
 * numbers.  Without one the schema is what the registry says.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/formats.h"
#include "format/proto_output.h"
#include "format/proto_registry.h"
#include "format/protobuf.h"
#include "format/registry_frames.h"
#include "utils/memutils.h"

/* Types within types; nobody nests them deeper. */
#define MAX_PATH 32

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

/* A schema, the descriptor's or one of the registry's */
typedef struct FramedSchema
{
	uint32		id;				/* of the registry's */
	const ProtoSchema *schema;
	const ProtoFile *file;		/* whose types frames count */
	const ProtoMessage *message;	/* NULL: each message's frame says */
	MemoryContext context;		/* of the programs */
	int			nknown;
	KnownType  *known;
} FramedSchema;

typedef struct FramedDecoder
{
	Decoder		base;
	ProtoReadOptions options;
	const char *empty_value;
	const char *message_name;	/* option; NULL: left out */
	int			ncolumns;
	const FormatColumn *columns;
	FramedSchema *own;			/* of the descriptor; NULL: the registry's */
	SchemaFrames *frames;
} FramedDecoder;

typedef struct FramedEncoder
{
	Encoder		base;
	ProtoWriteOptions options;
	const char *message_name;
	int			ncolumns;
	const FormatColumn *columns;
	ProtoSchema *own;			/* of the descriptor; NULL: the registry's */
	const ProtoFile *file;
	ProtoRowWriter *writer;		/* NULL: made when the schema is known */
	TypePath	path;
	bool		registered;		/* id is known */
	uint32		id;
	const char *schema;			/* option */
	const char *subject;
	const RegistryAccess *registry;
	MemoryContext context;
} FramedEncoder;

static const FormatOption protobuf_confluent_options[] = {
	PROTO_OPTIONS,
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{"url", "text", "the registry; must be the server's registry_url"},
	{"subject", "text", "under which the schema is found or registered when writing; default: the topic with -key or -value"},
	{"schema", "text", "the .proto source to register when writing, or 'descriptor': the descriptor's own file; default: the subject's latest schema is named"},
	{"schema_id", "int", "the schema's id in the registry to write, which then is not asked"},
	{NULL}
};

#define WITHOUT_REGISTRY ", or give the schema's number as \"schema_id\""

/* === Options ================================================================ */

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

/* NULL: there is no descriptor.  Whose types frames count is *file. */
static ProtoSchema *
read_schema(const ProtoOptions *options, const ProtoMessage **message, const ProtoFile **file)
{
	ProtoSchema *schema;

	*message = NULL;
	*file = NULL;
	if (options->descriptor == NULL)
		return NULL;
	schema = proto_own_schema(options, message);
	*file = *message ? &schema->files[(*message)->file] : outer_file(schema);
	if (*file == NULL)
		proto_message_required(options, "Several files of the descriptor are imported by no other one, so messages do not tell their type.");
	return schema;
}

static const char *
prefix_of(bool is_key)
{
	return is_key ? "key_protobuf_confluent" : "value_protobuf_confluent";
}

static void
confluent_check_options(List *list, bool is_key)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka descriptor", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ProtoOptions options;
	const ProtoMessage *message;
	const ProtoFile *file;

	proto_options_read(list, prefix_of(is_key), &options);
	(void) read_schema(&options, &message, &file);
	for (ListCell *lc = list_head(list); lc; lc = lnext(list, lc))
	{
		if (strcmp(((DefElem *) lfirst(lc))->defname, "schema_id") == 0 && options.schema_id < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("invalid value for option \"%s_schema_id\": \"%d\"", options.prefix, options.schema_id),
					 errhint("A registry counts its schemas from 1.")));
	}
	if (options.schema && strcmp(options.schema, "descriptor") == 0 && options.descriptor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"%s_schema\" cannot be 'descriptor' without a descriptor", options.prefix)));
	if (is_key)
		proto_options_check_key(&options);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* === Types of frames ======================================================== */

/*
 * The n'th type of some; without_entries: the entries of maps, which are types as well, are
 * not counted.
 */
static const ProtoMessage *
nth_type(const ProtoMessage *const *types, int ntypes, int n, bool without_entries)
{
	for (int i = 0; i < ntypes; i++)
	{
		if (!(without_entries && types[i]->map_entry) && n-- == 0)
			return types[i];
	}
	return NULL;
}

static const ProtoMessage *
follow_path(const ProtoFile *file, const TypePath *path, bool without_entries)
{
	const ProtoMessage *message = nth_type(file->messages, file->nmessages, path->index[0], without_entries);

	for (int i = 1; message && i < path->n; i++)
		message = nth_type(message->nested, message->nnested, path->index[i], without_entries);
	return message;
}

/*
 * The type that a frame means; NULL: the file has no such type.  Java's serializer, which
 * knows sources, counts the types that are written there; others count what descriptors have,
 * where a map is a type, too.  'wanted' is it if either way leads there.
 */
static const ProtoMessage *
type_of_path(const ProtoFile *file, const TypePath *path, const ProtoMessage *wanted)
{
	const ProtoMessage *of_descriptor = follow_path(file, path, false);
	const ProtoMessage *of_source = path->n > 1 ? follow_path(file, path, true) : of_descriptor;

	if (of_descriptor == NULL || of_descriptor->map_entry || (wanted && of_source == wanted))
		return of_source;
	return of_descriptor;
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

static char *
path_text(const TypePath *path)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < path->n; i++)
		appendStringInfo(&text, "%s%d", i > 0 ? "," : "", path->index[i]);
	return text.data;
}

/* The frame in front of a message, which 'in' is left at */
static uint32
read_frame(ProtoInput *in, TypePath *path)
{
	Size		len = in->end - in->p;
	uint32		id = registry_frame_take(&in->p, &len, 1, "bare protobuf is format 'protobuf'");
	uint64		number;

	path->n = 1;
	path->index[0] = 0;
	if (*in->p == '\0')
	{
		/* short for the file's first type */
		in->p++;
		return id;
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
	return id;
}

static void
put_frame(StringInfo bytes, uint32 id, const TypePath *path)
{
	registry_frame_put(bytes, id);
	if (path->n == 1 && path->index[0] == 0)
	{
		appendStringInfoChar(bytes, '\0');
		return;
	}
	/* zigzag of numbers that are not negative */
	proto_put_varint(bytes, (uint64) path->n << 1);
	for (int i = 0; i < path->n; i++)
		proto_put_varint(bytes, (uint64) path->index[i] << 1);
}

/* === Reading ================================================================ */

/* A column that no type of the file has a field for is a mistake. */
static void
check_columns(const FramedSchema *schema, int ncolumns, const FormatColumn *columns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		bool		found = false;

		for (int j = 0; j < schema->schema->nmessages && !found; j++)
		{
			const ProtoMessage *message = schema->schema->messages[j];

			found = &schema->schema->files[message->file] == schema->file &&
				proto_field_by_name(message, columns[i].field, false) != NULL;
		}
		if (!found)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("no message type of \"%s\" has a field \"%s\" for column \"%s\"", schema->file->name,
							columns[i].field, columns[i].column)));
	}
}

static FramedSchema *
new_schema(const ProtoSchema *schema, const ProtoFile *file, const ProtoMessage *message)
{
	FramedSchema *result = palloc0(sizeof(FramedSchema));

	result->schema = schema;
	result->file = file;
	result->message = message;
	result->context = CurrentMemoryContext;
	result->known = palloc(sizeof(KnownType) * Max(schema->nmessages, 1));
	return result;
}

/* How a type becomes columns, made once */
static ProtoProgram *
program_of_type(FramedDecoder *decoder, FramedSchema *schema, const ProtoMessage *message)
{
	MemoryContext context;
	MemoryContext old;
	ProtoProgram *program;

	for (int i = 0; i < schema->nknown; i++)
	{
		if (schema->known[i].message == message)
			return schema->known[i].program;
	}
	/* the message's until it is whole, so that columns which do not fit leave nothing behind */
	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka protobuf type", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	program = proto_program_create(message, decoder->ncolumns, decoder->columns, &decoder->options);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, schema->context);
	schema->known[schema->nknown].message = message;
	schema->known[schema->nknown++].program = program;
	return program;
}

static void
check_type(const RegistrySchema *schema, uint32 id)
{
	if (strcmp(schema->type, "PROTOBUF") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is of type %s, not PROTOBUF", id, schema->type)));
}

static void *
resolve_schema(const RegistrySchema *schema, uint32 id, void *arg)
{
	FramedDecoder *decoder = arg;
	const ProtoFile *file;
	const ProtoMessage *message = NULL;
	ProtoSchema *types;
	FramedSchema *result;
	char	   *text;

	check_type(schema, id);
	types = proto_registry_schema(schema, &file, &text);
	if (types == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry cannot be used", id),
				 errdetail("%s.", text)));
	if (decoder->message_name)
	{
		message = proto_message_find(types, decoder->message_name, &text);
		if (message == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("schema %u of the registry has no message type \"%s\"", id, decoder->message_name),
					 errhint("%s", text)));
	}
	result = new_schema(types, file, message);
	result->id = id;
	return result;
}

static Decoder *
confluent_create(const DecoderSpec *spec)
{
	FramedDecoder *decoder = palloc0(sizeof(FramedDecoder));
	ProtoOptions options;
	ProtoSchema *schema;
	const ProtoMessage *message;
	const ProtoFile *file;

	proto_options_read(spec->options, prefix_of(spec->is_key), &options);
	decoder->base.ignores_errors = ignores_parse_errors(spec->options);
	proto_read_options_set(&decoder->options, spec, &options, &decoder->base.lenient);
	decoder->empty_value = options.empty_value;
	decoder->message_name = options.message;
	decoder->ncolumns = spec->ncolumns;
	decoder->columns = styled_columns(spec->ncolumns, spec->columns, &options.style);
	schema = read_schema(&options, &message, &file);
	if (schema == NULL)
	{
		registry_check("protobuf-confluent", spec->registry, options.url, ", or give the types in \"descriptor\"");
		/* columns of other versions of a schema */
		decoder->options.any_type = true;
		decoder->frames = schema_frames_create(spec->registry, resolve_schema, decoder);
		return &decoder->base;
	}
	decoder->own = new_schema(schema, file, message);
	decoder->options.any_type = message == NULL;
	if (message)
		(void) program_of_type(decoder, decoder->own, message);
	else
		check_columns(decoder->own, spec->ncolumns, spec->columns);
	return &decoder->base;
}

/* A frame's type is none of the file's, or not the one that is wanted. */
static void
wrong_type(const FramedSchema *schema, const TypePath *path, const ProtoMessage *message)
{
	if (message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 schema->id > 0 ? errmsg("schema %u of the registry has no message type of index %s", schema->id, path_text(path))
				 : errmsg("the descriptor's file \"%s\" has no message type of index %s", schema->file->name, path_text(path)),
				 errhint("The message was written with another schema.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("the message is of type \"%s\" (index %s of \"%s\"), not \"%s\"", message->name, path_text(path),
					schema->file->name, schema->message->name)));
}

static void
confluent_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	FramedDecoder *decoder = (FramedDecoder *) base;
	ProtoInput	in = {bytes, bytes + len, NULL};
	TypePath	path;
	uint32		id;
	FramedSchema *schema;
	const ProtoMessage *message;

	if (proto_is_no_row(decoder->empty_value, len, sink))
		return;
	id = read_frame(&in, &path);
	schema = decoder->own ? decoder->own : schema_frames_find(decoder->frames, id);
	message = type_of_path(schema->file, &path, schema->message);
	/* another version of the descriptor's file may have it elsewhere */
	if (message == NULL && decoder->own)
		message = schema->message;
	if (message == NULL || (schema->message && message != schema->message))
		wrong_type(schema, &path, message);
	proto_program_run(program_of_type(decoder, schema, message), in.p, in.end - in.p, sink);
	sink->emit(sink, ROW_UPSERT);
}

/* === Writing ================================================================ */

static void
make_writer(FramedEncoder *encoder, const ProtoFile *file, const ProtoMessage *message)
{
	if (!find_path(file->messages, file->nmessages, message, &encoder->path, 0))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("message type \"%s\" is not in the schema's own file, or nested too deeply for a frame", message->name)));
	encoder->writer = proto_row_writer_create(message, encoder->ncolumns, encoder->columns, &encoder->options);
}

static Encoder *
confluent_create_encoder(const EncoderSpec *spec)
{
	FramedEncoder *encoder = palloc0(sizeof(FramedEncoder));
	ProtoOptions options;
	const ProtoMessage *message;

	proto_options_read(spec->options, prefix_of(spec->is_key), &options);
	if (options.message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s_message\" is required for writing", options.prefix),
				 errhint("It is the full name of the message type: package.Name.")));
	proto_write_options_set(&encoder->options, spec, &options);
	encoder->own = read_schema(&options, &message, &encoder->file);
	if (encoder->own == NULL || options.schema_id < 0)
		registry_check("protobuf-confluent", spec->registry, options.url, encoder->own ? WITHOUT_REGISTRY : "");
	encoder->ncolumns = spec->ncolumns;
	encoder->columns = spec->columns;
	encoder->message_name = options.message;
	encoder->registry = spec->registry;
	encoder->schema = options.schema;
	encoder->subject = encoder_subject(spec, options.subject);
	encoder->registered = options.schema_id >= 0;
	encoder->id = (uint32) options.schema_id;
	encoder->context = CurrentMemoryContext;
	if (encoder->own)
		make_writer(encoder, encoder->file, message);
	return &encoder->base;
}

static uint32
ask_id(const FramedEncoder *encoder)
{
	encoder_subject_require(encoder->subject);
	if (encoder->schema == NULL)
		return registry_latest(encoder->registry, encoder->subject, "PROTOBUF");
	return proto_registry_register(encoder->registry, encoder->subject,
								   strcmp(encoder->schema, "descriptor") == 0 ? NULL : encoder->schema,
								   encoder->own, encoder->file);
}

/* A writer for the registry's schema */
static void
make_registry_writer(FramedEncoder *encoder)
{
	const RegistrySchema *schema = registry_schema(encoder->registry, encoder->id);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka schema", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	const ProtoFile *file;
	const ProtoMessage *message = NULL;
	ProtoSchema *types;
	char	   *text;
	char	   *hint = NULL;

	check_type(schema, encoder->id);
	types = proto_registry_schema(schema, &file, &text);
	if (types)
		message = proto_message_find(types, encoder->message_name, &hint);
	if (message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("schema %u of the registry cannot be written with", encoder->id),
				 types ? errdetail("It has no message type \"%s\".", encoder->message_name) : errdetail("%s.", text),
				 hint ? errhint("%s", hint) : 0));
	make_writer(encoder, file, message);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, encoder->context);
}

static bool
confluent_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	FramedEncoder *encoder = (FramedEncoder *) base;

	if (!encoder->registered)
	{
		encoder->id = ask_id(encoder);
		encoder->registered = true;
	}
	if (encoder->writer == NULL)
		make_registry_writer(encoder);
	put_frame(bytes, encoder->id, &encoder->path);
	proto_row_write(encoder->writer, values, isnull, bytes, column);
	return true;
}

const FormatRoutine protobuf_confluent_format = {
	.name = "protobuf-confluent",
	.registry = true,
	.options = protobuf_confluent_options,
	.check_options = confluent_check_options,
	.create = confluent_create,
	.decode = confluent_decode,
	.create_encoder = confluent_create_encoder,
	.encode = confluent_encode
};
