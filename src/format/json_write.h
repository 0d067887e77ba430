/*
 * json_write.h
 *	  Rows -> JSON objects, byte for byte as Flink writes them: compact, members in
 *	  the order of the columns, Jackson's escapes, Java's numbers.
 *
 * Shared by all formats whose messages are JSON.
 */
#ifndef UK_JSON_WRITE_H
#define UK_JSON_WRITE_H

#include "format/format.h"

typedef struct JsonWriter JsonWriter;

/* The options of a writer, for the FormatOption list of a format. */
#define JSON_WRITE_OPTIONS \
	{"encode_decimal_as_plain_number", "bool", "numeric is written with its scale and never with an exponent"}, \
	{"encode_ignore_null_fields", "bool", "NULL columns are left out instead of being written as null"}, \
	{"timestamp_format_standard", "SQL|ISO-8601", "a blank or a T between date and time, when written", "timestamp_format"}, \
	{"map_null_key_mode", "FAIL|DROP|LITERAL", "Flink's, for maps with null keys; jsonb has none"}, \
	{"map_null_key_literal", "text", "Flink's, for maps with null keys; jsonb has none"}

/*
 * A writer of objects with the spec's columns as members, by its options; 'style' is what
 * these do not say.  Allocated in CurrentMemoryContext.
 */
extern JsonWriter *json_writer_create(const EncoderSpec *spec, const ValueStyle *style);

/* Does the option encode_ignore_null_fields hold? */
extern bool json_writer_skips_nulls(const JsonWriter *writer);

/* Append one object; *column and errors as in FormatRoutine.encode. */
extern void json_write_row(JsonWriter *writer, const Datum *values, const bool *isnull, StringInfo out,
						   const char **column);

/* Append a string with quotes and escapes.  'text' is in the database encoding, or UTF-8. */
extern void json_write_string(StringInfo out, const char *text, Size len);
extern void json_write_utf8(StringInfo out, const char *text, Size len);

/* of format json */
extern Encoder *json_encoder_create(const EncoderSpec *spec);
extern bool json_encode(Encoder *encoder, const Datum *values, const bool *isnull, StringInfo bytes,
						const char **column);

#endif							/* UK_JSON_WRITE_H */
