/*
 * transaction.c
 *	  Kafka transactions of a producer.  Every call waits for a coordinator, so
 *	  they run in a helper thread, in slices: the library lets an interrupted
 *	  call be taken up again (KIP-98 and its errors are the library's concern).
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

/* --- helper thread ---------------------------------------------------------- */

/* One slice of a call; NULL when it has ended well. */
typedef rd_kafka_error_t *(*TransactionCall) (KafkaJob *job, int timeout_ms);

static rd_kafka_error_t *
call_init(KafkaJob *job, int timeout_ms)
{
	return rd_kafka_init_transactions(job->handle->rk, timeout_ms);
}

static rd_kafka_error_t *
call_send_offsets(KafkaJob *job, int timeout_ms)
{
	rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new(job->group);
	rd_kafka_error_t *error;

	error = rd_kafka_send_offsets_to_transaction(job->handle->rk, job->lists[0], group, timeout_ms);
	rd_kafka_consumer_group_metadata_destroy(group);
	return error;
}

static rd_kafka_error_t *
call_commit(KafkaJob *job, int timeout_ms)
{
	return rd_kafka_commit_transaction(job->handle->rk, timeout_ms);
}

static rd_kafka_error_t *
call_abort(KafkaJob *job, int timeout_ms)
{
	return rd_kafka_abort_transaction(job->handle->rk, timeout_ms);
}

/* Repeat a call while the library says that it can be; keep its last error. */
static bool
repeat(KafkaJob *job, TransactionCall call)
{
	int64		begun = kafka_now_ms();

	for (;;)
	{
		rd_kafka_error_t *error = call(job, kafka_job_attempt_ms(job, begun));
		bool		again;

		if (error == NULL)
		{
			job->err = RD_KAFKA_RESP_ERR_NO_ERROR;
			return true;
		}
		job->err = rd_kafka_error_code(error);
		strlcpy(job->text, rd_kafka_error_string(error), KAFKA_ERROR_TEXT);
		again = rd_kafka_error_is_retriable(error) && !rd_kafka_error_is_fatal(error) &&
			!rd_kafka_error_txn_requires_abort(error);
		rd_kafka_error_destroy(error);
		if (!again || kafka_job_out_of_time(job))
			return false;
		kafka_job_pause();
	}
}

static void
run_init(KafkaJob *job)
{
	repeat(job, call_init);
}

static void
run_send_offsets(KafkaJob *job)
{
	repeat(job, call_send_offsets);
}

static void
run_commit(KafkaJob *job)
{
	repeat(job, call_commit);
}

static void
run_abort(KafkaJob *job)
{
	repeat(job, call_abort);
}

/* --- main thread ------------------------------------------------------------ */

static bool
ran_out(rd_kafka_resp_err_t err)
{
	return kafka_error_passes(err) || err == RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS ||
		err == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE || err == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
		err == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

/*
 * Run a job that is prepared but for its function.  ERROR unless it ended well;
 * 'commit': its outcome may be unknown then.
 */
static void
run_job(KafkaProducer *producer, void (*run) (KafkaJob *job), const char *what, bool commit, long timeout_ms)
{
	KafkaClient *client = &producer->client;
	KafkaJob   *job = client->job;
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	const char *text = "no answer";
	const char *last;

	job->run = run;
	if (kafka_job_wait(client, timeout_ms, NULL))
	{
		err = job->err;
		text = pstrdup(job->text);
	}
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		kafka_job_end(client);
		return;
	}

	client->busy = true;
	last = client->handle->last_error;
	if (ran_out(err))
		ereport(ERROR,
				(errcode(commit ? ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN : ERRCODE_CONNECTION_FAILURE),
				 errmsg("Kafka server \"%s\" did not %s within %ld ms", client->server_name, what, timeout_ms),
				 errdetail("%s.", last[0] ? last : text),
				 commit ? errhint("The transaction may have been committed or not; the next producer of its transactional id finds out.") :
				 errhint("The broker that coordinates the transactional id may be down, or busy with its last transaction.")));
	/* a fatal error is reported twice; the other one has the cause */
	if (err == RD_KAFKA_RESP_ERR__FATAL)
	{
		char		cause[KAFKA_ERROR_TEXT];

		err = rd_kafka_fatal_error(client->handle->rk, cause, sizeof(cause));
		text = pstrdup(cause);
	}
	kafka_raise_write(client, err, NULL, -1, 0, text);
}

void
kafka_transaction_begin(KafkaProducer *producer, long timeout_ms)
{
	KafkaClient *client = &producer->client;
	KafkaHandle *handle = client->handle;
	rd_kafka_error_t *error;

	if (!handle->transactions_ready)
	{
		kafka_job_new(client);
		run_job(producer, run_init, "initialize a transactional id", false, timeout_ms);
		handle->transactions_ready = true;
	}
	/* changes the library's state only, and waits for its thread to say so */
	client->busy = true;
	error = rd_kafka_begin_transaction(handle->rk);
	if (error)
	{
		rd_kafka_resp_err_t err = rd_kafka_error_code(error);
		char	   *text = pstrdup(rd_kafka_error_string(error));

		rd_kafka_error_destroy(error);
		kafka_drain_events(client);
		if (handle->refused)
			kafka_raise_refused(client, handle->refused, handle->refused_text);
		kafka_raise_write(client, err, NULL, -1, 0, text);
	}
	handle->in_transaction = true;
	for (KafkaTopic *topic = handle->topics; topic; topic = topic->next)
		topic->used = false;
	client->busy = false;
}

void
kafka_transaction_commit(KafkaProducer *producer, const char *group, int noffsets,
						 const KafkaWritten *offsets, long timeout_ms)
{
	KafkaClient *client = &producer->client;
	int64		deadline = kafka_now_ms() + timeout_ms;

	/* so that an error names topic and partition, and a cancel is heard */
	kafka_producer_flush(producer, timeout_ms);

	if (noffsets > 0)
	{
		KafkaJob   *job = kafka_job_new(client);

		job->group = strdup(group);
		job->lists[job->nlists++] = rd_kafka_topic_partition_list_new(noffsets);
		if (job->group == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		for (int i = 0; i < noffsets; i++)
			rd_kafka_topic_partition_list_add(job->lists[0], offsets[i].topic, offsets[i].partition)->offset =
				offsets[i].offset;
		run_job(producer, run_send_offsets, "store offsets in a transaction", false,
				Max(deadline - kafka_now_ms(), 1));
	}
	kafka_job_new(client);
	run_job(producer, run_commit, "commit a transaction", true, Max(deadline - kafka_now_ms(), 1));
	client->handle->in_transaction = false;
}

void
kafka_transaction_abort(KafkaProducer *producer, long timeout_ms)
{
	KafkaClient *client = &producer->client;

	/* the library purges what is outstanding by itself, and reports it */
	kafka_job_new(client);
	run_job(producer, run_abort, "abort a transaction", false, timeout_ms);
	client->handle->in_transaction = false;
	kafka_drain_events(client);
	producer->outstanding = 0;
	memset(&producer->failure, 0, sizeof(KafkaFailure));
	for (KafkaTopic *topic = client->handle->topics; topic; topic = topic->next)
		kafka_topic_forget_written(topic);
}
