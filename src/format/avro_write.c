/*
 * avro_write.c
 *	  Datums -> Avro's binary encoding.
 *
 * The mirror of avro_read.c: what is written here is read there as the same value.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "format/avro_output.h"
#include "format/avro_write.h"
#include "format/binary_values.h"
#include "format/decimal_bytes.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif


typedef enum WriterKind
{
	WRITE_UNION,
	WRITE_INTEGER,				/* int2, int4, int8 -> int, long */
	WRITE_FLOATING,				/* floats and integers -> float, double */
	WRITE_BOOLEAN,
	WRITE_STRING,				/* any type's text -> string */
	WRITE_ENUM,					/* the same -> the symbol of that name */
	WRITE_BYTES,				/* bytea -> bytes, fixed */
	WRITE_DECIMAL,				/* numeric and integers -> decimal */
	WRITE_DATE,
	WRITE_TIME,
	WRITE_TIMESTAMP,
	WRITE_UUID,					/* uuid -> fixed(16) */
	WRITE_DURATION,				/* interval -> fixed(12) */
	WRITE_ARRAY,
	WRITE_RECORD,				/* composites */
	WRITE_JSON					/* json, jsonb -> whatever the schema has */
} WriterKind;

typedef struct AvroWriter
{
	WriterKind	kind;
	const AvroNode *node;
	Oid			type;			/* a domain's base type */
	ValueOutput *output;		/* NULL: text types, whose bytes are their
								 * text */
	ValueZone	zone;
	int			null_branch;	/* of unions; -1: none */
	int			branch;
	int			n;
	struct AvroWriter **children;	/* of a record: NULL, a field without
									 * attribute */
	int		   *places;			/* of a record: index of the attribute */
	TupleDesc	desc;

	/* WRITE_ARRAY: one element writer, behind ndims arrays */
	int			ndims;
	int16		typlen;
	bool		typbyval;
	char		typalign;
} AvroWriter;

/* What is the same for all parts of a column */
typedef struct WriterSettings
{
	const char *time_zone;
	TimeUnit	unit;			/* of times in plain integers, if there is one */
} WriterSettings;

struct AvroRowWriter
{
	bool		is_record;
	const AvroNode *root;
	int			record_branch;	/* of a root that is a union with null, else
								 * -1 */
	int			n;				/* fields */
	AvroWriter **writers;		/* NULL: no column of that name */
	const FormatColumn **columns;
};

static void write_value(AvroWriter *writer, Datum value, bool isnull, StringInfo out);

/* === Compiling ============================================================== */

static AvroWriter *
new_writer(WriterKind kind, const AvroNode *node, Oid type)
{
	AvroWriter *writer = palloc0(sizeof(AvroWriter));

	writer->kind = kind;
	writer->node = node;
	writer->type = type;
	writer->null_branch = -1;
	return writer;
}

static AvroWriter *writer_create(const AvroNode *node, Oid type, int32 typmod, const WriterSettings *settings);

/* The first branch that takes the type */
static AvroWriter *
union_writer(const AvroNode *node, Oid type, int32 typmod, const WriterSettings *settings)
{
	AvroWriter *writer = new_writer(WRITE_UNION, node, type);

	for (int i = 0; i < node->n; i++)
	{
		if (node->children[i]->type == AVRO_NULL)
			writer->null_branch = i;
		else if (writer->children == NULL)
		{
			AvroWriter *child = writer_create(node->children[i], type, typmod, settings);

			if (child == NULL)
				continue;
			writer->branch = i;
			writer->children = palloc(sizeof(AvroWriter *));
			writer->children[0] = child;
		}
	}
	return writer->children ? writer : NULL;
}

static AvroWriter *
record_writer(const AvroNode *node, Oid type, const WriterSettings *settings)
{
	AvroWriter *writer = new_writer(WRITE_RECORD, node, type);

	writer->desc = lookup_rowtype_tupdesc_copy(type, -1);
	writer->n = node->n;
	writer->children = palloc0(sizeof(AvroWriter *) * Max(node->n, 1));
	writer->places = palloc0(sizeof(int) * Max(node->n, 1));
	for (int i = 0; i < node->n; i++)
	{
		for (int j = 0; j < writer->desc->natts; j++)
		{
			Form_pg_attribute att = TupleDescAttr(writer->desc, j);

			if (att->attisdropped || strcmp(node->names[i], NameStr(att->attname)) != 0)
				continue;
			writer->children[i] = writer_create(node->children[i], att->atttypid, att->atttypmod, settings);
			if (writer->children[i] == NULL)
				return NULL;
			writer->places[i] = j;
		}
		if (writer->children[i] == NULL && !avro_takes_null(node->children[i]))
			return NULL;
	}
	return writer;
}

static AvroWriter *
string_writer(WriterKind kind, const AvroNode *node, Oid type)
{
	AvroWriter *writer = new_writer(kind, node, type);

	if (!is_text_type(type))
		writer->output = value_output_create(type);
	return writer;
}

/* The array that an item is, a null beside it or not; else NULL */
static const AvroNode *
inner_array(const AvroNode *item, int *branch)
{
	*branch = -1;
	if (avro_is_nullable(item, branch))
		item = item->children[*branch];
	return item->type == AVRO_ARRAY ? item : NULL;
}

/* Arrays of arrays take an array of as many dimensions. */
static AvroWriter *
array_writer(const AvroNode *node, Oid type, Oid element, int32 typmod, const WriterSettings *settings)
{
	AvroWriter *writer = new_writer(WRITE_ARRAY, node, type);
	const AvroNode *item = node->children[0];
	const AvroNode *inner;
	int			branch;

	writer->ndims = 1;
	while (!OidIsValid(get_base_element_type(element)) && element != JSONOID && element != JSONBOID &&
		   (inner = inner_array(item, &branch)) != NULL)
	{
		item = inner->children[0];
		writer->ndims++;
	}
	get_typlenbyvalalign(element, &writer->typlen, &writer->typbyval, &writer->typalign);
	writer->children = palloc(sizeof(AvroWriter *));
	writer->children[0] = writer_create(item, element, typmod, settings);
	return writer->children[0] ? writer : NULL;
}

/* The node as if it were of the logical type that the option time_unit makes of it */
static const AvroNode *
numbered_time(const AvroNode *node, Oid type, TimeUnit unit)
{
	AvroNode   *time = palloc(sizeof(AvroNode));

	*time = *node;
	time->per_second = time_unit_per_second(unit);
	time->logical = type == DATEOID ? AVRO_DATE : type == TIMEOID ? AVRO_TIME : AVRO_TIMESTAMP;
	return time;
}

/* NULL: values of the type have no place there. */
static AvroWriter *
writer_create(const AvroNode *node, Oid type, int32 typmod, const WriterSettings *settings)
{
	AvroWriter *writer = NULL;
	Oid			base = getBaseTypeAndTypmod(type, &typmod);
	Oid			element;

	check_stack_depth();
	if (node->type == AVRO_UNION)
	{
		if (base == JSONBOID || base == JSONOID)
		{
			/*
			 * which branch is the value's to say; as text it could always be
			 * written
			 */
			for (int i = 0; i < node->n; i++)
			{
				if (node->children[i]->type == AVRO_STRING)
					return union_writer(node, base, typmod, settings);
			}
			return new_writer(WRITE_JSON, node, base);
		}
		return union_writer(node, base, typmod, settings);
	}

	switch (node->logical)
	{
		case AVRO_DECIMAL:
			if (base != NUMERICOID && !is_integer_type(base))
				return base == JSONBOID || base == JSONOID ? new_writer(WRITE_JSON, node, base) : NULL;
			writer = new_writer(WRITE_DECIMAL, node, base);
			writer->output = value_output_create(base);
			return writer;
		case AVRO_DATE:
			if (base == DATEOID)
				return new_writer(WRITE_DATE, node, base);
			break;
		case AVRO_TIME:
			if (base == TIMEOID)
				return new_writer(WRITE_TIME, node, base);
			break;
		case AVRO_TIMESTAMP:
		case AVRO_LOCAL_TIMESTAMP:
			if (base != TIMESTAMPOID && base != TIMESTAMPTZOID)
				break;
			writer = new_writer(WRITE_TIMESTAMP, node, base);
			value_zone_set(&writer->zone, settings->time_zone);
			return writer;
		case AVRO_UUID:
			if (base == UUIDOID && node->type == AVRO_FIXED)
				return new_writer(WRITE_UUID, node, base);
			break;
		case AVRO_DURATION:
			if (base == INTERVALOID)
				return new_writer(WRITE_DURATION, node, base);
			break;
		case AVRO_VARIABLE_DECIMAL:
		case AVRO_PLAIN:
			break;
	}

	switch (node->type)
	{
		case AVRO_INT:
		case AVRO_LONG:
			if (is_integer_type(base))
				return new_writer(WRITE_INTEGER, node, base);
			if (node->logical == AVRO_PLAIN && style_is_number(&(ValueStyle) {.unit = settings->unit}, base))
				return writer_create(numbered_time(node, base, settings->unit), base, typmod, settings);
			break;
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			if (base == FLOAT4OID || base == FLOAT8OID || base == INT2OID || base == INT4OID)
				return new_writer(WRITE_FLOATING, node, base);
			break;
		case AVRO_BOOLEAN:
			if (base == BOOLOID)
				return new_writer(WRITE_BOOLEAN, node, base);
			break;
		case AVRO_STRING:
			return string_writer(WRITE_STRING, node, base);
		case AVRO_ENUM:
			if (base == JSONBOID || base == JSONOID)
				break;
			return string_writer(WRITE_ENUM, node, base);
		case AVRO_BYTES:
		case AVRO_FIXED:
			if (base == BYTEAOID)
				return new_writer(WRITE_BYTES, node, base);
			break;
		case AVRO_ARRAY:
			element = array_element_type(base);
			if (!OidIsValid(element))
				break;
			return array_writer(node, base, element, typmod, settings);
		case AVRO_RECORD:
			if (get_typtype(base) == TYPTYPE_COMPOSITE)
				return record_writer(node, base, settings);
			break;
		default:
			break;
	}
	return base == JSONBOID || base == JSONOID ? new_writer(WRITE_JSON, node, base) : NULL;
}

AvroRowWriter *
avro_row_writer_create(const AvroNode *schema, int ncolumns, const FormatColumn *columns, const char *time_zone)
{
	AvroRowWriter *writer = palloc0(sizeof(AvroRowWriter));
	bool	   *found = palloc0(sizeof(bool) * Max(ncolumns, 1));
	int			branch;

	writer->record_branch = -1;
	writer->root = schema;
	if (avro_is_nullable(schema, &branch) && schema->children[branch]->type == AVRO_RECORD)
	{
		writer->root = schema->children[branch];
		writer->record_branch = branch;
	}
	writer->is_record = writer->root->type == AVRO_RECORD;
	if (!writer->is_record && ncolumns != 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_COLUMN_NUMBER),
				 errmsg("an Avro schema of type \"%s\" takes one column, not %d", avro_type_name(schema), ncolumns)));
	writer->n = writer->is_record ? writer->root->n : 1;
	writer->writers = palloc0(sizeof(AvroWriter *) * Max(writer->n, 1));
	writer->columns = palloc0(sizeof(FormatColumn *) * Max(writer->n, 1));
	for (int i = 0; i < writer->n; i++)
	{
		const AvroNode *node = writer->is_record ? writer->root->children[i] : writer->root;

		for (int j = 0; j < ncolumns; j++)
		{
			if (writer->is_record && strcmp(columns[j].field, writer->root->names[i]) != 0)
				continue;
			found[j] = true;
			writer->columns[i] = &columns[j];
			writer->writers[i] = writer_create(node, columns[j].type, columns[j].typmod,
												 &(WriterSettings) {time_zone, columns[j].style.unit});
			if (writer->writers[i] == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
						 errmsg("column \"%s\" of type %s cannot be written to its field of the Avro schema", columns[j].column,
								format_type_with_typemod(columns[j].type, columns[j].typmod)),
						 errdetail("The field is of type \"%s\".", avro_type_name(node))));
		}
		if (writer->writers[i] == NULL && !avro_takes_null(node))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("field \"%s\" of the Avro schema has no column and cannot be null", writer->root->names[i])));
	}
	for (int j = 0; j < ncolumns; j++)
	{
		if (!found[j])
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("the Avro schema has no field \"%s\" for column \"%s\"", columns[j].field, columns[j].column)));
	}
	return writer;
}

/* === Running ================================================================ */

static void
write_integer(AvroWriter *writer, Datum value, StringInfo out)
{
	int64		number = datum_integer(value, writer->type);

	if (writer->node->type == AVRO_INT && (number < PG_INT32_MIN || number > PG_INT32_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value \"%lld\" is out of range for an Avro int", (long long) number)));
	avro_put_long(out, number);
}

static void
write_floating(AvroWriter *writer, Datum value, StringInfo out)
{
	float8		number = writer->type == FLOAT8OID ? DatumGetFloat8(value) :
		writer->type == FLOAT4OID ? DatumGetFloat4(value) : (float8) datum_integer(value, writer->type);

	if (writer->node->type == AVRO_DOUBLE)
		avro_put_double(out, number);
	else if (writer->type == FLOAT8OID)
		avro_put_float(out, DatumGetFloat4(DirectFunctionCall1(dtof, value)));
	else
		avro_put_float(out, (float4) number);
}

static void
write_string(AvroWriter *writer, Datum value, StringInfo out)
{
	Size		len;
	const char *text = datum_text(writer->output, value, &len);

	text = text_to_utf8(text, &len);

	avro_put_bytes(out, writer->node, text, len);
}

/* Symbols are in the database encoding. */
static void
write_enum(AvroWriter *writer, Datum value, StringInfo out)
{
	Size		len;
	const char *text = datum_text(writer->output, value, &len);

	avro_put_symbol(out, writer->node, text, len);
}

static void
write_timestamp(AvroWriter *writer, Datum value, StringInfo out)
{
	Timestamp	timestamp = DatumGetTimestamp(value);
	bool		is_local = writer->type == TIMESTAMPOID;
	bool		wants_local = writer->node->logical == AVRO_LOCAL_TIMESTAMP;

	if (is_local != wants_local && !TIMESTAMP_NOT_FINITE(timestamp) &&
		!(wants_local ? value_zone_local(&writer->zone, &timestamp) : value_zone_instant(&writer->zone, &timestamp)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	avro_put_timestamp(out, writer->node, timestamp);
}

static void
write_date(Datum value, StringInfo out)
{
	DateADT		date = DatumGetDateADT(value);

	if (DATE_NOT_FINITE(date))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite date cannot be written")));
	avro_put_long(out, (int64) date + POSTGRES_EPOCH_DAYS);
}

static void
write_duration(Datum value, StringInfo out)
{
	const Interval *interval = DatumGetIntervalP(value);
	int64		parts[3];

	parts[0] = interval->month;
	parts[1] = interval->day;
	parts[2] = interval->time / 1000;
	for (int i = 0; i < lengthof(parts); i++)
	{
		if (parts[i] < 0 || parts[i] > PG_UINT32_MAX || interval->time < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
					 errmsg("the interval does not fit an Avro duration"),
					 errhint("Its months, its days and its milliseconds are not negative, and less than 2^32 each.")));
		for (int shift = 0; shift < 32; shift += 8)
			appendStringInfoChar(out, (char) (parts[i] >> shift));
	}
}

static void
write_bytes(AvroWriter *writer, Datum value, StringInfo out)
{
	bytea	   *bytes = DatumGetByteaPP(value);

	avro_put_bytes(out, writer->node, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

static void
write_items(AvroWriter *writer, const AvroNode *node, const ArrayType *array, int dim, int *next,
			const Datum *values, const bool *isnull, StringInfo out)
{
	int			n = ARR_DIMS(array)[dim];
	const AvroNode *inner = NULL;
	int			branch = -1;

	CHECK_FOR_INTERRUPTS();
	if (dim < ARR_NDIM(array) - 1)
		inner = inner_array(node->children[0], &branch);
	avro_put_long(out, n);
	for (int i = 0; i < n; i++)
	{
		if (inner == NULL)
		{
			write_value(writer->children[0], values[*next], isnull[*next], out);
			(*next)++;
			continue;
		}
		if (branch >= 0)
			avro_put_long(out, branch);
		write_items(writer, inner, array, dim + 1, next, values, isnull, out);
	}
	avro_put_long(out, 0);
}

static void
write_array(AvroWriter *writer, Datum value, StringInfo out)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *values;
	bool	   *isnull;
	int			n;
	int			next = 0;

	if (ARR_NDIM(array) == 0)
	{
		avro_put_long(out, 0);
		return;
	}
	if (ARR_NDIM(array) != writer->ndims)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("an array of %d dimensions cannot be written to an Avro field with %d",
						ARR_NDIM(array), writer->ndims)));
	deconstruct_array(array, ARR_ELEMTYPE(array), writer->typlen, writer->typbyval, writer->typalign, &values, &isnull, &n);
	write_items(writer, writer->node, array, 0, &next, values, isnull, out);
}

static void
write_record(AvroWriter *writer, Datum value, StringInfo out)
{
	int			natts = writer->desc->natts;
	Datum	   *values = palloc(sizeof(Datum) * Max(natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(natts, 1));

	composite_deform(value, writer->desc, values, isnull);
	for (int i = 0; i < writer->n; i++)
	{
		if (writer->children[i] == NULL)
			avro_put_null(out, writer->node->children[i]);
		else
			write_value(writer->children[i], values[writer->places[i]], isnull[writer->places[i]], out);
	}
	pfree(values);
	pfree(isnull);
}

static Datum
json_to_jsonb(Datum json)
{
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(TextDatumGetCString(json)));
}

static void
write_value(AvroWriter *writer, Datum value, bool isnull, StringInfo out)
{
	if (isnull)
	{
		avro_put_null(out, writer->node);
		return;
	}
	switch (writer->kind)
	{
		case WRITE_UNION:
			avro_put_long(out, writer->branch);
			write_value(writer->children[0], value, false, out);
			break;
		case WRITE_INTEGER:
			write_integer(writer, value, out);
			break;
		case WRITE_FLOATING:
			write_floating(writer, value, out);
			break;
		case WRITE_BOOLEAN:
			appendStringInfoChar(out, DatumGetBool(value) ? 1 : 0);
			break;
		case WRITE_STRING:
			write_string(writer, value, out);
			break;
		case WRITE_ENUM:
			write_enum(writer, value, out);
			break;
		case WRITE_BYTES:
			write_bytes(writer, value, out);
			break;
		case WRITE_DECIMAL:
			avro_put_decimal(out, writer->node, value_output_text(writer->output, value));
			break;
		case WRITE_DATE:
			write_date(value, out);
			break;
		case WRITE_TIME:
			avro_put_micros(out, writer->node, DatumGetTimeADT(value));
			break;
		case WRITE_TIMESTAMP:
			write_timestamp(writer, value, out);
			break;
		case WRITE_UUID:
			appendBinaryStringInfo(out, (const char *) DatumGetUUIDP(value)->data, UUID_LEN);
			break;
		case WRITE_DURATION:
			write_duration(value, out);
			break;
		case WRITE_ARRAY:
			write_array(writer, value, out);
			break;
		case WRITE_RECORD:
			write_record(writer, value, out);
			break;
		case WRITE_JSON:
			avro_put_jsonb(out, writer->node, DatumGetJsonbP(writer->type == JSONOID ? json_to_jsonb(value) : value));
			break;
	}
}

void
avro_row_write(AvroRowWriter *writer, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	if (writer->record_branch >= 0)
		avro_put_long(bytes, writer->record_branch);
	for (int i = 0; i < writer->n; i++)
	{
		if (writer->writers[i] == NULL)
		{
			avro_put_null(bytes, writer->is_record ? writer->root->children[i] : writer->root);
			continue;
		}
		*column = writer->columns[i]->column;
		write_value(writer->writers[i], values[writer->columns[i]->index], isnull[writer->columns[i]->index], bytes);
	}
	*column = NULL;
}
