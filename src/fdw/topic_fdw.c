/*
 * topic_fdw.c
 *	  The handler of the foreign-data wrapper upsert_kafka: which callbacks there are.
 */
#include "postgres.h"

#include "fdw/topic_fdw.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(upsert_kafka_topic_handler);

/*
 * No callbacks for batches: rows are encoded into the transaction's buffer one by one
 * anyway, and PostgreSQL would only copy them once more.
 */
Datum
upsert_kafka_topic_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = topicGetForeignRelSize;
	routine->GetForeignPaths = topicGetForeignPaths;
	routine->GetForeignPlan = topicGetForeignPlan;
	routine->BeginForeignScan = topicBeginForeignScan;
	routine->IterateForeignScan = topicIterateForeignScan;
	routine->ReScanForeignScan = topicReScanForeignScan;
	routine->EndForeignScan = topicEndForeignScan;
	routine->ExplainForeignScan = topicExplainForeignScan;
	routine->AddForeignUpdateTargets = topicAddForeignUpdateTargets;
	routine->PlanForeignModify = topicPlanForeignModify;
	routine->BeginForeignModify = topicBeginForeignModify;
	routine->ExecForeignInsert = topicExecForeignInsert;
	routine->ExecForeignUpdate = topicExecForeignUpdate;
	routine->ExecForeignDelete = topicExecForeignDelete;
	routine->EndForeignModify = topicEndForeignModify;
	routine->BeginForeignInsert = topicBeginForeignInsert;
	routine->EndForeignInsert = topicEndForeignInsert;
	routine->IsForeignRelUpdatable = topicIsForeignRelUpdatable;
	routine->ExecForeignTruncate = topicExecForeignTruncate;
	routine->ExplainForeignModify = topicExplainForeignModify;
	routine->AnalyzeForeignTable = topicAnalyzeForeignTable;
	routine->ImportForeignSchema = topicImportForeignSchema;
	PG_RETURN_POINTER(routine);
}
