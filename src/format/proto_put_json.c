/*
 * proto_put_json.c
 *	  jsonb -> protobuf, by what the fields want: the inverse of proto_json.c.
 *
 * Protobuf's JSON mapping is read as well: names of either kind, 64-bit integers as text.
 */
#include "postgres.h"

#include "common/base64.h"
#include "format/format.h"
#include "format/proto_output.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

static void put_fields(StringInfo out, const ProtoMessage *message, JsonbContainer *object, const ProtoWriteOptions *options);

static void
no_place(const ProtoField *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the JSON value cannot be written to protobuf field \"%s\" of type %s", field->name, proto_type_name(field))));
}

static bool
is_object(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data);
}

static bool
is_array(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data);
}

static char *
string_of(const JsonbValue *value)
{
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* A number that is text: NaN and infinities, 64-bit integers, keys of maps */
static void
put_number_text(StringInfo out, const ProtoField *field, const char *text, ProtoPut put)
{
	if (field->type == PROTO_DOUBLE)
		proto_put_float(out, field, DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(text))), put);
	else if (field->type == PROTO_FLOAT)
		proto_put_float(out, field, DatumGetFloat4(DirectFunctionCall1(float4in, CStringGetDatum(text))), put);
	else
		proto_put_numeric(out, field, DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
																		  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1))), put);
}

/* A scalar's text: of a map's key, or of a JSON string */
static void
put_text(StringInfo out, const ProtoField *field, const char *text, Size len, ProtoPut put)
{
	const char *utf8;
	char	   *bytes;
	int			n;
	int			room;

	switch (field->type)
	{
		case PROTO_STRING:
			utf8 = text_to_utf8(text, &len);
			proto_put_bytes(out, field, utf8, len, put);
			break;
		case PROTO_BYTES:
			room = pg_b64_dec_len((int) len) + 1;
			bytes = palloc(room);
			n = pg_b64_decode(text, (int) len, (void *) bytes, room);
			if (n < 0)
				no_place(field);
			proto_put_bytes(out, field, bytes, n, put);
			break;
		case PROTO_ENUM:
			proto_put_symbol(out, field, text, len, put);
			break;
		case PROTO_BOOL:
			proto_put_integer(out, field, DatumGetBool(DirectFunctionCall1(boolin, CStringGetDatum(text))), put);
			break;
		default:
			put_number_text(out, field, text, put);
			break;
	}
}

/* A time as text; without a zone it is UTC. */
static void
put_known_text(StringInfo out, const ProtoField *field, const JsonbValue *value)
{
	ProtoWellKnown known = field->message->known;
	PGFunction	input = known == KNOWN_TIMESTAMP ? timestamptz_in : known == KNOWN_DURATION ? interval_in :
		known == KNOWN_DATE ? date_in : time_in;
	DecodeSettings settings;
	volatile Datum datum = (Datum) 0;

	if (value->type != jbvString)
		no_place(field);
	decode_settings_enter(&settings, "UTC");
	PG_TRY();
	{
		datum = DirectFunctionCall3(input, CStringGetDatum(string_of(value)), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	}
	PG_FINALLY();
	{
		decode_settings_leave(&settings);
	}
	PG_END_TRY();
	switch (known)
	{
		case KNOWN_TIMESTAMP:
			proto_put_timestamp(out, field, DatumGetTimestampTz(datum));
			break;
		case KNOWN_DURATION:
			proto_put_interval(out, field, DatumGetIntervalP(datum));
			break;
		case KNOWN_DATE:
			proto_put_date(out, field, DatumGetDateADT(datum));
			break;
		default:
			proto_put_time(out, field, DatumGetTimeADT(datum));
			break;
	}
}

/* google.protobuf.Value: the field for what the JSON value is */
static void
put_json_value(StringInfo out, const ProtoMessage *message, const JsonbValue *value, const ProtoWriteOptions *options)
{
	const ProtoField *fields = message->fields;

	if (value->type == jbvNull)
		proto_put_integer(out, &fields[0], 0, PUT_ITEM);
	else
		proto_put_jsonb_one(out, value->type == jbvNumeric ? &fields[1] : value->type == jbvString ? &fields[2] :
							value->type == jbvBool ? &fields[3] : is_object(value) ? &fields[4] : &fields[5],
							value, options, PUT_ITEM);
}

static void
put_message(StringInfo out, const ProtoField *field, const JsonbValue *value, const ProtoWriteOptions *options)
{
	const ProtoMessage *message = field->message;
	int			begin;

	check_stack_depth();
	switch (message->known)
	{
		case KNOWN_TIMESTAMP:
		case KNOWN_DURATION:
		case KNOWN_DATE:
		case KNOWN_TIME:
			put_known_text(out, field, value);
			return;
		default:
			break;
	}
	begin = proto_put_begin(out, field);
	switch (message->known)
	{
		case KNOWN_WRAPPER:
			if (value->type == jbvNumeric && message->fields[0].type == PROTO_STRING)
			{
				/* google.type.Decimal has text, and numbers may stand for it */
				char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));

				put_text(out, &message->fields[0], text, strlen(text), PUT_FIELD);
			}
			else
				proto_put_jsonb_one(out, &message->fields[0], value, options, PUT_FIELD);
			break;
		case KNOWN_VALUE:
			put_json_value(out, message, value, options);
			break;
		case KNOWN_STRUCT:
		case KNOWN_LIST:
			proto_put_jsonb(out, &message->fields[0], value, options);
			break;
		default:
			if (!is_object(value))
				no_place(field);
			put_fields(out, message, value->val.binary.data, options);
			break;
	}
	proto_put_end(out, field, begin);
}

void
proto_put_jsonb_one(StringInfo out, const ProtoField *field, const JsonbValue *value,
					const ProtoWriteOptions *options, ProtoPut put)
{
	if (value->type == jbvNull && !(field->message && field->message->known == KNOWN_VALUE))
	{
		proto_put_null(out, field, options, put);
		return;
	}
	if (field->message)
	{
		put_message(out, field, value, options);
		return;
	}
	switch (value->type)
	{
		case jbvString:
			put_text(out, field, string_of(value), value->val.string.len, put);
			break;
		case jbvNumeric:
			if (field->type == PROTO_STRING || field->type == PROTO_BYTES || field->type == PROTO_BOOL)
				no_place(field);
			proto_put_numeric(out, field, value->val.numeric, put);
			break;
		case jbvBool:
			if (field->type != PROTO_BOOL)
				no_place(field);
			proto_put_integer(out, field, value->val.boolean, put);
			break;
		default:
			no_place(field);
	}
}

static void
put_map(StringInfo out, const ProtoField *field, JsonbContainer *object, const ProtoWriteOptions *options)
{
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	value;
	const ProtoField *parts = field->message->fields;
	int			begin = 0;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			CHECK_FOR_INTERRUPTS();
			begin = proto_put_begin(out, field);
			put_text(out, &parts[0], string_of(&value), value.val.string.len, PUT_ITEM);
		}
		else if (token == WJB_VALUE)
		{
			proto_put_jsonb_one(out, &parts[1], &value, options, PUT_ITEM);
			proto_put_end(out, field, begin);
		}
	}
}

static void
put_list(StringInfo out, const ProtoField *field, JsonbContainer *array, const ProtoWriteOptions *options)
{
	JsonbIterator *it = JsonbIteratorInit(array);
	JsonbIteratorToken token;
	JsonbValue	value;
	int			begin = 0;

	if (JsonContainerSize(array) == 0)
		return;
	if (field->packed)
		begin = proto_put_begin(out, field);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		if (token == WJB_ELEM)
			proto_put_jsonb_one(out, field, &value, options, field->packed ? PUT_PACKED : PUT_ITEM);
	}
	if (field->packed)
		proto_put_end(out, field, begin);
}

void
proto_put_jsonb(StringInfo out, const ProtoField *field, const JsonbValue *value, const ProtoWriteOptions *options)
{
	bool		null_is_value = field->message && field->message->known == KNOWN_VALUE && !field->repeated;

	if (value->type == jbvNull && !null_is_value)
		return;
	if (!field->repeated)
		proto_put_jsonb_one(out, field, value, options, PUT_FIELD);
	else if (field->is_map ? !is_object(value) : !is_array(value))
		no_place(field);
	else if (field->is_map)
		put_map(out, field, value->val.binary.data, options);
	else
		put_list(out, field, value->val.binary.data, options);
}

/* A name that is no field's */
static void
unknown_member(const ProtoMessage *message, JsonbContainer *object)
{
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY && proto_field_by_name(message, string_of(&value), true) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("protobuf message \"%s\" has no field \"%s\" for a member of the JSON object", message->name,
							string_of(&value))));
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the JSON object has a field of protobuf message \"%s\" by both of its names", message->name)));
}

static void
put_fields(StringInfo out, const ProtoMessage *message, JsonbContainer *object, const ProtoWriteOptions *options)
{
	int			nfound = 0;
	bool	   *member = palloc0(sizeof(bool) * Max(message->noneofs, 1));

	for (int i = 0; i < message->n; i++)
	{
		const ProtoField *field = &message->fields[i];
		JsonbValue	value;
		bool		found = getKeyJsonValueFromContainer(object, field->name, (int) strlen(field->name), &value) != NULL ||
			(field->json_name != field->name &&
			 getKeyJsonValueFromContainer(object, field->json_name, (int) strlen(field->json_name), &value) != NULL);

		nfound += found;
		if (found && value.type != jbvNull && field->oneof >= 0)
		{
			if (member[field->oneof])
				proto_two_members(message, field);
			member[field->oneof] = true;
		}
		if (field->required && (!found || value.type == jbvNull))
			proto_missing(message, field);
		if (found)
			proto_put_jsonb(out, field, &value, options);
	}
	if (nfound != JsonContainerSize(object))
		unknown_member(message, object);
	pfree(member);
}
