/*
 * latency.c
 *	  From "the broker has it" to "a query sees it", one message at a time.
 *
 * latency TOPIC TABLE COUNT   ($BROKER, PG* environment)
 * Writes a message whose key is new, waits for the broker's acknowledgement,
 * then asks the table for it until it is there; beside it, in the same run and
 * for the same messages, a plain consumer waits for them.  Prints
 *   table p50=.. p99=.. max=..
 *   consumer p50=.. p99=.. max=..      (ms)
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double acked;			/* when the last message was acknowledged */
static const char *topic;
static int	count;
static double *consumed;		/* by message; 0: not yet */
static int64_t base;			/* key of the first message */

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "latency: %s: %s\n", what, why);
	exit(1);
}

static void
delivered(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	(void) rk;
	(void) opaque;
	if (msg->err)
		fail("produce", rd_kafka_err2str(msg->err));
	acked = now();
}

static rd_kafka_t *
handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
	const char *broker = getenv("BROKER");
	char		err[512];
	rd_kafka_t *rk;

	if (rd_kafka_conf_set(conf, "bootstrap.servers", broker ? broker : "127.0.0.1:9092", err, sizeof(err)))
		fail("broker", err);
	rk = rd_kafka_new(type, conf, err, sizeof(err));
	if (!rk)
		fail("client", err);
	return rk;
}

/* Notes when each message comes out of a consumer that starts at the end. */
static void *
consume(void *ready)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_t *rk;
	char		err[512];
	int			seen = 0;

	rd_kafka_conf_set(conf, "group.id", "latency", err, sizeof(err));
	rd_kafka_conf_set(conf, "enable.partition.eof", "true", err, sizeof(err));
	rd_kafka_conf_set(conf, "enable.auto.commit", "false", err, sizeof(err));
	rk = handle(RD_KAFKA_CONSUMER, conf);
	rd_kafka_poll_set_consumer(rk);
	rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_END;
	rd_kafka_assign(rk, list);
	while (seen < count)
	{
		rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 100);

		if (!msg)
			continue;
		if (msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			__atomic_store_n((int *) ready, 1, __ATOMIC_RELEASE);
		else if (!msg->err && msg->key_len > 6 && msg->key_len < 40)
		{
			char		key[40];
			int64_t		id;

			memcpy(key, msg->key, msg->key_len);
			key[msg->key_len] = '\0';
			id = atoll(key + 6) - base;
			if (id >= 0 && id < count)
			{
				consumed[id] = now();
				seen++;
			}
		}
		rd_kafka_message_destroy(msg);
	}
	rd_kafka_topic_partition_list_destroy(list);
	return NULL;
}

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
report(const char *what, double *ms)
{
	qsort(ms, count, sizeof(double), ascending);
	printf("%s p50=%.2f p99=%.2f max=%.2f\n", what, ms[count / 2], ms[count * 99 / 100], ms[count - 1]);
}

int
main(int argc, char **argv)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	PGconn	   *conn = PQconnectdb("");
	double	   *visible,
			   *acks;
	char		sql[300],
				err[512];
	pthread_t	thread;
	int			ready = 0;

	if (argc != 4)
		return fprintf(stderr, "usage: latency TOPIC TABLE COUNT\n"), 2;
	topic = argv[1];
	count = atoi(argv[3]);
	consumed = calloc(count, sizeof(double));
	visible = calloc(count, sizeof(double));
	acks = calloc(count, sizeof(double));
	base = INT64_C(1000000000) + time(NULL) % 1000000 * 1000;

	if (PQstatus(conn) != CONNECTION_OK)
		fail("connect", PQerrorMessage(conn));
	snprintf(sql, sizeof(sql), "SELECT 1 FROM %s WHERE id = $1::bigint", argv[2]);
	PQclear(PQprepare(conn, "look", sql, 1, NULL));
	rd_kafka_conf_set(conf, "linger.ms", "0", err, sizeof(err));
	rd_kafka_conf_set(conf, "acks", "all", err, sizeof(err));
	rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	rk = handle(RD_KAFKA_PRODUCER, conf);
	pthread_create(&thread, NULL, consume, &ready);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);

	for (int i = 0; i < count; i++)
	{
		char		key[60],
					value[200],
					id[30];
		const char *params[1] = {id};
		rd_kafka_resp_err_t rc;

		snprintf(id, sizeof(id), "%" PRId64, base + i);
		snprintf(key, sizeof(key), "{\"id\":%s}", id);
		snprintf(value, sizeof(value), "{\"id\":%s,\"name\":\"x\",\"amount\":1.00,\"region\":\"east\","
				 "\"updated_at\":\"2026-01-02 00:00:00\"}", id);
		usleep(20000 + (i * 7919) % 60000);	/* idle in between, at no fixed beat */
		acked = 0;
		rc = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
							   RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_END);
		if (rc)
			fail("produce", rd_kafka_err2str(rc));
		while (acked == 0)
			rd_kafka_poll(rk, 100);
		acks[i] = acked;
		for (;;)
		{
			PGresult   *res = PQexecPrepared(conn, "look", 1, params, NULL, NULL, 0);
			int			found;

			if (PQresultStatus(res) != PGRES_TUPLES_OK)
				fail("query", PQerrorMessage(conn));
			found = PQntuples(res);
			PQclear(res);
			if (found)
				break;
			if (now() - acked > 30)
				fail("row", "not visible within 30 s");
			usleep(100);
		}
		visible[i] = (now() - acked) * 1000;
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < count; i++)
		consumed[i] = consumed[i] > acks[i] ? (consumed[i] - acks[i]) * 1000 : 0;
	report("table", visible);
	report("consumer", consumed);
	return 0;
}
