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
#include "utils/timestamp.h"

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
	bool		whole;			/* source and what is read fit together; not after an
								 * ERROR while one of them was made */
	bool		bounded;		/* refresh: up to the ends at opening */
	int			patience_ms;	/* with the broker, in transactions */
	FeedSource	source;
	ChangeBatch *batch;

	MemoryContext reading;		/* of what follows, up to ends */
	Positions  *positions;		/* as committed */
	SourceState *states;		/* of its sources */
	Positions  *working;		/* as they will be after the commit at hand */
	int			working_records;
	bool		working_moved;
	int			nranges;
	KafkaRange *ranges;			/* of the sources that are read */
	int64	   *ends;			/* by source, at the last look; -1: not read */
	TimestampTz discovered_at;	/* the last look for new sources */

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
			a->positions[i].next_offset != b->positions[i].next_offset ||
			a->positions[i].given_up != b->positions[i].given_up ||
			strcmp(a->positions[i].topic, b->positions[i].topic) != 0)
			return false;
	return true;
}

/* === opening ======================================================================= */

/*
 * Before anything is written that follows from positions which were read without the
 * table's lock: they must still be what is stored.  Somebody may have rebuilt the table
 * while the broker was asked.
 */
static void
lock_as_read(Feed *feed, const Positions *read)
{
	MaintainedTable *table;
	Positions  *stored;

	(void) maintained_table_lock(feed->target, false);
	table = maintained_table_get(feed->target);
	stored = positions_get(feed->target);
	if (table == NULL || table->state != TABLE_LIVE || (read == NULL) != (stored == NULL) ||
		(read != NULL && !positions_equal(stored, read)))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("maintained table \"%s\" has changed while its topic was looked at", get_rel_name(feed->target))));
}

/* The table cannot go on from these positions (NULL: none are stored). */
static bool
fail(Feed *feed, const Positions *read, const SourceProblem *problem)
{
	lock_as_read(feed, read);
	table_state_set(feed->target, problem->state, problem->sqlerrcode, problem->detail, problem->source, problem->offset);
	ereport(LOG,
			(errcode(problem->sqlerrcode),
			 errmsg("maintained table \"%s\" is in state %s", get_rel_name(feed->target),
					table_state_name(problem->state)),
			 errdetail_internal("%s", problem->detail)));
	return false;
}

/* === reading ========================================================================== */

/*
 * A topic that matched the pattern was deleted.  Nothing is lost where all of it was
 * applied: then nobody waits for it any more, and its rows stay.
 */
static void
give_up_settled(Feed *feed, const TopicTable *topic, Positions *read, Positions *positions, SourceState *states, int nknown)
{
	if (topic->topic_pattern == NULL)
		return;
	for (int i = 0; i < nknown; i++)
	{
		bool		settled = true;

		if (states[i] != SOURCE_MISSING)
			continue;
		for (int k = 0; k < nknown && settled; k++)
			if (states[k] == SOURCE_MISSING && strcmp(positions->positions[k].topic, positions->positions[i].topic) == 0)
				settled = feed_look_settled(feed->target, positions, k);
		if (!settled)
			continue;
		lock_as_read(feed, read);
		sources_give_up(feed->target, positions, i);
		ereport(LOG,
				(errmsg("topic \"%s\" of maintained table \"%s\" was deleted", positions->positions[i].topic,
						get_rel_name(feed->target)),
				 errdetail("All that it held was applied; the rows stay.")));
		for (int k = 0; k < nknown; k++)
		{
			if (!positions->positions[k].given_up)
				continue;
			states[k] = SOURCE_GIVEN_UP;
			if (read != NULL)
				read->positions[k].given_up = true;
		}
	}
}

/* Only a worker's feed comes back. */
static void
note_look(const Feed *feed)
{
	if (!feed->bounded)
		feed_look_note(feed->target, feed->positions->n, feed->ends);
}

/* Low watermarks (may be NULL) and ends by source. */
static void
look_at_ends(KafkaConsumer *consumer, const KafkaRange *ranges, int nranges, int nsources, int64 *low, int64 *end)
{
	int64	   *range_low = palloc(Max(nranges, 1) * sizeof(int64));
	int64	   *range_end = palloc(Max(nranges, 1) * sizeof(int64));

	kafka_query_offsets(consumer, nranges, ranges, low ? range_low : NULL, range_end);
	for (int i = 0; i < nsources; i++)
		end[i] = -1;
	for (int i = 0; i < nranges; i++)
	{
		end[ranges[i].source] = range_end[i];
		if (low)
			low[ranges[i].source] = range_low[i];
	}
	pfree(range_low);
	pfree(range_end);
}

/* In a context of its own. */
static bool
read_from_positions(Feed *feed)
{
	const TopicTable *topic = feed->source.topic;
	Positions  *stored = positions_get(feed->target);
	Positions  *read = stored != NULL ? positions_copy(stored) : NULL;
	SourceState *states;
	SourceProblem problem;
	int			nknown;
	int			nranges;
	KafkaRange *ranges;
	int64	   *low,
			   *end;

	feed->nrecords = feed->first = 0;
	if (stored == NULL)
	{
		stored = palloc0(sizeof(Positions));
		stored->positions = topic_sources_get(feed->target, &stored->nstored);
		stored->n = stored->nstored;
		stored->several = stored->nstored > 0;
		stored->topic = pstrdup(topic->topic);
	}
	nknown = stored->n;
	states = sources_find(feed->source.consumer, topic, stored);
	give_up_settled(feed, topic, read, stored, states, nknown);
	ranges = sources_ranges(stored, states, &nranges);
	low = palloc0(Max(stored->n, 1) * sizeof(int64));
	end = palloc(Max(stored->n, 1) * sizeof(int64));
	look_at_ends(feed->source.consumer, ranges, nranges, stored->n, low, end);
	if (!sources_check(feed->source.consumer, topic, stored, nknown, states, low, end, &problem))
		return fail(feed, read, &problem);

	/* what came later is read from its start, whatever the start mode is (H05) */
	for (int i = 0; i < stored->n; i++)
		if (stored->positions[i].next_offset < 0)
			stored->positions[i].next_offset = low[i];
	stored->topic = pstrdup(topic->topic);
	feed->positions = stored;
	feed->states = states;
	feed->ranges = ranges;
	feed->nranges = nranges;
	feed->source.one_source = stored->n == 1;
	feed->stats.ends = feed->ends = end;
	feed->stats.nends = stored->n;
	feed->stats.lag_messages = 0;
	for (int r = 0; r < nranges; r++)
	{
		int32		source = ranges[r].source;

		ranges[r].start = stored->positions[source].next_offset;
		ranges[r].end = feed->bounded ? end[source] : KAFKA_NO_END;
		feed->stats.lag_messages += end[source] - stored->positions[source].next_offset;
	}
	kafka_consume_start(feed->source.consumer, ranges, nranges);
	return true;
}

/*
 * Compare positions with the topic and start reading there.  False: the table's
 * state was changed instead.
 */
static bool
start_reading(Feed *feed)
{
	MemoryContext context = AllocSetContextCreate(feed->context, "upsert_kafka feed positions", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		reading;

	/* the ranges go away */
	feed->whole = false;
	kafka_consume_stop(feed->source.consumer);
	reading = read_from_positions(feed);
	MemoryContextSwitchTo(old);
	if (reading)
	{
		if (feed->reading != NULL)
			MemoryContextDelete(feed->reading);
		feed->reading = context;
		feed->whole = true;
		feed->discovered_at = GetCurrentTimestamp();
		note_look(feed);
	}
	return reading;
}

/* Read the definitions of the tables, in a context of their own. */
static bool
define(Feed *feed)
{
	MemoryContext old;

	feed->whole = false;
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
	feed->whole = true;
	return true;
}

static Feed *
open_feed(Oid target, MemoryContext parent, bool bounded)
{
	static bool callback_registered = false;
	MemoryContext context = AllocSetContextCreate(parent, "upsert_kafka feed", ALLOCSET_DEFAULT_SIZES);
	Feed	   *feed = MemoryContextAllocZero(context, sizeof(Feed));
	OwnerScope	scope;

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
	return feed;
}

Feed *
feed_open(Oid target, MemoryContext parent)
{
	Feed	   *feed;

	PushActiveSnapshot(GetLatestSnapshot());
	feed = open_feed(target, parent, false);
	PopActiveSnapshot();
	if (feed)
		feed_ask(feed);
	return feed;
}

bool
feed_begin(Feed *feed, int patience_ms)
{
	bool		reading;

	feed->patience_ms = Min(feed->source.timeout_ms, patience_ms);
	kafka_consumer_set_timeout(feed->source.consumer, feed->patience_ms);
	PushActiveSnapshot(GetLatestSnapshot());
	reading = (!feed->stale || define(feed)) && start_reading(feed);
	PopActiveSnapshot();
	return reading;
}

bool
feed_is_whole(const Feed *feed)
{
	return feed->whole;
}

void
feed_ask(Feed *feed)
{
	kafka_knock(feed->source.consumer, feed->source.timeout_ms);
}

bool
feed_answered(Feed *feed)
{
	return kafka_answered(feed->source.consumer);
}

/* === fetching and applying ============================================================= */

static bool
position_moved(const Feed *feed)
{
	for (int i = 0; i < feed->nranges; i++)
		if (feed->ranges[i].position > feed->positions->positions[feed->ranges[i].source].next_offset)
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

static void
apply_batch(Feed *feed, int64 *next_seq)
{
	ChangeBatch *batch = feed->batch;
	Applier    *applier;

	if (batch->nchanges == 0)
		return;
	applier = applier_begin(feed->source.table, feed->source.map, next_seq, false);
	if (feed->source.table->append)
	{
		for (int i = 0; i < batch->nchanges; i++)
			applier_append(applier, &batch->changes[i]);
	}
	else
		applier_batch(applier, batch->changes, batch->nchanges);
	applier_end(applier);
}

/* After the tables have changed, under their locks; FEED_APPLIED: the topics are the same. */
static FeedResult
define_again(Feed *feed)
{
	char	   *topic = pstrdup(feed->source.topic->topic);

	if (!define(feed))
		return FEED_STOPPED;
	if (strcmp(topic, feed->source.topic->topic) == 0)
		return FEED_APPLIED;
	return start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
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
		result = define_again(feed);
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

			/* sources that we found since are not stored yet */
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
	if (stored != NULL)
		feed->working->nstored = stored->nstored;
	apply_map_positions(feed->source.map, feed->working);
	feed_clear_errors(&feed->source, feed->batch, feed->positions);
	apply_batch(feed, &feed->working->next_seq);
	owner_leave(&scope);

	feed_advance(feed->working, records, done);
	if (stop == NULL && feed->first + done == feed->nrecords)
		for (int i = 0; i < feed->nranges; i++)
		{
			Position   *position = &feed->working->positions[feed->ranges[i].source];

			position->next_offset = Max(position->next_offset, feed->ranges[i].position);
		}
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
	if (feed->positions->several)
		feed->positions->nstored = feed->positions->n;
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

/* Is it time to look for new topics and partitions, by the table's option? */
static bool
discovery_is_due(Feed *feed)
{
	int			ms = feed->source.topic->discovery_ms;
	TimestampTz now = GetCurrentTimestamp();

	if (ms < 0 || !TimestampDifferenceExceeds(feed->discovered_at, now, ms))
		return false;
	feed->discovered_at = now;
	return true;
}

/* Have topics or partitions come or gone since the reading began? */
static bool
sources_changed(const Feed *feed, KafkaConsumer *consumer)
{
	Positions  *now = positions_copy(feed->positions);
	SourceState *states = sources_find(consumer, feed->source.topic, now);

	return now->n != feed->positions->n || memcmp(states, feed->states, sizeof(SourceState) * now->n) != 0;
}

FeedResult
feed_check_topic(Feed *feed)
{
	FeedResult	result = FEED_APPLIED;
	KafkaConsumer *consumer;

	if (feed->first < feed->nrecords)
		return FEED_APPLIED;	/* first what is in hand */
	if (feed->stale)
	{
		/* a topic may have joined the list, and nothing comes of the others */
		maintained_table_lock_to_apply(feed->target);
		PushActiveSnapshot(GetLatestSnapshot());
		result = define_again(feed);
		PopActiveSnapshot();
		if (result != FEED_APPLIED)
			return result;
	}
	result = FEED_IDLE;
	PushActiveSnapshot(GetLatestSnapshot());

	/*
	 * Not the feed's own: a question behind its long poll would be answered after it,
	 * and what comes meanwhile would wait for both.
	 */
	consumer = kafka_consumer_acquire(kafka_config_get(feed->source.topic->serverid, feed->source.table->owner),
									  0, CurrentMemoryContext);
	kafka_consumer_set_timeout(consumer, feed->patience_ms);
	if (discovery_is_due(feed) && sources_changed(feed, consumer))
		result = start_reading(feed) ? FEED_MOVED : FEED_STOPPED;
	else
	{
		look_at_ends(consumer, feed->ranges, feed->nranges, feed->positions->n, NULL, feed->ends);
		feed->stats.lag_messages = 0;
		for (int r = 0; r < feed->nranges; r++)
		{
			int64		next = feed->positions->positions[feed->ranges[r].source].next_offset;
			int64		end = feed->ends[feed->ranges[r].source];

			feed->stats.lag_messages += Max(end - next, 0);
			if (end < next)
				result = FEED_MOVED;
		}
		note_look(feed);
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
	if (feed && !start_reading(feed))
		feed = NULL;
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
