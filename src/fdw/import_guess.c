/*
 * import_guess.c
 *	  Guess columns from messages.  No message is an error here: what is no JSON
 *	  object is bytes, and bytes that are no text are bytea.
 */
#include "postgres.h"

#include "compat.h"
#include "fdw/import_guess.h"
#include "format/json_scan.h"
#include "mb/pg_wchar.h"

/* A table has no more columns than MaxHeapAttributeNumber; leave room. */
#define MAX_FIELDS 1000

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
	guess->n = 0;
	guess->objects = true;
	guess->utf8 = true;
	guess->fields = NIL;
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
note_field(BytesGuess *guess, const JsonText *name, const JsonText *value)
{
	char	   *bytes = palloc(name->len + 1);
	size_t		len = name->len;
	char	   *converted;
	FieldGuess *field;
	ListCell   *lc;

	if (name->escaped)
	{
		/* a name that no column option could spell */
		if (json_unescape(name, false, bytes, &len) != JSON_OK)
			return;
	}
	else
		memcpy(bytes, name->text, len);
	bytes[len] = '\0';
	if (len == 0)
		return;
	converted = pg_any_to_server(bytes, (int) len, PG_UTF8);

	foreach(lc, guess->fields)
	{
		field = lfirst(lc);
		if (strcmp(field->name, converted) == 0)
		{
			field->kinds |= value_kind(value);
			return;
		}
	}
	if (list_length(guess->fields) >= MAX_FIELDS)
		return;
	field = palloc(sizeof(FieldGuess));
	field->name = converted;
	field->kinds = value_kind(value);
	guess->fields = lappend(guess->fields, field);
}

/* The members of an object that has been scanned already, so it is valid. */
static void
note_members(BytesGuess *guess, const JsonText *object)
{
	JsonScan	scan;
	JsonText	name;
	JsonText	value;

	json_scan_init(&scan, object->text + 1, object->len - 1);
	for (;;)
	{
		if (!json_scan_value(&scan, &name) || name.kind != JK_STRING)
			return;				/* the closing brace */
		while (*scan.at != ':')
			scan.at++;
		scan.at++;
		if (!json_scan_value(&scan, &value))
			return;
		note_field(guess, &name, &value);
		while (*scan.at != ',' && *scan.at != '}')
			scan.at++;
		if (*scan.at == '}')
			return;
		scan.at++;
	}
}

void
guess_bytes(BytesGuess *guess, const char *bytes, Size len)
{
	JsonScan	scan;
	JsonText	value;
	bool		valid = pg_verify_mbstr(PG_UTF8, bytes, (int) len, true);

	guess->n++;
	/* raw bytes are taken as they are, so they must suit the database's encoding */
	if (!pg_verify_mbstr(GetDatabaseEncoding(), bytes, (int) len, true))
		guess->utf8 = false;

	if (!guess->objects)
		return;
	json_scan_init(&scan, bytes, len);
	if (!valid || !json_scan_value(&scan, &value) || value.kind != JK_OBJECT || !json_scan_end(&scan))
	{
		guess->objects = false;
		return;
	}
	note_members(guess, &value);
	if (guess->fields == NIL)
		guess->objects = false;
}
