/*
 * reduce.h
 *	  The last message of each key: a topic's current state (DESIGN.md,
 *	  decision 5).
 *
 * Records go in source by source in offset order, sources mixed in any way (a
 * source is a partition of one of the topics); what comes out does not depend on the
 * mixing.  Among each source's last record for a key, deletes included, the one with
 * the greatest (timestamp, source) wins; keys whose winner is a delete don't come out.
 */
#ifndef UK_REDUCE_H
#define UK_REDUCE_H

#include "changelog/change.h"
#include "changelog/key_filter.h"

typedef struct Reducer Reducer;

typedef struct ReducerStats
{
	int64		skipped;		/* bad messages passed by, on_error 'skip' */
	int64		spilled;		/* records written to the sort */
	int64		disk_kb;
	char	   *first_skipped;	/* text of the first one, in the reducer's context */
} ReducerStats;

/*
 * Everything lives in a child of CurrentMemoryContext.  'decoder' need not want any
 * column but the key, except with on_error 'skip': a message counts only if all of it
 * can be decoded, since otherwise it would take the place of a good one and
 * give nothing (case X12).  'headers': keep them.  'rewindable': reducer_rewind() will
 * be called; costs an extra pass when spilled.  'filter' (NULL: all) says which keys.
 */
extern Reducer *reducer_create(const TopicTable *table, ChangeDecoder *decoder, KeyFilter *filter,
							   bool headers, bool rewindable);

/*
 * There is one source, whose order is that of all messages: without it a
 * ROW_TRUNCATE is an error of its message, since nothing says what was before it elsewhere.
 */
extern void reducer_set_single(Reducer *reducer, bool single);

/* Copies what it needs, but not the topics' names.  Bounded by hash memory and work_mem, the rest is on disk. */
extern void reducer_add(Reducer *reducer, const KafkaRecord *records, int n);
extern void reducer_finish(Reducer *reducer);

/*
 * Winners, in no particular order, at most max and about 1 MB; 0 at the end.
 * They live until the next call.  Values that only the format takes for a delete may be
 * among them.
 */
extern int	reducer_next(Reducer *reducer, KafkaRecord *records, int max);
extern bool reducer_can_rewind(const Reducer *reducer);
extern void reducer_rewind(Reducer *reducer);
extern void reducer_end(Reducer *reducer);
extern const ReducerStats *reducer_stats(Reducer *reducer);

#endif							/* UK_REDUCE_H */
