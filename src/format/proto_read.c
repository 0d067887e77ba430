/*
 * proto_read.c
 *	  Protobuf messages -> Datums, by the readers that proto_reader.c makes.
 */
#include "postgres.h"

#include "common/int.h"
#include "format/lenient.h"
#include "format/proto_reader.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static Datum read_value(ProtoReader *reader, const ProtoValue *value, bool *isnull, int depth);
static Datum read_slot(ProtoReader *reader, const ProtoSlot *slot, bool *isnull, int depth);

static inline Datum
checked(ProtoReader *reader, Datum value)
{
	if (unlikely(OidIsValid(reader->domain) && !reader->checks_itself))
		domain_check(value, false, reader->domain, &reader->domain_cache, reader->context);
	return value;
}

static Datum
read_null(ProtoReader *reader, bool *isnull)
{
	*isnull = true;
	if (OidIsValid(reader->domain))
		domain_check((Datum) 0, true, reader->domain, &reader->domain_cache, reader->context);
	return (Datum) 0;
}

static Datum
read_integer(ProtoReader *reader, const ProtoValue *value)
{
	int64		number = proto_signed(reader->field, value);

	if (unlikely(number < 0 && proto_is_unsigned(reader->field)))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value \"%llu\" is out of range for type %s", (unsigned long long) value->bits, format_type_be(reader->type)),
				 reader->type == INT8OID ? errhint("A numeric column takes all of uint64.") : 0));
	return integer_datum(number, reader->type);
}

static Datum
read_numeric(ProtoReader *reader, const ProtoValue *value)
{
	int64		number = proto_signed(reader->field, value);
	char		text[32];
	Datum		result;

	if (number < 0 && proto_is_unsigned(reader->field))
	{
		snprintf(text, sizeof(text), "%llu", (unsigned long long) value->bits);
		return DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(reader->typmod));
	}
	result = NumericGetDatum(int64_to_numeric(number));
	if (reader->typmod >= 0)
		result = DirectFunctionCall2(numeric, result, Int32GetDatum(reader->typmod));
	return result;
}

static Datum
read_floating(ProtoReader *reader, const ProtoValue *value)
{
	double		number = proto_double(reader->field, value);

	if (reader->type == FLOAT8OID)
		return Float8GetDatum(number);
	/* the cast says what overflows */
	return reader->field->type == PROTO_FLOAT ? Float4GetDatum((float4) number) :
		DirectFunctionCall1(dtof, Float8GetDatum(number));
}

static Datum
read_string(ProtoReader *reader, const ProtoValue *value)
{
	Size		len;
	const char *text = proto_text(value, reader->options->strip_nul, &len);

	return value_input(reader->input, text, len, false);
}

static Datum
read_enum(ProtoReader *reader, const ProtoValue *value)
{
	const char *name = proto_enum_name(reader->field->enumeration, (int32) value->bits);
	char		text[16];

	if (name == NULL)
	{
		snprintf(text, sizeof(text), "%d", (int32) value->bits);
		name = text;
	}
	return value_input(reader->input, name, strlen(name), false);
}

static Datum
read_uuid(const ProtoValue *value)
{
	if (value->len != UUID_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a uuid has %d bytes, not %u", UUID_LEN, value->len)));
	return uuid_datum(value->p);
}

/* Seconds and nanoseconds as microseconds since 1970; what is finer is cut off. */
static Datum
read_timestamp(ProtoReader *reader, const ProtoValue *value)
{
	int64		parts[2];
	Timestamp	timestamp;

	proto_small_message(value, 2, parts);
	parts[1] = (int32) parts[1];
	if (parts[1] < 0 || parts[1] > 999999999 ||
		pg_sub_s64_overflow(parts[0], (int64) POSTGRES_EPOCH_DAYS * SECS_PER_DAY, &timestamp) ||
		pg_mul_s64_overflow(timestamp, USECS_PER_SEC, &timestamp) ||
		pg_add_s64_overflow(timestamp, parts[1] / 1000, &timestamp) || !IS_VALID_TIMESTAMP(timestamp) ||
		(reader->type == TIMESTAMPOID && !value_zone_local(&reader->zone, &timestamp)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld s %lld ns", (long long) parts[0], (long long) parts[1])));
	return timestamp_datum(timestamp, reader->type, reader->typmod);
}

static Datum
read_interval(ProtoReader *reader, const ProtoValue *value)
{
	int64		parts[2];
	Interval   *interval = palloc0(sizeof(Interval));

	proto_small_message(value, 2, parts);
	parts[1] = (int32) parts[1];
	if (parts[1] < -999999999 || parts[1] > 999999999 ||
		pg_mul_s64_overflow(parts[0], USECS_PER_SEC, &interval->time) ||
		pg_add_s64_overflow(interval->time, parts[1] / 1000, &interval->time))
		ereport(ERROR,
				(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
				 errmsg("duration out of range: %lld s %lld ns", (long long) parts[0], (long long) parts[1])));
	if (reader->typmod < 0)
		return IntervalPGetDatum(interval);
	return DirectFunctionCall2(interval_scale, IntervalPGetDatum(interval), Int32GetDatum(reader->typmod));
}

static Datum
read_date(const ProtoValue *value)
{
	int64		parts[3];
	struct pg_tm tm;

	proto_small_message(value, 3, parts);
	/* google.type.Date has parts that are 0 where they are not known */
	if (parts[0] < 1 || parts[0] > 9999 || parts[1] < 1 || parts[1] > MONTHS_PER_YEAR ||
		parts[2] < 1 || parts[2] > day_tab[isleap((int) parts[0])][parts[1] - 1])
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("date out of range: year %lld, month %lld, day %lld", (long long) parts[0], (long long) parts[1], (long long) parts[2])));
	tm.tm_year = (int) parts[0];
	tm.tm_mon = (int) parts[1];
	tm.tm_mday = (int) parts[2];
	return DateADTGetDatum(date2j(tm.tm_year, tm.tm_mon, tm.tm_mday) - POSTGRES_EPOCH_JDATE);
}

static Datum
read_time(ProtoReader *reader, const ProtoValue *value)
{
	int64		parts[4];
	int64		micros = 0;
	bool		fits;

	proto_small_message(value, 4, parts);
	fits = parts[0] >= 0 && parts[0] <= 24 && parts[1] >= 0 && parts[1] <= 59 && parts[2] >= 0 && parts[2] <= 60 &&
		parts[3] >= 0 && parts[3] <= 999999999;
	if (fits)
		micros = ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * USECS_PER_SEC + parts[3] / 1000;
	if (!fits || micros > USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time out of range: %lld:%lld:%lld, %lld ns", (long long) parts[0], (long long) parts[1],
						(long long) parts[2], (long long) parts[3])));
	return time_datum(micros, reader->typmod);
}

static Datum
read_wrapper(ProtoReader *reader, const ProtoValue *value, bool *isnull, int depth)
{
	ProtoScan  *scan = reader->program->scan;
	const ProtoField *field = reader->inner->field;
	ProtoValue	inner;
	Datum		result;

	proto_scan_run(scan, value->p, value->len, depth + 1);
	if (proto_slot(scan, field)->set)
		inner = proto_slot(scan, field)->value;
	else
		proto_default(field, &inner);
	result = read_value(reader->inner, &inner, isnull, depth + 1);
	proto_scan_release(scan);
	return result;
}

static Datum
read_composite(ProtoReader *reader, const ProtoValue *value, int depth)
{
	ProtoProgram *program = reader->program;
	int			natts = reader->desc->natts;
	Datum	   *values = palloc0(sizeof(Datum) * Max(natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(natts, 1));
	Datum		result;

	memset(isnull, true, natts);
	proto_scan_run(program->scan, value->p, value->len, depth + 1);
	for (int i = 0; i < program->ncolumns; i++)
	{
		ProgramColumn *column = &program->columns[i];

		values[column->index] = read_slot(column->reader, proto_slot(program->scan, column->field),
										  &isnull[column->index], depth + 1);
	}
	proto_scan_release(program->scan);
	result = HeapTupleGetDatum(heap_form_tuple(reader->desc, values, isnull));
	pfree(values);
	pfree(isnull);
	return result;
}

static Datum
read_array(ProtoReader *reader, const ProtoSlot *slot, int depth)
{
	ProtoItems	items;
	ProtoValue	item;
	int			n = 0;
	int			room = Max(slot->n, 16);
	Datum	   *values = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum) * room);
	bool	   *isnull = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(bool) * room);
	int			lower = 1;
	ArrayType  *array;

	proto_items_begin(&items, reader->field, slot);
	while (proto_items_next(&items, &item))
	{
		if (n == room)
		{
			CHECK_FOR_INTERRUPTS();
			room *= 2;
			values = repalloc_huge(values, sizeof(Datum) * room);
			isnull = repalloc_huge(isnull, sizeof(bool) * room);
		}
		values[n] = read_value(reader->inner, &item, &isnull[n], depth);
		if (++n > MaxArraySize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("array size exceeds the maximum allowed (%d)", (int) MaxArraySize)));
	}
	if (n == 0)
		array = construct_empty_array(reader->element);
	else
		array = construct_md_array(values, isnull, 1, &n, &lower, reader->element,
								   reader->typlen, reader->typbyval, reader->typalign);
	pfree(values);
	pfree(isnull);
	return PointerGetDatum(array);
}

static Datum
read_text(ProtoReader *reader, const ProtoSlot *slot, const ProtoValue *value, int depth)
{
	StringInfoData text;
	bool		is_number = false;
	Datum		result;

	initStringInfo(&text);
	if (reader->kind == READ_HSTORE)
		proto_hstore_append(&text, reader->field, slot, &reader->json, depth);
	else if (slot)
		proto_json_append_all(&text, reader->field, slot, &reader->json, depth);
	else if (reader->as_json)
		proto_json_append(&text, reader->field, value, &reader->json, depth);
	else
		proto_text_append(&text, reader->field, value, &reader->json, depth, &is_number);
	result = value_input(reader->input, text.data, text.len, is_number);
	pfree(text.data);
	return result;
}

static Datum
convert(ProtoReader *reader, const ProtoSlot *slot, const ProtoValue *value, bool *isnull, int depth)
{
	*isnull = false;
	switch (reader->kind)
	{
		case READ_INTEGER:
			return read_integer(reader, value);
		case READ_NUMERIC:
			return read_numeric(reader, value);
		case READ_FLOATING:
			return read_floating(reader, value);
		case READ_BOOLEAN:
			return BoolGetDatum(value->bits != 0);
		case READ_STRING:
			return read_string(reader, value);
		case READ_ENUM:
			return read_enum(reader, value);
		case READ_BYTEA:
			return bytea_datum(value->p, value->len);
		case READ_UUID:
			return read_uuid(value);
		case READ_TIMESTAMP:
			return read_timestamp(reader, value);
		case READ_INTERVAL:
			return read_interval(reader, value);
		case READ_DATE:
			return read_date(value);
		case READ_TIME:
			return read_time(reader, value);
		case READ_WRAPPER:
			return read_wrapper(reader, value, isnull, depth);
		case READ_COMPOSITE:
			return read_composite(reader, value, depth);
		case READ_ARRAY:
			return read_array(reader, slot, depth);
		case READ_HSTORE:
		case READ_TEXT:
			return read_text(reader, slot, value, depth);
	}
	pg_unreachable();
}

typedef struct Conversion
{
	ProtoReader *reader;
	const ProtoSlot *slot;
	const ProtoValue *value;
	int			depth;
	bool		isnull;
	Datum		result;
} Conversion;

static void
run_conversion(void *arg)
{
	Conversion *c = arg;

	c->result = convert(c->reader, c->slot, c->value, &c->isnull, c->depth);
}

/* A value, or all of a repeated field's where 'slot' is given */
static Datum
convert_checked(ProtoReader *reader, const ProtoSlot *slot, const ProtoValue *value, bool *isnull, int depth)
{
	Datum		result;

	if (unlikely(*reader->options->lenient))
	{
		Conversion	c = {.reader = reader, .slot = slot, .value = value, .depth = depth};

		if (!lenient_convert(run_conversion, &c))
			return read_null(reader, isnull);
		*isnull = c.isnull;
		result = c.result;
	}
	else
		result = convert(reader, slot, value, isnull, depth);
	return *isnull ? result : checked(reader, result);
}

static Datum
read_value(ProtoReader *reader, const ProtoValue *value, bool *isnull, int depth)
{
	return convert_checked(reader, NULL, value, isnull, depth);
}

/* What a message says of a field, or what it means that it says nothing */
static Datum
read_slot(ProtoReader *reader, const ProtoSlot *slot, bool *isnull, int depth)
{
	const ProtoField *field = reader->field;
	ProtoValue	value;

	if (field->repeated)
	{
		if (!slot->set && !reader->options->read_defaults)
			return read_null(reader, isnull);
		return convert_checked(reader, slot, NULL, isnull, depth);
	}
	if (likely(slot->set))
		return convert_checked(reader, NULL, &slot->value, isnull, depth);
	if (field->presence && (!reader->options->read_defaults || field->oneof >= 0))
		return read_null(reader, isnull);
	if (reader->no_empty && field->default_len == 0)
		return read_null(reader, isnull);

	/*
	 * an empty message has the defaults of its fields; only composite types
	 * tell where to end
	 */
	if (field->message && reader->kind != READ_COMPOSITE)
		return read_null(reader, isnull);
	proto_default(field, &value);
	return convert_checked(reader, NULL, &value, isnull, depth);
}

void
proto_program_run(ProtoProgram *program, const char *bytes, Size len, RowSink *sink)
{
	ProtoScan  *scan = program->scan;

	proto_scan_run(scan, bytes, len, 1);
	for (int i = 0; i < program->ncolumns; i++)
	{
		ProgramColumn *column = &program->columns[i];
		const ProtoSlot *slot = proto_slot(scan, column->field);

		sink->column = column->name;
		sink->values[column->index] = read_slot(column->reader, slot, &sink->isnull[column->index], 1);
		if (unlikely(sink->missing && !slot->set && sink->isnull[column->index]))
			sink->missing[column->index] = true;
	}
	proto_scan_release(scan);
	sink->column = NULL;
}
