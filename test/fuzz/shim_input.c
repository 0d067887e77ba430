/*
 * shim_input.c
 *	  Input and output functions of types: simple, but they read the whole text and
 *	  refuse what a backend would refuse.
 */
#include "shim.h"

#include <ctype.h>
#include <math.h>

#include "format/json_scan.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

void
shim_bad_input(const char *type, const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type %s: \"%s\"", type, text)));
	pg_unreachable();
}

void
shim_out_of_range(const char *type, const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("value \"%s\" is out of range for type %s", text, type)));
	pg_unreachable();
}

static bool
only_space(const char *p)
{
	while (isspace((unsigned char) *p))
		p++;
	return *p == '\0';
}

/* === Numbers ================================================================ */

static int64
integer(const char *text, int64 min, int64 max, const char *type)
{
	char	   *end;
	long long	value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || !only_space(end))
		shim_bad_input(type, text);
	if (errno == ERANGE || value < min || value > max)
		shim_out_of_range(type, text);
	return value;
}

Datum
shim_int2_in(const char *text, Oid ioparam, int32 typmod)
{
	return Int16GetDatum((int16) integer(text, PG_INT16_MIN, PG_INT16_MAX, "smallint"));
}

Datum
shim_int4_in(const char *text, Oid ioparam, int32 typmod)
{
	return Int32GetDatum((int32) integer(text, PG_INT32_MIN, PG_INT32_MAX, "integer"));
}

Datum
shim_int8_in(const char *text, Oid ioparam, int32 typmod)
{
	return Int64GetDatum(integer(text, PG_INT64_MIN, PG_INT64_MAX, "bigint"));
}

char *
shim_int2_out(Datum value)
{
	return psprintf("%d", DatumGetInt16(value));
}

char *
shim_int4_out(Datum value)
{
	return psprintf("%d", DatumGetInt32(value));
}

char *
shim_int8_out(Datum value)
{
	return psprintf("%lld", (long long) DatumGetInt64(value));
}

Datum
shim_float8_in(const char *text, Oid ioparam, int32 typmod)
{
	char	   *end;
	double		value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || !only_space(end) || strpbrk(text, "xXpP"))
		shim_bad_input("double precision", text);
	if (errno == ERANGE && (value == 0 || isinf(value)))
		shim_out_of_range("double precision", text);
	return Float8GetDatum(value);
}

Datum
shim_float4_in(const char *text, Oid ioparam, int32 typmod)
{
	char	   *end;
	float		value;

	errno = 0;
	value = strtof(text, &end);
	if (end == text || !only_space(end) || strpbrk(text, "xXpP"))
		shim_bad_input("real", text);
	if (errno == ERANGE && (value == 0 || isinf(value)))
		shim_out_of_range("real", text);
	return Float4GetDatum(value);
}

char *
shim_float8_out(Datum value)
{
	float8		f = DatumGetFloat8(value);

	return isnan(f) ? pstrdup("NaN") : psprintf("%.17g", f);
}

char *
shim_float4_out(Datum value)
{
	float4		f = DatumGetFloat4(value);

	return isnan(f) ? pstrdup("NaN") : psprintf("%.9g", f);
}

Datum
dtof(PG_FUNCTION_ARGS)
{
	float8		value = PG_GETARG_FLOAT8(0);
	float4		result;

	if (!isinf(value) && !isnan(value) && fabs(value) > 3.4028235677973366e+38)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value out of range: overflow")));
	result = (float4) value;
	if (result == 0 && value != 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value out of range: underflow")));
	PG_RETURN_FLOAT4(result);
}

Datum
int4in(PG_FUNCTION_ARGS)
{
	return shim_int4_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
int8in(PG_FUNCTION_ARGS)
{
	return shim_int8_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
float4in(PG_FUNCTION_ARGS)
{
	return shim_float4_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
float8in(PG_FUNCTION_ARGS)
{
	return shim_float8_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
boolin(PG_FUNCTION_ARGS)
{
	return shim_bool_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
shim_bool_in(const char *text, Oid ioparam, int32 typmod)
{
	if (pg_strcasecmp(text, "true") == 0 || pg_strcasecmp(text, "t") == 0 || strcmp(text, "1") == 0)
		return BoolGetDatum(true);
	if (pg_strcasecmp(text, "false") != 0 && pg_strcasecmp(text, "f") != 0 && strcmp(text, "0") != 0)
		shim_bad_input("boolean", text);
	return BoolGetDatum(false);
}

char *
shim_bool_out(Datum value)
{
	if (value > 1)
		shim_fail("%zu is no boolean", (size_t) value);
	return pstrdup(DatumGetBool(value) ? "true" : "false");
}

/* === Text and bytes ========================================================= */

static int
characters(const char *text)
{
	int			n = 0;

	for (; *text; text += pg_mblen(text))
		n++;
	return n;
}

/* varchar and char: too long but for blanks is an error */
Datum
shim_text_in(const char *text, Oid ioparam, int32 typmod)
{
	if (typmod >= (int32) VARHDRSZ && characters(text) > typmod - VARHDRSZ)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
				 errmsg("value too long")));
	return PointerGetDatum(cstring_to_text(text));
}

/* Text is what a client gets: valid in the database's encoding. */
char *
shim_text_out(Datum value)
{
	char	   *text = text_to_cstring((struct varlena *) DatumGetPointer(value));

	if (strlen(text) != VARSIZE_ANY_EXHDR(DatumGetPointer(value)) ||
		(shim_encoding == PG_UTF8 && !shim_is_utf8(text, strlen(text))))
		shim_fail("text is not valid in the database's encoding");
	return text;
}

Datum
shim_char_in(const char *text, Oid ioparam, int32 typmod)
{
	return CharGetDatum(text[0]);
}

/* Types that are text to a decoder: a letter, a digit or a bracket begins them. */
Datum
shim_opaque_in(const char *text, Oid ioparam, int32 typmod)
{
	bool		odd = false;

	for (const char *p = text; *p; p++)
		odd |= *p == '!' || *p == '\\';
	if (odd || strchr("abcdefghijklmnopqrstuvwxyz0123456789([{-+\"", text[0]) == NULL || text[0] == '\0')
		shim_bad_input("opaque", text);
	return PointerGetDatum(cstring_to_text(text));
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Datum
shim_bytea_in(const char *text, Oid ioparam, int32 typmod)
{
	Size		len = strlen(text);
	bytea	   *result = palloc(VARHDRSZ + len);
	char	   *out = VARDATA(result);

	if (text[0] == '\\' && text[1] == 'x')
	{
		for (const char *p = text + 2; *p; p += 2)
		{
			if (hex_digit(p[0]) < 0 || hex_digit(p[1]) < 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("invalid hexadecimal digit")));
			*out++ = (char) (hex_digit(p[0]) << 4 | hex_digit(p[1]));
		}
	}
	else
	{
		if (strchr(text, '\\'))
			shim_bad_input("bytea", text);
		memcpy(out, text, len);
		out += len;
	}
	SET_VARSIZE(result, out - (char *) result);
	return PointerGetDatum(result);
}

char *
shim_bytea_out(Datum value)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);
	Size		len = VARSIZE_ANY_EXHDR(bytes);
	char	   *result = palloc(2 * len + 3);

	strcpy(result, "\\x");
	for (Size i = 0; i < len; i++)
		sprintf(result + 2 + 2 * i, "%02x", (unsigned char) VARDATA_ANY(bytes)[i]);
	return result;
}

Datum
shim_uuid_in(const char *text, Oid ioparam, int32 typmod)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));
	const char *p = text;

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (hex_digit(p[0]) < 0 || hex_digit(p[1]) < 0)
			shim_bad_input("uuid", text);
		uuid->data[i] = (unsigned char) (hex_digit(p[0]) << 4 | hex_digit(p[1]));
		p += 2;
		if (*p == '-' && i % 2 == 1 && i < UUID_LEN - 1)
			p++;
	}
	if (*p)
		shim_bad_input("uuid", text);
	return UUIDPGetDatum(uuid);
}

char *
shim_uuid_out(Datum value)
{
	pg_uuid_t  *uuid = DatumGetUUIDP(value);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < UUID_LEN; i++)
		appendStringInfo(&text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->data[i]);
	return text.data;
}

Datum
shim_bit_in(const char *text, Oid ioparam, int32 typmod)
{
	Size		len = strlen(text);

	if (strspn(text, "01") != len)
		shim_bad_input("bit", text);
	if (typmod > 0 && len != (Size) typmod)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				 errmsg("bit string length %zu does not match type bit(%d)", len, typmod)));
	return PointerGetDatum(cstring_to_text(text));
}

Datum
shim_enum_in(const char *text, Oid ioparam, int32 typmod)
{
	static const char *const labels[] = {"red", "green", "blue"};

	for (int i = 0; i < lengthof(labels); i++)
	{
		if (strcmp(text, labels[i]) == 0)
			return PointerGetDatum(cstring_to_text(labels[i]));
	}
	shim_bad_input("enum", text);
}

/* === JSON =================================================================== */

Datum
shim_json_in(const char *text, Oid ioparam, int32 typmod)
{
	JsonScan	scan;
	JsonText	value;

	json_scan_init(&scan, text, strlen(text));
	if (!json_scan_value(&scan, &value) || !json_scan_end(&scan))
	{
		if (scan.error == JSON_TOO_DEEP)
			ereport(ERROR,
					(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
					 errmsg("stack depth limit exceeded")));
		shim_bad_input("json", text);
	}
	return PointerGetDatum(cstring_to_text(text));
}

/* Kept as its text; \u0000 is refused. */
Datum
shim_jsonb_in(const char *text, Oid ioparam, int32 typmod)
{
	Datum		result = shim_json_in(text, ioparam, typmod);

	for (const char *p = text; (p = strchr(p, '\\')) != NULL; p += 2)
	{
		if (strncmp(p, "\\u0000", 6) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
					 errmsg("unsupported Unicode escape sequence")));
	}
	return result;
}

Datum
jsonb_in(PG_FUNCTION_ARGS)
{
	return shim_jsonb_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
byteain(PG_FUNCTION_ARGS)
{
	return shim_bytea_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

Datum
uuid_in(PG_FUNCTION_ARGS)
{
	return shim_uuid_in(PG_GETARG_CSTRING(0), InvalidOid, -1);
}

/* Encoders of jsonb need its inside, which is not here: no table for round trips has any. */
#define NOT_HERE(what) shim_fail(what " is not here")

JsonbIterator *
JsonbIteratorInit(JsonbContainer *container)
{
	NOT_HERE("the inside of jsonb");
}

JsonbIteratorToken
JsonbIteratorNext(JsonbIterator **it, JsonbValue *val, bool skipNested)
{
	NOT_HERE("the inside of jsonb");
}

bool
JsonbExtractScalar(JsonbContainer *jbc, JsonbValue *res)
{
	NOT_HERE("the inside of jsonb");
}

JsonbValue *
getKeyJsonValueFromContainer(JsonbContainer *container, const char *keyVal, int keyLen, JsonbValue *res)
{
	NOT_HERE("the inside of jsonb");
}
