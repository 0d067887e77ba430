/*
 * proto_schema.h
 *	  Protobuf's descriptors as trees: what decoders and encoders are compiled from.
 *
 * Private to the protobuf format.  proto2, proto3 and the editions are told apart here and
 * nowhere else: fields say what they do (presence, packed, closed enums ..).
 */
#ifndef UK_PROTO_SCHEMA_H
#define UK_PROTO_SCHEMA_H

/* As FieldDescriptorProto.Type counts them */
typedef enum ProtoType
{
	PROTO_DOUBLE = 1,
	PROTO_FLOAT,
	PROTO_INT64,
	PROTO_UINT64,
	PROTO_INT32,
	PROTO_FIXED64,
	PROTO_FIXED32,
	PROTO_BOOL,
	PROTO_STRING,
	PROTO_GROUP,
	PROTO_MESSAGE,
	PROTO_BYTES,
	PROTO_UINT32,
	PROTO_ENUM,
	PROTO_SFIXED32,
	PROTO_SFIXED64,
	PROTO_SINT32,
	PROTO_SINT64
} ProtoType;

typedef enum ProtoWire
{
	WIRE_VARINT,
	WIRE_FIXED64,
	WIRE_BYTES,
	WIRE_GROUP,
	WIRE_GROUP_END,
	WIRE_FIXED32
} ProtoWire;

/* Messages that stand for values of PostgreSQL's */
typedef enum ProtoWellKnown
{
	KNOWN_NONE,
	KNOWN_TIMESTAMP,			/* google.protobuf.Timestamp */
	KNOWN_DURATION,
	KNOWN_WRAPPER,				/* google.protobuf.Int32Value ..,
								 * google.type.Decimal: the field "value" */
	KNOWN_STRUCT,
	KNOWN_VALUE,
	KNOWN_LIST,
	KNOWN_DATE,					/* google.type.Date */
	KNOWN_TIME,					/* google.type.TimeOfDay */
	KNOWN_ANY,
	KNOWN_FIELD_MASK
} ProtoWellKnown;

typedef struct ProtoEnum
{
	const char *name;			/* full */
	bool		closed;			/* other numbers are unknown fields */
	bool		is_null;		/* google.protobuf.NullValue, JSON's null */
	int			n;
	const char **names;			/* in the database encoding */
	int32	   *numbers;
	int32		nlow;			/* lower numbers, not negative ones, are found
								 * at once */
	const char **low;
} ProtoEnum;

struct ProtoMessage;
struct ProtoSchema;

typedef struct ProtoField
{
	const char *name;			/* in the database encoding; "[package.name]" of
								 * an extension, as JSON has it */
	const char *json_name;
	uint32		number;
	int			index;			/* in the message's fields */
	ProtoType	type;
	ProtoWire	wire;			/* of one value */
	bool		repeated;
	bool		is_map;
	bool		packed;			/* when written */
	bool		required;
	bool		extension;		/* declared outside of the message */
	bool		presence;		/* absent is not the same as its default */
	int			oneof;			/* -1: of none */
	bool		simple;			/* its last value counts, whatever it is */
	const struct ProtoMessage *message;
	const ProtoEnum *enumeration;

	/* what an absent one is taken for: bits, or bytes */
	uint64		default_bits;
	const char *default_bytes;
	uint32		default_len;
} ProtoField;

typedef struct ProtoMessage
{
	const char *name;			/* full, in the database encoding */
	const char *java_name;		/* its class, all separators dots */
	ProtoWellKnown known;
	bool		map_entry;
	const struct ProtoSchema *schema;
	int			file;			/* in ProtoSchema.files */
	int			nnested;		/* types within it, in their order */
	const struct ProtoMessage **nested;
	int			noneofs;
	const char **oneofs;		/* names */
	int			n;
	ProtoField *fields;			/* by number */
	int			nrequired;
	const ProtoField **required;
	uint32		ndense;			/* fields of lower numbers are found at once */
	const ProtoField **dense;
} ProtoMessage;

typedef struct ProtoFile
{
	const char *name;
	const char *bytes;			/* its FileDescriptorProto */
	uint32		len;
	int			nimports;
	const char **imports;
	bool		imported;		/* by another one */
	int			nmessages;		/* outermost ones, in their order */
	const ProtoMessage **messages;
} ProtoFile;

typedef struct ProtoSchema
{
	int			nfiles;
	ProtoFile  *files;
	int			nmessages;
	ProtoMessage **messages;	/* all, by name */
} ProtoSchema;

/*
 * Parse a FileDescriptorSet in base64.  Allocated in CurrentMemoryContext.  NULL if it is
 * none, or does not have all that it refers to; *error says why.  Google's own files, which
 * others import, need not be in it.
 */
extern ProtoSchema *proto_schema_parse(const char *base64, char **error);

/* A FileDescriptorProto; 'name' instead of its own if it is given */
typedef struct ProtoPart
{
	const char *name;
	const char *bytes;
	uint32		len;
} ProtoPart;

/* The same from its files, which are kept by reference. */
extern ProtoSchema *proto_schema_build(int n, const ProtoPart *parts, char **error);

/* One file alone, for its imports.  NULL, or what is wrong with it. */
struct ProtoValue;
extern char *proto_file_read(const struct ProtoValue *bytes, ProtoFile *file);

/* NULL if there is no file of that name. */
extern const ProtoFile *proto_file_named(const ProtoSchema *schema, const char *name);

/* Blanks are passed over; *len < 0: it is no base64. */
extern char *proto_base64_decode(const char *text, int *len);

/* A message type by its full name; NULL if there is none. */
extern const ProtoMessage *proto_message_named(const ProtoSchema *schema, const char *name);

/* The type that a google.protobuf.Any names behind the last /; NULL if there is none. */
extern const ProtoMessage *proto_any_type(const ProtoSchema *schema, const char *url);

/* Is a message of the type something else than an object of its fields in JSON? */
static inline bool
proto_has_own_json(const ProtoMessage *message)
{
	return message->known != KNOWN_NONE;
}

/*
 * A message type by its full name, or by its Java class.  NULL if there is none; *hint is
 * a sentence about those that there are.
 */
extern const ProtoMessage *proto_message_find(const ProtoSchema *schema, const char *name, char **hint);

extern const char *proto_enum_name_search(const ProtoEnum *enumeration, int32 number);

/* An enum's name of a number, the first of several; NULL if it has none. */
static inline const char *
proto_enum_name(const ProtoEnum *enumeration, int32 number)
{
	return likely(number >= 0 && number < enumeration->nlow) ? enumeration->low[number] :
		proto_enum_name_search(enumeration, number);
}

/* false if the enum has no such name (in the database encoding) */
extern bool proto_enum_number(const ProtoEnum *enumeration, const char *name, Size len, int32 *number);

/* NULL if there is no field of that name; also by its JSON name if 'json'. */
extern const ProtoField *proto_field_by_name(const ProtoMessage *message, const char *name, bool json);

/* "int32", "message \"a.B\"", "repeated string" .. for messages */
extern char *proto_type_name(const ProtoField *field);

extern const ProtoField *proto_sparse_field(const ProtoMessage *message, uint32 number);

static inline const ProtoField *
proto_field_by_number(const ProtoMessage *message, uint32 number)
{
	return likely(number < message->ndense) ? message->dense[number] : proto_sparse_field(message, number);
}

#endif							/* UK_PROTO_SCHEMA_H */
