/*
 * proto_json.h
 *	  Protobuf values as text: what columns of other types are made from.
 *
 * Private to the protobuf format.  The spelling is that of protobuf's JSON mapping, but for
 * names, which are those of the fields, and integers, which are numbers.
 */
#ifndef UK_PROTO_JSON_H
#define UK_PROTO_JSON_H

#include "format/proto_input.h"
#include "lib/stringinfo.h"

/* How values are shown, among them those that a message leaves out */
typedef struct ProtoJsonOptions
{
	bool		defaults;		/* as their defaults, also where absence could
								 * be told */
	bool		strip_nul;		/* from text, which cannot hold it */
} ProtoJsonOptions;

/* Append a value of a singular field as JSON, in the database encoding. */
extern void proto_json_append(StringInfo out, const ProtoField *field, const ProtoValue *value,
							  const ProtoJsonOptions *options, int depth);

/* The same for a value that stands alone: text without quotes.  *is_number: it is one. */
extern void proto_text_append(StringInfo out, const ProtoField *field, const ProtoValue *value,
							  const ProtoJsonOptions *options, int depth, bool *is_number);

/* All values of a repeated field: an array, or an object if it is a map */
extern void proto_json_append_all(StringInfo out, const ProtoField *field, const ProtoSlot *slot,
								  const ProtoJsonOptions *options, int depth);

/* A map as hstore's input has it */
extern void proto_hstore_append(StringInfo out, const ProtoField *field, const ProtoSlot *slot,
								const ProtoJsonOptions *options, int depth);

/* What stands for a field that is left out */
extern void proto_default(const ProtoField *field, ProtoValue *value);

#endif							/* UK_PROTO_JSON_H */
