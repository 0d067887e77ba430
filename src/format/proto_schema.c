/*
 * proto_schema.c
 *	  FileDescriptorSets (google/protobuf/descriptor.proto) -> trees.
 *
 * Reads what decoding and encoding need of them.  Never raises for a descriptor that is no
 * good: the caller says which option it came from.
 */
#include "postgres.h"

#include <math.h>

#include "common/base64.h"
#include "format/proto_input.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/varlena.h"

/* A descriptor with more types or fields than this is no table's. */
#define MAX_NODES 200000

/* Numbers up to this many times the number of fields, or of an enum's values, are found by index. */
#define DENSE_FACTOR 4

/* What the editions call features; syntaxes are sets of them */
typedef struct Features
{
	int			presence;		/* 1 explicit, 2 implicit, 3 required */
	int			enums;			/* 1 open, 2 closed */
	int			repeated;		/* 1 packed, 2 expanded */
	int			messages;		/* 1 with their length, 2 as groups */
} Features;

static const Features proto2_features = {1, 2, 2, 1};
static const Features proto3_features = {2, 1, 1, 1};
static const Features edition_features = {1, 1, 1, 1};

/* A type of the descriptor before its fields are known */
typedef struct RawMessage
{
	ProtoMessage *message;
	ProtoValue	bytes;			/* DescriptorProto */
	Features	features;
	bool		proto3;
} RawMessage;

typedef struct SchemaParser
{
	ProtoSchema *schema;
	List	   *raw;			/* RawMessages */
	List	   *enums;
	ProtoEnum **sorted_enums;
	int			nenums;
	List	   *missing;		/* imports that are not there */
	int			nnodes;
	char	   *error;
} SchemaParser;

static const char *const type_names[] = {
	"", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
	"group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"
};

static const ProtoWire type_wires[] = {
	0, WIRE_FIXED64, WIRE_FIXED32, WIRE_VARINT, WIRE_VARINT, WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32, WIRE_VARINT, WIRE_BYTES,
	WIRE_GROUP, WIRE_BYTES, WIRE_BYTES, WIRE_VARINT, WIRE_VARINT, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT, WIRE_VARINT
};

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
};

/* === Reading a descriptor ==================================================== */

/* Remembers the first error; always false. */
static bool
bad(SchemaParser *parser, char *what)
{
	if (parser->error == NULL)
		parser->error = what;
	return false;
}

/* The next field of a message of the descriptor; false at its end, or after an error. */
static bool
next(SchemaParser *parser, ProtoInput *in, uint32 *number, ProtoWire *wire, ProtoValue *value)
{
	if (in->p >= in->end || parser->error)
		return false;
	if (!proto_read_tag(in, number, wire) || !proto_read_value(in, *number, *wire, value))
		return bad(parser, psprintf("the bytes are no FileDescriptorSet: %s", in->error));
	return true;
}

static ProtoInput
input_of(const ProtoValue *value)
{
	ProtoInput	in = {value->p, value->p + value->len, NULL};

	return in;
}

/* A name in the database encoding; "" after an error */
static const char *
text_of(SchemaParser *parser, const ProtoValue *value)
{
	char	   *text;
	char	   *converted;

	if (!pg_verify_mbstr(PG_UTF8, value->p, (int) value->len, true))
	{
		bad(parser, "a name is no UTF-8");
		return "";
	}
	text = pnstrdup(value->p, value->len);

	converted = (char *) pg_any_to_server(text, (int) value->len, PG_UTF8);
	return converted;
}

static bool
count_node(SchemaParser *parser)
{
	if (++parser->nnodes > MAX_NODES)
		return bad(parser, psprintf("there are more than %d types and fields", MAX_NODES));
	return true;
}

/* A FeatureSet; what it does not say stays. */
static void
read_features(SchemaParser *parser, const ProtoValue *value, Features *features)
{
	ProtoInput	in = input_of(value);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (next(parser, &in, &number, &wire, &v))
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

/* The features in an options message, where they are its field 'at' */
static void
read_option_features(SchemaParser *parser, const ProtoValue *value, uint32 at, Features *features)
{
	ProtoInput	in = input_of(value);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (next(parser, &in, &number, &wire, &v))
	{
		if (number == at && wire == WIRE_BYTES)
			read_features(parser, &v, features);
	}
}

static const char *
qualified(const char *scope, const char *name)
{
	return *scope ? psprintf("%s.%s", scope, name) : name;
}

static void
read_enum_value(SchemaParser *parser, const ProtoValue *bytes, const char **name, int32 *value)
{
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	*name = "";
	*value = 0;
	while (next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			*name = text_of(parser, &v);
		else if (number == 2 && wire == WIRE_VARINT)
			*value = (int32) v.bits;
	}
}

static void
read_enum(SchemaParser *parser, const ProtoValue *bytes, const char *scope, Features features)
{
	ProtoEnum  *result = palloc0(sizeof(ProtoEnum));
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	List	   *values = NIL;
	ListCell   *lc;

	result->name = scope;
	while (next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES)
			continue;
		if (number == 1)
			result->name = qualified(scope, text_of(parser, &v));
		else if (number == 2 && count_node(parser))
		{
			ProtoValue *copy = palloc(sizeof(ProtoValue));

			*copy = v;
			values = lappend(values, copy);
		}
		else if (number == 3)
			read_option_features(parser, &v, 7, &features);
	}
	result->closed = features.enums == 2;
	result->names = palloc(sizeof(char *) * Max(list_length(values), 1));
	result->numbers = palloc(sizeof(int32) * Max(list_length(values), 1));
	foreach(lc, values)
	{
		read_enum_value(parser, lfirst(lc), &result->names[result->n], &result->numbers[result->n]);
		result->n++;
	}
	if (result->n == 0)
		bad(parser, psprintf("enum \"%s\" has no values", result->name));
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

/*
 * A message's name and the types within it; its fields come when all types are known.
 * 'java' is what stands in front of its class.
 */
static ProtoMessage *
read_message(SchemaParser *parser, const ProtoValue *bytes, const char *scope, const char *java,
			 Features features, bool proto3, int depth)
{
	ProtoMessage *message = palloc0(sizeof(ProtoMessage));
	RawMessage *raw = palloc0(sizeof(RawMessage));
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	List	   *nested = NIL;
	ListCell   *lc;

	if (depth > PROTO_MAX_DEPTH)
		bad(parser, "types are nested too deeply");
	message->name = scope;
	message->java_name = java;
	message->file = parser->schema->nfiles - 1;
	/* what names the types within it comes first, wherever it stands */
	while (next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
		{
			const char *name = text_of(parser, &v);

			message->name = qualified(scope, name);
			message->java_name = qualified(java, name);
		}
		else if (number == 7 && wire == WIRE_BYTES)
		{
			ProtoInput	options = input_of(&v);
			ProtoValue	option;

			read_option_features(parser, &v, 12, &features);
			while (next(parser, &options, &number, &wire, &option))
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
	in = input_of(bytes);
	while (next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES || !count_node(parser))
			continue;
		if (number == 3)
			nested = lappend(nested, read_message(parser, &v, message->name, message->java_name, features, proto3, depth + 1));
		else if (number == 4)
			read_enum(parser, &v, message->name, features);
	}
	message->nested = palloc(sizeof(ProtoMessage *) * Max(list_length(nested), 1));
	foreach(lc, nested)
		message->nested[message->nnested++] = lfirst(lc);

	raw->message = message;
	raw->bytes = *bytes;
	raw->features = features;
	raw->proto3 = proto3;
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
	bool		proto3;
	bool		edition;
	Features	features;
} FileHead;

static void
read_file_options(SchemaParser *parser, const ProtoValue *bytes, FileHead *head)
{
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			head->java_package = text_of(parser, &v);
		else if (number == 8 && wire == WIRE_BYTES)
			head->java_class = text_of(parser, &v);
		else if (number == 10 && wire == WIRE_VARINT)
			head->java_files = v.bits != 0;
	}
}

static void
read_file(SchemaParser *parser, const ProtoValue *bytes, ProtoFile *file, List **imports)
{
	FileHead	head = {.package = ""};
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	ProtoValue	options = {0};
	const char *java;
	List	   *messages = NIL;
	ListCell   *lc;

	file->name = "";
	while (next(parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			file->name = text_of(parser, &v);
		else if (number == 2 && wire == WIRE_BYTES)
			head.package = text_of(parser, &v);
		else if (number == 3 && wire == WIRE_BYTES)
			*imports = lappend(*imports, (char *) text_of(parser, &v));
		else if (number == 8 && wire == WIRE_BYTES)
			options = v;
		else if (number == 12 && wire == WIRE_BYTES)
		{
			const char *syntax = text_of(parser, &v);

			head.proto3 = strcmp(syntax, "proto3") == 0;
			head.edition = strcmp(syntax, "editions") == 0;
		}
	}
	head.features = head.proto3 ? proto3_features : head.edition ? edition_features : proto2_features;
	if (options.p)
	{
		read_file_options(parser, &options, &head);
		read_option_features(parser, &options, 50, &head.features);
	}
	java = head.java_package ? head.java_package : head.package;
	if (!head.java_files)
		java = qualified(java, head.java_class ? head.java_class : java_outer_class(file->name));

	in = input_of(bytes);
	while (next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES || !count_node(parser))
			continue;
		if (number == 4)
			messages = lappend(messages, read_message(parser, &v, head.package, java, head.features, head.proto3, 1));
		else if (number == 5)
			read_enum(parser, &v, head.package, head.features);
	}
	file->messages = palloc(sizeof(ProtoMessage *) * Max(list_length(messages), 1));
	foreach(lc, messages)
		file->messages[file->nmessages++] = lfirst(lc);
}

/* === Fields ================================================================= */

static int
compare_messages(const void *a, const void *b)
{
	return strcmp((*(ProtoMessage *const *) a)->name, (*(ProtoMessage *const *) b)->name);
}

static int
compare_enums(const void *a, const void *b)
{
	return strcmp((*(ProtoEnum *const *) a)->name, (*(ProtoEnum *const *) b)->name);
}

static int
compare_fields(const void *a, const void *b)
{
	uint32		left = ((const ProtoField *) a)->number;
	uint32		right = ((const ProtoField *) b)->number;

	return left < right ? -1 : left > right;
}

static const ProtoMessage *
find_message(const ProtoSchema *schema, const char *name)
{
	ProtoMessage key = {.name = name};
	ProtoMessage *address = &key;
	ProtoMessage **found = bsearch(&address, schema->messages, schema->nmessages, sizeof(ProtoMessage *), compare_messages);

	return found ? *found : NULL;
}

static const ProtoEnum *
find_enum(const SchemaParser *parser, const char *name)
{
	ProtoEnum	key = {.name = name};
	ProtoEnum  *address = &key;
	ProtoEnum **found = bsearch(&address, parser->sorted_enums, parser->nenums, sizeof(ProtoEnum *), compare_enums);

	return found ? *found : NULL;
}

/* The type that a field names */
static bool
resolve_type(SchemaParser *parser, const ProtoMessage *message, ProtoField *field, const char *type_name)
{
	const char *name = type_name[0] == '.' ? type_name + 1 : type_name;
	ListCell   *lc;
	StringInfoData imports;

	if (field->type == PROTO_ENUM)
		field->enumeration = find_enum(parser, name);
	else
		field->message = find_message(parser->schema, name);
	if (field->enumeration || field->message)
		return true;
	initStringInfo(&imports);
	foreach(lc, parser->missing)
		appendStringInfo(&imports, "%s\"%s\"", imports.len > 0 ? ", " : "", (char *) lfirst(lc));
	if (imports.len > 0)
		return bad(parser, psprintf("type \"%s\" of field \"%s.%s\" is not there, nor is what is imported from %s",
									name, message->name, field->name, imports.data));
	return bad(parser, psprintf("type \"%s\" of field \"%s.%s\" is not there", name, message->name, field->name));
}

/* Bytes as protoc escapes them: \n, \", \001, \x01 */
static char *
unescape(const char *text, uint32 *len)
{
	char	   *result = palloc(strlen(text) + 1);
	char	   *out = result;

	for (const char *p = text; *p; p++)
	{
		static const char escapes[] = "n\nr\rt\ta\ab\bf\fv\v";
		const char *escape;
		int			value = 0;

		if (*p != '\\' || p[1] == '\0')
		{
			*out++ = *p;
			continue;
		}
		p++;
		if (*p >= '0' && *p <= '7')
		{
			for (int i = 0; i < 3 && *p >= '0' && *p <= '7'; i++, p++)
				value = value * 8 + (*p - '0');
			p--;
			*out++ = (char) value;
			continue;
		}
		escape = *p == '\\' ? NULL : strchr(escapes, *p);
		*out++ = escape && (escape - escapes) % 2 == 0 ? escape[1] : *p;
	}
	*len = (uint32) (out - result);
	return result;
}

/* FieldDescriptorProto.default_value, which is text for every type */
static bool
read_default(SchemaParser *parser, const ProtoMessage *message, ProtoField *field, const ProtoValue *value)
{
	const char *text;
	const char *name;
	double		number;
	float		single;
	uint32		bits;
	int32		symbol;
	char	   *end = NULL;

	if (!pg_verify_mbstr(PG_UTF8, value->p, (int) value->len, true))
		return bad(parser, psprintf("field \"%s.%s\" has a default that is no UTF-8, or has a NUL", message->name, field->name));
	text = pnstrdup(value->p, value->len);
	switch (field->type)
	{
		case PROTO_STRING:
			field->default_bytes = text;

			field->default_len = value->len;
			return true;
		case PROTO_BYTES:
			field->default_bytes = unescape(text, &field->default_len);
			return true;
		case PROTO_BOOL:
			field->default_bits = strcmp(text, "true") == 0;
			return true;
		case PROTO_ENUM:
			name = text_of(parser, value);
			if (!proto_enum_number(field->enumeration, name, strlen(name), &symbol))
				break;
			field->default_bits = (uint64) (int64) symbol;

			return true;
		case PROTO_FLOAT:
		case PROTO_DOUBLE:
			number = strtod(text, &end);
			if (*end != '\0')
				break;
			single = (float) number;
			if (field->type == PROTO_FLOAT)
			{
				memcpy(&bits, &single, sizeof(bits));
				field->default_bits = bits;
			}
			else
				memcpy(&field->default_bits, &number, sizeof(number));
			return true;
		case PROTO_UINT64:
		case PROTO_FIXED64:
			field->default_bits = strtoull(text, &end, 10);
			if (*end != '\0')
				break;
			return true;
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			break;
		default:
			field->default_bits = (uint64) strtoll(text, &end, 10);
			if (*end != '\0')
				break;
			if (field->type == PROTO_SINT32 || field->type == PROTO_SINT64)
				field->default_bits = field->default_bits << 1 ^ -(field->default_bits >> 63);
			return true;
	}
	return bad(parser, psprintf("field \"%s.%s\" has a default that is none: \"%s\"", message->name, field->name, text_of(parser, value)));
}

static bool
read_field(SchemaParser *parser, const RawMessage *raw, const ProtoValue *bytes, ProtoField *field)
{
	Features	features = raw->features;
	ProtoInput	in = input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	ProtoValue	default_value = {0};
	const char *type_name = "";
	int			label = 1;
	int			packed = -1;
	bool		synthetic = false;	/* proto3's optional: a oneof of one */

	field->name = "";
	field->oneof = -1;
	while (next(parser, &in, &number, &wire, &v))
	{
		if (wire == WIRE_BYTES)
		{
			if (number == 1)
				field->name = text_of(parser, &v);
			else if (number == 6)
				type_name = text_of(parser, &v);
			else if (number == 7)
				default_value = v;
			else if (number == 10)
				field->json_name = text_of(parser, &v);
			else if (number == 8)
			{
				ProtoInput	options = input_of(&v);
				ProtoValue	option;

				read_option_features(parser, &v, 21, &features);
				while (next(parser, &options, &number, &wire, &option))
				{
					if (number == 2 && wire == WIRE_VARINT)
						packed = option.bits != 0;
				}
			}
		}
		else if (wire == WIRE_VARINT)
		{
			if (number == 3)
				field->number = (uint32) v.bits;
			else if (number == 4)
				label = (int) v.bits;
			else if (number == 5)
				field->type = v.bits >= PROTO_DOUBLE && v.bits <= PROTO_SINT64 ? (ProtoType) v.bits : 0;
			else if (number == 9)
				field->oneof = (int) Min(v.bits, PG_INT32_MAX);
			else if (number == 17)
				synthetic = v.bits != 0;
		}
	}
	if (parser->error)
		return false;
	if (field->name[0] == '\0' || field->number == 0 || field->number > 0x1fffffff || field->type == 0 ||
		field->oneof >= raw->message->noneofs)
		return bad(parser, psprintf("message \"%s\" has a field without name, number or type", raw->message->name));
	if (field->json_name == NULL)
		field->json_name = field->name;
	if (field->type >= PROTO_GROUP && field->type <= PROTO_ENUM && field->type != PROTO_BYTES && field->type != PROTO_UINT32 &&
		!resolve_type(parser, raw->message, field, type_name))
		return false;
	if (field->type == PROTO_MESSAGE && features.messages == 2 && !field->message->map_entry)
		field->type = PROTO_GROUP;
	field->wire = type_wires[field->type];
	field->repeated = label == 3;
	field->required = label == 2 || (label == 1 && features.presence == 3);
	field->is_map = field->repeated && field->message && field->message->map_entry;
	field->packed = field->repeated && field->wire != WIRE_BYTES && field->wire != WIRE_GROUP &&
		(packed >= 0 ? packed > 0 : features.repeated == 1);
	field->presence = !field->repeated &&
		(features.presence != 2 || field->message || field->oneof >= 0 || synthetic);
	if (synthetic)
		field->oneof = -1;
	field->simple = !field->repeated && field->message == NULL && field->oneof < 0 &&
		(field->enumeration == NULL || !field->enumeration->closed);
	field->default_bytes = "";
	if (field->enumeration)
		field->default_bits = (uint64) (int64) field->enumeration->numbers[0];
	return default_value.p == NULL || read_default(parser, raw->message, field, &default_value);
}

/* A map's entries have a key and a value. */
static bool
check_known(SchemaParser *parser, const ProtoMessage *message)
{
	const ProtoField *key = proto_field_by_number(message, 1);
	const ProtoField *value = proto_field_by_number(message, 2);

	if (message->map_entry)
	{
		if (message->n != 2 || key == NULL || value == NULL || key->message || key->repeated || value->repeated)
			return bad(parser, psprintf("\"%s\" is no entry of a map", message->name));
	}
	else if (message->known == KNOWN_WRAPPER)
	{
		if (message->n != 1 || key == NULL || key->message || key->repeated)
			return bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_STRUCT)
	{
		if (message->n != 1 || key == NULL || !key->is_map)
			return bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_LIST)
	{
		if (message->n != 1 || key == NULL || !key->repeated || key->is_map || key->message == NULL)
			return bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_VALUE)
	{
		static const ProtoType types[] = {PROTO_ENUM, PROTO_DOUBLE, PROTO_STRING, PROTO_BOOL, PROTO_MESSAGE, PROTO_MESSAGE};

		for (int i = 0; i < lengthof(types); i++)
		{
			const ProtoField *field = proto_field_by_number(message, i + 1);

			if (field == NULL || field->type != types[i] || field->repeated || message->n != lengthof(types))
				return bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
		}
	}
	return true;
}

static bool
read_fields(SchemaParser *parser, const RawMessage *raw)
{
	ProtoMessage *message = raw->message;
	ProtoInput	in = input_of(&raw->bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	int			n = 0;

	message->oneofs = NULL;
	while (next(parser, &in, &number, &wire, &v))
	{
		n += number == 2 && wire == WIRE_BYTES;
		message->noneofs += number == 8 && wire == WIRE_BYTES;
	}
	message->fields = palloc0(sizeof(ProtoField) * Max(n, 1));
	message->oneofs = palloc0(sizeof(char *) * Max(message->noneofs, 1));
	n = 0;
	in = input_of(&raw->bytes);
	while (next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES)
			continue;
		if (number == 2)
		{
			if (!count_node(parser) || !read_field(parser, raw, &v, &message->fields[message->n]))
				return false;
			message->n++;
		}
		else if (number == 8)
		{
			int32		unused;

			/*
			 * OneofDescriptorProto begins as EnumValueDescriptorProto does:
			 * with its name
			 */
			read_enum_value(parser, &v, &message->oneofs[n++], &unused);
		}
	}
	if (parser->error)
		return false;
	qsort(message->fields, message->n, sizeof(ProtoField), compare_fields);
	message->required = palloc(sizeof(ProtoField *) * Max(message->n, 1));
	for (int i = 0; i < message->n; i++)
	{
		ProtoField *field = &message->fields[i];

		if (i > 0 && field->number == field[-1].number)
			return bad(parser, psprintf("message \"%s\" has two fields of number %u", message->name, field->number));
		field->index = i;
		if (field->required)
			message->required[message->nrequired++] = field;
	}
	for (int i = message->n; i > 0 && message->ndense == 0; i--)
	{
		if (message->fields[i - 1].number < (uint32) i * DENSE_FACTOR + 16)
			message->ndense = message->fields[i - 1].number + 1;
	}
	message->dense = palloc0(sizeof(ProtoField *) * Max(message->ndense, 1));
	for (int i = 0; i < message->n && message->fields[i].number < message->ndense; i++)
		message->dense[message->fields[i].number] = &message->fields[i];
	return true;
}

/* === Public ================================================================= */

static char *
decode_base64(const char *text, int *len)
{
	char	   *clean = palloc(strlen(text) + 1);
	int			n = 0;
	char	   *bytes;

	/* tools break lines */
	for (const char *p = text; *p; p++)
	{
		if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
			clean[n++] = *p;
	}
	bytes = palloc(pg_b64_dec_len(n) + 1);
	*len = pg_b64_decode(clean, n, (void *) bytes, pg_b64_dec_len(n) + 1);
	return bytes;
}

static void
note_imports(SchemaParser *parser, List *imports)
{
	ProtoSchema *schema = parser->schema;
	ListCell   *lc;

	foreach(lc, imports)
	{
		bool		found = false;

		for (int i = 0; i < schema->nfiles; i++)
		{
			if (strcmp(schema->files[i].name, lfirst(lc)) == 0)
				found = schema->files[i].imported = true;
		}
		if (!found)
			parser->missing = lappend(parser->missing, lfirst(lc));
	}
}

ProtoSchema *
proto_schema_parse(const char *base64, char **error)
{
	SchemaParser parser = {0};
	ProtoSchema *schema = palloc0(sizeof(ProtoSchema));
	ProtoInput	in;
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	List	   *imports = NIL;
	ListCell   *lc;
	int			len;
	int			nfiles = 0;
	const char *bytes = decode_base64(base64, &len);

	*error = NULL;
	parser.schema = schema;
	if (len <= 0)
	{
		*error = len < 0 ? "it is no base64" : "it is empty";
		return NULL;
	}
	in.p = bytes;
	in.end = bytes + len;
	while (next(&parser, &in, &number, &wire, &v))
		nfiles += number == 1 && wire == WIRE_BYTES;
	if (parser.error == NULL && nfiles == 0)
		bad(&parser, "the bytes are no FileDescriptorSet: there is no file in it");
	schema->files = palloc0(sizeof(ProtoFile) * Max(nfiles, 1));
	in.p = bytes;
	while (next(&parser, &in, &number, &wire, &v))
	{
		if (number == 1 && wire == WIRE_BYTES)
			read_file(&parser, &v, &schema->files[schema->nfiles++], &imports);
	}
	note_imports(&parser, imports);

	schema->messages = palloc(sizeof(ProtoMessage *) * Max(list_length(parser.raw), 1));
	foreach(lc, parser.raw)
		schema->messages[schema->nmessages++] = ((RawMessage *) lfirst(lc))->message;
	qsort(schema->messages, schema->nmessages, sizeof(ProtoMessage *), compare_messages);
	parser.sorted_enums = palloc(sizeof(ProtoEnum *) * Max(list_length(parser.enums), 1));
	foreach(lc, parser.enums)
		parser.sorted_enums[parser.nenums++] = lfirst(lc);
	qsort(parser.sorted_enums, parser.nenums, sizeof(ProtoEnum *), compare_enums);
	for (int i = 1; i < schema->nmessages; i++)
	{
		if (strcmp(schema->messages[i]->name, schema->messages[i - 1]->name) == 0)
			bad(&parser, psprintf("message \"%s\" is there twice", schema->messages[i]->name));
	}
	foreach(lc, parser.raw)
	{
		CHECK_FOR_INTERRUPTS();
		if (parser.error || !read_fields(&parser, lfirst(lc)))
			break;
	}
	for (int i = 0; i < schema->nmessages && parser.error == NULL; i++)
		check_known(&parser, schema->messages[i]);
	*error = parser.error;
	return parser.error ? NULL : schema;
}

const char *
proto_enum_name_search(const ProtoEnum *enumeration, int32 number)
{
	for (int i = 0; i < enumeration->n; i++)
	{
		if (enumeration->numbers[i] == number)
			return enumeration->names[i];
	}
	return NULL;
}

bool
proto_enum_number(const ProtoEnum *enumeration, const char *name, Size len, int32 *number)
{
	for (int i = 0; i < enumeration->n; i++)
	{
		if (strlen(enumeration->names[i]) == len && memcmp(enumeration->names[i], name, len) == 0)
		{
			*number = enumeration->numbers[i];
			return true;
		}
	}
	return false;
}

const ProtoField *
proto_field_by_name(const ProtoMessage *message, const char *name, bool json)
{
	for (int i = 0; i < message->n; i++)
	{
		if (strcmp(message->fields[i].name, name) == 0)
			return &message->fields[i];
	}
	for (int i = 0; json && i < message->n; i++)
	{
		if (strcmp(message->fields[i].json_name, name) == 0)
			return &message->fields[i];
	}
	return NULL;
}

const ProtoField *
proto_sparse_field(const ProtoMessage *message, uint32 number)
{
	ProtoField	key = {.number = number};

	return bsearch(&key, message->fields, message->n, sizeof(ProtoField), compare_fields);
}

char *
proto_type_name(const ProtoField *field)
{
	const char *repeated = field->repeated ? "repeated " : "";

	if (field->is_map)
		return psprintf("map<%s, %s>", proto_type_name(proto_field_by_number(field->message, 1)),
						proto_type_name(proto_field_by_number(field->message, 2)));
	if (field->message)
		return psprintf("%s%s", repeated, field->message->name);
	if (field->enumeration)
		return psprintf("%s%s", repeated, field->enumeration->name);
	return psprintf("%s%s", repeated, type_names[field->type]);
}

/* Letters that differ, at most a few */
static bool
is_close(const char *a, const char *b)
{
	int			la = (int) strlen(a);
	int			lb = (int) strlen(b);
	int			limit = Max(2, Min(la, lb) / 4);

	return la < 250 && lb < 250 && varstr_levenshtein_less_equal(a, la, b, lb, 1, 1, 1, limit, true) <= limit;
}

static const char *
last_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

const ProtoMessage *
proto_message_find(const ProtoSchema *schema, const char *name, char **hint)
{
	char	   *dotted = pstrdup(name[0] == '.' ? name + 1 : name);
	const ProtoMessage *message = find_message(schema, dotted);
	StringInfoData names;
	int			n = 0;

	*hint = NULL;
	if (message && !message->map_entry)
		return message;
	for (char *p = dotted; *p; p++)
	{
		if (*p == '$')
			*p = '.';
	}
	for (int i = 0; i < schema->nmessages; i++)
	{
		if (strcmp(schema->messages[i]->java_name, dotted) == 0 && !schema->messages[i]->map_entry)
			return schema->messages[i];
	}
	for (int i = 0; i < schema->nmessages; i++)
	{
		if (!schema->messages[i]->map_entry &&
			(pg_strcasecmp(last_name(schema->messages[i]->name), last_name(dotted)) == 0 || is_close(dotted, schema->messages[i]->name)))
		{
			*hint = psprintf("Perhaps you meant \"%s\".", schema->messages[i]->name);
			return NULL;
		}
	}
	initStringInfo(&names);
	for (int i = 0; i < schema->nmessages && n < 10; i++)
	{
		if (!schema->messages[i]->map_entry && strncmp(schema->messages[i]->name, "google.protobuf.", 16) != 0)
			appendStringInfo(&names, "%s\"%s\"", n++ > 0 ? ", " : "", schema->messages[i]->name);
	}
	*hint = n > 0 ? psprintf("The descriptor has %s%s.", names.data, n == 10 ? " .." : "") : "The descriptor has no message types.";
	return NULL;
}
