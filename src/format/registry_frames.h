/*
 * registry_frames.h
 *	  Confluent's frames in front of messages: a byte 0x00 and the id of a schema, and what
 *	  became of the schemas that messages named.
 *
 * Private to the formats that have frames.  Knows nothing of what schemas mean.
 */
#ifndef UK_REGISTRY_FRAMES_H
#define UK_REGISTRY_FRAMES_H

#include "format/format.h"
#include "lib/stringinfo.h"
#include "registry/registry.h"

/* Byte 0x00, four bytes of schema id, most significant first */
#define FRAME_SIZE 5

/*
 * ERROR unless there is a registry that can be asked, and the option "url" (NULL: not
 * given) names no other.  'otherwise': what else the hint says can be done, or "".
 */
extern void registry_check(const char *format, const RegistryAccess *access, const char *url, const char *otherwise);

/*
 * The id in a frame, which *bytes and *len go past.  ERROR 22P03 for what is none, or has not
 * at least 'more' bytes behind it: bare Avro, JSON text, an empty message (case G02).  'hint'
 * says what it might be instead.
 */
extern uint32 registry_frame_take(const char **bytes, Size *len, int more, const char *hint);

extern void registry_frame_put(StringInfo bytes, uint32 id);

typedef struct SchemaFrames SchemaFrames;

/*
 * What a schema becomes, in CurrentMemoryContext, which lives as long as it is kept.  ERROR
 * where it is of no use; nothing is kept then.
 */
typedef void *(*SchemaResolve) (const RegistrySchema *schema, uint32 id, void *arg);

extern SchemaFrames *schema_frames_create(const RegistryAccess *registry, SchemaResolve resolve, void *arg);

/*
 * What resolve() made of a schema, asked for if it is new.  Valid until the next call.
 * ERROR as registry_schema() and resolve().
 */
extern void *schema_frames_find(SchemaFrames *frames, uint32 id);

#endif							/* UK_REGISTRY_FRAMES_H */
