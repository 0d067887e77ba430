/*
 * properties.c
 *	  Client properties: which ones a user may set and where, and the values
 *	  that are always ours.  The list is an allow-list; what librdkafka learns
 *	  later is unknown here until somebody has thought about it.
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

/* Which clients a property means something to; the others don't get it. */
typedef enum KafkaPropertyScope
{
	ANY_CLIENT,
	CONSUMER_ONLY,
	PRODUCER_ONLY
} KafkaPropertyScope;

typedef struct KafkaProperty
{
	const char *name;
	KafkaPropertyClass class;
	KafkaPropertyScope scope;
} KafkaProperty;

/*
 * Reserved are those that run code or commands (plugin.library.paths, ssl.engine.*,
 * ssl.providers, sasl.kerberos.kinit.cmd and the two that are pasted into it),
 * those whose value the reading of positions or the promises about writing rest
 * on, and those that belong to group membership, which there is none of.
 */
static const KafkaProperty properties[] = {
	{"api.version.fallback.ms", KAFKA_PROP_PUBLIC},
	{"api.version.request", KAFKA_PROP_PUBLIC},
	{"api.version.request.timeout.ms", KAFKA_PROP_PUBLIC},
	{"batch.num.messages", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"batch.size", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"bootstrap.servers", KAFKA_PROP_PUBLIC},
	{"broker.address.family", KAFKA_PROP_PUBLIC},
	{"broker.address.ttl", KAFKA_PROP_PUBLIC},
	{"broker.version.fallback", KAFKA_PROP_PUBLIC},
	{"check.crcs", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"client.dns.lookup", KAFKA_PROP_PUBLIC},
	{"client.id", KAFKA_PROP_PUBLIC},
	{"client.rack", KAFKA_PROP_PUBLIC},
	{"compression.codec", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"compression.level", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"compression.type", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"connections.max.idle.ms", KAFKA_PROP_PUBLIC},
	{"debug", KAFKA_PROP_PUBLIC},
	{"enable.sasl.oauthbearer.unsecure.jwt", KAFKA_PROP_PUBLIC},
	{"enable.ssl.certificate.verification", KAFKA_PROP_PUBLIC},
	{"fetch.error.backoff.ms", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"fetch.max.bytes", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"fetch.message.max.bytes", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"fetch.min.bytes", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"fetch.wait.max.ms", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"group.id", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"isolation.level", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"linger.ms", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"log.connection.close", KAFKA_PROP_PUBLIC},
	{"log_level", KAFKA_PROP_PUBLIC},
	{"max.in.flight.requests.per.connection", KAFKA_PROP_PUBLIC},
	{"max.partition.fetch.bytes", KAFKA_PROP_PUBLIC, CONSUMER_ONLY},
	{"message.max.bytes", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"metadata.max.age.ms", KAFKA_PROP_PUBLIC},
	{"queue.buffering.max.ms", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"receive.message.max.bytes", KAFKA_PROP_PUBLIC},
	{"reconnect.backoff.max.ms", KAFKA_PROP_PUBLIC},
	{"reconnect.backoff.ms", KAFKA_PROP_PUBLIC},
	{"request.timeout.ms", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"retry.backoff.ms", KAFKA_PROP_PUBLIC, PRODUCER_ONLY},
	{"sasl.kerberos.service.name", KAFKA_PROP_PUBLIC},
	{"sasl.mechanism", KAFKA_PROP_PUBLIC},
	{"sasl.mechanisms", KAFKA_PROP_PUBLIC},
	{"sasl.oauthbearer.config", KAFKA_PROP_PUBLIC},
	{"sasl.oauthbearer.extensions", KAFKA_PROP_PUBLIC},
	{"sasl.oauthbearer.method", KAFKA_PROP_PUBLIC},
	{"sasl.oauthbearer.scope", KAFKA_PROP_PUBLIC},
	{"sasl.oauthbearer.token.endpoint.url", KAFKA_PROP_PUBLIC},
	{"security.protocol", KAFKA_PROP_PUBLIC},
	{"socket.connection.setup.timeout.ms", KAFKA_PROP_PUBLIC},
	{"socket.keepalive.enable", KAFKA_PROP_PUBLIC},
	{"socket.max.fails", KAFKA_PROP_PUBLIC},
	{"socket.nagle.disable", KAFKA_PROP_PUBLIC},
	{"socket.receive.buffer.bytes", KAFKA_PROP_PUBLIC},
	{"socket.send.buffer.bytes", KAFKA_PROP_PUBLIC},
	{"socket.timeout.ms", KAFKA_PROP_PUBLIC},
	{"ssl.ca.pem", KAFKA_PROP_PUBLIC},
	{"ssl.cipher.suites", KAFKA_PROP_PUBLIC},
	{"ssl.curves.list", KAFKA_PROP_PUBLIC},
	{"ssl.endpoint.identification.algorithm", KAFKA_PROP_PUBLIC},
	{"ssl.sigalgs.list", KAFKA_PROP_PUBLIC},
	{"topic.metadata.propagation.max.ms", KAFKA_PROP_PUBLIC},
	{"topic.metadata.refresh.fast.interval.ms", KAFKA_PROP_PUBLIC},
	{"topic.metadata.refresh.interval.ms", KAFKA_PROP_PUBLIC},
	{"topic.metadata.refresh.sparse", KAFKA_PROP_PUBLIC},

	{"sasl.oauthbearer.client.id", KAFKA_PROP_SECRET},
	{"sasl.oauthbearer.client.secret", KAFKA_PROP_SECRET},
	{"sasl.password", KAFKA_PROP_SECRET},
	{"sasl.username", KAFKA_PROP_SECRET},
	{"ssl.certificate.pem", KAFKA_PROP_SECRET},
	{"ssl.key.password", KAFKA_PROP_SECRET},
	{"ssl.key.pem", KAFKA_PROP_SECRET},
	{"ssl.keystore.password", KAFKA_PROP_SECRET},

	{"ssl.ca.location", KAFKA_PROP_FILE},
	{"ssl.certificate.location", KAFKA_PROP_FILE},
	{"ssl.crl.location", KAFKA_PROP_FILE},
	{"ssl.key.location", KAFKA_PROP_FILE},
	{"ssl.keystore.location", KAFKA_PROP_FILE},

	{"acks", KAFKA_PROP_RESERVED},
	{"allow.auto.create.topics", KAFKA_PROP_RESERVED},
	{"auto.commit.interval.ms", KAFKA_PROP_RESERVED},
	{"auto.offset.reset", KAFKA_PROP_RESERVED},
	{"builtin.features", KAFKA_PROP_RESERVED},
	{"delivery.report.only.error", KAFKA_PROP_RESERVED},
	{"delivery.timeout.ms", KAFKA_PROP_RESERVED},
	{"enable.auto.commit", KAFKA_PROP_RESERVED},
	{"enable.auto.offset.store", KAFKA_PROP_RESERVED},
	{"enable.gapless.guarantee", KAFKA_PROP_RESERVED},
	{"enable.idempotence", KAFKA_PROP_RESERVED},
	{"enable.partition.eof", KAFKA_PROP_RESERVED},
	{"enabled_events", KAFKA_PROP_RESERVED},
	{"group.instance.id", KAFKA_PROP_RESERVED},
	{"group.protocol.type", KAFKA_PROP_RESERVED},
	{"heartbeat.interval.ms", KAFKA_PROP_RESERVED},
	{"interceptors", KAFKA_PROP_RESERVED},
	{"internal.termination.signal", KAFKA_PROP_RESERVED},
	{"log.queue", KAFKA_PROP_RESERVED},
	{"max.poll.interval.ms", KAFKA_PROP_RESERVED},
	{"message.send.max.retries", KAFKA_PROP_RESERVED},
	{"message.timeout.ms", KAFKA_PROP_RESERVED},
	{"metadata.broker.list", KAFKA_PROP_RESERVED},
	{"offset.store.method", KAFKA_PROP_RESERVED},
	{"opaque", KAFKA_PROP_RESERVED},
	{"partition.assignment.strategy", KAFKA_PROP_RESERVED},
	{"partitioner", KAFKA_PROP_RESERVED},
	{"plugin.library.paths", KAFKA_PROP_RESERVED},
	{"produce.offset.report", KAFKA_PROP_RESERVED},
	{"queue.buffering.backpressure.threshold", KAFKA_PROP_RESERVED},
	{"queue.buffering.max.kbytes", KAFKA_PROP_RESERVED},
	{"queue.buffering.max.messages", KAFKA_PROP_RESERVED},
	{"queued.max.messages.kbytes", KAFKA_PROP_RESERVED},
	{"queued.min.messages", KAFKA_PROP_RESERVED},
	{"queuing.strategy", KAFKA_PROP_RESERVED},
	{"request.required.acks", KAFKA_PROP_RESERVED},
	{"retries", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.keytab", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.kinit.cmd", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.min.time.before.relogin", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.principal", KAFKA_PROP_RESERVED},
	{"session.timeout.ms", KAFKA_PROP_RESERVED},
	{"ssl.engine.id", KAFKA_PROP_RESERVED},
	{"ssl.engine.location", KAFKA_PROP_RESERVED},
	{"ssl.providers", KAFKA_PROP_RESERVED},
	{"statistics.interval.ms", KAFKA_PROP_RESERVED},
	{"sticky.partitioning.linger.ms", KAFKA_PROP_RESERVED},
	{"test.mock.broker.rtt", KAFKA_PROP_RESERVED},
	{"test.mock.num.brokers", KAFKA_PROP_RESERVED},
	{"topic.blacklist", KAFKA_PROP_RESERVED},
	{"transaction.timeout.ms", KAFKA_PROP_RESERVED},
	{"transactional.id", KAFKA_PROP_RESERVED}
};

/* A value the user may replace ('force' false), or that stays as it is. */
typedef struct KafkaSetting
{
	const char *name;
	const char *value;
	bool		force;
	KafkaPropertyScope scope;
	bool		newer;			/* librdkafka 2.0.2 does not know it */
} KafkaSetting;

/* What is queued for sending; each message takes some 150 bytes more than its own. */
#define QUEUE_MESSAGES "200000"
#define QUEUE_KB "65536"

static const KafkaSetting settings[] = {
	{"client.id", "upsert_kafka", false},
	/* assign() wants a group; it is never joined, nothing is committed to it */
	{"group.id", "upsert_kafka", false, CONSUMER_ONLY},
	{"check.crcs", "true", false, CONSUMER_ONLY},
	{"isolation.level", "read_committed", false, CONSUMER_ONLY},
	/* a flush does not wait for it */
	{"linger.ms", "5", false, PRODUCER_ONLY},
	{"socket.keepalive.enable", "true", false},
	{"reconnect.backoff.max.ms", "2000", false},

	/* its default is true for producers: a misspelt topic would come to be */
	{"allow.auto.create.topics", "false", true},
	{"auto.offset.reset", "error", true, CONSUMER_ONLY},
	{"enable.auto.commit", "false", true, CONSUMER_ONLY},
	{"enable.auto.offset.store", "false", true, CONSUMER_ONLY},
	{"enable.partition.eof", "true", true, CONSUMER_ONLY},
	{"log.queue", "true", true},
	/* a session may rest between two fetches of a cursor for ever */
	{"max.poll.interval.ms", "86400000", true, CONSUMER_ONLY},
	/* 0: never runs sasl.kerberos.kinit.cmd */
	{"sasl.kerberos.min.time.before.relogin", "0", true},
	/*
	 * 2.0.2 looks again only a second after its queue was full, so the queue
	 * must last longer than that.  queued.max.messages.kbytes bounds the bytes.
	 */
	{"queued.min.messages", "200000", true, CONSUMER_ONLY},
	{"enable.metrics.push", "false", true, ANY_CLIENT, true},
	/* retries keep the order and make no second copy; this implies acks=all */
	{"enable.idempotence", "true", true, PRODUCER_ONLY},
	{"queue.buffering.max.messages", QUEUE_MESSAGES, true, PRODUCER_ONLY},
	{"queue.buffering.max.kbytes", QUEUE_KB, true, PRODUCER_ONLY}
};

static const KafkaProperty *
find_property(const char *name)
{
	for (int i = 0; i < lengthof(properties); i++)
	{
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	}
	return NULL;
}

KafkaPropertyClass
kafka_property_class(const char *name)
{
	const KafkaProperty *property = find_property(name);

	return property ? property->class : KAFKA_PROP_UNKNOWN;
}

/*
 * The names that can be set at all: one that is reserved, or unknown to the
 * library at hand, is no good suggestion.
 */
const char *const *
kafka_property_names(void)
{
	static const char *names[lengthof(properties) + 1];

	if (names[0] == NULL)
	{
		rd_kafka_conf_t *conf = rd_kafka_conf_new();
		int			n = 0;

		for (int i = 0; i < lengthof(properties); i++)
		{
			char		text[KAFKA_ERROR_TEXT];

			/* NULL: back to its default; getting one that is unset says "unknown" as well */
			if (properties[i].class != KAFKA_PROP_RESERVED &&
				rd_kafka_conf_set(conf, properties[i].name, NULL, text, sizeof(text)) != RD_KAFKA_CONF_UNKNOWN)
				names[n++] = properties[i].name;
		}
		rd_kafka_conf_destroy(conf);
	}
	return names;
}

bool
kafka_property_check(const char *name, const char *value, char **message)
{
	KafkaPropertyClass class = kafka_property_class(name);
	rd_kafka_conf_t *conf;
	rd_kafka_conf_res_t res;
	char		text[KAFKA_ERROR_TEXT];

	/* setting plugin.library.paths would load the libraries at once */
	if (class == KAFKA_PROP_UNKNOWN || class == KAFKA_PROP_RESERVED)
	{
		*message = psprintf("property \"%s\" cannot be set", name);
		return false;
	}

	text[0] = '\0';
	conf = rd_kafka_conf_new();
	res = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
	rd_kafka_conf_destroy(conf);

	if (res == RD_KAFKA_CONF_OK)
		return true;
	/* the library's text may repeat the value */
	if (class == KAFKA_PROP_SECRET)
		*message = psprintf("the value of \"%s\" is not acceptable", name);
	else
		*message = pstrdup(text);
	return false;
}

static void
set_property(rd_kafka_conf_t *conf, const char *name, const char *value, bool may_be_unknown)
{
	char		text[KAFKA_ERROR_TEXT];
	rd_kafka_conf_res_t res;

	text[0] = '\0';
	res = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
	if (res == RD_KAFKA_CONF_OK || (may_be_unknown && res == RD_KAFKA_CONF_UNKNOWN))
		return;

	rd_kafka_conf_destroy(conf);
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
			 errmsg("invalid value for client property \"%s\"", name),
			 kafka_property_class(name) == KAFKA_PROP_SECRET ? 0 : errdetail("%s.", text)));
}

static void
set_ours(rd_kafka_conf_t *conf, KafkaPropertyScope scope, bool force)
{
	for (int i = 0; i < lengthof(settings); i++)
	{
		if (settings[i].force == force && (settings[i].scope == scope || settings[i].scope == ANY_CLIENT))
			set_property(conf, settings[i].name, settings[i].value, settings[i].newer);
	}
}

/* The user's values, as far as they mean something to this kind of client. */
static void
set_users(rd_kafka_conf_t *conf, KafkaPropertyScope scope, const KafkaConfig *config)
{
	for (int i = 0; i < config->nprops; i++)
	{
		const KafkaProperty *property = find_property(config->names[i]);

		if (property == NULL || property->class == KAFKA_PROP_RESERVED)
		{
			rd_kafka_conf_destroy(conf);
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("client property \"%s\" cannot be set", config->names[i])));
		}
		if (property->scope == scope || property->scope == ANY_CLIENT)
			set_property(conf, config->names[i], config->values[i], false);
	}
}

/* A value that must not pass a limit of ours, whoever set it. */
static void
limit_property(rd_kafka_conf_t *conf, const char *name, int most)
{
	char		value[32];
	size_t		size = sizeof(value);

	if (rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK && atol(value) > most)
	{
		snprintf(value, sizeof(value), "%d", most);
		set_property(conf, name, value, false);
	}
}

static void
set_number(rd_kafka_conf_t *conf, const char *name, int number)
{
	char		value[32];

	snprintf(value, sizeof(value), "%d", number);
	set_property(conf, name, value, false);
}

/* The value that a property has, "" where this library does not know it. */
static const char *
get_property(rd_kafka_conf_t *conf, const char *name)
{
	static char value[KAFKA_ERROR_TEXT];
	size_t		size = sizeof(value);

	if (rd_kafka_conf_get(conf, name, value, &size) != RD_KAFKA_CONF_OK)
		value[0] = '\0';
	return value;
}

/*
 * OAUTHBEARER without anything that fetches tokens: the library would wait for an
 * application to bring one, and say nothing.  The two ways it has of its own need
 * no help of ours: an endpoint (oidc) is asked in a thread of the library, an
 * unsigned token is made with the client and anew when its events are taken.
 */
static void
check_tokens(rd_kafka_conf_t *conf, const KafkaConfig *config)
{
	if (pg_strncasecmp(get_property(conf, "security.protocol"), "sasl_", 5) != 0 ||
		pg_strcasecmp(get_property(conf, "sasl.mechanisms"), "OAUTHBEARER") != 0 ||
		pg_strcasecmp(get_property(conf, "sasl.oauthbearer.method"), "oidc") == 0 ||
		strcmp(get_property(conf, "enable.sasl.oauthbearer.unsecure.jwt"), "true") == 0)
		return;

	rd_kafka_conf_destroy(conf);
	ereport(ERROR,
			(errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
			 errmsg("could not create a Kafka client for server \"%s\"", config->server_name),
			 errdetail("SASL mechanism OAUTHBEARER needs tokens, and no option says where they come from."),
			 errhint("Set \"sasl.oauthbearer.method\" to 'oidc', with the endpoint in the server's options and client id and secret in the user mapping.  "
					 "It needs a librdkafka that was built with libcurl; Debian 12's was not.")));
}

/*
 * A configuration with everything set: our defaults, the user's values, what is
 * always ours.  The caller owns it.
 */
rd_kafka_conf_t *
kafka_consumer_conf(const KafkaConfig *config, int queue_kb)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	set_ours(conf, CONSUMER_ONLY, false);
	/*
	 * A broker answers the requests of a connection one after another, so what
	 * follows a long poll waits for its end.  A bounded reading always leaves one
	 * behind: keep it short there.
	 */
	set_property(conf, "fetch.wait.max.ms", config->follow ? "100" : "5", false);
	/* a fetch always brings a whole batch at least, however small this is */
	set_property(conf, "fetch.message.max.bytes", config->narrow ? "65536" : "4194304", false);
	/*
	 * One answer is unpacked as a whole, whatever room the queue has: of batches that
	 * were compressed to a twentieth, 80 MB.
	 */
	set_property(conf, "fetch.max.bytes", "4194304", false);

	set_users(conf, CONSUMER_ONLY, config);
	set_ours(conf, CONSUMER_ONLY, true);
	set_number(conf, "queued.max.messages.kbytes", queue_kb);
	check_tokens(conf, config);
	return conf;
}

/* The same for a producer. */
rd_kafka_conf_t *
kafka_producer_conf(const KafkaConfig *config, const KafkaProducerSettings *settings)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int			message_timeout_ms = settings->message_timeout_ms;

	set_ours(conf, PRODUCER_ONLY, false);
	set_property(conf, "socket.nagle.disable", "true", false);
	set_users(conf, PRODUCER_ONLY, config);
	set_ours(conf, PRODUCER_ONLY, true);

	/* the library refuses to be idempotent with more, as a consumer's server may have it */
	limit_property(conf, "max.in.flight.requests.per.connection", 5);
	/* one that is larger than the queue would wait for room for ever */
	limit_property(conf, "message.max.bytes", atoi(QUEUE_KB) * 1024);
	if (settings->transactional_id)
	{
		set_property(conf, "transactional.id", settings->transactional_id, false);
		set_number(conf, "transaction.timeout.ms", settings->transaction_timeout_ms);
		limit_property(conf, "socket.timeout.ms", settings->transaction_timeout_ms);
		message_timeout_ms = Min(message_timeout_ms, settings->transaction_timeout_ms);
	}
	set_number(conf, "message.timeout.ms", message_timeout_ms);
	if (settings->batch_bytes > 0)
		limit_property(conf, "batch.size", settings->batch_bytes);
	/* where nobody waits, nobody collects reports of success */
	if (!settings->wait_for_acks)
		set_property(conf, "delivery.report.only.error", "true", false);
	check_tokens(conf, config);
	return conf;
}

const char *
kafka_library_version(void)
{
	return rd_kafka_version_str();
}

const char *
kafka_library_features(void)
{
	static char features[KAFKA_ERROR_TEXT];

	if (features[0] == '\0')
	{
		rd_kafka_conf_t *conf = rd_kafka_conf_new();
		size_t		size = sizeof(features);

		if (rd_kafka_conf_get(conf, "builtin.features", features, &size) != RD_KAFKA_CONF_OK)
			features[0] = '\0';
		rd_kafka_conf_destroy(conf);
	}
	return features;
}
