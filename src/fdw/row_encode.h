/*
 * row_encode.h
 *	  A row as the message that stands for it: key, value and what metadata columns
 *	  say about it.
 */
#ifndef UK_ROW_ENCODE_H
#define UK_ROW_ENCODE_H

#include "fdw/options.h"
#include "kafka/producer.h"
#include "nodes/bitmapset.h"

typedef struct RowEncoder RowEncoder;

/*
 * ERROR 0A000 where the table's formats cannot write.  'given': the columns that the
 * statement gives values for (attnum - FirstLowInvalidHeapAttributeNumber; NULL: all):
 * metadata columns that only show what was read say nothing about the new message.
 * Keeps 'table' by reference; everything is in a child of CurrentMemoryContext.
 */
extern RowEncoder *row_encoder_create(const TopicTable *table, const Bitmapset *given);

/* Forget what the row before has needed. */
extern void row_encoder_reset(RowEncoder *encoder);

/*
 * Which topic the row goes to, before anything of it is encoded: of an INSERT over several
 * topics its metadata column says so (23502 where it is null, 22023 where the table does not
 * read such a topic); of an UPDATE it is that of the message before.
 */
extern void row_encode_topic(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record);
extern void row_encode_same_topic(RowEncoder *encoder, const KafkaOutRecord *origin, KafkaOutRecord *record);

/*
 * Fill in key or value (with timestamp, headers and partition) of *record; valid
 * until the reset.  row_encode_start makes it the empty message of the topic.
 * Errors: 23502 for NULL in a key column of an upsert table; class 22 naming column
 * and key where a value has no form in the format; 428C9 for metadata that is Kafka's
 * to give.
 */
extern void row_encode_start(RowEncoder *encoder, KafkaOutRecord *record);
extern void row_encode_key(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record);
extern void row_encode_value(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record);

/* Does the table's formats allow to write at all? */
extern bool table_is_writable(const TopicTable *table);

/* metadata_write.c: class 22 errors; palloc'd in CurrentMemoryContext. */
extern int64 metadata_write_timestamp(const TopicTable *table, const TopicColumn *column, Datum value);
extern int32 metadata_write_partition(const TopicColumn *column, Datum value);
extern int	metadata_write_headers(const TopicColumn *column, Datum value, KafkaHeader **headers);

#endif							/* UK_ROW_ENCODE_H */
