/*
 * proto_input.c
 *	  Protobuf's wire format: tags, values, messages taken apart into slots.
 *
 * https://protobuf.dev/programming-guides/encoding.  Knows descriptors, but no PostgreSQL
 * types.
 */
#include "postgres.h"

#include "format/proto_input.h"
#include "format/value_style.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

void
proto_raise(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("the bytes are no protobuf message of the table's type: %s", what)));
	pg_unreachable();
}

/* === Values ================================================================= */

bool
proto_read_tag(ProtoInput *in, uint32 *number, ProtoWire *wire)
{
	uint64		tag;

	if (!proto_read_varint(in, &tag))
		return false;
	*number = (uint32) (tag >> 3);
	*wire = (ProtoWire) (tag & 7);
	if (unlikely(tag > PG_UINT32_MAX || *number == 0))
	{
		in->error = "there is no field of that number";
		return false;
	}
	return true;
}

static bool
read_fixed(ProtoInput *in, int width, uint64 *bits)
{
	uint64		result = 0;

	if (unlikely(in->end - in->p < width))
	{
		in->error = "it ends within a number";
		return false;
	}
	for (int i = width - 1; i >= 0; i--)
		result = result << 8 | (unsigned char) in->p[i];
	in->p += width;
	*bits = result;
	return true;
}

/* Up to the end of the group that was begun; groups in it end first. */
static bool
read_group(ProtoInput *in, uint32 number, ProtoValue *value)
{
	uint32		open[PROTO_MAX_DEPTH];
	int			depth = 0;
	const char *begin = in->p;

	open[depth] = number;
	for (;;)
	{
		const char *tag = in->p;
		ProtoWire	wire;
		ProtoValue	inner;

		if (in->p >= in->end)
		{
			in->error = "it ends within a group";
			return false;
		}
		if (!proto_read_tag(in, &number, &wire))
			return false;
		if (wire == WIRE_GROUP)
		{
			if (++depth == PROTO_MAX_DEPTH)
			{
				in->error = "groups are nested too deeply";
				return false;
			}
			open[depth] = number;
		}
		else if (wire == WIRE_GROUP_END)
		{
			if (open[depth] != number)
				break;
			if (depth-- == 0)
			{
				value->p = begin;
				value->len = (uint32) (tag - begin);
				return true;
			}
		}
		else if (!proto_read_value(in, number, wire, &inner))
			return false;
	}
	in->error = "a group ends that was not begun";
	return false;
}

bool
proto_read_value(ProtoInput *in, uint32 number, ProtoWire wire, ProtoValue *value)
{
	uint64		len;

	value->packed = false;
	switch (wire)
	{
		case WIRE_VARINT:
			return proto_read_varint(in, &value->bits);
		case WIRE_FIXED64:
			return read_fixed(in, 8, &value->bits);
		case WIRE_FIXED32:
			return read_fixed(in, 4, &value->bits);
		case WIRE_BYTES:
			if (!proto_read_varint(in, &len))
				return false;
			if (unlikely(len > (uint64) (in->end - in->p) || len > PG_INT32_MAX))
			{
				in->error = "a length goes beyond its end";
				return false;
			}
			value->p = in->p;
			value->len = (uint32) len;
			in->p += len;
			return true;
		case WIRE_GROUP:
			return read_group(in, number, value);
		case WIRE_GROUP_END:
			in->error = "a group ends that was not begun";
			return false;
		default:
			in->error = "there is no such wire type";
			return false;
	}
}

bool
proto_is_unsigned(const ProtoField *field)
{
	return field->type == PROTO_UINT64 || field->type == PROTO_FIXED64;
}

int64
proto_signed(const ProtoField *field, const ProtoValue *value)
{
	switch (field->type)
	{
		case PROTO_INT32:
		case PROTO_SFIXED32:
		case PROTO_ENUM:
			return (int32) value->bits;
		case PROTO_UINT32:
		case PROTO_FIXED32:
			return (uint32) value->bits;
		case PROTO_SINT32:
			return (int32) ((uint32) value->bits >> 1 ^ -((uint32) value->bits & 1));
		case PROTO_SINT64:
			return (int64) (value->bits >> 1 ^ -(value->bits & 1));
		case PROTO_BOOL:
			return value->bits != 0;
		default:
			return (int64) value->bits;
	}
}

double
proto_double(const ProtoField *field, const ProtoValue *value)
{
	double		result;

	if (field->type == PROTO_FLOAT)
	{
		uint32		bits = (uint32) value->bits;
		float		single;

		memcpy(&single, &bits, sizeof(single));
		return single;
	}
	memcpy(&result, &value->bits, sizeof(result));
	return result;
}

const char *
proto_text(const ProtoValue *value, bool strip_nul, Size *len)
{
	const char *bytes = value->p;
	const char *text;

	*len = value->len;
	if (unlikely(strip_nul))
		bytes = strip_nul_bytes(bytes, len);
	text = pg_any_to_server(bytes, (int) *len, PG_UTF8);

	if (text != bytes)
		*len = strlen(text);
	return text;
}

void
proto_small_message(const ProtoValue *value, int n, int64 *numbers)
{
	ProtoInput	in = {value->p, value->p + value->len, NULL};

	memset(numbers, 0, sizeof(int64) * n);
	while (in.p < in.end)
	{
		uint32		number;
		ProtoWire	wire;
		ProtoValue	field;

		if (!proto_read_tag(&in, &number, &wire) || !proto_read_value(&in, number, wire, &field))
			proto_raise(in.error);
		if (wire == WIRE_VARINT && number <= n)
			numbers[number - 1] = (int64) field.bits;
	}
}

/* === Messages =============================================================== */

ProtoScan *
proto_scan_create(const ProtoMessage *message, const bool *wanted)
{
	ProtoScan  *scan = palloc0(sizeof(ProtoScan));
	bool	   *of_oneof = palloc0(sizeof(bool) * Max(message->noneofs, 1));

	scan->message = message;
	scan->slot_of = palloc(sizeof(int) * Max(message->n, 1));
	scan->member = palloc(sizeof(int) * Max(message->noneofs, 1));
	for (int i = 0; i < message->n; i++)
	{
		if ((wanted == NULL || wanted[i]) && message->fields[i].oneof >= 0)
			of_oneof[message->fields[i].oneof] = true;
	}
	for (int i = 0; i < message->n; i++)
	{
		const ProtoField *field = &message->fields[i];
		bool		needed = wanted == NULL || wanted[i] || field->required ||
			(field->oneof >= 0 && of_oneof[field->oneof]);

		scan->slot_of[i] = needed ? scan->nslots++ : -1;
	}
	scan->slots = palloc0(sizeof(ProtoSlot) * Max(scan->nslots, 1));
	pfree(of_oneof);
	return scan;
}

static void
add_item(ProtoScan *scan, ProtoSlot *slot, const ProtoValue *value)
{
	if (slot->n == slot->room)
	{
		int			room = Max(16, slot->room * 2);

		CHECK_FOR_INTERRUPTS();
		scan->owns = true;
		if (slot->items == NULL)
			slot->items = palloc(sizeof(ProtoValue) * room);
		else
			slot->items = repalloc_huge(slot->items, sizeof(ProtoValue) * room);
		slot->room = room;
	}
	slot->items[slot->n++] = *value;
	slot->set = true;
}

static inline bool
is_closed(const ProtoField *field)
{
	return field->type == PROTO_ENUM && field->enumeration->closed;
}

/* Packed numbers of a closed enum, without those that it does not have */
static void
add_known_items(ProtoScan *scan, ProtoSlot *slot, const ProtoField *field, const ProtoValue *packed)
{
	ProtoInput	in = {packed->p, packed->p + packed->len, NULL};
	ProtoValue	value = {0};

	while (in.p < in.end)
	{
		if (!proto_read_varint(&in, &value.bits))
			proto_raise(in.error);
		if (proto_enum_name(field->enumeration, (int32) value.bits) != NULL)
			add_item(scan, slot, &value);
	}
}

/* Messages of a singular field are one message, whose bytes are theirs behind each other. */
static void
merge(ProtoScan *scan, ProtoSlot *slot, const ProtoValue *value)
{
	Size		len = (Size) slot->value.len + value->len;

	if (len > PG_INT32_MAX)
		proto_raise("a length goes beyond its end");
	scan->owns = true;
	if (slot->merged == NULL || slot->value.p != slot->merged)
	{
		slot->merged_room = len * 2;
		slot->merged = MemoryContextAllocHuge(CurrentMemoryContext, slot->merged_room);
		memcpy(slot->merged, slot->value.p, slot->value.len);
	}
	else if (len > slot->merged_room)
	{
		slot->merged_room = len * 2;
		slot->merged = repalloc_huge(slot->merged, slot->merged_room);
	}
	memcpy(slot->merged + slot->value.len, value->p, value->len);
	slot->value.p = slot->merged;
	slot->value.len = (uint32) len;
}

/* A value that is not simply the last one of its field */
static void
set_slot(ProtoScan *scan, const ProtoField *field, int at, const ProtoValue *value)
{
	ProtoSlot  *slot = &scan->slots[at];

	if (value->packed)
	{
		if (is_closed(field))
			add_known_items(scan, slot, field, value);
		else if (value->len > 0)
			add_item(scan, slot, value);
		return;
	}
	/* a closed enum's unknown number is an unknown field */
	if (is_closed(field) && proto_enum_name(field->enumeration, (int32) value->bits) == NULL)
		return;
	if (field->repeated)
	{
		add_item(scan, slot, value);
		return;
	}
	if (field->message && slot->set)
		merge(scan, slot, value);
	else
		slot->value = *value;
	slot->set = true;
	if (field->oneof >= 0)
	{
		int		   *member = &scan->member[field->oneof];

		if (*member >= 0 && *member != at)
			scan->slots[*member].set = false;
		*member = at;
	}
}

/* proto_read_tag and proto_read_value, most often of a small number or a short text */
static inline bool
read_next(ProtoInput *in, uint32 *number, ProtoWire *wire, ProtoValue *value)
{
	unsigned char tag = (unsigned char) *in->p;

	if (likely(tag >= 8 && tag < 0x80))
	{
		*number = tag >> 3;
		*wire = (ProtoWire) (tag & 7);
		in->p++;
	}
	else if (!proto_read_tag(in, number, wire))
		return false;
	if (*wire == WIRE_BYTES && in->p < in->end)
	{
		unsigned char len = (unsigned char) *in->p;

		if (likely(len < 0x80 && len < in->end - in->p))
		{
			value->packed = false;
			value->p = in->p + 1;
			value->len = len;
			in->p += len + 1;
			return true;
		}
	}
	else if (*wire == WIRE_VARINT)
	{
		value->packed = false;
		return proto_read_varint(in, &value->bits);
	}
	return proto_read_value(in, *number, *wire, value);
}

void
proto_scan_run(ProtoScan *scan, const char *bytes, Size len, int depth)
{
	const ProtoMessage *message = scan->message;
	ProtoInput	in = {bytes, bytes + len, NULL};

	if (unlikely(depth > PROTO_MAX_DEPTH))
		proto_raise("messages are nested too deeply");
	for (int i = 0; i < scan->nslots; i++)
	{
		ProtoSlot  *slot = &scan->slots[i];

		slot->set = false;
		slot->n = slot->room = 0;
		/* an error may have left these, in memory that is gone */
		slot->merged = NULL;
		slot->items = NULL;
	}
	scan->owns = false;
	for (int i = 0; i < message->noneofs; i++)
		scan->member[i] = -1;

	while (in.p < in.end)
	{
		uint32		number;
		ProtoWire	wire;
		ProtoValue	value;
		const ProtoField *field;
		int			at;

		if (unlikely(!read_next(&in, &number, &wire, &value)))
			proto_raise(in.error);
		field = proto_field_by_number(message, number);
		if (field == NULL || (at = scan->slot_of[field->index]) < 0)
			continue;
		if (unlikely(wire != field->wire))
		{
			/*
			 * packed or not is the writer's choice; what else differs is
			 * unknown
			 */
			if (wire != WIRE_BYTES || !field->repeated || field->wire == WIRE_GROUP)
				continue;
			value.packed = true;
		}
		if (likely(field->simple))
		{
			scan->slots[at].value = value;
			scan->slots[at].set = true;
		}
		else
			set_slot(scan, field, at, &value);
	}

	for (int i = 0; i < message->nrequired; i++)
	{
		const ProtoField *field = message->required[i];

		if (!proto_slot(scan, field)->set)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("required field \"%s\" of protobuf message \"%s\" is missing", field->name, message->name)));
	}
}

void
proto_scan_release(ProtoScan *scan)
{
	if (!scan->owns)
		return;
	scan->owns = false;
	for (int i = 0; i < scan->nslots; i++)
	{
		ProtoSlot  *slot = &scan->slots[i];

		if (slot->items)
			pfree(slot->items);
		if (slot->merged)
			pfree(slot->merged);
		slot->items = NULL;
		slot->merged = NULL;
	}
}

void
proto_scan_free(ProtoScan *scan)
{
	proto_scan_release(scan);
	pfree(scan->slots);
	pfree(scan->slot_of);
	pfree(scan->member);
	pfree(scan);
}

void
proto_items_begin(ProtoItems *items, const ProtoField *field, const ProtoSlot *slot)
{
	memset(items, 0, sizeof(*items));
	items->field = field;
	items->slot = slot;
}

bool
proto_items_next(ProtoItems *items, ProtoValue *value)
{
	const ProtoField *field = items->field;

	for (;;)
	{
		if (items->packed.p < items->packed.end)
		{
			if (!proto_read_value(&items->packed, field->number, field->wire, value))
				proto_raise(items->packed.error);
			return true;
		}
		if (items->next < items->slot->n)
		{
			const ProtoValue *item = &items->slot->items[items->next++];

			if (item->packed)
			{
				CHECK_FOR_INTERRUPTS();
				items->packed.p = item->p;
				items->packed.end = item->p + item->len;
				continue;
			}
			*value = *item;
			return true;
		}
		return false;
	}
}
