/*
 * group.c
 *	  Reading back what a group has stored.  Nobody joins a group here: offsets
 *	  come into it through Kafka transactions (transaction.c).
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

/* Helper thread: one request; its outcome is in job->err and lists[0]. */
static void
ask_once(KafkaJob *job, int timeout_ms)
{
	rd_kafka_t *rk = job->handle->rk;
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
	rd_kafka_ListConsumerGroupOffsets_t *request = rd_kafka_ListConsumerGroupOffsets_new(job->group, job->lists[0]);
	rd_kafka_event_t *event;
	rd_kafka_error_t *error;

	/* an open transaction may be about to store another one (KIP-447) */
	error = rd_kafka_AdminOptions_set_require_stable_offsets(options, 1);
	if (error)
		rd_kafka_error_destroy(error);
	(void) rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
	rd_kafka_ListConsumerGroupOffsets(rk, &request, 1, options, queue);
	event = kafka_job_answer(job, queue, timeout_ms);

	job->err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (event)
	{
		const rd_kafka_ListConsumerGroupOffsets_result_t *result = rd_kafka_event_ListConsumerGroupOffsets_result(event);

		job->err = rd_kafka_event_error(event);
		if (job->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			strlcpy(job->text, rd_kafka_event_error_string(event), KAFKA_ERROR_TEXT);
		else
		{
			size_t		n = 0;
			const rd_kafka_group_result_t **groups = rd_kafka_ListConsumerGroupOffsets_result_groups(result, &n);
			const rd_kafka_error_t *group_error = n == 1 ? rd_kafka_group_result_error(groups[0]) : NULL;
			const rd_kafka_topic_partition_list_t *list = n == 1 ? rd_kafka_group_result_partitions(groups[0]) : NULL;

			if (group_error)
			{
				job->err = rd_kafka_error_code(group_error);
				strlcpy(job->text, rd_kafka_error_string(group_error), KAFKA_ERROR_TEXT);
			}
			else if (list && list->cnt == 1)
			{
				job->err = list->elems[0].err;
				job->lists[0]->elems[0].offset = list->elems[0].offset;
			}
			else
				job->err = RD_KAFKA_RESP_ERR__BAD_MSG;
		}
		rd_kafka_event_destroy(event);
	}
	rd_kafka_ListConsumerGroupOffsets_destroy(request);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_queue_destroy(queue);
}

static bool
may_be_asked_again(rd_kafka_resp_err_t err)
{
	return kafka_error_passes(err) || err == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT ||
		err == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE || err == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
		err == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

static void
run_group_offset(KafkaJob *job)
{
	int64		begun = kafka_now_ms();

	for (;;)
	{
		ask_once(job, kafka_job_attempt_ms(job, begun));
		if (!may_be_asked_again(job->err) || kafka_job_out_of_time(job))
			return;
		kafka_job_pause();
	}
}

int64
kafka_group_offset(KafkaConsumer *consumer, const char *group, const char *topic, int32 partition)
{
	KafkaClient *client = &consumer->client;
	KafkaJob   *job = kafka_job_new(client);
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	const char *text = NULL;
	int64		offset;

	job->group = strdup(group);
	if (job->group == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	job->lists[job->nlists++] = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(job->lists[0], topic, partition);
	job->run = run_group_offset;
	if (kafka_job_wait(client, client->timeout_ms, NULL))
	{
		err = job->err;
		text = pstrdup(job->text);
	}
	if (err == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
		err = RD_KAFKA_RESP_ERR_NO_ERROR;
	else if (err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("Kafka server \"%s\" denies access to group \"%s\"", client->server_name, group),
				 errhint("The Kafka user needs the operations Describe and Read on the group.")));
	else if (may_be_asked_again(err))
		kafka_raise(client, RD_KAFKA_RESP_ERR__TIMED_OUT, topic, partition, -1, text);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_raise(client, err, topic, partition, -1, text);

	offset = job->lists[0]->elems[0].offset;
	kafka_job_end(client);
	client->busy = false;
	return offset < 0 ? -1 : offset;
}
