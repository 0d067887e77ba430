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

static void put_message(StringInfo out, const ProtoField *field, const JsonbValue *value, const ProtoWriteOptions *options);
static void put_fields(StringInfo out, const ProtoMessage *message, JsonbContainer *object, int nothers,
					   const ProtoWriteOptions *options);

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

/* base64 of either alphabet, with its padding or without */
static void
put_base64(StringInfo out, const ProtoField *field, const char *text, Size len, ProtoPut put)
{
	char	   *standard = palloc(len + 4);
	int			room = pg_b64_dec_len((int) len + 3) + 1;
	char	   *bytes = palloc(room);
	int			n;

	while (len > 0 && text[len - 1] == '=')
		len--;
	for (Size i = 0; i < len; i++)
		standard[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	while (len % 4 != 0)
		standard[len++] = '=';
	n = pg_b64_decode(standard, (int) len, (void *) bytes, room);
	if (n < 0)
		no_place(field);
	proto_put_bytes(out, field, bytes, n, put);
	pfree(standard);
	pfree(bytes);
}

/* A scalar's text: of a map's key, or of a JSON string */
static void
put_text(StringInfo out, const ProtoField *field, const char *text, Size len, ProtoPut put)
{
	const char *utf8;

	switch (field->type)
	{
		case PROTO_STRING:
			utf8 = text_to_utf8(text, &len);
			proto_put_bytes(out, field, utf8, len, put);
			break;
		case PROTO_BYTES:
			put_base64(out, field, text, len, put);
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

/*
 * Digits of nanoseconds behind those of microseconds, which PostgreSQL's types have no place
 * for: taken out of the text.
 */
static int
take_nanos(char *text)
{
	char	   *point = strchr(text, '.');
	int			digits = point ? (int) strspn(point + 1, "0123456789") : 0;
	int			nanos = 0;

	if (digits <= 6 || digits > 9)
		return 0;
	for (int i = 6; i < 9; i++)
		nanos = nanos * 10 + (i < digits ? point[1 + i] - '0' : 0);
	memmove(point + 7, point + 1 + digits, strlen(point + 1 + digits) + 1);
	return nanos;
}

/* -1.5s, with all its digits; false: it is written in another way */
static bool
read_seconds(const char *text, int64 *seconds, int32 *nanos)
{
	bool		negative = *text == '-';
	const char *digits = text + negative;
	Size		n = strspn(digits, "0123456789");
	const char *rest = digits + n;
	int64		fraction = 0;

	/* no more than 18 digits, which cannot overflow */
	if (n == 0 || n > 18)
		return false;
	*seconds = strtoll(digits, NULL, 10);
	if (*rest == '.')
	{
		n = strspn(++rest, "0123456789");
		if (n == 0 || n > 9)
			return false;
		for (int i = 0; i < 9; i++)
			fraction = fraction * 10 + (i < n ? rest[i] - '0' : 0);
		rest += n;
	}
	if (strcmp(rest, "s") != 0)
		return false;
	*seconds = negative ? -*seconds : *seconds;
	*nanos = (int32) (negative ? -fraction : fraction);
	return true;
}

/* A time by its type's input function; without a zone it is UTC. */
static Datum
known_input(ProtoWellKnown known, char *text)
{
	PGFunction	input = known == KNOWN_TIMESTAMP ? timestamptz_in : known == KNOWN_DURATION ? interval_in :
		known == KNOWN_DATE ? date_in : time_in;
	DecodeSettings settings;
	volatile Datum datum = (Datum) 0;

	decode_settings_enter(&settings, "UTC");
	PG_TRY();
	{
		datum = DirectFunctionCall3(input, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	}
	PG_FINALLY();
	{
		decode_settings_leave(&settings);
	}
	PG_END_TRY();
	return datum;
}

static void
put_known_text(StringInfo out, const ProtoField *field, const JsonbValue *value)
{
	ProtoWellKnown known = field->message->known;
	Datum		datum;
	char	   *text;
	int64		seconds;
	int32		nanos = 0;

	if (value->type != jbvString)
		no_place(field);
	text = string_of(value);
	if (known == KNOWN_DURATION && read_seconds(text, &seconds, &nanos))
	{
		proto_put_duration(out, field, seconds, nanos);
		return;
	}
	if (known == KNOWN_TIMESTAMP)
		nanos = take_nanos(text);
	datum = known_input(known, text);
	switch (known)
	{
		case KNOWN_TIMESTAMP:
			proto_put_timestamp(out, field, DatumGetTimestampTz(datum), nanos);
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

/* google.protobuf.FieldMask: paths behind each other, fooBar for foo_bar */
static void
put_field_mask(StringInfo out, const ProtoField *field, const JsonbValue *value)
{
	const ProtoField *paths = &field->message->fields[0];
	StringInfoData path;
	const char *p;
	const char *end;

	if (value->type != jbvString)
		no_place(field);
	p = value->val.string.val;
	end = p + value->val.string.len;
	initStringInfo(&path);
	while (p < end)
	{
		Size		len;
		const char *utf8;

		CHECK_FOR_INTERRUPTS();
		resetStringInfo(&path);
		for (; p < end && *p != ','; p++)
		{
			if (*p >= 'A' && *p <= 'Z')
				appendStringInfo(&path, "_%c", *p - 'A' + 'a');
			else
				appendStringInfoChar(&path, *p);
		}
		p++;
		len = path.len;
		utf8 = text_to_utf8(path.data, &len);
		proto_put_bytes(out, paths, utf8, len, PUT_ITEM);
	}
	pfree(path.data);
}

static bool
find_member(JsonbContainer *object, const char *name, JsonbValue *value)
{
	return getKeyJsonValueFromContainer(object, name, (int) strlen(name), value) != NULL;
}

/* google.protobuf.Any: {"@type": name of the type, its members}, or its "value" where it is no object */
static void
put_any(StringInfo out, const ProtoField *field, const JsonbValue *value, const ProtoWriteOptions *options)
{
	const ProtoMessage *message = field->message;
	ProtoField	inner = message->fields[1];
	JsonbContainer *object;
	JsonbValue	url;
	JsonbValue	content;
	const char *utf8;
	Size		len;
	int			begin;

	if (!is_object(value))
		no_place(field);
	object = value->val.binary.data;
	if (JsonContainerSize(object) == 0)
		return;
	if (!find_member(object, "@type", &url) || url.type != jbvString)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the JSON object for protobuf field \"%s\" of type google.protobuf.Any has no member \"@type\"", field->name)));

	/* the bytes of a message are written as the message is */
	inner.type = PROTO_MESSAGE;
	inner.message = proto_any_type(message->schema, string_of(&url));
	if (inner.message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the descriptor does not have the type \"%s\" for a google.protobuf.Any", string_of(&url)),
				 errhint("Add the type's file to the descriptor.")));
	len = url.val.string.len;
	utf8 = text_to_utf8(url.val.string.val, &len);
	proto_put_bytes(out, &message->fields[0], utf8, len, PUT_FIELD);
	begin = out->len;
	if (proto_has_own_json(inner.message))
	{
		if (JsonContainerSize(object) != 2 || !find_member(object, "value", &content))
			no_place(field);
		put_message(out, &inner, &content, options);
	}
	else
	{
		int			content_begin = proto_put_begin(out, &inner);

		put_fields(out, inner.message, object, 1, options);
		proto_put_end(out, &inner, content_begin);
	}
	/* no bytes are the default of the field */
	if (out->len == begin + 2)
	{
		out->len = begin;
		out->data[begin] = '\0';
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
		case KNOWN_ANY:
			put_any(out, field, value, options);
			break;
		case KNOWN_FIELD_MASK:
			put_field_mask(out, field, value);
			break;
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
			put_fields(out, message, value->val.binary.data, 0, options);
			break;
	}
	proto_put_end(out, field, begin);
}

/* Is null a value of the field instead of none? */
static bool
takes_null(const ProtoField *field)
{
	return (field->message && field->message->known == KNOWN_VALUE) || (field->enumeration && field->enumeration->is_null);
}

void
proto_put_jsonb_one(StringInfo out, const ProtoField *field, const JsonbValue *value,
					const ProtoWriteOptions *options, ProtoPut put)
{
	if (value->type == jbvNull && !(field->message && takes_null(field)))
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
	if (value->type == jbvNull && (field->repeated || !takes_null(field)))
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
unknown_member(const ProtoMessage *message, JsonbContainer *object, int nothers)
{
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY && (nothers == 0 || strcmp(string_of(&value), "@type") != 0) &&
			proto_field_by_name(message, string_of(&value), true) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("protobuf message \"%s\" has no field \"%s\" for a member of the JSON object", message->name,
							string_of(&value))));
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the JSON object has a field of protobuf message \"%s\" by both of its names", message->name)));
}

/* 'nothers' members are no fields: "@type" of an Any */
static void
put_fields(StringInfo out, const ProtoMessage *message, JsonbContainer *object, int nothers,
		   const ProtoWriteOptions *options)
{
	int			nfound = nothers;
	bool	   *member = palloc0(sizeof(bool) * Max(message->noneofs, 1));

	for (int i = 0; i < message->n; i++)
	{
		const ProtoField *field = &message->fields[i];
		JsonbValue	value;
		bool		found = find_member(object, field->name, &value) ||
			(field->json_name != field->name && find_member(object, field->json_name, &value));

		nfound += found;
		if (found && (value.type != jbvNull || takes_null(field)) && field->oneof >= 0)
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
		unknown_member(message, object, nothers);
	pfree(member);
}
