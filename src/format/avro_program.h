/*
 * avro_program.h
 *	  A writer's schema resolved against columns: made once per schema, run per message.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_PROGRAM_H
#define UK_AVRO_PROGRAM_H

#include "format/avro_schema.h"
#include "format/format.h"

typedef struct AvroProgram AvroProgram;

/*
 * Fields of the schema's record go to the columns of their names; a schema that is no
 * record is the value of the one column that there is.  'own' is the reader's schema, or
 * NULL: by it a column may take a field of another name (an alias), or a default.  Other
 * columns without a field are NULL.  In CurrentMemoryContext; keeps schemas and columns
 * by reference.  ERROR 22P03 if the schema has no place for the columns.
 */
extern AvroProgram *avro_program_create(const AvroNode *schema, const AvroNode *own, int ncolumns,
										const FormatColumn *columns, const char *time_zone);

/*
 * Set the columns from one value, all of it.  ERROR class 22, 23 or 54, with
 * sink->column set where it is a column's.
 */
extern void avro_program_run(AvroProgram *program, const char *bytes, Size len, RowSink *sink);

#endif							/* UK_AVRO_PROGRAM_H */
