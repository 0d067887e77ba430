/*
 * raw.c
 *	  Format "raw": the message's bytes are the value of the one column.
 *
 * Text types and bytea take the bytes as they are, integers, floats and booleans
 * Flink's fixed-width encoding, every other type its text form.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "format/formats.h"
#include "format/value_output.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

typedef struct RawDecoder
{
	Decoder		base;
	ValueInput *input;			/* NULL for the types below */
	Oid			type;			/* a domain's base type */
	Oid			domain;			/* InvalidOid: not a domain */
	void	   *domain_cache;
	MemoryContext context;
	int			width;			/* of fixed-width types, else 0 */
	bool		little_endian;
	bool		strip_nul;
	int			encoding;		/* of text */
	int			index;			/* of the column in the sink, -1: not wanted */
	const char *column;
} RawDecoder;

typedef struct RawEncoder
{
	Encoder		base;
	ValueOutput *output;		/* NULL for the types below */
	Oid			type;			/* a domain's base type */
	int			width;			/* of fixed-width types, else 0 */
	bool		little_endian;
	int			encoding;		/* of text */
	int			index;			/* in the arrays of values, -1: no column */
	const char *column;
} RawEncoder;

static const FormatOption raw_options[] = {
	{"endianness", "big-endian|little-endian", "byte order of integers and floats"},
	{"nul_handling", "error|strip", "what NUL bytes in text mean; PostgreSQL cannot store them"},
	{"charset", "text", "encoding of text; one that PostgreSQL converts from and to, such as ISO-8859-1; default UTF-8"},
	{NULL}
};

static void
check_columns(int ncolumns, const FormatColumn *columns, bool is_key)
{
	if (ncolumns > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_COLUMN_NUMBER),
				 errmsg("format \"raw\" takes exactly one column, not %d", ncolumns),
				 errdetail("Columns \"%s\" and \"%s\" are both to be in the message %s.",
						   columns[0].column, columns[1].column, is_key ? "key" : "value"),
				 errhint("Use format 'json' for several columns, or value_fields_include 'EXCEPT_KEY' if one of them is in the key.")));
}

static bool
option_is(List *options, const char *name, const char *value)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, name) == 0)
			return strcmp(defGetString(option), value) == 0;
	}
	return false;
}

/* -1: there is no such encoding */
static int
text_encoding(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "charset") == 0)
			return pg_char_to_encoding(defGetString(option));
	}
	return PG_UTF8;
}

static void
raw_check_options(List *options, bool is_key)
{
	if (text_encoding(options) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"%s_raw_charset\" names no encoding that PostgreSQL has", is_key ? "key" : "value"),
				 errhint("Names are UTF-8, ISO-8859-1, windows-1252, EUC_JP .. UTF-16 is not among them: read it into bytea.")));
}

static bool
is_little_endian(List *options)
{
	return option_is(options, "endianness", "little-endian");
}

/* Bytes of a binary number or boolean; 0 for types of any length. */
static int
fixed_width(Oid type)
{
	switch (type)
	{
		case BOOLOID:
			return 1;
		case INT2OID:
			return 2;
		case INT4OID:
		case FLOAT4OID:
			return 4;
		case INT8OID:
		case FLOAT8OID:
			return 8;
		default:
			return 0;
	}
}

/* === Reading ================================================================ */

static Decoder *
raw_create(const DecoderSpec *spec)
{
	RawDecoder *decoder = palloc0(sizeof(RawDecoder));
	const FormatColumn *column = spec->columns;
	int32		typmod;

	check_columns(spec->ncolumns, spec->columns, spec->is_key);
	decoder->base.routine = &raw_format;
	decoder->little_endian = is_little_endian(spec->options);
	decoder->encoding = text_encoding(spec->options);
	decoder->strip_nul = option_is(spec->options, "nul_handling", "strip");
	decoder->index = -1;
	if (spec->ncolumns == 0)
		return &decoder->base;

	decoder->context = CurrentMemoryContext;
	decoder->index = column->index;
	decoder->column = column->column;
	typmod = column->typmod;
	decoder->type = getBaseTypeAndTypmod(column->type, &typmod);
	decoder->width = fixed_width(decoder->type);
	if (decoder->width == 0 && decoder->type != BYTEAOID)
		decoder->input = value_input_create(column, spec->time_zone);
	if (decoder->input == NULL && decoder->type != column->type)
		decoder->domain = column->type;
	return &decoder->base;
}

static Datum
fixed_datum(RawDecoder *decoder, const char *bytes, Size len)
{
	uint16		u16;
	uint32		u32;
	uint64		u64;

	if (len != decoder->width)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid number of bytes for type %s: %zu instead of %d",
						format_type_be(decoder->type), len, decoder->width),
				 errhint("Format raw reads numbers and booleans in binary; use a text column if the messages hold text.")));
	switch (decoder->width)
	{
		case 1:
			return BoolGetDatum(bytes[0] != 0);
		case 2:
			memcpy(&u16, bytes, sizeof(u16));
			u16 = pg_ntoh16(u16);
			if (decoder->little_endian)
				u16 = pg_bswap16(u16);
			return Int16GetDatum((int16) u16);
		case 4:
			memcpy(&u32, bytes, sizeof(u32));
			u32 = pg_ntoh32(u32);
			if (decoder->little_endian)
				u32 = pg_bswap32(u32);
			if (decoder->type == FLOAT4OID)
			{
				float4		f;

				memcpy(&f, &u32, sizeof(f));
				return Float4GetDatum(f);
			}
			return Int32GetDatum((int32) u32);
		default:
			memcpy(&u64, bytes, sizeof(u64));
			u64 = pg_ntoh64(u64);
			if (decoder->little_endian)
				u64 = pg_bswap64(u64);
			if (decoder->type == FLOAT8OID)
			{
				float8		f;

				memcpy(&f, &u64, sizeof(f));
				return Float8GetDatum(f);
			}
			return Int64GetDatum((int64) u64);
	}
}

static void
raw_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	RawDecoder *decoder = (RawDecoder *) base;
	Datum		value;

	if (decoder->index >= 0)
	{
		sink->column = decoder->column;
		if (decoder->width > 0)
			value = fixed_datum(decoder, bytes, len);
		else if (decoder->type == BYTEAOID)
		{
			bytea	   *copy = palloc(len + VARHDRSZ);

			SET_VARSIZE(copy, len + VARHDRSZ);
			memcpy(VARDATA(copy), bytes, len);
			value = PointerGetDatum(copy);
		}
		else
		{
			char	   *text;

			if (decoder->strip_nul)
				bytes = strip_nul_bytes(bytes, &len);
			/* refuses NUL and bytes that are no UTF-8 (cases B01, B03) */
			text = pg_any_to_server(bytes, (int) len, decoder->encoding);

			value = value_input(decoder->input, text, text == bytes ? len : strlen(text), false);
		}
		if (OidIsValid(decoder->domain))
			domain_check(value, false, decoder->domain, &decoder->domain_cache, decoder->context);
		sink->values[decoder->index] = value;
		sink->isnull[decoder->index] = false;
		sink->column = NULL;
	}
	sink->emit(sink, ROW_UPSERT);
}

/* === Writing ================================================================ */

static Encoder *
raw_create_encoder(const EncoderSpec *spec)
{
	RawEncoder *encoder = palloc0(sizeof(RawEncoder));

	check_columns(spec->ncolumns, spec->columns, spec->is_key);
	encoder->index = -1;
	if (spec->ncolumns == 0)
		return &encoder->base;
	encoder->little_endian = is_little_endian(spec->options);
	encoder->encoding = text_encoding(spec->options);
	encoder->index = spec->columns->index;
	encoder->column = spec->columns->column;
	encoder->type = getBaseType(spec->columns->type);
	encoder->width = fixed_width(encoder->type);
	switch (encoder->type)
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case BYTEAOID:
			break;
		default:
			if (encoder->width == 0)
				encoder->output = value_output_create(encoder->type);
			break;
	}
	return &encoder->base;
}

/* The inverse of fixed_datum(); every NaN is written as Java's. */
static void
append_fixed(const RawEncoder *encoder, Datum value, StringInfo bytes)
{
	uint16		u16;
	uint32		u32;
	uint64		u64;
	float4		f4;
	float8		f8;

	switch (encoder->width)
	{
		case 1:
			appendStringInfoChar(bytes, DatumGetBool(value) ? 1 : 0);
			return;
		case 2:
			u16 = pg_hton16((uint16) DatumGetInt16(value));
			if (encoder->little_endian)
				u16 = pg_bswap16(u16);
			appendBinaryStringInfo(bytes, (char *) &u16, sizeof(u16));
			return;
		case 4:
			if (encoder->type == FLOAT4OID)
			{
				f4 = DatumGetFloat4(value);
				if (isnan(f4))
					f4 = get_float4_nan();
				memcpy(&u32, &f4, sizeof(u32));
			}
			else
				u32 = (uint32) DatumGetInt32(value);
			u32 = pg_hton32(u32);
			if (encoder->little_endian)
				u32 = pg_bswap32(u32);
			appendBinaryStringInfo(bytes, (char *) &u32, sizeof(u32));
			return;
		default:
			if (encoder->type == FLOAT8OID)
			{
				f8 = DatumGetFloat8(value);
				if (isnan(f8))
					f8 = get_float8_nan();
				memcpy(&u64, &f8, sizeof(u64));
			}
			else
				u64 = (uint64) DatumGetInt64(value);
			u64 = pg_hton64(u64);
			if (encoder->little_endian)
				u64 = pg_bswap64(u64);
			appendBinaryStringInfo(bytes, (char *) &u64, sizeof(u64));
			return;
	}
}

static const char *
text_in_encoding(int encoding, const char *text, Size *len)
{
	const char *converted;

	if (encoding == PG_UTF8)
		return text_to_utf8(text, len);
	converted = pg_server_to_any(text, (int) *len, encoding);
	if (converted != text)
		*len = strlen(converted);
	return converted;
}

static bool
raw_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	RawEncoder *encoder = (RawEncoder *) base;
	const char *text;
	Size		len;

	if (encoder->index < 0)
		return true;			/* a message without content, but no tombstone */
	if (isnull[encoder->index])
		return false;
	*column = encoder->column;
	if (encoder->width > 0)
		append_fixed(encoder, values[encoder->index], bytes);
	else
	{
		if (encoder->output)
		{
			text = value_output_text(encoder->output, values[encoder->index]);
			len = strlen(text);
		}
		else
		{
			struct varlena *varlena = PG_DETOAST_DATUM_PACKED(values[encoder->index]);

			text = VARDATA_ANY(varlena);
			len = VARSIZE_ANY_EXHDR(varlena);
		}
		if (encoder->type != BYTEAOID)
			text = text_in_encoding(encoder->encoding, text, &len);
		appendBinaryStringInfo(bytes, text, (int) len);
	}
	*column = NULL;
	return true;
}

const FormatRoutine raw_format = {
	.name = "raw",
	.single_column = true,
	.options = raw_options,
	.check_options = raw_check_options,
	.create = raw_create,
	.decode = raw_decode,
	.create_encoder = raw_create_encoder,
	.encode = raw_encode
};
