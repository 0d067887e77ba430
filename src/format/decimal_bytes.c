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

char *
decimal_bytes_text(const char *bytes, int len, int64 scale, const char *name)
{
	unsigned char *magnitude;
	bool		negative;
	int			nwords;
	uint32	   *words;
	int			ngroups = 0;
	uint32	   *groups;
	int			first = 0;
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
	magnitude = palloc(len);
	memcpy(magnitude, bytes, len);

	/* the magnitude, in words of 32 bits, most significant first */
	negative = (magnitude[0] & 0x80) != 0;
	if (negative)
	{
		int			carry = 1;

		for (int i = len - 1; i >= 0; i--)
		{
			carry += (unsigned char) ~magnitude[i];
			magnitude[i] = (unsigned char) carry;
			carry >>= 8;
		}
	}
	nwords = (len + 3) / 4;
	words = palloc0(sizeof(uint32) * nwords);
	for (int i = 0; i < len; i++)
		words[nwords - 1 - (len - 1 - i) / 4] |= (uint32) magnitude[i] << 8 * ((len - 1 - i) % 4);

	/* repeated division gives nine digits at a time, least significant first */
	groups = palloc(sizeof(uint32) * (nwords * 2 + 1));
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
	initStringInfo(&digits);
	while (ngroups > 0 && groups[ngroups - 1] == 0)
		ngroups--;
	for (int i = ngroups - 1; i >= 0; i--)
		appendStringInfo(&digits, i == ngroups - 1 ? "%u" : "%09u", groups[i]);
	if (digits.len == 0)
		appendStringInfoChar(&digits, '0');

	initStringInfo(&text);
	if (negative)
		appendStringInfoChar(&text, '-');
	if (scale <= 0)
	{
		appendStringInfoString(&text, digits.data);
		for (int64 i = scale; i < 0; i++)
			appendStringInfoChar(&text, '0');
	}
	else
	{
		int			whole = digits.len - (int) scale;

		if (whole > 0)
			appendBinaryStringInfo(&text, digits.data, whole);
		else
			appendStringInfoChar(&text, '0');
		appendStringInfoChar(&text, '.');
		for (int i = whole; i < 0; i++)
			appendStringInfoChar(&text, '0');
		appendStringInfoString(&text, digits.data + Max(whole, 0));
	}
	pfree(magnitude);
	pfree(words);
	pfree(groups);
	pfree(digits.data);
	return text.data;
}

bool
decimal_bytes_append(StringInfo out, const char *text, int precision, int scale)
{
	const char *p = text;
	bool		negative = *p == '-';
	bool		fraction = false;
	int			left = scale;
	int			ndigits = 0;
	int			nwords = 1;
	uint32	   *words = palloc0(sizeof(uint32) * (strlen(text) / 9 + scale / 9 + 3));
	bool		started = false;

	/* the magnitude, in words of 32 bits, least significant first */
	for (p += negative; *p || left > 0; p += *p != '\0')
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
		started |= carry != 0;
		if (started && ++ndigits > precision)
			return false;
		for (int i = 0; i < nwords; i++)
		{
			carry += (uint64) words[i] * 10;
			words[i] = (uint32) carry;
			carry >>= 32;
		}
		if (carry)
			words[nwords++] = (uint32) carry;
	}

	if (negative)
	{
		uint64		carry = 1;

		for (int i = 0; i < nwords; i++)
		{
			carry += (uint32) ~words[i];
			words[i] = (uint32) carry;
			carry >>= 32;
		}
		negative = ndigits > 0; /* no negative zero */
	}

	/* leading bytes that only repeat the sign are left out */
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
	pfree(words);
	return true;
}
