/*
 * kt.c
 *	  Kafka from the command line, for tests: topics, transactions, nulls, bytes.
 *
 * kcat cannot say which of null and empty it means within one input, knows no
 * transactions and no topic administration.  Knows nothing of PostgreSQL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define WAIT_MS		120000
#define NULL_WORD	"\xe2\x88\x85"	/* U+2205, empty set */

static const char usage_text[] =
"kt: Kafka for tests\n"
"\n"
"  kt create TOPIC [-p PARTITIONS] [-c NAME=VALUE]... [--fresh]\n"
"      make a topic and wait until every partition can be read and written;\n"
"      --fresh deletes one of that name first.  Unless given otherwise with -c,\n"
"      retention.ms=-1 and any timestamp is taken, so that old messages stay.\n"
"  kt delete TOPIC [--if-exists]    delete, and wait until it is gone\n"
"  kt grow TOPIC N                  add partitions until there are N\n"
"  kt trim TOPIC PARTITION OFFSET   delete the records before OFFSET ('end': all)\n"
"  kt ends TOPIC                    PARTITION LOW HIGH STABLE, a line each\n"
"  kt list                          names of all topics\n"
"  kt produce TOPIC [-p PARTITION] [-k SEPARATOR] [-t TIMESTAMP]\n"
"      write the lines of standard input, see below; exit 1 unless all arrived\n"
"  kt consume TOPIC [-p PARTITION] [-l] [-u] [-f]\n"
"      PARTITION OFFSET KEY VALUE, a line each, up to the end; -l: timestamp and\n"
"      headers too; -u: transactions that are not committed too; -f: go on after\n"
"      the end (-e, to stop there, is the default)\n"
"\n"
"  -b BROKERS, or $BROKER; 127.0.0.1:9092 without both.\n"
"\n"
"Input of produce: KEY|VALUE, one message a line, in this order. SEPARATOR ('|')\n"
"splits at its first place; with -k '' there are no keys and a line is a value.\n"
"  k|v          text as it stands, no escapes; empty lines and # lines are skipped\n"
"  k|           an empty value (zero bytes); |v an empty key\n"
"  k|\xe2\x88\x85          \xe2\x88\x85 or \\N alone is Kafka's null: a tombstone\n"
"  k|x'00ff'    bytes\n"
"  [p=1 ts=1000 h=name:value] k|v\n"
"               partition (default -p or 0; 'key': by hash as Java does it),\n"
"               timestamp (ms since 1970, not 0, or 2026-01-31T12:00:00.5Z; -1:\n"
"               unset), headers: h=n:v, h=n:'v w', h=n:x'00', h=n: empty, h=n null\n"
"  !flush       wait until everything so far has arrived\n"
"  !begin, !commit, !abort          a transaction around the lines between\n"
"  !hold N [FILE]  everything so far has arrived and kt returns now, while the open\n"
"               transaction stays open in the background for N seconds, or until\n"
"               FILE is made (which goes then); then the lines that follow are\n"
"               done, or the transaction is aborted\n";

static const char *brokers;
static char last_error[512];	/* librdkafka's last complaint */
static int	report_fd = -1;		/* set in the background process of produce */

static void die(const char *fmt,...) __attribute__((noreturn, format(printf, 1, 2)));

static void
die(const char *fmt,...)
{
	char		text[1024];
	va_list		ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (report_fd >= 0)
	{
		if (write(report_fd, text, strlen(text)) < 0)
			_exit(2);
		_exit(1);
	}
	fprintf(stderr, "kt: %s\n", text);
	exit(1);
}

static void *
xalloc(size_t n)
{
	void	   *p = calloc(1, n ? n : 1);

	if (!p)
		die("out of memory");
	return p;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * (int64_t) 1000 + ts.tv_nsec / 1000000;
}

static int64_t
parse_int(const char *text, const char *what)
{
	char	   *end;
	long long	v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		die("%s is not a number: \"%s\"", what, text);
	return v;
}

/* ms since 1970, or ISO 8601 in UTC */
static int64_t
parse_timestamp(const char *text)
{
	struct tm	tm = {0};
	char	   *rest;
	int64_t		ms = 0;

	if (strlen(text) < 10 || text[4] != '-')
		return parse_int(text, "timestamp");
	rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
	{
		memset(&tm, 0, sizeof(tm));
		rest = strptime(text, "%Y-%m-%d", &tm);
	}
	if (rest && *rest == '.')
	{
		int			unit = 100;

		for (rest++; isdigit((unsigned char) *rest); rest++, unit /= 10)
			ms += (*rest - '0') * unit;
	}
	if (rest && *rest == 'Z')
		rest++;
	if (!rest || *rest)
		die("not a timestamp: \"%s\"", text);
	return (int64_t) timegm(&tm) * 1000 + ms;
}

/* --- handles ------------------------------------------------------------------ */

static void
log_nothing(const rd_kafka_t *rk, int level, const char *fac, const char *buf)
{
}

static void
note_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	snprintf(last_error, sizeof(last_error), "%s", reason);
}

static rd_kafka_t *
new_handle(rd_kafka_type_t type, const char *const *props)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	char		err[512];

	rd_kafka_conf_set_log_cb(conf, log_nothing);
	rd_kafka_conf_set_error_cb(conf, note_error);
	if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, err, sizeof(err)))
		die("%s", err);
	for (; *props; props += 2)
		if (rd_kafka_conf_set(conf, props[0], props[1], err, sizeof(err)))
			die("%s", err);
	rk = rd_kafka_new(type, conf, err, sizeof(err));
	if (!rk)
		die("%s", err);
	return rk;
}

/*
 * A consumer: unlike a producer it never creates a topic by asking for it.
 * Also used for administration.
 */
static rd_kafka_t *
new_consumer(bool committed, bool assigns)
{
	const char *props[] = {
		"enable.auto.commit", "false",
		"enable.partition.eof", "true",
		"auto.offset.reset", "error",
		"allow.auto.create.topics", "false",
		"isolation.level", committed ? "read_committed" : "read_uncommitted",
		"fetch.wait.max.ms", "50",
		"reconnect.backoff.ms", "20",
		"reconnect.backoff.max.ms", "200",
		/* assign() wants one, though we join none; it makes the broker create __consumer_offsets */
		assigns ? "group.id" : NULL, "kt",
		NULL
	};

	return new_handle(RD_KAFKA_CONSUMER, props);
}

/* Number of partitions that have a leader; *total counts all.  -1: no such topic. */
static int
count_partitions(rd_kafka_t *rk, const char *topic, int *total)
{
	const struct rd_kafka_metadata *md;
	rd_kafka_resp_err_t err;
	int			n = -1;

	err = rd_kafka_metadata(rk, 1, NULL, &md, WAIT_MS);
	if (err)
		die("no answer from %s: %s%s%s", brokers, rd_kafka_err2str(err),
			last_error[0] ? "; " : "", last_error);
	if (total)
		*total = 0;
	for (int i = 0; i < md->topic_cnt; i++)
	{
		if (strcmp(md->topics[i].topic, topic) != 0 || md->topics[i].err)
			continue;
		n = 0;
		for (int p = 0; p < md->topics[i].partition_cnt; p++)
			if (md->topics[i].partitions[p].leader >= 0)
				n++;
		if (total)
			*total = md->topics[i].partition_cnt;
	}
	rd_kafka_metadata_destroy(md);
	return n;
}

/* Wait until all of n partitions answer; n = -1: until the topic is gone. */
static void
wait_topic(rd_kafka_t *rk, const char *topic, int n)
{
	int64_t		until = now_ms() + WAIT_MS;
	int			total;

	for (;;)
	{
		int			found = count_partitions(rk, topic, &total);

		if (found == n && (n < 0 || total == n))
		{
			int			p;

			for (p = 0; p < n; p++)
			{
				int64_t		low,
							high;

				if (rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 1000))
					break;
			}
			if (p >= n)
				return;
		}
		if (now_ms() > until)
			die("topic \"%s\" is still %s after %d s", topic,
				n < 0 ? "there" : "not ready", WAIT_MS / 1000);
		usleep(10000);
	}
}

/* --- administration ------------------------------------------------------------ */

/* Waits for the result of one admin request; *text names the error of its topic. */
static rd_kafka_event_t *
admin_result(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *ev = rd_kafka_queue_poll(queue, WAIT_MS + 5000);

	if (!ev)
		die("no answer from %s", brokers);
	if (rd_kafka_event_error(ev))
		die("%s%s%s", rd_kafka_event_error_string(ev), last_error[0] ? "; " : "", last_error);
	return ev;
}

static rd_kafka_AdminOptions_t *
admin_options(rd_kafka_t *rk, rd_kafka_admin_op_t op)
{
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, op);
	char		err[256];

	rd_kafka_AdminOptions_set_request_timeout(options, WAIT_MS, err, sizeof(err));
	if (op != RD_KAFKA_ADMIN_OP_DELETERECORDS)
		rd_kafka_AdminOptions_set_operation_timeout(options, WAIT_MS, err, sizeof(err));
	return options;
}

static rd_kafka_resp_err_t
topic_result(const rd_kafka_topic_result_t **results, const size_t *n, const char **text)
{
	if (*n != 1)
		die("unexpected answer of the broker");
	*text = rd_kafka_topic_result_error_string(results[0]);
	if (!*text)
		*text = rd_kafka_err2str(rd_kafka_topic_result_error(results[0]));
	return rd_kafka_topic_result_error(results[0]);
}

static void
delete_topic(rd_kafka_t *rk, const char *topic, bool if_exists)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_DeleteTopic_t *del = rd_kafka_DeleteTopic_new(topic);
	rd_kafka_event_t *ev;
	const char *text;
	size_t		n;
	rd_kafka_resp_err_t err;

	rd_kafka_DeleteTopics(rk, &del, 1, admin_options(rk, RD_KAFKA_ADMIN_OP_DELETETOPICS), queue);
	ev = admin_result(queue);
	err = topic_result(rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(ev), &n), &n, &text);
	if (err && !(if_exists && err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART))
		die("could not delete topic \"%s\": %s", topic, text);
	rd_kafka_event_destroy(ev);
	if (!err)
		wait_topic(rk, topic, -1);
}

static void
create_topic(rd_kafka_t *rk, const char *topic, int partitions, char **config, int nconfig)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	int64_t		until = now_ms() + WAIT_MS;
	static const char *const defaults[][2] = {
		{"retention.ms", "-1"},
		/* Kafka 4 refuses timestamps over an hour ahead otherwise */
		{"message.timestamp.after.max.ms", "9223372036854775807"},
	};

	for (;;)
	{
		char		errstr[512];
		const char *text;
		size_t		n;
		rd_kafka_NewTopic_t *new = rd_kafka_NewTopic_new(topic, partitions, 1, errstr, sizeof(errstr));
		rd_kafka_event_t *ev;
		rd_kafka_resp_err_t err;

		if (!new)
			die("%s", errstr);
		for (int d = 0; d < 2; d++)
			rd_kafka_NewTopic_set_config(new, defaults[d][0], defaults[d][1]);
		for (int i = 0; i < nconfig; i++)
		{
			char	   *name = strdup(config[i]);
			char	   *eq = strchr(name, '=');

			if (!eq)
				die("-c wants NAME=VALUE, not \"%s\"", name);
			*eq = '\0';
			rd_kafka_NewTopic_set_config(new, name, eq + 1);
		}
		rd_kafka_CreateTopics(rk, &new, 1, admin_options(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS), queue);
		ev = admin_result(queue);
		err = topic_result(rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(ev), &n), &n, &text);
		if (!err)
		{
			rd_kafka_event_destroy(ev);
			break;
		}
		/* one that was just deleted may linger for a moment */
		if (err != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS || now_ms() > until ||
			count_partitions(rk, topic, NULL) >= 0)
			die("could not create topic \"%s\": %s", topic, text);
		rd_kafka_event_destroy(ev);
		usleep(50000);
	}
	wait_topic(rk, topic, partitions);
}

static void
grow_topic(rd_kafka_t *rk, const char *topic, int partitions)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	char		errstr[512];
	const char *text;
	size_t		n;
	rd_kafka_NewPartitions_t *new = rd_kafka_NewPartitions_new(topic, partitions, errstr, sizeof(errstr));
	rd_kafka_event_t *ev;

	if (!new)
		die("%s", errstr);
	rd_kafka_CreatePartitions(rk, &new, 1, admin_options(rk, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS), queue);
	ev = admin_result(queue);
	if (topic_result(rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(ev), &n), &n, &text))
		die("could not add partitions to topic \"%s\": %s", topic, text);
	wait_topic(rk, topic, partitions);
}

static void
trim_topic(rd_kafka_t *rk, const char *topic, int partition, int64_t offset)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	const rd_kafka_topic_partition_list_t *done;
	rd_kafka_DeleteRecords_t *del;
	rd_kafka_event_t *ev;
	int64_t		until = now_ms() + WAIT_MS;
	int64_t		low,
				high;

	rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
	del = rd_kafka_DeleteRecords_new(list);
	rd_kafka_DeleteRecords(rk, &del, 1, admin_options(rk, RD_KAFKA_ADMIN_OP_DELETERECORDS), queue);
	ev = admin_result(queue);
	done = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(ev));
	if (done->cnt != 1 || done->elems[0].err)
		die("could not trim topic \"%s\" partition %d at %" PRId64 ": %s", topic, partition, offset,
			done->cnt == 1 ? rd_kafka_err2str(done->elems[0].err) : "no answer");
	do
	{
		if (rd_kafka_query_watermark_offsets(rk, topic, partition, &low, &high, WAIT_MS))
			die("no answer from %s", brokers);
	} while (low < done->elems[0].offset && now_ms() < until && usleep(10000) == 0);
}

static void
print_ends(rd_kafka_t *rk, const char *topic)
{
	rd_kafka_t *committed = new_consumer(true, false);
	int			n = count_partitions(rk, topic, NULL);

	if (n < 0)
		die("there is no topic \"%s\"", topic);
	for (int p = 0; p < n; p++)
	{
		int64_t		low,
					high,
					stable;
		rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, WAIT_MS);

		if (!err)
			err = rd_kafka_query_watermark_offsets(committed, topic, p, &low, &stable, WAIT_MS);
		if (err)
			die("topic \"%s\" partition %d: %s", topic, p, rd_kafka_err2str(err));
		printf("%d %" PRId64 " %" PRId64 " %" PRId64 "\n", p, low, high, stable);
	}
	rd_kafka_destroy(committed);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void
list_topics(rd_kafka_t *rk)
{
	const struct rd_kafka_metadata *md;
	const char **names;
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 1, NULL, &md, WAIT_MS);

	if (err)
		die("no answer from %s: %s", brokers, rd_kafka_err2str(err));
	names = xalloc(sizeof(char *) * md->topic_cnt);
	for (int i = 0; i < md->topic_cnt; i++)
		names[i] = md->topics[i].topic;
	qsort(names, md->topic_cnt, sizeof(char *), compare_names);
	for (int i = 0; i < md->topic_cnt; i++)
		if (strncmp(names[i], "__", 2) != 0)
			puts(names[i]);
	free(names);
	rd_kafka_metadata_destroy(md);
}

/* --- produce --------------------------------------------------------------------- */

typedef struct Bytes
{
	char	   *data;			/* NULL: Kafka's null */
	size_t		len;
} Bytes;

static const char *produce_topic;
static rd_kafka_t *plain;		/* outside of transactions */
static rd_kafka_t *transactional;
static bool in_transaction;
static int	lineno;
static int	failed;
static char failure[512];

static void
delivered(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	if (msg->err && failed++ == 0)
		snprintf(failure, sizeof(failure), "line %d: partition %d: %s", (int) (intptr_t) msg->_private,
				 msg->partition, rd_kafka_err2str(msg->err));
}

static rd_kafka_t *
new_producer(const char *transactional_id)
{
	const char *props[] = {
		"acks", "all",
		"linger.ms", "1",
		"message.max.bytes", "100000000",	/* the topic decides */
		"enable.idempotence", "true",	/* keeps the order over a retry */
		"message.timeout.ms", "120000",
		"partitioner", "murmur2_random",
		"reconnect.backoff.max.ms", "200",
		transactional_id ? "transactional.id" : NULL, transactional_id,
		"transaction.timeout.ms", "300000",
		NULL
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	char		err[512];

	rd_kafka_conf_set_log_cb(conf, log_nothing);
	rd_kafka_conf_set_error_cb(conf, note_error);
	rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, err, sizeof(err)))
		die("%s", err);
	for (int i = 0; props[i]; i += 2)
		if (rd_kafka_conf_set(conf, props[i], props[i + 1], err, sizeof(err)))
			die("%s", err);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof(err));
	if (!rk)
		die("%s", err);
	/* asked for by name, a missing topic would be waited for */
	if (count_partitions(rk, produce_topic, NULL) < 0)
		die("there is no topic \"%s\"", produce_topic);
	return rk;
}

static void
flush(rd_kafka_t *rk)
{
	if (rk && rd_kafka_flush(rk, WAIT_MS + 5000))
		die("messages did not arrive at %s within %d s%s%s", brokers, WAIT_MS / 1000,
			last_error[0] ? ": " : "", last_error);
	if (failed)
		die("%d messages were not written; %s", failed, failure);
}

static void
check(rd_kafka_error_t *error, const char *what)
{
	if (error)
		die("line %d: %s: %s", lineno, what, rd_kafka_error_string(error));
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The word for null, x'..', or the text itself.  Changes text in place. */
static Bytes
parse_bytes(char *text, size_t len)
{
	Bytes		b = {text, len};

	text[len] = '\0';
	if (strcmp(text, NULL_WORD) == 0 || strcmp(text, "\\N") == 0)
	{
		b.data = NULL;
		b.len = 0;
	}
	else if (len >= 3 && strncmp(text, "x'", 2) == 0 && text[len - 1] == '\'' && (len - 3) % 2 == 0)
	{
		size_t		n = (len - 3) / 2;

		for (size_t i = 0; i < n; i++)
		{
			int			high = hex_digit(text[2 + 2 * i]),
						low = hex_digit(text[3 + 2 * i]);

			if (high < 0 || low < 0)
				die("line %d: not hexadecimal: %s", lineno, text);
			text[i] = (char) (high << 4 | low);
		}
		b.len = n;
	}
	return b;
}

/*
 * Reads [p=.. ts=.. h=..] if the line begins with it; returns what follows.
 * A JSON array as key is no directive: those begin with a name and '='.
 */
static char *
parse_directives(char *line, int *partition, int64_t *timestamp, rd_kafka_headers_t **headers)
{
	char	   *s = line + 1;

	if (line[0] != '[' || (strncmp(s, "p=", 2) != 0 && strncmp(s, "ts=", 3) != 0 && strncmp(s, "h=", 2) != 0))
		return line;
	for (;;)
	{
		char	   *word;
		bool		quoted = false;

		while (*s == ' ')
			s++;
		if (*s == ']')
		{
			s++;
			return *s == ' ' ? s + 1 : s;
		}
		word = s;
		while (*s && (quoted || (*s != ' ' && *s != ']')))
		{
			if (*s == '\'')
				quoted = !quoted;
			s++;
		}
		if (!*s)
			die("line %d: no closing ]", lineno);
		word = strndup(word, s - word);
		if (strncmp(word, "p=", 2) == 0)
			*partition = strcmp(word + 2, "key") == 0 ? RD_KAFKA_PARTITION_UA :
				(int) parse_int(word + 2, "partition");
		else if (strncmp(word, "ts=", 3) == 0)
			*timestamp = parse_timestamp(word + 3);
		else if (strncmp(word, "h=", 2) == 0)
		{
			char	   *name = word + 2;
			char	   *colon = strchr(name, ':');
			Bytes		value = {NULL, 0};

			if (colon)
			{
				size_t		len = strlen(colon + 1);

				*colon = '\0';
				if (len >= 2 && colon[1] == '\'' && colon[len] == '\'')
				{
					value.data = colon + 2;
					value.len = len - 2;
				}
				else
					value = parse_bytes(colon + 1, len);
			}
			if (!*headers)
				*headers = rd_kafka_headers_new(4);
			rd_kafka_header_add(*headers, name, -1, value.data, value.len);
		}
		else
			die("line %d: unknown directive \"%s\"", lineno, word);
		free(word);
	}
}

static void
send_line(char *line, size_t len, const char *separator, int partition, int64_t timestamp)
{
	rd_kafka_headers_t *headers = NULL;
	char	   *rest = parse_directives(line, &partition, &timestamp, &headers);
	char	   *end = line + len;
	Bytes		key = {NULL, 0},
				value;
	rd_kafka_t *rk;
	rd_kafka_vu_t vus[8];
	rd_kafka_error_t *error;
	int			n = 0;

	if (separator[0])
	{
		char	   *at = strstr(rest, separator);
		size_t		keylen = at ? at - rest : 0;

		if (!at)
			die("line %d: no \"%s\" between key and value (write " NULL_WORD "%sVALUE for a null key)",
				lineno, separator, separator);
		key = parse_bytes(rest, keylen);
		rest = rest + keylen + strlen(separator);
	}
	value = parse_bytes(rest, end - rest);

	if (!in_transaction && !plain)
		plain = new_producer(NULL);
	rk = in_transaction ? transactional : plain;

	vus[n].vtype = RD_KAFKA_VTYPE_TOPIC;
	vus[n++].u.cstr = produce_topic;
	vus[n].vtype = RD_KAFKA_VTYPE_PARTITION;
	vus[n++].u.i32 = partition;
	vus[n].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
	vus[n++].u.i = RD_KAFKA_MSG_F_COPY;
	vus[n].vtype = RD_KAFKA_VTYPE_KEY;
	vus[n].u.mem.ptr = key.data;
	vus[n++].u.mem.size = key.len;
	vus[n].vtype = RD_KAFKA_VTYPE_VALUE;
	vus[n].u.mem.ptr = value.data;
	vus[n++].u.mem.size = value.len;
	vus[n].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
	vus[n++].u.i64 = timestamp;
	vus[n].vtype = RD_KAFKA_VTYPE_OPAQUE;
	vus[n++].u.ptr = (void *) (intptr_t) lineno;
	if (headers)
	{
		vus[n].vtype = RD_KAFKA_VTYPE_HEADERS;
		vus[n++].u.headers = headers;
	}
	while ((error = rd_kafka_produceva(rk, vus, n)) != NULL)
	{
		if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL)
			check(error, "could not write");
		rd_kafka_error_destroy(error);
		rd_kafka_poll(rk, 100);
	}
	rd_kafka_poll(rk, 0);
	if (failed)
		flush(rk);
}

static void
hold(const char *arguments)
{
	int			null = open("/dev/null", O_RDWR);
	char	   *file;
	double		seconds = strtod(arguments, &file);
	int64_t		until;

	file += strspn(file, " ");
	if (file[0])
		unlink(file);
	flush(plain);
	flush(transactional);
	/* whoever reads our output through a pipe must not wait for us */
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	if (report_fd >= 0)
		close(report_fd);
	report_fd = null;
	setsid();
	until = now_ms() + (int64_t) (seconds * 1000);
	while (now_ms() < until && (!file[0] || unlink(file) != 0))
		usleep(20000);
}

static void
command(const char *line)
{
	if (strcmp(line, "!flush") == 0)
	{
		flush(plain);
		flush(transactional);
	}
	else if (strcmp(line, "!begin") == 0)
	{
		if (in_transaction)
			die("line %d: there is a transaction already", lineno);
		flush(plain);
		if (!transactional)
		{
			char		id[300];

			snprintf(id, sizeof(id), "kt-%s-%d-%" PRId64, produce_topic, (int) getpid(), now_ms());
			transactional = new_producer(id);
			check(rd_kafka_init_transactions(transactional, WAIT_MS), "could not start transactions");
		}
		check(rd_kafka_begin_transaction(transactional), "could not begin a transaction");
		in_transaction = true;
	}
	else if (strcmp(line, "!commit") == 0 || strcmp(line, "!abort") == 0)
	{
		if (!in_transaction)
			die("line %d: there is no transaction", lineno);
		flush(transactional);
		if (line[1] == 'c')
			check(rd_kafka_commit_transaction(transactional, WAIT_MS), "could not commit");
		else
			check(rd_kafka_abort_transaction(transactional, WAIT_MS), "could not abort");
		in_transaction = false;
	}
	else if (strncmp(line, "!hold ", 6) == 0)
		hold(line + 6);
	else
		die("line %d: unknown command \"%s\"", lineno, line);
}

static void
produce_lines(char *input, size_t size, const char *separator, int partition, int64_t timestamp)
{
	char	   *end = input + size;

	while (input < end)
	{
		char	   *newline = memchr(input, '\n', end - input);
		size_t		len = newline ? (size_t) (newline - input) : (size_t) (end - input);

		lineno++;
		input[len] = '\0';
		if (input[0] == '!')
			command(input);
		else if (len > 0 && input[0] != '#')
			send_line(input, len, separator, partition, timestamp);
		input += len + 1;
	}
	flush(plain);
	flush(transactional);
	if (in_transaction)
		check(rd_kafka_abort_transaction(transactional, WAIT_MS), "could not abort the open transaction");
	if (transactional)
		rd_kafka_destroy(transactional);
	if (plain)
		rd_kafka_destroy(plain);
}

/* !hold needs a process that stays behind; it is started before any thread is. */
static void
produce(const char *topic, const char *separator, int partition, int64_t timestamp)
{
	size_t		size = 0,
				space = 1 << 16;
	char	   *input = xalloc(space + 1);
	size_t		got;

	while ((got = fread(input + size, 1, space - size, stdin)) > 0)
	{
		size += got;
		if (size == space && !(input = realloc(input, (space *= 2) + 1)))
			die("out of memory");
	}
	input[size] = '\0';
	produce_topic = topic;

	if (strncmp(input, "!hold ", 6) == 0 || strstr(input, "\n!hold "))
	{
		int			fds[2];
		char		text[1024];
		ssize_t		n;
		pid_t		child;

		if (pipe(fds) != 0 || (child = fork()) < 0)
			die("could not fork: %s", strerror(errno));
		if (child > 0)
		{
			int			status;

			close(fds[1]);
			n = read(fds[0], text, sizeof(text) - 1);
			if (n > 0)
			{
				text[n] = '\0';
				die("%s", text);
			}
			if (waitpid(child, &status, WNOHANG) == child && status != 0)
				die("the background process ended early");
			return;
		}
		close(fds[0]);
		report_fd = fds[1];
	}
	produce_lines(input, size, separator, partition, timestamp);
	free(input);
}

/* --- consume --------------------------------------------------------------------- */

static bool
is_printable_utf8(const unsigned char *s, size_t len)
{
	for (size_t i = 0; i < len;)
	{
		int			more = s[i] < 0x80 ? 0 : (s[i] & 0xe0) == 0xc0 ? 1 : (s[i] & 0xf0) == 0xe0 ? 2 :
			(s[i] & 0xf8) == 0xf0 ? 3 : -1;

		if (more < 0 || s[i] < 0x20 || s[i] == 0x7f || i + more >= len)
			return false;
		for (i++; more > 0; more--, i++)
			if ((s[i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static void
print_bytes(const void *data, size_t len)
{
	if (!data)
		fputs(NULL_WORD, stdout);
	else if (is_printable_utf8(data, len))
		fwrite(data, 1, len, stdout);
	else
	{
		fputs("x'", stdout);
		for (size_t i = 0; i < len; i++)
			printf("%02x", ((const unsigned char *) data)[i]);
		putchar('\'');
	}
}

static void
print_message(const rd_kafka_message_t *msg, bool more)
{
	printf("%d %" PRId64 " ", msg->partition, msg->offset);
	if (more)
	{
		rd_kafka_timestamp_type_t type;
		rd_kafka_headers_t *headers;
		int64_t		ts = rd_kafka_message_timestamp(msg, &type);

		printf("%s%" PRId64 " [", type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? "log:" : "", ts);
		if (rd_kafka_message_headers(msg, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
		{
			const char *name;
			const void *value;
			size_t		len;

			for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++)
			{
				printf("%s%s:", i ? " " : "", name);
				print_bytes(value, len);
			}
		}
		fputs("] ", stdout);
	}
	print_bytes(msg->key, msg->key_len);
	putchar(' ');
	print_bytes(msg->payload, msg->len);
	putchar('\n');
}

static void
consume(const char *topic, int partition, bool more, bool committed, bool follow)
{
	rd_kafka_t *rk = new_consumer(committed, true);
	int			n = count_partitions(rk, topic, NULL);
	rd_kafka_topic_partition_list_t *list;

	if (n < 0)
		die("there is no topic \"%s\"", topic);
	rd_kafka_poll_set_consumer(rk);
	/* one partition after the other, so that the output is always the same */
	for (int p = 0; p < n; p++)
	{
		bool		end = false;
		int64_t		until = now_ms() + WAIT_MS;

		if (partition >= 0 && p != partition)
			continue;
		list = rd_kafka_topic_partition_list_new(n);
		for (int q = p; q < (follow && partition < 0 ? n : p + 1); q++)
			rd_kafka_topic_partition_list_add(list, topic, q)->offset = RD_KAFKA_OFFSET_BEGINNING;
		rd_kafka_assign(rk, list);
		rd_kafka_topic_partition_list_destroy(list);
		while (!end)
		{
			rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 500);

			if (!msg)
			{
				if (!follow && now_ms() > until)
					die("topic \"%s\" partition %d did not reach its end within %d s", topic, p, WAIT_MS / 1000);
				continue;
			}
			until = now_ms() + WAIT_MS;
			if (!msg->err)
				print_message(msg, more);
			else if (msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
				end = !follow;
			else
				die("topic \"%s\" partition %d: %s", topic, msg->partition, rd_kafka_message_errstr(msg));
			rd_kafka_message_destroy(msg);
			if (follow)
				fflush(stdout);
		}
	}
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

/* --- main ------------------------------------------------------------------------ */

int
main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"fresh", no_argument, NULL, 'F'},
		{"if-exists", no_argument, NULL, 'I'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	const char *verb,
			   *topic,
			   *separator = "|";
	char	  **config = xalloc(sizeof(char *) * argc);
	int			nconfig = 0,
				partition = -1,
				nargs,
				c;
	int64_t		timestamp = 0;
	bool		fresh = false,
				if_exists = false,
				more = false,
				committed = true,
				follow = false;
	rd_kafka_t *rk;

	brokers = getenv("BROKER");
	while ((c = getopt_long(argc, argv, "b:p:c:k:t:lufeh", longopts, NULL)) != -1)
		switch (c)
		{
			case 'b':
				brokers = optarg;
				break;
			case 'p':
				partition = strcmp(optarg, "key") == 0 ? -2 : (int) parse_int(optarg, "-p");
				break;
			case 'c':
				config[nconfig++] = optarg;
				break;
			case 'k':
				separator = optarg;
				break;
			case 't':
				timestamp = parse_timestamp(optarg);
				break;
			case 'l':
				more = true;
				break;
			case 'u':
				committed = false;
				break;
			case 'f':
				follow = true;
				break;
			case 'e':
				follow = false;
				break;
			case 'F':
				fresh = true;
				break;
			case 'I':
				if_exists = true;
				break;
			case 'h':
				fputs(usage_text, stdout);
				return 0;
			default:
				fputs("try kt --help\n", stderr);
				return 2;
		}
	if (!brokers || !brokers[0])
		brokers = "127.0.0.1:9092";
	nargs = argc - optind;
	verb = nargs > 0 ? argv[optind] : "";
	topic = nargs > 1 ? argv[optind + 1] : NULL;

	if (nargs == 2 && strcmp(verb, "produce") == 0)
		produce(topic, separator, partition == -2 ? RD_KAFKA_PARTITION_UA : partition < 0 ? 0 : partition, timestamp);
	else if (nargs == 2 && strcmp(verb, "consume") == 0)
		consume(topic, partition, more, committed, follow);
	else
	{
		rk = new_consumer(false, false);
		if (nargs == 2 && strcmp(verb, "create") == 0)
		{
			if (fresh)
				delete_topic(rk, topic, true);
			create_topic(rk, topic, partition < 0 ? 1 : partition, config, nconfig);
		}
		else if (nargs == 2 && strcmp(verb, "delete") == 0)
			delete_topic(rk, topic, if_exists);
		else if (nargs == 3 && strcmp(verb, "grow") == 0)
			grow_topic(rk, topic, (int) parse_int(argv[optind + 2], "N"));
		else if (nargs == 4 && strcmp(verb, "trim") == 0)
			trim_topic(rk, topic, (int) parse_int(argv[optind + 2], "PARTITION"),
					   strcmp(argv[optind + 3], "end") == 0 ? RD_KAFKA_OFFSET_END : parse_int(argv[optind + 3], "OFFSET"));
		else if (nargs == 2 && strcmp(verb, "ends") == 0)
			print_ends(rk, topic);
		else if (nargs == 1 && strcmp(verb, "list") == 0)
			list_topics(rk);
		else
		{
			fputs("try kt --help\n", stderr);
			return 2;
		}
		/* a process that ends needs no goodbye to the broker: saves time */
	}
	fflush(stdout);
	_exit(0);
}
