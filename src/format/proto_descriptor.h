/*
 * proto_descriptor.h
 *	  What the parts of the descriptors' parser share.
 *
 * Private to proto_schema.c, proto_descriptor.c and proto_fields.c.
 */
#ifndef UK_PROTO_DESCRIPTOR_H
#define UK_PROTO_DESCRIPTOR_H

#include "format/proto_input.h"
#include "nodes/pg_list.h"

/* Numbers up to this many times the number of fields, or of an enum's values, are found by index. */
#define DENSE_FACTOR 4

/* What the editions call features; syntaxes are sets of them */
typedef struct Features
{
	int			presence;		/* 1 explicit, 2 implicit, 3 required */
	int			enums;			/* 1 open, 2 closed */
	int			repeated;		/* 1 packed, 2 expanded */
	int			messages;		/* 1 with their length, 2 as groups */
} Features;

/* A type of the descriptor before its fields are known */
typedef struct RawMessage
{
	ProtoMessage *message;
	ProtoValue	bytes;			/* DescriptorProto */
	Features	features;
	List	   *extensions;		/* RawExtensions that found it */
} RawMessage;

/* A field that is declared outside of its message */
typedef struct RawExtension
{
	ProtoValue	bytes;			/* FieldDescriptorProto */
	const char *scope;			/* the package or message around it */
	Features	features;
} RawExtension;

typedef struct SchemaParser
{
	ProtoSchema *schema;
	List	   *raw;			/* RawMessages */
	List	   *extensions;		/* RawExtensions */
	List	   *enums;
	ProtoEnum **sorted_enums;
	int			nenums;
	List	   *missing;		/* imports that are not there */
	int			nnodes;
	char	   *error;
} SchemaParser;

/* Remembers the first error; always false. */
extern bool proto_bad(SchemaParser *parser, char *what);

/* false, with an error, if there are too many types and fields. */
extern bool proto_count_node(SchemaParser *parser);

/* The next field of a message of the descriptor; false at its end, or after an error. */
extern bool proto_next(SchemaParser *parser, ProtoInput *in, uint32 *number, ProtoWire *wire, ProtoValue *value);

static inline ProtoInput
proto_input_of(const ProtoValue *value)
{
	ProtoInput	in = {value->p, value->p + value->len, NULL};

	return in;
}

/* A name in the database encoding; "" after an error */
extern const char *proto_name_of(SchemaParser *parser, const ProtoValue *value);

/* The first field of a message, which is its name, and of an EnumValueDescriptorProto the number */
extern void proto_read_named(SchemaParser *parser, const ProtoValue *bytes, const char **name, int32 *value);

/* The features in an options message, where they are its field 'at'; what is not said stays. */
extern void proto_read_features(SchemaParser *parser, const ProtoValue *options, uint32 at, Features *features);

/* "a.b" and "c" -> "a.b.c" */
extern const char *proto_qualified(const char *scope, const char *name);

/*
 * A FileDescriptorProto: its types without their fields, and its extensions, are added to
 * the parser's.
 */
extern void proto_read_file(SchemaParser *parser, const ProtoValue *bytes, ProtoFile *file);

/*
 * The fields of all messages, when all types are known; sorted_raw is in the order of
 * ProtoSchema.messages.  false, with an error, if they are no good.
 */
extern bool proto_read_fields(SchemaParser *parser, RawMessage **sorted_raw);

#endif							/* UK_PROTO_DESCRIPTOR_H */
