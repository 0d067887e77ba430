/*
 * topic_find.h
 *	  Which topics a foreign table reads: one, a list, or those that match a pattern.
 *
 * A partition of one of them is a source.  Who reads sources numbers them, densely:
 * the number is what tells partitions apart in everything that follows (the order of
 * equal timestamps, the last message per key, __partition of versions).  Over one
 * plain topic it is the partition's own number.  A scan numbers the partitions of all
 * topics in the order of their names; a maintained table in the order in which it has
 * found them, and keeps that (materialize/catalog.h).
 */
#ifndef UK_TOPIC_FIND_H
#define UK_TOPIC_FIND_H

#include "fdw/options.h"

typedef struct FoundTopic
{
	const char *name;			/* palloc'd, or the table's */
	int			npartitions;	/* -1: it does not exist */
} FoundTopic;

/*
 * The table's topics as the broker has them now, by name, in a round trip or two however
 * many there are.  ERROR HV00R for a topic of the list that does not exist, which with
 * missing_ok has -1 partitions instead; 42501 for one that the user may not describe.  A
 * pattern finds what the user may describe.  In CurrentMemoryContext.
 */
extern FoundTopic *topic_find(KafkaConsumer *consumer, const TopicTable *table, bool missing_ok, int *n);

/* One range per partition of the topics, numbered, with nothing in it yet. */
extern KafkaRange *topic_find_ranges(KafkaConsumer *consumer, const TopicTable *table, int *n);

/* ERROR HV024 unless it is a regular expression. */
extern void topic_pattern_check(const char *option, const char *pattern);

#endif							/* UK_TOPIC_FIND_H */
