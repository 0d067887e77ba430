/*
 * decode_internal.h
 *	  A decoder, shared by the files that make it (decoder.c), take one message apart
 *	  (decode.c) and go through many, good and bad (decode_run.c).
 */
#ifndef UK_DECODE_INTERNAL_H
#define UK_DECODE_INTERNAL_H

#include "changelog/change.h"
#include "changelog/metadata.h"
#include "changelog/old_key.h"

typedef enum ValueUse
{
	VALUE_UNUSED,				/* no column wanted: not looked at */
	VALUE_MARKERS,				/* only whether a short one means a delete */
	VALUE_DECODED
} ValueUse;

typedef struct MetadataColumn
{
	int			index;
	bool		row_kind;
	const char *name;
	MetadataReader *reader;
} MetadataColumn;

struct ChangeDecoder
{
	RowSink		sink;
	const TopicTable *table;
	Decoder    *key;			/* NULL: no key column wanted */
	Decoder    *value;
	ValueUse	value_use;
	bool		has_kinds;		/* values tell row kinds */
	int			natts;			/* room of a row: the table's columns, and the marker */
	int			marker;			/* where the delete marker's text is; -1: there is none */
	Size		marker_len;		/* of the text that means a delete */
	bool		tell_unchanged;
	OldKeyReader *old_key;		/* NULL: messages do not tell of it, or nobody asks */
	bool		tell_moves;
	bool		ignores_errors; /* of key or value */
	bool		warned;			/* of a value that the messages do not hold */
	int			nmetadata;
	MetadataColumn *metadata;
	int			nshared;		/* indexes of columns that all rows of a message */
	int		   *shared;			/* have in common: key and metadata */

	/* of the message at hand */
	const KafkaRecord *record;
	bool		in_key;
	bool		key_known;
	int			nrows;			/* emitted by the key or the value */
	ChangeBatch *batch;			/* NULL: a single row, nothing to append to */
	RowKind		kind;			/* of that single row */
};

/*
 * Append the rows of a message to decoder->batch and count it.  After an ERROR, a row that
 * was begun and rows that came before it may be in the batch.
 */
extern void decode_message(ChangeDecoder *decoder, const KafkaRecord *record);

/* Into the row at hand.  False: the message is to be passed by. */
extern bool decode_message_key(ChangeDecoder *decoder, const KafkaRecord *record);

/* The row at hand stays in the batch. */
static inline void
change_batch_keep_row(ChangeBatch *batch)
{
	batch->free_values += batch->free_natts;
	batch->free_isnull += batch->free_natts;
	batch->free_rows--;
}

#endif							/* UK_DECODE_INTERNAL_H */
