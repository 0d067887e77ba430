/*
 * ogg.c
 *	  Format "ogg-json": change events of Oracle GoldenGate, {"table", "op_type",
 *	  "op_ts", "before", "after", ..}.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "format/cdc_json.h"
#include "format/formats.h"

typedef enum OggMember
{
	OGG_TABLE,
	OGG_OP,
	OGG_OP_TIME,
	OGG_CURRENT_TIME,
	OGG_PRIMARY_KEYS,
	OGG_BEFORE,
	OGG_AFTER,
	NOGG
} OggMember;

static const char *const ogg_members[NOGG] = {
	"table", "op_type", "op_ts", "current_ts", "primary_keys", "before", "after"
};

static const CdcWord ogg_words[] = {
	{"I", CDC_INSERT},
	{"U", CDC_UPDATE},
	{"D", CDC_DELETE},
	{"T", CDC_TRUNCATE},
	{NULL}
};

/* Flink's names, and in the same order where they come from; times are text */
static const FormatMetadata ogg_metadata[] = {
	{"table", TEXTOID},
	{"primary-keys", TEXTARRAYOID},
	{"ingestion-timestamp", TIMESTAMPTZOID},
	{"event-timestamp", TIMESTAMPTZOID},
	{NULL}
};
static const CdcSource ogg_sources[] = {
	{OGG_TABLE}, {OGG_PRIMARY_KEYS}, {OGG_CURRENT_TIME}, {OGG_OP_TIME}
};

static const FormatOption ogg_options[] = {
	CDC_JSON_OPTIONS,
	CDC_TRUNCATE_OPTION,
	{"missing", "keep|null", "what a column means that an update does not hold: it keeps its value, or is null"},
	{NULL}
};

static const CdcFormat ogg_events = {
	.routine = &ogg_json_format,
	.members = ogg_members,
	.nmembers = NOGG,
	.op_member = OGG_OP,
	.words = ogg_words,
	.producer = "GoldenGate",
	.before = "before",
	.after = "after",
	.before_hint = "Let the handler write rows before a change, or take the key columns from the message key by key_format.",
	.after_hint = "Every event of a row but a delete holds the row in \"after\"."
};

static const CdcShape ogg_shape = {
	"{\"before\":null,\"after\":", ",\"op_type\":\"I\"}", "{\"before\":", ",\"after\":null,\"op_type\":\"D\"}"
};
static const CdcShape ogg_without_nulls = {
	"{\"after\":", ",\"op_type\":\"I\"}", "{\"before\":", ",\"op_type\":\"D\"}"
};

typedef struct OggDecoder
{
	CdcDecoder	cdc;
	CdcRow	   *row;
	bool		missing_null;
	bool		update;			/* the message at hand */
} OggDecoder;

/*
 * A trail with compressed updates has only columns that changed and those of the key.
 * What "after" does not hold is as it was before, whether "before" tells of it or not.
 */
static void
ogg_read_row(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	OggDecoder *decoder = (OggDecoder *) cdc;
	const JsonText *old = &cdc->found[OGG_BEFORE];

	if (before || !decoder->update || decoder->missing_null)
		cdc_row_read(decoder->row, image, NULL, false, sink);
	else
		cdc_row_read(decoder->row, old->kind > JK_NULL ? old : image, image, true, sink);
}

static Decoder *
ogg_create(const DecoderSpec *spec)
{
	OggDecoder *decoder = palloc0(sizeof(OggDecoder));

	cdc_decoder_init(&decoder->cdc, &ogg_events, spec);
	decoder->cdc.read_row = ogg_read_row;
	decoder->row = cdc_row_create(&decoder->cdc, spec, NULL);
	decoder->missing_null = format_option_is(spec->options, "missing", "null");
	return &decoder->cdc.base;
}

static void
ogg_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	OggDecoder *decoder = (OggDecoder *) base;
	JsonText   *found = decoder->cdc.found;
	CdcChange	change = {.before = &found[OGG_BEFORE], .after = &found[OGG_AFTER]};

	if (unlikely(cdc_is_empty(&decoder->cdc, len, sink)))
		return;
	change.op = cdc_begin(&decoder->cdc, bytes, len);
	if (change.op == CDC_NO_ROW)
		return;
	decoder->update = change.op == CDC_UPDATE;
	if (decoder->update)
		cdc_row_check_key(decoder->row, change.before, change.after);
	cdc_read_metadata(&decoder->cdc, ogg_sources, sink);
	cdc_emit_change(&decoder->cdc, &change, sink);
}

static Encoder *
ogg_create_encoder(const EncoderSpec *spec)
{
	return cdc_encoder_create(&ogg_events, spec, &ogg_shape, &ogg_without_nulls);
}

const FormatRoutine ogg_json_format = {
	.name = "ogg-json",
	.changelog = true,
	.options = ogg_options,
	.metadata = ogg_metadata,
	.create = ogg_create,
	.decode = ogg_decode,
	.create_encoder = ogg_create_encoder,
	.encode = cdc_encode,
	.has_row = cdc_has_row,
	.truncates = cdc_truncates
};
