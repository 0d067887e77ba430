/*
 * consumer.c
 *	  Reading ranges of partitions: assignment, records, positions, their end.
 *	  No group is joined and nothing is committed to Kafka.
 *
 * A range is done when its position is at its end.  The position follows
 * records, and PARTITION_EOF events over what is no record: transaction markers,
 * aborted and compacted messages (cases H01, H02).
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/memutils.h"

/* How many unfinished partitions an error message names. */
#define NAMED_PARTITIONS 5

/* A gap of that many offsets between two ranges is worth a new fetch. */
#define SEEK_DISTANCE 10000

#define DEFAULT_QUEUE_KB 65536

static void free_messages(KafkaConsumer *consumer);
static void unassign(KafkaConsumer *consumer);

/* --- acquire and release ---------------------------------------------------- */

static void
release_consumer(KafkaClient *client)
{
	kafka_consumer_release((KafkaConsumer *) client);
}

KafkaConsumer *
kafka_consumer_acquire(const KafkaConfig *config, int queue_kb, MemoryContext owner)
{
	KafkaConsumer *consumer = MemoryContextAllocZero(owner, sizeof(KafkaConsumer));
	KafkaHandleKey key = {
		.serverid = config->serverid,
		.umid = config->umid,
		.fingerprint = config->fingerprint,
		.queue_kb = queue_kb > 0 ? queue_kb : DEFAULT_QUEUE_KB,
		.follow = config->follow,
		.narrow = config->narrow,
	};

	consumer->client.owner = owner;
	consumer->client.release = release_consumer;
	kafka_client_open(&consumer->client, config, &key, NULL);
	return consumer;
}

void
kafka_consumer_release(KafkaConsumer *consumer)
{
	KafkaHandle *handle = consumer->client.handle;

	if (handle == NULL)
		return;
	kafka_job_end(&consumer->client);
	free_messages(consumer);
	if (consumer->reading && !consumer->client.busy && handle->refused == RD_KAFKA_RESP_ERR_NO_ERROR)
		unassign(consumer);
	kafka_client_close(&consumer->client, true);
}

void
kafka_consumer_set_timeout(KafkaConsumer *consumer, int timeout_ms)
{
	consumer->client.timeout_ms = timeout_ms;
}

int
kafka_wait_fd(KafkaConsumer *consumer)
{
	return consumer->client.handle->fd[0];
}

const char *
kafka_last_error(KafkaConsumer *consumer)
{
	kafka_drain_events(&consumer->client);
	return consumer->client.handle->last_error;
}

/* --- messages --------------------------------------------------------------- */

static void
free_messages(KafkaConsumer *consumer)
{
	for (int i = 0; i < consumer->nmessages; i++)
		rd_kafka_message_destroy(consumer->messages[i]);
	consumer->nmessages = 0;
	if (consumer->failure)
	{
		rd_kafka_message_destroy(consumer->failure);
		consumer->failure = NULL;
	}
}

int
kafka_record_headers(const KafkaRecord *record, KafkaHeader **headers)
{
	rd_kafka_headers_t *list;
	size_t		n;

	*headers = NULL;
	if (record->message == NULL)
	{
		*headers = (KafkaHeader *) record->headers;
		return record->nheaders;
	}
	if (rd_kafka_message_headers((rd_kafka_message_t *) record->message, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	n = rd_kafka_header_cnt(list);
	*headers = palloc(sizeof(KafkaHeader) * Max(n, 1));
	for (size_t i = 0; i < n; i++)
	{
		const void *value;
		size_t		len;

		if (rd_kafka_header_get_all(list, i, &(*headers)[i].name, &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
			return (int) i;
		(*headers)[i].value = value;
		(*headers)[i].value_len = len;
	}
	return (int) n;
}

static void
fill_record(KafkaRecord *record, rd_kafka_message_t *message, const KafkaRange *range, int index)
{
	rd_kafka_timestamp_type_t type;

	record->topic = range->topic;
	record->partition = message->partition;
	record->source = range->source;
	record->range = index;
	record->offset = message->offset;
	record->timestamp = rd_kafka_message_timestamp(message, &type);
	switch (type)
	{
		case RD_KAFKA_TIMESTAMP_CREATE_TIME:
			record->timestamp_type = KAFKA_TIMESTAMP_CREATE_TIME;
			break;
		case RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME:
			record->timestamp_type = KAFKA_TIMESTAMP_LOG_APPEND_TIME;
			break;
		default:
			record->timestamp_type = KAFKA_TIMESTAMP_NONE;
			break;
	}
#if RD_KAFKA_VERSION >= 0x020100ff
	record->leader_epoch = rd_kafka_message_leader_epoch(message);
#else
	record->leader_epoch = -1;
#endif
	record->key = message->key;
	record->key_len = message->key_len;
	record->value = message->payload;
	record->value_len = message->len;
	record->message = message;
}

/* --- ranges ----------------------------------------------------------------- */

/* The ranges of each partition in the order of their offsets, one after another. */
static void
build_slots(KafkaConsumer *consumer)
{
	consumer->topics = NULL;
	consumer->ntopics = 0;
	consumer->last_topic = 0;
	consumer->nopen = 0;
	consumer->next_range = MemoryContextAlloc(consumer->client.owner, sizeof(int) * Max(consumer->nranges, 1));

	for (int r = 0; r < consumer->nranges; r++)
	{
		KafkaRange *range = &consumer->ranges[r];
		TopicSlots *topic = NULL;
		PartitionSlot *slot;
		int		   *link;

		consumer->next_range[r] = -1;
		range->position = range->start;
		range->done = range->start >= range->end;
		if (range->done)
			continue;
		consumer->nopen++;

		for (int t = 0; t < consumer->ntopics && topic == NULL; t++)
		{
			if (strcmp(consumer->topics[t].topic, range->topic) == 0)
				topic = &consumer->topics[t];
		}
		if (topic == NULL)
		{
			Size		size = sizeof(TopicSlots) * (consumer->ntopics + 1);

			if (consumer->topics == NULL)
				consumer->topics = MemoryContextAlloc(consumer->client.owner, size);
			else
				consumer->topics = repalloc(consumer->topics, size);
			topic = &consumer->topics[consumer->ntopics++];
			memset(topic, 0, sizeof(TopicSlots));
			topic->topic = MemoryContextStrdup(consumer->client.owner, range->topic);
		}
		if (range->partition >= topic->npartitions)
		{
			int			n = range->partition + 1;

			if (topic->partitions == NULL)
				topic->partitions = MemoryContextAlloc(consumer->client.owner, sizeof(PartitionSlot) * n);
			else
				topic->partitions = repalloc(topic->partitions, sizeof(PartitionSlot) * n);
			for (int p = topic->npartitions; p < n; p++)
			{
				topic->partitions[p].active = -1;
				topic->partitions[p].assigned = false;
				topic->partitions[p].heard = false;
				topic->partitions[p].paused = false;
				topic->partitions[p].seek = false;
			}
			topic->npartitions = n;
		}

		slot = &topic->partitions[range->partition];
		link = &slot->active;
		while (*link >= 0 && consumer->ranges[*link].start <= range->start)
			link = &consumer->next_range[*link];
		consumer->next_range[r] = *link;
		*link = r;
	}
}

static void
free_slots(KafkaConsumer *consumer)
{
	for (int t = 0; t < consumer->ntopics; t++)
	{
		pfree(consumer->topics[t].topic);
		pfree(consumer->topics[t].partitions);
	}
	if (consumer->topics)
		pfree(consumer->topics);
	if (consumer->next_range)
		pfree(consumer->next_range);
	consumer->topics = NULL;
	consumer->ntopics = 0;
	consumer->next_range = NULL;
}

/* The topic that a message or event belongs to; NULL for one we don't read. */
static TopicSlots *
find_topic(KafkaConsumer *consumer, rd_kafka_topic_t *rkt)
{
	const char *name;

	if (rkt == NULL || consumer->ntopics == 0)
		return NULL;
	if (consumer->topics[consumer->last_topic].rkt == rkt)
		return &consumer->topics[consumer->last_topic];
	name = rd_kafka_topic_name(rkt);
	for (int t = 0; t < consumer->ntopics; t++)
	{
		if (strcmp(consumer->topics[t].topic, name) == 0)
		{
			consumer->topics[t].rkt = rkt;
			consumer->last_topic = t;
			return &consumer->topics[t];
		}
	}
	return NULL;
}

/*
 * The partition's log has been read up to 'offset'.  True if that moved a
 * position.
 */
static bool
advance(KafkaConsumer *consumer, PartitionSlot *slot, int64 offset)
{
	int			before = slot->active;
	bool		moved = false;

	while (slot->active >= 0)
	{
		KafkaRange *range = &consumer->ranges[slot->active];

		if (offset <= range->position)
			break;
		range->position = Min(offset, Max(range->end, range->position));
		moved = true;
		if (range->position < range->end)
			break;
		range->done = true;
		consumer->nopen--;
		slot->active = consumer->next_range[slot->active];
	}
	if (slot->active >= 0 && slot->active != before &&
		consumer->ranges[slot->active].start - offset > SEEK_DISTANCE)
		slot->seek = true;
	return moved;
}

/* Jump over what lies between two ranges of a partition. */
static void
seek_next(KafkaConsumer *consumer)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	for (int t = 0; t < consumer->ntopics; t++)
	{
		for (int p = 0; p < consumer->topics[t].npartitions; p++)
		{
			PartitionSlot *slot = &consumer->topics[t].partitions[p];

			if (slot->active >= 0 && slot->seek)
				rd_kafka_topic_partition_list_add(list, consumer->topics[t].topic, p)->offset =
					consumer->ranges[slot->active].position;
			slot->seek = false;
		}
	}
	/*
	 * Not waited for.  What comes in of the old place until then is skipped; if
	 * it reaches the range by itself, the position sorts out what comes twice.
	 */
	if (list->cnt > 0)
	{
		rd_kafka_error_t *error = rd_kafka_seek_partitions(consumer->client.handle->rk, list, 0);

		/* then we read through */
		if (error)
			rd_kafka_error_destroy(error);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/* Nothing of these partitions is wanted any more: don't fetch for nothing. */
static void
pause_finished(KafkaConsumer *consumer)
{
	rd_kafka_topic_partition_list_t *list = NULL;

	for (int t = 0; t < consumer->ntopics; t++)
	{
		TopicSlots *topic = &consumer->topics[t];

		for (int p = 0; p < topic->npartitions; p++)
		{
			PartitionSlot *slot = &topic->partitions[p];

			if (slot->active >= 0 || slot->paused || !slot->assigned)
				continue;
			if (list == NULL)
				list = rd_kafka_topic_partition_list_new(8);
			rd_kafka_topic_partition_list_add(list, topic->topic, p);
			slot->paused = true;
		}
	}
	if (list != NULL)
	{
		rd_kafka_pause_partitions(consumer->client.handle->rk, list);
		rd_kafka_topic_partition_list_destroy(list);
	}
}

/* --- start and stop --------------------------------------------------------- */

/*
 * Take the assignment away.  Paused partitions are resumed first: the flag would
 * outlive the assignment.  Waits for librdkafka's main thread only.
 */
static void
unassign(KafkaConsumer *consumer)
{
	KafkaHandle *handle = consumer->client.handle;
	rd_kafka_topic_partition_list_t *list = NULL;

	for (int t = 0; t < consumer->ntopics; t++)
	{
		for (int p = 0; p < consumer->topics[t].npartitions; p++)
		{
			if (!consumer->topics[t].partitions[p].paused)
				continue;
			if (list == NULL)
				list = rd_kafka_topic_partition_list_new(8);
			rd_kafka_topic_partition_list_add(list, consumer->topics[t].topic, p);
		}
	}
	if (list != NULL)
	{
		rd_kafka_resume_partitions(handle->rk, list);
		rd_kafka_topic_partition_list_destroy(list);
	}
	rd_kafka_assign(handle->rk, NULL);
	consumer->reading = false;
}

void
kafka_consume_stop(KafkaConsumer *consumer)
{
	consumer->client.busy = true;
	free_messages(consumer);
	if (consumer->reading)
		unassign(consumer);
	free_slots(consumer);
	consumer->ranges = NULL;
	consumer->nranges = 0;
	consumer->nopen = 0;
	consumer->client.busy = false;
}

void
kafka_consume_start(KafkaConsumer *consumer, KafkaRange *ranges, int n)
{
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

	kafka_consume_stop(consumer);
	kafka_check_partitions(consumer, n, ranges);

	consumer->client.busy = true;
	consumer->ranges = ranges;
	consumer->nranges = n;
	consumer->waited_ms = 0;
	build_slots(consumer);

	if (consumer->nopen > 0)
	{
		list = rd_kafka_topic_partition_list_new(n);
		for (int t = 0; t < consumer->ntopics; t++)
		{
			TopicSlots *topic = &consumer->topics[t];

			for (int p = 0; p < topic->npartitions; p++)
			{
				if (topic->partitions[p].active < 0)
					continue;
				topic->partitions[p].assigned = true;
				rd_kafka_topic_partition_list_add(list, topic->topic, p)->offset =
					ranges[topic->partitions[p].active].start;
			}
		}
		err = rd_kafka_assign(consumer->client.handle->rk, list);
		rd_kafka_topic_partition_list_destroy(list);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			kafka_raise(&consumer->client, err, ranges[0].topic, -1, -1, NULL);
		consumer->reading = true;
	}
	consumer->client.busy = false;
}

/* --- consuming -------------------------------------------------------------- */

/* Raise the error event that ended the last batch. */
static void
raise_failure(KafkaConsumer *consumer, int *out_of_range)
{
	rd_kafka_message_t *event = consumer->failure;
	TopicSlots *topic = find_topic(consumer, event->rkt);
	rd_kafka_resp_err_t err = event->err;
	int64		offset = event->offset;
	char	   *text = pstrdup(rd_kafka_message_errstr(event));

	if (topic != NULL && event->partition >= 0 && event->partition < topic->npartitions)
	{
		int			active = topic->partitions[event->partition].active;

		if (active >= 0)
		{
			if (offset < 0)
				offset = consumer->ranges[active].position;
			if (out_of_range && (err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
								 err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE))
				*out_of_range = active;
		}
	}
	kafka_raise(&consumer->client, err, topic ? topic->topic : NULL, event->partition, offset, text);
}

/*
 * A bounded reading that gets nowhere: which partitions are missing, and why
 * that may be.
 */
static void
raise_no_progress(KafkaConsumer *consumer)
{
	StringInfoData missing;
	int			n = 0;
	const char *topic = NULL;
	const char *last = consumer->client.handle->last_error;

	initStringInfo(&missing);
	for (int r = 0; r < consumer->nranges; r++)
	{
		KafkaRange *range = &consumer->ranges[r];

		if (range->done)
			continue;
		if (n++ == NAMED_PARTITIONS)
		{
			appendStringInfoString(&missing, ", and others");
			break;
		}
		topic = range->topic;
		appendStringInfo(&missing, "%spartition %d is at offset " INT64_FORMAT " of " INT64_FORMAT,
						 n > 1 ? ", " : "", range->partition, range->position, range->end);
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("Kafka server \"%s\" sent nothing of topic \"%s\" for %d ms",
					consumer->client.server_name, topic ? topic : "", consumer->client.timeout_ms),
			 last[0] ? errdetail("Still missing: %s.  Last error of the client: %s.", missing.data, last) :
			 errdetail("Still missing: %s.", missing.data),
			 errhint("A broker that leads these partitions may be down, or the end lies behind an open transaction.")));
}

static bool
has_unbounded(KafkaConsumer *consumer)
{
	for (int r = 0; r < consumer->nranges; r++)
	{
		if (!consumer->ranges[r].done && consumer->ranges[r].end == KAFKA_NO_END)
			return true;
	}
	return false;
}

/*
 * Positions over control records, which are swallowed without an event.  Only
 * of partitions that have been heard: before that, librdkafka may still tell the
 * position of an earlier assignment.
 */
static bool
follow_positions(KafkaConsumer *consumer)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(consumer->nopen);
	bool		moved = false;

	for (int t = 0; t < consumer->ntopics; t++)
	{
		for (int p = 0; p < consumer->topics[t].npartitions; p++)
		{
			PartitionSlot *slot = &consumer->topics[t].partitions[p];

			if (slot->active >= 0 && slot->heard)
				rd_kafka_topic_partition_list_add(list, consumer->topics[t].topic, p)->opaque = slot;
		}
	}
	if (list->cnt > 0 && rd_kafka_position(consumer->client.handle->rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		for (int i = 0; i < list->cnt; i++)
		{
			if (advance(consumer, list->elems[i].opaque, list->elems[i].offset))
				moved = true;
		}
	}
	rd_kafka_topic_partition_list_destroy(list);
	return moved;
}

/*
 * Take what is there.  Returns the number of records; *moved tells that some
 * position moved, *more that there was something, wanted or not.
 */
static int
take_batch(KafkaConsumer *consumer, KafkaRecord *records, int max, bool *moved, bool *more)
{
	KafkaHandle *handle = consumer->client.handle;
	int			open = consumer->nopen;
	int			n = 0;
	ssize_t		got;

	got = rd_kafka_consume_batch_queue(handle->records, 0, consumer->messages, max);
	if (got < 0)
		kafka_raise(&consumer->client, rd_kafka_last_error(), NULL, -1, -1, NULL);
	consumer->nmessages = (int) got;
	*more = got > 0;

	for (int i = 0; i < got; i++)
	{
		rd_kafka_message_t *message = consumer->messages[i];
		TopicSlots *topic = find_topic(consumer, message->rkt);
		PartitionSlot *slot = NULL;

		if (topic && message->partition >= 0 && message->partition < topic->npartitions)
			slot = &topic->partitions[message->partition];

		if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
		{
			int			active;

			if (slot == NULL)
				continue;
			slot->heard = true;
			/* what lies before it is behind us; that may end ranges */
			if (advance(consumer, slot, message->offset))
				*moved = true;
			active = slot->active;
			if (active < 0 || message->offset < consumer->ranges[active].position)
				continue;
			fill_record(&records[n++], message, &consumer->ranges[active], active);
			advance(consumer, slot, message->offset + 1);
			*moved = true;
		}
		else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
		{
			if (slot && advance(consumer, slot, message->offset))
				*moved = true;
		}
		else if (message->err == RD_KAFKA_RESP_ERR__FATAL || (slot && slot->active >= 0))
		{
			if (kafka_error_passes(message->err))
			{
				strlcpy(handle->last_error, rd_kafka_message_errstr(message), KAFKA_ERROR_TEXT);
				continue;
			}
			/* deliver what came before it, raise it next time; never go past it */
			consumer->failure = message;
			for (int j = i + 1; j < got; j++)
				rd_kafka_message_destroy(consumer->messages[j]);
			consumer->nmessages = i;
			break;
		}
		/* other events are of the group, or of partitions that are finished */
	}

	if (n == 0 && got < max && consumer->nopen > 0 && follow_positions(consumer))
		*moved = true;
	if (consumer->nopen < open && consumer->nopen > 0)
	{
		pause_finished(consumer);
		seek_next(consumer);
	}
	return n;
}

int
kafka_consume(KafkaConsumer *consumer, KafkaRecord *records, int max, long timeout_ms,
			  bool wake_on_latch, int *out_of_range)
{
	KafkaHandle *handle = consumer->client.handle;
	int64		deadline = kafka_now_ms() + timeout_ms;
	int			n = 0;

	consumer->client.busy = true;
	if (consumer->failure)
		raise_failure(consumer, out_of_range);
	free_messages(consumer);

	if (max > consumer->maxmessages)
	{
		if (consumer->messages)
			pfree(consumer->messages);
		consumer->messages = NULL;
		consumer->maxmessages = 0;
		consumer->messages = MemoryContextAlloc(consumer->client.owner, sizeof(rd_kafka_message_t *) * max);
		consumer->maxmessages = max;
	}

	while (consumer->nopen > 0)
	{
		bool		moved = false;
		bool		more = false;
		int64		now;
		int64		wait;
		int			events;

		CHECK_FOR_INTERRUPTS();
		kafka_drain_pipe(handle);
		kafka_drain_events(&consumer->client);
		n = take_batch(consumer, records, max, &moved, &more);
		if (moved || more)
		{
			consumer->waited_ms = 0;
			handle->answered = true;
			handle->last_error[0] = '\0';
		}
		if (n > 0 || moved)
			break;
		if (consumer->failure)
			raise_failure(consumer, out_of_range);
		if (handle->refused)
			kafka_raise_refused(&consumer->client, handle->refused, handle->refused_text);
		free_messages(consumer);

		if (consumer->waited_ms >= consumer->client.timeout_ms && !has_unbounded(consumer))
			raise_no_progress(consumer);
		now = kafka_now_ms();
		if (now >= deadline)
			break;
		if (more)
			continue;

		/* wake up in time for the limit above */
		wait = deadline - now;
		if (!has_unbounded(consumer))
			wait = Min(wait, Max(consumer->client.timeout_ms - consumer->waited_ms, 1));
		events = WaitLatchOrSocket(MyLatch,
								   WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								   handle->fd[0], wait, PG_WAIT_EXTENSION);
		consumer->waited_ms += kafka_now_ms() - now;
		if (events & WL_LATCH_SET)
		{
			if (wake_on_latch)
				break;
			ResetLatch(MyLatch);
		}
	}
	consumer->client.busy = false;
	return n;
}
