/*
 * avro_confluent.c
 *	  Confluent's framing of Avro values, see avro_confluent.h.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/avro_confluent.h"
#include "format/registry_frames.h"

struct AvroFrames
{
	SchemaFrames *frames;
	AvroResolve resolve;
	void	   *arg;
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
	registry_check(format, access, options->url, "");
}

/* === Reading ================================================================ */

static void *
resolve_schema(const RegistrySchema *schema, uint32 id, void *arg)
{
	AvroFrames *frames = arg;
	AvroNode   *node;
	char	   *error;

	if (strcmp(schema->type, "AVRO") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is of type %s, not AVRO", id, schema->type),
				 strcmp(schema->type, "JSON") == 0 ? errhint("Format \"json\" reads such messages with its option registry_framing 'strip'.") : 0));
	node = avro_schema_parse(schema->ntexts, schema->texts, &error);
	if (node == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("schema %u of the registry is no Avro schema", id),
				 errdetail("%s.", error)));
	return frames->resolve(node, frames->arg);
}

AvroFrames *
avro_frames_create(const RegistryAccess *registry, AvroResolve resolve, void *arg)
{
	AvroFrames *frames = palloc0(sizeof(AvroFrames));

	frames->frames = schema_frames_create(registry, resolve_schema, frames);
	frames->resolve = resolve;
	frames->arg = arg;
	return frames;
}

void *
avro_frames_find(AvroFrames *frames, const char **bytes, Size *len)
{
	return schema_frames_find(frames->frames, registry_frame_take(bytes, len, 0, "bare Avro is format 'avro'"));
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
	if (!writer->registered)
	{
		encoder_subject_require(writer->subject);
		writer->id = registry_register(writer->registry, writer->subject, writer->schema);
		writer->registered = true;
	}
	registry_frame_put(bytes, writer->id);
}
