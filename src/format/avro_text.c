/*
 * avro_text.c
 *	  Avro 1.12, "JSON Encoding": unions name their branch, bytes are characters, all fields
 *	  of a record are there.
 *
 * Written as Java's JsonEncoder does it, read as strictly as its JsonDecoder.
 */
#include "postgres.h"

#include <math.h>

#include "format/avro_input.h"
#include "format/avro_output.h"
#include "format/avro_text.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/value_output.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"

/* Members of the objects of a record, found once per record type */
typedef struct RecordFields
{
	const AvroNode *node;
	JsonFields *fields;
} RecordFields;

struct AvroText
{
	const AvroNode *schema;
	bool		strip_nul;
	bool		is_default;		/* of a field: unions do not name their branch, and fields
								 * of records may be left to their own default */
	int			nrecords;
	int			max_records;
	RecordFields *records;
};

static const AvroNode string_node = {.type = AVRO_STRING};

/* === Schemas ================================================================ */

static const RecordFields *
find_record(const AvroText *text, const AvroNode *node)
{
	for (int i = 0; i < text->nrecords; i++)
	{
		if (text->records[i].node == node)
			return &text->records[i];
	}
	return NULL;
}

/* Schemas may refer to themselves. */
static void
note_records(AvroText *text, const AvroNode *node)
{
	check_stack_depth();
	if (node->type == AVRO_RECORD)
	{
		RecordFields *record;
		int		   *field_of = palloc(sizeof(int) * Max(node->n, 1));

		if (find_record(text, node))
			return;
		if (text->nrecords == text->max_records)
		{
			text->max_records *= 2;
			text->records = repalloc(text->records, sizeof(RecordFields) * text->max_records);
		}
		record = &text->records[text->nrecords++];
		record->node = node;
		record->fields = json_fields_create(node->n, node->names, field_of);
		if (record->fields->n != node->n)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("record \"%s\" of the Avro schema has two fields of one name", node->name)));
	}
	for (int i = 0; node->children && i < node->n; i++)
		note_records(text, node->children[i]);
}

AvroText *
avro_text_create(const AvroNode *schema, bool strip_nul)
{
	AvroText   *text = palloc0(sizeof(AvroText));

	text->schema = schema;
	text->strip_nul = strip_nul;
	text->max_records = 4;
	text->records = palloc(sizeof(RecordFields) * text->max_records);
	note_records(text, schema);
	return text;
}

/* What a union calls its branch */
static const char *
branch_name(const AvroNode *node)
{
	return node->name ? node->name : avro_type_name(node);
}

/* === Reading ================================================================ */

static void read_value(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out);

static void
bad_value(const AvroNode *node, const JsonText *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("a value of Avro type \"%s\" is expected, found %s", avro_type_name(node),
					value->kind == JK_MISSING ? "nothing" : value->kind == JK_NUMBER ? json_excerpt(value) :
					psprintf("a JSON %s", json_kind_name(value->kind))),
			 node->type == AVRO_UNION ? errhint("Avro's JSON encoding names the branch of a union: null, or {\"string\": \"x\"}.") : 0));
}

static void
read_integer(const AvroNode *node, const JsonText *value, StringInfo out)
{
	char	   *digits = NULL;
	int64		number;

	if (value->kind != JK_NUMBER || !value->integral)
		bad_value(node, value);
	digits = pnstrdup(value->text, value->len);
	if (node->type == AVRO_INT)
		number = DatumGetInt32(DirectFunctionCall1(int4in, CStringGetDatum(digits)));
	else
		number = DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(digits)));
	avro_put_long(out, number);
	pfree(digits);
}

static void
read_floating(const AvroNode *node, const JsonText *value, StringInfo out)
{
	char	   *digits = pnstrdup(value->text, value->len);

	/* what JSON has no number for is text */
	if (value->kind != JK_NUMBER &&
		!(value->kind == JK_STRING && (strcmp(digits, "NaN") == 0 || strcmp(digits, "Infinity") == 0 || strcmp(digits, "-Infinity") == 0)))
		bad_value(node, value);
	if (node->type == AVRO_FLOAT)
		avro_put_float(out, DatumGetFloat4(DirectFunctionCall1(float4in, CStringGetDatum(digits))));
	else
		avro_put_double(out, DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(digits))));
	pfree(digits);
}

/* A string's characters, UTF-8; palloc'd */
static char *
characters(const AvroText *text, const JsonText *value, size_t *len)
{
	char	   *result = palloc(value->len + 1);
	JsonError	error;

	*len = value->len;
	if (!value->escaped)
		memcpy(result, value->text, value->len);
	else if ((error = json_unescape(value, text->strip_nul, result, len)) != JSON_OK)
		ereport(ERROR,
				(errcode(error == JSON_NUL_ESCAPE ? ERRCODE_UNTRANSLATABLE_CHARACTER : ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("%s", json_error_text(error)),
				 error == JSON_NUL_ESCAPE ? errhint("The format's option nul_handling 'strip' drops such characters.") : 0));
	result[*len] = '\0';
	return result;
}

static void
read_text(const AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	size_t		len;
	char	   *utf8;

	if (value->kind != JK_STRING)
		bad_value(node, value);
	utf8 = characters(text, value, &len);
	avro_put_long(out, len);
	appendBinaryStringInfo(out, utf8, (int) len);
	pfree(utf8);
}

/* A byte per character */
static void
read_bytes(const AvroNode *node, const JsonText *value, StringInfo out)
{
	const unsigned char *p = (const unsigned char *) value->text;
	const unsigned char *end = p + value->len;
	StringInfoData bytes;

	if (value->kind != JK_STRING)
		bad_value(node, value);
	initStringInfo(&bytes);
	while (p < end)
	{
		uint32		c = *p;
		int			len = 1;

		if (c == '\\')
			c = json_escaped_unit((const char *) p, &len);
		else if (c >= 0x80)
		{
			len = pg_utf_mblen(p);
			c = utf8_to_unicode(p);
		}
		if (c > 0xFF)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("the character U+%04X is not a byte", c)));
		appendStringInfoCharMacro(&bytes, (char) c);
		p += len;
	}
	avro_put_bytes(out, node, bytes.data, bytes.len);
	pfree(bytes.data);
}

static void
read_record(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	const RecordFields *record = find_record(text, node);
	JsonText   *found = palloc(sizeof(JsonText) * Max(node->n, 1));
	JsonScan	scan;

	if (value->kind != JK_OBJECT)
		bad_value(node, value);
	json_scan_init(&scan, value->text, value->len);
	if (!json_scan_object(&scan, record->fields, found))
		json_scan_raise(&scan, value->text);
	for (int i = 0; i < node->n; i++)
	{
		if (found[i].kind == JK_MISSING && text->is_default && node->defaults[i])
		{
			avro_default_to_binary(node->children[i], node->defaults[i], out);
			continue;
		}
		if (found[i].kind == JK_MISSING)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("field \"%s\" of Avro record \"%s\" is missing", node->names[i], node->name)));
		read_value(text, node->children[i], &found[i], out);
	}
	pfree(found);
}

/* One member of an object; false at its end */
static bool
next_member(JsonScan *scan, JsonText *name, JsonText *value)
{
	/* the object has been scanned before, so it is valid */
	if (!json_scan_value(scan, name) || name->kind != JK_STRING)
		return false;
	while (*scan->at != ':')
		scan->at++;
	scan->at++;
	if (!json_scan_value(scan, value))
		return false;
	while (*scan->at != ',' && *scan->at != '}')
		scan->at++;
	if (*scan->at == ',')
		scan->at++;
	return true;
}

static void
read_collection(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	StringInfoData items;
	JsonScan	scan;
	JsonText	name;
	JsonText	item;
	int64		n = 0;

	if (value->kind != (node->type == AVRO_MAP ? JK_OBJECT : JK_ARRAY))
		bad_value(node, value);
	initStringInfo(&items);
	json_scan_init(&scan, value->text + 1, value->len - 1);
	if (node->type == AVRO_ARRAY)
	{
		json_scan_init(&scan, value->text, value->len);
		(void) json_scan_array_begin(&scan);
	}
	while (node->type == AVRO_MAP ? next_member(&scan, &name, &item) : json_scan_array_next(&scan, n == 0, &item))
	{
		CHECK_FOR_INTERRUPTS();
		if (node->type == AVRO_MAP)
			read_text(text, &string_node, &name, &items);
		read_value(text, node->children[0], &item, &items);
		n++;
	}
	if (n > 0)
	{
		avro_put_long(out, n);
		appendBinaryStringInfo(out, items.data, items.len);
	}
	avro_put_long(out, 0);
	pfree(items.data);
}

/* Is a default of that kind one for this branch? */
static bool
takes_kind(const AvroNode *node, const JsonText *value)
{
	switch (node->type)
	{
		case AVRO_NULL:
			return value->kind == JK_NULL;
		case AVRO_BOOLEAN:
			return value->kind == JK_TRUE || value->kind == JK_FALSE;
		case AVRO_INT:
		case AVRO_LONG:
			return value->kind == JK_NUMBER && value->integral;
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			return value->kind == JK_NUMBER;
		case AVRO_ARRAY:
			return value->kind == JK_ARRAY;
		case AVRO_MAP:
		case AVRO_RECORD:
			return value->kind == JK_OBJECT;
		case AVRO_UNION:
			return false;
		default:
			return value->kind == JK_STRING;
	}
}

static void
read_default_union(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	int			branch = 0;

	while (branch < node->n && !takes_kind(node->children[branch], value))
		branch++;
	if (branch == node->n)
		bad_value(node, value);
	avro_put_long(out, branch);
	read_value(text, node->children[branch], value, out);
}

static void
read_union(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	JsonScan	scan;
	JsonText	name;
	JsonText	branch;
	JsonText	more;
	JsonText	ignored;
	char	   *wanted;
	size_t		len;

	if (value->kind == JK_NULL)
	{
		if (!avro_takes_null(node))
			bad_value(node, value);
		avro_put_null(out, node);
		return;
	}
	if (value->kind != JK_OBJECT)
		bad_value(node, value);
	json_scan_init(&scan, value->text + 1, value->len - 1);
	if (!next_member(&scan, &name, &branch) || next_member(&scan, &more, &ignored))
		bad_value(node, value);
	wanted = characters(text, &name, &len);
	for (int i = 0; i < node->n; i++)
	{
		if (node->children[i]->type == AVRO_NULL || strcmp(branch_name(node->children[i]), wanted) != 0)
			continue;
		avro_put_long(out, i);
		read_value(text, node->children[i], &branch, out);
		pfree(wanted);
		return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("the Avro union has no branch \"%s\"", json_excerpt(&name))));
}

static void
read_value(AvroText *text, const AvroNode *node, const JsonText *value, StringInfo out)
{
	size_t		len;
	char	   *symbol;

	check_stack_depth();
	switch (node->type)
	{
		case AVRO_NULL:
			if (value->kind != JK_NULL)
				bad_value(node, value);
			break;
		case AVRO_BOOLEAN:
			if (value->kind != JK_TRUE && value->kind != JK_FALSE)
				bad_value(node, value);
			appendStringInfoChar(out, value->kind == JK_TRUE ? 1 : 0);
			break;
		case AVRO_INT:
		case AVRO_LONG:
			read_integer(node, value, out);
			break;
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			read_floating(node, value, out);
			break;
		case AVRO_BYTES:
		case AVRO_FIXED:
			read_bytes(node, value, out);
			break;
		case AVRO_STRING:
			read_text(text, node, value, out);
			break;
		case AVRO_ENUM:
			if (value->kind != JK_STRING)
				bad_value(node, value);
			symbol = characters(text, value, &len);
			symbol = pg_any_to_server(symbol, (int) len, PG_UTF8);
			avro_put_symbol(out, node, symbol, strlen(symbol));
			break;
		case AVRO_RECORD:
			read_record(text, node, value, out);
			break;
		case AVRO_ARRAY:
		case AVRO_MAP:
			read_collection(text, node, value, out);
			break;
		case AVRO_UNION:
			if (text->is_default)
				read_default_union(text, node, value, out);
			else
				read_union(text, node, value, out);
			break;
	}
}

void
avro_text_to_binary(AvroText *text, const char *bytes, Size len, StringInfo binary)
{
	JsonScan	scan;
	JsonText	value;

	json_message_begin(&bytes, &len);
	json_scan_init(&scan, bytes, len);
	if (!json_scan_value(&scan, &value) || !json_scan_end(&scan))
		json_scan_raise(&scan, bytes);
	read_value(text, text->schema, &value, binary);
}

void
avro_default_to_binary(const AvroNode *node, const char *json, StringInfo binary)
{
	AvroText   *text = avro_text_create(node, false);

	check_stack_depth();
	text->is_default = true;
	avro_text_to_binary(text, json, strlen(json), binary);
}

/* === Writing ================================================================ */

static void
write_floating(StringInfo out, double value, bool is_float)
{
	bool		quoted = isnan(value) || isinf(value);

	if (quoted)
		appendStringInfoChar(out, '"');
	if (is_float)
		append_float4(out, (float) value);
	else
		append_float8(out, value);
	if (quoted)
		appendStringInfoChar(out, '"');
}

/* A character per byte; in the encoding of UTF-8 two of them from 0x80 on */
static void
write_bytes(StringInfo out, const char *bytes, Size len)
{
	ValueStyle	style = {.binary = BINARY_LATIN1};
	StringInfoData utf8;

	initStringInfo(&utf8);
	style_append_bytes(&utf8, &style, bytes, len);
	json_write_utf8(out, utf8.data, utf8.len);
	pfree(utf8.data);
}

static void
write_value(StringInfo out, AvroInput *in, const AvroNode *node)
{
	const char *bytes;
	Size		len;
	int64		n;
	int64		block;
	int			branch;
	bool		first = true;

	check_stack_depth();
	switch (node->type)
	{
		case AVRO_NULL:
			appendStringInfoString(out, "null");
			break;
		case AVRO_BOOLEAN:
			appendStringInfoString(out, avro_read_boolean(in) ? "true" : "false");
			break;
		case AVRO_INT:
		case AVRO_LONG:
			appendStringInfo(out, INT64_FORMAT, avro_read_long(in));
			break;
		case AVRO_FLOAT:
			write_floating(out, avro_read_float(in), true);
			break;
		case AVRO_DOUBLE:
			write_floating(out, avro_read_double(in), false);
			break;
		case AVRO_BYTES:
		case AVRO_FIXED:
			bytes = avro_read_raw(in, node, &len);
			write_bytes(out, bytes, len);
			break;
		case AVRO_STRING:
			bytes = avro_read_raw(in, node, &len);
			json_write_utf8(out, bytes, len);
			break;
		case AVRO_ENUM:
			branch = avro_read_branch(in, node);
			json_write_string(out, node->names[branch], strlen(node->names[branch]));
			break;
		case AVRO_RECORD:
			appendStringInfoChar(out, '{');
			for (int i = 0; i < node->n; i++)
			{
				if (i > 0)
					appendStringInfoChar(out, ',');
				json_write_string(out, node->names[i], strlen(node->names[i]));
				appendStringInfoChar(out, ':');
				write_value(out, in, node->children[i]);
			}
			appendStringInfoChar(out, '}');
			break;
		case AVRO_ARRAY:
		case AVRO_MAP:
			appendStringInfoChar(out, node->type == AVRO_MAP ? '{' : '[');
			while ((n = avro_read_block(in, node, &block)) > 0)
			{
				for (int64 i = 0; i < n; i++)
				{
					if (!first)
						appendStringInfoChar(out, ',');
					first = false;
					if (node->type == AVRO_MAP)
					{
						bytes = avro_read_raw(in, &string_node, &len);
						json_write_utf8(out, bytes, len);
						appendStringInfoChar(out, ':');
					}
					write_value(out, in, node->children[0]);
				}
			}
			appendStringInfoChar(out, node->type == AVRO_MAP ? '}' : ']');
			break;
		case AVRO_UNION:
			branch = avro_read_branch(in, node);
			if (node->children[branch]->type == AVRO_NULL)
			{
				appendStringInfoString(out, "null");
				break;
			}
			appendStringInfoChar(out, '{');
			json_write_string(out, branch_name(node->children[branch]), strlen(branch_name(node->children[branch])));
			appendStringInfoChar(out, ':');
			write_value(out, in, node->children[branch]);
			appendStringInfoChar(out, '}');
			break;
	}
}

void
avro_binary_to_text(const AvroText *text, const char *binary, Size len, StringInfo out)
{
	AvroInput	in = {binary, binary + len};

	write_value(out, &in, text->schema);
}
