/*
 * timeline.h
 *	  Which rows a message adds to the versions of its key.
 *
 * Pure arithmetic on moments and coordinates: knows neither tables nor Kafka.
 * The rule is decision 6 of the design: the state of a key at event time t is,
 * among its upserts with event time <= t that no delete voids, the one with the greatest
 * (event time, offset).  A delete of offset d and time T voids, for every
 * t >= T, the upserts of its partition with a smaller offset and those of other
 * partitions with an older Kafka timestamp.  Equal event times in different
 * partitions go by (Kafka timestamp, partition) of each partition's last.  T is the
 * caller's to know: a tombstone's Kafka timestamp, or what a change event tells; between
 * partitions the Kafka timestamps decide whatever T is.
 */
#ifndef UK_TIMELINE_H
#define UK_TIMELINE_H

#include "datatype/timestamp.h"

/*
 * A row of the versions table as versions.h describes it.  'row' stands for the
 * column values of the holder (u and r rows); the caller gives and gets it
 * back, nobody looks into it here.
 */
typedef struct VersionRow
{
	TimestampTz valid_from;
	int64		seq;
	char		op;
	int32		partition;
	int64		offset;
	int64		timestamp;		/* Kafka's, ms; -1 unset */
	TimestampTz event_time;		/* of the holder; valid_from for u and d */
	int64		cause;			/* derived rows */
	void	   *row;
} VersionRow;

typedef struct Timeline
{
	MemoryContext context;
	int64	   *next_seq;
	bool		shared;			/* messages of several partitions */
	int			nboundaries;	/* effective rows, by valid_from */
	int			max_boundaries;
	VersionRow *boundaries;
	int			nmessages;		/* u and d rows; complete only when shared */
	int			max_messages;
	VersionRow *messages;
	int			nadded;			/* rows to write since timeline_take */
	int			max_added;
	VersionRow *added;
} Timeline;

/* Lives in context; *next_seq is counted up for each row added. */
extern Timeline *timeline_create(MemoryContext context, int64 *next_seq);
extern void timeline_reset(Timeline *timeline);

/*
 * Tell the timeline what the table holds, in (valid_from, seq) order.  A key of one
 * partition needs the rows from the moment of the message on, at least the
 * last one; a shared key needs all its rows.
 */
extern void timeline_load(Timeline *timeline, const VersionRow *row);

/*
 * The message 'row' (op u or d, valid_from its time) comes in: adds rows for it
 * and for every boundary whose holder it changes.  For keys of one partition:
 * its offset is greater than all before.
 */
extern void timeline_message(Timeline *timeline, const VersionRow *message);

/*
 * For shared keys: messages are added first (timeline_message does only that once
 * 'shared' is set), then this finds the holders anew and adds what changed.
 */
extern void timeline_settle(Timeline *timeline, int64 cause);

/* Row that holds after the last boundary: NULL if none does. */
extern const VersionRow *timeline_top(const Timeline *timeline);

/* The topic's last word among messages (decision 5): shared keys only. */
extern const VersionRow *timeline_last_word(const Timeline *timeline);

#endif							/* UK_TIMELINE_H */
