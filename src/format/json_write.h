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

/*
 * A writer of objects with these members.  'options' are those of format json.
 * Allocated in CurrentMemoryContext, and no longer needs the columns' array.
 */
extern JsonWriter *json_writer_create(int ncolumns, const FormatColumn *columns, List *options);

/* Append one object; *column and errors as in FormatRoutine.encode. */
extern void json_write_row(JsonWriter *writer, const Datum *values, const bool *isnull, StringInfo out,
						   const char **column);

/* Append a string with quotes and escapes.  'text' is in the database encoding. */
extern void json_write_string(StringInfo out, const char *text, Size len);

/* of format json */
extern Encoder *json_encoder_create(const EncoderSpec *spec);
extern bool json_encode(Encoder *encoder, const Datum *values, const bool *isnull, StringInfo bytes,
						const char **column);

#endif							/* UK_JSON_WRITE_H */
