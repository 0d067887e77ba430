/*
 * control.c
 *	  SQL functions with which an owner steers a maintained table: pause, resume,
 *	  refresh, skip, retry_errors, rebuild.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "fdw/options.h"
#include "fmgr.h"
#include "kafka/kafka.h"
#include "materialize/sources.h"
#include "materialize/catalog.h"
#include "materialize/control.h"
#include "materialize/feed.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(upsert_kafka_pause);
PG_FUNCTION_INFO_V1(upsert_kafka_resume);
PG_FUNCTION_INFO_V1(upsert_kafka_refresh);
PG_FUNCTION_INFO_V1(upsert_kafka_skip);
PG_FUNCTION_INFO_V1(upsert_kafka_retry_errors);
PG_FUNCTION_INFO_V1(upsert_kafka_rebuild);

#define TAKE_POLL_MS	20
#define TAKE_POLLS		50		/* then wait for whoever has the table */

MaintainedTable *
maintained_table_require(Oid target)
{
	MaintainedTable *table = maintained_table_get(target);

	if (table == NULL)
	{
		char	   *name = get_rel_name(target);

		if (name == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("relation with OID %u does not exist", target)));
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a maintained table", name),
				 errhint("The view upsert_kafka.tables lists the maintained tables.")));
	}
	return table;
}

/* Every function here writes, and is the owner's. */
static MaintainedTable *
require_owner(Oid target, const char *function)
{
	MaintainedTable *table;

	PreventCommandIfReadOnly(function);
	table = maintained_table_require(target);
	if (!relation_ownercheck_compat(target, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(target));
	return table;
}

void
maintained_table_take(Oid target)
{
	for (int i = 0; i < TAKE_POLLS; i++)
	{
		worker_end_backfill(target);
		if (maintained_table_lock(target, true))
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, TAKE_POLL_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	(void) maintained_table_lock(target, false);
}

/* Lock, then read anew what the lock protects. */
static MaintainedTable *
take_and_reread(Oid target)
{
	maintained_table_take(target);
	return maintained_table_require(target);
}

/* --- states ------------------------------------------------------------------------ */

/* Has the table read several topics, one of which may have left its list? */
static bool
reads_several(Oid target)
{
	Positions  *positions = positions_get(target);

	return positions != NULL && positions->several;
}

void
table_state_error(const MaintainedTable *table)
{
	char	   *name = get_rel_name(table->target);
	TableState	state = table->foreign_copy ? TABLE_RESTORED : table->state;
	RegistrationError error;
	bool		has_error = registration_error_get(table->target, &error) &&
		check_enable_rls(table->target, InvalidOid, true) != RLS_ENABLED;	/* it may repeat values */
	const char *hint = NULL;

	switch (state)
	{
		case TABLE_BACKFILL:
		case TABLE_LIVE:
			hint = "The owner of the table can call upsert_kafka.refresh().";
			break;
		case TABLE_PAUSED:
			hint = "The owner of the table can call upsert_kafka.resume().";
			break;
		case TABLE_STOPPED:
			hint = "Repair the cause and call upsert_kafka.resume(), or upsert_kafka.skip() to go on without this message.";
			break;
		case TABLE_TOPIC_CHANGED:
			hint = "Use upsert_kafka.resume(target, accept_data_loss => true) to keep the rows and go on with the topics as they are now, or upsert_kafka.rebuild(target, discard_history => true) to begin anew.";
			break;
		case TABLE_DATA_LOST:
			hint = "Use upsert_kafka.resume(target, accept_data_loss => true) to go on with what the topic still has.";
			break;
		case TABLE_RESTORED:
			/* resume() would not help where the guard trigger is missing */
			hint = maintained_table_is_guarded(table->target) ?
				"Use upsert_kafka.resume() if this copy is to follow the topic from now on." :
				"Its trigger \"" GUARD_TRIGGER "\" is missing or disabled, as in a restore that has not ended; create or enable it.";
			break;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("maintained table \"%s\" does not move forward: its state is \"%s\"",
					name, table_state_name(state)),
			 has_error ? errdetail("%s", error.message) : 0,
			 errhint("%s", hint)));
}

/* --- functions -------------------------------------------------------------------------- */

Datum
upsert_kafka_pause(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	MaintainedTable *table;

	(void) require_owner(target, "upsert_kafka.pause()");
	table = take_and_reread(target);
	if (table->foreign_copy || (table->state != TABLE_LIVE && table->state != TABLE_BACKFILL &&
								table->state != TABLE_PAUSED))
		table_state_error(table);
	table_state_set(target, TABLE_PAUSED, 0, NULL, -1, -1);
	worker_wake_on_commit();
	PG_RETURN_VOID();
}

/* Where a table goes on that has read something already, or nothing yet */
static TableState
state_to_go_on(Oid target)
{
	return positions_get(target) == NULL ? TABLE_BACKFILL : TABLE_LIVE;
}

/* The source's options, and its configuration as the owner of the target has it. */
static TopicTable *
source_topic(const MaintainedTable *table, KafkaConfig **config)
{
	Relation	rel = table_open(table->source, AccessShareLock);
	TopicTable *topic = topic_table_get(rel);

	*config = kafka_config_get(topic->serverid, table->owner);
	table_close(rel, NoLock);
	return topic;
}

/* Low watermarks and ends of the sources that are read, by source. */
static void
query_sources(KafkaConsumer *consumer, const Positions *positions, const SourceState *states, int64 *low, int64 *end)
{
	int			n;
	KafkaRange *ranges = sources_ranges(positions, states, &n);
	int64	   *range_low = palloc(sizeof(int64) * Max(n, 1));
	int64	   *range_end = palloc(sizeof(int64) * Max(n, 1));

	kafka_query_offsets(consumer, n, ranges, range_low, range_end);
	for (int i = 0; i < n; i++)
	{
		low[ranges[i].source] = range_low[i];
		end[ranges[i].source] = range_end[i];
	}
}

/*
 * Go on with what there is: positions that a topic no longer has move up to its low
 * watermarks.  Topics that were deleted, or made anew, are given up; one that is there is
 * new then, with sources of its own, and read from its start.
 */
static void
accept_loss(const MaintainedTable *table)
{
	KafkaConfig *config;
	TopicTable *topic = source_topic(table, &config);
	Positions  *positions = positions_get(table->target);
	KafkaConsumer *consumer;
	SourceState *states;
	SourceProblem problem;
	int			nknown;
	int64	   *low;
	int64	   *end;

	if (positions == NULL)
		return;
	consumer = kafka_consumer_acquire(config, 0, CurrentMemoryContext);
	nknown = positions->n;
	states = sources_find(consumer, topic, positions);
	low = palloc0(sizeof(int64) * Max(positions->n, 1));
	end = palloc0(sizeof(int64) * Max(positions->n, 1));
	query_sources(consumer, positions, states, low, end);

	/* those that are new are the feed's to find */
	positions->n = nknown;
	while (!sources_check(consumer, topic, positions, nknown, states, low, end, &problem))
	{
		Position   *position;

		CHECK_FOR_INTERRUPTS();
		if (problem.state == TABLE_TOPIC_CHANGED && !positions->several)
		{
			/* the one topic and the one that has taken its place are two: look again */
			positions->several = true;
			continue;
		}
		if (problem.source < 0 || positions->positions[problem.source].given_up)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("maintained table \"%s\" cannot go on from its positions", get_rel_name(table->target)),
					 errdetail_internal("%s", problem.detail),
					 errhint("Use upsert_kafka.rebuild() to read the topic as it is now.")));
		position = &positions->positions[problem.source];
		if (problem.state == TABLE_TOPIC_CHANGED)
		{
			ereport(NOTICE,
					(errmsg("topic \"%s\" is given up as it was", position->topic),
					 errdetail_internal("%s", problem.detail)));
			sources_give_up(table->target, positions, problem.source);
			for (int i = 0; i < nknown; i++)
				if (positions->positions[i].given_up)
					states[i] = SOURCE_GIVEN_UP;
			continue;
		}
		if (positions->several)
			ereport(NOTICE,
					(errmsg("topic \"%s\", partition %d goes on at offset %lld instead of %lld", position->topic,
							position->partition, (long long) low[problem.source], (long long) position->next_offset)));
		else
			ereport(NOTICE,
					(errmsg("partition %d goes on at offset %lld instead of %lld", position->partition,
							(long long) low[problem.source], (long long) position->next_offset)));
		position->next_offset = low[problem.source];

		/* the record whose hash we have is gone, and proves nothing any more */
		position->last_offset = -1;
	}
	kafka_consumer_release(consumer);
	positions_set(table->target, positions);
}

Datum
upsert_kafka_resume(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	bool		accept_data_loss = PG_GETARG_BOOL(1);
	MaintainedTable *table;

	(void) require_owner(target, "upsert_kafka.resume()");
	table = maintained_table_require(target);
	if (!table->foreign_copy && (table->state == TABLE_LIVE || table->state == TABLE_BACKFILL))
		PG_RETURN_VOID();		/* it runs: nothing to wait for */
	table = take_and_reread(target);

	if (!maintained_table_is_guarded(target))
		table_state_error(table);
	if (table->foreign_copy)
		maintained_table_adopt(target);
	switch (table->state)
	{
		case TABLE_TOPIC_CHANGED:
			table->foreign_copy = false;
			/* of a list, the feed looks whether it still is so: a topic may have left it */
			if (!accept_data_loss && !reads_several(target))
				table_state_error(table);
			if (accept_data_loss)
				accept_loss(table);
			break;
		case TABLE_DATA_LOST:
			table->foreign_copy = false;
			if (!accept_data_loss)
				table_state_error(table);
			accept_loss(table);
			break;
		default:
			break;
	}
	table_state_set(target, state_to_go_on(target), 0, NULL, -1, -1);
	worker_wake_on_commit();
	PG_RETURN_VOID();
}

/* Work done in the caller's session needs a fresh snapshot for each step. */
static void
require_read_committed(const char *function)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot run in a transaction with isolation level \"%s\"", function,
						XactIsoLevel == XACT_SERIALIZABLE ? "serializable" : "repeatable read"),
				 errhint("Call it in a transaction of its own.")));
}

Datum
upsert_kafka_refresh(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	MaintainedTable *table = require_owner(target, "upsert_kafka.refresh()");
	int64		messages;

	require_read_committed("upsert_kafka.refresh()");
	if (table->foreign_copy || (table->state != TABLE_LIVE && table->state != TABLE_BACKFILL))
		table_state_error(table);
	messages = refresh_run(target);

	/* it may have ended in another state, or made work that a worker goes on with */
	worker_wake_on_commit();
	PG_RETURN_INT64(messages);
}

Datum
upsert_kafka_retry_errors(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	MaintainedTable *table = require_owner(target, "upsert_kafka.retry_errors()");

	require_read_committed("upsert_kafka.retry_errors()");
	if (table->foreign_copy)
		table_state_error(table);
	PG_RETURN_INT64(retry_errors_run(target));
}

/* --- skip ----------------------------------------------------------------------------------- */

/*
 * The message itself was recorded, with its bytes, when the table stopped at it: all
 * that is left to do is to read on after it.
 */
Datum
upsert_kafka_skip(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	int32		partition = PG_GETARG_INT32(1);
	int64		offset = PG_GETARG_INT64(2);
	MaintainedTable *table;
	Positions  *positions;
	Position   *position = NULL;
	RegistrationError error;

	(void) require_owner(target, "upsert_kafka.skip()");
	table = take_and_reread(target);
	if (table->foreign_copy)
		table_state_error(table);

	(void) registration_error_get(target, &error);
	positions = positions_get(target);
	if (positions != NULL && error.source >= 0 && error.source < positions->n)
		position = &positions->positions[error.source];
	if (table->state != TABLE_STOPPED || position == NULL || position->partition != partition ||
		error.offset != offset || position->next_offset > offset)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("maintained table \"%s\" has not stopped at partition %d, offset %lld",
						get_rel_name(target), partition, (long long) offset),
				 table->state == TABLE_STOPPED && position != NULL ?
				 errdetail("It has stopped at partition %d, offset %lld.", position->partition,
						   (long long) error.offset) :
				 errdetail("Its state is \"%s\".", table_state_name(table->state)),
				 errhint("The view upsert_kafka.tables shows where a table has stopped.")));

	position->next_offset = offset + 1;
	positions_set(target, positions);
	table_state_set(target, TABLE_LIVE, 0, NULL, -1, -1);
	worker_wake_on_commit();
	PG_RETURN_VOID();
}

/* --- rebuild ------------------------------------------------------------------------------------ */

Datum
upsert_kafka_rebuild(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	bool		discard_history = PG_GETARG_BOOL(1);
	MaintainedTable *table;

	(void) require_owner(target, "upsert_kafka.rebuild()");
	require_read_committed("upsert_kafka.rebuild()");
	table = take_and_reread(target);
	if (table->foreign_copy)
		table_state_error(table);
	rebuild_run(table, discard_history);
	worker_wake_on_commit();
	PG_RETURN_VOID();
}
