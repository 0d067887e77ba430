/*
 * json.c
 *	  Format "json": one message is one JSON object, its members are columns.
 *
 * A message is scanned whole before anything is converted, so that a syntax
 * error anywhere wins over a bad value and a repeated member counts once.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/connect.h"
#include "format/formats.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/lenient.h"
#include "mb/pg_wchar.h"

typedef enum EmptyHandling
{
	EMPTY_ERROR,
	EMPTY_DELETE,
	EMPTY_IGNORE
} EmptyHandling;

typedef struct JsonColumn
{
	JsonTarget *target;
	int			field;			/* in JsonDecoder.found */
	int			index;			/* in the sink's arrays */
	const char *name;			/* SQL name */
	const char *member;
} JsonColumn;

typedef struct JsonDecoder
{
	Decoder		base;
	bool		fail_on_missing;
	bool		strip_framing;
	bool		is_key;
	EmptyHandling empty_value;
	EmptyHandling null_value;
	int			ncolumns;
	JsonColumn *columns;
	JsonFields *fields;
	JsonText   *found;			/* per field; of the message at hand */

	/* keys beside values of Kafka Connect, which may come in its wrapper */
	ConnectRow *wrapped;		/* NULL: others */
	int			schema;			/* fields */
	int			payload;
} JsonDecoder;

/* Confluent's wire format: byte 0x00, four bytes of schema id (case B13) */
#define FRAMING_SIZE 5

static const FormatOption json_options[] = {
	{"fail_on_missing_field", "bool", "a member that is absent is an error instead of NULL"},
	IGNORE_PARSE_ERRORS_OPTION,
	{"empty_value", "error|delete|ignore", "what a zero-length value means"},
	{"null_value", "error|delete", "what a value of the four bytes null means"},
	{"nul_handling", "error|strip", "what \\u0000 in text means; PostgreSQL cannot store it"},
	{"registry_framing", "error|strip", "what the five bytes of a schema registry before the JSON text mean"},
	JSON_WRITE_OPTIONS,
	TIME_UNIT_OPTION,
	DECIMAL_FORMAT_OPTION,
	BINARY_FORMAT_OPTION,
	{NULL}
};

static EmptyHandling
empty_handling(DefElem *option, const DecoderSpec *spec)
{
	const char *value = defGetString(option);

	if (strcmp(value, "error") == 0)
		return EMPTY_ERROR;
	if (spec->is_key)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("option \"key_json_%s\" takes nothing but 'error'", option->defname),
				 errhint("What a message without a row means is said by its value.")));
	return strcmp(value, "delete") == 0 ? EMPTY_DELETE : EMPTY_IGNORE;
}

/* Flink's rule: the one would be for nothing */
static void
json_check_options(List *options, bool is_key)
{
	ListCell   *lc;

	if (!ignores_parse_errors(options))
		return;
	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "fail_on_missing_field") == 0 && defGetBoolean(option))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("options \"%s_json_fail_on_missing_field\" and \"%s_json_%s\" cannot both be true",
							is_key ? "key" : "value", is_key ? "key" : "value", IGNORE_PARSE_ERRORS),
					 errhint("Turn one of them off.")));
	}
}

static Decoder *
json_create(const DecoderSpec *spec)
{
	JsonDecoder *decoder = palloc0(sizeof(JsonDecoder));
	const char **names = palloc((spec->ncolumns + 2) * sizeof(char *));
	int		   *field_of = palloc((spec->ncolumns + 2) * sizeof(int));
	int			nnames = spec->ncolumns;
	bool		strip_nul = false;
	ValueStyle	style = {0};
	const FormatColumn *columns;
	ListCell   *lc;

	value_style_parse(spec->options, &style);
	columns = styled_columns(spec->ncolumns, spec->columns, &style);
	decoder->base.routine = &json_format;
	foreach(lc, spec->options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "fail_on_missing_field") == 0)
			decoder->fail_on_missing = defGetBoolean(option);
		else if (strcmp(option->defname, "empty_value") == 0)
			decoder->empty_value = empty_handling(option, spec);
		else if (strcmp(option->defname, "null_value") == 0)
			decoder->null_value = empty_handling(option, spec);
		else if (strcmp(option->defname, "nul_handling") == 0)
			strip_nul = strcmp(defGetString(option), "strip") == 0;
		else if (strcmp(option->defname, "registry_framing") == 0)
			decoder->strip_framing = strcmp(defGetString(option), "strip") == 0;
	}

	decoder->base.ignores_errors = ignores_parse_errors(spec->options);
	decoder->is_key = spec->is_key;
	decoder->ncolumns = spec->ncolumns;
	decoder->columns = palloc0(Max(spec->ncolumns, 1) * sizeof(JsonColumn));
	for (int i = 0; i < spec->ncolumns; i++)
		names[i] = spec->columns[i].field;
	if (spec->is_key && spec->connect)
	{
		ConnectOptions options = {.time_zone = spec->time_zone, .strip_nul = strip_nul,
		.fail_on_missing = decoder->fail_on_missing, .lenient = &decoder->base.lenient};

		decoder->wrapped = connect_row_create(spec->ncolumns, columns, &options);
		names[nnames++] = "schema";
		names[nnames++] = "payload";
	}
	decoder->fields = json_fields_create(nnames, names, field_of);
	if (decoder->wrapped)
	{
		decoder->schema = field_of[nnames - 2];
		decoder->payload = field_of[nnames - 1];
	}
	decoder->found = palloc(Max(decoder->fields->n, 1) * sizeof(JsonText));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		JsonColumn *column = &decoder->columns[i];

		column->target = json_target_create(&columns[i], spec->time_zone, strip_nul);
		json_target_set_lenient(column->target, &decoder->base.lenient);
		column->field = field_of[i];
		column->index = spec->columns[i].index;
		column->name = spec->columns[i].column;
		column->member = spec->columns[i].field;
	}
	return &decoder->base;
}

/* A message that is no object returns only where an option gives it a meaning. */
static void
no_object(const JsonDecoder *decoder, EmptyHandling handling, const char *what, const char *option, RowSink *sink)
{
	if (handling == EMPTY_DELETE)
		sink->emit(sink, ROW_DELETE);
	else if (handling == EMPTY_ERROR)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("JSON object expected, found %s", what),
				 option && !decoder->is_key ? errhint("The option value_json_%s says what such values mean.", option) : 0));
}

static void
json_decode(Decoder *base, const char *bytes, Size len, RowSink *sink)
{
	JsonDecoder *decoder = (JsonDecoder *) base;
	JsonScan	scan;

	if (len >= FRAMING_SIZE && bytes[0] == '\0')
	{
		if (!decoder->strip_framing)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("JSON object expected, found byte 0x00"),
					 errhint("The payload starts with byte 0x00 and looks framed by a schema registry; use the option %s_json_registry_framing 'strip' if JSON text follows the five bytes.",
							 decoder->is_key ? "key" : "value")));
		bytes += FRAMING_SIZE;
		len -= FRAMING_SIZE;
	}
	json_message_begin(&bytes, &len);
	if (len == 0)
	{
		no_object(decoder, decoder->empty_value, "an empty message", "empty_value", sink);
		return;
	}
	json_scan_init(&scan, bytes, len);
	if (!json_scan_object(&scan, decoder->fields, decoder->found) || !json_scan_end(&scan))
	{
		JsonText	value;
		JsonScan	whole;

		/* say what it is, if it is JSON after all */
		if (scan.error == JSON_EXPECTED_OBJECT)
		{
			json_scan_init(&whole, bytes, len);
			if (json_scan_value(&whole, &value) && json_scan_end(&whole))
			{
				if (value.kind == JK_NULL)
					no_object(decoder, decoder->null_value, "null", "null_value", sink);
				else
					no_object(decoder, EMPTY_ERROR, psprintf("a JSON %s", json_kind_name(value.kind)), NULL, sink);
				return;
			}
		}
		json_scan_raise(&scan, bytes);
	}

	if (decoder->wrapped && connect_is_wrapper(&decoder->found[decoder->schema], &decoder->found[decoder->payload]) &&
		decoder->found[decoder->payload].kind == JK_OBJECT)
	{
		connect_row_schema(decoder->wrapped, &decoder->found[decoder->schema], NULL);
		connect_row_read(decoder->wrapped, &decoder->found[decoder->payload], sink);
		sink->emit(sink, ROW_UPSERT);
		return;
	}

	for (int i = 0; i < decoder->ncolumns; i++)
	{
		JsonColumn *column = &decoder->columns[i];
		JsonText   *value = &decoder->found[column->field];

		sink->column = column->name;
		if (value->kind == JK_MISSING)
		{
			if (decoder->fail_on_missing)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("member \"%s\" is missing", column->member)));
			if (sink->missing)
				sink->missing[column->index] = true;
		}
		sink->values[column->index] = json_value_datum(column->target, value, &sink->isnull[column->index]);
	}
	sink->column = NULL;
	sink->emit(sink, ROW_UPSERT);
}

const FormatRoutine json_format = {
	.name = "json",
	.options = json_options,
	.check_options = json_check_options,
	.create = json_create,
	.decode = json_decode,
	.create_encoder = json_encoder_create,
	.encode = json_encode
};
