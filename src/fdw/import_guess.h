/*
 * import_guess.h
 *	  What a sample of a topic's messages looks like: which members their JSON
 *	  objects have, and which PostgreSQL types those would fit.
 */
#ifndef UK_IMPORT_GUESS_H
#define UK_IMPORT_GUESS_H

#include "format/json_scan.h"
#include "nodes/pg_list.h"

/* One member of the objects, in the order in which they were met. */
typedef struct FieldGuess
{
	char	   *name;			/* in the message, database encoding */
	int			kinds;			/* bits of what its values were; see import_guess.c */
} FieldGuess;

/* A topic's messages are of few schemas; numbers that look like framing are of many. */
#define MAX_IDS 8

/* All keys, or all values, of a sample. */
typedef struct BytesGuess
{
	int			n;				/* how many that are not null */
	bool		objects;		/* all JSON objects with at least one member, framed or not */
	bool		utf8;			/* all text in the database encoding, without NUL */
	List	   *fields;			/* of FieldGuess */
	int			framed;			/* how many may have a schema id in front */
	uint32		last_id;
	int			nids;
	uint32		ids[MAX_IDS];
	bool		many_ids;
} BytesGuess;

extern void guess_init(BytesGuess *guess);

/*
 * Look at one key or value; allocates in CurrentMemoryContext.  *object points into it
 * if it is a JSON object and all before it were, else its kind is JK_MISSING.
 */
extern void guess_bytes(BytesGuess *guess, const char *bytes, Size len, JsonText *object);

/* Do all of them look like a registry's, with a schema id in front? */
extern bool guess_is_framed(const BytesGuess *guess);

/* Note the members of an object among fields (of FieldGuess). */
extern void guess_members(List **fields, const JsonText *object);

/* SQL name of the type that fits all values met; text where nothing else does. */
extern const char *guess_type(const FieldGuess *field);

#endif							/* UK_IMPORT_GUESS_H */
