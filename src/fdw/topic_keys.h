/*
 * topic_keys.h
 *	  Conditions "key column = value" of upsert tables, as a filter on messages.
 */
#ifndef UK_TOPIC_KEYS_H
#define UK_TOPIC_KEYS_H

#include "changelog/key_filter.h"
#include "fdw/options.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

/*
 * Which clauses can filter messages: a List that copyObject can copy, NIL when none
 * can.  Values are appended to *exprs; *used: indexes of the clauses.
 */
extern List *topic_keys_build(PlannerInfo *root, RelOptInfo *rel, const TopicTable *table,
							  List *clauses, List **exprs, List **used);

/* The filter, with copies of the values, in CurrentMemoryContext; NULL without conditions. */
extern KeyFilter *topic_keys_evaluate(List *conditions, List *expr_states, ExprContext *econtext);

#endif							/* UK_TOPIC_KEYS_H */
