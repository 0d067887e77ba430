/*
 * proto_input.h
 *	  Protobuf's wire format, read without ever passing the end of the bytes.
 *
 * Private to the protobuf format.  A message is first taken apart into slots, one per field
 * that somebody wants; converting them comes after, so that the last value of a field wins.
 */
#ifndef UK_PROTO_INPUT_H
#define UK_PROTO_INPUT_H

#include "compat.h"
#include "format/proto_schema.h"

/* Deeper messages are refused, as by Google's libraries. */
#define PROTO_MAX_DEPTH 100

typedef struct ProtoInput
{
	const char *p;
	const char *end;
	const char *error;			/* why a function returned false */
} ProtoInput;

/* A value as it is on the wire */
typedef struct ProtoValue
{
	uint64		bits;			/* of varints and fixed ones */
	const char *p;				/* of bytes, texts, messages */
	uint32		len;
	bool		packed;			/* p has many values of a repeated field */
} ProtoValue;

/* What a message says of one field */
typedef struct ProtoSlot
{
	bool		set;
	ProtoValue	value;			/* of singular fields */
	int			n;				/* of repeated ones */
	int			room;
	ProtoValue *items;
	char	   *merged;			/* of a message that came in several parts */
	Size		merged_room;
} ProtoSlot;

/*
 * Which fields of a message are wanted.  Each has a slot of its own; members of a oneof
 * have one if any of them is wanted, since one takes the other's place.
 */
typedef struct ProtoScan
{
	const ProtoMessage *message;
	int			nslots;
	ProtoSlot  *slots;
	int		   *slot_of;		/* per field of the message; -1: passed over */
	int		   *member;			/* per oneof: slot of the member that is set,
								 * or -1 */
	bool		owns;			/* slots have memory of their own */
} ProtoScan;

static inline bool
proto_read_varint(ProtoInput *in, uint64 *value)
{
	uint64		result = 0;

	for (int shift = 0; shift < 64; shift += 7)
	{
		unsigned char byte;

		if (unlikely(in->p >= in->end))
		{
			in->error = "it ends within a number";
			return false;
		}
		byte = (unsigned char) *in->p++;
		result |= (uint64) (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
		{
			if (unlikely(shift == 63 && byte > 1))
				break;
			*value = result;
			return true;
		}
	}
	in->error = "a number has more than 64 bits";
	return false;
}

/* The next field's number and wire type. */
extern bool proto_read_tag(ProtoInput *in, uint32 *number, ProtoWire *wire);

/* The value behind a tag, whatever it is; the content of a group as p and len. */
extern bool proto_read_value(ProtoInput *in, uint32 number, ProtoWire wire, ProtoValue *value);

/*
 * A scan for the fields of which wanted[index] is true; NULL: for all.  In
 * CurrentMemoryContext.
 */
extern ProtoScan *proto_scan_create(const ProtoMessage *message, const bool *wanted);

/*
 * Take a message apart.  Slots point into the bytes, or into memory of
 * CurrentMemoryContext, and hold until the next call.  Required fields among them are
 * looked for.  ERROR 22P03.
 */
extern void proto_scan_run(ProtoScan *scan, const char *bytes, Size len, int depth);

/* Free what the slots point to beside the bytes, which a message may have much of. */
extern void proto_scan_release(ProtoScan *scan);

/* The same, and the scan itself. */
extern void proto_scan_free(ProtoScan *scan);

/* The slot of a field that is wanted. */
static inline ProtoSlot *
proto_slot(ProtoScan *scan, const ProtoField *field)
{
	return &scan->slots[scan->slot_of[field->index]];
}

/* The values of a repeated field one by one, packed or not. */
typedef struct ProtoItems
{
	const ProtoField *field;
	const ProtoSlot *slot;
	int			next;
	ProtoInput	packed;
} ProtoItems;

extern void proto_items_begin(ProtoItems *items, const ProtoField *field, const ProtoSlot *slot);

/* false at the end.  ERROR 22P03 for packed values that are broken. */
extern bool proto_items_next(ProtoItems *items, ProtoValue *value);

/* Numbers as their field's type has them */
extern int64 proto_signed(const ProtoField *field, const ProtoValue *value);
extern double proto_double(const ProtoField *field, const ProtoValue *value);
extern bool proto_is_unsigned(const ProtoField *field);

/*
 * The text of a string, checked, in the database encoding; 'strip_nul': without NULs.
 * ERROR 22021.
 */
extern const char *proto_text(const ProtoValue *value, bool strip_nul, Size *len);

/*
 * The fields 1 to n of a message that has nothing but varints, 0 where they are left out.
 * ERROR 22P03.
 */
extern void proto_small_message(const ProtoValue *value, int n, int64 *numbers);

extern void proto_raise(const char *what) pg_attribute_noreturn();

#endif							/* UK_PROTO_INPUT_H */
