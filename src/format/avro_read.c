/*
 * avro_read.c
 *	  Avro values -> Datums, by readers that are compiled from a writer's schema and
 *	  a type.
 *
 * The common pairs of types go straight into Datums; every other one goes through the
 * value's text and the type's input function, so that the answer is PostgreSQL's.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "format/avro_json.h"
#include "format/avro_read.h"
#include "format/binary_values.h"
#include "format/decimal_bytes.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif


typedef enum ReaderKind
{
	READ_NULL,
	READ_UNION,
	READ_INTEGER,				/* int, long -> int2, int4, int8 */
	READ_FLOATING,				/* float, double -> float4, float8 */
	READ_BOOLEAN,
	READ_STRING,				/* text of string, bytes, fixed -> any type's
								 * input */
	READ_BYTEA,
	READ_NUMERIC,				/* decimal -> numeric */
	READ_DATE,
	READ_TIME,
	READ_TIMESTAMP,				/* -> timestamp or timestamptz */
	READ_UUID,
	READ_ARRAY,
	READ_COMPOSITE,
	READ_HSTORE,
	READ_TEXT					/* anything as text or JSON -> the type's
								 * input */
} ReaderKind;

struct AvroReader
{
	ReaderKind	kind;
	const AvroNode *node;
	Oid			type;			/* a domain's base type */
	int32		typmod;
	Oid			domain;			/* InvalidOid: none, or checked by 'input' */
	void	   *domain_cache;
	MemoryContext context;
	ValueInput *input;			/* of READ_STRING, READ_HSTORE and READ_TEXT */
	ValueZone	zone;			/* of naive times */
	bool		as_json;		/* READ_TEXT: quoted where JSON quotes */
	int64		limit;			/* READ_NUMERIC: smaller unscaled values need
								 * no numeric() */

	int			n;				/* branches, or fields of the record */
	struct AvroReader **children;	/* of fields: NULL, passed over */
	int		   *places;			/* of fields: index of the attribute */

	/* READ_COMPOSITE */
	TupleDesc	desc;

	/* READ_ARRAY: one element reader, behind ndims arrays */
	int			ndims;
	Oid			element;
	int16		typlen;
	bool		typbyval;
	char		typalign;
};

/* === Compiling ============================================================== */

/* Through the type's input function, which checks domains as well */
static AvroReader *
through_input(AvroReader *reader, ReaderKind kind, const FormatColumn *column, Oid type, int32 typmod, const char *time_zone)
{
	FormatColumn part = *column;

	part.type = type;
	part.typmod = typmod;
	reader->kind = kind;
	reader->input = value_input_create(&part, time_zone);
	reader->domain = InvalidOid;
	return reader;
}

/* Fields to attributes of their names; others stay NULL. */
static void
composite_fields(AvroReader *reader, const FormatColumn *column, const char *time_zone)
{
	const AvroNode *node = reader->node;

	reader->kind = READ_COMPOSITE;
	reader->desc = lookup_rowtype_tupdesc_copy(reader->type, reader->typmod);
	reader->n = node->n;
	reader->children = palloc0(sizeof(AvroReader *) * Max(node->n, 1));
	reader->places = palloc0(sizeof(int) * Max(node->n, 1));
	for (int i = 0; i < reader->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(reader->desc, i);

		for (int j = 0; !att->attisdropped && j < node->n; j++)
		{
			if (strcmp(node->names[j], NameStr(att->attname)) != 0)
				continue;
			reader->children[j] = avro_reader_create(node->children[j], att->atttypid, att->atttypmod, column, time_zone);
			reader->places[j] = i;
		}
	}
}

/*
 * A decimal of the column's own scale is a numeric(p,s) as it is, as long as it has no
 * more than p digits.
 */
static int64
numeric_limit(const AvroNode *node, int32 typmod)
{
	int			precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	int			scale = (typmod - VARHDRSZ) & 0x7ff;
	int64		limit = 1;

	if (typmod < (int32) VARHDRSZ)
		return PG_INT64_MAX;
	if (node->logical != AVRO_DECIMAL || scale != node->scale)
		return 0;
	for (int i = 0; i < Min(precision, 18); i++)
		limit *= 10;
	return limit;
}

/* An array of arrays is one array of more dimensions, unless its elements are arrays by a domain. */
static void
array_elements(AvroReader *reader, Oid element, const FormatColumn *column, const char *time_zone)
{
	const AvroNode *item = reader->node->children[0];
	int			branch;

	reader->kind = READ_ARRAY;
	reader->ndims = 1;
	for (;;)
	{
		const AvroNode *inner = avro_is_nullable(item, &branch) ? item->children[branch] : item;

		if (inner->type != AVRO_ARRAY || element == JSONBOID || element == JSONOID || OidIsValid(get_base_element_type(element)))
			break;
		if (++reader->ndims > MAXDIM)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("number of array dimensions (%d) exceeds the maximum allowed (%d)", reader->ndims, MAXDIM)));
		item = inner->children[0];
	}
	reader->element = element;
	get_typlenbyvalalign(element, &reader->typlen, &reader->typbyval, &reader->typalign);
	reader->n = 1;
	reader->children = palloc(sizeof(AvroReader *));
	reader->children[0] = avro_reader_create(item, element, reader->typmod, column, time_zone);
}

AvroReader *
avro_reader_create(const AvroNode *node, Oid type, int32 typmod, const FormatColumn *column, const char *time_zone)
{
	AvroReader *reader = palloc0(sizeof(AvroReader));
	Oid			element;
	Oid			base;
	bool		is_json;

	check_stack_depth();
	reader->node = node;
	reader->context = CurrentMemoryContext;
	reader->typmod = typmod;
	reader->type = base = getBaseTypeAndTypmod(type, &reader->typmod);
	if (base != type)
		reader->domain = type;
	is_json = base == JSONBOID || base == JSONOID;

	if (node->type == AVRO_NULL)
	{
		reader->kind = READ_NULL;
		return reader;
	}
	if (node->type == AVRO_UNION)
	{
		reader->kind = READ_UNION;
		reader->n = node->n;
		reader->children = palloc(sizeof(AvroReader *) * node->n);
		for (int i = 0; i < node->n; i++)
			reader->children[i] = avro_reader_create(node->children[i], type, typmod, column, time_zone);
		return reader;
	}

	switch (node->logical)
	{
		case AVRO_PLAIN:
			break;
		case AVRO_DECIMAL:
		case AVRO_VARIABLE_DECIMAL:
			if (base == NUMERICOID)
			{
				reader->kind = READ_NUMERIC;
				reader->limit = numeric_limit(node, reader->typmod);
				return reader;
			}
			goto as_text;
		case AVRO_DATE:
			if (base == DATEOID)
			{
				reader->kind = READ_DATE;
				return reader;
			}
			goto as_text;
		case AVRO_TIME:
			if (base == TIMEOID)
			{
				reader->kind = READ_TIME;
				return reader;
			}
			goto as_text;
		case AVRO_TIMESTAMP:
		case AVRO_LOCAL_TIMESTAMP:
			if (base == TIMESTAMPOID || base == TIMESTAMPTZOID)
			{
				reader->kind = READ_TIMESTAMP;
				value_zone_set(&reader->zone, time_zone);
				return reader;
			}
			if (base == INT8OID)
				break;			/* the number itself */
			goto as_text;
		case AVRO_UUID:
			if (base == UUIDOID && node->type == AVRO_FIXED)
			{
				reader->kind = READ_UUID;
				return reader;
			}
			if (node->type == AVRO_FIXED && base != BYTEAOID)
				goto as_text;
			break;
		case AVRO_DURATION:
			if (base != BYTEAOID)
				goto as_text;
			break;
	}

	switch (node->type)
	{
		case AVRO_INT:
		case AVRO_LONG:
			if (base != INT2OID && base != INT4OID && base != INT8OID)
				goto as_text;
			reader->kind = READ_INTEGER;
			return reader;
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			if (base != FLOAT4OID && base != FLOAT8OID)
				goto as_text;
			reader->kind = READ_FLOATING;
			return reader;
		case AVRO_BOOLEAN:
			if (base != BOOLOID)
				goto as_text;
			reader->kind = READ_BOOLEAN;
			return reader;
		case AVRO_STRING:
		case AVRO_BYTES:
		case AVRO_FIXED:
			if (base == BYTEAOID)
			{
				reader->kind = READ_BYTEA;
				return reader;
			}
			if (node->type != AVRO_STRING && is_json)
				goto as_text;

			/*
			 * in a json column a string is JSON text, as Debezium and we
			 * ourselves write it
			 */
			return through_input(reader, READ_STRING, column, type, typmod, time_zone);
		case AVRO_ARRAY:
			element = array_element_type(base);
			if (!OidIsValid(element))
				goto as_text;
			array_elements(reader, element, column, time_zone);
			return reader;
		case AVRO_RECORD:
			if (get_typtype(base) != TYPTYPE_COMPOSITE)
				goto as_text;
			composite_fields(reader, column, time_zone);
			return reader;
		case AVRO_MAP:
			if (!is_json && !takes_text_type(base) && is_hstore_type(base))
				return through_input(reader, READ_HSTORE, column, type, typmod, time_zone);
			goto as_text;
		default:
			break;
	}

as_text:
	reader->as_json = is_json;
	return through_input(reader, READ_TEXT, column, type, typmod, time_zone);
}

/* === Running ================================================================ */

static Datum
checked(AvroReader *reader, Datum value)
{
	if (unlikely(OidIsValid(reader->domain)))
		domain_check(value, false, reader->domain, &reader->domain_cache, reader->context);
	return value;
}

static Datum
read_null(AvroReader *reader, bool *isnull)
{
	*isnull = true;
	if (OidIsValid(reader->domain))
		domain_check((Datum) 0, true, reader->domain, &reader->domain_cache, reader->context);
	return (Datum) 0;
}

static Datum
read_integer(AvroReader *reader, AvroInput *in)
{
	int64		value = reader->node->type == AVRO_INT ? avro_read_int(in) : avro_read_long(in);

	return checked(reader, integer_datum(value, reader->type));
}

static Datum
read_floating(AvroReader *reader, AvroInput *in)
{
	if (reader->node->type == AVRO_FLOAT)
	{
		float4		value = avro_read_float(in);

		return checked(reader, reader->type == FLOAT4OID ? Float4GetDatum(value) : Float8GetDatum(value));
	}
	else
	{
		float8		value = avro_read_double(in);

		/* the cast says what overflows */
		return checked(reader, reader->type == FLOAT8OID ? Float8GetDatum(value) :
					   DirectFunctionCall1(dtof, Float8GetDatum(value)));
	}
}

static Datum
read_bytea(AvroReader *reader, AvroInput *in)
{
	Size		len;
	const char *bytes = avro_read_raw(in, reader->node, &len);

	return checked(reader, bytea_datum(bytes, len));
}

/* Up to 8 bytes fit an int64, and its division by a power of ten is exact. */
static Datum
read_numeric(AvroReader *reader, AvroInput *in)
{
	const AvroNode *node = reader->node;
	int			scale = node->scale;
	const char *bytes;
	Size		len;
	Datum		result;

	if (node->logical == AVRO_VARIABLE_DECIMAL)
	{
		scale = avro_read_int(in);
		node = node->children[1];
	}
	bytes = avro_read_raw(in, node, &len);
	if (len > 0 && len <= 8 && scale >= 0 && scale <= 18)
	{
		uint64		bits = (bytes[0] & 0x80) ? PG_UINT64_MAX : 0;
		int64		value;

		for (Size i = 0; i < len; i++)
			bits = bits << 8 | (unsigned char) bytes[i];
		value = (int64) bits;
		result = NumericGetDatum(int64_div_fast_to_numeric(value, scale));
		if (reader->typmod >= 0 && (value >= reader->limit || value <= -reader->limit))
			result = DirectFunctionCall2(numeric, result, Int32GetDatum(reader->typmod));
	}
	else
		result = DirectFunctionCall3(numeric_in,
									 CStringGetDatum(decimal_bytes_text(bytes, (int) Min(len, PG_INT32_MAX), scale, "decimal")),
									 ObjectIdGetDatum(InvalidOid), Int32GetDatum(reader->typmod));
	return checked(reader, result);
}

static Datum
read_date(AvroReader *reader, AvroInput *in)
{
	int32		days = avro_read_int(in);
	int64		date = (int64) days - POSTGRES_EPOCH_DAYS;

	if (!IS_VALID_DATE(date))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("date out of range: %d days", days)));
	return checked(reader, DateADTGetDatum((DateADT) date));
}

static Datum
read_time(AvroReader *reader, AvroInput *in)
{
	int64		micros = avro_read_micros(in, reader->node);

	if (micros < 0 || micros > USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time out of range: %lld microseconds", (long long) micros)));
	return checked(reader, time_datum(micros, reader->typmod));
}

static Datum
read_timestamp(AvroReader *reader, AvroInput *in)
{
	int64		micros = avro_read_micros(in, reader->node);
	bool		is_local = reader->node->logical == AVRO_LOCAL_TIMESTAMP;
	bool		wants_local = reader->type == TIMESTAMPOID;
	Timestamp	timestamp;
	bool		fits = !pg_sub_s64_overflow(micros, (int64) POSTGRES_EPOCH_DAYS * USECS_PER_DAY, &timestamp) &&
		IS_VALID_TIMESTAMP(timestamp);

	if (fits && is_local != wants_local)
		fits = wants_local ? value_zone_local(&reader->zone, &timestamp) : value_zone_instant(&reader->zone, &timestamp);
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld microseconds", (long long) micros)));
	return checked(reader, timestamp_datum(timestamp, reader->type, reader->typmod));
}

static Datum
read_uuid(AvroReader *reader, AvroInput *in)
{
	return checked(reader, uuid_datum(avro_read_bytes(in, UUID_LEN)));
}

static Datum
read_composite(AvroReader *reader, AvroInput *in)
{
	int			natts = reader->desc->natts;
	Datum	   *values = palloc0(sizeof(Datum) * Max(natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(natts, 1));
	Datum		result;

	memset(isnull, true, natts);
	for (int i = 0; i < reader->n; i++)
	{
		if (reader->children[i] == NULL)
			avro_skip(in, reader->node->children[i]);
		else
			values[reader->places[i]] = avro_reader_read(reader->children[i], in, &isnull[reader->places[i]]);
	}
	result = HeapTupleGetDatum(heap_form_tuple(reader->desc, values, isnull));
	return checked(reader, result);
}

/* --- arrays --- */

typedef struct ArrayItems
{
	int			n;
	int			room;
	Datum	   *values;
	bool	   *isnull;
	int			dims[MAXDIM];	/* -1: not known yet */
} ArrayItems;

static void
ragged(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("the inner arrays differ in length"),
			 errdetail("PostgreSQL's arrays are rectangular."),
			 errhint("A jsonb column takes arrays of any shape.")));
}

static void
read_items(AvroReader *reader, AvroInput *in, const AvroNode *array, int dim, ArrayItems *items)
{
	int64		total = 0;
	int64		n;
	int64		bytes;

	while ((n = avro_read_block(in, array, &bytes)) > 0)
	{
		const char *begin = in->p;

		if (total + n > MaxArraySize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("array size exceeds the maximum allowed (%d)", (int) MaxArraySize)));
		total += n;
		for (int64 i = 0; i < n; i++)
		{
			const AvroNode *item = array->children[0];

			if (dim + 1 < reader->ndims)
			{
				if (item->type == AVRO_UNION)
					item = item->children[avro_read_branch(in, item)];
				if (item->type != AVRO_ARRAY)
					ragged();
				read_items(reader, in, item, dim + 1, items);
				continue;
			}
			if (items->n == items->room)
			{
				items->room = Max(16, items->room * 2);
				items->values = items->values ? repalloc_huge(items->values, sizeof(Datum) * items->room)
					: palloc(sizeof(Datum) * items->room);
				items->isnull = items->isnull ? repalloc_huge(items->isnull, sizeof(bool) * items->room)
					: palloc(sizeof(bool) * items->room);
			}
			items->isnull[items->n] = false;
			items->values[items->n] = avro_reader_read(reader->children[0], in, &items->isnull[items->n]);
			items->n++;
			if (items->n > MaxArraySize)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("array size exceeds the maximum allowed (%d)", (int) MaxArraySize)));
		}
		avro_check_block(in, begin, bytes);
	}
	if (items->dims[dim] >= 0 && items->dims[dim] != total)
		ragged();
	items->dims[dim] = (int) total;
}

static Datum
read_array(AvroReader *reader, AvroInput *in)
{
	ArrayItems	items = {0};
	int			lower[MAXDIM];
	ArrayType  *array;

	for (int i = 0; i < MAXDIM; i++)
	{
		items.dims[i] = -1;
		lower[i] = 1;
	}
	read_items(reader, in, reader->node, 0, &items);
	if (items.n == 0)
		array = construct_empty_array(reader->element);
	else
		array = construct_md_array(items.values, items.isnull, reader->ndims, items.dims, lower,
								   reader->element, reader->typlen, reader->typbyval, reader->typalign);
	return checked(reader, PointerGetDatum(array));
}

static Datum
read_text(AvroReader *reader, AvroInput *in)
{
	StringInfoData text;
	bool		is_number = false;
	Datum		result;

	initStringInfo(&text);
	if (reader->kind == READ_HSTORE)
		avro_hstore_append(&text, in, reader->node);
	else if (reader->as_json)
		avro_json_append(&text, in, reader->node);
	else
		avro_text_append(&text, in, reader->node, &is_number);
	result = value_input(reader->input, text.data, text.len, is_number);
	pfree(text.data);
	return result;
}

Datum
avro_reader_read(AvroReader *reader, AvroInput *in, bool *isnull)
{
	const char *text;
	Size		len;

	*isnull = false;
	switch (reader->kind)
	{
		case READ_NULL:
			return read_null(reader, isnull);
		case READ_UNION:
			return avro_reader_read(reader->children[avro_read_branch(in, reader->node)], in, isnull);
		case READ_INTEGER:
			return read_integer(reader, in);
		case READ_FLOATING:
			return read_floating(reader, in);
		case READ_BOOLEAN:
			return checked(reader, BoolGetDatum(avro_read_boolean(in)));
		case READ_STRING:
			text = avro_read_text(in, reader->node, &len);

			return value_input(reader->input, text, len, false);
		case READ_BYTEA:
			return read_bytea(reader, in);
		case READ_NUMERIC:
			return read_numeric(reader, in);
		case READ_DATE:
			return read_date(reader, in);
		case READ_TIME:
			return read_time(reader, in);
		case READ_TIMESTAMP:
			return read_timestamp(reader, in);
		case READ_UUID:
			return read_uuid(reader, in);
		case READ_ARRAY:
			return read_array(reader, in);
		case READ_COMPOSITE:
			return read_composite(reader, in);
		case READ_HSTORE:
		case READ_TEXT:
			return read_text(reader, in);
	}
	pg_unreachable();
}
