/*
 * proto_source.h
 *	  .proto sources: what a registry has of protobuf's schemas.
 *
 * Private to the protobuf format.
 */
#ifndef UK_PROTO_SOURCE_H
#define UK_PROTO_SOURCE_H

#include "format/proto_input.h"

/*
 * A source in UTF-8 as a FileDescriptorProto of that file's name, in CurrentMemoryContext.
 * Types are named as the source names them: proto_schema_build() finds them.  Options
 * that neither reading nor writing asks for are passed over, services as well.  false if it
 * is no source; *error says why, and in which line.
 */
extern bool proto_source_compile(const char *source, const char *file, ProtoValue *bytes, char **error);

/* Is it a file that comes with protobuf's compilers, so that registries need not hold it? */
extern bool proto_is_builtin(const char *file);

/* One of these that is known here; false: it is none */
extern bool proto_builtin_file(const char *file, ProtoValue *bytes);
extern const int proto_nbuiltin_files;

#endif							/* UK_PROTO_SOURCE_H */
