/*
 * metadata_write.c
 *	  Metadata that a row gives its message: timestamp, partition, headers.  The
 *	  other direction of changelog/metadata.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/base64.h"
#include "fdw/row_encode.h"
#include "funcapi.h"
#include "kafka/kafka_time.h"
#include "mb/pg_wchar.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

int64
metadata_write_timestamp(const TopicTable *table, const TopicColumn *column, Datum value)
{
	Timestamp	timestamp = DatumGetTimestamp(value);
	int64		ms;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite timestamp has no form in Kafka")));
	if (column->type == TIMESTAMPOID)
	{
		struct pg_tm tm;
		fsec_t		fsec;
		int			tz;

		if (timestamp2tm(timestamp, NULL, &tm, &fsec, NULL, NULL) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("timestamp out of range")));
		tz = DetermineTimeZoneOffset(&tm, pg_tzset(table->time_zone));
		if (tm2timestamp(&tm, fsec, &tz, &timestamp) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("timestamp out of range")));
	}
	ms = kafka_ms_of(timestamp);
	/* the client takes 0 for "now" */
	if (ms < 1)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("a timestamp before 1970-01-01 00:00:00.001 UTC has no form in Kafka")));
	/* the last thirty years that PostgreSQL knows: in microseconds since 1970 they overflow */
	if (ms > PG_INT64_MAX / 1000)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return ms;
}

int32
metadata_write_partition(const TopicColumn *column, Datum value)
{
	int64		partition = column->type == INT8OID ? DatumGetInt64(value) : DatumGetInt32(value);

	if (partition < 0 || partition >= PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("there is no partition %lld", (long long) partition)));
	return (int32) partition;
}

/* ------------------------------------------------------------------------
 * Headers
 * ------------------------------------------------------------------------ */

/* Kafka's text is UTF-8, and a header's name ends at the first zero byte there. */
static char *
text_to_utf8(const char *bytes, int len)
{
	char	   *copy = pnstrdup(bytes, len);

	return pg_server_to_any(copy, len, PG_UTF8);
}

static void
bad_headers(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("headers are an array of objects"),
			 errhint("Each is {\"name\": .., \"value\": text or null} or {\"name\": .., \"base64\": text}.")));
}

static void
header_from_jsonb(const JsonbValue *element, KafkaHeader *header)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;
	bool		valued = false;

	if (element->type != jbvBinary)
		bad_headers();
	memset(header, 0, sizeof(*header));
	it = JsonbIteratorInit(element->val.binary.data);
	if (JsonbIteratorNext(&it, &key, true) != WJB_BEGIN_OBJECT)
		bad_headers();
	while ((token = JsonbIteratorNext(&it, &key, true)) == WJB_KEY)
	{
		const char *name = key.val.string.val;
		int			len = key.val.string.len;

		(void) JsonbIteratorNext(&it, &value, true);
		if (len == 4 && memcmp(name, "name", 4) == 0 && value.type == jbvString)
			header->name = text_to_utf8(value.val.string.val, value.val.string.len);
		else if (len == 5 && memcmp(name, "value", 5) == 0 && !valued &&
				 (value.type == jbvString || value.type == jbvNull))
		{
			valued = true;
			if (value.type == jbvString)
			{
				header->value = text_to_utf8(value.val.string.val, value.val.string.len);
				header->value_len = strlen(header->value);
			}
		}
		else if (len == 6 && memcmp(name, "base64", 6) == 0 && !valued && value.type == jbvString)
		{
			int			max = pg_b64_dec_len(value.val.string.len);
			char	   *bytes = palloc(max + 1);
			int			decoded = pg_b64_decode(value.val.string.val, value.val.string.len, (void *) bytes, max);

			if (decoded < 0)
				bad_headers();
			valued = true;
			header->value = bytes;
			header->value_len = decoded;
		}
		else
			bad_headers();
	}
	if (header->name == NULL || !valued)
		bad_headers();
}

static int
headers_from_jsonb(Jsonb *jsonb, KafkaHeader **headers)
{
	JsonbIterator *it = JsonbIteratorInit(&jsonb->root);
	JsonbValue	element;
	int			n = 0;

	if (!JB_ROOT_IS_ARRAY(jsonb) || JB_ROOT_IS_SCALAR(jsonb))
		bad_headers();
	*headers = palloc(sizeof(KafkaHeader) * Max(JB_ROOT_COUNT(jsonb), 1));
	(void) JsonbIteratorNext(&it, &element, true);
	while (JsonbIteratorNext(&it, &element, true) == WJB_ELEM)
		header_from_jsonb(&element, &(*headers)[n++]);
	return n;
}

static void
header_from_composite(HeapTupleHeader row, TupleDesc desc, KafkaHeader *header)
{
	HeapTupleData tuple;
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *isnull = palloc(sizeof(bool) * desc->natts);
	int			nlive = 0;

	memset(header, 0, sizeof(*header));
	memset(&tuple, 0, sizeof(tuple));
	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	tuple.t_data = row;
	heap_deform_tuple(&tuple, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		if (nlive++ == 0)
		{
			text	   *name;

			if (isnull[i])
				ereport(ERROR,
						(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						 errmsg("the name of a header must not be null")));
			name = DatumGetTextPP(values[i]);
			header->name = text_to_utf8(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
		}
		else if (!isnull[i])
		{
			bytea	   *value = DatumGetByteaPP(values[i]);

			header->value = VARDATA_ANY(value);
			header->value_len = VARSIZE_ANY_EXHDR(value);
		}
	}
}

static int
headers_from_array(const TopicColumn *column, ArrayType *array, KafkaHeader **headers)
{
	Oid			type = get_element_type(column->type);
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(type, -1);
	int16		len;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	get_typlenbyvalalign(type, &len, &byval, &align);
	deconstruct_array(array, type, len, byval, align, &elements, &nulls, &n);
	*headers = palloc(sizeof(KafkaHeader) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a header must not be null")));
		header_from_composite(DatumGetHeapTupleHeader(elements[i]), desc, &(*headers)[i]);
	}
	return n;
}

int
metadata_write_headers(const TopicColumn *column, Datum value, KafkaHeader **headers)
{
	if (column->type == JSONBOID)
		return headers_from_jsonb(DatumGetJsonbP(value), headers);
	return headers_from_array(column, DatumGetArrayTypeP(value), headers);
}
