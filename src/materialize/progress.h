/*
 * progress.h
 *	  What workers tell about the tables they serve, in shared memory: rates, lag,
 *	  the last error, who serves and who loads.  What must survive a restart is in
 *	  the catalogs instead.
 *
 * All functions may be called without shared memory and do nothing then.
 */
#ifndef UK_PROGRESS_H
#define UK_PROGRESS_H

#include "datatype/timestamp.h"
#include "materialize/feed.h"

#define PROGRESS_TABLES		512
#define PROGRESS_PARTITIONS	1024	/* 4 MB of shared memory for all tables */
#define PROGRESS_ERROR_LEN	256

typedef enum BackfillDemand
{
	BACKFILL_NONE,
	BACKFILL_WANTED,			/* leader: please start a process for it */
	BACKFILL_REFUSED,			/* launcher: none to be had, do it yourself */
	BACKFILL_RUNNING
} BackfillDemand;

typedef struct TableProgress
{
	Oid			database;		/* InvalidOid: free */
	Oid			target;
	int			worker;			/* slot of the apply worker that serves it, or -1 */
	int			loader;			/* slot of the process that loads it, or -1 */
	BackfillDemand backfill;
	TimestampTz backfill_after; /* not before: a load has failed */
	int			backfill_failures;

	int64		messages;		/* applied since the server started */
	int64		bytes;
	int64		lag_messages;	/* -1: unknown */
	Size		memory;
	int			nends;
	int64		ends[PROGRESS_PARTITIONS];	/* by source: last known end offset, -1: unknown */
	TimestampTz updated_at;

	int64		load_done;		/* of a backfill: messages read so far .. */
	int64		load_total;		/* .. and to be read */

	double		rate;			/* messages per second, smoothed */
	TimestampTz rate_at;
	int64		rate_messages;

	TimestampTz error_at;		/* 0: none since the last success */
	int			error_code;
	char		error[PROGRESS_ERROR_LEN];
} TableProgress;

/*
 * The entry of a table of this database, made if need be; -1 when all are in use
 * (or there is no shared memory).  Stays valid as long as a worker serves or loads the table.
 */
extern int	progress_entry(Oid target);

/* Free the entries of this database's tables that are not in 'targets'. */
extern void progress_keep_only(List *targets);

/* After a commit: what the feed has done since the last call with the same stats. */
extern void progress_update(int entry, const FeedStats *now, FeedStats *last);

/* A load is going on; for apply's backfill. */
extern void progress_backfill(Oid target, int64 done, int64 total, Size memory);

/* The last error of a table that will be tried again; NULL clears it. */
extern void progress_error(int entry, int sqlerrcode, const char *message);

/* pid of the process that serves or loads a table, 0 if none does; its last error. */
extern int	progress_server(Oid target, char *error, Size error_len);

#endif							/* UK_PROGRESS_H */
