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
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* What a decoded row means; the first two are what upsert topics say. */
typedef enum RowKind
{
	ROW_UPSERT,					/* the whole new row of its key */
	ROW_DELETE,					/* the key is gone */
	ROW_INSERT,					/* +I of a changelog, or a row of an append topic */
	ROW_UPDATE_BEFORE,			/* -U */
	ROW_UPDATE_AFTER			/* +U */
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
} FormatColumn;

/*
 * Where a decoder puts its rows.  Before decode() all isnull are true and no
 * value is set; the decoder sets those of its own columns and calls emit()
 * once per row.  Datums are allocated in CurrentMemoryContext.
 */
typedef struct RowSink
{
	Datum	   *values;
	bool	   *isnull;
	bool	   *missing;		/* NULL, or set true for columns whose field was
								 * absent from the message (not for JSON null) */
	const char *column;			/* the column being converted, NULL outside of
								 * one: names it in an error's detail */
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
	bool		is_key;			/* decodes message keys */
	const char *time_zone;		/* in which naive timestamps are read */
} DecoderSpec;

typedef struct Decoder
{
	const struct FormatRoutine *routine;
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
} EncoderSpec;

typedef struct Encoder
{
	const struct FormatRoutine *routine;
	/* the format's own fields follow */
} Encoder;

typedef struct FormatOption
{
	const char *name;			/* snake_case, without the "value_json_" prefix */
	const char *alias;			/* another name that means the same, or NULL */
	const char *type;			/* "bool", "int", "char", "text", or an enum as "a|b|c" */
	const char *description;
} FormatOption;

typedef struct FormatRoutine
{
	const char *name;			/* as in value_format 'json' */
	bool		changelog;		/* a CDC format: says row kinds by itself */
	bool		single_column;	/* exactly one column (raw) */
	const FormatOption *options;	/* ends with a NULL name */

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
} FormatRoutine;

/* NULL if there is no such format in this build. */
extern const FormatRoutine *format_lookup(const char *name);

/* NULL-terminated; what hints choose from. */
extern const char *const *format_names(void);

/*
 * Text -> Datum by the type's input function, with the shortcuts that give the
 * same answer faster (integers, text, timestamps, ...).  Shared by the formats.
 * is_number: the text was a bare JSON number (cases X09, X13).
 */
typedef struct ValueInput ValueInput;
extern ValueInput *value_input_create(const FormatColumn *column, const char *time_zone);
extern Datum value_input(ValueInput *input, const char *text, Size len, bool is_number);

/*
 * While messages are decoded or written the session's own DateStyle, IntervalStyle,
 * TimeZone, extra_float_digits and bytea_output must not show (decision 14).  Cheap;
 * pairs nest; restored by the caller in PG_CATCH as well.
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
