/*
 * give_way.c
 *	  Loads of workers end when another session waits for the table, as autovacuum
 *	  does; the load starts again afterwards.  Knows locks only.
 */
#include "postgres.h"

#include "materialize/give_way.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#define LOOK_MS		1000

static void
load_again_later(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("loading of maintained table \"%s\" gives way to another session", get_rel_name(relid)),
			 errdetail("The session wants to lock a table that is in use here. The load starts again after it.")));
}

void
lock_table_to_load(Oid relid)
{
	if (MyBackendType != B_BG_WORKER)
		LockRelationOid(relid, RowExclusiveLock);
	else if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
		load_again_later(relid);
}

/* Does this process wait for a relation? */
static bool
waits_for_relation(int pid)
{
	BlockedProcsData *data = GetBlockerStatusData(pid);

	/* all of them are of the lock that it waits for */
	return data->nlocks > 0 && data->locks[0].locktag.locktag_type == LOCKTAG_RELATION;
}

static bool
is_blocked_by_us(int pid)
{
	ArrayType  *blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(pid)));
	int			n = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));
	int32	   *pids = (int32 *) ARR_DATA_PTR(blockers);

	for (int i = 0; i < n; i++)
		if (pids[i] == MyProcPid)
			return true;
	return false;
}

void
give_way_to_ddl(Oid relid)
{
	static TimestampTz looked_at = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (MyBackendType != B_BG_WORKER || !TimestampDifferenceExceeds(looked_at, now, LOOK_MS))
		return;
	looked_at = now;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		int			pid = proc->pid;

		/* read without a lock: a hint of whom to ask about */
		if (pid != 0 && pid != MyProcPid && proc->databaseId == MyDatabaseId && proc->waitLock != NULL &&
			waits_for_relation(pid) && is_blocked_by_us(pid))
			load_again_later(relid);
	}
}
