/*
 * history.h
 *	  What the files of the history foreign-data wrapper share, and its start.
 *
 * A history table <t>_history is served from <t>__versions and its btree
 * (versions.h); which pairs there are is told by the catalog
 * upsert_kafka.maintained_table.
 */
#ifndef UK_HISTORY_H
#define UK_HISTORY_H

#include "access/attnum.h"
#include "foreign/fdwapi.h"
#include "nodes/pathnodes.h"
#include "utils/relcache.h"

/*
 * Module start: installs the hooks that answer for history tables with the
 * statistics of their versions tables.  Called once, from _PG_init.
 */
extern void history_init(void);

/* === history_table.c: the registration, and which column is where ========= */

typedef struct HistoryKey
{
	AttrNumber	history_attnum; /* InvalidAttrNumber: not in the history table */
	AttrNumber	versions_attnum;
	Oid			opfamily;		/* of the index column */
	Oid			opcintype;
	Oid			collation;
} HistoryKey;

/* A history table and what it is read from.  Index column i is key i. */
typedef struct HistoryTable
{
	Oid			relid;			/* the history table: foreign */
	Oid			target;			/* the current table */
	Oid			versions;
	Oid			index;			/* btree (keys, __valid_from, __seq) of versions */
	AttrNumber	system_time;	/* of the history table; InvalidAttrNumber: none */
	AttrNumber	valid_from;		/* these four: of the versions table */
	AttrNumber	op;
	AttrNumber	partition;
	AttrNumber	offset;
	int			nkeys;
	HistoryKey	keys[INDEX_MAX_KEYS];
	int			natts;			/* of the history table, dropped columns included */
	AttrNumber	versions_attnums[FLEXIBLE_ARRAY_MEMBER];	/* InvalidAttrNumber:
															 * always NULL */
} HistoryTable;

/*
 * What the foreign table 'relid', locked by the caller, is the history of.
 * Takes AccessShareLock on the versions table for the rest of the transaction.
 * palloc'd in CurrentMemoryContext.  ERROR 55000 when it isn't registered
 * (NULL with missing_ok) or its versions table has lost its index, 42804 when
 * their columns have different types.
 */
extern HistoryTable *history_table_get(Oid relid, bool missing_ok);

/*
 * ERROR 42501 unless the history table's owner may read the versions and no row
 * security stands between user and current table.
 */
extern void history_check_access(const HistoryTable *table, Oid userid);

/* === history_stats.c: what the versions table's statistics say ============ */

typedef struct HistoryStats
{
	double		versions;		/* rows of the versions table */
	double		pages;
	double		index_pages;
	double		keys;			/* distinct keys */
	double		keys_product;	/* what the planner thinks of as distinct keys when
								 * it multiplies the columns' */
	double		visible;		/* fraction of versions that hold a row */
	double		correlation;	/* of index and heap order, 0 .. 1 */
} HistoryStats;

extern void history_stats_get(const HistoryTable *table, HistoryStats *stats);

/* Fraction of versions that start at 'moment' or before. */
extern double history_fraction_until(const HistoryTable *table, int64 moment);

/* === history_plan.c ======================================================= */

typedef enum HistoryAccess
{
	HISTORY_PROBE,				/* whole key and a moment: one probe per key */
	HISTORY_SNAPSHOT,			/* a moment: all keys, or those of a key prefix */
	HISTORY_VERSIONS			/* all versions, or those of a key or key prefix */
} HistoryAccess;

/* Of one history table in one query: its fdw_private while planning. */
typedef struct HistoryRel
{
	HistoryTable *table;
	HistoryStats stats;
	bool		as_of;			/* some clause asks for a moment: a key has one row */
} HistoryRel;

/* Indexes into a history scan's fdw_private. */
enum
{
	HISTORY_PRIVATE_ACCESS,		/* Integer: HistoryAccess */
	HISTORY_PRIVATE_INDEX,		/* OidList: index; equality operator per key of the
								 * prefix */
	HISTORY_PRIVATE_ARRAY,		/* Integer: key that is compared with the elements
								 * of an array, -1: none */
	HISTORY_PRIVATE_CONDITIONS, /* IntList: has moment, has range; fdw_exprs are
								 * the prefix's keys, moment, range */
	HISTORY_PRIVATE_COLUMNS		/* IntList: attnums of the wanted columns */
};

extern void historyGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
extern void historyGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
extern ForeignScan *historyGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid relid,
										  ForeignPath *best_path, List *tlist,
										  List *scan_clauses, Plan *outer_plan);

/* === history_scan.c ======================================================= */

extern void historyBeginForeignScan(ForeignScanState *node, int eflags);
extern TupleTableSlot *historyIterateForeignScan(ForeignScanState *node);
extern void historyReScanForeignScan(ForeignScanState *node);
extern void historyEndForeignScan(ForeignScanState *node);

/* Index probes and versions read so far, by this process. */
extern void history_scan_counts(ForeignScanState *node, int64 *probes, int64 *rows);

/* === history_explain.c ==================================================== */

extern void historyExplainForeignScan(ForeignScanState *node, struct ExplainState *es);

#endif							/* UK_HISTORY_H */
