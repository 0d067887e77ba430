/*
 * decimal_bytes.c
 *	  Two's complement <-> decimal text.
 *
 * Knows nothing of formats, only of bytes and digits.
 */
#include "postgres.h"

#include "format/decimal_bytes.h"
#include "miscadmin.h"

/* numeric has room for no more digits, before and after the point. */
#define DECIMAL_BYTES_MAX	54000
#define DECIMAL_SCALE_MAX	16383

/*
 * The magnitude in words of 32 bits, most significant first; palloc'd.  There is at least
 * one byte.
 */
static uint32 *
magnitude_words(const char *bytes, int len, bool *negative, int *nwords)
{
	uint32	   *words;
	int			carry = 1;

	*negative = (bytes[0] & 0x80) != 0;
	*nwords = (len + 3) / 4;
	words = palloc0(sizeof(uint32) * *nwords);
	for (int i = len - 1; i >= 0; i--)
	{
		unsigned char byte = (unsigned char) bytes[i];

		if (*negative)
		{
			carry += (unsigned char) ~byte;
			byte = (unsigned char) carry;
			carry >>= 8;
		}
		words[*nwords - 1 - (len - 1 - i) / 4] |= (uint32) byte << 8 * ((len - 1 - i) % 4);
	}
	return words;
}

/* Repeated division, in place, gives nine digits at a time, least significant first. */
static void
append_digits(StringInfo out, uint32 *words, int nwords)
{
	uint32	   *groups = palloc(sizeof(uint32) * (nwords * 2 + 1));
	int			ngroups = 0;
	int			first = 0;

	while (first < nwords)
	{
		uint64		remainder = 0;

		CHECK_FOR_INTERRUPTS();
		for (int i = first; i < nwords; i++)
		{
			uint64		part = remainder << 32 | words[i];

			words[i] = (uint32) (part / 1000000000);
			remainder = part % 1000000000;
		}
		groups[ngroups++] = (uint32) remainder;
		while (first < nwords && words[first] == 0)
			first++;
	}
	while (ngroups > 1 && groups[ngroups - 1] == 0)
		ngroups--;
	for (int i = ngroups - 1; i >= 0; i--)
		appendStringInfo(out, i == ngroups - 1 ? "%u" : "%09u", groups[i]);
	pfree(groups);
}

/* The digits with the point 'scale' of them before their end */
static void
append_scaled(StringInfo out, const StringInfoData *digits, int scale)
{
	int			whole = digits->len - Max(scale, 0);

	if (whole > 0)
		appendBinaryStringInfo(out, digits->data, whole);
	else
		appendStringInfoChar(out, '0');
	for (int i = scale; i < 0; i++)
		appendStringInfoChar(out, '0');
	if (scale <= 0)
		return;
	appendStringInfoChar(out, '.');
	for (int i = whole; i < 0; i++)
		appendStringInfoChar(out, '0');
	appendStringInfoString(out, digits->data + Max(whole, 0));
}

char *
decimal_bytes_text(const char *bytes, int len, int64 scale, const char *name)
{
	bool		negative;
	int			nwords;
	uint32	   *words;
	StringInfoData digits;
	StringInfoData text;

	if (len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("no bytes for %s", name)));
	if (len > DECIMAL_BYTES_MAX || scale > DECIMAL_SCALE_MAX || scale < -DECIMAL_SCALE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value out of range for %s: %d bytes with scale %lld", name, len, (long long) scale)));
	words = magnitude_words(bytes, len, &negative, &nwords);
	initStringInfo(&digits);
	append_digits(&digits, words, nwords);
	initStringInfo(&text);
	if (negative)
		appendStringInfoChar(&text, '-');
	append_scaled(&text, &digits, (int) scale);
	pfree(words);
	pfree(digits.data);
	return text.data;
}

/*
 * The digits of a decimal's text, without its point and sign but with zeros up to the
 * scale, into words of 32 bits, least significant first.  False if the scale loses some,
 * or they are too many.  *zero: there is no digit but 0.
 */
static bool
scaled_words(const char *text, int precision, int scale, uint32 *words, int *nwords, bool *zero)
{
	bool		fraction = false;
	int			left = scale;
	int			ndigits = 0;

	*nwords = 1;
	*zero = true;
	for (const char *p = text; *p || left > 0; p += *p != '\0')
	{
		uint64		carry;

		if (*p == '.')
		{
			fraction = true;
			continue;
		}
		carry = *p ? *p - '0' : 0;
		if (carry > 9)
			return false;		/* NaN and infinities */
		if (*p == '\0' || fraction)
		{
			if (left == 0)
			{
				if (carry != 0)
					return false;
				continue;
			}
			left--;
		}
		*zero &= carry == 0;
		if (!*zero && ++ndigits > precision)
			return false;
		for (int i = 0; i < *nwords; i++)
		{
			carry += (uint64) words[i] * 10;
			words[i] = (uint32) carry;
			carry >>= 32;
		}
		if (carry)
			words[(*nwords)++] = (uint32) carry;
	}
	return true;
}

/* Leading bytes that only repeat the sign are left out. */
static void
append_words(StringInfo out, const uint32 *words, int nwords, bool negative)
{
	int			nbytes = nwords * 4;
	unsigned char sign = negative ? 0xff : 0;
#define MAGNITUDE_BYTE(i) ((unsigned char) (words[(i) / 4] >> 8 * ((i) % 4)))

	if ((MAGNITUDE_BYTE(nbytes - 1) & 0x80) != (sign & 0x80))
		appendStringInfoChar(out, (char) sign);
	else
	{
		while (nbytes > 1 && MAGNITUDE_BYTE(nbytes - 1) == sign &&
			   (MAGNITUDE_BYTE(nbytes - 2) & 0x80) == (sign & 0x80))
			nbytes--;
	}
	while (nbytes-- > 0)
		appendStringInfoChar(out, (char) MAGNITUDE_BYTE(nbytes));
#undef MAGNITUDE_BYTE
}

bool
decimal_bytes_append(StringInfo out, const char *text, int precision, int scale)
{
	bool		negative = *text == '-';
	uint32	   *words = palloc0(sizeof(uint32) * (strlen(text) / 9 + scale / 9 + 3));
	int			nwords;
	bool		zero;

	if (!scaled_words(text + negative, precision, scale, words, &nwords, &zero))
		return false;
	if (negative)
	{
		uint64		carry = 1;

		for (int i = 0; i < nwords; i++)
		{
			carry += (uint32) ~words[i];
			words[i] = (uint32) carry;
			carry >>= 32;
		}
	}
	append_words(out, words, nwords, negative && !zero);	/* no negative zero */
	pfree(words);
	return true;
}
