/*
 * normalize.h
 *	  An upsert topic as a changelog: every effective change as +I, -U and +U, or
 *	  -D, in the order of the log.
 *
 * An upsert that changes no column but key and metadata emits nothing, nor does a
 * delete of a key that is not there.  -U and -D carry the whole old row, with
 * the metadata of the message that wrote it.
 *
 * Sources (partitions) are merged by (timestamp, source), each one's own order kept.  After
 * each message the current row of its key is that of the winner of reduce.h's
 * rule among the messages so far; when it changes, rows come out.
 */
#ifndef UK_NORMALIZE_H
#define UK_NORMALIZE_H

#include "changelog/change.h"
#include "changelog/key_filter.h"

typedef struct Normalizer Normalizer;

typedef struct NormalizerStats
{
	int64		skipped;
	int64		disk_kb;
	char	   *first_skipped;
} NormalizerStats;

/*
 * Everything lives in a child of CurrentMemoryContext.  'decoder' decodes all
 * columns: which changes are effective must not depend on what a query reads.
 * 'key_decoder' need not, except with on_error 'skip'; it may be the same.
 * 'wanted' (NULL: all) are the columns that come out, 'filter' (NULL: all) says of
 * which keys.
 */
extern Normalizer *normalizer_create(const TopicTable *table, TupleDesc desc,
									 ChangeDecoder *key_decoder, ChangeDecoder *decoder,
									 KeyFilter *filter, const Bitmapset *wanted, bool headers, bool rewindable);
extern void normalizer_add(Normalizer *normalizer, const KafkaRecord *records, int n);
extern void normalizer_finish(Normalizer *normalizer);

/* Fills natts columns, valid until the next call; false at the end. */
extern bool normalizer_next(Normalizer *normalizer, Datum *values, bool *isnull);
extern bool normalizer_can_rewind(const Normalizer *normalizer);
extern void normalizer_rewind(Normalizer *normalizer);
extern void normalizer_end(Normalizer *normalizer);
extern const NormalizerStats *normalizer_stats(Normalizer *normalizer);

#endif							/* UK_NORMALIZE_H */
