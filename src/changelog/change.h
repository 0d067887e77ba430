/*
 * change.h
 *	  A change is one decoded message: key columns, value columns, row kind and
 *	  coordinates.  This is the one decode path (decision 1): FDW scans, apply,
 *	  dry runs and error replay call change_decode().
 */
#ifndef UK_CHANGE_H
#define UK_CHANGE_H

#include "fdw/options.h"
#include "nodes/bitmapset.h"

typedef struct Change
{
	RowKind		kind;
	int32		record;			/* index of its record in the decoded array */
	int32		partition;
	int64		offset;
	int64		timestamp;		/* Kafka's, ms */
	int64		event_time;		/* TimestampTz; filled in by apply, not by the decoder */
	Datum	   *values;			/* TopicTable.natts of them, attnum - 1 */
	bool	   *isnull;
} Change;

/* A message that could not be decoded. */
typedef struct ChangeError
{
	int32		record;
	int			sqlerrcode;
	const char *column;			/* NULL if the message as a whole is wrong */
	const char *message;		/* primary text of what was wrong */
	const char *hint;
	bool		key_known;		/* values below hold its typed key */
	Datum	   *values;
	bool	   *isnull;
} ChangeError;

typedef struct ChangeBatch
{
	MemoryContext context;		/* everything below lives here */
	int			nchanges;
	int			max_changes;
	Change	   *changes;		/* in record order */
	int			nerrors;
	int			max_errors;
	ChangeError *errors;
	int			nrecords;		/* records consumed: less than given when a
								 * message stopped the batch */
} ChangeBatch;

typedef enum DecodeMode
{
	DECODE_RAISE,				/* ERROR with coordinates at the first bad message */
	DECODE_STOP,				/* end the batch before it: nrecords is its index,
								 * errors[0] tells why */
	DECODE_SKIP					/* note it in errors[] and go on */
} DecodeMode;

typedef struct ChangeDecoder ChangeDecoder;

/*
 * A decoder for the columns in 'wanted' (attnum - FirstLowInvalidHeapAttributeNumber
 * as everywhere; NULL = all).  Key columns of an upsert table are always decoded.
 * Allocated in CurrentMemoryContext.
 */
extern ChangeDecoder *change_decoder_create(const TopicTable *table, const Bitmapset *wanted);

extern ChangeBatch *change_batch_create(MemoryContext parent);
extern void change_batch_reset(ChangeBatch *batch);

/*
 * Decode records[0 .. n) and append to batch.  Upsert tables: a null value is
 * ROW_DELETE with only key (and metadata) columns set; key columns come from the key
 * (case X05) and are never NULL (23502, case X01).  Append tables: every row is
 * ROW_INSERT.  DECODE_STOP and DECODE_SKIP use internal subtransactions, one per
 * run of good messages.  Interruptible.
 */
extern void change_decode(ChangeDecoder *decoder, const KafkaRecord *records, int n, ChangeBatch *batch, DecodeMode mode);

/*
 * Decode only the key of one record into values/isnull (of TopicTable.natts).
 * Returns false if its key is bad in a way that DECODE_SKIP would skip.
 * Used by scans that reduce per key before decoding values.
 */
extern void change_decode_key(ChangeDecoder *decoder, const KafkaRecord *record, Datum *values, bool *isnull);
extern void change_decode_value(ChangeDecoder *decoder, const KafkaRecord *record, Datum *values, bool *isnull);

/* "+I" "-U" "+U" "-D" */
extern const char *row_kind_text(RowKind kind);

/*
 * ERROR in the house's form: primary text names column and foreign table, detail
 * topic, partition, offset and the cause, hint what to do next.
 */
extern void change_error_raise(const TopicTable *table, const KafkaRecord *record, const ChangeError *error) pg_attribute_noreturn();

/* The same as text, for logs, the errors table and state_detail. */
extern char *change_error_text(const TopicTable *table, const KafkaRecord *record, const ChangeError *error);

#endif							/* UK_CHANGE_H */
