/*
 * parts.h
 *	  The objects around a maintained table: versions, history, origins and the
 *	  AS OF functions.  Their names, their making, and what keeps them with it.
 *	  Private to materialize.c and ddl.c.
 *
 * Everything is made and altered by SQL as the current user, so that PostgreSQL
 * checks his rights; the caller is inside SPI and ddl_session_enter().
 */
#ifndef UK_PARTS_H
#define UK_PARTS_H

#include "access/tupdesc.h"
#include "lib/stringinfo.h"
#include "materialize/catalog.h"

typedef struct PartNames
{
	char	   *versions;
	char	   *history;
	char	   *origins;
	char	   *functions[3];	/* as_of, between, from_to */
} PartNames;

/* ERROR 42622 if one would be longer than PostgreSQL keeps. */
extern void part_names(const char *target, PartNames *names);

/* "__x" and system_time: a maintained table cannot have such a column. */
extern bool column_name_is_reserved(const char *name);
extern void column_name_refuse(const char *name) pg_attribute_noreturn();

/* SPI and a search_path that the caller of the SQL cannot bend; leave ends both. */
extern int	ddl_session_enter(void);
extern void ddl_session_leave(int guc_level);
extern void ddl_run(const char *format,...) pg_attribute_printf(1, 2);

/* schema.name, quoted */
extern char *relation_name(Oid relid);

/* name type [COLLATE c] [NOT NULL] */
extern void append_column(StringInfo sql, Form_pg_attribute att, bool not_null);

/*
 * Make the parts of a new current table: guard, and versions and history, or origins
 * where it is keyed and has no history.  Sets their OIDs in *table.
 */
extern void parts_create(MaintainedTable *table, bool history);

/* (Re)make the AS OF functions under the table's present name, schema and keys. */
extern void parts_create_functions(const MaintainedTable *table, bool key_renamed);

/* OIDs of the AS OF functions that belong to the history table as it is called now. */
extern List *parts_functions(const MaintainedTable *table);

/* Let DROP TABLE of the current table take the parts along. */
extern void parts_record_dependencies(const MaintainedTable *table);

/* Drop what is left of the parts. */
extern void parts_drop(const MaintainedTable *table, DropBehavior behavior);

/*
 * SELECT on the history is given to whom it is given on the current table; versions
 * and origins are for the owner alone.
 */
extern void parts_mirror_privileges(const MaintainedTable *table);

#endif							/* UK_PARTS_H */
