/*
 * avro_confluent.c
 *	  Confluent's framing of Avro values, see avro_confluent.h.
 *
 * Which schema a message was written with is the registry's to say; ids never change
 * their meaning, so each is asked for and resolved once.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/avro_confluent.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

/* Confluent's wire format: byte 0x00, four bytes of schema id, most significant first */
#define FRAME_SIZE 5

/* Schemas that a decoder keeps what it made of; beyond it, it begins anew. */
#define MAX_SCHEMAS 256

typedef struct KnownSchema
{
	uint32		id;
	void	   *resolved;
} KnownSchema;

struct AvroFrames
{
	const RegistryAccess *registry;
	AvroResolve resolve;
	void	   *arg;
	MemoryContext context;		/* of what follows */
	int			nknown;
	int			last;			/* the one that the last message had */
	KnownSchema *known;
};

void
avro_read_options(List *options, AvroOptions *result)
{
	ListCell   *lc;

	memset(result, 0, sizeof(*result));
	result->legacy = true;
	result->empty_value = "error";
	value_style_parse(options, &result->style);
	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, "schema") == 0)
			result->schema = defGetString(option);
		else if (strcmp(option->defname, "subject") == 0)
			result->subject = defGetString(option);
		else if (strcmp(option->defname, "url") == 0)
			result->url = defGetString(option);
		else if (strcmp(option->defname, "timestamp_mapping_legacy") == 0)
			result->legacy = defGetBoolean(option);
		else if (strcmp(option->defname, "encoding") == 0)
			result->json = strcmp(defGetString(option), "json") == 0;
		else if (strcmp(option->defname, "empty_value") == 0)
			result->empty_value = defGetString(option);
	}
}

AvroNode *
avro_own_schema(const AvroOptions *options, const char *json)
{
	char	   *error;
	AvroNode   *schema = avro_schema_parse(1, &json, &error);

	if (schema == NULL)
		ereport(ERROR,
				(errcode(options->schema ? ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE : ERRCODE_FDW_INVALID_COLUMN_NAME),
				 options->schema ? errmsg("the option \"schema\" of the Avro format is no Avro schema")
				 : errmsg("the columns give no Avro schema"),
				 errdetail("%s.", error)));
	return schema;
}

void
avro_check_registry(const char *format, const RegistryAccess *access, const AvroOptions *options)
{
	if (!registry_available())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("upsert_kafka was built without libcurl, and cannot ask a schema registry"),
				 errhint("Install libcurl4-openssl-dev (or your system's package of that kind) and build again.")));
	if (access->url == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"registry_url\"", access->server_name),
				 errdetail("Format \"%s\" asks a schema registry, and which one is the server's to say.", format),
				 errhint("ALTER SERVER .. OPTIONS (ADD registry_url 'http://..').")));
	if (options->url && strncmp(options->url, access->url, strlen(access->url)) == 0 &&
		strspn(options->url + strlen(access->url), "/") == strlen(options->url + strlen(access->url)))
		return;
	if (options->url)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the option \"url\" of format \"%s\" is not the registry_url of server \"%s\"",
						format, access->server_name),
				 errdetail("Requests leave from the database server, so only the foreign server's owner says where they go."),
				 errhint("Leave the option out, or have \"registry_url\" of the server changed.")));
}

/* === Reading ================================================================ */

AvroFrames *
avro_frames_create(const RegistryAccess *registry, AvroResolve resolve, void *arg)
{
	AvroFrames *frames = palloc0(sizeof(AvroFrames));

	frames->registry = registry;
	frames->resolve = resolve;
	frames->arg = arg;
	frames->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka Avro schemas", ALLOCSET_DEFAULT_SIZES);
	frames->last = -1;
	return frames;
}

/* Ask the registry; what fails leaves nothing behind. */
static void *
resolve_id(AvroFrames *frames, uint32 id)
{
	const RegistrySchema *schema = registry_schema(frames->registry, id);
	MemoryContext context;
	MemoryContext old;
	AvroNode   *node;
	void	   *resolved;
	char	   *error;

	if (strcmp(schema->type, "AVRO") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is of type %s, not AVRO", id, schema->type),
				 strcmp(schema->type, "JSON") == 0 ? errhint("Format \"json\" reads such messages with its option registry_framing 'strip'.") : 0));

	/* the current one is a batch's, and gone soon after an error */
	context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka Avro schema", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	node = avro_schema_parse(schema->ntexts, schema->texts, &error);
	if (node == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is no Avro schema", id),
				 errdetail("%s.", error)));
	resolved = frames->resolve(node, frames->arg);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, frames->context);
	return resolved;
}

static void *
known_schema(AvroFrames *frames, uint32 id)
{
	void	   *resolved;

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

/* Also what is no frame at all: bare Avro, JSON text, an empty message (case G02) */
static uint32
frame_id(const char *bytes, Size len)
{
	uint32		id;

	if (len > 0 && bytes[0] != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("magic byte 0x00 expected, found 0x%02x", (unsigned char) bytes[0]),
				 bytes[0] == '{' ? errhint("The message looks like JSON text.") :
				 errhint("The message has no frame of a schema registry; bare Avro is format 'avro'.")));
	if (len < FRAME_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("a frame of a schema registry has %d bytes, the message %zu", FRAME_SIZE, len)));
	memcpy(&id, bytes + 1, sizeof(id));
	return pg_ntoh32(id);
}

void *
avro_frames_find(AvroFrames *frames, const char **bytes, Size *len)
{
	uint32		id = frame_id(*bytes, *len);

	*bytes += FRAME_SIZE;
	*len -= FRAME_SIZE;
	if (likely(frames->last >= 0 && frames->known[frames->last].id == id))
		return frames->known[frames->last].resolved;
	return known_schema(frames, id);
}

/* === Writing ================================================================ */

void
avro_frame_writer_init(AvroFrameWriter *writer, const EncoderSpec *spec, const AvroOptions *options, const char *schema)
{
	memset(writer, 0, sizeof(*writer));
	writer->registry = spec->registry;
	writer->schema = schema;
	writer->subject = encoder_subject(spec, options->subject);
}

void
avro_frame_put(AvroFrameWriter *writer, StringInfo bytes)
{
	uint32		id;

	if (!writer->registered)
	{
		encoder_subject_require(writer->subject);
		writer->id = registry_register(writer->registry, writer->subject, writer->schema);
		writer->registered = true;
	}
	id = pg_hton32(writer->id);
	appendStringInfoChar(bytes, '\0');
	appendBinaryStringInfo(bytes, (const char *) &id, sizeof(id));
}
