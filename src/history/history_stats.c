/*
 * history_stats.c
 *	  The statistics of versions tables, handed to the planner for history tables.
 *
 * Autovacuum analyzes the versions table, which is a heap, and never a foreign
 * table.  Owns the statistics hook; must not know of clauses or paths.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "history/history.h"
#include "history/versions.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

static get_relation_stats_hook_type previous_stats_hook = NULL;

static HeapTuple
column_statistics(Oid relid, AttrNumber attnum)
{
	return SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid), Int16GetDatum(attnum),
						   BoolGetDatum(false));
}

static double
column_distinct(Oid relid, AttrNumber attnum, double rows)
{
	HeapTuple	tuple = column_statistics(relid, attnum);
	double		distinct = 0;

	if (HeapTupleIsValid(tuple))
	{
		distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
		ReleaseSysCache(tuple);
	}
	if (distinct == 0)
		distinct = DEFAULT_NUM_DISTINCT;
	if (distinct < 0)
		distinct = -distinct * rows;
	return Max(1, Min(distinct, rows));
}

/* Fraction of versions that hold a row: upserts among upserts and deletes. */
static double
visible_fraction(const HistoryTable *table)
{
	HeapTuple	tuple = column_statistics(table->versions, table->op);
	AttStatsSlot slot;
	double		visible = 1.0;

	if (!HeapTupleIsValid(tuple))
		return visible;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		for (int i = 0; i < slot.nvalues; i++)
		{
			if (!VERSION_OP_HAS_ROW(DatumGetChar(slot.values[i])))
				visible -= slot.numbers[i];
		}
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return Max(visible, 0.0001);
}

/* As the planner does for an index of several columns: the first one's, weakened. */
static double
index_correlation(const HistoryTable *table)
{
	HeapTuple	tuple = column_statistics(table->versions, table->keys[0].versions_attnum);
	AttStatsSlot slot;
	double		correlation = 0;

	if (!HeapTupleIsValid(tuple))
		return correlation;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		correlation = fabs(slot.numbers[0]) * 0.75;
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return correlation;
}

void
history_stats_get(const HistoryTable *table, HistoryStats *stats)
{
	Relation	versions = table_open(table->versions, AccessShareLock);
	Relation	index = index_open(table->index, AccessShareLock);
	BlockNumber pages;
	double		all_visible;

	estimate_rel_size(versions, NULL, &pages, &stats->versions, &all_visible);
	stats->versions = Max(stats->versions, 1);
	stats->pages = Max(pages, 1);
	stats->index_pages = Max(RelationGetNumberOfBlocks(index), 1);

	stats->keys_product = 1;
	for (int i = 0; i < table->nkeys; i++)
		stats->keys_product *= column_distinct(table->versions, table->keys[i].versions_attnum,
											   stats->versions);
	stats->visible = visible_fraction(table);
	stats->correlation = index_correlation(table);

	/*
	 * Columns of one key go together, and their product can be far too many.
	 * The current table tells: it has one row for each key that is alive.
	 */
	stats->keys = Min(stats->keys_product, stats->versions);
	if (table->nkeys > 1)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table->target));

		if (HeapTupleIsValid(tuple))
		{
			double		alive = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;

			if (alive > 0)
				stats->keys = Min(stats->keys, alive / stats->visible);
			ReleaseSysCache(tuple);
		}
	}
	stats->keys = Max(stats->keys, 1);

	index_close(index, NoLock);
	table_close(versions, NoLock);
}

double
history_fraction_until(const HistoryTable *table, int64 moment)
{
	HeapTuple	tuple = column_statistics(table->versions, table->valid_from);
	AttStatsSlot slot;
	double		fraction = 0;
	double		common = 0;

	if (!HeapTupleIsValid(tuple))
		return 1.0;

	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		for (int i = 0; i < slot.nvalues; i++)
		{
			common += slot.numbers[i];
			if (DatumGetTimestampTz(slot.values[i]) <= moment)
				fraction += slot.numbers[i];
		}
		free_attstatsslot(&slot);
	}
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		int			below = 0;
		double		bins = slot.nvalues - 1;
		double		bin = 0;

		while (below < slot.nvalues && DatumGetTimestampTz(slot.values[below]) <= moment)
			below++;
		if (below == slot.nvalues)
			bin = bins;
		else if (below > 0)
		{
			double		low = (double) DatumGetTimestampTz(slot.values[below - 1]);
			double		high = (double) DatumGetTimestampTz(slot.values[below]);

			bin = below - 1;
			if (high > low)
				bin += ((double) moment - low) / (high - low);
		}
		if (bins > 0)
			fraction += (1 - common) * bin / bins;
		free_attstatsslot(&slot);
	}
	else if (common == 0)
		fraction = 1.0;
	ReleaseSysCache(tuple);
	return Max(0, Min(fraction, 1.0));
}

static RelOptInfo *
rel_of_rte(PlannerInfo *root, RangeTblEntry *rte)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rte_array[i] == rte)
			return root->simple_rel_array[i];
	}
	return NULL;
}

static bool
may_see_statistics(const HistoryTable *table, RelOptInfo *rel, RangeTblEntry *rte, AttrNumber attnum)
{
	Oid			userid = OidIsValid(rel->userid) ? rel->userid : GetUserId();

	return rte->securityQuals == NIL &&
		(pg_class_aclcheck(rte->relid, userid, ACL_SELECT) == ACLCHECK_OK ||
		 pg_attribute_aclcheck(rte->relid, attnum, userid, ACL_SELECT) == ACLCHECK_OK) &&
		check_enable_rls(table->target, userid, true) != RLS_ENABLED;
}

/*
 * As of a moment each key has one row, however many versions it has: their
 * frequencies would make hot keys count over and over.
 */
static HeapTuple
without_frequencies(HeapTuple tuple)
{
	HeapTuple	copy = heap_copytuple(tuple);
	int16	   *kinds = &((Form_pg_statistic) GETSTRUCT(copy))->stakind1;

	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
	{
		if (kinds[i] == STATISTIC_KIND_MCV)
			kinds[i] = 0;
	}
	return copy;
}

/* Deletes have NULL in all columns but the key; they are not among the rows. */
static HeapTuple
of_visible_rows(HeapTuple tuple, double visible)
{
	Relation	statistic = table_open(StatisticRelationId, AccessShareLock);
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(tuple);
	Datum		values[Natts_pg_statistic];
	bool		nulls[Natts_pg_statistic];
	bool		replace[Natts_pg_statistic];
	AttStatsSlot slot;
	HeapTuple	copy;

	memset(nulls, 0, sizeof(nulls));
	memset(replace, 0, sizeof(replace));

	values[Anum_pg_statistic_stanullfrac - 1] =
		Float4GetDatum((float4) Max(0, (form->stanullfrac - (1 - visible)) / visible));
	replace[Anum_pg_statistic_stanullfrac - 1] = true;

	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		Datum	   *numbers = palloc(sizeof(Datum) * slot.nnumbers);
		const int16 *kinds = &form->stakind1;

		for (int i = 0; i < slot.nnumbers; i++)
			numbers[i] = Float4GetDatum((float4) Min(1.0, slot.numbers[i] / visible));
		for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
		{
			if (kinds[i] != STATISTIC_KIND_MCV)
				continue;
			values[Anum_pg_statistic_stanumbers1 - 1 + i] =
				PointerGetDatum(construct_array(numbers, slot.nnumbers, FLOAT4OID, sizeof(float4),
												true, TYPALIGN_INT));
			replace[Anum_pg_statistic_stanumbers1 - 1 + i] = true;
		}
		free_attstatsslot(&slot);
	}
	copy = heap_modify_tuple(tuple, RelationGetDescr(statistic), values, nulls, replace);
	table_close(statistic, AccessShareLock);
	return copy;
}

static bool
history_stats_hook(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attnum, VariableStatData *vardata)
{
	RelOptInfo *rel;
	HistoryRel *history;
	HeapTuple	tuple;
	AttrNumber	from;
	bool		is_key = false;

	if (previous_stats_hook && previous_stats_hook(root, rte, attnum, vardata))
		return true;
	if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_FOREIGN_TABLE || attnum <= 0)
		return false;
	rel = rel_of_rte(root, rte);
	if (rel == NULL || rel->fdwroutine == NULL || rel->fdw_private == NULL ||
		rel->fdwroutine->GetForeignRelSize != historyGetForeignRelSize)
		return false;

	history = rel->fdw_private;
	from = history->table->versions_attnums[attnum - 1];
	if (from == InvalidAttrNumber)
		return false;
	tuple = column_statistics(history->table->versions, from);
	if (!HeapTupleIsValid(tuple))
		return false;

	for (int i = 0; i < history->table->nkeys; i++)
		is_key = is_key || history->table->keys[i].history_attnum == attnum;
	vardata->freefunc = heap_freetuple;
	if (is_key && history->as_of)
		vardata->statsTuple = without_frequencies(tuple);
	else if (!is_key && history->stats.visible < 1.0)
		vardata->statsTuple = of_visible_rows(tuple, history->stats.visible);
	else
		vardata->statsTuple = heap_copytuple(tuple);
	ReleaseSysCache(tuple);
	vardata->acl_ok = may_see_statistics(history->table, rel, rte, attnum);
	return true;
}

void
history_init(void)
{
	previous_stats_hook = get_relation_stats_hook;
	get_relation_stats_hook = history_stats_hook;
}
