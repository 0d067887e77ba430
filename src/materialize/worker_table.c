/*
 * worker_table.c
 *	  Brings one table forward for a worker and decides what a failure means: try
 *	  again later, find the one message that the database refuses, or stop
 *	  the table.  A failure of one table never reaches the others.
 */
#include "postgres.h"

#include "access/xact.h"
#include "materialize/worker.h"
#include "materialize/worker_table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "upsert_kafka.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CHECK_TOPIC_MS		5000	/* between looks at partitions and watermarks */
#define RETRY_FIRST_MS		1000	/* doubled with each failure .. */
#define RETRY_MAX_MS		60000	/* .. up to this */
#define RETRY_LOCK_MS		200 /* after a lock that somebody held for too long */
#define PATIENCE_FIRST_MS	2000	/* with a broker that has just answered; doubled with each failure */
#define ANSWER_POLL_MS		100 /* between looks for a broker's answer, where nothing else wakes us */
#define TABLE_ATTEMPTS		3	/* of a table that cannot be opened, until it is stopped */
#define REOPEN_AFTER		3	/* failures in a row that a feed survives */

typedef enum FailureKind
{
	FAILURE_LOCK,				/* somebody holds a lock; soon again */
	FAILURE_RETRY,				/* may pass by itself */
	FAILURE_REFUSED				/* will not: the data or the table is at fault */
} FailureKind;

char *
relation_display_name(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema;

	if (name == NULL)
		return psprintf("%u", relid);
	schema = get_namespace_name(get_rel_namespace(relid));
	return quote_qualified_identifier(schema, name);
}

ServedTable *
served_table_create(Oid target, const char *name, MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "upsert_kafka served table",
												  ALLOCSET_SMALL_SIZES);
	ServedTable *table = MemoryContextAllocZero(context, sizeof(ServedTable));

	table->target = target;
	table->context = context;
	table->name = MemoryContextStrdup(context, name);
	table->entry = progress_entry(target);
	return table;
}

/* Deleting the context also gives the consumer back, and cannot fail. */
static void
close_feed(ServedTable *table)
{
	if (table->feed_context != NULL)
		MemoryContextDelete(table->feed_context);
	table->feed_context = NULL;
	table->feed = NULL;
	table->opening = table->asked = false;
	table->suspects = 0;
	table->fetch_at = 0;
}

void
served_table_free(ServedTable *table)
{
	feed_forget_look(table->target);
	close_feed(table);
	MemoryContextDelete(table->context);
}

/* Its state says that it is not to be followed. */
static void
leave(ServedTable *table)
{
	table->gone = true;
	feed_forget_look(table->target);
}

bool
served_table_listens(const ServedTable *table)
{
	return table->feed != NULL && !table->gone && table->retry_at == 0 && table->fetch_at == 0;
}

static void
wake_at_most(TimestampTz *wake_at, TimestampTz when)
{
	if (when < *wake_at)
		*wake_at = when;
}

/* --- failures ---------------------------------------------------------------------- */

/*
 * DESIGN.md, decision 7.  HV (our own errors about Kafka) and 28 (it refuses our
 * credentials) only come from opening and fetching; they pass when somebody repairs
 * the broker or the mapping.
 */
static FailureKind
classify(int sqlerrcode, TableStage stage)
{
	if (sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE || sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
		return FAILURE_LOCK;

	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case MAKE_SQLSTATE('0', '8', '0', '0', '0'):
		case MAKE_SQLSTATE('2', '5', '0', '0', '0'):	/* a server that became read-only */
		case MAKE_SQLSTATE('4', '0', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '3', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '5', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '7', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '8', '0', '0', '0'):
			return FAILURE_RETRY;
		case MAKE_SQLSTATE('H', 'V', '0', '0', '0'):
		case MAKE_SQLSTATE('2', '8', '0', '0', '0'):
		case MAKE_SQLSTATE('X', 'X', '0', '0', '0'):
			return stage == STAGE_APPLY ? FAILURE_REFUSED : FAILURE_RETRY;
		default:
			return FAILURE_REFUSED;
	}
}

/* 'ms', doubled with each failure up to RETRY_MAX_MS */
static int64
doubled(int64 ms, int failures)
{
	for (int i = 0; i < failures && ms < RETRY_MAX_MS; i++)
		ms *= 2;
	return Min(ms, RETRY_MAX_MS);
}

static int64
retry_pause(int failures)
{
	return doubled(RETRY_FIRST_MS, failures);
}

static void
stop_later(ServedTable *table, const ErrorData *error, bool at_first)
{
	table->stopping = true;
	table->stop_at_first = at_first;
	table->stop_code = error->sqlerrcode;
	if (table->stop_message != NULL)
		pfree(table->stop_message);
	table->stop_message = MemoryContextStrdup(table->context, error->message ? error->message : "");
}

/*
 * After an error, with the transaction gone.  A batch that the database refuses
 * is halved until a single record is left: what comes before it is committed,
 * and the table stops there.
 */
static void
note_failure(ServedTable *table, const ErrorData *error, FailureKind kind)
{
	TimestampTz now = GetCurrentTimestamp();

	switch (kind)
	{
		case FAILURE_LOCK:
			table->retry_at = TimestampTzPlusMilliseconds(now, RETRY_LOCK_MS);
			break;

		case FAILURE_REFUSED:
			if (table->stage == STAGE_APPLY && table->tried > 1)
			{
				table->suspects = table->tried;
				return;
			}
			if (table->stage == STAGE_APPLY)
			{
				stop_later(table, error, true);
				return;
			}
			if (table->stage != STAGE_STOP && table->failures + 1 >= TABLE_ATTEMPTS)
			{
				stop_later(table, error, false);
				table->retry_at = 0;
				return;
			}
			/* a DDL command may be half way through: look again */
			/* FALLTHROUGH */

		case FAILURE_RETRY:
			table->retry_at = TimestampTzPlusMilliseconds(now, retry_pause(table->failures));
			table->failures++;
			break;
	}
	progress_error(table->entry, error->sqlerrcode, error->message);

	if (table->stage == STAGE_OPEN || table->stage == STAGE_FETCH || table->stage == STAGE_CHECK ||
		table->failures >= REOPEN_AFTER)
		close_feed(table);
}

/* One line per attempt; not for locks, nor for each half of a refused batch. */
static bool
worth_logging(const ServedTable *table, FailureKind kind)
{
	if (kind == FAILURE_LOCK)
		return false;
	if (kind == FAILURE_REFUSED && table->stage == STAGE_APPLY)
		return table->tried == 1;
	return true;
}

static void
apply_error_context(void *arg)
{
	static const char *const stages[] = {
		[STAGE_OPEN] = "opening the feed",
		[STAGE_CHECK] = "looking at the topic",
		[STAGE_FETCH] = "fetching messages",
		[STAGE_APPLY] = "applying messages",
		[STAGE_STOP] = "stopping at a message",
	};
	ServedTable *table = arg;

	errcontext("%s of maintained table %s", stages[table->stage], table->name);
}

/* --- one slice ------------------------------------------------------------------------ */

static MemoryContext outer_context; /* of the code around a transaction */

static void
begin_transaction(void)
{
	outer_context = CurrentMemoryContext;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
}

/* Before 17 a commit leaves the caller in TopMemoryContext. */
static void
commit_transaction(void)
{
	CommitTransactionCommand();
	MemoryContextSwitchTo(outer_context);
}

static void
open_feed(ServedTable *table)
{
	table->stage = STAGE_OPEN;
	pgstat_report_activity(STATE_RUNNING, psprintf("opening the feed of %s", table->name));
	table->feed_context = AllocSetContextCreate(TopMemoryContext, "upsert_kafka feed",
												ALLOCSET_DEFAULT_SIZES);
	memset(&table->reported, 0, sizeof(table->reported));

	begin_transaction();
	table->feed = feed_open(table->target, table->feed_context);
	commit_transaction();

	table->opening = table->feed != NULL;
	if (table->feed == NULL)
	{
		/* its state tells why; whoever waits for the table wants to know */
		leave(table);
		worker_notify_applied();
	}
}

/* The broker has answered: compare with the topic, and read. */
static void
begin_reading(ServedTable *table)
{
	bool		reading;

	begin_transaction();
	reading = feed_begin(table->feed, (int) doubled(PATIENCE_FIRST_MS, table->failures));
	commit_transaction();

	table->opening = false;
	table->check_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CHECK_TOPIC_MS);
	if (!reading)
	{
		leave(table);
		worker_notify_applied();
	}
	else
		progress_update(table->entry, feed_stats(table->feed), &table->reported);
}

static void
check_topic(ServedTable *table)
{
	FeedResult	result;

	table->stage = STAGE_CHECK;
	begin_transaction();
	result = feed_check_topic(table->feed);
	commit_transaction();

	table->check_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CHECK_TOPIC_MS);
	if (result == FEED_STOPPED)
	{
		leave(table);
		worker_notify_applied();
	}
	else
		progress_update(table->entry, feed_stats(table->feed), &table->reported);
}

/*
 * How long the next batch may collect: as long as this transaction has taken, so
 * that under a steady trickle at most half the time goes into small transactions,
 * and never longer than batch_time.  A message after a quiet time waits for nothing.
 */
static void
collect_next(ServedTable *table, int n, TimestampTz started)
{
	TimestampTz now = GetCurrentTimestamp();

	if (n < uk_batch_rows && table->suspects == 0)
		table->fetch_at = now + Min(now - started, (int64) uk_batch_time * 1000);
}

static void
apply_slice(ServedTable *table, int n)
{
	FeedResult	result;
	TimestampTz started = GetCurrentTimestamp();

	table->stage = STAGE_APPLY;
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("applying %d messages to %s", n, table->name));
	begin_transaction();
	result = feed_apply(table->feed, n);
	commit_transaction();

	table->failures = 0;
	switch (result)
	{
		case FEED_APPLIED:
			feed_applied(table->feed);
			table->suspects = Max(table->suspects - n, 0);
			progress_update(table->entry, feed_stats(table->feed), &table->reported);
			progress_error(table->entry, 0, NULL);
			break;
		case FEED_MOVED:
			table->suspects = 0;
			break;
		case FEED_STOPPED:		/* what came before has been applied */
			feed_applied(table->feed);
			progress_update(table->entry, feed_stats(table->feed), &table->reported);
			leave(table);
			break;
		case FEED_IDLE:
			break;
	}
	if (!table->gone && feed_pending(table->feed) == 0)
		collect_next(table, n, started);
	worker_notify_applied();
	pgstat_report_stat(false);
}

static void
stop_table(ServedTable *table)
{
	MaintainedTable *registered;

	table->stage = STAGE_STOP;
	begin_transaction();
	(void) maintained_table_lock(table->target, false);
	PushActiveSnapshot(GetTransactionSnapshot());
	registered = maintained_table_get(table->target);

	/* dropped, paused or stopped by somebody else in the meantime: all the better */
	if (registered != NULL && !registered->foreign_copy && registered->state == TABLE_LIVE)
	{
		if (table->stop_at_first && table->feed != NULL)
			feed_stop_at_first(table->feed, table->stop_code, table->stop_message);
		else
			table_state_set(table->target, TABLE_STOPPED, table->stop_code, table->stop_message, -1, -1);
	}
	PopActiveSnapshot();
	commit_transaction();

	if (!table->stop_at_first)
		ereport(LOG,
				(errcode(table->stop_code),
				 errmsg("maintained table %s has stopped", table->name),
				 errdetail_internal("%s", table->stop_message),
				 errhint("Mend the cause and call upsert_kafka.resume().")));
	table->stopping = false;
	leave(table);
	worker_notify_applied();
}

/* What one step does; raises. */
static bool
advance(ServedTable *table, TimestampTz *wake_at)
{
	int			n;

	if (table->stopping)
	{
		stop_table(table);
		return false;
	}
	if (table->feed == NULL)
	{
		open_feed(table);
		if (table->gone)
			return false;
	}
	if (table->opening)
	{
		if (!feed_answered(table->feed))
		{
			wake_at_most(wake_at, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_POLL_MS));
			return false;
		}
		begin_reading(table);
		if (table->gone)
			return false;
	}
	else if (GetCurrentTimestamp() >= table->check_at)
	{
		table->stage = STAGE_CHECK;
		if (!table->asked)
			feed_ask(table->feed);
		table->asked = !feed_answered(table->feed);
		if (!table->asked)
			check_topic(table);
		if (table->gone)
			return false;
	}
	wake_at_most(wake_at, table->asked ? TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_POLL_MS) : table->check_at);

	if (table->fetch_at > GetCurrentTimestamp())
	{
		wake_at_most(wake_at, table->fetch_at);
		return false;
	}
	table->fetch_at = 0;
	table->stage = STAGE_FETCH;
	if (!feed_fetch(table->feed, 0))
		return false;

	n = feed_pending(table->feed);
	if (table->suspects > 0)
		n = Min(n, Max(table->suspects / 2, 1));
	table->tried = n;
	apply_slice(table, n);
	return !table->gone;
}

bool
served_table_step(ServedTable *table, TimestampTz *wake_at)
{
	MemoryContext step_context = CurrentMemoryContext;
	ErrorContextCallback callback;
	volatile bool more = false;
	ErrorData  *volatile error = NULL;

	if (table->gone)
		return false;
	if (table->retry_at != 0)
	{
		if (GetCurrentTimestamp() < table->retry_at)
		{
			wake_at_most(wake_at, table->retry_at);
			return false;
		}
		table->retry_at = 0;
	}

	callback.callback = apply_error_context;
	callback.arg = table;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	PG_TRY();
	{
		more = advance(table, wake_at);
	}
	PG_CATCH();
	{
		FailureKind kind;

		MemoryContextSwitchTo(step_context);
		error = CopyErrorData();
		/* messages are not to blame for what was wrong before they were looked at */
		if (table->stage == STAGE_APPLY && !feed_is_whole(table->feed))
			table->stage = STAGE_OPEN;
		kind = classify(error->sqlerrcode, table->stage);
		if (worth_logging(table, kind))
			EmitErrorReport();
		FlushErrorState();
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(step_context);

	if (table->retry_at != 0)
		wake_at_most(wake_at, table->retry_at);
	if (error != NULL)
	{
		note_failure(table, error, classify(error->sqlerrcode, table->stage));
		if (table->retry_at != 0)
			wake_at_most(wake_at, table->retry_at);
		more = table->retry_at == 0;
	}
	if (table->gone)
		close_feed(table);
	return more;
}

/* --- the first load --------------------------------------------------------------------- */

/* Errors that one message's row may be the cause of: data, constraints, limits, triggers. */
static bool
may_be_one_message(int sqlerrcode)
{
	int			category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == MAKE_SQLSTATE('2', '2', '0', '0', '0') ||
		category == MAKE_SQLSTATE('2', '3', '0', '0', '0') ||
		category == MAKE_SQLSTATE('5', '4', '0', '0', '0') ||
		category == MAKE_SQLSTATE('P', '0', '0', '0', '0');
}

/* False if that failed in its turn. */
static bool
leave_to_feed(Oid target)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool left = false;

	PG_TRY();
	{
		begin_transaction();
		backfill_leave_to_feed(target);
		commit_transaction();
		left = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return left;
}

/* After a failed load: again later, find the message at fault, or stop the table. */
static void
backfill_failed(Oid target, int entry, const ErrorData *error)
{
	bool		again;

	progress_error(entry, error->sqlerrcode, error->message);
	if (classify(error->sqlerrcode, STAGE_OPEN) != FAILURE_REFUSED)
		again = true;
	else if (may_be_one_message(error->sqlerrcode))
		again = !leave_to_feed(target);
	else
	{
		MaintainedTable *table;

		again = false;
		begin_transaction();
		PushActiveSnapshot(GetTransactionSnapshot());
		table = maintained_table_get(target);
		if (table != NULL && !table->foreign_copy && table->state == TABLE_BACKFILL)
			table_state_set(target, TABLE_STOPPED, error->sqlerrcode, error->message, -1, -1);
		PopActiveSnapshot();
		commit_transaction();
	}
	if (entry < 0)
		return;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	{
		TableProgress *table = &worker_shared->tables[entry];

		table->loader = -1;
		table->backfill = again ? BACKFILL_WANTED : BACKFILL_NONE;
		table->backfill_after = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
															retry_pause(table->backfill_failures));
		table->backfill_failures++;
	}
	LWLockRelease(worker_shared->lock);
}

void
worker_backfill(Oid target, int entry)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		MaintainedTable *table;

		begin_transaction();
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("loading %s", relation_display_name(target)));
		PushActiveSnapshot(GetTransactionSnapshot());
		table = maintained_table_get(target);
		PopActiveSnapshot();
		if (table != NULL && !table->foreign_copy && table->state == TABLE_BACKFILL)
			(void) backfill_run(target);
		commit_transaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);

	if (error != NULL)
		backfill_failed(target, entry, error);
	else if (entry >= 0)
	{
		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		{
			TableProgress *table = &worker_shared->tables[entry];

			table->messages += table->load_done;
			table->load_done = table->load_total = 0;
			table->lag_messages = -1;
			table->loader = -1;
			table->backfill = BACKFILL_NONE;
			table->backfill_failures = 0;
			table->error_at = 0;
		}
		LWLockRelease(worker_shared->lock);
	}
	worker_notify_applied();
	pgstat_report_stat(true);
}
