/*
 * proto_json.c
 *	  Protobuf values as JSON and as plain text.
 *
 * Walks bytes and descriptors side by side; depth is bounded as it is for all messages.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "common/shortest_dec.h"
#include "format/binary_values.h"
#include "format/proto_json.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#define NANOS_PER_SEC INT64CONST(1000000000)

typedef enum TextKind
{
	TEXT_NUMBER,
	TEXT_WORD,					/* true, false, null */
	TEXT_STRING,
	TEXT_JSON					/* an object, an array */
} TextKind;

static TextKind append_message(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
							   const ProtoJsonOptions *options, int depth);
static void append_message_json(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
								const ProtoJsonOptions *options, int depth);
static TextKind append_value(StringInfo out, const ProtoField *field, const ProtoValue *value,
							 const ProtoJsonOptions *options, int depth);

void
proto_default(const ProtoField *field, ProtoValue *value)
{
	value->bits = field->default_bits;
	value->p = field->default_bytes;
	value->len = field->default_len;
	value->packed = false;
}

static TextKind
append_float(StringInfo out, double value, bool is_float)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];

	if (isnan(value) || isinf(value))
	{
		appendStringInfoString(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
		return TEXT_STRING;
	}
	if (is_float)
		float_to_shortest_decimal_buf((float) value, text);
	else
		double_to_shortest_decimal_buf(value, text);
	appendStringInfoString(out, text);
	return TEXT_NUMBER;
}

/* A fraction of a second without trailing zeros */
static void
append_nanos(StringInfo out, int64 nanos)
{
	if (nanos == 0)
		return;
	appendStringInfo(out, ".%09d", (int) nanos);
	while (out->data[out->len - 1] == '0')
		out->data[--out->len] = '\0';
}

/* 2020-01-02T03:04:05.123456789Z: nothing is lost in text */
static void
append_instant(StringInfo out, const ProtoValue *value)
{
	int64		parts[2];
	int64		micros;

	proto_small_message(value, 2, parts);
	parts[1] = (int32) parts[1];
	if (parts[1] < 0 || parts[1] > 999999999 ||
		pg_sub_s64_overflow(parts[0], (int64) POSTGRES_EPOCH_DAYS * SECS_PER_DAY, &micros) ||
		pg_mul_s64_overflow(micros, USECS_PER_SEC, &micros) || !IS_VALID_TIMESTAMP(micros))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld s %lld ns", (long long) parts[0], (long long) parts[1])));
	append_timestamp(out, micros, 'T', "");
	append_nanos(out, parts[1]);
	appendStringInfoChar(out, 'Z');
}

static void
append_duration(StringInfo out, const ProtoValue *value)
{
	int64		parts[2];
	bool		negative;

	proto_small_message(value, 2, parts);
	parts[1] = (int32) parts[1];
	if (parts[0] == PG_INT64_MIN || parts[1] < -999999999 || parts[1] > 999999999)
		ereport(ERROR,
				(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
				 errmsg("duration out of range: %lld s %lld ns", (long long) parts[0], (long long) parts[1])));
	/* both should have one sign, and don't always */
	if (parts[0] > 0 && parts[1] < 0)
	{
		parts[0]--;
		parts[1] += NANOS_PER_SEC;
	}
	else if (parts[0] < 0 && parts[1] > 0)
	{
		parts[0]++;
		parts[1] -= NANOS_PER_SEC;
	}
	negative = parts[0] < 0 || parts[1] < 0;
	appendStringInfo(out, "%s%lld", negative ? "-" : "", (long long) (negative ? -parts[0] : parts[0]));
	append_nanos(out, negative ? -parts[1] : parts[1]);
	appendStringInfoChar(out, 's');
}

/* The field "value" of a wrapper, which has its default if it is left out */
static TextKind
append_wrapper(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
			   const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *scan = proto_scan_create(message, NULL);
	const ProtoField *field = &message->fields[0];
	ProtoValue	inner;
	TextKind	kind;

	proto_scan_run(scan, value->p, value->len, depth);
	if (proto_slot(scan, field)->set)
		inner = proto_slot(scan, field)->value;
	else
		proto_default(field, &inner);
	kind = append_value(out, field, &inner, options, depth);
	proto_scan_free(scan);
	return kind;
}

/* google.protobuf.Value, whose oneof says what it is; none at all is null */
static TextKind
append_json_value(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
				  const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *scan = proto_scan_create(message, NULL);
	TextKind	kind = TEXT_WORD;
	int			start = out->len;

	proto_scan_run(scan, value->p, value->len, depth);
	for (int i = 1; i < message->n; i++)
	{
		const ProtoField *field = &message->fields[i];
		ProtoSlot  *slot = proto_slot(scan, field);

		if (slot->set)
			kind = append_value(out, field, &slot->value, options, depth);
	}
	/* an empty text is something, too */
	if (out->len == start && kind == TEXT_WORD)
		appendStringInfoString(out, "null");
	proto_scan_free(scan);
	return kind;
}

static void
append_key(StringInfo out, const char *name)
{
	if (out->data[out->len - 1] != '{')
		appendStringInfoString(out, ", ");
	escape_json(out, name);
	appendStringInfoString(out, ": ");
}

/* The members of an object that has begun */
static void
append_fields(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
			  const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *scan = proto_scan_create(message, NULL);

	proto_scan_run(scan, value->p, value->len, depth);
	for (int i = 0; i < message->n; i++)
	{
		const ProtoField *field = &message->fields[i];
		ProtoSlot  *slot = proto_slot(scan, field);
		ProtoValue	inner;

		if (field->repeated)
		{
			if (!slot->set && (!options->defaults || field->extension))
				continue;
			append_key(out, field->name);
			proto_json_append_all(out, field, slot, options, depth);
			continue;
		}
		inner = slot->value;
		if (!slot->set)
		{
			/* a message that is left out may have itself in it: never made up */
			if (field->message || field->oneof >= 0 || field->extension || (field->presence && !options->defaults))
				continue;
			proto_default(field, &inner);
		}
		append_key(out, field->name);
		proto_json_append(out, field, &inner, options, depth);
	}
	proto_scan_free(scan);
}

/* google.protobuf.FieldMask: its paths behind each other, their names as JSON has them */
static void
append_field_mask(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
				  const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *scan = proto_scan_create(message, NULL);
	const ProtoField *field = &message->fields[0];
	ProtoItems	items;
	ProtoValue	item;
	bool		first = true;

	proto_scan_run(scan, value->p, value->len, depth);
	proto_items_begin(&items, field, proto_slot(scan, field));
	while (proto_items_next(&items, &item))
	{
		Size		len;
		const char *path = proto_text(&item, options->strip_nul, &len);

		CHECK_FOR_INTERRUPTS();
		if (!first)
			appendStringInfoChar(out, ',');
		first = false;
		for (Size i = 0; i < len; i++)
		{
			if (path[i] == '_' && i + 1 < len && path[i + 1] >= 'a' && path[i + 1] <= 'z')
				appendStringInfoChar(out, path[++i] - 'a' + 'A');
			else
				appendStringInfoChar(out, path[i]);
		}
	}
	proto_scan_free(scan);
}

static const ProtoMessage *
type_of_any(const ProtoSchema *schema, const char *url)
{
	const ProtoMessage *message = proto_any_type(schema, url);

	if (message == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("the descriptor does not have the type \"%s\" of a message in a google.protobuf.Any", url),
				 errhint("Add the type's file to the descriptor, or take the Any into a composite type of type_url text and value bytea.")));
	return message;
}

/* A google.protobuf.Any: the message in it, with the name of its type */
static void
append_any(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
		   const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *scan = proto_scan_create(message, NULL);
	const ProtoSlot *url;
	ProtoValue	inner;
	const ProtoMessage *type;
	Size		len;
	char	   *text;

	proto_scan_run(scan, value->p, value->len, depth);
	url = proto_slot(scan, &message->fields[0]);
	inner = proto_slot(scan, &message->fields[1])->value;
	if (!proto_slot(scan, &message->fields[1])->set)
		proto_default(&message->fields[1], &inner);
	appendStringInfoChar(out, '{');
	if (url->set || inner.len > 0)
	{
		const char *given = url->set ? proto_text(&url->value, options->strip_nul, &len) : "";

		text = pnstrdup(given, url->set ? len : 0);
		type = type_of_any(message->schema, text);
		append_key(out, "@type");
		escape_json(out, text);
		pfree(text);
		if (proto_has_own_json(type))
		{
			append_key(out, "value");
			append_message_json(out, type, &inner, options, depth + 1);
		}
		else
			append_fields(out, type, &inner, options, depth + 1);
	}
	appendStringInfoChar(out, '}');
	proto_scan_free(scan);
}

static TextKind
append_message(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
			   const ProtoJsonOptions *options, int depth)
{
	int64		parts[4];

	check_stack_depth();
	switch (message->known)
	{
		case KNOWN_TIMESTAMP:
			append_instant(out, value);
			return TEXT_STRING;
		case KNOWN_DURATION:
			append_duration(out, value);
			return TEXT_STRING;
		case KNOWN_DATE:
			proto_small_message(value, 3, parts);
			appendStringInfo(out, "%04d-%02d-%02d", (int) parts[0], (int) parts[1], (int) parts[2]);
			return TEXT_STRING;
		case KNOWN_TIME:
			proto_small_message(value, 4, parts);
			appendStringInfo(out, "%02d:%02d:%02d", (int) parts[0], (int) parts[1], (int) parts[2]);
			append_nanos(out, Min(Max(parts[3], 0), 999999999));
			return TEXT_STRING;
		case KNOWN_WRAPPER:
			return append_wrapper(out, message, value, options, depth);
		case KNOWN_VALUE:
			return append_json_value(out, message, value, options, depth);
		case KNOWN_STRUCT:
		case KNOWN_LIST:
			{
				ProtoScan  *scan = proto_scan_create(message, NULL);

				proto_scan_run(scan, value->p, value->len, depth);
				proto_json_append_all(out, &message->fields[0], proto_slot(scan, &message->fields[0]), options, depth);
				proto_scan_free(scan);
				return TEXT_JSON;
			}
		case KNOWN_ANY:
			append_any(out, message, value, options, depth);
			return TEXT_JSON;
		case KNOWN_FIELD_MASK:
			append_field_mask(out, message, value, options, depth);
			return TEXT_STRING;
		case KNOWN_NONE:
			break;
	}
	appendStringInfoChar(out, '{');
	append_fields(out, message, value, options, depth);
	appendStringInfoChar(out, '}');
	return TEXT_JSON;
}

static TextKind
append_value(StringInfo out, const ProtoField *field, const ProtoValue *value,
			 const ProtoJsonOptions *options, int depth)
{
	const char *text;
	Size		len;

	switch (field->type)
	{
		case PROTO_DOUBLE:
		case PROTO_FLOAT:
			return append_float(out, proto_double(field, value), field->type == PROTO_FLOAT);
		case PROTO_BOOL:
			appendStringInfoString(out, value->bits ? "true" : "false");
			return TEXT_WORD;
		case PROTO_STRING:
			text = proto_text(value, options->strip_nul, &len);

			appendBinaryStringInfo(out, text, (int) len);
			return TEXT_STRING;
		case PROTO_BYTES:
			append_base64(out, value->p, value->len);
			return TEXT_STRING;
		case PROTO_GROUP:
		case PROTO_MESSAGE:
			return append_message(out, field->message, value, options, depth + 1);
		case PROTO_ENUM:
			text = proto_enum_name(field->enumeration, (int32) value->bits);

			if (text == NULL)
			{
				appendStringInfo(out, "%d", (int32) value->bits);
				return TEXT_NUMBER;
			}
			appendStringInfoString(out, field->enumeration->is_null ? "null" : text);
			return field->enumeration->is_null ? TEXT_WORD : TEXT_STRING;
		default:
			if (proto_is_unsigned(field))
				appendStringInfo(out, "%llu", (unsigned long long) value->bits);
			else
				appendStringInfo(out, "%lld", (long long) proto_signed(field, value));
			return TEXT_NUMBER;
	}
}

/* Put quotes around what was appended from 'start' on. */
static void
quote(StringInfo out, int start)
{
	char	   *text = pnstrdup(out->data + start, out->len - start);

	out->len = start;
	out->data[start] = '\0';
	escape_json(out, text);
	pfree(text);
}

static void
append_message_json(StringInfo out, const ProtoMessage *message, const ProtoValue *value,
					const ProtoJsonOptions *options, int depth)
{
	int			start = out->len;

	if (append_message(out, message, value, options, depth) == TEXT_STRING)
		quote(out, start);
}

void
proto_json_append(StringInfo out, const ProtoField *field, const ProtoValue *value,
				  const ProtoJsonOptions *options, int depth)
{
	int			start = out->len;

	if (append_value(out, field, value, options, depth) == TEXT_STRING)
		quote(out, start);
}

void
proto_text_append(StringInfo out, const ProtoField *field, const ProtoValue *value,
				  const ProtoJsonOptions *options, int depth, bool *is_number)
{
	*is_number = append_value(out, field, value, options, depth) == TEXT_NUMBER;
}

/* Key and value of a map's entry; what it leaves out has its default. */
static void
read_entry(ProtoScan *scan, const ProtoValue *entry, int depth, ProtoValue *key, ProtoValue *value)
{
	ProtoValue *parts[] = {key, value};

	proto_scan_run(scan, entry->p, entry->len, depth);
	for (int i = 0; i < 2; i++)
	{
		const ProtoField *field = &scan->message->fields[i];

		if (proto_slot(scan, field)->set)
			*parts[i] = proto_slot(scan, field)->value;
		else
			proto_default(field, parts[i]);
	}
}

void
proto_json_append_all(StringInfo out, const ProtoField *field, const ProtoSlot *slot,
					  const ProtoJsonOptions *options, int depth)
{
	ProtoScan  *entry = field->is_map ? proto_scan_create(field->message, NULL) : NULL;
	ProtoItems	items;
	ProtoValue	item;
	bool		first = true;

	appendStringInfoChar(out, field->is_map ? '{' : '[');
	proto_items_begin(&items, field, slot);
	while (proto_items_next(&items, &item))
	{
		CHECK_FOR_INTERRUPTS();
		if (!first)
			appendStringInfoString(out, ", ");
		first = false;
		if (entry)
		{
			ProtoValue	key;
			ProtoValue	value;
			int			start = out->len;

			read_entry(entry, &item, depth + 1, &key, &value);
			(void) append_value(out, &field->message->fields[0], &key, options, depth);
			quote(out, start);
			appendStringInfoString(out, ": ");
			proto_json_append(out, &field->message->fields[1], &value, options, depth + 1);
			proto_scan_release(entry);
		}
		else
			proto_json_append(out, field, &item, options, depth);
	}
	appendStringInfoChar(out, field->is_map ? '}' : ']');
	if (entry)
		proto_scan_free(entry);
}

static void
append_hstore_text(StringInfo out, const char *text, int len)
{
	appendStringInfoChar(out, '"');
	for (int i = 0; i < len; i++)
	{
		if (text[i] == '"' || text[i] == '\\')
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, text[i]);
	}
	appendStringInfoChar(out, '"');
}

/* An entry of a map as text: "key"=>"value" */
typedef struct HstoreEntry
{
	Size		offset;			/* in the text of all of them .. */
	const char *text;			/* .. which has moved until it is whole */
	int			key_len;
	int			len;
	bool		superseded;		/* the key comes again */
} HstoreEntry;

/* By key, the later one first */
static int
compare_entries(const void *a, const void *b)
{
	const HstoreEntry *left = *(HstoreEntry *const *) a;
	const HstoreEntry *right = *(HstoreEntry *const *) b;
	int			result = memcmp(left->text, right->text, Min(left->key_len, right->key_len));

	if (result == 0)
		result = left->key_len - right->key_len;
	return result ? result : left->offset < right->offset ? 1 : -1;
}

/* Of entries with the same key the last one counts; hstore's input does not say which it takes. */
static void
mark_superseded(HstoreEntry *entries, int n)
{
	HstoreEntry **sorted = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(HstoreEntry *) * Max(n, 1));

	for (int i = 0; i < n; i++)
		sorted[i] = &entries[i];
	qsort(sorted, n, sizeof(HstoreEntry *), compare_entries);
	for (int i = 1; i < n; i++)
		sorted[i]->superseded = sorted[i]->key_len == sorted[i - 1]->key_len &&
			memcmp(sorted[i]->text, sorted[i - 1]->text, sorted[i]->key_len) == 0;
	pfree(sorted);
}

static HstoreEntry *
hstore_entries(StringInfo text, const ProtoField *field, const ProtoSlot *slot,
			   const ProtoJsonOptions *options, int depth)
{
	HstoreEntry *entries = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(HstoreEntry) * Max(slot->n, 1));
	ProtoScan  *entry = proto_scan_create(field->message, NULL);
	ProtoItems	items;
	ProtoValue	item;
	StringInfoData part;
	int			n = 0;

	initStringInfo(&part);
	proto_items_begin(&items, field, slot);
	while (proto_items_next(&items, &item))
	{
		ProtoValue	parts[2];

		CHECK_FOR_INTERRUPTS();
		read_entry(entry, &item, depth + 1, &parts[0], &parts[1]);
		entries[n].offset = text->len;
		entries[n].superseded = false;
		for (int i = 0; i < 2; i++)
		{
			resetStringInfo(&part);
			(void) append_value(&part, &field->message->fields[i], &parts[i], options, depth + 1);
			append_hstore_text(text, part.data, part.len);
			if (i == 0)
			{
				entries[n].key_len = (int) (text->len - entries[n].offset);
				appendStringInfoString(text, "=>");
			}
		}
		entries[n].len = (int) (text->len - entries[n].offset);
		n++;
		proto_scan_release(entry);
	}
	pfree(part.data);
	proto_scan_free(entry);
	return entries;
}

void
proto_hstore_append(StringInfo out, const ProtoField *field, const ProtoSlot *slot,
					const ProtoJsonOptions *options, int depth)
{
	StringInfoData text;
	HstoreEntry *entries;

	initStringInfo(&text);
	entries = hstore_entries(&text, field, slot, options, depth);
	for (int i = 0; i < slot->n; i++)
		entries[i].text = text.data + entries[i].offset;
	mark_superseded(entries, slot->n);
	for (int i = 0; i < slot->n; i++)
	{
		if (entries[i].superseded)
			continue;
		if (out->len > 0)
			appendStringInfoString(out, ", ");
		appendBinaryStringInfo(out, entries[i].text, entries[i].len);
	}
	pfree(entries);
	pfree(text.data);
}
