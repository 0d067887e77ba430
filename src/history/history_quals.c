/*
 * history_quals.c
 *	  Which conditions of a query a scan of a history table answers by the index.  Knows
 *	  expressions and operators; what that costs is for history_plan.c.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "history/history_quals.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

static inline Node *
strip_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

bool
history_is_column(Node *node, RelOptInfo *rel, AttrNumber attnum)
{
	Var		   *var = (Var *) strip_relabel(node);

	return var != NULL && IsA(var, Var) && attnum != InvalidAttrNumber &&
		var->varno == rel->relid && var->varattno == attnum && var->varlevelsup == 0;
}

/* Can it be computed before the scan starts? */
static bool
is_value(PlannerInfo *root, RelOptInfo *rel, Node *node)
{
	return !bms_is_member(rel->relid, pull_varnos(root, node)) && !contain_volatile_functions(node);
}

/*
 * The value of a clause "column OP value" or its mirror image; *opno gets the
 * operator as seen from the column.
 */
static Expr *
match_operator(PlannerInfo *root, RelOptInfo *rel, AttrNumber attnum, Expr *clause, Oid *opno)
{
	OpExpr	   *op = (OpExpr *) clause;
	Node	   *left;
	Node	   *right;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return NULL;
	left = linitial(op->args);
	right = lsecond(op->args);
	if (history_is_column(left, rel, attnum) && is_value(root, rel, right))
	{
		*opno = op->opno;
		return (Expr *) right;
	}
	if (history_is_column(right, rel, attnum) && is_value(root, rel, left))
	{
		*opno = get_commutator(op->opno);
		return OidIsValid(*opno) ? (Expr *) left : NULL;
	}
	return NULL;
}

/* key = value, or key = ANY (array) */
static Expr *
match_key(PlannerInfo *root, RelOptInfo *rel, const HistoryKey *key, Expr *clause, Oid *opno,
		  bool *is_array)
{
	Expr	   *value = NULL;
	Oid			collation;

	if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) clause;

		if (op->useOr && history_is_column(linitial(op->args), rel, key->history_attnum) &&
			is_value(root, rel, lsecond(op->args)))
			value = lsecond(op->args);
		*opno = op->opno;
		*is_array = true;
		collation = op->inputcollid;
	}
	else
	{
		value = match_operator(root, rel, key->history_attnum, clause, opno);
		*is_array = false;
		collation = exprInputCollation((Node *) clause);
	}

	if (value == NULL || get_op_opfamily_strategy(*opno, key->opfamily) != BTEqualStrategyNumber ||
		(OidIsValid(key->collation) && key->collation != collation))
		return NULL;
	return value;
}

Expr *
history_match_moment(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Expr *clause)
{
	Oid			opno;
	Expr	   *value = match_operator(root, rel, table->system_time, clause, &opno);

	return value != NULL && opno == OID_RANGE_CONTAINS_ELEM_OP &&
		exprType((Node *) value) == TIMESTAMPTZOID ? value : NULL;
}

Expr *
history_match_range(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Expr *clause)
{
	Oid			opno;
	Expr	   *value = match_operator(root, rel, table->system_time, clause, &opno);

	return value != NULL && opno == OID_RANGE_OVERLAP_OP &&
		exprType((Node *) value) == TSTZRANGEOID ? value : NULL;
}

void
history_quals_classify(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, List *clauses,
		 HistoryQuals *quals)
{
	ListCell   *lc;

	memset(quals, 0, sizeof(HistoryQuals));
	quals->array_key = -1;

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Expr	   *value;

		if (rinfo->pseudoconstant || !restriction_is_securely_promotable(rinfo, rel))
			continue;

		if (quals->moment_clause == NULL &&
			(value = history_match_moment(root, rel, table, rinfo->clause)) != NULL)
		{
			quals->moment_clause = rinfo;
			quals->moment = value;
			continue;
		}
		if (quals->range_clause == NULL &&
			(value = history_match_range(root, rel, table, rinfo->clause)) != NULL)
		{
			quals->range_clause = rinfo;
			quals->range = value;
			continue;
		}
		for (int i = 0; i < table->nkeys; i++)
		{
			Oid			opno = InvalidOid;
			bool		is_array;

			value = match_key(root, rel, &table->keys[i], rinfo->clause, &opno, &is_array);
			if (value == NULL)
				continue;
			if (quals->key_clauses[i] != NULL && (is_array || quals->array_key != i))
				continue;		/* one is enough, a single value is better */
			if (is_array && quals->array_key >= 0)
				continue;
			if (is_array)
				quals->array_key = i;
			else if (quals->array_key == i)
				quals->array_key = -1;
			quals->key_clauses[i] = rinfo;
			quals->key_values[i] = value;
			quals->key_operators[i] = opno;
		}
	}

	while (quals->nprefix < table->nkeys && quals->key_clauses[quals->nprefix] != NULL)
		quals->nprefix++;
	if (quals->array_key >= quals->nprefix)
		quals->array_key = -1;
}

HistoryAccess
history_quals_access(const HistoryTable *table, const HistoryQuals *quals)
{
	if (quals->moment == NULL)
		return HISTORY_VERSIONS;
	return quals->nprefix == table->nkeys ? HISTORY_PROBE : HISTORY_SNAPSHOT;
}

List *
history_quals_exact(const HistoryQuals *quals)
{
	List	   *clauses = NIL;

	for (int i = 0; i < quals->nprefix; i++)
		clauses = lappend(clauses, quals->key_clauses[i]);
	if (quals->moment_clause != NULL)
		clauses = lappend(clauses, quals->moment_clause);
	return clauses;
}
