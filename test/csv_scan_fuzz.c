/*
 * csv_scan_fuzz.c
 *	  The splitter of CSV records on random input, alone, for ASan and UBSan.
 *
 * csv_scan_fuzz RECORDS        that many, of bytes that mean something to it
 * Built with -DLIBFUZZER and -fsanitize=fuzzer it is libFuzzer's target instead; the
 * first byte chooses the options.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv_scan.h"

#define MAX_FIELDS 4

static void
check(bool condition, const char *what)
{
	if (!condition)
	{
		fprintf(stderr, "csv_scan: %s\n", what);
		abort();
	}
}

/* Splits a copy of exactly this size, so that a read past its end shows. */
static void
split(const unsigned char *bytes, size_t len, unsigned options)
{
	static const char delimiters[] = {',', '\t', ';', '\x01'};
	CsvSyntax	syntax;
	CsvField	fields[MAX_FIELDS];
	char	   *copy = malloc(len > 0 ? len : 1);
	const char *at = NULL;
	int			n;
	CsvError	error;

	csv_syntax_init(&syntax, delimiters[options & 3], options & 4 ? -1 : options & 8 ? '\'' : '"',
					options & 16 ? '\\' : options & 32 ? '*' : -1, (options & 64) != 0);
	memcpy(copy, bytes, len);
	error = csv_scan(&syntax, copy, len, fields, MAX_FIELDS, &n, &at);
	check(error == CSV_NO_RECORD || (at >= copy && at <= copy + len), "place outside of the record");
	for (int i = 0; error == CSV_OK && i < n && i < MAX_FIELDS; i++)
	{
		char	   *plain = malloc(fields[i].len > 0 ? fields[i].len : 1);

		check(fields[i].text >= copy && fields[i].text + fields[i].len <= copy + len, "field outside of the record");
		check(csv_unescape(&syntax, &fields[i], plain) <= fields[i].len, "unescaped text is longer");
		free(plain);
	}
	free(copy);
}

#ifdef LIBFUZZER
int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len > 0)
		split(bytes + 1, len - 1, bytes[0]);
	return 0;
}
#else
/* xorshift: the same records every time */
static uint64_t
next_random(void)
{
	static uint64_t state = UINT64_C(88172645463325252);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int
main(int argc, char **argv)
{
	static const char meaningful[] = ",\"'\\*;\t#\n\r ab01nrt\x01\xff";
	long		records = argc > 1 ? atol(argv[1]) : 0;

	if (records <= 0)
	{
		fprintf(stderr, "usage: csv_scan_fuzz RECORDS\n");
		return 2;
	}
	for (long i = 0; i < records; i++)
	{
		unsigned char bytes[64];
		size_t		len = next_random() % 40;

		for (size_t j = 0; j < len; j++)
		{
			if (next_random() % 8 > 0)
				bytes[j] = (unsigned char) meaningful[next_random() % sizeof(meaningful)];
			else
				bytes[j] = (unsigned char) next_random();
		}
		split(bytes, len, (unsigned) next_random());
	}
	return 0;
}
#endif
