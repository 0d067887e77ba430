/*
 * tables.c
 *	  The tables of the fuzzer.  The first byte of its input is a table's number among
 *	  those of the format, so new tables go behind the others of theirs.
 */
#include "tables.h"

#include "descriptors.h"

#define NUMERIC(precision, scale) (((precision) << 16 | (scale)) + VARHDRSZ)
#define LENGTH(n) ((n) + VARHDRSZ)

#define COLUMNS(...) (const FuzzColumn[]) {__VA_ARGS__, {NULL}}
#define OPTIONS(...) (const char *const[]) {__VA_ARGS__, NULL}

/* --- columns ----------------------------------------------------------------- */

static const FuzzColumn flat[] = {
	{"id", INT4OID, -1}, {"v", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"n", NUMERICOID, -1},
	{"t", TIMESTAMPOID, -1}, {"z", TIMESTAMPTZOID, 3}, {"day", DATEOID, -1}, {"clock", TIMEOID, 3},
	{"b", BOOLOID, -1}, {"r", FLOAT4OID, -1}, {"d", FLOAT8OID, -1}, {"i2", INT2OID, -1}, {"i8", INT8OID, -1},
	{"bytes", BYTEAOID, -1}, {"short", VARCHAROID, LENGTH(5)}, {"uuid", UUIDOID, -1}, {NULL}
};

static const FuzzColumn nested[] = {
	{"id", INT4OID, -1}, {"row", ROW_OID, -1}, {"nested", NESTED_OID, -1}, {"rows", ROW_ARRAY_OID, -1},
	{"ints", INT4ARRAYOID, -1}, {"texts", TEXTARRAYOID, -1}, {"numbers", NUMERICARRAYOID, NUMERIC(12, 4)},
	{"flags", BOOLARRAYOID, -1}, {"times", TIMESTAMPARRAYOID, -1}, {"blobs", BYTEAARRAYOID, -1}, {NULL}
};

static const FuzzColumn documents[] = {
	{"id", INT8OID, -1}, {"v", JSONBOID, -1}, {"j", JSONOID, -1}, {"js", JSONBARRAYOID, -1}, {"text", TEXTOID, -1},
	{"ints", INT4ARRAYOID, -1}, {NULL}
};

static const FuzzColumn odd[] = {
	{"p", POSITIVE_OID, -1}, {"name", NAMED_OID, -1}, {"ints", INTS_OID, -1}, {"price", PRICE_OID, -1},
	{"colour", COLOUR_OID, -1}, {"inet", INETOID, -1}, {"span", INTERVALOID, -1}, {"tz", TIMETZOID, -1},
	{"range", INT4RANGEOID, -1}, {"point", POINTOID, -1}, {"bit", BITOID, 8}, {"map", HSTORE_OID, -1}, {NULL}
};

/* Conformance cases have these names. */
static const FuzzColumn product[] = {
	{"id", INT4OID, -1}, {"name", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {NULL}
};

static const FuzzColumn three[] = {
	{"id", INT4OID, -1, false, true}, {"v", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {NULL}
};

/* Fields whose values Kafka Connect's schemas say more of */
#define CONNECT_COLUMNS \
	{"id", INT4OID, -1}, {"name", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"n", NUMERICOID, -1}, \
	{"t", TIMESTAMPOID, -1}, {"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1}, {"clock", TIMEOID, -1}, \
	{"span", INTERVALOID, -1}, {"bits", VARBITOID, -1}, {"bytes", BYTEAOID, -1}, {"ints", INT4ARRAYOID, -1}, \
	{"days", DATEARRAYOID, -1}, {"times", TIMESTAMPTZARRAYOID, -1}, {"numbers", NUMERICARRAYOID, -1}, {"doc", JSONBOID, -1}, \
	{"uuids", UUIDARRAYOID, -1}, {"tz", TIMETZOID, -1}, {"p", POSITIVE_OID, -1}, {"row", ROW_OID, -1}

static const FuzzColumn connect_row[] = {CONNECT_COLUMNS, {NULL}};

static const FuzzColumn debezium_avro[] = {
	CONNECT_COLUMNS, METADATA("ingestion-timestamp", TIMESTAMPTZOID), METADATA("source.timestamp", TIMESTAMPOID),
	METADATA("source.database", TEXTOID), METADATA("source.table", TEXTOID), METADATA("source.properties", JSONBOID), {NULL}
};

static const FuzzColumn debezium[] = {
	CONNECT_COLUMNS, METADATA("schema", TEXTOID), METADATA("ingestion-timestamp", TIMESTAMPTZOID),
	METADATA("source.timestamp", TIMESTAMPOID), METADATA("source.database", TEXTOID), METADATA("source.schema", TEXTOID),
	METADATA("source.table", TEXTOID), METADATA("source.properties", JSONBOID), {NULL}
};

/* What rows of change events hold beside the product's */
#define EVENT_COLUMNS \
	{"id", INT4OID, -1}, {"name", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"t", TIMESTAMPOID, -1}, \
	{"b", BOOLOID, -1}, {"d", FLOAT8OID, -1}, {"bytes", BYTEAOID, -1}, {"doc", JSONBOID, -1}, {"p", POSITIVE_OID, -1}, \
	{"texts", TEXTARRAYOID, -1}

static const FuzzColumn canal[] = {
	EVENT_COLUMNS, METADATA("database", TEXTOID), METADATA("table", TEXTOID), METADATA("sql-type", JSONBOID),
	METADATA("pk-names", TEXTARRAYOID), METADATA("ingestion-timestamp", TIMESTAMPTZOID), METADATA("event-timestamp", TIMESTAMPOID), {NULL}
};

static const FuzzColumn maxwell[] = {
	EVENT_COLUMNS, METADATA("database", TEXTOID), METADATA("table", TEXTOID), METADATA("primary-key-columns", TEXTARRAYOID),
	METADATA("ingestion-timestamp", TIMESTAMPTZOID), {NULL}
};

static const FuzzColumn ogg[] = {
	EVENT_COLUMNS, METADATA("table", TEXTOID), METADATA("primary-keys", TEXTARRAYOID),
	METADATA("ingestion-timestamp", TIMESTAMPTZOID), METADATA("event-timestamp", TIMESTAMPOID), {NULL}
};

/* Change events that are written have no room for bytes beyond ISO 8859-1 in text, or for jsonb. */
static const FuzzColumn event[] = {
	{"id", INT4OID, -1}, {"name", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"t", TIMESTAMPOID, -1},
	{"b", BOOLOID, -1}, {"d", FLOAT8OID, -1}, {"bytes", BYTEAOID, -1}, {"texts", TEXTARRAYOID, -1}, {"row", ROW_OID, -1}, {NULL}
};

/* --- Avro -------------------------------------------------------------------- */

/* What Flink would write */
static const FuzzColumn avro_flat[] = {
	{"id", INT4OID, -1, false, true}, {"v", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"t", TIMESTAMPOID, 3},
	{"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1}, {"clock", TIMEOID, 3}, {"b", BOOLOID, -1}, {"r", FLOAT4OID, -1},
	{"d", FLOAT8OID, -1}, {"i8", INT8OID, -1}, {"bytes", BYTEAOID, -1}, {NULL}
};

static const FuzzColumn avro_nested[] = {
	{"id", INT4OID, -1}, {"row", ROW_OID, -1}, {"nested", NESTED_OID, -1}, {"rows", ROW_ARRAY_OID, -1}, {"ints", INT4ARRAYOID, -1},
	{"texts", TEXTARRAYOID, -1}, {"numbers", NUMERICARRAYOID, NUMERIC(38, 18)}, {"uuid", UUIDOID, -1}, {"colour", COLOUR_OID, -1}, {NULL}
};

#define ALL_TYPES_SCHEMA \
	"{\"type\":\"record\",\"name\":\"all\",\"fields\":[" \
	"{\"name\":\"id\",\"type\":\"long\"}," \
	"{\"name\":\"v\",\"type\":[\"null\",\"string\",\"int\",{\"type\":\"map\",\"values\":\"double\"}]}," \
	"{\"name\":\"w\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":30,\"scale\":5}}," \
	"{\"name\":\"n\",\"type\":{\"type\":\"fixed\",\"name\":\"nine\",\"size\":9,\"logicalType\":\"decimal\",\"precision\":20,\"scale\":0}}," \
	"{\"name\":\"t\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}}," \
	"{\"name\":\"z\",\"type\":{\"type\":\"long\",\"logicalType\":\"local-timestamp-nanos\"}}," \
	"{\"name\":\"day\",\"type\":{\"type\":\"int\",\"logicalType\":\"date\"}}," \
	"{\"name\":\"clock\",\"type\":{\"type\":\"long\",\"logicalType\":\"time-micros\"}}," \
	"{\"name\":\"uuid\",\"type\":{\"type\":\"fixed\",\"name\":\"u\",\"size\":16,\"logicalType\":\"uuid\"}}," \
	"{\"name\":\"span\",\"type\":{\"type\":\"fixed\",\"name\":\"d\",\"size\":12,\"logicalType\":\"duration\"}}," \
	"{\"name\":\"colour\",\"type\":{\"type\":\"enum\",\"name\":\"c\",\"symbols\":[\"red\",\"green\",\"blue\",\"GREY\"]}}," \
	"{\"name\":\"map\",\"type\":{\"type\":\"map\",\"values\":[\"null\",\"string\"]}}," \
	"{\"name\":\"rows\",\"type\":{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"row\",\"fields\":[" \
	"{\"name\":\"b\",\"type\":\"string\"},{\"name\":\"a\",\"type\":[\"int\",\"null\"]},{\"name\":\"other\",\"type\":\"nine\"}]}}}," \
	"{\"name\":\"grid\",\"type\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":[\"null\",\"int\"]}}}," \
	"{\"name\":\"r\",\"type\":\"float\"},{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"bytes\",\"type\":\"bytes\"}," \
	"{\"name\":\"nothing\",\"type\":\"null\"},{\"name\":\"nulls\",\"type\":{\"type\":\"array\",\"items\":\"null\"}}]}"

/* A record within itself */
#define LIST_SCHEMA \
	"{\"type\":\"record\",\"name\":\"node\",\"namespace\":\"x.y\",\"fields\":[" \
	"{\"name\":\"id\",\"type\":\"int\"}," \
	"{\"name\":\"next\",\"type\":[\"null\",\"node\"]}," \
	"{\"name\":\"tree\",\"type\":{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":\"x.y.node\"}}}," \
	"{\"name\":\"skipped\",\"type\":[\"null\",{\"type\":\"array\",\"items\":\"node\"}]}]}"

/* Debezium's variable decimals and Kafka Connect's names of types */
#define CONNECT_SCHEMA \
	"[\"null\",{\"type\":\"record\",\"name\":\"Value\",\"namespace\":\"s.t\",\"fields\":[" \
	"{\"name\":\"id\",\"type\":{\"type\":\"int\",\"connect.type\":\"int16\"}}," \
	"{\"name\":\"n\",\"type\":[\"null\",{\"type\":\"record\",\"name\":\"VariableScaleDecimal\",\"namespace\":\"io.debezium.data\",\"fields\":[" \
	"{\"name\":\"scale\",\"type\":\"int\"},{\"name\":\"value\",\"type\":\"bytes\"}]," \
	"\"connect.name\":\"io.debezium.data.VariableScaleDecimal\"}],\"default\":null}," \
	"{\"name\":\"t\",\"type\":{\"type\":\"long\",\"connect.name\":\"io.debezium.time.NanoTimestamp\"}}," \
	"{\"name\":\"z\",\"type\":{\"type\":\"string\",\"connect.name\":\"io.debezium.time.ZonedTimestamp\"}}," \
	"{\"name\":\"day\",\"type\":{\"type\":\"int\",\"connect.name\":\"io.debezium.time.Date\"}}," \
	"{\"name\":\"clock\",\"type\":{\"type\":\"int\",\"connect.name\":\"io.debezium.time.Time\"}}," \
	"{\"name\":\"span\",\"type\":{\"type\":\"long\",\"connect.name\":\"io.debezium.time.MicroDuration\"}}," \
	"{\"name\":\"doc\",\"type\":{\"type\":\"string\",\"connect.name\":\"io.debezium.data.Json\"}}," \
	"{\"name\":\"p\",\"type\":\"int\"}]}]"

/* .. and an event of such rows */
#define EVENT_SCHEMA \
	"{\"type\":\"record\",\"name\":\"Envelope\",\"namespace\":\"s.t\",\"fields\":[" \
	"{\"name\":\"before\",\"type\":" CONNECT_SCHEMA "}," \
	"{\"name\":\"after\",\"type\":[\"null\",\"Value\"]}," \
	"{\"name\":\"source\",\"type\":{\"type\":\"record\",\"name\":\"Source\",\"fields\":[{\"name\":\"ts_ms\",\"type\":\"long\"}," \
	"{\"name\":\"db\",\"type\":\"string\"},{\"name\":\"table\",\"type\":[\"null\",\"string\"]},{\"name\":\"more\",\"type\":{\"type\":\"map\",\"values\":\"bytes\"}}]}}," \
	"{\"name\":\"op\",\"type\":\"string\"}," \
	"{\"name\":\"ts_ms\",\"type\":[\"null\",\"long\"]}]}"

/* Logical types without Connect's names, in a union with null, as Flink writes it */
#define FLINK_EVENT_SCHEMA \
	"[\"null\",{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"f\",\"fields\":[{\"name\":\"op\",\"type\":[\"null\",\"string\"]}," \
	"{\"name\":\"after\",\"type\":[\"null\"," ALL_TYPES_SCHEMA "]},{\"name\":\"before\",\"type\":[\"null\",\"string\"]}]}]"

static const FuzzColumn avro_all[] = {
	{"id", INT2OID, -1}, {"v", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"n", NUMERICOID, -1}, {"t", TIMESTAMPOID, 3},
	{"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1}, {"clock", TIMEOID, 2}, {"uuid", UUIDOID, -1}, {"span", INTERVALOID, -1},
	{"colour", COLOUR_OID, -1}, {"map", HSTORE_OID, -1}, {"rows", ROW_ARRAY_OID, -1}, {"grid", INT4ARRAYOID, -1}, {"r", FLOAT8OID, -1},
	{"d", FLOAT4OID, -1}, {"b", BOOLOID, -1}, {"bytes", BYTEAOID, -1}, {"nulls", INT4ARRAYOID, -1}, {"absent", POSITIVE_OID, -1}, {NULL}
};

/* The same as text, and as JSON */
static const FuzzColumn avro_text[] = {
	{"id", TEXTOID, -1}, {"v", TEXTOID, -1}, {"w", TEXTOID, -1}, {"n", FLOAT8OID, -1}, {"t", TEXTOID, -1}, {"z", TEXTOID, -1},
	{"day", TEXTOID, -1}, {"clock", TEXTOID, -1}, {"uuid", TEXTOID, -1}, {"span", TEXTOID, -1}, {"colour", VARCHAROID, LENGTH(4)},
	{"map", TEXTOID, -1}, {"rows", TEXTOID, -1}, {"grid", TEXTOID, -1}, {"r", TEXTOID, -1}, {"d", NUMERICOID, -1}, {"b", INT4OID, -1},
	{"bytes", TEXTOID, -1}, {"nothing", TEXTOID, -1}, {"nulls", TEXTARRAYOID, -1}, {NULL}
};

static const FuzzColumn avro_json[] = {
	{"id", JSONBOID, -1}, {"v", JSONBOID, -1}, {"w", JSONBOID, -1}, {"n", JSONOID, -1}, {"t", JSONBOID, -1}, {"z", JSONBOID, -1},
	{"day", JSONBOID, -1}, {"clock", JSONBOID, -1}, {"uuid", JSONBOID, -1}, {"span", JSONBOID, -1}, {"colour", JSONBOID, -1},
	{"map", JSONBOID, -1}, {"rows", JSONBARRAYOID, -1}, {"grid", JSONBOID, -1}, {"r", JSONBOID, -1}, {"d", JSONBOID, -1},
	{"b", JSONBOID, -1}, {"bytes", JSONBOID, -1}, {"nothing", JSONBOID, -1}, {"nulls", JSONBOID, -1}, {NULL}
};

static const FuzzColumn avro_any[] = {
	{"id", INT4OID, -1}, {"v", TEXTOID, -1}, {"w", NUMERICOID, NUMERIC(10, 2)}, {"n", NUMERICOID, -1}, {"t", TIMESTAMPOID, -1},
	{"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1}, {"clock", TIMEOID, -1}, {"span", INTERVALOID, -1}, {"doc", JSONBOID, -1},
	{"row", ROW_OID, -1}, {"rows", ROW_ARRAY_OID, -1}, {"ints", INTS_OID, -1}, {"texts", TEXTARRAYOID, -1}, {"p", POSITIVE_OID, -1},
	{"map", HSTORE_OID, -1}, {"next", JSONBOID, -1}, {"tree", JSONBOID, -1}, {"b", BOOLOID, -1}, {"d", FLOAT4OID, -1}, {"bytes", BYTEAOID, -1}, {NULL}
};

const char *const fuzz_schemas[] = {
	"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"id\",\"type\":[\"null\",\"int\"]},{\"name\":\"v\",\"type\":[\"null\",\"string\"]}]}",
	"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"v\",\"type\":\"string\"},{\"name\":\"more\",\"type\":\"double\"},{\"name\":\"id\",\"type\":\"long\"}]}",
	ALL_TYPES_SCHEMA,
	LIST_SCHEMA,
	CONNECT_SCHEMA,
	"\"string\"",
	"{\"type\":\"array\",\"items\":\"int\"}",
	"{\"type\":\"recor",
	"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"id\",\"type\":\"unknown\"}]}",
	EVENT_SCHEMA,
	FLINK_EVENT_SCHEMA
};
const int	fuzz_nschemas = lengthof(fuzz_schemas);

#define AVRO_SCHEMA(text) OPTIONS("schema", text)

/* --- protobuf ----------------------------------------------------------------- */

#define DESCRIPTOR(text, ...) OPTIONS("descriptor", text, __VA_ARGS__)

static const FuzzColumn proto_order[] = {
	{"id", INT8OID, -1}, {"name", TEXTOID, -1}, {"note", VARCHAROID, LENGTH(5)}, {"status", TEXTOID, -1}, {"count", INT4OID, -1},
	{"codes", INT4ARRAYOID, -1}, {"tags", JSONBOID, -1}, {"card", TEXTOID, -1}, {"cash", INT2OID, -1}, {"at", TIMESTAMPTZOID, 3},
	{"took", INTERVALOID, -1}, {"w", TEXTOID, -1}, {"doc", JSONBOID, -1}, {"raw", BYTEAOID, -1}, {"texts", TEXTARRAYOID, -1},
	{"items", JSONBOID, -1}, {"main", JSONBOID, -1}, {"parent", JSONBOID, -1}, {NULL}
};

/* The same as other types */
static const FuzzColumn proto_other[] = {
	{"id", NUMERICOID, -1}, {"name", NAMED_OID, -1}, {"status", INT4OID, -1}, {"count", POSITIVE_OID, -1}, {"codes", TEXTOID, -1},
	{"items", TEXTOID, -1}, {"tags", HSTORE_OID, -1}, {"main", JSONOID, -1}, {"at", TIMESTAMPOID, -1}, {"took", TEXTOID, -1},
	{"w", JSONBOID, -1}, {"doc", TEXTOID, -1}, {"raw", UUIDOID, -1}, {"texts", JSONBOID, -1}, {"goods", TEXTOID, -1}, {NULL}
};

static const FuzzColumn proto_written[] = {
	{"id", INT8OID, -1}, {"name", TEXTOID, -1}, {"note", TEXTOID, -1}, {"status", TEXTOID, -1}, {"count", INT4OID, -1},
	{"codes", INT4ARRAYOID, -1}, {"card", TEXTOID, -1}, {"cash", INT8OID, -1}, {"at", TIMESTAMPTZOID, -1}, {"took", INTERVALOID, -1},
	{"w", TEXTOID, -1}, {"raw", BYTEAOID, -1}, {NULL}
};

static const FuzzColumn proto_numbers[] = {
	{"i32", INT4OID, -1}, {"i64", INT8OID, -1}, {"u32", INT8OID, -1}, {"u64", NUMERICOID, -1}, {"s32", INT4OID, -1},
	{"s64", INT8OID, -1}, {"f32", INT8OID, -1}, {"f64", NUMERICOID, NUMERIC(20, 0)}, {"sf32", INT4OID, -1}, {"sf64", INT8OID, -1},
	{"fl", FLOAT4OID, -1}, {"db", FLOAT8OID, -1}, {"b", BOOLOID, -1}, {NULL}
};

static const FuzzColumn proto_narrow[] = {
	{"i32", BOOLOID, -1}, {"i64", INT2OID, -1}, {"u32", INT4OID, -1}, {"u64", INT8OID, -1}, {"s32", NUMERICOID, NUMERIC(4, 2)},
	{"s64", TEXTOID, -1}, {"f32", FLOAT4OID, -1}, {"f64", FLOAT8OID, -1}, {"sf32", POSITIVE_OID, -1}, {"sf64", JSONBOID, -1},
	{"fl", FLOAT8OID, -1}, {"db", FLOAT4OID, -1}, {"b", TEXTOID, -1}, {NULL}
};

static const FuzzColumn proto_part[] = {
	{"id", INT4OID, -1}, {"name", TEXTOID, -1}, {"size", TEXTOID, -1}, {"extra", JSONBOID, -1}, {"plain", INT4ARRAYOID, -1},
	{"packed", INT4ARRAYOID, -1}, {"sizes", TEXTARRAYOID, -1}, {NULL}
};

/* Extensions, and what has a JSON form of its own */
static const FuzzColumn proto_more[] = {
	{"id", INT4OID, -1}, {"any", JSONBOID, -1}, {"anys", JSONBARRAYOID, -1}, {"mask", TEXTOID, -1}, {"at", JSONBOID, -1},
	{"took", JSONOID, -1}, {"raw", JSONBOID, -1}, {"value", JSONBOID, -1}, {"text", TEXTOID, -1}, {"nothing", JSONBOID, -1},
	{"counts", HSTORE_OID, -1}, {"[more.rank]", INT4OID, -1}, {"[more.Note.note]", JSONBOID, -1}, {"[more.levels]", TEXTARRAYOID, -1},
	{"[more.extra]", TEXTOID, -1}, {"[more.deltas]", INT4ARRAYOID, -1}, {NULL}
};

static const FuzzColumn proto_more_written[] = {
	{"id", INT4OID, -1}, {"[more.rank]", INT4OID, -1}, {"[more.deltas]", INT4ARRAYOID, -1}, {"[more.levels]", TEXTARRAYOID, -1}, {NULL}
};

#define ONE(type, typmod) COLUMNS({"v", type, typmod})

const FuzzTable fuzz_tables[] = {
	/* --- json --- */
	{"json", three},
	{"json", flat, OPTIONS("encode_decimal_as_plain_number", "true"), .round_trip = true},
	{"json", nested, .round_trip = true, .time_zone = "Moving"},
	{"json", documents},
	{"json", odd},
	{"json", flat, OPTIONS("fail_on_missing_field", "true", "registry_framing", "strip", "nul_handling", "strip",
	"empty_value", "delete", "null_value", "delete")},
	{"json", flat, OPTIONS("ignore_parse_errors", "true"), .time_zone = "Moving"},
	{"json", nested, OPTIONS("ignore_parse_errors", "true", "nul_handling", "strip", "empty_value", "ignore")},
	{"json", documents, OPTIONS("nul_handling", "strip", "ignore_parse_errors", "true")},
	{"json", odd, OPTIONS("ignore_parse_errors", "true")},
	{"json", connect_row, .is_key = true, .connect = true, .time_zone = "Moving"},
	{"json", connect_row, OPTIONS("ignore_parse_errors", "true", "nul_handling", "strip"), .is_key = true, .connect = true},
	{"json", COLUMNS({"v", TEXTOID, -1, .unwanted = true})},

	{"json", flat, OPTIONS("time_unit", "ms", "decimal_format", "text", "binary_format", "hex"), .time_zone = "Moving"},
	{"json", COLUMNS({"w", NUMERICOID, NUMERIC(10, 2)}, {"t", TIMESTAMPOID, -1}, {"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1},
	{"clock", TIMEOID, -1}, {"bytes", BYTEAOID, -1}), OPTIONS("time_unit", "us", "decimal_format", "base64", "binary_format", "latin1"),
	.round_trip = true, .time_zone = "Moving"},
	{"json", COLUMNS({"n", NUMERICOID, -1}, {"t", TIMESTAMPOID, 2}, {"z", TIMESTAMPTZOID, -1}, {"day", DATEOID, -1}, {"clock", TIMEOID, 0},
	{"bytes", BYTEAARRAYOID, -1}, {"times", TIMESTAMPARRAYOID, -1}), OPTIONS("time_unit", "ns", "decimal_format", "text", "ignore_parse_errors", "true")},

	/* --- csv --- */
	{"csv", three},
	{"csv", flat, .round_trip = true},
	{"csv", nested},
	{"csv", odd, .time_zone = "Moving"},
	{"csv", flat, OPTIONS("field_delimiter", ";", "quote_character", "'", "escape_character", "\\", "null_literal", "NULL",
	"allow_comments", "true", "empty_value", "ignore"), .round_trip = true},
	{"csv", nested, OPTIONS("ignore_parse_errors", "true", "array_element_delimiter", "|", "escape_character", "*",
	"empty_value", "delete")},
	{"csv", odd, OPTIONS("ignore_parse_errors", "true", "disable_quote_character", "true", "null_literal", "n/a")},
	{"csv", documents, OPTIONS("field_delimiter", "\t", "allow_comments", "true")},
	{"csv", COLUMNS({"a", TEXTOID, -1, .unwanted = true}, {"b", TEXTARRAYOID, -1}, {"c", TEXTOID, -1, .unwanted = true}),
	OPTIONS("escape_character", "\\", "disable_quote_character", "true")},
	{"csv", COLUMNS({"k", INT8OID, -1}), .is_key = true, .round_trip = true},
	{"csv", COLUMNS({"a", TEXTOID, -1}, {"b", TEXTOID, -1}, {"c", VARCHAROID, LENGTH(3)}), .round_trip = true},

	{"csv", flat, OPTIONS("time_unit", "s", "binary_format", "hex", "nul_handling", "strip", "escape_character", "\\"), .time_zone = "Fixed"},

	/* --- raw --- */
	{"raw", ONE(TEXTOID, -1), .round_trip = true},
	{"raw", ONE(VARCHAROID, LENGTH(3)), .round_trip = true},
	{"raw", ONE(BYTEAOID, -1), .round_trip = true},
	{"raw", ONE(BOOLOID, -1), .round_trip = true},
	{"raw", ONE(INT2OID, -1), .round_trip = true},
	{"raw", ONE(INT4OID, -1), OPTIONS("endianness", "little-endian"), .round_trip = true},
	{"raw", ONE(INT8OID, -1), .round_trip = true},
	{"raw", ONE(FLOAT4OID, -1), .round_trip = true},
	{"raw", ONE(FLOAT8OID, -1), OPTIONS("endianness", "little-endian"), .round_trip = true},
	{"raw", ONE(NUMERICOID, -1), .round_trip = true},
	{"raw", ONE(NUMERICOID, NUMERIC(10, 2)), .round_trip = true},
	{"raw", ONE(TIMESTAMPOID, -1)},
	{"raw", ONE(TIMESTAMPTZOID, -1), .time_zone = "Moving"},
	{"raw", ONE(DATEOID, -1)},
	{"raw", ONE(TIMEOID, -1), .round_trip = true},
	{"raw", ONE(JSONBOID, -1)},
	{"raw", ONE(JSONOID, -1), .round_trip = true},
	{"raw", ONE(UUIDOID, -1), .round_trip = true},
	{"raw", ONE(INT4ARRAYOID, -1)},
	{"raw", ONE(POSITIVE_OID, -1), .round_trip = true},
	{"raw", ONE(NAMED_OID, -1), .round_trip = true},
	{"raw", ONE(PRICE_OID, -1), .round_trip = true},
	{"raw", ONE(COLOUR_OID, -1), .round_trip = true},
	{"raw", ONE(ROW_OID, -1)},
	{"raw", ONE(TEXTOID, -1), OPTIONS("charset", "LATIN1"), .round_trip = true},
	{"raw", ONE(TIMESTAMPTZOID, -1), OPTIONS("time_unit", "ms"), .time_zone = "Moving"},
	{"raw", ONE(TEXTOID, -1), OPTIONS("nul_handling", "strip")},

	/* --- avro --- */
	{"avro", three, .round_trip = true},
	{"avro", avro_flat, .round_trip = true, .time_zone = "Moving"},
	{"avro", avro_nested, OPTIONS("timestamp_mapping_legacy", "false"), .round_trip = true},
	{"avro", avro_all, AVRO_SCHEMA(ALL_TYPES_SCHEMA), .time_zone = "Moving"},
	{"avro", avro_text, AVRO_SCHEMA(ALL_TYPES_SCHEMA)},
	{"avro", avro_json, AVRO_SCHEMA(ALL_TYPES_SCHEMA)},
	{"avro", COLUMNS({"id", INT4OID, -1}, {"next", JSONBOID, -1}, {"tree", JSONOID, -1}), AVRO_SCHEMA(LIST_SCHEMA)},
	{"avro", COLUMNS({"id", INT4OID, -1}, {"next", TEXTOID, -1}, {"tree", HSTORE_OID, -1}), AVRO_SCHEMA(LIST_SCHEMA)},
	{"avro", connect_row, AVRO_SCHEMA(CONNECT_SCHEMA), .time_zone = "Fixed"},
	{"avro", ONE(TEXTOID, -1), AVRO_SCHEMA("\"string\""), .is_key = true},
	{"avro", ONE(INT4ARRAYOID, -1), AVRO_SCHEMA("{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":\"int\"}}")},
	{"avro", ONE(JSONBOID, -1), AVRO_SCHEMA("{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":\"bytes\"}}")},
	{"avro", ONE(INTS_OID, -1), AVRO_SCHEMA("[\"string\",{\"type\":\"array\",\"items\":[\"null\",\"long\"]}]")},

	{"avro", avro_flat, OPTIONS("encoding", "json"), .round_trip = true, .time_zone = "Moving"},
	{"avro", avro_nested, OPTIONS("encoding", "json", "nul_handling", "strip", "empty_value", "delete"), .round_trip = true},
	{"avro", avro_all, OPTIONS("encoding", "json", "schema", ALL_TYPES_SCHEMA)},
	{"avro", avro_json, OPTIONS("encoding", "json", "schema", ALL_TYPES_SCHEMA)},
	{"avro", COLUMNS({"id", INT4OID, -1}, {"next", JSONBOID, -1}, {"tree", JSONOID, -1}), OPTIONS("encoding", "json", "schema", LIST_SCHEMA)},

	/* --- avro-confluent --- */
	{"avro-confluent", three},
	{"avro-confluent", avro_any, .time_zone = "Moving"},
	{"avro-confluent", avro_json},
	{"avro-confluent", ONE(TEXTOID, -1), .is_key = true},
	{"avro-confluent", three, OPTIONS("schema", "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"default\":7},"
									  "{\"name\":\"v\",\"type\":[\"string\",\"int\"],\"default\":\"x\",\"aliases\":[\"name\",\"item\"]},"
									  "{\"name\":\"w\",\"type\":{\"type\":\"record\",\"name\":\"P\",\"fields\":[{\"name\":\"a\",\"type\":\"int\",\"default\":1}]},\"default\":{}}]}")},

	/* --- schemas from outside: the input begins with the registry's answers --- */
	{"avro-schema", avro_any, .time_zone = "Moving"},
	{"avro-schema", avro_json},
	{"avro-schema", ONE(TEXTOID, -1)},
	{"avro-schema", ONE(INT4ARRAYOID, -1)},
	{"avro-schema", ONE(JSONBOID, -1)},
	{"avro-schema", ONE(ROW_OID, -1)},

	/* --- protobuf --- */
	{"protobuf", proto_order, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Order"), .time_zone = "Moving"},
	{"protobuf", proto_other, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Order", "read_default_values", "true")},
	{"protobuf", proto_order, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Order", "ignore_parse_errors", "true")},
	{"protobuf", proto_written, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Order"), .round_trip = true},
	{"protobuf", proto_numbers, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Numbers"), .round_trip = true},
	{"protobuf", proto_narrow, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Numbers")},
	{"protobuf", proto_part, DESCRIPTOR(LEGACY_DESCRIPTOR, "message", "legacy.Part")},
	{"protobuf", proto_part, DESCRIPTOR(LEGACY_DESCRIPTOR, "message", "legacy.Part", "read_default_values", "true", "ignore_parse_errors", "true")},
	{"protobuf", COLUMNS({"id", INT8OID, -1}), DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Key"), .is_key = true, .round_trip = true},
	{"protobuf", proto_more, DESCRIPTOR(MORE_DESCRIPTOR, "message", "more.Base")},
	{"protobuf", proto_more, DESCRIPTOR(MORE_DESCRIPTOR, "message", "more.Base", "read_default_values", "true", "ignore_parse_errors", "true", "nul_handling", "strip")},
	{"protobuf", proto_more_written, DESCRIPTOR(MORE_DESCRIPTOR, "message", "more.Base"), .round_trip = true},

	/* --- protobuf-confluent --- */
	{"protobuf-confluent", proto_order, DESCRIPTOR(SHOP_DESCRIPTOR, "message", "shop.Order")},
	{"protobuf-confluent", COLUMNS({"id", INT8OID, -1}, {"i32", INT4OID, -1}, {"name", TEXTOID, -1}), OPTIONS("descriptor", SHOP_DESCRIPTOR)},
	{"protobuf-confluent", COLUMNS({"id", INT4OID, -1}, {"text", TEXTOID, -1}), OPTIONS("descriptor", LEGACY_DESCRIPTOR, "ignore_parse_errors", "true")},
	{"protobuf-confluent", COLUMNS({"text", TEXTOID, -1}, {"[more.Note.note]", JSONBOID, -1}), OPTIONS("descriptor", MORE_DESCRIPTOR)},

	/* --- descriptors from outside: the input begins with one --- */
	{"protobuf-schema", COLUMNS({"id", INT4OID, -1})},
	{"protobuf-schema", COLUMNS({"id", JSONBOID, -1})},
	{"protobuf-schema", COLUMNS({"id", TEXTARRAYOID, -1})},
	{"protobuf-schema", COLUMNS({"id", ROW_OID, -1})},

	/* --- protobuf's schemas from outside: the input begins with the registry's answers --- */
	{"protobuf-source", COLUMNS({"id", INT4OID, -1})},
	{"protobuf-source", COLUMNS({"id", JSONBOID, -1}, {"[p.x]", TEXTOID, -1})},
	{"protobuf-source", COLUMNS({"id", TEXTARRAYOID, -1})},
	{"protobuf-source", COLUMNS({"id", ROW_OID, -1}), OPTIONS("message", "p.M")},

	/* --- debezium-json --- */
	{"debezium-json", product},
	{"debezium-json", debezium, .upsert = true, .has_key = true, .keys = "id"},
	{"debezium-json", debezium, OPTIONS("time_unit", "us", "unavailable", "error", "nul_handling", "strip", "truncate", "ignore"),
	.time_zone = "Moving"},
	{"debezium-json", debezium, OPTIONS("ignore_parse_errors", "true", "time_unit", "ns"), .upsert = true, .has_key = true, .keys = "id"},
	{"debezium-json", event, .round_trip = true},
	{"debezium-json", debezium, OPTIONS("unavailable_value", "x", "time_unit", "s"), .has_key = true, .time_zone = "Fixed"},
	{"debezium-json", debezium, OPTIONS("ignore_parse_errors", "true", "truncate", "apply"), .upsert = true, .has_key = true, .keys = "id"},

	/* --- debezium-avro-confluent --- */
	{"debezium-avro-confluent", debezium_avro},
	{"debezium-avro-confluent", debezium_avro, .upsert = true, .has_key = true, .keys = "id", .time_zone = "Moving"},
	{"debezium-avro-confluent", avro_any, OPTIONS("time_unit", "us", "unavailable", "error", "nul_handling", "strip", "truncate", "ignore", "empty_value", "delete")},
	{"debezium-avro-confluent", avro_json, OPTIONS("ignore_parse_errors", "true"), .has_key = true, .time_zone = "Fixed"},
	{"debezium-avro-confluent", avro_all, OPTIONS("ignore_parse_errors", "true", "unavailable_value", "x"), .upsert = true, .has_key = true, .keys = "id"},

	/* --- canal-json --- */
	{"canal-json", product},
	{"canal-json", canal, .upsert = true, .has_key = true, .keys = "id", .time_zone = "Moving"},
	{"canal-json", canal, OPTIONS("database_include", "inventory", "table_include", "products", "nul_handling", "strip", "truncate", "ignore")},
	{"canal-json", canal, OPTIONS("ignore_parse_errors", "true", "binary_format", "base64"), .upsert = true, .has_key = true, .keys = "id"},
	{"canal-json", event, .round_trip = true},
	{"canal-json", canal, OPTIONS("table_include", "products", "truncate", "apply"), .upsert = true, .has_key = true, .keys = "id"},

	/* --- maxwell-json --- */
	{"maxwell-json", product},
	{"maxwell-json", maxwell, .upsert = true, .has_key = true, .keys = "pk.id", .time_zone = "Moving"},
	{"maxwell-json", maxwell, OPTIONS("nul_handling", "strip")},
	{"maxwell-json", maxwell, OPTIONS("ignore_parse_errors", "true"), .upsert = true, .has_key = true, .keys = "id"},
	{"maxwell-json", event, .round_trip = true},

	/* --- ogg-json --- */
	{"ogg-json", product},
	{"ogg-json", ogg, .upsert = true, .has_key = true, .keys = "id", .time_zone = "Moving"},
	{"ogg-json", ogg, OPTIONS("nul_handling", "strip", "truncate", "ignore", "missing", "null")},
	{"ogg-json", ogg, OPTIONS("ignore_parse_errors", "true"), .upsert = true, .has_key = true, .keys = "id"},
	{"ogg-json", event, .round_trip = true},
	{"ogg-json", ogg, OPTIONS("truncate", "apply"), .upsert = true, .has_key = true, .keys = "id"}
};
const int	fuzz_ntables = lengthof(fuzz_tables);
