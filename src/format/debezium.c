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
#include "format/connect.h"
#include "format/formats.h"
#include "format/json_value.h"
#include "utils/builtins.h"

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
	{"nul_handling", "error|strip", "what \\u0000 in text means; PostgreSQL cannot store it"},
	{"time_unit", "s|ms|us|ns", "what numbers count in columns of dates and times, where no schema tells; dates count days"},
	{"truncate", "error|ignore", "what a TRUNCATE of the source table means"},
	{"unavailable", "keep|error", "what a value means that the message does not hold since it did not change"},
	{"unavailable_value", "text", "the text that stands for such a value"},
	{NULL}
};

typedef struct MetadataColumn
{
	EventMetadata metadata;
	int			index;			/* in the sink's arrays */
	const char *name;			/* SQL name */
	Oid			type;
	JsonTarget *target;			/* of texts and objects */
	Datum		value;			/* of the message at hand */
	bool		isnull;
} MetadataColumn;

typedef struct DebeziumDecoder
{
	Decoder		base;
	bool		upsert;
	bool		has_key;
	bool		ignore_truncate;
	pg_tz	   *time_zone;
	JsonFields *event_fields;
	JsonFields *source_fields;
	ConnectRow *row;
	int			nmetadata;
	MetadataColumn *metadata;

	/* of the message at hand */
	JsonText	event[NEVENT];
	JsonText	schema;			/* JK_MISSING: not wrapped */
	JsonText	source[NSOURCE];
} DebeziumDecoder;

static void
read_options(DebeziumDecoder *decoder, const DecoderSpec *spec, ConnectOptions *options)
{
	ListCell   *lc;

	memset(options, 0, sizeof(*options));
	options->time_zone = spec->time_zone;
	options->unavailable = "__debezium_unavailable_value";
	foreach(lc, spec->options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);
		const char *value = defGetString(option);

		if (strcmp(option->defname, "nul_handling") == 0)
			options->strip_nul = strcmp(value, "strip") == 0;
		else if (strcmp(option->defname, "time_unit") == 0)
			options->unit = strcmp(value, "s") == 0 ? CONNECT_SECONDS :
				strcmp(value, "ms") == 0 ? CONNECT_MILLIS :
				strcmp(value, "us") == 0 ? CONNECT_MICROS : CONNECT_NANOS;
		else if (strcmp(option->defname, "truncate") == 0)
			decoder->ignore_truncate = strcmp(value, "ignore") == 0;
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
	FormatColumn *columns = palloc(sizeof(FormatColumn) * Max(spec->ncolumns, 1));
	ConnectOptions options;
	int			field_of[NEVENT];
	int			ncolumns = 0;

	StaticAssertStmt((int) NSOURCE <= (int) NEVENT, "field_of must have room for both");
	decoder->base.routine = &debezium_json_format;
	decoder->upsert = spec->upsert;
	decoder->has_key = spec->has_key;
	decoder->time_zone = pg_tzset(spec->time_zone);
	decoder->event_fields = json_fields_create(NEVENT, event_names, field_of);
	decoder->source_fields = json_fields_create(NSOURCE, source_names, field_of);
	decoder->metadata = palloc0(sizeof(MetadataColumn) * Max(spec->ncolumns, 1));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const FormatColumn *column = &spec->columns[i];
		MetadataColumn *metadata;

		if (!column->is_metadata)
		{
			columns[ncolumns++] = *column;
			continue;
		}
		metadata = &decoder->metadata[decoder->nmetadata++];
		metadata->metadata = (EventMetadata) (format_metadata(&debezium_json_format, column->field) - debezium_metadata);
		metadata->index = column->index;
		metadata->name = column->column;
		metadata->type = column->type;
		metadata->target = json_target_create(column, spec->time_zone, false);
	}
	read_options(decoder, spec, &options);
	decoder->row = connect_row_create(ncolumns, columns, &options);
	return &decoder->base;
}

/* ------------------------------------------------------------------------
 * Parts of a message
 * ------------------------------------------------------------------------ */

static void
not_an_event(const char *found)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("change event expected, found %s", found)));
}

/*
 * Find the event and its members.  False: the message is Kafka Connect's null, which
 * is a tombstone.
 */
static bool
find_event(DebeziumDecoder *decoder, const char *bytes, Size len)
{
	JsonText   *event = decoder->event;
	JsonScan	scan;

	json_message_begin(&bytes, &len);
	if (len == 0)
		not_an_event("an empty message");
	json_scan_init(&scan, bytes, len);
	if (!json_scan_object(&scan, decoder->event_fields, event) || !json_scan_end(&scan))
	{
		JsonText	value;
		JsonScan	whole;

		if (scan.error == JSON_EXPECTED_OBJECT)
		{
			json_scan_init(&whole, bytes, len);
			if (json_scan_value(&whole, &value) && json_scan_end(&whole))
				not_an_event(psprintf("a JSON %s", json_kind_name(value.kind)));
		}
		json_scan_raise(&scan, bytes);
	}

	decoder->schema.kind = JK_MISSING;
	if (event[EVENT_OP].kind == JK_MISSING && connect_is_wrapper(&event[EVENT_SCHEMA], &event[EVENT_PAYLOAD]))
	{
		JsonText	payload = event[EVENT_PAYLOAD];

		if (payload.kind == JK_NULL)
			return false;
		decoder->schema = event[EVENT_SCHEMA];
		json_scan_init(&scan, payload.text, payload.len);
		if (!json_scan_object(&scan, decoder->event_fields, event))
			json_scan_raise(&scan, payload.text);
	}
	return true;
}

/* The one character that says what happened. */
static char
find_op(const DebeziumDecoder *decoder)
{
	const JsonText *op = &decoder->event[EVENT_OP];

	if (op->kind == JK_MISSING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("change event expected, found an object without a member \"op\""),
				 errhint("Rows that are not wrapped in events of Debezium are read by format \"json\".")));
	if (op->kind == JK_STRING && op->len == 1 && strchr("crudtm", op->text[0]) != NULL)
		return op->text[0];
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 op->kind == JK_STRING ? errmsg("unknown \"op\" of a change event: \"%s\"", json_excerpt(op)) :
			 errmsg("unknown \"op\" of a change event: a JSON %s", json_kind_name(op->kind))));
	return '\0';				/* not reached */
}

/* Is there a row to be told of?  A truncated table is no row, but no small matter. */
static bool
tells_row(const DebeziumDecoder *decoder, char op)
{
	if (op == 't' && !decoder->ignore_truncate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source table was truncated"),
				 errhint("Such an event reaches one partition only. The option truncate 'ignore' passes it by and keeps the rows.")));
	return op != 't' && op != 'm';
}

static void
read_millis(const DebeziumDecoder *decoder, MetadataColumn *column, const JsonText *value)
{
	int64		ms;

	column->isnull = value->kind <= JK_NULL;
	if (column->isnull)
		return;
	if (!connect_int64(value, &ms))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("milliseconds expected, found %s", json_excerpt(value))));
	column->value = epoch_millis_datum(ms, column->type, decoder->time_zone);
}

static void
read_metadata(DebeziumDecoder *decoder, RowSink *sink)
{
	const JsonText *event = decoder->event;
	bool		found = false;

	for (int i = 0; i < decoder->nmetadata; i++)
	{
		MetadataColumn *column = &decoder->metadata[i];
		const JsonText *value = &event[EVENT_SOURCE];

		sink->column = column->name;
		if (!found && column->metadata >= METADATA_SOURCE_TIME)
		{
			memset(decoder->source, 0, sizeof(decoder->source));
			if (value->kind == JK_OBJECT)
			{
				JsonScan	scan;

				json_scan_init(&scan, value->text, value->len);
				if (!json_scan_object(&scan, decoder->source_fields, decoder->source))
					json_scan_raise(&scan, value->text);
			}
			found = true;
		}
		switch (column->metadata)
		{
			case METADATA_INGESTION_TIME:
				read_millis(decoder, column, &event[EVENT_TIME]);
				continue;
			case METADATA_SOURCE_TIME:
				read_millis(decoder, column, &decoder->source[SOURCE_TIME]);
				continue;
			case METADATA_SCHEMA:
				value = &decoder->schema;
				break;
			case METADATA_SOURCE_DATABASE:
				value = &decoder->source[SOURCE_DATABASE];
				break;
			case METADATA_SOURCE_SCHEMA:
				value = &decoder->source[SOURCE_SCHEMA];
				break;
			case METADATA_SOURCE_TABLE:
				value = &decoder->source[SOURCE_TABLE];
				if (value->kind <= JK_NULL)
					value = &decoder->source[SOURCE_COLLECTION];
				break;
			case METADATA_SOURCE_PROPERTIES:
				break;
		}
		column->value = json_value_datum(column->target, value, &column->isnull);
	}
	sink->column = NULL;
}

static void
set_metadata(const DebeziumDecoder *decoder, RowSink *sink)
{
	for (int i = 0; i < decoder->nmetadata; i++)
	{
		const MetadataColumn *column = &decoder->metadata[i];

		sink->values[column->index] = column->value;
		sink->isnull[column->index] = column->isnull;
	}
}

/* ------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------ */

static void
emit_image(DebeziumDecoder *decoder, EventMember member, RowKind kind, RowSink *sink)
{
	const JsonText *image = &decoder->event[member];

	if (image->kind == JK_OBJECT)
	{
		connect_row_schema(decoder->row, decoder->schema.kind == JK_OBJECT ? &decoder->schema : NULL,
						   event_names[member]);
		connect_row_read(decoder->row, image, sink);
	}
	else
		connect_row_read_whole(decoder->row, event_names[member], image, sink);
	set_metadata(decoder, sink);
	sink->emit(sink, kind);
}

static void
missing_image(char op, EventMember member)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("change event with op \"%c\" has no \"%s\"", op, event_names[member]),
			 member == EVENT_BEFORE ?
			 errhint("Set the source table to REPLICA IDENTITY FULL (PostgreSQL), or take the key columns from the message key by key_format.") :
			 errhint("The source must send whole rows (MongoDB: capture.mode \"change_streams_update_full\").")));
}

static void
debezium_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;
	const JsonText *event = decoder->event;
	char		op;

	if (!find_event(decoder, bytes, len))
	{
		/* a log of changes has told of the delete already */
		if (decoder->upsert)
			sink->emit(sink, ROW_DELETE);
		return;
	}
	op = find_op(decoder);
	if (!tells_row(decoder, op))
		return;
	read_metadata(decoder, sink);

	if (op == 'd')
	{
		if (event[EVENT_BEFORE].kind > JK_NULL && !decoder->upsert)
			emit_image(decoder, EVENT_BEFORE, ROW_DELETE, sink);
		else if (decoder->has_key)
		{
			set_metadata(decoder, sink);
			sink->emit(sink, ROW_DELETE);
		}
		else
			missing_image(op, EVENT_BEFORE);
		return;
	}
	if (event[EVENT_AFTER].kind <= JK_NULL)
		missing_image(op, EVENT_AFTER);
	if (op == 'u' && event[EVENT_BEFORE].kind > JK_NULL && !decoder->upsert)
		emit_image(decoder, EVENT_BEFORE, ROW_UPDATE_BEFORE, sink);
	emit_image(decoder, EVENT_AFTER, op == 'u' ? ROW_UPDATE_AFTER : ROW_INSERT, sink);
}

static bool
debezium_has_row(Decoder *base, const char *bytes, Size len)
{
	DebeziumDecoder *decoder = (DebeziumDecoder *) base;

	return !find_event(decoder, bytes, len) || tells_row(decoder, find_op(decoder));
}

const FormatRoutine debezium_json_format = {
	.name = "debezium-json",
	.changelog = true,
	.connect = true,
	.options = debezium_options,
	.metadata = debezium_metadata,
	.create = debezium_create,
	.decode = debezium_decode,
	.has_row = debezium_has_row
};
