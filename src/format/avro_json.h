/*
 * avro_json.h
 *	  Avro values as text: what columns of other types are made from.
 *
 * Private to the Avro format.
 */
#ifndef UK_AVRO_JSON_H
#define UK_AVRO_JSON_H

#include "format/avro_input.h"

/*
 * Append a value as JSON: records and maps are objects, bytes base64, decimals and
 * other finite numbers numbers, times ISO 8601 text, unions what is in them.
 * Appended in the database encoding.
 */
extern void avro_json_append(StringInfo out, AvroInput *in, const AvroNode *node);

/* The same for a value that stands alone: text without quotes.  *is_number: it is one. */
extern void avro_text_append(StringInfo out, AvroInput *in, const AvroNode *node, bool *is_number);

/* A map as hstore's input has it */
extern void avro_hstore_append(StringInfo out, AvroInput *in, const AvroNode *node);

#endif							/* UK_AVRO_JSON_H */
