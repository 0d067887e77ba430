/*
 * protobuf.h
 *	  What the formats "protobuf" and "protobuf-confluent" have in common: their options and
 *	  the schema that these name.
 */
#ifndef UK_PROTOBUF_H
#define UK_PROTOBUF_H

#include "format/lenient.h"
#include "format/proto_read.h"
#include "format/proto_write.h"
#include "format/value_output.h"

typedef struct ProtoOptions
{
	const char *prefix;			/* of the options' names */
	const char *descriptor;
	const char *message;
	bool		read_defaults;
	const char *null_literal;
	const char *empty_value;	/* row, error, delete or ignore */
	ValueStyle	style;

	/* of "protobuf-confluent" */
	const char *url;
	const char *subject;
	const char *schema;
	int			schema_id;		/* -1: not given */
} ProtoOptions;

#define PROTO_OPTIONS \
	{"descriptor", "text", "a FileDescriptorSet in base64, as protoc --include_imports --descriptor_set_out writes it"}, \
	{"message", "text", "the full name of the message type in the descriptor; Flink's Java class name does as well", "message_class_name"}, \
	IGNORE_PARSE_ERRORS_OPTION, \
	{"read_default_values", "bool", "fields that are left out have their default instead of NULL, also where absence can be told"}, \
	{"write_null_string_literal", "text", "what is written for a NULL within an array or a map of texts"}, \
	TIME_UNIT_OPTION, \
	{"nul_handling", "error|strip", "what NUL characters in text mean; PostgreSQL cannot store them"}

/* 'prefix' begins the options' names in messages. */
extern void proto_options_read(List *options, const char *prefix, ProtoOptions *result);

/* What a key cannot have.  ERROR HV024 */
extern void proto_options_check_key(const ProtoOptions *options);

/*
 * The schema of the descriptor.  *message is the type that the option "message" names, NULL
 * if it is left out.  ERROR HV002 without a descriptor, HV024 if one of them is no good.
 */
extern ProtoSchema *proto_own_schema(const ProtoOptions *options, const ProtoMessage **message);

/* HV002 where the option "message" is left out; 'why' is a detail or NULL. */
extern void proto_message_required(const ProtoOptions *options, const char *why) pg_attribute_noreturn();

extern void proto_read_options_set(ProtoReadOptions *result, const DecoderSpec *spec, const ProtoOptions *options,
								   const bool *lenient);
extern void proto_write_options_set(ProtoWriteOptions *result, const EncoderSpec *spec, const ProtoOptions *options);

/*
 * Is it a value of no bytes that the option empty_value says is no row?  What it says instead
 * has gone to the sink.
 */
extern bool proto_is_no_row(const char *empty_value, Size len, RowSink *sink);

#endif							/* UK_PROTOBUF_H */
