/*
 * proto_fields.c
 *	  The fields of message types, those that others declare for them among them.
 */
#include "postgres.h"

#include "format/proto_descriptor.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

static const ProtoWire type_wires[] = {
	0, WIRE_FIXED64, WIRE_FIXED32, WIRE_VARINT, WIRE_VARINT, WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32, WIRE_VARINT, WIRE_BYTES,
	WIRE_GROUP, WIRE_BYTES, WIRE_BYTES, WIRE_VARINT, WIRE_VARINT, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT, WIRE_VARINT
};

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

static const ProtoEnum *
find_enum(const SchemaParser *parser, const char *name)
{
	ProtoEnum	key = {.name = name};
	ProtoEnum  *address = &key;
	ProtoEnum **found = bsearch(&address, parser->sorted_enums, parser->nenums, sizeof(ProtoEnum *), compare_enums);

	return found ? *found : NULL;
}

/* === Types ================================================================== */

/* A field whose type has a name need not say whether it is a message or an enum. */
static bool
find_type(const SchemaParser *parser, ProtoField *field, const char *name)
{
	if (field->type != PROTO_ENUM)
		field->message = proto_message_named(parser->schema, name);
	if (field->type == PROTO_ENUM || (field->type == 0 && field->message == NULL))
		field->enumeration = find_enum(parser, name);
	if (field->type == 0 && (field->message || field->enumeration))
		field->type = field->message ? PROTO_MESSAGE : PROTO_ENUM;
	return field->message || field->enumeration;
}

/* The first type of those that 'name' can mean within 'scope', from the inside out */
static bool
find_in_scopes(SchemaParser *parser, const char *scope, const char *name, ProtoField *field)
{
	char	   *around;

	if (name[0] == '.')
		return find_type(parser, field, name + 1);
	around = pstrdup(scope);
	for (;;)
	{
		char	   *candidate = psprintf("%s%s%s", around, *around ? "." : "", name);
		char	   *dot = strrchr(around, '.');
		bool		found = find_type(parser, field, candidate);

		CHECK_FOR_INTERRUPTS();
		pfree(candidate);
		if (found || *around == '\0')
		{
			pfree(around);
			return found;
		}
		*(dot ? dot : around) = '\0';
	}
}

/* The type that a field names */
static bool
resolve_type(SchemaParser *parser, const char *scope, ProtoField *field, const char *type_name)
{
	const char *name = type_name[0] == '.' ? type_name + 1 : type_name;
	ListCell   *lc;
	StringInfoData imports;

	if (find_in_scopes(parser, scope, type_name, field))
		return true;
	initStringInfo(&imports);
	foreach(lc, parser->missing)
		appendStringInfo(&imports, "%s\"%s\"", imports.len > 0 ? ", " : "", (char *) lfirst(lc));
	if (imports.len > 0)
		return proto_bad(parser, psprintf("type \"%s\" of field \"%s.%s\" is not there, nor is what is imported from %s",
										  name, scope, field->name, imports.data));
	return proto_bad(parser, psprintf("type \"%s\" of field \"%s.%s\" is not there", name, scope, field->name));
}

/* === Defaults =============================================================== */

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
		return proto_bad(parser, psprintf("field \"%s.%s\" has a default that is no UTF-8, or has a NUL", message->name, field->name));
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
			name = proto_name_of(parser, value);
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
	return proto_bad(parser, psprintf("field \"%s.%s\" has a default that is none: \"%s\"", message->name, field->name, proto_name_of(parser, value)));
}

/* === Fields ================================================================= */

/* some_name -> someName, where the compiler did not say it */
static const char *
json_name_of(const char *name)
{
	char	   *result = palloc(strlen(name) + 1);
	char	   *out = result;
	bool		upper = false;

	for (const char *p = name; *p; p++)
	{
		if (*p != '_')
			*out++ = upper && *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p;
		upper = *p == '_';
	}
	*out = '\0';
	return result;
}

/* A FieldDescriptorProto as it is */
typedef struct RawField
{
	const char *type_name;
	ProtoValue	default_value;
	int			label;
	int			packed;			/* -1: not said */
	bool		synthetic;		/* proto3's optional: a oneof of one */
	Features	features;
} RawField;

static void
read_field_options(SchemaParser *parser, const ProtoValue *bytes, RawField *raw)
{
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	proto_read_features(parser, bytes, 21, &raw->features);
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (number == 2 && wire == WIRE_VARINT)
			raw->packed = v.bits != 0;
	}
}

static void
read_field_parts(SchemaParser *parser, const ProtoValue *bytes, ProtoField *field, RawField *raw)
{
	ProtoInput	in = proto_input_of(bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;

	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire == WIRE_BYTES)
		{
			if (number == 1)
				field->name = proto_name_of(parser, &v);
			else if (number == 6)
				raw->type_name = proto_name_of(parser, &v);
			else if (number == 7)
				raw->default_value = v;
			else if (number == 10)
				field->json_name = proto_name_of(parser, &v);
			else if (number == 8)
				read_field_options(parser, &v, raw);
		}
		else if (wire == WIRE_VARINT)
		{
			if (number == 3)
				field->number = (uint32) v.bits;
			else if (number == 4)
				raw->label = (int) v.bits;
			else if (number == 5)
				field->type = v.bits >= PROTO_DOUBLE && v.bits <= PROTO_SINT64 ? (ProtoType) v.bits : 0;
			else if (number == 9)
				field->oneof = (int) Min(v.bits, PG_INT32_MAX);
			else if (number == 17)
				raw->synthetic = v.bits != 0;
		}
	}
}

static inline bool
has_type_name(const ProtoField *field, const RawField *raw)
{
	return field->type == PROTO_GROUP || field->type == PROTO_MESSAGE || field->type == PROTO_ENUM ||
		(field->type == 0 && raw->type_name[0] != '\0');
}

/*
 * A field of a message, from a FieldDescriptorProto.  'scope' is what it stands in: the
 * message, or of an extension whatever that was declared in.
 */
static bool
read_field(SchemaParser *parser, const ProtoMessage *message, const char *scope, const Features *features,
		   const ProtoValue *bytes, bool extension, ProtoField *field)
{
	RawField	raw = {.type_name = "", .label = 1, .packed = -1, .features = *features};

	field->name = "";
	field->oneof = -1;
	read_field_parts(parser, bytes, field, &raw);
	if (parser->error)
		return false;
	if (field->name[0] != '\0' && has_type_name(field, &raw) && !resolve_type(parser, scope, field, raw.type_name))
		return false;
	if (field->name[0] == '\0' || field->number == 0 || field->number > 0x1fffffff || field->type == 0 ||
		field->oneof >= message->noneofs || (extension && field->oneof >= 0))
		return proto_bad(parser, psprintf("message \"%s\" has a field without name, number or type", message->name));
	field->extension = extension;
	if (extension)
		field->name = field->json_name = psprintf("[%s]", proto_qualified(scope, field->name));
	else if (field->json_name == NULL)
		field->json_name = json_name_of(field->name);
	if (field->type == PROTO_MESSAGE && raw.features.messages == 2 && !field->message->map_entry)
		field->type = PROTO_GROUP;
	field->wire = type_wires[field->type];
	field->repeated = raw.label == 3;
	field->required = raw.label == 2 || (raw.label == 1 && raw.features.presence == 3);
	field->is_map = field->repeated && field->message && field->message->map_entry;
	field->packed = field->repeated && field->wire != WIRE_BYTES && field->wire != WIRE_GROUP &&
		(raw.packed >= 0 ? raw.packed > 0 : raw.features.repeated == 1);
	field->presence = !field->repeated &&
		(raw.features.presence != 2 || field->message || field->oneof >= 0 || raw.synthetic || extension);
	if (raw.synthetic)
		field->oneof = -1;
	field->simple = !field->repeated && field->message == NULL && field->oneof < 0 &&
		(field->enumeration == NULL || !field->enumeration->closed);
	field->default_bytes = "";
	if (field->enumeration)
		field->default_bits = (uint64) (int64) field->enumeration->numbers[0];
	return raw.default_value.p == NULL || read_default(parser, message, field, &raw.default_value);
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
			return proto_bad(parser, psprintf("\"%s\" is no entry of a map", message->name));
	}
	else if (message->known == KNOWN_WRAPPER)
	{
		if (message->n != 1 || key == NULL || key->message || key->repeated)
			return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_ANY)
	{
		if (message->n != 2 || key == NULL || key->type != PROTO_STRING || key->repeated ||
			value == NULL || value->type != PROTO_BYTES || value->repeated)
			return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_FIELD_MASK)
	{
		if (message->n != 1 || key == NULL || key->type != PROTO_STRING || !key->repeated)
			return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_STRUCT)
	{
		if (message->n != 1 || key == NULL || !key->is_map)
			return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_LIST)
	{
		if (message->n != 1 || key == NULL || !key->repeated || key->is_map || key->message == NULL)
			return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
	}
	else if (message->known == KNOWN_VALUE)
	{
		static const ProtoType types[] = {PROTO_ENUM, PROTO_DOUBLE, PROTO_STRING, PROTO_BOOL, PROTO_MESSAGE, PROTO_MESSAGE};

		for (int i = 0; i < lengthof(types); i++)
		{
			const ProtoField *field = proto_field_by_number(message, i + 1);

			if (field == NULL || field->type != types[i] || field->repeated || message->n != lengthof(types))
				return proto_bad(parser, psprintf("\"%s\" is not what the name stands for", message->name));
		}
	}
	return true;
}

/* The fields by number, sorted for looking them up */
static bool
index_fields(SchemaParser *parser, ProtoMessage *message)
{
	qsort(message->fields, message->n, sizeof(ProtoField), compare_fields);
	message->required = palloc(sizeof(ProtoField *) * Max(message->n, 1));
	for (int i = 0; i < message->n; i++)
	{
		ProtoField *field = &message->fields[i];

		if (i > 0 && field->number == field[-1].number)
			return proto_bad(parser, psprintf("message \"%s\" has two fields of number %u", message->name, field->number));
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

static bool
read_fields(SchemaParser *parser, const RawMessage *raw)
{
	ProtoMessage *message = raw->message;
	ProtoInput	in = proto_input_of(&raw->bytes);
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	int			n = list_length(raw->extensions);
	ListCell   *lc;

	while (proto_next(parser, &in, &number, &wire, &v))
	{
		n += number == 2 && wire == WIRE_BYTES;
		message->noneofs += number == 8 && wire == WIRE_BYTES;
	}
	message->fields = palloc0(sizeof(ProtoField) * Max(n, 1));
	message->oneofs = palloc0(sizeof(char *) * Max(message->noneofs, 1));
	n = 0;
	in = proto_input_of(&raw->bytes);
	while (proto_next(parser, &in, &number, &wire, &v))
	{
		if (wire != WIRE_BYTES)
			continue;
		if (number == 2)
		{
			if (!proto_count_node(parser) ||
				!read_field(parser, message, message->name, &raw->features, &v, false, &message->fields[message->n]))
				return false;
			message->n++;
		}
		else if (number == 8)
		{
			int32		unused;

			/* OneofDescriptorProto begins with its name, too */
			proto_read_named(parser, &v, &message->oneofs[n++], &unused);
		}
	}
	foreach(lc, raw->extensions)
	{
		const RawExtension *extension = lfirst(lc);

		if (!proto_count_node(parser) ||
			!read_field(parser, message, extension->scope, &extension->features, &extension->bytes, true, &message->fields[message->n]))
			return false;
		message->n++;
	}
	return parser->error == NULL && index_fields(parser, message);
}

/*
 * Extensions go to the messages that they extend.  Those of messages that are not there,
 * most often of the options in descriptor.proto, are nobody's.
 */
static void
spread_extensions(SchemaParser *parser, RawMessage **sorted_raw)
{
	ProtoSchema *schema = parser->schema;
	ListCell   *lc;

	foreach(lc, parser->extensions)
	{
		RawExtension *extension = lfirst(lc);
		ProtoField	extended = {.type = PROTO_MESSAGE};
		ProtoInput	in = proto_input_of(&extension->bytes);
		uint32		number;
		ProtoWire	wire;
		ProtoValue	v;
		const char *name = "";

		while (proto_next(parser, &in, &number, &wire, &v))
		{
			if (number == 2 && wire == WIRE_BYTES)
				name = proto_name_of(parser, &v);
		}
		if (!find_in_scopes(parser, extension->scope, name, &extended))
			continue;
		for (int low = 0, high = schema->nmessages - 1; low <= high;)
		{
			int			middle = (low + high) / 2;
			int			order = strcmp(extended.message->name, schema->messages[middle]->name);

			if (order == 0)
			{
				sorted_raw[middle]->extensions = lappend(sorted_raw[middle]->extensions, extension);
				break;
			}
			if (order < 0)
				high = middle - 1;
			else
				low = middle + 1;
		}
	}
}

bool
proto_read_fields(SchemaParser *parser, RawMessage **sorted_raw)
{
	ProtoSchema *schema = parser->schema;
	ListCell   *lc;

	parser->sorted_enums = palloc(sizeof(ProtoEnum *) * Max(list_length(parser->enums), 1));
	foreach(lc, parser->enums)
		parser->sorted_enums[parser->nenums++] = lfirst(lc);
	qsort(parser->sorted_enums, parser->nenums, sizeof(ProtoEnum *), compare_enums);
	spread_extensions(parser, sorted_raw);
	for (int i = 0; i < schema->nmessages && parser->error == NULL; i++)
	{
		CHECK_FOR_INTERRUPTS();
		read_fields(parser, sorted_raw[i]);
	}
	for (int i = 0; i < schema->nmessages && parser->error == NULL; i++)
		check_known(parser, schema->messages[i]);
	return parser->error == NULL;
}

/* === Looking them up ======================================================== */

const ProtoField *
proto_sparse_field(const ProtoMessage *message, uint32 number)
{
	ProtoField	key = {.number = number};

	return bsearch(&key, message->fields, message->n, sizeof(ProtoField), compare_fields);
}
