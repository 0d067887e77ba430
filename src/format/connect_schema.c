/*
 * connect_schema.c
 *	  Schemas in messages of Kafka Connect: which fields have a logical type.
 *
 * A producer writes the same schema with every message, so the last one is kept as
 * text and read again only when it differs.
 */
#include "postgres.h"

#include "format/connect_schema.h"
#include "format/json_value.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct LogicalType
{
	const char *name;
	ConnectLogical logical;
	ConnectUnit unit;
} LogicalType;

/* Everything else is what its JSON says: Json, Uuid, Enum, Xml, Year, Interval (as text) .. */
static const LogicalType logical_types[] = {
	{"org.apache.kafka.connect.data.Decimal", LOGICAL_DECIMAL, CONNECT_NO_UNIT},
	{"org.apache.kafka.connect.data.Date", LOGICAL_DATE, CONNECT_NO_UNIT},
	{"org.apache.kafka.connect.data.Time", LOGICAL_TIME, CONNECT_MILLIS},
	{"org.apache.kafka.connect.data.Timestamp", LOGICAL_TIMESTAMP, CONNECT_MILLIS},
	{"io.debezium.data.VariableScaleDecimal", LOGICAL_VARIABLE_DECIMAL, CONNECT_NO_UNIT},
	{"io.debezium.data.Bits", LOGICAL_BITS, CONNECT_NO_UNIT},
	{"io.debezium.time.Date", LOGICAL_DATE, CONNECT_NO_UNIT},
	{"io.debezium.time.Time", LOGICAL_TIME, CONNECT_MILLIS},
	{"io.debezium.time.MicroTime", LOGICAL_TIME, CONNECT_MICROS},
	{"io.debezium.time.NanoTime", LOGICAL_TIME, CONNECT_NANOS},
	{"io.debezium.time.Timestamp", LOGICAL_TIMESTAMP, CONNECT_MILLIS},
	{"io.debezium.time.MicroTimestamp", LOGICAL_TIMESTAMP, CONNECT_MICROS},
	{"io.debezium.time.NanoTimestamp", LOGICAL_TIMESTAMP, CONNECT_NANOS},
	{"io.debezium.time.ZonedTimestamp", LOGICAL_ZONED, CONNECT_NO_UNIT},
	{"io.debezium.time.MicroDuration", LOGICAL_DURATION, CONNECT_MICROS},
	{"io.debezium.time.NanoDuration", LOGICAL_DURATION, CONNECT_NANOS}
};

/* Members of a schema, and of its parameters, that are looked at. */
typedef enum SchemaMember
{
	MEMBER_TYPE,
	MEMBER_FIELDS,
	MEMBER_FIELD,
	MEMBER_NAME,
	MEMBER_PARAMETERS,
	MEMBER_ITEMS,
	MEMBER_SCALE,
	MEMBER_LENGTH,
	NMEMBERS
} SchemaMember;

static const char *const member_names[NMEMBERS] = {
	"type", "fields", "field", "name", "parameters", "items", "scale", "length"
};

struct ConnectSchema
{
	MemoryContext context;		/* of text */
	int			n;
	const char *const *names;
	ConnectKind *kinds;
	JsonFields *members;

	bool		known;			/* what follows is the last one */
	bool		present;		/* it was a schema */
	Size		len;
	char	   *text;
	Size		max_len;
};

bool
connect_kind_of_name(const char *name, int scale, int length, ConnectKind *kind)
{
	for (int i = 0; i < lengthof(logical_types); i++)
	{
		const LogicalType *type = &logical_types[i];

		if (strcmp(type->name, name) != 0)
			continue;
		kind->logical = type->logical;
		kind->unit = type->unit;
		kind->name = type->name;
		kind->parameter = type->logical == LOGICAL_DECIMAL ? scale : length;
		return true;
	}
	return false;
}

ConnectSchema *
connect_schema_create(int n, const char *const *names)
{
	ConnectSchema *schema = palloc0(sizeof(ConnectSchema));
	int			member_of[NMEMBERS];

	schema->context = CurrentMemoryContext;
	schema->n = n;
	schema->names = names;
	schema->kinds = palloc0(sizeof(ConnectKind) * Max(n, 1));
	schema->members = json_fields_create(NMEMBERS, member_names, member_of);
	return schema;
}

/* A string's characters in the database encoding, or NULL. */
static char *
string_of(const JsonText *value)
{
	char	   *plain;
	char	   *converted;
	size_t		len;

	if (value->kind != JK_STRING)
		return NULL;
	plain = palloc(value->len + 1);
	if (json_unescape(value, true, plain, &len) != JSON_OK)
		return NULL;
	plain[len] = '\0';
	converted = pg_any_to_server(plain, (int) len, PG_UTF8);
	return converted;
}

static bool
read_members(const ConnectSchema *schema, const JsonText *object, JsonText *found)
{
	JsonScan	scan;

	if (object->kind != JK_OBJECT)
		return false;
	json_scan_init(&scan, object->text, object->len);
	return json_scan_object(&scan, schema->members, found);
}

/* Connect writes parameters as strings. */
static int
parameter(const ConnectSchema *schema, const JsonText *parameters, SchemaMember member)
{
	JsonText	found[NMEMBERS];
	JsonText	number;
	int64		result;

	if (!read_members(schema, parameters, found))
		return 0;
	number = found[member];
	if (number.kind == JK_STRING && !number.escaped)
	{
		JsonScan	scan;

		json_scan_init(&scan, number.text, number.len);
		if (!json_scan_value(&scan, &number))
			return 0;
	}
	return connect_int64(&number, &result) && result >= PG_INT16_MIN && result <= PG_INT32_MAX / 16 ? (int) result : 0;
}

static void
read_kind(const ConnectSchema *schema, const JsonText *members, ConnectKind *kind)
{
	JsonText	items[NMEMBERS];
	char	   *name;

	if (members[MEMBER_NAME].kind != JK_STRING && read_members(schema, &members[MEMBER_ITEMS], items))
	{
		members = items;
		kind->of_elements = true;
	}
	name = string_of(&members[MEMBER_NAME]);
	if (name)
		(void) connect_kind_of_name(name, parameter(schema, &members[MEMBER_PARAMETERS], MEMBER_SCALE),
									parameter(schema, &members[MEMBER_PARAMETERS], MEMBER_LENGTH), kind);
}

/* The field of a struct: its members into 'found'. */
static bool
find_field(const ConnectSchema *schema, const JsonText *fields, const char *field, JsonText *found)
{
	JsonScan	scan;
	JsonText	element;
	bool		first = true;

	if (fields->kind != JK_ARRAY)
		return false;
	json_scan_init(&scan, fields->text, fields->len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, first, &element); first = false)
	{
		char	   *name;

		CHECK_FOR_INTERRUPTS();
		if (!read_members(schema, &element, found))
			continue;
		name = string_of(&found[MEMBER_FIELD]);
		if (name && strcmp(name, field) == 0)
			return true;
	}
	return false;
}

static bool
read_fields(ConnectSchema *schema, const JsonText *text, const char *field)
{
	JsonText	found[NMEMBERS];
	JsonScan	scan;
	JsonText	element;
	bool		first = true;

	if (!read_members(schema, text, found))
		return false;
	if (field)
	{
		JsonText	fields = found[MEMBER_FIELDS];

		if (!find_field(schema, &fields, field, found))
			return false;
	}
	if (found[MEMBER_FIELDS].kind != JK_ARRAY)
		return false;
	json_scan_init(&scan, found[MEMBER_FIELDS].text, found[MEMBER_FIELDS].len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, first, &element); first = false)
	{
		JsonText	members[NMEMBERS];
		char	   *name;

		CHECK_FOR_INTERRUPTS();
		if (!read_members(schema, &element, members) || (name = string_of(&members[MEMBER_FIELD])) == NULL)
			continue;
		for (int i = 0; i < schema->n; i++)
			if (strcmp(schema->names[i], name) == 0)
				read_kind(schema, members, &schema->kinds[i]);
	}
	return true;
}

bool
connect_schema_read(ConnectSchema *schema, const JsonText *text, const char *field, const ConnectKind **kinds)
{
	Size		len = text ? text->len : 0;
	MemoryContext scratch;
	MemoryContext old;

	if (schema->known && schema->len == len && (len == 0 || memcmp(schema->text, text->text, len) == 0))
		return false;

	schema->known = false;
	if (len > schema->max_len)
	{
		if (schema->text)
			pfree(schema->text);
		schema->text = NULL;
		schema->max_len = 0;
		schema->text = MemoryContextAllocHuge(schema->context, len);
		schema->max_len = len;
	}
	memset(schema->kinds, 0, sizeof(ConnectKind) * schema->n);
	schema->present = false;
	if (text)
	{
		memcpy(schema->text, text->text, len);
		scratch = AllocSetContextCreate(CurrentMemoryContext, "Connect schema", ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(scratch);
		schema->present = read_fields(schema, text, field);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(scratch);
	}
	schema->len = len;
	schema->known = true;
	*kinds = schema->present ? schema->kinds : NULL;
	return true;
}
