/*
 * debezium.h
 *	  What Debezium's change events mean, however they are written: operations, rows and
 *	  metadata of an envelope whose members a back end has found.
 *
 * The back ends are debezium_json.c and debezium_avro.c.  They hand over values as
 * Kafka Connect's JSON converter would write them; rows are converted by connect.c.
 */
#ifndef UK_DEBEZIUM_H
#define UK_DEBEZIUM_H

#include "format/cdc_json.h"
#include "format/connect.h"

/* Members of a message that are looked at; those of JSON's wrapper are the last. */
typedef enum EventMember
{
	EVENT_BEFORE,
	EVENT_AFTER,
	EVENT_SOURCE,
	EVENT_OP,
	EVENT_TIME,
	NEVENT,
	EVENT_SCHEMA = NEVENT,
	EVENT_PAYLOAD,
	NWRAPPED
} EventMember;

extern const char *const debezium_members[NWRAPPED];

typedef enum SourceMember
{
	SOURCE_TIME,
	SOURCE_DATABASE,
	SOURCE_SCHEMA,
	SOURCE_TABLE,
	SOURCE_COLLECTION,			/* MongoDB's word for table */
	NSOURCE
} SourceMember;

extern const char *const debezium_source_members[NSOURCE];

/* A format's metadata are all of these, in this order, or all but the last. */
typedef enum EventMetadata
{
	METADATA_INGESTION_TIME,
	METADATA_SOURCE_TIME,
	METADATA_SOURCE_DATABASE,
	METADATA_SOURCE_SCHEMA,
	METADATA_SOURCE_TABLE,
	METADATA_SOURCE_PROPERTIES,
	METADATA_SCHEMA
} EventMetadata;

#define DEBEZIUM_EVENT_METADATA \
	{"ingestion-timestamp", TIMESTAMPTZOID}, \
	{"source.timestamp", TIMESTAMPTZOID}, \
	{"source.database", TEXTOID}, \
	{"source.schema", TEXTOID}, \
	{"source.table", TEXTOID}, \
	{"source.properties", JSONBOID}
#define DEBEZIUM_SCHEMA_METADATA \
	{"schema", TEXTOID}

/* Members of a FormatRoutine that are the same for all back ends. */
#define DEBEZIUM_ROUTINE \
	.changelog = true, \
	.connect = true, \
	.new_key_header = "__debezium.newkey", \
	.old_key_header = "__debezium.oldkey", \
	.decode = debezium_decode, \
	.has_row = debezium_has_row, \
	.truncates = debezium_truncates

#define DEBEZIUM_OPTIONS \
	CDC_TRUNCATE_OPTION, \
	{"unavailable", "keep|error", "what a value means that the message does not hold since it did not change"}, \
	{"unavailable_value", "text", "the text that stands for such a value"}

/* The parts of a CdcFormat that are the same for all back ends. */
#define DEBEZIUM_CDC \
	.members = debezium_members, \
	.op_member = EVENT_OP, \
	.words = debezium_words, \
	.producer = "Debezium", \
	.before = "before", \
	.after = "after", \
	.before_hint = "Set the source table to REPLICA IDENTITY FULL (PostgreSQL), or take the key columns from the message key by key_format.", \
	.after_hint = "The source must send whole rows (MongoDB: capture.mode \"change_streams_update_full\").", \
	.style = {.wall_clock = true}

extern const CdcWord debezium_words[];

typedef struct DebeziumDecoder
{
	CdcDecoder	cdc;			/* its members are set by find_event */
	ConnectRow *row;

	/* of the message at hand */
	JsonText	schema;			/* JSON's wrapper's; JK_MISSING: none */
	JsonText	source[NSOURCE];	/* set by find_source */

	/* the back end's, as is cdc.read_row; false: the message is a tombstone */
	bool		(*find_event) (struct DebeziumDecoder *decoder, const char *bytes, Size len);

	/* The same of bytes that need not be an event.  False: it is none. */
	bool		(*peek_event) (struct DebeziumDecoder *decoder, const char *bytes, Size len);
	void		(*find_source) (struct DebeziumDecoder *decoder);
} DebeziumDecoder;

/* Fill in a zeroed decoder, but for what is the back end's.  In CurrentMemoryContext. */
extern void debezium_decoder_init(DebeziumDecoder *decoder, const CdcFormat *format, const DecoderSpec *spec);

/* As FormatRoutine's decode, has_row and truncates. */
extern void debezium_decode(Decoder *base, const char *bytes, Size len, RowSink *sink);
extern bool debezium_has_row(Decoder *base, const char *bytes, Size len);
extern bool debezium_truncates(Decoder *base, const char *bytes, Size len);

#endif							/* UK_DEBEZIUM_H */
