/*
 * history_scan.c
 *	  Executing a scan of a history table.
 *
 * Owns the evaluation of conditions and the making of the history table's rows;
 * the versions come from version_reader.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/executor.h"
#include "history/history.h"
#include "history/version_reader.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

typedef struct HistoryScan
{
	HistoryTable *table;
	Relation	versions;
	Relation	index;
	VersionReader *reader;
	VersionCondition condition;

	/* values of the conditions */
	ExprContext *econtext;		/* reset at each start, not per row */
	List	   *values;			/* ExprStates: prefix keys, moment, range */
	bool	   *toastable;		/* per prefix key */
	bool		has_moment;
	bool		has_range;

	/* a key that is compared with the elements of an array */
	int			array_key;		/* -1: none */
	int			narray;			/* distinct elements, not NULL */
	int			array_next;
	Datum	   *array;

	/* the rows to make */
	int			nwanted;
	AttrNumber *wanted;			/* of the history table */
	AttrNumber *sources;		/* of the versions table; InvalidAttrNumber: NULL */
	bool		want_period;
	TypeCacheEntry *range_type;

	bool		started;
	bool		done;
} HistoryScan;

/* === begin and end ========================================================= */

/* Index scan keys of the prefix; their values come at each start. */
static void
prepare_keys(HistoryScan *scan, List *index)
{
	const HistoryTable *table = scan->table;

	scan->condition.nkeys = list_length(index) - 1;
	scan->toastable = palloc0(sizeof(bool) * INDEX_MAX_KEYS);
	for (int i = 0; i < scan->condition.nkeys; i++)
	{
		Oid			operator = list_nth_oid(index, i + 1);
		int			strategy;
		Oid			left;
		Oid			right;

		get_op_opfamily_properties(operator, table->keys[i].opfamily, false, &strategy, &left, &right);
		ScanKeyEntryInitialize(&scan->condition.keys[i], 0, i + 1, strategy, right,
							   table->keys[i].collation, get_opcode(operator), (Datum) 0);
		scan->toastable[i] = i != scan->array_key && TypeIsToastable(right);
	}
}

static void
prepare_columns(HistoryScan *scan, List *columns)
{
	ListCell   *lc;

	scan->wanted = palloc(sizeof(AttrNumber) * (list_length(columns) + 1));
	scan->sources = palloc(sizeof(AttrNumber) * (list_length(columns) + 1));
	foreach(lc, columns)
	{
		AttrNumber	attnum = lfirst_int(lc);

		if (attnum == scan->table->system_time)
		{
			scan->want_period = true;
			continue;
		}
		scan->wanted[scan->nwanted] = attnum;
		scan->sources[scan->nwanted] = scan->table->versions_attnums[attnum - 1];
		scan->nwanted++;
	}
	scan->range_type = lookup_type_cache(TSTZRANGEOID, TYPECACHE_RANGE_INFO);
}

void
historyBeginForeignScan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	HistoryScan *scan;
	List	   *index = list_nth(plan->fdw_private, HISTORY_PRIVATE_INDEX);
	List	   *conditions = list_nth(plan->fdw_private, HISTORY_PRIVATE_CONDITIONS);

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	scan = palloc0(sizeof(HistoryScan));
	scan->table = history_table_get(RelationGetRelid(node->ss.ss_currentRelation), false);
	history_check_access(scan->table, foreign_scan_user(plan, estate));
	if (scan->table->index != linitial_oid(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index of versions table \"%s\" has changed since the query was planned",
						get_rel_name(scan->table->versions)),
				 errhint("Run the query again.")));

	scan->versions = table_open(scan->table->versions, AccessShareLock);
	scan->index = index_open(scan->table->index, AccessShareLock);
	scan->reader = version_reader_open(scan->table, scan->versions, scan->index,
									   estate->es_snapshot, &estate->es_tupleTable);

	scan->condition.access = intVal(list_nth(plan->fdw_private, HISTORY_PRIVATE_ACCESS));
	scan->condition.first = DT_NOBEGIN;
	scan->condition.last = DT_NOEND;
	scan->has_moment = linitial_int(conditions);
	scan->has_range = lsecond_int(conditions);
	scan->array_key = intVal(list_nth(plan->fdw_private, HISTORY_PRIVATE_ARRAY));
	scan->values = ExecInitExprList(plan->fdw_exprs, &node->ss.ps);
	scan->econtext = CreateExprContext(estate);
	prepare_keys(scan, index);
	prepare_columns(scan, list_nth(plan->fdw_private, HISTORY_PRIVATE_COLUMNS));

	node->fdw_state = scan;
}

void
historyReScanForeignScan(ForeignScanState *node)
{
	HistoryScan *scan = node->fdw_state;

	scan->started = false;
}

void
historyEndForeignScan(ForeignScanState *node)
{
	HistoryScan *scan = node->fdw_state;

	if (scan == NULL)
		return;					/* EXPLAIN without ANALYZE */
	version_reader_close(scan->reader);
	index_close(scan->index, NoLock);
	table_close(scan->versions, NoLock);
}

/* === start ================================================================= */

static int
compare_elements(const void *a, const void *b, void *sort)
{
	return ApplySortComparator(*(const Datum *) a, false, *(const Datum *) b, false, sort);
}

/* Distinct elements of the array that a key is compared with. */
static void
take_array(HistoryScan *scan, Datum value)
{
	ScanKey		key = &scan->condition.keys[scan->array_key];
	ArrayType  *array = DatumGetArrayTypeP(value);
	Oid			type = ARR_ELEMTYPE(array);
	TypeCacheEntry *typcache = lookup_type_cache(type, TYPECACHE_LT_OPR);
	SortSupportData sort;
	Datum	   *elements;
	bool	   *nulls;
	int			n;
	int			kept = 0;

	deconstruct_array(array, type, typcache->typlen, typcache->typbyval, typcache->typalign,
					  &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			elements[kept++] = elements[i];
	}
	n = kept;

	if (n > 1)
	{
		memset(&sort, 0, sizeof(sort));
		sort.ssup_cxt = CurrentMemoryContext;
		sort.ssup_collation = key->sk_collation;
		PrepareSortSupportFromOrderingOp(typcache->lt_opr, &sort);
		qsort_arg(elements, n, sizeof(Datum), compare_elements, &sort);
		kept = 1;
		for (int i = 1; i < n; i++)
		{
			if (compare_elements(&elements[i], &elements[kept - 1], &sort) != 0)
				elements[kept++] = elements[i];
		}
	}
	scan->array = elements;
	scan->narray = kept;
	scan->array_next = 0;
}

/* Narrow what is read to the range; false if nothing overlaps it. */
static bool
set_range(HistoryScan *scan, Datum value)
{
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;

	range_deserialize(scan->range_type, DatumGetRangeTypeP(value), &lower, &upper, &empty);
	if (empty)
		return false;
	scan->condition.first = lower.infinite ? DT_NOBEGIN : DatumGetTimestampTz(lower.val);
	scan->condition.last = upper.infinite ? DT_NOEND : DatumGetTimestampTz(upper.val);
	return true;
}

/* Begin with the next element of the array, if there is one. */
static bool
start_element(HistoryScan *scan)
{
	if (scan->array_next >= scan->narray)
		return false;
	scan->condition.keys[scan->array_key].sk_argument = scan->array[scan->array_next++];
	version_reader_start(scan->reader, &scan->condition);
	return true;
}

/* Evaluate the conditions; false if one of them is NULL and nothing can match. */
static bool
start_scan(HistoryScan *scan)
{
	MemoryContext old;
	int			i = 0;
	ListCell   *lc;
	bool		possible = true;

	ResetExprContext(scan->econtext);
	old = MemoryContextSwitchTo(scan->econtext->ecxt_per_tuple_memory);
	foreach(lc, scan->values)
	{
		bool		isnull;
		Datum		value = ExecEvalExpr((ExprState *) lfirst(lc), scan->econtext, &isnull);

		if (isnull)
		{
			possible = false;
			break;
		}
		if (i < scan->condition.nkeys)
		{
			if (i == scan->array_key)
				take_array(scan, value);
			else if (scan->toastable[i])
				value = PointerGetDatum(PG_DETOAST_DATUM(value));
			scan->condition.keys[i].sk_argument = value;
		}
		else if (i == scan->condition.nkeys && scan->has_moment)
			scan->condition.moment = DatumGetTimestampTz(value);
		else
			possible = set_range(scan, value);
		i++;
	}
	MemoryContextSwitchTo(old);

	if (!possible)
		return false;
	if (scan->array_key >= 0)
		return start_element(scan);
	version_reader_start(scan->reader, &scan->condition);
	return true;
}

/* === rows ================================================================== */

static Datum
make_system_time(HistoryScan *scan, const Version *version)
{
	RangeBound	lower;
	RangeBound	upper;

	memset(&lower, 0, sizeof(lower));
	memset(&upper, 0, sizeof(upper));
	lower.val = TimestampTzGetDatum(version->from);
	lower.inclusive = true;
	lower.lower = true;
	upper.val = TimestampTzGetDatum(version->to);
	upper.infinite = version->unbounded;
	return RangeTypePGetDatum(make_range_compat(scan->range_type, &lower, &upper));
}

TupleTableSlot *
historyIterateForeignScan(ForeignScanState *node)
{
	HistoryScan *scan = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	Version		version;

	ExecClearTuple(slot);

	if (!scan->started)
	{
		scan->started = true;
		scan->done = !start_scan(scan);
	}
	while (!scan->done && !version_reader_next(scan->reader, scan->want_period, &version))
		scan->done = scan->array_key < 0 || !start_element(scan);
	if (scan->done)
		return slot;

	memset(slot->tts_isnull, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < scan->nwanted; i++)
	{
		AttrNumber	attnum = scan->wanted[i];

		if (scan->sources[i] != InvalidAttrNumber)
			slot->tts_values[attnum - 1] = slot_getattr(version.slot, scan->sources[i],
														&slot->tts_isnull[attnum - 1]);
	}
	if (scan->want_period)
	{
		AttrNumber	attnum = scan->table->system_time;

		slot->tts_values[attnum - 1] = make_system_time(scan, &version);
		slot->tts_isnull[attnum - 1] = false;
	}
	return ExecStoreVirtualTuple(slot);
}

void
history_scan_counts(ForeignScanState *node, int64 *probes, int64 *rows)
{
	HistoryScan *scan = node->fdw_state;

	version_reader_counts(scan->reader, probes, rows);
}
