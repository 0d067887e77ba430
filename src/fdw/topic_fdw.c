/*
 * topic_fdw.c
 *	  The handler of the foreign-data wrapper upsert_kafka: which callbacks there are.
 */
#include "postgres.h"

#include "fdw/topic_fdw.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(upsert_kafka_topic_handler);

/*
 * Without callbacks for INSERT, UPDATE, DELETE and TRUNCATE, PostgreSQL itself refuses
 * them, and COPY, with feature_not_supported.
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
	routine->AnalyzeForeignTable = topicAnalyzeForeignTable;
	routine->ImportForeignSchema = topicImportForeignSchema;
	PG_RETURN_POINTER(routine);
}
