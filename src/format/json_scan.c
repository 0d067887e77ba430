/*
 * json_scan.c
 *	  The JSON scanner.
 *
 * Free of backend calls, so that it can be fuzzed alone; see json_scan.h for what
 * it promises.  Grammar errors leave scan->at at the offending byte.
 */
#include "format/json_scan.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define is_digit(c) ((unsigned char) ((c) - '0') <= 9)

static inline bool
fail(JsonScan *scan, JsonError error, const char *at)
{
	scan->error = error;
	scan->at = at;
	return false;
}

static inline const char *
skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* === Names ================================================================== */

static inline uint64_t
load64(const char *p)
{
	uint64_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
load32(const char *p)
{
	uint32_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* All bytes of the name take part: names may differ in their middle only. */
static inline uint32_t
hash_name(const char *name, uint32_t len)
{
	uint64_t	h = len;

	if (len >= 8)
	{
		for (uint32_t i = 0; i + 8 < len; i += 8)
		{
			h = (h ^ load64(name + i)) * UINT64_C(0x9E3779B97F4A7C15);
			h ^= h >> 32;
		}
		h ^= load64(name + len - 8);
	}
	else if (len >= 4)
		h ^= (uint64_t) load32(name) << 32 | load32(name + len - 4);
	else if (len > 0)
		h ^= (uint64_t) (unsigned char) name[0] << 40 |
			(uint64_t) (unsigned char) name[len / 2] << 32 |
			(uint64_t) (unsigned char) name[len - 1] << 24;
	h *= UINT64_C(0x9E3779B97F4A7C15);
	return (uint32_t) (h >> 32);
}

static inline bool
same_name(const JsonField *field, const char *name, uint32_t len)
{
	const char *mine = field->name;

	if (field->len != len)
		return false;
	if (len >= 8)
	{
		for (uint32_t i = 0; i + 8 < len; i += 8)
		{
			if (load64(mine + i) != load64(name + i))
				return false;
		}
		return load64(mine + len - 8) == load64(name + len - 8);
	}
	if (len >= 4)
		return load32(mine) == load32(name) && load32(mine + len - 4) == load32(name + len - 4);
	for (uint32_t i = 0; i < len; i++)
	{
		if (mine[i] != name[i])
			return false;
	}
	return true;
}

uint32_t
json_fields_slots(int n)
{
	uint32_t	slots = 4;

	while (slots < (uint32_t) n * 4)
		slots *= 2;
	return slots;
}

void
json_fields_init(JsonFields *result, int n, JsonField *fields, int32_t *slots)
{
	uint32_t	nslots = json_fields_slots(n);

	result->n = n;
	result->fields = fields;
	result->slots = slots;
	result->mask = nslots - 1;
	result->max_len = 0;
	for (uint32_t i = 0; i < nslots; i++)
		slots[i] = -1;
	for (int i = 0; i < n; i++)
	{
		uint32_t	slot;

		fields[i].hash = hash_name(fields[i].name, fields[i].len);
		slot = fields[i].hash & result->mask;
		while (slots[slot] >= 0)
			slot = (slot + 1) & result->mask;
		slots[slot] = i;
		if (fields[i].len > result->max_len)
			result->max_len = fields[i].len;
	}
}

static inline int
find_name(const JsonFields *fields, const char *name, uint32_t len)
{
	uint32_t	hash = hash_name(name, len);
	uint32_t	slot = hash & fields->mask;

	while (fields->slots[slot] >= 0)
	{
		const JsonField *field = &fields->fields[fields->slots[slot]];

		if (field->hash == hash && same_name(field, name, len))
			return fields->slots[slot];
		slot = (slot + 1) & fields->mask;
	}
	return -1;
}

/* A name written with escapes.  One that is no text equals no column's. */
static int
find_escaped_name(const JsonFields *fields, const JsonText *name)
{
	char		buf[1024];
	size_t		len;

	if (name->len > sizeof(buf) || name->len / 6 > fields->max_len)
		return -1;
	if (json_unescape(name, false, buf, &len) != JSON_OK)
		return -1;
	return find_name(fields, buf, (uint32_t) len);
}

/* === Values ================================================================= */

/* The first quote, backslash or control character, or end. */
static inline const char *
find_special(const char *p, const char *end)
{
#if defined(__SSE2__)
	while (end - p >= 16)
	{
		__m128i		v = _mm_loadu_si128((const __m128i *) p);
		__m128i		quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
		__m128i		backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
		__m128i		control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
		int			mask = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));

		if (mask != 0)
			return p + __builtin_ctz((unsigned) mask);
		p += 16;
	}
#else
	while (end - p >= 8)
	{
		const uint64_t ones = UINT64_C(0x0101010101010101);
		const uint64_t highs = UINT64_C(0x8080808080808080);
		uint64_t	v = load64(p);
		uint64_t	quote = v ^ (ones * '"');
		uint64_t	backslash = v ^ (ones * '\\');

		/* a zero byte in either, or a byte below 0x20: none is missed */
		if ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((v - ones * 0x20) & ~v)) & highs)
			break;
		p += 8;
	}
#endif
	while (p < end && *p != '"' && *p != '\\' && (unsigned char) *p >= 0x20)
		p++;
	return p;
}

static inline int
hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* scan->at is behind the opening quote; afterwards behind the closing one. */
static inline bool
scan_string(JsonScan *scan, JsonText *value)
{
	const char *p = scan->at;
	const char *end = scan->end;

	value->kind = JK_STRING;
	value->text = p;
	value->escaped = false;
	for (;;)
	{
		p = find_special(p, end);
		if (p == end)
			return fail(scan, JSON_UNTERMINATED_STRING, p);
		if (*p == '"')
		{
			value->len = (uint32_t) (p - value->text);
			scan->at = p + 1;
			return true;
		}
		if (*p != '\\')
			return fail(scan, JSON_CONTROL_CHARACTER, p);
		value->escaped = true;
		if (end - p < 2)
			return fail(scan, JSON_UNTERMINATED_STRING, end);
		switch (p[1])
		{
			case '"':
			case '\\':
			case '/':
			case 'b':
			case 'f':
			case 'n':
			case 'r':
			case 't':
				p += 2;
				break;
			case 'u':
				for (int i = 2; i < 6; i++)
				{
					if (end - p <= i)
						return fail(scan, JSON_UNTERMINATED_STRING, end);
					if (hex_digit(p[i]) < 0)
						return fail(scan, JSON_BAD_UNICODE_ESCAPE, p);
				}
				p += 6;
				break;
			default:
				return fail(scan, JSON_BAD_ESCAPE, p);
		}
	}
}

/* A byte that can only be there because someone took it for part of a number or word */
static inline bool
is_word_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		c == '.' || c == '+' || c == '-' || c == '_';
}

static inline bool
scan_number(JsonScan *scan, JsonText *value)
{
	const char *p = scan->at;
	const char *end = scan->end;

	value->kind = JK_NUMBER;
	value->text = p;
	value->integral = true;
	if (*p == '-')
		p++;
	if (p == end || !is_digit(*p))
		return fail(scan, JSON_BAD_NUMBER, value->text);
	if (*p == '0')
		p++;
	else
		while (p < end && is_digit(*p))
			p++;
	if (p < end && *p == '.')
	{
		value->integral = false;
		p++;
		if (p == end || !is_digit(*p))
			return fail(scan, JSON_BAD_NUMBER, value->text);
		while (p < end && is_digit(*p))
			p++;
	}
	if (p < end && (*p == 'e' || *p == 'E'))
	{
		value->integral = false;
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end || !is_digit(*p))
			return fail(scan, JSON_BAD_NUMBER, value->text);
		while (p < end && is_digit(*p))
			p++;
	}
	if (p < end && is_word_byte(*p))
		return fail(scan, JSON_BAD_NUMBER, value->text);
	value->len = (uint32_t) (p - value->text);
	scan->at = p;
	return true;
}

static bool
scan_word(JsonScan *scan, JsonText *value, const char *word, uint32_t len, JsonKind kind)
{
	const char *p = scan->at;

	if ((size_t) (scan->end - p) < len || memcmp(p, word, len) != 0 ||
		(p + len < scan->end && is_word_byte(p[len])))
		return fail(scan, JSON_EXPECTED_VALUE, p);
	value->kind = kind;
	value->text = p;
	value->len = len;
	scan->at = p + len;
	return true;
}

/* Anything but objects and arrays; white space is skipped already. */
static inline bool
scan_scalar(JsonScan *scan, JsonText *value)
{
	switch (*scan->at)
	{
		case '"':
			scan->at++;
			return scan_string(scan, value);
		case 't':
			return scan_word(scan, value, "true", 4, JK_TRUE);
		case 'f':
			return scan_word(scan, value, "false", 5, JK_FALSE);
		case 'n':
			return scan_word(scan, value, "null", 4, JK_NULL);
		case '-':
		case '0':
		case '1':
		case '2':
		case '3':
		case '4':
		case '5':
		case '6':
		case '7':
		case '8':
		case '9':
			return scan_number(scan, value);
		default:
			return fail(scan, JSON_EXPECTED_VALUE, scan->at);
	}
}

/* '"name" :', from before the quote; afterwards before the value. */
static inline bool
scan_name(JsonScan *scan, JsonText *name)
{
	if (scan->at == scan->end || *scan->at != '"')
		return fail(scan, JSON_EXPECTED_NAME, scan->at);
	scan->at++;
	if (!scan_string(scan, name))
		return false;
	if (scan->at < scan->end && *scan->at != ':')
		scan->at = skip_space(scan->at, scan->end);
	if (scan->at == scan->end || *scan->at != ':')
		return fail(scan, JSON_EXPECTED_COLON, scan->at);
	scan->at = skip_space(scan->at + 1, scan->end);
	return true;
}

/*
 * An object or array, whole.  Open levels are remembered in an array instead of
 * by recursion, so that no message can exhaust the stack.  'depth' levels are
 * open around it.
 */
static bool
scan_nested(JsonScan *scan, JsonText *value, int depth)
{
	bool		is_object[JSON_MAX_DEPTH + 1];
	const char *start = scan->at;
	int			outer = depth;
	JsonText	skipped;

	value->kind = *start == '{' ? JK_OBJECT : JK_ARRAY;
	value->text = start;
	for (;;)
	{
		bool		object;

		/* before a value */
		if (scan->at == scan->end)
			return fail(scan, JSON_EXPECTED_VALUE, scan->at);
		if (*scan->at == '{' || *scan->at == '[')
		{
			object = *scan->at == '{';
			if (++depth > JSON_MAX_DEPTH)
				return fail(scan, JSON_TOO_DEEP, scan->at);
			is_object[depth] = object;
			scan->at = skip_space(scan->at + 1, scan->end);
			if (scan->at == scan->end || *scan->at != (object ? '}' : ']'))
			{
				if (object && !scan_name(scan, &skipped))
					return false;
				continue;
			}
			scan->at++;
			depth--;
		}
		else if (!scan_scalar(scan, &skipped))
			return false;

		/* behind a value: close what ends here, or go to the next one */
		for (;;)
		{
			if (depth == outer)
			{
				value->len = (uint32_t) (scan->at - start);
				return true;
			}
			object = is_object[depth];
			scan->at = skip_space(scan->at, scan->end);
			if (scan->at < scan->end && *scan->at == ',')
			{
				scan->at = skip_space(scan->at + 1, scan->end);
				if (object && !scan_name(scan, &skipped))
					return false;
				break;
			}
			if (scan->at == scan->end || *scan->at != (object ? '}' : ']'))
				return fail(scan, object ? JSON_EXPECTED_COMMA_OR_BRACE : JSON_EXPECTED_COMMA_OR_BRACKET, scan->at);
			scan->at++;
			depth--;
		}
	}
}

static inline bool
scan_value_at(JsonScan *scan, JsonText *value, int depth)
{
	if (scan->at == scan->end)
		return fail(scan, JSON_EXPECTED_VALUE, scan->at);
	if (*scan->at == '{' || *scan->at == '[')
		return scan_nested(scan, value, depth);
	return scan_scalar(scan, value);
}

bool
json_scan_value(JsonScan *scan, JsonText *value)
{
	scan->at = skip_space(scan->at, scan->end);
	return scan_value_at(scan, value, 0);
}

bool
json_scan_object(JsonScan *scan, const JsonFields *fields, JsonText *found)
{
	const char *end = scan->end;
	int			next = 0;

	for (int i = 0; i < fields->n; i++)
		found[i].kind = JK_MISSING;

	scan->at = skip_space(scan->at, end);
	if (scan->at == end || *scan->at != '{')
		return fail(scan, JSON_EXPECTED_OBJECT, scan->at);
	scan->at = skip_space(scan->at + 1, end);
	if (scan->at < end && *scan->at == '}')
	{
		scan->at++;
		return true;
	}
	for (;;)
	{
		JsonText	name;
		JsonText	skipped;
		int			i;

		if (!scan_name(scan, &name))
			return false;

		/* producers keep the order of their members: try the next one first */
		if (name.escaped)
			i = find_escaped_name(fields, &name);
		else if (next < fields->n && same_name(&fields->fields[next], name.text, name.len))
			i = next;
		else
			i = find_name(fields, name.text, name.len);
		if (i >= 0)
			next = i + 1;

		if (!scan_value_at(scan, i >= 0 ? &found[i] : &skipped, 1))
			return false;
		if (scan->at < end && *scan->at != ',')
			scan->at = skip_space(scan->at, end);
		if (scan->at == end)
			return fail(scan, JSON_EXPECTED_COMMA_OR_BRACE, scan->at);
		if (*scan->at == ',')
			scan->at = skip_space(scan->at + 1, end);
		else if (*scan->at == '}')
		{
			scan->at++;
			return true;
		}
		else
			return fail(scan, JSON_EXPECTED_COMMA_OR_BRACE, scan->at);
	}
}

bool
json_scan_end(JsonScan *scan)
{
	scan->at = skip_space(scan->at, scan->end);
	if (scan->at != scan->end)
		return fail(scan, JSON_EXPECTED_END, scan->at);
	return true;
}

bool
json_scan_array_begin(JsonScan *scan)
{
	scan->at = skip_space(scan->at, scan->end);
	if (scan->at == scan->end || *scan->at != '[')
		return fail(scan, JSON_EXPECTED_VALUE, scan->at);
	scan->at++;
	return true;
}

bool
json_scan_array_next(JsonScan *scan, bool first, JsonText *element)
{
	scan->at = skip_space(scan->at, scan->end);
	if (scan->at < scan->end && *scan->at == ']')
	{
		scan->at++;
		return false;
	}
	if (!first)
	{
		if (scan->at == scan->end || *scan->at != ',')
			return fail(scan, JSON_EXPECTED_COMMA_OR_BRACKET, scan->at);
		scan->at = skip_space(scan->at + 1, scan->end);
	}
	return scan_value_at(scan, element, 1);
}

/* === Escapes ================================================================ */

static inline uint32_t
unicode_escape(const char *p)
{
	return (uint32_t) hex_digit(p[2]) << 12 | (uint32_t) hex_digit(p[3]) << 8 |
		(uint32_t) hex_digit(p[4]) << 4 | (uint32_t) hex_digit(p[5]);
}

static inline char *
put_utf8(char *out, uint32_t c)
{
	if (c < 0x80)
		*out++ = (char) c;
	else if (c < 0x800)
	{
		*out++ = (char) (0xC0 | c >> 6);
		*out++ = (char) (0x80 | (c & 0x3F));
	}
	else if (c < 0x10000)
	{
		*out++ = (char) (0xE0 | c >> 12);
		*out++ = (char) (0x80 | (c >> 6 & 0x3F));
		*out++ = (char) (0x80 | (c & 0x3F));
	}
	else
	{
		*out++ = (char) (0xF0 | c >> 18);
		*out++ = (char) (0x80 | (c >> 12 & 0x3F));
		*out++ = (char) (0x80 | (c >> 6 & 0x3F));
		*out++ = (char) (0x80 | (c & 0x3F));
	}
	return out;
}

/* the scanner has seen to it that escapes are whole */
uint32_t
json_escaped_unit(const char *p, int *len)
{
	*len = 2;
	switch (p[1])
	{
		case 'b':
			return '\b';
		case 'f':
			return '\f';
		case 'n':
			return '\n';
		case 'r':
			return '\r';
		case 't':
			return '\t';
		case 'u':
			*len = 6;
			return unicode_escape(p);
		default:
			return (unsigned char) p[1];
	}
}

JsonError
json_unescape(const JsonText *value, bool strip_nul, char *out, size_t *outlen)
{
	const char *p = value->text;
	const char *end = p + value->len;
	char	   *start = out;

	while (p < end)
	{
		const char *run = p;
		uint32_t	c;
		int			len;

		while (p < end && *p != '\\')
			p++;
		if (p > run)
		{
			memcpy(out, run, p - run);
			out += p - run;
		}
		if (p == end)
			break;

		c = json_escaped_unit(p, &len);
		if (c >= 0xD800 && c <= 0xDBFF && end - p >= 12 && p[6] == '\\' && p[7] == 'u')
		{
			uint32_t	low = unicode_escape(p + 6);

			if (low < 0xDC00 || low > 0xDFFF)
				return JSON_LONE_SURROGATE;
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
			len = 12;
		}
		else if (c >= 0xD800 && c <= 0xDFFF)
			return JSON_LONE_SURROGATE;
		if (c != 0)
			out = put_utf8(out, c);
		else if (!strip_nul)
			return JSON_NUL_ESCAPE;
		p += len;
	}
	*outlen = out - start;
	return JSON_OK;
}

size_t
json_strip_nul_escapes(const JsonText *value, char *out)
{
	const char *p = value->text;
	const char *end = p + value->len;
	char	   *start = out;

	while (p < end)
	{
		if (*p != '\\')
			*out++ = *p++;
		else if (end - p >= 6 && memcmp(p, "\\u0000", 6) == 0)
			p += 6;
		else
		{
			/* both bytes of an escape, so that \\u0000 stays what it is */
			*out++ = *p++;
			if (p < end)
				*out++ = *p++;
		}
	}
	return out - start;
}

/* === Words ================================================================== */

const char *
json_error_text(JsonError error)
{
	switch (error)
	{
		case JSON_OK:
			break;
		case JSON_EXPECTED_VALUE:
			return "expected a value";
		case JSON_EXPECTED_OBJECT:
			return "expected an object";
		case JSON_EXPECTED_NAME:
			return "expected a member name in double quotes";
		case JSON_EXPECTED_COLON:
			return "expected \":\"";
		case JSON_EXPECTED_COMMA_OR_BRACE:
			return "expected \",\" or \"}\"";
		case JSON_EXPECTED_COMMA_OR_BRACKET:
			return "expected \",\" or \"]\"";
		case JSON_EXPECTED_END:
			return "expected the end of the message";
		case JSON_BAD_NUMBER:
			return "malformed number";
		case JSON_BAD_ESCAPE:
			return "invalid escape sequence";
		case JSON_BAD_UNICODE_ESCAPE:
			return "\"\\u\" must be followed by four hexadecimal digits";
		case JSON_CONTROL_CHARACTER:
			return "control characters in strings must be escaped";
		case JSON_UNTERMINATED_STRING:
			return "unterminated string";
		case JSON_TOO_DEEP:
			return "nested too deeply";
		case JSON_LONE_SURROGATE:
			return "a Unicode surrogate must come as a pair";
		case JSON_NUL_ESCAPE:
			return "\\u0000 cannot be converted to text";
	}
	return "no error";
}

const char *
json_kind_name(JsonKind kind)
{
	static const char *const names[] = {
		"missing", "null", "boolean", "boolean", "number", "string", "object", "array"
	};

	return names[kind];
}
