/*
 * avro_output.h
 *	  Avro's binary encoding of single values, appended to a buffer.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_OUTPUT_H
#define UK_AVRO_OUTPUT_H

#include "datatype/timestamp.h"
#include "format/avro_schema.h"
#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* int, long, and every count, length and branch */
extern void avro_put_long(StringInfo out, int64 value);

/* Every NaN is written as Java's. */
extern void avro_put_float(StringInfo out, float4 value);
extern void avro_put_double(StringInfo out, float8 value);

/* bytes, string, fixed; ERROR 22026 for a fixed of another length */
extern void avro_put_bytes(StringInfo out, const AvroNode *node, const char *bytes, Size len);

/* A null, or the null branch; ERROR 22004 where there is none */
extern void avro_put_null(StringInfo out, const AvroNode *node);

/* ERROR 22P02 if the enum has no such symbol (in the database encoding) */
extern void avro_put_symbol(StringInfo out, const AvroNode *node, const char *symbol, Size len);

/* A time in the node's unit; what is finer is cut off */
extern void avro_put_micros(StringInfo out, const AvroNode *node, int64 micros);

/* The same of a timestamp; ERROR 22008 for infinite ones, and beyond 64 bits since 1970 */
extern void avro_put_timestamp(StringInfo out, const AvroNode *node, Timestamp timestamp);

/* The text of a numeric; ERROR 22003 if it does not fit precision and scale */
extern void avro_put_decimal(StringInfo out, const AvroNode *node, const char *text);

/*
 * A value of jsonb, by what the schema wants: objects are maps or records, a union's
 * branch is the first that fits.  ERROR 22023 where nothing does.
 */
extern void avro_put_jsonb(StringInfo out, const AvroNode *node, Jsonb *value);

#endif							/* UK_AVRO_OUTPUT_H */
