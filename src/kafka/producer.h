/*
 * producer.h
 *	  Writing to Kafka: what the rest of the extension knows of producers.
 *
 * The rules of kafka.h hold here too: calls that can only block run in a helper
 * thread or are sliced, every wait is interruptible, nothing outlives an ERROR.
 * That includes messages: what is queued and not acknowledged when a producer is
 * released is purged, never sent later.  (What is on its way to the broker at
 * that moment may arrive.)
 *
 * After an ERROR of one of these functions a producer can be released and
 * nothing else.
 */
#ifndef UK_PRODUCER_H
#define UK_PRODUCER_H

#include "kafka/kafka.h"

typedef struct KafkaProducer KafkaProducer;

/*
 * One message to send.  NULL key or value = Kafka null, a non-NULL pointer with
 * length 0 = zero bytes; everything is copied.
 */
typedef struct KafkaOutRecord
{
	const char *topic;
	int32		partition;		/* -1: by the partitioner */
	int64		timestamp;		/* ms since 1970, -1: the client's clock */
	const char *key;
	Size		key_len;
	const char *value;
	Size		value_len;
	int			nheaders;
	const KafkaHeader *headers;
} KafkaOutRecord;

/* All of them choose one random partition per flush for messages without key. */
typedef enum KafkaPartitioner
{
	KAFKA_PARTITIONER_DEFAULT,	/* Java's: murmur2 of the key bytes */
	KAFKA_PARTITIONER_CONSISTENT,	/* librdkafka's: CRC32 */
	KAFKA_PARTITIONER_FNV1A,	/* Sarama's */
	KAFKA_PARTITIONER_RANDOM	/* another one for each message */
} KafkaPartitioner;

/*
 * Partition that the partitioner picks for a non-null key; pure arithmetic.  -1
 * for KAFKA_PARTITIONER_RANDOM, which picks none.
 */
extern int32 kafka_partition_of(KafkaPartitioner partitioner, const char *key, Size key_len, int32 npartitions);

typedef struct KafkaProducerSettings
{
	KafkaPartitioner partitioner;
	bool		wait_for_acks;	/* false: nobody will know what became of it */
	int			message_timeout_ms; /* a message that is not acknowledged by then
									 * is lost; below the commit timeout */
	int			batch_bytes;	/* no batch of more than one message is larger; 0:
								 * as the server has it */
	const char *transactional_id;	/* NULL: idempotent, not transactional */
	int			transaction_timeout_ms; /* the broker aborts what is open longer */
} KafkaProducerSettings;

/*
 * As kafka_consumer_acquire: pooled per backend, owned by a memory context.
 * (Transactional ones are not pooled: keep them.)  Where wait_for_acks is
 * false the pooled client goes on sending after the release, and for a moment
 * at the end of the process.
 */
extern KafkaProducer *kafka_producer_acquire(const KafkaConfig *config, const KafkaProducerSettings *settings,
											 MemoryContext owner);
extern void kafka_producer_release(KafkaProducer *producer);

/*
 * Number of partitions of a topic, asked for once a minute; ERRORs as
 * kafka_partition_count().
 */
extern int	kafka_producer_partitions(KafkaProducer *producer, const char *topic);

/* ERROR HV00R if a topic does not have this partition, as kafka_produce() would raise it. */
extern void kafka_producer_check_partition(KafkaProducer *producer, const char *topic, int32 partition);

/*
 * The most bytes, key and value, that a message for this topic may have for all that can
 * be known before it is sent.  *batch_bytes: a producer for this topic should make no
 * larger batches; 0 where nothing is wrong with ours.  Asks for the topic's settings, once
 * a minute; nothing is known where that is not allowed.
 */
extern Size kafka_producer_message_limit(KafkaProducer *producer, const char *topic, int *batch_bytes);

/* ERROR 54000 for a message beyond that limit. */
extern void kafka_producer_check_size(KafkaProducer *producer, const KafkaOutRecord *record);

/*
 * Queue a message and return its partition.  Waits, interruptibly, while the
 * client's queue is full.  ERROR at once for what the client itself refuses (too
 * large: 54000, unknown topic or partition: HV00R, a time that cannot be
 * written: 22008), and for what was reported of earlier messages, as in
 * kafka_producer_flush.
 */
extern int32 kafka_produce(KafkaProducer *producer, const KafkaOutRecord *record);

/*
 * The same for many messages of one topic.  Those of one partition stay in their
 * order, which is all that there is; those of different ones do not.
 */
extern void kafka_produce_many(KafkaProducer *producer, int n, const KafkaOutRecord *const *records);

/*
 * Wait until everything queued is acknowledged, at most timeout_ms.  ERROR of the
 * right class with what Kafka said (too large 54000, not authorized 42501, topic
 * missing HV00R, timestamp refused 22008, not acknowledged in time 08006).
 * Without wait_for_acks it returns at once.
 */
extern void kafka_producer_flush(KafkaProducer *producer, long timeout_ms);

/*
 * Give up everything queued and not acknowledged; for aborts, when the release
 * comes later.  Never raises.
 */
extern void kafka_producer_purge(KafkaProducer *producer);

/*
 * Offsets of the acknowledged messages since the last call, the last one per
 * partition; palloc'd.  With a transactional producer they are there before the
 * commit.
 */
typedef struct KafkaWritten
{
	const char *topic;
	int32		partition;
	int64		offset;
} KafkaWritten;
extern int	kafka_producer_written(KafkaProducer *producer, KafkaWritten **written);

/*
 * Kafka transactions of a producer with a transactional_id.  begin initializes it
 * the first time, which aborts what an older producer of the same id left open
 * and fences it.  commit flushes, and stores 'offsets' (topic, partition, next
 * offset) of 'group' in the same transaction, when given.  All wait at most
 * timeout_ms.
 * ERROR 40001 when another producer has taken the id, 08006 when the broker does
 * not answer, 08007 when it is not known whether a commit took place: the next
 * begin, of a new producer of this id, settles that.  A transaction that is open
 * when its producer is released is aborted in the background.
 */
extern void kafka_transaction_begin(KafkaProducer *producer, long timeout_ms);
extern void kafka_transaction_commit(KafkaProducer *producer, const char *group, int noffsets,
									 const KafkaWritten *offsets, long timeout_ms);
extern void kafka_transaction_abort(KafkaProducer *producer, long timeout_ms);

#endif							/* UK_PRODUCER_H */
