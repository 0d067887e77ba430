/*
 * csv.c
 *	  Format "csv", reading: one message is one record, columns go by their place.
 *
 * NULL is what COPY takes for it: an empty field without quotes, or the null literal
 * without quotes.  Arrays and composites are one field, split once more by the array
 * element delimiter; what is nested deeper is PostgreSQL's text form.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "compat.h"
#include "format/csv.h"
#include "format/formats.h"
#include "format/lenient.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

typedef enum TargetClass
{
	TARGET_SCALAR,
	TARGET_BYTEA,
	TARGET_ARRAY,
	TARGET_COMPOSITE
} TargetClass;

/* How fields become values of one type. */
typedef struct CsvTarget CsvTarget;
struct CsvTarget
{
	TargetClass class;
	Oid			type;			/* a domain's base type */
	ValueInput *input;			/* TARGET_SCALAR: of that type */
	BinaryFormat binary;		/* TARGET_BYTEA */
	Oid			domain;			/* InvalidOid: not a domain */
	void	   *domain_cache;
	MemoryContext context;		/* of domain_cache */

	/* arrays */
	CsvTarget  *element;
	Oid			element_type;
	int16		element_len;
	bool		element_byval;
	char		element_align;

	/* composites */
	TupleDesc	desc;
	int			nattributes;	/* that are not dropped */
	CsvTarget **attributes;		/* per attribute, NULL for dropped ones */
};

typedef struct CsvColumn
{
	CsvTarget  *target;
	int			position;		/* of its field */
	int			index;			/* in the sink's arrays */
	const char *name;
} CsvColumn;

typedef struct CsvDecoder
{
	Decoder		base;
	CsvOptions	options;
	bool		is_key;
	int			nfields;
	CsvField   *fields;			/* of the message at hand: nfields and one more */
	int			ncolumns;
	CsvColumn  *columns;
} CsvDecoder;

static const FormatOption csv_options[] = {
	{"field_delimiter", "char", "stands between fields; default ,", "delimiter"},
	{"quote_character", "char", "encloses fields; default \"", "quote"},
	{"disable_quote_character", "bool", "fields have no quotes"},
	{"escape_character", "char", "takes the meaning from the character behind it; default none", "escape"},
	{"array_element_delimiter", "char", "stands between the elements of arrays and attributes of composites; default ;"},
	{"null_literal", "text", "what NULL is written as; default an empty field without quotes"},
	{"allow_comments", "bool", "lines that begin with # are none"},
	{IGNORE_PARSE_ERRORS, "bool", "a field that its column cannot take, or that is missing, is NULL; a message that cannot be parsed is skipped"},
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	TIME_UNIT_OPTION,
	{"binary_format", "base64|hex", "how fields hold bytea"},
	{"nul_handling", "error|strip", "what NUL bytes mean; PostgreSQL's text cannot hold them"},
	{"write_bigdecimal_in_scientific_notation", "bool", "numeric is written without trailing zeros, with an exponent where that is shorter"},
	{NULL}
};

/* === Options ================================================================ */

static bool
option_is_true(List *options, const char *name)
{
	const char *value = format_option(options, name);

	return value && strcmp(value, "true") == 0;
}

static int
option_character(List *options, const char *name, int otherwise)
{
	const char *value = format_option(options, name);

	return value ? (unsigned char) *value : otherwise;
}

void
csv_options_parse(List *options, CsvOptions *result)
{
	bool		no_quote = option_is_true(options, "disable_quote_character");
	const char *null_literal = format_option(options, "null_literal");
	const char *empty_value = format_option(options, "empty_value");

	memset(result, 0, sizeof(*result));
	csv_syntax_init(&result->syntax, option_character(options, "field_delimiter", ','),
					no_quote ? -1 : option_character(options, "quote_character", '"'),
					option_character(options, "escape_character", -1),
					option_is_true(options, "allow_comments"));
	result->array_delimiter = (char) option_character(options, "array_element_delimiter", ';');
	if (null_literal && null_literal[0])
	{
		result->null_literal = null_literal;
		result->null_len = strlen(null_literal);
	}
	result->ignore_errors = option_is_true(options, "ignore_parse_errors");
	result->plain_decimals = !option_is_true(options, "write_bigdecimal_in_scientific_notation");
	result->empty_value = empty_value ? empty_value : "error";
	value_style_parse(options, &result->style);
}

static void
options_raise(bool is_key, const char *first, const char *second, const char *hint)
{
	const char *part = is_key ? "key" : "value";

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
			 errmsg("options \"%s_csv_%s\" and \"%s_csv_%s\" do not go together", part, first, part, second),
			 errhint("%s", hint)));
}

static void
csv_check_options(List *options, bool is_key)
{
	static const char *const characters[] = {"field_delimiter", "quote_character", "escape_character"};
	CsvOptions	parsed;
	int			c[3];

	csv_options_parse(options, &parsed);
	if (format_option(options, "quote_character") && parsed.syntax.quote < 0)
		options_raise(is_key, "quote_character", "disable_quote_character", "Give either of them.");
	c[0] = parsed.syntax.delimiter;
	c[1] = parsed.syntax.quote;
	c[2] = parsed.syntax.escape;	/* none if it is the quote */
	for (int i = 0; i < 3; i++)
	{
		if (c[i] == '\n' || c[i] == '\r')
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("option \"%s_csv_%s\" cannot be a line end", is_key ? "key" : "value", characters[i]),
					 errhint("A line end ends the record.")));
		if (c[i] == '#' && parsed.syntax.comments)
			options_raise(is_key, characters[i], "allow_comments", "Comments begin with #.");
		for (int j = 0; j < i; j++)
		{
			if (c[i] >= 0 && c[i] == c[j])
				options_raise(is_key, characters[j], characters[i], "They need different characters.");
		}
	}
	if (parsed.syntax.escape > 0 && strchr("nrt0", parsed.syntax.escape))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"%s_csv_escape_character\" cannot be \"%c\"", is_key ? "key" : "value", parsed.syntax.escape),
				 errhint("Behind an escape character n, r, t and 0 stand for control characters.")));
	for (Size i = 0; i < parsed.null_len; i++)
	{
		unsigned char c = (unsigned char) parsed.null_literal[i];

		if (c == parsed.syntax.delimiter || c == '\n' || c == '\r' || (i == 0 && c == parsed.syntax.quote) ||
			(i == 0 && c == '#' && parsed.syntax.comments))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("option \"%s_csv_null_literal\" cannot be \"%s\"", is_key ? "key" : "value", parsed.null_literal),
					 errhint("It is written without quotes: it cannot begin with a quote or a comment's #, and cannot hold the delimiter or a line end.")));
	}
	if (is_key && strcmp(parsed.empty_value, "error") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"key_csv_empty_value\" takes nothing but 'error'"),
				 errhint("What a message without a row means is said by its value.")));
}

/* === Creation =============================================================== */

static CsvTarget *
target_create(const CsvOptions *options, Oid type, int32 typmod, Oid collation, bool nested, const char *time_zone)
{
	CsvTarget  *target = palloc0(sizeof(CsvTarget));
	FormatColumn base = {0};

	check_stack_depth();
	target->context = CurrentMemoryContext;
	target->type = getBaseTypeAndTypmod(type, &typmod);
	if (target->type != type)
		target->domain = type;
	if (target->type == BYTEAOID)
	{
		target->class = TARGET_BYTEA;
		target->binary = options->style.binary;
		return target;
	}
	if (!nested)
	{
		target->element_type = array_element_type(target->type);
		if (OidIsValid(target->element_type))
		{
			target->class = TARGET_ARRAY;
			target->element = target_create(options, target->element_type, typmod, collation, true, time_zone);
			get_typlenbyvalalign(target->element_type, &target->element_len, &target->element_byval,
								 &target->element_align);
			return target;
		}
		if (get_typtype(target->type) == TYPTYPE_COMPOSITE)
		{
			target->class = TARGET_COMPOSITE;
			target->desc = lookup_rowtype_tupdesc_copy(target->type, typmod);
			target->attributes = palloc0(Max(target->desc->natts, 1) * sizeof(CsvTarget *));
			for (int i = 0; i < target->desc->natts; i++)
			{
				Form_pg_attribute attribute = TupleDescAttr(target->desc, i);

				if (attribute->attisdropped)
					continue;
				target->attributes[i] = target_create(options, attribute->atttypid, attribute->atttypmod,
													  attribute->attcollation, true, time_zone);
				target->nattributes++;
			}
			return target;
		}
	}
	base.type = target->type;
	base.typmod = typmod;
	base.collation = collation;
	base.style = options->style;
	target->input = value_input_create(&base, time_zone);
	return target;
}

static Decoder *
csv_create(const DecoderSpec *spec)
{
	CsvDecoder *decoder = palloc0(sizeof(CsvDecoder));

	csv_options_parse(spec->options, &decoder->options);
	decoder->base.routine = &csv_format;
	decoder->base.decides = decoder->options.syntax.comments || strcmp(decoder->options.empty_value, "error") != 0;
	decoder->base.ignores_errors = decoder->options.ignore_errors;
	decoder->is_key = spec->is_key;
	if (decoder->options.null_literal && GetDatabaseEncoding() != PG_UTF8)
	{
		/* fields are compared as they come, in UTF-8 */
		decoder->options.null_literal = pg_server_to_any(decoder->options.null_literal, (int) decoder->options.null_len, PG_UTF8);
		decoder->options.null_len = strlen(decoder->options.null_literal);
	}
	decoder->nfields = spec->nfields;
	decoder->fields = palloc((spec->nfields + 1) * sizeof(CsvField));
	decoder->ncolumns = spec->ncolumns;
	decoder->columns = palloc0(Max(spec->ncolumns, 1) * sizeof(CsvColumn));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const FormatColumn *column = &spec->columns[i];

		decoder->columns[i].target = target_create(&decoder->options, column->type, column->typmod, column->collation, false, spec->time_zone);
		decoder->columns[i].position = column->position;
		decoder->columns[i].index = column->index;
		decoder->columns[i].name = column->column;
	}
	return &decoder->base;
}

/* === Values ================================================================= */

/* Text in UTF-8 -> a value of a scalar type. */
static inline Datum
scalar_datum(const CsvTarget *target, const char *text, Size len)
{
	char	   *converted = NULL;
	Datum		result;

	if (unlikely(GetDatabaseEncoding() != PG_UTF8))
	{
		converted = pg_any_to_server(text, (int) len, PG_UTF8);
		if (converted == text)
			converted = NULL;
		else
		{
			text = converted;
			len = strlen(converted);
		}
	}
	if (target->class == TARGET_BYTEA)
		result = binary_input(target->binary, text, len);
	else
		result = value_input(target->input, text, len, false);
	if (converted)
		pfree(converted);
	return result;
}

typedef struct Conversion
{
	const CsvTarget *target;
	const char *text;
	Size		len;
	Datum		result;
} Conversion;

static void
convert(void *arg)
{
	Conversion *conversion = arg;

	conversion->result = scalar_datum(conversion->target, conversion->text, conversion->len);
}

/* The same, NULL where the text is no value of the type. */
static Datum
scalar_or_null(const CsvTarget *target, const char *text, Size len, bool *isnull)
{
	Conversion	conversion = {.target = target, .text = text, .len = len};

	*isnull = !lenient_convert(convert, &conversion);
	return conversion.result;
}

static Datum target_datum(const CsvDecoder *decoder, CsvTarget *target, const char *text, Size len, bool *isnull);

/* A part of an array or composite: it has no quotes of its own. */
static inline Datum
part_datum(const CsvDecoder *decoder, CsvTarget *target, const char *text, Size len, bool *isnull)
{
	*isnull = csv_is_null(&decoder->options, text, len);
	return target_datum(decoder, target, text, len, isnull);
}

/* The end of the part at p */
static inline const char *
part_end(const CsvDecoder *decoder, const char *p, const char *end)
{
	const char *delimiter = p < end ? memchr(p, decoder->options.array_delimiter, end - p) : NULL;

	return delimiter ? delimiter : end;
}

static Datum
array_datum(const CsvDecoder *decoder, CsvTarget *target, const char *text, Size len)
{
	const char *end = text + len;
	const char *p = text;
	int			max = 1;
	int			n = 0;
	int			dims[1];
	int			lower[1] = {1};
	Datum	   *values;
	bool	   *nulls;
	ArrayType  *result;

	if (len == 0)
		return PointerGetDatum(construct_empty_array(target->element_type));
	for (const char *q = part_end(decoder, text, end); q < end; q = part_end(decoder, q + 1, end))
		max++;
	if (max > (int) (MaxAllocSize / sizeof(Datum)))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array of %d elements is too long", max)));
	values = palloc(max * sizeof(Datum));
	nulls = palloc(max * sizeof(bool));
	for (;;)
	{
		const char *q = part_end(decoder, p, end);

		CHECK_FOR_INTERRUPTS();
		values[n] = part_datum(decoder, target->element, p, q - p, &nulls[n]);
		n++;
		if (q == end)
			break;
		p = q + 1;
	}
	dims[0] = n;
	result = construct_md_array(values, nulls, 1, dims, lower, target->element_type, target->element_len,
								target->element_byval, target->element_align);
	pfree(values);
	pfree(nulls);
	return PointerGetDatum(result);
}

static Datum
composite_datum(const CsvDecoder *decoder, CsvTarget *target, const char *text, Size len, bool *isnull)
{
	TupleDesc	desc = target->desc;
	const char *end = text + len;
	const char *p = text;		/* NULL: no part is left */
	int			n = target->nattributes > 0 || len > 0;
	Datum	   *values;
	bool	   *nulls;
	HeapTuple	tuple;

	for (const char *q = part_end(decoder, text, end); q < end; q = part_end(decoder, q + 1, end))
		n++;
	if (n > target->nattributes && decoder->options.ignore_errors)
	{
		*isnull = true;
		return (Datum) 0;
	}
	if (n > target->nattributes || (n < target->nattributes && !decoder->options.ignore_errors))
		ereport(ERROR,
				(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
				 errmsg("type %s has %d attributes, the field holds %d", format_type_be(target->type), target->nattributes, n)));
	values = palloc0(Max(desc->natts, 1) * sizeof(Datum));
	nulls = palloc(Max(desc->natts, 1) * sizeof(bool));
	for (int i = 0; i < desc->natts; i++)
	{
		const char *q;

		nulls[i] = true;
		if (target->attributes[i] == NULL)
			continue;
		if (p == NULL)
		{
			values[i] = target_datum(decoder, target->attributes[i], NULL, 0, &nulls[i]);
			continue;
		}
		q = part_end(decoder, p, end);
		values[i] = part_datum(decoder, target->attributes[i], p, q - p, &nulls[i]);
		p = q == end ? NULL : q + 1;
	}
	tuple = heap_form_tuple(desc, values, nulls);
	pfree(values);
	pfree(nulls);
	return HeapTupleGetDatum(tuple);
}

/* Text (not looked at if *isnull) -> a value, which may turn out to be NULL. */
static Datum
target_datum(const CsvDecoder *decoder, CsvTarget *target, const char *text, Size len, bool *isnull)
{
	Datum		result = (Datum) 0;

	if (!*isnull)
	{
		switch (target->class)
		{
			case TARGET_ARRAY:
				result = array_datum(decoder, target, text, len);
				break;
			case TARGET_COMPOSITE:
				result = composite_datum(decoder, target, text, len, isnull);
				break;
			default:
				if (unlikely(decoder->base.lenient))
					result = scalar_or_null(target, text, len, isnull);
				else
					result = scalar_datum(target, text, len);
				break;
		}
	}
	if (unlikely(OidIsValid(target->domain)))
		domain_check(result, *isnull, target->domain, &target->domain_cache, target->context);
	return result;
}

/* === Messages =============================================================== */

static void
fill_columns(CsvDecoder *decoder, int nfields, RowSink *sink)
{
	const CsvOptions *options = &decoder->options;

	for (int i = 0; i < decoder->ncolumns; i++)
	{
		CsvColumn  *column = &decoder->columns[i];
		const CsvField *field = &decoder->fields[column->position];
		const char *text;
		Size		len;
		char	   *copy = NULL;
		bool	   *isnull = &sink->isnull[column->index];

		sink->column = column->name;
		if (column->position >= nfields)
		{
			*isnull = true;
			if (sink->missing)
				sink->missing[column->index] = true;
			sink->values[column->index] = target_datum(decoder, column->target, NULL, 0, isnull);
			continue;
		}
		text = field->text;
		len = field->len;
		*isnull = !field->quoted && csv_is_null(options, text, len);
		if (unlikely(field->escaped) && !*isnull)
		{
			copy = palloc(len);
			len = csv_unescape(&options->syntax, field, copy);
			text = copy;
			if (options->syntax.escape >= 0)
				pg_verify_mbstr(PG_UTF8, text, (int) len, false);	/* \0 */
		}
		sink->values[column->index] = target_datum(decoder, column->target, text, len, isnull);
		if (copy)
			pfree(copy);
	}
	sink->column = NULL;
}

static void
empty_message(const CsvDecoder *decoder, RowSink *sink)
{
	const char *empty_value = decoder->options.empty_value;

	if (strcmp(empty_value, "delete") == 0)
		sink->emit(sink, ROW_DELETE);
	else if (strcmp(empty_value, "error") != 0)
		return;
	else if (decoder->nfields == 0)
		sink->emit(sink, ROW_UPSERT);	/* all columns are in the key */
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("CSV record expected, found an empty message"),
				 decoder->is_key ? 0 : errhint("The option value_csv_empty_value says what such values mean.")));
}

static void
count_raise(const CsvDecoder *decoder, int n)
{
	const char *part = decoder->is_key ? "key" : "value";

	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
			 errmsg("CSV record with a wrong number of fields: %d instead of %d", n, decoder->nfields),
			 n < decoder->nfields ? errhint("With %s_csv_ignore_parse_errors missing fields are NULL.", part) :
			 errhint("Fields go by their place, in the order of the table's columns that are in the %s.", part)));
}

static void
csv_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	CsvDecoder *decoder = (CsvDecoder *) base;
	const CsvSyntax *syntax = &decoder->options.syntax;
	const char *at = bytes;
	int			n;
	CsvError	error;

	if (len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
	{
		bytes += 3;				/* a byte-order mark (case X06) */
		len -= 3;
	}
	if (decoder->options.style.strip_nul)
		bytes = at = strip_nul_bytes(bytes, &len);
	if (len == 0)
	{
		empty_message(decoder, sink);
		return;
	}
	pg_verify_mbstr(PG_UTF8, bytes, (int) len, false);
	error = csv_scan(syntax, bytes, len, decoder->fields, decoder->nfields + 1, &n, &at);
	if (error == CSV_NO_RECORD)
		return;
	if (error != CSV_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid CSV at byte %zu: %s", (Size) (at - bytes) + 1, csv_error_text(error))));

	/* a delimiter behind the last field, as many programs write it */
	if (n == decoder->nfields + 1 && !decoder->fields[n - 1].quoted && decoder->fields[n - 1].len == 0)
		n--;
	if (n > decoder->nfields || (n < decoder->nfields && !decoder->options.ignore_errors))
		count_raise(decoder, n);
	fill_columns(decoder, n, sink);
	sink->emit(sink, ROW_UPSERT);
}

const FormatRoutine csv_format = {
	.name = "csv",
	.positional = true,
	.options = csv_options,
	.check_options = csv_check_options,
	.create = csv_create,
	.decode = csv_decode,
	.create_encoder = csv_encoder_create,
	.encode = csv_encode
};
