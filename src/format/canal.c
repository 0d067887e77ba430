/*
 * canal.c
 *	  Format "canal-json": change events of Alibaba's Canal and of TiCDC, {"data": [..],
 *	  "old": [..], "type", "database", "table", ..}: several rows in one message, all of
 *	  whose values are strings.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "format/cdc_json.h"
#include "format/formats.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

typedef enum CanalMember
{
	CANAL_DATABASE,
	CANAL_TABLE,
	CANAL_TYPE,
	CANAL_TIME,
	CANAL_EVENT_TIME,
	CANAL_SQL_TYPE,
	CANAL_PK_NAMES,
	CANAL_DATA,
	CANAL_OLD,
	NCANAL
} CanalMember;

static const char *const canal_members[NCANAL] = {
	"database", "table", "type", "ts", "es", "sqlType", "pkNames", "data", "old"
};

/* Canal's event types; TiCDC's clock */
static const CdcWord canal_words[] = {
	{"INSERT", CDC_INSERT},
	{"UPDATE", CDC_UPDATE},
	{"DELETE", CDC_DELETE},
	{"TRUNCATE", CDC_TRUNCATE},
	{"CREATE", CDC_NO_ROW},
	{"ALTER", CDC_NO_ROW},
	{"ERASE", CDC_NO_ROW},
	{"QUERY", CDC_NO_ROW},
	{"RENAME", CDC_NO_ROW},
	{"CINDEX", CDC_NO_ROW},
	{"DINDEX", CDC_NO_ROW},
	{"GTID", CDC_NO_ROW},
	{"XACOMMIT", CDC_NO_ROW},
	{"XAROLLBACK", CDC_NO_ROW},
	{"MHEARTBEAT", CDC_NO_ROW},
	{"TIDB_WATERMARK", CDC_NO_ROW},
	{NULL}
};

/* Flink's names, and in the same order where they come from */
static const FormatMetadata canal_metadata[] = {
	{"database", TEXTOID},
	{"table", TEXTOID},
	{"sql-type", JSONBOID},
	{"pk-names", TEXTARRAYOID},
	{"ingestion-timestamp", TIMESTAMPTZOID},
	{"event-timestamp", TIMESTAMPTZOID},
	{NULL}
};
static const CdcSource canal_sources[] = {
	{CANAL_DATABASE}, {CANAL_TABLE}, {CANAL_SQL_TYPE}, {CANAL_PK_NAMES}, {CANAL_TIME, 1}, {CANAL_EVENT_TIME, 1}
};

static const FormatOption canal_options[] = {
	CDC_JSON_OPTIONS,
	CDC_TRUNCATE_OPTION,
	{"database_include", "regex", "a regular expression; events of databases that it does not match as a whole give no rows"},
	{"table_include", "regex", "a regular expression; events of tables that it does not match as a whole give no rows"},
	{NULL}
};

static const CdcFormat canal_events = {
	.routine = &canal_json_format,
	.members = canal_members,
	.nmembers = NCANAL,
	.op_member = CANAL_TYPE,
	.words = canal_words,
	.producer = "Canal",
	.before = "data",
	.after = "data",
	.before_hint = "Every event of rows holds them in the array \"data\".",
	.after_hint = "Every event of rows holds them in the array \"data\".",
	.style = {.binary = BINARY_LATIN1}
};

static const CdcShape canal_shape = {
	"{\"data\":[", "],\"type\":\"INSERT\"}", "{\"data\":[", "],\"type\":\"DELETE\"}"
};

/* Whose events are wanted, by a member of the envelope. */
typedef struct CanalFilter
{
	CanalMember member;
	text	   *pattern;		/* NULL: all */
	char	   *last;			/* the name looked at last */
	Size		last_len;
	bool		last_matches;
} CanalFilter;

typedef struct CanalDecoder
{
	CdcDecoder	cdc;
	CdcRow	   *row;
	CanalFilter filters[2];
	MemoryContext context;
	const JsonText *data;		/* the row at hand */
} CanalDecoder;

/* === Filters ================================================================ */

/* A pattern is for whole names; without one all are wanted. */
static void
filter_create(CanalFilter *filter, CanalMember member, const char *pattern)
{
	filter->member = member;
	if (pattern)
		filter->pattern = cstring_to_text(psprintf("^(?:%s)$", pattern));
}

static bool
filter_matches(CanalDecoder *decoder, CanalFilter *filter)
{
	const JsonText *value = &decoder->cdc.found[filter->member];
	char	   *name;
	char	   *converted;
	char	   *last;
	size_t		len;

	if (filter->pattern == NULL)
		return true;
	if (value->kind != JK_STRING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("change event has no name in \"%s\", by which events are to be chosen", canal_members[filter->member])));
	if (filter->last && filter->last_len == value->len && memcmp(filter->last, value->text, value->len) == 0)
		return filter->last_matches;

	name = palloc(value->len + 1);
	if (json_unescape(value, true, name, &len) != JSON_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid JSON string in \"%s\"", canal_members[filter->member])));
	converted = pg_any_to_server(name, (int) len, PG_UTF8);
	if (converted != name)
		len = strlen(converted);
	filter->last_matches = RE_compile_and_execute(filter->pattern, converted, (int) len, REG_ADVANCED, C_COLLATION_OID, 0, NULL);
	if (converted != name)
		pfree(converted);
	pfree(name);

	last = MemoryContextAlloc(decoder->context, value->len + 1);
	memcpy(last, value->text, value->len);
	if (filter->last)
		pfree(filter->last);
	filter->last = last;
	filter->last_len = value->len;
	return filter->last_matches;
}

static bool
filters_match(CanalDecoder *decoder)
{
	for (int i = 0; i < lengthof(decoder->filters); i++)
	{
		if (!filter_matches(decoder, &decoder->filters[i]))
			return false;
	}
	return true;
}

/* === Decoding =============================================================== */

/* "old" holds only what an update has changed; the rest is as in "data" */
static void
canal_read_row(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	CanalDecoder *decoder = (CanalDecoder *) cdc;

	cdc_row_read(decoder->row, decoder->data, before ? image : NULL, false, sink);
}

static Decoder *
canal_create(const DecoderSpec *spec)
{
	CanalDecoder *decoder = palloc0(sizeof(CanalDecoder));

	decoder->context = CurrentMemoryContext;
	filter_create(&decoder->filters[0], CANAL_DATABASE, format_option(spec->options, "database_include"));
	filter_create(&decoder->filters[1], CANAL_TABLE, format_option(spec->options, "table_include"));
	cdc_decoder_init(&decoder->cdc, &canal_events, spec);
	decoder->cdc.read_row = canal_read_row;
	decoder->row = cdc_row_create(&decoder->cdc, spec, NULL);
	return &decoder->cdc.base;
}

/* Find what a message tells; CDC_NO_ROW if nothing of the table. */
static CdcOp
find_event(CanalDecoder *decoder, const char *bytes, Size len)
{
	CdcOp		op;

	cdc_scan(&decoder->cdc, bytes, len);
	op = cdc_find_op(&decoder->cdc);
	if (op == CDC_NO_ROW || !filters_match(decoder))
		return CDC_NO_ROW;
	op = cdc_op(&decoder->cdc);
	return cdc_tells_change(&decoder->cdc, op) ? op : CDC_NO_ROW;
}

static void
begin_rows(const CanalDecoder *decoder, CanalMember member, JsonScan *scan)
{
	const JsonText *rows = &decoder->cdc.found[member];

	if (rows->kind != JK_ARRAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("array of rows expected in \"%s\", found %s%s", canal_members[member],
						rows->kind > JK_NULL ? "a JSON " : "", rows->kind == JK_MISSING ? "nothing" : json_kind_name(rows->kind))));
	json_scan_init(scan, rows->text, rows->len);
	(void) json_scan_array_begin(scan);
}

static bool
canal_truncates(Decoder *base, const char *bytes, Size len)
{
	return cdc_truncates(base, bytes, len) && filters_match((CanalDecoder *) base);
}

static void
canal_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	CanalDecoder *decoder = (CanalDecoder *) base;
	JsonText	data = {.kind = JK_MISSING};
	JsonText	old = {.kind = JK_MISSING};
	CdcChange	change = {.before = &data, .after = &data};
	JsonScan	data_scan;
	JsonScan	old_scan;
	bool		has_old;

	if (unlikely(cdc_is_empty(&decoder->cdc, len, sink)))
		return;
	change.op = find_event(decoder, bytes, len);
	if (change.op == CDC_NO_ROW)
		return;
	cdc_read_metadata(&decoder->cdc, canal_sources, sink);
	if (change.op == CDC_TRUNCATE)
	{
		cdc_emit_change(&decoder->cdc, &change, sink);
		return;
	}
	has_old = change.op == CDC_UPDATE && decoder->cdc.found[CANAL_OLD].kind > JK_NULL;
	begin_rows(decoder, CANAL_DATA, &data_scan);
	if (has_old)
		begin_rows(decoder, CANAL_OLD, &old_scan);
	decoder->data = &data;
	if (change.op == CDC_UPDATE)
		change.before = &old;

	for (int n = 0; json_scan_array_next(&data_scan, n == 0, &data); n++)
	{
		CHECK_FOR_INTERRUPTS();
		if (n > 0 && decoder->cdc.upsert)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the message has several rows, but one key"),
					 errhint("Use connector \"kafka\" and the argument primary_key of upsert_kafka.materialize().")));
		if (has_old && !json_scan_array_next(&old_scan, n == 0, &old))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("\"old\" has fewer rows than \"data\": %d", n)));
		if (change.op == CDC_UPDATE)
			cdc_row_check_key(decoder->row, &old, &data);
		cdc_emit_change(&decoder->cdc, &change, sink);
	}
}

static bool
canal_has_row(Decoder *base, const char *bytes, Size len)
{
	CanalDecoder *decoder = (CanalDecoder *) base;

	if (cdc_is_empty(&decoder->cdc, len, NULL))
		return decoder->cdc.empty == CDC_EMPTY_DELETE;
	return find_event(decoder, bytes, len) >= CDC_INSERT;
}

/* === Encoding =============================================================== */

static Encoder *
canal_create_encoder(const EncoderSpec *spec)
{
	return cdc_encoder_create(&canal_events, spec, &canal_shape, &canal_shape);
}

const FormatRoutine canal_json_format = {
	.name = "canal-json",
	.changelog = true,
	.options = canal_options,
	.metadata = canal_metadata,
	.create = canal_create,
	.decode = canal_decode,
	.create_encoder = canal_create_encoder,
	.encode = cdc_encode,
	.has_row = canal_has_row,
	.truncates = canal_truncates
};
