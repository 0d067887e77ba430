/*
 * shim_time.c
 *	  Dates and times: ISO 8601 in and out, and two time zones.
 *
 * Times are in a backend's own units.  "UTC" and "Fixed" (an hour east) have an offset
 * that never changes; "Moving" is an hour east in odd months, two in even ones.
 */
#include "shim.h"

#include "common/int.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/timestamp.h"

struct pg_tz
{
	const char *name;
	int			odd;			/* seconds east of Greenwich */
	int			even;
};

static pg_tz zones[] = {{"UTC", 0, 0}, {"Fixed", 3600, 3600}, {"Moving", 3600, 7200}};

int			DateStyle = USE_ISO_DATES;
int			DateOrder = DATEORDER_MDY;
int			IntervalStyle = INTSTYLE_POSTGRES;
int			extra_float_digits = 1;
int			bytea_output = BYTEA_OUTPUT_HEX;
pg_tz	   *session_timezone = &zones[0];

const int	day_tab[2][13] = {
	{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0},
	{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0}
};

pg_tz *
pg_tzset(const char *name)
{
	for (int i = 0; i < lengthof(zones); i++)
	{
		if (strcmp(zones[i].name, name) == 0)
			return &zones[i];
	}
	return NULL;
}

bool
pg_tz_acceptable(pg_tz *tz)
{
	return true;
}

bool
pg_get_timezone_offset(const pg_tz *tz, long *gmtoff)
{
	*gmtoff = tz->odd;
	return tz->odd == tz->even;
}

/* === Days =================================================================== */

/* Julian day numbers, by way of years that begin in March */
int
date2j(int year, int month, int day)
{
	int64		y = (int64) year + 4800 - (month <= 2);
	int64		m = month + (month <= 2 ? 9 : -3);
	int64		era = (y >= 0 ? y : y - 399) / 400;
	int64		of_era = y - era * 400;

	return (int) (era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 32045);
}

void
j2date(int jd, int *year, int *month, int *day)
{
	int64		days = (int64) jd + 32044;
	int64		era = (days >= 0 ? days : days - 146096) / 146097;
	int64		of_era = days - era * 146097;
	int64		y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64		of_year = of_era - (365 * y + y / 4 - y / 100);
	int64		m = (5 * of_year + 2) / 153;

	*day = (int) (of_year - (153 * m + 2) / 5 + 1);
	*month = (int) (m < 10 ? m + 3 : m - 9);
	*year = (int) (y + era * 400 - 4800 + (m >= 10));
}

int
DetermineTimeZoneOffset(struct pg_tm *tm, pg_tz *tzp)
{
	if (tm->tm_mon < 1 || tm->tm_mon > 12)
		shim_fail("time zone of month %d", tm->tm_mon);
	return -(tm->tm_mon % 2 ? tzp->odd : tzp->even);
}

int
tm2timestamp(struct pg_tm *tm, fsec_t fsec, int *tzp, Timestamp *dt)
{
	int64		days = (int64) date2j(tm->tm_year, tm->tm_mon, tm->tm_mday) - POSTGRES_EPOCH_JDATE;
	int64		time = ((tm->tm_hour * 60 + tm->tm_min) * 60 + tm->tm_sec) * USECS_PER_SEC + fsec;

	*dt = 0;
	if (!IS_VALID_JULIAN(tm->tm_year, tm->tm_mon, tm->tm_mday) ||
		pg_mul_s64_overflow(days, USECS_PER_DAY, dt) || pg_add_s64_overflow(*dt, time, dt) ||
		(tzp && pg_add_s64_overflow(*dt, *tzp * USECS_PER_SEC, dt)) || !IS_VALID_TIMESTAMP(*dt))
		return -1;
	return 0;
}

int
timestamp2tm(Timestamp dt, int *tzp, struct pg_tm *tm, fsec_t *fsec, const char **tzn, pg_tz *attimezone)
{
	int64		days;
	int64		time;

	if (tzp)
	{
		pg_tz	   *zone = attimezone ? attimezone : session_timezone;
		int			year;
		int			month;
		int			day;

		j2date((int) (dt / USECS_PER_DAY) + POSTGRES_EPOCH_JDATE, &year, &month, &day);
		*tzp = -(month % 2 ? zone->odd : zone->even);
		if (pg_sub_s64_overflow(dt, *tzp * USECS_PER_SEC, &dt))
			return -1;
	}
	days = dt / USECS_PER_DAY;
	time = dt % USECS_PER_DAY;
	if (time < 0)
	{
		time += USECS_PER_DAY;
		days--;
	}
	if (days + POSTGRES_EPOCH_JDATE < 0 || days + POSTGRES_EPOCH_JDATE > PG_INT32_MAX)
		return -1;
	memset(tm, 0, sizeof(*tm));
	j2date((int) days + POSTGRES_EPOCH_JDATE, &tm->tm_year, &tm->tm_mon, &tm->tm_mday);
	tm->tm_hour = (int) (time / USECS_PER_HOUR);
	tm->tm_min = (int) (time / USECS_PER_MINUTE % 60);
	tm->tm_sec = (int) (time / USECS_PER_SEC % 60);
	*fsec = (fsec_t) (time % USECS_PER_SEC);
	return 0;
}

/* === Text =================================================================== */

/* A number of digits at *p, which moves behind them */
static bool
digits(const char **p, int min, int max, int *result)
{
	int			n = 0;

	*result = 0;
	for (; n < max && **p >= '0' && **p <= '9'; (*p)++, n++)
		*result = *result * 10 + (**p - '0');
	return n >= min;
}

static bool
expect(const char **p, char c)
{
	return *(*p)++ == c;
}

static bool
parse_date(const char **p, struct pg_tm *tm)
{
	return digits(p, 4, 6, &tm->tm_year) && expect(p, '-') && digits(p, 2, 2, &tm->tm_mon) && expect(p, '-') &&
		digits(p, 2, 2, &tm->tm_mday) && tm->tm_year > 0 && tm->tm_mon >= 1 && tm->tm_mon <= 12 &&
		tm->tm_mday >= 1 && tm->tm_mday <= day_tab[isleap(tm->tm_year)][tm->tm_mon - 1];
}

static bool
parse_time(const char **p, int64 *micros)
{
	int			hour;
	int			minute;
	int			second = 0;
	int			fraction = 0;

	if (!digits(p, 2, 2, &hour) || !expect(p, ':') || !digits(p, 2, 2, &minute))
		return false;
	if (**p == ':')
	{
		(*p)++;
		if (!digits(p, 2, 2, &second))
			return false;
		if (**p == '.')
		{
			int			unit = 100000;

			for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
				fraction += (**p - '0') * unit;
		}
	}
	*micros = ((hour * 60 + minute) * 60 + second) * USECS_PER_SEC + fraction;
	return hour <= 24 && minute <= 59 && second <= 60 && *micros <= USECS_PER_DAY;
}

/* Z, +HH, +HH:MM or nothing */
static bool
parse_zone(const char **p, bool *zoned, int *east)
{
	bool		minus = **p == '-';
	int			hours;
	int			minutes = 0;

	*zoned = **p != '\0' && **p != ' ';
	*east = 0;
	if (!*zoned)
		return true;
	if (**p == 'Z')
	{
		(*p)++;
		return true;
	}
	if (**p != '+' && **p != '-')
		return false;
	(*p)++;
	if (!digits(p, 2, 2, &hours))
		return false;
	if (**p == ':')
	{
		(*p)++;
		if (!digits(p, 2, 2, &minutes))
			return false;
	}
	*east = (hours * 60 + minutes) * (minus ? -60 : 60);
	return hours < 16 && minutes < 60;
}

/* Cut to a precision, half up */
static int64
at_precision(int64 micros, int32 typmod)
{
	int64		unit = 1;

	if (typmod < 0 || typmod >= 6)
		return micros;
	for (int i = typmod; i < 6; i++)
		unit *= 10;
	return (micros >= 0 ? micros + unit / 2 : micros - unit / 2) / unit * unit;
}

static bool
names_infinity(const char *text, bool *minus)
{
	*minus = *text == '-';
	return strcmp(text + *minus, "infinity") == 0;
}

Datum
shim_date_in(const char *text, Oid ioparam, int32 typmod)
{
	const char *p = text;
	struct pg_tm tm = {0};
	bool		minus;
	int64		date;

	if (names_infinity(text, &minus))
		return DateADTGetDatum(minus ? DATEVAL_NOBEGIN : DATEVAL_NOEND);
	if (!parse_date(&p, &tm) || (*p && strcmp(p, " BC") != 0))
		shim_bad_input("date", text);
	if (*p)
		tm.tm_year = 1 - tm.tm_year;
	date = (int64) date2j(tm.tm_year, tm.tm_mon, tm.tm_mday) - POSTGRES_EPOCH_JDATE;
	if (!IS_VALID_DATE(date))
		shim_out_of_range("date", text);
	return DateADTGetDatum((DateADT) date);
}

Datum
shim_time_in(const char *text, Oid ioparam, int32 typmod)
{
	const char *p = text;
	int64		micros;

	if (!parse_time(&p, &micros) || *p)
		shim_bad_input("time", text);
	return TimeADTGetDatum(at_precision(micros, typmod));
}

static Datum
timestamp_of_text(const char *text, int32 typmod, bool with_zone)
{
	const char *p = text;
	struct pg_tm tm = {0};
	bool		minus;
	bool		zoned = false;
	int			east = 0;
	int64		time = 0;
	Timestamp	result;

	if (names_infinity(text, &minus))
	{
		if (minus)
			TIMESTAMP_NOBEGIN(result);
		else
			TIMESTAMP_NOEND(result);
		return TimestampGetDatum(result);
	}
	if (!parse_date(&p, &tm))
		shim_bad_input("timestamp", text);
	if (*p == ' ' || *p == 'T')
	{
		p++;
		if (strcmp(p, "BC") == 0)
			p--;
		else if (!parse_time(&p, &time) || !parse_zone(&p, &zoned, &east))
			shim_bad_input("timestamp", text);
	}
	if (strcmp(p, " BC") == 0)
		tm.tm_year = 1 - tm.tm_year;
	else if (*p)
		shim_bad_input("timestamp", text);
	if (!with_zone)
		east = 0;
	else if (!zoned)
		east = -DetermineTimeZoneOffset(&tm, session_timezone);
	if (tm2timestamp(&tm, 0, NULL, &result) != 0 ||
		pg_add_s64_overflow(result, time - east * USECS_PER_SEC, &result) || !IS_VALID_TIMESTAMP(result))
		shim_out_of_range("timestamp", text);
	return TimestampGetDatum(at_precision(result, typmod));
}

Datum
shim_timestamp_in(const char *text, Oid ioparam, int32 typmod)
{
	return timestamp_of_text(text, typmod, false);
}

Datum
shim_timestamptz_in(const char *text, Oid ioparam, int32 typmod)
{
	return timestamp_of_text(text, typmod, true);
}

/* [-]HH:MM:SS, what the function below writes, or anything behind a P */
Datum
shim_interval_in(const char *text, Oid ioparam, int32 typmod)
{
	Interval   *result = palloc0(sizeof(Interval));
	const char *p = text + (*text == '-');
	long long	micros;
	int64		hours;
	int			n = 0;

	if (sscanf(text, "%d mon %d day %lld us%n", &result->month, &result->day, &micros, &n) == 3 && n == (int) strlen(text))
		result->time = micros;
	else if (*text == 'P' || *text == '@')
		result->month = (int32) strlen(text);
	else
	{
		char	   *end;
		int64		rest;

		errno = 0;
		hours = *p >= '0' && *p <= '9' ? strtoll(p, &end, 10) : -1;
		if (hours < 0)
			shim_bad_input("interval", text);
		if (errno == ERANGE || hours > 2562047787)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("interval out of range")));
		p = psprintf("00%s", end);
		if (!parse_time(&p, &rest) || *p)
			shim_bad_input("interval", text);
		result->time = hours * USECS_PER_HOUR + rest;
		if (*text == '-')
			result->time = -result->time;
	}
	return IntervalPGetDatum(result);
}

char *
shim_interval_out(Datum value)
{
	Interval   *interval = DatumGetIntervalP(value);

	return psprintf("%d mon %d day %lld us", interval->month, interval->day, (long long) interval->time);
}

/* For encoders: what the functions above read */
char *
shim_date_out(Datum value)
{
	DateADT		date = DatumGetDateADT(value);
	int			year;
	int			month;
	int			day;

	if (DATE_NOT_FINITE(date))
		return pstrdup(DATE_IS_NOBEGIN(date) ? "-infinity" : "infinity");
	if (!IS_VALID_DATE(date))
		shim_fail("%d is no date", date);
	j2date(date + POSTGRES_EPOCH_JDATE, &year, &month, &day);
	return psprintf("%04d-%02d-%02d%s", year > 0 ? year : 1 - year, month, day, year > 0 ? "" : " BC");
}

char *
shim_time_out(Datum value)
{
	TimeADT		time = DatumGetTimeADT(value);

	if (time < 0 || time > USECS_PER_DAY)
		shim_fail("%lld is no time", (long long) time);
	return psprintf("%02d:%02d:%02d.%06d", (int) (time / USECS_PER_HOUR), (int) (time / USECS_PER_MINUTE % 60),
					(int) (time / USECS_PER_SEC % 60), (int) (time % USECS_PER_SEC));
}

char *
shim_timestamp_out(Datum value)
{
	Timestamp	timestamp = DatumGetTimestamp(value);
	struct pg_tm tm;
	fsec_t		fsec;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		return pstrdup(TIMESTAMP_IS_NOBEGIN(timestamp) ? "-infinity" : "infinity");
	if (!IS_VALID_TIMESTAMP(timestamp) || timestamp2tm(timestamp, NULL, &tm, &fsec, NULL, NULL) != 0)
		shim_fail("%lld is no timestamp", (long long) timestamp);
	return psprintf("%04d-%02d-%02d %02d:%02d:%02d.%06d%s", tm.tm_year > 0 ? tm.tm_year : 1 - tm.tm_year,
					tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fsec, tm.tm_year > 0 ? "" : " BC");
}

/* --- PostgreSQL's ------------------------------------------------------------ */

Datum
date_in(PG_FUNCTION_ARGS)
{
	return shim_date_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
time_in(PG_FUNCTION_ARGS)
{
	return shim_time_in(PG_GETARG_CSTRING(0), InvalidOid, PG_GETARG_INT32(2));
}

Datum
timestamp_in(PG_FUNCTION_ARGS)
{
	return shim_timestamp_in(PG_GETARG_CSTRING(0), InvalidOid, PG_GETARG_INT32(2));
}

Datum
timestamptz_in(PG_FUNCTION_ARGS)
{
	return shim_timestamptz_in(PG_GETARG_CSTRING(0), InvalidOid, PG_GETARG_INT32(2));
}

Datum
time_scale(PG_FUNCTION_ARGS)
{
	return TimeADTGetDatum(at_precision(PG_GETARG_TIMEADT(0), PG_GETARG_INT32(1)));
}

Datum
timestamp_scale(PG_FUNCTION_ARGS)
{
	return TimestampGetDatum(at_precision(PG_GETARG_TIMESTAMP(0), PG_GETARG_INT32(1)));
}

Datum
timestamptz_scale(PG_FUNCTION_ARGS)
{
	return timestamp_scale(fcinfo);
}

Datum
timestamptz_zone(PG_FUNCTION_ARGS)
{
	pg_tz	   *zone = pg_tzset(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	struct pg_tm tm;
	fsec_t		fsec;
	int			offset;
	Timestamp	result;

	if (TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(1)))
		return TimestampGetDatum(PG_GETARG_TIMESTAMPTZ(1));
	if (timestamp2tm(PG_GETARG_TIMESTAMPTZ(1), &offset, &tm, &fsec, NULL, zone) != 0 || tm2timestamp(&tm, fsec, NULL, &result) != 0)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
	return TimestampGetDatum(result);
}

Datum
interval_in(PG_FUNCTION_ARGS)
{
	return shim_interval_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
interval_scale(PG_FUNCTION_ARGS)
{
	return PG_GETARG_DATUM(0);
}
