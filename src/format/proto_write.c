/*
 * proto_write.c
 *	  Datums -> protobuf messages.
 *
 * The mirror of proto_read.c: what is written here is read there as the same value.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "format/binary_values.h"
#include "format/proto_output.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

typedef enum WriterKind
{
	WRITE_INTEGER,				/* int2, int4, int8 -> integers, enums, floats */
	WRITE_NUMERIC,				/* numeric -> the same */
	WRITE_COUNT,				/* times -> integers, in the option time_unit */
	WRITE_FLOATING,
	WRITE_BOOLEAN,
	WRITE_STRING,				/* any type's text -> string */
	WRITE_ENUM,					/* the same -> the number of that name */
	WRITE_BYTES,				/* bytea */
	WRITE_BASE64,				/* text -> bytes */
	WRITE_UUID,					/* uuid -> 16 bytes */
	WRITE_TIMESTAMP,
	WRITE_INTERVAL,
	WRITE_DATE,
	WRITE_TIME,
	WRITE_WRAPPER,
	WRITE_COMPOSITE,
	WRITE_ARRAY,
	WRITE_JSON,					/* jsonb, and what becomes one -> whatever the
								 * field has */
	WRITE_JSON_STRING			/* text -> a message that stands for a value */
} WriterKind;

typedef struct ProtoWriter ProtoWriter;

/* Fields of a message in the order of their numbers */
typedef struct PartWriter
{
	ProtoWriter *writer;
	int			place;			/* in the values of the row, or of the
								 * composite */
	const char *name;			/* of the column */
} PartWriter;

struct ProtoRowWriter
{
	const ProtoMessage *message;
	int			n;
	PartWriter *parts;
	bool	   *member;			/* per oneof: one of its fields is written */
};

struct ProtoWriter
{
	WriterKind	kind;
	const ProtoField *field;
	const ProtoWriteOptions *options;
	Oid			type;			/* a domain's base type */
	ValueOutput *output;		/* NULL: text types, whose bytes are their
								 * text */
	ValueZone	zone;
	Oid			to_jsonb;		/* WRITE_JSON: a cast's function */
	ProtoWriter *inner;			/* of a wrapper's value, of an array's
								 * elements */
	ProtoRowWriter *row;		/* WRITE_COMPOSITE */
	TupleDesc	desc;
	int16		typlen;			/* WRITE_ARRAY */
	bool		typbyval;
	char		typalign;
};

static ProtoWriter *writer_create(const ProtoField *field, bool one, Oid type, int32 typmod, const ProtoWriteOptions *options);
static void write_value(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out);
static void write_row(ProtoRowWriter *row, const Datum *values, const bool *isnull, StringInfo out, const char **column);

/* === Compiling ============================================================== */

static bool
is_time(Oid type)
{
	return type == TIMESTAMPOID || type == TIMESTAMPTZOID || type == DATEOID || type == TIMEOID;
}

static ProtoWriter *
of_kind(ProtoWriter *writer, WriterKind kind)
{
	writer->kind = kind;
	return writer;
}

static ProtoWriter *
by_text(ProtoWriter *writer, WriterKind kind)
{
	if (!is_text_type(writer->type))
		writer->output = value_output_create(writer->type);
	return of_kind(writer, kind);
}

/* jsonb itself, JSON as text, and types with a cast (hstore's maps) */
static ProtoWriter *
json_writer(ProtoWriter *writer)
{
	if (writer->type == JSONBOID || writer->type == JSONOID)
		return of_kind(writer, WRITE_JSON);
	if (is_text_type(writer->type))
		return of_kind(writer, WRITE_JSON);
	if (find_coercion_pathway(JSONBOID, writer->type, COERCION_EXPLICIT, &writer->to_jsonb) == COERCION_PATH_FUNC)
		return of_kind(writer, WRITE_JSON);
	return NULL;
}

static ProtoRowWriter *
new_row(const ProtoMessage *message, int room)
{
	ProtoRowWriter *row = palloc0(sizeof(ProtoRowWriter));

	row->message = message;
	row->parts = palloc0(sizeof(PartWriter) * Max(room, 1));
	row->member = palloc0(sizeof(bool) * Max(message->noneofs, 1));
	return row;
}

static int
compare_parts(const void *a, const void *b)
{
	uint32		left = ((const PartWriter *) a)->writer->field->number;
	uint32		right = ((const PartWriter *) b)->writer->field->number;

	return left < right ? -1 : left > right;
}

/* The first required field that nothing fills, or NULL */
static const ProtoField *
unfilled(const ProtoRowWriter *row)
{
	for (int i = 0; i < row->message->nrequired; i++)
	{
		const ProtoField *field = row->message->required[i];
		bool		found = false;

		for (int j = 0; j < row->n; j++)
			found |= row->parts[j].writer->field == field;
		if (!found)
			return field;
	}
	return NULL;
}

/* Attributes to fields of their names, all of them: what has no field would be lost. */
static ProtoWriter *
composite_writer(ProtoWriter *writer)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(writer->type, -1);
	ProtoRowWriter *row = new_row(writer->field->message, desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const ProtoField *field;

		if (att->attisdropped)
			continue;
		field = proto_field_by_name(row->message, NameStr(att->attname), false);
		row->parts[row->n].writer = field ? writer_create(field, false, att->atttypid, att->atttypmod, writer->options) : NULL;
		if (row->parts[row->n].writer == NULL)
			return NULL;
		row->parts[row->n++].place = i;
	}
	if (unfilled(row))
		return NULL;
	qsort(row->parts, row->n, sizeof(PartWriter), compare_parts);
	writer->desc = desc;
	writer->row = row;
	return of_kind(writer, WRITE_COMPOSITE);
}

static ProtoWriter *
array_writer(ProtoWriter *writer, Oid element, int32 typmod)
{
	get_typlenbyvalalign(element, &writer->typlen, &writer->typbyval, &writer->typalign);
	writer->inner = writer_create(writer->field, true, element, typmod, writer->options);
	return writer->inner ? of_kind(writer, WRITE_ARRAY) : NULL;
}

static ProtoWriter *
message_writer(ProtoWriter *writer, Oid type, int32 typmod)
{
	const ProtoMessage *message = writer->field->message;
	Oid			base = writer->type;

	if (get_typtype(base) == TYPTYPE_COMPOSITE)
		return composite_writer(writer);
	switch (message->known)
	{
		case KNOWN_TIMESTAMP:
			if (base == TIMESTAMPOID || base == TIMESTAMPTZOID)
			{
				value_zone_set(&writer->zone, writer->options->time_zone);
				return of_kind(writer, WRITE_TIMESTAMP);
			}
			break;
		case KNOWN_DURATION:
			if (base == INTERVALOID)
				return of_kind(writer, WRITE_INTERVAL);
			break;
		case KNOWN_DATE:
			if (base == DATEOID)
				return of_kind(writer, WRITE_DATE);
			break;
		case KNOWN_TIME:
			if (base == TIMEOID)
				return of_kind(writer, WRITE_TIME);
			break;
		case KNOWN_WRAPPER:
			writer->inner = writer_create(&message->fields[0], true, type, typmod, writer->options);
			return writer->inner ? of_kind(writer, WRITE_WRAPPER) : NULL;
		case KNOWN_FIELD_MASK:
			break;
		default:
			return json_writer(writer);
	}
	return is_text_type(base) ? of_kind(writer, WRITE_JSON_STRING) : json_writer(writer);
}

/* 'one': of a single value of the field, though it may be repeated.  NULL: values of the type have no place there */
static ProtoWriter *
writer_create(const ProtoField *field, bool one, Oid type, int32 typmod, const ProtoWriteOptions *options)
{
	ProtoWriter *writer = palloc0(sizeof(ProtoWriter));
	Oid			base = getBaseTypeAndTypmod(type, &typmod);
	Oid			element;

	check_stack_depth();
	writer->field = field;
	writer->options = options;
	writer->type = base;
	if (field->repeated && !one)
	{
		element = array_element_type(base);
		return OidIsValid(element) && !field->is_map ? array_writer(writer, element, typmod) : json_writer(writer);
	}
	if ((base == JSONBOID || base == JSONOID) && field->type != PROTO_STRING)
		return json_writer(writer);
	switch (field->type)
	{
		case PROTO_DOUBLE:
		case PROTO_FLOAT:
			if (base == FLOAT4OID || base == FLOAT8OID)
				return of_kind(writer, WRITE_FLOATING);
			if (base == INT2OID || base == INT4OID)
				return of_kind(writer, WRITE_INTEGER);
			return base == NUMERICOID ? of_kind(writer, WRITE_NUMERIC) : NULL;
		case PROTO_BOOL:
			return base == BOOLOID ? of_kind(writer, WRITE_BOOLEAN) : NULL;
		case PROTO_STRING:
			return by_text(writer, WRITE_STRING);
		case PROTO_BYTES:
			if (base == UUIDOID)
				return of_kind(writer, WRITE_UUID);
			return base == BYTEAOID ? of_kind(writer, WRITE_BYTES) : is_text_type(base) ? by_text(writer, WRITE_BASE64) : NULL;
		case PROTO_ENUM:
			if (is_integer_type(base))
				return of_kind(writer, WRITE_INTEGER);
			return by_text(writer, WRITE_ENUM);
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			return message_writer(writer, base, typmod);
		default:
			if (is_time(base) && style_changes(&options->style, base))
			{
				value_zone_set(&writer->zone, options->time_zone);
				return of_kind(writer, WRITE_COUNT);
			}
			return is_integer_type(base) ? of_kind(writer, WRITE_INTEGER) : base == NUMERICOID ? of_kind(writer, WRITE_NUMERIC) : NULL;
	}
}

ProtoRowWriter *
proto_row_writer_create(const ProtoMessage *message, int ncolumns, const FormatColumn *columns,
						const ProtoWriteOptions *options)
{
	ProtoRowWriter *row = new_row(message, ncolumns);
	const ProtoField *required;

	for (int i = 0; i < ncolumns; i++)
	{
		const ProtoField *field = proto_field_by_name(message, columns[i].field, false);
		PartWriter *part = &row->parts[i];

		if (field == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("protobuf message \"%s\" has no field \"%s\" for column \"%s\"", message->name,
							columns[i].field, columns[i].column),
					 errhint("The column's option \"field\" says to which field it is written; value_fields_include 'EXCEPT_KEY' leaves key columns out of the value.")));
		part->writer = writer_create(field, false, columns[i].type, columns[i].typmod, options);
		part->place = columns[i].index;
		part->name = columns[i].column;
		if (part->writer == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
					 errmsg("column \"%s\" of type %s cannot be written to its protobuf field \"%s\"", columns[i].column,
							format_type_with_typemod(columns[i].type, columns[i].typmod), field->name),
					 errdetail("The field is of type %s.", proto_type_name(field))));
		for (int j = 0; j < i; j++)
		{
			if (row->parts[j].writer->field == field)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_COLUMN_NAME),
						 errmsg("columns \"%s\" and \"%s\" cannot both be written to protobuf field \"%s\"", row->parts[j].name,
								part->name, field->name)));
		}
		row->n++;
	}
	required = unfilled(row);
	if (required)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
				 errmsg("required field \"%s\" of protobuf message \"%s\" has no column", required->name, message->name)));
	qsort(row->parts, row->n, sizeof(PartWriter), compare_parts);
	return row;
}

/* === Running ================================================================ */

static void
write_integer(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	int64		number = datum_integer(value, writer->type);

	if (writer->field->type == PROTO_DOUBLE)
		proto_put_float(out, writer->field, (float8) number, put);
	else if (writer->field->type == PROTO_FLOAT)
		proto_put_float(out, writer->field, (float4) number, put);
	else
		proto_put_integer(out, writer->field, number, put);
}

static void
write_count(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	StringInfoData text;

	initStringInfo(&text);
	style_append(&text, &writer->options->style, writer->type, -1, writer->zone.zone, value);
	proto_put_integer(out, writer->field, strtoll(text.data, NULL, 10), put);
	pfree(text.data);
}

static void
write_floating(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	float8		number;

	if (writer->type == FLOAT4OID)
		number = DatumGetFloat4(value);
	else if (writer->field->type == PROTO_FLOAT)
		number = DatumGetFloat4(DirectFunctionCall1(dtof, value));
	else
		number = DatumGetFloat8(value);
	proto_put_float(out, writer->field, number, put);
}

static void
write_timestamp(ProtoWriter *writer, Datum value, StringInfo out)
{
	Timestamp	timestamp = DatumGetTimestamp(value);

	if (writer->type == TIMESTAMPOID && !TIMESTAMP_NOT_FINITE(timestamp) && !value_zone_instant(&writer->zone, &timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	proto_put_timestamp(out, writer->field, timestamp, 0);
}

static void
write_composite(ProtoWriter *writer, Datum value, StringInfo out)
{
	int			natts = writer->desc->natts;
	Datum	   *values = palloc(sizeof(Datum) * Max(natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(natts, 1));
	int			begin;

	composite_deform(value, writer->desc, values, isnull);
	begin = proto_put_begin(out, writer->field);
	write_row(writer->row, values, isnull, out, NULL);
	proto_put_end(out, writer->field, begin);
	pfree(values);
	pfree(isnull);
}

/* An array of more dimensions would be read as one of one. */
static void
write_array(ProtoWriter *writer, Datum value, StringInfo out)
{
	const ProtoField *field = writer->field;
	ArrayType  *array = DatumGetArrayTypeP(value);
	ProtoPut	put = field->packed ? PUT_PACKED : PUT_ITEM;
	Datum	   *values;
	bool	   *isnull;
	int			n;
	int			begin = 0;

	if (ARR_NDIM(array) == 0)
		return;
	if (ARR_NDIM(array) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("an array of %d dimensions cannot be written to a repeated field", ARR_NDIM(array))));
	deconstruct_array(array, ARR_ELEMTYPE(array), writer->typlen, writer->typbyval, writer->typalign, &values, &isnull, &n);
	if (field->packed)
		begin = proto_put_begin(out, field);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (isnull[i])
			proto_put_null(out, field, writer->options, put);
		else
			write_value(writer->inner, values[i], put, out);
	}
	if (field->packed)
		proto_put_end(out, field, begin);
	pfree(values);
	pfree(isnull);
}

static void
write_json(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	Jsonb	   *json;
	JsonbValue	root;

	if (writer->type == JSONBOID)
		json = DatumGetJsonbP(value);
	else if (OidIsValid(writer->to_jsonb))
		json = DatumGetJsonbP(OidFunctionCall1(writer->to_jsonb, value));
	else
		json = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(TextDatumGetCString(value))));
	if (!JB_ROOT_IS_SCALAR(json) || !JsonbExtractScalar(&json->root, &root))
	{
		root.type = jbvBinary;
		root.val.binary.data = &json->root;
		root.val.binary.len = VARSIZE_ANY_EXHDR(json);
	}
	if (put == PUT_FIELD)
		proto_put_jsonb(out, writer->field, &root, writer->options);
	else
		proto_put_jsonb_one(out, writer->field, &root, writer->options, put);
}

static void
write_json_string(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	Size		len;
	const char *text = datum_text(writer->output, value, &len);
	JsonbValue	string;

	string.type = jbvString;
	string.val.string.val = (char *) text;

	string.val.string.len = (int) len;
	proto_put_jsonb_one(out, writer->field, &string, writer->options, put);
}

static void
write_value(ProtoWriter *writer, Datum value, ProtoPut put, StringInfo out)
{
	const ProtoField *field = writer->field;
	const char *text;
	Size		len;
	bytea	   *bytes;
	int			begin;

	switch (writer->kind)
	{
		case WRITE_INTEGER:
			write_integer(writer, value, put, out);
			break;
		case WRITE_NUMERIC:
			proto_put_numeric(out, field, DatumGetNumeric(value), put);
			break;
		case WRITE_COUNT:
			write_count(writer, value, put, out);
			break;
		case WRITE_FLOATING:
			write_floating(writer, value, put, out);
			break;
		case WRITE_BOOLEAN:
			proto_put_integer(out, field, DatumGetBool(value), put);
			break;
		case WRITE_STRING:
			text = datum_text(writer->output, value, &len);

			text = text_to_utf8(text, &len);

			proto_put_bytes(out, field, text, len, put);
			break;
		case WRITE_ENUM:
			text = datum_text(writer->output, value, &len);

			proto_put_symbol(out, field, text, len, put);
			break;
		case WRITE_BYTES:
			bytes = DatumGetByteaPP(value);
			proto_put_bytes(out, field, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), put);
			break;
		case WRITE_BASE64:
			text = datum_text(writer->output, value, &len);

			bytes = DatumGetByteaPP(bytea_input(text, len));
			proto_put_bytes(out, field, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), put);
			break;
		case WRITE_UUID:
			proto_put_bytes(out, field, (const char *) DatumGetUUIDP(value)->data, UUID_LEN, put);
			break;
		case WRITE_TIMESTAMP:
			write_timestamp(writer, value, out);
			break;
		case WRITE_INTERVAL:
			proto_put_interval(out, field, DatumGetIntervalP(value));
			break;
		case WRITE_DATE:
			proto_put_date(out, field, DatumGetDateADT(value));
			break;
		case WRITE_TIME:
			proto_put_time(out, field, DatumGetTimeADT(value));
			break;
		case WRITE_WRAPPER:
			begin = proto_put_begin(out, field);
			write_value(writer->inner, value, PUT_FIELD, out);
			proto_put_end(out, field, begin);
			break;
		case WRITE_COMPOSITE:
			write_composite(writer, value, out);
			break;
		case WRITE_ARRAY:
			write_array(writer, value, out);
			break;
		case WRITE_JSON:
			write_json(writer, value, put, out);
			break;
		case WRITE_JSON_STRING:
			write_json_string(writer, value, put, out);
			break;
	}
}

/* *column, where it is wanted, is the part being written */
static void
write_row(ProtoRowWriter *row, const Datum *values, const bool *isnull, StringInfo out, const char **column)
{
	memset(row->member, false, sizeof(bool) * row->message->noneofs);
	for (int i = 0; i < row->n; i++)
	{
		PartWriter *part = &row->parts[i];
		const ProtoField *field = part->writer->field;

		if (column)
			*column = part->name;
		if (isnull[part->place])
		{
			if (field->required)
				proto_missing(row->message, field);
			continue;
		}
		if (field->oneof >= 0)
		{
			if (row->member[field->oneof])
				proto_two_members(row->message, field);
			row->member[field->oneof] = true;
		}
		write_value(part->writer, values[part->place], PUT_FIELD, out);
	}
}

void
proto_row_write(ProtoRowWriter *writer, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	write_row(writer, values, isnull, bytes, column);
	*column = NULL;
}
