/*
 * feed_internal.h
 *	  What steady feeds and the first load share.
 */
#ifndef UK_FEED_INTERNAL_H
#define UK_FEED_INTERNAL_H

#include "changelog/change.h"
#include "materialize/apply.h"
#include "materialize/feed.h"
#include "materialize/sources.h"

/* Source of a maintained table, opened as its owner sees it. */
typedef struct FeedSource
{
	MaintainedTable *table;
	TopicTable *topic;
	ApplyMap   *map;
	ChangeDecoder *decoder;
	KafkaConsumer *consumer;	/* belongs to the context it was opened in */
	int			timeout_ms;		/* the server's */
	bool		one_source;		/* the table has, which a ROW_TRUNCATE needs */
} FeedSource;

/*
 * Fill in topic, map and decoder (not the consumer) of source->table.  In
 * CurrentMemoryContext.
 */
extern void feed_source_define(FeedSource *source);
extern void feed_source_connect(FeedSource *source, MemoryContext context);

/*
 * Decode records[0 .. n) into batch by the table's policy and check moments and
 * keys.  Returns how many records are done with; *stop is the error that ended
 * the batch, NULL if none did.  Skipped messages are in the errors table by then.
 */
extern int	feed_decode(FeedSource *source, const KafkaRecord *records, int n, ChangeBatch *batch, ChangeError **stop);

/* Record a message in the errors table. */
extern void feed_record_error(FeedSource *source, const KafkaRecord *record, const ChangeError *error);

/* The table stops at this message: state, errors table. */
extern void feed_stop_at(FeedSource *source, const KafkaRecord *record, const ChangeError *error);

/* Clear the recorded errors that a batch clears; positions are those before it. */
extern void feed_clear_errors(const FeedSource *source, const ChangeBatch *batch, const Positions *positions);

/* Note records[0 .. n) as applied in positions (by source). */
extern void feed_advance(Positions *positions, const KafkaRecord *records, int n);

/*
 * Apply up to the stable ends as of now, in the current transaction; returns the number of
 * messages.  The table must be live; stops early when it stops.
 */
extern int64 feed_run_to_end(Oid target);

extern Positions *positions_copy(const Positions *positions);

/*
 * feed_look.c: note where the sources of a table end now; and was everything applied that
 * the topic of this one held at the last look, a moment ago?  False without one.
 */
extern void feed_look_note(Oid target, int n, const int64 *ends);
extern bool feed_look_settled(Oid target, const Positions *positions, int32 source);

#endif							/* UK_FEED_INTERNAL_H */
