/*
 * raw.c
 *	  Format "raw": the message's bytes are the value of the one column.
 *
 * Text types and bytea take the bytes as they are, integers, floats and booleans
 * Flink's fixed-width encoding, every other type its text form.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "format/formats.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
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
	int			index;			/* of the column in the sink, -1: not wanted */
	const char *column;
} RawDecoder;

static const FormatOption raw_options[] = {
	{"endianness", "big-endian|little-endian", "byte order of integers and floats"},
	{NULL}
};

static Decoder *
raw_create(const DecoderSpec *spec)
{
	RawDecoder *decoder = palloc0(sizeof(RawDecoder));
	const FormatColumn *column = spec->columns;
	int32		typmod;
	ListCell   *lc;

	if (spec->ncolumns > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_COLUMN_NUMBER),
				 errmsg("format \"raw\" takes exactly one column, not %d", spec->ncolumns),
				 errdetail("Columns \"%s\" and \"%s\" are both to be read from the message %s.",
						   column[0].column, column[1].column, spec->is_key ? "key" : "value"),
				 errhint("Use format 'json' for several columns, or value_fields_include 'EXCEPT_KEY' if one of them is in the key.")));
	decoder->base.routine = &raw_format;
	foreach(lc, spec->options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "endianness") == 0)
			decoder->little_endian = strcmp(defGetString(option), "little-endian") == 0;
	}
	decoder->index = -1;
	if (spec->ncolumns == 0)
		return &decoder->base;

	decoder->context = CurrentMemoryContext;
	decoder->index = column->index;
	decoder->column = column->column;
	typmod = column->typmod;
	decoder->type = getBaseTypeAndTypmod(column->type, &typmod);
	switch (decoder->type)
	{
		case BOOLOID:
			decoder->width = 1;
			break;
		case INT2OID:
			decoder->width = 2;
			break;
		case INT4OID:
		case FLOAT4OID:
			decoder->width = 4;
			break;
		case INT8OID:
		case FLOAT8OID:
			decoder->width = 8;
			break;
		case BYTEAOID:
			break;
		default:
			decoder->input = value_input_create(column, spec->time_zone);
			break;
	}
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
			/* refuses NUL and bytes that are no UTF-8 (cases B01, B03) */
			char	   *text = pg_any_to_server(bytes, (int) len, PG_UTF8);

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

const FormatRoutine raw_format = {
	.name = "raw",
	.single_column = true,
	.options = raw_options,
	.create = raw_create,
	.decode = raw_decode
};
