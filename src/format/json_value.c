/*
 * json_value.c
 *	  JSON values -> Datums.
 *
 * Text reaches the types' input functions as it stands in the message: numbers
 * keep their digits and scale.  Knows nothing of messages and columns.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "format/json_value.h"
#include "format/lenient.h"
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

typedef enum TargetClass
{
	TARGET_SCALAR,				/* by text; objects and arrays are refused */
	TARGET_STRING,				/* the same, but they become their text */
	TARGET_JSON,
	TARGET_JSONB,
	TARGET_BYTEA,
	TARGET_DECIMAL,				/* strings are Connect's bytes */
	TARGET_ARRAY,
	TARGET_COMPOSITE
} TargetClass;

struct JsonTarget
{
	TargetClass class;
	Oid			type;			/* a domain's base type */
	ValueInput *input;			/* of that type */
	bool		strip_nul;
	int32		typmod;
	ValueStyle	style;
	const bool *lenient;
	Oid			domain;			/* InvalidOid: not a domain */
	void	   *domain_cache;
	MemoryContext context;

	/* arrays */
	JsonTarget *element;
	Oid			element_type;
	int16		element_len;
	bool		element_byval;
	char		element_align;

	/* composites */
	TupleDesc	desc;
	JsonFields *fields;
	int		   *field_of;		/* per attribute, -1 for dropped ones */
	JsonTarget **attributes;
};

/* === Errors ================================================================= */

/*
 * The text at the place of an error, short enough for a message and never more
 * than ASCII: a word or number, a single character, or the byte's value.
 */
static void
found_text(const JsonScan *scan, char *buf, int size)
{
	static const char word_bytes[] = "+-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *p = scan->at;
	int			n = 0;

	while (n < 20 && scan->end - p > n && p[n] != '\0' && strchr(word_bytes, p[n]) != NULL)
		n++;
	if (n > 0)
		snprintf(buf, size, "\"%.*s\"", n, p);
	else if (p == scan->end)
		strlcpy(buf, "the end of the message", size);
	else if ((unsigned char) *p > ' ' && (unsigned char) *p < 0x7f)
		snprintf(buf, size, "\"%c\"", *p);
	else
		snprintf(buf, size, "byte 0x%02x", (unsigned char) *p);
}

void
json_scan_raise(const JsonScan *scan, const char *bytes)
{
	Size		position = scan->at - bytes + 1;
	char		found[40];

	if (scan->error == JSON_TOO_DEEP)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("invalid JSON at byte %zu: nested more than %d levels deep", position, JSON_MAX_DEPTH)));
	found_text(scan, found, sizeof(found));
	switch (scan->error)
	{
		case JSON_BAD_NUMBER:
		case JSON_CONTROL_CHARACTER:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid JSON at byte %zu: %s: %s", position, json_error_text(scan->error), found)));
			break;
		case JSON_BAD_ESCAPE:
		case JSON_BAD_UNICODE_ESCAPE:
		case JSON_UNTERMINATED_STRING:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid JSON at byte %zu: %s", position, json_error_text(scan->error))));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid JSON at byte %zu: %s, found %s", position, json_error_text(scan->error), found)));
	}
	pg_unreachable();
}

static void
escape_raise(JsonError error)
{
	if (error == JSON_NUL_ESCAPE)
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("%s", json_error_text(error)),
				 errhint("The format's option nul_handling 'strip' drops such characters.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid JSON string: %s", json_error_text(error))));
}

static void
shape_raise(const JsonTarget *target, const JsonText *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("a JSON %s cannot become a value of type %s",
					json_kind_name(value->kind), format_type_be(target->type)),
			 value->kind == JK_OBJECT || value->kind == JK_ARRAY ?
			 errhint("Use type jsonb or text for the column to keep nested values.") : 0));
}

/* === Text =================================================================== */

/*
 * The characters of a value in the database encoding: a string's content,
 * anything else as written.  Points into the message where nothing is to be
 * changed; otherwise *copy is palloc'd and the caller's to free.
 */
static inline const char *
value_text(const JsonTarget *target, const JsonText *value, Size *len, char **copy)
{
	const char *text = value->text;

	*len = value->len;
	*copy = NULL;
	if (value->kind == JK_STRING && unlikely(value->escaped))
	{
		char	   *plain = palloc(value->len + 1);
		size_t		plain_len;
		JsonError	error = json_unescape(value, target->strip_nul, plain, &plain_len);

		if (error != JSON_OK)
			escape_raise(error);
		text = *copy = plain;
		*len = plain_len;
	}
	if (unlikely(GetDatabaseEncoding() != PG_UTF8))
	{
		char	   *converted = pg_any_to_server(text, (int) *len, PG_UTF8);

		if (converted != text)
		{
			if (*copy)
				pfree(*copy);
			text = *copy = converted;
			*len = strlen(converted);
		}
	}
	return text;
}

static inline Datum
text_datum(JsonTarget *target, const JsonText *value)
{
	Size		len;
	char	   *copy;
	const char *text = value_text(target, value, &len, &copy);
	Datum		result = value_input(target->input, text, len, value->kind == JK_NUMBER);

	if (unlikely(copy != NULL))
		pfree(copy);
	return result;
}

/* json keeps nested text as it is; that it is valid JSON is known. */
static Datum
json_datum(JsonTarget *target, const JsonText *value)
{
	Size		len;
	char	   *copy;
	const char *text;
	Datum		result;

	if (value->kind == JK_STRING)
		return text_datum(target, value);	/* its content is JSON text (case C08) */
	text = value_text(target, value, &len, &copy);
	result = PointerGetDatum(cstring_to_text_with_len(text, len));
	if (copy)
		pfree(copy);
	return result;
}

/* A string's content is JSON text of its own, with escapes of its own. */
static Datum
jsonb_datum(JsonTarget *target, const JsonText *value)
{
	Size		len;
	char	   *copy;
	JsonText	stripped;
	char	   *text;
	Datum		result;

	if (!target->strip_nul || value->kind < JK_STRING)
		return text_datum(target, value);
	stripped.text = value_text(target, value, &len, &copy);
	stripped.len = (uint32_t) len;
	text = palloc(len + 1);
	len = json_strip_nul_escapes(&stripped, text);
	result = value_input(target->input, text, len, false);
	pfree(text);
	if (copy)
		pfree(copy);
	return result;
}

/* === bytea ================================================================== */

/* Each character up to U+00FF is a byte; what is not has lost its bytes before. */
static Datum
latin1_datum(const JsonText *value)
{
	bytea	   *result = palloc(VARHDRSZ + value->len);
	unsigned char *out = (unsigned char *) VARDATA(result);
	const unsigned char *p = (const unsigned char *) value->text;
	const unsigned char *end = p + value->len;

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
					 errmsg("the character U+%04X is not a byte", c),
					 c == 0xFFFD ? errhint("The producer has replaced bytes that it could not read as text; the value is lost.") :
					 errhint("The format's option binary_format says how messages hold bytes.")));
		*out++ = (unsigned char) c;
		p += len;
	}
	SET_VARSIZE(result, (char *) out - (char *) result);
	return PointerGetDatum(result);
}

static Datum
bytea_datum(JsonTarget *target, const JsonText *value)
{
	Size		len;
	char	   *copy;
	const char *text;
	Datum		result;

	if (value->kind != JK_STRING)
		shape_raise(target, value);
	if (target->style.binary == BINARY_LATIN1)
		return latin1_datum(value);
	text = value_text(target, value, &len, &copy);
	result = binary_input(target->style.binary, text, len);
	if (copy)
		pfree(copy);
	return result;
}

static Datum
decimal_datum(JsonTarget *target, const JsonText *value)
{
	Size		len;
	char	   *copy;
	const char *text;
	Datum		result;

	if (value->kind >= JK_OBJECT)
		shape_raise(target, value);
	if (value->kind != JK_STRING)
		return text_datum(target, value);
	text = value_text(target, value, &len, &copy);
	result = decimal_from_base64(text, len, target->typmod);
	if (copy)
		pfree(copy);
	return result;
}

/* === Arrays ================================================================= */

typedef struct ArrayFill
{
	int			ndims;			/* 0: not known yet */
	int			min_ndims;		/* what empty arrays tell before it is known */
	int			dims[MAXDIM];	/* -1: not known yet */
	int			n;
	int			max;
	Datum	   *values;
	bool	   *nulls;
} ArrayFill;

static void
fill_append(ArrayFill *fill, Datum value, bool isnull)
{
	if (fill->n == fill->max)
	{
		if (fill->max > (int) (MaxAllocSize / sizeof(Datum) / 2))
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("JSON array has too many elements")));
		fill->max *= 2;
		fill->values = repalloc(fill->values, fill->max * sizeof(Datum));
		fill->nulls = repalloc(fill->nulls, fill->max * sizeof(bool));
	}
	fill->values[fill->n] = value;
	fill->nulls[fill->n] = isnull;
	fill->n++;
}

static void
ragged_raise(const JsonTarget *target)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("nested JSON arrays of different lengths cannot become a value of type %s",
					format_type_be(target->type)),
			 errhint("PostgreSQL's arrays are rectangular; use type jsonb for the column to keep other shapes.")));
}

/*
 * Nested arrays are further dimensions, unless the element type itself can hold
 * an array: json and jsonb always, character types where the first element at
 * this depth is no array.
 */
static void
fill_dimension(JsonTarget *target, const JsonText *array, int depth, ArrayFill *fill)
{
	JsonTarget *element = target->element;
	bool		json = element->class == TARGET_JSON || element->class == TARGET_JSONB;
	JsonScan	scan;
	JsonText	value;
	int			n = 0;

	json_scan_init(&scan, array->text, array->len);
	json_scan_array_begin(&scan);
	while (json_scan_array_next(&scan, n == 0, &value))
	{
		bool		nested = value.kind == JK_ARRAY && !json;

		CHECK_FOR_INTERRUPTS();
		if (nested && fill->ndims == depth + 1 && element->class == TARGET_STRING)
			nested = false;		/* the array's text */
		if (fill->ndims == 0 && !nested)
			fill->ndims = depth + 1;
		if (nested ? fill->ndims == depth + 1 : fill->ndims != depth + 1 || fill->min_ndims > depth + 1)
		{
			if (nested)
				shape_raise(element, &value);
			ragged_raise(target);
		}
		if (nested)
		{
			fill->min_ndims = Max(fill->min_ndims, depth + 2);
			if (depth + 1 >= MAXDIM)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("number of array dimensions exceeds the maximum allowed (%d)", MAXDIM)));
			fill_dimension(target, &value, depth + 1, fill);
		}
		else
		{
			bool		isnull;
			Datum		datum = json_value_datum(element, &value, &isnull);

			fill_append(fill, datum, isnull);
		}
		n++;
	}
	if (fill->dims[depth] < 0)
		fill->dims[depth] = n;
	else if (fill->dims[depth] != n)
		ragged_raise(target);
}

static Datum
array_datum(JsonTarget *target, const JsonText *value)
{
	ArrayFill	fill = {.max = 16};
	int			lower[MAXDIM];
	ArrayType  *result;

	if (value->kind == JK_STRING)
		return text_datum(target, value);	/* '{1,2}' */
	if (value->kind != JK_ARRAY)
		shape_raise(target, value);
	for (int i = 0; i < MAXDIM; i++)
	{
		fill.dims[i] = -1;
		lower[i] = 1;
	}
	fill.values = palloc(fill.max * sizeof(Datum));
	fill.nulls = palloc(fill.max * sizeof(bool));
	fill_dimension(target, value, 0, &fill);
	if (fill.n == 0)
		result = construct_empty_array(target->element_type);
	else
		result = construct_md_array(fill.values, fill.nulls, fill.ndims, fill.dims, lower,
									target->element_type, target->element_len,
									target->element_byval, target->element_align);
	pfree(fill.values);
	pfree(fill.nulls);
	return PointerGetDatum(result);
}

/* === Composites ============================================================= */

static Datum
composite_datum(JsonTarget *target, const JsonText *value)
{
	TupleDesc	desc = target->desc;
	JsonText   *found;
	Datum	   *values;
	bool	   *nulls;
	JsonScan	scan;
	HeapTuple	tuple;

	if (value->kind == JK_STRING)
		return text_datum(target, value);	/* '(1,x)' */
	if (value->kind != JK_OBJECT)
		shape_raise(target, value);
	found = palloc((target->fields->n + 1) * sizeof(JsonText));
	values = palloc0(desc->natts * sizeof(Datum));
	nulls = palloc(desc->natts * sizeof(bool));
	json_scan_init(&scan, value->text, value->len);
	if (!json_scan_object(&scan, target->fields, found))
		json_scan_raise(&scan, value->text);
	for (int i = 0; i < desc->natts; i++)
	{
		if (target->field_of[i] < 0)
			nulls[i] = true;
		else
			values[i] = json_value_datum(target->attributes[i], &found[target->field_of[i]], &nulls[i]);
	}
	tuple = heap_form_tuple(desc, values, nulls);
	pfree(found);
	pfree(values);
	pfree(nulls);
	return HeapTupleGetDatum(tuple);
}

/* === One value ============================================================== */

static const bool never = false;

typedef struct Conversion
{
	JsonTarget *target;
	const JsonText *value;
	Datum		result;
} Conversion;

/* What is neither missing nor null, before the domain's say. */
static inline Datum
base_datum(JsonTarget *target, const JsonText *value)
{
	switch (target->class)
	{
		case TARGET_SCALAR:
			if (value->kind >= JK_OBJECT)
				shape_raise(target, value);
			return text_datum(target, value);
		case TARGET_STRING:
			return text_datum(target, value);
		case TARGET_JSON:
			return json_datum(target, value);
		case TARGET_JSONB:
			return jsonb_datum(target, value);
		case TARGET_BYTEA:
			return bytea_datum(target, value);
		case TARGET_DECIMAL:
			return decimal_datum(target, value);
		case TARGET_ARRAY:
			return array_datum(target, value);
		default:
			return composite_datum(target, value);
	}
}

static void
convert(void *arg)
{
	Conversion *conversion = arg;

	conversion->result = base_datum(conversion->target, conversion->value);
}

static Datum
lenient_datum(JsonTarget *target, const JsonText *value, bool *isnull)
{
	Conversion	conversion = {.target = target, .value = value};

	*isnull = !lenient_convert(convert, &conversion);
	return *isnull ? (Datum) 0 : conversion.result;
}

Datum
json_value_datum(JsonTarget *target, const JsonText *value, bool *isnull)
{
	Datum		result = (Datum) 0;

	*isnull = value->kind <= JK_NULL;
	if (unlikely(*target->lenient) && !*isnull)
		result = lenient_datum(target, value, isnull);
	else if (!*isnull)
		result = base_datum(target, value);
	if (OidIsValid(target->domain))
		domain_check(result, *isnull, target->domain, &target->domain_cache, target->context);
	return result;
}

/* === Public ================================================================= */

/* Any byte beyond ASCII?  Then the message is to be verified as UTF-8. */
static bool
all_ascii(const char *bytes, Size len)
{
	uint64		high = 0;
	Size		i = 0;

	for (; i + 8 <= len; i += 8)
	{
		uint64		v;

		memcpy(&v, bytes + i, sizeof(v));
		high |= v;
	}
	for (; i < len; i++)
		high |= (unsigned char) bytes[i];
	return (high & UINT64CONST(0x8080808080808080)) == 0;
}

char *
json_excerpt(const JsonText *value)
{
	int			len = pg_encoding_mbcliplen(PG_UTF8, value->text, (int) Min(value->len, 1000), 40);
	char	   *text = pnstrdup(value->text, len);

	return pg_any_to_server(text, len, PG_UTF8);
}

void
json_message_begin(const char **bytes, Size *len)
{
	if (*len >= 3 && memcmp(*bytes, "\xEF\xBB\xBF", 3) == 0)
	{
		*bytes += 3;
		*len -= 3;
	}
	if (!all_ascii(*bytes, *len))
		pg_verify_mbstr(PG_UTF8, *bytes, (int) *len, false);
}

JsonFields *
json_fields_create(int n, const char *const *names, int *field_of)
{
	JsonFields *result = palloc(sizeof(JsonFields));
	JsonField  *fields = palloc(Max(n, 1) * sizeof(JsonField));
	int			distinct = 0;

	for (int i = 0; i < n; i++)
	{
		const char *name = names[i];
		int			f;

		/* member names are looked up as they come, in UTF-8 */
		if (GetDatabaseEncoding() != PG_UTF8)
			name = pg_server_to_any(name, (int) strlen(name), PG_UTF8);
		for (f = 0; f < distinct; f++)
		{
			if (strcmp(fields[f].name, name) == 0)
				break;
		}
		if (f == distinct)
		{
			fields[f].name = name;
			fields[f].len = (uint32_t) strlen(name);
			distinct++;
		}
		field_of[i] = f;
	}
	json_fields_init(result, distinct, fields, palloc(json_fields_slots(distinct) * sizeof(int32_t)));
	return result;
}

static void
composite_create(JsonTarget *target, int32 typmod, const char *time_zone)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(target->type, typmod);
	const char **names = palloc(desc->natts * sizeof(char *));
	int		   *attributes = palloc(desc->natts * sizeof(int));
	int		   *field_of = palloc(desc->natts * sizeof(int));
	int			n = 0;

	target->desc = BlessTupleDesc(desc);
	target->attributes = palloc0(desc->natts * sizeof(JsonTarget *));
	target->field_of = palloc(desc->natts * sizeof(int));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		FormatColumn column = {0};

		target->field_of[i] = -1;
		if (attribute->attisdropped)
			continue;
		column.column = NameStr(attribute->attname);
		column.type = attribute->atttypid;
		column.typmod = attribute->atttypmod;
		column.collation = attribute->attcollation;
		column.style = target->style;
		target->attributes[i] = json_target_create(&column, time_zone, target->strip_nul);
		attributes[n] = i;
		names[n++] = column.column;
	}
	target->fields = json_fields_create(n, names, field_of);
	for (int i = 0; i < n; i++)
		target->field_of[attributes[i]] = field_of[i];
}

JsonTarget *
json_target_create(const FormatColumn *column, const char *time_zone, bool strip_nul)
{
	JsonTarget *target = palloc0(sizeof(JsonTarget));
	FormatColumn base = *column;
	char		category;
	bool		preferred;

	check_stack_depth();
	target->context = CurrentMemoryContext;
	target->lenient = &never;
	target->strip_nul = strip_nul;
	base.type = getBaseTypeAndTypmod(column->type, &base.typmod);
	if (base.type != column->type)
		target->domain = column->type;
	target->type = base.type;
	target->typmod = base.typmod;
	target->style = column->style;
	target->input = value_input_create(&base, time_zone);
	target->element_type = array_element_type(base.type);
	get_type_category_preferred(base.type, &category, &preferred);
	if (OidIsValid(target->element_type))
	{
		FormatColumn element = base;

		element.type = target->element_type;
		target->class = TARGET_ARRAY;
		target->element = json_target_create(&element, time_zone, strip_nul);
		get_typlenbyvalalign(target->element_type, &target->element_len, &target->element_byval,
							 &target->element_align);
	}
	else if (get_typtype(base.type) == TYPTYPE_COMPOSITE)
	{
		target->class = TARGET_COMPOSITE;
		composite_create(target, base.typmod, time_zone);
	}
	else if (base.type == JSONOID)
		target->class = TARGET_JSON;
	else if (base.type == JSONBOID)
		target->class = TARGET_JSONB;
	else if (base.type == BYTEAOID)
		target->class = TARGET_BYTEA;
	else if (base.type == NUMERICOID && target->style.decimal == DECIMAL_BASE64)
	{
		check_base64_scale(base.typmod, column->column);
		target->class = TARGET_DECIMAL;
	}
	else if (category == TYPCATEGORY_STRING)
		target->class = TARGET_STRING;
	else
		target->class = TARGET_SCALAR;
	return target;
}

void
json_target_set_lenient(JsonTarget *target, const bool *lenient)
{
	target->lenient = lenient;
	if (target->element)
		json_target_set_lenient(target->element, lenient);
	for (int i = 0; target->attributes && i < target->desc->natts; i++)
	{
		if (target->attributes[i])
			json_target_set_lenient(target->attributes[i], lenient);
	}
}
