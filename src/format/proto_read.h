/*
 * proto_read.h
 *	  A message type resolved against columns: made once, run per message.
 *
 * Private to the protobuf format.
 */
#ifndef UK_PROTO_READ_H
#define UK_PROTO_READ_H

#include "format/format.h"
#include "format/proto_json.h"

typedef struct ProtoProgram ProtoProgram;

typedef struct ProtoReadOptions
{
	const char *time_zone;
	bool		read_defaults;	/* fields that are left out have their default */
	bool		strip_nul;		/* from text */
	bool		any_type;		/* columns without a field are NULL instead of
								 * an error */
	const bool *lenient;		/* while true, a value that is no good is NULL */
} ProtoReadOptions;

/*
 * Fields go to the columns of their names.  In CurrentMemoryContext; keeps message, columns
 * and options by reference.  ERROR HV005 where a column has no field, HV004 (22P03 with
 * any_type: the message's fault) where its type can take no value of it.
 */
extern ProtoProgram *proto_program_create(const ProtoMessage *message, int ncolumns, const FormatColumn *columns,
										  const ProtoReadOptions *options);

/*
 * Set the columns from one message.  ERROR class 22, 23 or 54, with sink->column set where
 * it is a column's.
 */
extern void proto_program_run(ProtoProgram *program, const char *bytes, Size len, RowSink *sink);

#endif							/* UK_PROTO_READ_H */
