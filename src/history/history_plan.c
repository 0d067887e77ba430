/*
 * history_plan.c
 *	  Planning of history tables: paths, what they cost, how many rows come of them.
 *
 * Owns the choice of paths; which conditions the index answers is history_quals.c's.
 * Must not know how versions are read (version_reader.c) or where statistics come from
 * (history_stats.c).
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "history/history_quals.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* Outer relations' combinations that are tried as parameters, at most. */
#define MAX_PARAMETERIZATIONS	32

/* === how many rows ========================================================= */

static double
fraction_until(PlannerInfo *root, const HistoryTable *table, Expr *moment)
{
	Node	   *value = estimate_expression_value(root, (Node *) moment);

	if (!IsA(value, Const))
		return 1.0;
	if (((Const *) value)->constisnull)
		return 0;
	return history_fraction_until(table, DatumGetInt64(((Const *) value)->constvalue));
}

/* Fraction of all versions that overlap a range: those that start in it, and one of each key. */
static double
fraction_in_range(PlannerInfo *root, const HistoryTable *table, const HistoryStats *stats, Expr *range)
{
	Node	   *value = estimate_expression_value(root, (Node *) range);
	double		started = 0.1;	/* unknown: a tenth of the time */

	if (IsA(value, Const))
	{
		RangeBound	lower;
		RangeBound	upper;
		bool		empty;

		if (((Const *) value)->constisnull)
			return 0;
		range_deserialize(lookup_type_cache(TSTZRANGEOID, TYPECACHE_RANGE_INFO),
						  DatumGetRangeTypeP(((Const *) value)->constvalue), &lower, &upper, &empty);
		if (empty)
			return 0;
		started = upper.infinite ? 1.0 : history_fraction_until(table, DatumGetInt64(upper.val));
		if (!lower.infinite)
			started -= history_fraction_until(table, DatumGetInt64(lower.val));
	}
	return Min(1.0, started + stats->keys / stats->versions);
}

/* Keys that a whole-key condition names. */
static double
key_count(PlannerInfo *root, const HistoryQuals *quals)
{
	if (quals->array_key < 0)
		return 1;
	return Max(1, estimate_array_length_compat(root, (Node *) quals->key_values[quals->array_key]));
}

/*
 * Rows that satisfy all clauses.  *scanned gets those that come out of the scan
 * before the clauses that it doesn't answer.
 */
static double
estimate_rows(PlannerInfo *root, RelOptInfo *rel, HistoryRel *history, List *clauses,
			  const HistoryQuals *quals, double *scanned)
{
	const HistoryStats *stats = &history->stats;
	List	   *keys = NIL;
	List	   *rest;
	double		rows;

	for (int i = 0; i < quals->nprefix; i++)
		keys = lappend(keys, quals->key_clauses[i]);
	rest = list_difference_ptr(clauses, history_quals_exact(quals));

	if (quals->moment != NULL)
	{
		/* a key has a row unless all of its versions start later, or it is deleted */
		double		until = fraction_until(root, history->table, quals->moment);
		double		versions_per_key = stats->versions / stats->keys;
		double		found = stats->visible * (1 - pow(1 - until, versions_per_key));

		if (quals->nprefix == history->table->nkeys)
			rows = found * key_count(root, quals);
		else
			rows = found * stats->keys *
				clauselist_selectivity(root, keys, rel->relid, JOIN_INNER, NULL);
	}
	else
	{
		rows = stats->versions * stats->visible *
			clauselist_selectivity(root, keys, rel->relid, JOIN_INNER, NULL);
		if (quals->nprefix == history->table->nkeys)
			rows *= stats->keys_product / stats->keys;
		rows = Min(rows, stats->versions * stats->visible);
	}

	*scanned = clamp_row_est(rows);

	if (quals->range_clause != NULL)
	{
		rest = list_delete_ptr(rest, quals->range_clause);
		rows *= fraction_in_range(root, history->table, stats, quals->range);
		if (quals->nprefix == history->table->nkeys)
			*scanned = clamp_row_est(rows);
	}
	return clamp_row_est(rows * clauselist_selectivity(root, rest, rel->relid, JOIN_INNER, NULL));
}

/* === what it costs ========================================================= */

/*
 * A pass compares each row with the next one and makes a range of the two; measured, it
 * costs a quarter of a whole probe with its descent, which the planner takes for
 * some 170 operators.
 */
#define PASS_ROW_OPERATORS	40

static void
estimate_cost(PlannerInfo *root, RelOptInfo *rel, HistoryRel *history, List *clauses,
			  const HistoryQuals *quals, double scanned, double rows, double loops,
			  Cost *startup, Cost *total)
{
	const HistoryStats *stats = &history->stats;
	double		per_key = stats->versions / stats->keys;
	double		descent = (ceil(log2(stats->versions + 1)) + 3 * 50) * cpu_operator_cost;
	double		descents = key_count(root, quals);
	double		entries;		/* index entries looked at */
	double		fetched;		/* rows of the heap */
	double		heap_pages;
	double		index_pages;
	double		fraction;
	Cost		row_cost = 0;
	QualCost	qual_cost;

	switch (history_quals_access(history->table, quals))
	{
		case HISTORY_PROBE:
			fetched = entries = descents;
			break;
		case HISTORY_SNAPSHOT:
			fetched = scanned / stats->visible;
			/* long keys are skipped: some steps and two descents for each */
			entries = fetched * Min(per_key, 100);
			if (per_key > 100)
				descents += 2 * fetched;
			break;
		default:
			fetched = entries = scanned / stats->visible;
			row_cost = PASS_ROW_OPERATORS * cpu_operator_cost;
			break;
	}

	index_pages = ceil(stats->index_pages * Min(1.0, entries / stats->versions));
	index_pages = index_pages_fetched(index_pages * loops, (BlockNumber) stats->index_pages, stats->index_pages, root) / loops;
	heap_pages = index_pages_fetched(fetched * loops, (BlockNumber) stats->pages, stats->index_pages, root) / loops;
	fraction = Min(1.0, fetched / stats->versions);
	if (loops <= 1 && history_quals_access(history->table, quals) != HISTORY_PROBE)
	{
		/* rows lie together as far as the heap is ordered by key */
		double		squared = stats->correlation * stats->correlation;
		double		together = ceil(stats->pages * fraction);

		heap_pages = squared * Min(together, heap_pages) + (1 - squared) * heap_pages;
	}

	cost_qual_eval(&qual_cost, list_difference_ptr(clauses, history_quals_exact(quals)), root);
	*startup = descent + qual_cost.startup + rel->reltarget->cost.startup;
	*total = *startup +
		(descents - 1) * descent +
		(index_pages + heap_pages) * random_page_cost +
		entries * cpu_index_tuple_cost +
		fetched * (cpu_tuple_cost + row_cost) +
		scanned * qual_cost.per_tuple +
		rows * rel->reltarget->cost.per_tuple;
}

/* How often a path with these parameters will be run, at least. */
static double
loop_count(PlannerInfo *root, Relids outer)
{
	double		loops = 0;
	int			relid = -1;

	while ((relid = bms_next_member(outer, relid)) >= 0)
	{
		RelOptInfo *rel;

		if (relid >= root->simple_rel_array_size)
			continue;
		rel = root->simple_rel_array[relid];
		if (rel == NULL || rel->rows <= 0)
			continue;
		if (loops == 0 || rel->rows < loops)
			loops = rel->rows;
	}
	return Max(loops, 1);
}

/* === the planner's calls =================================================== */

/* Widths of the versions' columns, which set_rel_width() could not know. */
static void
set_widths(RelOptInfo *rel, const HistoryTable *table)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Var		   *var = lfirst(lc);
		HeapTuple	tuple;
		int32	   *width;
		int32		stawidth = 0;

		if (!IsA(var, Var) || var->varno != rel->relid || var->varattno <= 0 ||
			var->varattno > table->natts)
			continue;
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table->versions),
								Int16GetDatum(table->versions_attnums[var->varattno - 1]),
								BoolGetDatum(false));
		if (HeapTupleIsValid(tuple))
		{
			stawidth = ((Form_pg_statistic) GETSTRUCT(tuple))->stawidth;
			ReleaseSysCache(tuple);
		}
		width = &rel->attr_widths[var->varattno - rel->min_attr];
		if (stawidth > 0 && *width > 0)
		{
			rel->reltarget->width += stawidth - *width;
			*width = stawidth;
		}
	}
}

void
historyGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	HistoryRel *history = palloc0(sizeof(HistoryRel));
	HistoryQuals quals;
	double		scanned;
	ListCell   *lc;

	history->table = history_table_get(relid, false);
	history_stats_get(history->table, &history->stats);
	baserel->fdw_private = history;
	baserel->tuples = history->stats.versions;
	baserel->pages = (BlockNumber) history->stats.pages;

	/* a cached plan must not outlive changes of what it reads */
	root->glob->relationOids = lappend_oid(root->glob->relationOids, history->table->versions);
	root->glob->relationOids = lappend_oid(root->glob->relationOids, history->table->index);

	history_quals_classify(root, baserel, history->table, baserel->baserestrictinfo, &quals);
	history->as_of = quals.moment != NULL;
	foreach(lc, baserel->joininfo)
	{
		if (history_match_moment(root, baserel, history->table, lfirst_node(RestrictInfo, lc)->clause) != NULL)
			history->as_of = true;
	}

	set_widths(baserel, history->table);
	baserel->rows = estimate_rows(root, baserel, history, baserel->baserestrictinfo, &quals, &scanned);
}

static void
add_history_path(PlannerInfo *root, RelOptInfo *rel, Relids required_outer)
{
	HistoryRel *history = rel->fdw_private;
	ParamPathInfo *param_info = NULL;
	List	   *clauses = rel->baserestrictinfo;
	HistoryQuals quals;
	double		scanned;
	double		rows;
	Cost		startup;
	Cost		total;

	if (!bms_is_empty(required_outer))
	{
		param_info = get_baserel_parampathinfo(root, rel, required_outer);
		clauses = list_concat_copy(clauses, param_info->ppi_clauses);
	}
	history_quals_classify(root, rel, history->table, clauses, &quals);
	rows = estimate_rows(root, rel, history, clauses, &quals, &scanned);
	if (param_info != NULL)
	{
		rows = Min(rows, rel->rows);
		param_info->ppi_rows = rows;
	}
	estimate_cost(root, rel, history, clauses, &quals, scanned, rows,
				  loop_count(root, required_outer), &startup, &total);

	add_path(rel, (Path *)
			 create_foreignscan_path_compat(root, rel, NULL, rows, startup, total, NIL,
											required_outer, NULL, NIL));
}

static bool
ec_member_is_key(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, EquivalenceMember *em,
				 void *arg)
{
	return history_is_column((Node *) em->em_expr, rel, *(AttrNumber *) arg);
}

static bool
has_relids(List *sets, Relids set)
{
	ListCell   *lc;

	foreach(lc, sets)
	{
		if (bms_equal(lfirst(lc), set))
			return true;
	}
	return false;
}

/* Remember the relations that a clause needs, and their unions with earlier ones. */
static List *
add_parameterization(List *outers, RelOptInfo *rel, Relids clause_relids)
{
	List	   *added;
	ListCell   *lc;
	Relids		outer = bms_union(clause_relids, rel->lateral_relids);

	outer = bms_del_member(outer, rel->relid);
	if (bms_is_empty(outer) || has_relids(outers, outer))
		return outers;
	added = list_make1(outer);
	foreach(lc, outers)
	{
		Relids		both = bms_union(outer, lfirst(lc));

		if (list_length(outers) + list_length(added) < MAX_PARAMETERIZATIONS &&
			!has_relids(outers, both) && !has_relids(added, both))
			added = lappend(added, both);
	}
	return list_concat(outers, added);
}

/*
 * Selectivities of join clauses are kept in the clauses, where the planner looks
 * before it guesses (and where orclauses.c leaves its corrections, too).
 */
static void
set_selectivity(RestrictInfo *rinfo, double selectivity)
{
	rinfo->norm_selec = Min(selectivity, 1.0);
	rinfo->outer_selec = rinfo->norm_selec;
}

/*
 * The planner's guess for range @> element as a join clause is a thousandth.
 * Here it is one version out of a key's.  The same for range && range, so that
 * it agrees with estimate_rows().
 */
static void
set_time_selectivity(PlannerInfo *root, RelOptInfo *rel, HistoryRel *history, bool have_moment)
{
	const HistoryStats *stats = &history->stats;
	ListCell   *lc;

	foreach(lc, rel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Expr	   *range;

		if (history_match_moment(root, rel, history->table, rinfo->clause) != NULL)
			set_selectivity(rinfo, have_moment ? 1.0 : stats->keys / stats->versions);
		else if ((range = history_match_range(root, rel, history->table, rinfo->clause)) != NULL)
			set_selectivity(rinfo, fraction_in_range(root, history->table, stats, range));
	}
}

/*
 * Join clauses that compare all columns of the key: the planner multiplies
 * their selectivities as if the columns had nothing to do with each other.
 * Spread what is too much over the clauses.
 */
static void
set_key_selectivity(PlannerInfo *root, RelOptInfo *rel, HistoryRel *history, Index other,
					List *clauses)
{
	HistoryQuals quals;
	SpecialJoinInfo sjinfo;
	double		excess = history->stats.keys_product / history->stats.keys;

	history_quals_classify(root, rel, history->table, list_concat_copy(rel->baserestrictinfo, clauses), &quals);
	if (quals.nprefix < history->table->nkeys || excess <= 1.0)
		return;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = sjinfo.syn_lefthand = bms_make_singleton(other);
	sjinfo.min_righthand = sjinfo.syn_righthand = rel->relids;
	sjinfo.jointype = JOIN_INNER;

	for (int i = 0; i < history->table->nkeys; i++)
	{
		RestrictInfo *rinfo = quals.key_clauses[i];
		double		selectivity;
		double		corrected;

		if (!list_member_ptr(clauses, rinfo))
			continue;			/* a condition on this relation alone */
		rinfo->norm_selec = -1;	/* not what an earlier round left */
		selectivity = clause_selectivity(root, (Node *) rinfo, 0, JOIN_INNER, &sjinfo);
		if (selectivity <= 0)
			continue;
		corrected = Min(1.0, selectivity * excess);
		excess /= corrected / selectivity;
		set_selectivity(rinfo, corrected);
	}
}

/* The same for each relation that the key may be joined with. */
static void
set_key_selectivities(PlannerInfo *root, RelOptInfo *rel, HistoryRel *history, List *outers)
{
	Relids		others = NULL;
	ListCell   *lc;
	int			other = -1;

	foreach(lc, outers)
		others = bms_add_members(others, lfirst(lc));

	while ((other = bms_next_member(others, other)) > 0)
	{
		RelOptInfo *other_rel;
		Relids		join_relids;
		List	   *join_clauses = NIL;

		if (other >= root->simple_rel_array_size ||
			(other_rel = root->simple_rel_array[other]) == NULL)
			continue;
		join_relids = bms_union(rel->relids, other_rel->relids);
		foreach(lc, rel->joininfo)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

			if (bms_is_subset(rinfo->clause_relids, join_relids))
				join_clauses = lappend(join_clauses, rinfo);
		}

		/* equivalence classes make different clauses for either order of the join */
		set_key_selectivity(root, rel, history, other,
							list_concat_copy(join_clauses,
											 generate_join_implied_equalities_compat(root, join_relids,
																					 other_rel->relids, rel)));
		set_key_selectivity(root, rel, history, other,
							list_concat_copy(join_clauses,
											 generate_join_implied_equalities_compat(root, join_relids,
																					 rel->relids, other_rel)));
	}
}

void
historyGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	HistoryRel *history = baserel->fdw_private;
	HistoryTable *table = history->table;
	HistoryQuals quals;
	List	   *outers = NIL;
	ListCell   *lc;

	add_history_path(root, baserel, baserel->lateral_relids);

	/* join clauses that the index answers */
	foreach(lc, baserel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		bool		useful;

		history_quals_classify(root, baserel, table, list_make1(rinfo), &quals);
		useful = quals.moment != NULL || quals.range != NULL;
		for (int i = 0; i < table->nkeys; i++)
			useful = useful || quals.key_clauses[i] != NULL;
		if (useful && join_clause_is_movable_to(rinfo, baserel))
			outers = add_parameterization(outers, baserel, rinfo->clause_relids);
	}

	/* and equalities that the planner keeps as equivalence classes */
	for (int i = 0; i < table->nkeys; i++)
	{
		List	   *implied = NIL;

		if (baserel->has_eclass_joins && table->keys[i].history_attnum != InvalidAttrNumber)
			implied = generate_implied_equalities_for_column(root, baserel, ec_member_is_key,
															 &table->keys[i].history_attnum,
															 baserel->lateral_referencers);
		foreach(lc, implied)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

			if (join_clause_is_movable_to(rinfo, baserel))
				outers = add_parameterization(outers, baserel, rinfo->clause_relids);
		}
	}

	history_quals_classify(root, baserel, table, baserel->baserestrictinfo, &quals);
	set_time_selectivity(root, baserel, history, quals.moment != NULL);
	if (table->nkeys > 1)
		set_key_selectivities(root, baserel, history, outers);

	foreach(lc, outers)
		add_history_path(root, baserel, lfirst(lc));
}

static bool
mentions_system_time(Node *node, RelOptInfo *rel, const HistoryTable *table)
{
	Bitmapset  *attrs = NULL;

	pull_varattnos(node, rel->relid, &attrs);
	return bms_is_member(table->system_time - FirstLowInvalidHeapAttributeNumber, attrs);
}

/*
 * Is system_time, which the planner has put into the scan's target list, there only
 * for the clause system_time @> moment that this scan answers itself?  Then
 * nobody will look at it, and the second probe for the version's end is saved.
 */
static bool
system_time_is_idle(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Relids outer,
					const HistoryQuals *quals)
{
	Relids		pushed_in;
	ListCell   *lc;

	if (table->system_time == InvalidAttrNumber)
		return true;
	if (rel->reloptkind != RELOPT_BASEREL)
		return false;			/* a member of an append relation has no attr_needed */

	/* needed by joins with other relations, or above all joins (relation 0)? */
	pushed_in = bms_add_member(bms_copy(outer), rel->relid);
	if (!bms_is_subset(rel->attr_needed[table->system_time - rel->min_attr], pushed_in))
		return false;

	/* by other expressions over the same relations? */
	foreach(lc, rel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo != quals->moment_clause && mentions_system_time((Node *) rinfo->clause, rel, table))
			return false;
	}
	foreach(lc, root->eq_classes)
	{
		ListCell   *lc2;

		foreach(lc2, ((EquivalenceClass *) lfirst(lc))->ec_members)
		{
			EquivalenceMember *member = lfirst(lc2);

			if (mentions_system_time((Node *) member->em_expr, rel, table))
				return false;
		}
	}
	foreach(lc, root->placeholder_list)
	{
		if (mentions_system_time((Node *) lfirst_node(PlaceHolderInfo, lc)->ph_var->phexpr, rel, table))
			return false;
	}
	return true;
}

/* attnums of the history table's columns that somebody looks at */
static List *
wanted_columns(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Relids outer,
			   const HistoryQuals *quals, List *local_exprs)
{
	Bitmapset  *attrs = NULL;
	Bitmapset  *local_attrs = NULL;
	List	   *columns = NIL;
	bool		all;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &attrs);
	pull_varattnos((Node *) local_exprs, rel->relid, &local_attrs);
	all = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, attrs) ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, local_attrs);
	if (!all && system_time_is_idle(root, rel, table, outer, quals))
		attrs = bms_del_member(attrs, table->system_time - FirstLowInvalidHeapAttributeNumber);
	attrs = bms_join(attrs, local_attrs);

	for (AttrNumber attnum = 1; attnum <= table->natts; attnum++)
	{
		if (all || bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, attrs))
			columns = lappend_int(columns, attnum);
	}
	return columns;
}

/* Bare clauses with our column on the left, as index conditions read. */
static List *
column_first(PlannerInfo *root, RelOptInfo *rel, List *rinfos)
{
	List	   *clauses = NIL;
	ListCell   *lc;

	foreach(lc, extract_actual_clauses(rinfos, false))
	{
		OpExpr	   *op = copyObject(lfirst(lc));

		if (IsA(op, OpExpr) && !bms_is_member(rel->relid, pull_varnos(root, linitial(op->args))))
			CommuteOpExpr(op);
		clauses = lappend(clauses, op);
	}
	return clauses;
}

ForeignScan *
historyGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid relid, ForeignPath *best_path,
					  List *tlist, List *scan_clauses, Plan *outer_plan)
{
	HistoryRel *history = baserel->fdw_private;
	HistoryTable *table = history->table;
	HistoryQuals quals;
	List	   *exact;
	List	   *local_exprs;
	List	   *recheck_exprs;
	List	   *values = NIL;
	List	   *index = list_make1_oid(table->index);

	history_quals_classify(root, baserel, table, scan_clauses, &quals);
	exact = history_quals_exact(&quals);
	recheck_exprs = column_first(root, baserel, exact);
	local_exprs = extract_actual_clauses(list_difference_ptr(scan_clauses, exact), false);

	for (int i = 0; i < quals.nprefix; i++)
	{
		values = lappend(values, quals.key_values[i]);
		index = lappend_oid(index, quals.key_operators[i]);
	}
	if (quals.moment != NULL)
		values = lappend(values, quals.moment);
	if (quals.range != NULL)
		values = lappend(values, quals.range);

	return make_foreignscan(tlist, local_exprs, baserel->relid, values,
							list_make5(makeInteger(history_quals_access(table, &quals)),
									   index,
									   makeInteger(quals.array_key),
									   list_make2_int(quals.moment != NULL, quals.range != NULL),
									   wanted_columns(root, baserel, table, PATH_REQ_OUTER(&best_path->path),
												  &quals, local_exprs)),
							NIL, recheck_exprs, outer_plan);
}
