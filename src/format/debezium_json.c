/*
 * debezium_json.c
 *	  Format "debezium-json": change events of Debezium, {"before", "after", "op",
 *	  "source", ..}, bare or wrapped with their schema.
 *
 * Owns the JSON of an event; what it means is debezium.c's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "format/debezium.h"
#include "format/formats.h"

static const FormatMetadata debezium_metadata[] = {
	DEBEZIUM_EVENT_METADATA,
	DEBEZIUM_SCHEMA_METADATA,
	{NULL}
};

static const FormatOption debezium_options[] = {
	DEBEZIUM_OPTIONS,
	CDC_JSON_OPTIONS,
	{NULL}
};

static const CdcFormat debezium_events = {
	.routine = &debezium_json_format,
	.nmembers = NWRAPPED,
	DEBEZIUM_CDC
};

/* Flink's, which never writes an update. */
static const CdcShape debezium_shape = {
	"{\"before\":null,\"after\":", ",\"op\":\"c\"}", "{\"before\":", ",\"after\":null,\"op\":\"d\"}"
};
static const CdcShape debezium_without_nulls = {
	"{\"after\":", ",\"op\":\"c\"}", "{\"before\":", ",\"op\":\"d\"}"
};

typedef struct DebeziumJsonDecoder
{
	DebeziumDecoder event;
	JsonFields *source_fields;
} DebeziumJsonDecoder;

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

static bool
peek_event(DebeziumDecoder *decoder, const char *bytes, Size len)
{
	JsonText   *event = decoder->cdc.found;
	JsonText	payload;
	JsonScan	scan;

	if (!cdc_peek(&decoder->cdc, bytes, len))
		return false;
	payload = event[EVENT_PAYLOAD];
	if (event[EVENT_OP].kind != JK_MISSING || payload.kind != JK_OBJECT || !connect_is_wrapper(&event[EVENT_SCHEMA], &payload))
		return true;
	json_scan_init(&scan, payload.text, payload.len);
	return json_scan_object(&scan, decoder->cdc.members, event);
}

static void
find_source(DebeziumDecoder *decoder)
{
	const DebeziumJsonDecoder *json = (DebeziumJsonDecoder *) decoder;
	const JsonText *value = &decoder->cdc.found[EVENT_SOURCE];
	JsonScan	scan;

	memset(decoder->source, 0, sizeof(decoder->source));
	if (value->kind != JK_OBJECT)
		return;
	json_scan_init(&scan, value->text, value->len);
	if (!json_scan_object(&scan, json->source_fields, decoder->source))
		json_scan_raise(&scan, value->text);
}

static void
read_image(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) cdc;
	const char *member = debezium_members[before ? EVENT_BEFORE : EVENT_AFTER];

	if (image->kind == JK_OBJECT)
	{
		connect_row_schema(decoder->row, decoder->schema.kind == JK_OBJECT ? &decoder->schema : NULL, member);
		connect_row_read(decoder->row, image, sink);
	}
	else
		connect_row_read_whole(decoder->row, member, image, sink);
}

static Decoder *
debezium_create(const DecoderSpec *spec)
{
	DebeziumJsonDecoder *decoder = palloc0(sizeof(DebeziumJsonDecoder));
	int			field_of[NSOURCE];

	debezium_decoder_init(&decoder->event, &debezium_events, spec);
	decoder->event.find_event = find_event;
	decoder->event.peek_event = peek_event;
	decoder->event.find_source = find_source;
	decoder->event.cdc.read_row = read_image;
	decoder->source_fields = json_fields_create(NSOURCE, debezium_source_members, field_of);
	return &decoder->event.cdc.base;
}

static Encoder *
debezium_create_encoder(const EncoderSpec *spec)
{
	return cdc_encoder_create(&debezium_events, spec, &debezium_shape, &debezium_without_nulls);
}

const FormatRoutine debezium_json_format = {
	.name = "debezium-json",
	DEBEZIUM_ROUTINE,
	.options = debezium_options,
	.metadata = debezium_metadata,
	.create = debezium_create,
	.create_encoder = debezium_create_encoder,
	.encode = cdc_encode
};
