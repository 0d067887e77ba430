/*
 * avro_schema.h
 *	  Avro schemas as trees (Avro 1.12, "Schema Declaration" and "Logical Types").
 *
 * Decoders and encoders are compiled from these; JSON text goes no further.
 */
#ifndef UK_AVRO_SCHEMA_H
#define UK_AVRO_SCHEMA_H

#include "nodes/pg_list.h"

typedef enum AvroType
{
	AVRO_NULL,
	AVRO_BOOLEAN,
	AVRO_INT,
	AVRO_LONG,
	AVRO_FLOAT,
	AVRO_DOUBLE,
	AVRO_BYTES,
	AVRO_STRING,
	AVRO_RECORD,
	AVRO_ENUM,
	AVRO_ARRAY,
	AVRO_MAP,
	AVRO_UNION,
	AVRO_FIXED
} AvroType;

/*
 * Logical types, where the type is one that they may stand on; others are ignored, as
 * the specification wants it.  Kafka Connect's and Debezium's names for the same
 * ("connect.name") count as well.
 */
typedef enum AvroLogical
{
	AVRO_PLAIN,
	AVRO_DECIMAL,				/* bytes, fixed: precision, scale */
	AVRO_DATE,					/* int: days */
	AVRO_TIME,					/* int, long: per_second */
	AVRO_TIMESTAMP,				/* long: an instant, per_second */
	AVRO_LOCAL_TIMESTAMP,		/* long: a naive time, per_second */
	AVRO_UUID,					/* string, fixed(16) */
	AVRO_DURATION,				/* fixed(12): months, days, milliseconds */
	AVRO_VARIABLE_DECIMAL		/* Debezium's record of scale and bytes */
} AvroLogical;

typedef struct AvroNode
{
	AvroType	type;
	AvroLogical logical;
	int			precision;
	int			scale;
	int64		per_second;		/* of times: 1000, 1000000 or 1000000000 */
	const char *name;			/* records, enums, fixed: the full name */
	int64		size;			/* fixed: bytes */
	int64		min_size;		/* no value has fewer bytes than this */
	int			n;				/* fields, symbols, branches; 1 for array and
								 * map */
	struct AvroNode **children; /* NULL for enums */
	const char **names;			/* of fields and symbols, in the database
								 * encoding */
	const char **defaults;		/* of fields: JSON text, NULL where there is none */
	List	  **aliases;		/* of fields: other names, as 'names' */

	/* what Kafka Connect's schema said, where the writer was Connect; else NULL */
	const char *connect;		/* its name: io.debezium.time.Date */
	int			connect_scale;	/* its parameters, 0 where there are none */
	int			connect_length;
} AvroNode;

/*
 * Parse the last of n schemas; those before it are types that it names (references of
 * a registry).  Allocated in CurrentMemoryContext.  NULL if it is no Avro schema, and
 * *error says why.
 */
extern AvroNode *avro_schema_parse(int n, const char *const *texts, char **error);

/* "record", "array" .. for messages */
extern const char *avro_type_name(const AvroNode *node);

/* Is it a union of null and one other type?  *branch: index of the other. */
extern bool avro_is_nullable(const AvroNode *node, int *branch);

/* Is it null, or a union with it? */
extern bool avro_takes_null(const AvroNode *node);

#endif							/* UK_AVRO_SCHEMA_H */
