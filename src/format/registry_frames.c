/*
 * registry_frames.c
 *	  Confluent's frames, see registry_frames.h.
 *
 * Which schema a message was written with is the registry's to say; ids never change
 * their meaning, so each is asked for and resolved once.
 */
#include "postgres.h"

#include "format/registry_frames.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

/* Schemas that a decoder keeps what it made of; beyond it, it begins anew. */
#define MAX_SCHEMAS 256

typedef struct KnownSchema
{
	uint32		id;
	void	   *resolved;
} KnownSchema;

struct SchemaFrames
{
	const RegistryAccess *registry;
	SchemaResolve resolve;
	void	   *arg;
	MemoryContext context;		/* of what follows */
	int			nknown;
	int			last;			/* the one that the last message had */
	KnownSchema *known;
};

void
registry_check(const char *format, const RegistryAccess *access, const char *url, const char *otherwise)
{
	if (!registry_available())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("upsert_kafka was built without libcurl, and cannot ask a schema registry"),
				 errhint("Install libcurl4-openssl-dev (or your system's package of that kind) and build again%s.", otherwise)));
	if (access->url == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"registry_url\"", access->server_name),
				 errdetail("Format \"%s\" asks a schema registry, and which one is the server's to say.", format),
				 errhint("ALTER SERVER .. OPTIONS (ADD registry_url 'http://..')%s.", otherwise)));
	if (url && strncmp(url, access->url, strlen(access->url)) == 0 &&
		strspn(url + strlen(access->url), "/") == strlen(url + strlen(access->url)))
		return;
	if (url)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the option \"url\" of format \"%s\" is not the registry_url of server \"%s\"",
						format, access->server_name),
				 errdetail("Requests leave from the database server, so only the foreign server's owner says where they go."),
				 errhint("Leave the option out, or have \"registry_url\" of the server changed.")));
}

uint32
registry_frame_take(const char **bytes, Size *len, int more, const char *hint)
{
	uint32		id;

	if (*len > 0 && **bytes != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("magic byte 0x00 expected, found 0x%02x", (unsigned char) **bytes),
				 **bytes == '{' ? errhint("The message looks like JSON text.") :
				 errhint("The message has no frame of a schema registry; %s.", hint)));
	if (*len < FRAME_SIZE + more)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a frame of a schema registry has %s%d bytes, the message %zu", more > 0 ? "at least " : "",
						FRAME_SIZE + more, *len)));
	memcpy(&id, *bytes + 1, sizeof(id));
	*bytes += FRAME_SIZE;
	*len -= FRAME_SIZE;
	return pg_ntoh32(id);
}

void
registry_frame_put(StringInfo bytes, uint32 id)
{
	uint32		big_endian = pg_hton32(id);

	appendStringInfoChar(bytes, '\0');
	appendBinaryStringInfo(bytes, (const char *) &big_endian, sizeof(big_endian));
}

SchemaFrames *
schema_frames_create(const RegistryAccess *registry, SchemaResolve resolve, void *arg)
{
	SchemaFrames *frames = palloc0(sizeof(SchemaFrames));

	frames->registry = registry;
	frames->resolve = resolve;
	frames->arg = arg;
	frames->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka schemas", ALLOCSET_DEFAULT_SIZES);
	frames->last = -1;
	return frames;
}

/* Ask the registry; what fails leaves nothing behind. */
static void *
resolve_id(SchemaFrames *frames, uint32 id)
{
	const RegistrySchema *schema = registry_schema(frames->registry, id);
	MemoryContext context;
	MemoryContext old;
	void	   *resolved;

	/* the current one is a batch's, and gone soon after an error */
	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka schema", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	resolved = frames->resolve(schema, id, frames->arg);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, frames->context);
	return resolved;
}

void *
schema_frames_find(SchemaFrames *frames, uint32 id)
{
	void	   *resolved;

	if (likely(frames->last >= 0 && frames->known[frames->last].id == id))
		return frames->known[frames->last].resolved;
	for (int i = 0; i < frames->nknown; i++)
	{
		if (frames->known[i].id == id)
		{
			frames->last = i;
			return frames->known[i].resolved;
		}
	}
	if (frames->nknown == MAX_SCHEMAS)
	{
		frames->nknown = 0;
		frames->last = -1;
		frames->known = NULL;
		MemoryContextReset(frames->context);
	}
	resolved = resolve_id(frames, id);
	if (frames->known == NULL)
		frames->known = MemoryContextAlloc(frames->context, sizeof(KnownSchema) * MAX_SCHEMAS);
	frames->known[frames->nknown].id = id;
	frames->known[frames->nknown].resolved = resolved;
	frames->last = frames->nknown++;
	return resolved;
}
