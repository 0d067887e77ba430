/*
 * format_options.c
 *	  Options of formats in a table's list: key_json_x, value_json_x, and json_x,
 *	  which means value_json_x.  Checked against what the format declares.
 */
#include "postgres.h"

#include "fdw/option_list.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/*
 * The format whose options a name is among: "value_json_x" -> json.  *option points
 * behind the format's name, *is_key tells for which part of a message.
 */
static const FormatRoutine *
named_format(const char *snake, bool *is_key, const char **option)
{
	const char *const *names = format_names();
	const char *name = snake;
	const FormatRoutine *format = NULL;
	Size		longest = 0;

	*is_key = strncmp(name, "key_", 4) == 0;
	if (*is_key)
		name += 4;
	else if (strncmp(name, "value_", 6) == 0)
		name += 6;

	/* avro_confluent_url is avro-confluent's: the longest name wins */
	for (int i = 0; names[i]; i++)
	{
		char	   *prefix = option_snake_case(names[i]);
		Size		len = strlen(prefix);

		if (len > longest && strncmp(name, prefix, len) == 0 && name[len] == '_')
		{
			longest = len;
			*option = name + len + 1;
			format = format_lookup(names[i]);
		}
	}
	return format;
}

bool
format_option_find(const char *snake, FormatOptionRef *ref)
{
	const char *name;

	memset(ref, 0, sizeof(*ref));
	ref->format = named_format(snake, &ref->is_key, &name);
	if (ref->format == NULL)
		return false;
	for (ref->option = ref->format->options; ref->option && ref->option->name; ref->option++)
	{
		const FormatOption *option = ref->option;

		if (strcmp(option->name, name) == 0 || (option->alias && strcmp(option->alias, name) == 0))
			return true;
	}
	return false;
}

const char **
format_option_names(const char *snake)
{
	bool		is_key;
	const char *name;
	const FormatRoutine *format = named_format(snake, &is_key, &name);
	const char **names;
	int			n = 0;

	if (format == NULL)
		return NULL;
	for (const FormatOption *option = format->options; option && option->name; option++)
		n++;
	names = palloc(sizeof(char *) * (n + 1));
	for (int i = 0; i < n; i++)
		names[i] = psprintf("%.*s%s", (int) (name - snake), snake, format->options[i].name);
	names[n] = NULL;
	return names;
}

/* A byte of ASCII: as it is, or escaped as Flink's DDL may have it. */
static char *
character_value(const FormatOptionRef *ref)
{
	const char *value = ref->value;
	char		c = '\0';

	if (strlen(value) == 1)
		c = value[0];
	else if (value[0] == '\\' && strlen(value) == 2)
	{
		static const char escapes[] = "t\tn\nr\r\\\\\"\"''";

		for (int i = 0; escapes[i]; i += 2)
		{
			if (escapes[i] == value[1])
				c = escapes[i + 1];
		}
	}
	else if (value[0] == '\\' && value[1] == 'u' && strlen(value) == 6 && strspn(value + 2, "0123456789abcdefABCDEF") == 4)
	{
		long		code = strtol(value + 2, NULL, 16);

		if (code < 0x80)
			c = (char) code;
	}
	if (c == '\0' || IS_HIGHBIT_SET(c))
		option_bad_value(ref->given, value, _("The value is a single byte: a character of ASCII, or an escape like \\t or \\u0001."));
	return psprintf("%c", c);
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
		return character_value(ref);
	if (strcmp(type, "regex") == 0)
		option_check_regex(ref->given, ref->value, ref->value);
	else if (strcmp(type, "text") != 0)
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
