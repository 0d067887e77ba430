/*
 * topic_fdw.h
 *	  What the files of a topic's foreign-data wrapper share: the callbacks, what a plan
 *	  carries, and the scan that executor and ANALYZE both run.
 */
#ifndef UK_TOPIC_FDW_H
#define UK_TOPIC_FDW_H

#include "fdw/options.h"
#include "fdw/row_ids.h"
#include "fdw/topic_keys.h"
#include "fdw/topic_quals.h"
#include "fdw/topic_read.h"
#include "foreign/fdwapi.h"

/* Members of ForeignScan.fdw_private; fdw_exprs holds the comparison values. */
#define TOPIC_PLAN_WANTED		0	/* IntList: see topic_scan_create(); NIL means all */
#define TOPIC_PLAN_CONDITIONS	1	/* append: of topic_conditions_build(), upsert: of topic_keys_build() */
#define TOPIC_PLAN_QUALS		2	/* IntList: which members of plan.qual these are */

/* A page, as far as costs go, is so many messages. */
#define TOPIC_MESSAGES_PER_PAGE	64

typedef struct TopicScanStats
{
	int64		messages;
	int64		bytes;
	int64		tombstones;
	int64		skipped;
	int64		disk_kb;
} TopicScanStats;

typedef struct TopicScan TopicScan;

/*
 * A scan of the table's rows: of an append topic every message, of an upsert topic its
 * current state, or its changelog.  Lives in a child of CurrentMemoryContext.
 * 'wanted' are the columns that will be looked at (attnum -
 * FirstLowInvalidHeapAttributeNumber; NULL: all).  'rewindable': the rows may be asked
 * for again.  What this transaction has written before this call, and not yet sent, is
 * part of the topic.  Does not contact Kafka.
 */
extern TopicScan *topic_scan_create(Relation rel, const Bitmapset *wanted, Oid userid, bool rewindable);

/*
 * First row, or first row again.  'boxes' (NULL: all) narrows append topics,
 * 'filter' (NULL: all) upsert topics; it must live as long as the scan and be the
 * same each time.
 */
extern void topic_scan_start(TopicScan *scan, const TopicBoxes *boxes, KeyFilter *filter);

/* Fills natts values, valid until the next call; false at the end. */
extern bool topic_scan_next(TopicScan *scan, Datum *values, bool *isnull);

/*
 * The message behind the last row of an upsert table's current state, valid until the
 * next call: fills in topic and partition to write to so that another message meets it
 * (-1: by the partitioner), and its key as it stands there.
 */
extern void topic_scan_origin(const TopicScan *scan, KafkaOutRecord *origin);

/* Frees all; a WARNING tells of messages that were skipped. */
extern void topic_scan_end(TopicScan *scan);

extern const TopicTable *topic_scan_table(const TopicScan *scan);
extern const TopicReader *topic_scan_reader(const TopicScan *scan); /* NULL: not started */
extern void topic_scan_stats(const TopicScan *scan, TopicScanStats *stats);

/* node->fdw_state */
typedef struct TopicScanState
{
	TopicScan  *scan;
	List	   *conditions;
	List	   *expr_states;
	KeyFilter  *filter;			/* of upsert topics, evaluated once */
	bool		started;
	bool		system_columns; /* more of them than tableoid and ctid */
	RowIds	   *row_ids;		/* of the target of UPDATE or DELETE, else NULL */
} TopicScanState;

extern void topicGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid);
extern void topicGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid);
extern ForeignScan *topicGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid,
										ForeignPath *best_path, List *tlist, List *scan_clauses,
										Plan *outer_plan);
extern void topicBeginForeignScan(ForeignScanState *node, int eflags);
extern TupleTableSlot *topicIterateForeignScan(ForeignScanState *node);
extern void topicReScanForeignScan(ForeignScanState *node);
extern void topicEndForeignScan(ForeignScanState *node);
extern void topicExplainForeignScan(ForeignScanState *node, struct ExplainState *es);

/* One property: the topic, the list or the pattern. */
extern void topic_explain_topics(const TopicTable *table, struct ExplainState *es);

/* topic_modify.c */
extern void topicAddForeignUpdateTargets(PlannerInfo *root, Index rtindex, RangeTblEntry *target_rte,
										 Relation target_relation);
extern List *topicPlanForeignModify(PlannerInfo *root, ModifyTable *plan, Index resultRelation, int subplan_index);
extern void topicBeginForeignModify(ModifyTableState *mtstate, ResultRelInfo *rri, List *fdw_private,
									int subplan_index, int eflags);
extern TupleTableSlot *topicExecForeignInsert(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot,
											  TupleTableSlot *planSlot);
extern TupleTableSlot *topicExecForeignUpdate(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot,
											  TupleTableSlot *planSlot);
extern TupleTableSlot *topicExecForeignDelete(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot,
											  TupleTableSlot *planSlot);
extern void topicEndForeignModify(EState *estate, ResultRelInfo *rri);
extern void topicBeginForeignInsert(ModifyTableState *mtstate, ResultRelInfo *rri);
extern void topicEndForeignInsert(EState *estate, ResultRelInfo *rri);
extern int	topicIsForeignRelUpdatable(Relation rel);
extern void topicExecForeignTruncate(List *rels, DropBehavior behavior, bool restart_seqs);
extern void topicExplainForeignModify(ModifyTableState *mtstate, ResultRelInfo *rri, List *fdw_private,
									  int subplan_index, struct ExplainState *es);

extern List *topicImportForeignSchema(ImportForeignSchemaStmt *stmt, Oid serverOid);
extern bool topicAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc *func, BlockNumber *totalpages);

#endif							/* UK_TOPIC_FDW_H */
