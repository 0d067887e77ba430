/*
 * shim_numeric.c
 *	  Type numeric: numbers as text at their display scale, and their layout.
 *
 * Exact in what decoders rely on (limits, typmods, rounding, order), and nothing else.
 */
#include "shim.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define MAX_WHOLE		131072	/* digits in front of the point */
#define MAX_FRACTION	16383

/* A number's parts: -?whole[.fraction], whole without leading zeros */
typedef struct Parts
{
	bool		negative;
	const char *whole;
	int			nwhole;
	const char *fraction;
	int			nfraction;
} Parts;

static void
overflow(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("value overflows numeric format")));
}

static bool
is_special(const char *text)
{
	return text[strlen(text) - 1] > '9';
}

static void
split(const char *text, Parts *parts)
{
	const char *point = strchr(text, '.');

	parts->negative = *text == '-';
	parts->whole = text + parts->negative;
	parts->nwhole = point ? (int) (point - parts->whole) : (int) strlen(parts->whole);
	parts->fraction = point ? point + 1 : "";
	parts->nfraction = (int) strlen(parts->fraction);
	while (parts->nwhole > 0 && *parts->whole == '0')
	{
		parts->whole++;
		parts->nwhole--;
	}
}

/*
 * Numbers of common size are laid out as PostgreSQL has them on disk, since encoders read
 * that: a short header, and digits to base 10000.  Others are a header of another form,
 * and their text.
 */
#define SHORT_FORM			0x8000
#define SHORT_MINUS			0x2000
#define SHORT_MAX_SCALE		63
#define SHORT_MAX_WEIGHT	63

/* Up to four digits of those from 'from' on, which may begin before the first and go behind the last */
static int16
group_at(const char *digits, int n, int from)
{
	int			value = 0;

	for (int i = from; i < from + 4; i++)
		value = value * 10 + (i >= 0 && i < n ? digits[i] - '0' : 0);
	return (int16) value;
}

static Datum
make_varlena(uint16 header, const void *bytes, Size len)
{
	char	   *result = palloc(VARHDRSZ + sizeof(header) + len);

	SET_VARSIZE(result, VARHDRSZ + sizeof(header) + len);
	memcpy(VARDATA(result), &header, sizeof(header));
	memcpy(VARDATA(result) + sizeof(header), bytes, len);
	return PointerGetDatum(result);
}

static Datum
make(const char *text)
{
	Parts		parts;
	int			whole_groups;
	int			n = 0;
	int			first = 0;
	int			weight;
	int16		groups[2 * SHORT_MAX_WEIGHT];
	uint16		header;

	if (is_special(text))
		return make_varlena(0, text, strlen(text));
	split(text, &parts);
	whole_groups = (parts.nwhole + 3) / 4;
	if (whole_groups > SHORT_MAX_WEIGHT || parts.nfraction > SHORT_MAX_SCALE)
		return make_varlena(0, text, strlen(text));
	for (int i = 0; i < whole_groups; i++)
		groups[n++] = group_at(parts.whole, parts.nwhole, parts.nwhole - 4 * (whole_groups - i));
	for (int i = 0; i < parts.nfraction; i += 4)
		groups[n++] = group_at(parts.fraction, parts.nfraction, i);
	while (n > 0 && groups[n - 1] == 0)
		n--;
	while (first < n && groups[first] == 0)
		first++;
	weight = n == first ? 0 : whole_groups - 1 - first;
	header = SHORT_FORM | (parts.negative && n > first ? SHORT_MINUS : 0) | parts.nfraction << 7 | (weight & 0x7F);
	return make_varlena(header, groups + first, sizeof(int16) * (n - first));
}

static char *
number_text(Datum value)
{
	const char *bytes = VARDATA_ANY(DatumGetPointer(value));
	Size		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value)) - sizeof(uint16);
	uint16		header;
	int			weight;
	int			scale;
	int			n = (int) (len / sizeof(int16));
	StringInfoData text;

	memcpy(&header, bytes, sizeof(header));
	bytes += sizeof(header);
	if ((header & SHORT_FORM) == 0)
		return pnstrdup(bytes, len);
	scale = header >> 7 & SHORT_MAX_SCALE;
	weight = header & 0x40 ? (int) (header & 0x7F) - 128 : header & 0x3F;
	initStringInfo(&text);
	if (header & SHORT_MINUS)
		appendStringInfoChar(&text, '-');
	for (int i = Min(0, weight + 1); i <= Max(weight, weight + (scale + 3) / 4); i++)
	{
		int16		group = 0;

		if (i >= 0 && i < n)
			memcpy(&group, bytes + sizeof(int16) * i, sizeof(group));
		if (i == weight + 1)
			appendStringInfoString(&text, i <= 0 ? "0." : ".");
		if (i < 0 && i <= weight)
			continue;
		appendStringInfo(&text, i == 0 && i <= weight ? "%d" : "%04d", group);
	}
	if (scale > 0)
		text.len -= (4 - scale % 4) % 4;
	else if (text.len > 0 && text.data[text.len - 1] == '.')
		text.len--;
	text.data[text.len] = '\0';
	return text.data;
}

/* Digits (a point is 'scale' of them from the end) rounded to another scale */
static char *
at_scale(bool negative, const char *digits, int ndigits, int scale, int new_scale)
{
	int			keep = ndigits - scale + new_scale;
	char	   *result;
	char	   *d;
	bool		zero = true;
	int			n = 0;

	if (keep < 0)
		keep = 0;
	/* a digit for the carry, then those that are kept, then zeros */
	d = palloc(keep + 1);
	d[0] = '0';
	for (int i = 0; i < keep; i++)
		d[i + 1] = i < ndigits ? digits[i] : '0';
	if (keep < ndigits && (ndigits - scale + new_scale) >= 0 && digits[keep] >= '5')
	{
		int			i = keep;

		while (d[i] == '9')
			d[i--] = '0';
		d[i]++;
	}
	keep++;
	for (int i = 0; i < keep; i++)
		zero &= d[i] == '0';
	result = palloc(keep + Max(new_scale, 0) + 4);
	if (negative && !zero)
		result[n++] = '-';
	{
		int			whole = keep - new_scale;
		int			i = 0;

		while (i < whole - 1 && d[i] == '0')
			i++;
		if (whole <= 0)
			result[n++] = '0';
		for (; i < whole; i++)
			result[n++] = i < keep ? d[i] : '0';
		if (new_scale > 0)
		{
			result[n++] = '.';
			for (int j = whole; j < 0; j++)
				result[n++] = '0';
			for (i = Max(whole, 0); i < keep; i++)
				result[n++] = d[i];
		}
	}
	result[n] = '\0';
	pfree(d);
	return result;
}

static Datum
apply_typmod(char *text, int32 typmod)
{
	int			precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	int			scale = (typmod - VARHDRSZ) & 0x7ff;
	Parts		parts;
	StringInfoData digits;

	if (typmod < (int32) VARHDRSZ)
		return make(text);
	if (is_special(text))
	{
		if (strcmp(text, "NaN") != 0)
			overflow();
		return make(text);
	}
	split(text, &parts);
	initStringInfo(&digits);
	appendBinaryStringInfo(&digits, parts.whole, parts.nwhole);
	appendBinaryStringInfo(&digits, parts.fraction, parts.nfraction);
	text = at_scale(parts.negative, digits.data, digits.len, parts.nfraction, scale);
	split(text, &parts);
	if (parts.nwhole > precision - scale)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("numeric field overflow")));
	return make(text);
}

static char *
trimmed(const char *text)
{
	Size		len;

	while (isspace((unsigned char) *text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char) text[len - 1]))
		len--;
	return pnstrdup(text, len);
}

Datum
shim_numeric_in(const char *text, Oid ioparam, int32 typmod)
{
	char	   *number = trimmed(text);
	const char *p = number;
	bool		negative = false;
	StringInfoData digits;
	int			scale = 0;
	long		exponent = 0;
	bool		point = false;
	bool		any = false;

	if (pg_strcasecmp(number, "nan") == 0)
		return apply_typmod("NaN", typmod);
	if (*p == '+' || *p == '-')
		negative = *p++ == '-';
	if (pg_strcasecmp(p, "infinity") == 0 || pg_strcasecmp(p, "inf") == 0)
		return apply_typmod(negative ? "-Infinity" : "Infinity", typmod);
	initStringInfo(&digits);
	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++)
	{
		if (*p == '.')
			point = true;
		else
		{
			any = true;
			appendStringInfoChar(&digits, *p);
			scale += point;
		}
	}
	if (any && (*p == 'e' || *p == 'E'))
	{
		char	   *end;

		exponent = strtol(p + 1, &end, 10);
		if (end == p + 1 || isspace((unsigned char) p[1]))
			any = false;
		p = end;
		if (exponent > PG_INT32_MAX / 2 || exponent < -(PG_INT32_MAX / 2))
			overflow();
	}
	if (!any || *p)
		shim_bad_input("numeric", text);
	scale -= (int) exponent;
	{
		int			first = 0;

		while (first < digits.len && digits.data[first] == '0')
			first++;
		if (first < digits.len && digits.len - first - scale > MAX_WHOLE)
			overflow();
		if (first == digits.len)	/* zero, whatever the exponent */
			number = at_scale(false, "0", 1, 0, Max(0, Min(scale, MAX_FRACTION)));
		else
			number = at_scale(negative, digits.data, digits.len, scale, Max(0, Min(scale, MAX_FRACTION)));
	}
	return apply_typmod(number, typmod);
}

/* Reads what was made: the text that it was made from */
char *
shim_numeric_out(Datum value)
{
	return number_text(value);
}

/* -1, 0, 1; specials last */
static int
compare(Datum a, Datum b)
{
	char	   *texts[2] = {number_text(a), number_text(b)};
	Parts		x;
	Parts		y;
	int			result;

	for (int i = 0; i < 2; i++)
	{
		if (is_special(texts[i]))
			return strcmp(texts[0], texts[1]) == 0 ? 0 : (i == 0) == (texts[i][0] != '-') ? 1 : -1;
	}
	split(texts[0], &x);
	split(texts[1], &y);
	if (x.negative != y.negative)
		return x.negative ? -1 : 1;
	result = x.nwhole != y.nwhole ? (x.nwhole > y.nwhole ? 1 : -1) : strncmp(x.whole, y.whole, x.nwhole);
	for (int i = 0; result == 0 && (i < x.nfraction || i < y.nfraction); i++)
	{
		char		c = i < x.nfraction ? x.fraction[i] : '0';
		char		d = i < y.nfraction ? y.fraction[i] : '0';

		result = c - d;
	}
	return x.negative ? -result : result;
}

static int64
to_int64(Datum value, int64 min, int64 max, const char *type)
{
	char	   *text = number_text(value);
	long long	result;

	if (is_special(text))
		shim_out_of_range(type, text);
	errno = 0;
	result = strtoll(text, NULL, 10);
	if (errno == ERANGE || result < min || result > max)
		shim_out_of_range(type, text);
	return result;
}

/* --- PostgreSQL's ------------------------------------------------------------ */

Datum
numeric_in(PG_FUNCTION_ARGS)
{
	return shim_numeric_in(PG_GETARG_CSTRING(0), PG_GETARG_OID(1), PG_GETARG_INT32(2));
}

Datum
numeric_out(PG_FUNCTION_ARGS)
{
	return CStringGetDatum(number_text(PG_GETARG_DATUM(0)));
}

Datum
numeric(PG_FUNCTION_ARGS)
{
	return apply_typmod(number_text(PG_GETARG_DATUM(0)), PG_GETARG_INT32(1));
}

Datum
numeric_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) == 0);
}

Datum
numeric_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) >= 0);
}

Datum
numeric_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) <= 0);
}

/* Only to scale 0 */
Datum
numeric_trunc(PG_FUNCTION_ARGS)
{
	char	   *text = number_text(PG_GETARG_DATUM(0));
	char	   *point = strchr(text, '.');

	if (point)
		*point = '\0';
	return make(strcmp(text, "-0") == 0 ? "0" : text);
}

bool
numeric_is_nan(Numeric num)
{
	return strcmp(number_text(NumericGetDatum(num)), "NaN") == 0;
}

Datum
numeric_abs(PG_FUNCTION_ARGS)
{
	char	   *text = number_text(PG_GETARG_DATUM(0));

	return make(*text == '-' ? text + 1 : text);
}

/* Times 10 to the power of so many; the other operand is a power of ten. */
static Datum
shift(Datum value, Datum power, int sign)
{
	char	   *text = number_text(value);
	char	   *ten = number_text(power);
	int			places = sign * (int) (strlen(ten) - 1);
	Parts		parts;
	StringInfoData digits;

	if (ten[0] != '1' || strspn(ten + 1, "0") != strlen(ten + 1))
		shim_fail("a product with %s", ten);
	if (is_special(text))
		return value;
	split(text, &parts);
	if (parts.nwhole + places > MAX_WHOLE)
		overflow();
	initStringInfo(&digits);
	appendBinaryStringInfo(&digits, parts.whole, parts.nwhole);
	appendBinaryStringInfo(&digits, parts.fraction, parts.nfraction);
	return make(at_scale(parts.negative, digits.data, digits.len, parts.nfraction - places,
						 Max(0, Min(parts.nfraction - places, MAX_FRACTION))));
}

Datum
numeric_mul(PG_FUNCTION_ARGS)
{
	return shift(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), 1);
}

Datum
numeric_div(PG_FUNCTION_ARGS)
{
	return shift(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), -1);
}

Datum
numeric_int2(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT16(to_int64(PG_GETARG_DATUM(0), PG_INT16_MIN, PG_INT16_MAX, "smallint"));
}

Datum
numeric_int4(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(to_int64(PG_GETARG_DATUM(0), PG_INT32_MIN, PG_INT32_MAX, "integer"));
}

Datum
numeric_int8(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(to_int64(PG_GETARG_DATUM(0), PG_INT64_MIN, PG_INT64_MAX, "bigint"));
}

Datum
numeric_float4(PG_FUNCTION_ARGS)
{
	return shim_float4_in(number_text(PG_GETARG_DATUM(0)), InvalidOid, -1);
}

Datum
numeric_float8(PG_FUNCTION_ARGS)
{
	return shim_float8_in(number_text(PG_GETARG_DATUM(0)), InvalidOid, -1);
}

Numeric
int64_div_fast_to_numeric(int64 val1, int log10val2)
{
	char	   *digits = psprintf("%llu", (unsigned long long) (val1 < 0 ? -(uint64) val1 : (uint64) val1));

	return DatumGetNumeric(make(at_scale(val1 < 0, digits, (int) strlen(digits), log10val2, Max(log10val2, 0))));
}

Numeric
int64_to_numeric(int64 val)
{
	return int64_div_fast_to_numeric(val, 0);
}
