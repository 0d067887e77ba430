/*
 * csv.h
 *	  What reading and writing CSV have in common: the options.  Private to csv.c and
 *	  csv_write.c.
 */
#ifndef UK_CSV_H
#define UK_CSV_H

#include "format/csv_scan.h"
#include "format/format.h"

typedef struct CsvOptions
{
	CsvSyntax	syntax;
	char		array_delimiter;	/* between elements and attributes */
	const char *null_literal;	/* NULL: an empty field without quotes is NULL */
	Size		null_len;
	bool		ignore_errors;
	bool		plain_decimals;
	ValueStyle	style;
	const char *empty_value;	/* error, delete or ignore */
} CsvOptions;

/* Options that check_options() has passed.  Keeps strings by reference. */
extern void csv_options_parse(List *options, CsvOptions *result);

/* Is this text NULL, where it is not quoted? */
static inline bool
csv_is_null(const CsvOptions *options, const char *text, Size len)
{
	return len == options->null_len && (len == 0 || memcmp(text, options->null_literal, len) == 0);
}

/* As FormatRoutine has them. */
extern Encoder *csv_encoder_create(const EncoderSpec *spec);
extern bool csv_encode(Encoder *encoder, const Datum *values, const bool *isnull, StringInfo bytes, const char **column);

#endif							/* UK_CSV_H */
