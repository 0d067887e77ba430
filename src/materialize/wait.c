/*
 * wait.c
 *	  wait_for(): until everything that was committed in the topic when it was called
 *	  has been applied.  The end is taken here, from Kafka; who applies is not
 *	  this file's business, only whether anybody does.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "fdw/options.h"
#include "fdw/topic_find.h"
#include "fdw/written.h"
#include "fmgr.h"
#include "kafka/kafka.h"
#include "materialize/catalog.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "outbox/outbox.h"
#include "storage/latch.h"
#include "upsert_kafka.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(upsert_kafka_wait_for);
PG_FUNCTION_INFO_V1(upsert_kafka_wait_for_bookmark);

#define WAIT_POLL_MS		200 /* between looks at locks and states; also on a standby */
#define MAX_BLOCKERS		64	/* sessions looked at for a cycle of waits */

/* Where one partition has to be read to. */
typedef struct WaitEnd
{
	const char *topic;
	int32		partition;
	int64		low;
	int64		end;
	int			source;			/* where the table's position was found last */
} WaitEnd;

/* The topics' partitions as they were at the call */
typedef struct WaitTarget
{
	Oid			target;
	int			n;
	WaitEnd    *ends;
} WaitTarget;

static int64
timeout_of(const Interval *interval)
{
	double		ms;

	if (interval == NULL)
		return uk_wait_timeout;
	ms = interval->time / 1000.0 + ((double) interval->day + interval->month * (double) DAYS_PER_MONTH) *
		(double) SECS_PER_DAY * 1000.0;
	if (ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative")));
	return ms > INT_MAX ? INT_MAX : (int64) ms;
}

/* Ask Kafka where the topics end, with the credentials of the table's owner. */
static WaitTarget *
ends_take(const MaintainedTable *table)
{
	WaitTarget *result = palloc0(sizeof(WaitTarget));
	Relation	rel = table_open(table->source, AccessShareLock);
	TopicTable *topic = topic_table_get(rel);
	KafkaConfig *config = kafka_config_get(topic->serverid, table->owner);
	KafkaConsumer *consumer = kafka_consumer_acquire(config, 0, CurrentMemoryContext);
	KafkaRange *ranges = topic_find_ranges(consumer, topic, &result->n);
	int64	   *low = palloc(sizeof(int64) * Max(result->n, 1));
	int64	   *end = palloc(sizeof(int64) * Max(result->n, 1));

	result->target = table->target;
	result->ends = palloc0(sizeof(WaitEnd) * Max(result->n, 1));
	kafka_query_offsets(consumer, result->n, ranges, low, end);
	for (int i = 0; i < result->n; i++)
	{
		result->ends[i].topic = ranges[i].topic;
		result->ends[i].partition = ranges[i].partition;
		result->ends[i].low = low[i];
		result->ends[i].end = end[i];
	}
	kafka_consumer_release(consumer);
	table_close(rel, NoLock);
	return result;
}

static const Position *
position_of(const Positions *positions, WaitEnd *end)
{
	for (int i = 0; positions != NULL && i < positions->n; i++)
	{
		int			at = (end->source + i) % positions->n;
		const Position *position = &positions->positions[at];

		if (position->partition == end->partition && !position->given_up && strcmp(position->topic, end->topic) == 0)
		{
			end->source = at;
			return position;
		}
	}
	return NULL;
}

/* A partition that nobody has read is reached only if it holds nothing. */
static bool
end_reached(WaitEnd *end, const Positions *positions)
{
	const Position *position = position_of(positions, end);

	if (position == NULL)
		return positions != NULL && end->end <= end->low;
	return position->next_offset >= end->end;
}

static bool
all_reached(const WaitTarget *wait, const Positions *positions)
{
	if (positions == NULL)
		return false;
	for (int i = 0; i < wait->n; i++)
		if (!end_reached(&wait->ends[i], positions))
			return false;
	return true;
}

/*
 * Does the worker wait, directly or through others, for this session?  Then both
 * would wait for ever.
 */
static bool
waits_for_us(int pid)
{
	int			seen[MAX_BLOCKERS];
	int			nseen = 0;

	seen[nseen++] = pid;
	for (int i = 0; i < nseen; i++)
	{
		ArrayType  *blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids,
																	  Int32GetDatum(seen[i])));
		int			n = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));
		int32	   *pids = (int32 *) ARR_DATA_PTR(blockers);

		for (int j = 0; j < n; j++)
		{
			bool		known = false;

			if (pids[j] == MyProcPid)
				return true;
			for (int k = 0; k < nseen; k++)
				known = known || seen[k] == pids[j];
			if (!known && nseen < MAX_BLOCKERS)
				seen[nseen++] = pids[j];
		}
	}
	return false;
}

static char *
missing_text(const WaitTarget *wait, const Positions *positions, const char *last_error)
{
	StringInfoData buf;
	int			n = 0;

	initStringInfo(&buf);
	for (int i = 0; i < wait->n; i++)
	{
		WaitEnd    *end = &wait->ends[i];
		const Position *position = position_of(positions, end);
		int64		next = position != NULL ? position->next_offset : end->low;

		if (end_reached(end, positions))
			continue;
		if (++n > 10)
		{
			appendStringInfoString(&buf, " ..");
			break;
		}
		appendStringInfo(&buf, "%sPartition %d of topic \"%s\": position %lld, end %lld, %lld to go.",
						 n > 1 ? " " : "", end->partition, end->topic, (long long) next, (long long) end->end,
						 (long long) Max(end->end - next, 0));
	}
	if (n == 0)
		appendStringInfoString(&buf, "The first load has not been committed.");
	if (last_error[0] != '\0')
		appendStringInfo(&buf, " Last error: %s", last_error);
	return buf.data;
}

/* Raises when it is certain that nobody moves the table forward. */
static void
check_progress_possible(const MaintainedTable *table)
{
	if (RecoveryInProgress())
		return;					/* replay does */

	if (table->foreign_copy || (table->state != TABLE_LIVE && table->state != TABLE_BACKFILL))
		table_state_error(table);
	if (worker_shared == NULL || !uk_workers)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no worker keeps table \"%s\" up to date", get_rel_name(table->target)),
				 worker_shared == NULL ?
				 errdetail("Library \"upsert_kafka\" is not in shared_preload_libraries.") :
				 errdetail("Setting \"upsert_kafka.workers\" is off."),
				 errhint("The owner of the table can call upsert_kafka.refresh().")));
}

/* Sleep until a worker has committed something, at most 'ms'. */
static void
wait_for_commit(long ms)
{
	if (worker_shared != NULL && !RecoveryInProgress())
		(void) ConditionVariableTimedSleep(&worker_shared->applied, ms, PG_WAIT_EXTENSION);
	else
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	CHECK_FOR_INTERRUPTS();
}

static void
wait_until_reached(const WaitTarget *wait, int64 timeout_ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	TimestampTz look_at = 0;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "wait_for",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	if (worker_shared != NULL)
		ConditionVariablePrepareToSleep(&worker_shared->applied);
	for (;;)
	{
		MaintainedTable *table;
		Positions  *positions;
		TimestampTz now;
		char		last_error[PROGRESS_ERROR_LEN];
		int			pid;

		MemoryContextReset(context);

		/* the state first: a table that stops has committed its position before */
		PushActiveSnapshot(GetLatestSnapshot());
		table = maintained_table_require(wait->target);
		positions = positions_get(wait->target);
		PopActiveSnapshot();
		if (all_reached(wait, positions))
			break;

		check_progress_possible(table);
		now = GetCurrentTimestamp();
		pid = progress_server(wait->target, last_error, sizeof(last_error));
		if (check_enable_rls(wait->target, InvalidOid, true) == RLS_ENABLED)
			last_error[0] = '\0';	/* it may repeat values */
		if (now >= look_at)
		{
			if (pid != 0 && waits_for_us(pid))
				ereport(ERROR,
						(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
						 errmsg("worker of table \"%s\" waits for a lock of this transaction",
								get_rel_name(wait->target)),
						 errdetail("Process %d waits for process %d, which waits for it in wait_for.",
								   pid, MyProcPid),
						 errhint("Call wait_for before the table is locked.")));
			look_at = TimestampTzPlusMilliseconds(now, WAIT_POLL_MS / 2);
		}
		if (now >= until)
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("timed out waiting for table \"%s\"", get_rel_name(wait->target)),
					 errdetail("%s", missing_text(wait, positions, last_error)),
					 pid == 0 && !RecoveryInProgress() ?
					 errhint("No worker is serving the table at the moment; see the server log.") :
					 errhint("The view upsert_kafka.progress shows how fast it moves.")));

		wait_for_commit(Min(WAIT_POLL_MS, TimestampDifferenceMilliseconds(now, until) + 1));
	}
	ConditionVariableCancelSleep();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * The ends that a bookmark names in the table's topics; NULL: it is no bookmark.  For
 * what an outbox had to send they are the topics', once that has been sent.
 */
static WaitTarget *
ends_of_bookmark(const MaintainedTable *table, const char *bookmark, TimestampTz until)
{
	WaitTarget *result = palloc0(sizeof(WaitTarget));
	BookmarkEntry *entries;
	Relation	rel;
	TopicTable *topic;
	int			n;
	bool		numbers = true;
	bool		outbox = false;

	if (!bookmark_parse(bookmark, &n, &entries))
		return NULL;
	rel = table_open(table->source, AccessShareLock);
	topic = topic_table_get(rel);
	result->target = table->target;
	result->ends = palloc0(sizeof(WaitEnd) * Max(n, 1));
	table_close(rel, NoLock);
	for (int i = 0; i < n; i++)
	{
		if (strcmp(entries[i].topic, BOOKMARK_OUTBOX) != 0)
			continue;
		outbox = true;
		if (!outbox_wait_sent(entries[i].partition, entries[i].next_offset - 1, topic, until))
			return NULL;
	}
	if (outbox)
		return ends_take(table);
	for (int i = 0; i < n; i++)
	{
		numbers = numbers && strspn(entries[i].topic, "0123456789") == strlen(entries[i].topic);
		if (!topic_table_reads(topic, entries[i].topic))
			continue;
		result->ends[result->n].topic = entries[i].topic;
		result->ends[result->n].partition = entries[i].partition;
		result->ends[result->n++].end = entries[i].next_offset;
	}
	/* 00:00:05 has the form of a bookmark, too */
	if (result->n == 0 && numbers)
		return NULL;
	return result;
}

static MaintainedTable *
table_to_wait_for(Oid target)
{
	MaintainedTable *table;
	AclResult	acl;

	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("wait_for cannot run in a transaction with isolation level \"%s\"",
						XactIsoLevel == XACT_SERIALIZABLE ? "serializable" : "repeatable read"),
				 errdetail("The transaction would not see what it has waited for."),
				 errhint("Call it before the transaction, or use READ COMMITTED.")));

	table = maintained_table_require(target);
	acl = pg_class_aclcheck(target, GetUserId(), ACL_SELECT);
	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_TABLE, get_rel_name(target));

	/* a copy must not even ask Kafka */
	if (table->foreign_copy || table->state == TABLE_RESTORED)
		table_state_error(table);
	return table;
}

Datum
upsert_kafka_wait_for(PG_FUNCTION_ARGS)
{
	int64		timeout_ms;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	timeout_ms = timeout_of(PG_ARGISNULL(1) ? NULL : PG_GETARG_INTERVAL_P(1));
	wait_until_reached(ends_take(table_to_wait_for(PG_GETARG_OID(0))), timeout_ms);
	PG_RETURN_BOOL(true);
}

/*
 * wait_for(target, bookmark, timeout).  An untyped literal as second argument ends up
 * here: wait_for(t, '5 s') is the other function's.  Without a bookmark the whole
 * topic is waited for.
 */
Datum
upsert_kafka_wait_for_bookmark(PG_FUNCTION_ARGS)
{
	MaintainedTable *table;
	WaitTarget *wait;
	Interval   *timeout = PG_ARGISNULL(2) ? NULL : PG_GETARG_INTERVAL_P(2);
	char	   *bookmark;
	int64		timeout_ms;
	TimestampTz until;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	timeout_ms = timeout_of(timeout);
	until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	table = table_to_wait_for(PG_GETARG_OID(0));
	if (PG_ARGISNULL(1))
		wait = ends_take(table);
	else
	{
		bookmark = text_to_cstring(PG_GETARG_TEXT_PP(1));
		wait = ends_of_bookmark(table, bookmark, until);
		if (wait == NULL && (timeout != NULL || strchr("0123456789+-@P ", bookmark[0]) == NULL ||
							 bookmark[0] == '\0'))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid bookmark: \"%s\"", bookmark),
					 errhint("It is what upsert_kafka.last_written() has returned: topic:partition:next_offset,..")));
		if (wait == NULL)
		{
			timeout_ms = timeout_of(DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(bookmark),
																		  ObjectIdGetDatum(InvalidOid),
																		  Int32GetDatum(-1))));
			wait = ends_take(table);
			until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
		}
	}
	wait_until_reached(wait, Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until), 0));
	PG_RETURN_BOOL(true);
}
