/*
 * json_write.c
 *	  Rows -> JSON objects: scalars, json, arrays, composites and domains, nested
 *	  as the type is; the mirror of json_value.c.
 *
 * What a recorded Flink writes is the rule (doc/flink.md lists where not); what is
 * written is read back by json_value.c as the same value.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "format/json_write.h"
#include "format/value_output.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* How values of one type are written. */
typedef struct JsonNode JsonNode;
struct JsonNode
{
	OutputClass class;
	const struct JsonWriter *writer;	/* whose options count */
	ValueOutput *output;		/* OUTPUT_OTHER */
	Oid			type;			/* a domain's base type */
	int32		typmod;

	/* arrays */
	JsonNode   *element;
	Oid			element_type;
	int16		element_len;
	bool		element_byval;
	char		element_align;

	/* composites */
	TupleDesc	desc;
	struct JsonWriter *attributes;
};

/* A member of an object */
typedef struct JsonMember
{
	JsonNode   *node;
	int			index;			/* in the arrays of values */
	const char *column;
	const char *lead;			/* the name, quoted, escaped, with its colon */
	int			lead_len;
} JsonMember;

struct JsonWriter
{
	bool		plain_decimals;
	bool		skip_nulls;
	bool		iso_timestamps;
	ValueStyle	style;
	pg_tz	   *zone;
	int			nmembers;
	JsonMember *members;
};

typedef struct JsonEncoder
{
	Encoder		base;
	JsonWriter *writer;
} JsonEncoder;

/* === Strings ================================================================ */

#define EACH_BYTE(b) (UINT64CONST(0x0101010101010101) * (b))

/*
 * Of eight bytes, is there one that doesn't stand for itself: control characters,
 * the quote, the backslash, or the first byte of a character beyond the BMP?
 */
static inline bool
eight_need_escape(uint64 v)
{
	uint64		quote = v ^ EACH_BYTE('"');
	uint64		backslash = v ^ EACH_BYTE('\\');
	uint64		found;

	found = (v - EACH_BYTE(0x20)) & ~v;
	found |= (quote - EACH_BYTE(1)) & ~quote;
	found |= (backslash - EACH_BYTE(1)) & ~backslash;
	found |= v & (v << 1) & (v << 2) & (v << 3);
	return (found & EACH_BYTE(0x80)) != 0;
}

static inline bool
needs_escape(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\' || c >= 0xf0;
}

static inline void
put_unicode_escape(StringInfo out, unsigned unit)
{
	static const char hex[] = "0123456789ABCDEF";
	char		escape[6] = {'\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};

	appendBinaryStringInfo(out, escape, sizeof(escape));
}

/* The escape of the character at p; returns its length. */
static int
put_escape(StringInfo out, const unsigned char *p, const unsigned char *end)
{
	char		short_form;

	if (*p >= 0xf0 && end - p >= 4)
	{
		uint32		c = ((p[0] & 0x07) << 18 | (p[1] & 0x3f) << 12 | (p[2] & 0x3f) << 6 | (p[3] & 0x3f)) - 0x10000;

		put_unicode_escape(out, 0xd800 + (c >> 10));
		put_unicode_escape(out, 0xdc00 + (c & 0x3ff));
		return 4;
	}
	switch (*p)
	{
		case '"':
		case '\\':
			short_form = (char) *p;
			break;
		case '\b':
			short_form = 'b';
			break;
		case '\t':
			short_form = 't';
			break;
		case '\n':
			short_form = 'n';
			break;
		case '\f':
			short_form = 'f';
			break;
		case '\r':
			short_form = 'r';
			break;
		default:
			put_unicode_escape(out, *p);
			return 1;
	}
	appendStringInfoCharMacro(out, '\\');
	appendStringInfoCharMacro(out, short_form);
	return 1;
}

/* 'text' is UTF-8 */
void
json_write_utf8(StringInfo out, const char *text, Size len)
{
	const unsigned char *p = (const unsigned char *) text;
	const unsigned char *end = p + len;

	append_byte(out, '"');
	while (p < end)
	{
		char	   *to;

		/* most strings are short and plain: room for the rest at once */
		enlargeStringInfo(out, (int) (end - p) + 1);
		to = out->data + out->len;
		while (end - p >= 8)
		{
			uint64		v;

			memcpy(&v, p, sizeof(v));
			if (eight_need_escape(v))
				break;
			memcpy(to, &v, sizeof(v));
			p += 8;
			to += 8;
		}
		while (p < end && !needs_escape(*p))
			*to++ = (char) *p++;
		out->len = (int) (to - out->data);
		if (p < end)
			p += put_escape(out, p, end);
	}
	append_byte(out, '"');
}

void
json_write_string(StringInfo out, const char *text, Size len)
{
	Size		utf8_len = len;
	const char *utf8 = text_to_utf8(text, &utf8_len);

	json_write_utf8(out, utf8, utf8_len);
	if (utf8 != text)
		pfree((char *) utf8);
}

/* === json and jsonb ========================================================= */

/* The text as it stands, but for a string: see write_jsonb(). */
static void
write_json(StringInfo out, const char *text, Size len)
{
	const char *utf8;
	Size		i = 0;

	while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
		i++;
	if (i < len && text[i] == '"')
	{
		json_write_string(out, text, len);
		return;
	}
	utf8 = text_to_utf8(text, &len);
	appendBinaryStringInfo(out, utf8, (int) len);
	if (utf8 != text)
		pfree((char *) utf8);
}

static void
write_jsonb_scalar(StringInfo out, const JsonbValue *value)
{
	char	   *digits;

	switch (value->type)
	{
		case jbvNull:
			appendStringInfoString(out, "null");
			break;
		case jbvString:
			json_write_string(out, value->val.string.val, value->val.string.len);
			break;
		case jbvBool:
			appendStringInfoString(out, value->val.boolean ? "true" : "false");
			break;
		default:
			digits = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
			appendStringInfoString(out, digits);
			pfree(digits);
			break;
	}
}

/*
 * Compact.  A string that is the whole value is written as JSON text inside a
 * string, because that is how strings are read into json and jsonb (case C08).
 */
static void
write_jsonb(StringInfo out, Jsonb *jsonb)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	value;
	bool		first = true;

	if (JB_ROOT_IS_SCALAR(jsonb))
	{
		StringInfoData text;

		JsonbExtractScalar(&jsonb->root, &value);
		if (value.type != jbvString)
		{
			write_jsonb_scalar(out, &value);
			return;
		}
		initStringInfo(&text);
		write_jsonb_scalar(&text, &value);
		json_write_utf8(out, text.data, text.len);
		pfree(text.data);
		return;
	}

	it = JsonbIteratorInit(&jsonb->root);
	while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				if (!first)
					appendStringInfoChar(out, ',');
				appendStringInfoChar(out, token == WJB_BEGIN_ARRAY ? '[' : '{');
				first = true;
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				appendStringInfoChar(out, token == WJB_END_ARRAY ? ']' : '}');
				first = false;
				break;
			case WJB_KEY:
				if (!first)
					appendStringInfoChar(out, ',');
				json_write_string(out, value.val.string.val, value.val.string.len);
				appendStringInfoChar(out, ':');
				first = true;	/* no comma before the value */
				break;
			default:
				if (!first)
					appendStringInfoChar(out, ',');
				write_jsonb_scalar(out, &value);
				first = false;
				break;
		}
	}
}

/* === Values ================================================================= */

static void write_node(JsonNode *node, Datum value, StringInfo out);
static void write_members(const JsonWriter *writer, const Datum *values, const bool *isnull, StringInfo out,
						  const char **column);

static void
write_dimension(JsonNode *element, int ndims, const int *dims, const Datum *values, const bool *nulls, int *next,
				StringInfo out)
{
	appendStringInfoChar(out, '[');
	for (int i = 0; i < dims[0]; i++)
	{
		if (i > 0)
			appendStringInfoChar(out, ',');
		if (ndims > 1)
			write_dimension(element, ndims - 1, dims + 1, values, nulls, next, out);
		else
		{
			CHECK_FOR_INTERRUPTS();
			if (nulls[*next])
				appendBinaryStringInfo(out, "null", 4);
			else
				write_node(element, values[*next], out);
			(*next)++;
		}
	}
	appendStringInfoChar(out, ']');
}

static void
write_array(JsonNode *node, Datum value, StringInfo out)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	int			next = 0;

	if (ARR_NDIM(array) == 0)
	{
		appendBinaryStringInfo(out, "[]", 2);
		return;
	}
	deconstruct_array(array, node->element_type, node->element_len, node->element_byval, node->element_align,
					  &values, &nulls, &n);
	write_dimension(node->element, ARR_NDIM(array), ARR_DIMS(array), values, nulls, &next, out);
	pfree(values);
	pfree(nulls);
}

static void
write_composite(JsonNode *node, Datum value, StringInfo out)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	HeapTupleData tuple = {0};
	Datum	   *values = palloc(node->desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(node->desc->natts * sizeof(bool));

	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, node->desc, values, nulls);
	write_members(node->attributes, values, nulls, out, NULL);
	pfree(values);
	pfree(nulls);
}

static inline void
write_float(StringInfo out, float8 value, bool single)
{
	bool		quoted = isnan(value) || isinf(value);

	if (quoted)
		appendStringInfoChar(out, '"');
	if (single)
		append_float4(out, (float4) value);
	else
		append_float8(out, value);
	if (quoted)
		appendStringInfoChar(out, '"');
}

static void
write_styled(const JsonNode *node, Datum value, StringInfo out)
{
	const JsonWriter *writer = node->writer;
	StringInfoData text;

	if (style_is_number(&writer->style, node->type))
	{
		style_append(out, &writer->style, node->type, node->typmod, writer->zone, value);
		return;
	}
	initStringInfo(&text);
	style_append(&text, &writer->style, node->type, node->typmod, writer->zone, value);
	json_write_utf8(out, text.data, text.len);
	pfree(text.data);
}

static void
write_node(JsonNode *node, Datum value, StringInfo out)
{
	struct varlena *varlena;
	char	   *text;

	switch (node->class)
	{
		case OUTPUT_BOOL:
			if (DatumGetBool(value))
				append_bytes(out, "true", 4);
			else
				append_bytes(out, "false", 5);
			break;
		case OUTPUT_INT2:
			enlargeStringInfo(out, 8);
			out->len += pg_itoa(DatumGetInt16(value), out->data + out->len);
			break;
		case OUTPUT_INT4:
			enlargeStringInfo(out, 16);
			out->len += pg_ltoa(DatumGetInt32(value), out->data + out->len);
			break;
		case OUTPUT_INT8:
			enlargeStringInfo(out, 24);
			out->len += pg_lltoa(DatumGetInt64(value), out->data + out->len);
			break;
		case OUTPUT_FLOAT4:
			write_float(out, DatumGetFloat4(value), true);
			break;
		case OUTPUT_FLOAT8:
			write_float(out, DatumGetFloat8(value), false);
			break;
		case OUTPUT_NUMERIC:
			append_numeric_datum(out, value, node->writer->plain_decimals);
			break;
		case OUTPUT_TEXT:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			json_write_string(out, VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
			if ((Pointer) varlena != DatumGetPointer(value))
				pfree(varlena);
			break;
		case OUTPUT_BYTEA:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			appendStringInfoChar(out, '"');
			append_base64(out, VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
			appendStringInfoChar(out, '"');
			if ((Pointer) varlena != DatumGetPointer(value))
				pfree(varlena);
			break;
		case OUTPUT_DATE:
			append_byte(out, '"');
			append_date(out, DatumGetDateADT(value));
			append_byte(out, '"');
			break;
		case OUTPUT_TIME:
			append_byte(out, '"');
			append_time(out, DatumGetTimeADT(value));
			append_byte(out, '"');
			break;
		case OUTPUT_TIMESTAMP:
		case OUTPUT_TIMESTAMPTZ:
			append_byte(out, '"');
			append_timestamp(out, DatumGetTimestamp(value), node->writer->iso_timestamps ? 'T' : ' ',
							 node->class == OUTPUT_TIMESTAMPTZ ? "Z" : "");
			append_byte(out, '"');
			break;
		case OUTPUT_JSON:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			write_json(out, VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
			if ((Pointer) varlena != DatumGetPointer(value))
				pfree(varlena);
			break;
		case OUTPUT_JSONB:
			write_jsonb(out, DatumGetJsonbP(value));
			break;
		case OUTPUT_ARRAY:
			write_array(node, value, out);
			break;
		case OUTPUT_COMPOSITE:
			write_composite(node, value, out);
			break;
		case OUTPUT_STYLED:
			write_styled(node, value, out);
			break;
		case OUTPUT_OTHER:
			text = value_output_text(node->output, value);
			json_write_string(out, text, strlen(text));
			pfree(text);
			break;
	}
}

static void
write_members(const JsonWriter *writer, const Datum *values, const bool *isnull, StringInfo out, const char **column)
{
	bool		first = true;

	check_stack_depth();
	append_byte(out, '{');
	for (int i = 0; i < writer->nmembers; i++)
	{
		const JsonMember *member = &writer->members[i];

		if (isnull[member->index] && writer->skip_nulls)
			continue;
		if (column)
			*column = member->column;
		if (!first)
			append_byte(out, ',');
		first = false;
		append_bytes(out, member->lead, member->lead_len);
		if (isnull[member->index])
			append_bytes(out, "null", 4);
		else
			write_node(member->node, values[member->index], out);
	}
	append_byte(out, '}');
}

/* === Creation =============================================================== */

static JsonNode *node_create(const JsonWriter *writer, Oid type, int32 typmod);

/* Of arrays, too */
static void
check_decimal(const FormatColumn *column)
{
	int32		typmod = column->typmod;
	Oid			type = getBaseTypeAndTypmod(column->type, &typmod);
	Oid			element = array_element_type(type);

	if (OidIsValid(element))
		type = getBaseTypeAndTypmod(element, &typmod);
	if (type == NUMERICOID)
		check_base64_scale(typmod, column->column);
}

static void
members_create(JsonWriter *writer, int n, const FormatColumn *columns)
{
	writer->nmembers = n;
	writer->members = palloc0(Max(n, 1) * sizeof(JsonMember));
	for (int i = 0; i < n; i++)
	{
		JsonMember *member = &writer->members[i];
		StringInfoData lead;

		initStringInfo(&lead);
		json_write_string(&lead, columns[i].field, strlen(columns[i].field));
		appendStringInfoChar(&lead, ':');
		member->lead = lead.data;
		member->lead_len = lead.len;
		member->index = columns[i].index;
		member->column = columns[i].column;
		if (writer->style.decimal == DECIMAL_BASE64)
			check_decimal(&columns[i]);
		member->node = node_create(writer, columns[i].type, columns[i].typmod);
	}
}

static void
composite_create(JsonNode *node, Oid type, int32 typmod)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(type, typmod);
	FormatColumn *columns = palloc0(Max(desc->natts, 1) * sizeof(FormatColumn));
	int			n = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		columns[n].index = i;
		columns[n].field = columns[n].column = NameStr(attribute->attname);
		columns[n].type = attribute->atttypid;
		columns[n].typmod = attribute->atttypmod;
		n++;
	}
	node->desc = desc;
	node->attributes = palloc(sizeof(JsonWriter));
	*node->attributes = *node->writer;
	members_create(node->attributes, n, columns);
	pfree(columns);
}

static JsonNode *
node_create(const JsonWriter *writer, Oid type, int32 typmod)
{
	JsonNode   *node = palloc0(sizeof(JsonNode));

	check_stack_depth();
	node->writer = writer;
	type = getBaseTypeAndTypmod(type, &typmod);
	node->type = type;
	node->typmod = typmod;
	node->class = output_class(&writer->style, type);
	switch (node->class)
	{
		case OUTPUT_ARRAY:
			node->element_type = array_element_type(type);
			node->element = node_create(writer, node->element_type, typmod);
			get_typlenbyvalalign(node->element_type, &node->element_len, &node->element_byval, &node->element_align);
			break;
		case OUTPUT_COMPOSITE:
			composite_create(node, type, typmod);
			break;
		case OUTPUT_OTHER:
			node->output = value_output_create(type);
			break;
		default:
			break;
	}
	return node;
}

JsonWriter *
json_writer_create(const EncoderSpec *spec, const ValueStyle *style)
{
	JsonWriter *writer = palloc0(sizeof(JsonWriter));
	ListCell   *lc;

	writer->style = *style;
	value_style_parse(spec->options, &writer->style);
	writer->zone = pg_tzset(spec->time_zone);
	foreach(lc, spec->options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "encode_decimal_as_plain_number") == 0)
			writer->plain_decimals = defGetBoolean(option);
		else if (strcmp(option->defname, "encode_ignore_null_fields") == 0)
			writer->skip_nulls = defGetBoolean(option);
		else if (strcmp(option->defname, "timestamp_format_standard") == 0)
			writer->iso_timestamps = strcmp(defGetString(option), "ISO-8601") == 0;
	}
	members_create(writer, spec->ncolumns, spec->columns);
	return writer;
}

bool
json_writer_skips_nulls(const JsonWriter *writer)
{
	return writer->skip_nulls;
}

void
json_write_row(JsonWriter *writer, const Datum *values, const bool *isnull, StringInfo out, const char **column)
{
	write_members(writer, values, isnull, out, column);
	*column = NULL;
}

Encoder *
json_encoder_create(const EncoderSpec *spec)
{
	JsonEncoder *encoder = palloc0(sizeof(JsonEncoder));

	encoder->writer = json_writer_create(spec, &(ValueStyle) {0});
	return &encoder->base;
}

bool
json_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	json_write_row(((JsonEncoder *) base)->writer, values, isnull, bytes, column);
	return true;
}
