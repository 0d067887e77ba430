/*
 * feed.h
 *	  A feed brings one maintained table forward: it owns the consumer, the
 *	  decoder and the records in hand, and applies them slice by slice.
 *	  The worker calls it with a transaction per slice, refresh() inside its
 *	  caller's.
 *
 * Correctness never rests on who runs a feed: each slice takes the table's lock
 * and reads its position under it; a feed that finds another position than its own
 * says FEED_MOVED and starts reading there.
 */
#ifndef UK_FEED_H
#define UK_FEED_H

#include "materialize/catalog.h"

typedef struct Feed Feed;

typedef enum FeedResult
{
	FEED_IDLE,					/* nothing to do; wait on feed_wait_fd() */
	FEED_APPLIED,				/* something was applied; there may be more */
	FEED_MOVED,					/* somebody else moved the position: started anew */
	FEED_STOPPED				/* the table's state is no longer live: close it */
} FeedResult;

typedef struct FeedStats
{
	int64		messages;		/* applied since the feed was opened */
	int64		bytes;
	int64		errors;
	int64		lag_messages;	/* at last look at the watermarks, -1 unknown */
	int			nends;
	const int64 *ends;			/* by source: stable end at that look, -1
								 * unknown; NULL: never looked */
	int64		last_timestamp; /* Kafka timestamp (ms) of the last applied message */
	Size		memory;
} FeedStats;

/*
 * Open inside a transaction: reads the registration, and asks the brokers for a sign of
 * life.  NULL: the table is not live.  The feed lives in a child of 'parent'; deleting
 * that closes it.
 */
extern Feed *feed_open(Oid target, MemoryContext parent);

/*
 * Has a broker answered what feed_open() or feed_ask() has asked?  Neither waits, so that
 * a broker that is away costs the other tables of a worker nothing; call it again when
 * feed_wait_fd() is readable.  ERROR of class 08 when none has in time.
 */
extern void feed_ask(Feed *feed);
extern bool feed_answered(Feed *feed);

/*
 * After the answer, in a transaction: compares positions with the topic and starts
 * reading.  False: the table is not live, or data_lost or topic_changed were found
 * and set as its state.  patience_ms: how long the broker, which has just answered, may
 * take for what it is asked in a transaction from here on, if that is less than the
 * server's timeout.
 */
extern bool feed_begin(Feed *feed, int patience_ms);

/*
 * Take what has arrived, waiting up to timeout_ms for it (0: not at all), outside a
 * transaction in a worker.  True when there is something for feed_apply: records,
 * or a position that moved without any (transaction markers).  An ERROR here
 * means: close the feed, open it again later.
 */
extern bool feed_fetch(Feed *feed, long timeout_ms);

/* Records in hand that one transaction may take; 0 when only the position moved. */
extern int	feed_pending(Feed *feed);

/*
 * Apply records in hand [0 .. n) (n <= feed_pending) inside the current transaction,
 * which has no snapshot yet in a worker.  Call feed_applied() after its commit;
 * after an abort the records are still in hand, and a smaller n may be tried.
 */
extern FeedResult feed_apply(Feed *feed, int n);
extern void feed_applied(Feed *feed);

/*
 * False after an ERROR while the tables' definitions were read anew or the reading began
 * anew, as feed_apply() does too: no message is to blame, and the feed must be closed.
 */
extern bool feed_is_whole(const Feed *feed);

/* After the database refused a single record: state 'stopped' at it.  In a transaction. */
extern void feed_stop_at_first(Feed *feed, int sqlerrcode, const char *message);

extern int	feed_wait_fd(Feed *feed);
extern const FeedStats *feed_stats(Feed *feed);

/*
 * A feed knows for a moment where the topics of the one before it ended, which may have
 * failed because one of them was deleted.  Call this when a table is not followed any more.
 */
extern void feed_forget_look(Oid target);

/*
 * Look for new topics and partitions and moved watermarks; call now and then, in a
 * transaction, and after an answer.
 */
extern FeedResult feed_check_topic(Feed *feed);

/*
 * The first load, in the current transaction: everything up to the stable
 * ends taken at its start, sorted by (key, order), loaded, positions and state
 * 'live' set.  Returns the number of messages.
 */
extern int64 backfill_run(Oid target);

/*
 * After the database refused the first load (a constraint, a trigger): let the feed go
 * from the load's start instead, which finds the one message at fault and has
 * everything before it applied.  In a transaction.
 */
extern void backfill_leave_to_feed(Oid target);

/*
 * refresh(): backfill or apply up to the stable ends at the call, in the caller's
 * transaction.  Returns the number of messages.
 */
extern int64 refresh_run(Oid target);

/* Replay recorded errors of a table at their place; returns how many went in. */
extern int64 retry_errors_run(Oid target);

#endif							/* UK_FEED_H */
