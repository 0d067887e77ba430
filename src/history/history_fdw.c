/*
 * history_fdw.c
 *	  The foreign-data wrapper upsert_kafka_history: its entry points.
 *
 * Owns nothing but the routine table and the option check; planning, reading
 * and statistics have their own files.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "history/history.h"

PG_FUNCTION_INFO_V1(upsert_kafka_history_handler);
PG_FUNCTION_INFO_V1(upsert_kafka_history_validator);

/* A history scan touches nothing outside the database: any worker may run it. */
static bool
historyIsForeignScanParallelSafe(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	return true;
}

Datum
upsert_kafka_history_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = historyGetForeignRelSize;
	routine->GetForeignPaths = historyGetForeignPaths;
	routine->GetForeignPlan = historyGetForeignPlan;
	routine->BeginForeignScan = historyBeginForeignScan;
	routine->IterateForeignScan = historyIterateForeignScan;
	routine->ReScanForeignScan = historyReScanForeignScan;
	routine->EndForeignScan = historyEndForeignScan;
	routine->ExplainForeignScan = historyExplainForeignScan;
	routine->IsForeignScanParallelSafe = historyIsForeignScanParallelSafe;

	PG_RETURN_POINTER(routine);
}

Datum
upsert_kafka_history_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));

	if (options != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", ((DefElem *) linitial(options))->defname),
				 errhint("History tables and their server take no options.")));

	PG_RETURN_VOID();
}
