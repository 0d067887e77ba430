/*
 * import_json.c
 *	  A walk over all members of a JSON object, see import_json.h.
 */
#include "postgres.h"

#include "fdw/import_json.h"
#include "mb/pg_wchar.h"

void
json_members_begin(JsonMembers *members, const JsonText *object)
{
	members->done = object->kind != JK_OBJECT;
	if (!members->done)
		json_scan_init(&members->scan, object->text + 1, object->len - 1);
}

bool
json_members_next(JsonMembers *members, JsonText *name, JsonText *value)
{
	JsonScan   *scan = &members->scan;

	if (members->done)
		return false;
	members->done = true;
	if (!json_scan_value(scan, name) || name->kind != JK_STRING)
		return false;			/* the closing brace */
	while (*scan->at != ':')
		scan->at++;
	scan->at++;
	if (!json_scan_value(scan, value))
		return false;
	while (*scan->at != ',' && *scan->at != '}')
		scan->at++;
	if (*scan->at == ',')
	{
		scan->at++;
		members->done = false;
	}
	return true;
}

char *
json_string(const JsonText *string)
{
	char	   *bytes;
	size_t		len = string->len;

	if (string->kind != JK_STRING)
		return NULL;
	bytes = palloc(string->len + 1);
	if (!string->escaped)
		memcpy(bytes, string->text, len);
	else if (json_unescape(string, false, bytes, &len) != JSON_OK)
		return NULL;
	if (len == 0)
		return NULL;
	bytes[len] = '\0';
	return pg_any_to_server(bytes, (int) len, PG_UTF8);
}

bool
json_is_text(const JsonText *value, const char *text)
{
	return value->kind == JK_STRING && value->len == strlen(text) && memcmp(value->text, text, value->len) == 0;
}

JsonText
json_member(const JsonText *object, const char *name)
{
	JsonText	result = {.kind = JK_MISSING};
	JsonMembers members;
	JsonText	found;
	JsonText	value;

	json_members_begin(&members, object);
	while (json_members_next(&members, &found, &value))
	{
		if (json_is_text(&found, name))
			result = value;
	}
	return result;
}
