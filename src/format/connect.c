/*
 * connect.c
 *	  Rows as Kafka Connect's JSON converter writes them, see connect.h.
 *
 * A logical value becomes the text that the column type's input function reads
 * (connect_logical.c); from there on everything is json_value.c's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/base64.h"
#include "format/connect.h"
#include "format/connect_schema.h"
#include "format/decimal_bytes.h"
#include "format/json_value.h"
#include "format/lenient.h"
#include "format/value_output.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

typedef struct ConnectColumn
{
	JsonTarget *target;
	int			field;			/* in ConnectRow.found */
	int			index;			/* in the sink's arrays */
	const char *name;			/* SQL name */
	const char *member;
	const bool *lenient;
	bool		array;
	Oid			base;			/* type without domains, an array's elements' */
	bool		direct;			/* timestamp, exactly */
	bool		direct_instant; /* timestamptz, exactly */
	bool		direct_bytes;	/* bytea, exactly */
	bool		number;			/* keeps numbers as they are, whatever they count */
	bool		json;			/* keeps everything as it is */
	pg_tz	   *zone;			/* the table's */
	bool		calendar;		/* date or timestamp: reads ISO 8601 text */
	bool		special;		/* values that no schema has to tell of are converted */
	ConnectKind plain;			/* where no schema tells */
	ConnectKind kind;			/* of the rows at hand */
} ConnectColumn;

struct ConnectRow
{
	ConnectOptions options;
	int			ncolumns;
	ConnectColumn *columns;
	JsonFields *fields;
	JsonText   *found;
	ConnectSchema *schema;

	/* forms of the text that stands for a value left out */
	Size		marker_len;
	char	   *marker_base64;	/* in bytea */
	char	   *marker_uuid;	/* in uuid[]; NULL: no such column */
	char	   *marker_map;		/* as the whole of an hstore */
};

/* ------------------------------------------------------------------------
 * One value
 * ------------------------------------------------------------------------ */

/*
 * The text that stands for a logical value, and whether it is a number's; NULL if the
 * value is to be taken as it is.
 */
static char *
logical_text(const ConnectColumn *column, const JsonText *value, bool *is_number)
{
	const ConnectKind *kind = &column->kind;
	const char *infinity;
	int64		number;

	*is_number = false;
	if (column->special && (kind->logical == LOGICAL_PLAIN || kind->without_schema))
	{
		if (column->calendar && value->kind == JK_STRING && !value->escaped)
			return connect_iso_text(value->text, value->len);
		if (column->base == POINTOID && value->kind == JK_OBJECT)
			return connect_point_text(value);
		if ((column->base == BITOID || column->base == VARBITOID) && (value->kind == JK_TRUE || value->kind == JK_FALSE))
			return pstrdup(value->kind == JK_TRUE ? "1" : "0");
		if (column->base == NUMERICOID && value->kind == JK_STRING)
			return connect_infinite_number(value);
		if (column->base == INTERVALOID && value->kind == JK_STRING)
			return connect_clock_text(value);
	}
	switch (kind->logical)
	{
		case LOGICAL_DECIMAL:
			*is_number = true;
			return connect_decimal_text(kind, kind->parameter, value);
		case LOGICAL_VARIABLE_DECIMAL:
			*is_number = true;
			return connect_variable_decimal_text(kind, value);
		case LOGICAL_BITS:
			return column->base == BYTEAOID || column->json ? NULL : connect_bits_text(kind, value);
		case LOGICAL_ZONED:
			if (!column->calendar || value->kind != JK_STRING || value->escaped)
				return NULL;
			return column->base == TIMESTAMPOID ? connect_zoned_text(value) : connect_iso_text(value->text, value->len);
		case LOGICAL_PLAIN:
			return NULL;
		default:
			break;
	}

	/* times: numbers, which only columns of other types need converted */
	if (column->number || column->json || (kind->without_schema && value->kind != JK_NUMBER))
		return NULL;
	number = connect_required_int64(kind, value);
	infinity = kind->logical == LOGICAL_DATE || kind->logical == LOGICAL_TIMESTAMP ? connect_infinity_text(kind, number) : NULL;
	if (infinity)
		return pstrdup(infinity);
	if (kind->logical == LOGICAL_INSTANT)
		return connect_instant_text(connect_timestamp(kind, number), column->base == TIMESTAMPOID ? column->zone : NULL);
	switch (kind->logical)
	{
		case LOGICAL_DATE:
			return connect_date_text(kind, number);
		case LOGICAL_TIME:
			return connect_time_text(kind, number);
		case LOGICAL_DURATION:
			return column->base == INTERVALOID ? connect_time_text(kind, number) : NULL;
		default:
			return connect_timestamp_text(connect_timestamp(kind, number));
	}
}

typedef struct Conversion
{
	ConnectColumn *column;
	const JsonText *value;
	char	   *text;
	bool		is_number;
	Datum		result;
	bool	   *isnull;
} Conversion;

static void
convert_text(void *arg)
{
	Conversion *conversion = arg;

	conversion->text = logical_text(conversion->column, conversion->value, &conversion->is_number);
}

/* The same for an element of an array, the text null for one that is no good. */
static char *
element_text(ConnectColumn *column, const JsonText *value, bool *is_number)
{
	Conversion	conversion = {.column = column, .value = value};

	if (likely(!*column->lenient))
		return logical_text(column, value, is_number);
	if (!lenient_convert(convert_text, &conversion))
	{
		*is_number = true;
		return pstrdup("null");
	}
	*is_number = conversion.is_number;
	return conversion.text;
}

/* An array of logical values as the array of their texts. */
static Datum
array_value(ConnectColumn *column, const JsonText *value, bool *isnull)
{
	StringInfoData text;
	JsonScan	scan;
	JsonText	element;
	JsonText	whole = {.kind = JK_ARRAY};
	int			n = 0;
	Datum		result;

	initStringInfo(&text);
	appendStringInfoChar(&text, '[');
	json_scan_init(&scan, value->text, value->len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, n == 0, &element); n++)
	{
		bool		is_number;
		char	   *logical = element.kind == JK_NULL ? NULL : element_text(column, &element, &is_number);

		CHECK_FOR_INTERRUPTS();
		if (n > 0)
			appendStringInfoChar(&text, ',');
		if (logical == NULL)
		{
			bool		quoted = element.kind == JK_STRING;

			appendBinaryStringInfo(&text, element.text - quoted, element.len + 2 * quoted);
			continue;
		}
		appendStringInfo(&text, is_number ? "%s" : "\"%s\"", logical);
		pfree(logical);
	}
	appendStringInfoChar(&text, ']');
	whole.text = text.data;
	whole.len = text.len;
	result = json_value_datum(column->target, &whole, isnull);
	pfree(text.data);
	return result;
}

static Datum column_value(ConnectColumn *column, const JsonText *value, bool *isnull);

/* Bytes that are not base64: those that are wanted so, or as a number, never become it. */
static Datum
bytes_value(ConnectColumn *column, const JsonText *value, bool *isnull)
{
	JsonText	text = {.kind = JK_STRING};
	StringInfoData base64;
	char	   *number;
	Datum		result;

	if (column->direct_bytes)
	{
		*isnull = false;
		return PointerGetDatum(cstring_to_text_with_len(value->text, (int) value->len));
	}
	if (column->kind.logical == LOGICAL_DECIMAL && !column->array)
	{
		number = decimal_bytes_text(value->text, (int) value->len, column->kind.parameter, column->kind.name);
		text.kind = JK_NUMBER;
		text.text = number;
		text.len = strlen(number);
		result = json_value_datum(column->target, &text, isnull);
		pfree(number);
		return result;
	}
	initStringInfo(&base64);
	append_base64(&base64, value->text, value->len);
	text.text = base64.data;
	text.len = base64.len;
	result = column_value(column, &text, isnull);
	pfree(base64.data);
	return result;
}

static Datum
column_value(ConnectColumn *column, const JsonText *value, bool *isnull)
{
	JsonText	logical = {.kind = JK_STRING};
	bool		is_number;
	char	   *text;
	Datum		result;

	if (value->kind == CONNECT_BYTES)
		return bytes_value(column, value, isnull);
	if ((column->kind.logical == LOGICAL_PLAIN && !column->special) || value->kind <= JK_NULL)
		return json_value_datum(column->target, value, isnull);
	if (column->array)
		return value->kind == JK_ARRAY ? array_value(column, value, isnull)
			: json_value_datum(column->target, value, isnull);
	if (column->direct && column->kind.logical == LOGICAL_TIMESTAMP && value->kind == JK_NUMBER)
	{
		int64		number = connect_required_int64(&column->kind, value);

		if (connect_infinity_text(&column->kind, number) == NULL)
		{
			*isnull = false;
			return TimestampGetDatum(connect_timestamp(&column->kind, number));
		}
	}
	if (column->kind.logical == LOGICAL_INSTANT && value->kind == JK_NUMBER && (column->direct_instant || column->direct))
	{
		int64		instant = connect_timestamp(&column->kind, connect_required_int64(&column->kind, value));

		*isnull = false;
		return TimestampTzGetDatum(column->direct ? connect_local_time(instant, column->zone) : instant);
	}
	text = logical_text(column, value, &is_number);
	if (text == NULL)
		return json_value_datum(column->target, value, isnull);
	logical.text = text;
	logical.len = strlen(text);
	if (is_number)
		logical.kind = JK_NUMBER;
	result = json_value_datum(column->target, &logical, isnull);
	pfree(text);
	return result;
}

static void
convert(void *arg)
{
	Conversion *conversion = arg;

	conversion->result = column_value(conversion->column, conversion->value, conversion->isnull);
}

static Datum
column_value_or_null(ConnectColumn *column, const JsonText *value, bool *isnull)
{
	Conversion	conversion = {.column = column, .value = value, .isnull = isnull};
	JsonText	null = {.kind = JK_NULL};

	if (lenient_convert(convert, &conversion))
		return conversion.result;
	return json_value_datum(column->target, &null, isnull); /* a domain's say */
}

/* ------------------------------------------------------------------------
 * Values that were left out
 * ------------------------------------------------------------------------ */

static bool
string_is(const JsonText *value, const char *text, Size len)
{
	char	   *plain;
	size_t		plain_len;
	bool		same;

	if (!value->escaped)
		return value->len == len && memcmp(value->text, text, len) == 0;
	if (value->len < len)
		return false;
	plain = palloc(value->len + 1);
	same = json_unescape(value, true, plain, &plain_len) == JSON_OK && plain_len == len && memcmp(plain, text, len) == 0;
	pfree(plain);
	return same;
}

/* One element that is the marker, or one number for each of its bytes. */
static bool
array_is_marker(const ConnectRow *row, const JsonText *value)
{
	const char *marker = row->options.unavailable;
	JsonScan	scan;
	JsonText	element;
	Size		n = 0;
	bool		strings = false;

	json_scan_init(&scan, value->text, value->len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, n == 0, &element); n++)
	{
		int64		number;

		if (n == 0 && element.kind == JK_STRING)
		{
			strings = true;
			if (string_is(&element, marker, row->marker_len) ||
				string_is(&element, row->marker_base64, strlen(row->marker_base64)) ||
				(row->marker_uuid && string_is(&element, row->marker_uuid, strlen(row->marker_uuid))))
				continue;
		}
		if (strings || n >= row->marker_len || !connect_int64(&element, &number) ||
			number != (signed char) marker[n])
			return false;
	}
	return strings ? n == 1 : n == row->marker_len;
}

static bool
is_unavailable(const ConnectRow *row, const ConnectColumn *column, const JsonText *value)
{
	switch (value->kind)
	{
		case JK_STRING:
			return string_is(value, row->options.unavailable, row->marker_len) ||
				(column->base == BYTEAOID && string_is(value, row->marker_base64, strlen(row->marker_base64))) ||
				string_is(value, row->marker_map, strlen(row->marker_map));
		case JK_ARRAY:
			return column->array && array_is_marker(row, value);
		case JK_OBJECT:
			return value->len == strlen(row->marker_map) && memcmp(value->text, row->marker_map, value->len) == 0;
		case CONNECT_BYTES:
			return value->len == row->marker_len && memcmp(value->text, row->options.unavailable, value->len) == 0;
		default:
			return false;
	}
}

static void
prepare_markers(ConnectRow *row)
{
	const char *marker = row->options.unavailable;
	int			max;
	int			len;
	bool		uuids = false;
	char	   *hash;

	/* messages are UTF-8 */
	marker = pg_server_to_any(marker, (int) strlen(marker), PG_UTF8);
	row->options.unavailable = marker;
	row->marker_len = strlen(marker);
	max = pg_b64_enc_len((int) row->marker_len) + 1;
	row->marker_base64 = palloc(max);
	len = pg_b64_encode((const void *) marker, (int) row->marker_len, row->marker_base64, max);
	row->marker_base64[Max(len, 0)] = '\0';
	row->marker_map = psprintf("{\"%s\":\"%s\"}", marker, marker);

	/* the name-based UUID that Java makes of the bytes (RFC 4122, version 3, no namespace) */
	for (int i = 0; i < row->ncolumns && !uuids; i++)
		uuids = row->columns[i].array && row->columns[i].base == UUIDOID;
	if (!uuids)
		return;
	hash = text_to_cstring(DatumGetTextPP(DirectFunctionCall1(md5_text, PointerGetDatum(cstring_to_text(marker)))));
	hash[12] = '3';
	hash[16] = "89ab"[(hash[16] <= '9' ? hash[16] - '0' : hash[16] - 'a' + 10) & 3];
	row->marker_uuid = psprintf("%.8s-%.4s-%.4s-%.4s-%.12s", hash, hash + 8, hash + 12, hash + 16, hash + 20);
}

/* ------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------ */

/* What a bare number in a column of this type counts, with the option time_unit. */
static ConnectKind
plain_kind(Oid base, ConnectUnit unit)
{
	ConnectKind kind = {.logical = LOGICAL_PLAIN, .unit = unit, .without_schema = true};

	if (unit == CONNECT_NO_UNIT)
		return kind;
	switch (base)
	{
		case DATEOID:
			kind.logical = LOGICAL_DATE;
			kind.name = "date";
			break;
		case TIMEOID:
		case TIMETZOID:
			kind.logical = LOGICAL_TIME;
			kind.name = "time";
			break;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			kind.logical = LOGICAL_TIMESTAMP;
			kind.name = "timestamp";
			break;
		default:
			break;
	}
	return kind;
}

ConnectRow *
connect_row_create(int ncolumns, const FormatColumn *columns, const ConnectOptions *options)
{
	ConnectRow *row = palloc0(sizeof(ConnectRow));
	const char **names = palloc(Max(ncolumns, 1) * sizeof(char *));
	int		   *field_of = palloc(Max(ncolumns, 1) * sizeof(int));

	row->options = *options;
	row->ncolumns = ncolumns;
	row->columns = palloc0(Max(ncolumns, 1) * sizeof(ConnectColumn));
	for (int i = 0; i < ncolumns; i++)
		names[i] = columns[i].field;
	row->fields = json_fields_create(ncolumns, names, field_of);
	row->found = palloc(Max(row->fields->n, 1) * sizeof(JsonText));
	for (int i = 0; i < ncolumns; i++)
	{
		ConnectColumn *column = &row->columns[i];
		Oid			element;

		column->target = json_target_create(&columns[i], options->time_zone, options->strip_nul);
		json_target_set_lenient(column->target, options->lenient);
		column->lenient = options->lenient;
		column->field = field_of[i];
		column->index = columns[i].index;
		column->name = columns[i].column;
		column->zone = pg_tzset(options->time_zone);
		column->member = columns[i].field;
		column->base = getBaseType(columns[i].type);
		element = array_element_type(column->base);
		column->array = OidIsValid(element);
		if (column->array)
			column->base = getBaseType(element);
		column->direct = columns[i].type == TIMESTAMPOID && columns[i].typmod < 0;
		column->direct_instant = columns[i].type == TIMESTAMPTZOID && columns[i].typmod < 0;
		column->direct_bytes = columns[i].type == BYTEAOID;
		column->json = column->base == JSONOID || column->base == JSONBOID;
		column->number = column->base == INT2OID || column->base == INT4OID || column->base == INT8OID ||
			column->base == NUMERICOID || column->base == FLOAT4OID || column->base == FLOAT8OID;
		column->calendar = column->base == DATEOID || column->base == TIMESTAMPOID || column->base == TIMESTAMPTZOID;
		column->special = column->calendar || column->base == POINTOID || column->base == BITOID ||
			column->base == VARBITOID || column->base == NUMERICOID || column->base == INTERVALOID;
		column->plain = plain_kind(column->base, options->unit);
		column->kind = column->plain;
	}
	row->schema = connect_schema_create(ncolumns, names);
	if (options->unavailable)
		prepare_markers(row);
	return row;
}

static void
set_kind(ConnectColumn *column, const ConnectKind *kind)
{
	column->kind = column->plain;
	if (kind && kind->logical != LOGICAL_PLAIN && kind->of_elements == column->array)
		column->kind = *kind;
}

void
connect_row_schema(ConnectRow *row, const JsonText *schema, const char *field)
{
	const ConnectKind *kinds;

	if (!connect_schema_read(row->schema, schema, field, &kinds))
		return;
	for (int i = 0; i < row->ncolumns; i++)
		set_kind(&row->columns[i], kinds ? &kinds[i] : NULL);
}

int
connect_row_nslots(const ConnectRow *row)
{
	return row->fields->n;
}

int
connect_row_slot(const ConnectRow *row, const char *field)
{
	for (int i = 0; i < row->ncolumns; i++)
		if (strcmp(row->columns[i].member, field) == 0)
			return row->columns[i].field;
	return -1;
}

void
connect_row_kinds(ConnectRow *row, const ConnectKind *kinds)
{
	for (int i = 0; i < row->ncolumns; i++)
		set_kind(&row->columns[i], &kinds[row->columns[i].field]);
}

void
connect_row_read(ConnectRow *row, const JsonText *object, RowSink *sink)
{
	JsonScan	scan;

	json_scan_init(&scan, object->text, object->len);
	if (!json_scan_object(&scan, row->fields, row->found))
		json_scan_raise(&scan, object->text);
	connect_row_take(row, row->found, sink);
}

void
connect_row_take(ConnectRow *row, const JsonText *values, RowSink *sink)
{
	for (int i = 0; i < row->ncolumns; i++)
	{
		ConnectColumn *column = &row->columns[i];
		const JsonText *value = &values[column->field];

		sink->column = column->name;
		if (value->kind == JK_MISSING)
		{
			if (row->options.fail_on_missing)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("member \"%s\" is missing", column->member)));
			if (sink->missing)
				sink->missing[column->index] = true;
		}
		else if (row->options.unavailable && value->kind >= JK_STRING && is_unavailable(row, column, value))
		{
			if (row->options.unavailable_error)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("the message does not hold the value, which did not change"),
						 errhint("PostgreSQL sends large values only when they change, or with REPLICA IDENTITY FULL; the option unavailable 'keep' keeps the value that the row has.")));
			sink->unchanged = bms_add_member(sink->unchanged, column->index);
			sink->values[column->index] = (Datum) 0;
			sink->isnull[column->index] = true;
			continue;
		}
		if (unlikely(*column->lenient))
			sink->values[column->index] = column_value_or_null(column, value, &sink->isnull[column->index]);
		else
			sink->values[column->index] = column_value(column, value, &sink->isnull[column->index]);
	}
	sink->column = NULL;
}

void
connect_row_read_whole(ConnectRow *row, const char *field, const JsonText *value, RowSink *sink)
{
	for (int i = 0; i < row->ncolumns; i++)
	{
		ConnectColumn *column = &row->columns[i];

		sink->column = NULL;	/* the row is wrong then, not this column of it */
		if (strcmp(column->member, field) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("\"%s\" is a JSON %s, not an object with a member \"%s\"",
							field, json_kind_name(value->kind), column->member),
					 errhint("A jsonb column with the field \"%s\" takes it as a whole, as MongoDB's documents need it.", field)));
		sink->column = column->name;
		sink->values[column->index] = json_value_datum(column->target, value, &sink->isnull[column->index]);
	}
	sink->column = NULL;
}

bool
connect_is_wrapper(const JsonText *schema, const JsonText *payload)
{
	return (schema->kind == JK_OBJECT || schema->kind == JK_NULL) &&
		(payload->kind == JK_OBJECT || payload->kind == JK_NULL);
}
