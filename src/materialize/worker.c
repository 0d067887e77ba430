/*
 * worker.c
 *	  The process that serves maintained tables of one database, or loads one:
 *	  its life, which tables are its own, and waiting for all of them at once.
 *	  What is done with a table is in worker_table.c.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "materialize/launcher.h"
#include "materialize/worker.h"
#include "materialize/worker_table.h"
#include "miscadmin.h"
#include "outbox/outbox.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "upsert_kafka.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define REREAD_MS			5000	/* registrations are read at least so often */
#define READ_ATTEMPTS		10	/* failed reads in a row until the process ends */
#define READ_RETRY_MS		500
#define HELPER_PATIENCE_MS	10000	/* a helper that gets no table leaves */
#define RELOAD_AFTER_MS		5000	/* a load whose process was ended starts again */
#define RESEND_AFTER_MS		1000	/* a sender that died is started again */
#define MAX_EVENTS			16

static int	my_slot;
static uint32 my_generation;
static Oid	my_database;

static MemoryContext tables_context;
static List *served = NIL;		/* of ServedTable */
static bool nothing_registered; /* no table of this database needs this worker */
static TimestampTz idle_since;	/* helper: without a table since */

static WaitEventSet *wait_set = NULL;
static List *wait_fds = NIL;	/* what it waits for, to see when it is out of date */

/* --- the slot ------------------------------------------------------------------------ */

static WorkerSlot *
slot_mine(void)
{
	return &worker_shared->slots[my_slot];
}

/* Under the lock: let the other apply workers of this database look again. */
static void
wake_colleagues(void)
{
	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (i == my_slot || slot->state != SLOT_RUNNING || slot->database != my_database)
			continue;
		slot->reread = true;
		SetLatch(slot->latch);
	}
	if (worker_shared->launcher_latch != NULL)
		SetLatch(worker_shared->launcher_latch);
}

/* Whatever the reason, leave no claim behind. */
static void
worker_exit(int code, Datum arg)
{
	WorkerSlot *slot = slot_mine();

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	if (slot->generation == my_generation)
	{
		for (int i = 0; i < PROGRESS_TABLES; i++)
		{
			TableProgress *table = &worker_shared->tables[i];

			if (!OidIsValid(table->database))
				continue;
			if (table->worker == my_slot)
				table->worker = -1;
			if (table->loader == my_slot)
			{
				table->loader = -1;
				table->backfill = BACKFILL_WANTED;
				table->backfill_after =
					TimestampTzPlusMilliseconds(GetCurrentTimestamp(), slot->stop ? 0 : RELOAD_AFTER_MS);
			}
		}

		for (int i = 0; i < OUTBOX_ENTRIES; i++)
		{
			OutboxEntry *entry = &worker_shared->outbox[i];

			if (!OidIsValid(entry->database) || entry->slot != my_slot)
				continue;
			entry->slot = -1;
			/* it may have been in the middle of something */
			if (slot->outcome == OUTCOME_FAILED || slot->stop)
			{
				entry->waiting = true;
				entry->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
																slot->stop ? 0 : RESEND_AFTER_MS);
			}
		}

		/* something was registered after our last look */
		if (slot->outcome == OUTCOME_NOTHING && slot->reread)
			slot->outcome = OUTCOME_LEFT;
		if (slot->outcome == OUTCOME_FAILED && slot->stop)
			slot->outcome = OUTCOME_LEFT;
		slot->state = SLOT_ENDED;
		slot->pid = 0;
		slot->latch = NULL;
		wake_colleagues();
	}
	LWLockRelease(worker_shared->lock);
	ConditionVariableBroadcast(&worker_shared->applied);
}

/* False when the slot is no longer ours, or nobody may be in the database. */
static bool
worker_attach(void)
{
	WorkerSlot *slot = slot_mine();
	bool		welcome = false;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	if (slot->state == SLOT_STARTING && slot->generation == my_generation)
	{
		slot->state = SLOT_RUNNING;
		slot->pid = MyProcPid;
		slot->latch = MyLatch;
		if (worker_database_held(my_database))
			slot->stop = true;
		if (slot->kind == WORKER_HELPER)
			wake_colleagues();	/* shares get smaller */
		welcome = true;
	}
	LWLockRelease(worker_shared->lock);
	if (welcome)
		on_shmem_exit(worker_exit, (Datum) 0);
	return welcome;
}

/* The slot beyond max_workers: whoever has it finds out what there is, and leaves. */
static bool
slot_is_for_probes(void)
{
	return my_slot == worker_shared->napply - 1;
}

void
worker_leave(WorkerOutcome outcome)
{
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	slot_mine()->outcome = outcome;
	LWLockRelease(worker_shared->lock);
	proc_exit(0);
}

bool
worker_stop_requested(bool *reread)
{
	WorkerSlot *slot = slot_mine();
	bool		stop;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	stop = slot->stop;
	if (slot->reread)
		*reread = true;
	slot->reread = false;
	LWLockRelease(worker_shared->lock);
	return stop;
}

/* --- which tables ---------------------------------------------------------------------- */

static ServedTable *
served_find(Oid target)
{
	ListCell   *lc;

	foreach(lc, served)
	{
		ServedTable *table = lfirst(lc);

		if (table->target == target)
			return table;
	}
	return NULL;
}

/* Registrations of this database: those to be served and those to be loaded. */
static void
registrations_read(List **live, List **backfill, List **all)
{
	MemoryContext context = CurrentMemoryContext;
	ListCell   *lc;
	List	   *targets;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	targets = maintained_table_targets();
	foreach(lc, targets)
	{
		Oid			target = lfirst_oid(lc);
		MaintainedTable *table = maintained_table_get(target);
		MemoryContext old;

		CHECK_FOR_INTERRUPTS();
		if (table == NULL)
			continue;
		old = MemoryContextSwitchTo(context);
		*all = lappend_oid(*all, target);
		if (!table->foreign_copy && table->state == TABLE_LIVE)
			*live = lappend_oid(*live, target);
		else if (!table->foreign_copy && table->state == TABLE_BACKFILL)
			*backfill = lappend_oid(*backfill, target);
		MemoryContextSwitchTo(old);
	}

	outbox_look();

	/* names may have changed; new tables get theirs here, inside a transaction */
	foreach(lc, *live)
	{
		ServedTable *table = served_find(lfirst_oid(lc));

		if (table != NULL)
		{
			char	   *name = relation_display_name(table->target);

			if (strcmp(name, table->name) != 0)
			{
				pfree(table->name);
				table->name = MemoryContextStrdup(table->context, name);
			}
		}
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
}

/*
 * Take a fair share of the live tables.  Claims in shared memory only spread the
 * work: two workers with one table would be slow, not wrong.  Tables beyond the
 * number that shared memory holds are the leader's.
 */
static List *
tables_claim(List *live, bool leader)
{
	List	   *mine = NIL;
	int			nworkers = 0;
	int			share;
	bool		released = false;
	ListCell   *lc;

	foreach(lc, live)
		(void) progress_entry(lfirst_oid(lc));

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->state == SLOT_RUNNING && slot->database == my_database && !slot->stop &&
			(slot->kind == WORKER_LEADER || slot->kind == WORKER_HELPER))
			nworkers++;
	}
	share = (list_length(live) + nworkers - 1) / Max(nworkers, 1);

	/* first those that are ours already, so that tables stay where they are */
	for (int pass = 0; pass < 2; pass++)
	{
		foreach(lc, live)
		{
			Oid			target = lfirst_oid(lc);
			int			entry = -1;

			for (int i = 0; i < PROGRESS_TABLES && entry < 0; i++)
				if (worker_shared->tables[i].database == my_database &&
					worker_shared->tables[i].target == target)
					entry = i;
			if (entry < 0)
			{
				if (leader && pass == 0)
					mine = lappend_oid(mine, target);
				continue;
			}
			if (worker_shared->tables[entry].worker != (pass == 0 ? my_slot : -1))
				continue;
			if (list_length(mine) < share)
			{
				worker_shared->tables[entry].worker = my_slot;
				mine = lappend_oid(mine, target);
			}
			else if (pass == 0)
			{
				worker_shared->tables[entry].worker = -1;
				released = true;
			}
		}
	}

	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];

		if (table->database == my_database && table->worker == my_slot &&
			!list_member_oid(mine, table->target))
			table->worker = -1;
	}
	if (released || slot_mine()->ntables != list_length(live))
		wake_colleagues();
	slot_mine()->ntables = list_length(live);
	LWLockRelease(worker_shared->lock);
	return mine;
}

/* The leader asks for processes that load; does it itself when there is none. */
static void
backfills_order(List *backfill)
{
	ListCell   *lc;
	bool		wake = false;

	foreach(lc, backfill)
	{
		Oid			target = lfirst_oid(lc);
		int			entry = progress_entry(target);
		bool		myself = entry < 0;

		if (entry >= 0)
		{
			TableProgress *table;

			LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
			table = &worker_shared->tables[entry];
			if (table->backfill == BACKFILL_NONE)
			{
				table->backfill = BACKFILL_WANTED;
				wake = true;
			}
			else if (table->backfill == BACKFILL_REFUSED && table->loader < 0 &&
					 table->backfill_after <= GetCurrentTimestamp())
			{
				table->backfill = BACKFILL_RUNNING;
				table->loader = my_slot;
				myself = true;
			}
			LWLockRelease(worker_shared->lock);
		}
		if (myself)
		{
			worker_backfill(target, entry);
			slot_mine()->reread = true; /* it is live now, or stopped */
		}
	}

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];

		/* paused or dropped before its load began */
		if (table->database == my_database && table->backfill != BACKFILL_NONE &&
			table->loader < 0 && !list_member_oid(backfill, table->target))
			table->backfill = BACKFILL_NONE;
	}
	if (wake && worker_shared->launcher_latch != NULL)
		SetLatch(worker_shared->launcher_latch);
	LWLockRelease(worker_shared->lock);
}

/* Bring the list of served tables up to date. */
static void
tables_update(bool leader)
{
	List	   *live = NIL;
	List	   *backfill = NIL;
	List	   *all = NIL;
	List	   *mine;
	ListCell   *lc;

	registrations_read(&live, &backfill, &all);

	nothing_registered = live == NIL && (backfill == NIL || !leader);
	if (slot_is_for_probes())
		return;

	mine = tables_claim(live, leader);
	foreach(lc, served)
	{
		ServedTable *table = lfirst(lc);

		if (!list_member_oid(mine, table->target) || table->gone)
		{
			served = foreach_delete_current(served, lc);
			served_table_free(table);
		}
	}
	foreach(lc, mine)
	{
		Oid			target = lfirst_oid(lc);
		MemoryContext old;
		char	   *name;

		if (served_find(target) != NULL)
			continue;
		old = CurrentMemoryContext;
		StartTransactionCommand();
		name = relation_display_name(target);
		MemoryContextSwitchTo(tables_context);
		served = lappend(served, served_table_create(target, name, tables_context));
		CommitTransactionCommand();
		MemoryContextSwitchTo(old);
	}

	if (leader)
	{
		progress_keep_only(all);
		backfills_order(backfill);
	}
}

/*
 * Reading catalogs fails while somebody drops the extension, or holds a lock: look
 * again soon.  Returns false after an error.
 */
static bool
tables_update_safely(bool leader)
{
	static int	failures = 0;
	MemoryContext context = CurrentMemoryContext;
	volatile bool done = false;

	PG_TRY();
	{
		tables_update(leader);
		failures = 0;
		done = true;
	}
	PG_CATCH();
	{
		/* whoever drops the extension may take long to commit */
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE && ++failures >= READ_ATTEMPTS)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return done;
}

/* --- waiting ----------------------------------------------------------------------------- */

/* Wait for messages of any table, a signal, or the time. */
static void
wait_for_work(TimestampTz until)
{
	WaitEvent	events[MAX_EVENTS];
	List	   *fds = NIL;
	ListCell   *lc;
	long		timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until);

	foreach(lc, served)
	{
		ServedTable *table = lfirst(lc);

		if (served_table_listens(table))
			fds = lappend_int(fds, feed_wait_fd(table->feed));
	}

	if (wait_set == NULL || !equal(fds, wait_fds))
	{
		MemoryContext old;

		if (wait_set != NULL)
			FreeWaitEventSet(wait_set);
		wait_set = CreateWaitEventSet_compat(2 + list_length(fds));
		AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		foreach(lc, fds)
			AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, lfirst_int(lc), NULL, NULL);
		list_free(wait_fds);
		old = MemoryContextSwitchTo(TopMemoryContext);
		wait_fds = list_copy(fds);
		MemoryContextSwitchTo(old);
	}

	(void) WaitEventSetWait(wait_set, Max(timeout, 0), events, MAX_EVENTS, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/* --- the process --------------------------------------------------------------------------- */

static void
report_idle(void)
{
	pgstat_report_stat(true);
	if (list_length(served) == 1)
		pgstat_report_activity(STATE_IDLE,
							   psprintf("following %s", ((ServedTable *) linitial(served))->name));
	else if (served == NIL)
		pgstat_report_activity(STATE_IDLE, "waiting for tables to be loaded");
	else
		pgstat_report_activity(STATE_IDLE, psprintf("following %d tables", list_length(served)));
}

static void
apply_loop(bool leader)
{
	MemoryContext loop_context = AllocSetContextCreate(TopMemoryContext, "upsert_kafka worker loop",
													   ALLOCSET_DEFAULT_SIZES);
	TimestampTz read_at = 0;

	tables_context = AllocSetContextCreate(TopMemoryContext, "upsert_kafka served tables",
										   ALLOCSET_DEFAULT_SIZES);
	idle_since = GetCurrentTimestamp();

	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();
		TimestampTz wake_at;
		bool		reread = now >= read_at;
		bool		busy = false;
		ListCell   *lc;

		MemoryContextSwitchTo(loop_context);
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (worker_stop_requested(&reread) || !uk_workers)
			worker_leave(OUTCOME_LEFT);

		foreach(lc, served)
			reread = reread || ((ServedTable *) lfirst(lc))->gone;
		if (reread)
		{
			bool		done = tables_update_safely(leader);

			read_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  done ? REREAD_MS : READ_RETRY_MS);
			if (done && nothing_registered)
				worker_leave(leader ? OUTCOME_NOTHING : OUTCOME_LEFT);
			if (done && slot_is_for_probes())
				worker_leave(OUTCOME_WORK);
		}
		if (served != NIL)
			idle_since = 0;
		else if (idle_since == 0)
			idle_since = now;
		else if (!leader && TimestampDifferenceExceeds(idle_since, now, HELPER_PATIENCE_MS))
			worker_leave(OUTCOME_LEFT);

		wake_at = read_at;
		foreach(lc, served)
		{
			CHECK_FOR_INTERRUPTS();
			if (served_table_step(lfirst(lc), &wake_at))
				busy = true;
			if (((ServedTable *) lfirst(lc))->gone)
				busy = true;
		}

		if (!busy)
		{
			report_idle();
			wait_for_work(wake_at);
		}
	}
}

/*
 * Settings that must not come from ALTER DATABASE or the configuration.  A worker
 * serves many tables, so it never waits long for a lock on one of them; and it
 * is done waiting before deadlock detection could choose a user's session instead.
 */
static void
worker_settings(WorkerKind kind)
{
	SetConfigOption("default_transaction_read_only", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("statement_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("lock_timeout", kind == WORKER_BACKFILL ? "0" : "500ms", PGC_SUSET, PGC_S_OVERRIDE);
	if (kind != WORKER_BACKFILL)
		SetConfigOption("deadlock_timeout", "50ms", PGC_SUSET, PGC_S_OVERRIDE);
}

static void
backfill_main(Oid target)
{
	int			entry = -1;

	LWLockAcquire(worker_shared->lock, LW_SHARED);
	for (int i = 0; i < PROGRESS_TABLES; i++)
		if (worker_shared->tables[i].database == my_database && worker_shared->tables[i].loader == my_slot)
			entry = i;
	LWLockRelease(worker_shared->lock);

	if (entry >= 0)
	{
		bool		reread;

		if (!worker_stop_requested(&reread) && uk_workers)
			worker_backfill(target, entry);
		else
		{
			LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
			worker_shared->tables[entry].loader = -1;
			worker_shared->tables[entry].backfill = BACKFILL_WANTED;
			LWLockRelease(worker_shared->lock);
		}
	}
	worker_leave(OUTCOME_LEFT);
}

void
upsert_kafka_worker_main(Datum arg)
{
	WorkerStart start;
	WorkerKind	kind;
	Oid			target;
	bool		stop;
	bool		reread;

	memcpy(&start, MyBgworkerEntry->bgw_extra, sizeof(start));
	my_slot = DatumGetInt32(arg);
	my_generation = start.generation;
	my_database = start.database;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!worker_attach())
		proc_exit(0);
	stop = worker_stop_requested(&reread);
	if (stop)
		worker_leave(OUTCOME_LEFT);
	kind = slot_mine()->kind;
	target = slot_mine()->target;

	BackgroundWorkerInitializeConnectionByOid(my_database, InvalidOid, 0);
	worker_settings(kind);

	if (kind == WORKER_BACKFILL)
		backfill_main(target);
	if (kind == WORKER_SENDER)
		outbox_sender_main((int32) target);
	apply_loop(kind == WORKER_LEADER);
}
