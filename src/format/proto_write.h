/*
 * proto_write.h
 *	  Rows -> protobuf messages, by writers compiled from a message type and the types of
 *	  columns.
 *
 * Private to the protobuf format.
 */
#ifndef UK_PROTO_WRITE_H
#define UK_PROTO_WRITE_H

#include "format/format.h"
#include "format/proto_schema.h"

typedef struct ProtoRowWriter ProtoRowWriter;

typedef struct ProtoWriteOptions
{
	const char *time_zone;
	const char *null_literal;	/* of nulls within repeated strings and maps,
								 * in UTF-8 */
	ValueStyle	style;			/* times in integer fields */
} ProtoWriteOptions;

/*
 * A writer of rows.  Each column fills the field of its name; fields without a column are
 * left out.  ERROR HV005 where a column has no field, HV004 where the field takes no value
 * of its type.  In CurrentMemoryContext; keeps message, columns and options by reference.
 */
extern ProtoRowWriter *proto_row_writer_create(const ProtoMessage *message, int ncolumns, const FormatColumn *columns,
											   const ProtoWriteOptions *options);

/* As FormatRoutine.encode. */
extern void proto_row_write(ProtoRowWriter *writer, const Datum *values, const bool *isnull,
							StringInfo bytes, const char **column);

#endif							/* UK_PROTO_WRITE_H */
