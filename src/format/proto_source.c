/*
 * proto_source.c
 *	  .proto sources -> FileDescriptorProtos, as far as reading and writing messages wants
 *	  them.
 *
 * https://protobuf.dev/reference/protobuf/proto2-spec, proto3-spec, edition-2023-spec.  A
 * source that a compiler refuses may be taken: whoever registered it has compiled it.
 */
#include "postgres.h"

#include "format/proto_output.h"
#include "format/proto_source.h"
#include "format/proto_source_scan.h"
#include "miscadmin.h"

/* Numbers of fields in descriptor.proto */
enum
{
	FILE_NAME = 1, FILE_PACKAGE, FILE_IMPORT, FILE_MESSAGE, FILE_ENUM, FILE_EXTENSION = 7, FILE_OPTIONS, FILE_SYNTAX = 12,
	MESSAGE_NAME = 1, MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM, MESSAGE_EXTENSION = 6, MESSAGE_OPTIONS, MESSAGE_ONEOF,
	FIELD_NAME = 1, FIELD_EXTENDEE, FIELD_NUMBER, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME, FIELD_DEFAULT, FIELD_OPTIONS,
	FIELD_ONEOF, FIELD_JSON_NAME, FIELD_PROTO3_OPTIONAL = 17,
	ENUM_NAME = 1, ENUM_VALUE, ENUM_OPTIONS, VALUE_NAME = 1, VALUE_NUMBER
};

/* Where an options message has its FeatureSet */
enum
{
	FEATURES_OF_ENUM = 7, FEATURES_OF_MESSAGE = 12, FEATURES_OF_FIELD = 21, FEATURES_OF_FILE = 50
};

static const struct
{
	const char *name;
	ProtoType	type;
}			scalar_types[] = {
	{"double", PROTO_DOUBLE}, {"float", PROTO_FLOAT}, {"int64", PROTO_INT64}, {"uint64", PROTO_UINT64},
	{"int32", PROTO_INT32}, {"fixed64", PROTO_FIXED64}, {"fixed32", PROTO_FIXED32}, {"bool", PROTO_BOOL},
	{"string", PROTO_STRING}, {"bytes", PROTO_BYTES}, {"uint32", PROTO_UINT32}, {"sfixed32", PROTO_SFIXED32},
	{"sfixed64", PROTO_SFIXED64}, {"sint32", PROTO_SINT32}, {"sint64", PROTO_SINT64},
};

static const struct
{
	const char *option;
	const char *value;
	uint32		number;
	uint64		bits;
}			feature_values[] = {
	{"features.field_presence", "EXPLICIT", 1, 1}, {"features.field_presence", "IMPLICIT", 1, 2},
	{"features.field_presence", "LEGACY_REQUIRED", 1, 3},
	{"features.enum_type", "OPEN", 2, 1}, {"features.enum_type", "CLOSED", 2, 2},
	{"features.repeated_field_encoding", "PACKED", 3, 1}, {"features.repeated_field_encoding", "EXPANDED", 3, 2},
	{"features.message_encoding", "LENGTH_PREFIXED", 5, 1}, {"features.message_encoding", "DELIMITED", 5, 2},
};

/* What stands around a field */
typedef struct FieldPlace
{
	StringInfo	out;
	uint32		field;			/* number of the fields in 'out' .. */
	uint32		nested;			/* .. and of the types */
	const char *extendee;		/* NULL: it is no extension */
	int			oneof;			/* -1: none */
} FieldPlace;

static void parse_message_body(SourceScan *scan, StringInfo out);

/* === Writing descriptors ==================================================== */

static void
put_number(StringInfo out, uint32 number, uint64 value)
{
	proto_put_varint(out, (uint64) number << 3 | WIRE_VARINT);
	proto_put_varint(out, value);
}

static void
put_bytes(StringInfo out, uint32 number, const char *bytes, Size len)
{
	proto_put_varint(out, (uint64) number << 3 | WIRE_BYTES);
	proto_put_varint(out, len);
	appendBinaryStringInfo(out, bytes, (int) len);
}

static void
put_string(StringInfo out, uint32 number, const char *text)
{
	put_bytes(out, number, text, strlen(text));
}

/* Takes 'part'. */
static void
put_part(StringInfo out, uint32 number, StringInfo part)
{
	put_bytes(out, number, part->data, part->len);
	pfree(part->data);
}

/* The same of options, which most often there are none of */
static void
put_options(StringInfo out, uint32 number, StringInfo options, StringInfo features, uint32 features_at)
{
	if (features->len > 0)
		put_bytes(options, features_at, features->data, features->len);
	if (options->len > 0)
		put_bytes(out, number, options->data, options->len);
	pfree(options->data);
	pfree(features->data);
}

/* === Options ================================================================ */

/* Is it a feature that matters?  Then it is taken. */
static void
take_feature(SourceScan *scan, const SourceOption *option, StringInfo features)
{
	if (strcmp(option->name, "features") == 0)
		source_bad(scan, "features in braces are not understood");
	for (int i = 0; i < lengthof(feature_values); i++)
	{
		if (strcmp(option->name, feature_values[i].option) == 0 && strcmp(option->text, feature_values[i].value) == 0)
			put_number(features, feature_values[i].number, feature_values[i].bits);
	}
}

/* option name = value; of a message or an enum, behind the word "option" */
static void
parse_feature_option(SourceScan *scan, StringInfo features)
{
	SourceOption option;

	source_option(scan, &option);
	source_expect(scan, ";");
	take_feature(scan, &option, features);
}

/* A default as descriptors have it: text, which is decimal and escaped */
static void
put_default(StringInfo out, const SourceOption *option, ProtoType type)
{
	StringInfoData text;
	const char *digits = option->text;

	initStringInfo(&text);
	if (option->is_string && type == PROTO_BYTES)
	{
		for (Size i = 0; i < option->len; i++)
			appendStringInfo(&text, "\\%03o", (unsigned char) option->text[i]);
	}
	else if (!option->is_string && type != PROTO_DOUBLE && type != PROTO_FLOAT && strspn(digits, "-0") > 0 && digits[1] != '\0')
	{
		/* hexadecimal or octal */
		bool		negative = *digits == '-';

		appendStringInfo(&text, "%s%llu", negative ? "-" : "", strtoull(digits + negative, NULL, 0));
	}
	else
		appendBinaryStringInfo(&text, option->text, (int) option->len);
	put_part(out, FIELD_DEFAULT, &text);
}

/* [packed = true, default = 5]: what matters of it goes into the field */
static void
parse_field_options(SourceScan *scan, StringInfo field, ProtoType type)
{
	StringInfoData options;
	StringInfoData features;

	initStringInfo(&options);
	initStringInfo(&features);
	if (source_take(scan, "["))
	{
		do
		{
			SourceOption option;

			source_option(scan, &option);
			if (strcmp(option.name, "packed") == 0)
				put_number(&options, 2, strcmp(option.text, "true") == 0);
			else if (strcmp(option.name, "json_name") == 0)
				put_bytes(field, FIELD_JSON_NAME, option.text, option.len);
			else if (strcmp(option.name, "default") == 0)
				put_default(field, &option, type);
			else
				take_feature(scan, &option, &features);
		} while (source_take(scan, ","));
		source_expect(scan, "]");
	}
	put_options(field, FIELD_OPTIONS, &options, &features, FEATURES_OF_FIELD);
}

/* === Fields ================================================================= */

static ProtoType
scalar_type(const char *name)
{
	for (int i = 0; i < lengthof(scalar_types); i++)
	{
		if (strcmp(scalar_types[i].name, name) == 0)
			return scalar_types[i].type;
	}
	return 0;
}

/* A type's name; not said is whether it is a message or an enum.  The type if it is a scalar's, else 0 */
static ProtoType
parse_type(SourceScan *scan, StringInfo field)
{
	char	   *name = source_full_name(scan);
	ProtoType	type = scalar_type(name);

	if (type)
		put_number(field, FIELD_TYPE, type);
	else
		put_string(field, FIELD_TYPE_NAME, name);
	pfree(name);
	return type;
}

/* A type of the name of the field some_name: SomeNameEntry */
static char *
entry_name(const char *name)
{
	char	   *result = psprintf("%sEntry", name);
	char	   *out = result;
	bool		upper = true;

	for (const char *p = result; *p; p++)
	{
		if (*p != '_')
			*out++ = upper && *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p;
		upper = *p == '_';
	}
	*out = '\0';
	return result;
}

/* map<string, int32> counts = 1;  behind the word "map": a repeated message of key and value */
static void
parse_map(SourceScan *scan, const FieldPlace *place)
{
	StringInfoData entry;
	StringInfoData field;
	char	   *name;
	char	   *type;
	static const char map_entry[] = {7 << 3 | WIRE_VARINT, 1};

	initStringInfo(&entry);
	initStringInfo(&field);
	source_expect(scan, "<");
	for (int i = 1; i <= 2; i++)
	{
		StringInfoData part;

		initStringInfo(&part);
		put_string(&part, FIELD_NAME, i == 1 ? "key" : "value");
		put_number(&part, FIELD_NUMBER, i);
		put_number(&part, FIELD_LABEL, 1);
		(void) parse_type(scan, &part);
		put_part(&entry, MESSAGE_FIELD, &part);
		source_expect(scan, i == 1 ? "," : ">");
	}
	name = source_name(scan);
	type = entry_name(name);
	put_string(&entry, MESSAGE_NAME, type);
	put_bytes(&entry, MESSAGE_OPTIONS, map_entry, sizeof(map_entry));
	put_part(place->out, place->nested, &entry);

	put_string(&field, FIELD_NAME, name);
	put_number(&field, FIELD_LABEL, 3);
	put_number(&field, FIELD_TYPE, PROTO_MESSAGE);
	put_string(&field, FIELD_TYPE_NAME, type);
	source_expect(scan, "=");
	put_number(&field, FIELD_NUMBER, source_integer(scan));
	parse_field_options(scan, &field, PROTO_MESSAGE);
	source_expect(scan, ";");
	put_part(place->out, place->field, &field);
	pfree(name);
	pfree(type);
}

/* group Name = 1 { .. }  behind the word "group": a type of that name, and a field of it in lower case */
static void
parse_group(SourceScan *scan, const FieldPlace *place, StringInfo field)
{
	StringInfoData message;
	char	   *name = source_name(scan);

	put_number(field, FIELD_TYPE, PROTO_GROUP);
	put_string(field, FIELD_TYPE_NAME, name);
	initStringInfo(&message);
	put_string(&message, MESSAGE_NAME, name);
	for (char *p = name; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p;
	put_string(field, FIELD_NAME, name);
	pfree(name);
	source_expect(scan, "=");
	put_number(field, FIELD_NUMBER, source_integer(scan));
	parse_field_options(scan, field, PROTO_GROUP);
	parse_message_body(scan, &message);
	put_part(place->out, place->nested, &message);
}

static void
parse_field(SourceScan *scan, const FieldPlace *place)
{
	StringInfoData field;
	int			label = 1;

	if (source_take_word(scan, "map", "<"))
	{
		parse_map(scan, place);
		return;
	}
	initStringInfo(&field);
	if (source_take(scan, "repeated"))
		label = 3;
	else if (source_take(scan, "required"))
		label = 2;
	else if (source_take(scan, "optional") && scan->proto3)
		put_number(&field, FIELD_PROTO3_OPTIONAL, 1);
	put_number(&field, FIELD_LABEL, label);
	if (place->extendee)
		put_string(&field, FIELD_EXTENDEE, place->extendee);
	if (place->oneof >= 0)
		put_number(&field, FIELD_ONEOF, place->oneof);
	if (source_take(scan, "group"))
		parse_group(scan, place, &field);
	else
	{
		ProtoType	type = parse_type(scan, &field);
		char	   *name = source_name(scan);

		put_string(&field, FIELD_NAME, name);
		pfree(name);
		source_expect(scan, "=");
		put_number(&field, FIELD_NUMBER, source_integer(scan));
		parse_field_options(scan, &field, type);
		source_expect(scan, ";");
	}
	put_part(place->out, place->field, &field);
}

/* oneof name { .. }  behind the word "oneof" */
static void
parse_oneof(SourceScan *scan, StringInfo message, int number)
{
	FieldPlace	place = {message, MESSAGE_FIELD, MESSAGE_NESTED, NULL, number};
	StringInfoData oneof;
	StringInfoData unused;
	char	   *name = source_name(scan);

	initStringInfo(&oneof);
	initStringInfo(&unused);
	put_string(&oneof, 1, name);
	put_part(message, MESSAGE_ONEOF, &oneof);
	pfree(name);
	source_expect(scan, "{");
	while (source_goes_on(scan, "}"))
	{
		if (source_take(scan, "option"))
			parse_feature_option(scan, &unused);
		else
			parse_field(scan, &place);
	}
	pfree(unused.data);
}

/* extend Name { .. }  behind the word "extend" */
static void
parse_extend(SourceScan *scan, StringInfo out, uint32 at, uint32 nested)
{
	char	   *extendee = source_full_name(scan);
	FieldPlace	place = {out, at, nested, extendee, -1};

	source_expect(scan, "{");
	while (source_goes_on(scan, "}"))
		parse_field(scan, &place);
	pfree(extendee);
}

/* === Types ================================================================== */

/* enum Name { .. }  behind the word "enum" */
static void
parse_enum(SourceScan *scan, StringInfo out, uint32 at)
{
	StringInfoData result;
	StringInfoData options;
	StringInfoData features;
	char	   *name = source_name(scan);

	initStringInfo(&result);
	initStringInfo(&options);
	initStringInfo(&features);
	put_string(&result, ENUM_NAME, name);
	pfree(name);
	source_expect(scan, "{");
	while (source_goes_on(scan, "}"))
	{
		StringInfoData value;

		if (source_take(scan, "option"))
		{
			parse_feature_option(scan, &features);
			continue;
		}
		if (source_take(scan, "reserved"))
		{
			source_skip_statement(scan);
			continue;
		}
		initStringInfo(&value);
		name = source_name(scan);
		put_string(&value, VALUE_NAME, name);
		pfree(name);
		source_expect(scan, "=");
		put_number(&value, VALUE_NUMBER, source_integer(scan));
		source_skip_statement(scan);
		put_part(&result, ENUM_VALUE, &value);
	}
	put_options(&result, ENUM_OPTIONS, &options, &features, FEATURES_OF_ENUM);
	put_part(out, at, &result);
}

/* Name { .. }  behind the word "message" */
static void
parse_message(SourceScan *scan, StringInfo out, uint32 at)
{
	StringInfoData message;
	char	   *name = source_name(scan);

	initStringInfo(&message);
	put_string(&message, MESSAGE_NAME, name);
	pfree(name);
	parse_message_body(scan, &message);
	put_part(out, at, &message);
}

static void
parse_message_body(SourceScan *scan, StringInfo out)
{
	FieldPlace	place = {out, MESSAGE_FIELD, MESSAGE_NESTED, NULL, -1};
	StringInfoData options;
	StringInfoData features;
	int			noneofs = 0;

	check_stack_depth();
	if (++scan->depth > PROTO_MAX_DEPTH)
		source_bad(scan, "types are nested too deeply");
	initStringInfo(&options);
	initStringInfo(&features);
	source_expect(scan, "{");
	while (source_goes_on(scan, "}"))
	{
		if (source_take(scan, "message"))
			parse_message(scan, out, MESSAGE_NESTED);
		else if (source_take(scan, "enum"))
			parse_enum(scan, out, MESSAGE_ENUM);
		else if (source_take(scan, "extend"))
			parse_extend(scan, out, MESSAGE_EXTENSION, MESSAGE_NESTED);
		else if (source_take(scan, "oneof"))
			parse_oneof(scan, out, noneofs++);
		else if (source_take(scan, "option"))
			parse_feature_option(scan, &features);
		else if (source_take(scan, "reserved") || source_take(scan, "extensions"))
			source_skip_statement(scan);
		else
			parse_field(scan, &place);
	}
	put_options(out, MESSAGE_OPTIONS, &options, &features, FEATURES_OF_MESSAGE);
	scan->depth--;
}

/* === Files ================================================================== */

static void
parse_syntax(SourceScan *scan, StringInfo out, bool edition)
{
	source_expect(scan, "=");
	scan->proto3 = !edition && source_is_string(scan, "proto3");
	pfree(source_string(scan, NULL));
	source_expect(scan, ";");
	put_string(out, FILE_SYNTAX, edition ? "editions" : scan->proto3 ? "proto3" : "proto2");
}

static void
parse_import(SourceScan *scan, StringInfo out)
{
	Size		len;
	char	   *name;

	if (!source_take(scan, "public") && !source_take(scan, "weak"))
		(void) source_take(scan, "option");
	name = source_string(scan, &len);
	put_bytes(out, FILE_IMPORT, name, len);
	pfree(name);
	source_expect(scan, ";");
}

static void
parse_statement(SourceScan *scan, StringInfo out, StringInfo features)
{
	if (source_take(scan, "syntax"))
		parse_syntax(scan, out, false);
	else if (source_take(scan, "edition"))
		parse_syntax(scan, out, true);
	else if (source_take(scan, "package"))
	{
		char	   *name = source_full_name(scan);

		put_string(out, FILE_PACKAGE, name);
		pfree(name);
		source_expect(scan, ";");
	}
	else if (source_take(scan, "import"))
		parse_import(scan, out);
	else if (source_take(scan, "option"))
		parse_feature_option(scan, features);
	else if (source_take(scan, "message"))
		parse_message(scan, out, FILE_MESSAGE);
	else if (source_take(scan, "enum"))
		parse_enum(scan, out, FILE_ENUM);
	else if (source_take(scan, "extend"))
		parse_extend(scan, out, FILE_EXTENSION, FILE_MESSAGE);
	else if (source_take(scan, "service"))
	{
		pfree(source_name(scan));
		source_skip_statement(scan);
	}
	else
		source_unexpected(scan, "a statement");
}

bool
proto_source_compile(const char *source, const char *file, ProtoValue *bytes, char **error)
{
	SourceScan	scan;
	StringInfoData out;
	StringInfoData options;
	StringInfoData features;

	initStringInfo(&out);
	initStringInfo(&options);
	initStringInfo(&features);
	source_begin(&scan, source);
	put_string(&out, FILE_NAME, file);
	while (source_goes_on(&scan, NULL))
	{
		CHECK_FOR_INTERRUPTS();
		parse_statement(&scan, &out, &features);
	}
	put_options(&out, FILE_OPTIONS, &options, &features, FEATURES_OF_FILE);
	*error = source_end(&scan);
	bytes->p = out.data;
	bytes->len = (uint32) out.len;
	return *error == NULL;
}

/* === Files that everybody has =============================================== */

#define WRAPPER(name, type) "message " name "Value{" type " value=1;}"

static const struct
{
	const char *file;
	const char *source;
}			builtin_files[] = {
	{"google/protobuf/any.proto", "message Any{string type_url=1;bytes value=2;}"},
	{"google/protobuf/duration.proto", "message Duration{int64 seconds=1;int32 nanos=2;}"},
	{"google/protobuf/empty.proto", "message Empty{}"},
	{"google/protobuf/field_mask.proto", "message FieldMask{repeated string paths=1;}"},
	{"google/protobuf/struct.proto",
		"message Struct{map<string,Value>fields=1;}message ListValue{repeated Value values=1;}enum NullValue{NULL_VALUE=0;}"
		"message Value{oneof kind{NullValue null_value=1;double number_value=2;string string_value=3;bool bool_value=4;"
	"Struct struct_value=5;ListValue list_value=6;}}"},
	{"google/protobuf/timestamp.proto", "message Timestamp{int64 seconds=1;int32 nanos=2;}"},
	{"google/protobuf/wrappers.proto",
		WRAPPER("Double", "double") WRAPPER("Float", "float") WRAPPER("Int64", "int64") WRAPPER("UInt64", "uint64")
		WRAPPER("Int32", "int32") WRAPPER("UInt32", "uint32") WRAPPER("Bool", "bool") WRAPPER("String", "string")
	WRAPPER("Bytes", "bytes")},
	{"google/type/date.proto", "message Date{int32 year=1;int32 month=2;int32 day=3;}"},
	{"google/type/decimal.proto", "message Decimal{string value=1;}"},
	{"google/type/latlng.proto", "message LatLng{double latitude=1;double longitude=2;}"},
	{"google/type/money.proto", "message Money{string currency_code=1;int64 units=2;int32 nanos=3;}"},
	{"google/type/timeofday.proto", "message TimeOfDay{int32 hours=1;int32 minutes=2;int32 seconds=3;int32 nanos=4;}"},
	{"confluent/type/decimal.proto", "message Decimal{bytes value=1;uint32 precision=2;int32 scale=3;}"},
};
const int	proto_nbuiltin_files = lengthof(builtin_files);

bool
proto_is_builtin(const char *file)
{
	return strncmp(file, "google/protobuf/", 16) == 0 || strncmp(file, "google/type/", 12) == 0 || strncmp(file, "confluent/", 10) == 0;
}

bool
proto_builtin_file(const char *file, ProtoValue *bytes)
{
	for (int i = 0; i < lengthof(builtin_files); i++)
	{
		if (strcmp(builtin_files[i].file, file) == 0)
		{
			/* the directory is the package */
			char	   *package = pnstrdup(file, strrchr(file, '/') - file);
			char	   *error;

			*strchr(package, '/') = '.';
			return proto_source_compile(psprintf("syntax=\"proto3\";package %s;%s", package, builtin_files[i].source),
										file, bytes, &error);
		}
	}
	return false;
}
