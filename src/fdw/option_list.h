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

/* ERROR HV024 for 'value' unless 'regex', which was made of it, is a regular expression. */
extern void option_check_regex(const char *name, const char *value, const char *regex);

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

/* === Our own options, for table_options.c and column_options.c ============== */

typedef enum OptionKeyword
{
	OPT_BOOTSTRAP_SERVERS,
	OPT_TIMEOUT,
	OPT_CHANGELOG,
	OPT_CONNECTOR,
	OPT_DELETE_MARKER,
	OPT_DELETE_MARKER_VALUE,
	OPT_DELIVERY_GUARANTEE,
	OPT_KEY_FIELDS,
	OPT_KEY_FIELDS_PREFIX,
	OPT_KEY_FORMAT,
	OPT_ON_ERROR,
	OPT_PARTITIONER,
	OPT_SCAN_BOUNDED_MODE,
	OPT_SCAN_BOUNDED_SPECIFIC_OFFSETS,
	OPT_SCAN_BOUNDED_TIMESTAMP_MILLIS,
	OPT_SCAN_STARTUP_MODE,
	OPT_SCAN_STARTUP_SPECIFIC_OFFSETS,
	OPT_SCAN_STARTUP_TIMESTAMP_MILLIS,
	OPT_SCAN_TOPIC_PARTITION_DISCOVERY_INTERVAL,
	OPT_SINK_BUFFER_FLUSH_INTERVAL,
	OPT_SINK_BUFFER_FLUSH_MAX_ROWS,
	OPT_TIME_ZONE,
	OPT_TOPIC,
	OPT_TOPIC_PATTERN,
	OPT_TRUNCATABLE,
	OPT_UPDATABLE,
	OPT_VALUE_FIELDS_INCLUDE,
	OPT_VALUE_FORMAT,
	OPT_FIELD,
	OPT_KEY,
	OPT_METADATA,
	OPT_NONE
} OptionKeyword;

/* Our own option of a catalog; *canonical gets one name for all its spellings. */
extern OptionKeyword option_keyword(Oid catalog, const char *name, const char **canonical);

/* A name of that option. */
extern const char *option_keyword_name(OptionKeyword keyword);

/*
 * PostgreSQL refuses the same name twice, but not two spellings of one option.
 * 'seen' collects them, and is returned.  ERROR 42710.
 */
extern List *option_note(List *seen, const char *canonical, const char *given);

/* Equal but for case and the choice between '-', '_', '.' and blank?  -1: none of them */
extern int	option_word_index(const char *value, const char *const *words);

/* ERROR HV00D for an option that means nothing without another. */
extern void option_stray(const char *name, const char *hint) pg_attribute_noreturn();

#endif							/* UK_OPTION_LIST_H */
