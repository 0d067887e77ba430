/*
 * value_output.c
 *	  Datum -> text as messages have it.
 *
 * Numbers and times in the notation of Flink's sinks, any other type by its output
 * function.  Knows nothing of JSON and of columns.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "fmgr.h"
#include "format/value_output.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

struct ValueOutput
{
	FmgrInfo	output;
};

/* === Dates and times ======================================================== */

static inline char *
put_two(char *p, int value)
{
	*p++ = '0' + value / 10;
	*p++ = '0' + value % 10;
	return p;
}

/* PostgreSQL counts 1 BC as year 0 inside. */
static inline char *
put_date(char *p, int year, int month, int day)
{
	int			shown = year > 0 ? year : 1 - year;

	if (shown <= 9999)
	{
		p = put_two(p, shown / 100);
		p = put_two(p, shown % 100);
	}
	else
		p += pg_ltoa(shown, p);
	*p++ = '-';
	p = put_two(p, month);
	*p++ = '-';
	return put_two(p, day);
}

static inline char *
put_time(char *p, int hour, int minute, int second, int microseconds)
{
	p = put_two(p, hour);
	*p++ = ':';
	p = put_two(p, minute);
	*p++ = ':';
	p = put_two(p, second);
	if (microseconds > 0)
	{
		*p++ = '.';
		p = put_two(p, microseconds / 10000);
		p = put_two(p, microseconds / 100 % 100);
		p = put_two(p, microseconds % 100);
		while (p[-1] == '0')
			p--;
	}
	return p;
}

static inline char *
put_era(char *p, int year)
{
	if (year <= 0)
	{
		memcpy(p, " BC", 3);
		p += 3;
	}
	return p;
}

/* Room for any date, time or timestamp */
#define MAX_TIME_TEXT 64

/* The text of a day, without an era, and its year.  Rows often come day by day. */
static inline char *
put_day(char *p, int day_number, int *year)
{
	static int	last_day = PG_INT32_MIN;
	static int	last_year;
	static int	last_len;
	static char last_text[MAX_TIME_TEXT];

	if (day_number != last_day)
	{
		int			month;
		int			day;

		j2date(day_number, &last_year, &month, &day);
		last_len = (int) (put_date(last_text, last_year, month, day) - last_text);
		last_day = day_number;
	}
	*year = last_year;
	memcpy(p, last_text, last_len);
	return p + last_len;
}

void
append_date(StringInfo out, DateADT date)
{
	int			year;
	char	   *p;

	if (DATE_NOT_FINITE(date))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite date cannot be written")));
	enlargeStringInfo(out, MAX_TIME_TEXT);
	p = put_day(out->data + out->len, date + POSTGRES_EPOCH_JDATE, &year);
	p = put_era(p, year);
	out->len = (int) (p - out->data);
}

void
append_time(StringInfo out, TimeADT time)
{
	int64		seconds = time / USECS_PER_SEC;
	char	   *p;

	enlargeStringInfo(out, MAX_TIME_TEXT);
	p = put_time(out->data + out->len, (int) (seconds / SECS_PER_HOUR), (int) (seconds / SECS_PER_MINUTE % MINS_PER_HOUR),
				 (int) (seconds % SECS_PER_MINUTE), (int) (time % USECS_PER_SEC));
	out->len = (int) (p - out->data);
}

void
append_timestamp(StringInfo out, Timestamp timestamp, char separator, const char *zone)
{
	int64		days;
	int64		time;
	int			seconds;
	int			year;
	char	   *p;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite timestamp cannot be written")));
	days = timestamp / USECS_PER_DAY;
	time = timestamp % USECS_PER_DAY;
	if (time < 0)
	{
		time += USECS_PER_DAY;
		days--;
	}
	seconds = (int) (time / USECS_PER_SEC);
	enlargeStringInfo(out, MAX_TIME_TEXT);
	p = put_day(out->data + out->len, (int) days + POSTGRES_EPOCH_JDATE, &year);
	*p++ = separator;
	p = put_time(p, seconds / SECS_PER_HOUR, seconds / SECS_PER_MINUTE % MINS_PER_HOUR, seconds % SECS_PER_MINUTE,
				 (int) (time % USECS_PER_SEC));
	while (*zone)
		*p++ = *zone++;
	p = put_era(p, year);
	out->len = (int) (p - out->data);
}

/* === Floats ================================================================= */

/* A decimal: 0.DIGITS * 10^point, the last digit not 0. */
typedef struct Digits
{
	char		digits[32];
	int			n;
	int			point;
} Digits;

/* "123.45", "1.2e-07", "5" -> digits; 'text' has no sign and need not end with a NUL */
static void
digits_read(const char *text, int len, Digits *result)
{
	const char *p = text;
	const char *end = text + len;
	bool		fraction = false;

	result->n = 0;
	result->point = 0;
	for (; p < end && *p != 'e'; p++)
	{
		if (*p == '.')
			fraction = true;
		else if (*p >= '0' && *p <= '9')
		{
			if (*p != '0' || result->n > 0)
			{
				result->digits[result->n++] = *p;
				result->point += !fraction;
			}
			else
				result->point -= fraction;
		}
	}
	if (p < end)
	{
		bool		minus = p[1] == '-';
		int			exponent = 0;

		for (p += 2; p < end; p++)
			exponent = exponent * 10 + (*p - '0');
		result->point += minus ? -exponent : exponent;
	}
	while (result->n > 0 && result->digits[result->n - 1] == '0')
		result->n--;
}

/* Java's Double.toString: decimal from 10^-3 up to below 10^7, else scientific */
static void
append_java_float(StringInfo out, const Digits *d, bool negative)
{
	char	   *p;
	int			i = 0;

	enlargeStringInfo(out, 64);
	p = out->data + out->len;
	if (negative)
		*p++ = '-';
	if (d->n == 0)
	{
		memcpy(p, "0.0", 3);
		p += 3;
	}
	else if (d->point > -3 && d->point <= 7)
	{
		if (d->point <= 0)
			*p++ = '0';
		for (; i < d->point; i++)
			*p++ = i < d->n ? d->digits[i] : '0';
		*p++ = '.';
		for (int zeros = d->point; zeros < 0; zeros++)
			*p++ = '0';
		if (i >= d->n)
			*p++ = '0';
		while (i < d->n)
			*p++ = d->digits[i++];
	}
	else
	{
		*p++ = d->digits[i++];
		*p++ = '.';
		if (d->n == 1)
			*p++ = '0';
		while (i < d->n)
			*p++ = d->digits[i++];
		*p++ = 'E';
		p += pg_ltoa(d->point - 1, p);
	}
	out->len = (int) (p - out->data);
}

/* NaN and infinities have names */
static bool
append_special_float(StringInfo out, float8 value)
{
	if (isnan(value))
		appendStringInfoString(out, "NaN");
	else if (isinf(value))
		appendStringInfoString(out, value < 0 ? "-Infinity" : "Infinity");
	else
		return false;
	return true;
}

/*
 * Java's shortest digits are PostgreSQL's, but for two things.  A decimal exactly
 * between two floats belongs to the even one (1.0E23), which PostgreSQL avoids;
 * such decimals are integers beyond the mantissa and up to some powers of five.  And
 * two digits are always looked at, which shows in the smallest subnormals only
 * (4.9E-324, not 5.0E-324).
 */
void
append_float8(StringInfo out, float8 value)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];
	Digits		digits;
	float8		size = fabs(value);

	if (append_special_float(out, value))
		return;
	digits_read(text, double_to_shortest_decimal_bufn(size, text), &digits);
	if (size > 1e15 && size < 1e45)
	{
		for (int n = digits.n - 1; n > 0; n--)
		{
			int			len = snprintf(text, sizeof(text), "%.*e", n - 1, size);

			if (strtod(text, NULL) != size)
				break;
			digits_read(text, len, &digits);
		}
	}
	else if (digits.n == 1 && size < 1e-307)
		digits_read(text, snprintf(text, sizeof(text), "%.1e", size), &digits);
	append_java_float(out, &digits, signbit(value) != 0);
}

void
append_float4(StringInfo out, float4 value)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];
	Digits		digits;
	float4		size = fabsf(value);

	if (append_special_float(out, value))
		return;
	digits_read(text, float_to_shortest_decimal_bufn(size, text), &digits);
	if (size > 1e6f && size < 1e20f)
	{
		for (int n = digits.n - 1; n > 0; n--)
		{
			int			len = snprintf(text, sizeof(text), "%.*e", n - 1, size);

			if (strtof(text, NULL) != size)
				break;
			digits_read(text, len, &digits);
		}
	}
	else if (digits.n == 1 && size < 1e-37f)
		digits_read(text, snprintf(text, sizeof(text), "%.1e", size), &digits);
	append_java_float(out, &digits, signbit(value) != 0);
}

/* === Decimals =============================================================== */

/*
 * The layout of a numeric on disk, which pg_upgrade relies on: a header of 16 bits
 * (short form), or of 32, and digits to base 10000, none of them a 0 at either end.
 */
#define NUMERIC_FORM(header)		((header) & 0xC000)
#define NUMERIC_SHORT_FORM			0x8000
#define NUMERIC_SHORT_MINUS			0x2000
#define NUMERIC_SHORT_DSCALE(header) (((header) & 0x1F80) >> 7)
#define NUMERIC_SHORT_WEIGHT(header) (((header) & 0x0040 ? ~0x003F : 0) | ((header) & 0x003F))
#define MAX_GROUPS					4	/* digits to base 10000, so that 64 bits hold them */

static inline char *
put_four(char *p, int value)
{
	p = put_two(p, value / 100);
	return put_two(p, value % 100);
}

/*
 * Numbers as tables are full of, without a copy.  False, and nothing is appended, for
 * those that are large, very small, no numbers, or need an exponent.
 */
static bool
append_small_numeric(StringInfo out, struct varlena *value, bool plain)
{
	const char *bytes = VARDATA_ANY(value);
	int			ngroups = ((int) VARSIZE_ANY_EXHDR(value) - (int) sizeof(uint16)) / (int) sizeof(int16);
	int			weight;
	int			scale;
	int			fraction_len;
	uint64		whole = 0;
	uint16		header;
	int16		groups[MAX_GROUPS];
	char		fraction[4 * MAX_GROUPS + 64];
	char	   *p = fraction;

	memcpy(&header, bytes, sizeof(header));
	if (NUMERIC_FORM(header) != NUMERIC_SHORT_FORM || ngroups < 1 || ngroups > MAX_GROUPS)
		return false;
	weight = NUMERIC_SHORT_WEIGHT(header);
	scale = NUMERIC_SHORT_DSCALE(header);
	if (weight < -1 || weight >= MAX_GROUPS)
		return false;
	memcpy(groups, bytes + sizeof(header), sizeof(int16) * ngroups);
	for (int i = 0; i <= weight; i++)
		whole = whole * 10000 + (i < ngroups ? groups[i] : 0);
	for (int i = weight + 1; i < ngroups; i++)
		p = put_four(p, groups[i]);

	fraction_len = (int) (p - fraction);
	if (plain)
	{
		memset(p, '0', sizeof(fraction) - fraction_len);
		fraction_len = scale;
	}
	else
	{
		while (fraction_len > 0 && fraction[fraction_len - 1] == '0')
			fraction_len--;
		if (fraction_len == 0 && whole % 10 == 0)
			return false;
	}

	enlargeStringInfo(out, 32 + fraction_len);
	p = out->data + out->len;
	if (header & NUMERIC_SHORT_MINUS)
		*p++ = '-';
	p += pg_lltoa((int64) whole, p);
	if (fraction_len > 0)
	{
		*p++ = '.';
		memcpy(p, fraction, fraction_len);
		p += fraction_len;
	}
	out->len = (int) (p - out->data);
	return true;
}

void
append_numeric_datum(StringInfo out, Datum datum, bool plain)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(datum);

	if (!append_small_numeric(out, value, plain))
		append_numeric(out, DatumGetNumeric(PointerGetDatum(value)), plain);
}

void
append_numeric(StringInfo out, Numeric value, bool plain)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value)));
	int			len = (int) strlen(text);
	char	   *point;
	char	   *first;
	char	   *last;
	int			exponent;

	if (text[len - 1] > '9')
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("numeric value %s cannot be written as a number", text)));
	if (plain)
	{
		appendBinaryStringInfo(out, text, len);
		pfree(text);
		return;
	}

	/* first and last digit that are not 0 */
	for (first = text; *first == '-' || *first == '0' || *first == '.'; first++)
		;
	if (*first == '\0')
	{
		appendStringInfoChar(out, '0');
		pfree(text);
		return;
	}
	for (last = text + len - 1; *last == '0' || *last == '.'; last--)
		;
	point = memchr(text, '.', len);
	if (point == NULL)
		point = text + len;

	/* the place of the first digit: 100 is 10^2, 0.01 is 10^-2 */
	exponent = first < point ? (int) (point - first) - 1 : (int) (point - first);

	/* BigDecimal.toString(): no exponent if the scale isn't negative and this is -6 or more */
	if (last >= point - 1 && exponent >= -6)
		appendBinaryStringInfo(out, text, (int) (last - text) + 1);
	else
	{
		if (*text == '-')
			appendStringInfoChar(out, '-');
		appendStringInfoChar(out, *first);
		if (last > first)
		{
			appendStringInfoChar(out, '.');
			for (const char *p = first + 1; p <= last; p++)
			{
				if (*p != '.')
					appendStringInfoChar(out, *p);
			}
		}
		appendStringInfo(out, "E%+d", exponent);
	}
	pfree(text);
}

/* === Bytes and text ========================================================= */

void
append_base64(StringInfo out, const char *bytes, Size len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *) bytes;
	char	   *p;

	if (len > MaxAllocSize / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("bytea value of %zu bytes is too long to be written as base64", len)));
	enlargeStringInfo(out, (int) ((len + 2) / 3 * 4));
	p = out->data + out->len;
	for (; len >= 3; in += 3, len -= 3)
	{
		*p++ = digits[in[0] >> 2];
		*p++ = digits[(in[0] & 0x03) << 4 | in[1] >> 4];
		*p++ = digits[(in[1] & 0x0f) << 2 | in[2] >> 6];
		*p++ = digits[in[2] & 0x3f];
	}
	if (len > 0)
	{
		int			second = len == 2 ? in[1] : 0;

		*p++ = digits[in[0] >> 2];
		*p++ = digits[(in[0] & 0x03) << 4 | second >> 4];
		*p++ = len == 2 ? digits[(second & 0x0f) << 2] : '=';
		*p++ = '=';
	}
	out->len = (int) (p - out->data);
}

const char *
text_to_utf8(const char *text, Size *len)
{
	const char *converted;

	if (likely(GetDatabaseEncoding() == PG_UTF8))
		return text;
	converted = pg_server_to_any(text, (int) *len, PG_UTF8);
	if (converted != text)
		*len = strlen(converted);
	return converted;
}

OutputClass
output_class(const ValueStyle *style, Oid type)
{
	if (style_changes(style, type))
		return OUTPUT_STYLED;
	switch (type)
	{
		case BOOLOID:
			return OUTPUT_BOOL;
		case INT2OID:
			return OUTPUT_INT2;
		case INT4OID:
			return OUTPUT_INT4;
		case INT8OID:
			return OUTPUT_INT8;
		case FLOAT4OID:
			return OUTPUT_FLOAT4;
		case FLOAT8OID:
			return OUTPUT_FLOAT8;
		case NUMERICOID:
			return OUTPUT_NUMERIC;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return OUTPUT_TEXT;
		case BYTEAOID:
			return OUTPUT_BYTEA;
		case DATEOID:
			return OUTPUT_DATE;
		case TIMEOID:
			return OUTPUT_TIME;
		case TIMESTAMPOID:
			return OUTPUT_TIMESTAMP;
		case TIMESTAMPTZOID:
			return OUTPUT_TIMESTAMPTZ;
		case JSONOID:
			return OUTPUT_JSON;
		case JSONBOID:
			return OUTPUT_JSONB;
	}
	if (OidIsValid(array_element_type(type)))
		return OUTPUT_ARRAY;
	return get_typtype(type) == TYPTYPE_COMPOSITE ? OUTPUT_COMPOSITE : OUTPUT_OTHER;
}

ValueOutput *
value_output_create(Oid type)
{
	ValueOutput *output = palloc0(sizeof(ValueOutput));
	Oid			function;
	bool		varlena;

	getTypeOutputInfo(type, &function, &varlena);
	fmgr_info(function, &output->output);
	return output;
}

char *
value_output_text(ValueOutput *output, Datum value)
{
	DecodeSettings settings;
	char	   *volatile text = NULL;

	decode_settings_enter(&settings, "UTC");
	PG_TRY();
	{
		text = OutputFunctionCall(&output->output, value);
	}
	PG_FINALLY();
	{
		decode_settings_leave(&settings);
	}
	PG_END_TRY();
	return text;
}
