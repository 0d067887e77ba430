/*
 * topic_quals.c
 *	  Which part of a topic a query's conditions ask for.  Knows expressions and
 *	  metadata columns; which partitions and offsets exist is the reader's matter.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fdw/topic_quals.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* Above this a set is replaced by a coarser one. */
#define MAX_BOXES		20000

/* Beside the btree strategies */
#define NOT_EQUAL		(BTMaxStrategyNumber + 1)

/*
 * Tree nodes.  An inner node is a List: Integer COND_AND or COND_OR, then the children.
 * A leaf is an IntList: kind of column, strategy, index of the value's
 * expression, type of the value (of the element, if it is an array), form.
 */
#define COND_AND		1
#define COND_OR			2

typedef enum LeafForm
{
	LEAF_SCALAR,
	LEAF_ANY,					/* true for one element of the array */
	LEAF_ALL					/* true for all of them */
} LeafForm;

typedef struct BuildContext
{
	PlannerInfo *root;
	RelOptInfo *rel;
	const TopicTable *table;
	List	   *exprs;
} BuildContext;

static List *build(BuildContext *context, Node *node);

/* Metadata kind of a column that conditions narrow, or META_NONE. */
static MetadataKind
column_kind(BuildContext *context, Node *node)
{
	Var		   *var = (Var *) node;
	MetadataKind kind;

	if (!IsA(node, Var) || var->varno != context->rel->relid || var->varlevelsup != 0 ||
		var->varattno <= 0)
		return META_NONE;
	kind = context->table->columns[var->varattno - 1].metadata;
	switch (kind)
	{
		case META_PARTITION:
		case META_OFFSET:
			if (var->vartype == INT2OID || var->vartype == INT4OID || var->vartype == INT8OID)
				return kind;
			break;
		case META_TIMESTAMP:
			if (var->vartype == TIMESTAMPTZOID)
				return kind;
			break;
		case META_TOPIC:
			/* over one plain topic there is nothing to narrow */
			if (var->vartype == TEXTOID && !topic_table_is_plain(context->table))
				return kind;
			break;
		default:
			break;
	}
	return META_NONE;
}

/* Can it be computed before the scan starts? */
static bool
is_value(BuildContext *context, Node *node)
{
	return !bms_is_member(context->rel->relid, pull_varnos(context->root, node)) &&
		!contain_volatile_functions(node) && !contain_subplans(node);
}

static bool
type_is_understood(MetadataKind kind, Oid type)
{
	if (kind == META_TIMESTAMP)
		return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
	if (kind == META_TOPIC)
		return type == TEXTOID;
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Strategy of an operator on the column's type, 0 if it is none of ours. */
static int
operator_strategy(Oid opno, Oid vartype, Oid *lefttype, Oid *righttype)
{
	Oid			family = lookup_type_cache(vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	int			strategy;

	if (op_in_opfamily(opno, family))
	{
		get_op_opfamily_properties(opno, family, false, &strategy, lefttype, righttype);
		return strategy;
	}
	opno = get_negator(opno);
	if (OidIsValid(opno) && op_in_opfamily(opno, family))
	{
		get_op_opfamily_properties(opno, family, false, &strategy, lefttype, righttype);
		if (strategy == BTEqualStrategyNumber)
			return NOT_EQUAL;
	}
	return 0;
}

static int
commute_strategy(int strategy)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return BTGreaterStrategyNumber;
		case BTLessEqualStrategyNumber:
			return BTGreaterEqualStrategyNumber;
		case BTGreaterEqualStrategyNumber:
			return BTLessEqualStrategyNumber;
		case BTGreaterStrategyNumber:
			return BTLessStrategyNumber;
		default:
			return strategy;
	}
}

static List *
build_leaf(BuildContext *context, Oid opno, Oid collation, Node *left, Node *right, LeafForm form)
{
	MetadataKind kind = column_kind(context, left);
	Node	   *value = right;
	Oid			vartype;
	Oid			lefttype;
	Oid			righttype;
	int			strategy;
	List	   *leaf;

	if (kind != META_NONE)
	{
		vartype = exprType(left);
		strategy = operator_strategy(opno, vartype, &lefttype, &righttype);
	}
	else
	{
		if (form != LEAF_SCALAR)
			return NIL;
		kind = column_kind(context, right);
		if (kind == META_NONE)
			return NIL;
		value = left;
		vartype = exprType(right);
		strategy = commute_strategy(operator_strategy(opno, vartype, &lefttype, &righttype));
		righttype = lefttype;
	}
	if (strategy == 0 || !type_is_understood(kind, righttype) || !is_value(context, value))
		return NIL;
	/* timestamps narrow from below only: later offsets may have earlier timestamps */
	if (kind == META_TIMESTAMP &&
		(strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber || strategy == NOT_EQUAL))
		return NIL;
	/* names are compared by their bytes, one by one */
	if (kind == META_TOPIC &&
		(strategy != BTEqualStrategyNumber || form == LEAF_ALL ||
		 (OidIsValid(collation) && !get_collation_isdeterministic(collation))))
		return NIL;

	leaf = list_make3_int(kind, strategy, list_length(context->exprs));
	leaf = lappend_int(leaf, (int) righttype);
	leaf = lappend_int(leaf, form);
	context->exprs = lappend(context->exprs, value);
	return leaf;
}

static List *
build_and(BuildContext *context, List *args)
{
	List	   *children = NIL;
	ListCell   *lc;

	foreach(lc, args)
	{
		List	   *child = build(context, (Node *) lfirst(lc));

		if (child != NIL)
			children = lappend(children, child);
	}
	if (children == NIL)
		return NIL;
	return lcons(makeInteger(COND_AND), children);
}

/* One arm that is not understood makes the whole OR "everything". */
static List *
build_or(BuildContext *context, List *args)
{
	List	   *children = NIL;
	int			nexprs = list_length(context->exprs);
	ListCell   *lc;

	foreach(lc, args)
	{
		List	   *child = build(context, (Node *) lfirst(lc));

		if (child == NIL)
		{
			context->exprs = list_truncate(context->exprs, nexprs);
			return NIL;
		}
		children = lappend(children, child);
	}
	return lcons(makeInteger(COND_OR), children);
}

static List *
build(BuildContext *context, Node *node)
{
	if (IsA(node, RestrictInfo))
		node = (Node *) ((RestrictInfo *) node)->clause;
	if (IsA(node, BoolExpr))
	{
		BoolExpr   *expr = (BoolExpr *) node;

		if (expr->boolop == AND_EXPR)
			return build_and(context, expr->args);
		if (expr->boolop == OR_EXPR)
			return build_or(context, expr->args);
	}
	else if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
	{
		OpExpr	   *expr = (OpExpr *) node;

		return build_leaf(context, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args),
						  LEAF_SCALAR);
	}
	else if (IsA(node, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *expr = (ScalarArrayOpExpr *) node;

		return build_leaf(context, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args),
						  expr->useOr ? LEAF_ANY : LEAF_ALL);
	}
	return NIL;
}

List *
topic_conditions_build(PlannerInfo *root, RelOptInfo *rel, const TopicTable *table,
					   List *clauses, List **exprs, List **used)
{
	BuildContext context;
	List	   *children = NIL;
	ListCell   *lc;

	context.root = root;
	context.rel = rel;
	context.table = table;
	context.exprs = *exprs;
	*used = NIL;
	foreach(lc, clauses)
	{
		List	   *child = build(&context, (Node *) lfirst(lc));

		if (child == NIL)
			continue;
		children = lappend(children, child);
		*used = lappend_int(*used, foreach_current_index(lc));
	}
	*exprs = context.exprs;
	if (children == NIL)
		return NIL;
	return lcons(makeInteger(COND_AND), children);
}

/* ---- evaluation ---------------------------------------------------------- */

static const TopicBox everything = {NULL, 0, PG_INT64_MAX, 0, PG_INT64_MAX, 0};

static TopicBoxes *
boxes_make(int max)
{
	TopicBoxes *set = palloc(sizeof(TopicBoxes));

	set->n = 0;
	set->boxes = palloc(sizeof(TopicBox) * Max(max, 1));
	return set;
}

/* The smallest single box around a set: coarser, never smaller. */
static TopicBoxes *
boxes_hull(const TopicBoxes *set)
{
	TopicBoxes *hull = boxes_make(1);
	TopicBox   *box = &hull->boxes[0];

	*box = set->boxes[0];
	for (int i = 1; i < set->n; i++)
	{
		const TopicBox *other = &set->boxes[i];

		if (box->topic != NULL && (other->topic == NULL || strcmp(box->topic, other->topic) != 0))
			box->topic = NULL;
		box->first_partition = Min(box->first_partition, other->first_partition);
		box->last_partition = Max(box->last_partition, other->last_partition);
		box->first_offset = Min(box->first_offset, other->first_offset);
		box->last_offset = Max(box->last_offset, other->last_offset);
		box->min_timestamp = Min(box->min_timestamp, other->min_timestamp);
	}
	hull->n = 1;
	return hull;
}

static TopicBoxes *
boxes_union(const TopicBoxes *a, const TopicBoxes *b)
{
	TopicBoxes *set = boxes_make(a->n + b->n);

	memcpy(set->boxes, a->boxes, sizeof(TopicBox) * a->n);
	memcpy(set->boxes + a->n, b->boxes, sizeof(TopicBox) * b->n);
	set->n = a->n + b->n;
	return set->n > MAX_BOXES ? boxes_hull(set) : set;
}

static TopicBoxes *
boxes_intersect(const TopicBoxes *a, const TopicBoxes *b)
{
	TopicBoxes *set;

	if (a->n > b->n)
	{
		const TopicBoxes *swap = a;

		a = b;
		b = swap;
	}
	if (a->n > 0 && b->n > MAX_BOXES / a->n)
		b = boxes_hull(b);
	set = boxes_make(a->n * b->n);
	for (int i = 0; i < a->n; i++)
	{
		for (int j = 0; j < b->n; j++)
		{
			const TopicBox *left = &a->boxes[i];
			const TopicBox *right = &b->boxes[j];
			TopicBox	box;

			if (left->topic != NULL && right->topic != NULL && strcmp(left->topic, right->topic) != 0)
				continue;
			box.topic = left->topic != NULL ? left->topic : right->topic;
			box.first_partition = Max(left->first_partition, right->first_partition);
			box.last_partition = Min(left->last_partition, right->last_partition);
			box.first_offset = Max(left->first_offset, right->first_offset);
			box.last_offset = Min(left->last_offset, right->last_offset);
			box.min_timestamp = Max(left->min_timestamp, right->min_timestamp);
			if (box.first_partition <= box.last_partition && box.first_offset <= box.last_offset)
				set->boxes[set->n++] = box;
		}
	}
	return set;
}

/* A comparison value as partition, offset, or ms since 1970 (rounded down). */
static int64
value_as_number(Datum value, Oid type)
{
	TimestampTz time;

	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return DatumGetInt64(value);
		case TIMESTAMPOID:
			time = DatumGetTimestampTz(DirectFunctionCall1(timestamp_timestamptz, value));
			break;
		case DATEOID:
			time = DatumGetTimestampTz(DirectFunctionCall1(date_timestamptz, value));
			break;
		default:
			time = DatumGetTimestampTz(value);
			break;
	}
	if (TIMESTAMP_IS_NOBEGIN(time))
		return PG_INT64_MIN;
	if (TIMESTAMP_IS_NOEND(time))
		return PG_INT64_MAX;
	/* first to ms, so that the shift to 1970 cannot overflow */
	if (time >= 0)
		time /= 1000;
	else
		time = -((-time + 999) / 1000);
	return time + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * INT64CONST(1000);
}

/* [first, last] of a number that compares so; returns how many intervals, 0 to 2. */
static int
number_intervals(int strategy, int64 value, int64 *first, int64 *last)
{
	first[0] = 0;
	last[0] = PG_INT64_MAX;
	switch (strategy)
	{
		case BTLessStrategyNumber:
			last[0] = value - 1;
			return value > 0;
		case BTLessEqualStrategyNumber:
			last[0] = value;
			return value >= 0;
		case BTEqualStrategyNumber:
			first[0] = last[0] = value;
			return value >= 0;
		case BTGreaterEqualStrategyNumber:
			first[0] = Max(value, 0);
			return 1;
		case BTGreaterStrategyNumber:
			if (value == PG_INT64_MAX)
				return 0;
			first[0] = Max(value + 1, 0);
			return 1;
		case NOT_EQUAL:
			if (value < 0)
				return 1;
			last[0] = value - 1;
			first[1] = value + 1;
			last[1] = PG_INT64_MAX;
			if (value == PG_INT64_MAX)
				return 1;
			if (value == 0)
			{
				first[0] = 1;
				last[0] = PG_INT64_MAX;
				return 1;
			}
			return 2;
	}
	elog(ERROR, "unexpected strategy %d", strategy);
	return 0;
}

static void
boxes_add(TopicBoxes *set, MetadataKind kind, int strategy, Datum datum, Oid type)
{
	int64		value;
	int64		first[2];
	int64		last[2];
	int			n;

	if (kind == META_TOPIC)
	{
		set->boxes[set->n] = everything;
		set->boxes[set->n++].topic = TextDatumGetCString(datum);
		return;
	}
	value = value_as_number(datum, type);
	if (kind == META_TIMESTAMP)
	{
		if (value == PG_INT64_MAX)
			return;				/* no message is that late */
		set->boxes[set->n] = everything;
		set->boxes[set->n++].min_timestamp = Max(value, 0);
		return;
	}
	n = number_intervals(strategy, value, first, last);
	for (int i = 0; i < n; i++)
	{
		TopicBox   *box = &set->boxes[set->n++];

		*box = everything;
		if (kind == META_PARTITION)
		{
			box->first_partition = first[i];
			box->last_partition = last[i];
		}
		else
		{
			box->first_offset = first[i];
			box->last_offset = last[i];
		}
	}
}

static TopicBoxes *
evaluate_leaf(List *leaf, List *expr_states, ExprContext *econtext)
{
	MetadataKind kind = (MetadataKind) linitial_int(leaf);
	int			strategy = lsecond_int(leaf);
	ExprState  *state = (ExprState *) list_nth(expr_states, lthird_int(leaf));
	Oid			type = (Oid) lfourth_int(leaf);
	LeafForm	form = (LeafForm) list_nth_int(leaf, 4);
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(state, econtext, &isnull);
	TopicBoxes *set;
	Datum	   *elements;
	bool	   *nulls;
	int			nelements;
	int16		len;
	bool		byval;
	char		align;

	/* a comparison with NULL is never true */
	if (isnull)
		return boxes_make(0);
	if (form == LEAF_SCALAR)
	{
		set = boxes_make(2);
		boxes_add(set, kind, strategy, value, type);
		return set;
	}

	get_typlenbyvalalign(type, &len, &byval, &align);
	deconstruct_array(DatumGetArrayTypeP(value), type, len, byval, align, &elements, &nulls, &nelements);
	if (form == LEAF_ANY)
	{
		set = boxes_make(nelements * 2);
		for (int i = 0; i < nelements; i++)
			if (!nulls[i])
				boxes_add(set, kind, strategy, elements[i], type);
		return set->n > MAX_BOXES ? boxes_hull(set) : set;
	}
	set = boxes_make(1);
	set->boxes[set->n++] = everything;
	for (int i = 0; i < nelements; i++)
	{
		TopicBoxes *one = boxes_make(2);

		if (nulls[i])
			return boxes_make(0);
		boxes_add(one, kind, strategy, elements[i], type);
		/* many exclusions narrow nothing worth the work */
		if (set->n > 1000)
			break;
		set = boxes_intersect(set, one);
	}
	return set;
}

static TopicBoxes *
evaluate(List *tree, List *expr_states, ExprContext *econtext)
{
	int			op;
	TopicBoxes *set = NULL;

	if (IsA(tree, IntList))
		return evaluate_leaf(tree, expr_states, econtext);
	op = intVal(linitial(tree));
	for (int i = 1; i < list_length(tree); i++)
	{
		TopicBoxes *child = evaluate((List *) list_nth(tree, i), expr_states, econtext);

		if (set == NULL)
			set = child;
		else if (op == COND_AND)
			set = boxes_intersect(set, child);
		else
			set = boxes_union(set, child);
	}
	return set;
}

TopicBoxes *
topic_conditions_evaluate(List *tree, List *expr_states, ExprContext *econtext)
{
	return tree == NIL ? NULL : evaluate(tree, expr_states, econtext);
}
