/*
 * binary_values.h
 *	  What formats whose values are binary (avro, protobuf) share: from their values to
 *	  Datums and back, by the types of columns.
 *
 * Private to these formats.  Types are base types, of domains as well.
 */
#ifndef UK_BINARY_VALUES_H
#define UK_BINARY_VALUES_H

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "format/value_output.h"
#include "pgtime.h"
#include "utils/date.h"

#define POSTGRES_EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

static inline bool
is_integer_type(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Of types whose bytes are their text; and the same with "name", which takes texts by its input */
static inline bool
is_text_type(Oid type)
{
	return type == TEXTOID || type == VARCHAROID || type == BPCHAROID;
}

static inline bool
takes_text_type(Oid type)
{
	return is_text_type(type) || type == NAMEOID;
}

extern bool is_hstore_type(Oid type);

/* === Reading ================================================================ */

/* ERROR 22003 out of the type's range */
extern void integer_out_of_range(int64 value, Oid type) pg_attribute_noreturn();

static inline Datum
integer_datum(int64 value, Oid type)
{
	switch (type)
	{
		case INT2OID:
			if (unlikely(value < PG_INT16_MIN || value > PG_INT16_MAX))
				integer_out_of_range(value, type);
			return Int16GetDatum((int16) value);
		case INT4OID:
			if (unlikely(value < PG_INT32_MIN || value > PG_INT32_MAX))
				integer_out_of_range(value, type);
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* ERROR 54000 */
extern Datum bytea_datum(const char *bytes, Size len);

/* Of UUID_LEN bytes */
extern Datum uuid_datum(const char *bytes);

/* With the precision of a column's typmod */
extern Datum timestamp_datum(Timestamp timestamp, Oid type, int32 typmod);
extern Datum time_datum(TimeADT time, int32 typmod);

/* === Time zones ============================================================= */

typedef struct ValueZone
{
	pg_tz	   *zone;
	bool		utc;			/* nothing changes */
} ValueZone;

extern void value_zone_set(ValueZone *zone, const char *name);

/* What the clock shows at an instant, and the other way round; false: out of range */
extern bool value_zone_local(const ValueZone *zone, Timestamp *timestamp);
extern bool value_zone_instant(const ValueZone *zone, Timestamp *timestamp);

/* === Writing ================================================================ */

static inline int64
datum_integer(Datum value, Oid type)
{
	return type == INT2OID ? DatumGetInt16(value) : type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/*
 * Text in the database encoding, palloc'd or the datum's own; 'output' is NULL for types
 * whose bytes are their text.
 */
extern const char *datum_text(ValueOutput *output, Datum value, Size *len);

/* The attributes of a composite value */
extern void composite_deform(Datum value, TupleDesc desc, Datum *values, bool *isnull);

#endif							/* UK_BINARY_VALUES_H */
