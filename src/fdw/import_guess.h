/*
 * import_guess.h
 *	  What a sample of a topic's messages looks like: which members their JSON
 *	  objects have, and which PostgreSQL types those would fit.
 */
#ifndef UK_IMPORT_GUESS_H
#define UK_IMPORT_GUESS_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* One member of the objects, in the order in which they were met. */
typedef struct FieldGuess
{
	char	   *name;			/* in the message, database encoding */
	int			kinds;			/* bits of what its values were; see import_guess.c */
} FieldGuess;

/* All keys, or all values, of a sample. */
typedef struct BytesGuess
{
	int			n;				/* how many that are not null */
	bool		objects;		/* all JSON objects with at least one member */
	bool		utf8;			/* all text in the database encoding, without NUL */
	List	   *fields;			/* of FieldGuess */
} BytesGuess;

extern void guess_init(BytesGuess *guess);

/* Look at one key or value; allocates in CurrentMemoryContext. */
extern void guess_bytes(BytesGuess *guess, const char *bytes, Size len);

/* SQL name of the type that fits all values met; text where nothing else does. */
extern const char *guess_type(const FieldGuess *field);

#endif							/* UK_IMPORT_GUESS_H */
