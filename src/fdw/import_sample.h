/*
 * import_sample.h
 *	  The last messages of a topic, and what they propose for its keys and values.
 */
#ifndef UK_IMPORT_SAMPLE_H
#define UK_IMPORT_SAMPLE_H

#include "fdw/import_columns.h"
#include "fdw/import_events.h"
#include "fdw/import_guess.h"
#include "kafka/kafka.h"

typedef struct TopicSample
{
	int			n;				/* messages */
	BytesGuess	keys;
	BytesGuess	values;
	EventGuess	events;
} TopicSample;

/* Look at 'wanted' messages, about as many from each partition that has any.  ERROR as consumers raise it. */
extern void sample_topic(KafkaConsumer *consumer, const char *topic, int wanted, TopicSample *sample);

/*
 * Proposals from a sample.  *keyed: each message, or each change event of a row, has a key;
 * else 'keys' has no columns, and no columns either where they do not name the rows.
 */
extern void sample_parts(const TopicSample *sample, ImportPart *keys, ImportPart *values, bool *keyed);

/* One column of this name, for the bytes as they are */
extern void sample_raw_part(const BytesGuess *guess, const char *name, ImportPart *part);

#endif							/* UK_IMPORT_SAMPLE_H */
