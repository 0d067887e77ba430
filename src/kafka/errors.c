/*
 * errors.c
 *	  librdkafka's errors as PostgreSQL errors: SQLSTATE, place, what to do next.
 *	  Main thread only.
 */
#include "postgres.h"

#include "kafka/kafka_internal.h"

/* Does the broker, or TLS on the way to it, refuse us for good? */
bool
kafka_error_refuses(rd_kafka_resp_err_t err)
{
	switch (err)
	{
		case RD_KAFKA_RESP_ERR__AUTHENTICATION:
		case RD_KAFKA_RESP_ERR__SSL:
		case RD_KAFKA_RESP_ERR__FATAL:
		case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
		case RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE:
		case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
			return true;
		default:
			return false;
	}
}

/*
 * The same for an error of the connection: with TLS 1.3 the broker's verdict on
 * our certificate comes as an alert in place of the first answer.
 */
bool
kafka_error_is_alert(rd_kafka_resp_err_t err, const char *text)
{
	return err == RD_KAFKA_RESP_ERR__TRANSPORT &&
		strstr(text, "SSL routines") != NULL && strstr(text, " alert ") != NULL;
}

/* Does the library go on trying by itself, so that waiting may help? */
bool
kafka_error_passes(rd_kafka_resp_err_t err)
{
	switch (err)
	{
		case RD_KAFKA_RESP_ERR__TIMED_OUT:
		case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
		case RD_KAFKA_RESP_ERR__TRANSPORT:
		case RD_KAFKA_RESP_ERR__RESOLVE:
		case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		case RD_KAFKA_RESP_ERR__NODE_UPDATE:
		case RD_KAFKA_RESP_ERR__WAIT_CACHE:
		case RD_KAFKA_RESP_ERR__WAIT_COORD:
		case RD_KAFKA_RESP_ERR__IN_PROGRESS:
		case RD_KAFKA_RESP_ERR__RETRY:
		case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
		case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
		case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
		case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
		case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
		case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
			return true;
		default:
			return false;
	}
}

/* One of the two ways to end up here: the TCP or TLS layer, or SASL. */
void
kafka_raise_refused(KafkaClient *client, rd_kafka_resp_err_t err, const char *text)
{
	const char *server_name = client->server_name;
	const char *hint;

	/* it knows the topics */
	if (err == RD_KAFKA_RESP_ERR__FATAL && client->handle && client->handle->key.producer)
		kafka_producer_raise_cause((KafkaProducer *) client);
	if (err == RD_KAFKA_RESP_ERR__FATAL && client->handle && client->handle->fatal != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_raise_write(client, client->handle->fatal, NULL, -1, 0, text);
	if (err == RD_KAFKA_RESP_ERR__FATAL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("Kafka client of server \"%s\" has failed", server_name),
				 errdetail("%s.", text)));

	if (err == RD_KAFKA_RESP_ERR__SSL)
	{
		if (strstr(text, "certificate verify failed") != NULL)
			hint = "Give the authority that signed the broker's certificate as \"ssl.ca.pem\" of the server, and check the host name.";
		else if (strstr(text, "bad certificate") != NULL || strstr(text, "certificate required") != NULL)
			hint = "The broker wants a client certificate: set \"ssl.certificate.pem\" and \"ssl.key.pem\" in the user mapping.";
		else
			hint = "Check \"security.protocol\" of the server and the port in bootstrap_servers.";
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("TLS connection to Kafka server \"%s\" was refused", server_name),
				 errdetail("%s.", text),
				 errhint("%s", hint)));
	}

	/* KIP-84 wants a fresh nonce; the library repeats one before 2.6.1, which Kafka 4 refuses */
	if (strstr(text, "mechanism SCRAM-") != NULL && rd_kafka_version() < 0x020601ff)
		hint = psprintf("Check sasl_username and sasl_password in the user mapping.  If they are right: librdkafka %s "
						"cannot log in to Kafka 4 with SCRAM; install 2.6.1 or newer, or use SASL/PLAIN over TLS.",
						rd_kafka_version_str());
	else if (strstr(text, "OAUTHBEARER") != NULL)
		hint = "Check what the options \"sasl.oauthbearer..\" of server and user mapping say.";
	else
		hint = "Check sasl_username and sasl_password in the user mapping, and \"sasl.mechanism\" of the server.";
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
			 errmsg("Kafka server \"%s\" refused authentication", server_name),
			 errdetail("%s.", text),
			 errhint("%s", hint)));
}

/* "Topic "t", partition 3, offset 812: text." with what is known of it */
static char *
place(const char *topic, int32 partition, int64 offset, const char *text)
{
	int			len = strlen(text);

	/* some of the library's sentences end with one */
	while (len > 0 && text[len - 1] == '.')
		len--;
	if (topic == NULL)
		return psprintf("%.*s.", len, text);
	if (partition < 0)
		return psprintf("Topic \"%s\": %.*s.", topic, len, text);
	if (offset < 0)
		return psprintf("Topic \"%s\", partition %d: %.*s.", topic, partition, len, text);
	return psprintf("Topic \"%s\", partition %d, offset " INT64_FORMAT ": %.*s.", topic, partition, offset, len, text);
}

static void raise_other(const char *server, const char *topic, int32 partition, int64 offset,
						const char *text) pg_attribute_noreturn();

static void
raise_other(const char *server, const char *topic, int32 partition, int64 offset, const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_ERROR),
			 errmsg("Kafka server \"%s\" reported an error", server),
			 errdetail("%s", place(topic, partition, offset, text))));
}

/*
 * Raise what librdkafka reported.  topic NULL, partition and offset -1 where
 * there is none; text NULL for the library's words for the code.
 */
void
kafka_raise(KafkaClient *client, rd_kafka_resp_err_t err, const char *topic,
			int32 partition, int64 offset, const char *text)
{
	const char *server = client->server_name;
	const char *last = client->handle ? client->handle->last_error : "";

	if (kafka_error_refuses(err))
		kafka_raise_refused(client, err, text ? text : rd_kafka_err2str(err));

	if (text == NULL || text[0] == '\0')
		text = rd_kafka_err2str(err);

	if (kafka_error_passes(err))
		ereport(ERROR,
				(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
				 errmsg("Kafka server \"%s\" did not answer within %d ms", server, client->waited_ms),
				 errdetail("%s", place(topic, partition, offset, last[0] ? last : text)),
				 errhint("Check bootstrap_servers of the server, and that the brokers run and can be reached from here.")));

	switch (err)
	{
		case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
		case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
			if (partition >= 0)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_TABLE_NOT_FOUND),
						 errmsg("partition %d of topic \"%s\" does not exist on Kafka server \"%s\"",
								partition, topic, server)));
			ereport(ERROR,
					(errcode(ERRCODE_FDW_TABLE_NOT_FOUND),
					 errmsg("topic \"%s\" does not exist on Kafka server \"%s\"", topic ? topic : "", server),
					 errhint("Check the option \"topic\" of the foreign table; a topic is not created by using it.")));
			break;

		case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 topic ? errmsg("Kafka server \"%s\" denies access to topic \"%s\"", server, topic) :
					 errmsg("Kafka server \"%s\" denies access", server),
					 errdetail("%s", place(topic, partition, offset, text)),
					 errhint("The Kafka user needs the operations Describe and Read on the topic.")));
			break;

		case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
		case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
		case RD_KAFKA_RESP_ERR__NO_OFFSET:
			ereport(ERROR,
					(errcode(ERRCODE_FDW_ERROR),
					 errmsg("offset " INT64_FORMAT " of partition %d of topic \"%s\" is not in the log",
							offset, partition, topic),
					 errdetail("%s", place(topic, partition, offset, text)),
					 errhint("The messages have expired, or the topic was created anew.")));
			break;

		case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
		case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
		case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
		case RD_KAFKA_RESP_ERR__BAD_MSG:
		case RD_KAFKA_RESP_ERR_INVALID_MSG:
			ereport(ERROR,
					(errcode(ERRCODE_FDW_ERROR),
					 errmsg("could not read a batch of messages of topic \"%s\"", topic ? topic : ""),
					 errdetail("%s", place(topic, partition, offset, text)),
					 errhint("librdkafka %s was built with: %s.", kafka_library_version(), kafka_library_features())));
			break;

		default:
			raise_other(server, topic, partition, offset, text);
	}
	pg_unreachable();
}

/*
 * The same for what was to be written.  size is that of the message, 0 if there
 * is no single one.
 */
void
kafka_raise_write(KafkaClient *client, rd_kafka_resp_err_t err, const char *topic,
				  int32 partition, Size size, const char *text)
{
	const char *server = client->server_name;

	if (text == NULL || text[0] == '\0')
		text = rd_kafka_err2str(err);

	switch (err)
	{
		case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 size > 0 ? errmsg("message of %zu bytes is too large for topic \"%s\"", size, topic ? topic : "") :
					 errmsg("batch of messages is too large for topic \"%s\"", topic ? topic : ""),
					 errdetail("%s", place(topic, partition, -1, text)),
					 size > 0 ? errhint("The limits are \"max.message.bytes\" of the topic and \"message.max.bytes\" of the foreign server.") :
					 errhint("If no single message exceeds \"max.message.bytes\" of the topic, set \"batch.size\" of the foreign server to less than that.")));
			break;

		case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 topic ? errmsg("Kafka server \"%s\" denies writing to topic \"%s\"", server, topic) :
					 errmsg("Kafka server \"%s\" denies writing to a topic", server),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("The Kafka user needs the operations Describe and Write on the topic.")));
			break;

		case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 topic ? errmsg("Kafka server \"%s\" denies writing to topic \"%s\"", server, topic) :
					 errmsg("Kafka server \"%s\" denies writing", server),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("The Kafka user needs the operations Describe and Write on the topic, and with brokers before Kafka 2.8 IdempotentWrite on the cluster.")));
			break;

		case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("Kafka server \"%s\" denies transactions", server),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("The Kafka user needs the operations Describe and Write on the transactional id, and Read on the group that keeps offsets.")));
			break;

		case RD_KAFKA_RESP_ERR__FENCED:
		case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
		case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("Kafka transaction was ended by another producer of the same transactional id"),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("Nothing of this transaction is visible; it can be tried again.")));
			break;

		case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("topic \"%s\" does not accept the timestamp of a message", topic ? topic : ""),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("See \"message.timestamp.before.max.ms\" and \"message.timestamp.after.max.ms\" of the topic.")));
			break;

		case RD_KAFKA_RESP_ERR_INVALID_RECORD:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_EXCEPTION),
					 errmsg("topic \"%s\" does not accept a message", topic ? topic : ""),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("A compacted topic takes no messages without a key.")));
			break;

		case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
		case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("topic \"%s\" has too few replicas in sync", topic ? topic : ""),
					 errdetail("%s", place(topic, partition, -1, text)),
					 errhint("See \"min.insync.replicas\" of the topic, and which brokers are down.")));
			break;

			/* these are about reading in kafka_raise */
		case RD_KAFKA_RESP_ERR__BAD_MSG:
		case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
		case RD_KAFKA_RESP_ERR_INVALID_MSG:
			raise_other(server, topic, partition, -1, text);
			break;

		default:
			kafka_raise(client, err, topic, partition, -1, text);
	}
	pg_unreachable();
}
