/*
 * avro_connect.c
 *	  Avro values in JSON's terms, see avro_connect.h.
 *
 * Text is not copied and numbers are written in place; only bytes and nested values
 * take memory.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "format/avro_connect.h"
#include "format/avro_json.h"
#include "format/value_output.h"
#include "format/value_style.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"

/* === Kinds ================================================================== */

static ConnectUnit
unit_of(const AvroNode *node)
{
	return node->per_second == 1000 ? CONNECT_MILLIS : node->per_second == 1000000 ? CONNECT_MICROS : CONNECT_NANOS;
}

static void
logical_kind(const AvroNode *node, ConnectKind *kind)
{
	kind->unit = unit_of(node);
	switch (node->logical)
	{
		case AVRO_DECIMAL:
			kind->logical = LOGICAL_DECIMAL;
			kind->parameter = node->scale;
			kind->name = "decimal";
			break;
		case AVRO_DATE:
			kind->logical = LOGICAL_DATE;
			kind->unit = CONNECT_NO_UNIT;
			kind->name = "date";
			break;
		case AVRO_TIME:
			kind->logical = LOGICAL_TIME;
			kind->name = "time";
			break;
		case AVRO_TIMESTAMP:
			kind->logical = LOGICAL_INSTANT;
			kind->name = "timestamp";
			break;
		case AVRO_LOCAL_TIMESTAMP:
			kind->logical = LOGICAL_TIMESTAMP;
			kind->name = "local timestamp";
			break;
		default:
			break;
	}
}

void
avro_connect_kind(const AvroNode *node, ConnectKind *kind)
{
	int			branch;
	int			scale;

	memset(kind, 0, sizeof(*kind));
	if (avro_is_nullable(node, &branch))
		node = node->children[branch];
	if (node->type == AVRO_ARRAY && node->connect == NULL)
	{
		kind->of_elements = true;
		node = node->children[0];
		if (avro_is_nullable(node, &branch))
			node = node->children[branch];
	}
	scale = node->logical == AVRO_DECIMAL ? node->scale : node->connect_scale;
	if (node->connect == NULL || !connect_kind_of_name(node->connect, scale, node->connect_length, kind))
		logical_kind(node, kind);
}

/* === Single values ========================================================== */

static void
set_text(JsonText *text, int kind, const char *bytes, Size len)
{
	text->text = bytes;
	text->len = (uint32) len;
	text->kind = kind;
	text->escaped = false;
	text->integral = false;
}

/*
 * Shortest digits; what JSON has no number for is a string, as in Connect.  The length,
 * 'buf' has AVRO_NUMBER_SIZE.
 */
static int
floating_text(AvroInput *in, const AvroNode *node, char *buf, bool *is_number)
{
	double		value = node->type == AVRO_FLOAT ? avro_read_float(in) : avro_read_double(in);

	*is_number = !isnan(value) && !isinf(value);
	if (!*is_number)
	{
		strcpy(buf, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
		return (int) strlen(buf);
	}
	return node->type == AVRO_FLOAT ? float_to_shortest_decimal_buf((float) value, buf)
		: double_to_shortest_decimal_buf(value, buf);
}

/* Text that is checked; *made is palloc'd where it had to be changed, else NULL. */
static const char *
checked_text(AvroInput *in, const AvroNode *node, bool strip_nul, Size *len, char **made)
{
	const char *bytes = avro_read_raw(in, node, len);
	const char *kept = strip_nul ? strip_nul_bytes(bytes, len) : bytes;

	*made = kept != bytes ? (char *) kept : NULL;
	(void) pg_verify_mbstr(PG_UTF8, kept, (int) *len, false);
	return kept;
}

/* Is it one whose text is more than its bytes? */
static bool
is_spelled(const AvroNode *node)
{
	return node->type == AVRO_FIXED && (node->logical == AVRO_UUID || node->logical == AVRO_DURATION);
}

/* === Nested values ========================================================== */

static void json_append(StringInfo out, AvroInput *in, const AvroNode *node, bool strip_nul);

static void
string_append(StringInfo out, const char *text, Size len)
{
	char	   *copy = pnstrdup(text, len);

	escape_json(out, copy);
	pfree(copy);
}

/* Names are in the database encoding, values are not. */
static void
name_append(StringInfo out, const char *name)
{
	Size		len = strlen(name);
	const char *utf8 = text_to_utf8(name, &len);

	string_append(out, utf8, len);
}

static void
items_append(StringInfo out, AvroInput *in, const AvroNode *node, bool strip_nul)
{
	bool		is_map = node->type == AVRO_MAP;
	bool		first = true;
	int64		n;
	int64		bytes;

	appendStringInfoChar(out, is_map ? '{' : '[');
	while ((n = avro_read_block(in, node, &bytes)) > 0)
	{
		const char *begin = in->p;

		for (int64 i = 0; i < n; i++, first = false)
		{
			static const AvroNode string = {.type = AVRO_STRING};

			if (!first)
				appendStringInfoChar(out, ',');
			if (is_map)
			{
				json_append(out, in, &string, strip_nul);
				appendStringInfoChar(out, ':');
			}
			json_append(out, in, node->children[0], strip_nul);
		}
		avro_check_block(in, begin, bytes);
	}
	appendStringInfoChar(out, is_map ? '}' : ']');
}

static void
json_append(StringInfo out, AvroInput *in, const AvroNode *node, bool strip_nul)
{
	AvroConnectValue value;

	check_stack_depth();
	switch (node->type)
	{
		case AVRO_UNION:
			json_append(out, in, node->children[avro_read_branch(in, node)], strip_nul);
			return;
		case AVRO_RECORD:
			appendStringInfoChar(out, '{');
			for (int i = 0; i < node->n; i++)
			{
				if (i > 0)
					appendStringInfoChar(out, ',');
				name_append(out, node->names[i]);
				appendStringInfoChar(out, ':');
				json_append(out, in, node->children[i], strip_nul);
			}
			appendStringInfoChar(out, '}');
			return;
		case AVRO_ARRAY:
		case AVRO_MAP:
			items_append(out, in, node, strip_nul);
			return;
		default:
			avro_connect_read(in, node, strip_nul, false, &value);
			if (value.text.kind == JK_STRING)
				string_append(out, value.text.text, value.text.len);
			else
				appendBinaryStringInfo(out, value.text.text, (int) value.text.len);
			if (value.made)
				pfree(value.made);
			return;
	}
}

/* === Values ================================================================= */

void
avro_connect_read(AvroInput *in, const AvroNode *node, bool strip_nul, bool raw_bytes, AvroConnectValue *value)
{
	JsonText   *text = &value->text;
	StringInfoData out;
	const char *bytes;
	Size		len;
	bool		is_number;

	value->made = NULL;
	while (node->type == AVRO_UNION)
		node = node->children[avro_read_branch(in, node)];
	switch (node->type)
	{
		case AVRO_NULL:
			set_text(text, JK_NULL, "null", 4);
			return;
		case AVRO_BOOLEAN:
			if (avro_read_boolean(in))
				set_text(text, JK_TRUE, "true", 4);
			else
				set_text(text, JK_FALSE, "false", 5);
			return;
		case AVRO_INT:
		case AVRO_LONG:
			set_text(text, JK_NUMBER, value->number,
					 pg_lltoa(node->type == AVRO_INT ? avro_read_int(in) : avro_read_long(in), value->number));
			text->integral = true;
			return;
		case AVRO_FLOAT:
		case AVRO_DOUBLE:
			len = floating_text(in, node, value->number, &is_number);
			set_text(text, is_number ? JK_NUMBER : JK_STRING, value->number, len);
			text->integral = is_number && strcspn(value->number, ".e") == len;
			return;
		case AVRO_STRING:
			bytes = checked_text(in, node, strip_nul, &len, &value->made);
			set_text(text, JK_STRING, bytes, len);
			return;
		case AVRO_ENUM:
			bytes = node->names[avro_read_branch(in, node)];
			len = strlen(bytes);
			bytes = text_to_utf8(bytes, &len);
			set_text(text, JK_STRING, bytes, len);
			return;
		case AVRO_BYTES:
		case AVRO_FIXED:
			if (!raw_bytes || is_spelled(node))
				break;
			bytes = avro_read_raw(in, node, &len);
			set_text(text, CONNECT_BYTES, bytes, len);
			return;
		default:
			break;
	}

	initStringInfo(&out);
	if (is_spelled(node))
		avro_text_append(&out, in, node, &is_number);
	else if (node->type == AVRO_BYTES || node->type == AVRO_FIXED)
	{
		bytes = avro_read_raw(in, node, &len);
		append_base64(&out, bytes, len);
	}
	else
		json_append(&out, in, node, strip_nul);
	value->made = out.data;
	set_text(text, node->type == AVRO_RECORD || node->type == AVRO_MAP ? JK_OBJECT : node->type == AVRO_ARRAY ? JK_ARRAY : JK_STRING,
			 out.data, out.len);
}
