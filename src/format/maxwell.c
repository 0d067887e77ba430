/*
 * maxwell.c
 *	  Format "maxwell-json": change events of Maxwell's daemon, {"database", "table",
 *	  "type", "ts", "data", "old", ..}.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "format/cdc_json.h"
#include "format/formats.h"

typedef enum MaxwellMember
{
	MAXWELL_DATABASE,
	MAXWELL_TABLE,
	MAXWELL_TYPE,
	MAXWELL_TIME,
	MAXWELL_DATA,
	MAXWELL_OLD,
	MAXWELL_PRIMARY_KEY,
	NMAXWELL
} MaxwellMember;

static const char *const maxwell_members[NMAXWELL] = {
	"database", "table", "type", "ts", "data", "old", "primary_key_columns"
};

static const CdcWord maxwell_words[] = {
	{"insert", CDC_INSERT},
	{"update", CDC_UPDATE},
	{"delete", CDC_DELETE},
	{"bootstrap-insert", CDC_INSERT},
	{"bootstrap-start", CDC_NO_ROW},
	{"bootstrap-complete", CDC_NO_ROW},
	{"table-create", CDC_NO_ROW},
	{"table-alter", CDC_NO_ROW},
	{"table-drop", CDC_NO_ROW},
	{"database-create", CDC_NO_ROW},
	{"database-alter", CDC_NO_ROW},
	{"database-drop", CDC_NO_ROW},
	{NULL}
};

/* Flink's names, and in the same order where they come from */
static const FormatMetadata maxwell_metadata[] = {
	{"database", TEXTOID},
	{"table", TEXTOID},
	{"primary-key-columns", TEXTARRAYOID},
	{"ingestion-timestamp", TIMESTAMPTZOID},
	{NULL}
};
static const CdcSource maxwell_sources[] = {
	{MAXWELL_DATABASE}, {MAXWELL_TABLE}, {MAXWELL_PRIMARY_KEY}, {MAXWELL_TIME, 1000}
};

/* Maxwell tells of no TRUNCATE */
static const FormatOption maxwell_options[] = {
	CDC_JSON_OPTIONS,
	{NULL}
};

static const CdcFormat maxwell_events = {
	.routine = &maxwell_json_format,
	.members = maxwell_members,
	.nmembers = NMAXWELL,
	.op_member = MAXWELL_TYPE,
	.words = maxwell_words,
	.producer = "Maxwell",
	.before = "data",
	.after = "data",
	.before_hint = "Every event of a row holds the row in \"data\".",
	.after_hint = "Every event of a row holds the row in \"data\"."
};

static const CdcShape maxwell_shape = {
	"{\"data\":", ",\"type\":\"insert\"}", "{\"data\":", ",\"type\":\"delete\"}"
};

typedef struct MaxwellDecoder
{
	CdcDecoder	cdc;
	CdcRow	   *row;
} MaxwellDecoder;

/* "old" holds only what an update has changed; the rest is as in "data" */
static void
maxwell_read_row(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	MaxwellDecoder *decoder = (MaxwellDecoder *) cdc;

	cdc_row_read(decoder->row, &cdc->found[MAXWELL_DATA], before ? image : NULL, false, sink);
}

static Decoder *
maxwell_create(const DecoderSpec *spec)
{
	MaxwellDecoder *decoder = palloc0(sizeof(MaxwellDecoder));

	cdc_decoder_init(&decoder->cdc, &maxwell_events, spec);
	decoder->cdc.read_row = maxwell_read_row;
	decoder->row = cdc_row_create(&decoder->cdc, spec, "pk.");
	return &decoder->cdc.base;
}

static void
maxwell_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	MaxwellDecoder *decoder = (MaxwellDecoder *) base;
	JsonText   *found = decoder->cdc.found;
	CdcChange	change = {.before = &found[MAXWELL_DATA], .after = &found[MAXWELL_DATA]};

	if (unlikely(cdc_is_empty(&decoder->cdc, len, sink)))
		return;
	change.op = cdc_begin(&decoder->cdc, bytes, len);
	if (change.op == CDC_NO_ROW)
		return;
	if (change.op == CDC_UPDATE)
	{
		change.before = &found[MAXWELL_OLD];
		cdc_row_check_key(decoder->row, change.before, change.after);
	}
	cdc_read_metadata(&decoder->cdc, maxwell_sources, sink);
	cdc_emit_change(&decoder->cdc, &change, sink);
}

static Encoder *
maxwell_create_encoder(const EncoderSpec *spec)
{
	return cdc_encoder_create(&maxwell_events, spec, &maxwell_shape, &maxwell_shape);
}

const FormatRoutine maxwell_json_format = {
	.name = "maxwell-json",
	.changelog = true,
	.options = maxwell_options,
	.metadata = maxwell_metadata,
	.create = maxwell_create,
	.decode = maxwell_decode,
	.create_encoder = maxwell_create_encoder,
	.encode = cdc_encode,
	.has_row = cdc_has_row
};
