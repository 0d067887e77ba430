/*
 * import_columns.h
 *	  What IMPORT FOREIGN SCHEMA proposes for the keys or the values of a topic,
 *	  whatever it was learned from.
 */
#ifndef UK_IMPORT_COLUMNS_H
#define UK_IMPORT_COLUMNS_H

#include "nodes/pg_list.h"

typedef struct ImportColumn
{
	const char *name;			/* wanted, of any length */
	const char *type;			/* as SQL text */
	const char *field;			/* in the message; NULL: the column is the whole */
	bool		not_null;		/* the schema says so */
} ImportColumn;

typedef struct ImportPart
{
	const char *format;			/* NULL: nothing is known */
	bool		guessed;		/* from messages */
	bool		changelog;		/* change events: rows of several kinds */
	List	   *columns;		/* of ImportColumn */
	List	   *options;		/* of DefElem with text: further options of the table */
} ImportPart;

/* Append a column; strings by reference. */
static inline void
import_column(ImportPart *part, const char *name, const char *type, const char *field, bool not_null)
{
	ImportColumn *column = palloc(sizeof(ImportColumn));

	column->name = name;
	column->type = type;
	column->field = field;
	column->not_null = not_null;
	part->columns = lappend(part->columns, column);
}

/* More columns than this are not proposed: a table has no room for many more. */
#define IMPORT_MAX_COLUMNS 1000

#endif							/* UK_IMPORT_COLUMNS_H */
