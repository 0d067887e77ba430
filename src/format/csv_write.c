/*
 * csv_write.c
 *	  Format "csv", writing: the mirror of csv.c, with the bytes of Flink's sinks.
 *
 * Flink writes some values so that they are read back as others (an empty string as
 * NULL, an element that holds the delimiter as two).  These get quotes where quotes
 * help, and are an error where nothing does; what is written is read back the same.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "format/csv.h"
#include "format/formats.h"
#include "format/value_output.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* How values of one type are written. */
typedef struct CsvNode CsvNode;
struct CsvNode
{
	OutputClass class;
	Oid			type;			/* a domain's base type */
	int32		typmod;
	ValueOutput *output;		/* OUTPUT_OTHER, which json is as well */

	/* arrays */
	CsvNode    *element;
	Oid			element_type;
	int16		element_len;
	bool		element_byval;
	char		element_align;

	/* composites */
	TupleDesc	desc;
	CsvNode   **attributes;		/* per attribute, NULL for dropped ones */
};

typedef struct CsvColumn
{
	CsvNode    *node;
	int			index;			/* in the arrays of values */
	const char *name;
} CsvColumn;

typedef struct CsvEncoder
{
	Encoder		base;
	CsvOptions	options;
	int			min_safe;		/* characters below get quotes */
	int			escape;			/* as do these two; -1: none */
	int			quote;
	pg_tz	   *zone;
	StringInfoData text;		/* of the field at hand, in UTF-8 */
	int			ncolumns;
	CsvColumn  *columns;
} CsvEncoder;

/* Flink's CSV library quotes longer texts without looking at them. */
#define MAX_UNQUOTED 24

/* === Creation =============================================================== */

static CsvNode *
node_create(const ValueStyle *style, Oid type, int32 typmod, bool nested)
{
	CsvNode    *node = palloc0(sizeof(CsvNode));

	node->type = type = getBaseTypeAndTypmod(type, &typmod);
	node->typmod = typmod;
	node->class = output_class(style, type);
	switch (node->class)
	{
		case OUTPUT_ARRAY:
			if (nested)
				break;
			node->element_type = array_element_type(type);
			node->element = node_create(style, node->element_type, typmod, true);
			get_typlenbyvalalign(node->element_type, &node->element_len, &node->element_byval, &node->element_align);
			return node;
		case OUTPUT_COMPOSITE:
			if (nested)
				break;
			node->desc = lookup_rowtype_tupdesc_copy(type, typmod);
			node->attributes = palloc0(Max(node->desc->natts, 1) * sizeof(CsvNode *));
			for (int i = 0; i < node->desc->natts; i++)
			{
				Form_pg_attribute attribute = TupleDescAttr(node->desc, i);

				if (!attribute->attisdropped)
					node->attributes[i] = node_create(style, attribute->atttypid, attribute->atttypmod, true);
			}
			return node;
		case OUTPUT_JSON:
		case OUTPUT_JSONB:
		case OUTPUT_OTHER:
			break;
		default:
			return node;
	}
	node->class = OUTPUT_OTHER;
	node->output = value_output_create(type);
	return node;
}

Encoder *
csv_encoder_create(const EncoderSpec *spec)
{
	CsvEncoder *encoder = palloc0(sizeof(CsvEncoder));
	CsvOptions *options = &encoder->options;

	csv_options_parse(spec->options, options);
	encoder->zone = pg_tzset(spec->time_zone);
	if (options->null_literal)
		options->null_literal = text_to_utf8(options->null_literal, &options->null_len);
	encoder->quote = options->syntax.quote;
	encoder->escape = options->syntax.escape;
	encoder->min_safe = Max(Max(options->syntax.delimiter, encoder->quote), '\n') + 1;
	initStringInfo(&encoder->text);
	encoder->ncolumns = spec->ncolumns;
	encoder->columns = palloc0(Max(spec->ncolumns, 1) * sizeof(CsvColumn));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		encoder->columns[i].node = node_create(&options->style, spec->columns[i].type, spec->columns[i].typmod, false);
		encoder->columns[i].index = spec->columns[i].index;
		encoder->columns[i].name = spec->columns[i].column;
	}
	return &encoder->base;
}

/* === Values ================================================================= */

static void append_node(CsvEncoder *encoder, CsvNode *node, Datum value, StringInfo out);

static void
append_utf8(StringInfo out, const char *text, Size len)
{
	const char *utf8 = text_to_utf8(text, &len);

	appendBinaryStringInfo(out, utf8, (int) len);
	if (utf8 != text)
		pfree((char *) utf8);
}

/*
 * An element of an array or an attribute of a composite.  These have no quotes, so
 * some texts have no form.  'alone': nothing at all would be an empty array.
 */
static void
append_part(CsvEncoder *encoder, CsvNode *node, Datum value, bool isnull, bool alone, StringInfo out)
{
	const CsvOptions *options = &encoder->options;
	const char *part;
	Size		len;
	int			start = out->len;
	const char *without = NULL;

	if (!isnull)
		append_node(encoder, node, value, out);
	else if (options->null_literal)
		appendBinaryStringInfo(out, options->null_literal, (int) options->null_len);
	part = out->data + start;
	len = out->len - start;
	if (memchr(part, options->array_delimiter, len))
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("an element holds the array element delimiter \"%c\"", options->array_delimiter),
				 errhint("Elements have no quotes; use a character that they don't hold as array_element_delimiter.")));
	if (!isnull && csv_is_null(options, part, len))
		without = len > 0 ? _("an element that reads like the null literal") : _("an empty element");
	else if (alone && len == 0)
		without = isnull ? _("an array of a single NULL") : _("an array of a single empty element");
	if (without)
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("%s cannot be told from something else", without),
				 errhint("Elements have no quotes; use a null_literal that no element is.")));
}

static void
append_array(CsvEncoder *encoder, CsvNode *node, Datum value, StringInfo out)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_ELEMENT_ERROR),
				 errmsg("an array of %d dimensions has no form in CSV", ARR_NDIM(array)),
				 errhint("Arrays of one dimension have.")));
	if (ARR_NDIM(array) == 0)
		return;
	deconstruct_array(array, node->element_type, node->element_len, node->element_byval, node->element_align,
					  &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			appendStringInfoChar(out, encoder->options.array_delimiter);
		append_part(encoder, node->element, values[i], nulls[i], n == 1, out);
	}
	pfree(values);
	pfree(nulls);
}

static void
append_composite(CsvEncoder *encoder, CsvNode *node, Datum value, StringInfo out)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	HeapTupleData tuple = {0};
	Datum	   *values = palloc(Max(node->desc->natts, 1) * sizeof(Datum));
	bool	   *nulls = palloc(Max(node->desc->natts, 1) * sizeof(bool));
	bool		first = true;

	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, node->desc, values, nulls);
	for (int i = 0; i < node->desc->natts; i++)
	{
		if (node->attributes[i] == NULL)
			continue;
		if (!first)
			appendStringInfoChar(out, encoder->options.array_delimiter);
		first = false;
		append_part(encoder, node->attributes[i], values[i], nulls[i], false, out);
	}
	pfree(values);
	pfree(nulls);
}

static void
append_node(CsvEncoder *encoder, CsvNode *node, Datum value, StringInfo out)
{
	char		buf[MAXINT8LEN + 1];
	char	   *text;
	struct varlena *varlena;

	switch (node->class)
	{
		case OUTPUT_BOOL:
			appendStringInfoString(out, DatumGetBool(value) ? "true" : "false");
			break;
		case OUTPUT_INT2:
			appendBinaryStringInfo(out, buf, pg_ltoa(DatumGetInt16(value), buf));
			break;
		case OUTPUT_INT4:
			appendBinaryStringInfo(out, buf, pg_ltoa(DatumGetInt32(value), buf));
			break;
		case OUTPUT_INT8:
			appendBinaryStringInfo(out, buf, pg_lltoa(DatumGetInt64(value), buf));
			break;
		case OUTPUT_FLOAT4:
			append_float4(out, DatumGetFloat4(value));
			break;
		case OUTPUT_FLOAT8:
			append_float8(out, DatumGetFloat8(value));
			break;
		case OUTPUT_NUMERIC:
			append_numeric(out, DatumGetNumeric(value), encoder->options.plain_decimals);
			break;
		case OUTPUT_TEXT:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			append_utf8(out, VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
			if ((Pointer) varlena != DatumGetPointer(value))
				pfree(varlena);
			break;
		case OUTPUT_BYTEA:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			append_base64(out, VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
			if ((Pointer) varlena != DatumGetPointer(value))
				pfree(varlena);
			break;
		case OUTPUT_DATE:
			append_date(out, DatumGetDateADT(value));
			break;
		case OUTPUT_TIME:
			append_time(out, DatumGetTimeADT(value));
			break;
		case OUTPUT_TIMESTAMP:
			append_timestamp(out, DatumGetTimestamp(value), ' ', "");
			break;
		case OUTPUT_TIMESTAMPTZ:
			append_timestamp(out, DatumGetTimestampTz(value), ' ', "Z");
			break;
		case OUTPUT_STYLED:
			style_append(out, &encoder->options.style, node->type, node->typmod, encoder->zone, value);
			break;
		case OUTPUT_JSON:
		case OUTPUT_JSONB:
		case OUTPUT_OTHER:
			text = value_output_text(node->output, value);
			append_utf8(out, text, strlen(text));
			pfree(text);
			break;
		case OUTPUT_ARRAY:
			append_array(encoder, node, value, out);
			break;
		case OUTPUT_COMPOSITE:
			append_composite(encoder, node, value, out);
			break;
	}
}

/* === Fields ================================================================= */

/* Would Flink quote this text? It counts UTF-16 units. */
static bool
looks_unsafe(const CsvEncoder *encoder, const char *text, Size len)
{
	int			units = 0;

	for (Size i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c < encoder->min_safe || c == encoder->escape || (c == '\\' && encoder->escape < 0))
			return true;
		units += ((c & 0xc0) != 0x80) + (c >= 0xf0);
		if (units > MAX_UNQUOTED)
			return true;
	}
	return false;
}

/* Must this text be quoted (or escaped) to be read back as what it is? */
static bool
is_unsafe(const CsvEncoder *encoder, const char *text, Size len, bool first)
{
	const CsvSyntax *syntax = &encoder->options.syntax;

	if (csv_is_null(&encoder->options, text, len))
		return true;
	if (len > 0 && (unsigned char) text[0] == encoder->quote)
		return true;			/* quotes within a text mean nothing */
	for (Size i = 0; i < len; i++)
	{
		if (syntax->ends_run[(unsigned char) text[i]])
			return true;
	}
	if (first && len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
		return true;			/* would pass for a byte-order mark */
	if (first && syntax->comments)
	{
		Size		i = 0;

		while (i < len && (text[i] == ' ' || text[i] == '\t'))
			i++;
		return i < len && text[i] == '#';
	}
	return false;
}

static void
append_quoted(const CsvEncoder *encoder, const char *text, Size len, StringInfo out)
{
	appendStringInfoChar(out, (char) encoder->quote);
	for (Size i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c == encoder->quote || c == encoder->escape)
			appendStringInfoCharMacro(out, (char) c);
		appendStringInfoCharMacro(out, (char) c);
	}
	appendStringInfoChar(out, (char) encoder->quote);
}

/* Without quotes, what is unsafe may have a form by the escape character. */
static void
append_escaped(const CsvEncoder *encoder, const char *text, Size len, bool first, StringInfo out)
{
	const CsvSyntax *syntax = &encoder->options.syntax;
	int			start = out->len;

	for (Size i = 0; i < len; i++)
	{
		char		c = text[i];

		if (syntax->ends_run[(unsigned char) c] || (first && i == 0 && (c == '#' || c == ' ' || c == '\t' || IS_HIGHBIT_SET(c))))
		{
			if (encoder->escape < 0 || (c != '\0' && strchr("nrt0", c)))
				ereport(ERROR,
						(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
						 errmsg("without quotes a text cannot hold the delimiter, a line end or the look of a comment"),
						 errhint("Use a quote_character or an escape_character.")));
			appendStringInfoCharMacro(out, (char) encoder->escape);
			c = c == '\n' ? 'n' : c == '\r' ? 'r' : c;
		}
		appendStringInfoCharMacro(out, c);
	}
	if (csv_is_null(&encoder->options, out->data + start, out->len - start))
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("without quotes %s cannot be told from NULL", len > 0 ? "the null literal" : "an empty text"),
				 errhint("Use a null_literal that no value is.")));
}

static void
append_field(CsvEncoder *encoder, const CsvColumn *column, bool first, StringInfo out)
{
	const char *text = encoder->text.data;
	Size		len = encoder->text.len;
	bool		unsafe = is_unsafe(encoder, text, len, first);

	if (encoder->quote < 0)
	{
		if (unsafe)
			append_escaped(encoder, text, len, first, out);
		else
			appendBinaryStringInfo(out, text, (int) len);
	}
	else if (unsafe || (column->node->class >= OUTPUT_TEXT && looks_unsafe(encoder, text, len)))
		append_quoted(encoder, text, len, out);
	else
		appendBinaryStringInfo(out, text, (int) len);
}

bool
csv_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	CsvEncoder *encoder = (CsvEncoder *) base;
	int			start = bytes->len;

	for (int i = 0; i < encoder->ncolumns; i++)
	{
		const CsvColumn *c = &encoder->columns[i];

		*column = c->name;
		if (i > 0)
			appendStringInfoChar(bytes, (char) encoder->options.syntax.delimiter);
		if (isnull[c->index])
		{
			appendBinaryStringInfo(bytes, encoder->options.null_literal ? encoder->options.null_literal : "",
								   (int) encoder->options.null_len);
			continue;
		}
		resetStringInfo(&encoder->text);
		append_node(encoder, c->node, values[c->index], &encoder->text);
		append_field(encoder, c, i == 0, bytes);
	}
	*column = NULL;

	/* no bytes at all are no record: an empty field by itself is an empty line */
	if (encoder->ncolumns == 1 && bytes->len == start)
		appendStringInfoChar(bytes, '\n');
	return true;
}
