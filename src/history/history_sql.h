/*
 * history_sql.h
 *	  The SQL that makes the objects of one table's history: the versions table,
 *	  the history table, and the functions on it.
 *
 * Text only: nothing here runs SQL or looks at tables.  Names are quoted, and
 * every name is qualified, so that the text means the same under any
 * search_path.
 */
#ifndef UK_HISTORY_SQL_H
#define UK_HISTORY_SQL_H

#include "nodes/pg_list.h"

typedef struct HistoryColumn
{
	const char *name;
	Oid			type;
	int32		typmod;
	Oid			collation;		/* InvalidOid: the type is not collatable */
} HistoryColumn;

/* A current table, as its history needs to know it. */
typedef struct HistorySpec
{
	const char *schema;			/* where all of its objects live */
	const char *table;
	int			ncolumns;
	const HistoryColumn *columns;
	int			nkeys;
	const int  *keys;			/* indexes into columns, in primary key order */
	const char *time_zone;		/* in which a timestamp argument is read */
} HistorySpec;

/*
 * table || suffix, palloc'd; ERROR 42622 when it doesn't fit into a name (it
 * would be cut, and meet another table's).
 */
extern char *history_object_name(const char *table, const char *suffix);

#define HISTORY_SUFFIX_VERSIONS "__versions"
#define HISTORY_SUFFIX_HISTORY	"_history"

/*
 * Lists of SQL commands (char *), in the order in which they must run; palloc'd
 * in CurrentMemoryContext.  ERROR 42701 for a column that has the name of a
 * system column, 42883 for a key type without a default btree operator class,
 * 42622 for names that would be cut.
 *
 * versions_create_commands:  the versions table without its index.
 * versions_index_command:    its index (a bulk load makes it last).
 * history_create_commands:   the history table, then the functions.
 * history_function_commands: the functions alone, as CREATE OR REPLACE: run
 *                            again after a RENAME or SET SCHEMA.
 */
extern List *versions_create_commands(const HistorySpec *spec);
extern char *versions_index_command(const HistorySpec *spec);
extern List *history_create_commands(const HistorySpec *spec);
extern List *history_function_commands(const HistorySpec *spec);

/*
 * The functions of history_function_commands, each as 'schema.name(types)', for ALTER,
 * GRANT and DROP FUNCTION; name only, unqualified, in *names if that is not
 * NULL.  Same order on every call with the same columns.
 */
extern List *history_function_signatures(const HistorySpec *spec, List **names);

#endif							/* UK_HISTORY_SQL_H */
