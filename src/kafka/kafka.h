/*
 * kafka.h
 *	  What the rest of the extension knows of Kafka: configurations, consumers,
 *	  offsets, records.  Only the files of this folder include rdkafka.h.
 *
 * Rules of the house (DESIGN.md, decisions 3, 11, 12):
 * - librdkafka's threads never run PostgreSQL code.  Its log and error events
 *   are drained from queues by the calling process.
 * - Every wait is interruptible within a fraction of a second: the main thread
 *   waits on its latch and a pipe, and a call of librdkafka that can only block
 *   runs in a helper thread which is left behind when the wait is cancelled.
 * - No group membership: partitions are assigned, positions are ours.
 * - Nothing survives an ERROR: handles are given back or destroyed by a reset
 *   callback of the memory context they were acquired in.
 */
#ifndef UK_KAFKA_H
#define UK_KAFKA_H

#include "compat.h"

/* Properties of one client: a server's options with the user mapping's on top. */
typedef struct KafkaConfig
{
	Oid			serverid;
	Oid			umid;			/* InvalidOid: no user mapping */
	const char *server_name;	/* for messages */
	int			nprops;			/* in Kafka's own spelling */
	const char **names;
	const char **values;
	int			timeout_ms;		/* how long the broker may take to answer */
	bool		follow;			/* the consumer mostly waits for new records:
								 * long polls, behind which any other call
								 * waits for up to a tenth of a second */
	bool		narrow;			/* a few records here and there: small fetches,
								 * behind which the next one waits less */
	uint32		fingerprint;	/* hash of all properties; a pooled handle with
								 * another fingerprint is not reused */
} KafkaConfig;

typedef struct KafkaConsumer KafkaConsumer;

#define KAFKA_NO_END	PG_INT64_MAX	/* a range that is followed for ever */

/* A piece of one partition: half-open, [start, end). */
typedef struct KafkaRange
{
	const char *topic;
	int32		partition;
	int64		start;
	int64		end;
	int32		source;			/* the reader's own number for this partition, which
								 * its records bear */
	int64		position;		/* out: next offset; also moves over transaction
								 * markers, aborted and compacted records */
	bool		done;			/* out: position has reached end */
} KafkaRange;

typedef enum KafkaTimestampType
{
	KAFKA_TIMESTAMP_NONE,
	KAFKA_TIMESTAMP_CREATE_TIME,
	KAFKA_TIMESTAMP_LOG_APPEND_TIME
} KafkaTimestampType;

/*
 * One record.  key and value point into librdkafka's memory and live until the
 * next kafka_consume() or kafka_consume_stop() of the consumer.  NULL pointer =
 * Kafka null; a non-NULL pointer with length 0 = zero-length (case A04).
 */
typedef struct KafkaRecord
{
	const char *topic;			/* the range's, not a copy */
	int32		partition;
	int32		source;			/* of its range */
	int32		range;			/* index into the ranges of kafka_consume_start */
	int64		offset;
	int64		timestamp;		/* ms since 1970, -1 when unset */
	KafkaTimestampType timestamp_type;
	int32		leader_epoch;	/* -1 where the library cannot tell */
	const char *key;
	Size		key_len;
	const char *value;
	Size		value_len;
	void	   *message;		/* for kafka_record_headers; NULL: a copy of the
								 * record, whose headers are the two below */
	const struct KafkaHeader *headers;
	int			nheaders;
} KafkaRecord;

typedef struct KafkaHeader
{
	const char *name;			/* valid as long as the record */
	const char *value;			/* NULL = null */
	Size		value_len;
} KafkaHeader;

/*
 * Take a consumer from this backend's pool, or make one.  Consumers are pooled
 * by (user mapping, or server where there is none) and configuration; one that
 * stays unused is closed after upsert_kafka.idle_timeout.  The consumer belongs
 * to 'owner': when that context is reset or deleted, on ERROR too, it goes back
 * to the pool (or is destroyed, when it was in the middle of a failed call).
 * queue_kb bounds the prefetched bytes (0: default of 65536).
 */
extern KafkaConsumer *kafka_consumer_acquire(const KafkaConfig *config, int queue_kb, MemoryContext owner);
extern void kafka_consumer_release(KafkaConsumer *consumer);

/* How long the broker may take from here on, in place of the configured time. */
extern void kafka_consumer_set_timeout(KafkaConsumer *consumer, int timeout_ms);

/*
 * Number of partitions of a topic.  ERROR HV00R (FDW_TABLE_NOT_FOUND) naming server and
 * topic when it does not exist; -1 instead with missing_ok.  Class 08 when no
 * broker answers in time, 28000 when authentication is refused, 42501 when
 * the topic is not authorized.
 */
extern int	kafka_partition_count(KafkaConsumer *consumer, const char *topic, bool missing_ok);

/* The same of many topics at once, in one round trip: fills partitions[n]. */
extern void kafka_partition_counts(KafkaConsumer *consumer, int n, const char *const *topics, bool missing_ok,
								   int *partitions);

/*
 * Low watermark and last stable offset (the end a read_committed reader can
 * reach; the high watermark where no transaction is open) of each range's
 * partition, in one round trip per broker.  Reads range->topic and partition
 * and fills low[i] and end[i]; either may be NULL.
 */
extern void kafka_query_offsets(KafkaConsumer *consumer, int n, const KafkaRange *ranges, int64 *low, int64 *end);

/*
 * First offset with timestamp >= ms[i] (ms since 1970); the end offset where
 * there is none.  No partition may appear twice.
 */
extern void kafka_offsets_for_times(KafkaConsumer *consumer, int n, const KafkaRange *ranges, const int64 *ms, int64 *offsets);

/*
 * What a group has stored for a partition that exists, -1 if nothing; waits for a
 * transaction that is about to store something else.  Errors as above, 42501
 * when the group is not authorized.
 */
extern int64 kafka_group_offset(KafkaConsumer *consumer, const char *group, const char *topic, int32 partition);

/* Topics that brokers and their companions keep for themselves are called so. */
#define INTERNAL_TOPIC_PREFIX	"__"

/* Names of all topics (internal ones left out), palloc'd, sorted. */
extern char **kafka_list_topics(KafkaConsumer *consumer, int *ntopics);

/*
 * Start reading 'ranges' (kept by reference; position and done are updated in
 * place by kafka_consume).  An empty range is done at once.  Several ranges of
 * one partition are read one after another; they must not overlap.  Restarts the
 * consumer when it was reading already.  ERROR HV00R when a partition does not
 * exist.
 */
extern void kafka_consume_start(KafkaConsumer *consumer, KafkaRange *ranges, int n);

/*
 * Wait up to timeout_ms for records and fill at most max of them; frees the
 * records of the previous call.  Returns how many; 0 means: nothing yet, or a
 * range became done or moved (see position) without a record, or the process
 * latch was set (it is not reset here when wake_on_latch).  Records outside
 * their range are not returned.  timeout_ms 0 never waits.
 * Errors: HV000-class or 08 with topic and partition; an offset that the
 * broker no longer has raises FDW_ERROR with *out_of_range set to the range's
 * index first, when that pointer is given.  When every open range has an end
 * and nothing at all comes for the configured timeout: 08006 naming what is
 * missing.  A range without end waits for ever.
 */
extern int	kafka_consume(KafkaConsumer *consumer, KafkaRecord *records, int max, long timeout_ms,
						  bool wake_on_latch, int *out_of_range);

/* End the reading; the ranges may be freed.  More partitions: start anew. */
extern void kafka_consume_stop(KafkaConsumer *consumer);

/*
 * Is there a broker that answers?  kafka_knock asks without waiting and
 * kafka_answered tells: false while there is no answer yet; kafka_wait_fd's descriptor
 * becomes readable with it, unless kafka_consume has emptied it.  ERROR
 * of class 08 after timeout_ms, 28000 where we are refused.  Reading goes on
 * meanwhile; any other call takes the question's place.
 */
extern void kafka_knock(KafkaConsumer *consumer, int timeout_ms);
extern bool kafka_answered(KafkaConsumer *consumer);

/*
 * File descriptor that becomes readable when kafka_consume has something.  It
 * tells of what comes, not of what is there: wait on it only after kafka_consume
 * has returned 0.
 */
extern int	kafka_wait_fd(KafkaConsumer *consumer);

/* The client's last error in its own words, "" when there was none. */
extern const char *kafka_last_error(KafkaConsumer *consumer);

/* Headers in wire order; returns their number.  *headers is palloc'd. */
extern int	kafka_record_headers(const KafkaRecord *record, KafkaHeader **headers);

/* "2.0.2", and the codecs it was built with: for upsert_kafka.version() */
extern const char *kafka_library_version(void);
extern const char *kafka_library_features(void);

/*
 * Is this client property one that a server (in_mapping false) or a user
 * mapping may set?  KAFKA_PROP_UNKNOWN gives the caller a chance to suggest
 * the closest of kafka_property_names().
 */
typedef enum KafkaPropertyClass
{
	KAFKA_PROP_UNKNOWN,			/* no such property, or not on our list */
	KAFKA_PROP_PUBLIC,			/* server option */
	KAFKA_PROP_SECRET,			/* user mapping only */
	KAFKA_PROP_FILE,			/* reads a file: needs pg_read_server_files */
	KAFKA_PROP_RESERVED			/* ours to set, or refused: runs code */
} KafkaPropertyClass;
extern KafkaPropertyClass kafka_property_class(const char *name);
extern const char *const *kafka_property_names(void);	/* NULL-terminated */

/* Would librdkafka take this value?  false and *message (palloc'd) if not. */
extern bool kafka_property_check(const char *name, const char *value, char **message);

#endif							/* UK_KAFKA_H */
