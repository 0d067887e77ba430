/*
 * materialize.c
 *	  SQL functions that make a maintained table of a foreign table on a topic,
 *	  drop it, and tell its position.  Nothing here talks to Kafka: a worker or
 *	  refresh() loads what was registered.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "materialize/parts.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(upsert_kafka_materialize);
PG_FUNCTION_INFO_V1(upsert_kafka_drop);
PG_FUNCTION_INFO_V1(upsert_kafka_position);
PG_FUNCTION_INFO_V1(upsert_kafka_is_copy);

/* --- what materialize() is asked for -------------------------------------------- */

static void
missing_argument(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" of materialize() must not be null", name)));
}

static void
check_source(Oid source)
{
	AclResult	acl;

	if (get_rel_name(source) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", source)));
	if (!topic_table_is_ours(source))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a foreign table on a topic", get_rel_name(source)),
				 errhint("Use CREATE FOREIGN TABLE with a server of foreign-data wrapper \"upsert_kafka\".")));
	acl = pg_class_aclcheck(source, GetUserId(), ACL_SELECT);
	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_TABLE, get_rel_name(source));
}

/* The target's schema and name as an identifier in SQL gives them. */
static void
parse_target(const char *target, Oid source, char **schema, char **name)
{
	RangeVar   *range = makeRangeVarFromNameList(stringToQualifiedNameList_compat(target));
	Oid			namespace;

	if (range->catalogname != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("invalid name of a maintained table: \"%s\"", target),
				 errhint("Use a table name, with its schema if it is not the one of the foreign table.")));
	namespace = range->schemaname != NULL ? get_namespace_oid(range->schemaname, false) :
		get_rel_namespace(source);
	if (isAnyTempNamespace(namespace))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a maintained table cannot be temporary")));
	*schema = get_namespace_name(namespace);
	*name = range->relname;
}

static void
check_name_is_free(const char *schema, const char *name)
{
	if (OidIsValid(get_relname_relid(name, get_namespace_oid(schema, false))))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists in schema \"%s\"", name, schema),
				 errhint("Choose another target.")));
}

/* One of two words; anything else is ERROR 22023. */
static bool
parse_word(const char *argument, const char *value, const char *no, const char *yes)
{
	if (strcmp(value, yes) == 0)
		return true;
	if (strcmp(value, no) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for argument \"%s\" of materialize(): \"%s\"", argument, value),
				 errhint("Use '%s' or '%s'.", no, yes)));
	return false;
}

/* The attribute of the source with this name; ERROR 42703 if there is none. */
static Form_pg_attribute
source_column(Relation source, const char *name)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(source), name);

	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of foreign table \"%s\" does not exist",
						name, RelationGetRelationName(source))));
	return TupleDescAttr(RelationGetDescr(source), attnum - 1);
}

static void
check_event_time(Relation source, const char *name)
{
	Oid			type = getBaseType(source_column(source, name)->atttypid);

	if (type != TIMESTAMPTZOID && type != TIMESTAMPOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("event time column \"%s\" is of type %s", name, format_type_be(type)),
				 errhint("An event time is a timestamptz, or a timestamp in the time zone of the foreign table.")));
}

static bool
name_in(char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* The columns a maintained table takes over: all but the row kind, which is no data. */
static void
choose_columns(Relation source, const TopicTable *topic, MaintainedTable *table)
{
	TupleDesc	desc = RelationGetDescr(source);

	table->columns = palloc(sizeof(char *) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *name = NameStr(att->attname);

		if (att->attisdropped || topic->columns[i].metadata == META_ROW_KIND)
			continue;
		if (column_name_is_reserved(name))
			column_name_refuse(name);
		if (att->attgenerated != '\0')
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of foreign table \"%s\" is a generated column",
							name, RelationGetRelationName(source)),
					 errhint("Use a view on the maintained table to compute it.")));
		table->columns[table->ncolumns++] = pstrdup(name);
	}
	table->source_columns = table->columns;
}

static void
choose_keys(Relation source, const TopicTable *topic, ArrayType *primary_key, MaintainedTable *table)
{
	Datum	   *names;
	bool	   *nulls;
	int			n;

	if (primary_key == NULL)
	{
		table->nkeys = topic->upsert ? topic->nkeys : 0;
		table->key_columns = palloc(sizeof(char *) * Max(table->nkeys, 1));
		for (int i = 0; i < table->nkeys; i++)
			table->key_columns[i] = pstrdup(topic->columns[topic->keys[i] - 1].name);
		table->append = table->nkeys == 0;
		if (table->append && topic_table_has_kinds(topic))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("foreign table \"%s\" tells of updates and deletes, which need a key", topic->name),
					 errhint("Name the columns that identify a row in argument primary_key, or use connector \"upsert-kafka\".")));
		return;
	}

	if (topic->upsert)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"primary_key\" is for append topics"),
				 errdetail("The key of upsert topic \"%s\" is what foreign table \"%s\" declares.",
						   topic->topic, topic->name)));
	deconstruct_array(primary_key, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, &nulls, &n);
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"primary_key\" of materialize() names no column")));
	table->key_columns = palloc(sizeof(char *) * n);
	for (int i = 0; i < n; i++)
	{
		char	   *name;

		if (nulls[i])
			missing_argument("primary_key");
		name = pstrdup(NameStr(*DatumGetName(names[i])));
		(void) source_column(source, name);
		if (!name_in(table->columns, table->ncolumns, name))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
					 errmsg("column \"%s\" cannot be part of the primary key", name),
					 errdetail("The row kind is not a column of the maintained table.")));
		if (name_in(table->key_columns, table->nkeys, name))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("column \"%s\" appears twice in the primary key", name)));
		table->key_columns[table->nkeys++] = name;
	}
}

/* --- materialize ------------------------------------------------------------------- */

static void
create_target(Relation source, const MaintainedTable *table, const char *schema, const char *name)
{
	TupleDesc	desc = RelationGetDescr(source);
	StringInfoData sql;
	const char *separator = "";

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", quote_qualified_identifier(schema, name));
	for (int i = 0; i < table->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, get_attnum(RelationGetRelid(source),
															   table->columns[i]) - 1);

		appendStringInfoString(&sql, separator);
		append_column(&sql, att, att->attnotnull);
		separator = ", ";
	}
	for (int i = 0; i < table->nkeys; i++)
		appendStringInfo(&sql, "%s%s", i == 0 ? ", PRIMARY KEY (" : ", ",
						 quote_identifier(table->key_columns[i]));
	/* room beside each row: changes of a row are HOT then */
	appendStringInfoString(&sql, table->nkeys > 0 ? ")) WITH (fillfactor = 60)" : ")");
	ddl_run("%s", sql.data);
	pfree(sql.data);
}

Datum
upsert_kafka_materialize(PG_FUNCTION_ARGS)
{
	Oid			source;
	char	   *schema;
	char	   *name;
	bool		history;
	ArrayType  *primary_key = PG_ARGISNULL(4) ? NULL : PG_GETARG_ARRAYTYPE_P(4);
	PartNames	names;
	Relation	rel;
	TopicTable *topic;
	MaintainedTable table = {0};
	int			guc_level;

	if (PG_ARGISNULL(0))
		missing_argument("source");
	if (PG_ARGISNULL(1))
		missing_argument("target");
	source = PG_GETARG_OID(0);

	check_source(source);
	parse_target(text_to_cstring(PG_GETARG_TEXT_PP(1)), source, &schema, &name);
	part_names(name, &names);

	rel = relation_open(source, AccessShareLock);
	topic = topic_table_get(rel);
	if (topic->changelog)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("foreign table \"%s\" shows a changelog, which cannot be materialized", topic->name),
				 errhint("Use a foreign table on the same topic without option changelog; the maintained table keeps every version.")));

	table.source = source;
	choose_columns(rel, topic, &table);
	choose_keys(rel, topic, primary_key, &table);
	history = PG_ARGISNULL(3) ? !table.append : PG_GETARG_BOOL(3);
	if (history && table.append)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a history needs a primary key"),
				 errhint("Name the columns that identify a row in argument primary_key.")));

	if (!PG_ARGISNULL(2))
	{
		table.event_time = pstrdup(NameStr(*PG_GETARG_NAME(2)));
		check_event_time(rel, table.event_time);
		if (!history)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"event_time\" is for tables with a history")));
	}
	table.on_error = topic->on_error;
	if (!PG_ARGISNULL(5))
		table.on_error = parse_word("on_error", text_to_cstring(PG_GETARG_TEXT_PP(5)), "stop", "skip") ?
			ON_ERROR_SKIP : ON_ERROR_STOP;
	if (!PG_ARGISNULL(6))
		table.current_by_event_time =
			parse_word("current_by", text_to_cstring(PG_GETARG_TEXT_PP(6)), "offset", "event_time");
	if (table.current_by_event_time && !history)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a current table that follows event time needs a history")));

	check_name_is_free(schema, name);
	if (history)
	{
		check_name_is_free(schema, names.versions);
		check_name_is_free(schema, names.history);
	}
	else if (!table.append)
		check_name_is_free(schema, names.origins);

	guc_level = ddl_session_enter();
	create_target(rel, &table, schema, name);
	table.target = get_relname_relid(name, get_namespace_oid(schema, false));
	table.owner = GetUserId();
	ddl_run("COMMENT ON TABLE %s IS %s", relation_name(table.target),
			quote_literal_cstr(psprintf("topic \"%s\", kept up to date by upsert_kafka", topic->topic)));
	parts_create(&table, history);
	ddl_session_leave(guc_level);

	/* the source stays locked, and so as it was looked at, until the registration commits */
	relation_close(rel, NoLock);

	table.state = TABLE_BACKFILL;
	maintained_table_insert(&table);
	worker_wake_on_commit();

	PG_RETURN_OID(table.target);
}

/* --- drop and position --------------------------------------------------------------- */

/* The registration of a table, or ERROR 42704. */
static MaintainedTable *
registration_of(Oid target)
{
	MaintainedTable *table = maintained_table_read(target);

	if (table == NULL)
	{
		char	   *name = get_rel_name(target);

		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 name != NULL ? errmsg("\"%s\" is not a maintained table", name) :
				 errmsg("relation with OID %u is not a maintained table", target)));
	}
	return table;
}

/*
 * DROP TABLE does it all where event triggers run; what they may have missed (a
 * session with session_replication_role = replica, a restored dump) goes here.
 */
Datum
upsert_kafka_drop(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	MaintainedTable *table = registration_of(target);
	int			guc_level;

	if (!OidIsValid(table->owner) ? !superuser() : !relation_ownercheck_compat(target, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   OidIsValid(table->owner) ? get_rel_name(target) : psprintf("%u", target));

	/* a load may take long, and would only be thrown away */
	worker_end_backfill(target);

	if (OidIsValid(table->owner))
	{
		guc_level = ddl_session_enter();
		ddl_run("DROP TABLE %s", relation_name(target));
		ddl_session_leave(guc_level);
	}
	parts_drop(table, DROP_RESTRICT);
	maintained_table_delete(target);
	worker_wake_on_commit();
	PG_RETURN_VOID();
}

Datum
upsert_kafka_position(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	Positions  *positions;

	if (SRF_IS_FIRSTCALL())
	{
		Oid			target = PG_GETARG_OID(0);
		MemoryContext old;
		AclResult	acl;
		TupleDesc	desc;

		call = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(call->multi_call_memory_ctx);
		(void) registration_of(target);
		if (get_rel_name(target) != NULL)
		{
			acl = pg_class_aclcheck(target, GetUserId(), ACL_SELECT);
			if (acl != ACLCHECK_OK)
				aclcheck_error(acl, OBJECT_TABLE, get_rel_name(target));
		}
		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		call->tuple_desc = BlessTupleDesc(desc);
		call->user_fctx = positions = positions_get(target);
		call->max_calls = positions != NULL ? positions->n : 0;
		MemoryContextSwitchTo(old);
	}

	call = SRF_PERCALL_SETUP();
	positions = call->user_fctx;
	if (call->call_cntr < call->max_calls)
	{
		const Position *position = &positions->positions[call->call_cntr];
		const char *topic = position->topic ? position->topic : positions->topic;
		Datum		values[3];
		bool		nulls[3] = {false, false, false};

		values[0] = CStringGetTextDatum(topic);
		values[1] = Int32GetDatum(position->partition);
		values[2] = Int64GetDatum(position->next_offset);
		SRF_RETURN_NEXT(call, HeapTupleGetDatum(heap_form_tuple(call->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(call);
}

/* For the views: must this registration not act here (decision 16)? */
Datum
upsert_kafka_is_copy(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(registration_is_copy(PG_GETARG_OID(0), PG_GETARG_INT64(1), PG_GETARG_OID(2)));
}
