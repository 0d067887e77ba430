/*
 * control.h
 *	  What other parts need for steering a maintained table.
 */
#ifndef UK_CONTROL_H
#define UK_CONTROL_H

#include "materialize/catalog.h"

/*
 * Lock a table against apply to the end of the transaction.  Ends a first load
 * that is under way in a worker instead of waiting for it; for pause, drop, rebuild.
 */
extern void maintained_table_take(Oid target);

/*
 * rebuild.c: read the topic anew.  The table is locked.  With its history kept it is
 * loaded in this transaction; else it is emptied and left in state 'backfill'.
 */
extern void rebuild_run(const MaintainedTable *table, bool discard_history);

#endif							/* UK_CONTROL_H */
