/*
 * proto_schema.c
 *	  FileDescriptorSets (google/protobuf/descriptor.proto) -> trees, and what is looked up
 *	  in them.
 *
 * Reads what decoding and encoding need of them.  Never raises for a descriptor that is no
 * good: the caller says which option it came from.
 */
#include "postgres.h"

#include "common/base64.h"
#include "format/proto_descriptor.h"
#include "format/proto_source.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/varlena.h"

static const char *const type_names[] = {
	"", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
	"group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"
};

/* === Building =============================================================== */

static int
compare_messages(const void *a, const void *b)
{
	return strcmp((*(ProtoMessage *const *) a)->name, (*(ProtoMessage *const *) b)->name);
}

static int
compare_raw(const void *a, const void *b)
{
	return compare_messages(&(*(RawMessage *const *) a)->message, &(*(RawMessage *const *) b)->message);
}

static ProtoFile *
find_file(const ProtoSchema *schema, const char *name)
{
	for (int i = 0; i < schema->nfiles; i++)
	{
		if (strcmp(schema->files[i].name, name) == 0)
			return &schema->files[i];
	}
	return NULL;
}

/* The files that others import: Google's own need not be given. */
static void
follow_imports(SchemaParser *parser)
{
	ProtoSchema *schema = parser->schema;

	/* those that are added here have imports as well */
	for (int i = 0; i < schema->nfiles && parser->error == NULL; i++)
	{
		for (int j = 0; j < schema->files[i].nimports; j++)
		{
			const char *name = schema->files[i].imports[j];
			ProtoFile  *file = find_file(schema, name);
			ProtoValue	bytes = {0};

			CHECK_FOR_INTERRUPTS();
			if (file == NULL && proto_builtin_file(name, &bytes))
			{
				file = &schema->files[schema->nfiles++];
				proto_read_file(parser, &bytes, file);
			}
			if (file)
				file->imported = true;
			else
				parser->missing = lappend(parser->missing, (char *) name);
		}
	}
}

/* Types in the order of their names, and their fields */
static void
finish_types(SchemaParser *parser)
{
	ProtoSchema *schema = parser->schema;
	RawMessage **sorted = palloc(sizeof(RawMessage *) * Max(list_length(parser->raw), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, parser->raw)
		sorted[n++] = lfirst(lc);
	qsort(sorted, n, sizeof(RawMessage *), compare_raw);
	schema->messages = palloc(sizeof(ProtoMessage *) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		schema->messages[schema->nmessages++] = sorted[i]->message;
		if (i > 0 && compare_raw(&sorted[i], &sorted[i - 1]) == 0)
			proto_bad(parser, psprintf("message \"%s\" is there twice", sorted[i]->message->name));
	}
	if (parser->error == NULL)
		(void) proto_read_fields(parser, sorted);
}

ProtoSchema *
proto_schema_build(int n, const ProtoPart *parts, char **error)
{
	SchemaParser parser = {0};
	ProtoSchema *schema = palloc0(sizeof(ProtoSchema));

	parser.schema = schema;
	schema->files = palloc0(sizeof(ProtoFile) * (n + proto_nbuiltin_files));
	for (int i = 0; i < n && parser.error == NULL; i++)
	{
		ProtoValue	bytes = {.p = parts[i].bytes, .len = parts[i].len};
		ProtoFile  *file = &schema->files[schema->nfiles++];

		proto_read_file(&parser, &bytes, file);
		if (parts[i].name)
			file->name = parts[i].name;
	}
	follow_imports(&parser);
	if (parser.error == NULL)
		finish_types(&parser);
	*error = parser.error;
	return parser.error ? NULL : schema;
}

char *
proto_file_read(const ProtoValue *bytes, ProtoFile *file)
{
	SchemaParser parser = {0};
	ProtoSchema schema = {.nfiles = 1, .files = file};

	parser.schema = &schema;
	proto_read_file(&parser, bytes, file);
	return parser.error;
}

char *
proto_base64_decode(const char *text, int *len)
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
	pfree(clean);
	return bytes;
}

ProtoSchema *
proto_schema_parse(const char *base64, char **error)
{
	SchemaParser parser = {0};
	ProtoInput	in = {0};
	ProtoInput	again;
	uint32		number;
	ProtoWire	wire;
	ProtoValue	v;
	ProtoPart  *parts;
	int			n = 0;
	int			len;

	in.p = proto_base64_decode(base64, &len);
	in.end = in.p + len;
	if (len <= 0)
	{
		*error = len < 0 ? "it is no base64" : "it is empty";
		return NULL;
	}
	again = in;
	while (proto_next(&parser, &in, &number, &wire, &v))
		n += number == 1 && wire == WIRE_BYTES;
	parts = palloc0(sizeof(ProtoPart) * Max(n, 1));
	n = 0;
	while (proto_next(&parser, &again, &number, &wire, &v))
	{
		if (number != 1 || wire != WIRE_BYTES)
			continue;
		parts[n].bytes = v.p;
		parts[n++].len = v.len;
	}
	if (parser.error == NULL && n == 0)
		proto_bad(&parser, "the bytes are no FileDescriptorSet: there is no file in it");
	if (parser.error == NULL)
		return proto_schema_build(n, parts, error);
	*error = parser.error;
	return NULL;
}

/* === Looking things up ====================================================== */

const ProtoFile *
proto_file_named(const ProtoSchema *schema, const char *name)
{
	return find_file(schema, name);
}

const ProtoMessage *
proto_message_named(const ProtoSchema *schema, const char *name)
{
	ProtoMessage key = {.name = name};
	ProtoMessage *address = &key;
	ProtoMessage **found = bsearch(&address, schema->messages, schema->nmessages, sizeof(ProtoMessage *), compare_messages);

	return found ? *found : NULL;
}

const ProtoMessage *
proto_any_type(const ProtoSchema *schema, const char *url)
{
	const char *slash = strrchr(url, '/');
	const ProtoMessage *message = proto_message_named(schema, slash ? slash + 1 : url);

	return message && !message->map_entry ? message : NULL;
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
	const ProtoMessage *message = proto_message_named(schema, dotted);
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
