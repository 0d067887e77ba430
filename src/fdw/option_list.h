/*
 * option_list.h
 *	  One option list at a time: what the validator and the resolving code share.
 *	  Private to src/fdw.
 *
 * Each *_parse() raises everything that its list alone can show, so that DDL and
 * use give the same errors with the same words.
 */
#ifndef UK_OPTION_LIST_H
#define UK_OPTION_LIST_H

#include "fdw/options.h"

/* Options of a foreign table, into the fields of *table that they decide. */
extern void table_options_parse(List *options, TopicTable *table);

typedef struct ColumnOptions
{
	bool		key;
	MetadataKind metadata;
	const char *field;			/* NULL: not given */
	const char *metadata_field; /* of META_FORMAT: the metadata's name */
} ColumnOptions;

extern void column_options_parse(List *options, ColumnOptions *column);

/*
 * Options of a server (in_mapping false) or a user mapping, put on top of what
 * *config holds.  With 'check' rights of the current user and values are
 * checked as well (DDL); without it only what later versions might have
 * forbidden (use).
 */
extern void client_options_parse(List *options, bool in_mapping, bool check, KafkaConfig *config);

/* Is this, in any spelling, a client property (or Flink's properties.something)? */
extern bool client_option_known(const char *name);

/* "value.json.fail-on-missing-field" -> "value_json_fail_on_missing_field"; palloc'd */
extern char *option_snake_case(const char *name);

/* Names of our own options in one catalog, NULL-terminated, palloc'd. */
extern const char **option_names(Oid catalog);

/* The name closest to 'name', NULL when none is close. */
extern const char *option_closest(const char *name, const char *const *names);

/* ERROR HV024 for a value; 'hint' may be NULL. */
extern void option_bad_value(const char *name, const char *value, const char *hint) pg_attribute_noreturn();

/* Values of the common kinds; words match but for case and '-', '_', '.' */
extern bool option_parse_bool(const char *name, const char *value);
extern int	option_parse_enum(const char *name, const char *value, const char *const *words);

/* An option of a format in a table's list. */
typedef struct FormatOptionRef
{
	bool		is_key;
	const FormatRoutine *format;
	const FormatOption *option;
	const char *given;			/* as spelled by the user */
	const char *value;
} FormatOptionRef;

/* Which option of which format is this (in snake_case)?  Sets is_key, format, option. */
extern bool format_option_find(const char *snake, FormatOptionRef *ref);

/*
 * The options of the format that this name in snake_case begins with, as they are
 * spelled in a table's list; NULL if it begins with none.  NULL-terminated, palloc'd.
 */
extern const char **format_option_names(const char *snake);

/* Checks the value by the option's declared type; returns how to pass it on. */
extern char *format_option_value(const FormatOptionRef *ref);

/* What metadata '...' calls it. */
extern const char *metadata_name(const TopicColumn *column);

#endif							/* UK_OPTION_LIST_H */
