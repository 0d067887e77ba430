/*
 * avro_input.c
 *	  The bytes of an Avro value: lengths, blocks, skipping.
 *
 * Avro 1.12, "Binary Encoding".  Knows schemas, but no PostgreSQL types.
 */
#include "postgres.h"

#include "common/int.h"
#include "format/avro_input.h"
#include "format/value_style.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"

/*
 * Items of which the encoding has no bytes (nulls, empty records) cost memory that the
 * message did not pay for: this many of a message, and no more.
 */
#define MAX_EMPTY_ITEMS 1000000

void
avro_truncated(const AvroInput *in, int64 wanted)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("the Avro data ends too early"),
			 errdetail("%lld bytes are wanted, %lld are left.", (long long) wanted, (long long) (in->end - in->p))));
	pg_unreachable();
}

void
avro_bad_varint(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid Avro integer")));
	pg_unreachable();
}

int64
avro_read_length(AvroInput *in)
{
	int64		len = avro_read_long(in);

	if (len < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid Avro data: negative length %lld", (long long) len)));
	if (len > in->end - in->p)
		avro_truncated(in, len);
	return len;
}

const char *
avro_read_raw(AvroInput *in, const AvroNode *node, Size *len)
{
	*len = node->type == AVRO_FIXED ? node->size : avro_read_length(in);
	return avro_read_bytes(in, *len);
}

const char *
avro_read_text(AvroInput *in, const AvroNode *node, Size *len)
{
	const char *bytes = avro_read_raw(in, node, len);
	const char *text;

	if (unlikely(in->strip_nul))
		bytes = strip_nul_bytes(bytes, len);
	text = pg_any_to_server(bytes, (int) *len, PG_UTF8);
	if (text != bytes)
		*len = strlen(text);
	return text;
}

float
avro_read_float(AvroInput *in)
{
	const unsigned char *p = (const unsigned char *) avro_read_bytes(in, 4);
	uint32		bits = (uint32) p[0] | (uint32) p[1] << 8 | (uint32) p[2] << 16 | (uint32) p[3] << 24;
	float		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

double
avro_read_double(AvroInput *in)
{
	const unsigned char *p = (const unsigned char *) avro_read_bytes(in, 8);
	uint64		bits = 0;
	double		value;

	for (int i = 7; i >= 0; i--)
		bits = bits << 8 | p[i];
	memcpy(&value, &bits, sizeof(value));
	return value;
}

int
avro_read_branch(AvroInput *in, const AvroNode *node)
{
	int64		branch = avro_read_long(in);

	if (branch < 0 || branch >= node->n)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid Avro data: %s of %d has no number %lld",
						node->type == AVRO_UNION ? "a union" : "an enum", node->n, (long long) branch)));
	return (int) branch;
}

int64
avro_read_block(AvroInput *in, const AvroNode *node, int64 *bytes)
{
	int64		n = avro_read_long(in);
	int64		min_size = node->children[0]->min_size + (node->type == AVRO_MAP ? 1 : 0);

	CHECK_FOR_INTERRUPTS();
	*bytes = -1;
	if (n < 0)
	{
		*bytes = avro_read_length(in);
		if (n == PG_INT64_MIN)
			avro_bad_varint();
		n = -n;
	}
	if (min_size > 0)
	{
		if (n > (in->end - in->p) / min_size)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("invalid Avro data: %lld items in %lld bytes", (long long) n, (long long) (in->end - in->p))));
	}
	else if (n > MAX_EMPTY_ITEMS - in->empty_items)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many items without content in an Avro array"),
				 errdetail("A message may have %d of them.", MAX_EMPTY_ITEMS)));
	else
		in->empty_items += n;
	return n;
}

void
avro_check_block(const AvroInput *in, const char *begin, int64 bytes)
{
	if (unlikely(bytes >= 0 && in->p - begin != bytes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid Avro data: a block of %lld bytes says that it has %lld",
						(long long) (in->p - begin), (long long) bytes)));
}

int64
avro_read_micros(AvroInput *in, const AvroNode *node)
{
	int64		value = node->type == AVRO_INT ? avro_read_int(in) : avro_read_long(in);
	int64		micros;

	if (node->per_second >= 1000000)
	{
		int64		per_micro = node->per_second / 1000000;

		micros = value / per_micro;
		return micros * per_micro > value ? micros - 1 : micros;
	}
	if (pg_mul_s64_overflow(value, 1000000 / node->per_second, &micros))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld ms", (long long) value)));
	return micros;
}

void
avro_skip(AvroInput *in, const AvroNode *node)
{
	int64		n;
	int64		bytes;

	switch (node->type)
	{
		case AVRO_NULL:
			break;
		case AVRO_BOOLEAN:
			(void) avro_read_bytes(in, 1);
			break;
		case AVRO_INT:
		case AVRO_LONG:
		case AVRO_ENUM:
			(void) avro_read_long(in);
			break;
		case AVRO_FLOAT:
			(void) avro_read_bytes(in, 4);
			break;
		case AVRO_DOUBLE:
			(void) avro_read_bytes(in, 8);
			break;
		case AVRO_BYTES:
		case AVRO_STRING:
			(void) avro_read_bytes(in, avro_read_length(in));
			break;
		case AVRO_FIXED:
			(void) avro_read_bytes(in, node->size);
			break;
		case AVRO_RECORD:
			check_stack_depth();
			for (int i = 0; i < node->n; i++)
				avro_skip(in, node->children[i]);
			break;
		case AVRO_UNION:
			check_stack_depth();
			avro_skip(in, node->children[avro_read_branch(in, node)]);
			break;
		case AVRO_ARRAY:
		case AVRO_MAP:
			check_stack_depth();
			while ((n = avro_read_block(in, node, &bytes)) > 0)
			{
				if (bytes >= 0)
				{
					(void) avro_read_bytes(in, bytes);
					continue;
				}
				for (int64 i = 0; i < n; i++)
				{
					if (node->type == AVRO_MAP)
						(void) avro_read_bytes(in, avro_read_length(in));
					avro_skip(in, node->children[0]);
				}
			}
			break;
	}
}

void
avro_check_end(const AvroInput *in)
{
	if (in->p < in->end)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("%lld bytes follow the Avro data", (long long) (in->end - in->p)),
				 errhint("The message was written with another schema than it is read with.")));
}
