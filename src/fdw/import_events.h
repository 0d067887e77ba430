/*
 * import_events.h
 *	  Are the values of a sample change events, whose, and what are their rows like?
 */
#ifndef UK_IMPORT_EVENTS_H
#define UK_IMPORT_EVENTS_H

#include "fdw/import_columns.h"
#include "format/json_scan.h"

/* Formats of change events that a sample can show. */
#define EVENT_FORMATS 4

typedef struct EventGuess
{
	int			n;				/* values looked at */
	int			fitting[EVENT_FORMATS]; /* how many of them are such events */
	int			rows[EVENT_FORMATS];	/* how many of these tell of a row */
	int			keyed[EVENT_FORMATS];	/* .. and have a key */
	List	   *fields[EVENT_FORMATS];	/* of FieldGuess, of the rows */
	char	   *schema;			/* of a Debezium event, the last one; NULL: there is none */
	char	   *key_schema;
	List	   *key_fields;		/* of FieldGuess, of wrapped keys */
	List	   *mysql_types;	/* of ImportColumn, of Canal's events */
} EventGuess;

/*
 * Look at a message: its JSON objects, of kind JK_MISSING where key or value is none.
 * has_value: it is not null.  Allocates in CurrentMemoryContext.
 */
extern void guess_event(EventGuess *guess, const JsonText *key, bool has_key, const JsonText *value, bool has_value);

/* Which format all of them have, and whether every row has a key; -1: none. */
extern int	event_format(const EventGuess *guess, bool *keyed);

/* Columns of the rows */
extern void event_value_part(const EventGuess *guess, int format, ImportPart *part);

/* Columns of the keys, from the fields that JSON keys have (of FieldGuess); none if they name no row */
extern void event_key_part(const EventGuess *guess, int format, List *fields, ImportPart *part);

#endif							/* UK_IMPORT_EVENTS_H */
