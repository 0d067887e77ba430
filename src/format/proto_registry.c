/*
 * proto_registry.c
 *	  Protobuf's schemas in a registry, see proto_registry.h.
 */
#include "postgres.h"

#include "common/base64.h"
#include "format/proto_registry.h"
#include "format/proto_source.h"
#include "format/value_output.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

/* Files that import files */
#define MAX_IMPORT_DEPTH 20

/* === Reading ================================================================ */

/* One of a schema's texts; no source is valid base64. */
static bool
read_text(const char *text, const char *name, ProtoPart *part, char **error)
{
	ProtoValue	bytes;
	int			len;

	part->name = pg_any_to_server(name, (int) strlen(name), PG_UTF8);
	part->bytes = proto_base64_decode(text, &len);
	part->len = (uint32) len;
	if (len > 0)
		return true;
	if (!proto_source_compile(text, name, &bytes, error))
	{
		*error = psprintf("\"%s\", %s", part->name, *error);
		return false;
	}
	part->bytes = bytes.p;
	part->len = bytes.len;
	return true;
}

ProtoSchema *
proto_registry_schema(const RegistrySchema *schema, const ProtoFile **file, char **error)
{
	ProtoPart  *parts = palloc0(sizeof(ProtoPart) * schema->ntexts);
	ProtoSchema *result;

	for (int i = 0; i < schema->ntexts; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_text(schema->texts[i], schema->names[i] ? schema->names[i] : "schema.proto", &parts[i], error))
			return NULL;
	}
	result = proto_schema_build(schema->ntexts, parts, error);
	if (result)
		*file = &result->files[schema->ntexts - 1];
	return result;
}

/* === Registering ============================================================ */

static RegistryReference *references_of(const RegistryAccess *access, const ProtoFile *file, const ProtoSchema *own,
										int depth, int *n);

static char *
base64_of(const ProtoFile *file)
{
	int			room = pg_b64_enc_len((int) file->len);
	char	   *text = palloc(room + 1);

	text[pg_b64_encode((const void *) file->bytes, (int) file->len, text, room)] = '\0';
	return text;
}

/* The version of an imported file under its own name */
static int
version_of_import(const RegistryAccess *access, const char *name, const ProtoSchema *own, int depth)
{
	const ProtoFile *file = own ? proto_file_named(own, name) : NULL;
	RegistryReference *references;
	char	   *text;
	int			n;
	int			version;

	if (file)
	{
		references = references_of(access, file, own, depth + 1, &n);
		text = base64_of(file);
		(void) registry_register_as(access, name, "PROTOBUF", text, n, references);
		return registry_version(access, name, "PROTOBUF", text, n, references);
	}
	version = registry_latest_version(access, name);
	if (version == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("\"%s\", which the schema imports, is not known", name),
				 errdetail("The descriptor does not have the file, and the schema registry of server \"%s\" no subject of that name.", access->server_name),
				 errhint("Make the descriptor with protoc --include_imports.")));
	return version;
}

/* What a file's imports are in the registry, registered if need be */
static RegistryReference *
references_of(const RegistryAccess *access, const ProtoFile *file, const ProtoSchema *own, int depth, int *n)
{
	RegistryReference *references = palloc(sizeof(RegistryReference) * Max(file->nimports, 1));

	if (depth > MAX_IMPORT_DEPTH)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("the files of the schema import each other too deeply")));
	*n = 0;
	for (int i = 0; i < file->nimports; i++)
	{
		const char *name = file->imports[i];

		if (proto_is_builtin(name))
			continue;
		references[*n].name = references[*n].subject = name;
		references[*n].version = version_of_import(access, name, own, depth);
		(*n)++;
	}
	return references;
}

uint32
proto_registry_register(const RegistryAccess *access, const char *subject, const char *source,
						const ProtoSchema *own, const ProtoFile *file)
{
	ProtoFile	compiled = {0};
	ProtoValue	bytes;
	RegistryReference *references;
	const char *utf8 = NULL;
	char	   *error = NULL;
	Size		len;
	int			n;

	if (source)
	{
		len = strlen(source);
		utf8 = text_to_utf8(source, &len);
		if (proto_source_compile(utf8, "schema.proto", &bytes, &error))
			error = proto_file_read(&bytes, &compiled);
		if (error)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("the option \"schema\" is no .proto source"),
					 errdetail("It has in %s.", error)));
		file = &compiled;
	}
	references = references_of(access, file, own, 0, &n);
	return registry_register_as(access, subject, "PROTOBUF", source ? utf8 : base64_of(file), n, references);
}
