/*
 * csv_scan.h
 *	  Splits one CSV record (RFC 4180, with Flink's escape character and comments)
 *	  into its fields.
 *
 * It converts nothing, allocates nothing and knows nothing of the backend: it works
 * on bytes that are not NUL-terminated and never reads past their end.  What has a
 * meaning is ASCII, so any encoding that extends it safely (UTF-8) will do.
 */
#ifndef UK_CSV_SCAN_H
#define UK_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct CsvSyntax
{
	int			delimiter;
	int			quote;			/* -1: none */
	int			escape;			/* -1: none */
	bool		comments;		/* lines that begin with # are none */
	bool		ends_run[256];	/* bytes that mean something outside of quotes */
} CsvSyntax;

/* One field, still as written: it points into the scanned bytes. */
typedef struct CsvField
{
	const char *text;			/* without its quotes */
	size_t		len;
	bool		quoted;
	bool		escaped;		/* holds doubled quotes or escapes: csv_unescape() */
} CsvField;

typedef enum CsvError
{
	CSV_OK,
	CSV_NO_RECORD,				/* nothing but comments */
	CSV_UNTERMINATED_QUOTE,
	CSV_AFTER_QUOTE,
	CSV_ESCAPE_AT_END,
	CSV_SECOND_RECORD
} CsvError;

/* escape: a character that escapes the next one; the quote itself doesn't count as one. */
extern void csv_syntax_init(CsvSyntax *syntax, int delimiter, int quote, int escape, bool comments);

/*
 * Split bytes, which are one record with at most one line end (LF, CRLF or CR) behind
 * it.  The first max fields go to fields[]; *n counts them all.  On an error *at is
 * its place.
 */
extern CsvError csv_scan(const CsvSyntax *syntax, const char *bytes, size_t len, CsvField *fields, int max, int *n,
						 const char **at);

/*
 * The characters of an escaped field, to 'out', which has room for field->len bytes.
 * Returns their number.  They may contain NUL, which is written \0 behind an escape.
 */
extern size_t csv_unescape(const CsvSyntax *syntax, const CsvField *field, char *out);

/* For messages. */
extern const char *csv_error_text(CsvError error);

#endif							/* UK_CSV_SCAN_H */
