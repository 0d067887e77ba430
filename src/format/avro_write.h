/*
 * avro_write.h
 *	  Rows -> Avro's binary encoding, by writers compiled from a schema and the types of
 *	  columns.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_WRITE_H
#define UK_AVRO_WRITE_H

#include "format/avro_schema.h"
#include "format/format.h"

typedef struct AvroRowWriter AvroRowWriter;

/*
 * A writer of rows.  Each field of the schema's record is filled by the column of its
 * name, or null where there is none; a schema that is no record by the one column.
 * ERROR HV004, HV007 if the schema has no place for a column or its type.  In
 * CurrentMemoryContext; keeps schema and columns by reference.
 */
extern AvroRowWriter *avro_row_writer_create(const AvroNode *schema, int ncolumns, const FormatColumn *columns,
											 const char *time_zone);

/* As FormatRoutine.encode. */
extern void avro_row_write(AvroRowWriter *writer, const Datum *values, const bool *isnull,
						   StringInfo bytes, const char **column);

#endif							/* UK_AVRO_WRITE_H */
