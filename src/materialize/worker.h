/*
 * worker.h
 *	  What launcher, workers and sessions share: slots of worker processes,
 *	  databases to look at, databases that workers must leave.
 *
 * The launcher alone starts processes.  Workers say what they need (tables to
 * serve, tables to load) in shared memory and set its latch.
 */
#ifndef UK_WORKER_H
#define UK_WORKER_H

#include "datatype/timestamp.h"
#include "materialize/catalog.h"
#include "materialize/progress.h"
#include "outbox/outbox_shared.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

typedef enum WorkerKind
{
	WORKER_LEADER,				/* the first apply worker of a database */
	WORKER_HELPER,				/* a further one, when there are several tables */
	WORKER_BACKFILL,			/* loads one table */
	WORKER_SENDER				/* sends one stream of the outbox (src/outbox) */
} WorkerKind;

typedef enum SlotState
{
	SLOT_FREE,
	SLOT_STARTING,				/* registered, not yet attached */
	SLOT_RUNNING,
	SLOT_ENDED					/* outcome is for the launcher, who frees the slot */
} SlotState;

typedef enum WorkerOutcome
{
	OUTCOME_FAILED,				/* until told otherwise */
	OUTCOME_LEFT,				/* was asked to, or is not needed any more */
	OUTCOME_NOTHING,			/* no table to serve in this database */
	OUTCOME_WORK				/* a probe found tables, and has no slot to serve them */
} WorkerOutcome;

typedef struct WorkerSlot
{
	SlotState	state;
	uint32		generation;		/* goes up with every use: a late process finds
								 * that the slot is no longer its own */
	WorkerKind	kind;
	WorkerOutcome outcome;
	Oid			database;
	Oid			target;			/* WORKER_BACKFILL; WORKER_SENDER: the stream */
	pid_t		pid;			/* 0 until attached */
	Latch	   *latch;
	TimestampTz started_at;
	bool		stop;			/* please leave */
	bool		reread;			/* registrations have changed */
	int			ntables;		/* leader: tables to serve in its database */
} WorkerSlot;

#define WORKER_WAKES	64
#define WORKER_HOLDS	16

typedef struct WorkerShared
{
	LWLock	   *lock;			/* protects everything here */
	ConditionVariable applied;	/* broadcast after each commit of a worker */
	Latch	   *launcher_latch; /* NULL: no launcher */
	pid_t		launcher_pid;

	int			nwakes;			/* databases in which something was registered */
	Oid			wakes[WORKER_WAKES];
	bool		wake_all;		/* there were more */

	struct
	{
		Oid			database;	/* InvalidOid: unused */
		pid_t		pid;		/* the backend that wants it to itself */
	}			holds[WORKER_HOLDS];

	TableProgress tables[PROGRESS_TABLES];
	OutboxEntry outbox[OUTBOX_ENTRIES];

	int			napply;			/* max_workers, and one for probes: the first slots .. */
	int			nslots;			/* .. and then those of senders */
	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} WorkerShared;

extern WorkerShared *worker_shared; /* NULL without shared_preload_libraries */

/*
 * Call when this transaction changes what workers should do; they look after
 * its commit.  Cheap, may be called any number of times.
 */
extern void worker_wake_on_commit(void);

/*
 * End the worker that is loading 'target', if there is one, so that the caller
 * need not wait for the end of the load.  The load starts again unless the
 * caller's transaction changes the table's state.
 */
extern void worker_end_backfill(Oid target);

/* A worker's tables have moved forward: wakes wait_for(). */
extern void worker_notify_applied(void);

/* --- worker_shared.c, launcher.c and worker.c among themselves --- */

extern void worker_shared_init(void);
extern void worker_wake_database(Oid database);
extern bool worker_database_held(Oid database); /* under the lock */

/*
 * worker.c, for what runs in a worker's process: asked to leave?  (Also tells, once,
 * whether registrations have changed.)  And leaving.
 */
extern bool worker_stop_requested(bool *reread);
extern void worker_leave(WorkerOutcome outcome) pg_attribute_noreturn();

/* worker_dbhold.c: workers leave a database that is dropped, moved or copied */
extern void worker_dbhold_init(void);

/* control.c: ERROR 55000 telling why a table does not move forward */
extern void table_state_error(const MaintainedTable *table) pg_attribute_noreturn();
extern MaintainedTable *maintained_table_require(Oid target);

#endif							/* UK_WORKER_H */
