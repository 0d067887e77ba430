/*
 * connect_logical.c
 *	  Logical values of Kafka Connect as text that PostgreSQL's types read: decimals,
 *	  bit strings, dates and times, all by integer arithmetic.
 *
 * Knows values and their kinds, not rows or columns.
 */
#include "postgres.h"

#include "common/base64.h"
#include "common/int.h"
#include "format/connect_schema.h"
#include "format/decimal_bytes.h"
#include "format/json_value.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

/* What 1970-01-01 is to PostgreSQL, in microseconds. */
#define UNIX_EPOCH_USECS	((int64) (UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY)

/* ------------------------------------------------------------------------
 * Numbers
 * ------------------------------------------------------------------------ */

bool
connect_int64(const JsonText *value, int64 *result)
{
	bool		negative;
	Size		i;
	int64		n = 0;

	if (value->kind != JK_NUMBER || !value->integral)
		return false;
	negative = value->text[0] == '-';
	for (i = negative ? 1 : 0; i < value->len; i++)
	{
		int			digit = value->text[i] - '0';

		if (pg_mul_s64_overflow(n, 10, &n) || pg_sub_s64_overflow(n, digit, &n))
			return false;
	}
	if (!negative && pg_mul_s64_overflow(n, -1, &n))
		return false;
	*result = n;
	return true;
}

/* The number that a value of this kind must be. */
int64
connect_required_int64(const ConnectKind *kind, const JsonText *value)
{
	int64		result;

	if (value->kind != JK_NUMBER || !value->integral)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("a whole number is expected for %s, found %s", kind->name,
						value->kind == JK_NUMBER ? json_excerpt(value) : psprintf("a JSON %s", json_kind_name(value->kind)))));
	if (!connect_int64(value, &result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("number out of range for %s: %s", kind->name, json_excerpt(value))));
	return result;
}

static void
out_of_range(const ConnectKind *kind, int64 number)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("value out of range for %s: %lld", kind->name, (long long) number)));
}

static int
decode_base64(const ConnectKind *kind, const JsonText *value, unsigned char **bytes)
{
	int			max;
	int			len;

	if (value->kind != JK_STRING || value->escaped)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("base64 text is expected for %s, found a JSON %s", kind->name, json_kind_name(value->kind))));
	max = pg_b64_dec_len((int) value->len) + 1;
	*bytes = palloc(max);
	len = pg_b64_decode(value->text, (int) value->len, (void *) *bytes, max);
	if (len < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid base64 text for %s: \"%s\"", kind->name, json_excerpt(value))));
	return len;
}

/* A string of base64 (org.apache.kafka.connect.data.Decimal, case C01) */
char *
connect_decimal_text(const ConnectKind *kind, int64 scale, const JsonText *value)
{
	unsigned char *bytes;
	int			len = decode_base64(kind, value, &bytes);
	char	   *text = decimal_bytes_text((const char *) bytes, len, scale, kind->name);

	pfree(bytes);
	return text;
}

/* {"scale": 2, "value": "AeJA"} (io.debezium.data.VariableScaleDecimal) */
char *
connect_variable_decimal_text(const ConnectKind *kind, const JsonText *value)
{
	static JsonField members[] = {{"scale", 5}, {"value", 5}};
	int32_t		slots[16];
	JsonFields	fields;
	JsonText	found[2];
	JsonScan	scan;
	int64		scale;

	Assert(json_fields_slots(lengthof(members)) <= lengthof(slots));
	json_fields_init(&fields, lengthof(members), members, slots);
	json_scan_init(&scan, value->text, value->len);
	if (value->kind != JK_OBJECT || !json_scan_object(&scan, &fields, found) || !connect_int64(&found[0], &scale))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("an object with the members \"scale\" and \"value\" is expected for %s", kind->name)));
	return connect_decimal_text(kind, scale, &found[1]);
}

char *
connect_infinite_number(const JsonText *value)
{
	static const char *const texts[] = {"POSITIVE_INFINITY", "NEGATIVE_INFINITY"};

	for (int i = 0; i < lengthof(texts); i++)
		if (value->len == strlen(texts[i]) && memcmp(value->text, texts[i], value->len) == 0)
			return pstrdup(i == 0 ? "Infinity" : "-Infinity");
	return NULL;
}

char *
connect_clock_text(const JsonText *value)
{
	if (value->len < 6 || value->text[2] != ':' || value->text[value->len - 1] != 'Z')
		return NULL;
	return pnstrdup(value->text, value->len - 1);
}

/* {"x": 1.5, "y": 2, "wkb": .., "srid": ..} (io.debezium.data.geometry.Point) */
char *
connect_point_text(const JsonText *value)
{
	static JsonField members[] = {{"x", 1}, {"y", 1}};
	int32_t		slots[16];
	JsonFields	fields;
	JsonText	found[2];
	JsonScan	scan;

	Assert(json_fields_slots(lengthof(members)) <= lengthof(slots));
	json_fields_init(&fields, lengthof(members), members, slots);
	json_scan_init(&scan, value->text, value->len);
	if (!json_scan_object(&scan, &fields, found) || found[0].kind <= JK_TRUE || found[0].kind > JK_STRING ||
		found[1].kind <= JK_TRUE || found[1].kind > JK_STRING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("an object with the members \"x\" and \"y\" is expected for a point")));
	return psprintf("(%.*s,%.*s)", (int) found[0].len, found[0].text, (int) found[1].len, found[1].text);
}

/* Little-endian bytes to a bit string, most significant bit first (io.debezium.data.Bits). */
char *
connect_bits_text(const ConnectKind *kind, const JsonText *value)
{
	unsigned char *bytes;
	int			len = decode_base64(kind, value, &bytes);
	int			n = kind->parameter > 0 ? kind->parameter : len * 8;
	char	   *text = palloc(n + 1);

	for (int i = 0; i < n; i++)
	{
		int			byte = i / 8;

		text[n - 1 - i] = byte < len && (bytes[byte] >> (i % 8) & 1) ? '1' : '0';
	}
	text[n] = '\0';
	pfree(bytes);
	return text;
}

/* ------------------------------------------------------------------------
 * Dates and times
 * ------------------------------------------------------------------------ */

/* Whole microseconds; nanoseconds are rounded, as PostgreSQL rounds them. */
static int64
to_micros(const ConnectKind *kind, int64 number)
{
	int64		result = number;
	bool		overflow = false;

	switch (kind->unit)
	{
		case CONNECT_SECONDS:
			overflow = pg_mul_s64_overflow(number, USECS_PER_SEC, &result);
			break;
		case CONNECT_MILLIS:
			overflow = pg_mul_s64_overflow(number, 1000, &result);
			break;
		case CONNECT_NANOS:
			result = number / 1000;
			if (number % 1000 >= 500)
				result++;
			else if (number % 1000 < -500)
				result--;
			break;
		default:
			break;
	}
	if (overflow)
		out_of_range(kind, number);
	return result;
}

/*
 * PostgreSQL's infinite days and times have passed through Debezium as the JDBC driver's
 * sentinels, in milliseconds; as those taken for microseconds; as the end of
 * PostgreSQL's range (case X07); and days as what is left of them in 32 bits, which in
 * a snapshot is another number than later.  No other number or text means infinity.
 */
typedef struct Sentinel
{
	int64		number;
	const char *means;
} Sentinel;

static const Sentinel infinite_times[] = {
	{INT64CONST(9223372036825200000), "infinity"},
	{INT64CONST(9223371331200000000), "infinity"},
	{INT64CONST(-9223372036832400000), "-infinity"}
};

static const Sentinel infinite_days[] = {
	{-2147472692, "infinity"},
	{-622191234, "infinity"},
	{-2147472691, "-infinity"},
	{-625821272, "-infinity"}
};

/* The same numbers as isostring writes them */
static const struct
{
	const char *text;
	const char *means;
}			infinite_texts[] = {
	{"+294247-01-10T04:00:25.2", "infinity"},
	{"-290308-12-21T19:59:27.6", "-infinity"},
	{"-5877611-06-21", "infinity"},
	{"+292278994-08-16", "infinity"},
	{"-5877611-06-22", "-infinity"},
	{"+292269055-12-02", "-infinity"}
};

const char *
connect_infinity_text(const ConnectKind *kind, int64 number)
{
	bool		days = kind->logical == LOGICAL_DATE;
	const Sentinel *sentinels = days ? infinite_days : infinite_times;
	int			n = days ? lengthof(infinite_days) : lengthof(infinite_times);

	for (int i = 0; i < n; i++)
		if (number == sentinels[i].number || (kind->unit == CONNECT_MILLIS && number == sentinels[i].number / 1000))
			return sentinels[i].means;
	return NULL;
}

/*
 * Years are astronomic: 0000 is 1 BC.  What follows the year is left to the input
 * function, but a time zone of a day, which means nothing.
 */
char *
connect_iso_text(const char *text, Size len)
{
	bool		negative;
	Size		digits = 0;
	int64		year = 0;

	if (len < 10 || (text[0] != '+' && text[0] != '-' && memcmp(text, "0000-", 5) != 0))
		return NULL;
	if (text[len - 1] == 'Z' && memchr(text, 'T', len) == NULL)
		len--;
	for (int i = 0; i < lengthof(infinite_texts); i++)
	{
		Size		known = strlen(infinite_texts[i].text);

		if (len >= known && memcmp(text, infinite_texts[i].text, known) == 0 && (len == known || text[known] == 'Z'))
			return pstrdup(infinite_texts[i].means);
	}
	negative = text[0] == '-';
	if (text[0] == '+' || text[0] == '-')
	{
		text++;
		len--;
	}
	while (digits < len && digits < 10 && text[digits] >= '0' && text[digits] <= '9')
		year = year * 10 + (text[digits++] - '0');
	if (digits < 4 || digits == len || text[digits] != '-')
		return NULL;
	if (year > 0 && !negative)
		return psprintf("%04lld%.*s", (long long) year, (int) (len - digits), text + digits);
	return psprintf("%04lld%.*s BC", (long long) year + 1, (int) (len - digits), text + digits);
}

static int
append_date(char *buf, int size, int julian, const char **era)
{
	int			year;
	int			month;
	int			day;

	j2date(julian, &year, &month, &day);
	*era = year > 0 ? "" : " BC";
	return snprintf(buf, size, "%04d-%02d-%02d", year > 0 ? year : 1 - year, month, day);
}

char *
connect_date_text(const ConnectKind *kind, int64 days)
{
	char		buf[64];
	const char *era;

	if (days < -UNIX_EPOCH_JDATE || days >= DATE_END_JULIAN - UNIX_EPOCH_JDATE)
		out_of_range(kind, days);
	(void) append_date(buf, sizeof(buf), (int) (days + UNIX_EPOCH_JDATE), &era);
	return psprintf("%s%s", buf, era);
}

char *
connect_timestamp_text(int64 timestamp)
{
	char		buf[64];
	const char *era;
	int64		day = timestamp / USECS_PER_DAY;
	int64		time = timestamp % USECS_PER_DAY;

	if (time < 0)
	{
		time += USECS_PER_DAY;
		day--;
	}
	(void) append_date(buf, sizeof(buf), (int) day + POSTGRES_EPOCH_JDATE, &era);
	return psprintf("%s %02d:%02d:%02d.%06d%s", buf, (int) (time / USECS_PER_HOUR),
					(int) (time / USECS_PER_MINUTE % 60), (int) (time / USECS_PER_SEC % 60),
					(int) (time % USECS_PER_SEC), era);
}

/* A wall clock's reading: the same whatever time zone anything is in (case C04). */
int64
connect_timestamp(const ConnectKind *kind, int64 number)
{
	int64		result = to_micros(kind, number);

	if (pg_add_s64_overflow(result, UNIX_EPOCH_USECS, &result) || !IS_VALID_TIMESTAMP(result))
		out_of_range(kind, number);
	return result;
}

int64
connect_local_time(int64 instant, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;
	long		offset;
	Timestamp	local;

	if (pg_get_timezone_offset(zone, &offset) && offset == 0)
		return instant;
	if (timestamp2tm(instant, &tz, &tm, &fsec, NULL, zone) != 0 || tm2timestamp(&tm, fsec, NULL, &local) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return local;
}

char *
connect_instant_text(int64 instant, pg_tz *zone)
{
	char	   *text = connect_timestamp_text(zone ? connect_local_time(instant, zone) : instant);
	char	   *era = strstr(text, " BC");

	if (zone)
		return text;
	return era ? psprintf("%.*s+00 BC", (int) (era - text), text) : psprintf("%s+00", text);
}

/* Also of more than a day and less than nothing: MySQL's TIME, durations. */
char *
connect_time_text(const ConnectKind *kind, int64 number)
{
	int64		time = to_micros(kind, number);
	uint64		size = time < 0 ? 0 - (uint64) time : (uint64) time;

	return psprintf("%s%02llu:%02d:%02d.%06d", time < 0 ? "-" : "",
					(unsigned long long) (size / USECS_PER_HOUR), (int) (size / USECS_PER_MINUTE % 60),
					(int) (size / USECS_PER_SEC % 60), (int) (size % USECS_PER_SEC));
}

/* An instant, in UTC where the column has no zone (case X08). */
char *
connect_zoned_text(const JsonText *value)
{
	char	   *text = connect_iso_text(value->text, value->len);
	TimestampTz instant;

	if (text == NULL)
		text = pnstrdup(value->text, value->len);
	instant = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(text),
													  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	if (TIMESTAMP_NOT_FINITE(instant))
		return text;
	pfree(text);
	return connect_timestamp_text(instant);
}
