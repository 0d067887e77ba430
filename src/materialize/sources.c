/*
 * sources.c
 *	  Which sources a maintained table has, against what the broker has: new topics and
 *	  partitions, topics that went away, messages that are not the ones applied.
 *	  Knows neither feeds nor workers; decides nothing but what is wrong.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fdw/topic_find.h"
#include "materialize/sources.h"

/* Topics by name, and the number of each partition's source: -1, not known. */
typedef struct FoundSources
{
	int			ntopics;
	FoundTopic *topics;
	int		  **numbers;
} FoundSources;

static int
compare_found(const void *a, const void *b)
{
	return strcmp(((const FoundTopic *) a)->name, ((const FoundTopic *) b)->name);
}

static int
find_topic(const FoundSources *found, const char *topic)
{
	FoundTopic	key = {.name = topic};
	FoundTopic *at = bsearch(&key, found->topics, found->ntopics, sizeof(FoundTopic), compare_found);

	return at ? (int) (at - found->topics) : -1;
}

/*
 * A pattern does not see what the user may not describe: a topic that was there is asked
 * for by its name, which tells "deleted" from "refused".
 */
static void
ask_for_missing(KafkaConsumer *consumer, const TopicTable *table, const Positions *positions, FoundSources *found)
{
	const char **names = palloc(sizeof(char *) * Max(positions->n, 1));
	int		   *partitions = palloc(sizeof(int) * Max(positions->n, 1));
	int			n = 0;

	for (int i = 0; i < positions->n; i++)
	{
		const Position *source = &positions->positions[i];

		/* once for each topic */
		if (source->partition == 0 && !source->given_up && find_topic(found, source->topic) < 0 &&
			topic_table_reads(table, source->topic))
			names[n++] = source->topic;
	}
	kafka_partition_counts(consumer, n, names, true, partitions);
	found->topics = repalloc(found->topics, sizeof(FoundTopic) * Max(found->ntopics + n, 1));
	for (int i = 0; i < n; i++)
	{
		found->topics[found->ntopics].name = names[i];
		found->topics[found->ntopics++].npartitions = partitions[i];
	}
	qsort(found->topics, found->ntopics, sizeof(FoundTopic), compare_found);
}

static SourceState
state_of(const TopicTable *table, const Position *source, FoundSources *found, int number)
{
	int			t;

	if (source->given_up)
		return SOURCE_GIVEN_UP;
	t = find_topic(found, source->topic);
	if (t < 0)
		return SOURCE_LEFT_OUT;
	if (found->topics[t].npartitions < 0)
		return SOURCE_MISSING;
	if (source->partition >= found->topics[t].npartitions)
		return SOURCE_CUT_OFF;
	found->numbers[t][source->partition] = number;
	return SOURCE_READ;
}

SourceState *
sources_find(KafkaConsumer *consumer, const TopicTable *table, Positions *positions)
{
	FoundSources found;
	SourceState *states;
	int			nknown = positions->n;
	int			nnew = 0;

	found.topics = topic_find(consumer, table, true, &found.ntopics);
	if (table->topic_pattern)
		ask_for_missing(consumer, table, positions, &found);
	found.numbers = palloc(sizeof(int *) * Max(found.ntopics, 1));
	for (int t = 0; t < found.ntopics; t++)
	{
		int			npartitions = Max(found.topics[t].npartitions, 0);

		found.numbers[t] = palloc(sizeof(int) * Max(npartitions, 1));
		for (int p = 0; p < npartitions; p++)
			found.numbers[t][p] = -1;
		nnew += npartitions;
	}

	states = palloc(sizeof(SourceState) * Max(nknown + nnew, 1));
	for (int i = 0; i < nknown; i++)
		states[i] = state_of(table, &positions->positions[i], &found, i);

	positions->several |= !topic_table_is_plain(table);
	positions->positions = repalloc(positions->positions, sizeof(Position) * Max(nknown + nnew, 1));
	for (int t = 0; t < found.ntopics; t++)
	{
		bool		known = false;

		for (int i = 0; i < nknown && found.topics[t].npartitions < 0 && !known; i++)
			known = states[i] == SOURCE_MISSING && strcmp(positions->positions[i].topic, found.topics[t].name) == 0;
		if (found.topics[t].npartitions < 0 && !known && (positions->several || nknown == 0))
			(void) kafka_partition_count(consumer, found.topics[t].name, false);

		for (int p = 0; p < found.topics[t].npartitions; p++)
		{
			Position   *source = &positions->positions[positions->n];

			if (found.numbers[t][p] >= 0)
				continue;
			memset(source, 0, sizeof(Position));
			source->topic = pstrdup(found.topics[t].name);
			source->partition = p;
			source->next_offset = source->last_offset = source->last_timestamp = -1;
			states[positions->n++] = SOURCE_READ;
		}
	}
	return states;
}

KafkaRange *
sources_ranges(const Positions *positions, const SourceState *states, int *n)
{
	KafkaRange *ranges = palloc0(sizeof(KafkaRange) * Max(positions->n, 1));

	*n = 0;
	for (int i = 0; i < positions->n; i++)
	{
		if (states[i] != SOURCE_READ)
			continue;
		ranges[*n].topic = positions->positions[i].topic;
		ranges[*n].partition = positions->positions[i].partition;
		ranges[(*n)++].source = i;
	}
	return ranges;
}

uint32
sources_record_hash(const KafkaRecord *record)
{
	uint32		hash = 0;

	if (record->key)
		hash = hash_bytes((const unsigned char *) record->key, record->key_len);
	if (record->value)
		hash = hash_combine(hash, hash_bytes((const unsigned char *) record->value, record->value_len));
	return hash;
}

/* === what is wrong ================================================================= */

static bool
wrong(SourceProblem *problem, TableState state, int sqlerrcode, int32 source, int64 offset, char *detail)
{
	problem->state = state;
	problem->sqlerrcode = sqlerrcode;
	problem->source = source;
	problem->offset = offset;
	problem->detail = detail;
	return false;
}

/*
 * Does the topic still hold what was applied last?  A topic that was deleted and
 * created again may have offsets that look right; the last applied record tells
 * unless compaction took it (the limit of this check).
 */
static bool
check_fingerprints(KafkaConsumer *consumer, const Positions *positions, int nknown, const SourceState *states,
				   const int64 *low, SourceProblem *problem)
{
	KafkaRange *ranges = palloc0(Max(nknown, 1) * sizeof(KafkaRange));
	KafkaRecord *records = palloc(64 * sizeof(KafkaRecord));
	int			n = 0;
	bool		open = true;
	bool		same = true;

	for (int i = 0; i < nknown; i++)
	{
		const Position *position = &positions->positions[i];

		if (states[i] != SOURCE_READ || position->last_offset < low[i])
			continue;
		ranges[n].topic = position->topic;
		ranges[n].partition = position->partition;
		ranges[n].source = i;
		ranges[n].start = position->last_offset;
		ranges[n].end = position->last_offset + 1;
		n++;
	}
	if (n == 0)
		return true;
	kafka_consume_start(consumer, ranges, n);
	while (open && same)
	{
		int			got = kafka_consume(consumer, records, 64, 1000, false, NULL);

		for (int i = 0; i < got && same; i++)
		{
			const KafkaRecord *record = &records[i];
			const Position *position = &positions->positions[record->source];

			if (record->offset == position->last_offset &&
				(record->timestamp != position->last_timestamp || sources_record_hash(record) != position->last_hash))
				same = wrong(problem, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 record->source, record->offset,
							 psprintf("Topic \"%s\", partition %d, offset %lld: another message than the one applied there. The topic was deleted and created again.",
									  record->topic, record->partition, (long long) record->offset));
		}
		open = false;
		for (int i = 0; i < n; i++)
			if (!ranges[i].done)
				open = true;
	}
	kafka_consume_stop(consumer);
	return same;
}

/* How many partitions the topic of a source had and has. */
static char *
cut_off_text(const Positions *positions, int nknown, const SourceState *states, int32 source)
{
	const char *topic = positions->positions[source].topic;
	int			had = 0;
	int			has = 0;

	for (int i = 0; i < nknown; i++)
	{
		if (strcmp(positions->positions[i].topic, topic) != 0 || positions->positions[i].given_up)
			continue;
		had++;
		has += states[i] == SOURCE_READ;
	}
	return psprintf("Topic \"%s\" has %d partitions; it had %d. It was deleted and created again.", topic, has, had);
}

bool
sources_check(KafkaConsumer *consumer, const TopicTable *table, const Positions *positions, int nknown,
			  const SourceState *states, const int64 *low, const int64 *end, SourceProblem *problem)
{
	bool		any = false;
	bool		known = false;

	for (int i = 0; i < nknown; i++)
	{
		if (states[i] == SOURCE_MISSING)
			return wrong(problem, TABLE_TOPIC_CHANGED, ERRCODE_FDW_TABLE_NOT_FOUND, positions->several ? i : -1, -1,
						 psprintf("Topic \"%s\" does not exist any more.", positions->positions[i].topic));
		known |= states[i] != SOURCE_GIVEN_UP;
		any |= states[i] != SOURCE_GIVEN_UP && states[i] != SOURCE_LEFT_OUT;
	}
	if (known && !any)
		return wrong(problem, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, -1, -1,
					 psprintf("The foreign table now reads topic \"%s\"; the positions are of topic \"%s\".",
							  table->topic, positions->topic));
	for (int i = 0; i < nknown; i++)
	{
		if (states[i] == SOURCE_CUT_OFF)
			return wrong(problem, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 positions->several ? i : -1, -1, cut_off_text(positions, nknown, states, i));
	}
	for (int i = 0; i < nknown; i++)
	{
		const Position *position = &positions->positions[i];
		int64		next = position->next_offset;

		if (states[i] != SOURCE_READ)
			continue;
		if (next > end[i])
			return wrong(problem, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, i, next,
						 psprintf("Topic \"%s\", partition %d ends at offset %lld, before the position %lld. It was deleted and created again.",
								  position->topic, position->partition, (long long) end[i], (long long) next));
		if (next < low[i])
			return wrong(problem, TABLE_DATA_LOST, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, i, next,
						 psprintf("Topic \"%s\", partition %d starts at offset %lld, after the position %lld: messages between them were deleted before they were applied.",
								  position->topic, position->partition, (long long) low[i], (long long) next));
	}
	return check_fingerprints(consumer, positions, nknown, states, low, problem);
}

void
sources_give_up(Oid target, Positions *positions, int32 source)
{
	const char *topic = positions->positions[source].topic;

	for (int i = 0; i < positions->n; i++)
	{
		Position   *position = &positions->positions[i];

		if (position->given_up || strcmp(position->topic, topic) != 0)
			continue;
		position->given_up = true;
		if (i < positions->nstored)
			topic_source_give_up(target, i);
	}
}
