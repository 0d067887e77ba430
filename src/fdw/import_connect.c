/*
 * import_connect.c
 *	  PostgreSQL types for Kafka Connect's, logical ones included, and for MySQL's.
 *
 * The types into which the decoders read such values without loss; what is not known is
 * text or, if it is nested, jsonb.
 */
#include "postgres.h"

#include "fdw/import_connect.h"
#include "fdw/import_json.h"
#include "miscadmin.h"
#include "utils/numeric.h"

typedef struct TypeName
{
	const char *name;
	const char *type;
} TypeName;

/* Names of schemas; what needs their parameters is in logical_type() */
static const TypeName logical_types[] = {
	{"org.apache.kafka.connect.data.Date", "date"},
	{"org.apache.kafka.connect.data.Time", "time(3) without time zone"},
	{"org.apache.kafka.connect.data.Timestamp", "timestamp(3) without time zone"},
	{"io.debezium.data.VariableScaleDecimal", "numeric"},
	{"io.debezium.data.Uuid", "uuid"},
	{"io.debezium.data.Json", "jsonb"},
	{"io.debezium.data.Tsvector", "tsvector"},
	{"io.debezium.data.geometry.Point", "point"},
	{"io.debezium.time.Date", "date"},
	{"io.debezium.time.Time", "time(3) without time zone"},
	{"io.debezium.time.MicroTime", "time without time zone"},
	{"io.debezium.time.NanoTime", "time without time zone"},
	{"io.debezium.time.ZonedTime", "time with time zone"},
	{"io.debezium.time.Timestamp", "timestamp(3) without time zone"},
	{"io.debezium.time.MicroTimestamp", "timestamp without time zone"},
	{"io.debezium.time.NanoTimestamp", "timestamp without time zone"},
	{"io.debezium.time.ZonedTimestamp", "timestamp with time zone"},
	{"io.debezium.time.MicroDuration", "interval"},
	{"io.debezium.time.NanoDuration", "interval"},
	{"io.debezium.time.Interval", "interval"},
};

static const TypeName plain_types[] = {
	{"int8", "smallint"},
	{"int16", "smallint"},
	{"int32", "integer"},
	{"int64", "bigint"},
	{"float", "real"},
	{"float32", "real"},
	{"double", "double precision"},
	{"float64", "double precision"},
	{"boolean", "boolean"},
	{"string", "text"},
	{"bytes", "bytea"},
	{"struct", "jsonb"},
	{"map", "jsonb"},
};

/* A parameter, which is a number in a string; -1 if there is none */
static int
parameter(const JsonText *schema, const char *name)
{
	JsonText	parameters = json_member(schema, "parameters");
	JsonText	value = json_member(&parameters, name);
	char	   *text = json_string(&value);

	return text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 6 ? atoi(text) : -1;
}

static const char *
logical_type(const JsonText *schema, const JsonText *name)
{
	for (int i = 0; i < lengthof(logical_types); i++)
	{
		if (json_is_text(name, logical_types[i].name))
			return logical_types[i].type;
	}
	if (json_is_text(name, "org.apache.kafka.connect.data.Decimal"))
	{
		int			precision = parameter(schema, "connect.decimal.precision");
		int			scale = parameter(schema, "scale");

		/* a negative scale is not read as a number here: numeric holds it anyway */
		return scale >= 0 && precision > 0 && precision <= NUMERIC_MAX_PRECISION && scale <= precision ?
			psprintf("numeric(%d,%d)", precision, scale) : "numeric";
	}
	if (json_is_text(name, "io.debezium.data.Bits"))
	{
		int			length = parameter(schema, "length");

		return length > 0 ? psprintf("bit(%d)", length) : "bit varying";
	}
	return NULL;
}

const char *
import_connect_name(const char *name, int length)
{
	for (int i = 0; i < lengthof(logical_types); i++)
	{
		if (strcmp(name, logical_types[i].name) == 0)
			return logical_types[i].type;
	}
	if (strcmp(name, "io.debezium.data.Bits") == 0)
		return length > 0 ? psprintf("bit(%d)", length) : "bit varying";
	return NULL;
}

static const char *
connect_type(const JsonText *schema)
{
	JsonText	name = json_member(schema, "name");
	JsonText	type = json_member(schema, "type");
	const char *result = logical_type(schema, &name);

	check_stack_depth();
	if (result)
		return result;
	for (int i = 0; i < lengthof(plain_types); i++)
	{
		if (json_is_text(&type, plain_types[i].name))
			return plain_types[i].type;
	}
	if (json_is_text(&type, "array"))
	{
		JsonText	items = json_member(schema, "items");

		result = connect_type(&items);
		return strcmp(result, "jsonb") == 0 || strchr(result, '[') ? "jsonb" : psprintf("%s[]", result);
	}
	return "text";
}

bool
import_connect_columns(const JsonText *schema, const char *field, ImportPart *part)
{
	JsonText	fields = json_member(schema, "fields");
	JsonScan	scan;
	JsonText	element;
	bool		first = true;

	if (fields.kind != JK_ARRAY)
		return false;
	json_scan_init(&scan, fields.text, fields.len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, first, &element); first = false)
	{
		JsonText	member = json_member(&element, "field");
		char	   *name = json_string(&member);

		if (name == NULL)
			continue;
		if (field)
		{
			if (strcmp(name, field) == 0)
				return import_connect_columns(&element, NULL, part);
		}
		else if (list_length(part->columns) < IMPORT_MAX_COLUMNS)
			import_column(part, name, connect_type(&element), name, false);
	}
	return part->columns != NIL;
}

static const TypeName mysql_types[] = {
	{"tinyint", "smallint"},
	{"smallint", "smallint"},
	{"mediumint", "integer"},
	{"int", "integer"},
	{"integer", "integer"},
	{"bigint", "bigint"},
	{"float", "real"},
	{"double", "double precision"},
	{"date", "date"},
	{"time", "time without time zone"},
	{"datetime", "timestamp without time zone"},
	{"timestamp", "timestamp without time zone"},
	{"year", "integer"},
	{"json", "jsonb"},
	{"binary", "bytea"},
	{"varbinary", "bytea"},
	{"tinyblob", "bytea"},
	{"blob", "bytea"},
	{"mediumblob", "bytea"},
	{"longblob", "bytea"},
};

static const TypeName unsigned_types[] = {
	{"smallint", "integer"},
	{"int", "bigint"},
	{"integer", "bigint"},
	{"bigint", "numeric(20,0)"},
};

static const char *
find_type(const TypeName *types, int n, const char *name)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(types[i].name, name) == 0)
			return types[i].type;
	}
	return NULL;
}

const char *
import_mysql_type(const char *name)
{
	int			len = (int) strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	char	   *base = pnstrdup(name, len);
	const char *type = NULL;
	int			precision;
	int			scale = 0;

	for (char *p = base; *p; p++)
		*p = pg_tolower((unsigned char) *p);
	if (strcmp(base, "decimal") == 0 || strcmp(base, "numeric") == 0)
		return sscanf(name + len, "(%d,%d)", &precision, &scale) >= 1 && precision > 0 && precision <= 65 &&
			scale >= 0 && scale <= precision ? psprintf("numeric(%d,%d)", precision, scale) : "numeric";
	if (strstr(name, "unsigned"))
		type = find_type(unsigned_types, lengthof(unsigned_types), base);
	if (type == NULL)
		type = find_type(mysql_types, lengthof(mysql_types), base);
	return type ? type : "text";
}
