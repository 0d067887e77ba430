/*
 * debezium.c
 *	  What Debezium's change events mean, see debezium.h: which rows, of which kinds, and
 *	  their metadata.
 *
 * Knows nothing of how an event is written.  Fields and their types are connect.c's.
 */
#include "postgres.h"

#include "format/debezium.h"

const char *const debezium_members[NWRAPPED] = {
	"before", "after", "source", "op", "ts_ms", "schema", "payload"
};

const char *const debezium_source_members[NSOURCE] = {
	"ts_ms", "db", "schema", "table", "collection"
};

const CdcWord debezium_words[] = {
	{"c", CDC_INSERT},
	{"r", CDC_INSERT},
	{"u", CDC_UPDATE},
	{"d", CDC_DELETE},
	{"t", CDC_TRUNCATE},
	{"m", CDC_NO_ROW},
	{NULL}
};

static void
read_options(const DebeziumDecoder *decoder, const DecoderSpec *spec, ConnectOptions *options)
{
	const char *unit = format_option(spec->options, "time_unit");

	memset(options, 0, sizeof(*options));
	options->time_zone = spec->time_zone;
	options->strip_nul = decoder->cdc.strip_nul;
	options->lenient = &decoder->cdc.base.lenient;
	if (unit)
		options->unit = strcmp(unit, "s") == 0 ? CONNECT_SECONDS :
			strcmp(unit, "ms") == 0 ? CONNECT_MILLIS :
			strcmp(unit, "us") == 0 ? CONNECT_MICROS : CONNECT_NANOS;
	options->unavailable_error = format_option_is(spec->options, "unavailable", "error");
	options->unavailable = format_option(spec->options, "unavailable_value");
	if (options->unavailable == NULL)
		options->unavailable = "__debezium_unavailable_value";
}

void
debezium_decoder_init(DebeziumDecoder *decoder, const CdcFormat *format, const DecoderSpec *spec)
{
	ConnectOptions options;

	cdc_decoder_init(&decoder->cdc, format, spec);
	read_options(decoder, spec, &options);
	/* times that are numbers are connect.c's, which knows schemas and Debezium's sentinels */
	for (int i = 0; i < decoder->cdc.ncolumns; i++)
		decoder->cdc.columns[i].style.unit = UNIT_NONE;
	decoder->row = connect_row_create(decoder->cdc.ncolumns, decoder->cdc.columns, &options);
}

static void
read_metadata(DebeziumDecoder *decoder, RowSink *sink)
{
	const JsonText *event = decoder->cdc.found;
	const JsonText *source = decoder->source;

	if (decoder->cdc.nmetadata > 0)
		decoder->find_source(decoder);
	for (int i = 0; i < decoder->cdc.nmetadata; i++)
	{
		CdcMetadataColumn *column = &decoder->cdc.metadata[i];

		sink->column = column->name;
		switch ((EventMetadata) column->metadata)
		{
			case METADATA_INGESTION_TIME:
				cdc_metadata_time(&decoder->cdc, column, &event[EVENT_TIME], 1);
				break;
			case METADATA_SOURCE_TIME:
				cdc_metadata_time(&decoder->cdc, column, &source[SOURCE_TIME], 1);
				break;
			case METADATA_SCHEMA:
				cdc_metadata_value(column, &decoder->schema);
				break;
			case METADATA_SOURCE_DATABASE:
				cdc_metadata_value(column, &source[SOURCE_DATABASE]);
				break;
			case METADATA_SOURCE_SCHEMA:
				cdc_metadata_value(column, &source[SOURCE_SCHEMA]);
				break;
			case METADATA_SOURCE_TABLE:
				cdc_metadata_value(column, &source[source[SOURCE_TABLE].kind <= JK_NULL ? SOURCE_COLLECTION : SOURCE_TABLE]);
				break;
			case METADATA_SOURCE_PROPERTIES:
				cdc_metadata_value(column, &event[EVENT_SOURCE]);
				break;
		}
	}
	sink->column = NULL;
}

void
debezium_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;
	CdcChange	change = {.before = &decoder->cdc.found[EVENT_BEFORE], .after = &decoder->cdc.found[EVENT_AFTER]};

	if (unlikely(cdc_is_empty(&decoder->cdc, len, sink)))
		return;
	if (!decoder->find_event(decoder, bytes, len))
	{
		/* a log of changes has told of the delete already */
		if (decoder->cdc.upsert)
			sink->emit(sink, ROW_DELETE);
		return;
	}
	change.op = cdc_op(&decoder->cdc);
	if (!cdc_tells_change(&decoder->cdc, change.op))
		return;
	read_metadata(decoder, sink);
	cdc_emit_change(&decoder->cdc, &change, sink);
}

bool
debezium_has_row(Decoder *base, const char *bytes, Size len)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;
	CdcOp		op;

	if (cdc_is_empty(&decoder->cdc, len, NULL))
		return decoder->cdc.empty == CDC_EMPTY_DELETE;
	if (!decoder->find_event(decoder, bytes, len))
		return true;			/* a tombstone */
	op = cdc_op(&decoder->cdc);
	return cdc_tells_change(&decoder->cdc, op) && op >= CDC_INSERT;
}

bool
debezium_truncates(Decoder *base, const char *bytes, Size len)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;

	return len > 0 && decoder->peek_event(decoder, bytes, len) && cdc_find_op(&decoder->cdc) == CDC_TRUNCATE;
}
