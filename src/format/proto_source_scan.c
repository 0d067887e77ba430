/*
 * proto_source_scan.c
 *	  The words of a .proto source.
 *
 * https://protobuf.dev/reference/protobuf/textformat-spec#lexical for strings.
 */
#include "postgres.h"

#include <ctype.h>

#include "format/proto_source_scan.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

static inline bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* === Tokens ================================================================= */

void
source_bad(SourceScan *scan, const char *what)
{
	if (scan->error)
		return;
	scan->error = psprintf("line %d: %s", scan->line, what);
	scan->kind = SOURCE_END;
	scan->p = "";
	scan->token = "";
	scan->len = 0;
}

void
source_unexpected(SourceScan *scan, const char *wanted)
{
	char	   *found;

	if (scan->error)
		return;
	found = scan->kind == SOURCE_END ? pstrdup("the end") : psprintf("\"%s\"", pnstrdup(scan->token, Min(scan->len, 40)));
	/* in any encoding */
	for (char *p = found; *p; p++)
	{
		if ((unsigned char) *p >= 0x80 || (unsigned char) *p < ' ')
			*p = '?';
	}
	source_bad(scan, psprintf("%s expected, not %s", wanted, found));
}

/* Blanks and comments */
static void
skip_blanks(SourceScan *scan)
{
	for (;;)
	{
		if (*scan->p == '\n')
			scan->line++;
		if (*scan->p == ' ' || (*scan->p >= '\t' && *scan->p <= '\r'))
			scan->p++;
		else if (scan->p[0] == '/' && scan->p[1] == '/')
			scan->p += strcspn(scan->p, "\n");
		else if (scan->p[0] == '/' && scan->p[1] == '*')
		{
			const char *end = strstr(scan->p + 2, "*/");

			if (end == NULL)
			{
				source_bad(scan, "a comment does not end");
				return;
			}
			for (; scan->p < end; scan->p++)
				scan->line += *scan->p == '\n';
			scan->p += 2;
		}
		else
			return;
	}
}

static void
advance(SourceScan *scan)
{
	const char *p;

	skip_blanks(scan);
	scan->token = p = scan->p;
	if (*p == '\0')
		scan->kind = SOURCE_END;
	else if (is_letter(*p))
	{
		scan->kind = SOURCE_NAME;
		while (is_letter(*p) || is_digit(*p))
			p++;
	}
	else if (is_digit(*p) || (*p == '.' && is_digit(p[1])))
	{
		scan->kind = SOURCE_NUMBER;
		while (is_letter(*p) || is_digit(*p) || *p == '.' || ((*p == '+' || *p == '-') && (p[-1] == 'e' || p[-1] == 'E')))
			p++;
	}
	else if (*p == '"' || *p == '\'')
	{
		scan->kind = SOURCE_STRING;
		for (p++; *p != *scan->token && *p != '\n' && *p; p++)
			p += *p == '\\' && p[1] != '\0' && p[1] != '\n';
		if (*p != *scan->token)
		{
			source_bad(scan, "a string does not end");
			return;
		}
		p++;
	}
	else
	{
		scan->kind = SOURCE_SYMBOL;
		p++;
	}
	scan->len = (int) (p - scan->token);
	scan->p = p;
}

void
source_begin(SourceScan *scan, const char *source)
{
	memset(scan, 0, sizeof(*scan));
	initStringInfo(&scan->name);
	initStringInfo(&scan->text);
	scan->line = 1;
	scan->p = source;
	if (!pg_verify_mbstr(PG_UTF8, source, (int) strlen(source), true))
		source_bad(scan, "it is no UTF-8");
	else
		scan->p += strncmp(source, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	advance(scan);
}

char *
source_end(SourceScan *scan)
{
	pfree(scan->name.data);
	pfree(scan->text.data);
	return scan->error;
}

/* === Phrases ================================================================ */

static bool
is_word(const SourceScan *scan, const char *word)
{
	return scan->kind != SOURCE_STRING && strlen(word) == scan->len && memcmp(scan->token, word, scan->len) == 0 && scan->len > 0;
}

bool
source_take(SourceScan *scan, const char *word)
{
	if (!is_word(scan, word))
		return false;
	advance(scan);
	return true;
}

bool
source_take_word(SourceScan *scan, const char *word, const char *before)
{
	SourceScan	ahead = *scan;

	if (!source_take(&ahead, word) || !is_word(&ahead, before))
		return false;
	advance(scan);
	return true;
}

void
source_expect(SourceScan *scan, const char *word)
{
	if (!source_take(scan, word))
		source_unexpected(scan, psprintf("\"%s\"", word));
}

bool
source_goes_on(SourceScan *scan, const char *close)
{
	CHECK_FOR_INTERRUPTS();
	while (source_take(scan, ";"))
		;
	if (close && source_take(scan, close))
		return false;
	if (scan->kind != SOURCE_END)
		return true;
	if (close)
		source_unexpected(scan, psprintf("\"%s\"", close));
	return false;
}

char *
source_name(SourceScan *scan)
{
	char	   *name;

	if (scan->kind != SOURCE_NAME)
	{
		source_unexpected(scan, "a name");
		return pstrdup("");
	}
	name = pnstrdup(scan->token, scan->len);
	advance(scan);
	return name;
}

static void
append_full_name(SourceScan *scan, StringInfo out)
{
	if (source_take(scan, "."))
		appendStringInfoChar(out, '.');
	do
	{
		/* an option's name goes on so */
		if (is_word(scan, "(") && out->len > 0)
			return;
		if (scan->kind != SOURCE_NAME)
		{
			source_unexpected(scan, "a name");
			return;
		}
		if (out->len > 0 && out->data[out->len - 1] != '.' && out->data[out->len - 1] != '(')
			appendStringInfoChar(out, '.');
		appendBinaryStringInfo(out, scan->token, scan->len);
		advance(scan);
	} while (source_take(scan, "."));
}

char *
source_full_name(SourceScan *scan)
{
	StringInfoData name;

	initStringInfo(&name);
	append_full_name(scan, &name);
	return name.data;
}

/* An escape behind its \; how many characters it has */
static int
append_escape(StringInfo out, const char *p)
{
	static const char escapes[] = "n\nr\rt\ta\ab\bf\fv\v";
	const char *simple = strchr(escapes, *p);
	int			n = 0;
	uint32		value = 0;
	int			digits = *p == 'x' || *p == 'X' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;

	if (*p >= '0' && *p <= '7')
	{
		for (; n < 3 && p[n] >= '0' && p[n] <= '7'; n++)
			value = value * 8 + (p[n] - '0');
		appendStringInfoChar(out, (char) value);
		return n;
	}
	for (; n < digits && isxdigit((unsigned char) p[n + 1]); n++)
		value = value * 16 + (is_digit(p[n + 1]) ? p[n + 1] - '0' : (p[n + 1] & 0xdf) - 'A' + 10);
	if (n == 0)
		appendStringInfoChar(out, simple && (simple - escapes) % 2 == 0 ? simple[1] : *p);
	else if (digits == 2 || value > 0x10ffff)
		appendStringInfoChar(out, (char) value);
	else
	{
		unsigned char utf8[8];

		unicode_to_utf8(value, utf8);
		appendBinaryStringInfo(out, (char *) utf8, pg_utf_mblen(utf8));
	}
	return n + 1;
}

static void
append_string(SourceScan *scan, StringInfo out)
{
	if (scan->kind != SOURCE_STRING)
		source_unexpected(scan, "a string");
	while (scan->kind == SOURCE_STRING)
	{
		const char *end = scan->token + scan->len - 1;

		for (const char *p = scan->token + 1; p < end; p++)
		{
			if (*p == '\\' && p + 1 < end)
				p += append_escape(out, p + 1);
			else
				appendStringInfoChar(out, *p);
		}
		advance(scan);
	}
}

char *
source_string(SourceScan *scan, Size *len)
{
	StringInfoData text;

	initStringInfo(&text);
	append_string(scan, &text);
	if (len)
		*len = text.len;
	return text.data;
}

bool
source_is_string(const SourceScan *scan, const char *content)
{
	return scan->kind == SOURCE_STRING && scan->len == (int) strlen(content) + 2 &&
		memcmp(scan->token + 1, content, scan->len - 2) == 0;
}

uint64
source_integer(SourceScan *scan)
{
	bool		negative = source_take(scan, "-");
	char	   *end;
	uint64		value;

	value = scan->kind == SOURCE_NUMBER ? strtoull(scan->token, &end, 0) : 0;
	if (scan->kind != SOURCE_NUMBER || end != scan->token + scan->len)
	{
		source_unexpected(scan, "a whole number");
		return 0;
	}
	advance(scan);
	return negative ? -value : value;
}

/* Everything up to the bracket that closes the one that is the token */
static void
skip_brackets(SourceScan *scan)
{
	int			depth = 0;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (is_word(scan, "{") || is_word(scan, "[") || is_word(scan, "("))
			depth++;
		else if (is_word(scan, "}") || is_word(scan, "]") || is_word(scan, ")"))
			depth--;
		if (scan->kind == SOURCE_END)
			source_unexpected(scan, "a closing bracket");
		else
			advance(scan);
	} while (depth > 0 && scan->kind != SOURCE_END);
}

void
source_option(SourceScan *scan, SourceOption *option)
{
	resetStringInfo(&scan->name);
	resetStringInfo(&scan->text);
	option->is_string = false;
	do
	{
		if (source_take(scan, "("))
		{
			appendStringInfoChar(&scan->name, '(');
			append_full_name(scan, &scan->name);
			appendStringInfoChar(&scan->name, ')');
			source_expect(scan, ")");
		}
		else
			append_full_name(scan, &scan->name);
	} while (source_take(scan, ".") || is_word(scan, "("));
	source_expect(scan, "=");
	if (is_word(scan, "{"))
		skip_brackets(scan);
	else if (scan->kind == SOURCE_STRING)
	{
		append_string(scan, &scan->text);
		option->is_string = true;
	}
	else
	{
		if (source_take(scan, "-"))
			appendStringInfoChar(&scan->text, '-');
		else
			(void) source_take(scan, "+");
		if (scan->kind != SOURCE_NAME && scan->kind != SOURCE_NUMBER)
			source_unexpected(scan, "an option's value");
		else
		{
			appendBinaryStringInfo(&scan->text, scan->token, scan->len);
			advance(scan);
		}
	}
	option->name = scan->name.data;
	option->text = scan->text.data;
	option->len = scan->text.len;
}

void
source_skip_statement(SourceScan *scan)
{
	for (;;)
	{
		bool		body = is_word(scan, "{");

		if (scan->kind == SOURCE_END)
		{
			source_unexpected(scan, "\";\"");
			return;
		}
		if (body || is_word(scan, "["))
		{
			skip_brackets(scan);
			if (body)
				return;
		}
		else if (source_take(scan, ";"))
			return;
		else
			advance(scan);
	}
}
