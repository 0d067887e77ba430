/*
 * proto_output.c
 *	  Protobuf's wire format: tags, numbers, lengths, and the messages that stand for values.
 *
 * What is written is what Google's libraries write: fields in the order of their numbers is
 * the caller's part, the shortest form of everything is this one's.
 */
#include "postgres.h"

#include "format/binary_values.h"
#include "format/proto_input.h"
#include "format/proto_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"


void
proto_put_varint(StringInfo out, uint64 value)
{
	char		bytes[10];
	int			n = 0;

	while (value > 0x7f)
	{
		bytes[n++] = (char) (value | 0x80);
		value >>= 7;
	}
	bytes[n++] = (char) value;
	appendBinaryStringInfo(out, bytes, n);
}

static void
put_tag(StringInfo out, uint32 number, ProtoWire wire)
{
	proto_put_varint(out, (uint64) number << 3 | wire);
}

static void
put_fixed(StringInfo out, uint64 bits, int width)
{
	char		bytes[8];

	for (int i = 0; i < width; i++)
		bytes[i] = (char) (bits >> 8 * i);
	appendBinaryStringInfo(out, bytes, width);
}

/* A number's bits; all of them zero are the default where there is no presence. */
static void
put_bits(StringInfo out, const ProtoField *field, uint64 bits, ProtoPut put)
{
	if (put == PUT_FIELD && !field->presence && bits == 0)
		return;
	if (put != PUT_PACKED)
		put_tag(out, field->number, field->wire);
	switch (field->wire)
	{
		case WIRE_FIXED64:
			put_fixed(out, bits, 8);
			break;
		case WIRE_FIXED32:
			put_fixed(out, bits, 4);
			break;
		default:
			proto_put_varint(out, bits);
			break;
	}
}

static void
out_of_range(const ProtoField *field, const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("value \"%s\" is out of range for protobuf type %s", text, proto_type_name(field))));
}

void
proto_put_integer(StringInfo out, const ProtoField *field, int64 value, ProtoPut put)
{
	bool		fits = true;
	uint64		bits = (uint64) value;

	switch (field->type)
	{
		case PROTO_ENUM:
			fits = value >= PG_INT32_MIN && value <= PG_INT32_MAX;
			if (fits && field->enumeration->closed && proto_enum_name(field->enumeration, (int32) value) == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("protobuf enum \"%s\" has no number %lld", field->enumeration->name, (long long) value)));
			break;
		case PROTO_INT32:
		case PROTO_SFIXED32:
			fits = value >= PG_INT32_MIN && value <= PG_INT32_MAX;
			break;
		case PROTO_SINT32:
			fits = value >= PG_INT32_MIN && value <= PG_INT32_MAX;
			bits = (uint32) ((uint32) value << 1 ^ (uint32) (value >> 63));
			break;
		case PROTO_UINT32:
		case PROTO_FIXED32:
			fits = value >= 0 && value <= PG_UINT32_MAX;
			break;
		case PROTO_UINT64:
		case PROTO_FIXED64:
			fits = value >= 0;
			break;
		case PROTO_SINT64:
			bits = (uint64) value << 1 ^ (uint64) (value >> 63);
			break;
		case PROTO_BOOL:
			bits = value != 0;
			break;
		default:
			break;
	}
	if (!fits)
		out_of_range(field, psprintf("%lld", (long long) value));
	put_bits(out, field, bits, put);
}

void
proto_put_numeric(StringInfo out, const ProtoField *field, Numeric value, ProtoPut put)
{
	Datum		datum = NumericGetDatum(value);
	Datum		whole;
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, datum));
	char	   *end;
	int64		number;
	uint64		bits;

	if (field->type == PROTO_DOUBLE || field->type == PROTO_FLOAT)
	{
		/*
		 * the cast to real, not one to double and then one more, says what
		 * overflows
		 */
		proto_put_float(out, field, field->type == PROTO_DOUBLE ? DatumGetFloat8(DirectFunctionCall1(numeric_float8, datum)) :
						DatumGetFloat4(DirectFunctionCall1(numeric_float4, datum)), put);
		return;
	}
	whole = DirectFunctionCall2(numeric_trunc, datum, Int32GetDatum(0));
	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, datum, whole)))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value \"%s\" is no whole number, as protobuf type %s is", text, proto_type_name(field))));
	text = DatumGetCString(DirectFunctionCall1(numeric_out, whole));

	errno = 0;
	if (proto_is_unsigned(field) && text[0] != '-')
	{
		bits = strtoull(text, &end, 10);
		if (errno != 0 || *end != '\0')
			out_of_range(field, text);
		put_bits(out, field, bits, put);
		return;
	}
	number = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0')
		out_of_range(field, text);
	proto_put_integer(out, field, number, put);
}

void
proto_put_float(StringInfo out, const ProtoField *field, float8 value, ProtoPut put)
{
	uint64		bits = 0;

	if (field->type == PROTO_FLOAT)
	{
		float4		single = (float4) value;
		uint32		single_bits;

		memcpy(&single_bits, &single, sizeof(single_bits));
		bits = single_bits;
	}
	else
		memcpy(&bits, &value, sizeof(bits));
	put_bits(out, field, bits, put);
}

void
proto_put_bytes(StringInfo out, const ProtoField *field, const char *bytes, Size len, ProtoPut put)
{
	if (put == PUT_FIELD && !field->presence && len == 0)
		return;
	put_tag(out, field->number, WIRE_BYTES);
	proto_put_varint(out, len);
	appendBinaryStringInfo(out, bytes, (int) len);
}

void
proto_put_symbol(StringInfo out, const ProtoField *field, const char *symbol, Size len, ProtoPut put)
{
	int32		number;
	char	   *text;
	char	   *end;
	long long	digits;

	if (!proto_enum_number(field->enumeration, symbol, len, &number))
	{
		/* as numbers without a name are read */
		text = pnstrdup(symbol, len);

		errno = 0;
		digits = strtoll(text, &end, 10);
		if (len == 0 || *end != '\0' || errno != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("protobuf enum \"%s\" has no value \"%s\"", field->enumeration->name, text)));
		proto_put_integer(out, field, digits, put);
		return;
	}
	proto_put_integer(out, field, number, put);
}

int
proto_put_begin(StringInfo out, const ProtoField *field)
{
	if (field->type == PROTO_GROUP)
	{
		put_tag(out, field->number, WIRE_GROUP);
		return out->len;
	}
	put_tag(out, field->number, WIRE_BYTES);
	appendStringInfoChar(out, '\0');	/* most lengths have one byte */
	return out->len;
}

void
proto_put_end(StringInfo out, const ProtoField *field, int begin)
{
	uint32		len = (uint32) (out->len - begin);
	int			more = 0;
	char	   *p;

	if (field->type == PROTO_GROUP)
	{
		put_tag(out, field->number, WIRE_GROUP_END);
		return;
	}
	for (uint32 rest = len >> 7; rest > 0; rest >>= 7)
		more++;
	if (more > 0)
	{
		enlargeStringInfo(out, more);
		memmove(out->data + begin + more, out->data + begin, len);
		out->len += more;
		out->data[out->len] = '\0';
	}
	p = out->data + begin - 1;
	for (; len > 0x7f; len >>= 7)
		*p++ = (char) (len | 0x80);
	*p = (char) len;
}

void
proto_put_null(StringInfo out, const ProtoField *field, const ProtoWriteOptions *options, ProtoPut put)
{
	switch (field->type)
	{
		case PROTO_STRING:
			proto_put_bytes(out, field, options->null_literal, strlen(options->null_literal), put);
			break;
		case PROTO_BYTES:
			proto_put_bytes(out, field, "", 0, put);
			break;
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			proto_put_end(out, field, proto_put_begin(out, field));
			break;
		default:
			put_bits(out, field, field->enumeration ? (uint64) (int64) field->enumeration->numbers[0] : 0, put);
			break;
	}
}

void
proto_missing(const ProtoMessage *message, const ProtoField *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("required field \"%s\" of protobuf message \"%s\" has no value", field->name, message->name)));
	pg_unreachable();
}

void
proto_two_members(const ProtoMessage *message, const ProtoField *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("more than one field of oneof \"%s\" of protobuf message \"%s\" has a value",
					message->oneofs[field->oneof], message->name),
			 errdetail("The second is \"%s\".", field->name)));
	pg_unreachable();
}

/* === Well-known types ======================================================= */

/* An integer of a message that has nothing but integers */
static void
put_part(StringInfo out, uint32 number, int64 value)
{
	if (value == 0)
		return;
	put_tag(out, number, WIRE_VARINT);
	proto_put_varint(out, (uint64) value);
}

void
proto_put_timestamp(StringInfo out, const ProtoField *field, Timestamp timestamp, int nanos)
{
	int64		seconds = timestamp / USECS_PER_SEC;
	int64		micros = timestamp % USECS_PER_SEC;
	int			begin;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite timestamp cannot be written")));
	if (micros < 0)
	{
		micros += USECS_PER_SEC;
		seconds--;
	}
	begin = proto_put_begin(out, field);
	put_part(out, 1, seconds + (int64) POSTGRES_EPOCH_DAYS * SECS_PER_DAY);
	put_part(out, 2, micros * 1000 + nanos);
	proto_put_end(out, field, begin);
}

void
proto_put_duration(StringInfo out, const ProtoField *field, int64 seconds, int32 nanos)
{
	int			begin = proto_put_begin(out, field);

	put_part(out, 1, seconds);
	put_part(out, 2, nanos);
	proto_put_end(out, field, begin);
}

void
proto_put_interval(StringInfo out, const ProtoField *field, const Interval *interval)
{
	int64		seconds;
	int64		micros = interval->time % USECS_PER_SEC;

	/* an infinite one, which later versions have, has them as well */
	if (interval->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
				 errmsg("an interval with months cannot be written as a protobuf Duration"),
				 errdetail("A month has no fixed number of seconds.")));
	seconds = (int64) interval->day * SECS_PER_DAY + interval->time / USECS_PER_SEC;
	/* both have one sign in a Duration */
	if (seconds > 0 && micros < 0)
	{
		seconds--;
		micros += USECS_PER_SEC;
	}
	else if (seconds < 0 && micros > 0)
	{
		seconds++;
		micros -= USECS_PER_SEC;
	}
	proto_put_duration(out, field, seconds, (int32) (micros * 1000));
}

void
proto_put_date(StringInfo out, const ProtoField *field, DateADT date)
{
	int			year;
	int			month;
	int			day;
	int			begin;

	if (DATE_NOT_FINITE(date))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("an infinite date cannot be written")));
	j2date(date + POSTGRES_EPOCH_JDATE, &year, &month, &day);
	if (year < 1 || year > 9999)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("a google.type.Date is in the years 1 to 9999")));
	begin = proto_put_begin(out, field);
	put_part(out, 1, year);
	put_part(out, 2, month);
	put_part(out, 3, day);
	proto_put_end(out, field, begin);
}

void
proto_put_time(StringInfo out, const ProtoField *field, TimeADT time)
{
	int			begin = proto_put_begin(out, field);
	int64		seconds = time / USECS_PER_SEC;

	put_part(out, 1, seconds / SECS_PER_HOUR);
	put_part(out, 2, seconds / SECS_PER_MINUTE % MINS_PER_HOUR);
	put_part(out, 3, seconds % SECS_PER_MINUTE);
	put_part(out, 4, time % USECS_PER_SEC * 1000);
	proto_put_end(out, field, begin);
}
