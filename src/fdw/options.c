/*
 * options.c
 *	  Names of options, and values of the common kinds: the table of our own, both
 *	  spellings, closest match.
 *
 * The lists themselves are parsed in table_options.c and column_options.c, those of
 * servers and user mappings in client_options.c; what spans lists is in topic_table.c.
 */
#include "postgres.h"

#include "catalog/pg_attribute.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "fdw/option_list.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#define NAME_LENGTH_MAX	255		/* what varstr_levenshtein takes */

typedef struct OptionDef
{
	const char *name;			/* snake_case */
	Oid			catalog;
	OptionKeyword keyword;
} OptionDef;

/* Two names with one keyword are synonyms. */
static const OptionDef option_defs[] = {
	{"bootstrap_servers", ForeignServerRelationId, OPT_BOOTSTRAP_SERVERS},
	{"timeout", ForeignServerRelationId, OPT_TIMEOUT},
	{"changelog", ForeignTableRelationId, OPT_CHANGELOG},
	{"connector", ForeignTableRelationId, OPT_CONNECTOR},
	{"delete_marker", ForeignTableRelationId, OPT_DELETE_MARKER},
	{"delete_marker_value", ForeignTableRelationId, OPT_DELETE_MARKER_VALUE},
	{"delivery_guarantee", ForeignTableRelationId, OPT_DELIVERY_GUARANTEE},
	{"format", ForeignTableRelationId, OPT_VALUE_FORMAT},
	{"key_fields", ForeignTableRelationId, OPT_KEY_FIELDS},
	{"key_fields_prefix", ForeignTableRelationId, OPT_KEY_FIELDS_PREFIX},
	{"key_format", ForeignTableRelationId, OPT_KEY_FORMAT},
	{"on_error", ForeignTableRelationId, OPT_ON_ERROR},
	{"partitioner", ForeignTableRelationId, OPT_PARTITIONER},
	{"scan_bounded_mode", ForeignTableRelationId, OPT_SCAN_BOUNDED_MODE},
	{"scan_bounded_specific_offsets", ForeignTableRelationId, OPT_SCAN_BOUNDED_SPECIFIC_OFFSETS},
	{"scan_bounded_timestamp_millis", ForeignTableRelationId, OPT_SCAN_BOUNDED_TIMESTAMP_MILLIS},
	{"scan_startup_mode", ForeignTableRelationId, OPT_SCAN_STARTUP_MODE},
	{"scan_startup_specific_offsets", ForeignTableRelationId, OPT_SCAN_STARTUP_SPECIFIC_OFFSETS},
	{"scan_startup_timestamp_millis", ForeignTableRelationId, OPT_SCAN_STARTUP_TIMESTAMP_MILLIS},
	{"scan_topic_partition_discovery_interval", ForeignTableRelationId, OPT_SCAN_TOPIC_PARTITION_DISCOVERY_INTERVAL},
	{"sink_buffer_flush_interval", ForeignTableRelationId, OPT_SINK_BUFFER_FLUSH_INTERVAL},
	{"sink_buffer_flush_max_rows", ForeignTableRelationId, OPT_SINK_BUFFER_FLUSH_MAX_ROWS},
	{"sink_delivery_guarantee", ForeignTableRelationId, OPT_DELIVERY_GUARANTEE},
	{"sink_partitioner", ForeignTableRelationId, OPT_PARTITIONER},
	{"time_zone", ForeignTableRelationId, OPT_TIME_ZONE},
	{"topic", ForeignTableRelationId, OPT_TOPIC},
	{"topic_pattern", ForeignTableRelationId, OPT_TOPIC_PATTERN},
	{"truncatable", ForeignTableRelationId, OPT_TRUNCATABLE},
	{"updatable", ForeignTableRelationId, OPT_UPDATABLE},
	{"value_fields_include", ForeignTableRelationId, OPT_VALUE_FIELDS_INCLUDE},
	{"value_format", ForeignTableRelationId, OPT_VALUE_FORMAT},
	{"field", AttributeRelationId, OPT_FIELD},
	{"key", AttributeRelationId, OPT_KEY},
	{"metadata", AttributeRelationId, OPT_METADATA},
};

/* How messages call an option that has several names. */
static const OptionDef synonyms[] = {
	{"delivery_guarantee", ForeignTableRelationId, OPT_DELIVERY_GUARANTEE},
	{"partitioner", ForeignTableRelationId, OPT_PARTITIONER},
	{"value_format", ForeignTableRelationId, OPT_VALUE_FORMAT},
};

/* ------------------------------------------------------------------------
 * Names
 * ------------------------------------------------------------------------ */

char *
option_snake_case(const char *name)
{
	char	   *result = pstrdup(name);

	for (char *p = result; *p; p++)
	{
		if (*p == '.' || *p == '-')
			*p = '_';
	}
	return result;
}

const char **
option_names(Oid catalog)
{
	const char **names = palloc(sizeof(char *) * (lengthof(option_defs) + 1));
	int			n = 0;

	for (int i = 0; i < lengthof(option_defs); i++)
	{
		if (option_defs[i].catalog == catalog)
			names[n++] = option_defs[i].name;
	}
	names[n] = NULL;
	return names;
}

/*
 * Like initClosestMatch() and its kin, which PostgreSQL has from 16 on only: at
 * most 4 edits, and at most half of what was typed.
 */
const char *
option_closest(const char *name, const char *const *names)
{
	const char *best = NULL;
	int			len = strlen(name);
	int			best_distance = Min(4, len / 2) + 1;

	if (len > NAME_LENGTH_MAX)
		return NULL;
	for (int i = 0; names[i]; i++)
	{
		int			distance;

		if (strlen(names[i]) > NAME_LENGTH_MAX)
			continue;
		distance = varstr_levenshtein_less_equal(name, len, names[i], strlen(names[i]),
												 1, 1, 1, best_distance - 1, true);
		if (distance < best_distance)
		{
			best_distance = distance;
			best = names[i];
		}
	}
	return best;
}

void
option_unknown(const char *name, const char *const *names)
{
	const char *closest = names ? option_closest(option_snake_case(name), names) : NULL;
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; names && names[i]; i++)
		appendStringInfo(&list, "%s%s", i ? ", " : "", names[i]);

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 closest ? errhint("Perhaps you meant the option \"%s\".", closest) :
			 list.len == 0 ? errhint("There are no valid options in this context.") :
			 list.len <= 500 ? errhint("Valid options in this context are: %s.", list.data) :
			 0));
}

void
option_stray(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("option \"%s\" is not allowed here", name),
			 errhint("%s", hint)));
}

OptionKeyword
option_keyword(Oid catalog, const char *name, const char **canonical)
{
	char	   *snake = option_snake_case(name);

	for (int i = 0; i < lengthof(option_defs); i++)
	{
		if (option_defs[i].catalog == catalog && strcmp(option_defs[i].name, snake) == 0)
		{
			*canonical = option_defs[i].name;
			for (int j = 0; j < lengthof(synonyms); j++)
				if (synonyms[j].keyword == option_defs[i].keyword)
					*canonical = synonyms[j].name;
			return option_defs[i].keyword;
		}
	}
	*canonical = snake;
	return OPT_NONE;
}

const char *
option_keyword_name(OptionKeyword keyword)
{
	for (int i = 0; i < lengthof(option_defs); i++)
	{
		if (option_defs[i].keyword == keyword)
			return option_defs[i].name;
	}
	return NULL;
}

/* Pairs (canonical name, name as given) */
List *
option_note(List *seen, const char *canonical, const char *given)
{
	ListCell   *lc;

	foreach(lc, seen)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, canonical) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("option \"%s\" provided more than once", canonical),
					 errdetail("\"%s\" and \"%s\" are spellings of the same option.",
							   strVal(def->arg), given)));
	}
	return lappend(seen, makeDefElem(pstrdup(canonical), (Node *) makeString(pstrdup(given)), -1));
}

/* ------------------------------------------------------------------------
 * Values
 * ------------------------------------------------------------------------ */

void
option_bad_value(const char *name, const char *value, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", name, value),
			 hint ? errhint("%s", hint) : 0));
}

bool
option_parse_bool(const char *name, const char *value)
{
	bool		result;

	if (!parse_bool(value, &result))
		option_bad_value(name, value, _("Valid values are: true, false."));
	return result;
}

/* Equal but for case and the choice between '-', '_', '.' and blank? */
static bool
same_word(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
	{
		char		ca = pg_tolower((unsigned char) *a);
		char		cb = pg_tolower((unsigned char) *b);

		if (ca == '-' || ca == '.' || ca == ' ')
			ca = '_';
		if (cb == '-' || cb == '.' || cb == ' ')
			cb = '_';
		if (ca != cb)
			return false;
	}
	return *a == *b;
}

int
option_word_index(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
	{
		if (same_word(value, words[i]))
			return i;
	}
	return -1;
}

int
option_parse_enum(const char *name, const char *value, const char *const *words)
{
	int			i = option_word_index(value, words);

	if (i < 0)
	{
		StringInfoData hint;

		initStringInfo(&hint);
		appendStringInfoString(&hint, _("Valid values are: "));
		for (i = 0; words[i]; i++)
			appendStringInfo(&hint, "%s%s", i ? ", " : "", words[i]);
		appendStringInfoChar(&hint, '.');
		option_bad_value(name, value, hint.data);
	}
	return i;
}

void
option_check_regex(const char *name, const char *value, const char *regex)
{
	int			len = (int) strlen(regex);
	pg_wchar   *wide = palloc(sizeof(pg_wchar) * (len + 1));
	regex_t		compiled;
	char		message[100];
	int			result;

	len = pg_mb2wchar_with_len(regex, wide, len);
	result = pg_regcomp(&compiled, wide, len, REG_ADVANCED, C_COLLATION_OID);
	if (result != REG_OKAY)
	{
		pg_regerror(result, &compiled, message, sizeof(message));
		option_bad_value(name, value, psprintf(_("The value is a regular expression: %s."), message));
	}
	pg_regfree(&compiled);
	pfree(wide);
}
