/*
 * import_guess.c
 *	  Guess columns from messages.  No message is an error here: what is no JSON
 *	  object is bytes, and bytes that are no text are bytea.
 */
#include "postgres.h"

#include "compat.h"
#include "fdw/import_columns.h"
#include "fdw/import_guess.h"
#include "fdw/import_json.h"
#include "mb/pg_wchar.h"

/* Byte 0x00 and four bytes of schema id */
#define FRAMING_SIZE 5

#define KIND_BOOL		(1 << 0)
#define KIND_BIGINT		(1 << 1)
#define KIND_NUMBER		(1 << 2)
#define KIND_TIMESTAMP	(1 << 3)
#define KIND_TIMESTAMPTZ (1 << 4)
#define KIND_DATE		(1 << 5)
#define KIND_STRING		(1 << 6)
#define KIND_NESTED		(1 << 7)

void
guess_init(BytesGuess *guess)
{
	memset(guess, 0, sizeof(*guess));
	guess->objects = true;
	guess->utf8 = true;
}

const char *
guess_type(const FieldGuess *field)
{
	switch (field->kinds)
	{
		case KIND_BOOL:
			return "boolean";
		case KIND_BIGINT:
			return "bigint";
		case KIND_NUMBER:
		case KIND_NUMBER | KIND_BIGINT:
			return "numeric";
		case KIND_TIMESTAMP:
		case KIND_TIMESTAMP | KIND_DATE:
			return "timestamp without time zone";
		case KIND_TIMESTAMPTZ:
			return "timestamp with time zone";
		case KIND_DATE:
			return "date";
		case KIND_NESTED:
			return "jsonb";
		default:
			/* strings, null only, and every mixture */
			return "text";
	}
}

/* --- strings that look like points in time ---------------------------------- */

/* Two digits between low and high at *p. */
static bool
two_digits(const char **p, const char *end, int low, int high)
{
	int			value;

	if (end - *p < 2 || (*p)[0] < '0' || (*p)[0] > '9' || (*p)[1] < '0' || (*p)[1] > '9')
		return false;
	value = ((*p)[0] - '0') * 10 + (*p)[1] - '0';
	*p += 2;
	return value >= low && value <= high;
}

static bool
character(const char **p, const char *end, const char *any)
{
	if (*p == end || **p == '\0' || strchr(any, **p) == NULL)
		return false;
	(*p)++;
	return true;
}

/* ISO 8601, as the type's input function reads it too. */
static int
string_kind(const char *p, const char *end)
{
	int			century = p < end ? *p : 0;

	/* years 1000 to 2999: longer numbers are numbers */
	if ((century != '1' && century != '2') || !two_digits(&p, end, 10, 29) || !two_digits(&p, end, 0, 99) ||
		!character(&p, end, "-") || !two_digits(&p, end, 1, 12) ||
		!character(&p, end, "-") || !two_digits(&p, end, 1, 31))
		return KIND_STRING;
	if (p == end)
		return KIND_DATE;
	if (!character(&p, end, "T ") || !two_digits(&p, end, 0, 23) || !character(&p, end, ":") || !two_digits(&p, end, 0, 59))
		return KIND_STRING;
	if (character(&p, end, ":"))
	{
		if (!two_digits(&p, end, 0, 59))
			return KIND_STRING;
		if (character(&p, end, "."))
		{
			if (!character(&p, end, "0123456789"))
				return KIND_STRING;
			while (character(&p, end, "0123456789"))
				 /* more */ ;
		}
	}
	if (p == end)
		return KIND_TIMESTAMP;
	if (character(&p, end, "Z"))
		return p == end ? KIND_TIMESTAMPTZ : KIND_STRING;
	if (!character(&p, end, "+-") || !two_digits(&p, end, 0, 15))
		return KIND_STRING;
	if (p < end)
	{
		(void) character(&p, end, ":");
		if (!two_digits(&p, end, 0, 59))
			return KIND_STRING;
	}
	return p == end ? KIND_TIMESTAMPTZ : KIND_STRING;
}

/* Does the text of an integer fit into bigint?  Tests the digits only. */
static bool
fits_bigint(const JsonText *value)
{
	bool		minus = value->len > 0 && value->text[0] == '-';
	const char *digits = value->text + (minus ? 1 : 0);
	uint32		n = value->len - (minus ? 1 : 0);

	if (n != 19)
		return n < 19;
	return memcmp(digits, minus ? "9223372036854775808" : "9223372036854775807", 19) <= 0;
}

static int
value_kind(const JsonText *value)
{
	switch (value->kind)
	{
		case JK_TRUE:
		case JK_FALSE:
			return KIND_BOOL;
		case JK_NUMBER:
			return value->integral && fits_bigint(value) ? KIND_BIGINT : KIND_NUMBER;
		case JK_STRING:
			return value->escaped ? KIND_STRING : string_kind(value->text, value->text + value->len);
		case JK_OBJECT:
		case JK_ARRAY:
			return KIND_NESTED;
		default:
			return 0;
	}
}

/* --- objects ---------------------------------------------------------------- */

static void
note_field(List **fields, char *name, const JsonText *value)
{
	FieldGuess *field;
	ListCell   *lc;

	foreach(lc, *fields)
	{
		field = lfirst(lc);
		if (strcmp(field->name, name) == 0)
		{
			field->kinds |= value_kind(value);
			return;
		}
	}
	if (list_length(*fields) >= IMPORT_MAX_COLUMNS)
		return;
	field = palloc(sizeof(FieldGuess));
	field->name = name;
	field->kinds = value_kind(value);
	*fields = lappend(*fields, field);
}

void
guess_members(List **fields, const JsonText *object)
{
	JsonMembers members;
	JsonText	name;
	JsonText	value;

	json_members_begin(&members, object);
	while (json_members_next(&members, &name, &value))
	{
		char	   *field = json_string(&name);

		/* NULL: a name that no column option could spell */
		if (field)
			note_field(fields, field, &value);
	}
}

/* --- keys and values -------------------------------------------------------- */

/* The schema id in front of the payload, if it may be one: numbers begin with zeros, too. */
static uint32
framing_id(const char *bytes, Size len)
{
	const unsigned char *p = (const unsigned char *) bytes;

	if (len <= FRAMING_SIZE || p[0] != 0)
		return 0;
	return (uint32) p[1] << 24 | (uint32) p[2] << 16 | (uint32) p[3] << 8 | p[4];
}

static void
note_framing(BytesGuess *guess, uint32 id)
{
	guess->framed++;
	guess->last_id = id;
	for (int i = 0; i < guess->nids; i++)
	{
		if (guess->ids[i] == id)
			return;
	}
	if (guess->nids < MAX_IDS)
		guess->ids[guess->nids++] = id;
	else
		guess->many_ids = true;
}

bool
guess_is_framed(const BytesGuess *guess)
{
	return guess->n > 0 && guess->framed == guess->n && !guess->many_ids;
}

void
guess_bytes(BytesGuess *guess, const char *bytes, Size len, JsonText *object)
{
	JsonScan	scan;
	uint32		id = framing_id(bytes, len);
	bool		valid;

	object->kind = JK_MISSING;
	guess->n++;
	/* raw bytes are taken as they are, so they must suit the database's encoding */
	if (!pg_verify_mbstr(GetDatabaseEncoding(), bytes, (int) len, true))
		guess->utf8 = false;
	if (id > 0)
	{
		note_framing(guess, id);
		bytes += FRAMING_SIZE;
		len -= FRAMING_SIZE;
	}
	if (!guess->objects)
		return;
	valid = pg_verify_mbstr(PG_UTF8, bytes, (int) len, true);
	json_scan_init(&scan, bytes, len);
	if (!valid || !json_scan_value(&scan, object) || object->kind != JK_OBJECT || !json_scan_end(&scan))
	{
		object->kind = JK_MISSING;
		guess->objects = false;
		return;
	}
	guess_members(&guess->fields, object);
	if (guess->fields == NIL)
		guess->objects = false;
}
