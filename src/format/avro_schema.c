/*
 * avro_schema.c
 *	  JSON text of Avro schemas -> trees.
 *
 * Avro's own C library parses schemas as well, but drops logical types, so it would
 * not do.  Sees jansson, and so none of PostgreSQL's builtins.h (decision 12).
 */
#include "postgres.h"

#include <jansson.h>

#include "format/avro_schema.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "registry/registry.h"

/* A schema of more nodes than this is no table's. */
#define MAX_NODES	100000

typedef struct SchemaParser
{
	List	   *named;			/* AvroNodes with a name */
	int			nnodes;
	char	   *error;
} SchemaParser;

static const char *const type_names[] = {
	"null", "boolean", "int", "long", "float", "double", "bytes", "string",
	"record", "enum", "array", "map", "union", "fixed"
};

static const int min_sizes[] = {0, 1, 1, 1, 4, 8, 1, 1, 0, 1, 1, 1, 1, 0};

typedef struct LogicalName
{
	const char *name;
	AvroType	type;
	AvroLogical logical;
	int64		per_second;
} LogicalName;

static const LogicalName logical_names[] = {
	{"decimal", AVRO_BYTES, AVRO_DECIMAL},
	{"decimal", AVRO_FIXED, AVRO_DECIMAL},
	{"date", AVRO_INT, AVRO_DATE},
	{"time-millis", AVRO_INT, AVRO_TIME, 1000},
	{"time-micros", AVRO_LONG, AVRO_TIME, 1000000},
	{"timestamp-millis", AVRO_LONG, AVRO_TIMESTAMP, 1000},
	{"timestamp-micros", AVRO_LONG, AVRO_TIMESTAMP, 1000000},
	{"timestamp-nanos", AVRO_LONG, AVRO_TIMESTAMP, 1000000000},
	{"local-timestamp-millis", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000},
	{"local-timestamp-micros", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000000},
	{"local-timestamp-nanos", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000000000},
	{"uuid", AVRO_STRING, AVRO_UUID},
	{"uuid", AVRO_FIXED, AVRO_UUID},
	{"duration", AVRO_FIXED, AVRO_DURATION},
};

static const LogicalName connect_names[] = {
	{"org.apache.kafka.connect.data.Date", AVRO_INT, AVRO_DATE},
	{"org.apache.kafka.connect.data.Time", AVRO_INT, AVRO_TIME, 1000},
	{"org.apache.kafka.connect.data.Timestamp", AVRO_LONG, AVRO_TIMESTAMP, 1000},
	{"io.debezium.time.Date", AVRO_INT, AVRO_DATE},
	{"io.debezium.time.Time", AVRO_INT, AVRO_TIME, 1000},
	{"io.debezium.time.MicroTime", AVRO_LONG, AVRO_TIME, 1000000},
	{"io.debezium.time.NanoTime", AVRO_LONG, AVRO_TIME, 1000000000},
	{"io.debezium.time.Timestamp", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000},
	{"io.debezium.time.MicroTimestamp", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000000},
	{"io.debezium.time.NanoTimestamp", AVRO_LONG, AVRO_LOCAL_TIMESTAMP, 1000000000},
	{"io.debezium.data.VariableScaleDecimal", AVRO_RECORD, AVRO_VARIABLE_DECIMAL},
};

static AvroNode *parse_node(SchemaParser *parser, json_t *json, const char *space);

const char *
avro_type_name(const AvroNode *node)
{
	return type_names[node->type];
}

bool
avro_is_nullable(const AvroNode *node, int *branch)
{
	if (node->type != AVRO_UNION || node->n != 2)
		return false;
	if (node->children[0]->type == AVRO_NULL && node->children[1]->type != AVRO_NULL)
		*branch = 1;
	else if (node->children[1]->type == AVRO_NULL && node->children[0]->type != AVRO_NULL)
		*branch = 0;
	else
		return false;
	return true;
}

bool
avro_takes_null(const AvroNode *node)
{
	if (node->type == AVRO_NULL)
		return true;
	for (int i = 0; node->type == AVRO_UNION && i < node->n; i++)
	{
		if (node->children[i]->type == AVRO_NULL)
			return true;
	}
	return false;
}

/* Remembers the first error; always NULL. */
static void *
bad(SchemaParser *parser, const char *format, const char *what)
{
	if (parser->error == NULL)
		parser->error = psprintf(format, what);
	return NULL;
}

static const char *
server_text(const char *utf8)
{
	return pg_any_to_server(utf8, (int) strlen(utf8), PG_UTF8);
}

static AvroNode *
new_node(SchemaParser *parser, AvroType type)
{
	AvroNode   *node;

	if (++parser->nnodes > MAX_NODES)
		return bad(parser, "it has too many parts%s", "");
	node = palloc0(sizeof(AvroNode));
	node->type = type;
	node->min_size = min_sizes[type];
	return node;
}

static void
grow_min_size(AvroNode *node, int64 size)
{
	/* recursive schemas would grow for ever; any lower bound is right */
	node->min_size = Min(node->min_size + size, PG_INT32_MAX);
}

/* "a.b" and "c" -> "a.b.c"; a name with dots is whole already */
static char *
full_name(const char *name, const char *space)
{
	if (strchr(name, '.') != NULL || space == NULL || *space == '\0')
		return pstrdup(name);
	return psprintf("%s.%s", space, name);
}

static AvroNode *
find_named(SchemaParser *parser, const char *name)
{
	ListCell   *lc;

	foreach(lc, parser->named)
	{
		AvroNode   *node = lfirst(lc);

		if (strcmp(node->name, name) == 0)
			return node;
	}
	return NULL;
}

static AvroNode *
parse_name(SchemaParser *parser, const char *name, const char *space)
{
	AvroNode   *node;

	for (AvroType type = AVRO_NULL; type <= AVRO_STRING; type++)
	{
		if (strcmp(name, type_names[type]) == 0)
			return new_node(parser, type);
	}
	node = find_named(parser, full_name(name, space));
	if (node == NULL)
		node = find_named(parser, name);
	return node ? node : bad(parser, "type \"%s\" is not known", name);
}

/* The namespace in which the parts of a named type are looked up */
static const char *
namespace_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? pnstrdup(name, dot - name) : "";
}

static AvroNode *
new_named(SchemaParser *parser, AvroType type, json_t *json, const char *space)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	json_t	   *own = json_object_get(json, "namespace");
	AvroNode   *node;

	if (name == NULL || *name == '\0')
		return bad(parser, "a type of kind \"%s\" has no name", type_names[type]);
	node = new_node(parser, type);
	if (node == NULL)
		return NULL;
	node->name = full_name(name, json_is_string(own) ? json_string_value(own) : space);
	if (find_named(parser, node->name))
		return bad(parser, "type \"%s\" is defined twice", node->name);
	parser->named = lappend(parser->named, node);
	return node;
}

static AvroNode *
parse_record(SchemaParser *parser, json_t *json, const char *space)
{
	AvroNode   *node = new_named(parser, AVRO_RECORD, json, space);
	json_t	   *fields = json_object_get(json, "fields");
	const char *inner;

	if (node == NULL)
		return NULL;
	if (!json_is_array(fields))
		return bad(parser, "record \"%s\" has no fields", node->name);
	inner = namespace_of(node->name);
	node->n = (int) json_array_size(fields);
	node->children = palloc0(sizeof(AvroNode *) * Max(node->n, 1));
	node->names = palloc0(sizeof(char *) * Max(node->n, 1));
	for (int i = 0; i < node->n; i++)
	{
		json_t	   *field = json_array_get(fields, i);
		const char *name = json_string_value(json_object_get(field, "name"));
		json_t	   *type = json_object_get(field, "type");

		if (name == NULL || type == NULL)
			return bad(parser, "a field of record \"%s\" lacks its name or type", node->name);
		node->names[i] = pstrdup(server_text(name));
		node->children[i] = parse_node(parser, type, inner);
		if (node->children[i] == NULL)
			return NULL;
		grow_min_size(node, node->children[i]->min_size);
	}
	return node;
}

static AvroNode *
parse_enum(SchemaParser *parser, json_t *json, const char *space)
{
	AvroNode   *node = new_named(parser, AVRO_ENUM, json, space);
	json_t	   *symbols = json_object_get(json, "symbols");

	if (node == NULL)
		return NULL;
	if (!json_is_array(symbols))
		return bad(parser, "enum \"%s\" has no symbols", node->name);
	node->n = (int) json_array_size(symbols);
	node->names = palloc0(sizeof(char *) * Max(node->n, 1));
	for (int i = 0; i < node->n; i++)
	{
		const char *symbol = json_string_value(json_array_get(symbols, i));

		if (symbol == NULL)
			return bad(parser, "a symbol of enum \"%s\" is no text", node->name);
		node->names[i] = pstrdup(server_text(symbol));
	}
	return node;
}

static AvroNode *
parse_fixed(SchemaParser *parser, json_t *json, const char *space)
{
	AvroNode   *node = new_named(parser, AVRO_FIXED, json, space);
	json_t	   *size = json_object_get(json, "size");

	if (node == NULL)
		return NULL;
	if (!json_is_integer(size) || json_integer_value(size) < 0 || json_integer_value(size) > PG_INT32_MAX)
		return bad(parser, "fixed \"%s\" has no size", node->name);
	node->size = json_integer_value(size);
	node->min_size = node->size;
	return node;
}

static AvroNode *
parse_collection(SchemaParser *parser, AvroType type, json_t *json, const char *space)
{
	AvroNode   *node = new_node(parser, type);
	json_t	   *item = json_object_get(json, type == AVRO_ARRAY ? "items" : "values");

	if (node == NULL)
		return NULL;
	if (item == NULL)
		return bad(parser, type == AVRO_ARRAY ? "an array has no \"%s\"" : "a map has no \"%s\"",
				   type == AVRO_ARRAY ? "items" : "values");
	node->n = 1;
	node->children = palloc(sizeof(AvroNode *));
	node->children[0] = parse_node(parser, item, space);
	return node->children[0] ? node : NULL;
}

static AvroNode *
parse_union(SchemaParser *parser, json_t *json, const char *space)
{
	AvroNode   *node = new_node(parser, AVRO_UNION);

	if (node == NULL)
		return NULL;
	node->n = (int) json_array_size(json);
	if (node->n == 0)
		return bad(parser, "a union has no %s", "branches");
	node->children = palloc0(sizeof(AvroNode *) * node->n);
	for (int i = 0; i < node->n; i++)
	{
		node->children[i] = parse_node(parser, json_array_get(json, i), space);
		if (node->children[i] == NULL)
			return NULL;
		if (node->children[i]->type == AVRO_UNION)
			return bad(parser, "a union is directly in a %s", "union");
	}
	return node;
}

static int
small_integer(json_t *json)
{
	json_int_t	value = json_is_integer(json) ? json_integer_value(json) : 0;

	return value < -1000 || value > 100000 ? -1 : (int) value;
}

static void
apply_logical(AvroNode *node, const LogicalName *names, int n, const char *name, json_t *json)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(names[i].name, name) != 0 || names[i].type != node->type)
			continue;
		switch (names[i].logical)
		{
			case AVRO_DECIMAL:
				node->precision = small_integer(json_object_get(json, "precision"));
				node->scale = small_integer(json_object_get(json, "scale"));
				if (node->precision <= 0 || node->scale < 0 || node->scale > node->precision)
					return;
				break;
			case AVRO_UUID:
				if (node->type == AVRO_FIXED && node->size != 16)
					return;
				break;
			case AVRO_DURATION:
				if (node->size != 12)
					return;
				break;
			case AVRO_VARIABLE_DECIMAL:
				if (node->n != 2 || node->children[0]->type != AVRO_INT || node->children[1]->type != AVRO_BYTES)
					return;
				break;
			default:
				break;
		}
		node->logical = names[i].logical;
		node->per_second = names[i].per_second;
		return;
	}
}

/* Connect writes parameters as strings. */
static int
connect_parameter(json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json_object_get(json, "connect.parameters"), name));
	long		value = text ? strtol(text, NULL, 10) : 0;

	return value < PG_INT16_MIN || value > PG_INT32_MAX / 16 ? 0 : (int) value;
}

static AvroNode *
parse_object(SchemaParser *parser, json_t *json, const char *space)
{
	json_t	   *type = json_object_get(json, "type");
	const char *name = json_string_value(type);
	const char *logical;
	AvroNode   *node;

	if (type == NULL)
		return bad(parser, "an object has no \"%s\"", "type");
	if (name == NULL)
		return parse_node(parser, type, space);
	if (strcmp(name, "record") == 0 || strcmp(name, "error") == 0)
		node = parse_record(parser, json, space);
	else if (strcmp(name, "enum") == 0)
		node = parse_enum(parser, json, space);
	else if (strcmp(name, "fixed") == 0)
		node = parse_fixed(parser, json, space);
	else if (strcmp(name, "array") == 0)
		node = parse_collection(parser, AVRO_ARRAY, json, space);
	else if (strcmp(name, "map") == 0)
		node = parse_collection(parser, AVRO_MAP, json, space);
	else
	{
		node = parse_name(parser, name, space);
		if (node == NULL || node->name != NULL)
			return node;		/* a type defined elsewhere is what it is */
	}
	if (node == NULL)
		return NULL;
	logical = json_string_value(json_object_get(json, "logicalType"));
	if (logical)
		apply_logical(node, logical_names, lengthof(logical_names), logical, json);
	logical = json_string_value(json_object_get(json, "connect.name"));
	if (logical == NULL)
		return node;
	if (node->logical == AVRO_PLAIN)
		apply_logical(node, connect_names, lengthof(connect_names), logical, json);
	node->connect = pstrdup(logical);
	node->connect_scale = connect_parameter(json, "scale");
	node->connect_length = connect_parameter(json, "length");
	return node;
}

static AvroNode *
parse_node(SchemaParser *parser, json_t *json, const char *space)
{
	check_stack_depth();
	switch (json_typeof(json))
	{
		case JSON_STRING:
			return parse_name(parser, json_string_value(json), space);
		case JSON_ARRAY:
			return parse_union(parser, json, space);
		case JSON_OBJECT:
			return parse_object(parser, json, space);
		default:
			return bad(parser, "a type is neither text, array nor %s", "object");
	}
}

static AvroNode *
parse_text(SchemaParser *parser, const char *text)
{
	json_error_t error;
	json_t	   *json = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	AvroNode   *volatile node = NULL;

	if (json == NULL)
	{
		parser->error = psprintf("%s, line %d", registry_shown_text(error.text), error.line);
		return NULL;
	}
	PG_TRY();
	{
		node = parse_node(parser, json, NULL);
	}
	PG_FINALLY();
	{
		json_decref(json);
	}
	PG_END_TRY();
	return node;
}

AvroNode *
avro_schema_parse(int n, const char *const *texts, char **error)
{
	SchemaParser parser = {0};
	AvroNode   *node = NULL;

	for (int i = 0; i < n; i++)
	{
		node = parse_text(&parser, texts[i]);
		if (node == NULL)
			break;
	}
	*error = parser.error;
	return node;
}
