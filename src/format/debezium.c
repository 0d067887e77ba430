/*
 * debezium.c
 *	  Format "debezium-json": change events of Debezium, {"before", "after", "op",
 *	  "source", ..}, bare or wrapped with their schema.
 *
 * Owns what an event means: which rows, of which kinds, and its metadata.  Fields and
 * their types are connect.c's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "format/cdc_json.h"
#include "format/connect.h"
#include "format/formats.h"

/* Members of a message that are looked at; the wrapper's first. */
typedef enum EventMember
{
	EVENT_SCHEMA,
	EVENT_PAYLOAD,
	EVENT_BEFORE,
	EVENT_AFTER,
	EVENT_SOURCE,
	EVENT_OP,
	EVENT_TIME,
	NEVENT
} EventMember;

static const char *const event_names[NEVENT] = {
	"schema", "payload", "before", "after", "source", "op", "ts_ms"
};

typedef enum SourceMember
{
	SOURCE_TIME,
	SOURCE_DATABASE,
	SOURCE_SCHEMA,
	SOURCE_TABLE,
	SOURCE_COLLECTION,			/* MongoDB's word for table */
	NSOURCE
} SourceMember;

static const char *const source_names[NSOURCE] = {
	"ts_ms", "db", "schema", "table", "collection"
};

typedef enum EventMetadata
{
	METADATA_SCHEMA,
	METADATA_INGESTION_TIME,
	METADATA_SOURCE_TIME,
	METADATA_SOURCE_DATABASE,
	METADATA_SOURCE_SCHEMA,
	METADATA_SOURCE_TABLE,
	METADATA_SOURCE_PROPERTIES
} EventMetadata;

/* in the order of EventMetadata; Flink's names */
static const FormatMetadata debezium_metadata[] = {
	{"schema", TEXTOID},
	{"ingestion-timestamp", TIMESTAMPTZOID},
	{"source.timestamp", TIMESTAMPTZOID},
	{"source.database", TEXTOID},
	{"source.schema", TEXTOID},
	{"source.table", TEXTOID},
	{"source.properties", JSONBOID},
	{NULL}
};

static const FormatOption debezium_options[] = {
	CDC_NUL_OPTION,
	CDC_TRUNCATE_OPTION,
	IGNORE_PARSE_ERRORS_OPTION,
	JSON_WRITE_OPTIONS,
	CDC_STYLE_OPTIONS,
	CDC_EMPTY_OPTION,
	CDC_FRAMING_OPTION,
	{"unavailable", "keep|error", "what a value means that the message does not hold since it did not change"},
	{"unavailable_value", "text", "the text that stands for such a value"},
	{NULL}
};

static const CdcWord debezium_words[] = {
	{"c", CDC_INSERT},
	{"r", CDC_INSERT},
	{"u", CDC_UPDATE},
	{"d", CDC_DELETE},
	{"t", CDC_TRUNCATE},
	{"m", CDC_NO_ROW},
	{NULL}
};

static const CdcFormat debezium_events = {
	.routine = &debezium_json_format,
	.members = event_names,
	.nmembers = NEVENT,
	.op_member = EVENT_OP,
	.words = debezium_words,
	.producer = "Debezium",
	.before = "before",
	.after = "after",
	.before_hint = "Set the source table to REPLICA IDENTITY FULL (PostgreSQL), or take the key columns from the message key by key_format.",
	.after_hint = "The source must send whole rows (MongoDB: capture.mode \"change_streams_update_full\").",
	.style = {.wall_clock = true}
};

/* Flink's, which never writes an update. */
static const CdcShape debezium_shape = {
	"{\"before\":null,\"after\":", ",\"op\":\"c\"}", "{\"before\":", ",\"after\":null,\"op\":\"d\"}"
};
static const CdcShape debezium_without_nulls = {
	"{\"after\":", ",\"op\":\"c\"}", "{\"before\":", ",\"op\":\"d\"}"
};

typedef struct DebeziumDecoder
{
	CdcDecoder	cdc;
	JsonFields *source_fields;
	ConnectRow *row;

	/* of the message at hand */
	JsonText	schema;			/* JK_MISSING: not wrapped */
	JsonText	source[NSOURCE];
} DebeziumDecoder;

static void read_image(CdcDecoder *decoder, const JsonText *image, bool before, RowSink *sink);

static void
read_options(const DebeziumDecoder *decoder, const DecoderSpec *spec, ConnectOptions *options)
{
	ListCell   *lc;

	memset(options, 0, sizeof(*options));
	options->time_zone = spec->time_zone;
	options->strip_nul = decoder->cdc.strip_nul;
	options->lenient = &decoder->cdc.base.lenient;
	options->unavailable = "__debezium_unavailable_value";
	foreach(lc, spec->options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);
		const char *value = defGetString(option);

		if (strcmp(option->defname, "time_unit") == 0)
			options->unit = strcmp(value, "s") == 0 ? CONNECT_SECONDS :
				strcmp(value, "ms") == 0 ? CONNECT_MILLIS :
				strcmp(value, "us") == 0 ? CONNECT_MICROS : CONNECT_NANOS;
		else if (strcmp(option->defname, "unavailable") == 0)
			options->unavailable_error = strcmp(value, "error") == 0;
		else if (strcmp(option->defname, "unavailable_value") == 0)
			options->unavailable = value;
	}
}

static Decoder *
debezium_create(const DecoderSpec *spec)
{
	DebeziumDecoder *decoder = palloc0(sizeof(DebeziumDecoder));
	ConnectOptions options;
	int			field_of[NSOURCE];

	cdc_decoder_init(&decoder->cdc, &debezium_events, spec);
	decoder->cdc.read_row = read_image;
	decoder->source_fields = json_fields_create(NSOURCE, source_names, field_of);
	read_options(decoder, spec, &options);
	/* times that are numbers are connect.c's, which knows schemas and Debezium's sentinels */
	for (int i = 0; i < decoder->cdc.ncolumns; i++)
		decoder->cdc.columns[i].style.unit = UNIT_NONE;
	decoder->row = connect_row_create(decoder->cdc.ncolumns, decoder->cdc.columns, &options);
	return &decoder->cdc.base;
}

/* ------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------ */

/*
 * Find the event and its members.  False: the message is Kafka Connect's null, which
 * is a tombstone.
 */
static bool
find_event(DebeziumDecoder *decoder, const char *bytes, Size len)
{
	JsonText   *event = decoder->cdc.found;

	cdc_scan(&decoder->cdc, bytes, len);
	decoder->schema.kind = JK_MISSING;
	if (event[EVENT_OP].kind == JK_MISSING && connect_is_wrapper(&event[EVENT_SCHEMA], &event[EVENT_PAYLOAD]))
	{
		JsonText	payload = event[EVENT_PAYLOAD];
		JsonScan	scan;

		if (payload.kind == JK_NULL)
			return false;
		decoder->schema = event[EVENT_SCHEMA];
		json_scan_init(&scan, payload.text, payload.len);
		if (!json_scan_object(&scan, decoder->cdc.members, event))
			json_scan_raise(&scan, payload.text);
	}
	return true;
}

static void
find_source(DebeziumDecoder *decoder)
{
	const JsonText *value = &decoder->cdc.found[EVENT_SOURCE];
	JsonScan	scan;

	memset(decoder->source, 0, sizeof(decoder->source));
	if (value->kind != JK_OBJECT)
		return;
	json_scan_init(&scan, value->text, value->len);
	if (!json_scan_object(&scan, decoder->source_fields, decoder->source))
		json_scan_raise(&scan, value->text);
}

static void
read_metadata(DebeziumDecoder *decoder, RowSink *sink)
{
	const JsonText *event = decoder->cdc.found;
	const JsonText *source = decoder->source;

	if (decoder->cdc.nmetadata > 0)
		find_source(decoder);
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

static void
read_image(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) cdc;
	const char *member = event_names[before ? EVENT_BEFORE : EVENT_AFTER];

	if (image->kind == JK_OBJECT)
	{
		connect_row_schema(decoder->row, decoder->schema.kind == JK_OBJECT ? &decoder->schema : NULL, member);
		connect_row_read(decoder->row, image, sink);
	}
	else
		connect_row_read_whole(decoder->row, member, image, sink);
}

static void
debezium_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;
	CdcChange	change = {.before = &decoder->cdc.found[EVENT_BEFORE], .after = &decoder->cdc.found[EVENT_AFTER]};

	if (unlikely(cdc_is_empty(&decoder->cdc, len, sink)))
		return;
	if (!find_event(decoder, bytes, len))
	{
		/* a log of changes has told of the delete already */
		if (decoder->cdc.upsert)
			sink->emit(sink, ROW_DELETE);
		return;
	}
	change.op = cdc_op(&decoder->cdc);
	if (change.op == CDC_TRUNCATE && base->applies_truncate)
	{
		read_metadata(decoder, sink);
		cdc_emit_truncate(&decoder->cdc, sink);
		return;
	}
	if (!cdc_tells_row(&decoder->cdc, change.op))
		return;
	read_metadata(decoder, sink);
	cdc_emit_change(&decoder->cdc, &change, sink);
}

static bool
debezium_has_row(Decoder *base, const char *bytes, Size len)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;

	if (cdc_is_empty(&decoder->cdc, len, NULL))
		return decoder->cdc.empty == CDC_EMPTY_DELETE;
	return !find_event(decoder, bytes, len) || cdc_tells_row(&decoder->cdc, cdc_op(&decoder->cdc));
}

static bool
debezium_truncates(Decoder *base, const char *bytes, Size len)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;
	JsonText   *event = decoder->cdc.found;

	if (!cdc_peek(&decoder->cdc, bytes, len))
		return false;
	if (event[EVENT_OP].kind == JK_MISSING && connect_is_wrapper(&event[EVENT_SCHEMA], &event[EVENT_PAYLOAD]) &&
		event[EVENT_PAYLOAD].kind == JK_OBJECT)
	{
		JsonText	payload = event[EVENT_PAYLOAD];
		JsonScan	scan;

		json_scan_init(&scan, payload.text, payload.len);
		if (!json_scan_object(&scan, decoder->cdc.members, event))
			return false;
	}
	return cdc_truncates(&decoder->cdc);
}

static Encoder *
debezium_create_encoder(const EncoderSpec *spec)
{
	return cdc_encoder_create(&debezium_events, spec, &debezium_shape, &debezium_without_nulls);
}

const FormatRoutine debezium_json_format = {
	.name = "debezium-json",
	.changelog = true,
	.connect = true,
	.options = debezium_options,
	.metadata = debezium_metadata,
	.create = debezium_create,
	.decode = debezium_decode,
	.create_encoder = debezium_create_encoder,
	.encode = cdc_encode,
	.has_row = debezium_has_row,
	.truncates = debezium_truncates
};
