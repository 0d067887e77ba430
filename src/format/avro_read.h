/*
 * avro_read.h
 *	  Avro values -> Datums of one type.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_READ_H
#define UK_AVRO_READ_H

#include "format/avro_input.h"
#include "format/format.h"

/* How values of one schema become values of one type. */
typedef struct AvroReader AvroReader;

/*
 * 'column' is the one that the value is for, or is a part of: its style and name count.
 * In CurrentMemoryContext; keeps the schema by reference.
 */
extern AvroReader *avro_reader_create(const AvroNode *node, Oid type, int32 typmod, const FormatColumn *column,
									  const char *time_zone);

/* The next value, after a domain's say.  ERROR class 22, 23 or 54. */
extern Datum avro_reader_read(AvroReader *reader, AvroInput *in, bool *isnull);

#endif							/* UK_AVRO_READ_H */
