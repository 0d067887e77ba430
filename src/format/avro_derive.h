/*
 * avro_derive.h
 *	  The Avro schema that columns have, as Flink derives it.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_DERIVE_H
#define UK_AVRO_DERIVE_H

#include "format/format.h"

/*
 * JSON text in UTF-8, palloc'd, that is letter for letter what Flink would register.
 * 'legacy': timestamp columns are timestamp-millis, else local-timestamp-millis.  ERROR
 * HV004 for a type that says too little (numeric without precision).
 */
extern char *avro_derive_schema(int ncolumns, const FormatColumn *columns, bool legacy);

/* The same of Debezium's change events: before, after and op, all of which may be null. */
extern char *avro_derive_event_schema(int ncolumns, const FormatColumn *columns);

#endif							/* UK_AVRO_DERIVE_H */
