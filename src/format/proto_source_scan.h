/*
 * proto_source_scan.h
 *	  The words of a .proto source, and the phrases that stand everywhere in it.
 *
 * Private to proto_source.c.  After an error nothing is left of the source, so that callers
 * go on as if it ended: names are empty then, numbers 0.
 */
#ifndef UK_PROTO_SOURCE_SCAN_H
#define UK_PROTO_SOURCE_SCAN_H

#include "lib/stringinfo.h"

typedef enum SourceToken
{
	SOURCE_END,
	SOURCE_NAME,
	SOURCE_NUMBER,
	SOURCE_STRING,
	SOURCE_SYMBOL
} SourceToken;

typedef struct SourceScan
{
	const char *p;				/* behind the token */
	int			line;
	SourceToken kind;			/* of the token */
	const char *token;
	int			len;
	char	   *error;
	StringInfoData name;		/* of the option that was read last .. */
	StringInfoData text;		/* .. and its value */

	/* of the parser */
	bool		proto3;
	int			depth;
} SourceScan;

/* An option's name, (custom) ones in parentheses, and value; until the next one is read */
typedef struct SourceOption
{
	const char *name;
	const char *text;			/* NUL-terminated; "" of what is in braces */
	Size		len;
	bool		is_string;
} SourceOption;

extern void source_begin(SourceScan *scan, const char *source);

/* NULL, or what was wrong. */
extern char *source_end(SourceScan *scan);

/* Remembers the first error. */
extern void source_bad(SourceScan *scan, const char *what);
extern void source_unexpected(SourceScan *scan, const char *wanted);

/* Is the token this word or symbol?  Then it is passed. */
extern bool source_take(SourceScan *scan, const char *word);

/* The same of a word in front of another one, which stays */
extern bool source_take_word(SourceScan *scan, const char *word, const char *before);

extern void source_expect(SourceScan *scan, const char *word);

/* Is there more before 'close' (NULL: the source's end), which is passed? */
extern bool source_goes_on(SourceScan *scan, const char *close);

/* palloc'd: a name, one with dots, a string whose parts are put together ('len' may be NULL) */
extern char *source_name(SourceScan *scan);
extern char *source_full_name(SourceScan *scan);
extern char *source_string(SourceScan *scan, Size *len);

/* Is the token a string of that content? */
extern bool source_is_string(const SourceScan *scan, const char *content);

/* A whole number, decimal, octal or hexadecimal; negative ones in two's complement */
extern uint64 source_integer(SourceScan *scan);

/* name = value */
extern void source_option(SourceScan *scan, SourceOption *option);

/* Pass over everything to the statement's ; or } */
extern void source_skip_statement(SourceScan *scan);

#endif							/* UK_PROTO_SOURCE_SCAN_H */
