/*
 * follow.c
 *	  How parts and registration follow an altered maintained table or source,
 *	  and what is refused because they could not.  Compares definitions, by
 *	  name, and runs ALTERs; does not know how it came to be called.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "history/versions.h"
#include "materialize/follow.h"
#include "materialize/parts.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* --- columns ------------------------------------------------------------------------ */

/* Copies of the live columns of a relation (Form_pg_attribute), in order */
static List *
live_columns(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *columns = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute copy;

		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		copy = palloc0(sizeof(FormData_pg_attribute));
		memcpy(copy, TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
		columns = lappend(columns, copy);
	}
	relation_close(rel, NoLock);
	return columns;
}

static Form_pg_attribute
find_column(List *columns, const char *name)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		Form_pg_attribute att = lfirst(lc);

		if (strcmp(NameStr(att->attname), name) == 0)
			return att;
	}
	return NULL;
}

static bool
same_type(Form_pg_attribute a, Form_pg_attribute b)
{
	return a->atttypid == b->atttypid && a->atttypmod == b->atttypmod &&
		a->attcollation == b->attcollation;
}

static int
name_position(char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static void
rename_in(char **names, int n, const char *old, const char *new)
{
	int			i = name_position(names, n, old);

	if (i >= 0)
		names[i] = pstrdup(new);
}

/* --- the parts of a table -------------------------------------------------------------- */

typedef struct Part
{
	Oid			relid;
	const char *name;			/* as it must be called */
} Part;

/*
 * Those that exist.  History first: a query locks it and then the versions, so
 * DDL must, too.
 */
static int
existing_parts(const MaintainedTable *table, Part parts[3])
{
	PartNames	names;
	int			n = 0;

	part_names(get_rel_name(table->target), &names);
	parts[n++] = (Part) {table->history, names.history};
	parts[n++] = (Part) {table->versions, names.versions};
	parts[n++] = (Part) {table->origins, names.origins};
	for (int i = n - 1; i >= 0; i--)
	{
		if (!OidIsValid(parts[i].relid) || get_rel_name(parts[i].relid) == NULL)
		{
			memmove(&parts[i], &parts[i + 1], sizeof(Part) * (n - i - 1));
			n--;
		}
	}
	return n;
}

static Oid
relation_owner(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static Oid
function_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* --- what a maintained table cannot be --------------------------------------------------- */

static void
refuse(const MaintainedTable *table, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("maintained table \"%s\" cannot %s", get_rel_name(table->target), what),
			 hint != NULL ? errhint("%s", hint) : 0));
}

void
follow_refuse_partition(const MaintainedTable *table)
{
	/* statement triggers do not fire for rows that come through a parent */
	refuse(table, "be a partition or a child of another table", NULL);
}

static void
check_column(const MaintainedTable *table, Form_pg_attribute att)
{
	const char *name = NameStr(att->attname);

	if (column_name_is_reserved(name))
		column_name_refuse(name);
	if (att->atthasdef || att->attidentity != '\0' || att->attgenerated != '\0')
		refuse(table, psprintf("have a default, an identity or an expression in column \"%s\"", name),
			   "Only messages fill its columns; compute in a view on it.");
	if (att->attnotnull && name_position(table->columns, table->ncolumns, name) < 0)
		refuse(table, psprintf("have a column \"%s\" that must not be null", name),
			   "No message fills that column.");
}

static void
check_shape(const MaintainedTable *table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table->target));
	char		persistence;

	if (!HeapTupleIsValid(tuple))
		return;
	persistence = ((Form_pg_class) GETSTRUCT(tuple))->relpersistence;
	ReleaseSysCache(tuple);
	if (persistence != RELPERSISTENCE_PERMANENT)
		refuse(table, "be unlogged", "After a crash it would be empty, and its position would not.");
	if (has_superclass(table->target))
		follow_refuse_partition(table);
}

static void
check_primary_key(const MaintainedTable *table)
{
	Relation	rel;
	Bitmapset  *keys;
	bool		same;

	if (table->nkeys == 0)
		return;
	rel = relation_open(table->target, AccessShareLock);
	keys = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	same = bms_num_members(keys) == table->nkeys;
	for (int i = 0; same && i < table->nkeys; i++)
		same = bms_is_member(get_attnum(table->target, table->key_columns[i]) -
							 FirstLowInvalidHeapAttributeNumber, keys);
	relation_close(rel, AccessShareLock);
	if (!same)
		refuse(table, "lose its primary key", NULL);
}

/* --- following ------------------------------------------------------------------------------ */

static void
follow_column_rename(MaintainedTable *table, const char *old, const char *new)
{
	Part		parts[3];
	int			n = existing_parts(table, parts);

	if (column_name_is_reserved(new))
		column_name_refuse(new);
	for (int i = 0; i < n; i++)
	{
		if (find_column(live_columns(parts[i].relid), old) != NULL)
			ddl_run("ALTER TABLE %s RENAME COLUMN %s TO %s", relation_name(parts[i].relid),
					quote_identifier(old), quote_identifier(new));
	}
	/* names of source columns do not change with the target's */
	rename_in(table->columns, table->ncolumns, old, new);
	rename_in(table->key_columns, table->nkeys, old, new);
}

/* Drop names from the registration that the table has no longer, and add those that the topic can fill. */
static void
follow_column_map(MaintainedTable *table, List *columns)
{
	List	   *source = live_columns(table->source);
	char	  **names = palloc(sizeof(char *) * Max(list_length(columns), 1));
	char	  **source_names = palloc(sizeof(char *) * Max(list_length(columns), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Form_pg_attribute att = lfirst(lc);
		char	   *name = pstrdup(NameStr(att->attname));
		int			known = name_position(table->columns, table->ncolumns, name);
		Form_pg_attribute from;

		if (known >= 0)
		{
			names[n] = name;
			source_names[n++] = table->source_columns[known];
			continue;
		}
		from = find_column(source, name);
		if (from == NULL)
			continue;
		if (!same_type(att, from))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of maintained table \"%s\" must have the type of the column of foreign table \"%s\" that fills it",
							name, get_rel_name(table->target), get_rel_name(table->source)),
					 errhint("Use type %s.", format_type_with_typemod(from->atttypid, from->atttypmod))));
		names[n] = name;
		source_names[n++] = name;
	}
	table->columns = names;
	table->source_columns = source_names;
	table->ncolumns = n;
}

static void
follow_columns(MaintainedTable *table, bool cascade)
{
	List	   *columns = live_columns(table->target);
	Part		parts[3];
	int			nparts = existing_parts(table, parts);
	ListCell   *lc;

	for (int i = 0; i < table->nkeys; i++)
		if (find_column(columns, table->key_columns[i]) == NULL)
			refuse(table, psprintf("lose key column \"%s\"", table->key_columns[i]), NULL);

	for (int i = 0; i < nparts; i++)
	{
		List	   *mine = live_columns(parts[i].relid);

		foreach(lc, mine)
		{
			const char *name = NameStr(((Form_pg_attribute) lfirst(lc))->attname);

			if (!column_name_is_reserved(name) && find_column(columns, name) == NULL)
				ddl_run("ALTER TABLE %s DROP COLUMN %s%s", relation_name(parts[i].relid),
						quote_identifier(name), cascade ? " CASCADE" : "");
		}
		foreach(lc, columns)
		{
			Form_pg_attribute att = lfirst(lc);
			Form_pg_attribute same = find_column(mine, NameStr(att->attname));

			if (same == NULL)
			{
				StringInfoData sql;

				initStringInfo(&sql);
				append_column(&sql, att, false);
				ddl_run("ALTER TABLE %s ADD COLUMN %s", relation_name(parts[i].relid), sql.data);
			}
			else if (!same_type(att, same))
				refuse(table, psprintf("change the type of column \"%s\"", NameStr(att->attname)),
					   "Make a new maintained table of the topic, or add a column.");
		}
	}
	follow_column_map(table, columns);

	foreach(lc, columns)
	{
		Form_pg_attribute att = lfirst(lc);
		int			i = name_position(table->columns, table->ncolumns, NameStr(att->attname));
		Form_pg_attribute from;

		check_column(table, att);
		/* an append table has no part to compare with */
		if (i >= 0 &&
			(from = find_column(live_columns(table->source), table->source_columns[i])) != NULL &&
			!same_type(att, from))
			refuse(table, psprintf("change the type of column \"%s\"", NameStr(att->attname)),
				   "Make a new maintained table of the topic, or add a column.");
	}
}

/* Name, schema and owner */
static void
follow_place(const MaintainedTable *table, bool key_renamed)
{
	bool		functions_stale = key_renamed;
	Oid			namespace = get_rel_namespace(table->target);
	const char *schema = quote_identifier(get_namespace_name(namespace));
	const char *owner = quote_identifier(GetUserNameFromId(table->owner, false));
	List	   *functions = parts_functions(table);
	PartNames	names;
	Part		parts[3];
	int			nparts = existing_parts(table, parts);
	ListCell   *lc;

	part_names(get_rel_name(table->target), &names);
	foreach(lc, functions)
	{
		Oid			function = lfirst_oid(lc);
		char	   *name = get_func_name(function);

		for (int i = 0; i < lengthof(names.functions); i++)
		{
			/* the same kind of function: the names end alike */
			const char *suffix = names.functions[i] + strlen(get_rel_name(table->target));

			if (strlen(name) > strlen(suffix) &&
				strcmp(name + strlen(name) - strlen(suffix), suffix) == 0 &&
				strcmp(name, names.functions[i]) != 0)
			{
				ddl_run("ALTER FUNCTION %s RENAME TO %s", format_procedure_qualified(function),
						quote_identifier(names.functions[i]));
				functions_stale = true;
			}
		}
		if (get_func_namespace(function) != namespace)
		{
			ddl_run("ALTER FUNCTION %s SET SCHEMA %s", format_procedure_qualified(function), schema);
			functions_stale = true;
		}
	}

	for (int i = 0; i < nparts; i++)
	{
		Oid			relid = parts[i].relid;

		if (strcmp(get_rel_name(relid), parts[i].name) != 0)
			ddl_run("ALTER TABLE %s RENAME TO %s", relation_name(relid),
					quote_identifier(parts[i].name));
		if (get_rel_namespace(relid) != namespace)
			ddl_run("ALTER TABLE %s SET SCHEMA %s", relation_name(relid), schema);
		if (relation_owner(relid) != table->owner)
			ddl_run("ALTER TABLE %s OWNER TO %s", relation_name(relid), owner);
	}

	if (functions_stale)
		parts_create_functions(table, key_renamed);
	foreach(lc, parts_functions(table))
	{
		if (function_owner(lfirst_oid(lc)) != table->owner)
			ddl_run("ALTER FUNCTION %s OWNER TO %s", format_procedure_qualified(lfirst_oid(lc)), owner);
	}
}

/*
 * The AS OF functions anew, after a command of somebody who may have no rights on
 * the table: the owner of its source or of its schema.
 */
void
follow_functions(const MaintainedTable *table)
{
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	if (!has_privs_of_role(user, table->owner))
		SetUserIdAndSecContext(table->owner, context | SECURITY_LOCAL_USERID_CHANGE |
							   SECURITY_RESTRICTED_OPERATION);
	parts_create_functions(table, false);
	SetUserIdAndSecContext(user, context);
}

static bool
alters(Node *command, AlterTableType subtype, bool *cascade)
{
	ListCell   *lc;

	if (!IsA(command, AlterTableStmt))
		return false;
	foreach(lc, ((AlterTableStmt *) command)->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == subtype)
		{
			if (cascade != NULL)
				*cascade = cmd->behavior == DROP_CASCADE;
			return true;
		}
	}
	return false;
}

/* old and new name if the command renames a column */
static RenameStmt *
column_rename(Node *command)
{
	if (IsA(command, RenameStmt) && ((RenameStmt *) command)->renameType == OBJECT_COLUMN)
		return (RenameStmt *) command;
	return NULL;
}

void
follow_target(MaintainedTable *table, Node *command)
{
	RenameStmt *rename = column_rename(command);
	bool		cascade = false;
	bool		drops_column = alters(command, AT_DropColumn, &cascade);
	bool		key_renamed = false;

	check_shape(table);
	if (rename != NULL)
	{
		key_renamed = name_position(table->key_columns, table->nkeys, rename->subname) >= 0;
		follow_column_rename(table, rename->subname, rename->newname);
	}
	if (drops_column || alters(command, AT_DropConstraint, NULL))
		check_primary_key(table);
	follow_columns(table, cascade);
	follow_place(table, key_renamed);
	parts_mirror_privileges(table);
	if (IsA(command, CreateTrigStmt))
		parts_record_dependencies(table);	/* the end of a restore, which loses them */
	maintained_table_update(table);
	worker_wake_on_commit();
}

/* A part was altered by itself; that is fine as long as it still fits. */
void
follow_part(const MaintainedTable *table, Oid relid)
{
	List	   *columns = live_columns(table->target);
	List	   *mine = live_columns(relid);
	Part		parts[3];
	int			nparts = existing_parts(table, parts);
	int			nshared = 0;
	bool		fits = get_rel_namespace(relid) == get_rel_namespace(table->target) &&
		relation_owner(relid) == table->owner && !has_superclass(relid);
	ListCell   *lc;

	for (int i = 0; i < nparts; i++)
		if (parts[i].relid == relid && strcmp(get_rel_name(relid), parts[i].name) != 0)
			fits = false;
	foreach(lc, mine)
	{
		Form_pg_attribute att = lfirst(lc);
		Form_pg_attribute same = find_column(columns, NameStr(att->attname));

		if (att->atthasdef || att->attidentity != '\0' || att->attgenerated != '\0')
			fits = false;
		if (column_name_is_reserved(NameStr(att->attname)))
			continue;
		if (same == NULL || !same_type(att, same))
			fits = false;
		nshared++;
	}
	if (nshared != list_length(columns) ||
		list_length(mine) - nshared != (relid == table->history ? 1 : VERSION_NSYSTEM))
		fits = false;
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot alter \"%s\" because maintained table \"%s\" needs it as it is",
						get_rel_name(relid), get_rel_name(table->target)),
				 errhint("Alter \"%s\"; what belongs to it follows.", get_rel_name(table->target))));
}

static void
check_event_time(const MaintainedTable *table, List *source)
{
	Form_pg_attribute att;
	Oid			type;

	if (table->event_time == NULL)
		return;
	att = find_column(source, table->event_time);
	type = att != NULL ? getBaseType(att->atttypid) : InvalidOid;
	if (type != TIMESTAMPTZOID && type != TIMESTAMPOID)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot %s column \"%s\" of foreign table \"%s\" because it is the event time of maintained table \"%s\"",
						att == NULL ? "drop" : "change the type of", table->event_time,
						get_rel_name(table->source), get_rel_name(table->target))));
}

void
follow_source(MaintainedTable *table, Node *command)
{
	RenameStmt *rename = column_rename(command);
	List	   *source;
	List	   *columns;

	if (rename != NULL)
	{
		rename_in(table->source_columns, table->ncolumns, rename->subname, rename->newname);
		if (table->event_time != NULL && strcmp(table->event_time, rename->subname) == 0)
			table->event_time = pstrdup(rename->newname);
	}

	source = live_columns(table->source);
	columns = live_columns(table->target);
	for (int i = 0; i < table->ncolumns; i++)
	{
		Form_pg_attribute from = find_column(source, table->source_columns[i]);
		Form_pg_attribute to = find_column(columns, table->columns[i]);

		if (from == NULL || (to != NULL && !same_type(from, to)))
			ereport(ERROR,
					(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					 errmsg("cannot %s column \"%s\" of foreign table \"%s\" because it fills maintained table \"%s\"",
							from == NULL ? "drop" : "change the type of",
							table->source_columns[i], get_rel_name(table->source),
							get_rel_name(table->target)),
					 from == NULL ?
					 errhint("Drop column \"%s\" of \"%s\" first.", table->columns[i],
							 get_rel_name(table->target)) :
					 errhint("Add a column, to both tables.")));
	}
	check_event_time(table, source);

	/* the functions know the time zone, an option of the source */
	if (alters(command, AT_GenericOptions, NULL))
		follow_functions(table);
	maintained_table_update(table);
	worker_wake_on_commit();
}
