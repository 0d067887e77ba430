/*
 * history_quals.h
 *	  Conditions on a history table: key = value, system_time @> moment, system_time && range.
 */
#ifndef UK_HISTORY_QUALS_H
#define UK_HISTORY_QUALS_H

#include "history/history.h"

/* What of a list of clauses the scan answers. */
typedef struct HistoryQuals
{
	int			nprefix;		/* leading key columns with an equality */
	RestrictInfo *key_clauses[INDEX_MAX_KEYS];	/* NULL: none */
	Expr	   *key_values[INDEX_MAX_KEYS];
	Oid			key_operators[INDEX_MAX_KEYS];
	int			array_key;		/* its value is an array: = ANY; -1: none */
	RestrictInfo *moment_clause;	/* system_time @> moment */
	Expr	   *moment;
	RestrictInfo *range_clause; /* system_time && range */
	Expr	   *range;
} HistoryQuals;

/* Sort out the clauses: scan clauses of a relation, join clauses moved to it included. */
extern void history_quals_classify(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, List *clauses,
								   HistoryQuals *quals);

/* How a scan with these is run. */
extern HistoryAccess history_quals_access(const HistoryTable *table, const HistoryQuals *quals);

/* The clauses that the scan answers exactly, so that nobody need check them again. */
extern List *history_quals_exact(const HistoryQuals *quals);

/* The moment of system_time @> moment, the range of system_time && range; NULL: another clause. */
extern Expr *history_match_moment(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Expr *clause);
extern Expr *history_match_range(PlannerInfo *root, RelOptInfo *rel, const HistoryTable *table, Expr *clause);

/* Is it this column of the relation? */
extern bool history_is_column(Node *node, RelOptInfo *rel, AttrNumber attnum);

#endif							/* UK_HISTORY_QUALS_H */
