/*
 * csv_scan.c
 *	  Splits one CSV record into its fields.
 *
 * Free of the backend, so that it can be tested and fuzzed by itself.
 */
#include <string.h>

#include "format/csv_scan.h"

/* As an int that is never -1, which stands for no character */
#define BYTE_AT(p) ((int) *(const unsigned char *) (p))

void
csv_syntax_init(CsvSyntax *syntax, int delimiter, int quote, int escape, bool comments)
{
	memset(syntax, 0, sizeof(*syntax));
	syntax->delimiter = delimiter;
	syntax->quote = quote;
	syntax->escape = escape == quote ? -1 : escape;
	syntax->comments = comments;
	syntax->ends_run['\n'] = true;
	syntax->ends_run['\r'] = true;
	syntax->ends_run[delimiter] = true;
	if (syntax->escape >= 0)
		syntax->ends_run[syntax->escape] = true;
}

const char *
csv_error_text(CsvError error)
{
	switch (error)
	{
		case CSV_UNTERMINATED_QUOTE:
			return "quoted field without its closing quote";
		case CSV_AFTER_QUOTE:
			return "delimiter expected behind the closing quote";
		case CSV_ESCAPE_AT_END:
			return "nothing behind the escape character";
		case CSV_SECOND_RECORD:
			return "a second record, where a message holds one";
		default:
			return "no record";
	}
}

/* Behind the line end at p, or p where there is none. */
static const char *
skip_line_end(const char *p, const char *end)
{
	if (p < end && *p == '\r')
	{
		p++;
		if (p < end && *p == '\n')
			p++;
	}
	else if (p < end && *p == '\n')
		p++;
	return p;
}

/* Behind the comment lines at p. */
static const char *
skip_comments(const CsvSyntax *syntax, const char *p, const char *end)
{
	while (p < end)
	{
		const char *mark = p;

		while (mark < end && (*mark == ' ' || *mark == '\t') && BYTE_AT(mark) != syntax->delimiter)
			mark++;
		if (mark == end || *mark != '#')
			break;
		while (mark < end && *mark != '\n' && *mark != '\r')
			mark++;
		p = skip_line_end(mark, end);
	}
	return p;
}

/* A quoted field; p is behind the opening quote.  *next is behind the closing one. */
static CsvError
scan_quoted(const CsvSyntax *syntax, const char *p, const char *end, CsvField *field, const char **next)
{
	const char *open = p - 1;

	field->text = p;
	field->quoted = true;
	field->escaped = false;
	for (;;)
	{
		if (syntax->escape < 0)
		{
			p = p < end ? memchr(p, syntax->quote, end - p) : NULL;
			if (p == NULL)
				p = end;
		}
		else
		{
			while (p < end && BYTE_AT(p) != syntax->quote && BYTE_AT(p) != syntax->escape)
				p++;
		}
		if (p == end)
		{
			*next = open;
			return CSV_UNTERMINATED_QUOTE;
		}
		if (BYTE_AT(p) != syntax->quote)
		{
			if (end - p < 2)
			{
				*next = p;
				return CSV_ESCAPE_AT_END;
			}
		}
		else if (end - p < 2 || BYTE_AT(p + 1) != syntax->quote)
			break;
		field->escaped = true;
		p += 2;
	}
	field->len = p - field->text;
	*next = p + 1;
	return CSV_OK;
}

static CsvError
scan_bare(const CsvSyntax *syntax, const char *p, const char *end, CsvField *field, const char **next)
{
	field->text = p;
	field->quoted = false;
	field->escaped = false;
	for (;;)
	{
		while (p < end && !syntax->ends_run[BYTE_AT(p)])
			p++;
		if (p == end || BYTE_AT(p) != syntax->escape)
			break;
		if (end - p < 2)
		{
			*next = p;
			return CSV_ESCAPE_AT_END;
		}
		field->escaped = true;
		p += 2;
	}
	field->len = p - field->text;
	*next = p;
	return CSV_OK;
}

CsvError
csv_scan(const CsvSyntax *syntax, const char *bytes, size_t len, CsvField *fields, int max, int *n, const char **at)
{
	const char *p = bytes;
	const char *end = bytes + len;
	CsvField	rest;

	*n = 0;
	if (syntax->comments)
	{
		p = skip_comments(syntax, p, end);
		if (p == end)
			return CSV_NO_RECORD;
	}
	for (;;)
	{
		CsvField   *field = *n < max ? &fields[*n] : &rest;
		CsvError	error;

		if (p < end && BYTE_AT(p) == syntax->quote)
			error = scan_quoted(syntax, p + 1, end, field, &p);
		else
			error = scan_bare(syntax, p, end, field, &p);
		*at = p;
		if (error != CSV_OK)
			return error;
		(*n)++;
		if (p == end || *p == '\n' || *p == '\r')
			break;
		if (BYTE_AT(p) != syntax->delimiter)
			return CSV_AFTER_QUOTE;
		p++;
	}
	p = skip_line_end(p, end);
	if (syntax->comments)
		p = skip_comments(syntax, p, end);
	*at = p;
	return p == end ? CSV_OK : CSV_SECOND_RECORD;
}

size_t
csv_unescape(const CsvSyntax *syntax, const CsvField *field, char *out)
{
	const char *p = field->text;
	const char *end = p + field->len;
	char	   *start = out;

	while (p < end)
	{
		int			byte = BYTE_AT(p);
		char		c = *p++;

		if (byte == syntax->escape && p < end)
		{
			c = *p++;
			switch (c)
			{
				case 'n':
					c = '\n';
					break;
				case 'r':
					c = '\r';
					break;
				case 't':
					c = '\t';
					break;
				case '0':
					c = '\0';
					break;
			}
		}
		else if (byte == syntax->quote && field->quoted)
			p++;				/* the first of two */
		*out++ = c;
	}
	return out - start;
}
