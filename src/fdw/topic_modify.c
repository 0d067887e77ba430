/*
 * topic_modify.c
 *	  INSERT, UPDATE, DELETE, COPY and TRUNCATE on foreign tables: rows become
 *	  messages in the transaction's buffer (pending.h).  Never contacts Kafka itself;
 *	  that rows are found again at UPDATE is the scan's work (row_ids.h).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "changelog/change.h"
#include "changelog/encode.h"
#include "changelog/keys.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "compat.h"
#include "executor/executor.h"
#include "fdw/key_set.h"
#include "fdw/pending.h"
#include "fdw/row_encode.h"
#include "fdw/topic_fdw.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "upsert_kafka.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Junk columns of a plan that finds rows to change */
#define ROW_ID_NAME		"ctid"
#define WHOLE_ROW_NAME	"wholerow"	/* PostgreSQL's own name for it */

/* ResultRelInfo.ri_FdwState */
typedef struct TopicModifyState
{
	TopicTable *table;
	Oid			userid;
	RowEncoder *encoder;
	MemoryContext row_cxt;		/* reset per row */
	int			users;			/* rows can be routed to a table that is changed as well */

	/* UPDATE and DELETE */
	RowIds	   *row_ids;		/* the scan's */
	AttrNumber	row_id_attno;
	AttrNumber	whole_row_attno;	/* 0: not there */
	Bitmapset  *updated;		/* columns that the UPDATE names */
	bool		key_may_change;
	ChangeDecoder *key_decoder;
	KeyDesc    *keys;
	KeySet	   *moved_to;		/* keys that rows have got, in place of their old ones */
	Datum	   *old_values;
	bool	   *old_isnull;
} TopicModifyState;

static planner_hook_type previous_planner_hook;

/* ------------------------------------------------------------------------
 * Planning
 * ------------------------------------------------------------------------ */

static void
refuse_on_conflict(Relation rel)
{
	const TopicTable *table = topic_table_get(rel);

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("INSERT with ON CONFLICT is not supported on foreign table \"%s\"", table->name),
			 table->upsert ?
			 errhint("INSERT into an upsert topic is an upsert already: the last message of a key counts.") :
			 errhint("Nothing conflicts there: every INSERT adds a message.")));
}

static void
check_on_conflict(const Query *query)
{
	RangeTblEntry *rte;

	if (query->commandType != CMD_INSERT || query->onConflict == NULL)
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	if (rte->relkind != RELKIND_FOREIGN_TABLE || !topic_table_is_ours(rte->relid))
		return;
	refuse_on_conflict(table_open(rte->relid, NoLock));
}

/*
 * ON CONFLICT (columns) fails for the want of an index before any callback of ours is
 * asked, with words that don't help.
 */
static PlannedStmt *
topic_planner(Query *parse, const char *query_string, int cursor_options, ParamListInfo bound_params)
{
	ListCell   *lc;

	check_on_conflict(parse);
	foreach(lc, parse->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (IsA(cte->ctequery, Query))
			check_on_conflict((Query *) cte->ctequery);
	}
	if (previous_planner_hook)
		return previous_planner_hook(parse, query_string, cursor_options, bound_params);
	return standard_planner(parse, query_string, cursor_options, bound_params);
}

void
topic_modify_init(void)
{
	previous_planner_hook = planner_hook;
	planner_hook = topic_planner;
}

/* UPDATE and DELETE are for tables whose rows are the state of keys. */
static void
check_rows_change(const TopicTable *table, const char *command)
{
	if (table->upsert && !table->changelog)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s is not supported on foreign table \"%s\"", command, table->name),
			 table->changelog ?
			 errdetail("Its rows are the changes of topic \"%s\", which are in the past.", table->topic) :
			 errdetail("Its rows are the messages of topic \"%s\", which cannot be changed.", table->topic),
			 table->changelog ?
			 errhint("Use a foreign table on the topic without the option \"changelog\".") :
			 errhint("With connector \"upsert-kafka\" the rows of a table are the last messages of each key.")));
}

void
topicAddForeignUpdateTargets(PlannerInfo *root, Index rtindex, RangeTblEntry *target_rte,
							 Relation target_relation)
{
	Var		   *var;

	check_rows_change(topic_table_get(target_relation),
					  root->parse->commandType == CMD_UPDATE ? "UPDATE" : "DELETE");
	var = makeVar(rtindex, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);
	add_row_identity_var(root, var, rtindex, ROW_ID_NAME);

	/* the old row; UPDATE has it anyway */
	if (root->parse->commandType == CMD_DELETE && root->parse->returningList != NIL)
	{
		var = makeVar(rtindex, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0);
		add_row_identity_var(root, var, rtindex, WHOLE_ROW_NAME);
	}
}

List *
topicPlanForeignModify(PlannerInfo *root, ModifyTable *plan, Index resultRelation, int subplan_index)
{
	Relation	rel = table_open(planner_rt_fetch(resultRelation, root)->relid, NoLock);
	TopicTable *table = topic_table_get(rel);

	if (plan->onConflictAction != ONCONFLICT_NONE)
		refuse_on_conflict(rel);
	/* formats that only read say so here, before the executor does in other words */
	(void) change_encoder_create(table);
	table_close(rel, NoLock);
	return NIL;
}

int
topicIsForeignRelUpdatable(Relation rel)
{
	TopicTable *table = topic_table_get(rel);

	if (!table_is_writable(table))
		return 0;
	if (!table->upsert || table->changelog)
		return 1 << CMD_INSERT;
	return (1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE);
}

void
topicExplainForeignModify(ModifyTableState *mtstate, ResultRelInfo *rri, List *fdw_private,
						  int subplan_index, ExplainState *es)
{
	topic_explain_topics(topic_table_get(rri->ri_RelationDesc), es);
}

/* ------------------------------------------------------------------------
 * Begin and end
 * ------------------------------------------------------------------------ */

static TopicModifyState *
modify_state_create(EState *estate, ResultRelInfo *rri, const Bitmapset *given)
{
	TopicModifyState *state = palloc0(sizeof(TopicModifyState));

	state->table = topic_table_get(rri->ri_RelationDesc);
	state->userid = foreign_modify_user(rri, estate);
	state->table->userid = state->userid;
	state->encoder = row_encoder_create(state->table, given);
	state->row_cxt = AllocSetContextCreate(CurrentMemoryContext, "row to write", ALLOCSET_SMALL_SIZES);
	state->users = 1;
	return state;
}

typedef struct FindScan
{
	Index		rtindex;
	RowIds	   *row_ids;
} FindScan;

/* The scan of the relation that is changed. */
static bool
find_scan(PlanState *node, void *context)
{
	FindScan   *find = context;

	if (node == NULL)
		return false;
	if (IsA(node, ForeignScanState))
	{
		ForeignScanState *scan = (ForeignScanState *) node;

		if (((ForeignScan *) node->plan)->scan.scanrelid == find->rtindex &&
			scan->fdwroutine->IterateForeignScan == topicIterateForeignScan)
		{
			find->row_ids = ((TopicScanState *) scan->fdw_state)->row_ids;
			return find->row_ids != NULL;
		}
	}
	return planstate_tree_walker(node, find_scan, context);
}

/* Can an UPDATE of these columns change the key? */
static bool
key_may_change(const TopicTable *table, ResultRelInfo *rri, const Bitmapset *updated)
{
	const TupleConstr *constr = RelationGetDescr(rri->ri_RelationDesc)->constr;

	if ((constr != NULL && constr->has_generated_stored) ||
		(rri->ri_TrigDesc != NULL && rri->ri_TrigDesc->trig_update_before_row))
		return true;
	for (int i = 0; i < table->nkeys; i++)
		if (bms_is_member(table->keys[i] - FirstLowInvalidHeapAttributeNumber, updated))
			return true;
	return false;
}

void
topicBeginForeignModify(ModifyTableState *mtstate, ResultRelInfo *rri, List *fdw_private,
						int subplan_index, int eflags)
{
	EState	   *estate = mtstate->ps.state;
	Bitmapset  *updated = NULL;
	TopicModifyState *state;
	List	   *tlist;
	FindScan	find;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	if (mtstate->operation == CMD_UPDATE)
	{
		updated = bms_copy(ExecGetUpdatedCols(rri, estate));
		/* an empty set must differ from "all" */
		updated = bms_add_members(updated, CHANGE_WANT_NOTHING);
	}
	state = modify_state_create(estate, rri, updated);
	rri->ri_FdwState = state;
	if (mtstate->operation == CMD_INSERT)
		return;

	tlist = outerPlanState(mtstate)->plan->targetlist;
	state->row_id_attno = ExecFindJunkAttributeInTlist(tlist, ROW_ID_NAME);
	state->whole_row_attno = ExecFindJunkAttributeInTlist(tlist, WHOLE_ROW_NAME);
	find.rtindex = rri->ri_RangeTableIndex;
	find.row_ids = NULL;
	(void) find_scan(outerPlanState(mtstate), &find);
	state->row_ids = find.row_ids;	/* NULL where the planner knows that there is no row */
	if (mtstate->operation != CMD_UPDATE)
		return;
	state->updated = updated;
	state->key_may_change = key_may_change(state->table, rri, updated);
	if (state->key_may_change)
	{
		state->key_decoder = change_decoder_create(state->table, CHANGE_WANT_NOTHING);
		state->keys = key_desc_create(RelationGetDescr(rri->ri_RelationDesc),
									  state->table->nkeys, state->table->keys);
		state->moved_to = key_set_create(state->keys);
		state->old_values = palloc0(sizeof(Datum) * state->table->natts);
		state->old_isnull = palloc0(sizeof(bool) * state->table->natts);
	}
}

void
topicBeginForeignInsert(ModifyTableState *mtstate, ResultRelInfo *rri)
{
	const ModifyTable *plan = (const ModifyTable *) mtstate->ps.plan;	/* NULL: COPY */

	if (plan != NULL && plan->onConflictAction != ONCONFLICT_NONE)
		refuse_on_conflict(rri->ri_RelationDesc);
	/* rows move to a table whose own rows are updated by the same statement */
	if (rri->ri_FdwState != NULL)
		((TopicModifyState *) rri->ri_FdwState)->users++;
	else
		rri->ri_FdwState = modify_state_create(mtstate->ps.state, rri, NULL);
}

static void
modify_end(ResultRelInfo *rri)
{
	TopicModifyState *state = (TopicModifyState *) rri->ri_FdwState;

	if (state == NULL || --state->users > 0)
		return;
	row_encoder_reset(state->encoder);
	MemoryContextDelete(state->row_cxt);
	rri->ri_FdwState = NULL;
}

void
topicEndForeignModify(EState *estate, ResultRelInfo *rri)
{
	modify_end(rri);
}

void
topicEndForeignInsert(EState *estate, ResultRelInfo *rri)
{
	modify_end(rri);
}

/* ------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------ */

/* Rows that were routed here belong here, unless a trigger has changed them. */
static bool
must_check_partition(const ResultRelInfo *rri)
{
	return rri->ri_RelationDesc->rd_rel->relispartition &&
		(rri->ri_RootResultRelInfo == NULL ||
		 (rri->ri_TrigDesc != NULL && rri->ri_TrigDesc->trig_insert_before_row));
}

TupleTableSlot *
topicExecForeignInsert(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	TopicModifyState *state = (TopicModifyState *) rri->ri_FdwState;
	KafkaOutRecord record;

	if (must_check_partition(rri))
		(void) ExecPartitionCheck(rri, slot, estate, true);
	slot_getallattrs(slot);
	row_encode_start(state->encoder, &record);
	row_encode_topic(state->encoder, slot->tts_values, slot->tts_isnull, &record);
	row_encode_key(state->encoder, slot->tts_values, slot->tts_isnull, &record);
	row_encode_value(state->encoder, slot->tts_values, slot->tts_isnull, &record);
	pending_add(state->table, state->userid, &record);
	row_encoder_reset(state->encoder);
	return slot;
}

/*
 * The message behind the row that the plan has found, as a tombstone; it lives until
 * the next row.  false: this statement has changed the row before.
 */
static bool
take_origin(TopicModifyState *state, TupleTableSlot *plan_slot, KafkaOutRecord *record)
{
	MemoryContext old;
	bool		isnull;
	Datum		ctid = ExecGetJunkAttribute(plan_slot, state->row_id_attno, &isnull);
	bool		taken;

	if (isnull || state->row_ids == NULL)
		elog(ERROR, "ctid is NULL");
	MemoryContextReset(state->row_cxt);
	old = MemoryContextSwitchTo(state->row_cxt);
	row_encode_start(state->encoder, record);
	taken = row_ids_take(state->row_ids, (ItemPointer) DatumGetPointer(ctid), record);
	MemoryContextSwitchTo(old);
	return taken;
}

/* Is the row's key, by the columns' own operators, still that of the old message? */
static bool
key_is_same(TopicModifyState *state, const KafkaOutRecord *origin, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(state->row_cxt);
	KafkaRecord record;
	bool		same;

	memset(&record, 0, sizeof(record));
	record.topic = origin->topic;
	record.partition = origin->partition;
	record.key = origin->key;
	record.key_len = origin->key_len;
	change_decode_key(state->key_decoder, &record, state->old_values, state->old_isnull);
	for (int i = 0; i < state->table->nkeys; i++)
		if (slot->tts_isnull[state->table->keys[i] - 1])
		{
			MemoryContextSwitchTo(old);
			return false;
		}
	same = key_compare(state->keys, state->old_values, slot->tts_values) == 0;
	MemoryContextSwitchTo(old);
	return same;
}

/* The row is a new message, of which the old one's metadata says nothing. */
static void
forget_metadata(TopicModifyState *state, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	for (int i = 0; i < state->table->natts; i++)
	{
		const TopicColumn *column = &state->table->columns[i];

		if (OidIsValid(column->type) && column->metadata != META_NONE && column->metadata != META_TOPIC &&
			!bms_is_member(column->attnum - FirstLowInvalidHeapAttributeNumber, state->updated))
			slot->tts_isnull[i] = true;
	}
}

/* The executor moves no row out of a foreign table; nobody would find it there. */
static void
check_stays_in_partition(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot)
{
	if (!rri->ri_RelationDesc->rd_rel->relispartition || ExecPartitionCheck(rri, slot, estate, false))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("cannot move a row of foreign table \"%s\" to another partition",
					RelationGetRelationName(rri->ri_RelationDesc)),
			 errhint("DELETE it, and INSERT it through the partitioned table.")));
}

/*
 * Another key: a tombstone for the old one, unless a row of this statement has it now.  So
 * rows can exchange their keys, in whatever order they come.
 */
static void
move_key(TopicModifyState *state, const KafkaOutRecord *origin, TupleTableSlot *slot)
{
	if (!key_set_has(state->moved_to, state->old_values))
		pending_add(state->table, state->userid, origin);
	key_set_add(state->moved_to, slot->tts_values);
}

TupleTableSlot *
topicExecForeignUpdate(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	TopicModifyState *state = (TopicModifyState *) rri->ri_FdwState;
	KafkaOutRecord origin;
	KafkaOutRecord record;

	if (!take_origin(state, planSlot, &origin))
		return NULL;
	check_stays_in_partition(estate, rri, slot);
	forget_metadata(state, slot);
	if (state->key_may_change && !key_is_same(state, &origin, slot))
	{
		row_encode_start(state->encoder, &record);
		row_encode_same_topic(state->encoder, &origin, &record);
		row_encode_key(state->encoder, slot->tts_values, slot->tts_isnull, &record);
		row_encode_value(state->encoder, slot->tts_values, slot->tts_isnull, &record);
		move_key(state, &origin, slot);
	}
	else
	{
		record = origin;
		row_encode_same_topic(state->encoder, &origin, &record);
		row_encode_value(state->encoder, slot->tts_values, slot->tts_isnull, &record);
	}
	pending_add(state->table, state->userid, &record);
	row_encoder_reset(state->encoder);
	return slot;
}

TupleTableSlot *
topicExecForeignDelete(EState *estate, ResultRelInfo *rri, TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	TopicModifyState *state = (TopicModifyState *) rri->ri_FdwState;
	KafkaOutRecord record;

	if (!take_origin(state, planSlot, &record))
		return NULL;
	pending_add(state->table, state->userid, &record);
	if (rri->ri_projectReturning != NULL && AttributeNumberIsValid(state->whole_row_attno))
	{
		bool		isnull;
		Datum		row = ExecGetJunkAttribute(planSlot, state->whole_row_attno, &isnull);

		if (!isnull)
			ExecStoreHeapTupleDatum(row, slot);
	}
	return slot;
}

/* ------------------------------------------------------------------------
 * TRUNCATE
 * ------------------------------------------------------------------------ */

/* A tombstone for every key that has a row. */
static void
truncate_table(Relation rel)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "truncate topic", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TopicScan  *scan = topic_scan_create(rel, CHANGE_WANT_NOTHING, GetUserId(), false);
	const TopicTable *table = topic_scan_table(scan);
	Datum	   *values = palloc(sizeof(Datum) * Max(table->natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(table->natts, 1));
	KafkaOutRecord record;

	topic_scan_start(scan, NULL, NULL);
	while (topic_scan_next(scan, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		memset(&record, 0, sizeof(record));
		record.timestamp = -1;
		topic_scan_origin(scan, &record);
		pending_add(table, GetUserId(), &record);
	}
	topic_scan_end(scan);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

void
topicExecForeignTruncate(List *rels, DropBehavior behavior, bool restart_seqs)
{
	ListCell   *lc;

	/* all of them first: nothing is written when one refuses */
	foreach(lc, rels)
	{
		TopicTable *table = topic_table_get((Relation) lfirst(lc));

		check_rows_change(table, "TRUNCATE");
		(void) change_encoder_create(table);
		if (!table->updatable || !table->truncatable)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("foreign table \"%s\" does not allow truncates", table->name)));
	}
	foreach(lc, rels)
		truncate_table((Relation) lfirst(lc));
}
