/*
 * outbox_readable.c
 *	  Whether readers of committed messages can see what a stream has sent, by the last
 *	  stable offsets of its partitions.  Knows nothing of how it is sent.
 */
#include "postgres.h"

#include "fdw/options.h"
#include "fdw/written.h"
#include "miscadmin.h"
#include "outbox/outbox_readable.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define FIRST_POLL_MS	5		/* between looks at the last stable offsets */
#define MAX_POLL_MS		200
#define RECREATED_MS	1000	/* a log that is shorter than what was written is believed after this */

/* Our own text: what does not parse was put there by somebody's hand, and is nothing. */
static int
parse(const char *text, BookmarkEntry **entries)
{
	int			n;

	if (text == NULL || !bookmark_parse(text, &n, entries))
		return 0;
	return n;
}

static char *
text_of(int n, const BookmarkEntry *entries)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < n; i++)
		bookmark_append(&text, entries[i].topic, entries[i].partition, entries[i].next_offset);
	return text.len > 0 ? text.data : NULL;
}

static int
compare_entries(const void *a, const void *b)
{
	const BookmarkEntry *left = a;
	const BookmarkEntry *right = b;
	int			cmp = strcmp(left->topic, right->topic);

	if (cmp != 0)
		return cmp;
	if (left->partition != right->partition)
		return left->partition < right->partition ? -1 : 1;
	return left->next_offset < right->next_offset ? 1 : left->next_offset > right->next_offset ? -1 : 0;
}

/* One entry per partition, the greatest offset of each. */
static int
merge(int n, BookmarkEntry *entries)
{
	int			kept = 0;

	qsort(entries, n, sizeof(BookmarkEntry), compare_entries);
	for (int i = 0; i < n; i++)
	{
		if (kept == 0 || entries[kept - 1].partition != entries[i].partition ||
			strcmp(entries[kept - 1].topic, entries[i].topic) != 0)
			entries[kept++] = entries[i];
	}
	return kept;
}

char *
outbox_unreadable_add(const char *text, int n, const KafkaWritten *written)
{
	BookmarkEntry *old = NULL;
	BookmarkEntry *entries;
	int			nold = parse(text, &old);

	entries = palloc(sizeof(BookmarkEntry) * Max(nold + n, 1));
	if (nold > 0)
		memcpy(entries, old, sizeof(BookmarkEntry) * nold);
	for (int i = 0; i < n; i++)
	{
		entries[nold + i].topic = pstrdup(written[i].topic);
		entries[nold + i].partition = written[i].partition;
		entries[nold + i].next_offset = written[i].offset + 1;
	}
	return text_of(merge(nold + n, entries), entries);
}

/* Entries as ranges, which name their partitions. */
static KafkaRange *
ranges_of(int n, const BookmarkEntry *entries)
{
	KafkaRange *ranges = palloc0(sizeof(KafkaRange) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		ranges[i].topic = entries[i].topic;
		ranges[i].partition = entries[i].partition;
	}
	return ranges;
}

/* Drop the entries whose partition does not exist any more; they are sorted by topic. */
static int
existing(KafkaConsumer *consumer, int n, BookmarkEntry *entries)
{
	const char **topics = palloc(sizeof(char *) * Max(n, 1));
	int		   *partitions = palloc(sizeof(int) * Max(n, 1));
	int			ntopics = 0;
	int			topic = 0;
	int			kept = 0;

	for (int i = 0; i < n; i++)
		if (ntopics == 0 || strcmp(entries[i].topic, topics[ntopics - 1]) != 0)
			topics[ntopics++] = entries[i].topic;
	kafka_partition_counts(consumer, ntopics, topics, true, partitions);
	for (int i = 0; i < n; i++)
	{
		while (strcmp(topics[topic], entries[i].topic) != 0)
			topic++;
		if (entries[i].partition < partitions[topic])
			entries[kept++] = entries[i];
	}
	return kept;
}

char *
outbox_unreadable_add_topics(const char *text, const KafkaConfig *config, List *topics)
{
	KafkaConsumer *consumer = kafka_consumer_acquire(kafka_config_uncommitted(config), 0, CurrentMemoryContext);
	ListCell   *lc;

	foreach(lc, topics)
	{
		const char *topic = lfirst(lc);
		int			n = Max(kafka_partition_count(consumer, topic, true), 0);
		KafkaRange *ranges = palloc0(sizeof(KafkaRange) * Max(n, 1));
		KafkaWritten *written = palloc(sizeof(KafkaWritten) * Max(n, 1));
		int64	   *high = palloc(sizeof(int64) * Max(n, 1));

		for (int i = 0; i < n; i++)
		{
			ranges[i].topic = topic;
			ranges[i].partition = i;
		}
		kafka_query_offsets(consumer, n, ranges, NULL, high);
		for (int i = 0; i < n; i++)
		{
			written[i].topic = topic;
			written[i].partition = i;
			written[i].offset = high[i] - 1;
		}
		text = outbox_unreadable_add(text, n, written);
	}
	kafka_consumer_release(consumer);
	return text != NULL ? pstrdup(text) : NULL;
}

/* The first entry that a reader cannot see yet; -1: none.  Fills end[]. */
static int
first_unreadable(KafkaConsumer *consumer, int n, const BookmarkEntry *entries, int64 *end)
{
	kafka_query_offsets(consumer, n, ranges_of(n, entries), NULL, end);
	for (int i = 0; i < n; i++)
		if (end[i] < entries[i].next_offset)
			return i;
	return -1;
}

char *
outbox_unreadable_look(KafkaConsumer *consumer, const char *text, bool old)
{
	BookmarkEntry *entries;
	int			n = parse(text, &entries);
	int			kept = 0;
	int64	   *end;

	if (old)
		n = existing(consumer, n, entries);
	if (n == 0)
		return NULL;
	end = palloc(sizeof(int64) * n);
	if (first_unreadable(consumer, n, entries, end) < 0)
		return NULL;
	for (int i = 0; i < n; i++)
		if (end[i] < entries[i].next_offset)
			entries[kept++] = entries[i];
	return text_of(kept, entries);
}

/* Drop the entries that lie behind the end of their log, open transactions included. */
static int
forget_what_is_gone(const KafkaConfig *config, int n, BookmarkEntry *entries)
{
	KafkaConsumer *consumer = kafka_consumer_acquire(kafka_config_uncommitted(config), 0, CurrentMemoryContext);
	int64	   *high = palloc(sizeof(int64) * Max(n, 1));
	int			kept = 0;

	n = existing(consumer, n, entries);
	kafka_query_offsets(consumer, n, ranges_of(n, entries), NULL, high);
	for (int i = 0; i < n; i++)
		if (entries[i].next_offset <= high[i])
			entries[kept++] = entries[i];
	kafka_consumer_release(consumer);
	return kept;
}

char *
outbox_unreadable_forget(const KafkaConfig *config, const char *text)
{
	BookmarkEntry *entries;
	int			n = parse(text, &entries);

	return text_of(forget_what_is_gone(config, n, entries), entries);
}

static void
raise_unreadable(const OutboxStream *stream, const BookmarkEntry *entry, int64 end, bool cancel)
{
	ereport(ERROR,
			(errcode(cancel ? ERRCODE_QUERY_CANCELED : ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("messages from the outbox of server \"%s\" cannot be read yet", stream->server_name),
			 errdetail("Topic \"%s\", partition %d: they are sent, up to offset %lld, but an open Kafka transaction of another producer holds the last stable offset at %lld.",
					   entry->topic, entry->partition, (long long) entry->next_offset - 1, (long long) end),
			 errhint("It ends by commit or abort, or after that producer's transaction.timeout.ms.")));
}

void
outbox_wait_readable(const OutboxStream *stream, const TopicTable *table, TimestampTz until)
{
	KafkaConfig *config;
	KafkaConsumer *consumer;
	BookmarkEntry *entries;
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz limit = until;
	long		poll = FIRST_POLL_MS;
	bool		asked = false;
	int			n = parse(stream->unreadable, &entries);
	int			kept = 0;
	int64	   *end;

	for (int i = 0; i < n; i++)
		if (table == NULL || topic_table_reads(table, entries[i].topic))
			entries[kept++] = entries[i];
	if (kept == 0)
		return;
	config = kafka_config_get(stream->serverid, stream->roleid);
	if (limit == 0)
		limit = TimestampTzPlusMilliseconds(start, config->timeout_ms);
	consumer = kafka_consumer_acquire(config, 0, CurrentMemoryContext);
	n = existing(consumer, kept, entries);
	end = palloc(sizeof(int64) * Max(n, 1));
	for (;;)
	{
		int			i = first_unreadable(consumer, n, entries, end);
		TimestampTz now = GetCurrentTimestamp();

		if (i < 0)
			break;
		if (!asked && (now >= limit || TimestampDifferenceExceeds(start, now, RECREATED_MS)))
		{
			asked = true;
			n = forget_what_is_gone(config, n, entries);
			continue;
		}
		if (now >= limit)
			raise_unreadable(stream, &entries[i], end[i], until != 0);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(poll, TimestampDifferenceMilliseconds(now, limit) + 1), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		poll = Min(poll * 2, MAX_POLL_MS);
	}
	kafka_consumer_release(consumer);
}
