/*
 * format.h
 *	  The vtable of a message format: bytes in, Datums and row kinds out.
 *
 * A format is one file with one FormatRoutine, listed in format.c.  It knows
 * nothing of Kafka, of the executor or of maintained tables.  FDW scans, apply,
 * dry runs and error replay all decode through here (DESIGN.md, decision 1).
 */
#ifndef UK_FORMAT_H
#define UK_FORMAT_H

#include "compat.h"
#include "fmgr.h"
#include "format/value_style.h"
#include "lib/stringinfo.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "pgtime.h"

/* What a decoded row means; the first two are what upsert topics say. */
typedef enum RowKind
{
	ROW_UPSERT,					/* the whole new row of its key */
	ROW_DELETE,					/* the key is gone */
	ROW_INSERT,					/* +I of a changelog, or a row of an append topic */
	ROW_UPDATE_BEFORE,			/* -U */
	ROW_UPDATE_AFTER,			/* +U */
	ROW_TRUNCATE				/* no row: all rows before it are gone */
} RowKind;

/* A column that a decoder is to fill. */
typedef struct FormatColumn
{
	int			index;			/* its place in RowSink's arrays */
	const char *field;			/* its name in the message, exact and case-sensitive */
	const char *column;			/* its SQL name, for messages */
	Oid			type;
	int32		typmod;
	Oid			collation;
	bool		is_metadata;	/* field names one of the format's FormatMetadata */
	int			position;		/* in DecoderSpec.fields, for formats without names */
	bool		not_null;		/* the table says that it always has a value */
	ValueStyle	style;			/* zeroed, until a format says otherwise */
} FormatColumn;

/*
 * Where a decoder puts its rows.  Before decode() all isnull are true and no
 * value is set; the decoder sets those of its own columns and calls emit()
 * once per row, and sets them all again before it does so once more.  Datums are
 * allocated in CurrentMemoryContext.
 */
typedef struct RowSink
{
	Datum	   *values;
	bool	   *isnull;
	bool	   *missing;		/* NULL, or set true for columns whose field was
								 * absent from the message (not for JSON null) */
	Bitmapset  *unchanged;		/* indexes of columns that keep the value they had:
								 * the message does not hold it, isnull is true.  Of
								 * the row at hand; emit() leaves it NULL */
	const char *column;			/* the column being converted, NULL outside of
								 * one: names it in an error's detail, so an ERROR
								 * leaves it set */
	void		(*emit) (struct RowSink *sink, RowKind kind);
	void	   *arg;
} RowSink;

/* How to make a decoder.  Strings and lists must outlive it. */
typedef struct DecoderSpec
{
	int			ncolumns;
	const FormatColumn *columns;
	List	   *options;		/* DefElems of this format, prefix stripped:
								 * "fail_on_missing_field" .. */
	int			nfields;		/* of the whole key or value, wanted or not, in the */
	const FormatColumn *fields; /* order in which they are written */
	bool		is_key;			/* decodes message keys */
	bool		has_key;		/* values: the message key names the row */
	int			nkeys;			/* values: by these fields */
	const char *const *keys;
	bool		upsert;			/* values: the key's state is wanted, so that rows
								 * before a change are not (no ROW_UPDATE_BEFORE) */
	bool		connect;		/* keys: Kafka Connect wrote them, see connect.h */
	const char *time_zone;		/* in which naive timestamps are read */
	const struct RegistryAccess *registry;	/* of formats that ask one */
} DecoderSpec;

typedef struct Decoder
{
	const struct FormatRoutine *routine;
	bool		decides;		/* set by create: whether a value is a row is for decode()
								 * to say, even where no column is wanted */
	bool		applies_truncate;	/* set by create: values may be ROW_TRUNCATE, see truncates */
	bool		ignores_errors; /* set by create: option ignore_parse_errors is on */
	bool		lenient;		/* set by the caller, where ignores_errors: in the next
								 * messages values that are no good are NULL (lenient.h) */
	/* the format's own fields follow */
} Decoder;

/*
 * The other direction.  An encoder turns one row's columns into the bytes of a
 * key or a value, as Flink's sink would; it mirrors Decoder.  Strings and lists
 * must outlive it.
 */
typedef struct EncoderSpec
{
	int			ncolumns;		/* in the order in which they are written */
	const FormatColumn *columns;	/* index: place in the arrays given to encode */
	List	   *options;
	bool		is_key;
	const char *topic;			/* NULL: not known */
	const char *time_zone;		/* in which naive timestamps are, where instants are written */
	const struct RegistryAccess *registry;	/* of formats that ask one */
} EncoderSpec;

typedef struct Encoder
{
	const struct FormatRoutine *routine;
	RowKind		kind;			/* CDC formats: what is to be told of the row; the caller
								 * sets it before encode */
	/* the format's own fields follow */
} Encoder;

typedef struct FormatOption
{
	const char *name;			/* snake_case, without the "value_json_" prefix */
	const char *type;			/* "bool", "int", "text", "regex", "char" (a byte of ASCII,
								 * also as \t or \u0001), or an enum as "a|b|c" */
	const char *description;
	const char *alias;			/* another name that means the same, or NULL */
} FormatOption;

/* What a message says beside the row: metadata 'value.NAME' of a column. */
typedef struct FormatMetadata
{
	const char *name;			/* as in Flink, without "value." */
	Oid			type;			/* that the column must have; timestamptz: or timestamp */
} FormatMetadata;

typedef struct FormatRoutine
{
	const char *name;			/* as in value_format 'json' */
	bool		changelog;		/* a CDC format: says row kinds by itself */
	bool		connect;		/* Kafka Connect writes these values, and JSON keys beside them */
	bool		single_column;	/* exactly one column (raw) */
	bool		registry;		/* asks a schema registry */
	bool		positional;		/* fields have no names, they go by the table's columns */
	const FormatOption *options;	/* ends with a NULL name */
	const FormatMetadata *metadata; /* NULL, or ends with a NULL name */

	/*
	 * Headers of the two messages of a row whose key changes, or NULL: the delete's says
	 * that it goes on under another key, the new row's has the old key, in JSON.
	 */
	const char *new_key_header;
	const char *old_key_header;

	/*
	 * What the options of a key or value cannot be together, at DDL time and when used.
	 * ERROR HV024.  NULL: each by itself says it all.
	 */
	void		(*check_options) (List *options, bool is_key);

	/*
	 * Check that the columns fit (types, count); ERROR with column and hint
	 * otherwise.  Allocates in CurrentMemoryContext.
	 */
	Decoder    *(*create) (const DecoderSpec *spec);

	/*
	 * Decode one non-null key or value and emit its rows.  Bytes are not
	 * NUL-terminated.  ERROR: class 22 with a plain primary text ("invalid
	 * input syntax for type integer: ..."); the caller adds coordinates.
	 * Leaves no trace after an ERROR.
	 */
	void		(*decode) (Decoder *decoder, const char *bytes, Size len, RowSink *sink);

	/*
	 * Writing; both NULL for a format that only reads.  create_encoder is as create.
	 * encode appends to 'bytes', or returns false for Kafka null (raw with a NULL
	 * column).  *column is the column being converted, NULL before and after.  ERROR
	 * class 22 with a plain primary text for a value that has no form (an infinite
	 * timestamp); what was appended by then is the caller's to drop.  Scratch memory
	 * comes from CurrentMemoryContext and is not all freed: reset it per batch.  The
	 * session's settings don't show, so the caller needs no decode_settings_enter().
	 */
	Encoder    *(*create_encoder) (const EncoderSpec *spec);
	bool		(*encode) (Encoder *encoder, const Datum *values, const bool *isnull,
						   StringInfo bytes, const char **column);

	/*
	 * CDC formats: does the value tell of a row at all?  If not, its key is none of
	 * the table's.  Asked only where the key is no good.  NULL: always.
	 */
	bool		(*has_row) (Decoder *decoder, const char *bytes, Size len);

	/*
	 * Does the value say that the source's table was emptied?  Asked only where
	 * Decoder.applies_truncate is set; the key is not looked at then, and decode emits one
	 * ROW_TRUNCATE, with metadata.
	 */
	bool		(*truncates) (Decoder *decoder, const char *bytes, Size len);
} FormatRoutine;

/*
 * The subject under which a registry has the schema of what is written: the one that is
 * given (NULL: none), or that of the topic; NULL where the topic is not known, which
 * require() refuses (HV002).  palloc'd, or 'given'.
 */
extern const char *encoder_subject(const EncoderSpec *spec, const char *given);
extern void encoder_subject_require(const char *subject);

/* NULL if there is no such format in this build. */
extern const FormatRoutine *format_lookup(const char *name);

/* NULL-terminated; what hints choose from. */
extern const char *const *format_names(void);

/* What is given for one of a format's options, NULL if nothing is; is it that value? */
extern const char *format_option(List *options, const char *name);
extern bool format_option_is(List *options, const char *name, const char *value);

/* NULL if the format offers no metadata of that name. */
extern const FormatMetadata *format_metadata(const FormatRoutine *format, const char *name);

/*
 * Text -> Datum by the type's input function (for domains with their checks), with
 * the shortcuts that give the same answer faster (integers, decimals, text,
 * timestamps, ...).  Shared by the formats.  The text is valid in the database
 * encoding, without NUL, and not NUL-terminated.  is_number: it was a bare JSON
 * number, so that integral ones fit integers, others than 0 are true, and none is a
 * time (cases X09, X13, C03).  Call it under decode_settings_enter().
 */
typedef struct ValueInput ValueInput;
extern ValueInput *value_input_create(const FormatColumn *column, const char *time_zone);
extern Datum value_input(ValueInput *input, const char *text, Size len, bool is_number);

/*
 * The element type of arrays, which are filled and written by their elements; else
 * InvalidOid.  int2vector and oidvector are none: they have rules of their own.
 */
extern Oid	array_element_type(Oid type);

/*
 * An instant in milliseconds or microseconds since 1970 as timestamptz, or as timestamp
 * in 'zone'.  ERROR 22008 out of PostgreSQL's range.
 */
extern Datum epoch_millis_datum(int64 ms, Oid type, pg_tz *zone);
extern Datum epoch_micros_datum(int64 micros, Oid type, pg_tz *zone);

/*
 * While messages are decoded or written the session's own DateStyle, IntervalStyle,
 * TimeZone, extra_float_digits and bytea_output must not show (decision 14).  Cheap;
 * pairs nest; restored by the caller in PG_CATCH as well.  ERROR 22023 if there is no
 * such time zone.
 */
typedef struct DecodeSettings
{
	int			date_style;
	int			date_order;
	int			interval_style;
	int			extra_float_digits;
	int			bytea_output;
	void	   *time_zone;
} DecodeSettings;
extern void decode_settings_enter(DecodeSettings *saved, const char *time_zone);
extern void decode_settings_leave(const DecodeSettings *saved);

#endif							/* UK_FORMAT_H */
