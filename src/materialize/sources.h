/*
 * sources.h
 *	  The sources of a maintained table: partitions of the topics that it reads, with the
 *	  numbers they keep, and whether the broker still has what was applied.
 *
 * Numbers are given in the order in which sources are found: those of the first load by
 * topic and partition, later ones behind them.  They stay for as long as any row, error
 * or position may refer to them: a topic that goes away leaves its numbers unused, and
 * one of the same name that comes later gets new ones.
 */
#ifndef UK_SOURCES_H
#define UK_SOURCES_H

#include "fdw/options.h"
#include "materialize/catalog.h"

typedef enum SourceState
{
	SOURCE_READ,
	SOURCE_LEFT_OUT,			/* the foreign table does not read its topic any more */
	SOURCE_GIVEN_UP,			/* its topic was deleted, and nobody waits for it */
	SOURCE_MISSING,				/* its topic does not exist */
	SOURCE_CUT_OFF				/* its topic has fewer partitions */
} SourceState;

/*
 * How the sources of 'positions' stand with the topics that the broker has now, one state
 * for each.  Sources that are new are put behind them, with next_offset -1.  ERROR HV00R
 * if a topic of the list does not exist and never did.  In CurrentMemoryContext.
 */
extern SourceState *sources_find(KafkaConsumer *consumer, const TopicTable *table, Positions *positions);

/* One range for each source that is read; names are those of positions. */
extern KafkaRange *sources_ranges(const Positions *positions, const SourceState *states, int *n);

/* Why a table cannot go on from its positions. */
typedef struct SourceProblem
{
	TableState	state;
	int			sqlerrcode;
	int32		source;			/* -1: the table as a whole */
	int64		offset;
	char	   *detail;
} SourceProblem;

/*
 * Compare the first nknown positions with what the topics have: low and end are by source,
 * of those that are read.  False, and *problem filled in, when something is wrong.
 */
extern bool sources_check(KafkaConsumer *consumer, const TopicTable *table, const Positions *positions, int nknown,
						  const SourceState *states, const int64 *low, const int64 *end, SourceProblem *problem);

/* Nobody waits for the topic of this source any more: all of its sources are given up. */
extern void sources_give_up(Oid target, Positions *positions, int32 source);

/* Tells a record from another at its offset: part of a position. */
extern uint32 sources_record_hash(const KafkaRecord *record);

#endif							/* UK_SOURCES_H */
