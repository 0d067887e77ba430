/*
 * import_schema.c
 *	  Columns from the schemas of a registry: Avro's types and JSON Schema's.
 *
 * Proposes the PostgreSQL type that holds every value of the schema's type; never fails
 * for a schema that it does not understand, but says why it proposes nothing.
 */
#include "postgres.h"

#include "fdw/import_connect.h"
#include "fdw/import_json.h"
#include "fdw/import_schema.h"
#include "format/avro_schema.h"
#include "format/format.h"
#include "format/json_value.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/numeric.h"

/* === Avro =================================================================== */

static const char *
time_type(const AvroNode *node, const char *name)
{
	return node->per_second <= 1000 ? psprintf("%s(3)", name) : name;
}

static bool
is_number(const AvroNode *node)
{
	return node->logical == AVRO_PLAIN && node->type >= AVRO_INT && node->type <= AVRO_DOUBLE;
}

static bool
is_nested(const AvroNode *node)
{
	return node->logical == AVRO_PLAIN &&
		(node->type == AVRO_RECORD || node->type == AVRO_MAP || node->type == AVRO_ARRAY);
}

static const char *avro_type(const AvroNode *node, bool connect);

/* A union of several types beside null: what they have in common. */
static const char *
union_type(const AvroNode *node, bool connect)
{
	const char *same = NULL;
	bool		numbers = true;
	bool		nested = true;
	bool		floats = false;

	for (int i = 0; i < node->n; i++)
	{
		const AvroNode *branch = node->children[i];
		const char *type;

		if (branch->type == AVRO_NULL)
			continue;
		type = avro_type(branch, connect);
		if (same == NULL)
			same = type;
		else if (strcmp(same, type) != 0)
			same = "";
		numbers &= is_number(branch);
		nested &= is_nested(branch);
		floats |= branch->type >= AVRO_FLOAT;
	}
	if (same == NULL)
		return "text";
	if (same[0] != '\0')
		return same;
	if (nested)
		return "jsonb";
	if (numbers)
		return floats ? "double precision" : "bigint";
	return "text";
}

/* connect: the format reads values by Connect's names */
static const char *
avro_type(const AvroNode *node, bool connect)
{
	const char *item;

	check_stack_depth();
	item = connect && node->connect ? import_connect_name(node->connect, node->connect_length) : NULL;
	if (item)
		return item;
	switch (node->logical)
	{
		case AVRO_DECIMAL:
			return node->precision <= NUMERIC_MAX_PRECISION ? psprintf("numeric(%d,%d)", node->precision, node->scale) : "numeric";
		case AVRO_VARIABLE_DECIMAL:
			return "numeric";
		case AVRO_DATE:
			return "date";
		case AVRO_TIME:
			return node->per_second <= 1000 ? "time(3) without time zone" : "time without time zone";
		case AVRO_TIMESTAMP:
			return psprintf("%s with time zone", time_type(node, "timestamp"));
		case AVRO_LOCAL_TIMESTAMP:
			return psprintf("%s without time zone", time_type(node, "timestamp"));
		case AVRO_UUID:
			return "uuid";
		case AVRO_DURATION:
			return "interval";
		case AVRO_PLAIN:
			break;
	}
	switch (node->type)
	{
		case AVRO_BOOLEAN:
			return "boolean";
		case AVRO_INT:
			return "integer";
		case AVRO_LONG:
			return "bigint";
		case AVRO_FLOAT:
			return "real";
		case AVRO_DOUBLE:
			return "double precision";
		case AVRO_BYTES:
		case AVRO_FIXED:
			return "bytea";
		case AVRO_RECORD:
		case AVRO_MAP:
			return "jsonb";
		case AVRO_ARRAY:
			/* items of items may be ragged, which jsonb may be as well */
			if (node->children[0]->type == AVRO_UNION && !avro_is_nullable(node->children[0], &(int) {0}))
				return "jsonb";
			item = avro_type(node->children[0], connect);
			return strcmp(item, "jsonb") == 0 || strchr(item, '[') ? "jsonb" : psprintf("%s[]", item);
		case AVRO_UNION:
			return union_type(node, connect);
		default:
			return "text";
	}
}

/* The envelope of Debezium's events: {before, after, source, op, ..}; NULL if it is none */
static const AvroNode *
envelope_row(const AvroNode *node)
{
	const AvroNode *row = NULL;
	bool		before = false;
	bool		op = false;

	for (int i = 0; node->type == AVRO_RECORD && i < node->n; i++)
	{
		const AvroNode *field = node->children[i];
		int			branch;

		if (strcmp(node->names[i], "before") == 0)
			before = true;
		else if (strcmp(node->names[i], "op") == 0)
			op = field->type == AVRO_STRING;
		else if (strcmp(node->names[i], "after") == 0 && avro_is_nullable(field, &branch) &&
				 field->children[branch]->type == AVRO_RECORD)
			row = field->children[branch];
	}
	return before && op ? row : NULL;
}

static void
avro_columns(const AvroNode *record, bool connect, ImportPart *part)
{
	for (int i = 0; i < record->n && list_length(part->columns) < IMPORT_MAX_COLUMNS; i++)
	{
		/* a field that is always null has nothing for a column */
		if (record->children[i]->type != AVRO_NULL)
			import_column(part, record->names[i], avro_type(record->children[i], connect), record->names[i],
						  !avro_takes_null(record->children[i]));
	}
}

static bool
avro_part(const RegistrySchema *schema, bool is_key, ImportPart *part, const char **problem)
{
	char	   *error;
	const AvroNode *node = avro_schema_parse(schema->ntexts, schema->texts, &error);
	const AvroNode *row;

	if (node == NULL)
	{
		*problem = psprintf("it is no Avro schema: %s", error);
		return false;
	}
	row = is_key ? NULL : envelope_row(node);
	if (row && format_lookup("debezium-avro-confluent"))
	{
		part->format = "debezium-avro-confluent";
		part->changelog = true;
		avro_columns(row, true, part);
		return true;
	}
	part->format = "avro-confluent";
	if (node->type == AVRO_RECORD && node->logical == AVRO_PLAIN)
		avro_columns(node, false, part);
	else
		import_column(part, is_key ? "key" : "value", avro_type(node, false), NULL, !avro_takes_null(node));
	if (part->columns == NIL)
	{
		*problem = "it is a record without fields";
		return false;
	}

	/* so that what is written has this very schema; one that refers to others cannot be told by its text */
	if (schema->ntexts == 1)
		part->options = lappend(part->options,
								makeDefElem(is_key ? "key_avro_confluent_schema" : "value_avro_confluent_schema",
											(Node *) makeString(pg_any_to_server(schema->texts[0], (int) strlen(schema->texts[0]), PG_UTF8)), -1));
	return true;
}

/* === JSON Schema ============================================================ */

static const char *
named_type(const JsonText *name, const JsonText *format)
{
	if (json_is_text(name, "boolean"))
		return "boolean";
	if (json_is_text(name, "integer"))
		return "bigint";
	if (json_is_text(name, "number"))
		return "numeric";
	if (json_is_text(name, "object") || json_is_text(name, "array"))
		return "jsonb";
	if (!json_is_text(name, "string"))
		return NULL;
	if (json_is_text(format, "date-time"))
		return "timestamp with time zone";
	if (json_is_text(format, "date"))
		return "date";
	if (json_is_text(format, "uuid"))
		return "uuid";
	return "text";
}

static const char *property_type(const JsonText *property);

/* The one type of a list of types, or of schemas, beside null; text for several. */
static const char *
list_type(const JsonText *list, const JsonText *format)
{
	JsonScan	scan;
	JsonText	element;
	const char *result = NULL;
	bool		first = true;

	json_scan_init(&scan, list->text, list->len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, first, &element); first = false)
	{
		const char *type = format ? named_type(&element, format) : property_type(&element);

		if (type && result && strcmp(type, result) != 0)
			return "text";
		if (type)
			result = type;
	}
	return result;
}

/* NULL: just null, or nothing that is said of it */
static const char *
property_type(const JsonText *property)
{
	JsonText	type = json_member(property, "type");
	JsonText	format = json_member(property, "format");
	JsonText	choice = json_member(property, "oneOf");

	check_stack_depth();
	if (type.kind == JK_STRING)
		return named_type(&type, &format);
	if (type.kind == JK_ARRAY)
		return list_type(&type, &format);
	if (choice.kind != JK_ARRAY)
		choice = json_member(property, "anyOf");
	if (choice.kind == JK_ARRAY)
		return list_type(&choice, NULL);
	return json_member(property, "properties").kind == JK_OBJECT ? "jsonb" : NULL;
}

static bool
json_part(const RegistrySchema *schema, bool is_key, ImportPart *part, const char **problem)
{
	const char *text = schema->texts[schema->ntexts - 1];
	JsonText	whole;
	JsonText	properties;
	JsonScan	scan;
	JsonMembers members;
	JsonText	name;
	JsonText	value;

	json_scan_init(&scan, text, strlen(text));
	if (!pg_verify_mbstr(PG_UTF8, text, (int) strlen(text), true) ||
		!json_scan_value(&scan, &whole) || !json_scan_end(&scan))
	{
		*problem = "it is no JSON Schema";
		return false;
	}
	part->format = "json";
	part->options = lappend(part->options, makeDefElem(is_key ? "key_json_registry_framing" : "value_json_registry_framing",
													   (Node *) makeString("strip"), -1));
	properties = json_member(&whole, "properties");
	json_members_begin(&members, &properties);
	while (list_length(part->columns) < IMPORT_MAX_COLUMNS && json_members_next(&members, &name, &value))
	{
		char	   *field = json_string(&name);
		const char *type = property_type(&value);

		if (field)
			import_column(part, field, type ? type : "text", field, false);
	}
	if (part->columns == NIL)
	{
		*problem = "it names no properties";
		return false;
	}
	return true;
}

bool
import_schema_part(const RegistrySchema *schema, bool is_key, ImportPart *part, const char **problem)
{
	memset(part, 0, sizeof(*part));
	if (strcmp(schema->type, "AVRO") == 0)
		return avro_part(schema, is_key, part, problem);
	if (strcmp(schema->type, "JSON") == 0)
		return json_part(schema, is_key, part, problem);
	*problem = psprintf("it is of type %s, and tables are proposed for AVRO and JSON", schema->type);
	return false;
}
