/*
 * properties.c
 *	  Client properties: which ones a user may set and where, and the values
 *	  that are always ours.  The list is an allow-list; what librdkafka learns
 *	  later is unknown here until somebody has thought about it.
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

typedef struct KafkaProperty
{
	const char *name;
	KafkaPropertyClass class;
} KafkaProperty;

/*
 * Reserved are those that run code or commands (plugin.library.paths, ssl.engine.*,
 * ssl.providers, sasl.kerberos.kinit.cmd and the two that are pasted into it),
 * those whose value the reading of positions rests on, and those that belong to
 * group membership, which there is none of.
 */
static const KafkaProperty properties[] = {
	{"api.version.fallback.ms", KAFKA_PROP_PUBLIC},
	{"api.version.request", KAFKA_PROP_PUBLIC},
	{"api.version.request.timeout.ms", KAFKA_PROP_PUBLIC},
	{"bootstrap.servers", KAFKA_PROP_PUBLIC},
	{"broker.address.family", KAFKA_PROP_PUBLIC},
	{"broker.address.ttl", KAFKA_PROP_PUBLIC},
	{"broker.version.fallback", KAFKA_PROP_PUBLIC},
	{"check.crcs", KAFKA_PROP_PUBLIC},
	{"client.dns.lookup", KAFKA_PROP_PUBLIC},
	{"client.id", KAFKA_PROP_PUBLIC},
	{"client.rack", KAFKA_PROP_PUBLIC},
	{"connections.max.idle.ms", KAFKA_PROP_PUBLIC},
	{"debug", KAFKA_PROP_PUBLIC},
	{"enable.ssl.certificate.verification", KAFKA_PROP_PUBLIC},
	{"fetch.error.backoff.ms", KAFKA_PROP_PUBLIC},
	{"fetch.max.bytes", KAFKA_PROP_PUBLIC},
	{"fetch.message.max.bytes", KAFKA_PROP_PUBLIC},
	{"fetch.min.bytes", KAFKA_PROP_PUBLIC},
	{"fetch.wait.max.ms", KAFKA_PROP_PUBLIC},
	{"group.id", KAFKA_PROP_PUBLIC},
	{"isolation.level", KAFKA_PROP_PUBLIC},
	{"log.connection.close", KAFKA_PROP_PUBLIC},
	{"log_level", KAFKA_PROP_PUBLIC},
	{"max.in.flight.requests.per.connection", KAFKA_PROP_PUBLIC},
	{"max.partition.fetch.bytes", KAFKA_PROP_PUBLIC},
	{"message.max.bytes", KAFKA_PROP_PUBLIC},
	{"metadata.max.age.ms", KAFKA_PROP_PUBLIC},
	{"receive.message.max.bytes", KAFKA_PROP_PUBLIC},
	{"reconnect.backoff.max.ms", KAFKA_PROP_PUBLIC},
	{"reconnect.backoff.ms", KAFKA_PROP_PUBLIC},
	{"sasl.kerberos.service.name", KAFKA_PROP_PUBLIC},
	{"sasl.mechanism", KAFKA_PROP_PUBLIC},
	{"sasl.mechanisms", KAFKA_PROP_PUBLIC},
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

	{"allow.auto.create.topics", KAFKA_PROP_RESERVED},
	{"auto.commit.interval.ms", KAFKA_PROP_RESERVED},
	{"auto.offset.reset", KAFKA_PROP_RESERVED},
	{"builtin.features", KAFKA_PROP_RESERVED},
	{"enable.auto.commit", KAFKA_PROP_RESERVED},
	{"enable.auto.offset.store", KAFKA_PROP_RESERVED},
	{"enable.partition.eof", KAFKA_PROP_RESERVED},
	{"enable.sasl.oauthbearer.unsecure.jwt", KAFKA_PROP_RESERVED},
	{"enabled_events", KAFKA_PROP_RESERVED},
	{"group.instance.id", KAFKA_PROP_RESERVED},
	{"group.protocol.type", KAFKA_PROP_RESERVED},
	{"heartbeat.interval.ms", KAFKA_PROP_RESERVED},
	{"interceptors", KAFKA_PROP_RESERVED},
	{"internal.termination.signal", KAFKA_PROP_RESERVED},
	{"log.queue", KAFKA_PROP_RESERVED},
	{"max.poll.interval.ms", KAFKA_PROP_RESERVED},
	{"metadata.broker.list", KAFKA_PROP_RESERVED},
	{"offset.store.method", KAFKA_PROP_RESERVED},
	{"opaque", KAFKA_PROP_RESERVED},
	{"partition.assignment.strategy", KAFKA_PROP_RESERVED},
	{"plugin.library.paths", KAFKA_PROP_RESERVED},
	{"queued.max.messages.kbytes", KAFKA_PROP_RESERVED},
	{"queued.min.messages", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.keytab", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.kinit.cmd", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.min.time.before.relogin", KAFKA_PROP_RESERVED},
	{"sasl.kerberos.principal", KAFKA_PROP_RESERVED},
	{"sasl.oauthbearer.config", KAFKA_PROP_RESERVED},
	{"session.timeout.ms", KAFKA_PROP_RESERVED},
	{"ssl.engine.id", KAFKA_PROP_RESERVED},
	{"ssl.engine.location", KAFKA_PROP_RESERVED},
	{"ssl.providers", KAFKA_PROP_RESERVED},
	{"statistics.interval.ms", KAFKA_PROP_RESERVED},
	{"test.mock.broker.rtt", KAFKA_PROP_RESERVED},
	{"test.mock.num.brokers", KAFKA_PROP_RESERVED},
	{"topic.blacklist", KAFKA_PROP_RESERVED}
};

/* A value the user may replace ('force' false), or that stays as it is. */
typedef struct KafkaSetting
{
	const char *name;
	const char *value;
	bool		force;
	bool		newer;			/* librdkafka 2.0.2 does not know it */
} KafkaSetting;

static const KafkaSetting settings[] = {
	{"client.id", "upsert_kafka", false},
	/* assign() wants a group; it is never joined, nothing is committed to it */
	{"group.id", "upsert_kafka", false},
	{"check.crcs", "true", false},
	{"isolation.level", "read_committed", false},
	{"socket.keepalive.enable", "true", false},
	{"reconnect.backoff.max.ms", "2000", false},

	{"allow.auto.create.topics", "false", true},
	{"auto.offset.reset", "error", true},
	{"enable.auto.commit", "false", true},
	{"enable.auto.offset.store", "false", true},
	{"enable.partition.eof", "true", true},
	{"log.queue", "true", true},
	/* a session may rest between two fetches of a cursor for ever */
	{"max.poll.interval.ms", "86400000", true},
	/* 0: never runs sasl.kerberos.kinit.cmd */
	{"sasl.kerberos.min.time.before.relogin", "0", true},
	/*
	 * 2.0.2 looks again only a second after its queue was full, so the queue
	 * must last longer than that.  queued.max.messages.kbytes bounds the bytes.
	 */
	{"queued.min.messages", "200000", true},
	{"enable.metrics.push", "false", true, true}
};

KafkaPropertyClass
kafka_property_class(const char *name)
{
	for (int i = 0; i < lengthof(properties); i++)
	{
		if (strcmp(properties[i].name, name) == 0)
			return properties[i].class;
	}
	return KAFKA_PROP_UNKNOWN;
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

/*
 * A configuration with everything set: our defaults, the user's values, what is
 * always ours.  The caller owns it.
 */
rd_kafka_conf_t *
kafka_conf_build(const KafkaConfig *config, int queue_kb)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char		kbytes[32];

	for (int i = 0; i < lengthof(settings); i++)
	{
		if (!settings[i].force)
			set_property(conf, settings[i].name, settings[i].value, settings[i].newer);
	}
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

	for (int i = 0; i < config->nprops; i++)
	{
		KafkaPropertyClass class = kafka_property_class(config->names[i]);

		if (class == KAFKA_PROP_UNKNOWN || class == KAFKA_PROP_RESERVED)
		{
			rd_kafka_conf_destroy(conf);
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("client property \"%s\" cannot be set", config->names[i])));
		}
		set_property(conf, config->names[i], config->values[i], false);
	}
	for (int i = 0; i < lengthof(settings); i++)
	{
		if (settings[i].force)
			set_property(conf, settings[i].name, settings[i].value, settings[i].newer);
	}
	snprintf(kbytes, sizeof(kbytes), "%d", queue_kb);
	set_property(conf, "queued.max.messages.kbytes", kbytes, false);
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
