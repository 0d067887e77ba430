/*
 * value_style.c
 *	  Values that messages spell in one of several ways, see value_style.h.
 *
 * Integer and decimal arithmetic only: no value passes through a double.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/int.h"
#include "format/decimal_bytes.h"
#include "format/format.h"
#include "format/value_output.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define EPOCH_MICROS	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)
#define EPOCH_DAYS		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

static const int64 per_second[] = {
	[UNIT_SECONDS] = 1,[UNIT_MILLIS] = 1000,[UNIT_MICROS] = 1000000,[UNIT_NANOS] = 1000000000
};

int64
time_unit_per_second(TimeUnit unit)
{
	return per_second[unit];
}

/* === Options ================================================================ */

void
value_style_parse(List *options, ValueStyle *style)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);
		const char *value = defGetString(option);

		if (strcmp(option->defname, "time_unit") == 0)
			style->unit = strcmp(value, "s") == 0 ? UNIT_SECONDS : strcmp(value, "ms") == 0 ? UNIT_MILLIS :
				strcmp(value, "us") == 0 ? UNIT_MICROS : UNIT_NANOS;
		else if (strcmp(option->defname, "decimal_format") == 0)
			style->decimal = strcmp(value, "number") == 0 ? DECIMAL_NUMBER :
				strcmp(value, "text") == 0 ? DECIMAL_TEXT : DECIMAL_BASE64;
		else if (strcmp(option->defname, "binary_format") == 0)
			style->binary = strcmp(value, "base64") == 0 ? BINARY_BASE64 :
				strcmp(value, "hex") == 0 ? BINARY_HEX : BINARY_LATIN1;
		else if (strcmp(option->defname, "nul_handling") == 0)
			style->strip_nul = strcmp(value, "strip") == 0;
	}
}

FormatColumn *
styled_columns(int n, const FormatColumn *columns, const ValueStyle *style)
{
	FormatColumn *result = palloc(sizeof(FormatColumn) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		result[i] = columns[i];
		result[i].style = *style;
	}
	return result;
}

/* === Times, reading ========================================================= */

bool
is_number_text(const char *text)
{
	const char *p = text;
	int			digits = 0;

	if (*p == '-' || *p == '+')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		digits++;
	if (*p == '.')
	{
		for (p++; *p >= '0' && *p <= '9'; p++)
			digits++;
	}
	if (digits > 0 && (*p == 'e' || *p == 'E'))
	{
		p++;
		if (*p == '-' || *p == '+')
			p++;
		if (*p == '\0')
			return false;
		while (*p >= '0' && *p <= '9')
			p++;
	}
	return digits > 0 && *p == '\0';
}

static void
out_of_range(Oid type, const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("number out of range for type %s: %s", format_type_be(type), text)));
}

static int64
whole_number(Oid type, Datum number, const char *text)
{
	Datum		size = DirectFunctionCall1(numeric_abs, number);

	if (DatumGetBool(DirectFunctionCall2(numeric_ge, size, NumericGetDatum(int64_to_numeric(PG_INT64_MAX)))))
		out_of_range(type, text);
	return DatumGetInt64(DirectFunctionCall1(numeric_int8, number));
}

/* Whole microseconds; what is finer is rounded, as PostgreSQL rounds text */
static int64
micros_of(TimeUnit unit, Oid type, const char *text)
{
	Datum		number;

	if (strlen(text) <= 18 && strpbrk(text, ".eE") == NULL)
	{
		int64		value = strtoll(text, NULL, 10);

		if (unit == UNIT_NANOS)
			return value / 1000 + (value % 1000 >= 500) - (value % 1000 <= -500);
		if (pg_mul_s64_overflow(value, 1000000 / per_second[unit], &value))
			out_of_range(type, text);
		return value;
	}
	number = DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	number = DirectFunctionCall2(numeric_mul, number, NumericGetDatum(int64_to_numeric(1000000)));
	number = DirectFunctionCall2(numeric_div, number, NumericGetDatum(int64_to_numeric(per_second[unit])));
	return whole_number(type, number, text);
}

static Datum
date_of(const char *text)
{
	Datum		number = DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	Datum		whole = DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0));
	int64		days;

	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, number, whole)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("a number of days is expected for type date, found %s", text)));
	days = whole_number(DATEOID, whole, text);
	if (days < -(int64) UNIX_EPOCH_JDATE || days >= DATE_END_JULIAN - UNIX_EPOCH_JDATE)
		out_of_range(DATEOID, text);
	return DateADTGetDatum((DateADT) (days - EPOCH_DAYS));
}

Datum
time_from_number(const ValueStyle *style, Oid type, int32 typmod, pg_tz *zone, const char *text)
{
	int64		micros;
	Datum		result;

	if (type == DATEOID)
		return date_of(text);
	micros = micros_of(style->unit, type, text);
	if (type == TIMEOID)
	{
		if (micros < 0 || micros > USECS_PER_DAY)
			out_of_range(type, text);
		result = TimeADTGetDatum(micros);
		return typmod < 0 ? result : DirectFunctionCall2(time_scale, result, Int32GetDatum(typmod));
	}
	result = epoch_micros_datum(micros, type, zone);
	if (typmod < 0)
		return result;
	return DirectFunctionCall2(type == TIMESTAMPOID ? timestamp_scale : timestamptz_scale, result, Int32GetDatum(typmod));
}

/* === Bytes and decimals, reading ============================================ */

const char *
strip_nul_bytes(const char *bytes, Size *len)
{
	char	   *copy;
	Size		n = 0;

	if (memchr(bytes, '\0', *len) == NULL)
		return bytes;
	copy = palloc_extended(*len, MCXT_ALLOC_HUGE);
	for (Size i = 0; i < *len; i++)
	{
		if (bytes[i] != '\0')
			copy[n++] = bytes[i];
	}
	*len = n;
	return copy;
}

static inline int
base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/*
 * Base64 with its padding (RFC 4648, section 4); white space is skipped, since MIME
 * encoders break lines.  Behind *out afterwards; false if it is none.
 */
static bool
base64_decode(const char *text, Size len, unsigned char **out)
{
	uint32		bits = 0;
	int			digits = 0;		/* of the current group of four */
	int			padding = 0;
	bool		ended = false;	/* by a group with padding */

	for (const char *p = text; p < text + len; p++)
	{
		int			digit;

		if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
			continue;
		if (ended)
			return false;
		digit = base64_digit(*p);
		if (*p == '=' && digits >= 2)
		{
			padding++;
			digit = 0;
		}
		else if (digit < 0 || padding > 0)
			return false;
		bits = bits << 6 | (uint32) digit;
		if (++digits < 4)
			continue;
		*(*out)++ = (unsigned char) (bits >> 16);
		if (padding < 2)
			*(*out)++ = (unsigned char) (bits >> 8);
		if (padding < 1)
			*(*out)++ = (unsigned char) bits;
		ended = padding > 0;
		digits = 0;
		bits = 0;
	}
	return digits == 0;
}

/* 'type' is what the bytes are for; hexadecimal may be another form of it */
static bytea *
base64_bytes(const char *text, Size len, const char *type, bool or_hex)
{
	bytea	   *result = palloc(VARHDRSZ + len / 4 * 3 + 3);
	unsigned char *end = (unsigned char *) VARDATA(result);

	if (!base64_decode(text, len, &end))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid base64 text for type %s", type),
				 or_hex ? errhint("bytea is read as base64, or as hexadecimal after \\x.") : 0));
	SET_VARSIZE(result, (char *) end - (char *) result);
	return result;
}

Datum
bytea_input(const char *text, Size len)
{
	char	   *hex;
	Datum		result;

	if (len < 2 || text[0] != '\\' || text[1] != 'x')
		return PointerGetDatum(base64_bytes(text, len, "bytea", true));
	hex = pnstrdup(text, len);
	result = DirectFunctionCall1(byteain, CStringGetDatum(hex));
	pfree(hex);
	return result;
}

Datum
binary_input(BinaryFormat format, const char *text, Size len)
{
	char	   *hex;
	Datum		result;

	if (format != BINARY_HEX || (len >= 2 && text[0] == '\\' && text[1] == 'x'))
		return bytea_input(text, len);
	hex = palloc(len + 3);
	hex[0] = '\\';
	hex[1] = 'x';
	memcpy(hex + 2, text, len);
	hex[len + 2] = '\0';
	result = DirectFunctionCall1(byteain, CStringGetDatum(hex));
	pfree(hex);
	return result;
}

static int
scale_of(int32 typmod)
{
	/* eleven bits with a sign, since PostgreSQL 15 */
	return (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
}

void
check_base64_scale(int32 typmod, const char *column)
{
	if (typmod >= (int32) VARHDRSZ && scale_of(typmod) >= 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
			 errmsg("column \"%s\" of type %s cannot have decimal_format 'base64'", column,
					format_type_with_typemod(NUMERICOID, typmod)),
			 errhint("The bytes do not hold the scale: declare numeric(p,s) with that of the producer.")));
}

Datum
decimal_from_base64(const char *text, Size len, int32 typmod)
{
	bytea	   *bytes = base64_bytes(text, len, "numeric", false);
	char	   *number = decimal_bytes_text(VARDATA(bytes), (int) (VARSIZE(bytes) - VARHDRSZ), scale_of(typmod), "numeric");
	Datum		result = DirectFunctionCall3(numeric_in, CStringGetDatum(number), ObjectIdGetDatum(InvalidOid), Int32GetDatum(typmod));

	pfree(number);
	pfree(bytes);
	return result;
}

/* === Writing ================================================================ */

bool
style_is_number(const ValueStyle *style, Oid type)
{
	return style->unit != UNIT_NONE &&
		(type == DATEOID || type == TIMEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID);
}

bool
style_changes(const ValueStyle *style, Oid type)
{
	if (type == NUMERICOID)
		return style->decimal != DECIMAL_NUMBER;
	if (type == BYTEAOID)
		return style->binary != BINARY_BASE64;
	return style_is_number(style, type);
}

static void
infinite(Oid type)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("an infinite %s cannot be written", type == DATEOID ? "date" : "timestamp")));
}

/* Microseconds since 1970, in UTC or by the wall clock */
static int64
epoch_micros(const ValueStyle *style, Oid type, pg_tz *zone, Timestamp value)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;
	bool		ok = true;

	if (TIMESTAMP_NOT_FINITE(value))
		infinite(type);
	if (type == TIMESTAMPOID && !style->wall_clock)
	{
		ok = timestamp2tm(value, NULL, &tm, &fsec, NULL, NULL) == 0;
		tz = ok ? DetermineTimeZoneOffset(&tm, zone) : 0;
		ok = ok && tm2timestamp(&tm, fsec, &tz, &value) == 0;
	}
	else if (type == TIMESTAMPTZOID && style->wall_clock)
		ok = timestamp2tm(value, &tz, &tm, &fsec, NULL, zone) == 0 && tm2timestamp(&tm, fsec, NULL, &value) == 0;
	if (!ok)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return value + EPOCH_MICROS;
}

static void
append_micros(StringInfo out, TimeUnit unit, int64 micros)
{
	int64		value;

	if (unit == UNIT_NANOS)
	{
		if (pg_mul_s64_overflow(micros, 1000, &value))
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("timestamp out of range for nanoseconds")));
	}
	else
	{
		int64		per_unit = 1000000 / per_second[unit];

		value = micros / per_unit;
		if (value * per_unit > micros)
			value--;			/* before 1970, too, it is cut off downwards */
	}
	appendStringInfo(out, INT64_FORMAT, value);
}

static void
append_decimal(StringInfo out, DecimalFormat format, int32 typmod, Datum value)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, value));
	StringInfoData bytes;

	if (format == DECIMAL_TEXT)
		appendStringInfoString(out, text);
	else
	{
		initStringInfo(&bytes);
		if (text[strlen(text) - 1] > '9' || !decimal_bytes_append(&bytes, text, NUMERIC_MAX_PRECISION, scale_of(typmod)))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("numeric value %s has no bytes", text)));
		append_base64(out, bytes.data, bytes.len);
		pfree(bytes.data);
	}
	pfree(text);
}

static void
append_binary(StringInfo out, BinaryFormat format, const unsigned char *data, Size len)
{
	static const char hex[] = "0123456789abcdef";
	char	   *p;

	if (len > MaxAllocSize / 2 - 1)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a value of %zu bytes is too long for a message", len)));
	enlargeStringInfo(out, (int) (2 * len));
	p = out->data + out->len;
	for (Size i = 0; i < len; i++)
	{
		unsigned char c = data[i];

		if (format == BINARY_HEX)
		{
			*p++ = hex[c >> 4];
			*p++ = hex[c & 15];
			continue;
		}
		if (c >= 0x80)
			*p++ = (char) (0xC0 | c >> 6);
		*p++ = (char) (c < 0x80 ? c : 0x80 | (c & 0x3F));
	}
	out->len = (int) (p - out->data);
}

void
style_append_bytes(StringInfo out, const ValueStyle *style, const char *bytes, Size len)
{
	append_binary(out, style->binary, (const unsigned char *) bytes, len);
}

void
style_append(StringInfo out, const ValueStyle *style, Oid type, int32 typmod, pg_tz *zone, Datum value)
{
	struct varlena *bytes;

	switch (type)
	{
		case NUMERICOID:
			append_decimal(out, style->decimal, typmod, value);
			break;
		case BYTEAOID:
			bytes = PG_DETOAST_DATUM_PACKED(value);
			append_binary(out, style->binary, (const unsigned char *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
			if ((Pointer) bytes != DatumGetPointer(value))
				pfree(bytes);
			break;
		case DATEOID:
			if (DATE_NOT_FINITE(DatumGetDateADT(value)))
				infinite(type);
			appendStringInfo(out, INT64_FORMAT, (int64) DatumGetDateADT(value) + EPOCH_DAYS);
			break;
		case TIMEOID:
			append_micros(out, style->unit, DatumGetTimeADT(value));
			break;
		default:
			append_micros(out, style->unit, epoch_micros(style, type, zone, DatumGetTimestamp(value)));
			break;
	}
}
