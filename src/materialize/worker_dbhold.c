/*
 * worker_dbhold.c
 *	  Commands that workers must hear of.  They leave a database that is about to
 *	  be dropped, renamed, moved or copied, which PostgreSQL refuses while a session
 *	  is in it, and come back if it is still there afterwards.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "compat.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define HOLD_TERM_AFTER_MS	1000	/* a worker in a long transaction is ended then */
#define HOLD_GIVE_UP_MS		5000	/* and PostgreSQL says who is in the way */

static ProcessUtility_hook_type previous_utility = NULL;

/* Also run at FATAL, so takes its argument as an exit callback does. */
static void
database_release(int code, Datum arg)
{
	Oid			database = DatumGetObjectId(arg);

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < WORKER_HOLDS; i++)
	{
		if (worker_shared->holds[i].database == database && worker_shared->holds[i].pid == MyProcPid)
			worker_shared->holds[i].database = InvalidOid;
	}
	LWLockRelease(worker_shared->lock);

	worker_wake_database(database);
}

/* Keep new workers out and ask those inside to leave; true when none is left. */
static bool
database_ask(Oid database, bool terminate)
{
	bool		left = true;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < worker_shared->nslots; i++)
	{
		WorkerSlot *slot = &worker_shared->slots[i];

		if (slot->database != database ||
			(slot->state != SLOT_STARTING && slot->state != SLOT_RUNNING))
			continue;
		left = false;
		slot->stop = true;
		if (slot->latch != NULL)
			SetLatch(slot->latch);
		if (slot->pid != 0 && (terminate || slot->kind == WORKER_BACKFILL))
			kill(slot->pid, SIGTERM);
	}
	LWLockRelease(worker_shared->lock);
	return left;
}

/* False when the table of holds is full: the command then takes its chance. */
static bool
database_hold(Oid database)
{
	bool		held = false;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < WORKER_HOLDS && !held; i++)
	{
		if (OidIsValid(worker_shared->holds[i].database))
			continue;
		worker_shared->holds[i].database = database;
		worker_shared->holds[i].pid = MyProcPid;
		held = true;
	}
	LWLockRelease(worker_shared->lock);
	return held;
}

static void
database_wait_empty(Oid database)
{
	TimestampTz start = GetCurrentTimestamp();
	long		waited = 0;

	while (!database_ask(database, waited >= HOLD_TERM_AFTER_MS) && waited < HOLD_GIVE_UP_MS)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 20L,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		waited = TimestampDifferenceMilliseconds(start, GetCurrentTimestamp());
	}
}

/*
 * The database that this command needs for itself.  InvalidOid also where the
 * caller has no right to it: asking must not be a way to disturb others.
 */
static Oid
database_wanted(Node *stmt)
{
	const char *name = NULL;
	Oid			database;

	if (IsA(stmt, DropdbStmt))
		name = ((DropdbStmt *) stmt)->dbname;
	else if (IsA(stmt, RenameStmt) && ((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
		name = ((RenameStmt *) stmt)->subname;
	else if (IsA(stmt, AlterDatabaseStmt) || IsA(stmt, CreatedbStmt))
	{
		bool		create = IsA(stmt, CreatedbStmt);
		List	   *options = create ? ((CreatedbStmt *) stmt)->options :
			((AlterDatabaseStmt *) stmt)->options;
		ListCell   *lc;

		foreach(lc, options)
		{
			DefElem    *option = (DefElem *) lfirst(lc);

			if (create && strcmp(option->defname, "template") == 0 && option->arg != NULL)
				name = defGetString(option);
			else if (!create && strcmp(option->defname, "tablespace") == 0)
				name = ((AlterDatabaseStmt *) stmt)->dbname;
		}
	}
	if (name == NULL)
		return InvalidOid;

	database = get_database_oid(name, true);
	if (!OidIsValid(database) || database == MyDatabaseId ||
		!database_ownercheck_compat(database, GetUserId()))
		return InvalidOid;
	return database;
}

static void
call_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *env,
			 DestReceiver *dest, QueryCompletion *qc)
{
	if (previous_utility != NULL)
		previous_utility(pstmt, query, read_only_tree, context, params, env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params, env, dest, qc);
}

/* Run the command while the database is kept empty of workers. */
static void
call_utility_held(Oid database, PlannedStmt *pstmt, const char *query, bool read_only_tree,
				  ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *env,
				  DestReceiver *dest, QueryCompletion *qc)
{
	PG_ENSURE_ERROR_CLEANUP(database_release, ObjectIdGetDatum(database));
	{
		database_wait_empty(database);
		call_utility(pstmt, query, read_only_tree, context, params, env, dest, qc);
	}
	PG_END_ENSURE_ERROR_CLEANUP(database_release, ObjectIdGetDatum(database));
	database_release(0, ObjectIdGetDatum(database));
}

static void
dbhold_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			   ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *env,
			   DestReceiver *dest, QueryCompletion *qc)
{
	Node	   *stmt = pstmt->utilityStmt;
	bool		commit_prepared = IsA(stmt, TransactionStmt) &&
		((TransactionStmt *) stmt)->kind == TRANS_STMT_COMMIT_PREPARED;
	bool		drop_extension = IsA(stmt, DropStmt) &&
		((DropStmt *) stmt)->removeType == OBJECT_EXTENSION;
	Oid			database = InvalidOid;

	/* all but RENAME may not run inside a block; there, let PostgreSQL say so at once */
	if (worker_shared != NULL &&
		(IsA(stmt, RenameStmt) ||
		 (!IsTransactionBlock() &&
		  (IsA(stmt, DropdbStmt) || IsA(stmt, AlterDatabaseStmt) || IsA(stmt, CreatedbStmt)))))
		database = database_wanted(stmt);

	if (OidIsValid(database) && database_hold(database))
		call_utility_held(database, pstmt, query, read_only_tree, context, params, env, dest, qc);
	else
		call_utility(pstmt, query, read_only_tree, context, params, env, dest, qc);

	if (commit_prepared)
		worker_wake_database(MyDatabaseId);
	if (drop_extension)
		worker_wake_on_commit();	/* perhaps ours */
}

void
worker_dbhold_init(void)
{
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = dbhold_utility;
}
