/*
 * kafka_internal.h
 *	  What the files of this folder share: handles, jobs, error mapping.
 *	  Nobody else includes it.
 *
 * Three owners: the backend's main thread owns KafkaConsumer (palloc'd), the
 * pool and the reaper own idle and doomed handles (malloc'd, under one mutex),
 * a job's helper thread shares its handle and its job by reference counts.
 */
#ifndef UK_KAFKA_INTERNAL_H
#define UK_KAFKA_INTERNAL_H

#include <librdkafka/rdkafka.h>

#include "kafka/kafka.h"
#include "port/atomics.h"
#include "utils/palloc.h"

#define KAFKA_ERROR_TEXT 512

/*
 * One librdkafka client.  malloc'd, because helper threads and the reaper may
 * hold it longer than any memory context lives.
 */
typedef struct KafkaHandle
{
	pg_atomic_uint32 refcount;	/* one for consumer or pool, one per job */
	rd_kafka_t *rk;
	rd_kafka_queue_t *records;	/* fetched records and partition errors */
	rd_kafka_queue_t *events;	/* client errors and log lines */
	int			fd[2];			/* pipe: readable when a queue has something or a
								 * job has ended */

	/* which consumer may reuse it */
	Oid			serverid;
	Oid			umid;
	uint32		fingerprint;
	int			queue_kb;
	bool		follow;
	bool		narrow;

	/* main thread only */
	bool		answered;		/* a broker has answered some call */
	rd_kafka_resp_err_t refused;	/* authentication or TLS failed, or fatal */
	char		refused_text[KAFKA_ERROR_TEXT];
	char		last_error[KAFKA_ERROR_TEXT];

	/* pool and reaper only */
	int64		idle_until;		/* kafka_now_ms() */
	struct KafkaHandle *next;
} KafkaHandle;

/* A call that can only block, run by a helper thread; see call.c. */
typedef struct KafkaJob
{
	pg_atomic_uint32 refcount;	/* main thread, helper thread */
	pg_atomic_uint32 abandoned; /* set by the main thread: stop early */
	pg_atomic_uint32 done;		/* set by the helper: results are there */
	KafkaHandle *handle;
	int64		deadline;		/* kafka_now_ms() */

	/* what to do, in this order */
	int			ntopics;		/* metadata of these topics */
	char	  **topics;
	bool		all_topics;		/* metadata of all topics */
	int			nlists;			/* then these ListOffsets requests */
	rd_kafka_topic_partition_list_t *lists[2];

	/* results */
	rd_kafka_resp_err_t err;	/* of the whole */
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
	const char *topic;
	rd_kafka_topic_t *rkt;		/* only compared, not owned */
	int			npartitions;	/* length of partitions */
	PartitionSlot *partitions;
} TopicSlots;

typedef struct KnownTopic
{
	char	   *topic;
	int			partitions;
} KnownTopic;

struct KafkaConsumer
{
	KafkaHandle *handle;		/* NULL after release */
	MemoryContext owner;
	MemoryContextCallback callback;
	struct KafkaConsumer *prev; /* list of the live ones, for process exit */
	struct KafkaConsumer *next;
	bool		busy;			/* inside a call: after an ERROR the handle is not
								 * to be reused */
	KafkaJob   *job;			/* running, or its results in use */

	char	   *server_name;
	int			timeout_ms;

	int			nknown;			/* partition counts seen */
	KnownTopic *known;

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

/* client.c */
extern int64 kafka_now_ms(void);
extern void kafka_handle_ref(KafkaHandle *handle);
extern void kafka_handle_unref(KafkaHandle *handle);
extern void kafka_drain_pipe(KafkaHandle *handle);
extern void kafka_drain_events(KafkaHandle *handle);
extern bool kafka_thread_start(void *(*run) (void *), void *arg);

/* consumer.c */
extern void kafka_consumer_free_messages(KafkaConsumer *consumer);
extern void kafka_unassign(KafkaConsumer *consumer, KafkaHandle *handle);

/* call.c */
extern KafkaJob *kafka_job_new(KafkaConsumer *consumer);
extern void kafka_job_topic(KafkaJob *job, const char *topic);
extern void kafka_job_run(KafkaConsumer *consumer);
extern void kafka_job_end(KafkaConsumer *consumer);

/* metadata.c */
extern void kafka_check_partitions(KafkaConsumer *consumer, int n, const KafkaRange *ranges);

/* properties.c */
extern rd_kafka_conf_t *kafka_conf_build(const KafkaConfig *config, int queue_kb);

/* errors.c */
extern void kafka_raise(KafkaConsumer *consumer, rd_kafka_resp_err_t err, const char *topic,
						int32 partition, int64 offset, const char *text) pg_attribute_noreturn();
extern void kafka_raise_refused(const char *server_name, rd_kafka_resp_err_t err, const char *text) pg_attribute_noreturn();
extern bool kafka_error_refuses(rd_kafka_resp_err_t err);
extern bool kafka_error_is_alert(rd_kafka_resp_err_t err, const char *text);
extern bool kafka_error_passes(rd_kafka_resp_err_t err);

#endif							/* UK_KAFKA_INTERNAL_H */
