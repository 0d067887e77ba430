/*
 * avro_input.h
 *	  The bytes of an Avro value, read without ever passing their end.
 *
 * Private to the Avro format.  Every count and length is checked against what is left
 * before anything is done with it.
 */
#ifndef UK_AVRO_INPUT_H
#define UK_AVRO_INPUT_H

#include "compat.h"
#include "format/avro_schema.h"
#include "lib/stringinfo.h"

typedef struct AvroInput
{
	const char *p;
	const char *end;
	int64		empty_items;	/* array items without bytes, so far */
	bool		strip_nul;		/* from text, which cannot hold it */
} AvroInput;

extern void avro_truncated(const AvroInput *in, int64 wanted) pg_attribute_noreturn();
extern void avro_bad_varint(void) pg_attribute_noreturn();

static inline int64
avro_read_long(AvroInput *in)
{
	uint64		value = 0;

	for (int shift = 0; shift < 64; shift += 7)
	{
		unsigned char byte;

		if (unlikely(in->p >= in->end))
			avro_truncated(in, 1);
		byte = (unsigned char) *in->p++;
		value |= (uint64) (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
		{
			if (unlikely(shift == 63 && byte > 1))
				break;
			return (int64) (value >> 1) ^ -(int64) (value & 1);
		}
	}
	avro_bad_varint();
}

static inline int32
avro_read_int(AvroInput *in)
{
	int64		value = avro_read_long(in);

	if (unlikely(value < PG_INT32_MIN || value > PG_INT32_MAX))
		avro_bad_varint();
	return (int32) value;
}

/* The next n bytes */
static inline const char *
avro_read_bytes(AvroInput *in, int64 n)
{
	const char *result = in->p;

	if (unlikely(n > in->end - in->p))
		avro_truncated(in, n);
	in->p += n;
	return result;
}

static inline bool
avro_read_boolean(AvroInput *in)
{
	return *avro_read_bytes(in, 1) != 0;
}

/* The length of bytes or text that follow */
extern int64 avro_read_length(AvroInput *in);

/* Bytes, text and fixed alike: where they are, and how many */
extern const char *avro_read_raw(AvroInput *in, const AvroNode *node, Size *len);

/* The same as text, checked, in the database encoding.  ERROR 22021 */
extern const char *avro_read_text(AvroInput *in, const AvroNode *node, Size *len);

extern float avro_read_float(AvroInput *in);
extern double avro_read_double(AvroInput *in);

/* The branch of a union, the symbol of an enum; checked. */
extern int	avro_read_branch(AvroInput *in, const AvroNode *node);

/*
 * How many items the next block of an array or map has; 0 at its end.  *bytes: its
 * length where the writer told, else -1.
 */
extern int64 avro_read_block(AvroInput *in, const AvroNode *node, int64 *bytes);

/*
 * After the items of a block that began at 'begin': ERROR 22P03 unless it had the length
 * that was told, by which it would have been skipped.
 */
extern void avro_check_block(const AvroInput *in, const char *begin, int64 bytes);

/*
 * A time of any unit in microseconds; nanoseconds are cut off.  ERROR 22008 on overflow.
 */
extern int64 avro_read_micros(AvroInput *in, const AvroNode *node);

/* Pass over a value. */
extern void avro_skip(AvroInput *in, const AvroNode *node);

/* ERROR 22P03 unless all is read. */
extern void avro_check_end(const AvroInput *in);

#endif							/* UK_AVRO_INPUT_H */
