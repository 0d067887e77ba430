/*
 * value_style.h
 *	  How messages spell values that have several forms: times as numbers, decimals as
 *	  text or bytes, bytes as text.  The options of formats that say so, both directions.
 *
 * What is the default of all of them, is done elsewhere and costs nothing here.
 */
#ifndef UK_VALUE_STYLE_H
#define UK_VALUE_STYLE_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "pgtime.h"

typedef enum TimeUnit
{
	UNIT_NONE,					/* times are text, a bare number is an error (case C03) */
	UNIT_SECONDS,
	UNIT_MILLIS,
	UNIT_MICROS,
	UNIT_NANOS
} TimeUnit;

typedef enum DecimalFormat
{
	DECIMAL_NUMBER,
	DECIMAL_TEXT,
	DECIMAL_BASE64				/* Connect's bytes, with the column's scale (case C01) */
} DecimalFormat;

typedef enum BinaryFormat
{
	BINARY_BASE64,				/* or hexadecimal behind \x */
	BINARY_HEX,
	BINARY_LATIN1				/* a character per byte (case C07) */
} BinaryFormat;

typedef struct ValueStyle
{
	TimeUnit	unit;			/* since 1970-01-01 UTC, or midnight; dates count days */
	bool		wall_clock;		/* .. of timestamps without time zone: the clock's own 1970 */
	DecimalFormat decimal;
	BinaryFormat binary;
	bool		strip_nul;		/* in text; for formats that leave it to this */
} ValueStyle;

/* For FormatOption lists */
#define TIME_UNIT_OPTION \
	{"time_unit", "s|ms|us|ns", "numbers in columns of times and timestamps count these, numbers in columns of dates days"}
#define DECIMAL_FORMAT_OPTION \
	{"decimal_format", "number|text|base64", "how numeric is written; base64: the bytes of Kafka Connect, read and written"}
#define BINARY_FORMAT_OPTION \
	{"binary_format", "base64|hex|latin1", "how strings hold bytea; latin1: a character per byte"}

extern int64 time_unit_per_second(TimeUnit unit);

/* The options among a format's; others of *style are left as they are. */
extern void value_style_parse(List *options, ValueStyle *style);

struct FormatColumn;

/* A copy of the columns that has this style. */
extern struct FormatColumn *styled_columns(int n, const struct FormatColumn *columns, const ValueStyle *style);

/* === Reading ================================================================ */

/* Is it a number and nothing else: digits, sign, fraction, exponent? */
extern bool is_number_text(const char *text);

/*
 * date, time, timestamp or timestamptz (a base type) of such a number.  'zone' is where
 * timestamps without zone are.  ERROR 22008, 22003 out of range; 22P02 for part of a day
 * as a date.
 */
extern Datum time_from_number(const ValueStyle *style, Oid type, int32 typmod, pg_tz *zone, const char *text);

/* The bytes without those that are 0: the bytes themselves, or a copy. */
extern const char *strip_nul_bytes(const char *bytes, Size *len);

/*
 * bytea from text: base64 with its padding, blanks ignored, or hexadecimal behind \x.
 * ERROR 22P02.
 */
extern Datum bytea_input(const char *text, Size len);

/* The same by BINARY_BASE64 or BINARY_HEX. */
extern Datum binary_input(BinaryFormat format, const char *text, Size len);

/* numeric of DECIMAL_BASE64.  ERROR 22P02. */
extern Datum decimal_from_base64(const char *text, Size len, int32 typmod);

/* ERROR HV004 unless DECIMAL_BASE64 is possible for such columns. */
extern void check_base64_scale(int32 typmod, const char *column);

/* === Writing ================================================================ */

/* Are values of that base type written otherwise than by default?  As a number, without quotes? */
extern bool style_changes(const ValueStyle *style, Oid type);
extern bool style_is_number(const ValueStyle *style, Oid type);

/*
 * Append such a value: UTF-8 text, without quotes and escapes.  What is finer than the
 * unit is cut off.  ERROR 22008 for infinite times.
 */
extern void style_append_bytes(StringInfo out, const ValueStyle *style, const char *bytes, Size len);
extern void style_append(StringInfo out, const ValueStyle *style, Oid type, int32 typmod, pg_tz *zone, Datum value);

#endif							/* UK_VALUE_STYLE_H */
