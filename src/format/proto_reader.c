/*
 * proto_reader.c
 *	  Readers of protobuf fields, compiled from a message type and the types of columns.
 *
 * The common pairs of types go straight into Datums; every other one goes through the
 * value's text and the type's input function, so that the answer is PostgreSQL's.
 */
#include "postgres.h"

#include "format/proto_reader.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

static ProtoReader *reader_create(const ProtoField *field, bool one, Oid type, int32 typmod, const FormatColumn *column,
								  const ProtoReadOptions *options);

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

/* Of all values of a repeated field */
static ProtoReader *
repeated_reader(ProtoReader *reader, const FormatColumn *column, Oid type, int32 typmod)
{
	const ProtoField *field = reader->field;
	Oid			base = reader->type;
	Oid			element = array_element_type(base);

	if (OidIsValid(element) && !field->is_map)
		return array_reader(reader, element, column);
	if (reader->as_json || takes_text_type(base))
		return through_input(reader, READ_TEXT, column, type, typmod);
	if (field->is_map && is_hstore_type(base))
		return through_input(reader, READ_HSTORE, column, type, typmod);
	if (get_typtype(base) != TYPTYPE_BASE)
		/* where frames choose the type, it is the message that does not fit */
		ereport(ERROR,
				(errcode(reader->options->any_type ? ERRCODE_INVALID_BINARY_REPRESENTATION : ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("column \"%s\" of type %s cannot take its protobuf field \"%s\"", column->column,
						format_type_be(type), field->name),
				 errdetail("The field is of type %s.", proto_type_name(field)),
				 errhint("%s columns take it.", field->is_map ? "jsonb, hstore and text" : "Array, jsonb and text")));
	return through_input(reader, READ_TEXT, column, type, typmod);
}

static ProtoReader *
message_reader(ProtoReader *reader, const FormatColumn *column, Oid type, int32 typmod)
{
	Oid			base = reader->type;

	/* a composite type takes any message by its fields */
	if (get_typtype(base) == TYPTYPE_COMPOSITE)
		return composite_reader(reader, column);
	switch (reader->field->message->known)
	{
		case KNOWN_TIMESTAMP:
			if (base != TIMESTAMPOID && base != TIMESTAMPTZOID)
				break;
			value_zone_set(&reader->zone, reader->options->time_zone);
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
	return through_input(reader, READ_TEXT, column, type, typmod);
}

/* 'one': of a single value of the field, though it may be repeated */
static ProtoReader *
reader_create(const ProtoField *field, bool one, Oid type, int32 typmod, const FormatColumn *column,
			  const ProtoReadOptions *options)
{
	ProtoReader *reader = palloc0(sizeof(ProtoReader));
	Oid			base;

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
	reader->no_empty = (field->type == PROTO_STRING || (field->type == PROTO_BYTES && !reader->as_json)) &&
		!takes_text_type(base) && base != BYTEAOID;

	if (field->repeated && !one)
		return repeated_reader(reader, column, type, typmod);
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
			if (is_integer_type(base))
				return of_kind(reader, READ_INTEGER);
			if (!reader->as_json)
				return through_input(reader, READ_ENUM, column, type, typmod);
			break;
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			return message_reader(reader, column, type, typmod);
		default:
			if (is_integer_type(base))
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
