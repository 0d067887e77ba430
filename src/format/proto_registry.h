/*
 * proto_registry.h
 *	  Protobuf's schemas in a registry: read with all that they import, and registered so.
 *
 * Private to the format "protobuf-confluent".
 */
#ifndef UK_PROTO_REGISTRY_H
#define UK_PROTO_REGISTRY_H

#include "format/proto_schema.h"
#include "registry/registry.h"

/*
 * A registry's schema: .proto sources, or FileDescriptorProtos in base64 as Confluent's
 * Python client registers them.  *file is the schema's own file.  In CurrentMemoryContext.
 * NULL if it is of no use; *error says why.
 */
extern ProtoSchema *proto_registry_schema(const RegistrySchema *schema, const ProtoFile **file, char **error);

/*
 * Register a .proto source, in the database encoding, or 'file' if it is NULL.  What is
 * imported, but for what everybody has, is referred to under its own name as the subject, as
 * Confluent's serializers do: the file of 'own' is registered there, and if that does not
 * have it, the subject's latest version is meant.  The schema's id.  ERROR as
 * registry_register_as(); HV000 for an import that nobody has; HV024 if it is no source.
 */
extern uint32 proto_registry_register(const RegistryAccess *access, const char *subject, const char *source,
									  const ProtoSchema *own, const ProtoFile *file);

#endif							/* UK_PROTO_REGISTRY_H */
