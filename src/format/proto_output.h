/*
 * proto_output.h
 *	  Protobuf's wire format of single values, appended to a buffer; and jsonb, whatever the
 *	  field's type makes of it.
 *
 * Private to the protobuf format.
 */
#ifndef UK_PROTO_OUTPUT_H
#define UK_PROTO_OUTPUT_H

#include "datatype/timestamp.h"
#include "format/proto_write.h"
#include "lib/stringinfo.h"
#include "utils/date.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

/* Where a value goes */
typedef enum ProtoPut
{
	PUT_FIELD,					/* behind its tag; nothing at all where the
								 * default is no presence */
	PUT_ITEM,					/* behind its tag, always: of a repeated
								 * field, of a map's entry */
	PUT_PACKED					/* alone */
} ProtoPut;

extern void proto_put_varint(StringInfo out, uint64 value);

/*
 * Numbers as their field's type has them.  ERROR 22003 for those that it cannot have; 22P02
 * for a number that a closed enum does not have.
 */
extern void proto_put_integer(StringInfo out, const ProtoField *field, int64 value, ProtoPut put);
extern void proto_put_numeric(StringInfo out, const ProtoField *field, Numeric value, ProtoPut put);
extern void proto_put_float(StringInfo out, const ProtoField *field, float8 value, ProtoPut put);

/* bytes, and strings in UTF-8 */
extern void proto_put_bytes(StringInfo out, const ProtoField *field, const char *bytes, Size len, ProtoPut put);

/* A symbol in the database encoding, or the digits of a number.  ERROR 22P02 if there is none */
extern void proto_put_symbol(StringInfo out, const ProtoField *field, const char *symbol, Size len, ProtoPut put);

/*
 * The well-known types.  The timestamp is one in UTC, and 0 to 999 nanoseconds more.  Seconds
 * and nanoseconds of a duration have one sign.  ERROR class 22 for what has no form
 */
extern void proto_put_timestamp(StringInfo out, const ProtoField *field, Timestamp timestamp, int nanos);
extern void proto_put_duration(StringInfo out, const ProtoField *field, int64 seconds, int32 nanos);
extern void proto_put_interval(StringInfo out, const ProtoField *field, const Interval *interval);
extern void proto_put_date(StringInfo out, const ProtoField *field, DateADT date);
extern void proto_put_time(StringInfo out, const ProtoField *field, TimeADT time);

/*
 * What comes between is the content of one message, or of a packed field.  begin returns
 * what end wants.
 */
extern int	proto_put_begin(StringInfo out, const ProtoField *field);
extern void proto_put_end(StringInfo out, const ProtoField *field, int begin);

/* What stands for a NULL among the values of a repeated field */
extern void proto_put_null(StringInfo out, const ProtoField *field, const ProtoWriteOptions *options, ProtoPut put);

/* ERROR 22004, 22023 */
extern void proto_missing(const ProtoMessage *message, const ProtoField *field) pg_attribute_noreturn();
extern void proto_two_members(const ProtoMessage *message, const ProtoField *field) pg_attribute_noreturn();

/*
 * A whole field from jsonb; null leaves it out.  ERROR 22023 where the value is nothing that
 * the field takes, or has members that the message does not have.
 */
extern void proto_put_jsonb(StringInfo out, const ProtoField *field, const JsonbValue *value,
							const ProtoWriteOptions *options);

/* The same for one value of the field, though it may be repeated */
extern void proto_put_jsonb_one(StringInfo out, const ProtoField *field, const JsonbValue *value,
								const ProtoWriteOptions *options, ProtoPut put);

#endif							/* UK_PROTO_OUTPUT_H */
