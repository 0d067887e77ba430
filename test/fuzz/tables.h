/*
 * tables.h
 *	  What messages are decoded into: columns, options and schemas by format.
 */
#ifndef UK_FUZZ_TABLES_H
#define UK_FUZZ_TABLES_H

#include "shim.h"

#include "format/format.h"

typedef struct FuzzColumn
{
	const char *field;			/* NULL: the end */
	Oid			type;
	int32		typmod;
	bool		metadata;
	bool		not_null;
	bool		unwanted;		/* a field of the message that nobody asks for */
} FuzzColumn;

/* Names of metadata in the formats of change events have this in front. */
#define METADATA(name, type) {name, type, -1, true}

typedef struct FuzzTable
{
	const char *format;
	const FuzzColumn *columns;
	const char *const *options; /* name, value, .. NULL; or NULL */
	bool		is_key;
	bool		connect;
	bool		upsert;
	bool		has_key;
	const char *keys;			/* the field that the message key is of */
	bool		round_trip;		/* what is written of a row reads as the same row */
	const char *time_zone;		/* NULL: UTC */
} FuzzTable;

extern const FuzzTable fuzz_tables[];
extern const int fuzz_ntables;

/* Schema texts that the registry gives for ids from 1 on */
extern const char *const fuzz_schemas[];
extern const int fuzz_nschemas;

#endif							/* UK_FUZZ_TABLES_H */
