/*
 * format.c
 *	  The formats of this build, by name.
 *
 * A new format is a file with a FormatRoutine, a line in formats.h and one here.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "format/formats.h"

static const FormatRoutine *const formats[] = {
	&json_format,
	&debezium_json_format,
	&canal_json_format,
	&maxwell_json_format,
	&ogg_json_format,
	&raw_format,
	&csv_format,
	&avro_format,
	&avro_confluent_format,
	&debezium_avro_confluent_format,
	&protobuf_format,
	&protobuf_confluent_format
};

const FormatRoutine *
format_lookup(const char *name)
{
	for (int i = 0; i < lengthof(formats); i++)
	{
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	}
	return NULL;
}

const char *const *
format_names(void)
{
	static const char *names[lengthof(formats) + 1];

	for (int i = 0; i < lengthof(formats); i++)
		names[i] = formats[i]->name;
	return names;
}

const FormatMetadata *
format_metadata(const FormatRoutine *format, const char *name)
{
	for (const FormatMetadata *metadata = format->metadata; metadata && metadata->name; metadata++)
	{
		if (strcmp(metadata->name, name) == 0)
			return metadata;
	}
	return NULL;
}

const char *
format_option(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, name) == 0)
			return defGetString(option);
	}
	return NULL;
}

bool
format_option_is(List *options, const char *name, const char *value)
{
	const char *given = format_option(options, name);

	return given != NULL && strcmp(given, value) == 0;
}

const char *
encoder_subject(const EncoderSpec *spec, const char *given)
{
	if (given != NULL || spec->topic == NULL)
		return given;
	return psprintf("%s-%s", spec->topic, spec->is_key ? "key" : "value");
}

void
encoder_subject_require(const char *subject)
{
	if (subject == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("the subject of a schema is not known"),
				 errdetail("It is called after the topic, of which there are several."),
				 errhint("Name it by the option \"subject\" of the format.")));
}
