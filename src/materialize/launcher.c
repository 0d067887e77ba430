/*
 * launcher.c
 *	  The launcher: one process per server that starts a worker in each database
 *	  which has maintained tables, further ones where there is work for them, and
 *	  all of them again after a failure.  Knows no table; sees shared catalogs only.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "materialize/launcher.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "upsert_kafka.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define LAUNCHER_NAP_MS		60000	/* with nothing to do */
#define START_TIMEOUT_MS	30000	/* a process of an earlier launcher that never came */
#define RETRY_MS			5000	/* after a failure; doubled up to .. */
#define RETRY_MAX_MS		60000
#define HEALTHY_MS			60000	/* a worker that ran for so long resets it */
#define HELPER_PAUSE_MS		1000	/* between starts of helpers in one database */
#define TURN_MS				10000	/* of a database, where there are more than slots */

/* What the launcher knows of a database; only in its own memory. */
typedef struct DatabaseEntry
{
	Oid			oid;			/* hash key */
	bool		exists;			/* seen in the last look at pg_database */
	bool		wanted;			/* may have tables to serve */
	bool		waiting;		/* has tables, and no slot */
	int			failures;
	TimestampTz not_before;
	TimestampTz helper_not_before;
	TimestampTz started_at;		/* of its last leader */
	uint32		round;			/* of start_leaders, to visit each once */
} DatabaseEntry;

static HTAB *databases;
static BackgroundWorkerHandle **handles;	/* by slot; NULL: not ours */
static bool warned_slots = false;
static bool warned_processes = false;

void
uk_worker_init(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;

	worker_shared_init();
	worker_dbhold_init();

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "upsert_kafka");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "upsert_kafka_launcher_main");
	snprintf(worker.bgw_name, BGW_MAXLEN, "upsert_kafka launcher");
	snprintf(worker.bgw_type, BGW_MAXLEN, "upsert_kafka launcher");
	RegisterBackgroundWorker(&worker);
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	worker_shared->launcher_latch = NULL;
	worker_shared->launcher_pid = 0;
	LWLockRelease(worker_shared->lock);
}

static DatabaseEntry *
database_entry(Oid oid, bool wanted)
{
	bool		found;
	DatabaseEntry *entry = hash_search(databases, &oid, HASH_ENTER, &found);

	if (!found)
	{
		memset(entry, 0, sizeof(DatabaseEntry));
		entry->oid = oid;
		entry->wanted = wanted;
	}
	return entry;
}

/*
 * Look at pg_database.  All databases are wanted when a launcher starts; one that
 * comes later is when something is registered in it, since a template's tables
 * are not its own.
 */
static void
databases_read(bool first)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	HASH_SEQ_STATUS status;
	DatabaseEntry *entry;

	hash_seq_init(&status, databases);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->exists = false;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		/* -2: left over from a DROP DATABASE that was interrupted */
		if (!form->datallowconn || form->datistemplate || form->datconnlimit == -2)
			continue;
		database_entry(form->oid, first)->exists = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	hash_seq_init(&status, databases);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		Oid			oid = entry->oid;

		if (entry->exists)
			continue;
		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		for (int i = 0; i < PROGRESS_TABLES; i++)
			if (worker_shared->tables[i].database == oid)
				worker_shared->tables[i].database = InvalidOid;
		for (int i = 0; i < OUTBOX_ENTRIES; i++)
			if (worker_shared->outbox[i].database == oid)
				worker_shared->outbox[i].database = InvalidOid;
		LWLockRelease(worker_shared->lock);
		(void) hash_search(databases, &oid, HASH_REMOVE, NULL);
	}
}

/* What sessions have asked for since the last look.  After slots_reap(). */
static void
wakes_take(void)
{
	Oid			wakes[WORKER_WAKES];
	int			nwakes;
	bool		all;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	nwakes = worker_shared->nwakes;
	memcpy(wakes, worker_shared->wakes, sizeof(Oid) * nwakes);
	all = worker_shared->wake_all;
	worker_shared->nwakes = 0;
	worker_shared->wake_all = false;
	LWLockRelease(worker_shared->lock);

	for (int i = 0; i < nwakes; i++)
		database_entry(wakes[i], true)->wanted = true;
	if (all)
	{
		HASH_SEQ_STATUS status;
		DatabaseEntry *entry;

		hash_seq_init(&status, databases);
		while ((entry = hash_seq_search(&status)) != NULL)
			entry->wanted = true;
	}
}

static void
database_failed(DatabaseEntry *entry, TimestampTz now)
{
	int64		pause = RETRY_MS;

	for (int i = 0; i < entry->failures && pause < RETRY_MAX_MS; i++)
		pause *= 2;
	entry->failures++;
	entry->not_before = TimestampTzPlusMilliseconds(now, Min(pause, RETRY_MAX_MS));
}

/* Take note of how workers ended, and free their slots. */
static void
slots_reap(void)
{
	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];
		WorkerSlot	ended;
		bool		free_it = false;
		pid_t		pid;
		TimestampTz now = GetCurrentTimestamp();

		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		ended = *slot;
		if (slot->state == SLOT_ENDED)
			free_it = true;
		else if (slot->state == SLOT_STARTING)
		{
			/* never came to life: fork failed, or the postmaster forgot it */
			if (handles[i] != NULL)
				free_it = GetBackgroundWorkerPid(handles[i], &pid) == BGWH_STOPPED;
			else
				free_it = TimestampDifferenceExceeds(slot->started_at, now, START_TIMEOUT_MS);
		}
		if (free_it)
		{
			slot->state = SLOT_FREE;
			slot->generation++;
			slot->database = InvalidOid;
			slot->pid = 0;
			for (int t = 0; t < PROGRESS_TABLES; t++)
			{
				TableProgress *table = &worker_shared->tables[t];

				if (!OidIsValid(table->database) || table->loader != i)
					continue;
				table->loader = -1;
				table->backfill = BACKFILL_WANTED;
			}
			/* of one that never came */
			for (int e = 0; e < OUTBOX_ENTRIES; e++)
			{
				OutboxEntry *entry = &worker_shared->outbox[e];

				if (OidIsValid(entry->database) && entry->slot == i)
				{
					entry->slot = -1;
					entry->waiting = true;
				}
			}
		}
		LWLockRelease(worker_shared->lock);
		if (!free_it)
			continue;

		if (handles[i] != NULL)
		{
			pfree(handles[i]);
			handles[i] = NULL;
		}
		if (ended.kind == WORKER_LEADER)
		{
			DatabaseEntry *entry = database_entry(ended.database, true);

			/* both had tables, so a slot for probes is no use to them */
			entry->waiting = ended.outcome == OUTCOME_WORK || ended.outcome == OUTCOME_LEFT;
			if (ended.outcome == OUTCOME_NOTHING)
				entry->wanted = false;
			if (ended.outcome != OUTCOME_FAILED ||
				TimestampDifferenceExceeds(ended.started_at, now, HEALTHY_MS))
				entry->failures = 0;
			if (ended.outcome == OUTCOME_FAILED)
				database_failed(entry, now);
		}
	}
}

/* Reserve a free slot of this kind's, up to 'last'; -1 if there is none.  Under the lock. */
static int
slot_reserve(int last, WorkerKind kind, Oid database, Oid target, TimestampTz now)
{
	for (int i = kind == WORKER_SENDER ? worker_shared->napply : 0; i <= last; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];
		uint32		generation = slot->generation + 1;

		if (slot->state != SLOT_FREE)
			continue;
		memset(slot, 0, sizeof(WorkerSlot));
		slot->state = SLOT_STARTING;
		slot->generation = generation;
		slot->kind = kind;
		slot->outcome = OUTCOME_FAILED;
		slot->database = database;
		slot->target = target;
		slot->started_at = now;
		return i;
	}
	return -1;
}

/* Start the process of a reserved slot; gives the slot back when there is none to be had. */
static bool
slot_start(int i)
{
	static const char *const types[] = {
		[WORKER_LEADER] = "upsert_kafka apply worker",
		[WORKER_HELPER] = "upsert_kafka apply worker",
		[WORKER_BACKFILL] = "upsert_kafka backfill worker",
		[WORKER_SENDER] = "upsert_kafka outbox sender",
	};
	WorkerSlot	slot = worker_shared->slots[i]; /* only we change a reserved one */
	BackgroundWorker worker;
	WorkerStart start;
	MemoryContext old;
	bool		started;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "upsert_kafka");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "upsert_kafka_worker_main");
	snprintf(worker.bgw_type, BGW_MAXLEN, "%s", types[slot.kind]);
	if (slot.kind == WORKER_SENDER)
		snprintf(worker.bgw_name, BGW_MAXLEN, "%s of stream %u in database %u", types[slot.kind],
				 slot.target, slot.database);
	else if (slot.kind == WORKER_BACKFILL)
		snprintf(worker.bgw_name, BGW_MAXLEN, "%s of table %u in database %u", types[slot.kind],
				 slot.target, slot.database);
	else
		snprintf(worker.bgw_name, BGW_MAXLEN, "%s in database %u", types[slot.kind], slot.database);
	worker.bgw_main_arg = Int32GetDatum(i);
	start.generation = slot.generation;
	start.database = slot.database;
	StaticAssertStmt(sizeof(start) <= BGW_EXTRALEN, "WorkerStart must fit into bgw_extra");
	memcpy(worker.bgw_extra, &start, sizeof(start));

	old = MemoryContextSwitchTo(TopMemoryContext);
	started = RegisterDynamicBackgroundWorker(&worker, &handles[i]);
	MemoryContextSwitchTo(old);
	if (started)
	{
		warned_processes = false;
		return true;
	}

	handles[i] = NULL;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	worker_shared->slots[i].state = SLOT_FREE;
	worker_shared->slots[i].database = InvalidOid;
	LWLockRelease(worker_shared->lock);
	if (!warned_processes)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots for upsert_kafka"),
				 errhint("You might need to increase max_worker_processes.")));
	warned_processes = true;
	return false;
}

/* Workers of this kind in a database (InvalidOid: in all), those that start included. */
static int
count_workers(WorkerKind kind, Oid database)
{
	int			n = 0;

	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if ((slot->state == SLOT_STARTING || slot->state == SLOT_RUNNING || slot->state == SLOT_ENDED) &&
			slot->kind == kind && (!OidIsValid(database) || slot->database == database))
			n++;
	}
	return n;
}

static int
count_free(void)
{
	int			n = 0;

	for (int i = 0; i < worker_shared->napply - 1; i++)
		n += worker_shared->slots[i].state == SLOT_FREE;
	return n;
}

/* Ask one helper to leave, so that somebody who needs a slot more gets it. */
static bool
helper_dismiss(void)
{
	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->kind != WORKER_HELPER || slot->state != SLOT_RUNNING)
			continue;
		slot->stop = true;
		SetLatch(slot->latch);
		return true;
	}
	return false;
}

/* Milliseconds until 'when' as a bound on *nap; true if it is not yet time. */
static bool
not_yet(TimestampTz when, TimestampTz now, long *nap)
{
	if (when <= now)
		return false;
	*nap = Min(*nap, TimestampDifferenceMilliseconds(now, when) + 1);
	return true;
}

/* The database to look at next in this round: the one whose turn was longest ago. */
static DatabaseEntry *
next_database(uint32 round)
{
	HASH_SEQ_STATUS status;
	DatabaseEntry *entry;
	DatabaseEntry *result = NULL;

	hash_seq_init(&status, databases);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->exists && entry->wanted && entry->round != round &&
			(result == NULL || entry->started_at < result->started_at))
			result = entry;
	}
	if (result != NULL)
		result->round = round;
	return result;
}

/* Where every slot is a leader's, databases take turns.  Under the lock. */
static void
leader_dismiss(TimestampTz now, long *nap)
{
	for (int i = 0; i < worker_shared->napply - 1; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->kind == WORKER_LEADER && slot->state == SLOT_RUNNING && slot->stop)
			return;				/* one is on its way out */
	}
	for (int i = 0; i < worker_shared->napply - 1; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->kind != WORKER_LEADER || slot->state != SLOT_RUNNING ||
			not_yet(TimestampTzPlusMilliseconds(slot->started_at, TURN_MS), now, nap))
			continue;
		slot->stop = true;
		SetLatch(slot->latch);
		return;
	}
}

/* First of all: one apply worker for each database that has tables. */
static void
start_leaders(long *nap)
{
	static uint32 round = 0;
	DatabaseEntry *entry;
	Oid			starved = InvalidOid;

	round++;
	while ((entry = next_database(round)) != NULL)
	{
		TimestampTz now = GetCurrentTimestamp();
		int			slot = -1;

		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		if (count_workers(WORKER_LEADER, entry->oid) == 0 && !worker_database_held(entry->oid) &&
			!not_yet(entry->not_before, now, nap))
		{
			/* the last slot is for finding out whether there are tables at all */
			slot = slot_reserve(worker_shared->napply - (entry->waiting ? 2 : 1),
								WORKER_LEADER, entry->oid, InvalidOid, now);
			if (slot < 0)
			{
				*nap = Min(*nap, RETRY_MS);
				if (entry->waiting && !helper_dismiss())
				{
					starved = entry->oid;
					leader_dismiss(now, nap);
				}
			}
			else
				entry->started_at = now;
		}
		LWLockRelease(worker_shared->lock);

		if (slot >= 0 && !slot_start(slot))
		{
			entry->not_before = TimestampTzPlusMilliseconds(now, RETRY_MS);
			*nap = Min(*nap, RETRY_MS);
		}
	}

	if (OidIsValid(starved) && !warned_slots)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("no upsert_kafka worker is left for database %u", starved),
				 errdetail("Databases with maintained tables take turns of %d seconds.", TURN_MS / 1000),
				 errhint("You might need to increase upsert_kafka.max_workers.")));
	if (OidIsValid(starved))
		warned_slots = true;
}

/* Then a process for each table that waits for its first load. */
static void
start_backfills(long *nap)
{
	for (int t = 0; t < PROGRESS_TABLES; t++)
	{
		TableProgress *table = &worker_shared->tables[t];
		TimestampTz now = GetCurrentTimestamp();
		int			slot = -1;
		Oid			database = InvalidOid;

		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		if (OidIsValid(table->database) && table->backfill == BACKFILL_WANTED &&
			table->loader < 0 && !worker_database_held(table->database) &&
			!not_yet(table->backfill_after, now, nap))
		{
			database = table->database;
			slot = slot_reserve(worker_shared->napply - 2, WORKER_BACKFILL, database, table->target, now);
			if (slot >= 0)
			{
				table->loader = slot;
				table->backfill = BACKFILL_RUNNING;
			}
			else if (!helper_dismiss() && count_workers(WORKER_BACKFILL, InvalidOid) == 0)
				table->backfill = BACKFILL_REFUSED;
		}
		LWLockRelease(worker_shared->lock);

		if (slot >= 0 && !slot_start(slot))
		{
			LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
			if (table->loader == slot)
			{
				table->loader = -1;
				table->backfill = BACKFILL_REFUSED;
			}
			LWLockRelease(worker_shared->lock);
			worker_wake_database(database);
		}
		else if (OidIsValid(database) && slot < 0)
			worker_wake_database(database);
	}
}

/*
 * Last, helpers for databases with several tables.  One slot stays free, so that
 * the next load or database need not wait for a helper to leave.
 */
static void
start_helpers(long *nap)
{
	HASH_SEQ_STATUS status;
	DatabaseEntry *entry;

	hash_seq_init(&status, databases);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		TimestampTz now = GetCurrentTimestamp();
		int			slot = -1;
		int			ntables = 0;

		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		for (int i = 0; i < worker_shared->nslots; i++)
		{
			WorkerSlot *leader = &worker_shared->slots[i];

			if (leader->state == SLOT_RUNNING && leader->kind == WORKER_LEADER &&
				leader->database == entry->oid && !leader->stop)
				ntables = leader->ntables;
		}
		if (ntables > 1 + count_workers(WORKER_HELPER, entry->oid) && count_free() > 1 &&
			!worker_database_held(entry->oid) && !not_yet(entry->helper_not_before, now, nap))
		{
			slot = slot_reserve(worker_shared->napply - 2, WORKER_HELPER, entry->oid, InvalidOid, now);
			entry->helper_not_before = TimestampTzPlusMilliseconds(now, HELPER_PAUSE_MS);
			*nap = Min(*nap, HELPER_PAUSE_MS);
		}
		LWLockRelease(worker_shared->lock);

		if (slot >= 0)
			(void) slot_start(slot);
	}
}

/* Senders have slots of their own: what users write must not wait for loads. */
static void
start_senders(long *nap)
{
	for (int e = 0; e < OUTBOX_ENTRIES; e++)
	{
		OutboxEntry *entry = &worker_shared->outbox[e];
		TimestampTz now = GetCurrentTimestamp();
		int			slot = -1;

		LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
		if (OidIsValid(entry->database) && entry->waiting && entry->slot < 0 &&
			!worker_database_held(entry->database) && !not_yet(entry->not_before, now, nap))
		{
			slot = slot_reserve(worker_shared->nslots - 1, WORKER_SENDER, entry->database,
								(Oid) entry->stream, now);
			if (slot >= 0)
				entry->slot = slot;
			else
				*nap = Min(*nap, RETRY_MS);
		}
		LWLockRelease(worker_shared->lock);

		if (slot >= 0 && !slot_start(slot))
		{
			LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
			entry->slot = -1;
			entry->not_before = TimestampTzPlusMilliseconds(now, RETRY_MS);
			LWLockRelease(worker_shared->lock);
			*nap = Min(*nap, RETRY_MS);
		}
	}
}

void
upsert_kafka_launcher_main(Datum arg)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(DatabaseEntry)};
	bool		first = true;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	databases = hash_create("upsert_kafka databases", 32, &ctl, HASH_ELEM | HASH_BLOBS);
	handles = MemoryContextAllocZero(TopMemoryContext,
									 sizeof(BackgroundWorkerHandle *) * worker_shared->nslots);

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	worker_shared->launcher_latch = MyLatch;
	worker_shared->launcher_pid = MyProcPid;
	LWLockRelease(worker_shared->lock);
	on_shmem_exit(launcher_exit, (Datum) 0);

	for (;;)
	{
		long		nap = LAUNCHER_NAP_MS;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		slots_reap();
		wakes_take();
		if (uk_workers)
		{
			databases_read(first);
			first = false;
			start_leaders(&nap);
			start_senders(&nap);
			start_backfills(&nap);
			start_helpers(&nap);
		}

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, nap,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
