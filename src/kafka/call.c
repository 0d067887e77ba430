/*
 * call.c
 *	  Calls of librdkafka that can only block: a helper thread makes them while
 *	  the main thread waits on its latch and the handle's pipe.
 *
 * When the wait ends early (cancel, termination, timeout) the job is left
 * behind; whichever side is last frees it.  Nothing here may be palloc'd.
 */
#include "postgres.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "kafka/kafka_internal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"

/*
 * A call is cut into attempts, so that an abandoned job doesn't hold its handle
 * for long; each attempt may take as long as all before it, so that a slow
 * broker is answered for in the end.
 */
#define FIRST_ATTEMPT_MS 500
#define POLL_SLICE_MS 200
#define RETRY_PAUSE_MS 100		/* as long the main thread waits for a helper's answer */

/* KRaft brokers learn of a new topic a moment after its creation returned. */
#define UNKNOWN_TOPIC_RETRIES 2

/* --- helper thread ---------------------------------------------------------- */

void
kafka_job_pause(void)
{
	struct timespec ts = {0, RETRY_PAUSE_MS * 1000000L};

	nanosleep(&ts, NULL);
}

bool
kafka_job_out_of_time(KafkaJob *job)
{
	return pg_atomic_read_u32(&job->abandoned) != 0 || kafka_now_ms() >= job->deadline;
}

/* Length of the next attempt of something begun at 'begun'. */
int
kafka_job_attempt_ms(KafkaJob *job, int64 begun)
{
	int64		now = kafka_now_ms();
	int64		ms = Max(now - begun, FIRST_ATTEMPT_MS);

	return (int) Max(Min(ms, job->deadline - now), 1);
}

/* The answer to a request, from the queue that was named in it; NULL: none in time. */
rd_kafka_event_t *
kafka_job_answer(KafkaJob *job, rd_kafka_queue_t *queue, int timeout_ms)
{
	int64		until = kafka_now_ms() + timeout_ms + POLL_SLICE_MS;
	rd_kafka_event_t *event = NULL;

	while (event == NULL && !kafka_job_out_of_time(job) && kafka_now_ms() < until)
		event = rd_kafka_queue_poll(queue, POLL_SLICE_MS);
	return event;
}

static rd_kafka_resp_err_t
fetch_metadata(KafkaJob *job, rd_kafka_topic_t *rkt, bool all, const rd_kafka_metadata_t **metadata)
{
	int64		begun = kafka_now_ms();
	rd_kafka_resp_err_t err;

	for (;;)
	{
		err = rd_kafka_metadata(job->handle->rk, all, rkt, metadata, kafka_job_attempt_ms(job, begun));
		if (err == RD_KAFKA_RESP_ERR_NO_ERROR || !kafka_error_passes(err) || kafka_job_out_of_time(job))
			return err;
		kafka_job_pause();
	}
}

static void
note_topic(KafkaJob *job, int i, const rd_kafka_metadata_topic_t *topic)
{
	job->topic_err[i] = topic->err;
	job->partitions[i] = topic->partition_cnt;
	if (job->topic_err[i] == RD_KAFKA_RESP_ERR_NO_ERROR && job->partitions[i] == 0)
		job->topic_err[i] = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

/*
 * Is it worth asking for a topic again?  What its broker is about to mend is, and for a
 * moment a topic that it does not know.
 */
static bool
ask_again(KafkaJob *job, int i, int try)
{
	return kafka_error_passes(job->topic_err[i]) ||
		(job->topic_err[i] == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && try < UNKNOWN_TOPIC_RETRIES);
}

static void
describe_topic(KafkaJob *job, int i)
{
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(job->handle->rk, job->topics[i], NULL);

	if (rkt == NULL)
	{
		job->topic_err[i] = rd_kafka_last_error();
		return;
	}
	for (int try = 0;; try++)
	{
		const rd_kafka_metadata_t *metadata;

		job->err = fetch_metadata(job, rkt, false, &metadata);
		if (job->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			break;
		job->topic_err[i] = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
		if (metadata->topic_cnt == 1)
			note_topic(job, i, &metadata->topics[0]);
		rd_kafka_metadata_destroy(metadata);

		if (kafka_job_out_of_time(job) || !ask_again(job, i, try))
			break;
		kafka_job_pause();
	}
	rd_kafka_topic_destroy(rkt);
}

static int
compare_topics(const void *a, const void *b)
{
	return strcmp(((const rd_kafka_metadata_topic_t *) a)->topic, ((const rd_kafka_metadata_topic_t *) b)->topic);
}

/*
 * Metadata of all the job's topics in one request: one for the topics that the client
 * knows, which these are as long as there is a handle of each.
 */
static void
describe_topics(KafkaJob *job)
{
	rd_kafka_topic_t **rkts = calloc(job->ntopics, sizeof(*rkts));
	bool		again = true;

	if (rkts == NULL)
	{
		job->err = RD_KAFKA_RESP_ERR__FAIL;
		return;
	}
	for (int i = 0; i < job->ntopics; i++)
	{
		rkts[i] = rd_kafka_topic_new(job->handle->rk, job->topics[i], NULL);
		job->topic_err[i] = rkts[i] ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : rd_kafka_last_error();
	}
	for (int try = 0; again; try++)
	{
		const rd_kafka_metadata_t *metadata;

		job->err = fetch_metadata(job, NULL, false, &metadata);
		if (job->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			break;
		qsort(metadata->topics, metadata->topic_cnt, sizeof(rd_kafka_metadata_topic_t), compare_topics);
		again = false;
		for (int i = 0; i < job->ntopics; i++)
		{
			rd_kafka_metadata_topic_t key = {.topic = job->topics[i]};
			const rd_kafka_metadata_topic_t *found;

			if (rkts[i] == NULL)
				continue;
			found = bsearch(&key, metadata->topics, metadata->topic_cnt, sizeof(key), compare_topics);
			if (found)
				note_topic(job, i, found);
			again |= ask_again(job, i, try);
		}
		rd_kafka_metadata_destroy(metadata);
		if (kafka_job_out_of_time(job))
			break;
		if (again)
			kafka_job_pause();
	}
	for (int i = 0; i < job->ntopics; i++)
		if (rkts[i])
			rd_kafka_topic_destroy(rkts[i]);
	free(rkts);
}

/* Does every partition of the list exist?  An absent one would never answer. */
static bool
partitions_exist(KafkaJob *job, rd_kafka_topic_partition_list_t *list)
{
	int			t = 0;

	for (int i = 0; i < list->cnt; i++)
	{
		/* topics are together in the list */
		for (int tried = 0; tried < job->ntopics && strcmp(job->topics[t], list->elems[i].topic) != 0; tried++)
			t = (t + 1) % job->ntopics;
		if (strcmp(job->topics[t], list->elems[i].topic) != 0 ||
			list->elems[i].partition < 0 || list->elems[i].partition >= job->partitions[t])
			return false;
	}
	return true;
}

/* ListOffsets: one request per broker, timestamps in, offsets out. */
static rd_kafka_resp_err_t
list_offsets(KafkaJob *job, rd_kafka_topic_partition_list_t *list)
{
	int64		begun = kafka_now_ms();

	for (;;)
	{
		rd_kafka_topic_partition_list_t *answer = rd_kafka_topic_partition_list_copy(list);
		rd_kafka_resp_err_t err;

		err = rd_kafka_offsets_for_times(job->handle->rk, answer, kafka_job_attempt_ms(job, begun));
		for (int i = 0; i < answer->cnt && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
			err = answer->elems[i].err;

		if (err == RD_KAFKA_RESP_ERR_NO_ERROR || !kafka_error_passes(err) || kafka_job_out_of_time(job))
		{
			for (int i = 0; i < answer->cnt; i++)
			{
				list->elems[i].offset = answer->elems[i].offset;
				list->elems[i].err = answer->elems[i].err;
			}
			rd_kafka_topic_partition_list_destroy(answer);
			return err;
		}
		rd_kafka_topic_partition_list_destroy(answer);
		kafka_job_pause();
	}
}

static void
do_job(KafkaJob *job)
{
	job->err_topic = -1;
	if (job->run)
	{
		job->run(job);
		return;
	}
	if (job->ntopics == 1)
		describe_topic(job, 0);
	else if (job->ntopics > 1)
		describe_topics(job);
	if (job->err != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		job->err_topic = 0;
		return;
	}
	if (job->all_topics)
		job->err = fetch_metadata(job, NULL, true, &job->metadata);

	for (int i = 0; i < job->nlists && job->err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
	{
		/* the main thread finds out which one is missing */
		if (!partitions_exist(job, job->lists[i]))
			return;
		job->err = list_offsets(job, job->lists[i]);
		job->err_topic = 0;
	}
}

static void
job_unref(KafkaJob *job)
{
	if (pg_atomic_sub_fetch_u32(&job->refcount, 1) > 0)
		return;
	for (int i = 0; i < job->ntopics; i++)
		free(job->topics[i]);
	free(job->topics);
	free(job->topic_err);
	free(job->partitions);
	free(job->group);
	for (int i = 0; i < job->nlists; i++)
		rd_kafka_topic_partition_list_destroy(job->lists[i]);
	if (job->metadata)
		rd_kafka_metadata_destroy(job->metadata);
	kafka_handle_unref(job->handle);
	free(job);
}

static void *
helper_main(void *arg)
{
	KafkaJob   *job = arg;
	ssize_t		rc;

	do_job(job);
	pg_write_barrier();
	pg_atomic_write_u32(&job->done, 1);
	/* a full pipe wakes the reader just as well */
	rc = write(job->handle->fd[1], "j", 1);
	(void) rc;
	job_unref(job);
	return NULL;
}

/* --- main thread ------------------------------------------------------------ */

static void
out_of_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

/*
 * An empty job of this client.  The client owns it at once, so that it is
 * freed after an ERROR too.
 */
KafkaJob *
kafka_job_new(KafkaClient *client)
{
	KafkaJob   *job;

	kafka_job_end(client);
	job = calloc(1, sizeof(KafkaJob));
	if (job == NULL)
		out_of_memory();
	pg_atomic_init_u32(&job->refcount, 1);
	pg_atomic_init_u32(&job->abandoned, 0);
	pg_atomic_init_u32(&job->done, 0);
	job->handle = client->handle;
	kafka_handle_ref(job->handle);
	client->job = job;
	return job;
}

/* Ask for the metadata of a topic, once. */
void
kafka_job_topic(KafkaJob *job, const char *topic)
{
	int			n = job->ntopics;
	char	  **topics;
	rd_kafka_resp_err_t *errs;
	int		   *partitions;

	/* partitions of one topic follow one another */
	for (int i = n - 1; i >= 0; i--)
	{
		if (strcmp(job->topics[i], topic) == 0)
			return;
	}

	/* each result is kept as soon as it is there: job_unref frees it */
	if ((topics = realloc(job->topics, (n + 1) * sizeof(char *))) == NULL)
		out_of_memory();
	job->topics = topics;
	if ((errs = realloc(job->topic_err, (n + 1) * sizeof(*errs))) == NULL)
		out_of_memory();
	job->topic_err = errs;
	if ((partitions = realloc(job->partitions, (n + 1) * sizeof(int))) == NULL)
		out_of_memory();
	job->partitions = partitions;
	if ((topics[n] = strdup(topic)) == NULL)
		out_of_memory();
	errs[n] = RD_KAFKA_RESP_ERR_NO_ERROR;
	partitions[n] = 0;
	job->ntopics = n + 1;
}

/* Hand the client's job to a helper thread. */
static void
start_job(KafkaClient *client, int64 timeout_ms)
{
	KafkaJob   *job = client->job;

	job->deadline = kafka_now_ms() + timeout_ms;
	pg_atomic_fetch_add_u32(&job->refcount, 1);
	if (!kafka_thread_start(helper_main, job))
	{
		pg_atomic_fetch_sub_u32(&job->refcount, 1);
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a thread for a call to Kafka")));
	}
}

/* What has come of it so far. */
static bool
job_is_done(KafkaClient *client)
{
	bool		done;

	kafka_drain_pipe(client->handle);
	done = pg_atomic_read_u32(&client->job->done) != 0;
	pg_read_barrier();
	kafka_drain_events(client);
	return done;
}

/*
 * Run the client's job and wait for its end, interruptible, or until 'enough'
 * (may be NULL) says that the rest does not matter.  False after timeout_ms.
 * Raises when the broker has refused us; the job's own error is left in it.  The
 * results live until kafka_job_end.  The client stays busy unless it ended well.
 */
bool
kafka_job_wait(KafkaClient *client, int64 timeout_ms, bool (*enough) (KafkaClient *client))
{
	KafkaJob   *job = client->job;
	KafkaHandle *handle = client->handle;

	client->busy = true;
	start_job(client, timeout_ms);

	for (;;)
	{
		int64		left = job->deadline - kafka_now_ms();

		if (job_is_done(client) || (enough && enough(client)))
			break;
		if (handle->refused)
			kafka_raise_refused(client, handle->refused, handle->refused_text);
		if (left <= -RETRY_PAUSE_MS)
			return false;

		(void) WaitLatchOrSocket(MyLatch,
								 WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 handle->fd[0], Max(left + RETRY_PAUSE_MS, 1), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}

	if (pg_atomic_read_u32(&job->done) != 0 && job->err != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		if (handle->refused)
			kafka_raise_refused(client, handle->refused, handle->refused_text);
		return true;
	}
	handle->answered = true;
	client->busy = false;
	return true;
}

/*
 * The same for a job of metadata and offsets.  Raises the error of the job as a whole; errors of single topics are in
 * topic_err.
 */
void
kafka_job_run(KafkaClient *client, int timeout_ms)
{
	KafkaJob   *job = client->job;
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	const char *topic = job->ntopics > 0 ? job->topics[0] : NULL;

	if (kafka_job_wait(client, timeout_ms, NULL))
	{
		err = job->err;
		topic = job->err_topic >= 0 && job->err_topic < job->ntopics ? job->topics[job->err_topic] : NULL;
	}
	client->waited_ms = timeout_ms;
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_raise(client, err, topic, -1, -1, NULL);
}

/* Give the job up; its helper, if it is still at work, stops soon. */
void
kafka_job_end(KafkaClient *client)
{
	KafkaJob   *job = client->job;

	if (job == NULL)
		return;
	client->job = NULL;
	pg_atomic_write_u32(&job->abandoned, 1);
	job_unref(job);
}

/* --- a question that nobody waits for ---------------------------------------------- */

static void
run_knock(KafkaJob *job)
{
	const rd_kafka_metadata_t *metadata;

	job->err = fetch_metadata(job, NULL, false, &metadata);
	if (job->err == RD_KAFKA_RESP_ERR_NO_ERROR)
		rd_kafka_metadata_destroy(metadata);
}

void
kafka_knock(KafkaConsumer *consumer, int timeout_ms)
{
	KafkaClient *client = &consumer->client;

	kafka_job_new(client)->run = run_knock;
	client->waited_ms = timeout_ms;
	start_job(client, timeout_ms);
}

bool
kafka_answered(KafkaConsumer *consumer)
{
	KafkaClient *client = &consumer->client;
	KafkaHandle *handle = client->handle;
	rd_kafka_resp_err_t err;

	/* another call has been made since, and answered */
	if (client->job == NULL)
		return true;

	if (job_is_done(client))
		err = client->job->err;
	else if (kafka_now_ms() < client->job->deadline + RETRY_PAUSE_MS)
		err = RD_KAFKA_RESP_ERR__IN_PROGRESS;
	else
		err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		handle->answered = true;
		kafka_job_end(client);
		return true;
	}
	if (handle->refused)
	{
		client->busy = true;
		kafka_raise_refused(client, handle->refused, handle->refused_text);
	}
	if (err == RD_KAFKA_RESP_ERR__IN_PROGRESS)
		return false;
	client->busy = true;
	kafka_raise(client, err, NULL, -1, -1, NULL);
}
