/*
 * import_events.c
 *	  Recognise change events of Debezium, Canal, Maxwell and GoldenGate among JSON
 *	  values, by what their envelopes hold.
 *
 * A topic is taken for such a log only if every value of the sample is one of its
 * events, and at least one tells of a row.
 */
#include "postgres.h"

#include "fdw/import_connect.h"
#include "fdw/import_events.h"
#include "fdw/import_guess.h"
#include "fdw/import_json.h"

/* in the order of the arrays in EventGuess */
enum
{
	FORMAT_DEBEZIUM,
	FORMAT_CANAL,
	FORMAT_MAXWELL,
	FORMAT_OGG
};

static const char *const format_of[EVENT_FORMATS] = {"debezium-json", "canal-json", "maxwell-json", "ogg-json"};

/* What is before a column's name in Maxwell's keys */
#define MAXWELL_PREFIX "pk."

/* Words for changes of rows, then for other events. */
static const char *const debezium_rows[] = {"c", "r", "u", "d", NULL};
static const char *const debezium_others[] = {"t", "m", NULL};
static const char *const canal_rows[] = {"INSERT", "UPDATE", "DELETE", NULL};
static const char *const canal_others[] = {
	"CREATE", "ALTER", "ERASE", "QUERY", "RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT",
	"TIDB_WATERMARK", "TRUNCATE", NULL
};
static const char *const maxwell_rows[] = {"insert", "bootstrap-insert", "update", "delete", NULL};
static const char *const maxwell_others[] = {
	"bootstrap-start", "bootstrap-complete", "table-create", "table-alter", "table-drop", "database-create",
	"database-alter", "database-drop", NULL
};
static const char *const ogg_rows[] = {"I", "U", "D", NULL};
static const char *const ogg_others[] = {"T", NULL};

static bool
is_one_of(const JsonText *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
	{
		if (json_is_text(value, words[i]))
			return true;
	}
	return false;
}

/* The last text that was met */
static void
keep_text(char **kept, const JsonText *text)
{
	if (*kept && strlen(*kept) == text->len && memcmp(*kept, text->text, text->len) == 0)
		return;
	if (*kept)
		pfree(*kept);
	*kept = pnstrdup(text->text, text->len);
}

static bool
is_wrapped(const JsonText *object, JsonText *schema, JsonText *payload)
{
	*schema = json_member(object, "schema");
	*payload = json_member(object, "payload");
	return (schema->kind == JK_OBJECT || schema->kind == JK_NULL) &&
		(payload->kind == JK_OBJECT || payload->kind == JK_NULL);
}

/* Count an event that fits, with its rows. */
static void
note_event(EventGuess *guess, int format, bool tells_row, bool has_key, const JsonText *first, const JsonText *second)
{
	guess->fitting[format]++;
	if (!tells_row)
		return;
	guess->rows[format]++;
	guess->keyed[format] += has_key ? 1 : 0;
	if (first->kind == JK_OBJECT)
		guess_members(&guess->fields[format], first);
	if (second->kind == JK_OBJECT)
		guess_members(&guess->fields[format], second);
}

static void
look_for_before_after(EventGuess *guess, int format, const char *op_member, const char *const *rows,
					  const char *const *others, const JsonText *event, bool has_key)
{
	JsonText	op = json_member(event, op_member);
	JsonText	before = json_member(event, "before");
	JsonText	after = json_member(event, "after");
	bool		tells_row = is_one_of(&op, rows);

	if (tells_row ? before.kind == JK_OBJECT || after.kind == JK_OBJECT : is_one_of(&op, others))
		note_event(guess, format, tells_row, has_key, &after, &before);
}

static void
look_for_debezium(EventGuess *guess, const JsonText *value, bool has_key)
{
	JsonText	schema;
	JsonText	payload = *value;

	if (is_wrapped(value, &schema, &payload))
	{
		if (payload.kind == JK_NULL)
		{
			guess->fitting[FORMAT_DEBEZIUM]++;	/* Connect's null */
			return;
		}
		if (schema.kind == JK_OBJECT)
			keep_text(&guess->schema, &schema);
	}
	else
		payload = *value;
	look_for_before_after(guess, FORMAT_DEBEZIUM, "op", debezium_rows, debezium_others, &payload, has_key);
}

static void
note_mysql_types(EventGuess *guess, const JsonText *event)
{
	JsonText	types = json_member(event, "mysqlType");
	ImportPart	part = {0};
	JsonMembers members;
	JsonText	name;
	JsonText	value;

	if (types.kind != JK_OBJECT)
		return;
	json_members_begin(&members, &types);
	while (json_members_next(&members, &name, &value))
	{
		char	   *column = json_string(&name);
		char	   *type = json_string(&value);

		if (column && type)
			import_column(&part, column, import_mysql_type(type), column, false);
	}
	list_free(guess->mysql_types);
	guess->mysql_types = part.columns;
}

static void
look_for_canal(EventGuess *guess, const JsonText *value, bool has_key)
{
	JsonText	type = json_member(value, "type");
	JsonText	data = json_member(value, "data");
	JsonText	none = {.kind = JK_MISSING};
	JsonScan	scan;
	JsonText	row;
	bool		first = true;

	if (!is_one_of(&type, canal_rows))
	{
		if (is_one_of(&type, canal_others))
			note_event(guess, FORMAT_CANAL, false, has_key, &none, &none);
		return;
	}
	if (data.kind != JK_ARRAY)
		return;
	json_scan_init(&scan, data.text, data.len);
	(void) json_scan_array_begin(&scan);
	for (; json_scan_array_next(&scan, first, &row); first = false)
	{
		if (row.kind != JK_OBJECT)
			return;
		guess_members(&guess->fields[FORMAT_CANAL], &row);
	}
	note_event(guess, FORMAT_CANAL, true, has_key, &none, &none);
	note_mysql_types(guess, value);
}

static void
look_for_maxwell(EventGuess *guess, const JsonText *value, bool has_key)
{
	JsonText	type = json_member(value, "type");
	JsonText	data = json_member(value, "data");
	JsonText	old = json_member(value, "old");
	bool		tells_row = is_one_of(&type, maxwell_rows);

	if (tells_row ? data.kind == JK_OBJECT : is_one_of(&type, maxwell_others))
		note_event(guess, FORMAT_MAXWELL, tells_row, has_key, &data, &old);
}

void
guess_event(EventGuess *guess, const JsonText *key, bool has_key, const JsonText *value, bool has_value)
{
	JsonText	schema;
	JsonText	payload;

	if (key->kind == JK_OBJECT && is_wrapped(key, &schema, &payload) && payload.kind == JK_OBJECT)
	{
		if (schema.kind == JK_OBJECT)
			keep_text(&guess->key_schema, &schema);
		guess_members(&guess->key_fields, &payload);
	}
	if (!has_value)
		return;
	guess->n++;
	if (value->kind != JK_OBJECT)
		return;
	look_for_debezium(guess, value, has_key);
	look_for_canal(guess, value, has_key);
	look_for_maxwell(guess, value, has_key);
	look_for_before_after(guess, FORMAT_OGG, "op_type", ogg_rows, ogg_others, value, has_key);
}

int
event_format(const EventGuess *guess, bool *keyed)
{
	for (int i = 0; i < EVENT_FORMATS; i++)
	{
		if (guess->fitting[i] < guess->n || guess->rows[i] == 0 || guess->fields[i] == NIL)
			continue;
		*keyed = guess->keyed[i] == guess->rows[i];
		return i;
	}
	return -1;
}

static bool
schema_columns(const char *text, const char *field, ImportPart *part)
{
	JsonScan	scan;
	JsonText	schema;

	if (text == NULL)
		return false;
	json_scan_init(&scan, text, strlen(text));
	return json_scan_value(&scan, &schema) && import_connect_columns(&schema, field, part);
}

static const char *
mysql_type(const EventGuess *guess, const char *name)
{
	ListCell   *lc;

	foreach(lc, guess->mysql_types)
	{
		const ImportColumn *column = lfirst(lc);

		if (strcmp(column->name, name) == 0)
			return column->type;
	}
	return NULL;
}

void
event_value_part(const EventGuess *guess, int format, ImportPart *part)
{
	ListCell   *lc;

	memset(part, 0, sizeof(*part));
	part->format = format_of[format];
	part->guessed = true;
	part->changelog = true;
	if (format == FORMAT_DEBEZIUM &&
		(schema_columns(guess->schema, "after", part) || schema_columns(guess->schema, "before", part)))
		return;
	foreach(lc, guess->fields[format])
	{
		FieldGuess *field = lfirst(lc);
		const char *type = format == FORMAT_CANAL ? mysql_type(guess, field->name) : NULL;

		import_column(part, field->name, type ? type : guess_type(field), field->name, false);
	}
}

void
event_key_part(const EventGuess *guess, int format, List *fields, ImportPart *part)
{
	ListCell   *lc;

	memset(part, 0, sizeof(*part));
	part->format = "json";
	part->guessed = true;
	if (format == FORMAT_DEBEZIUM && guess->key_fields)
	{
		if (schema_columns(guess->key_schema, NULL, part))
			return;
		fields = guess->key_fields;
	}
	foreach(lc, fields)
	{
		FieldGuess *field = lfirst(lc);
		const char *name = field->name;

		if (format == FORMAT_MAXWELL)
		{
			/* beside the columns there are database and table */
			if (strncmp(name, MAXWELL_PREFIX, strlen(MAXWELL_PREFIX)) != 0)
				continue;
			name += strlen(MAXWELL_PREFIX);
		}
		import_column(part, name, guess_type(field), field->name, false);
	}
}
