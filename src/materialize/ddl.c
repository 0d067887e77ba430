/*
 * ddl.c
 *	  The triggers of maintained tables: event triggers that find out which of them
 *	  a command touched (follow.c does the rest) and clean up after DROP, and the
 *	  guard trigger that refuses DML.
 *
 * Other people's DDL must never fail or slow down because of us: without a
 * registration nothing happens, and only what the command itself touched is
 * looked at.  A table without its guard trigger is left alone (catalog.h), so
 * that pg_restore can build one up and take one down piece by piece.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "materialize/follow.h"
#include "materialize/parts.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(upsert_kafka_follow_ddl);
PG_FUNCTION_INFO_V1(upsert_kafka_before_grant);
PG_FUNCTION_INFO_V1(upsert_kafka_follow_drop);
PG_FUNCTION_INFO_V1(upsert_kafka_refuse_dml);

/* Set while our own ALTERs run, which raise the event again. */
static bool following = false;

/* --- event triggers ---------------------------------------------------------------------------- */

static void
relation_oids_of(const char *sql, List **result)
{
	MemoryContext context = CurrentMemoryContext;
	int			guc_level = ddl_session_enter();

	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the objects of an event trigger");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Oid			oid = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i],
														 SPI_tuptable->tupdesc, 1, &isnull));
		MemoryContext spi_context = MemoryContextSwitchTo(context);

		if (!isnull)
			*result = list_append_unique_oid(*result, oid);
		MemoryContextSwitchTo(spi_context);
	}
	ddl_session_leave(guc_level);
}

/*
 * The maintained tables that a GRANT or REVOKE is about, by themselves or by one of
 * their parts.  From the parse tree: the event does not tell.
 */
static List *
granted_targets(GrantStmt *stmt, List *targets)
{
	List	   *relids = NIL;
	List	   *namespaces = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	if (stmt->objtype != OBJECT_TABLE)
		return NIL;
	foreach(lc, stmt->objects)
	{
		if (stmt->targtype == ACL_TARGET_OBJECT)
		{
			Oid			relid = RangeVarGetRelid(lfirst_node(RangeVar, lc), NoLock, true);

			if (OidIsValid(relid))
				relids = lappend_oid(relids, relid);
		}
		else if (stmt->targtype == ACL_TARGET_ALL_IN_SCHEMA)
			namespaces = lappend_oid(namespaces, get_namespace_oid(strVal(lfirst(lc)), true));
	}
	foreach(lc, targets)
	{
		MaintainedTable *table = maintained_table_get(lfirst_oid(lc));

		if (table != NULL &&
			(list_member_oid(relids, table->target) || list_member_oid(relids, table->history) ||
			 list_member_oid(relids, table->versions) || list_member_oid(relids, table->origins) ||
			 list_member_oid(namespaces, get_rel_namespace(table->target))))
			result = lappend_oid(result, table->target);
	}
	return result;
}

static void
follow_privileges(List *targets)
{
	ListCell   *lc;

	foreach(lc, targets)
	{
		MaintainedTable *table = maintained_table_get(lfirst_oid(lc));

		if (table != NULL && maintained_table_is_guarded(table->target))
			parts_mirror_privileges(table);
	}
}

/* The functions' bodies name the schema. */
static void
follow_schema_rename(List *targets, const char *schema)
{
	Oid			namespace = get_namespace_oid(schema, true);
	ListCell   *lc;

	foreach(lc, targets)
	{
		MaintainedTable *table = maintained_table_get(lfirst_oid(lc));

		if (table != NULL && maintained_table_is_guarded(table->target) &&
			get_rel_namespace(table->target) == namespace)
			follow_functions(table);
	}
}

static void
follow_relations(List *targets, Node *command, List *altered)
{
	ListCell   *lc;

	relation_oids_of("SELECT objid FROM pg_catalog.pg_event_trigger_ddl_commands()"
					 " WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass", &altered);
	foreach(lc, targets)
	{
		Oid			target = lfirst_oid(lc);
		MaintainedTable *table = maintained_table_get(target);

		if (table == NULL)
			continue;
		if (!maintained_table_is_guarded(target))
		{
			/* perhaps it was until now: apply stops */
			if (list_member_oid(altered, target))
				worker_wake_on_commit();
			continue;
		}
		/* ATTACH PARTITION is reported as the parent */
		if (get_rel_relispartition(target))
			follow_refuse_partition(table);
		if (list_member_oid(altered, target))
		{
			follow_target(table, command);
			continue;
		}
		if (list_member_oid(altered, table->source))
			follow_source(table, command);
		if (OidIsValid(table->history) && list_member_oid(altered, table->history))
			follow_part(table, table->history);
		if (OidIsValid(table->versions) && list_member_oid(altered, table->versions))
			follow_part(table, table->versions);
		if (OidIsValid(table->origins) && list_member_oid(altered, table->origins))
			follow_part(table, table->origins);
	}
}

/* 'named': what the command is about, where the event does not tell */
static void
follow_command(Node *command, List *targets, List *named)
{
	int			guc_level = ddl_session_enter();

	if (IsA(command, GrantStmt))
		follow_privileges(named);
	else if (IsA(command, RenameStmt) && ((RenameStmt *) command)->renameType == OBJECT_SCHEMA)
		follow_schema_rename(targets, ((RenameStmt *) command)->newname);
	else
		follow_relations(targets, command, named);
	ddl_session_leave(guc_level);
}

/* Our own ALTERs are not followed. */
static void
follow_once(Node *command, List *targets, List *named)
{
	following = true;
	PG_TRY();
	{
		follow_command(command, targets, named);
	}
	PG_FINALLY();
	{
		following = false;
	}
	PG_END_TRY();
}

Datum
upsert_kafka_follow_ddl(PG_FUNCTION_ARGS)
{
	EventTriggerData *event;
	Node	   *command;
	List	   *targets;
	List	   *named = NIL;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"follow_ddl\" was not called by an event trigger")));
	event = (EventTriggerData *) fcinfo->context;
	command = event->parsetree;
	if (following || creating_extension || IsBinaryUpgrade)
		PG_RETURN_NULL();
	targets = maintained_table_targets();
	if (targets == NIL)
		PG_RETURN_NULL();

	/* names of the command mean what they mean under its own search_path */
	if (IsA(command, GrantStmt))
	{
		named = granted_targets((GrantStmt *) command, targets);
		if (named == NIL)
			PG_RETURN_NULL();
	}
	else if (IsA(command, CreateTrigStmt))
	{
		CreateTrigStmt *stmt = (CreateTrigStmt *) command;

		/* reported as the trigger, not as its table */
		if (strcmp(stmt->trigname, GUARD_TRIGGER) != 0)
			PG_RETURN_NULL();
		named = list_make1_oid(RangeVarGetRelid(stmt->relation, NoLock, true));
	}

	follow_once(command, targets, named);
	PG_RETURN_NULL();
}

/*
 * A GRANT on a table changes its history, too.  Those on the two must not meet, as they
 * do in pg_restore --jobs: catalog rows that are updated at the same time are an
 * error.
 */
Datum
upsert_kafka_before_grant(PG_FUNCTION_ARGS)
{
	EventTriggerData *event;
	List	   *targets;
	ListCell   *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"before_grant\" was not called by an event trigger")));
	event = (EventTriggerData *) fcinfo->context;
	if (creating_extension || IsBinaryUpgrade || !IsA(event->parsetree, GrantStmt) ||
		(targets = maintained_table_targets()) == NIL)
		PG_RETURN_NULL();

	foreach(lc, granted_targets((GrantStmt *) event->parsetree, targets))
		maintained_table_lock_privileges(lfirst_oid(lc));
	PG_RETURN_NULL();
}

/* --- DROP ------------------------------------------------------------------------------------------ */

static bool
is_gone(Oid relid)
{
	return OidIsValid(relid) && !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid));
}

static DropBehavior
drop_behavior(Node *command)
{
	if (IsA(command, DropStmt))
		return ((DropStmt *) command)->behavior;
	if (IsA(command, DropOwnedStmt))
		return ((DropOwnedStmt *) command)->behavior;
	return DROP_RESTRICT;
}

/*
 * A part, or the source, has gone and the table has not.
 */
static void
check_dropped(const MaintainedTable *table, Oid relid, const char *what, List *dropped)
{
	if (!is_gone(relid) || !list_member_oid(dropped, relid))
		return;

	if (maintained_table_is_guarded(table->target))
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop the %s of maintained table \"%s\"", what, get_rel_name(table->target)),
				 errhint("Use SELECT upsert_kafka.drop('%s') to drop it with all that belongs to it.",
						 relation_name(table->target))));
	table_state_set(table->target, TABLE_STOPPED, ERRCODE_UNDEFINED_TABLE,
					psprintf("the %s of the table was dropped", what), -1, -1);
}

Datum
upsert_kafka_follow_drop(PG_FUNCTION_ARGS)
{
	EventTriggerData *event;
	List	   *suspects = NIL;
	List	   *dropped = NIL;
	ListCell   *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"follow_drop\" was not called by an event trigger")));
	event = (EventTriggerData *) fcinfo->context;
	if (creating_extension || IsBinaryUpgrade)
		PG_RETURN_NULL();

	foreach(lc, maintained_table_targets())
	{
		MaintainedTable *table = maintained_table_read(lfirst_oid(lc));

		if (table != NULL &&
			(is_gone(table->target) || is_gone(table->source) || is_gone(table->versions) ||
			 is_gone(table->history) || is_gone(table->origins)))
			suspects = lappend(suspects, table);
	}
	if (suspects == NIL)
		PG_RETURN_NULL();

	/* what is missing for another reason is not this command's fault */
	relation_oids_of("SELECT objid FROM pg_catalog.pg_event_trigger_dropped_objects()"
					 " WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objsubid = 0",
					 &dropped);
	foreach(lc, suspects)
	{
		MaintainedTable *table = lfirst(lc);

		if (!is_gone(table->target))
		{
			check_dropped(table, table->source, "source", dropped);
			check_dropped(table, table->history, "history", dropped);
			check_dropped(table, table->versions, "versions table", dropped);
			check_dropped(table, table->origins, "origins table", dropped);
		}
		else if (list_member_oid(dropped, table->target))
		{
			parts_drop(table, drop_behavior(event->parsetree));
			maintained_table_delete(table->target);
			worker_wake_on_commit();
		}
	}
	PG_RETURN_NULL();
}

/* --- DML ----------------------------------------------------------------------------------------------- */

static const char *
dml_name(TriggerEvent event)
{
	if (TRIGGER_FIRED_BY_INSERT(event))
		return "insert into";
	if (TRIGGER_FIRED_BY_UPDATE(event))
		return "update";
	if (TRIGGER_FIRED_BY_DELETE(event))
		return "delete from";
	return "truncate";
}

/* Apply writes below statements, so what fires this is somebody's own DML. */
Datum
upsert_kafka_refuse_dml(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Oid			relid;
	Oid			target;
	MaintainedTable *table;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"refuse_dml\" was not called by a trigger")));
	if (apply_in_progress)
		PG_RETURN_POINTER(NULL);

	relid = RelationGetRelid(trigger->tg_relation);
	target = maintained_table_of_part(relid);
	table = maintained_table_get(OidIsValid(target) ? target : relid);
	ereport(ERROR,
			(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
			 errmsg("cannot %s \"%s\": only its topic changes it", dml_name(trigger->tg_event),
					RelationGetRelationName(trigger->tg_relation)),
			 table != NULL && get_rel_name(table->source) != NULL ?
			 errhint("Write to the topic, for example through foreign table \"%s\".",
					 get_rel_name(table->source)) :
			 errhint("To make it a plain table, drop its trigger \"%s\".", GUARD_TRIGGER)));
}
