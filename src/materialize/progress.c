/*
 * progress.c
 *	  Shared memory about the tables that workers serve, and the function under the
 *	  view upsert_kafka.progress.  Knows catalogs only as far as rights go.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "materialize/worker.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#define RATE_WINDOW_MS	1000	/* a rate is taken over at least this */
#define RATE_STALE_MS	10000	/* and is zero when nothing came for so long */

PG_FUNCTION_INFO_V1(upsert_kafka_worker_progress);

/* Under the lock.  Index of the entry, or -1 */
static int
entry_find(Oid target)
{
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		if (worker_shared->tables[i].database == MyDatabaseId &&
			worker_shared->tables[i].target == target)
			return i;
	}
	return -1;
}

static int
entry_make(Oid target)
{
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];

		if (OidIsValid(table->database))
			continue;
		memset(table, 0, sizeof(TableProgress));
		table->database = MyDatabaseId;
		table->target = target;
		table->worker = -1;
		table->loader = -1;
		table->lag_messages = -1;
		return i;
	}
	return -1;
}

int
progress_entry(Oid target)
{
	int			entry;

	if (worker_shared == NULL)
		return -1;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(target);
	if (entry < 0)
		entry = entry_make(target);
	LWLockRelease(worker_shared->lock);
	return entry;
}

void
progress_keep_only(List *targets)
{
	if (worker_shared == NULL)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];

		if (table->database == MyDatabaseId && table->worker < 0 && table->loader < 0 &&
			!list_member_oid(targets, table->target))
			table->database = InvalidOid;
	}
	LWLockRelease(worker_shared->lock);
}

/* Under the lock.  The window starts anew after a pause, which is no speed. */
static void
rate_update(TableProgress *table, int64 messages, TimestampTz now)
{
	long		elapsed = table->rate_at == 0 ? RATE_STALE_MS :
		TimestampDifferenceMilliseconds(table->rate_at, now);

	if (elapsed >= RATE_STALE_MS)
	{
		table->rate_at = now;
		table->rate_messages = messages;
		return;
	}
	if (elapsed >= RATE_WINDOW_MS)
	{
		double		rate = (messages - table->rate_messages) * 1000.0 / elapsed;

		table->rate = table->rate == 0 ? rate : 0.6 * table->rate + 0.4 * rate;
		table->rate_at = now;
		table->rate_messages = messages;
	}
}

void
progress_update(int entry, const FeedStats *now, FeedStats *last)
{
	TableProgress *table;
	TimestampTz when = GetCurrentTimestamp();

	if (worker_shared != NULL && entry >= 0)
	{
		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		table = &worker_shared->tables[entry];
		table->messages += now->messages - last->messages;
		table->bytes += now->bytes - last->bytes;
		table->lag_messages = now->lag_messages;
		table->memory = now->memory;
		if (now->ends != NULL)
		{
			table->nends = Min(now->nends, PROGRESS_PARTITIONS);
			memcpy(table->ends, now->ends, sizeof(int64) * table->nends);
		}
		if (now->messages > last->messages)
			rate_update(table, table->messages, when);
		table->updated_at = when;
		LWLockRelease(worker_shared->lock);
	}
	*last = *now;
}

void
progress_backfill(Oid target, int64 done, int64 total, Size memory)
{
	int			entry = progress_entry(target);
	TableProgress *table;

	if (entry < 0)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	table = &worker_shared->tables[entry];
	if (done < table->load_done)
		table->rate_at = 0;		/* a load that starts again */
	table->load_done = done;
	table->load_total = total;
	table->lag_messages = Max(total - done, 0);
	table->memory = memory;
	table->updated_at = GetCurrentTimestamp();
	rate_update(table, done, table->updated_at);
	LWLockRelease(worker_shared->lock);
}

void
progress_error(int entry, int sqlerrcode, const char *message)
{
	TableProgress *table;

	if (worker_shared == NULL || entry < 0)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	table = &worker_shared->tables[entry];
	if (message == NULL)
		table->error_at = 0;
	else
	{
		int			len = pg_mbcliplen(message, strlen(message), PROGRESS_ERROR_LEN - 1);

		memcpy(table->error, message, len);
		table->error[len] = '\0';
		table->error_code = sqlerrcode;
		table->error_at = GetCurrentTimestamp();
	}
	LWLockRelease(worker_shared->lock);
}

/* Under the lock. */
static int
pid_of_slot(int slot)
{
	return slot >= 0 && worker_shared->slots[slot].state == SLOT_RUNNING ?
		worker_shared->slots[slot].pid : 0;
}

int
progress_server(Oid target, char *error, Size error_len)
{
	int			entry;
	int			pid = 0;

	error[0] = '\0';
	if (worker_shared == NULL)
		return 0;
	LWLockAcquire(worker_shared->lock, LW_SHARED);
	entry = entry_find(target);
	if (entry >= 0)
	{
		TableProgress *table = &worker_shared->tables[entry];

		pid = pid_of_slot(table->loader >= 0 ? table->loader : table->worker);
		if (table->error_at != 0)
			strlcpy(error, table->error, error_len);
	}
	LWLockRelease(worker_shared->lock);
	return pid;
}

/* --- SQL --------------------------------------------------------------------------- */

static Datum
ends_to_array(const TableProgress *table)
{
	Datum		elems[PROGRESS_PARTITIONS];
	bool		nulls[PROGRESS_PARTITIONS];
	int			dims[1] = {table->nends};
	int			lbs[1] = {0};	/* subscript = source */

	for (int i = 0; i < table->nends; i++)
	{
		elems[i] = Int64GetDatum(table->ends[i]);
		nulls[i] = table->ends[i] < 0;
	}
	return PointerGetDatum(construct_md_array(elems, nulls, 1, dims, lbs, INT8OID, sizeof(int64),
											  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static Datum
seconds_to_interval(double seconds)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = (TimeOffset) (rint(seconds) * USECS_PER_SEC);
	return IntervalPGetDatum(interval);
}

/* An empty result for a set-returning function, kept until the query ends. */
static Tuplestorestate *
start_result(FunctionCallInfo fcinfo, TupleDesc *desc)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		(rsinfo->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));

	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setDesc = *desc;
	rsinfo->setResult = tuplestore_begin_heap(true, false, work_mem);
	MemoryContextSwitchTo(old);
	return rsinfo->setResult;
}

/*
 * worker_progress() returns (target, pid, lag_messages, end_offsets,
 * rows_per_second, eta, messages, bytes, memory, last_error, last_error_at):
 * the tables of this database that the caller may select from.
 */
Datum
upsert_kafka_worker_progress(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Tuplestorestate *result = start_result(fcinfo, &desc);
	TableProgress *tables;
	int		   *pids;
	int			n = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (worker_shared == NULL)
		return (Datum) 0;

	/* copy under the lock, form rows outside of it */
	tables = palloc(sizeof(TableProgress) * PROGRESS_TABLES);
	pids = palloc(sizeof(int) * PROGRESS_TABLES);
	LWLockAcquire(worker_shared->lock, LW_SHARED);
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];

		if (table->database != MyDatabaseId)
			continue;
		tables[n] = *table;
		pids[n++] = pid_of_slot(table->loader >= 0 ? table->loader : table->worker);
	}
	LWLockRelease(worker_shared->lock);

	for (int i = 0; i < n; i++)
	{
		TableProgress *table = &tables[i];
		Datum		values[11];
		bool		isnull[11] = {0};
		double		rate = table->rate;

		/* a table dropped a moment ago gives no rights, and no error */
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table->target)) ||
			pg_class_aclcheck(table->target, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
			continue;

		if (TimestampDifferenceExceeds(table->rate_at, now, RATE_STALE_MS))
			rate = 0;
		values[0] = ObjectIdGetDatum(table->target);
		values[1] = Int32GetDatum(pids[i]);
		isnull[1] = pids[i] == 0;
		values[2] = Int64GetDatum(table->lag_messages);
		isnull[2] = table->lag_messages < 0;
		isnull[3] = table->nends == 0;
		if (!isnull[3])
			values[3] = ends_to_array(table);
		values[4] = Float8GetDatum(rate);
		isnull[5] = rate < 0.001 || table->lag_messages < 0;
		if (!isnull[5])
			values[5] = seconds_to_interval(table->lag_messages / rate);
		values[6] = Int64GetDatum(table->messages);
		values[7] = Int64GetDatum(table->bytes);
		values[8] = Int64GetDatum((int64) table->memory);
		isnull[9] = isnull[10] = table->error_at == 0;
		if (!isnull[9])
			values[9] = CStringGetTextDatum(table->error);
		values[10] = TimestampTzGetDatum(table->error_at);
		tuplestore_putvalues(result, desc, values, isnull);
	}
	return (Datum) 0;
}
