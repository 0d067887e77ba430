/*
 * writer.c
 *	  Writing one table from C, below SQL.
 *
 * Owns the executor state that inserts, updates and deletes need.  Knows nothing
 * of keys, versions or Kafka.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "compat.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "materialize/writer.h"
#include "nodes/makefuncs.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#endif

/* As COPY does: at most this many rows or bytes wait for one multi-insert. */
#define WRITER_MAX_ROWS		1000
#define WRITER_MAX_BYTES	(256 * 1024)

struct TableWriter
{
	MemoryContext context;
	Relation	rel;
	EState	   *estate;
	ResultRelInfo *rri;
	EPQState	epq;
	bool		row_triggers;	/* inserts go one by one */
	bool		after_triggers;
	TupleTableSlot **slots;
	int			nslots;			/* created */
	int			nbuffered;
	Size		bytes;
	BulkInsertState bulk;

	Relation	index;
	IndexScanDesc scan;
	int			nkeys;			/* scan keys of scan; it is remade when they change */
	ScanKeyData *keys;
	TupleTableSlot *found;

	ExprState **defaults;		/* by attnum - 1; NULL until asked for */
	bool	   *defaults_known;
};

/* Deferrable constraints and triggers would fire at commit, as whoever commits. */
static void
refuse_deferrable(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;
	ListCell   *lc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (trigger->tgdeferrable && trigger->tgenabled != TRIGGER_DISABLED)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("trigger \"%s\" on maintained table \"%s\" is deferrable",
							trigger->tgname, RelationGetRelationName(rel)),
					 errdetail("Deferred triggers would run at commit, with the rights of another role."),
					 errhint("Make the trigger or its constraint NOT DEFERRABLE.")));
	}
	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (!index->rd_index->indimmediate)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("constraint \"%s\" on maintained table \"%s\" is deferrable",
							RelationGetRelationName(index), RelationGetRelationName(rel)),
					 errhint("Make the constraint NOT DEFERRABLE.")));
		index_close(index, AccessShareLock);
	}
}

TableWriter *
table_writer_open(Oid relid, Oid index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka table writer",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	TableWriter *writer = palloc0(sizeof(TableWriter));
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *perminfos = NIL;
	Relation	rel = table_open(relid, RowExclusiveLock);
	TriggerDesc *triggers = rel->trigdesc;
	Bitmapset  *columns = NULL;

	refuse_deferrable(rel);
	writer->context = context;
	writer->rel = rel;
	writer->estate = CreateExecutorState();

	rte->rtekind = RTE_RELATION;
	rte->relid = relid;
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
		if (!TupleDescAttr(RelationGetDescr(rel), i)->attisdropped)
			columns = bms_add_member(columns, i + 1 - FirstLowInvalidHeapAttributeNumber);

	/* every column may change: generated ones are computed from that */
#if PG_VERSION_NUM >= 160000
	addRTEPermissionInfo(&perminfos, rte)->updatedCols = columns;
#else
	rte->updatedCols = columns;
#endif
	ExecInitRangeTable_compat(writer->estate, list_make1(rte), perminfos);
	(void) perminfos;

	writer->rri = makeNode(ResultRelInfo);
	InitResultRelInfo(writer->rri, rel, 1, NULL, 0);
	writer->estate->es_opened_result_relations = lappend(NIL, writer->rri);
	writer->estate->es_output_cid = GetCurrentCommandId(true);
	writer->estate->es_snapshot = RegisterSnapshot(GetActiveSnapshot());
	EvalPlanQualInit_compat(&writer->epq, writer->estate);
	ExecOpenIndices(writer->rri, false);

	if (triggers)
	{
		writer->row_triggers = triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
			triggers->trig_insert_instead_row;
		writer->after_triggers = triggers->trig_insert_after_row || triggers->trig_update_after_row ||
			triggers->trig_delete_after_row;
	}
	if (writer->after_triggers)
		AfterTriggerBeginQuery();

	writer->slots = palloc0(WRITER_MAX_ROWS * sizeof(TupleTableSlot *));
	writer->bulk = GetBulkInsertState();
	if (OidIsValid(index))
	{
		writer->index = index_open(index, RowExclusiveLock);
		writer->found = table_slot_create(rel, &writer->estate->es_tupleTable);
		writer->keys = palloc(INDEX_MAX_KEYS * sizeof(ScanKeyData));
		writer->nkeys = -1;
	}
	MemoryContextSwitchTo(old);
	return writer;
}

Relation
table_writer_relation(TableWriter *writer)
{
	return writer->rel;
}

TupleTableSlot *
table_writer_slot(TableWriter *writer)
{
	TupleTableSlot *slot;

	if (writer->nbuffered == writer->nslots)
	{
		MemoryContext old = MemoryContextSwitchTo(writer->context);

		writer->slots[writer->nslots++] = table_slot_create(writer->rel, &writer->estate->es_tupleTable);
		MemoryContextSwitchTo(old);
	}
	slot = writer->slots[writer->nbuffered];
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
	memset(slot->tts_values, 0, slot->tts_tupleDescriptor->natts * sizeof(Datum));
	return slot;
}

void
table_writer_insert(TableWriter *writer)
{
	TupleTableSlot *slot = writer->slots[writer->nbuffered];
	TupleConstr *constr = RelationGetDescr(writer->rel)->constr;
	MemoryContext old;

	ExecStoreVirtualTuple(slot);
	if (writer->row_triggers)
	{
		ExecSimpleRelationInsert(writer->rri, writer->estate, slot);
		ResetPerTupleExprContext(writer->estate);
		return;
	}
	slot->tts_tableOid = RelationGetRelid(writer->rel);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(writer->estate));
	if (constr)
	{
		if (constr->has_generated_stored)
			ExecComputeStoredGenerated(writer->rri, writer->estate, slot, CMD_INSERT);
		ExecConstraints(writer->rri, slot, writer->estate);
	}
	ExecMaterializeSlot(slot);
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(writer->estate);

	writer->nbuffered++;
	if (slot->tts_ops == &TTSOpsBufferHeapTuple)
		writer->bytes += ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_len;
	if (writer->nbuffered == WRITER_MAX_ROWS || writer->bytes > WRITER_MAX_BYTES)
		table_writer_flush(writer);
}

void
table_writer_flush(TableWriter *writer)
{
	MemoryContext old;

	if (writer->nbuffered == 0)
		return;
	CHECK_FOR_INTERRUPTS();
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(writer->estate));
	table_multi_insert(writer->rel, writer->slots, writer->nbuffered, writer->estate->es_output_cid,
					   0, writer->bulk);
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(writer->estate);
	if (writer->rri->ri_NumIndices > 0)
		for (int i = 0; i < writer->nbuffered; i++)
		{
			(void) ExecInsertIndexTuples_compat(writer->rri, writer->slots[i], writer->estate);
			ResetPerTupleExprContext(writer->estate);
		}
	for (int i = 0; i < writer->nbuffered; i++)
		ExecClearTuple(writer->slots[i]);
	writer->nbuffered = 0;
	writer->bytes = 0;
}

void
table_writer_refresh(TableWriter *writer)
{
	EState	   *estate = writer->estate;

	table_writer_flush(writer);
	CommandCounterIncrement();
	if (writer->scan)
		index_endscan(writer->scan);
	writer->scan = NULL;
	writer->nkeys = -1;
	UnregisterSnapshot(estate->es_snapshot);
	estate->es_snapshot = RegisterSnapshot(GetLatestSnapshot());
	estate->es_output_cid = GetCurrentCommandId(true);
}

/* Scan keys of the first nkeys columns, and of the next one's lower bound. */
static void
make_scan(TableWriter *writer, int nkeys, bool use_from)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	int			n = nkeys + (use_from ? 1 : 0);

	if (writer->scan)
		index_endscan(writer->scan);
	for (int i = 0; i < n; i++)
	{
		StrategyNumber strategy = i < nkeys ? BTEqualStrategyNumber : BTGreaterEqualStrategyNumber;
		Oid			type = writer->index->rd_opcintype[i];
		Oid			operator = get_opfamily_member(writer->index->rd_opfamily[i], type, type, strategy);

		ScanKeyEntryInitialize(&writer->keys[i], 0, i + 1, strategy, type,
							   writer->index->rd_indcollation[i], get_opcode(operator), (Datum) 0);
	}
	writer->scan = index_beginscan_compat(writer->rel, writer->index, writer->estate->es_snapshot, n);
	writer->nkeys = n;
	MemoryContextSwitchTo(old);
}

void
table_writer_scan(TableWriter *writer, int nkeys, const Datum *keys, bool use_from, int64 from)
{
	int			n = nkeys + (use_from ? 1 : 0);

	if (writer->nkeys != n)
		make_scan(writer, nkeys, use_from);
	for (int i = 0; i < nkeys; i++)
		writer->keys[i].sk_argument = keys[i];
	if (use_from)
		writer->keys[nkeys].sk_argument = Int64GetDatum(from);
	index_rescan(writer->scan, writer->keys, n, NULL, 0);
}

TupleTableSlot *
table_writer_next(TableWriter *writer, ScanDirection direction)
{
	if (!index_getnext_slot(writer->scan, direction, writer->found))
		return NULL;
	return writer->found;
}

void
table_writer_update(TableWriter *writer)
{
	TupleTableSlot *slot = writer->slots[writer->nbuffered];

	ExecStoreVirtualTuple(slot);
	ExecSimpleRelationUpdate(writer->rri, writer->estate, &writer->epq, writer->found, slot);
	ExecClearTuple(slot);
	ResetPerTupleExprContext(writer->estate);
}

void
table_writer_delete(TableWriter *writer)
{
	ExecSimpleRelationDelete(writer->rri, writer->estate, &writer->epq, writer->found);
	ResetPerTupleExprContext(writer->estate);
}

bool
table_writer_default(TableWriter *writer, AttrNumber attnum, Datum *value, bool *isnull)
{
	int			i = attnum - 1;

	if (writer->defaults == NULL)
	{
		int			natts = RelationGetNumberOfAttributes(writer->rel);

		writer->defaults = MemoryContextAllocZero(writer->context, natts * sizeof(ExprState *));
		writer->defaults_known = MemoryContextAllocZero(writer->context, natts * sizeof(bool));
	}
	if (!writer->defaults_known[i])
	{
		MemoryContext old = MemoryContextSwitchTo(writer->context);
		Expr	   *expr = NULL;

		if (TupleDescAttr(RelationGetDescr(writer->rel), i)->attgenerated == '\0')
			expr = (Expr *) build_column_default(writer->rel, attnum);
		if (expr)
			writer->defaults[i] = ExecInitExpr(expression_planner(expr), NULL);
		writer->defaults_known[i] = true;
		MemoryContextSwitchTo(old);
	}
	if (writer->defaults[i] == NULL)
		return false;
	*value = ExecEvalExpr(writer->defaults[i], GetPerTupleExprContext(writer->estate), isnull);
	return true;
}

void
table_writer_close(TableWriter *writer)
{
	EState	   *estate = writer->estate;

	table_writer_flush(writer);
	if (writer->after_triggers)
		AfterTriggerEndQuery(estate);
	EvalPlanQualEnd(&writer->epq);
	FreeBulkInsertState(writer->bulk);
	if (writer->scan)
		index_endscan(writer->scan);
	if (writer->index)
		index_close(writer->index, NoLock);
	ExecCloseIndices(writer->rri);
	UnregisterSnapshot(estate->es_snapshot);
	ExecResetTupleTable(estate->es_tupleTable, false);
	FreeExecutorState(estate);
	table_close(writer->rel, NoLock);
	MemoryContextDelete(writer->context);
}
