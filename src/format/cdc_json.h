/*
 * cdc_json.h
 *	  What formats of change events have in common: the envelope and its operation,
 *	  metadata columns, rows before and after a change, and writing in JSON.
 *
 * A format begins its decoder with a CdcDecoder, says in a CdcFormat what its members
 * are called, and knows itself which row stands where in its messages.  One that is not
 * JSON sets the members itself, in JSON's terms, where others use cdc_scan().
 */
#ifndef UK_CDC_JSON_H
#define UK_CDC_JSON_H

#include "format/format.h"
#include "format/json_scan.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/lenient.h"

typedef enum CdcOp
{
	CDC_UNKNOWN,
	CDC_NO_ROW,					/* about something else: DDL, progress .. */
	CDC_TRUNCATE,
	CDC_INSERT,
	CDC_UPDATE,
	CDC_DELETE
} CdcOp;

/* What a value of no bytes is, by the option empty_value. */
typedef enum CdcEmpty
{
	CDC_EMPTY_ERROR,
	CDC_EMPTY_DELETE,
	CDC_EMPTY_IGNORE
} CdcEmpty;

/* What the member of the operation says, exactly. */
typedef struct CdcWord
{
	const char *word;			/* NULL: the last one */
	CdcOp		op;
} CdcWord;

/* Where metadata comes from, in the order of FormatRoutine.metadata. */
typedef struct CdcSource
{
	int			member;			/* of the envelope */
	int			unit_ms;		/* a time, in numbers of so many milliseconds; 0: a value */
} CdcSource;

struct CdcDecoder;

typedef struct CdcFormat
{
	const FormatRoutine *routine;
	const char *const *members; /* of the envelope, all different */
	int			nmembers;
	int			op_member;
	const CdcWord *words;
	const char *producer;		/* for messages: "Debezium" */
	const char *before;			/* names of the rows, for messages */
	const char *after;
	const char *before_hint;	/* where it is missing */
	const char *after_hint;
	ValueStyle	style;			/* where no option says otherwise */
} CdcFormat;

typedef struct CdcMetadataColumn
{
	int			metadata;		/* place in FormatRoutine.metadata */
	int			index;			/* in the sink's arrays */
	const char *name;			/* SQL name */
	Oid			type;
	JsonTarget *target;			/* of texts and objects */
	Datum		value;			/* of the message at hand */
	bool		isnull;
} CdcMetadataColumn;

typedef struct CdcDecoder
{
	Decoder		base;
	const CdcFormat *format;
	bool		upsert;			/* as in DecoderSpec */
	bool		has_key;
	bool		strip_nul;
	bool		ignore_truncate;	/* nor is it applied */
	CdcEmpty	empty;
	bool		strip_framing;
	pg_tz	   *time_zone;
	JsonFields *members;
	JsonText   *found;			/* the members of the message at hand */
	const JsonText *op;			/* the one of the operation */
	int			ncolumns;		/* of the row */
	FormatColumn *columns;
	int			nmetadata;
	CdcMetadataColumn *metadata;

	/*
	 * Set the sink's columns from the row before a change, or after it.  That is the one
	 * of the change: where the message is not JSON, only the format knows its bytes.
	 */
	void		(*read_row) (struct CdcDecoder *decoder, const JsonText *row, bool before, RowSink *sink);
} CdcDecoder;

/* The change of one row, or a TRUNCATE.  A missing or null row is none. */
typedef struct CdcChange
{
	CdcOp		op;
	const JsonText *before;
	const JsonText *after;
} CdcChange;

/* === Reading ================================================================ */

/* Options that cdc_decoder_init() reads: for a format's FormatOption list. */
#define CDC_NUL_OPTION \
	{"nul_handling", "error|strip", "what \\u0000 in text means; PostgreSQL cannot store it"}
#define CDC_TRUNCATE_OPTION \
	{"truncate", "error|ignore|apply", "what a TRUNCATE of the source table means"}
#define CDC_EMPTY_OPTION \
	{"empty_value", "error|delete|ignore", "what a zero-length value means"}
#define CDC_FRAMING_OPTION \
	{"registry_framing", "error|strip", "what the five bytes of a schema registry before the JSON text mean"}
#define CDC_STYLE_OPTIONS \
	TIME_UNIT_OPTION, DECIMAL_FORMAT_OPTION, BINARY_FORMAT_OPTION

/* All of them but CDC_TRUNCATE_OPTION, and those that write: of formats that are JSON. */
#define CDC_JSON_OPTIONS \
	CDC_NUL_OPTION, IGNORE_PARSE_ERRORS_OPTION, JSON_WRITE_OPTIONS, CDC_STYLE_OPTIONS, CDC_EMPTY_OPTION, \
	CDC_FRAMING_OPTION

/* Fill in a zeroed decoder; read_row is the format's.  In CurrentMemoryContext. */
extern void cdc_decoder_init(CdcDecoder *decoder, const CdcFormat *format, const DecoderSpec *spec);

/*
 * Is it a value of no bytes that the option empty_value gives a meaning?  Then that is
 * done, where sink is not NULL: a delete in upsert tables, or no row.
 */
extern bool cdc_is_empty(const CdcDecoder *decoder, Size len, RowSink *sink);

/* Scan a message into decoder->found.  ERROR 22P02 unless it is one JSON object. */
extern void cdc_scan(CdcDecoder *decoder, const char *bytes, Size len);

/* The operation that a scanned message tells.  ERROR 22P02 if it tells none that is known. */
extern CdcOp cdc_op(const CdcDecoder *decoder);

/* The same, CDC_UNKNOWN instead of an ERROR. */
extern CdcOp cdc_find_op(const CdcDecoder *decoder);

/*
 * Is there a change to be told of, of a row, or a TRUNCATE that is applied?  ERROR 22023 for
 * one that is neither ignored nor applied.
 */
extern bool cdc_tells_change(const CdcDecoder *decoder, CdcOp op);

/*
 * All of that at once: the operation of a message that tells of a change, or CDC_NO_ROW;
 * and as FormatRoutine.has_row.
 */
extern CdcOp cdc_begin(CdcDecoder *decoder, const char *bytes, Size len);
extern bool cdc_has_row(Decoder *decoder, const char *bytes, Size len);

/*
 * Scan what may be an event, without ERROR and without checks that decoding makes; and as
 * FormatRoutine.truncates.
 */
extern bool cdc_peek(CdcDecoder *decoder, const char *bytes, Size len);
extern bool cdc_truncates(Decoder *decoder, const char *bytes, Size len);

/*
 * Metadata of the message at hand, for all of its rows: all columns at once, or one by
 * one, under sink->column.
 */
extern void cdc_read_metadata(CdcDecoder *decoder, const CdcSource *sources, RowSink *sink);
extern void cdc_metadata_value(CdcMetadataColumn *column, const JsonText *value);
extern void cdc_metadata_time(const CdcDecoder *decoder, CdcMetadataColumn *column, const JsonText *value, int unit_ms);

/* Emit what a change tells, with its metadata.  ERROR 22004 if a row is missing. */
extern void cdc_emit_change(CdcDecoder *decoder, const CdcChange *change, RowSink *sink);

/* === Rows =================================================================== */

/* Objects whose members are the columns */
typedef struct CdcRow CdcRow;

/* key_prefix: what the key's fields have before the names of the row's, or NULL. */
extern CdcRow *cdc_row_create(const CdcDecoder *decoder, const DecoderSpec *spec, const char *key_prefix);

/*
 * Set the columns from an object, or where 'over' (may be NULL or missing) is an
 * object that has a member, from that.  keep: members that are nowhere are unchanged
 * instead of null.
 */
extern void cdc_row_read(CdcRow *row, const JsonText *object, const JsonText *over, bool keep, RowSink *sink);

/*
 * In tables with the state of message keys an update must not change the columns that
 * the key is of, because then the row of the old key stays.  ERROR 22023 if it does.
 * 'before' may be just what has changed, or nothing.
 */
extern void cdc_row_check_key(CdcRow *row, const JsonText *before, const JsonText *after);

/* === Writing ================================================================ */

/* What stands before and behind the row of an insert and of a delete. */
typedef struct CdcShape
{
	const char *insert_lead;
	const char *insert_trail;
	const char *delete_lead;
	const char *delete_trail;
} CdcShape;

/* without_nulls: the shape under encode_ignore_null_fields. */
extern Encoder *cdc_encoder_create(const CdcFormat *format, const EncoderSpec *spec, const CdcShape *shape,
								   const CdcShape *without_nulls);

/* FormatRoutine.encode: -U and -D are deletes, all others inserts, as Flink writes them. */
extern bool cdc_encode(Encoder *encoder, const Datum *values, const bool *isnull, StringInfo bytes,
					   const char **column);

#endif							/* UK_CDC_JSON_H */
