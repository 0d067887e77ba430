/*
 * topic_plan.c
 *	  Planning scans of topics: sizes, costs, wanted columns, conditions.  Never
 *	  contacts Kafka; what ANALYZE found out is all it knows.
 */
#include "postgres.h"

#include "access/table.h"
#include "changelog/change.h"
#include "compat.h"
#include "fdw/topic_fdw.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/rel.h"

/* A topic that was never analyzed */
#define DEFAULT_MESSAGES		100000.0
#define DEFAULT_PER_KEY			10.0	/* messages */

/* Costs, measured: some ms to begin, 1 to 2 us per message */
#define STARTUP_COST			500.0
#define MESSAGE_COST			0.1

/* baserel->fdw_private */
typedef struct TopicPlanState
{
	TopicTable *table;
	double		messages;		/* that a scan reads */
} TopicPlanState;

/* Do conditions narrow what is read?  See topic_scan_start(). */
static bool
conditions_narrow(const TopicTable *table)
{
	/* which message wins depends on all the messages of the key */
	return !table->upsert;
}

/*
 * Bad messages are passed by in internal subtransactions, which older servers refuse
 * while a query runs with parallel workers, and no plan node can say so of
 * itself.  What is planned from here on is told by parallelModeOK; relations that
 * were looked at before, on this level and those above, have no partial paths
 * joined yet and lose theirs.
 */
static void
forbid_parallel_workers(PlannerInfo *root)
{
	root->glob->parallelModeOK = false;
	for (PlannerInfo *level = root; level != NULL; level = level->parent_root)
	{
		for (int i = 1; level->simple_rel_array != NULL && i < level->simple_rel_array_size; i++)
		{
			RelOptInfo *rel = level->simple_rel_array[i];

			if (rel == NULL)
				continue;
			rel->consider_parallel = false;
			rel->partial_pathlist = NIL;
		}
	}
}

static bool
needs_subtransactions(const TopicTable *table)
{
	return topic_table_skips(table) && !SUBTRANSACTION_IN_PARALLEL_MODE_compat;
}

static double
conditions_selectivity(PlannerInfo *root, RelOptInfo *baserel, const TopicTable *table)
{
	List	   *exprs = NIL;
	List	   *used;
	List	   *clauses = NIL;
	ListCell   *lc;

	if (!conditions_narrow(table))
		return 1.0;
	topic_conditions_build(root, baserel, table, baserel->baserestrictinfo, &exprs, &used);
	foreach(lc, used)
		clauses = lappend(clauses, list_nth(baserel->baserestrictinfo, lfirst_int(lc)));
	return clauselist_selectivity(root, clauses, baserel->relid, JOIN_INNER, NULL);
}

void
topicGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid)
{
	TopicPlanState *state = palloc0(sizeof(TopicPlanState));
	Relation	rel = table_open(foreigntableid, NoLock);

	state->table = topic_table_get(rel);
	table_close(rel, NoLock);
	if (needs_subtransactions(state->table))
		forbid_parallel_workers(root);

	state->messages = DEFAULT_MESSAGES;
	if (baserel->tuples >= 0)	/* analyzed */
		state->messages = (double) baserel->pages * TOPIC_MESSAGES_PER_PAGE;
	else
		baserel->tuples = state->table->upsert && !state->table->changelog ?
			DEFAULT_MESSAGES / DEFAULT_PER_KEY : DEFAULT_MESSAGES;
	state->messages *= conditions_selectivity(root, baserel, state->table);
	baserel->fdw_private = state;
	set_baserel_size_estimates(root, baserel);
}

void
topicGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid)
{
	TopicPlanState *state = (TopicPlanState *) baserel->fdw_private;
	Cost		read_cost = state->messages * MESSAGE_COST;
	Cost		row_cost = cpu_tuple_cost + baserel->baserestrictcost.per_tuple +
		baserel->reltarget->cost.per_tuple;
	double		rows_made = state->table->upsert ? Max(baserel->tuples, 1.0) : state->messages;
	Cost		startup = STARTUP_COST + baserel->baserestrictcost.startup + baserel->reltarget->cost.startup;
	Cost		total = startup + read_cost + rows_made * row_cost;

	/* the first row of an upsert topic needs the whole of it */
	if (state->table->upsert)
		startup += read_cost;
	add_path(baserel, (Path *)
			 create_foreignscan_path_compat(root, baserel, NULL, baserel->rows, startup, total,
											NIL, baserel->lateral_relids, NULL, NIL));
}

/*
 * Columns that query and conditions look at, as an IntList (members of a
 * Bitmapset, which a plan could not carry before PostgreSQL 16); NIL: all of them.
 */
static List *
wanted_columns(RelOptInfo *baserel)
{
	Bitmapset  *wanted = NULL;
	List	   *list = NIL;
	ListCell   *lc;
	int			member = -1;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &wanted);
	foreach(lc, baserel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, baserel->relid, &wanted);
	if (bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, wanted))
		return NIL;
	/* "none" must differ from "all" */
	wanted = bms_add_members(wanted, CHANGE_WANT_NOTHING);
	while ((member = bms_next_member(wanted, member)) >= 0)
		list = lappend_int(list, member);
	return list;
}

ForeignScan *
topicGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid,
					ForeignPath *best_path, List *tlist, List *scan_clauses, Plan *outer_plan)
{
	TopicPlanState *state = (TopicPlanState *) baserel->fdw_private;
	List	   *exprs = NIL;
	List	   *conditions = NIL;
	List	   *used = NIL;

	/* subqueries that were planned before have their Gather nodes: these then run alone */
	if (needs_subtransactions(state->table))
		root->glob->parallelModeNeeded = false;

	scan_clauses = extract_actual_clauses(scan_clauses, false);
	if (conditions_narrow(state->table))
		conditions = topic_conditions_build(root, baserel, state->table, scan_clauses, &exprs, &used);
	else
		conditions = topic_keys_build(root, baserel, state->table, scan_clauses, &exprs, &used);
	return make_foreignscan(tlist, scan_clauses, baserel->relid, exprs,
							list_make3(wanted_columns(baserel), conditions, used),
							NIL, NIL, outer_plan);
}
