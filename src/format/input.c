/*
 * input.c
 *	  Text -> Datum by the type's input function, with shortcuts for the common
 *	  types that give the same answer faster; and the settings under which
 *	  messages are decoded.
 *
 * A shortcut takes only the plain spelling of a value.  Whatever looks unusual
 * (and every error) is left to PostgreSQL's input function.
 */
#include "postgres.h"

#include <ctype.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "compat.h"
#include "format/format.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

typedef enum InputClass
{
	INPUT_PLAIN,				/* the input function, always */
	INPUT_INT2,
	INPUT_INT4,
	INPUT_INT8,
	INPUT_NUMERIC,
	INPUT_BOOL,
	INPUT_TEXT,
	INPUT_VARCHAR,
	INPUT_DATE,
	INPUT_TIMESTAMP,
	INPUT_TIMESTAMPTZ,
	INPUT_TIME,					/* no shortcut, but bare numbers are refused */
	INPUT_NAME,					/* what the input function would cut is refused */
	INPUT_CHAR					/* "char", likewise */
} InputClass;

struct ValueInput
{
	InputClass	class;
	Oid			type;			/* a domain's base type */
	int32		typmod;
	Oid			ioparam;
	FmgrInfo	input;
	pg_tz	   *zone;			/* of naive timestamps */
	ValueStyle	style;			/* of times that are numbers */
	int			scale;			/* of numeric(p,s), -1: as written */
	int64		limit;			/* 10^p */
	bool		has_moments;	/* dates or times, perhaps within a range or an array */
	bool		zone_fixed;		/* its offset never changes */
	long		zone_offset;	/* then: seconds east of Greenwich */
	Oid			domain;			/* InvalidOid: not a domain */
	void	   *domain_cache;
	MemoryContext context;		/* of domain_cache */
};

/* Texts up to this are made C strings on the stack. */
#define SHORT_TEXT 256

/* === Settings =============================================================== */

/* Zones live as long as the process; most often the last one is asked for again. */
static pg_tz *
time_zone_get(const char *name)
{
	static char last_name[TZ_STRLEN_MAX + 1];
	static pg_tz *last = NULL;
	pg_tz	   *zone;

	if (last && strcmp(name, last_name) == 0)
		return last;
	zone = pg_tzset(name);
	if (zone == NULL || !pg_tz_acceptable(zone))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", name),
				 errhint("pg_timezone_names lists the known names.")));
	if (strlcpy(last_name, name, sizeof(last_name)) < sizeof(last_name))
		last = zone;
	return zone;
}

void
decode_settings_enter(DecodeSettings *saved, const char *time_zone)
{
	pg_tz	   *zone = time_zone_get(time_zone);

	saved->date_style = DateStyle;
	saved->date_order = DateOrder;
	saved->interval_style = IntervalStyle;
	saved->extra_float_digits = extra_float_digits;
	saved->bytea_output = bytea_output;
	saved->time_zone = session_timezone;

	DateStyle = USE_ISO_DATES;
	DateOrder = DATEORDER_MDY;
	IntervalStyle = INTSTYLE_POSTGRES;
	extra_float_digits = 1;
	bytea_output = BYTEA_OUTPUT_HEX;
	session_timezone = zone;
}

void
decode_settings_leave(const DecodeSettings *saved)
{
	DateStyle = saved->date_style;
	DateOrder = saved->date_order;
	IntervalStyle = saved->interval_style;
	extra_float_digits = saved->extra_float_digits;
	bytea_output = saved->bytea_output;
	session_timezone = (pg_tz *) saved->time_zone;
}

/* === Integers and booleans ================================================== */

/*
 * An optional minus sign and at most max_digits digits, too few to overflow.
 * Leading zeros and all else that the input function may know are not our
 * business here.
 */
static inline bool
plain_integer(const char *text, Size len, int max_digits, int64 *result)
{
	const char *p = text;
	const char *end = text + len;
	int64		value = 0;
	bool		negative = false;

	if (p < end && *p == '-')
	{
		negative = true;
		p++;
	}
	if (p == end || end - p > max_digits)
		return false;
	for (; p < end; p++)
	{
		unsigned	digit = (unsigned char) (*p - '0');

		if (digit > 9)
			return false;
		value = value * 10 + digit;
	}
	*result = negative ? -value : value;
	return true;
}

/*
 * 1.0 or 1e3 for an integer column: fine if the value is integral (case X09).
 * The value goes through numeric, never through a double.
 */
static Datum
integer_from_number(ValueInput *input, char *text)
{
	Datum		number = DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	Datum		whole = DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0));

	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, number, whole)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", format_type_be(input->type), text)));
	switch (input->class)
	{
		case INPUT_INT2:
			return DirectFunctionCall1(numeric_int2, whole);
		case INPUT_INT4:
			return DirectFunctionCall1(numeric_int4, whole);
		default:
			return DirectFunctionCall1(numeric_int8, whole);
	}
}

/* Decimals up to this many digits, and scales up to this, take the shortcut. */
#define PLAIN_DECIMAL_DIGITS 18

static const int64 powers_of_ten[PLAIN_DECIMAL_DIGITS + 1] = {
	INT64CONST(1), INT64CONST(10), INT64CONST(100), INT64CONST(1000), INT64CONST(10000),
	INT64CONST(100000), INT64CONST(1000000), INT64CONST(10000000), INT64CONST(100000000),
	INT64CONST(1000000000), INT64CONST(10000000000), INT64CONST(100000000000),
	INT64CONST(1000000000000), INT64CONST(10000000000000), INT64CONST(100000000000000),
	INT64CONST(1000000000000000), INT64CONST(10000000000000000),
	INT64CONST(100000000000000000), INT64CONST(1000000000000000000)
};

/*
 * Digits with at most one point among them, which the typmod neither rounds nor
 * refuses.  The result has the display scale that numeric_in would give it.
 */
static bool
plain_decimal(const ValueInput *input, const char *text, Size len, Datum *result)
{
	const char *p = text;
	const char *end = text + len;
	const char *point = NULL;
	int64		value = 0;
	int			scale;
	int			ndigits;

	if (p < end && *p == '-')
		p++;
	ndigits = (int) Min(end - p, PLAIN_DECIMAL_DIGITS + 2);
	if (ndigits == 0 || ndigits > PLAIN_DECIMAL_DIGITS)
		return false;
	for (; p < end; p++)
	{
		unsigned	digit = (unsigned char) (*p - '0');

		if (digit <= 9)
			value = value * 10 + digit;
		else if (*p == '.' && point == NULL)
			point = p;
		else
			return false;
	}
	scale = point ? (int) (end - point) - 1 : 0;
	if (point && (scale == 0 || ndigits - scale == 1))
		return false;			/* "1." and ".5" */
	if (input->scale >= 0)
	{
		int			more = input->scale - scale;

		if (more < 0 || more + ndigits > PLAIN_DECIMAL_DIGITS)
			return false;
		value *= powers_of_ten[more];
		scale = input->scale;
		if (value >= input->limit)
			return false;
	}
	*result = NumericGetDatum(int64_div_fast_to_numeric(*text == '-' ? -value : value, scale));
	return true;
}

/* Is a JSON number anything but a zero?  (case X13) */
static bool
number_is_true(const char *text, Size len)
{
	for (Size i = 0; i < len && text[i] != 'e' && text[i] != 'E'; i++)
	{
		if (text[i] >= '1' && text[i] <= '9')
			return true;
	}
	return false;
}

/* === Dates and times ======================================================== */

static inline bool
two_digits(const char *p, int *result)
{
	unsigned	tens = (unsigned char) (p[0] - '0');
	unsigned	ones = (unsigned char) (p[1] - '0');

	if (tens > 9 || ones > 9)
		return false;
	*result = tens * 10 + ones;
	return true;
}

/* YYYY-MM-DD, a day that exists; 'p' has ten bytes. */
static inline bool
plain_date(const char *p, struct pg_tm *tm)
{
	int			century;
	int			year;

	if (!two_digits(p, &century) || !two_digits(p + 2, &year) || p[4] != '-' ||
		!two_digits(p + 5, &tm->tm_mon) || p[7] != '-' || !two_digits(p + 8, &tm->tm_mday))
		return false;
	tm->tm_year = century * 100 + year;
	return tm->tm_year > 0 && tm->tm_mon >= 1 && tm->tm_mon <= 12 && tm->tm_mday >= 1 &&
		tm->tm_mday <= day_tab[isleap(tm->tm_year)][tm->tm_mon - 1];
}

/*
 * YYYY-MM-DD[ T]HH:MM:SS[.f{1,6}][Z|+-HH[[:]MM]] with a fraction that the typmod
 * does not round.  *local is the time as written, *zoned tells whether an offset
 * was, *east holds it in seconds.
 */
static bool
plain_timestamp(const char *p, Size len, int32 typmod, struct pg_tm *tm, Timestamp *local, bool *zoned, int *east)
{
	const char *end = p + len;
	int			fraction = 0;

	if (len < 19 || !plain_date(p, tm) || (p[10] != ' ' && p[10] != 'T') ||
		!two_digits(p + 11, &tm->tm_hour) || p[13] != ':' ||
		!two_digits(p + 14, &tm->tm_min) || p[16] != ':' || !two_digits(p + 17, &tm->tm_sec) ||
		tm->tm_hour > 23 || tm->tm_min > 59 || tm->tm_sec > 59)
		return false;
	p += 19;
	if (p < end && *p == '.')
	{
		int			digits = 0;
		static const int scale[] = {0, 100000, 10000, 1000, 100, 10, 1};

		for (p++; p < end && *p >= '0' && *p <= '9'; p++)
		{
			if (++digits > MAX_TIMESTAMP_PRECISION)
				return false;
			fraction = fraction * 10 + (*p - '0');
		}
		if (digits == 0 || (typmod >= 0 && digits > typmod))
			return false;
		fraction *= scale[digits];
	}
	*zoned = p < end;
	*east = 0;
	if (p < end && *p == 'Z')
		p++;
	else if (p < end && (*p == '+' || *p == '-'))
	{
		bool		negative = *p == '-';
		int			hours;
		int			minutes = 0;

		p++;
		if (end - p < 2 || !two_digits(p, &hours) || hours > MAX_TZDISP_HOUR)
			return false;
		p += 2;
		if (p < end)
		{
			if (*p == ':')
				p++;
			if (end - p < 2 || !two_digits(p, &minutes) || minutes > 59)
				return false;
			p += 2;
		}
		*east = (hours * 60 + minutes) * 60;
		if (negative)
			*east = -*east;
	}
	if (p != end)
		return false;
	*local = (date2j(tm->tm_year, tm->tm_mon, tm->tm_mday) - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY +
		((tm->tm_hour * 60 + tm->tm_min) * 60 + tm->tm_sec) * USECS_PER_SEC + fraction;
	return true;
}

/* === Public ================================================================= */

/*
 * numeric(p,s) keeps p and s in its typmod.  Scales that are negative (15 and
 * later) or large are left to the input function.
 */
static void
numeric_shortcut(ValueInput *input)
{
	int			precision;
	int			scale;

	input->class = INPUT_NUMERIC;
	input->scale = -1;
	if (input->typmod < (int32) VARHDRSZ)
		return;
	precision = ((input->typmod - VARHDRSZ) >> 16) & 0xffff;
	scale = (input->typmod - VARHDRSZ) & 0xffff;
	if (scale > PLAIN_DECIMAL_DIGITS)
		input->class = INPUT_PLAIN;
	input->scale = scale;
	input->limit = precision > PLAIN_DECIMAL_DIGITS ? PG_INT64_MAX : powers_of_ten[precision];
}

Oid
array_element_type(Oid type)
{
	return type == INT2VECTOROID || type == OIDVECTOROID ? InvalidOid : get_element_type(type);
}

/* Dates, times, and the types that hold them in their text: "[now,)" */
static bool
holds_moments(Oid type)
{
	Oid			part;

	switch (type)
	{
		case DATEOID:
		case TIMEOID:
		case TIMETZOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
	}
	part = get_element_type(type);
	if (!OidIsValid(part))
		part = get_range_subtype(type);
	if (!OidIsValid(part))
		part = get_multirange_range(type);
	return OidIsValid(part) && holds_moments(getBaseType(part));
}

ValueInput *
value_input_create(const FormatColumn *column, const char *time_zone)
{
	ValueInput *input = palloc0(sizeof(ValueInput));
	Oid			function;

	input->context = CurrentMemoryContext;
	input->typmod = column->typmod;
	input->style = column->style;
	if (input->style.unit != UNIT_NONE)
		input->zone = time_zone_get(time_zone);
	input->type = getBaseTypeAndTypmod(column->type, &input->typmod);
	if (input->type != column->type)
		input->domain = column->type;
	input->has_moments = holds_moments(input->type);
	getTypeInputInfo(input->type, &function, &input->ioparam);
	fmgr_info(function, &input->input);
	switch (input->type)
	{
		case INT2OID:
			input->class = INPUT_INT2;
			break;
		case INT4OID:
			input->class = INPUT_INT4;
			break;
		case INT8OID:
			input->class = INPUT_INT8;
			break;
		case NUMERICOID:
			numeric_shortcut(input);
			break;
		case BOOLOID:
			input->class = INPUT_BOOL;
			break;
		case TEXTOID:
			input->class = INPUT_TEXT;
			break;
		case VARCHAROID:
			input->class = input->typmod < 0 ? INPUT_TEXT : INPUT_VARCHAR;
			break;
		case DATEOID:
			input->class = INPUT_DATE;
			break;
		case TIMESTAMPOID:
			input->class = INPUT_TIMESTAMP;
			break;
		case TIMESTAMPTZOID:
			input->class = INPUT_TIMESTAMPTZ;
			input->zone = time_zone_get(time_zone);
			input->zone_fixed = pg_get_timezone_offset(input->zone, &input->zone_offset);
			break;
		case TIMEOID:
		case TIMETZOID:
			input->class = INPUT_TIME;
			break;
		case NAMEOID:
			input->class = INPUT_NAME;
			break;
		case CHAROID:
			input->class = INPUT_CHAR;
			break;
		default:
			input->class = INPUT_PLAIN;
			break;
	}
	return input;
}

/*
 * Input functions are not all careful with their SQLSTATE: tsvector's, tsquery's and
 * jsonpath's call bad text a syntax error (42601), as hstore's and ltree's do, and
 * extensions have internal errors (XX000) for it.  regclass and its kin know no such thing
 * (42P01, 42883, 3F000).  Here all of that is the message's fault.  Types of users may hold
 * domains, whose checks have errors of their own, which are none of the message's.
 */
static bool
is_bad_text(const ValueInput *input, int sqlerrcode)
{
	if (sqlerrcode == ERRCODE_SYNTAX_ERROR)
		return true;
	if (input->type >= FirstNormalObjectId)
		return sqlerrcode == ERRCODE_INTERNAL_ERROR;
	return sqlerrcode == ERRCODE_INVALID_SCHEMA_NAME ||
		(ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION &&
		 sqlerrcode != ERRCODE_INSUFFICIENT_PRIVILEGE);
}

static Datum
call_input(ValueInput *input, char *string)
{
	MemoryContext context = CurrentMemoryContext;
	Datum		result = (Datum) 0;

	PG_TRY();
	{
		result = InputFunctionCall(&input->input, string, input->ioparam, input->typmod);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (!is_bad_text(input, geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		edata->sqlerrcode = ERRCODE_INVALID_TEXT_REPRESENTATION;
		ReThrowError(edata);
	}
	PG_END_TRY();
	return result;
}

/*
 * Words that mean another moment each time they are read: the answer would not depend on
 * the message alone.  PostgreSQL takes words apart where their letters end.
 */
static void
refuse_relative_moments(const ValueInput *input, const char *text)
{
	static const char *const words[] = {"now", "today", "tomorrow", "yesterday"};

	for (const char *p = text; *p;)
	{
		const char *start = p;

		while (isalpha((unsigned char) *p))
			p++;
		for (int i = 0; i < lengthof(words); i++)
		{
			if (p - start == strlen(words[i]) && pg_strncasecmp(start, words[i], p - start) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
						 errmsg("invalid input syntax for type %s: \"%s\"", format_type_be(input->type), text),
						 errdetail("What \"%s\" means depends on when it is read.", words[i])));
		}
		p += *p != '\0';
	}
}

/* The types that PostgreSQL cuts a text for in silence */
static void
refuse_longer(const ValueInput *input, const char *text, Size len)
{
	bool		octal = input->class == INPUT_CHAR && len == 4 && text[0] == '\\';	/* a byte, from 16 on */

	if (len > (input->class == INPUT_CHAR ? 1 : NAMEDATALEN - 1) && !octal)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
				 errmsg("value too long for type %s", format_type_be(input->type))));
}

/* By the input function; also where a shortcut gave up. */
static Datum
value_input_plain(ValueInput *input, const char *text, Size len, bool is_number)
{
	char		buf[SHORT_TEXT];
	char	   *string = len < SHORT_TEXT ? buf : palloc(len + 1);
	Datum		result;

	memcpy(string, text, len);
	string[len] = '\0';
	switch (input->class)
	{
		case INPUT_INT2:
		case INPUT_INT4:
		case INPUT_INT8:
			if (is_number && strpbrk(string, ".eE") != NULL)
				return integer_from_number(input, string);
			break;
		case INPUT_DATE:
		case INPUT_TIME:
		case INPUT_TIMESTAMP:
		case INPUT_TIMESTAMPTZ:

			if (input->style.unit != UNIT_NONE && input->type != TIMETZOID && is_number_text(string))
			{
				result = time_from_number(&input->style, input->type, input->typmod, input->zone, string);
				if (string != buf)
					pfree(string);
				return result;
			}

			/*
			 * Nothing says what a bare number counts (case C03), and some
			 * numbers look like dates: 20240301.
			 */
			if (is_number)
				ereport(ERROR,
						(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						 errmsg("a bare number is no value of type %s: %s", format_type_be(input->type), string),
						 errhint("The format's option time_unit says what numbers count; or read it into a bigint column.")));
			break;
		case INPUT_NAME:
		case INPUT_CHAR:
			refuse_longer(input, text, len);
			break;
		default:
			break;
	}
	if (input->has_moments)
		refuse_relative_moments(input, string);
	result = call_input(input, string);
	if (string != buf)
		pfree(string);
	return result;
}

static inline Datum
value_input_base(ValueInput *input, const char *text, Size len, bool is_number)
{
	int64		integer;
	Datum		decimal;
	struct pg_tm tm;
	Timestamp	local;
	bool		zoned;
	int			east;

	switch (input->class)
	{
		case INPUT_PLAIN:
		case INPUT_TIME:
		case INPUT_NAME:
		case INPUT_CHAR:
			break;
		case INPUT_INT2:
			if (plain_integer(text, len, 4, &integer))
				return Int16GetDatum((int16) integer);
			break;
		case INPUT_INT4:
			if (plain_integer(text, len, 9, &integer))
				return Int32GetDatum((int32) integer);
			break;
		case INPUT_INT8:
			if (plain_integer(text, len, 18, &integer))
				return Int64GetDatum(integer);
			break;
		case INPUT_NUMERIC:
			if (plain_decimal(input, text, len, &decimal))
				return decimal;
			break;
		case INPUT_BOOL:
			if (is_number)
				return BoolGetDatum(number_is_true(text, len));
			if (len == 4 && memcmp(text, "true", 4) == 0)
				return BoolGetDatum(true);
			if (len == 5 && memcmp(text, "false", 5) == 0)
				return BoolGetDatum(false);
			break;
		case INPUT_TEXT:
			return PointerGetDatum(cstring_to_text_with_len(text, len));
		case INPUT_VARCHAR:
			/* no more bytes than characters allowed: no need to count them */
			if (len + VARHDRSZ <= (Size) input->typmod)
				return PointerGetDatum(cstring_to_text_with_len(text, len));
			break;
		case INPUT_DATE:
			if (len == 10 && plain_date(text, &tm))
				return DateADTGetDatum(date2j(tm.tm_year, tm.tm_mon, tm.tm_mday) - POSTGRES_EPOCH_JDATE);
			break;
		case INPUT_TIMESTAMP:
			/* an offset is ignored, as timestamp_in does (case X08) */
			if (plain_timestamp(text, len, input->typmod, &tm, &local, &zoned, &east))
				return TimestampGetDatum(local);
			break;
		case INPUT_TIMESTAMPTZ:
			if (plain_timestamp(text, len, input->typmod, &tm, &local, &zoned, &east))
			{
				if (!zoned)
					east = input->zone_fixed ? (int) input->zone_offset : -DetermineTimeZoneOffset(&tm, input->zone);
				return TimestampTzGetDatum(local - east * USECS_PER_SEC);
			}
			break;
	}
	return value_input_plain(input, text, len, is_number);
}

Datum
value_input(ValueInput *input, const char *text, Size len, bool is_number)
{
	Datum		result = value_input_base(input, text, len, is_number);

	if (OidIsValid(input->domain))
		domain_check(result, false, input->domain, &input->domain_cache, input->context);
	return result;
}

/* === Instants ================================================================ */

Datum
epoch_millis_datum(int64 ms, Oid type, pg_tz *zone)
{
	int64		micros;

	if (pg_mul_s64_overflow(ms, 1000, &micros))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld ms", (long long) ms)));
	return epoch_micros_datum(micros, type, zone);
}

Datum
epoch_micros_datum(int64 micros, Oid type, pg_tz *zone)
{
	const int64 epoch = (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	TimestampTz result;
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;

	if (!pg_sub_s64_overflow(micros, epoch, &result) && IS_VALID_TIMESTAMP(result))
	{
		if (type == TIMESTAMPTZOID)
			return TimestampTzGetDatum(result);
		if (timestamp2tm(result, &tz, &tm, &fsec, NULL, zone) == 0 &&
			tm2timestamp(&tm, fsec, NULL, &result) == 0)
			return TimestampGetDatum(result);
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 micros % 1000 == 0 ? errmsg("timestamp out of range: %lld ms", (long long) (micros / 1000)) :
			 errmsg("timestamp out of range: %lld us", (long long) micros)));
	return (Datum) 0;			/* not reached */
}
