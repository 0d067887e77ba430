/*
 * gen.c
 *	  The benchmarks' data: the same changes every time, as messages or as truth.
 *
 * gen [-n MESSAGES] [-k KEYS] [-s SEED] what ...
 *   produce TOPIC   all messages into Kafka ($BROKER), acks=all, keys spread as Java spreads them
 *   state           the rows that are left in the end, CSV
 *   versions        every version and what it was valid for, CSV
 *   facts           messages=.. tombstones=.. rows=.. versions=.. amount=.. (of all versions)
 * A key is {"id":N}; a value has id, name, amount, region, updated_at; one
 * message in a hundred is a tombstone; timestamps advance evenly over one day.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_MS		INT64_C(86400000)
#define FIRST_MS	INT64_C(1767225600000)	/* 2026-01-01 00:00 UTC */

typedef struct Change
{
	int64_t		id;
	int64_t		ms;
	int64_t		cents;
	int			revision;		/* how many messages its key has had */
	int			region;
	bool		tombstone;
} Change;

static const char *const regions[] = {
	"north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"
};

static int64_t nmessages = 1000000;
static int64_t nkeys = 100000;
static uint64_t seed = 1;
static int *revisions;			/* by key */

/* xorshift64*: the i-th change must not depend on how the others were made */
static uint64_t
draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* To be called for i = 0, 1, 2 ..: revisions count along. */
static Change
change_at(int64_t i)
{
	uint64_t	state = (seed * UINT64_C(1000000007) + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
	Change		c;

	draw(&state);
	c.id = (int64_t) ((draw(&state) >> 11) % (uint64_t) nkeys);
	c.ms = FIRST_MS + (int64_t) ((double) i / nmessages * DAY_MS);
	c.tombstone = (draw(&state) >> 11) % 100 == 0;
	c.cents = (int64_t) ((draw(&state) >> 11) % 10000000);
	c.region = (int) ((draw(&state) >> 11) % 8);
	c.revision = ++revisions[c.id];
	return c;
}

static void
restart(void)
{
	memset(revisions, 0, sizeof(int) * nkeys);
}

static const char *
time_text(int64_t ms, char *buf, size_t size)
{
	time_t		s = ms / 1000;
	struct tm	tm;
	size_t		n;

	gmtime_r(&s, &tm);
	n = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(buf + n, size - n, ".%03d", (int) (ms % 1000));
	return buf;
}

static void
print_row(const Change *c)
{
	char		buf[40];

	printf("customer %" PRId64 " change %d,%" PRId64 ".%02d,%s,%s\n", c->id, c->revision,
		   c->cents / 100, (int) (c->cents % 100), regions[c->region], time_text(c->ms, buf, sizeof(buf)));
}

static void
print_state(void)
{
	Change	   *last = calloc(nkeys, sizeof(Change));

	for (int64_t i = 0; i < nmessages; i++)
	{
		Change		c = change_at(i);

		last[c.id] = c;
	}
	for (int64_t k = 0; k < nkeys; k++)
		if (last[k].revision > 0 && !last[k].tombstone)
		{
			printf("%" PRId64 ",", k);
			print_row(&last[k]);
		}
	free(last);
}

static void
print_versions(void)
{
	int64_t    *next = malloc(sizeof(int64_t) * nmessages);	/* when the key's next message comes */
	int64_t    *pending = malloc(sizeof(int64_t) * nkeys);	/* index of its last one */
	char		buf[40];

	for (int64_t k = 0; k < nkeys; k++)
		pending[k] = -1;
	for (int64_t i = 0; i < nmessages; i++)
	{
		Change		c = change_at(i);

		next[i] = INT64_MAX;
		if (pending[c.id] >= 0)
			next[pending[c.id]] = c.ms;
		pending[c.id] = i;
	}
	restart();
	for (int64_t i = 0; i < nmessages; i++)
	{
		Change		c = change_at(i);

		if (c.tombstone)
			continue;
		printf("%" PRId64 ",%s,", c.id, time_text(c.ms, buf, sizeof(buf)));
		printf("%s,", next[i] == INT64_MAX ? "infinity" : time_text(next[i], buf, sizeof(buf)));
		print_row(&c);
	}
	free(next);
	free(pending);
}

static void
print_facts(void)
{
	bool	   *live = calloc(nkeys, sizeof(bool));
	int64_t		tombstones = 0,
				cents = 0,
				rows = 0;

	for (int64_t i = 0; i < nmessages; i++)
	{
		Change		c = change_at(i);

		tombstones += c.tombstone;
		if (!c.tombstone)
			cents += c.cents;
		live[c.id] = !c.tombstone;
	}
	for (int64_t k = 0; k < nkeys; k++)
		rows += live[k];
	printf("messages=%" PRId64 " tombstones=%" PRId64 " rows=%" PRId64 " versions=%" PRId64
		   " amount=%" PRId64 ".%02d\n",
		   nmessages, tombstones, rows, nmessages - tombstones, cents / 100, (int) (cents % 100));
	free(live);
}

static int64_t failures;

static void
delivered(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	(void) rk;
	(void) opaque;
	failures += msg->err != 0;
}

static int
produce(const char *topic)
{
	static const char *const props[][2] = {
		{"acks", "all"}, {"enable.idempotence", "true"}, {"compression.codec", "lz4"}, {"linger.ms", "20"},
		{"batch.size", "1000000"}, {"batch.num.messages", "10000"}, {"queue.buffering.max.messages", "500000"},
		{"partitioner", "murmur2_random"},
	};
	const char *broker = getenv("BROKER");
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	char		err[512];

	if (rd_kafka_conf_set(conf, "bootstrap.servers", broker ? broker : "127.0.0.1:9092", err, sizeof(err)))
		return fprintf(stderr, "gen: %s\n", err), 1;
	for (size_t i = 0; i < sizeof(props) / sizeof(props[0]); i++)
		if (rd_kafka_conf_set(conf, props[i][0], props[i][1], err, sizeof(err)))
			return fprintf(stderr, "gen: %s\n", err), 1;
	rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof(err));
	if (!rk)
		return fprintf(stderr, "gen: %s\n", err), 1;

	for (int64_t i = 0; i < nmessages; i++)
	{
		Change		c = change_at(i);
		char		key[40],
					value[300],
					when[40];
		int			keylen = snprintf(key, sizeof(key), "{\"id\":%" PRId64 "}", c.id);
		int			len = snprintf(value, sizeof(value),
								   "{\"id\":%" PRId64 ",\"name\":\"customer %" PRId64 " change %d\",\"amount\":%" PRId64
								   ".%02d,\"region\":\"%s\",\"updated_at\":\"%s\"}",
								   c.id, c.id, c.revision, c.cents / 100, (int) (c.cents % 100), regions[c.region],
								   time_text(c.ms, when, sizeof(when)));
		void	   *payload = c.tombstone ? NULL : value;
		size_t		size = c.tombstone ? 0 : (size_t) len;
		rd_kafka_resp_err_t rc;

		while ((rc = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
									   RD_KAFKA_V_KEY(key, keylen), RD_KAFKA_V_VALUE(payload, size),
									   RD_KAFKA_V_TIMESTAMP(c.ms), RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			rd_kafka_poll(rk, 10);
		if (rc)
			return fprintf(stderr, "gen: %s\n", rd_kafka_err2str(rc)), 1;
		if (i % 1000 == 0)
			rd_kafka_poll(rk, 0);
	}
	rd_kafka_flush(rk, 120000);
	failures += rd_kafka_outq_len(rk);
	rd_kafka_destroy(rk);
	if (failures)
		fprintf(stderr, "gen: %" PRId64 " messages were not written\n", failures);
	return failures != 0;
}

int
main(int argc, char **argv)
{
	int			c;

	while ((c = getopt(argc, argv, "+n:k:s:")) != -1)
		switch (c)
		{
			case 'n':
				nmessages = atoll(optarg);
				break;
			case 'k':
				nkeys = atoll(optarg);
				break;
			case 's':
				seed = strtoull(optarg, NULL, 10);
				break;
			default:
				return 2;
		}
	revisions = calloc(nkeys, sizeof(int));
	if (optind + 2 == argc && strcmp(argv[optind], "produce") == 0)
		return produce(argv[optind + 1]);
	if (optind + 1 == argc && strcmp(argv[optind], "state") == 0)
		print_state();
	else if (optind + 1 == argc && strcmp(argv[optind], "versions") == 0)
		print_versions();
	else if (optind + 1 == argc && strcmp(argv[optind], "facts") == 0)
		print_facts();
	else
	{
		fputs("usage: gen [-n MESSAGES] [-k KEYS] [-s SEED] produce TOPIC | state | versions | facts\n", stderr);
		return 2;
	}
	return fflush(stdout) != 0;
}
