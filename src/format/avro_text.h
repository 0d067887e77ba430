/*
 * avro_text.h
 *	  Avro's JSON encoding, as a transcription of the binary one: what reads and writes
 *	  values knows only that.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_TEXT_H
#define UK_AVRO_TEXT_H

#include "format/avro_schema.h"
#include "lib/stringinfo.h"

typedef struct AvroText AvroText;

/* For messages of this schema.  In CurrentMemoryContext, keeps the schema by reference. */
extern AvroText *avro_text_create(const AvroNode *schema, bool strip_nul);

/* Append the binary encoding of a message.  ERROR 22P02, 22021, 22003, 54001 if it is none of the schema. */
extern void avro_text_to_binary(AvroText *text, const char *bytes, Size len, StringInfo binary);

/*
 * Append the binary encoding of a field's default, which is JSON as above but for unions:
 * it goes to the first branch that takes it.  Errors as above.
 */
extern void avro_default_to_binary(const AvroNode *node, const char *json, StringInfo binary);

/* Append the JSON encoding of a value, which is the whole of 'binary'. */
extern void avro_binary_to_text(const AvroText *text, const char *binary, Size len, StringInfo out);

#endif							/* UK_AVRO_TEXT_H */
