/*
 * avro_confluent.h
 *	  Avro in Confluent's framing: the writers' schemas that messages name, each resolved
 *	  once, and the schema that is registered to write with.
 *
 * Private to the Avro formats.  Knows nothing of what a schema's values become.
 */
#ifndef UK_AVRO_CONFLUENT_H
#define UK_AVRO_CONFLUENT_H

#include "format/avro_schema.h"
#include "format/format.h"
#include "lib/stringinfo.h"
#include "registry/registry.h"

/* Of the Avro formats' options those that are given */
typedef struct AvroOptions
{
	const char *schema;
	const char *subject;
	const char *url;
	const char *empty_value;
	bool		legacy;
	bool		json;			/* encoding */
	ValueStyle	style;
} AvroOptions;

#define AVRO_URL_OPTION \
	{"url", "text", "the registry, as in Flink's DDL; must be the server's registry_url"}
#define AVRO_SUBJECT_OPTION \
	{"subject", "text", "under which schemas are registered; default: the topic with -key or -value"}

extern void avro_read_options(List *options, AvroOptions *result);

/* Parse a schema of the option, or of the columns.  ERROR HV024 or HV007 if it is none. */
extern AvroNode *avro_own_schema(const AvroOptions *options, const char *json);

/* ERROR unless there is a registry that can be asked, and the option names no other. */
extern void avro_check_registry(const char *format, const RegistryAccess *access, const AvroOptions *options);

/* === Reading ================================================================ */

typedef struct AvroFrames AvroFrames;

/* What a schema becomes, in CurrentMemoryContext, which lives as long as it is kept. */
typedef void *(*AvroResolve) (const AvroNode *schema, void *arg);

extern AvroFrames *avro_frames_create(const RegistryAccess *registry, AvroResolve resolve, void *arg);

/*
 * What resolve() made of the schema that a message names, asked for if it is new;
 * *bytes and *len go past the frame.  Valid until the next call.  ERROR 22P03 for what
 * is no frame or no Avro schema, and as registry_schema().
 */
extern void *avro_frames_find(AvroFrames *frames, const char **bytes, Size *len);

/* === Writing ================================================================ */

typedef struct AvroFrameWriter
{
	bool		registered;		/* id is known */
	uint32		id;
	const char *schema;
	const char *subject;
	const RegistryAccess *registry;
} AvroFrameWriter;

/* 'schema' is JSON text that outlives the writer. */
extern void avro_frame_writer_init(AvroFrameWriter *writer, const EncoderSpec *spec, const AvroOptions *options,
								   const char *schema);

/* Append a frame; the first one registers the schema. */
extern void avro_frame_put(AvroFrameWriter *writer, StringInfo bytes);

#endif							/* UK_AVRO_CONFLUENT_H */
