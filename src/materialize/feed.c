/*
 * feed.c
 *	  A feed brings one maintained table forward: fetch, decode, apply, advance.
 *
 * Owns the consumer, the decoder and the records in hand of one table.  Knows nothing
 * of workers: who calls it with which transactions is worker.c's and refresh's
 * business.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "storage/latch.h"
#include "materialize/feed_internal.h"
#include "materialize/owner.h"
#include "miscadmin.h"
#include "upsert_kafka.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

struct Feed
{
	dlist_node	node;			/* in open_feeds */
	MemoryContext context;
	MemoryContext definition;	/* of source, remade when the tables change */
	MemoryContext step;			/* of one feed_apply */
	MemoryContextCallback callback;
	Oid			target;
	Oid			source_relid;
	bool		stale;			/* a relation changed: define anew */
	bool		bounded;		/* refresh: up to the ends at opening */
	FeedSource	source;
	ChangeBatch *batch;

	Positions  *positions;		/* as committed */
	Positions  *working;		/* as they will be after the commit at hand */
	int			working_records;
	bool		working_moved;
	int			nranges;
	KafkaRange *ranges;
	int64	   *ends;			/* by partition, at the last look */

	int			max_records;
	int			nrecords;
	int			first;			/* records before it are applied */
	KafkaRecord *records;
	FeedStats	stats;
};

static dlist_head open_feeds = DLIST_STATIC_INIT(open_feeds);

/* A definition may have changed: look again at the next step. */
static void
relation_changed(Datum arg, Oid relid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &open_feeds)
	{
		Feed	   *feed = dlist_container(Feed, node, iter.cur);

		if (relid == InvalidOid || relid == feed->target || relid == feed->source_relid)
			feed->stale = true;
	}
}

static void
forget_feed(void *arg)
{
	dlist_delete(&((Feed *) arg)->node);
}

static bool
positions_equal(const Positions *a, const Positions *b)
{
	if (a == NULL || b == NULL || a->n != b->n || a->next_seq != b->next_seq)
		return false;
	for (int i = 0; i < a->n; i++)
		if (a->positions[i].partition != b->positions[i].partition ||
			a->positions[i].next_offset != b->positions[i].next_offset)
			return false;
	return true;
}

/* === opening ======================================================================= */

static bool
fail(Feed *feed, TableState state, int sqlerrcode, int32 partition, int64 offset, const char *detail)
{
	table_state_set(feed->target, state, sqlerrcode, detail, partition, offset);
	ereport(LOG,
			(errcode(sqlerrcode),
			 errmsg("maintained table \"%s\" is in state %s", get_rel_name(feed->target), table_state_name(state)),
			 errdetail_internal("%s", detail)));
	return false;
}

/*
 * Does the topic still hold what was applied last?  A topic that was deleted and
 * created again may have offsets that look right; the last applied record tells
 * unless compaction took it (the limit of this check).
 */
static bool
check_fingerprints(Feed *feed, const int64 *low)
{
	KafkaConsumer *consumer = feed->source.consumer;
	KafkaRange *ranges = palloc0(Max(feed->positions->n, 1) * sizeof(KafkaRange));
	KafkaRecord *records = palloc(64 * sizeof(KafkaRecord));
	int			n = 0;
	bool		open = true;
	bool		same = true;

	for (int i = 0; i < feed->positions->n; i++)
	{
		Position   *position = &feed->positions->positions[i];

		if (position->last_offset < low[i])
			continue;
		ranges[n].topic = feed->source.topic->topic;
		ranges[n].partition = position->partition;
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
			Position   *position = &feed->positions->positions[records[i].partition];

			if (records[i].offset == position->last_offset &&
				(records[i].timestamp != position->last_timestamp || feed_record_hash(&records[i]) != position->last_hash))
				same = fail(feed, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							records[i].partition, records[i].offset,
							psprintf("Topic \"%s\", partition %d, offset %lld: another message than the one applied there. The topic was deleted and created again.",
									 feed->source.topic->topic, records[i].partition, (long long) records[i].offset));
		}
		open = false;
		for (int i = 0; i < n; i++)
			if (!ranges[i].done)
				open = true;
	}
	kafka_consume_stop(consumer);
	return same;
}

/* In the feed's context. */
static bool
read_from_positions(Feed *feed)
{
	const TopicTable *topic = feed->source.topic;
	Positions  *stored = positions_get(feed->target);
	int			npartitions;
	int64	   *low,
			   *end;

	feed->nrecords = feed->first = 0;
	npartitions = kafka_partition_count(feed->source.consumer, topic->topic, true);
	if (npartitions < 0)
		return fail(feed, TABLE_TOPIC_CHANGED, ERRCODE_FDW_TABLE_NOT_FOUND, -1, -1,
					psprintf("Topic \"%s\" does not exist any more.", topic->topic));
	if (stored == NULL)
	{
		stored = palloc0(sizeof(Positions));
		stored->topic = pstrdup(topic->topic);
		stored->positions = palloc0(sizeof(Position));
	}
	if (strcmp(stored->topic, topic->topic) != 0)
		return fail(feed, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, -1, -1,
					psprintf("The foreign table now reads topic \"%s\"; the positions are of topic \"%s\".",
							 topic->topic, stored->topic));
	if (npartitions < stored->n)
		return fail(feed, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, -1, -1,
					psprintf("Topic \"%s\" has %d partitions; it had %d. It was deleted and created again.",
							 topic->topic, npartitions, stored->n));

	feed->nranges = npartitions;
	feed->source.one_partition = npartitions == 1;
	feed->ranges = palloc0(npartitions * sizeof(KafkaRange));
	for (int i = 0; i < npartitions; i++)
	{
		feed->ranges[i].topic = MemoryContextStrdup(feed->context, topic->topic);
		feed->ranges[i].partition = i;
	}
	low = palloc(npartitions * sizeof(int64));
	end = palloc(npartitions * sizeof(int64));
	kafka_query_offsets(feed->source.consumer, npartitions, feed->ranges, low, end);
	feed->stats.ends = feed->ends = end;
	feed->stats.nends = npartitions;

	/* partitions that came later are read from their start, whatever the start mode is (H05) */
	if (npartitions > stored->n)
	{
		stored->positions = repalloc(stored->positions, npartitions * sizeof(Position));
		for (int i = stored->n; i < npartitions; i++)
		{
			stored->positions[i].partition = i;
			stored->positions[i].next_offset = low[i];
			stored->positions[i].last_offset = -1;
			stored->positions[i].last_timestamp = -1;
			stored->positions[i].last_hash = 0;
		}
	}
	for (int i = 0; i < stored->n; i++)
	{
		int64		next = stored->positions[i].next_offset;

		if (next > end[i])
			return fail(feed, TABLE_TOPIC_CHANGED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, i, next,
						psprintf("Topic \"%s\", partition %d ends at offset %lld, before the position %lld. It was deleted and created again.",
								 topic->topic, i, (long long) end[i], (long long) next));
		if (next < low[i])
			return fail(feed, TABLE_DATA_LOST, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, i, next,
						psprintf("Topic \"%s\", partition %d starts at offset %lld, after the position %lld: messages between them were deleted before they were applied.",
								 topic->topic, i, (long long) low[i], (long long) next));
	}
	feed->positions = stored;
	if (!check_fingerprints(feed, low))
		return false;
	stored->n = npartitions;

	feed->stats.lag_messages = 0;
	for (int i = 0; i < npartitions; i++)
	{
		feed->ranges[i].start = stored->positions[i].next_offset;
		feed->ranges[i].end = feed->bounded ? end[i] : KAFKA_NO_END;
		feed->stats.lag_messages += end[i] - stored->positions[i].next_offset;
	}
	kafka_consume_start(feed->source.consumer, feed->ranges, npartitions);
	return true;
}

/*
 * Compare positions with the topic and start reading there.  False: the table's
 * state was changed instead.
 */
static bool
start_reading(Feed *feed)
{
	MemoryContext old = MemoryContextSwitchTo(feed->context);
	bool		reading = read_from_positions(feed);

	MemoryContextSwitchTo(old);
	return reading;
}

/* Read the definitions of the tables, in a context of their own. */
static bool
define(Feed *feed)
{
	MemoryContext old;

	MemoryContextReset(feed->definition);
	old = MemoryContextSwitchTo(feed->definition);
	feed->stale = false;
	feed->source.table = maintained_table_get(feed->target);
	if (feed->source.table == NULL || feed->source.table->foreign_copy ||
		feed->source.table->state != TABLE_LIVE)
	{
		MemoryContextSwitchTo(old);
		return false;
	}
	feed->source_relid = feed->source.table->source;
	feed_source_define(&feed->source);
	MemoryContextSwitchTo(old);
	return true;
}

static Feed *
open_feed(Oid target, MemoryContext parent, bool bounded)
{
	static bool callback_registered = false;
	MemoryContext context = AllocSetContextCreate(parent, "upsert_kafka feed", ALLOCSET_DEFAULT_SIZES);
	Feed	   *feed = MemoryContextAllocZero(context, sizeof(Feed));
	OwnerScope	scope;
	bool		started;

	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		callback_registered = true;
	}
	feed->context = context;
	feed->definition = AllocSetContextCreate(context, "upsert_kafka feed definition", ALLOCSET_DEFAULT_SIZES);
	feed->step = AllocSetContextCreate(context, "upsert_kafka feed step", ALLOCSET_DEFAULT_SIZES);
	feed->target = target;
	feed->bounded = bounded;
	dlist_push_tail(&open_feeds, &feed->node);
	feed->callback.func = forget_feed;
	feed->callback.arg = feed;
	MemoryContextRegisterResetCallback(context, &feed->callback);

	if (!define(feed))
	{
		MemoryContextDelete(context);
		return NULL;
	}
	feed->batch = change_batch_create(context);
	feed->max_records = Max(uk_batch_rows, 1);
	feed->records = MemoryContextAllocHuge(context, feed->max_records * sizeof(KafkaRecord));
	feed->stats.lag_messages = -1;

	owner_enter(&scope, feed->source.table->owner);
	feed_source_connect(&feed->source, context);
	owner_leave(&scope);
	started = start_reading(feed);
	if (!started)
	{
		MemoryContextDelete(context);
		return NULL;
	}
	return feed;
}

Feed *
feed_open(Oid target, MemoryContext parent)
{
	Feed	   *feed;

	PushActiveSnapshot(GetLatestSnapshot());
	feed = open_feed(target, parent, false);
	PopActiveSnapshot();
	return feed;
}

/* === fetching and applying ============================================================= */

static bool
position_moved(const Feed *feed)
{
	for (int i = 0; i < feed->nranges; i++)
		if (feed->ranges[i].position > feed->positions->positions[i].next_offset)
			return true;
	return false;
}

bool
feed_fetch(Feed *feed, long timeout_ms)
{
	if (feed->first < feed->nrecords)
		return true;
	feed->first = feed->nrecords = 0;
	feed->nrecords = kafka_consume(feed->source.consumer, feed->records, feed->max_records, timeout_ms, true, NULL);
	return feed->nrecords > 0 || position_moved(feed);
}

int
feed_pending(Feed *feed)
{
	Size		bytes = 0;
	int			n = 0;

	while (feed->first + n < feed->nrecords)
	{
		const KafkaRecord *record = &feed->records[feed->first + n];

		bytes += record->key_len + record->value_len;
		n++;
		if (bytes > (Size) uk_batch_bytes * 1024)
			break;
	}
	return n;
}

/*
 * Later messages of a key clear its errors (case X12), and a message that stopped the
 * table is no error any more once it goes in.
 */
static void
supersede_errors(Feed *feed)
{
	if (feed->source.table->append || !message_errors_exist(feed->target))
		return;
	for (int i = 0; i < feed->batch->nchanges; i++)
	{
		const Change *change = &feed->batch->changes[i];

		CHECK_FOR_INTERRUPTS();
		message_error_delete(feed->target, change->partition, change->offset);
		if (change->kind == ROW_TRUNCATE)
			message_errors_truncate(feed->target, change->partition, change->offset, change->event_time);
		else
			message_errors_supersede(feed->target, apply_key_text(feed->source.map, change->values, change->isnull),
								 change->partition, change->offset);
	}
}

/* Key by key; sorts them. */
static void
apply_changes(Applier *applier, const ApplyMap *map, Change *changes, int n)
{
	if (n == 0)
		return;
	apply_sort(map, changes, n);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || !apply_same_key(map, &changes[i - 1], &changes[i]))
		{
			CHECK_FOR_INTERRUPTS();
			if (i > 0)
				applier_key_end(applier);
			applier_key_begin(applier, &changes[i]);
		}
		applier_change(applier, &changes[i]);
	}
	applier_key_end(applier);
}

static void
apply_batch(Feed *feed, int64 *next_seq)
{
	ChangeBatch *batch = feed->batch;
	const ApplyMap *map = feed->source.map;
	Applier    *applier;

	if (batch->nchanges == 0)
		return;
	applier = applier_begin(feed->source.table, map, next_seq, false);
	if (feed->source.table->append)
	{
		for (int i = 0; i < batch->nchanges; i++)
			applier_append(applier, &batch->changes[i]);
	}
	else
	{
		int			start = 0;

		/* a truncation stands between what is before it and what is behind */
		for (int i = 0; i < batch->nchanges; i++)
		{
			if (likely(batch->changes[i].kind != ROW_TRUNCATE))
				continue;
			apply_changes(applier, map, &batch->changes[start], i - start);
			applier_truncate(applier, &batch->changes[i]);
			start = i + 1;
		}
		apply_changes(applier, map, &batch->changes[start], batch->nchanges - start);
	}
	applier_end(applier);
}

FeedResult
feed_apply(Feed *feed, int n)
{
	MemoryContext old;
	OwnerScope	scope;
	ChangeError *stop;
	Positions  *stored;
	FeedResult	result = FEED_APPLIED;
	KafkaRecord *records = &feed->records[feed->first];
	int			done;

	/* the locks first, then the snapshot that everything is read by */
	MemoryContextReset(feed->step);
	feed->working = NULL;		/* of a transaction that was aborted */
	feed->working_records = 0;
	old = MemoryContextSwitchTo(feed->step);
	maintained_table_lock_to_apply(feed->target);
	PushActiveSnapshot(GetLatestSnapshot());

	if (feed->stale)
	{
		char	   *topic = pstrdup(feed->source.topic->topic);

		if (!define(feed))
			result = FEED_STOPPED;
		else if (strcmp(topic, feed->source.topic->topic) != 0)
			result = start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
	}
	else
	{
		MaintainedTable *table = maintained_table_get(feed->target);

		if (table == NULL || table->state != TABLE_LIVE || table->foreign_copy)
			result = FEED_STOPPED;
		else
			feed->source.table->on_error = table->on_error;
	}
	if (result == FEED_APPLIED)
	{
		stored = positions_get(feed->target);
		if (stored != NULL || feed->positions->next_seq != 0)
		{
			Positions	known = *feed->positions;

			/* partitions that we found since are not stored yet */
			if (stored != NULL && stored->n < known.n)
				known.n = stored->n;
			if (!positions_equal(stored, &known))
				result = start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
		}
	}
	if (result != FEED_APPLIED)
	{
		MemoryContextSwitchTo(old);
		PopActiveSnapshot();
		return result;
	}

	owner_enter(&scope, feed->source.table->owner);
	done = feed_decode(&feed->source, records, n, feed->batch, &stop);
	feed->working = positions_copy(feed->positions);
	supersede_errors(feed);
	apply_batch(feed, &feed->working->next_seq);
	owner_leave(&scope);

	feed_advance(feed->working, records, done);
	if (stop == NULL && feed->first + done == feed->nrecords)
		for (int i = 0; i < feed->nranges; i++)
			feed->working->positions[i].next_offset =
				Max(feed->working->positions[i].next_offset, feed->ranges[i].position);
	if (stop)
	{
		feed_stop_at(&feed->source, &records[stop->record], stop);
		result = FEED_STOPPED;
	}
	positions_set(feed->target, feed->working);
	feed->working_records = done;

	MemoryContextSwitchTo(old);
	PopActiveSnapshot();
	return result;
}

void
feed_applied(Feed *feed)
{
	int			n = feed->working_records;

	if (feed->working == NULL)
		return;
	feed->positions->next_seq = feed->working->next_seq;
	memcpy(feed->positions->positions, feed->working->positions, feed->positions->n * sizeof(Position));
	for (int i = feed->first; i < feed->first + n; i++)
	{
		feed->stats.bytes += feed->records[i].key_len + feed->records[i].value_len;
		feed->stats.last_timestamp = feed->records[i].timestamp;
	}
	feed->stats.messages += n;
	feed->stats.errors += feed->batch->nerrors;
	feed->stats.memory = MemoryContextMemAllocated(feed->context, true);
	feed->first += n;
	feed->working = NULL;
	feed->working_records = 0;
	change_batch_reset(feed->batch);
	MemoryContextReset(feed->step);
}

void
feed_stop_at_first(Feed *feed, int sqlerrcode, const char *message)
{
	ChangeError error;

	memset(&error, 0, sizeof(error));
	error.sqlerrcode = sqlerrcode;
	error.message = message;
	(void) maintained_table_lock(feed->target, false);
	PushActiveSnapshot(GetLatestSnapshot());
	if (feed->first < feed->nrecords)
		feed_stop_at(&feed->source, &feed->records[feed->first], &error);
	else
		table_state_set(feed->target, TABLE_STOPPED, sqlerrcode, message, -1, -1);
	PopActiveSnapshot();
}

int
feed_wait_fd(Feed *feed)
{
	return kafka_wait_fd(feed->source.consumer);
}

const FeedStats *
feed_stats(Feed *feed)
{
	return &feed->stats;
}

FeedResult
feed_check_topic(Feed *feed)
{
	int			npartitions;
	FeedResult	result = FEED_IDLE;
	int64	   *end;
	KafkaConsumer *consumer;

	if (feed->first < feed->nrecords)
		return FEED_APPLIED;	/* first what is in hand */
	PushActiveSnapshot(GetLatestSnapshot());
	/*
	 * Not the feed's own: a question behind its long poll would be answered after it,
	 * and what comes meanwhile would wait for both.
	 */
	consumer = kafka_consumer_acquire(kafka_config_get(feed->source.topic->serverid, feed->source.table->owner),
									  0, CurrentMemoryContext);
	npartitions = kafka_partition_count(consumer, feed->source.topic->topic, true);
	if (npartitions != feed->nranges)
		result = start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
	else
	{
		end = feed->ends;
		kafka_query_offsets(consumer, npartitions, feed->ranges, NULL, end);
		feed->stats.lag_messages = 0;
		for (int i = 0; i < npartitions; i++)
		{
			int64		next = feed->positions->positions[i].next_offset;

			feed->stats.lag_messages += Max(end[i] - next, 0);
			if (end[i] < next)
				result = FEED_MOVED;
		}
		if (result == FEED_MOVED)	/* ends before our position: recreated */
			result = start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
	}
	kafka_consumer_release(consumer);
	PopActiveSnapshot();
	return result;
}

int64
feed_run_to_end(Oid target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka refresh", ALLOCSET_DEFAULT_SIZES);
	Feed	   *feed;
	bool		open = true;
	int64		messages;

	feed = open_feed(target, context, true);
	while (feed && open)
	{
		open = false;
		for (int i = 0; i < feed->nranges; i++)
			if (!feed->ranges[i].done || feed->first < feed->nrecords || position_moved(feed))
				open = true;
		if (!open)
			break;
		if (feed_fetch(feed, 1000))
		{
			FeedResult	result = feed_apply(feed, feed_pending(feed));

			if (result == FEED_APPLIED || result == FEED_STOPPED)
				feed_applied(feed);
			CommandCounterIncrement();
			if (result == FEED_STOPPED)
				break;
		}
		else
		{
			CHECK_FOR_INTERRUPTS();
			if (feed->nrecords == 0)
				ResetLatch(MyLatch);
		}
	}
	messages = feed ? feed->stats.messages : 0;
	MemoryContextDelete(context);
	return messages;
}
