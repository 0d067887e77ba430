/*
 * validator.c
 *	  SQL entry points of the option checks: the validator, and the event trigger
 *	  that warns of what spans several lists.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "changelog/change.h"
#include "changelog/keys.h"
#include "commands/event_trigger.h"
#include "executor/spi.h"
#include "fdw/option_list.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

PG_FUNCTION_INFO_V1(upsert_kafka_topic_validator);
PG_FUNCTION_INFO_V1(upsert_kafka_topic_ddl_check);

/* Checks one option list, called by CREATE and ALTER with the whole new list. */
Datum
upsert_kafka_topic_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);

	if (catalog == ForeignTableRelationId)
	{
		TopicTable	table = {0};

		table_options_parse(options, &table);
	}
	else if (catalog == AttributeRelationId)
	{
		ColumnOptions column;

		column_options_parse(options, &column);
	}
	else if (catalog == ForeignServerRelationId || catalog == UserMappingRelationId)
	{
		KafkaConfig config = {0};

		client_options_parse(options, catalog == UserMappingRelationId, true, &config);
	}
	else if (options != NIL)
		option_unknown(linitial_node(DefElem, options)->defname, NULL);

	PG_RETURN_VOID();
}

/* What a first use would raise. */
static void
check_table(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	TopicTable *table = topic_table_get(rel);

	if (table->upsert)
		(void) key_desc_create(RelationGetDescr(rel), table->nkeys, table->keys);
	(void) change_decoder_create(table, NULL);
	table_close(rel, AccessShareLock);
}

/*
 * Warn of what makes a foreign table unusable as it stands.  An error here would
 * stop a dump from being restored, and other people's DDL.
 */
static void
warn_about_table(Oid relid, MemoryContext context)
{
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		check_table(relid);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_END_TRY();

	if (error == NULL)
		return;
	/* the statement's own end is not ours to swallow: cancel, shutdown, memory */
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION ||
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES)
		ReThrowError(error);
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg_internal("%s", error->message),
			 error->detail ? errdetail_internal("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0));
}

/*
 * ddl_command_end of CREATE and ALTER FOREIGN TABLE.  Tables of other wrappers
 * cost a few cache lookups.
 */
Datum
upsert_kafka_topic_ddl_check(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext context;
	List	   *relids = NIL;
	ListCell   *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by an event trigger", "topic_ddl_check")));

	/*
	 * A restore creates the table first and its columns' options later, and
	 * would warn of every table in between.  It tells itself by this setting.
	 */
	if (!check_function_bodies)
		PG_RETURN_NULL();

	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka DDL check", ALLOCSET_DEFAULT_SIZES);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute("SELECT DISTINCT objid FROM pg_catalog.pg_event_trigger_ddl_commands()"
					" WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass",
					true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the commands of an event trigger");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		datum = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext old = MemoryContextSwitchTo(context);

		if (!isnull)
			relids = lappend_oid(relids, DatumGetObjectId(datum));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();

	foreach(lc, relids)
	{
		if (topic_table_is_ours(lfirst_oid(lc)))
			warn_about_table(lfirst_oid(lc), context);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
	PG_RETURN_NULL();
}
