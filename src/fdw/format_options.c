/*
 * format_options.c
 *	  Options of formats in a table's list: key_json_x, value_json_x, and json_x,
 *	  which means value_json_x.  Checked against what the format declares.
 */
#include "postgres.h"

#include "fdw/option_list.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/guc.h"

bool
format_option_find(const char *snake, FormatOptionRef *ref)
{
	const char *const *names = format_names();
	const char *name = snake;

	memset(ref, 0, sizeof(*ref));
	if (strncmp(name, "key_", 4) == 0)
	{
		ref->is_key = true;
		name += 4;
	}
	else if (strncmp(name, "value_", 6) == 0)
		name += 6;

	for (int i = 0; names[i]; i++)
	{
		const FormatRoutine *format = format_lookup(names[i]);
		char	   *prefix = option_snake_case(names[i]);
		Size		len = strlen(prefix);

		if (strncmp(name, prefix, len) != 0 || name[len] != '_')
			continue;
		for (const FormatOption *option = format->options; option && option->name; option++)
		{
			if (strcmp(option->name, name + len + 1) == 0)
			{
				ref->format = format;
				ref->option = option;
				return true;
			}
		}
	}
	return false;
}

char *
format_option_value(const FormatOptionRef *ref)
{
	const char *type = ref->option->type;

	if (strcmp(type, "bool") == 0)
		return option_parse_bool(ref->given, ref->value) ? "true" : "false";
	if (strcmp(type, "int") == 0)
	{
		int			number;

		if (!parse_int(ref->value, &number, 0, NULL))
			option_bad_value(ref->given, ref->value, _("The value is a whole number."));
		return psprintf("%d", number);
	}
	if (strcmp(type, "char") == 0)
	{
		if (pg_mbstrlen(ref->value) != 1)
			option_bad_value(ref->given, ref->value, _("The value is a single character."));
	}
	else if (strchr(type, '|'))
	{
		char	   *copy = pstrdup(type);
		const char *words[32];
		int			n = 0;
		char	   *save;

		for (char *word = strtok_r(copy, "|", &save); word && n < 31; word = strtok_r(NULL, "|", &save))
			words[n++] = word;
		words[n] = NULL;
		return pstrdup(words[option_parse_enum(ref->given, ref->value, words)]);
	}
	return pstrdup(ref->value);
}
