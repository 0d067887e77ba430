/*
 * proto_read.c
 *	  Protobuf messages -> Datums, by readers that are compiled from a message type and the
 *	  types of columns.
 *
 * The common pairs of types go straight into Datums; every other one goes through the
 * value's text and the type's input function, so that the answer is PostgreSQL's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "format/lenient.h"
#include "format/proto_read.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define POSTGRES_EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

typedef enum ReaderKind
{
	READ_INTEGER,				/* integers, enums -> int2, int4, int8 */
	READ_NUMERIC,				/* integers -> numeric */
	READ_FLOATING,				/* float, double -> float4, float8 */
	READ_BOOLEAN,
	READ_STRING,				/* string -> any type's input */
	READ_ENUM,					/* an enum's name -> any type's input */
	READ_BYTEA,
	READ_UUID,					/* 16 bytes -> uuid */
	READ_TIMESTAMP,				/* Timestamp -> timestamp or timestamptz */
	READ_INTERVAL,				/* Duration */
	READ_DATE,
	READ_TIME,
	READ_WRAPPER,				/* the value in it */
	READ_COMPOSITE,
	READ_ARRAY,					/* repeated -> arrays */
	READ_HSTORE,				/* map -> hstore */
	READ_TEXT					/* anything as text or JSON -> the type's
								 * input */
} ReaderKind;

typedef struct ProtoReader ProtoReader;

typedef struct ProgramColumn
{
	ProtoReader *reader;
	const ProtoField *field;
	int			index;			/* of the column, or of the composite's
								 * attribute */
	const char *name;
} ProgramColumn;

struct ProtoProgram
{
	ProtoScan  *scan;
	const ProtoReadOptions *options;
	int			ncolumns;
	ProgramColumn *columns;
};

struct ProtoReader
{
	ReaderKind	kind;
	const ProtoField *field;
	const ProtoReadOptions *options;
	ProtoJsonOptions json;
	Oid			type;			/* a domain's base type */
	int32		typmod;
	Oid			domain;			/* InvalidOid: none */
	bool		checks_itself;	/* values, but not their absence */
	void	   *domain_cache;
	MemoryContext context;
	ValueInput *input;			/* of the kinds that have text */
	pg_tz	   *zone;			/* of naive times */
	bool		zone_utc;
	bool		as_json;		/* READ_TEXT: quoted where JSON quotes */
	bool		no_empty;		/* an empty text or no bytes are no value of
								 * the type */

	ProtoReader *inner;			/* READ_ARRAY: of elements; READ_WRAPPER: of
								 * the value */
	ProtoProgram *program;		/* READ_WRAPPER, READ_COMPOSITE */
	TupleDesc	desc;			/* READ_COMPOSITE */
	Oid			element;		/* READ_ARRAY */
	int16		typlen;
	bool		typbyval;
	char		typalign;
};

static ProtoReader *reader_create(const ProtoField *field, bool one, Oid type, int32 typmod, const FormatColumn *column,
								  const ProtoReadOptions *options);
static Datum read_value(ProtoReader *reader, const ProtoValue *value, bool *isnull, int depth);
static Datum read_slot(ProtoReader *reader, const ProtoSlot *slot, bool *isnull, int depth);

/* === Compiling ============================================================== */

static bool
is_hstore(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = strcmp(NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname), "hstore") == 0;
	ReleaseSysCache(tuple);
	return result;
}

/* Through the type's input function, which checks domains as well */
static ProtoReader *
through_input(ProtoReader *reader, ReaderKind kind, const FormatColumn *column, Oid type, int32 typmod)
{
	FormatColumn part = *column;

	part.type = type;
	part.typmod = typmod;
	reader->kind = kind;
	reader->input = value_input_create(&part, reader->options->time_zone);
	reader->checks_itself = true;
	return reader;
}

static ProtoReader *
of_kind(ProtoReader *reader, ReaderKind kind)
{
	reader->kind = kind;
	return reader;
}

/* A program for some fields of a message, the others passed over */
static ProtoProgram *
program_create(const ProtoMessage *message, int n, ProgramColumn *columns, const ProtoReadOptions *options)
{
	ProtoProgram *program = palloc0(sizeof(ProtoProgram));
	bool	   *wanted = palloc0(sizeof(bool) * Max(message->n, 1));

	for (int i = 0; i < n; i++)
		wanted[columns[i].field->index] = true;
	program->scan = proto_scan_create(message, wanted);
	program->options = options;
	program->ncolumns = n;
	program->columns = columns;
	pfree(wanted);
	return program;
}

/* Fields to attributes of their names; others stay NULL. */
static ProtoReader *
composite_reader(ProtoReader *reader, const FormatColumn *column)
{
	const ProtoMessage *message = reader->field->message;
	ProgramColumn *columns;
	int			n = 0;

	reader->kind = READ_COMPOSITE;
	reader->desc = lookup_rowtype_tupdesc_copy(reader->type, reader->typmod);
	columns = palloc(sizeof(ProgramColumn) * Max(reader->desc->natts, 1));
	for (int i = 0; i < reader->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(reader->desc, i);
		const ProtoField *field = att->attisdropped ? NULL : proto_field_by_name(message, NameStr(att->attname), false);

		if (field == NULL)
			continue;
		columns[n].reader = reader_create(field, false, att->atttypid, att->atttypmod, column, reader->options);
		columns[n].field = field;
		columns[n].index = i;
		columns[n].name = column->column;
		n++;
	}
	reader->program = program_create(message, n, columns, reader->options);
	return reader;
}

static ProtoReader *
wrapper_reader(ProtoReader *reader, Oid type, int32 typmod, const FormatColumn *column)
{
	const ProtoMessage *message = reader->field->message;
	ProgramColumn *columns = palloc0(sizeof(ProgramColumn));

	columns->field = &message->fields[0];
	reader->kind = READ_WRAPPER;
	reader->inner = columns->reader = reader_create(columns->field, true, type, typmod, column, reader->options);
	reader->program = program_create(message, 1, columns, reader->options);
	reader->checks_itself = true;
	return reader;
}

static ProtoReader *
array_reader(ProtoReader *reader, Oid element, const FormatColumn *column)
{
	reader->kind = READ_ARRAY;
	reader->element = element;
	get_typlenbyvalalign(element, &reader->typlen, &reader->typbyval, &reader->typalign);
	reader->inner = reader_create(reader->field, true, element, reader->typmod, column, reader->options);
	return reader;
}

static bool
is_text_type(Oid type)
{
	return type == TEXTOID || type == VARCHAROID || type == BPCHAROID || type == NAMEOID;
}

/* 'one': of a single value of the field, though it may be repeated */
static ProtoReader *
reader_create(const ProtoField *field, bool one, Oid type, int32 typmod, const FormatColumn *column,
			  const ProtoReadOptions *options)
{
	ProtoReader *reader = palloc0(sizeof(ProtoReader));
	Oid			base;
	Oid			element;
	long		offset;

	check_stack_depth();
	reader->field = field;
	reader->options = options;
	reader->json.defaults = options->read_defaults;
	reader->json.strip_nul = options->strip_nul;
	reader->context = CurrentMemoryContext;
	reader->typmod = typmod;
	reader->type = base = getBaseTypeAndTypmod(type, &reader->typmod);
	if (base != type)
		reader->domain = type;
	reader->as_json = base == JSONBOID || base == JSONOID;
	reader->no_empty = (field->type == PROTO_STRING || (field->type == PROTO_BYTES && !reader->as_json)) && !is_text_type(base) && base != BYTEAOID;

	if (field->repeated && !one)
	{
		element = array_element_type(base);
		if (OidIsValid(element) && !field->is_map)
			return array_reader(reader, element, column);
		if (field->is_map && !reader->as_json && !is_text_type(base) && is_hstore(base))
			return through_input(reader, READ_HSTORE, column, type, typmod);
		if (!reader->as_json && !is_text_type(base) && get_typtype(base) != TYPTYPE_BASE)
			/* where frames choose the type, it is the message that does not fit */
			ereport(ERROR,
					(errcode(options->any_type ? ERRCODE_INVALID_BINARY_REPRESENTATION : ERRCODE_FDW_INVALID_DATA_TYPE),
					 errmsg("column \"%s\" of type %s cannot take its protobuf field \"%s\"", column->column,
							format_type_be(type), field->name),
					 errdetail("The field is of type %s.", proto_type_name(field)),
					 errhint("%s columns take it.", field->is_map ? "jsonb, hstore and text" : "Array, jsonb and text")));
		return through_input(reader, READ_TEXT, column, type, typmod);
	}

	switch (field->type)
	{
		case PROTO_DOUBLE:
		case PROTO_FLOAT:
			if (base == FLOAT4OID || base == FLOAT8OID)
				return of_kind(reader, READ_FLOATING);
			break;
		case PROTO_BOOL:
			if (base == BOOLOID)
				return of_kind(reader, READ_BOOLEAN);
			break;
		case PROTO_STRING:
			return through_input(reader, READ_STRING, column, type, typmod);
		case PROTO_BYTES:
			if (base == BYTEAOID || base == UUIDOID)
				return of_kind(reader, base == BYTEAOID ? READ_BYTEA : READ_UUID);
			break;
		case PROTO_ENUM:
			if (base == INT2OID || base == INT4OID || base == INT8OID)
				return of_kind(reader, READ_INTEGER);
			if (!reader->as_json)
				return through_input(reader, READ_ENUM, column, type, typmod);
			break;
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			/* a composite type takes any message by its fields */
			if (get_typtype(base) == TYPTYPE_COMPOSITE)
				return composite_reader(reader, column);
			switch (field->message->known)
			{
				case KNOWN_TIMESTAMP:
					if (base != TIMESTAMPOID && base != TIMESTAMPTZOID)
						break;
					reader->zone = pg_tzset(options->time_zone);
					reader->zone_utc = pg_get_timezone_offset(reader->zone, &offset) && offset == 0;
					return of_kind(reader, READ_TIMESTAMP);
				case KNOWN_DURATION:
					if (base == INTERVALOID)
						return of_kind(reader, READ_INTERVAL);
					break;
				case KNOWN_DATE:
					if (base == DATEOID)
						return of_kind(reader, READ_DATE);
					break;
				case KNOWN_TIME:
					if (base == TIMEOID)
						return of_kind(reader, READ_TIME);
					break;
				case KNOWN_WRAPPER:
					if (!reader->as_json)
						return wrapper_reader(reader, type, typmod, column);
					break;
				default:
					break;
			}
			break;
		default:
			if (base == INT2OID || base == INT4OID || base == INT8OID)
				return of_kind(reader, READ_INTEGER);
			if (base == NUMERICOID)
				return of_kind(reader, READ_NUMERIC);
			break;
	}
	return through_input(reader, READ_TEXT, column, type, typmod);
}

ProtoProgram *
proto_program_create(const ProtoMessage *message, int ncolumns, const FormatColumn *columns,
					 const ProtoReadOptions *options)
{
	ProgramColumn *found = palloc0(sizeof(ProgramColumn) * Max(ncolumns, 1));
	int			n = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		const ProtoField *field = proto_field_by_name(message, columns[i].field, false);

		if (field == NULL && options->any_type)
			continue;
		if (field == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("protobuf message \"%s\" has no field \"%s\" for column \"%s\"", message->name,
							columns[i].field, columns[i].column),
					 errhint("The column's option \"field\" says from which field it is read.")));
		found[n].field = field;
		found[n].reader = reader_create(field, false, columns[i].type, columns[i].typmod, &columns[i], options);
		found[n].index = columns[i].index;
		found[n].name = columns[i].column;
		n++;
	}
	return program_create(message, n, found, options);
}

/* === Running ================================================================ */

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

static void
out_of_range(const ProtoReader *reader, const ProtoValue *value)
{
	char	   *text = proto_is_unsigned(reader->field) ? psprintf("%llu", (unsigned long long) value->bits) :
		psprintf("%lld", (long long) proto_signed(reader->field, value));

	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("value \"%s\" is out of range for type %s", text, format_type_be(reader->type)),
			 reader->type == INT8OID ? errhint("A numeric column takes all of uint64.") : 0));
}

static Datum
read_integer(ProtoReader *reader, const ProtoValue *value)
{
	int64		number = proto_signed(reader->field, value);

	if (unlikely(number < 0 && proto_is_unsigned(reader->field)))
		out_of_range(reader, value);
	switch (reader->type)
	{
		case INT2OID:
			if (number < PG_INT16_MIN || number > PG_INT16_MAX)
				out_of_range(reader, value);
			return Int16GetDatum((int16) number);
		case INT4OID:
			if (number < PG_INT32_MIN || number > PG_INT32_MAX)
				out_of_range(reader, value);
			return Int32GetDatum((int32) number);
		default:
			return Int64GetDatum(number);
	}
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
read_bytea(const ProtoValue *value)
{
	bytea	   *result;

	if (value->len > MaxAllocSize - VARHDRSZ)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%u bytes are too many for type bytea", value->len)));
	result = palloc(value->len + VARHDRSZ);
	SET_VARSIZE(result, value->len + VARHDRSZ);
	memcpy(VARDATA(result), value->p, value->len);
	return PointerGetDatum(result);
}

static Datum
read_uuid(const ProtoValue *value)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	if (value->len != UUID_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a uuid has %d bytes, not %u", UUID_LEN, value->len)));
	memcpy(uuid->data, value->p, UUID_LEN);
	return UUIDPGetDatum(uuid);
}

/* Seconds and nanoseconds as microseconds since 1970; what is finer is cut off. */
static Datum
read_timestamp(ProtoReader *reader, const ProtoValue *value)
{
	int64		parts[2];
	Timestamp	timestamp;
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;
	bool		local = reader->type == TIMESTAMPOID;
	Datum		result;

	proto_small_message(value, 2, parts);
	parts[1] = (int32) parts[1];
	if (parts[1] < 0 || parts[1] > 999999999 ||
		pg_sub_s64_overflow(parts[0], (int64) POSTGRES_EPOCH_DAYS * SECS_PER_DAY, &timestamp) ||
		pg_mul_s64_overflow(timestamp, USECS_PER_SEC, &timestamp) ||
		pg_add_s64_overflow(timestamp, parts[1] / 1000, &timestamp) || !IS_VALID_TIMESTAMP(timestamp))
		goto bad;
	if (local && !reader->zone_utc &&
		(timestamp2tm(timestamp, &tz, &tm, &fsec, NULL, reader->zone) != 0 || tm2timestamp(&tm, fsec, NULL, &timestamp) != 0))
		goto bad;
	result = local ? TimestampGetDatum(timestamp) : TimestampTzGetDatum(timestamp);
	if (reader->typmod >= 0 && reader->typmod < MAX_TIMESTAMP_PRECISION)
		result = DirectFunctionCall2(local ? timestamp_scale : timestamptz_scale, result, Int32GetDatum(reader->typmod));
	return result;

bad:
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("timestamp out of range: %lld s %lld ns", (long long) parts[0], (long long) parts[1])));
	return (Datum) 0;			/* not reached */
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
	int64		micros;
	Datum		result;

	proto_small_message(value, 4, parts);
	if (parts[0] < 0 || parts[0] > 24 || parts[1] < 0 || parts[1] > 59 || parts[2] < 0 || parts[2] > 60 ||
		parts[3] < 0 || parts[3] > 999999999)
		goto bad;
	micros = ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * USECS_PER_SEC + parts[3] / 1000;
	if (micros > USECS_PER_DAY)
		goto bad;
	result = TimeADTGetDatum(micros);
	if (reader->typmod >= 0 && reader->typmod < MAX_TIME_PRECISION)
		result = DirectFunctionCall2(time_scale, result, Int32GetDatum(reader->typmod));
	return result;

bad:
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("time out of range: %lld:%lld:%lld, %lld ns", (long long) parts[0], (long long) parts[1],
					(long long) parts[2], (long long) parts[3])));
	return (Datum) 0;			/* not reached */
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
			return read_bytea(value);
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
