/*
 * produce.c
 *	  What the client library alone can do when it writes: the limit of bench/produce.
 *
 * produce SOURCE TARGET        ($BROKER) reads topic SOURCE into memory and writes
 *   the same keys and values to TARGET: messages=.. bytes=.. wall=.. cpu_s=.. rss_mb=..
 *   of the writing alone.  acks=all, idempotent, lz4, keys spread as Java does.
 * produce -c COUNT TARGET      one small message at a time, each waited for:
 *   p50=.. p99=.. max=..  (ms)
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct Setting
{
	const char *name;
	const char *value;
} Setting;

static int64_t failures;

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double
cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "produce: %s: %s\n", what, why);
	exit(1);
}

static void
delivered(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	(void) rk;
	(void) opaque;
	failures += msg->err != 0;
}

static rd_kafka_t *
client(rd_kafka_type_t type, const Setting *settings, size_t n)
{
	const char *broker = getenv("BROKER");
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	char		err[512];

	if (rd_kafka_conf_set(conf, "bootstrap.servers", broker ? broker : "127.0.0.1:9092", err, sizeof(err)))
		fail("broker", err);
	for (size_t i = 0; i < n; i++)
		if (rd_kafka_conf_set(conf, settings[i].name, settings[i].value, err, sizeof(err)))
			fail(settings[i].name, err);
	if (type == RD_KAFKA_PRODUCER)
		rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	rk = rd_kafka_new(type, conf, err, sizeof(err));
	if (!rk)
		fail("client", err);
	return rk;
}

static rd_kafka_t *
producer(void)
{
	static const Setting settings[] = {
		{"acks", "all"}, {"enable.idempotence", "true"}, {"compression.codec", "lz4"}, {"linger.ms", "20"},
		{"queue.buffering.max.messages", "500000"}, {"partitioner", "murmur2_random"},
		{"socket.nagle.disable", "true"},
	};

	return client(RD_KAFKA_PRODUCER, settings, sizeof(settings) / sizeof(settings[0]));
}

typedef struct Message
{
	size_t		key;			/* where they begin in the buffer */
	int			key_len;		/* -1: null */
	int			value_len;
} Message;

static char *buffer;
static size_t used;
static size_t room;
static Message *messages;
static int64_t nmessages;

static size_t
keep(const void *bytes, size_t len)
{
	size_t		at = used;

	while (used + len > room)
	{
		room = room ? room * 2 : 1 << 20;
		if (!(buffer = realloc(buffer, room)))
			fail("memory", "not enough");
	}
	if (len)
		memcpy(buffer + used, bytes, len);
	used += len;
	return at;
}

/* Everything that is in the topic now. */
static void
load(const char *topic)
{
	static const Setting settings[] = {
		{"group.id", "produce"}, {"enable.auto.commit", "false"}, {"enable.partition.eof", "true"},
		{"auto.offset.reset", "earliest"}, {"queued.min.messages", "200000"},
	};
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings, sizeof(settings) / sizeof(settings[0]));
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
	const struct rd_kafka_metadata *md;
	int64_t		max = 0;
	int			open;

	if (rd_kafka_metadata(rk, 0, rkt, &md, 10000) || md->topic_cnt != 1 || md->topics[0].err)
		fail(topic, "no metadata");
	open = md->topics[0].partition_cnt;
	for (int p = 0; p < open; p++)
		rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_metadata_destroy(md);
	rd_kafka_assign(rk, list);
	while (open > 0)
	{
		rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 1000);

		if (!msg)
			continue;
		if (msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			open--;
		else if (msg->err)
			fail(topic, rd_kafka_message_errstr(msg));
		else
		{
			if (nmessages == max)
			{
				max = max ? max * 2 : 65536;
				if (!(messages = realloc(messages, max * sizeof(Message))))
					fail("memory", "not enough");
			}
			messages[nmessages].key = keep(msg->key, msg->key_len);
			keep(msg->payload, msg->len);
			messages[nmessages].key_len = msg->key ? (int) msg->key_len : -1;
			messages[nmessages++].value_len = msg->payload ? (int) msg->len : -1;
		}
		rd_kafka_message_destroy(msg);
	}
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_topic_destroy(rkt);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

static void
put(rd_kafka_t *rk, const char *topic, const void *key, size_t key_len, void *value, size_t value_len)
{
	rd_kafka_resp_err_t rc;

	while ((rc = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
								   RD_KAFKA_V_KEY(key, key_len), RD_KAFKA_V_VALUE(value, value_len),
								   RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		rd_kafka_poll(rk, 10);
	if (rc)
		fail("produce", rd_kafka_err2str(rc));
}

static void
copy_topic(const char *source, const char *target)
{
	rd_kafka_t *rk;
	double		begun,
				spent;
	struct rusage u;

	load(source);
	rk = producer();
	begun = now();
	spent = cpu();
	for (int64_t i = 0; i < nmessages; i++)
	{
		const Message *m = &messages[i];
		char	   *key = buffer + m->key;
		char	   *value = key + (m->key_len > 0 ? m->key_len : 0);

		put(rk, target, m->key_len < 0 ? NULL : key, m->key_len < 0 ? 0 : m->key_len,
			m->value_len < 0 ? NULL : value, m->value_len < 0 ? 0 : m->value_len);
		if (i % 1000 == 0)
			rd_kafka_poll(rk, 0);
	}
	rd_kafka_flush(rk, 120000);
	failures += rd_kafka_outq_len(rk);
	begun = now() - begun;
	spent = cpu() - spent;
	getrusage(RUSAGE_SELF, &u);
	printf("messages=%" PRId64 " bytes=%zu wall=%.3f cpu_s=%.2f rss_mb=%ld\n", nmessages, used, begun, spent, u.ru_maxrss / 1024);
	rd_kafka_destroy(rk);
}

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
one_by_one(int count, const char *target)
{
	rd_kafka_t *rk = producer();
	double	   *ms = calloc(count, sizeof(double));

	for (int i = -10; i < count; i++)	/* the first ones connect */
	{
		char		key[40],
					value[80];
		double		begun = now();

		snprintf(key, sizeof(key), "{\"id\":%d}", i);
		snprintf(value, sizeof(value), "{\"id\":%d,\"name\":\"customer %d\"}", i, i);
		put(rk, target, key, strlen(key), value, strlen(value));
		if (rd_kafka_flush(rk, 10000))
			fail("flush", "timed out");
		if (i >= 0)
			ms[i] = (now() - begun) * 1000;
	}
	qsort(ms, count, sizeof(double), ascending);
	printf("p50=%.2f p99=%.2f max=%.2f\n", ms[count / 2], ms[count * 99 / 100], ms[count - 1]);
	rd_kafka_destroy(rk);
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "-c") == 0)
		one_by_one(atoi(argv[2]), argv[3]);
	else if (argc == 3)
		copy_topic(argv[1], argv[2]);
	else
		return fprintf(stderr, "usage: produce SOURCE TARGET | -c COUNT TARGET\n"), 2;
	if (failures)
		fprintf(stderr, "produce: %" PRId64 " messages were not written\n", failures);
	return failures != 0;
}
