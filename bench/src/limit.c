/*
 * limit.c
 *	  What the client library alone can do: reads a whole topic and throws it away.
 *
 * limit TOPIC   ($BROKER): messages=.. bytes=.. wall=.. cpu_s=.. rss_mb=..
 * Fetches as the extension does (no starving queue, small waits), looks at
 * every message's key and value, decodes nothing.
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH	4096

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	static const char *const props[][2] = {
		{"group.id", "limit"}, {"enable.auto.commit", "false"}, {"enable.auto.offset.store", "false"},
		{"enable.partition.eof", "true"}, {"auto.offset.reset", "earliest"}, {"fetch.wait.max.ms", "10"},
		{"queued.min.messages", "200000"}, {"queued.max.messages.kbytes", "65536"},
		{"fetch.message.max.bytes", "4194304"},
	};
	const char *broker = getenv("BROKER");
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *list;
	const struct rd_kafka_metadata *md;
	rd_kafka_topic_t *rkt;
	rd_kafka_queue_t *queue;
	rd_kafka_t *rk;
	static rd_kafka_message_t *batch[BATCH];
	struct rusage usage;
	char		err[512];
	int64_t		messages = 0,
				bytes = 0;
	int			partitions,
				at_end = 0;
	double		start = now();

	if (argc != 2)
		return fprintf(stderr, "usage: limit TOPIC\n"), 2;
	if (rd_kafka_conf_set(conf, "bootstrap.servers", broker ? broker : "127.0.0.1:9092", err, sizeof(err)))
		return fprintf(stderr, "limit: %s\n", err), 1;
	for (size_t i = 0; i < sizeof(props) / sizeof(props[0]); i++)
		if (rd_kafka_conf_set(conf, props[i][0], props[i][1], err, sizeof(err)))
			return fprintf(stderr, "limit: %s\n", err), 1;
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof(err));
	if (!rk)
		return fprintf(stderr, "limit: %s\n", err), 1;
	rd_kafka_poll_set_consumer(rk);
	rkt = rd_kafka_topic_new(rk, argv[1], NULL);
	if (rd_kafka_metadata(rk, 0, rkt, &md, 10000) || md->topic_cnt != 1 || md->topics[0].err)
		return fprintf(stderr, "limit: there is no topic %s\n", argv[1]), 1;
	partitions = md->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(md);
	list = rd_kafka_topic_partition_list_new(partitions);
	for (int p = 0; p < partitions; p++)
		rd_kafka_topic_partition_list_add(list, argv[1], p)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);

	queue = rd_kafka_queue_get_consumer(rk);
	while (at_end < partitions)
	{
		ssize_t		n = rd_kafka_consume_batch_queue(queue, 1000, batch, BATCH);

		for (ssize_t i = 0; i < n; i++)
		{
			if (batch[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
				at_end++;
			else if (batch[i]->err)
				return fprintf(stderr, "limit: %s\n", rd_kafka_message_errstr(batch[i])), 1;
			else
			{
				messages++;
				bytes += batch[i]->key_len + batch[i]->len;
			}
			rd_kafka_message_destroy(batch[i]);
		}
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("messages=%" PRId64 " bytes=%" PRId64 " wall=%.3f cpu_s=%.2f rss_mb=%ld\n", messages, bytes, now() - start,
		   usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		   usage.ru_maxrss / 1024);
	return 0;
}
