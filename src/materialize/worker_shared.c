/*
 * worker_shared.c
 *	  Shared memory of launcher and workers, and how sessions reach them.
 *	  Knows nothing of what workers do.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "commands/trigger.h"
#include "compat.h"
#include "fmgr.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "upsert_kafka.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(upsert_kafka_wake_workers);

WorkerShared *worker_shared = NULL;

static void (*previous_shmem_request) (void) = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static bool wake_at_commit = false;

/* One slot more than max_workers: a probe must not need one that a worker holds */
static int
slots_wanted(void)
{
	return uk_max_workers + 1 + uk_max_senders;
}

static Size
worker_shared_size(void)
{
	return add_size(offsetof(WorkerShared, slots), mul_size(slots_wanted(), sizeof(WorkerSlot)));
}

static void
worker_shmem_request(void)
{
	if (previous_shmem_request != NULL)
		previous_shmem_request();
	RequestAddinShmemSpace(worker_shared_size());
	RequestNamedLWLockTranche("upsert_kafka", 1);
}

static void
worker_shmem_startup(void)
{
	bool		found;

	if (previous_shmem_startup != NULL)
		previous_shmem_startup();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	worker_shared = ShmemInitStruct("upsert_kafka", worker_shared_size(), &found);
	if (!found)
	{
		memset(worker_shared, 0, worker_shared_size());
		worker_shared->lock = &GetNamedLWLockTranche("upsert_kafka")->lock;
		worker_shared->napply = uk_max_workers + 1;
		worker_shared->nslots = slots_wanted();
		ConditionVariableInit(&worker_shared->applied);
	}
	LWLockRelease(AddinShmemInitLock);
}

void
worker_shared_init(void)
{
	request_shmem_compat(previous_shmem_request, worker_shmem_request);
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = worker_shmem_startup;
}

/* --- waking -------------------------------------------------------------------- */

/* Something was registered in a database, or may be looked at again. */
void
worker_wake_database(Oid database)
{
	bool		known = false;

	if (worker_shared == NULL)
		return;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < worker_shared->nwakes; i++)
		known = known || worker_shared->wakes[i] == database;
	if (!known)
	{
		if (worker_shared->nwakes < WORKER_WAKES)
			worker_shared->wakes[worker_shared->nwakes++] = database;
		else
			worker_shared->wake_all = true;
	}

	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->database != database ||
			(slot->state != SLOT_STARTING && slot->state != SLOT_RUNNING))
			continue;
		slot->reread = true;
		if (slot->latch != NULL)
			SetLatch(slot->latch);
	}
	if (worker_shared->launcher_latch != NULL)
		SetLatch(worker_shared->launcher_latch);
	LWLockRelease(worker_shared->lock);
}

/*
 * The changes are visible when this runs.  A prepared transaction wakes at COMMIT
 * PREPARED (worker_dbhold.c), whichever session that is.
 */
static void
wake_xact_callback(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	if (wake_at_commit && event == XACT_EVENT_COMMIT)
		worker_wake_database(MyDatabaseId);
	wake_at_commit = false;
}

void
worker_wake_on_commit(void)
{
	static bool registered = false;

	if (worker_shared == NULL)
		return;
	if (!registered)
	{
		RegisterXactCallback(wake_xact_callback, NULL);
		registered = true;
	}
	wake_at_commit = true;
}

/*
 * Trigger on the catalog of maintained tables, for what does not come through our
 * functions: pg_restore copies rows into it.
 */
Datum
upsert_kafka_wake_workers(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be called as a trigger", "upsert_kafka.wake_workers")));
	worker_wake_on_commit();
	PG_RETURN_POINTER(NULL);
}

void
worker_notify_applied(void)
{
	if (worker_shared != NULL)
		ConditionVariableBroadcast(&worker_shared->applied);
}

/* --- asking workers to leave -------------------------------------------------------- */

bool
worker_database_held(Oid database)
{
	for (int i = 0; i < WORKER_HOLDS; i++)
		if (worker_shared->holds[i].database == database)
			return true;
	return false;
}

/*
 * A load is one transaction, so ending its process loses nothing but time.  The
 * pid is read and signalled under the lock that the process takes before it goes.
 */
void
worker_end_backfill(Oid target)
{
	if (worker_shared == NULL)
		return;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < PROGRESS_TABLES; i++)
	{
		TableProgress *table = &worker_shared->tables[i];
		WorkerSlot *slot;

		if (table->database != MyDatabaseId || table->target != target || table->loader < 0)
			continue;
		slot = &worker_shared->slots[table->loader];
		slot->stop = true;
		if (slot->pid != 0)
			kill(slot->pid, SIGTERM);
	}
	LWLockRelease(worker_shared->lock);
}
