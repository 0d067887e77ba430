/*
 * avro_connect.h
 *	  Avro values as Kafka Connect's JSON converter would have written them, so that
 *	  connect.c converts both alike.
 *
 * Private to the Avro formats.
 */
#ifndef UK_AVRO_CONNECT_H
#define UK_AVRO_CONNECT_H

#include "format/avro_input.h"
#include "format/connect_schema.h"
#include "format/json_scan.h"

/* Numbers have no more characters than this. */
#define AVRO_NUMBER_SIZE 40

typedef struct AvroConnectValue
{
	JsonText	text;			/* in UTF-8; points into the message where it can */
	char		number[AVRO_NUMBER_SIZE];
	char	   *made;			/* palloc'd for text, or NULL: the caller's to free */
} AvroConnectValue;

/*
 * The next value.  Bytes and decimals are base64, or CONNECT_BYTES where raw_bytes is
 * given and they are not nested; records and maps are objects, symbols and text strings.  strip_nul: NUL in text is dropped.  ERROR 22P03 for bytes that are
 * no value of the schema, 22021 for text that is no UTF-8 or holds NUL.
 */
extern void avro_connect_read(AvroInput *in, const AvroNode *node, bool strip_nul, bool raw_bytes,
							  AvroConnectValue *value);

/* What such values stand for: by Connect's name in the schema, else by Avro's logical type. */
extern void avro_connect_kind(const AvroNode *node, ConnectKind *kind);

#endif							/* UK_AVRO_CONNECT_H */
