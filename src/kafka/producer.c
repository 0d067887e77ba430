/*
 * producer.c
 *	  Writing messages: the client's queue, partitions, delivery reports.
 *
 * A handle keeps the topics it has written to, with their partition counts, so
 * that a pooled one sends a row without asking first.  Everything that is known
 * of a message after rd_kafka_producev() comes with its delivery report, whose
 * opaque pointer is its topic.
 */
#include "postgres.h"

#include <time.h>

#include "common/hashfn.h"
#include "kafka/kafka_internal.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/memutils.h"

/* The same as librdkafka's own topic.metadata.refresh in spirit, but sooner. */
#define PARTITIONS_KNOWN_MS 60000

/* Reports are taken in after that many messages: often enough to free the queue. */
#define SERVE_EVERY 1000

/* --- acquire and release ---------------------------------------------------- */

static void take_reports(KafkaClient *client, rd_kafka_event_t *event);

static void
release_producer(KafkaClient *client)
{
	kafka_producer_release((KafkaProducer *) client);
}

KafkaProducer *
kafka_producer_acquire(const KafkaConfig *config, const KafkaProducerSettings *settings, MemoryContext owner)
{
	KafkaProducer *producer = MemoryContextAllocZero(owner, sizeof(KafkaProducer));
	KafkaHandleKey key = {
		.serverid = config->serverid,
		.umid = config->umid,
		.fingerprint = config->fingerprint,
		.producer = true,
		.wait_for_acks = settings->wait_for_acks,
		.transactional = settings->transactional_id != NULL,
		.message_timeout_ms = settings->message_timeout_ms,
		.batch_bytes = settings->batch_bytes,
	};

	producer->client.owner = owner;
	producer->client.release = release_producer;
	producer->client.delivered = take_reports;
	producer->partitioner = settings->partitioner;
	producer->wait_for_acks = settings->wait_for_acks;
	producer->message_timeout_ms = settings->message_timeout_ms;
	kafka_client_open(&producer->client, config, &key, settings);

	for (KafkaTopic *topic = producer->client.handle->topics; topic; topic = topic->next)
	{
		topic->sticky = -1;
		topic->used = false;
		kafka_topic_forget_written(topic);
	}
	return producer;
}

void
kafka_producer_release(KafkaProducer *producer)
{
	KafkaHandle *handle = producer->client.handle;

	if (handle == NULL)
		return;
	if (producer->headers)
		rd_kafka_headers_destroy(producer->headers);
	producer->headers = NULL;

	kafka_job_end(&producer->client);
	if (producer->outstanding > 0 || handle->in_transaction)
		kafka_producer_purge(producer);
	/* a client that has lost messages may have gaps in its sequence */
	kafka_client_close(&producer->client, producer->failure.err == RD_KAFKA_RESP_ERR_NO_ERROR);
}

/*
 * Purging what is in flight leaves gaps in the sequence of an idempotent producer,
 * so its handle is not used again.
 */
void
kafka_producer_purge(KafkaProducer *producer)
{
	KafkaHandle *handle = producer->client.handle;

	if (handle == NULL || (producer->produced == 0 && !handle->in_transaction))
		return;
	if (producer->wait_for_acks && producer->outstanding == 0)
		return;
	producer->client.busy = true;
	rd_kafka_purge(handle->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* --- topics ----------------------------------------------------------------- */

void
kafka_topic_forget_written(KafkaTopic *topic)
{
	for (int p = 0; p < topic->nwritten; p++)
		topic->written[p] = -1;
}

/* Any thread: the handle is about to go. */
void
kafka_topics_free(KafkaTopic *topics)
{
	while (topics)
	{
		KafkaTopic *topic = topics;

		topics = topic->next;
		if (topic->rkt)
			rd_kafka_topic_destroy(topic->rkt);
		free(topic->name);
		free(topic->written);
		free(topic);
	}
}

static void
out_of_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

/*
 * Take over a partition count.  It is smaller when the topic was created anew, and
 * reports on the old one may still be to come.
 */
static void
set_partitions(KafkaTopic *topic, int partitions)
{
	if (partitions > topic->nwritten)
	{
		int64	   *written = realloc(topic->written, sizeof(int64) * partitions);

		if (written == NULL)
			out_of_memory();
		topic->written = written;
		for (int p = topic->nwritten; p < partitions; p++)
			written[p] = -1;
		topic->nwritten = partitions;
	}
	topic->partitions = partitions;
	topic->known_until = kafka_now_ms() + PARTITIONS_KNOWN_MS;
}

/* Ask the broker how many partitions there are; no longer than messages may wait. */
static void
refresh_topic(KafkaProducer *producer, KafkaTopic *topic)
{
	KafkaJob   *job = kafka_job_new(&producer->client);

	kafka_job_topic(job, topic->name);
	kafka_job_run(&producer->client, Min(producer->client.timeout_ms, producer->message_timeout_ms));
	if (job->topic_err[0] != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_raise_write(&producer->client, job->topic_err[0], topic->name, -1, 0, NULL);
	set_partitions(topic, job->partitions[0]);
	kafka_job_end(&producer->client);
}

/* A topic of the handle, with its partitions asked for once a minute. */
KafkaTopic *
kafka_producer_topic(KafkaProducer *producer, const char *name)
{
	KafkaHandle *handle = producer->client.handle;
	KafkaTopic *topic = producer->topic;

	if (topic && strcmp(topic->name, name) == 0)
		return topic;

	for (topic = handle->topics; topic; topic = topic->next)
	{
		if (strcmp(topic->name, name) == 0)
			break;
	}
	if (topic == NULL)
	{
		/* the handle owns it at once, whatever comes next */
		topic = calloc(1, sizeof(KafkaTopic));
		if (topic == NULL)
			out_of_memory();
		topic->sticky = -1;
		topic->next = handle->topics;
		handle->topics = topic;
		topic->name = strdup(name);
		if (topic->name == NULL)
		{
			handle->topics = topic->next;
			free(topic);
			out_of_memory();
		}
	}
	if (topic->known_until <= kafka_now_ms())
		refresh_topic(producer, topic);
	/* after the question above, so that the client knows the leaders at once */
	if (topic->rkt == NULL)
		topic->rkt = rd_kafka_topic_new(handle->rk, name, NULL);
	if (topic->rkt == NULL)
		kafka_raise_write(&producer->client, rd_kafka_last_error(), name, -1, 0, NULL);
	producer->topic = topic;
	return topic;
}

int
kafka_producer_partitions(KafkaProducer *producer, const char *topic)
{
	return kafka_producer_topic(producer, topic)->partitions;
}

/* Nothing hangs on its quality: it spreads messages without key. */
static int32
random_partition(int32 npartitions)
{
	static uint32 state;

	state = hash_bytes_uint32(state ^ (uint32) kafka_now_ms() ^ ((uint32) MyProcPid << 16));
	return (int32) (state % (uint32) npartitions);
}

static int32
choose_partition(KafkaProducer *producer, KafkaTopic *topic, const KafkaOutRecord *record)
{
	if (record->partition >= 0)
	{
		/* it may be younger than what we know */
		if (record->partition >= topic->partitions)
			refresh_topic(producer, topic);
		if (record->partition >= topic->partitions)
			kafka_raise_write(&producer->client, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, topic->name,
							  record->partition, 0, NULL);
		return record->partition;
	}
	if (producer->partitioner == KAFKA_PARTITIONER_RANDOM)
		return random_partition(topic->partitions);
	if (record->key != NULL)
		return kafka_partition_of(producer->partitioner, record->key, record->key_len, topic->partitions);
	if (topic->sticky < 0 || topic->sticky >= topic->partitions)
		topic->sticky = random_partition(topic->partitions);
	return topic->sticky;
}

void
kafka_producer_check_partition(KafkaProducer *producer, const char *topic, int32 partition)
{
	KafkaOutRecord record = {.topic = topic, .partition = partition};

	producer->client.busy = true;
	(void) choose_partition(producer, kafka_producer_topic(producer, topic), &record);
	producer->client.busy = false;
}

/* --- delivery reports ------------------------------------------------------- */

static void
take_failure(KafkaProducer *producer, const rd_kafka_message_t *message)
{
	KafkaFailure *failure = &producer->failure;

	if (failure->count++ == 0)
	{
		failure->err = message->err;
		failure->topic = message->_private;
		failure->partition = message->partition;
		failure->size = message->key_len + message->len;
		strlcpy(failure->text, rd_kafka_err2str(message->err), KAFKA_ERROR_TEXT);
	}
	if (rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
		failure->maybe_written = true;
}

static void
take_reports(KafkaClient *client, rd_kafka_event_t *event)
{
	KafkaProducer *producer = (KafkaProducer *) client;
	const rd_kafka_message_t *message;

	while ((message = rd_kafka_event_message_next(event)) != NULL)
	{
		KafkaTopic *topic = message->_private;

		if (producer->wait_for_acks)
			producer->outstanding--;
		if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			take_failure(producer, message);
		/* the answer to a repeated request may not know the offset any more */
		else if (message->offset > topic->written[message->partition])
			topic->written[message->partition] = message->offset;
	}
	client->handle->answered = true;

	if (!producer->wait_for_acks && producer->failure.count > 0)
	{
		ereport(LOG,
				(errmsg("Kafka server \"%s\" did not take " INT64_FORMAT " message(s)",
						client->server_name, producer->failure.count),
				 errdetail("Topic \"%s\", partition %d: %s.", producer->failure.topic->name,
						   producer->failure.partition, producer->failure.text),
				 errhidestmt(true), errhidecontext(true)));
		memset(&producer->failure, 0, sizeof(KafkaFailure));
	}
}

/* What was not acknowledged within the time that messages or the caller have. */
static void
raise_not_acknowledged(KafkaProducer *producer, const KafkaTopic *topic, int32 partition, int64 count, long ms)
{
	const char *last = producer->client.handle->last_error;

	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("Kafka server \"%s\" did not acknowledge " INT64_FORMAT " message(s) within %ld ms",
					producer->client.server_name, count, ms),
			 topic == NULL ? 0 :
			 partition < 0 ? errdetail("Topic \"%s\": %s.", topic->name, last[0] ? last : "no answer") :
			 errdetail("Topic \"%s\", partition %d: %s.", topic->name, partition, last[0] ? last : "no answer"),
			 errhint("Some of them may have arrived.  Check that the brokers that lead the topic's partitions run and can be reached from here.")));
}

/*
 * A client or a transaction that has failed throws its messages out, whose reports say
 * no more than that.  The library knows why; NO_ERROR if it does not.
 */
static rd_kafka_resp_err_t
cause_of_failure(KafkaHandle *handle, char *text, Size size)
{
	rd_kafka_resp_err_t err = rd_kafka_fatal_error(handle->rk, text, size);
	rd_kafka_error_t *error;

	if (err != RD_KAFKA_RESP_ERR_NO_ERROR || !handle->in_transaction)
		return err;
	/* nothing can begin while one is open, and of one that must be aborted it tells the cause */
	error = rd_kafka_begin_transaction(handle->rk);
	if (error == NULL)
		return err;
	if (rd_kafka_error_txn_requires_abort(error))
	{
		err = rd_kafka_error_code(error);
		strlcpy(text, rd_kafka_error_string(error), size);
	}
	rd_kafka_error_destroy(error);
	return err;
}

/*
 * Raise why the client or its transaction has failed, if it has.  The library does not
 * say which topic it was, so that more than one in the transaction are all named.
 */
void
kafka_producer_raise_cause(KafkaProducer *producer)
{
	char		text[KAFKA_ERROR_TEXT];
	rd_kafka_resp_err_t err = cause_of_failure(producer->client.handle, text, sizeof(text));
	StringInfoData names;
	const char *name = NULL;
	int			n = 0;

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	initStringInfo(&names);
	for (const KafkaTopic *topic = producer->client.handle->topics; topic; topic = topic->next)
	{
		if (!topic->used)
			continue;
		appendStringInfo(&names, "%s\"%s\"", n++ > 0 ? ", " : "", topic->name);
		name = topic->name;
	}
	if (n > 1)
		kafka_raise_write(&producer->client, err, NULL, -1, 0, psprintf(_("One of the topics %s: %s"), names.data, text));
	kafka_raise_write(&producer->client, err, name, -1, 0, text);
}

/* Raise what the delivery reports told. */
static void
raise_failure(KafkaProducer *producer)
{
	KafkaFailure *failure = &producer->failure;
	KafkaHandle *handle = producer->client.handle;
	const char *topic = failure->topic ? failure->topic->name : NULL;
	char	   *text;

	producer->client.busy = true;
	/* a client that has failed for good drops its messages: say why */
	if (handle->refused)
		kafka_raise_refused(&producer->client, handle->refused, handle->refused_text);
	if (failure->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || failure->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
		kafka_producer_raise_cause(producer);
	if (failure->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || kafka_error_passes(failure->err))
		raise_not_acknowledged(producer, failure->topic, failure->partition, failure->count,
							   producer->message_timeout_ms);

	/* a batch fails as a whole: which of its messages is to blame is not known */
	if (failure->count == 1)
		kafka_raise_write(&producer->client, failure->err, topic, failure->partition, failure->size, failure->text);
	text = psprintf("%s (" INT64_FORMAT " messages%s)", failure->text, failure->count,
					failure->maybe_written ? ", of which some may have arrived" : "");
	kafka_raise_write(&producer->client, failure->err, topic, failure->partition, 0, text);
}

/* --- producing -------------------------------------------------------------- */

/*
 * Wait until something of the full queue has been acknowledged, at most as long
 * as messages live.  (The library notices up to a second late that they expired.)
 */
static void
wait_for_room(KafkaProducer *producer)
{
	KafkaHandle *handle = producer->client.handle;
	int64		deadline = kafka_now_ms() + producer->message_timeout_ms;
	int			full = rd_kafka_outq_len(handle->rk);

	for (;;)
	{
		int64		left = deadline - kafka_now_ms();

		kafka_drain_pipe(handle);
		kafka_drain_events(&producer->client);
		if (producer->failure.count > 0)
			raise_failure(producer);
		if (handle->refused)
			kafka_raise_refused(&producer->client, handle->refused, handle->refused_text);
		if (rd_kafka_outq_len(handle->rk) < full)
			return;
		if (left <= 0)
			raise_not_acknowledged(producer, producer->topic, -1, producer->outstanding,
								   producer->message_timeout_ms);

		(void) WaitLatchOrSocket(MyLatch,
								 WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 handle->fd[0], Min(left, 1000), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
make_headers(KafkaProducer *producer, const KafkaOutRecord *record)
{
	producer->headers = rd_kafka_headers_new(record->nheaders);
	for (int i = 0; i < record->nheaders; i++)
	{
		const KafkaHeader *header = &record->headers[i];
		rd_kafka_resp_err_t err;

		err = rd_kafka_header_add(producer->headers, header->name, -1, header->value,
								  header->value ? (ssize_t) header->value_len : 0);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			kafka_raise_write(&producer->client, err, record->topic, -1, 0, NULL);
	}
}

/* The wire has no time before 1970, and the library takes 0 for "now". */
static void
check_timestamp(const KafkaOutRecord *record)
{
	if (record->timestamp <= 0 && record->timestamp != -1)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp of a message for topic \"%s\" is out of range", record->topic),
				 errdetail("It lies " INT64_FORMAT " ms before 1970-01-01 00:00:00.001 UTC, the first one that can be written.",
						   1 - record->timestamp)));
}

/* What the client has not taken: raise why. */
static void
raise_not_taken(KafkaProducer *producer, const KafkaTopic *topic, rd_kafka_resp_err_t err, int32 partition,
				Size size)
{
	KafkaClient *client = &producer->client;

	kafka_drain_events(client);
	if (client->handle->refused)
		kafka_raise_refused(client, client->handle->refused, client->handle->refused_text);
	/* it takes nothing more when something has failed before */
	if (err == RD_KAFKA_RESP_ERR__STATE || err == RD_KAFKA_RESP_ERR__FATAL)
		kafka_producer_raise_cause(producer);
	kafka_raise_write(client, err, topic->name, partition, size, NULL);
}

static void
count_taken(KafkaProducer *producer, KafkaTopic *topic, int n)
{
	topic->used = true;
	producer->produced += n;
	if (producer->wait_for_acks)
		producer->outstanding += n;
	producer->unserved += n;
}

/* Now and then: reports free the queue, and tell of failures. */
static void
serve(KafkaProducer *producer)
{
	if (producer->unserved < SERVE_EVERY)
		return;
	producer->unserved = 0;
	kafka_drain_events(&producer->client);
	if (producer->failure.count > 0)
		raise_failure(producer);
	CHECK_FOR_INTERRUPTS();
}

static void
put_one(KafkaProducer *producer, KafkaTopic *topic, int32 partition, const KafkaOutRecord *record)
{
	rd_kafka_resp_err_t err;

	check_timestamp(record);
	if (record->nheaders > 0)
		make_headers(producer, record);
	while ((err = rd_kafka_producev(producer->client.handle->rk,
									RD_KAFKA_V_RKT(topic->rkt),
									RD_KAFKA_V_PARTITION(partition),
									RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
									RD_KAFKA_V_KEY(record->key, record->key_len),
									RD_KAFKA_V_VALUE((void *) record->value, record->value_len),
									RD_KAFKA_V_TIMESTAMP(record->timestamp < 0 ? 0 : record->timestamp),
									RD_KAFKA_V_HEADERS(producer->headers),
									RD_KAFKA_V_OPAQUE(topic),
									RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		wait_for_room(producer);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		raise_not_taken(producer, topic, err, partition, record->key_len + record->value_len);
	producer->headers = NULL;
	count_taken(producer, topic, 1);
	serve(producer);
}

/* --- a key in two partitions ---------------------------------------------------- */

/*
 * A tombstone, or a changed row, goes where the row was found, a new row of its key where
 * the partitioner says.  Where that is another partition, readers tell the order by the
 * messages' times: so what the partitioner places bears a later one than what was placed
 * before it.
 */
static bool
is_placed(const KafkaOutRecord *record)
{
	return record->partition >= 0 && record->timestamp == -1;
}

static bool
takes_later_time(const KafkaOutRecord *record)
{
	return record->partition < 0 && record->key != NULL && record->timestamp == -1;
}

/* The time that the library gives a message */
static int64
wall_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int32
kafka_produce(KafkaProducer *producer, const KafkaOutRecord *record)
{
	KafkaTopic *topic;
	int32		partition;
	KafkaOutRecord stamped = *record;

	producer->client.busy = true;
	topic = kafka_producer_topic(producer, record->topic);
	partition = choose_partition(producer, topic, record);
	producer->client.busy = true;
	if (takes_later_time(record) && producer->placed_until >= wall_clock_ms())
		stamped.timestamp = producer->placed_until + 1;
	put_one(producer, topic, partition, &stamped);
	if (is_placed(record))
		producer->placed_until = wall_clock_ms();
	producer->client.busy = false;
	return partition;
}

/*
 * The time for what is placed in a batch, behind which the rest has the next
 * millisecond; -1: the library may set them all.
 */
static int64
time_of_batch(const KafkaProducer *producer, int n, const KafkaOutRecord *const *records)
{
	int64		now = Max(wall_clock_ms(), producer->placed_until);
	bool		placed = producer->placed_until >= now;

	for (int i = 0; i < n; i++)
	{
		if (is_placed(records[i]))
			placed = true;
		else if (placed && takes_later_time(records[i]))
			return now;
	}
	return -1;
}

/* Messages of one partition, which have neither time nor headers of their own. */
static void
put_run(KafkaProducer *producer, KafkaTopic *topic, int32 partition, rd_kafka_message_t *messages, int n)
{
	while (n > 0)
	{
		int			taken = rd_kafka_produce_batch(topic->rkt, partition, RD_KAFKA_MSG_F_COPY, messages, n);
		int			first = n;

		count_taken(producer, topic, taken);
		for (int i = 0; taken < n && i < n; i++)
		{
			if (messages[i].err == RD_KAFKA_RESP_ERR_NO_ERROR)
				continue;
			/* from a full queue on it takes none, so that their order holds */
			if (messages[i].err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
				raise_not_taken(producer, topic, messages[i].err, partition, messages[i].key_len + messages[i].len);
			first = i;
			break;
		}
		messages += first;
		n -= first;
		if (n > 0)
			wait_for_room(producer);
		serve(producer);
	}
}

static void
many_enlarge(KafkaProducer *producer, int n)
{
	MemoryContext owner = producer->client.owner;
	int			max = Max(n, 256);

	if (n <= producer->max_many)
		return;
	if (producer->max_many > 0)
	{
		pfree(producer->partitions);
		pfree(producer->order);
		pfree(producer->messages);
		producer->max_many = 0;
	}
	producer->partitions = MemoryContextAllocHuge(owner, sizeof(int32) * max);
	producer->order = MemoryContextAllocHuge(owner, sizeof(int) * max);
	producer->messages = MemoryContextAllocHuge(owner, sizeof(rd_kafka_message_t) * max);
	producer->max_many = max;
}

/*
 * Sorts messages by partition before the library gets them, a run of each.  It copies them
 * into memory one behind the other, and its thread reads them by partition: out
 * of the order of rows each message would be a cache miss, which costs more than all
 * else about it.
 */
void
kafka_produce_many(KafkaProducer *producer, int n, const KafkaOutRecord *const *records)
{
	KafkaTopic *topic;
	int		   *start;
	int			at = 0;
	int			npartitions;
	bool		plain = !producer->client.handle->key.transactional;
	bool		placed = false;
	int64		batch_time;

	if (n == 0)
		return;
	producer->client.busy = true;
	topic = kafka_producer_topic(producer, records[0]->topic);
	many_enlarge(producer, n);
	batch_time = time_of_batch(producer, n, records);
	plain = plain && batch_time == -1;
	for (int i = 0; i < n; i++)
	{
		producer->partitions[i] = choose_partition(producer, topic, records[i]);
		placed = placed || is_placed(records[i]);
		plain = plain && records[i]->timestamp == -1 && records[i]->nheaders == 0;
	}
	producer->client.busy = true;

	/* where each partition's messages begin, then where the next one of it goes */
	npartitions = topic->partitions;
	start = palloc0(sizeof(int) * (npartitions + 1));
	for (int i = 0; i < n; i++)
		start[producer->partitions[i] + 1]++;
	for (int p = 0; p < npartitions; p++)
		start[p + 1] += start[p];
	for (int i = 0; i < n; i++)
		producer->order[start[producer->partitions[i]]++] = i;
	pfree(start);

	for (int i = 0; i < n; i++)
	{
		const KafkaOutRecord *record = records[producer->order[i]];
		int32		partition = producer->partitions[producer->order[i]];
		rd_kafka_message_t *message = &producer->messages[i];

		if (!plain)
		{
			KafkaOutRecord stamped = *record;

			if (batch_time != -1 && record->timestamp == -1)
				stamped.timestamp = takes_later_time(record) ? batch_time + 1 : batch_time;
			put_one(producer, topic, partition, &stamped);
			continue;
		}
		memset(message, 0, sizeof(rd_kafka_message_t));
		message->key = (void *) record->key;
		message->key_len = record->key_len;
		message->payload = (void *) record->value;
		message->len = record->value_len;
		message->_private = topic;
		if (i + 1 == n || producer->partitions[producer->order[i + 1]] != partition)
		{
			put_run(producer, topic, partition, &producer->messages[at], i + 1 - at);
			at = i + 1;
		}
	}
	if (placed)
		producer->placed_until = Max(batch_time, wall_clock_ms());
	producer->client.busy = false;
}

/* --- flushing --------------------------------------------------------------- */

/*
 * Helper thread: only while somebody is in rd_kafka_flush() does the library send
 * without lingering.  The reports are taken in by the main thread.
 */
static void
run_flush(KafkaJob *job)
{
	int64		begun = kafka_now_ms();

	while (rd_kafka_flush(job->handle->rk, kafka_job_attempt_ms(job, begun)) != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		if (kafka_job_out_of_time(job))
			break;
	}
}

static bool
nothing_outstanding(KafkaClient *client)
{
	KafkaProducer *producer = (KafkaProducer *) client;

	if (producer->failure.count > 0)
		raise_failure(producer);
	return producer->outstanding == 0;
}

void
kafka_producer_flush(KafkaProducer *producer, long timeout_ms)
{
	KafkaClient *client = &producer->client;

	for (KafkaTopic *topic = client->handle->topics; topic; topic = topic->next)
		topic->sticky = -1;
	if (!producer->wait_for_acks)
		return;

	client->busy = true;
	kafka_drain_events(client);
	if (!nothing_outstanding(client))
	{
		kafka_job_new(client)->run = run_flush;
		(void) kafka_job_wait(client, timeout_ms, nothing_outstanding);
		kafka_job_end(client);
		if (!nothing_outstanding(client))
		{
			client->busy = true;
			raise_not_acknowledged(producer, producer->topic, -1, producer->outstanding, timeout_ms);
		}
	}
	client->busy = false;
}

int
kafka_producer_written(KafkaProducer *producer, KafkaWritten **written)
{
	int			n = 0;
	int			max = 16;

	*written = palloc(sizeof(KafkaWritten) * max);
	for (KafkaTopic *topic = producer->client.handle->topics; topic; topic = topic->next)
	{
		for (int p = 0; p < topic->nwritten; p++)
		{
			if (topic->written[p] < 0)
				continue;
			if (n == max)
				*written = repalloc(*written, sizeof(KafkaWritten) * (max *= 2));
			(*written)[n].topic = pstrdup(topic->name);
			(*written)[n].partition = p;
			(*written)[n].offset = topic->written[p];
			topic->written[p] = -1;
			n++;
		}
	}
	return n;
}
