/*
 * kafka_internal.h
 *	  What the files of this folder share: handles, jobs, error mapping.
 *	  Nobody else includes it.
 *
 * Three owners: the backend's main thread owns consumers and producers
 * (palloc'd; both begin with a KafkaClient), the pool and the reaper own idle
 * and doomed handles (malloc'd, under one mutex), a job's helper thread shares
 * its handle and its job by reference counts.
 */
#ifndef UK_KAFKA_INTERNAL_H
#define UK_KAFKA_INTERNAL_H

#include <librdkafka/rdkafka.h>

#include "kafka/producer.h"
#include "port/atomics.h"
#include "utils/palloc.h"

#define KAFKA_ERROR_TEXT 512

/* What a handle was made for: another use with the same key may have it. */
typedef struct KafkaHandleKey
{
	Oid			serverid;
	Oid			umid;
	uint32		fingerprint;
	bool		producer;

	/* consumers */
	int			queue_kb;
	bool		follow;
	bool		narrow;

	/* producers */
	bool		wait_for_acks;
	bool		transactional;	/* such a handle is never pooled */
	int			message_timeout_ms;
	int			batch_bytes;
} KafkaHandleKey;

/* A topic that a producer has written to; belongs to its handle. */
typedef struct KafkaTopic
{
	struct KafkaTopic *next;
	char	   *name;
	rd_kafka_topic_t *rkt;
	int			partitions;		/* 0: not known */
	int64		known_until;	/* kafka_now_ms(): ask again then */
	int32		sticky;			/* partition of messages without key, -1: none yet */
	bool		used;			/* written to since the producer, or its transaction, began */
	int			max_bytes;		/* of a batch; 0: nobody knows */
	int64		limit_until;	/* ask for it again then */
	int			nwritten;		/* length of written: never shrinks */
	int64	   *written;		/* by partition: last acknowledged offset, or -1 */
} KafkaTopic;

/*
 * One librdkafka client.  malloc'd, because helper threads and the reaper may
 * hold it longer than any memory context lives.
 */
typedef struct KafkaHandle
{
	pg_atomic_uint32 refcount;	/* one for client or pool, one per job */
	KafkaHandleKey key;
	rd_kafka_t *rk;
	rd_kafka_queue_t *records;	/* consumers: fetched records, partition errors */
	rd_kafka_queue_t *events;	/* errors, log lines, delivery reports */
	int			fd[2];			/* pipe: readable when a queue has something or a
								 * job has ended */

	/* main thread only */
	bool		answered;		/* a broker has answered some call */
	rd_kafka_resp_err_t refused;	/* authentication or TLS failed, or fatal */
	rd_kafka_resp_err_t fatal;	/* what it was, when 'refused' is _FATAL */
	char		refused_text[KAFKA_ERROR_TEXT];
	char		last_error[KAFKA_ERROR_TEXT];
	KafkaTopic *topics;			/* producers */
	bool		transactions_ready; /* initialized: the id is ours */
	bool		in_transaction;

	/* pool and reaper only, under their lock */
	int64		idle_until;		/* kafka_now_ms() */
	bool		given_up;		/* its client is gone, and it will have no other */
	struct KafkaHandle *next;
	struct KafkaHandle *older;	/* of all that the reaper has not taken yet */
} KafkaHandle;

/* A call that can only block, run by a helper thread; see call.c. */
typedef struct KafkaJob
{
	pg_atomic_uint32 refcount;	/* main thread, helper thread */
	pg_atomic_uint32 abandoned; /* set by the main thread: stop early */
	pg_atomic_uint32 done;		/* set by the helper: results are there */
	KafkaHandle *handle;
	int64		deadline;		/* kafka_now_ms() */

	/* what to do: this alone, or else metadata and offsets in this order */
	void		(*run) (struct KafkaJob *job);
	int			ntopics;		/* metadata of these topics */
	char	  **topics;
	bool		all_topics;		/* metadata of all topics */
	int			nlists;			/* then these ListOffsets requests */
	rd_kafka_topic_partition_list_t *lists[2];
	char	   *group;			/* whose offsets lists[0] are */

	/* results */
	rd_kafka_resp_err_t err;	/* of the whole */
	char		text[KAFKA_ERROR_TEXT]; /* of err, "" where it says nothing more */
	int			err_topic;		/* index into topics, or -1 */
	rd_kafka_resp_err_t *topic_err;
	int		   *partitions;		/* of each topic */
	const rd_kafka_metadata_t *metadata;	/* all_topics */
} KafkaJob;

/* Ranges of one partition, in order; reading is in the one called 'active'. */
typedef struct PartitionSlot
{
	int			active;			/* index into ranges; -1: nothing left */
	bool		assigned;
	bool		heard;			/* something of this assignment has come in */
	bool		paused;
	bool		seek;			/* the next range begins far away */
} PartitionSlot;

typedef struct TopicSlots
{
	char	   *topic;			/* a copy: the ranges may be gone when the reading is stopped */
	rd_kafka_topic_t *rkt;		/* only compared, not owned */
	int			npartitions;	/* length of partitions */
	PartitionSlot *partitions;
} TopicSlots;

typedef struct KnownTopic
{
	char	   *topic;
	int			partitions;
} KnownTopic;

/* What consumers and producers have in common: their first member. */
typedef struct KafkaClient
{
	KafkaHandle *handle;		/* NULL after release */
	MemoryContext owner;
	MemoryContextCallback callback;
	struct KafkaClient *prev;	/* list of the live ones, for process exit */
	struct KafkaClient *next;
	bool		busy;			/* inside a call: after an ERROR the handle is not
								 * to be reused */
	KafkaJob   *job;			/* running, or its results in use */

	char	   *server_name;
	int			timeout_ms;		/* how long the broker may take to answer */
	int			waited_ms;		/* what "did not answer within" tells */

	void		(*release) (struct KafkaClient *client);
	/* messages of a delivery report, which it need not free; NULL: none come */
	void		(*delivered) (struct KafkaClient *client, rd_kafka_event_t *event);
} KafkaClient;

struct KafkaConsumer
{
	KafkaClient client;

	int			nknown;			/* partition counts seen */
	KnownTopic *known;
	int			last_known;		/* where the last one asked for was */

	/* reading */
	bool		reading;
	KafkaRange *ranges;
	int			nranges;
	int			nopen;			/* ranges not done */
	int		   *next_range;		/* next range of the same partition, or -1 */
	int			ntopics;
	TopicSlots *topics;
	int			last_topic;		/* where the last record belonged */
	int64		waited_ms;		/* without any progress */

	rd_kafka_message_t **messages;	/* handed out by the last kafka_consume */
	int			nmessages;
	int			maxmessages;
	rd_kafka_message_t *failure;	/* error event met behind records */
};

/* The first message that a producer was told of as lost. */
typedef struct KafkaFailure
{
	rd_kafka_resp_err_t err;	/* NO_ERROR: all is well so far */
	const KafkaTopic *topic;
	int32		partition;
	Size		size;			/* of key and value */
	bool		maybe_written;	/* some message's fate is unknown */
	int64		count;			/* how many were lost */
	char		text[KAFKA_ERROR_TEXT];
} KafkaFailure;

struct KafkaProducer
{
	KafkaClient client;
	KafkaPartitioner partitioner;
	bool		wait_for_acks;
	int			message_timeout_ms;

	KafkaTopic *topic;			/* of the last message */
	rd_kafka_headers_t *headers;	/* of a message on its way into the queue */
	int64		produced;
	int64		outstanding;	/* produced, and no report yet */
	int			unserved;		/* produced since the events were looked at */
	int64		placed_until;	/* ms since 1970, the latest that a message with a
								 * partition of its own may bear; 0: none */
	KafkaFailure failure;

	/* of kafka_produce_many */
	int			max_many;
	int32	   *partitions;
	int		   *order;
	rd_kafka_message_t *messages;
};

/* client.c */
extern int64 kafka_now_ms(void);
extern void kafka_client_open(KafkaClient *client, const KafkaConfig *config, const KafkaHandleKey *key,
							  const KafkaProducerSettings *settings);
extern void kafka_client_close(KafkaClient *client, bool reusable);
extern void kafka_handle_ref(KafkaHandle *handle);
extern void kafka_handle_unref(KafkaHandle *handle);
extern void kafka_drain_pipe(KafkaHandle *handle);
extern void kafka_drain_events(KafkaClient *client);
extern bool kafka_thread_start(void *(*run) (void *), void *arg);

/* call.c */
extern KafkaJob *kafka_job_new(KafkaClient *client);
extern void kafka_job_topic(KafkaJob *job, const char *topic);
extern bool kafka_job_wait(KafkaClient *client, int64 timeout_ms, bool (*enough) (KafkaClient *client));
extern void kafka_job_run(KafkaClient *client, int timeout_ms);
extern void kafka_job_end(KafkaClient *client);
extern bool kafka_job_out_of_time(KafkaJob *job);
extern int	kafka_job_attempt_ms(KafkaJob *job, int64 begun);
extern void kafka_job_pause(void);
extern rd_kafka_event_t *kafka_job_answer(KafkaJob *job, rd_kafka_queue_t *queue, int timeout_ms);

/* metadata.c */
extern void kafka_check_partitions(KafkaConsumer *consumer, int n, const KafkaRange *ranges);

/* producer.c */
extern void kafka_topics_free(KafkaTopic *topics);
extern void kafka_topic_forget_written(KafkaTopic *topic);
extern KafkaTopic *kafka_producer_topic(KafkaProducer *producer, const char *name);
extern void kafka_producer_raise_cause(KafkaProducer *producer);

/* properties.c */
extern rd_kafka_conf_t *kafka_consumer_conf(const KafkaConfig *config, int queue_kb);
extern rd_kafka_conf_t *kafka_producer_conf(const KafkaConfig *config, const KafkaProducerSettings *settings);

/* errors.c */
extern void kafka_raise(KafkaClient *client, rd_kafka_resp_err_t err, const char *topic,
						int32 partition, int64 offset, const char *text) pg_attribute_noreturn();
extern void kafka_raise_refused(KafkaClient *client, rd_kafka_resp_err_t err, const char *text) pg_attribute_noreturn();
extern void kafka_raise_write(KafkaClient *client, rd_kafka_resp_err_t err, const char *topic,
							  int32 partition, Size size, const char *text) pg_attribute_noreturn();
extern bool kafka_error_refuses(rd_kafka_resp_err_t err);
extern bool kafka_error_is_alert(rd_kafka_resp_err_t err, const char *text);
extern bool kafka_error_passes(rd_kafka_resp_err_t err);

#endif							/* UK_KAFKA_INTERNAL_H */
