/*
 * shim_text.c
 *	  Strings, encodings, lists and sets as backends have them.
 */
#include "shim.h"

#undef qsort

#include <stdarg.h>

#include "commands/defrem.h"
#include "common/base64.h"
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/varlena.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

int			shim_encoding = PG_UTF8;

/* === Encodings ============================================================== */

/* The length of the character at p, 0 if it is none (RFC 3629, table 3-7 of Unicode) */
static int
utf8_character(const unsigned char *p, Size left)
{
	int			n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;

	if (n == 0 || (Size) n > left)
		return 0;
	for (int i = 1; i < n; i++)
	{
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
		(p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return n;
}

bool
shim_is_utf8(const char *text, Size len)
{
	for (Size i = 0; i < len;)
	{
		int			n = text[i] ? utf8_character((const unsigned char *) text + i, len - i) : 0;

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

#if PG_VERSION_NUM < 160000
/* later versions have it in their header */
unsigned char *
unicode_to_utf8(pg_wchar c, unsigned char *utf8string)
{
	int			n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (int i = n - 1; i > 0; i--, c >>= 6)
		utf8string[i] = 0x80 | (c & 0x3F);
	utf8string[0] = n == 1 ? c : ((0xF0 << (4 - n)) & 0xFF) | c;
	return utf8string;
}
#endif

int
GetDatabaseEncoding(void)
{
	return shim_encoding;
}

bool
pg_verify_mbstr(int encoding, const char *mbstr, int len, bool noError)
{
	if (len < 0)
		shim_fail("pg_verify_mbstr of %d bytes", len);
	if (encoding == PG_UTF8 ? shim_is_utf8(mbstr, len) : memchr(mbstr, '\0', len) == NULL)
		return true;
	if (!noError)
		ereport(ERROR,
				(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
				 errmsg("invalid byte sequence for encoding")));
	return false;
}

int
pg_char_to_encoding(const char *name)
{
	return strcmp(name, "UTF8") == 0 ? PG_UTF8 : strcmp(name, "LATIN1") == 0 ? PG_LATIN1 : -1;
}

static char *
utf8_to_latin1(const char *s, int len)
{
	char	   *result = palloc(len + 1);
	char	   *out = result;

	for (int i = 0; i < len;)
	{
		const unsigned char *p = (const unsigned char *) s + i;
		int			n = utf8_character(p, len - i);

		if (n > 2 || (n == 2 && p[0] > 0xC3))
			ereport(ERROR,
					(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
					 errmsg("character has no equivalent in encoding")));
		*out++ = n == 1 ? *p : (char) ((p[0] & 0x03) << 6 | (p[1] & 0x3F));
		i += n;
	}
	*out = '\0';
	return result;
}

static char *
latin1_to_utf8(const char *s, int len)
{
	char	   *result = palloc(2 * len + 1);
	char	   *out = result;

	for (int i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) s[i];

		if (c >= 0x80)
			*out++ = (char) (0xC0 | c >> 6);
		*out++ = (char) (c < 0x80 ? c : 0x80 | (c & 0x3F));
	}
	*out = '\0';
	return result;
}

static char *
convert(const char *s, int len, int from, int to)
{
	return from == to ? unconstify(char *, s) : from == PG_UTF8 ? utf8_to_latin1(s, len) : latin1_to_utf8(s, len);
}

/* What comes in is verified; no copy where nothing changes, as in a backend. */
char *
pg_any_to_server(const char *s, int len, int encoding)
{
	if (len <= 0)
		return unconstify(char *, s);
	pg_verify_mbstr(encoding, s, len, false);
	return convert(s, len, encoding, shim_encoding);
}

char *
pg_server_to_any(const char *s, int len, int encoding)
{
	return len <= 0 ? unconstify(char *, s) : convert(s, len, shim_encoding, encoding);
}

int
pg_utf_mblen(const unsigned char *s)
{
	return *s < 0x80 ? 1 : (*s & 0xE0) == 0xC0 ? 2 : (*s & 0xF0) == 0xE0 ? 3 : (*s & 0xF8) == 0xF0 ? 4 : 1;
}

bool
pg_utf8_islegal(const unsigned char *source, int length)
{
	return utf8_character(source, length) == length;
}

int
pg_encoding_mblen(int encoding, const char *mbstr)
{
	return encoding == PG_UTF8 ? pg_utf_mblen((const unsigned char *) mbstr) : 1;
}

int
pg_encoding_max_length(int encoding)
{
	return encoding == PG_UTF8 ? 4 : 1;
}

int
pg_encoding_mbcliplen(int encoding, const char *mbstr, int len, int limit)
{
	int			clipped = 0;

	while (len > 0 && *mbstr)
	{
		int			n = pg_encoding_mblen(encoding, mbstr);

		if (clipped + n > limit || n > len)
			break;
		clipped += n;
		len -= n;
		mbstr += n;
	}
	return clipped;
}

int
pg_mbcliplen(const char *mbstr, int len, int limit)
{
	return pg_encoding_mbcliplen(shim_encoding, mbstr, len, limit);
}

int
pg_mblen(const char *mbstr)
{
	return pg_encoding_mblen(shim_encoding, mbstr);
}

#if PG_VERSION_NUM < 170000
pg_wchar
utf8_to_unicode(const unsigned char *c)
{
	if (c[0] < 0x80)
		return c[0];
	if ((c[0] & 0xE0) == 0xC0)
		return (c[0] & 0x1F) << 6 | (c[1] & 0x3F);
	if ((c[0] & 0xF0) == 0xE0)
		return (c[0] & 0x0F) << 12 | (c[1] & 0x3F) << 6 | (c[2] & 0x3F);
	return (c[0] & 0x07) << 18 | (c[1] & 0x3F) << 12 | (c[2] & 0x3F) << 6 | (c[3] & 0x3F);
}
#endif

/* === Text =================================================================== */

void
initStringInfo(StringInfo str)
{
	str->data = palloc(1024);
	str->maxlen = 1024;
	resetStringInfo(str);
}

StringInfo
makeStringInfo(void)
{
	StringInfo	str = palloc(sizeof(StringInfoData));

	initStringInfo(str);
	return str;
}

void
resetStringInfo(StringInfo str)
{
	str->data[0] = '\0';
	str->len = 0;
	str->cursor = 0;
}

void
enlargeStringInfo(StringInfo str, int needed)
{
	int64		size = str->maxlen;

	if (needed < 0)
		elog(ERROR, "invalid string enlargement request size: %d", needed);
	if ((Size) needed >= MaxAllocSize - str->len)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("out of memory"),
				 errdetail("Cannot enlarge string buffer containing %d bytes by %d more bytes.", str->len, needed)));
	needed += str->len + 1;
	if (needed <= str->maxlen)
		return;
	while (size < needed)
		size *= 2;
	str->maxlen = (int) Min(size, (int64) MaxAllocSize);
	str->data = repalloc(str->data, str->maxlen);
}

void
appendBinaryStringInfo(StringInfo str, const
#if PG_VERSION_NUM >= 160000
					   void *data,
#else
					   char *data,
#endif
					   int datalen)
{
	enlargeStringInfo(str, datalen);
	memcpy(str->data + str->len, data, datalen);
	str->len += datalen;
	str->data[str->len] = '\0';
}

void
appendStringInfoString(StringInfo str, const char *s)
{
	appendBinaryStringInfo(str, s, strlen(s));
}

#undef appendStringInfoCharMacro
void
appendStringInfoChar(StringInfo str, char ch)
{
	appendBinaryStringInfo(str, &ch, 1);
}

void
appendStringInfo(StringInfo str, const char *fmt,...)
{
	va_list		args;
	char		few[1];
	int			len;

	va_start(args, fmt);
	len = vsnprintf(few, sizeof(few), fmt, args);
	va_end(args);
	enlargeStringInfo(str, len);
	va_start(args, fmt);
	vsnprintf(str->data + str->len, len + 1, fmt, args);
	va_end(args);
	str->len += len;
}

char *
psprintf(const char *fmt,...)
{
	va_list		args;
	char		few[1];
	int			len;
	char	   *result;

	va_start(args, fmt);
	len = vsnprintf(few, sizeof(few), fmt, args);
	va_end(args);
	result = palloc(len + 1);
	va_start(args, fmt);
	vsnprintf(result, len + 1, fmt, args);
	va_end(args);
	return result;
}

int
pg_snprintf(char *str, size_t count, const char *fmt,...)
{
	va_list		args;
	int			len;

	va_start(args, fmt);
	len = vsnprintf(str, count, fmt, args);
	va_end(args);
	return len;
}

size_t
strlcpy(char *dst, const char *src, size_t size)
{
	size_t		len = strlen(src);

	if (size > 0)
	{
		memcpy(dst, src, Min(len, size - 1));
		dst[Min(len, size - 1)] = '\0';
	}
	return len;
}

text *
cstring_to_text_with_len(const char *s, int len)
{
	text	   *result = palloc(len + VARHDRSZ);

	SET_VARSIZE(result, len + VARHDRSZ);
	memcpy(VARDATA(result), s, len);
	return result;
}

text *
cstring_to_text(const char *s)
{
	return cstring_to_text_with_len(s, strlen(s));
}

char *
text_to_cstring(const text *t)
{
	Size		len = VARSIZE_ANY_EXHDR(t);
	char	   *result = palloc(len + 1);

	memcpy(result, VARDATA_ANY(t), len);
	result[len] = '\0';
	return result;
}

struct varlena *
pg_detoast_datum(struct varlena *datum)
{
	return datum;
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

void
escape_json(StringInfo buf, const char *str)
{
	appendStringInfoChar(buf, '"');
	for (; *str; str++)
	{
		if (*str == '"' || *str == '\\')
			appendStringInfo(buf, "\\%c", *str);
		else if ((unsigned char) *str < ' ')
			appendStringInfo(buf, "\\u%04x", *str);
		else
			appendStringInfoChar(buf, *str);
	}
	appendStringInfoChar(buf, '"');
}

int
pg_strcasecmp(const char *s1, const char *s2)
{
	return strcasecmp(s1, s2);
}

unsigned char
pg_ascii_toupper(unsigned char ch)
{
	return ch >= 'a' && ch <= 'z' ? ch - 'a' + 'A' : ch;
}

void
pg_qsort(void *base, size_t nel, size_t elsize, int (*cmp) (const void *, const void *))
{
	(qsort) (base, nel, elsize, cmp);
}

/* Nothing is like anything: hints name nothing. */
int
varstr_levenshtein_less_equal(const char *source, int slen, const char *target, int tlen,
							  int ins_c, int del_c, int sub_c, int max_d, bool trusted)
{
	return max_d + 1;
}

/* --- base64 --- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int
pg_b64_enc_len(int srclen)
{
	return (srclen + 2) / 3 * 4;
}

int
pg_b64_dec_len(int srclen)
{
	return srclen * 3 / 4;
}

/* 18 tells bytes from text */
#if PG_VERSION_NUM >= 180000
#define base64_byte uint8
#else
#define base64_byte char
#endif

int
pg_b64_encode(const base64_byte *src, int len, char *dst, int dstlen)
{
	const unsigned char *in = (const unsigned char *) src;
	char	   *p = dst;

	if (dstlen < pg_b64_enc_len(len))
		return -1;
	for (; len > 0; in += 3, len -= 3)
	{
		uint32		bits = in[0] << 16 | (len > 1 ? in[1] << 8 : 0) | (len > 2 ? in[2] : 0);

		*p++ = base64_digits[bits >> 18];
		*p++ = base64_digits[bits >> 12 & 63];
		*p++ = len > 1 ? base64_digits[bits >> 6 & 63] : '=';
		*p++ = len > 2 ? base64_digits[bits & 63] : '=';
	}
	return (int) (p - dst);
}

int
pg_b64_decode(const char *src, int len, base64_byte *dst, int dstlen)
{
	int			n = 0;

	if (len % 4 != 0)
		return -1;
	for (int i = 0; i < len; i += 4)
	{
		uint32		bits = 0;
		int			padding = 0;

		for (int j = 0; j < 4; j++)
		{
			const char *digit = src[i + j] ? strchr(base64_digits, src[i + j]) : NULL;

			if (src[i + j] == '=' && i + 4 == len && j >= 2)
				padding++;
			else if (digit == NULL || padding > 0)
				return -1;
			bits = bits << 6 | (uint32) (digit ? digit - base64_digits : 0);
		}
		for (int j = 0; j < 3 - padding; j++)
		{
			if (n == dstlen)
				return -1;
			dst[n++] = (base64_byte) (bits >> (16 - 8 * j));
		}
	}
	return n;
}

/* === Numbers as text ======================================================== */

int
pg_ltoa(int32 value, char *a)
{
	return sprintf(a, "%d", value);
}

int
pg_itoa(int16 i, char *a)
{
	return pg_ltoa(i, a);
}

int
pg_lltoa(int64 value, char *a)
{
	return sprintf(a, "%lld", (long long) value);
}

/* Digits until they give the same value again; whole up to there */
int
double_to_shortest_decimal_buf(double f, char *result)
{
	int			len = 0;

	if (isnan(f))
		return sprintf(result, "NaN");
	if (isinf(f))
		return sprintf(result, f < 0 ? "-Infinity" : "Infinity");
	for (int digits = 1; digits <= 17; digits++)
	{
		len = sprintf(result, "%.*g", digits, f);
		if (strtod(result, NULL) == f)
			break;
	}
	return len;
}

int
float_to_shortest_decimal_buf(float f, char *result)
{
	int			len = 0;

	if (isnan(f) || isinf(f))
		return double_to_shortest_decimal_buf(f, result);
	for (int digits = 1; digits <= 9; digits++)
	{
		len = sprintf(result, "%.*g", digits, f);
		if (strtof(result, NULL) == f)
			break;
	}
	return len;
}

int
double_to_shortest_decimal_bufn(double f, char *result)
{
	char		text[64];
	int			len = double_to_shortest_decimal_buf(f, text);

	memcpy(result, text, len);
	return len;
}

int
float_to_shortest_decimal_bufn(float f, char *result)
{
	char		text[64];
	int			len = float_to_shortest_decimal_buf(f, text);

	memcpy(result, text, len);
	return len;
}

/* === Lists, sets, options =================================================== */

List *
lappend(List *list, void *datum)
{
	if (list == NIL)
	{
		list = palloc0(sizeof(List));
		list->type = T_List;
	}
	if (list->length == list->max_length)
	{
		list->max_length = Max(4, list->max_length * 2);
		list->elements = list->elements ? repalloc(list->elements, sizeof(ListCell) * list->max_length)
			: palloc(sizeof(ListCell) * list->max_length);
	}
	list->elements[list->length++].ptr_value = datum;
	return list;
}

Bitmapset *
bms_add_member(Bitmapset *a, int x)
{
	int			word = x / BITS_PER_BITMAPWORD;
	int			nwords = Max(a ? a->nwords : 0, word + 1);
	Bitmapset  *result;

	if (x < 0)
		elog(ERROR, "negative bitmapset member not allowed");
	if (a && nwords == a->nwords)
		result = a;
	else
	{
		result = palloc0(offsetof(Bitmapset, words) + nwords * sizeof(bitmapword));
#if PG_VERSION_NUM >= 160000
		result->type = T_Bitmapset;
#endif
		result->nwords = nwords;
		if (a)
		{
			memcpy(result->words, a->words, a->nwords * sizeof(bitmapword));
			pfree(a);
		}
	}
	result->words[word] |= (bitmapword) 1 << (x % BITS_PER_BITMAPWORD);
	return result;
}

bool
bms_is_member(int x, const Bitmapset *a)
{
	return a && x / BITS_PER_BITMAPWORD < a->nwords &&
		(a->words[x / BITS_PER_BITMAPWORD] & (bitmapword) 1 << (x % BITS_PER_BITMAPWORD)) != 0;
}

/* Arguments of these options are C strings. */
char *
defGetString(DefElem *def)
{
	return (char *) def->arg;
}

bool
defGetBoolean(DefElem *def)
{
	return strcmp((char *) def->arg, "true") == 0;
}

char *
dcgettext(const char *domain, const char *message, int category)
{
	return unconstify(char *, message);
}
