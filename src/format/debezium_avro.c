/*
 * debezium_avro.c
 *	  Format "debezium-avro-confluent": change events of Debezium as Avro records, in
 *	  Confluent's framing.
 *
 * Owns where in a record an event's members are; what it means is debezium.c's, what a
 * row's values stand for connect.c's, the frame avro_confluent.c's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "format/avro_confluent.h"
#include "format/avro_connect.h"
#include "format/avro_derive.h"
#include "format/avro_output.h"
#include "format/avro_write.h"
#include "format/debezium.h"
#include "format/formats.h"

static const FormatMetadata debezium_metadata[] = {
	DEBEZIUM_EVENT_METADATA,
	{NULL}
};

static const FormatOption debezium_options[] = {
	AVRO_URL_OPTION,
	AVRO_SUBJECT_OPTION,
	{"schema", "text", "the Avro schema to write with, as JSON text: a record with before, after and op; default: as Flink derives it from the columns"},
	DEBEZIUM_OPTIONS,
	CDC_NUL_OPTION,
	IGNORE_PARSE_ERRORS_OPTION,
	CDC_EMPTY_OPTION,
	TIME_UNIT_OPTION,
	{NULL}
};

static const CdcFormat debezium_events = {
	.routine = &debezium_avro_confluent_format,
	.nmembers = NEVENT,
	DEBEZIUM_CDC
};

/* The record of a row, as a writer's schema has it */
typedef struct EventImage
{
	const AvroNode *record;		/* NULL: no record */
	int		   *slots;			/* of its fields, in ConnectRow; -1: passed over */
	ConnectKind *kinds;			/* by slot */
} EventImage;

/* A writer's schema */
typedef struct EventSchema
{
	const AvroNode *record;		/* NULL: it is none of events */
	int			null_branch;	/* of the message as a whole, or -1 */
	int		   *members;		/* of its fields, EventMember or -1 */
	EventImage	before;
	EventImage	after;
} EventSchema;

typedef struct DebeziumAvroDecoder
{
	DebeziumDecoder event;
	AvroFrames *frames;
	AvroConnectValue members[NEVENT];
	AvroConnectValue source_members[NSOURCE];
	AvroConnectValue *values;	/* by slot */
	JsonText   *found;			/* the same, for connect.c */
	const EventImage *kinds_of; /* whose kinds the row has */
	bool		properties;		/* a column wants all of the source as JSON */

	/* of the message at hand */
	const EventSchema *schema;
	const AvroNode *source;		/* NULL: it has none */
	AvroInput	source_input;
} DebeziumAvroDecoder;

typedef struct DebeziumAvroEncoder
{
	Encoder		base;
	AvroFrameWriter frame;
	const AvroNode *record;
	int			branch;			/* of the record in a union, or -1 */
	int		   *members;		/* as in EventSchema */
	AvroRowWriter *before;
	AvroRowWriter *after;
} DebeziumAvroEncoder;

/* ------------------------------------------------------------------------
 * Schemas
 * ------------------------------------------------------------------------ */

/* The record itself, or in a union with null; else NULL. */
static const AvroNode *
record_of(const AvroNode *node)
{
	int			branch;

	if (avro_is_nullable(node, &branch))
		node = node->children[branch];
	return node->type == AVRO_RECORD ? node : NULL;
}

static int *
members_of(const AvroNode *record)
{
	int		   *members = palloc(sizeof(int) * Max(record->n, 1));

	for (int i = 0; i < record->n; i++)
	{
		members[i] = -1;
		for (int j = 0; j < NEVENT; j++)
			if (strcmp(record->names[i], debezium_members[j]) == 0)
				members[i] = j;
	}
	return members;
}

static void
resolve_image(const ConnectRow *row, const AvroNode *node, EventImage *image)
{
	image->record = record_of(node);
	if (image->record == NULL)
		return;
	image->slots = palloc(sizeof(int) * Max(image->record->n, 1));
	image->kinds = palloc0(sizeof(ConnectKind) * Max(connect_row_nslots(row), 1));
	for (int i = 0; i < image->record->n; i++)
	{
		int			slot = connect_row_slot(row, image->record->names[i]);

		image->slots[i] = slot;
		if (slot >= 0)
			avro_connect_kind(image->record->children[i], &image->kinds[slot]);
	}
}

static void *
resolve_schema(const AvroNode *node, void *arg)
{
	DebeziumAvroDecoder *decoder = arg;
	EventSchema *schema = palloc0(sizeof(EventSchema));
	int			branch;

	/* what it points to may be gone with the schemas before this one */
	decoder->kinds_of = NULL;
	schema->record = record_of(node);
	schema->null_branch = avro_is_nullable(node, &branch) ? 1 - branch : -1;
	if (schema->record == NULL)
		return schema;
	schema->members = members_of(schema->record);
	for (int i = 0; i < schema->record->n; i++)
	{
		if (schema->members[i] == EVENT_BEFORE)
			resolve_image(decoder->event.row, schema->record->children[i], &schema->before);
		else if (schema->members[i] == EVENT_AFTER)
			resolve_image(decoder->event.row, schema->record->children[i], &schema->after);
	}
	return schema;
}

/* ------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------ */

static const AvroNode *
enter_unions(AvroInput *in, const AvroNode *node)
{
	while (node->type == AVRO_UNION)
		node = node->children[avro_read_branch(in, node)];
	return node;
}

static void
find_member(DebeziumAvroDecoder *decoder, AvroInput *in, const AvroNode *node, EventMember member)
{
	JsonText   *found = &decoder->event.cdc.found[member];
	AvroConnectValue *value = &decoder->members[member];

	node = enter_unions(in, node);
	if (member == EVENT_SOURCE)
	{
		decoder->source = node;
		decoder->source_input = *in;
		found->kind = node->type == AVRO_NULL ? JK_NULL : JK_OBJECT;
		avro_skip(in, node);
	}
	else if (node->type == AVRO_RECORD && (member == EVENT_BEFORE || member == EVENT_AFTER))
	{
		/* read_image() knows what these bytes are */
		found->kind = JK_OBJECT;
		found->text = in->p;
		avro_skip(in, node);
		found->len = (uint32) (in->p - found->text);
	}
	else
	{
		avro_connect_read(in, node, decoder->event.cdc.strip_nul, false, value);
		*found = value->text;
	}
}

static bool
find_event(DebeziumDecoder *event, const char *bytes, Size len)
{
	DebeziumAvroDecoder *decoder = (DebeziumAvroDecoder *) event;
	const EventSchema *schema = avro_frames_find(decoder->frames, &bytes, &len);
	AvroInput	in = {bytes, bytes + len, 0};

	decoder->schema = schema;
	decoder->source = NULL;
	memset(event->cdc.found, 0, sizeof(JsonText) * NEVENT);
	if (schema->record == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("change event expected, but the message's Avro schema is no record"),
				 errhint("Values that are not wrapped in events of Debezium are read by format \"avro-confluent\".")));
	if (schema->null_branch >= 0)
	{
		int64		branch = avro_read_long(&in);

		if (branch == schema->null_branch)
		{
			avro_check_end(&in);
			return false;
		}
		if (branch != 1 - schema->null_branch)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("invalid Avro data: a union of 2 has no number %lld", (long long) branch)));
	}
	for (int i = 0; i < schema->record->n; i++)
	{
		if (schema->members[i] < 0)
			avro_skip(&in, schema->record->children[i]);
		else
			find_member(decoder, &in, schema->record->children[i], schema->members[i]);
	}
	avro_check_end(&in);
	return true;
}

static void
find_source(DebeziumDecoder *event)
{
	DebeziumAvroDecoder *decoder = (DebeziumAvroDecoder *) event;
	const AvroNode *source = decoder->source;
	AvroInput	in = decoder->source_input;

	memset(event->source, 0, sizeof(event->source));
	if (source == NULL || source->type != AVRO_RECORD)
		return;
	for (int i = 0; i < source->n; i++)
	{
		int			member = 0;

		while (member < NSOURCE && strcmp(source->names[i], debezium_source_members[member]) != 0)
			member++;
		if (member == NSOURCE)
			avro_skip(&in, source->children[i]);
		else
		{
			avro_connect_read(&in, source->children[i], event->cdc.strip_nul, false, &decoder->source_members[member]);
			event->source[member] = decoder->source_members[member].text;
		}
	}
	if (decoder->properties)
	{
		in = decoder->source_input;
		avro_connect_read(&in, source, event->cdc.strip_nul, false, &decoder->members[EVENT_SOURCE]);
		event->cdc.found[EVENT_SOURCE] = decoder->members[EVENT_SOURCE].text;
	}
}

static void
read_image(CdcDecoder *cdc, const JsonText *image, bool before, RowSink *sink)
{
	DebeziumAvroDecoder *decoder = (DebeziumAvroDecoder *) cdc;
	ConnectRow *row = decoder->event.row;
	const EventImage *schema = before ? &decoder->schema->before : &decoder->schema->after;
	int			nslots = connect_row_nslots(row);
	AvroInput	in = {image->text, image->text + image->len, 0};

	if (schema->record == NULL || image->kind != JK_OBJECT)
	{
		connect_row_read_whole(row, debezium_members[before ? EVENT_BEFORE : EVENT_AFTER], image, sink);
		return;
	}
	if (decoder->kinds_of != schema)
	{
		connect_row_kinds(row, schema->kinds);
		decoder->kinds_of = schema;
	}
	memset(decoder->found, 0, sizeof(JsonText) * nslots);
	for (int i = 0; i < nslots; i++)
		decoder->values[i].made = NULL;
	for (int i = 0; i < schema->record->n; i++)
	{
		int			slot = schema->slots[i];

		if (slot < 0)
		{
			avro_skip(&in, schema->record->children[i]);
			continue;
		}
		avro_connect_read(&in, schema->record->children[i], cdc->strip_nul, true, &decoder->values[slot]);
		decoder->found[slot] = decoder->values[slot].text;
	}
	connect_row_take(row, decoder->found, sink);
	for (int i = 0; i < nslots; i++)
		if (decoder->values[i].made)
			pfree(decoder->values[i].made);
}

static Decoder *
debezium_create(const DecoderSpec *spec)
{
	DebeziumAvroDecoder *decoder = palloc0(sizeof(DebeziumAvroDecoder));
	AvroOptions options;
	int			nslots;

	avro_read_options(spec->options, &options);
	avro_check_registry(debezium_avro_confluent_format.name, spec->registry, &options);
	debezium_decoder_init(&decoder->event, &debezium_events, spec);
	decoder->event.find_event = find_event;
	decoder->event.peek_event = find_event;
	decoder->event.find_source = find_source;
	decoder->event.cdc.read_row = read_image;
	decoder->frames = avro_frames_create(spec->registry, resolve_schema, decoder);
	nslots = Max(connect_row_nslots(decoder->event.row), 1);
	decoder->values = palloc0(sizeof(AvroConnectValue) * nslots);
	decoder->found = palloc0(sizeof(JsonText) * nslots);
	for (int i = 0; i < decoder->event.cdc.nmetadata; i++)
		decoder->properties |= decoder->event.cdc.metadata[i].metadata == METADATA_SOURCE_PROPERTIES;
	return &decoder->event.cdc.base;
}

/* ------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------ */

static Encoder *
debezium_create_encoder(const EncoderSpec *spec)
{
	DebeziumAvroEncoder *encoder = palloc0(sizeof(DebeziumAvroEncoder));
	AvroOptions options;
	const char *json;
	const AvroNode *schema;
	const FormatColumn *columns;
	bool		has_op = false;

	avro_read_options(spec->options, &options);
	avro_check_registry(debezium_avro_confluent_format.name, spec->registry, &options);
	json = options.schema ? options.schema : avro_derive_event_schema(spec->ncolumns, spec->columns);
	schema = avro_own_schema(&options, json);
	columns = styled_columns(spec->ncolumns, spec->columns, &options.style);
	encoder->branch = -1;
	if (!avro_is_nullable(schema, &encoder->branch))
		encoder->branch = -1;
	encoder->record = record_of(schema);
	encoder->members = encoder->record ? members_of(encoder->record) : NULL;
	for (int i = 0; encoder->record && i < encoder->record->n; i++)
	{
		const AvroNode *field = encoder->record->children[i];
		EventMember member = encoder->members[i];
		int			branch;

		if ((member == EVENT_BEFORE || member == EVENT_AFTER) && avro_takes_null(field) && record_of(field))
		{
			AvroRowWriter *writer = avro_row_writer_create(field, spec->ncolumns, columns, spec->time_zone);

			if (member == EVENT_BEFORE)
				encoder->before = writer;
			else
				encoder->after = writer;
		}
		else if (member == EVENT_OP)
			has_op = field->type == AVRO_STRING || (avro_is_nullable(field, &branch) && field->children[branch]->type == AVRO_STRING);
		else if (!avro_takes_null(field))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("field \"%s\" of the Avro schema cannot be null", encoder->record->names[i]),
					 errdetail("Events are written with before, after and op.")));
	}
	if (encoder->before == NULL || encoder->after == NULL || !has_op)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the option \"schema\" of format \"%s\" is no schema of change events", debezium_avro_confluent_format.name),
				 errdetail("It must be a record with the fields before and after, records that may be null, and op, a string.")));
	avro_frame_writer_init(&encoder->frame, spec, &options, json);
	return &encoder->base;
}

static void
put_op(StringInfo bytes, const AvroNode *field, const char *op)
{
	int			branch;

	if (avro_is_nullable(field, &branch))
	{
		avro_put_long(bytes, branch);
		field = field->children[branch];
	}
	avro_put_bytes(bytes, field, op, strlen(op));
}

/* As Flink's, which never writes an update. */
static bool
debezium_encode(Encoder *base, const Datum *values, const bool *isnull, StringInfo bytes, const char **column)
{
	DebeziumAvroEncoder *encoder = (DebeziumAvroEncoder *) base;
	bool		gone = base->kind == ROW_DELETE || base->kind == ROW_UPDATE_BEFORE;

	avro_frame_put(&encoder->frame, bytes);
	if (encoder->branch >= 0)
		avro_put_long(bytes, encoder->branch);
	for (int i = 0; i < encoder->record->n; i++)
	{
		const AvroNode *field = encoder->record->children[i];

		if (encoder->members[i] == EVENT_OP)
			put_op(bytes, field, gone ? "d" : "c");
		else if (encoder->members[i] == (gone ? EVENT_BEFORE : EVENT_AFTER))
			avro_row_write(gone ? encoder->before : encoder->after, values, isnull, bytes, column);
		else
			avro_put_null(bytes, field);
	}
	return true;
}

const FormatRoutine debezium_avro_confluent_format = {
	.name = "debezium-avro-confluent",
	DEBEZIUM_ROUTINE,
	.registry = true,
	.options = debezium_options,
	.metadata = debezium_metadata,
	.create = debezium_create,
	.create_encoder = debezium_create_encoder,
	.encode = debezium_encode
};
