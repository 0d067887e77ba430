/*
 * topic_quals.h
 *	  Conditions on topic, partition, offset and timestamp as sets of offset intervals.
 *
 * At plan time a tree of what is understood is built, with the comparison
 * values as expressions; at scan start it is evaluated.  Whatever is not
 * understood counts as "everything": the set is never too small, and the executor
 * rechecks all clauses.
 */
#ifndef UK_TOPIC_QUALS_H
#define UK_TOPIC_QUALS_H

#include "fdw/options.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

/*
 * A rectangle of partitions and offsets (both ends inclusive) of one topic, or of all,
 * whose messages with a timestamp below min_timestamp (ms; 0: none) are not needed.
 */
typedef struct TopicBox
{
	const char *topic;			/* NULL: any */
	int64		first_partition;
	int64		last_partition;
	int64		first_offset;
	int64		last_offset;
	int64		min_timestamp;
} TopicBox;

/* A union of boxes; n = 0: no message at all. */
typedef struct TopicBoxes
{
	int			n;
	TopicBox   *boxes;
} TopicBoxes;

/*
 * The tree of a list of clauses (implicitly AND), which copyObject can copy; NIL
 * when nothing is understood.  Comparison values are appended to *exprs.  *used: indexes of
 * the clauses that contribute.
 */
extern List *topic_conditions_build(PlannerInfo *root, RelOptInfo *rel, const TopicTable *table,
									List *clauses, List **exprs, List **used);

/* palloc'd in CurrentMemoryContext; NULL means everything. */
extern TopicBoxes *topic_conditions_evaluate(List *tree, List *expr_states, ExprContext *econtext);

#endif							/* UK_TOPIC_QUALS_H */
