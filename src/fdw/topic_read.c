/*
 * topic_read.c
 *	  From a table's bounds and a query's conditions to records: partitions, offset
 *	  intervals, ranges.  Knows offsets only; what the bytes mean is for others.
 */
#include "postgres.h"

#include "fdw/topic_find.h"
#include "fdw/topic_read.h"
#include "fdw/written.h"
#include "miscadmin.h"
#include "upsert_kafka.h"
#include "utils/memutils.h"

/*
 * Between two wanted slices of a partition, fewer records than this are read over;
 * starting anew at another offset costs some milliseconds.
 */
#define GAP_READ_OVER	5000

/* Up to so many offsets per partition a pass is narrow. */
#define NARROW_OFFSETS	1000

/* More different timestamps than this are not looked up one by one. */
#define MAX_TIMES		32

/* Records are taken from the consumer so many and about so many bytes at a time. */
#define FIRST_RECORDS	256
#define MIN_RECORDS		16
#define MAX_RECORDS		4096
#define BATCH_BYTES		(4 * 1024 * 1024)

#define POLL_MS			1000

struct TopicReader
{
	const TopicTable *table;
	KafkaConfig *config;
	MemoryContext cxt;
	MemoryContext pass_cxt;		/* slices and ranges of the current pass */
	KafkaConsumer *consumer;
	MemoryContext consumer_cxt; /* its owner: goes with it */
	bool		narrow;			/* of the current pass: few records are wanted */

	bool		open;
	int			nsources;
	KafkaRange *sources;		/* topic and partition of each */
	int64	   *start;			/* the table's bounds */
	int64	   *end;

	int			nslices;
	TopicSlice *slices;
	bool		started;		/* a pass: ranges not yet given to a consumer */
	bool		reading;		/* the consumer reads them */
	int			nranges;
	KafkaRange *ranges;
	int		   *range_slice;	/* per range: slice that the next record may be in */
	int		   *range_limit;	/* per range: behind its last slice */

	int			max_records;
	KafkaRecord *records;
	TopicReaderStats stats;
};

TopicReader *
topic_reader_create(const TopicTable *table, Oid userid)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "topic reader", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TopicReader *reader = palloc0(sizeof(TopicReader));

	reader->table = table;
	reader->config = kafka_config_get(table->serverid, userid);
	reader->cxt = cxt;
	reader->pass_cxt = AllocSetContextCreate(cxt, "topic reader pass", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(old);
	return reader;
}

void
topic_reader_release(TopicReader *reader)
{
	if (reader->consumer != NULL)
	{
		kafka_consumer_release(reader->consumer);
		MemoryContextDelete(reader->consumer_cxt);
	}
	reader->consumer = NULL;
	reader->reading = false;
}

/* A consumer that suits the current pass. */
static void
acquire(TopicReader *reader)
{
	if (reader->consumer != NULL && reader->config->narrow == reader->narrow)
		return;
	topic_reader_release(reader);
	reader->config->narrow = reader->narrow;
	reader->consumer_cxt = AllocSetContextCreate(reader->cxt, "topic consumer", ALLOCSET_SMALL_SIZES);
	reader->consumer = kafka_consumer_acquire(reader->config, uk_queue_kb, reader->consumer_cxt);
}

void
topic_reader_end(TopicReader *reader)
{
	topic_reader_release(reader);
	MemoryContextDelete(reader->cxt);
}

bool
topic_reader_is_open(const TopicReader *reader)
{
	return reader->open;
}

static void
offsets_for_time(TopicReader *reader, int64 time, int64 *offsets)
{
	int64	   *times = palloc(sizeof(int64) * Max(reader->nsources, 1));

	for (int i = 0; i < reader->nsources; i++)
		times[i] = time;
	kafka_offsets_for_times(reader->consumer, reader->nsources, reader->sources, times, offsets);
	pfree(times);
}

void
topic_reader_open(TopicReader *reader)
{
	const TopicTable *table = reader->table;
	MemoryContext old;
	int64	   *offsets;
	int			n;

	if (topic_reader_is_open(reader))
		return;
	acquire(reader);
	old = MemoryContextSwitchTo(reader->cxt);
	reader->sources = topic_find_ranges(reader->consumer, table, &n);
	reader->nsources = n;
	offsets = palloc(sizeof(int64) * Max(n, 1));
	reader->start = palloc(sizeof(int64) * Max(n, 1));
	reader->end = palloc(sizeof(int64) * Max(n, 1));
	if (n > 0)
		kafka_query_offsets(reader->consumer, n, reader->sources, reader->start, reader->end);
	if (table->bounded_mode == BOUNDED_LATEST)
		written_wait(reader->consumer, reader->config, n, reader->sources, reader->end);

	switch (table->startup_mode)
	{
		case STARTUP_EARLIEST:
			break;
		case STARTUP_LATEST:
			for (int i = 0; i < n; i++)
				reader->start[i] = Max(reader->start[i], reader->end[i]);
			break;
		case STARTUP_TIMESTAMP:
			offsets_for_time(reader, table->startup_timestamp, offsets);
			for (int i = 0; i < n; i++)
				reader->start[i] = Max(reader->start[i], offsets[i]);
			break;
		case STARTUP_SPECIFIC:
			/* of a plain topic only; partitions that are not named are read from their beginning */
			for (int i = 0; i < table->nstartup_offsets; i++)
			{
				const PartitionOffset *given = &table->startup_offsets[i];

				if (given->partition >= 0 && given->partition < n)
					reader->start[given->partition] = Max(reader->start[given->partition], given->offset);
			}
			break;
	}
	switch (table->bounded_mode)
	{
		case BOUNDED_LATEST:
			break;
		case BOUNDED_TIMESTAMP:
			offsets_for_time(reader, table->bounded_timestamp, offsets);
			for (int i = 0; i < n; i++)
				reader->end[i] = Min(reader->end[i], offsets[i]);
			break;
		case BOUNDED_SPECIFIC:
			/* partitions that are not named are read to their end */
			for (int i = 0; i < table->nbounded_offsets; i++)
			{
				const PartitionOffset *given = &table->bounded_offsets[i];

				if (given->partition >= 0 && given->partition < n)
					reader->end[given->partition] = Min(reader->end[given->partition], given->offset);
			}
			break;
	}
	pfree(offsets);
	reader->open = true;
	MemoryContextSwitchTo(old);
}

int64
topic_reader_extent(const TopicReader *reader)
{
	int64		extent = 0;

	for (int i = 0; i < reader->nsources; i++)
		extent += Max(reader->end[i] - reader->start[i], 0);
	return extent;
}

static int
compare_slices(const void *a, const void *b)
{
	const TopicSlice *left = a;
	const TopicSlice *right = b;

	if (left->source != right->source)
		return left->source < right->source ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return 0;
}

static int
compare_times(const void *a, const void *b)
{
	int64		left = *(const int64 *) a;
	int64		right = *(const int64 *) b;

	return left < right ? -1 : left > right;
}

/* Different timestamps that boxes begin at, ascending. */
static int
distinct_times(const TopicBoxes *boxes, int64 **times)
{
	int			n = 0;
	int			distinct = 0;

	*times = palloc(sizeof(int64) * Max(boxes->n, 1));
	for (int i = 0; i < boxes->n; i++)
		if (boxes->boxes[i].min_timestamp > 0)
			(*times)[n++] = boxes->boxes[i].min_timestamp;
	qsort(*times, n, sizeof(int64), compare_times);
	for (int i = 0; i < n; i++)
		if (distinct == 0 || (*times)[i] != (*times)[distinct - 1])
			(*times)[distinct++] = (*times)[i];
	/* too many: the first is a bound for all of them */
	return distinct > MAX_TIMES ? 1 : distinct;
}

/* The wanted slices: the boxes cut with the table's bounds, sorted and merged. */
static void
make_slices(TopicReader *reader, const TopicBoxes *boxes)
{
	int			max = 64;
	int			n = 0;
	int			merged = 0;
	int			ntimes = 0;
	int64	   *times = NULL;
	int64	  **time_offsets = NULL;

	reader->slices = palloc(sizeof(TopicSlice) * max);
	if (boxes != NULL)
		ntimes = distinct_times(boxes, &times);
	if (ntimes > 0)
	{
		acquire(reader);
		time_offsets = palloc(sizeof(int64 *) * ntimes);
		for (int i = 0; i < ntimes; i++)
		{
			time_offsets[i] = palloc(sizeof(int64) * Max(reader->nsources, 1));
			offsets_for_time(reader, times[i], time_offsets[i]);
		}
	}

	for (int source = 0; source < reader->nsources; source++)
	{
		const char *topic = reader->sources[source].topic;
		int32		partition = reader->sources[source].partition;
		int			nboxes = boxes ? boxes->n : 1;

		for (int i = 0; i < nboxes; i++)
		{
			TopicSlice *slice;
			int64		start = reader->start[source];
			int64		end = reader->end[source];

			if (boxes)
			{
				const TopicBox *box = &boxes->boxes[i];

				if (partition < box->first_partition || partition > box->last_partition)
					continue;
				if (box->topic != NULL && strcmp(box->topic, topic) != 0)
					continue;
				start = Max(start, box->first_offset);
				if (box->last_offset < PG_INT64_MAX)
					end = Min(end, box->last_offset + 1);
				if (box->min_timestamp > 0)
				{
					int			t = 0;

					while (t + 1 < ntimes && times[t + 1] <= box->min_timestamp)
						t++;
					start = Max(start, time_offsets[t][source]);
				}
			}
			if (start >= end)
				continue;
			if (n == max)
			{
				max *= 2;
				reader->slices = repalloc(reader->slices, sizeof(TopicSlice) * max);
			}
			slice = &reader->slices[n++];
			slice->topic = topic;
			slice->partition = partition;
			slice->source = source;
			slice->start = start;
			slice->end = end;
		}
		CHECK_FOR_INTERRUPTS();
	}

	qsort(reader->slices, n, sizeof(TopicSlice), compare_slices);
	for (int i = 0; i < n; i++)
	{
		TopicSlice *slice = &reader->slices[i];
		TopicSlice *last = merged > 0 ? &reader->slices[merged - 1] : NULL;

		if (last && last->source == slice->source && slice->start <= last->end)
			last->end = Max(last->end, slice->end);
		else
			reader->slices[merged++] = *slice;
	}
	reader->nslices = merged;
}

/* Is it plain before the topic was asked that only a few records are wanted? */
static bool
boxes_are_narrow(const TopicBoxes *boxes)
{
	int64		offsets = 0;

	if (boxes == NULL)
		return false;
	for (int i = 0; i < boxes->n; i++)
	{
		const TopicBox *box = &boxes->boxes[i];

		if (box->last_offset - box->first_offset >= NARROW_OFFSETS - offsets)
			return false;
		offsets += box->last_offset - box->first_offset + 1;
	}
	return true;
}

/* Slices of one partition with narrow gaps between them are one range. */
static void
make_ranges(TopicReader *reader)
{
	int			max = Max(reader->nslices, 1);

	reader->nranges = 0;
	reader->ranges = palloc0(sizeof(KafkaRange) * max);
	reader->range_slice = palloc(sizeof(int) * max);
	reader->range_limit = palloc(sizeof(int) * max);
	for (int i = 0; i < reader->nslices; i++)
	{
		const TopicSlice *slice = &reader->slices[i];
		KafkaRange *range = reader->nranges > 0 ? &reader->ranges[reader->nranges - 1] : NULL;

		if (range == NULL || range->source != slice->source ||
			slice->start - range->end >= GAP_READ_OVER)
		{
			reader->range_slice[reader->nranges] = i;
			range = &reader->ranges[reader->nranges++];
			range->topic = slice->topic;
			range->partition = slice->partition;
			range->source = slice->source;
			range->start = range->position = slice->start;
		}
		range->end = slice->end;
		reader->range_limit[reader->nranges - 1] = i + 1;
	}
}

void
topic_reader_start(TopicReader *reader, const TopicBoxes *boxes)
{
	MemoryContext old;

	/* a running read refers to the ranges that go away here */
	if (reader->reading)
		kafka_consume_stop(reader->consumer);
	reader->reading = false;
	reader->nslices = reader->nranges = 0;
	reader->narrow = boxes_are_narrow(boxes);

	MemoryContextReset(reader->pass_cxt);
	old = MemoryContextSwitchTo(reader->pass_cxt);
	topic_reader_open(reader);
	make_slices(reader, boxes);
	make_ranges(reader);
	MemoryContextSwitchTo(old);
	if (reader->records == NULL)
		reader->records = MemoryContextAlloc(reader->cxt, sizeof(KafkaRecord) * MAX_RECORDS);
	reader->max_records = FIRST_RECORDS;
	reader->started = true;
}

/* Drop records between slices; count the others. */
static int
filter_records(TopicReader *reader, int n)
{
	KafkaRecord *records = reader->records;
	int			kept = 0;
	int64		bytes = 0;

	for (int i = 0; i < n; i++)
	{
		const KafkaRecord *record = &records[i];
		int		   *s = &reader->range_slice[record->range];
		int			limit = reader->range_limit[record->range];

		while (*s < limit && record->offset >= reader->slices[*s].end)
			(*s)++;
		if (*s >= limit || record->offset < reader->slices[*s].start)
			continue;
		bytes += record->key_len + record->value_len;
		if (record->value == NULL)
			reader->stats.tombstones++;
		if (kept != i)
			records[kept] = *record;
		kept++;
	}
	reader->stats.messages += kept;
	reader->stats.bytes += bytes;
	if (kept > 0)
		reader->max_records = Max(MIN_RECORDS,
								  Min(MAX_RECORDS, BATCH_BYTES / (bytes / kept + 1)));
	return kept;
}

static bool
all_done(const TopicReader *reader)
{
	for (int i = 0; i < reader->nranges; i++)
		if (!reader->ranges[i].done)
			return false;
	return true;
}

int
topic_reader_next(TopicReader *reader, KafkaRecord **records)
{
	*records = reader->records;
	if (reader->started)
	{
		reader->started = false;
		if (reader->nranges == 0)
			return 0;
		acquire(reader);
		kafka_consume_start(reader->consumer, reader->ranges, reader->nranges);
		reader->reading = true;
	}
	while (reader->reading)
	{
		int			n;

		CHECK_FOR_INTERRUPTS();
		if (all_done(reader))
		{
			kafka_consume_stop(reader->consumer);
			reader->reading = false;
			break;
		}
		n = kafka_consume(reader->consumer, reader->records, reader->max_records, POLL_MS, false, NULL);
		if (n > 0)
			n = filter_records(reader, n);
		if (n > 0)
			return n;
	}
	return 0;
}

const TopicReaderStats *
topic_reader_stats(const TopicReader *reader)
{
	return &reader->stats;
}

const TopicSlice *
topic_reader_slices(const TopicReader *reader, int *n, int *nsources)
{
	*n = reader->nslices;
	*nsources = reader->nsources;
	return reader->slices;
}
