/*
 * connect_schema.h
 *	  What the schema in a message of Kafka Connect says of its fields.  Private to
 *	  connect.c.
 */
#ifndef UK_CONNECT_SCHEMA_H
#define UK_CONNECT_SCHEMA_H

#include "format/connect.h"

/* What a value stands for. */
typedef enum ConnectLogical
{
	LOGICAL_PLAIN,				/* what JSON says that it is */
	LOGICAL_DECIMAL,
	LOGICAL_VARIABLE_DECIMAL,
	LOGICAL_DATE,
	LOGICAL_TIME,
	LOGICAL_TIMESTAMP,
	LOGICAL_ZONED,
	LOGICAL_DURATION,
	LOGICAL_BITS
} ConnectLogical;

typedef struct ConnectKind
{
	ConnectLogical logical;
	ConnectUnit unit;			/* of times */
	int			parameter;		/* a decimal's scale, the number of bits */
	const char *name;			/* for messages */
	bool		of_elements;	/* the field is an array of them */
	bool		without_schema; /* an option says so, and only of numbers */
} ConnectKind;

typedef struct ConnectSchema ConnectSchema;

/* For fields of these names, in the database encoding.  In CurrentMemoryContext. */
extern ConnectSchema *connect_schema_create(int n, const char *const *names);

/*
 * Read a schema as connect_row_schema() takes it.  False: it is the same as before.
 * *kinds gets one per name, or NULL where there is no schema.
 */
extern bool connect_schema_read(ConnectSchema *schema, const JsonText *text, const char *field, const ConnectKind **kinds);

#endif							/* UK_CONNECT_SCHEMA_H */
