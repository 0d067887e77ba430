/*
 * topic_limit.c
 *	  How large a message and a batch may be for a topic, before anything is sent: what
 *	  the broker says of the topic, and what the client has been told.
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

#define KNOWN_MS		60000
#define ASK_MS			2000	/* without an answer it goes on as if there were no limit */
#define BATCH_HEADER	61		/* of a record batch, which the topic's limit is about */

/* Helper thread: the topic's max.message.bytes, into partitions[0]; 0 where it says nothing. */
static void
take_limit(KafkaJob *job, const rd_kafka_ConfigResource_t *resource)
{
	size_t		n;
	const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &n);

	job->err = rd_kafka_ConfigResource_error(resource);
	for (size_t i = 0; i < n && job->err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
	{
		const char *value = rd_kafka_ConfigEntry_value(entries[i]);

		if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), "max.message.bytes") == 0 && value != NULL)
			job->partitions[0] = atoi(value);
	}
}

static void
run_describe(KafkaJob *job)
{
	rd_kafka_t *rk = job->handle->rk;
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, job->topics[0]);
	rd_kafka_event_t *event;

	(void) rd_kafka_AdminOptions_set_request_timeout(options, ASK_MS, NULL, 0);
	rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
	event = kafka_job_answer(job, queue, ASK_MS);
	job->err = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (job->err == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		size_t		n;
		const rd_kafka_ConfigResource_t **resources =
			rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);

		if (n == 1)
			take_limit(job, resources[0]);
	}
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_ConfigResource_destroy(resource);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_queue_destroy(queue);
}

/*
 * Ask, if it is time.  Whoever may write to a topic need not have the right to ask; then,
 * as without an answer, the broker's word comes when the message is sent.
 */
static void
refresh_limit(KafkaProducer *producer, KafkaTopic *topic)
{
	KafkaClient *client = &producer->client;
	KafkaJob   *job;

	if (topic->limit_until > kafka_now_ms())
		return;
	job = kafka_job_new(client);
	kafka_job_topic(job, topic->name);
	job->run = run_describe;
	topic->max_bytes = 0;
	if (kafka_job_wait(client, Min(ASK_MS, producer->message_timeout_ms), NULL) &&
		job->err == RD_KAFKA_RESP_ERR_NO_ERROR)
		topic->max_bytes = job->partitions[0];
	kafka_job_end(client);
	client->busy = false;
	topic->limit_until = kafka_now_ms() + KNOWN_MS;
}

static bool
client_compresses(const rd_kafka_conf_t *conf)
{
	char		value[32];
	size_t		size = sizeof(value);

	return rd_kafka_conf_get(conf, "compression.codec", value, &size) != RD_KAFKA_CONF_OK ||
		strcmp(value, "none") != 0;
}

static int
number_of(const rd_kafka_conf_t *conf, const char *name)
{
	char		value[32];
	size_t		size = sizeof(value);

	return rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK ? atoi(value) : PG_INT32_MAX;
}

Size
kafka_producer_message_limit(KafkaProducer *producer, const char *name, int *batch_bytes)
{
	KafkaTopic *topic = kafka_producer_topic(producer, name);
	const rd_kafka_conf_t *conf = rd_kafka_conf(producer->client.handle->rk);
	Size		limit = number_of(conf, "message.max.bytes");

	refresh_limit(producer, topic);
	*batch_bytes = 0;
	if (topic->max_bytes <= BATCH_HEADER)
		return limit;
	if (topic->max_bytes < number_of(conf, "batch.size"))
		*batch_bytes = topic->max_bytes;
	/* the topic's limit is one of the compressed bytes, which nobody knows yet */
	if (!client_compresses(conf))
		limit = Min(limit, topic->max_bytes - BATCH_HEADER);
	return limit;
}

void
kafka_producer_check_size(KafkaProducer *producer, const KafkaOutRecord *record)
{
	Size		size = record->key_len + record->value_len;
	int			batch_bytes;
	Size		limit = kafka_producer_message_limit(producer, record->topic, &batch_bytes);

	if (size > limit)
		kafka_raise_write(&producer->client, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, record->topic, -1, size,
						  psprintf(_("key and value may have %zu bytes"), limit));
}
