/*
 * avro_output.c
 *	  Avro's binary encoding: single values, and jsonb, which has its types in the value.
 *
 * Avro 1.12, "Binary Encoding".  Collections are one block, as Java writes them.
 */
#include "postgres.h"

#include <math.h>

#include "common/base64.h"
#include "common/int.h"
#include "format/avro_output.h"
#include "format/binary_values.h"
#include "format/decimal_bytes.h"
#include "format/format.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"


void
avro_put_long(StringInfo out, int64 value)
{
	uint64		zigzag = (uint64) value << 1 ^ (uint64) (value >> 63);
	char		bytes[10];
	int			n = 0;

	while (zigzag > 0x7f)
	{
		bytes[n++] = (char) (zigzag | 0x80);
		zigzag >>= 7;
	}
	bytes[n++] = (char) zigzag;
	appendBinaryStringInfo(out, bytes, n);
}

static void
put_little_endian(StringInfo out, uint64 bits, int width)
{
	char		bytes[8];

	for (int i = 0; i < width; i++)
		bytes[i] = (char) (bits >> 8 * i);
	appendBinaryStringInfo(out, bytes, width);
}

void
avro_put_float(StringInfo out, float4 value)
{
	uint32		bits;

	if (isnan(value))
		value = get_float4_nan();
	memcpy(&bits, &value, sizeof(bits));
	put_little_endian(out, bits, 4);
}

void
avro_put_double(StringInfo out, float8 value)
{
	uint64		bits;

	if (isnan(value))
		value = get_float8_nan();
	memcpy(&bits, &value, sizeof(bits));
	put_little_endian(out, bits, 8);
}

void
avro_put_bytes(StringInfo out, const AvroNode *node, const char *bytes, Size len)
{
	if (node->type == AVRO_FIXED)
	{
		if (len != node->size)
			ereport(ERROR,
					(errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
					 errmsg("%zu bytes cannot be written to an Avro fixed of %lld", len, (long long) node->size)));
	}
	else
		avro_put_long(out, len);
	appendBinaryStringInfo(out, bytes, (int) len);
}

void
avro_put_null(StringInfo out, const AvroNode *node)
{
	if (node->type == AVRO_NULL)
		return;
	for (int i = 0; node->type == AVRO_UNION && i < node->n; i++)
	{
		if (node->children[i]->type == AVRO_NULL)
		{
			avro_put_long(out, i);
			return;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("NULL cannot be written to an Avro field of type \"%s\"", avro_type_name(node)),
			 errhint("Where the schema is derived from the table, columns that are NOT NULL have no null.")));
}

static int
find_symbol(const AvroNode *node, const char *symbol, Size len)
{
	for (int i = 0; i < node->n; i++)
	{
		if (strlen(node->names[i]) == len && memcmp(node->names[i], symbol, len) == 0)
			return i;
	}
	return -1;
}

void
avro_put_symbol(StringInfo out, const AvroNode *node, const char *symbol, Size len)
{
	int			i = find_symbol(node, symbol, len);

	if (i < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("Avro enum \"%s\" has no symbol \"%.*s\"", node->name, (int) len, symbol)));
	avro_put_long(out, i);
}

void
avro_put_micros(StringInfo out, const AvroNode *node, int64 micros)
{
	int64		per_unit;
	int64		value;

	if (node->per_second > 1000000)
	{
		per_unit = node->per_second / 1000000;
		if (micros > PG_INT64_MAX / per_unit || micros < PG_INT64_MIN / per_unit)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("timestamp out of range for nanoseconds")));
		value = micros * per_unit;
	}
	else
	{
		per_unit = 1000000 / node->per_second;
		value = micros / per_unit;
		if (value * per_unit > micros)
			value--;
	}
	if (node->type == AVRO_INT && (value < PG_INT32_MIN || value > PG_INT32_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value \"%lld\" is out of range for an Avro int", (long long) value)));
	avro_put_long(out, value);
}

/* The last thirty years of PostgreSQL's range are too far from 1970. */
void
avro_put_timestamp(StringInfo out, const AvroNode *node, Timestamp timestamp)
{
	int64		micros;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite timestamp cannot be written")));
	if (pg_add_s64_overflow(timestamp, (int64) POSTGRES_EPOCH_DAYS * USECS_PER_DAY, &micros))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range for Avro")));
	avro_put_micros(out, node, micros);
}

void
avro_put_decimal(StringInfo out, const AvroNode *node, const char *text)
{
	StringInfoData bytes;
	char		sign;

	initStringInfo(&bytes);
	if (!decimal_bytes_append(&bytes, text, node->precision, node->scale) ||
		(node->type == AVRO_FIXED && bytes.len > node->size))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value %s does not fit an Avro decimal(%d,%d)", text, node->precision, node->scale)));
	if (node->type == AVRO_FIXED)
	{
		sign = (bytes.data[0] & 0x80) ? (char) 0xff : 0;
		for (int64 i = bytes.len; i < node->size; i++)
			appendStringInfoChar(out, sign);
		appendBinaryStringInfo(out, bytes.data, bytes.len);
	}
	else
		avro_put_bytes(out, node, bytes.data, bytes.len);
	pfree(bytes.data);
}

/* === jsonb ================================================================== */

static void put_json(StringInfo out, const AvroNode *node, JsonbValue *value);

static bool
is_object(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data);
}

static bool
is_array(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data);
}

/* Bytes are base64 in JSON; NULL if it is none. */
static char *
base64_bytes(const JsonbValue *value, int *len)
{
	int			room = pg_b64_dec_len(value->val.string.len) + 1;
	char	   *bytes = palloc(room);

	*len = pg_b64_decode(value->val.string.val, value->val.string.len, (void *) bytes, room);
	return *len < 0 ? NULL : bytes;
}

/* How well a value suits a branch of a union: they are asked in this order. */
typedef enum JsonFit
{
	FIT_EXACTLY,				/* nothing of it would be lost */
	FIT_DOUBLE,					/* a number that a double takes more or less */
	FIT_FLOAT,
	FIT_KIND					/* it is of that kind; what is in it shows later */
} JsonFit;

static bool
number_fits(const AvroNode *node, Numeric number, JsonFit fit)
{
	Datum		datum = NumericGetDatum(number);
	StringInfoData bytes;
	Datum		least;
	Datum		most;

	if (fit == FIT_KIND)
		return true;
	if (node->type == AVRO_DOUBLE || node->type == AVRO_FLOAT)
		return fit == (node->type == AVRO_DOUBLE ? FIT_DOUBLE : FIT_FLOAT);
	if (node->logical == AVRO_DECIMAL)
	{
		initStringInfo(&bytes);
		return decimal_bytes_append(&bytes, DatumGetCString(DirectFunctionCall1(numeric_out, datum)), node->precision, node->scale) &&
			(node->type == AVRO_BYTES || bytes.len <= node->size);
	}
	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, datum, DirectFunctionCall2(numeric_trunc, datum, Int32GetDatum(0)))))
		return false;
	least = NumericGetDatum(int64_to_numeric(node->type == AVRO_INT ? PG_INT32_MIN : PG_INT64_MIN));
	most = NumericGetDatum(int64_to_numeric(node->type == AVRO_INT ? PG_INT32_MAX : PG_INT64_MAX));
	return DatumGetBool(DirectFunctionCall2(numeric_ge, datum, least)) && DatumGetBool(DirectFunctionCall2(numeric_le, datum, most));
}

static bool json_fits(const AvroNode *node, const JsonbValue *value, JsonFit fit);

/*
 * Members and fields are the same, but for those that may be null.  Among several records
 * the kinds of the members count, too; what is in those is not looked at.
 */
static bool
object_fits(const AvroNode *node, JsonbContainer *object, JsonFit fit)
{
	int			nfound = 0;

	for (int i = 0; i < node->n; i++)
	{
		JsonbValue	member;

		if (getKeyJsonValueFromContainer(object, node->names[i], (int) strlen(node->names[i]), &member) != NULL)
		{
			nfound++;
			if (fit != FIT_KIND && !json_fits(node->children[i], &member, FIT_KIND))
				return false;
		}
		else if (!avro_takes_null(node->children[i]))
			return false;
	}
	return nfound == JsonContainerSize(object);
}

static bool
json_fits(const AvroNode *node, const JsonbValue *value, JsonFit fit)
{
	int			len;

	switch (node->logical)
	{
		case AVRO_PLAIN:
			break;
		case AVRO_DECIMAL:
			return value->type == jbvNumeric && number_fits(node, value->val.numeric, fit);
		case AVRO_DURATION:
		case AVRO_VARIABLE_DECIMAL:
			return false;
		default:
			return value->type == jbvString;
	}
	switch (node->type)
	{
		case AVRO_NULL:
			return value->type == jbvNull;
		case AVRO_BOOLEAN:
			return value->type == jbvBool;
		case AVRO_INT:
		case AVRO_LONG:
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			return value->type == jbvNumeric && number_fits(node, value->val.numeric, fit);
		case AVRO_STRING:
			return value->type == jbvString;
		case AVRO_ENUM:
			return value->type == jbvString && find_symbol(node, value->val.string.val, value->val.string.len) >= 0;
		case AVRO_BYTES:
		case AVRO_FIXED:
			return value->type == jbvString && base64_bytes(value, &len) != NULL &&
				(node->type == AVRO_BYTES || len == node->size);
		case AVRO_ARRAY:
			return is_array(value);
		case AVRO_MAP:
			return is_object(value);
		case AVRO_RECORD:
			return is_object(value) && object_fits(node, value->val.binary.data, fit);
		case AVRO_UNION:
			for (int i = 0; i < node->n; i++)
			{
				if (json_fits(node->children[i], value, FIT_KIND))
					return true;
			}
			return false;
	}
	return false;
}

/* The branch for a value; -1: none */
static int
union_branch(const AvroNode *node, const JsonbValue *value)
{
	for (JsonFit fit = FIT_EXACTLY; fit <= FIT_FLOAT; fit++)
	{
		for (int i = 0; i < node->n; i++)
		{
			if (json_fits(node->children[i], value, fit))
				return i;
		}
	}
	return -1;
}

static void
put_json_number(StringInfo out, const AvroNode *node, Numeric number)
{
	Datum		datum = NumericGetDatum(number);
	char	   *text;
	int64		integer;

	switch (node->type)
	{
		case AVRO_FLOAT:
			avro_put_float(out, DatumGetFloat4(DirectFunctionCall1(numeric_float4, datum)));
			return;
		case AVRO_DOUBLE:
			avro_put_double(out, DatumGetFloat8(DirectFunctionCall1(numeric_float8, datum)));
			return;
		case AVRO_BYTES:
		case AVRO_FIXED:
			avro_put_decimal(out, node, DatumGetCString(DirectFunctionCall1(numeric_out, datum)));
			return;
		default:
			break;
	}
	text = DatumGetCString(DirectFunctionCall1(numeric_out, datum));
	if (strchr(text, '.') != NULL &&
		!DatumGetBool(DirectFunctionCall2(numeric_eq, datum, DirectFunctionCall2(numeric_trunc, datum, Int32GetDatum(0)))))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value %s is no Avro %s", text, avro_type_name(node))));
	integer = DatumGetInt64(DirectFunctionCall1(numeric_int8, datum));
	if (node->type == AVRO_INT && (integer < PG_INT32_MIN || integer > PG_INT32_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value %s is out of range for an Avro int", text)));
	avro_put_long(out, integer);
}

static void
put_json_text(StringInfo out, const AvroNode *node, const char *text, int len)
{
	Size		size = len;
	const char *utf8 = text_to_utf8(pnstrdup(text, len), &size);

	avro_put_bytes(out, node, utf8, size);
}

/* A time or a uuid, which are text in JSON; a time without zone is UTC. */
static void
put_json_logical(StringInfo out, const AvroNode *node, const JsonbValue *value)
{
	static const PGFunction inputs[] = {
		[AVRO_DATE] = date_in,[AVRO_TIME] = time_in,[AVRO_TIMESTAMP] = timestamptz_in,[AVRO_LOCAL_TIMESTAMP] = timestamp_in,
		[AVRO_UUID] = uuid_in
	};
	char	   *text = pnstrdup(value->val.string.val, value->val.string.len);
	DecodeSettings settings;
	volatile Datum datum = (Datum) 0;

	decode_settings_enter(&settings, "UTC");
	PG_TRY();
	{
		datum = DirectFunctionCall3(inputs[node->logical], CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	}
	PG_FINALLY();
	{
		decode_settings_leave(&settings);
	}
	PG_END_TRY();
	switch (node->logical)
	{
		case AVRO_DATE:
			if (DATE_NOT_FINITE(DatumGetDateADT(datum)))
				ereport(ERROR,
						(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						 errmsg("an infinite date cannot be written")));
			avro_put_long(out, (int64) DatumGetDateADT(datum) + POSTGRES_EPOCH_DAYS);
			break;
		case AVRO_TIME:
			avro_put_micros(out, node, DatumGetTimeADT(datum));
			break;
		case AVRO_UUID:
			appendBinaryStringInfo(out, (const char *) DatumGetUUIDP(datum)->data, UUID_LEN);
			break;
		default:
			avro_put_timestamp(out, node, DatumGetTimestamp(datum));
			break;
	}
}

static void
put_json_record(StringInfo out, const AvroNode *node, JsonbContainer *object)
{
	for (int i = 0; i < node->n; i++)
	{
		JsonbValue	member;

		if (getKeyJsonValueFromContainer(object, node->names[i], (int) strlen(node->names[i]), &member) == NULL)
			avro_put_null(out, node->children[i]);
		else
			put_json(out, node->children[i], &member);
	}
}

static void
put_json_collection(StringInfo out, const AvroNode *node, JsonbContainer *container)
{
	JsonbIterator *it = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;
	int			n = JsonContainerSize(container);

	if (n > 0)
		avro_put_long(out, n);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		static const AvroNode string = {.type = AVRO_STRING};

		if (token == WJB_KEY)
			put_json_text(out, &string, value.val.string.val, value.val.string.len);
		else if (token == WJB_VALUE || token == WJB_ELEM)
			put_json(out, node->children[0], &value);
	}
	avro_put_long(out, 0);
}

static void
put_json(StringInfo out, const AvroNode *node, JsonbValue *value)
{
	int			len;
	int			branch;

	check_stack_depth();
	branch = node->type == AVRO_UNION ? union_branch(node, value) : -1;
	if (node->type == AVRO_UNION ? branch < 0 : !json_fits(node, value, FIT_KIND))
	{
		if (value->type == jbvNull)
			avro_put_null(out, node);	/* which refuses it */
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the JSON value cannot be written to an Avro field of type \"%s\"", avro_type_name(node))));
	}
	if (node->logical != AVRO_PLAIN && node->logical != AVRO_DECIMAL && node->type != AVRO_STRING)
	{
		put_json_logical(out, node, value);
		return;
	}
	switch (node->type)
	{
		case AVRO_NULL:
			break;
		case AVRO_BYTES:
		case AVRO_FIXED:
			if (node->logical == AVRO_DECIMAL)
				put_json_number(out, node, value->val.numeric);
			else
			{
				char	   *bytes = base64_bytes(value, &len);

				avro_put_bytes(out, node, bytes, len);
			}
			break;
		case AVRO_BOOLEAN:
			appendStringInfoChar(out, value->val.boolean ? 1 : 0);
			break;
		case AVRO_STRING:
			put_json_text(out, node, value->val.string.val, value->val.string.len);
			break;
		case AVRO_ENUM:
			avro_put_symbol(out, node, value->val.string.val, value->val.string.len);
			break;
		case AVRO_RECORD:
			put_json_record(out, node, value->val.binary.data);
			break;
		case AVRO_ARRAY:
		case AVRO_MAP:
			put_json_collection(out, node, value->val.binary.data);
			break;
		case AVRO_UNION:
			avro_put_long(out, branch);
			put_json(out, node->children[branch], value);
			break;
		default:
			put_json_number(out, node, value->val.numeric);
			break;
	}
}

void
avro_put_jsonb(StringInfo out, const AvroNode *node, Jsonb *json)
{
	JsonbValue	value;

	if (!JB_ROOT_IS_SCALAR(json) || !JsonbExtractScalar(&json->root, &value))
	{
		value.type = jbvBinary;
		value.val.binary.data = &json->root;
		value.val.binary.len = VARSIZE_ANY_EXHDR(json);
	}
	put_json(out, node, &value);
}
