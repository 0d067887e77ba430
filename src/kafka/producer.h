/*
 * producer.h
 *	  Writing to Kafka: what the rest of the extension knows of producers.
 *
 * The rules of kafka.h hold here too: calls that can only block run in a helper
 * thread or are sliced, every wait is interruptible, nothing outlives an ERROR.
 */
#ifndef UK_PRODUCER_H
#define UK_PRODUCER_H

#include "kafka/kafka.h"

typedef struct KafkaProducer KafkaProducer;

/* One message to send.  NULL key or value = Kafka null; bytes are copied. */
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

typedef enum KafkaPartitioner
{
	KAFKA_PARTITIONER_DEFAULT,	/* Java's: murmur2 of the key bytes; null key: random, sticky */
	KAFKA_PARTITIONER_CONSISTENT,	/* librdkafka's CRC32 */
	KAFKA_PARTITIONER_FNV1A,
	KAFKA_PARTITIONER_RANDOM
} KafkaPartitioner;

/* Partition that the partitioner picks for a non-null key; pure arithmetic. */
extern int32 kafka_partition_of(KafkaPartitioner partitioner, const char *key, Size key_len, int32 npartitions);

typedef struct KafkaProducerSettings
{
	KafkaPartitioner partitioner;
	bool		wait_for_acks;	/* false: acks=0-like 'none' */
	int			message_timeout_ms; /* below the commit timeout */
	const char *transactional_id;	/* NULL: idempotent, not transactional */
	int			transaction_timeout_ms;
} KafkaProducerSettings;

/* As kafka_consumer_acquire: pooled per backend, owned by a memory context. */
extern KafkaProducer *kafka_producer_acquire(const KafkaConfig *config, const KafkaProducerSettings *settings,
											 MemoryContext owner);
extern void kafka_producer_release(KafkaProducer *producer);

/*
 * Queue a message.  Waits, interruptibly, while the client's queue is full.  ERROR
 * at once for what the client itself refuses (too large: 54000, unknown topic
 * or partition: HV00R), naming topic and size.
 */
extern void kafka_produce(KafkaProducer *producer, const KafkaOutRecord *record);

/*
 * Wait until everything queued is acknowledged, at most timeout_ms.  ERROR of the
 * right class with what Kafka said (too large 54000, not authorized 42501, topic
 * missing HV00R, timed out 08006); what is not acknowledged by then is purged.
 */
extern void kafka_producer_flush(KafkaProducer *producer, long timeout_ms);

/* Forget everything queued and not sent; for aborts.  Never raises. */
extern void kafka_producer_purge(KafkaProducer *producer);

/* Offsets of the acknowledged messages since the last call, the last one per partition. */
typedef struct KafkaWritten
{
	const char *topic;
	int32		partition;
	int64		offset;
} KafkaWritten;
extern int	kafka_producer_written(KafkaProducer *producer, KafkaWritten **written);

/*
 * Kafka transactions of a producer with a transactional_id.  begin initializes it
 * the first time (fencing an older one of the same id).  commit stores 'offsets'
 * (topic, partition, next offset) of 'group' in the same transaction, when given.
 */
extern void kafka_transaction_begin(KafkaProducer *producer, long timeout_ms);
extern void kafka_transaction_commit(KafkaProducer *producer, const char *group, int noffsets,
									 const KafkaWritten *offsets, long timeout_ms);
extern void kafka_transaction_abort(KafkaProducer *producer, long timeout_ms);

#endif							/* UK_PRODUCER_H */
