/*
 * decimal_bytes.h
 *	  Decimals as Kafka Connect and Avro have them: an integer in two's complement,
 *	  most significant byte first, and a scale (case C01).
 */
#ifndef UK_DECIMAL_BYTES_H
#define UK_DECIMAL_BYTES_H

#include "lib/stringinfo.h"

/*
 * The decimal as text for numeric's input, palloc'd.  'name' is the type's, for errors:
 * 22P02 without bytes, 22003 where there are too many.
 */
extern char *decimal_bytes_text(const char *bytes, int len, int64 scale, const char *name);

/*
 * Append the bytes of a decimal's text ("-123.45", no exponent) with this scale, as few
 * of them as will do, as Java's BigInteger has it.  False if the text has digits that
 * the scale would lose, or more than 'precision' of them.
 */
extern bool decimal_bytes_append(StringInfo out, const char *text, int precision, int scale);

#endif							/* UK_DECIMAL_BYTES_H */
