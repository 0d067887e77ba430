/*
 * partition.c
 *	  Which partition a key belongs to: the arithmetic of the partitioners that
 *	  other clients use.  Pure; knows neither brokers nor librdkafka.
 */
#include "postgres.h"

#include "kafka/producer.h"
#include "utils/pg_crc.h"

/* MurmurHash2, 32 bits, with the seed of Kafka's Java client. */
static uint32
murmur2(const unsigned char *data, Size len)
{
	const uint32 m = 0x5bd1e995;
	uint32		h = 0x9747b28c ^ (uint32) len;

	for (; len >= 4; data += 4, len -= 4)
	{
		/* little-endian on every machine */
		uint32		k = data[0] | data[1] << 8 | data[2] << 16 | (uint32) data[3] << 24;

		k *= m;
		k ^= k >> 24;
		k *= m;
		h *= m;
		h ^= k;
	}
	if (len > 0)
	{
		for (Size i = len; i-- > 0;)
			h ^= (uint32) data[i] << (8 * i);
		h *= m;
	}
	h ^= h >> 13;
	h *= m;
	h ^= h >> 15;
	return h;
}

/* FNV-1a, 32 bits, as a magnitude: what Sarama and librdkafka make of it. */
static uint32
fnv1a(const unsigned char *data, Size len)
{
	uint32		h = 0x811c9dc5;

	for (Size i = 0; i < len; i++)
		h = (h ^ data[i]) * 0x01000193;
	return h & 0x80000000 ? ~h + 1 : h;
}

static uint32
crc32(const unsigned char *data, Size len)
{
	pg_crc32	crc;

	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, data, len);
	FIN_TRADITIONAL_CRC32(crc);
	return crc;
}

int32
kafka_partition_of(KafkaPartitioner partitioner, const char *key, Size key_len, int32 npartitions)
{
	const unsigned char *data = (const unsigned char *) key;

	switch (partitioner)
	{
		case KAFKA_PARTITIONER_DEFAULT:
			return (int32) ((murmur2(data, key_len) & 0x7fffffff) % npartitions);
		case KAFKA_PARTITIONER_CONSISTENT:
			return (int32) (crc32(data, key_len) % (uint32) npartitions);
		case KAFKA_PARTITIONER_FNV1A:
			return (int32) (fnv1a(data, key_len) % (uint32) npartitions);
		case KAFKA_PARTITIONER_RANDOM:
			break;
	}
	return -1;
}
