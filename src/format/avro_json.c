/*
 * avro_json.c
 *	  Avro values as JSON and as plain text.
 *
 * Walks value and schema side by side; depth is bounded by the stack's limit.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "common/shortest_dec.h"
#include "fmgr.h"
#include "format/avro_json.h"
#include "format/binary_values.h"
#include "format/decimal_bytes.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/uuid.h"


/* Fixed names of numbers that JSON has none for are text there. */
static bool
append_float(StringInfo out, double value, bool is_float)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];

	if (isnan(value) || isinf(value))
	{
		appendStringInfoString(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
		return false;
	}
	if (is_float)
		float_to_shortest_decimal_buf((float) value, text);
	else
		double_to_shortest_decimal_buf(value, text);
	appendStringInfoString(out, text);
	return true;
}

static void
append_instant(StringInfo out, int64 micros, const char *zone)
{
	Timestamp	timestamp;

	if (pg_sub_s64_overflow(micros, (int64) POSTGRES_EPOCH_DAYS * USECS_PER_DAY, &timestamp) ||
		!IS_VALID_TIMESTAMP(timestamp))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %lld microseconds", (long long) micros)));
	append_timestamp(out, timestamp, 'T', zone);
}

static void
append_date_of(StringInfo out, int32 days)
{
	int64		date = (int64) days - POSTGRES_EPOCH_DAYS;

	if (!IS_VALID_DATE(date))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("date out of range: %d days", days)));
	append_date(out, (DateADT) date);
}

static void
append_time_of(StringInfo out, int64 micros)
{
	if (micros < 0 || micros > USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time out of range: %lld microseconds", (long long) micros)));
	append_time(out, micros);
}

/* months, days, milliseconds: three unsigned integers, least significant byte first */
static void
append_duration(StringInfo out, const char *bytes)
{
	uint32		parts[3];

	for (int i = 0; i < 3; i++)
	{
		const unsigned char *p = (const unsigned char *) bytes + 4 * i;

		parts[i] = (uint32) p[0] | (uint32) p[1] << 8 | (uint32) p[2] << 16 | (uint32) p[3] << 24;
	}
	appendStringInfo(out, "P%uM%uDT%u.%03uS", parts[0], parts[1], parts[2] / 1000, parts[2] % 1000);
}

static void
append_uuid(StringInfo out, const char *bytes)
{
	for (int i = 0; i < UUID_LEN; i++)
		appendStringInfo(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char) bytes[i]);
}

typedef enum ScalarKind
{
	SCALAR_NUMBER,
	SCALAR_WORD,				/* true, false, null */
	SCALAR_TEXT
} ScalarKind;

static ScalarKind
append_scalar(StringInfo out, AvroInput *in, const AvroNode *node)
{
	const char *bytes;
	Size		len;
	char	   *text;
	int			scale;

	switch (node->logical)
	{
		case AVRO_DECIMAL:
			bytes = avro_read_raw(in, node, &len);
			text = decimal_bytes_text(bytes, (int) len, node->scale, "decimal");
			appendStringInfoString(out, text);
			pfree(text);
			return SCALAR_NUMBER;
		case AVRO_VARIABLE_DECIMAL:
			scale = avro_read_int(in);
			bytes = avro_read_raw(in, node->children[1], &len);
			text = decimal_bytes_text(bytes, (int) len, scale, "decimal");
			appendStringInfoString(out, text);
			pfree(text);
			return SCALAR_NUMBER;
		case AVRO_DATE:
			append_date_of(out, avro_read_int(in));
			return SCALAR_TEXT;
		case AVRO_TIME:
			append_time_of(out, avro_read_micros(in, node));
			return SCALAR_TEXT;
		case AVRO_TIMESTAMP:
			append_instant(out, avro_read_micros(in, node), "Z");
			return SCALAR_TEXT;
		case AVRO_LOCAL_TIMESTAMP:
			append_instant(out, avro_read_micros(in, node), "");
			return SCALAR_TEXT;
		case AVRO_DURATION:
			append_duration(out, avro_read_bytes(in, node->size));
			return SCALAR_TEXT;
		case AVRO_UUID:
			if (node->type != AVRO_FIXED)
				break;
			append_uuid(out, avro_read_bytes(in, node->size));
			return SCALAR_TEXT;
		case AVRO_PLAIN:
			break;
	}
	switch (node->type)
	{
		case AVRO_NULL:
			appendStringInfoString(out, "null");
			return SCALAR_WORD;
		case AVRO_BOOLEAN:
			appendStringInfoString(out, avro_read_boolean(in) ? "true" : "false");
			return SCALAR_WORD;
		case AVRO_INT:
			appendStringInfo(out, "%d", avro_read_int(in));
			return SCALAR_NUMBER;
		case AVRO_LONG:
			appendStringInfo(out, "%lld", (long long) avro_read_long(in));
			return SCALAR_NUMBER;
		case AVRO_FLOAT:
			return append_float(out, avro_read_float(in), true) ? SCALAR_NUMBER : SCALAR_TEXT;
		case AVRO_DOUBLE:
			return append_float(out, avro_read_double(in), false) ? SCALAR_NUMBER : SCALAR_TEXT;
		case AVRO_ENUM:
			appendStringInfoString(out, node->names[avro_read_branch(in, node)]);
			return SCALAR_TEXT;
		case AVRO_STRING:
			bytes = avro_read_text(in, node, &len);
			appendBinaryStringInfo(out, bytes, (int) len);
			return SCALAR_TEXT;
		default:
			bytes = avro_read_raw(in, node, &len);
			append_base64(out, bytes, len);
			return SCALAR_TEXT;
	}
}

static void
append_quoted(StringInfo out, const char *text, Size len)
{
	char	   *copy = pnstrdup(text, len);

	escape_json(out, copy);
	pfree(copy);
}

static bool
is_nested(const AvroNode *node)
{
	return node->logical == AVRO_PLAIN &&
		(node->type == AVRO_RECORD || node->type == AVRO_ARRAY || node->type == AVRO_MAP || node->type == AVRO_UNION);
}

static void
append_scalar_json(StringInfo out, AvroInput *in, const AvroNode *node)
{
	int			start = out->len;
	char	   *text;

	if (append_scalar(out, in, node) != SCALAR_TEXT)
		return;
	text = pnstrdup(out->data + start, out->len - start);
	out->len = start;
	escape_json(out, text);
	pfree(text);
}

void
avro_json_append(StringInfo out, AvroInput *in, const AvroNode *node)
{
	bool		is_map = node->type == AVRO_MAP;
	bool		first = true;
	int64		n;
	int64		bytes;

	if (!is_nested(node))
	{
		append_scalar_json(out, in, node);
		return;
	}
	check_stack_depth();
	switch (node->type)
	{
		case AVRO_UNION:
			avro_json_append(out, in, node->children[avro_read_branch(in, node)]);
			return;
		case AVRO_RECORD:
			appendStringInfoChar(out, '{');
			for (int i = 0; i < node->n; i++)
			{
				if (i > 0)
					appendStringInfoString(out, ", ");
				escape_json(out, node->names[i]);
				appendStringInfoString(out, ": ");
				avro_json_append(out, in, node->children[i]);
			}
			appendStringInfoChar(out, '}');
			return;
		default:
			break;
	}
	appendStringInfoChar(out, is_map ? '{' : '[');
	while ((n = avro_read_block(in, node, &bytes)) > 0)
	{
		const char *begin = in->p;

		for (int64 i = 0; i < n; i++)
		{
			if (!first)
				appendStringInfoString(out, ", ");
			first = false;
			if (is_map)
			{
				static const AvroNode string = {.type = AVRO_STRING};
				Size		len;
				const char *key = avro_read_text(in, &string, &len);

				append_quoted(out, key, len);
				appendStringInfoString(out, ": ");
			}
			avro_json_append(out, in, node->children[0]);
		}
		avro_check_block(in, begin, bytes);
	}
	appendStringInfoChar(out, is_map ? '}' : ']');
}

void
avro_text_append(StringInfo out, AvroInput *in, const AvroNode *node, bool *is_number)
{
	*is_number = false;
	if (is_nested(node))
		avro_json_append(out, in, node);
	else
		*is_number = append_scalar(out, in, node) == SCALAR_NUMBER;
}

static void
append_hstore_text(StringInfo out, const char *text, Size len)
{
	appendStringInfoChar(out, '"');
	for (Size i = 0; i < len; i++)
	{
		if (text[i] == '"' || text[i] == '\\')
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, text[i]);
	}
	appendStringInfoChar(out, '"');
}

void
avro_hstore_append(StringInfo out, AvroInput *in, const AvroNode *node)
{
	static const AvroNode string = {.type = AVRO_STRING};
	StringInfoData value;
	int64		n;
	int64		bytes;

	initStringInfo(&value);
	while ((n = avro_read_block(in, node, &bytes)) > 0)
	{
		const char *begin = in->p;

		for (int64 i = 0; i < n; i++)
		{
			const AvroNode *item = node->children[0];
			Size		len;
			const char *key = avro_read_text(in, &string, &len);
			bool		is_number;

			if (out->len > 0)
				appendStringInfoString(out, ", ");
			append_hstore_text(out, key, len);
			appendStringInfoString(out, "=>");
			if (item->type == AVRO_UNION)
				item = item->children[avro_read_branch(in, item)];
			if (item->type == AVRO_NULL)
			{
				appendStringInfoString(out, "NULL");
				continue;
			}
			resetStringInfo(&value);
			avro_text_append(&value, in, item, &is_number);
			append_hstore_text(out, value.data, value.len);
		}
		avro_check_block(in, begin, bytes);
	}
	pfree(value.data);
}
