/*
 * history_explain.c
 *	  What EXPLAIN shows of a scan of a history table.
 *
 * Owns the words of it.  Must not know how versions are read.
 */
#include "postgres.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "history/history.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

static bool find_ancestors(Plan *plan, Plan *wanted, List **ancestors);

static bool
find_ancestors_in_list(List *plans, Plan *wanted, List **ancestors)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (find_ancestors(lfirst(lc), wanted, ancestors))
			return true;
	}
	return false;
}

/*
 * The nodes above 'wanted', nearest first.  EXPLAIN doesn't tell a foreign-data
 * wrapper, but without them a nested loop's parameters would show as $0, $1.
 */
static bool
find_ancestors(Plan *plan, Plan *wanted, List **ancestors)
{
	bool		found;

	if (plan == NULL)
		return false;
	if (plan == wanted)
		return true;

	found = find_ancestors(plan->lefttree, wanted, ancestors) ||
		find_ancestors(plan->righttree, wanted, ancestors);
	if (!found && IsA(plan, Append))
		found = find_ancestors_in_list(((Append *) plan)->appendplans, wanted, ancestors);
	if (!found && IsA(plan, MergeAppend))
		found = find_ancestors_in_list(((MergeAppend *) plan)->mergeplans, wanted, ancestors);
	if (!found && IsA(plan, SubqueryScan))
		found = find_ancestors(((SubqueryScan *) plan)->subplan, wanted, ancestors);
	if (found)
		*ancestors = lappend(*ancestors, plan);
	return found;
}

static const char *
access_name(HistoryAccess access, int nkeys)
{
	switch (access)
	{
		case HISTORY_PROBE:
			return "As Of, One Probe per Key";
		case HISTORY_SNAPSHOT:
			return "As Of, Key by Key";
		case HISTORY_VERSIONS:
			return nkeys > 0 ? "Versions of Key" : "All Versions";
	}
	return NULL;
}

static void
explain_condition(ForeignScanState *node, ExplainState *es)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	List	   *quals = plan->fdw_recheck_quals;
	List	   *ancestors = NIL;
	List	   *context;
	bool		useprefix = list_length(es->rtable) > 1 || es->verbose;

	if (quals == NIL)
		return;
	if (!find_ancestors(es->pstmt->planTree, &plan->scan.plan, &ancestors))
		find_ancestors_in_list(es->pstmt->subplans, &plan->scan.plan, &ancestors);
	context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	ExplainPropertyText("Index Cond",
						deparse_expression((Node *) make_ands_explicit(quals), context, useprefix, false),
						es);
}

void
historyExplainForeignScan(ForeignScanState *node, ExplainState *es)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	List	   *index = list_nth(plan->fdw_private, HISTORY_PRIVATE_INDEX);

	ExplainPropertyText("Access",
						access_name(intVal(list_nth(plan->fdw_private, HISTORY_PRIVATE_ACCESS)),
									list_length(index) - 1), es);
	explain_condition(node, es);
	if (es->verbose)
		ExplainPropertyText("Versions Index", get_rel_name(linitial_oid(index)), es);
	if (es->analyze && node->fdw_state != NULL)
	{
		int64		probes;
		int64		rows;

		history_scan_counts(node, &probes, &rows);
		ExplainPropertyInteger("Index Probes", NULL, probes, es);
		ExplainPropertyInteger("Versions Read", NULL, rows, es);
	}
}
