/*
 * worker_table.h
 *	  One table in the hands of a worker: its feed, its batch, its failures.
 */
#ifndef UK_WORKER_TABLE_H
#define UK_WORKER_TABLE_H

#include "materialize/feed.h"
#include "materialize/progress.h"

typedef enum TableStage
{
	STAGE_OPEN,
	STAGE_CHECK,
	STAGE_FETCH,
	STAGE_APPLY,
	STAGE_STOP
} TableStage;

typedef struct ServedTable
{
	Oid			target;
	char	   *name;			/* quoted, for activity and log */
	int			entry;			/* in shared progress, or -1 */
	MemoryContext context;		/* of this struct */

	MemoryContext feed_context;
	Feed	   *feed;			/* NULL: not open */
	bool		opening;		/* it waits for a broker's first answer */
	bool		asked;			/* for one before the next look at the topic */
	FeedStats	reported;		/* what shared memory knows of the feed */
	TimestampTz check_at;		/* next look at the topic */

	TimestampTz fetch_at;		/* a batch is collecting until then; 0: not */

	/* failures */
	TableStage	stage;
	TimestampTz retry_at;
	int			failures;		/* in a row */
	int			tried;			/* records in the last slice */
	int			suspects;		/* records of which one was refused; 0: none */
	bool		stopping;		/* the table is to be stopped with this error */
	int			stop_code;
	char	   *stop_message;
	bool		stop_at_first;	/* at the first record in hand */

	bool		gone;			/* nothing more to serve until registrations are read */
} ServedTable;

extern ServedTable *served_table_create(Oid target, const char *name, MemoryContext parent);
extern void served_table_free(ServedTable *table);

/*
 * Bring a table one slice forward, outside of any transaction.  Never raises:
 * a failure is kept in the table, which waits or is stopped.  Returns true when
 * there may be more to do at once; else *wake_at is moved to when there will be.
 */
extern bool served_table_step(ServedTable *table, TimestampTz *wake_at);

/* False while its feed's descriptor must not wake the worker. */
extern bool served_table_listens(const ServedTable *table);

/* The first load of a table, in a transaction of its own; never raises. */
extern void worker_backfill(Oid target, int entry);

/* Quoted name of a relation for people to read; in a transaction. */
extern char *relation_display_name(Oid relid);

#endif							/* UK_WORKER_TABLE_H */
