/*
 * topic_keys.c
 *	  Conditions on the key of an upsert table: who asks for one key need not keep
 *	  the state of all others.  Knows expressions and operators, no messages.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "executor/executor.h"
#include "fdw/topic_keys.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* Members of a condition, an IntList */
#define KEY_INDEX		0		/* among the key columns */
#define KEY_EXPR		1		/* index of the value's expression */
#define KEY_CMP			2		/* comparison function */
#define KEY_COLLATION	3
#define KEY_VALUE_TYPE	4

static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		return true;
	return expression_tree_walker(node, has_exec_param, context);
}

/*
 * The same for the whole execution?  A value that changes would make every rescan
 * read the topic again, where otherwise the state is kept.
 */
static bool
is_fixed(PlannerInfo *root, Node *node)
{
	return bms_is_empty(pull_varnos(root, node)) && !contain_volatile_functions(node) &&
		!contain_subplans(node) && !has_exec_param(node, NULL);
}

/* Index of the key column that this is, -1 if it is none. */
static int
key_index(RelOptInfo *rel, const TopicTable *table, Node *node, Var **var)
{
	if (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	if (!IsA(node, Var))
		return -1;
	*var = (Var *) node;
	if ((*var)->varno != rel->relid || (*var)->varlevelsup != 0)
		return -1;
	for (int i = 0; i < table->nkeys; i++)
		if (table->keys[i] == (*var)->varattno)
			return i;
	return -1;
}

static List *
build_condition(PlannerInfo *root, RelOptInfo *rel, const TopicTable *table, Node *clause, List **exprs)
{
	OpExpr	   *expr = (OpExpr *) clause;
	Node	   *value;
	Var		   *var;
	Oid			family;
	Oid			lefttype;
	Oid			righttype;
	Oid			cmp;
	int			strategy;
	int			key;
	List	   *condition;

	if (!IsA(clause, OpExpr) || list_length(expr->args) != 2)
		return NIL;
	value = lsecond(expr->args);
	key = key_index(rel, table, linitial(expr->args), &var);
	if (key < 0)
	{
		value = linitial(expr->args);
		key = key_index(rel, table, lsecond(expr->args), &var);
	}
	if (key < 0 || expr->inputcollid != var->varcollid || !is_fixed(root, value))
		return NIL;
	family = lookup_type_cache(var->vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	if (!OidIsValid(family) || !op_in_opfamily(expr->opno, family))
		return NIL;
	get_op_opfamily_properties(expr->opno, family, false, &strategy, &lefttype, &righttype);
	if (strategy != BTEqualStrategyNumber)
		return NIL;
	if (value == linitial(expr->args))
	{
		Oid			swap = lefttype;

		lefttype = righttype;
		righttype = swap;
	}
	cmp = get_opfamily_proc(family, lefttype, righttype, BTORDER_PROC);
	if (!OidIsValid(cmp))
		return NIL;

	condition = list_make3_int(key, list_length(*exprs), (int) cmp);
	condition = lappend_int(condition, (int) var->varcollid);
	condition = lappend_int(condition, (int) exprType(value));
	*exprs = lappend(*exprs, value);
	return condition;
}

List *
topic_keys_build(PlannerInfo *root, RelOptInfo *rel, const TopicTable *table,
				 List *clauses, List **exprs, List **used)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	*used = NIL;
	foreach(lc, clauses)
	{
		List	   *condition = build_condition(root, rel, table, (Node *) lfirst(lc), exprs);

		if (condition == NIL)
			continue;
		conditions = lappend(conditions, condition);
		*used = lappend_int(*used, foreach_current_index(lc));
	}
	return conditions;
}

KeyFilter *
topic_keys_evaluate(List *conditions, List *expr_states, ExprContext *econtext)
{
	KeyFilter  *filter;
	ListCell   *lc;

	if (conditions == NIL)
		return NULL;
	filter = palloc0(sizeof(KeyFilter));
	filter->columns = palloc0(sizeof(KeyFilterColumn) * list_length(conditions));
	foreach(lc, conditions)
	{
		List	   *condition = (List *) lfirst(lc);
		ExprState  *state = (ExprState *) list_nth(expr_states, list_nth_int(condition, KEY_EXPR));
		KeyFilterColumn *column = &filter->columns[filter->n++];
		int16		len;
		bool		byval;
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(state, econtext, &isnull);

		if (isnull)
		{
			filter->nothing = true;
			return filter;
		}
		get_typlenbyval((Oid) list_nth_int(condition, KEY_VALUE_TYPE), &len, &byval);
		column->key = list_nth_int(condition, KEY_INDEX);
		column->collation = (Oid) list_nth_int(condition, KEY_COLLATION);
		column->value = datumCopy(value, byval, len);
		fmgr_info((Oid) list_nth_int(condition, KEY_CMP), &column->cmp);
	}
	return filter;
}
