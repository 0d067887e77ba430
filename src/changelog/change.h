/*
 * change.h
 *	  A change is one decoded message: key columns, value columns, row kind and
 *	  coordinates.  This is the one decode path (decision 1): FDW scans, apply,
 *	  dry runs and error replay call change_decode().
 */
#ifndef UK_CHANGE_H
#define UK_CHANGE_H

#include "access/sysattr.h"
#include "fdw/options.h"
#include "nodes/bitmapset.h"

typedef struct Change
{
	RowKind		kind;
	int32		record;			/* index of its record: in the decoded array, or
								 * counted over several of them since the batch was reset */
	int32		source;			/* of its record: the partition, see fdw/topic_find.h */
	int64		offset;
	int64		timestamp;		/* Kafka's, ms */
	int64		event_time;		/* TimestampTz; filled in by apply, not by the decoder */
	bool		bare;			/* filled in by apply: a delete that has no time of its own
								 * in a topic whose deletes have one */
	const Bitmapset *unchanged; /* indexes of columns that are NULL since the message
								 * does not hold their value: they keep the row's */
	bool		moves;			/* a delete whose row goes on under another key */
	const Datum *old_key;		/* the row had this key until now (key columns only, by
								 * attnum - 1), and 'unchanged' means that row's values */
	Datum	   *values;			/* TopicTable.natts of them, attnum - 1 */
	bool	   *isnull;
} Change;

/* A message that could not be decoded. */
typedef struct ChangeError
{
	int32		record;
	int			sqlerrcode;
	bool		in_key;			/* the key was wrong, else the value or metadata */
	bool		ignored;		/* ignore_parse_errors: passed by, whatever the mode */
	const char *column;			/* NULL if the key or value as a whole is wrong */
	const char *message;		/* what was wrong with it */
	const char *hint;			/* of the cause, or NULL */
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
	ChangeError *errors;		/* in record order */
	ChangeError *stop;			/* the last of them, if it ended the batch */
	int			nrecords;		/* records consumed since the reset: less than
								 * given when a message stopped the batch */

	/* private: room for rows, cut into pieces as they come */
	int			free_rows;
	int			free_natts;
	Datum	   *free_values;
	bool	   *free_isnull;
} ChangeBatch;

typedef enum DecodeMode
{
	DECODE_RAISE,				/* ERROR with coordinates at the first bad message */
	DECODE_STOP,				/* end the batch before it: nrecords is its index,
								 * stop tells why */
	DECODE_SKIP					/* note it in errors[] and go on */
} DecodeMode;

typedef struct ChangeDecoder ChangeDecoder;

/*
 * A decoder for the columns in 'wanted' (attnum - FirstLowInvalidHeapAttributeNumber
 * as everywhere; NULL or the whole row = all, CHANGE_WANT_NOTHING = none).  Key
 * columns of an upsert table are always decoded, so that a decoder which wants
 * nothing gives keys and row kinds.  A value of which no column is wanted is not looked
 * at, except where it may say by itself that it is no row.
 * Allocated in CurrentMemoryContext; keeps 'table' by reference.
 */
extern ChangeDecoder *change_decoder_create(const TopicTable *table, const Bitmapset *wanted);
#define CHANGE_WANT_NOTHING \
	bms_make_singleton(TableOidAttributeNumber - FirstLowInvalidHeapAttributeNumber)

/*
 * From here on changes say by 'unchanged' what their messages did not hold; otherwise
 * such columns are just NULL, and the first one raises a WARNING.  Where the format's
 * messages tell of a key's change, 'old_key' is set beside 'unchanged', of a key of these
 * columns, and with 'moves' so is that of deletes.
 */
extern void change_decoder_tell_unchanged(ChangeDecoder *decoder, int nkeys, const AttrNumber *keys, bool moves);

extern ChangeBatch *change_batch_create(MemoryContext parent);
extern void change_batch_reset(ChangeBatch *batch);

/*
 * Decode records[0 .. n) and append to batch.  Upsert tables: a null value is
 * ROW_DELETE with only key and metadata columns set; key columns come from the key
 * (case X05) and are never NULL (23502, case X01).  Append tables: every row is
 * ROW_INSERT, unless the format tells row kinds; a null key or value leaves its
 * columns NULL.  Formats that tell row kinds may give no row, or two, or ROW_TRUNCATE, which
 * has no columns but metadata and which no delete of single rows stands for.  DECODE_STOP and
 * DECODE_SKIP use internal subtransactions, one per run of good messages.  Interruptible.
 *
 * With ignore_parse_errors a message that turned out bad is decoded once more, now with
 * NULL for values that are no good.  What cannot be parsed even so is in errors[] as
 * ignored, in every mode, for the caller to count.  Internal subtransactions in every mode,
 * then; where they cannot be (parallel mode before 17) the option is without effect.
 *
 * What is in the batch holds after an ERROR of a later message, too.  Texts that are
 * the same for every row (topic, row kind) belong to the decoder, so it must live as
 * long as the rows.  Errors that are not the message's (cancel, memory, ..) pass
 * through, with topic, partition and offset in their context.
 */
extern void change_decode(ChangeDecoder *decoder, const KafkaRecord *records, int n, ChangeBatch *batch, DecodeMode mode);

/*
 * Decode the key of one record into values/isnull (of TopicTable.natts) and
 * CurrentMemoryContext; other columns are left alone.  ERROR in the house's form.
 * For scans that reduce per key before they decode values.
 */
extern void change_decode_key(ChangeDecoder *decoder, const KafkaRecord *record, Datum *values, bool *isnull);

/* The error of a ROW_TRUNCATE where the topic has several partitions (case X10). */
extern void change_error_truncate(ChangeError *error);

/* "+I" "-U" "+U" "-D"; an upsert shows as "+I", the row that there is */
extern const char *row_kind_text(RowKind kind);

/* The inverse: ERROR 22023 for other texts. */
extern RowKind row_kind_parse(const char *text);

/*
 * ERROR in the house's form: primary text names column and foreign table, detail
 * topic, partition, offset and the cause, hint what to do next.
 */
extern void change_error_raise(const TopicTable *table, const KafkaRecord *record, const ChangeError *error) pg_attribute_noreturn();

/* The same as text, for logs, the errors table and state_detail. */
extern char *change_error_text(const TopicTable *table, const KafkaRecord *record, const ChangeError *error);

/* The full stop behind a text that becomes a sentence: "" if it has an end already. */
extern const char *sentence_end(const char *sentence);

#endif							/* UK_CHANGE_H */
