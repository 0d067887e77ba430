/*
 * proto_reader.h
 *	  How a field becomes a column: compiled by proto_reader.c, run by proto_read.c.
 */
#ifndef UK_PROTO_READER_H
#define UK_PROTO_READER_H

#include "format/binary_values.h"
#include "format/proto_read.h"

typedef enum ReaderKind
{
	READ_INTEGER,				/* integers, enums -> int2, int4, int8 */
	READ_NUMERIC,				/* integers -> numeric */
	READ_FLOATING,				/* float, double -> float4, float8 */
	READ_BOOLEAN,
	READ_STRING,				/* string -> any type's input */
	READ_ENUM,					/* an enum's name -> any type's input */
	READ_BYTEA,
	READ_UUID,					/* 16 bytes -> uuid */
	READ_TIMESTAMP,				/* Timestamp -> timestamp or timestamptz */
	READ_INTERVAL,				/* Duration */
	READ_DATE,
	READ_TIME,
	READ_WRAPPER,				/* the value in it */
	READ_COMPOSITE,
	READ_ARRAY,					/* repeated -> arrays */
	READ_HSTORE,				/* map -> hstore */
	READ_TEXT					/* anything as text or JSON -> the type's
								 * input */
} ReaderKind;

typedef struct ProtoReader ProtoReader;

typedef struct ProgramColumn
{
	ProtoReader *reader;
	const ProtoField *field;
	int			index;			/* of the column, or of the composite's
								 * attribute */
	const char *name;
} ProgramColumn;

struct ProtoProgram
{
	ProtoScan  *scan;
	const ProtoReadOptions *options;
	int			ncolumns;
	ProgramColumn *columns;
};

struct ProtoReader
{
	ReaderKind	kind;
	const ProtoField *field;
	const ProtoReadOptions *options;
	ProtoJsonOptions json;
	Oid			type;			/* a domain's base type */
	int32		typmod;
	Oid			domain;			/* InvalidOid: none */
	bool		checks_itself;	/* values, but not their absence */
	void	   *domain_cache;
	MemoryContext context;
	ValueInput *input;			/* of the kinds that have text */
	ValueZone	zone;			/* of naive times */
	bool		as_json;		/* READ_TEXT: quoted where JSON quotes */
	bool		no_empty;		/* an empty text or no bytes are no value of
								 * the type */

	ProtoReader *inner;			/* READ_ARRAY: of elements; READ_WRAPPER: of
								 * the value */
	ProtoProgram *program;		/* READ_WRAPPER, READ_COMPOSITE */
	TupleDesc	desc;			/* READ_COMPOSITE */
	Oid			element;		/* READ_ARRAY */
	int16		typlen;
	bool		typbyval;
	char		typalign;
};

#endif							/* UK_PROTO_READER_H */
