/*
 * value_output.h
 *	  Datum -> text as messages have it: the other direction of value_input().
 *
 * Everything is appended in UTF-8, and nothing depends on the session's settings.
 */
#ifndef UK_VALUE_OUTPUT_H
#define UK_VALUE_OUTPUT_H

#include "format/format.h"
#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* appendBinaryStringInfo() without a call where there is room, and without its NUL. */
static inline void
append_bytes(StringInfo out, const char *bytes, int len)
{
	if (unlikely(out->len + len >= out->maxlen))
		enlargeStringInfo(out, len);
	memcpy(out->data + out->len, bytes, len);
	out->len += len;
}

static inline void
append_byte(StringInfo out, char byte)
{
	if (unlikely(out->len + 1 >= out->maxlen))
		enlargeStringInfo(out, 1);
	out->data[out->len++] = byte;
}

/*
 * 2020-01-02, 12:13:14[.f], 2020-01-02 12:13:14[.f]: fractions without trailing
 * zeros, years as PostgreSQL writes them (0044-03-15 BC).  'separator' stands
 * between date and time, 'zone' (may be empty) behind the time.  ERROR 22008 for
 * infinite values.
 */
extern void append_date(StringInfo out, DateADT date);
extern void append_time(StringInfo out, TimeADT time);
extern void append_timestamp(StringInfo out, Timestamp timestamp, char separator, const char *zone);

/*
 * Java's notation: the shortest digits that give the same value, 0.001 to 9999999.0
 * in full, else 1.0E7; NaN, Infinity and -Infinity.
 */
extern void append_float4(StringInfo out, float4 value);
extern void append_float8(StringInfo out, float8 value);

/*
 * 'plain': every digit of the display scale (100.00).  Otherwise Java's
 * BigDecimal.toString() of the value without trailing zeros: 1E+2, 1.5, 2.7E-8.
 * ERROR 22003 for NaN and infinities.
 */
extern void append_numeric(StringInfo out, Numeric value, bool plain);

/* The same for a value as it comes in a row, toasted or not. */
extern void append_numeric_datum(StringInfo out, Datum datum, bool plain);

/* Base64 with padding, in one line. */
extern void append_base64(StringInfo out, const char *bytes, Size len);

/* Text in the database encoding, in UTF-8; may be 'text' itself.  *len changes with it. */
extern const char *text_to_utf8(const char *text, Size *len);

/*
 * How formats of text tell types apart that they write in a form of their own.  Texts are
 * behind what is a number or a word in any format.
 */
typedef enum OutputClass
{
	OUTPUT_BOOL,
	OUTPUT_INT2,
	OUTPUT_INT4,
	OUTPUT_INT8,
	OUTPUT_FLOAT4,
	OUTPUT_FLOAT8,
	OUTPUT_NUMERIC,
	OUTPUT_TEXT,
	OUTPUT_BYTEA,
	OUTPUT_DATE,
	OUTPUT_TIME,
	OUTPUT_TIMESTAMP,
	OUTPUT_TIMESTAMPTZ,
	OUTPUT_JSON,
	OUTPUT_JSONB,
	OUTPUT_STYLED,				/* as the options say, see value_style.h */
	OUTPUT_ARRAY,
	OUTPUT_COMPOSITE,
	OUTPUT_OTHER				/* the type's text, by ValueOutput */
} OutputClass;

/* Of a base type. */
extern OutputClass output_class(const ValueStyle *style, Oid type);

/*
 * Any type's text, by its output function under fixed settings (ISO dates, UTC).
 * Allocated in CurrentMemoryContext, in the database encoding.
 */
typedef struct ValueOutput ValueOutput;
extern ValueOutput *value_output_create(Oid type);
extern char *value_output_text(ValueOutput *output, Datum value);

#endif							/* UK_VALUE_OUTPUT_H */
