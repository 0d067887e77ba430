/*
 * binary_values.c
 *	  Values of binary formats, see binary_values.h.
 */
#include "postgres.h"

#include "format/binary_values.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

bool
is_hstore_type(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = strcmp(NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname), "hstore") == 0;
	ReleaseSysCache(tuple);
	return result;
}

void
integer_out_of_range(int64 value, Oid type)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("value \"%lld\" is out of range for type %s", (long long) value, format_type_be(type))));
	pg_unreachable();
}

Datum
bytea_datum(const char *bytes, Size len)
{
	bytea	   *result;

	if (len > MaxAllocSize - VARHDRSZ)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%zu bytes are too many for type bytea", len)));
	result = palloc(len + VARHDRSZ);
	SET_VARSIZE(result, len + VARHDRSZ);
	memcpy(VARDATA(result), bytes, len);
	return PointerGetDatum(result);
}

Datum
uuid_datum(const char *bytes)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	memcpy(uuid->data, bytes, UUID_LEN);
	return UUIDPGetDatum(uuid);
}

Datum
timestamp_datum(Timestamp timestamp, Oid type, int32 typmod)
{
	Datum		result = TimestampGetDatum(timestamp);

	if (typmod >= 0 && typmod < MAX_TIMESTAMP_PRECISION)
		result = DirectFunctionCall2(type == TIMESTAMPOID ? timestamp_scale : timestamptz_scale, result, Int32GetDatum(typmod));
	return result;
}

Datum
time_datum(TimeADT time, int32 typmod)
{
	Datum		result = TimeADTGetDatum(time);

	if (typmod >= 0 && typmod < MAX_TIME_PRECISION)
		result = DirectFunctionCall2(time_scale, result, Int32GetDatum(typmod));
	return result;
}

void
value_zone_set(ValueZone *zone, const char *name)
{
	long		offset;

	zone->zone = pg_tzset(name);
	zone->utc = pg_get_timezone_offset(zone->zone, &offset) && offset == 0;
}

bool
value_zone_local(const ValueZone *zone, Timestamp *timestamp)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;

	return zone->utc ||
		(timestamp2tm(*timestamp, &tz, &tm, &fsec, NULL, zone->zone) == 0 && tm2timestamp(&tm, fsec, NULL, timestamp) == 0);
}

bool
value_zone_instant(const ValueZone *zone, Timestamp *timestamp)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;

	if (zone->utc)
		return true;
	if (timestamp2tm(*timestamp, NULL, &tm, &fsec, NULL, NULL) != 0)
		return false;
	tz = DetermineTimeZoneOffset(&tm, zone->zone);
	return tm2timestamp(&tm, fsec, &tz, timestamp) == 0;
}

const char *
datum_text(ValueOutput *output, Datum value, Size *len)
{
	const char *text;
	struct varlena *varlena;

	if (output)
	{
		text = value_output_text(output, value);

		*len = strlen(text);
		return text;
	}
	varlena = PG_DETOAST_DATUM_PACKED(value);
	*len = VARSIZE_ANY_EXHDR(varlena);
	return VARDATA_ANY(varlena);
}

void
composite_deform(Datum value, TupleDesc desc, Datum *values, bool *isnull)
{
	HeapTupleHeader row = DatumGetHeapTupleHeader(value);
	HeapTupleData tuple = {0};

	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_data = row;
	heap_deform_tuple(&tuple, desc, values, isnull);
}
