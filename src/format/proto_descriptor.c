/*
 * proto_descriptor.c
 *	  FileDescriptorProtos -> message types and enums, their fields left for later.
 */
#include "postgres.h"

#include "format/proto_descriptor.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

/* A descriptor with more types or fields than this is no table's. */
#define MAX_NODES 200000

static const Features proto2_features = {1, 2, 2, 1};
static const Features proto3_features = {2, 1, 1, 1};
static const Features edition_features = {1, 1, 1, 1};

static const struct
{
	const char *name;
	ProtoWellKnown known;
}			known_names[] = {
	{"google.protobuf.Timestamp", KNOWN_TIMESTAMP},
	{"google.protobuf.Duration", KNOWN_DURATION},
	{"google.protobuf.DoubleValue", KNOWN_WRAPPER},
	{"google.protobuf.FloatValue", KNOWN_WRAPPER},
	{"google.protobuf.Int64Value", KNOWN_WRAPPER},
	{"google.protobuf.UInt64Value", KNOWN_WRAPPER},
	{"google.protobuf.Int32Value", KNOWN_WRAPPER},
	{"google.protobuf.UInt32Value", KNOWN_WRAPPER},
	{"google.protobuf.BoolValue", KNOWN_WRAPPER},
	{"google.protobuf.StringValue", KNOWN_WRAPPER},
	{"google.protobuf.BytesValue", KNOWN_WRAPPER},
	{"google.protobuf.Struct", KNOWN_STRUCT},
	{"google.protobuf.Value", KNOWN_VALUE},
	{"google.protobuf.ListValue", KNOWN_LIST},
	{"google.type.Date", KNOWN_DATE},
	{"google.type.TimeOfDay", KNOWN_TIME},
	{"google.type.Decimal", KNOWN_WRAPPER},
	{"google.protobuf.Any", KNOWN_ANY},
	{"google.protobuf.FieldMask", KNOWN_FIELD_MASK},
};

bool
proto_bad(SchemaParser *parser, char *what)
{
	if (parser->error == NULL)
		parser->error = what;
	return false;
}

bool
proto_next(SchemaParser *parser, ProtoInput *in, uint32 *number, ProtoWire *wire, ProtoValue *value)
{
	if (in->p >= in->end || parser->error)
		return false;
	if (!proto_read_tag(in, number, wire) || !proto_read_value(in, *number, *wire, value))
		return proto_bad(parser, psprintf("the bytes are no FileDescriptorSet: %s", in->error));
	return true;
}

const char *
proto_name_of(SchemaParser *parser, const ProtoValue *value)
{
	char	   *text;
	char	   *converted;

	if (!pg_verify_mbstr(PG_UTF8, value->p, (int) value->len, true))
	{
		proto_bad(parser, "a name is no UTF-8");
		return "";
	}
	text = pnstrdup(value->p, value->len);

	converted = (char *) pg_any_to_server(text, (int) value->len, PG_UTF8);
	return converted;
}

bool
proto_count_node(SchemaParser *parser)
{
	if (++parser->nnodes > MAX_NODES)
		return proto_bad(parser, psprintf("there are more than %d types and fields", MAX_NODES));
	return true;
}

/* A FeatureSet; what it does not say stays. */
static void
read_feature_set(SchemaParser *parser, const ProtoValue *value, Features *features)
{
	ProtoInput	in = proto_input_of(value);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_VARINT || v.bits == 0)
			continue;
		if (number == 1)
			features->presence = (int) v.bits;
		else if (number == 2)
			features->enums = (int) v.bits;
		else if (number == 3)
			features->repeated = (int) v.bits;
		else if (number == 5)
			features->messages = (int) v.bits;
	}
}

void
proto_read_features(SchemaParser *parser, const ProtoValue *value, uint32 at, Features *features)
{
	ProtoInput	in = proto_input_of(value);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == at && wire == WIRE_BYTES)
			read_feature_set(parser, &v, features);
	}
}

const char *
proto_qualified(const char *scope, const char *name)
{
	return *scope ? psprintf("%s.%s", scope, name) : name;
}

void
proto_read_named(SchemaParser *parser, const ProtoValue *bytes, const char **name, int32 *value)
{
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	*name = "";
	*value = 0;
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			*name = proto_name_of(parser, &v);
		else if (number == 2 && wire == WIRE_VARINT)
			*value = (int32) v.bits;
	}
}

static void
read_enum(SchemaParser *parser, const ProtoValue *bytes, const char *scope, Features features)
{
	ProtoEnum  *result = palloc0(sizeof(ProtoEnum));
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	List	   *values = NIL;
	ListCell   *lc;

	result->name = scope;
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES)
			continue;
		if (number == 1)
			result->name = proto_qualified(scope, proto_name_of(parser, &v));
		else if (number == 2 && proto_count_node(parser))
		{
			ProtoValue *copy = palloc(sizeof(ProtoValue));

			*copy = v;
			values = lappend(values, copy);
		}
		else if (number == 3)
			proto_read_features(parser, &v, 7, &features);
	}
	result->closed = features.enums == 2;
	result->is_null = strcmp(result->name, "google.protobuf.NullValue") == 0;
	result->names = palloc(sizeof(char *) * Max(list_length(values), 1));
	result->numbers = palloc(sizeof(int32) * Max(list_length(values), 1));
	foreach(lc, values)
	{
		proto_read_named(parser, lfirst(lc), &result->names[result->n], &result->numbers[result->n]);
		result->n++;
	}
	if (result->n == 0)
		proto_bad(parser, psprintf("enum \"%s\" has no values", result->name));
	for (int i = 0; i < result->n; i++)
	{
		if (result->numbers[i] >= result->nlow && result->numbers[i] < result->n * DENSE_FACTOR)
			result->nlow = result->numbers[i] + 1;
	}
	result->low = palloc0(sizeof(char *) * Max(result->nlow, 1));
	for (int i = result->n - 1; i >= 0; i--)
	{
		if (result->numbers[i] >= 0 && result->numbers[i] < result->nlow)
			result->low[result->numbers[i]] = result->names[i];
	}
	parser->enums = lappend(parser->enums, result);
}

static void
note_extension(SchemaParser *parser, const ProtoValue *bytes, const char *scope, Features features)
{
	RawExtension *extension = palloc0(sizeof(RawExtension));

	extension->bytes = *bytes;
	extension->scope = scope;
	extension->features = features;
	parser->extensions = lappend(parser->extensions, extension);
}

/*
 * A message's name and the types within it; its fields come when all types are known.
 * 'java' is what stands in front of its class.
 */
static ProtoMessage *
read_message(SchemaParser *parser, const ProtoValue *bytes, const char *scope, const char *java,
			 Features features, int depth)
{
	ProtoMessage *message = palloc0(sizeof(ProtoMessage));
	RawMessage *raw = palloc0(sizeof(RawMessage));
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	List	   *nested = NIL;
	ListCell   *lc;

	if (depth > PROTO_MAX_DEPTH)
		proto_bad(parser, "types are nested too deeply");
	message->name = scope;
	message->java_name = java;
	message->schema = parser->schema;
	message->file = parser->schema->nfiles - 1;
	/* what names the types within it comes first, wherever it stands */
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
		{
			const char *name = proto_name_of(parser, &v);

			message->name = proto_qualified(scope, name);
			message->java_name = proto_qualified(java, name);
		}
		else if (number == 7 && wire == WIRE_BYTES)
		{
			ProtoInput	options = proto_input_of(&v);
			ProtoValue	option;

			proto_read_features(parser, &v, 12, &features);
			while (proto_next(parser, &options, &number, &wire, &option))
			{
				if (number == 7 && wire == WIRE_VARINT)
					message->map_entry = option.bits != 0;
			}
		}
	}
	for (int i = 0; i < lengthof(known_names); i++)
	{
		if (strcmp(known_names[i].name, message->name) == 0)
			message->known = known_names[i].known;
	}
	in = proto_input_of(bytes);
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES || !proto_count_node(parser))
			continue;
		if (number == 3)
			nested = lappend(nested, read_message(parser, &v, message->name, message->java_name, features, depth + 1));
		else if (number == 4)
			read_enum(parser, &v, message->name, features);
		else if (number == 6)
			note_extension(parser, &v, message->name, features);
	}
	message->nested = palloc(sizeof(ProtoMessage *) * Max(list_length(nested), 1));
	foreach(lc, nested)
		message->nested[message->nnested++] = lfirst(lc);

	raw->message = message;
	raw->bytes = *bytes;
	raw->features = features;
	parser->raw = lappend(parser->raw, raw);
	return message;
}

/* some_file.proto -> SomeFile, as Java names the class around a file's messages */
static char *
java_outer_class(const char *file)
{
	const char *base = strrchr(file, '/');
	StringInfoData name;
	bool		upper = true;

	initStringInfo(&name);
	for (const char *p = base ? base + 1 : file; *p && *p != '.'; p++)
	{
		bool		lower = *p >= 'a' && *p <= 'z';
		bool		letter = lower || (*p >= 'A' && *p <= 'Z');

		if (letter)
			appendStringInfoChar(&name, upper && lower ? *p - 'a' + 'A' : *p);
		else if (*p >= '0' && *p <= '9')
			appendStringInfoChar(&name, *p);
		upper = !letter;
	}
	return name.data;
}

/* A file's own fields: a first pass, since they may stand behind its types */
typedef struct FileHead
{
	const char *package;
	const char *java_package;
	const char *java_class;
	bool		java_files;		/* a class of its own for each message */
	Features	features;
} FileHead;

static void
read_file_options(SchemaParser *parser, const ProtoValue *bytes, FileHead *head)
{
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			head->java_package = proto_name_of(parser, &v);
		else if (number == 8 && wire == WIRE_BYTES)
			head->java_class = proto_name_of(parser, &v);
		else if (number == 10 && wire == WIRE_VARINT)
			head->java_files = v.bits != 0;
	}
}

void
proto_read_file(SchemaParser *parser, const ProtoValue *bytes, ProtoFile *file)
{
	FileHead	head = {.package = "", .features = proto2_features};
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	ProtoValue	options = {0};
	const char *java;
	List	   *messages = NIL;
	List	   *imports = NIL;
	ListCell   *lc;

	file->name = "";
	file->bytes = bytes->p;
	file->len = bytes->len;
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			file->name = proto_name_of(parser, &v);
		else if (number == 2 && wire == WIRE_BYTES)
			head.package = proto_name_of(parser, &v);
		else if (number == 3 && wire == WIRE_BYTES)
			imports = lappend(imports, (char *) proto_name_of(parser, &v));
		else if (number == 8 && wire == WIRE_BYTES)
			options = v;
		else if (number == 12 && wire == WIRE_BYTES)
		{
			const char *syntax = proto_name_of(parser, &v);

			if (strcmp(syntax, "proto3") == 0)
				head.features = proto3_features;
			else if (strcmp(syntax, "editions") == 0)
				head.features = edition_features;
		}
	}
	file->imports = palloc(sizeof(char *) * Max(list_length(imports), 1));
	foreach(lc, imports)
		file->imports[file->nimports++] = lfirst(lc);
	if (options.p)
	{
		read_file_options(parser, &options, &head);
		proto_read_features(parser, &options, 50, &head.features);
	}
	java = head.java_package ? head.java_package : head.package;
	if (!head.java_files)
		java = proto_qualified(java, head.java_class ? head.java_class : java_outer_class(file->name));

	in = proto_input_of(bytes);
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES || !proto_count_node(parser))
			continue;
		if (number == 4)
			messages = lappend(messages, read_message(parser, &v, head.package, java, head.features, 1));
		else if (number == 5)
			read_enum(parser, &v, head.package, head.features);
		else if (number == 7)
			note_extension(parser, &v, head.package, head.features);
	}
	file->messages = palloc(sizeof(ProtoMessage *) * Max(list_length(messages), 1));
	foreach(lc, messages)
		file->messages[file->nmessages++] = lfirst(lc);
}
