/*
 * cdc_json.c
 *	  What formats of change events in JSON have in common, see cdc_json.h.
 *
 * Owns what an operation does to rows.  Names of members and where a message holds
 * its rows are the formats'.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "format/cdc_json.h"
#include "format/connect.h"
#include "lib/stringinfo.h"

/* Confluent's wire format: byte 0x00, four bytes of schema id (case B13) */
#define FRAMING_SIZE 5

typedef struct CdcColumn
{
	JsonTarget *target;
	int			field;			/* in CdcRow.found */
	int			index;			/* in the sink's arrays */
	const char *name;			/* SQL name */
} CdcColumn;

struct CdcRow
{
	int			ncolumns;
	CdcColumn  *columns;
	JsonFields *fields;
	JsonText   *found;
	JsonText   *found_over;

	/* upsert tables: the members that the message key is of */
	JsonFields *key_fields;
	JsonText   *key_before;
	JsonText   *key_after;
};

typedef struct CdcEncoder
{
	Encoder		base;
	JsonWriter *row;
	const CdcShape *shape;
} CdcEncoder;

/* ------------------------------------------------------------------------
 * Envelopes
 * ------------------------------------------------------------------------ */

void
cdc_decoder_init(CdcDecoder *decoder, const CdcFormat *format, const DecoderSpec *spec)
{
	int		   *field_of = palloc(sizeof(int) * format->nmembers);
	ValueStyle	style = format->style;

	decoder->base.routine = format->routine;
	decoder->base.ignores_errors = ignores_parse_errors(spec->options);
	decoder->format = format;
	decoder->upsert = spec->upsert;
	decoder->has_key = spec->has_key;
	decoder->time_zone = pg_tzset(spec->time_zone);
	decoder->members = json_fields_create(format->nmembers, format->members, field_of);
	decoder->found = palloc0(sizeof(JsonText) * format->nmembers);
	decoder->op = &decoder->found[format->op_member];
	decoder->strip_nul = format_option_is(spec->options, "nul_handling", "strip");
	decoder->ignore_truncate = format_option_is(spec->options, "truncate", "ignore");
	decoder->base.applies_truncate = format_option_is(spec->options, "truncate", "apply");
	decoder->strip_framing = format_option_is(spec->options, "registry_framing", "strip");
	decoder->empty = format_option_is(spec->options, "empty_value", "delete") ? CDC_EMPTY_DELETE :
		format_option_is(spec->options, "empty_value", "ignore") ? CDC_EMPTY_IGNORE : CDC_EMPTY_ERROR;
	value_style_parse(spec->options, &style);

	decoder->columns = palloc(sizeof(FormatColumn) * Max(spec->ncolumns, 1));
	decoder->metadata = palloc0(sizeof(CdcMetadataColumn) * Max(spec->ncolumns, 1));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const FormatColumn *column = &spec->columns[i];
		CdcMetadataColumn *metadata;

		if (!column->is_metadata)
		{
			decoder->columns[decoder->ncolumns] = *column;
			decoder->columns[decoder->ncolumns++].style = style;
			continue;
		}
		metadata = &decoder->metadata[decoder->nmetadata++];
		metadata->metadata = (int) (format_metadata(format->routine, column->field) - format->routine->metadata);
		metadata->index = column->index;
		metadata->name = column->column;
		metadata->type = column->type;
		metadata->target = json_target_create(column, spec->time_zone, decoder->strip_nul);
		json_target_set_lenient(metadata->target, &decoder->base.lenient);
	}
}

static void
not_an_event(const char *found)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("change event expected, found %s", found)));
}

bool
cdc_is_empty(const CdcDecoder *decoder, Size len, RowSink *sink)
{
	if (len > 0 || decoder->empty == CDC_EMPTY_ERROR)
		return false;
	/* a log of changes has no key by which a row would be gone */
	if (sink && decoder->empty == CDC_EMPTY_DELETE && decoder->upsert)
		sink->emit(sink, ROW_DELETE);
	return true;
}

void
cdc_scan(CdcDecoder *decoder, const char *bytes, Size len)
{
	JsonScan	scan;
	JsonScan	whole;
	JsonText	value;

	if (len >= FRAMING_SIZE && bytes[0] == '\0')
	{
		if (!decoder->strip_framing)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("change event expected, found byte 0x00"),
					 errhint("The payload starts with byte 0x00 and looks framed by a schema registry; use the format's option registry_framing 'strip' if JSON text follows the five bytes.")));
		bytes += FRAMING_SIZE;
		len -= FRAMING_SIZE;
	}
	json_message_begin(&bytes, &len);
	if (len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("change event expected, found an empty message"),
				 errhint("The format's option empty_value says what such values mean.")));
	json_scan_init(&scan, bytes, len);
	if (json_scan_object(&scan, decoder->members, decoder->found) && json_scan_end(&scan))
		return;

	/* say what it is, if it is JSON after all */
	if (scan.error == JSON_EXPECTED_OBJECT)
	{
		json_scan_init(&whole, bytes, len);
		if (json_scan_value(&whole, &value) && json_scan_end(&whole))
			not_an_event(psprintf("a JSON %s", json_kind_name(value.kind)));
	}
	json_scan_raise(&scan, bytes);
}

CdcOp
cdc_find_op(const CdcDecoder *decoder)
{
	const JsonText *op = decoder->op;

	if (op->kind != JK_STRING)
		return CDC_UNKNOWN;
	for (const CdcWord *word = decoder->format->words; word->word; word++)
	{
		if (strlen(word->word) == op->len && memcmp(word->word, op->text, op->len) == 0)
			return word->op;
	}
	return CDC_UNKNOWN;
}

CdcOp
cdc_op(const CdcDecoder *decoder)
{
	const CdcFormat *format = decoder->format;
	const JsonText *member = decoder->op;
	const char *name = format->members[format->op_member];
	CdcOp		op = cdc_find_op(decoder);

	if (op != CDC_UNKNOWN)
		return op;
	if (member->kind == JK_MISSING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("change event expected, found an object without a member \"%s\"", name),
				 errhint("Rows that are not wrapped in events of %s are read by format \"json\".", format->producer)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 member->kind == JK_STRING ? errmsg("unknown \"%s\" of a change event: \"%s\"", name, json_excerpt(member)) :
			 errmsg("unknown \"%s\" of a change event: a JSON %s", name, json_kind_name(member->kind))));
	return CDC_UNKNOWN;			/* not reached */
}

bool
cdc_tells_change(const CdcDecoder *decoder, CdcOp op)
{
	if (op != CDC_TRUNCATE)
		return op >= CDC_INSERT;

	/* a truncated table is no row, but no small matter */
	if (!decoder->ignore_truncate && !decoder->base.applies_truncate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source table was truncated"),
				 errhint("The option truncate 'apply' deletes all rows, where all messages are of one partition; 'ignore' passes it by and keeps them.")));
	return decoder->base.applies_truncate;
}

bool
cdc_peek(CdcDecoder *decoder, const char *bytes, Size len)
{
	JsonScan	scan;

	if (decoder->strip_framing && len >= FRAMING_SIZE && bytes[0] == '\0')
	{
		bytes += FRAMING_SIZE;
		len -= FRAMING_SIZE;
	}
	if (len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
	{
		bytes += 3;
		len -= 3;
	}
	json_scan_init(&scan, bytes, len);
	return json_scan_object(&scan, decoder->members, decoder->found);
}

bool
cdc_truncates(Decoder *decoder, const char *bytes, Size len)
{
	CdcDecoder *cdc = (CdcDecoder *) decoder;

	return cdc_peek(cdc, bytes, len) && cdc_find_op(cdc) == CDC_TRUNCATE;
}

CdcOp
cdc_begin(CdcDecoder *decoder, const char *bytes, Size len)
{
	CdcOp		op;

	cdc_scan(decoder, bytes, len);
	op = cdc_op(decoder);
	return cdc_tells_change(decoder, op) ? op : CDC_NO_ROW;
}

bool
cdc_has_row(Decoder *decoder, const char *bytes, Size len)
{
	CdcDecoder *cdc = (CdcDecoder *) decoder;

	if (cdc_is_empty(cdc, len, NULL))
		return cdc->empty == CDC_EMPTY_DELETE;
	return cdc_begin(cdc, bytes, len) >= CDC_INSERT;
}

/* ------------------------------------------------------------------------
 * Metadata
 * ------------------------------------------------------------------------ */

void
cdc_metadata_value(CdcMetadataColumn *column, const JsonText *value)
{
	column->value = json_value_datum(column->target, value, &column->isnull);
}

typedef struct TimeConversion
{
	const JsonText *value;
	int			unit_ms;
	Oid			type;
	pg_tz	   *time_zone;
	Datum		result;
} TimeConversion;

static void
convert_time(void *arg)
{
	TimeConversion *time = arg;
	const JsonText *value = time->value;
	int			unit_ms = time->unit_ms;
	int64		ms;

	if (!connect_int64(value, &ms))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("%s expected, found %s", unit_ms == 1 ? "milliseconds" : "seconds", json_excerpt(value))));
	if (pg_mul_s64_overflow(ms, unit_ms, &ms))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range: %s seconds since 1970", json_excerpt(value))));
	time->result = epoch_millis_datum(ms, time->type, time->time_zone);
}

void
cdc_metadata_time(const CdcDecoder *decoder, CdcMetadataColumn *column, const JsonText *value, int unit_ms)
{
	TimeConversion time = {.value = value, .unit_ms = unit_ms, .type = column->type, .time_zone = decoder->time_zone};

	column->isnull = value->kind <= JK_NULL;
	if (column->isnull)
		return;
	if (unlikely(decoder->base.lenient))
		column->isnull = !lenient_convert(convert_time, &time);
	else
		convert_time(&time);
	column->value = time.result;
}

void
cdc_read_metadata(CdcDecoder *decoder, const CdcSource *sources, RowSink *sink)
{
	for (int i = 0; i < decoder->nmetadata; i++)
	{
		CdcMetadataColumn *column = &decoder->metadata[i];
		const CdcSource *source = &sources[column->metadata];
		const JsonText *value = &decoder->found[source->member];

		sink->column = column->name;
		if (source->unit_ms > 0)
			cdc_metadata_time(decoder, column, value, source->unit_ms);
		else
			cdc_metadata_value(column, value);
	}
	sink->column = NULL;
}

static void
set_metadata(const CdcDecoder *decoder, RowSink *sink)
{
	for (int i = 0; i < decoder->nmetadata; i++)
	{
		const CdcMetadataColumn *column = &decoder->metadata[i];

		sink->values[column->index] = column->value;
		sink->isnull[column->index] = column->isnull;
	}
}

/* ------------------------------------------------------------------------
 * Changes
 * ------------------------------------------------------------------------ */

static void
missing_row(const CdcDecoder *decoder, bool before)
{
	const CdcFormat *format = decoder->format;

	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("change event with %s \"%s\" has no \"%s\"", format->members[format->op_member],
					json_excerpt(decoder->op), before ? format->before : format->after),
			 errhint("%s", before ? format->before_hint : format->after_hint)));
}

static void
emit_row(CdcDecoder *decoder, const JsonText *row, bool before, RowKind kind, RowSink *sink)
{
	decoder->read_row(decoder, row, before, sink);
	set_metadata(decoder, sink);
	sink->emit(sink, kind);
}

void
cdc_emit_change(CdcDecoder *decoder, const CdcChange *change, RowSink *sink)
{
	bool		has_before = change->before->kind > JK_NULL;

	if (change->op == CDC_TRUNCATE)
	{
		set_metadata(decoder, sink);
		sink->emit(sink, ROW_TRUNCATE);
		return;
	}
	if (change->op == CDC_DELETE)
	{
		if (has_before && !decoder->upsert)
			emit_row(decoder, change->before, true, ROW_DELETE, sink);
		else if (decoder->has_key)
		{
			set_metadata(decoder, sink);
			sink->emit(sink, ROW_DELETE);
		}
		else
			missing_row(decoder, true);
		return;
	}
	if (change->after->kind <= JK_NULL)
		missing_row(decoder, false);
	if (change->op == CDC_UPDATE && has_before && !decoder->upsert)
		emit_row(decoder, change->before, true, ROW_UPDATE_BEFORE, sink);
	emit_row(decoder, change->after, false, change->op == CDC_UPDATE ? ROW_UPDATE_AFTER : ROW_INSERT, sink);
}

/* ------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------ */

CdcRow *
cdc_row_create(const CdcDecoder *decoder, const DecoderSpec *spec, const char *key_prefix)
{
	CdcRow	   *row = palloc0(sizeof(CdcRow));
	int			n = decoder->ncolumns;
	const char **names = palloc(sizeof(char *) * Max(Max(n, spec->nkeys), 1));
	int		   *field_of = palloc(sizeof(int) * Max(Max(n, spec->nkeys), 1));
	int			nkeys = 0;

	row->ncolumns = n;
	row->columns = palloc0(sizeof(CdcColumn) * Max(n, 1));
	for (int i = 0; i < n; i++)
		names[i] = decoder->columns[i].field;
	row->fields = json_fields_create(n, names, field_of);
	row->found = palloc0(sizeof(JsonText) * Max(row->fields->n, 1));
	row->found_over = palloc0(sizeof(JsonText) * Max(row->fields->n, 1));
	for (int i = 0; i < n; i++)
	{
		CdcColumn  *column = &row->columns[i];

		column->target = json_target_create(&decoder->columns[i], spec->time_zone, decoder->strip_nul);
		json_target_set_lenient(column->target, &decoder->base.lenient);
		column->field = field_of[i];
		column->index = decoder->columns[i].index;
		column->name = decoder->columns[i].column;
	}

	for (int i = 0; decoder->upsert && i < spec->nkeys; i++)
	{
		Size		skip = key_prefix ? strlen(key_prefix) : 0;

		if (strncmp(spec->keys[i], key_prefix ? key_prefix : "", skip) == 0)
			names[nkeys++] = spec->keys[i] + skip;
	}
	if (nkeys > 0)
	{
		row->key_fields = json_fields_create(nkeys, names, field_of);
		row->key_before = palloc0(sizeof(JsonText) * nkeys);
		row->key_after = palloc0(sizeof(JsonText) * nkeys);
	}
	return row;
}

static void
scan_row(const JsonFields *fields, const JsonText *object, JsonText *found)
{
	JsonScan	scan;

	if (object->kind != JK_OBJECT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("row of a change event expected, found a JSON %s", json_kind_name(object->kind))));
	json_scan_init(&scan, object->text, object->len);
	if (!json_scan_object(&scan, fields, found))
		json_scan_raise(&scan, object->text);
}

void
cdc_row_read(CdcRow *row, const JsonText *object, const JsonText *over, bool keep, RowSink *sink)
{
	scan_row(row->fields, object, row->found);
	if (over && over->kind > JK_NULL)
		scan_row(row->fields, over, row->found_over);
	else
		over = NULL;
	for (int i = 0; i < row->ncolumns; i++)
	{
		CdcColumn  *column = &row->columns[i];
		const JsonText *value = &row->found[column->field];

		if (over && row->found_over[column->field].kind != JK_MISSING)
			value = &row->found_over[column->field];
		sink->column = column->name;
		if (value->kind == JK_MISSING)
		{
			if (sink->missing)
				sink->missing[column->index] = true;
			if (keep)
			{
				sink->unchanged = bms_add_member(sink->unchanged, column->index);
				sink->values[column->index] = (Datum) 0;
				sink->isnull[column->index] = true;
				continue;
			}
		}
		sink->values[column->index] = json_value_datum(column->target, value, &sink->isnull[column->index]);
	}
	sink->column = NULL;
}

void
cdc_row_check_key(CdcRow *row, const JsonText *before, const JsonText *after)
{
	if (row->key_fields == NULL || before->kind <= JK_NULL || after->kind <= JK_NULL)
		return;
	scan_row(row->key_fields, before, row->key_before);
	scan_row(row->key_fields, after, row->key_after);
	for (int i = 0; i < row->key_fields->n; i++)
	{
		const JsonText *old = &row->key_before[i];
		const JsonText *new = &row->key_after[i];

		if (old->kind == JK_MISSING || new->kind == JK_MISSING ||
			(old->kind == new->kind && old->len == new->len && memcmp(old->text, new->text, old->len) == 0))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the update changes the key, from %s to %s", json_excerpt(old), json_excerpt(new)),
				 errhint("Its message has the new key, so that the row of the old one would stay. Use connector \"kafka\" and the argument primary_key of upsert_kafka.materialize().")));
	}
}

/* ------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------ */

Encoder *
cdc_encoder_create(const CdcFormat *format, const EncoderSpec *spec, const CdcShape *shape, const CdcShape *without_nulls)
{
	CdcEncoder *encoder = palloc0(sizeof(CdcEncoder));

	encoder->row = json_writer_create(spec, &format->style);
	encoder->shape = json_writer_skips_nulls(encoder->row) ? without_nulls : shape;
	return &encoder->base;
}

bool
cdc_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	CdcEncoder *encoder = (CdcEncoder *) base;
	const CdcShape *shape = encoder->shape;
	bool		gone = base->kind == ROW_DELETE || base->kind == ROW_UPDATE_BEFORE;

	appendStringInfoString(bytes, gone ? shape->delete_lead : shape->insert_lead);
	json_write_row(encoder->row, values, isnull, bytes, column);
	appendStringInfoString(bytes, gone ? shape->delete_trail : shape->insert_trail);
	return true;
}
