/*
 * topic_read.h
 *	  Reading a bounded part of a table's topics: which offsets of which partitions, fixed
 *	  at the start (DESIGN.md, decision 3), and their records one batch after the other.
 */
#ifndef UK_TOPIC_READ_H
#define UK_TOPIC_READ_H

#include "fdw/options.h"
#include "fdw/topic_quals.h"

/* Half-open piece of a partition that is wanted. */
typedef struct TopicSlice
{
	const char *topic;
	int32		partition;
	int32		source;			/* number of the partition among all of the table's */
	int64		start;
	int64		end;
} TopicSlice;

typedef struct TopicReader TopicReader;

typedef struct TopicReaderStats
{
	int64		messages;		/* handed out, all passes together */
	int64		bytes;			/* of their keys and values */
	int64		tombstones;		/* null values among them */
} TopicReaderStats;

/* Everything lives in a child of CurrentMemoryContext.  Does not contact Kafka. */
extern TopicReader *topic_reader_create(const TopicTable *table, Oid userid);

/*
 * Find out topics, partitions and the bounds of the table in each of them.  They stay
 * fixed for the life of the reader: later calls do nothing.
 */
extern void topic_reader_open(TopicReader *reader);
extern bool topic_reader_is_open(const TopicReader *reader);

/* Messages between the bounds: an upper limit, since offsets may be sparse. */
extern int64 topic_reader_extent(const TopicReader *reader);

/* Begin a pass over what the conditions (NULL: everything) leave. */
extern void topic_reader_start(TopicReader *reader, const TopicBoxes *boxes);

/*
 * Next records, within the wanted slices; 0 at the end.  They live until the next
 * call, their topics' names as long as the reader.  Errors are those of kafka_consume().
 */
extern int	topic_reader_next(TopicReader *reader, KafkaRecord **records);

/* Give the consumer back; a later start takes another one. */
extern void topic_reader_release(TopicReader *reader);
extern void topic_reader_end(TopicReader *reader);

extern const TopicReaderStats *topic_reader_stats(const TopicReader *reader);

/* Slices of the current pass, by source and start; and how many sources there are. */
extern const TopicSlice *topic_reader_slices(const TopicReader *reader, int *n, int *nsources);

#endif							/* UK_TOPIC_READ_H */
