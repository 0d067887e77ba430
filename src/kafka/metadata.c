/*
 * metadata.c
 *	  What the broker knows of topics: names, partition counts, offsets.
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"
#include "utils/memutils.h"

/* Remember a partition count, so that kafka_consume_start need not ask again. */
static void
remember_topic(KafkaConsumer *consumer, const char *topic, int partitions)
{
	for (int i = 0; i < consumer->nknown; i++)
	{
		if (strcmp(consumer->known[i].topic, topic) == 0)
		{
			consumer->known[i].partitions = partitions;
			return;
		}
	}
	if (consumer->known == NULL)
		consumer->known = MemoryContextAlloc(consumer->client.owner, sizeof(KnownTopic));
	else
		consumer->known = repalloc(consumer->known, (consumer->nknown + 1) * sizeof(KnownTopic));
	consumer->known[consumer->nknown].topic = MemoryContextStrdup(consumer->client.owner, topic);
	consumer->known[consumer->nknown].partitions = partitions;
	consumer->nknown++;
}

static int
known_partitions(KafkaConsumer *consumer, const char *topic)
{
	int			at = consumer->last_known;

	/* partitions of one topic follow one another */
	for (int i = 0; i < consumer->nknown; i++)
	{
		if (at >= consumer->nknown)
			at = 0;
		if (strcmp(consumer->known[at].topic, topic) == 0)
		{
			consumer->last_known = at;
			return consumer->known[at].partitions;
		}
		at++;
	}
	return -1;
}

/* Take over what a finished job learned of topics; ERROR where one is missing. */
static void
learn_topics(KafkaConsumer *consumer, KafkaJob *job)
{
	for (int i = 0; i < job->ntopics; i++)
	{
		if (job->topic_err[i] != RD_KAFKA_RESP_ERR_NO_ERROR)
			kafka_raise(&consumer->client, job->topic_err[i], job->topics[i], -1, -1, NULL);
		remember_topic(consumer, job->topics[i], job->partitions[i]);
	}
}

static void
check_ranges(KafkaConsumer *consumer, int n, const KafkaRange *ranges)
{
	for (int i = 0; i < n; i++)
	{
		int			partitions = known_partitions(consumer, ranges[i].topic);

		if (ranges[i].partition < 0 || ranges[i].partition >= partitions)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_TABLE_NOT_FOUND),
					 errmsg("partition %d of topic \"%s\" does not exist on Kafka server \"%s\"",
							ranges[i].partition, ranges[i].topic, consumer->client.server_name),
					 errdetail_plural("The topic has %d partition.", "The topic has %d partitions.",
									  partitions, partitions)));
	}
}

/* ERROR unless every range's partition exists; asks only for what is not known. */
void
kafka_check_partitions(KafkaConsumer *consumer, int n, const KafkaRange *ranges)
{
	KafkaJob   *job = NULL;

	for (int i = 0; i < n; i++)
	{
		if (ranges[i].partition >= known_partitions(consumer, ranges[i].topic))
		{
			if (job == NULL)
				job = kafka_job_new(&consumer->client);
			kafka_job_topic(job, ranges[i].topic);
		}
	}
	if (job != NULL)
	{
		kafka_job_run(&consumer->client, consumer->client.timeout_ms);
		learn_topics(consumer, job);
		kafka_job_end(&consumer->client);
	}
	check_ranges(consumer, n, ranges);
}

void
kafka_partition_counts(KafkaConsumer *consumer, int n, const char *const *topics, bool missing_ok, int *partitions)
{
	KafkaJob   *job;

	if (n == 0)
		return;
	job = kafka_job_new(&consumer->client);
	for (int i = 0; i < n; i++)
		kafka_job_topic(job, topics[i]);
	kafka_job_run(&consumer->client, consumer->client.timeout_ms);
	for (int i = 0; i < n; i++)
	{
		int			t = 0;

		while (strcmp(job->topics[t], topics[i]) != 0)
			t++;
		if (missing_ok && (job->topic_err[t] == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
						   job->topic_err[t] == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC))
		{
			partitions[i] = -1;
			continue;
		}
		if (job->topic_err[t] != RD_KAFKA_RESP_ERR_NO_ERROR)
			kafka_raise(&consumer->client, job->topic_err[t], job->topics[t], -1, -1, NULL);
		remember_topic(consumer, job->topics[t], job->partitions[t]);
		partitions[i] = job->partitions[t];
	}
	kafka_job_end(&consumer->client);
}

int
kafka_partition_count(KafkaConsumer *consumer, const char *topic, bool missing_ok)
{
	int			partitions;

	kafka_partition_counts(consumer, 1, &topic, missing_ok, &partitions);
	return partitions;
}

static int
compare_partition(const char *topic, int32 partition, const rd_kafka_topic_partition_t *elem)
{
	int			cmp = strcmp(topic, elem->topic);

	if (cmp != 0)
		return cmp;
	return partition < elem->partition ? -1 : partition > elem->partition;
}

static int
compare_elems(const void *a, const void *b, void *arg)
{
	const rd_kafka_topic_partition_t *elem = a;

	return compare_partition(elem->topic, elem->partition, b);
}

/*
 * The list of a ListOffsets request: each partition once, topics together, as
 * the request wants them.
 */
static rd_kafka_topic_partition_list_t *
offset_list(int n, const KafkaRange *ranges, const int64 *ms, int64 all_ms)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);

	/* -1 and -2 are the end and the beginning, and no time before 1970 is different from 0 */
	for (int i = 0; i < n; i++)
		rd_kafka_topic_partition_list_add(list, ranges[i].topic, ranges[i].partition)->offset =
			ms ? Max(ms[i], 0) : all_ms;
	rd_kafka_topic_partition_list_sort(list, compare_elems, NULL);
	for (int i = list->cnt - 1; i > 0; i--)
		if (compare_elems(&list->elems[i], &list->elems[i - 1], NULL) == 0)
			rd_kafka_topic_partition_list_del_by_idx(list, i);
	return list;
}

static int64
find_offset(KafkaConsumer *consumer, rd_kafka_topic_partition_list_t *list, const KafkaRange *range)
{
	rd_kafka_topic_partition_t *elem = NULL;
	int			first = 0;
	int			last = list->cnt - 1;

	while (first <= last)
	{
		int			middle = (first + last) / 2;
		int			cmp;

		elem = &list->elems[middle];
		cmp = compare_partition(range->topic, range->partition, elem);
		if (cmp == 0)
			break;
		if (cmp < 0)
			last = middle - 1;
		else
			first = middle + 1;
	}
	if (elem->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_raise(&consumer->client, elem->err, range->topic, range->partition, -1, NULL);
	return elem->offset;
}

void
kafka_query_offsets(KafkaConsumer *consumer, int n, const KafkaRange *ranges, int64 *low, int64 *end)
{
	KafkaJob   *job;
	int			i_low = -1;
	int			i_end = -1;

	if (n == 0)
		return;
	job = kafka_job_new(&consumer->client);
	for (int i = 0; i < n; i++)
		kafka_job_topic(job, ranges[i].topic);
	/* the end first: nothing that expires in between can pass it */
	if (end)
		job->lists[i_end = job->nlists++] = offset_list(n, ranges, NULL, RD_KAFKA_OFFSET_END);
	if (low)
		job->lists[i_low = job->nlists++] = offset_list(n, ranges, NULL, RD_KAFKA_OFFSET_BEGINNING);

	kafka_job_run(&consumer->client, consumer->client.timeout_ms);
	learn_topics(consumer, job);
	check_ranges(consumer, n, ranges);
	for (int i = 0; i < n; i++)
	{
		if (end)
			end[i] = find_offset(consumer, job->lists[i_end], &ranges[i]);
		if (low)
			low[i] = find_offset(consumer, job->lists[i_low], &ranges[i]);
		if (low && end)
			end[i] = Max(end[i], low[i]);
	}
	kafka_job_end(&consumer->client);
}

void
kafka_offsets_for_times(KafkaConsumer *consumer, int n, const KafkaRange *ranges, const int64 *ms, int64 *offsets)
{
	KafkaJob   *job;

	if (n == 0)
		return;
	job = kafka_job_new(&consumer->client);
	for (int i = 0; i < n; i++)
		kafka_job_topic(job, ranges[i].topic);
	job->lists[job->nlists++] = offset_list(n, ranges, ms, 0);
	/* where no message is as young as that, the answer is -1: take the end */
	job->lists[job->nlists++] = offset_list(n, ranges, NULL, RD_KAFKA_OFFSET_END);

	kafka_job_run(&consumer->client, consumer->client.timeout_ms);
	learn_topics(consumer, job);
	check_ranges(consumer, n, ranges);
	for (int i = 0; i < n; i++)
	{
		offsets[i] = find_offset(consumer, job->lists[0], &ranges[i]);
		if (offsets[i] < 0)
			offsets[i] = find_offset(consumer, job->lists[1], &ranges[i]);
	}
	kafka_job_end(&consumer->client);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

char **
kafka_list_topics(KafkaConsumer *consumer, int *ntopics)
{
	KafkaJob   *job = kafka_job_new(&consumer->client);
	char	  **names;
	int			n = 0;

	job->all_topics = true;
	kafka_job_run(&consumer->client, consumer->client.timeout_ms);
	names = palloc((job->metadata->topic_cnt + 1) * sizeof(char *));
	for (int i = 0; i < job->metadata->topic_cnt; i++)
	{
		const char *name = job->metadata->topics[i].topic;

		/* the metadata of 2.0.2 doesn't mark them */
		if (strncmp(name, INTERNAL_TOPIC_PREFIX, strlen(INTERNAL_TOPIC_PREFIX)) != 0)
			names[n++] = pstrdup(name);
	}
	kafka_job_end(&consumer->client);
	qsort(names, n, sizeof(char *), compare_names);
	*ntopics = n;
	return names;
}
