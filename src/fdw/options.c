/*
 * options.c
 *	  Names and values of options: the table of our own, both spellings, closest
 *	  match, and the parsing of a table's and a column's option list.
 *
 * Looks at one list at a time and at no catalog.  Client properties (servers and
 * user mappings) are in client_options.c; what spans lists is in topic_table.c.
 */
#include "postgres.h"

#include <ctype.h>
#include <limits.h>

#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "fdw/option_list.h"
#include "fdw/topic_find.h"
#include "format/lenient.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/varlena.h"

#define NAME_LENGTH_MAX	255		/* what varstr_levenshtein takes */
#define TOPIC_NAME_MAX	249		/* Kafka's limit: the name is a directory's */
#define FORMAT_METADATA_PREFIX	"value."	/* as in Flink */

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

static const char *const connector_values[] = {"upsert-kafka", "kafka", NULL};
static const char *const on_error_values[] = {"stop", "skip", NULL};
static const char *const fields_include_values[] = {"ALL", "EXCEPT_KEY", NULL};

/* in the order of KafkaPartitioner */
static const char *const partitioner_values[] = {"default", "consistent", "fnv1a", "random", NULL};

/* in the order of DeliveryGuarantee */
static const char *const delivery_values[] = {"at-least-once", "none", "exactly-once", NULL};

/* in the order of StartupMode */
static const char *const startup_values[] = {"earliest-offset", "latest-offset", "timestamp", "specific-offsets", NULL};

/* in the order of BoundedMode; "unbounded" first, since a scan ends anyway */
static const char *const bounded_values[] = {"unbounded", "latest-offset", "timestamp", "specific-offsets", NULL};

/* in the order of MetadataKind, META_NONE left out and META_FORMAT, whose names are the formats' */
static const char *const metadata_values[] = {
	"topic", "partition", "offset", "timestamp", "timestamp-type", "headers",
	"leader-epoch", "row_kind", "raw_key", "raw_value", NULL
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

/*
 * Our own option of a catalog; *canonical gets one name for all its spellings.
 */
static OptionKeyword
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

/*
 * PostgreSQL refuses the same name twice, but not two spellings of one option.
 * 'seen' collects pairs (canonical name, name as given).
 */
static List *
note_option(List *seen, const char *canonical, const char *given)
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

static int
word_index(const char *value, const char *const *words)
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
	int			i = word_index(value, words);

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

static bool
parse_number(const char *p, const char *end, int64 max, int64 *result)
{
	int64		value = 0;

	if (p == end)
		return false;
	for (; p < end; p++)
	{
		if (!isdigit((unsigned char) *p))
			return false;
		if (value > (max - (*p - '0')) / 10)
			return false;
		value = value * 10 + (*p - '0');
	}
	*result = value;
	return true;
}

static int64
parse_millis_option(const char *name, const char *value)
{
	int64		result;

	if (!parse_number(value, value + strlen(value), PG_INT64_MAX, &result))
		option_bad_value(name, value, _("The value is a number of milliseconds since 1970-01-01 00:00:00 UTC."));
	return result;
}

/* Skip blanks, then 'word', then digits. */
static const char *
parse_word_number(const char *p, const char *word, int64 max, int64 *result)
{
	const char *start;

	while (*p == ' ')
		p++;
	if (strncmp(p, word, strlen(word)) != 0)
		return NULL;
	start = p += strlen(word);
	while (isdigit((unsigned char) *p))
		p++;
	if (!parse_number(start, p, max, result))
		return NULL;
	while (*p == ' ')
		p++;
	return p;
}

/* partition:0,offset:42;partition:1,offset:300 */
static PartitionOffset *
parse_offsets_option(const char *name, const char *value, int *n)
{
	PartitionOffset *result = palloc(sizeof(PartitionOffset) * (strlen(value) / 20 + 1));
	const char *p = value;

	*n = 0;
	for (;;)
	{
		int64		partition;
		int64		offset;

		p = parse_word_number(p, "partition:", PG_INT32_MAX, &partition);
		if (p && *p == ',')
			p = parse_word_number(p + 1, "offset:", PG_INT64_MAX, &offset);
		else
			p = NULL;
		if (p == NULL || (*p != '\0' && *p != ';'))
			option_bad_value(name, value, _("The value looks like \"partition:0,offset:42;partition:1,offset:300\"."));
		for (int i = 0; i < *n; i++)
		{
			if (result[i].partition == partition)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
						 errmsg("partition %lld appears more than once in option \"%s\"",
								(long long) partition, name)));
		}
		result[*n].partition = partition;
		result[*n].offset = offset;
		(*n)++;
		if (*p == '\0' || p[1] == '\0')
			return result;
		p++;
	}
}

static void
check_topic_name(const char *name, const char *value, const char *topic)
{
	if (strchr(topic, ','))
		option_bad_value(name, value, _("Topics of a list are separated by semicolons."));
	if (topic[0] == '\0' && value[0] != '\0')
		option_bad_value(name, value, _("A name between two semicolons is missing."));
	if (topic[0] == '\0' || strlen(topic) > TOPIC_NAME_MAX ||
		strcmp(topic, ".") == 0 || strcmp(topic, "..") == 0 ||
		strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(topic))
		option_bad_value(name, value, _("A topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, \".\", \"_\" and \"-\"."));
}

/* One name, or a list of them, as in Flink: blanks around a name don't count. */
static void
parse_topic_option(const char *name, const char *value, TopicTable *table)
{
	const char *p = value;
	int			max = 1;

	for (const char *c = value; *c; c++)
		max += *c == ';';
	table->topic = value;
	table->topics = palloc(sizeof(char *) * max);
	for (;;)
	{
		const char *end = p + strcspn(p, ";");
		Size		len;
		char	   *topic;

		if (max > 1)
			p += strspn(p, " ");
		len = Max(end - p, 0);
		while (max > 1 && len > 0 && p[len - 1] == ' ')
			len--;
		topic = pnstrdup(p, len);
		check_topic_name(name, value, topic);
		for (int i = 0; i < table->ntopics; i++)
			if (strcmp(table->topics[i], topic) == 0)
				option_bad_value(name, value, psprintf(_("Topic \"%s\" is named twice."), topic));
		table->topics[table->ntopics++] = topic;
		if (*end == '\0')
			break;
		p = end + 1;
	}
}

/* 0: no reduction */
static int
parse_window_option(const char *name, const char *value, int unit)
{
	int			result;
	const char *hint = NULL;

	if (!parse_int(value, &result, unit, &hint) || result < 0)
		option_bad_value(name, value, unit != 0 ?
						 _("The value is a time such as \"1s\" or \"200ms\"; without a unit it is in milliseconds.") :
						 _("The value is a number of rows."));
	return result;
}

/* As in Flink nothing is looked for with 0 or less. */
static int
parse_discovery_option(const char *name, const char *value)
{
	int			result;
	const char *hint = NULL;

	if (!parse_int(value, &result, GUC_UNIT_MS, &hint))
		option_bad_value(name, value, _("The value is a time such as \"5min\" or \"30s\"; without a unit it is in milliseconds."));
	return result > 0 ? result : -1;
}

static const char *
parse_time_zone_option(const char *name, const char *value)
{
	pg_tz	   *tz = pg_tzset(value);

	if (tz == NULL || !pg_tz_acceptable(tz))
		option_bad_value(name, value, _("The view pg_timezone_names lists what there is."));
	return value;
}

static const FormatRoutine *
parse_format_option(const char *name, const char *value)
{
	const FormatRoutine *format = format_lookup(value);
	StringInfoData hint;
	const char *const *names = format_names();

	if (format)
		return format;
	initStringInfo(&hint);
	appendStringInfoString(&hint, _("Formats of this version are: "));
	for (int i = 0; names[i]; i++)
		appendStringInfo(&hint, "%s%s", i ? ", " : "", names[i]);
	appendStringInfoChar(&hint, '.');
	option_bad_value(name, value, hint.data);
}

/* 'a;b' as Flink writes lists */
static List *
parse_fields_option(const char *name, const char *value)
{
	List	   *result = NIL;
	const char *p = value;

	for (;;)
	{
		const char *end = strchr(p, ';');
		const char *start = p;
		const char *stop = end ? end : p + strlen(p);
		char	   *field;
		ListCell   *lc;

		while (start < stop && isspace((unsigned char) *start))
			start++;
		while (stop > start && isspace((unsigned char) stop[-1]))
			stop--;
		field = pnstrdup(start, stop - start);
		if (field[0] == '\0')
			option_bad_value(name, value, _("The value is a list of column names separated by \";\"."));
		foreach(lc, result)
		{
			if (strcmp(lfirst(lc), field) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
						 errmsg("column \"%s\" appears more than once in option \"%s\"", field, name)));
		}
		result = lappend(result, field);
		if (end == NULL)
			return result;
		p = end + 1;
	}
}

/* ------------------------------------------------------------------------
 * A table's list
 * ------------------------------------------------------------------------ */

static void
table_option_unknown(const char *name)
{
	char	   *snake = option_snake_case(name);
	const char **own = option_names(ForeignTableRelationId);
	const char **of_format = format_option_names(snake);

	if (client_option_known(name))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", name),
				 errhint("Client properties are options of the server, or of a user mapping where they are secret.")));
	if (strstr(snake, "avro_confluent_basic_auth_") || strstr(snake, "avro_confluent_bearer_auth_") || strstr(snake, "avro_confluent_ssl_"))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", name),
				 errhint("The registry's credentials are options of a user mapping (registry_username, registry_password, registry_token), its certificates of the server (registry_ca_pem).")));
	if (of_format && option_closest(snake, own) == NULL)
		option_unknown(name, of_format);
	option_unknown(name, own);
}

static void
require_option(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
			 errmsg("option \"%s\" is required", name),
			 hint ? errhint("%s", hint) : 0));
}

/* An option that means nothing without another. */
static void
stray_option(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("option \"%s\" is not allowed here", name),
			 errhint("%s", hint)));
}

/* Arguments belong to their mode, and the mode needs its argument. */
static void
check_mode_argument(bool mode_chosen, bool given, const char *mode_option, const char *mode, const char *argument)
{
	if (mode_chosen && !given)
		require_option(argument, psprintf(_("%s \"%s\" needs it."), mode_option, mode));
	if (given && !mode_chosen)
		stray_option(argument, psprintf(_("It needs %s \"%s\"."), mode_option, mode));
}

static int
parse_mode_option(const char *name, const char *value, const char *const *words)
{
	if (same_word(value, "group-offsets"))
		option_bad_value(name, value, _("No consumer group is joined: positions of maintained tables are kept in the database. Use \"specific-offsets\" to read from given offsets."));
	return option_parse_enum(name, value, words);
}

void
table_options_parse(List *options, TopicTable *table)
{
	bool		given[OPT_NONE] = {false};
	List	   *seen = NIL;
	List	   *format_options = NIL;
	ListCell   *lc;

	table->on_error = ON_ERROR_STOP;
	table->time_zone = "UTC";
	table->startup_mode = STARTUP_EARLIEST;
	table->bounded_mode = BOUNDED_LATEST;
	table->value_has_key = true;
	table->partitioner = KAFKA_PARTITIONER_DEFAULT;
	table->delivery = DELIVERY_AT_LEAST_ONCE;
	table->delete_marker_value = "true";
	table->updatable = true;
	table->truncatable = true;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *name = def->defname;
		const char *value = defGetString(def);
		const char *canonical;
		OptionKeyword keyword = option_keyword(ForeignTableRelationId, name, &canonical);

		if (keyword == OPT_NONE)
		{
			FormatOptionRef *ref = palloc(sizeof(FormatOptionRef));

			if (!format_option_find(canonical, ref))
				table_option_unknown(name);
			ref->given = name;
			ref->value = value;
			seen = note_option(seen, psprintf("%s_%s_%s", ref->is_key ? "key" : "value",
											  option_snake_case(ref->format->name), ref->option->name), name);
			format_options = lappend(format_options, ref);
			continue;
		}
		seen = note_option(seen, canonical, name);
		given[keyword] = true;

		switch (keyword)
		{
			case OPT_CHANGELOG:
				table->changelog = option_parse_bool(name, value);
				break;
			case OPT_CONNECTOR:
				table->upsert = option_parse_enum(name, value, connector_values) == 0;
				break;
			case OPT_DELETE_MARKER:
				if (value[0] == '\0')
					option_bad_value(name, value, _("The value is the name of a field in the message's value."));
				table->delete_marker = value;
				break;
			case OPT_DELETE_MARKER_VALUE:
				table->delete_marker_value = value;
				break;
			case OPT_DELIVERY_GUARANTEE:
				table->delivery = option_parse_enum(name, value, delivery_values);
				break;
			case OPT_KEY_FIELDS:
				table->key_fields = parse_fields_option(name, value);
				break;
			case OPT_KEY_FIELDS_PREFIX:
				if (value[0] == '\0')
					option_bad_value(name, value, _("Leave the option out when key columns have no prefix."));
				table->key_fields_prefix = value;
				break;
			case OPT_KEY_FORMAT:
				table->key_format = parse_format_option(name, value);
				break;
			case OPT_ON_ERROR:
				table->on_error = option_parse_enum(name, value, on_error_values) == 0 ? ON_ERROR_STOP : ON_ERROR_SKIP;
				break;
			case OPT_PARTITIONER:
				table->partitioner = (KafkaPartitioner) option_parse_enum(name, value, partitioner_values);
				break;
			case OPT_SCAN_BOUNDED_MODE:
				switch (parse_mode_option(name, value, bounded_values))
				{
					case 2:
						table->bounded_mode = BOUNDED_TIMESTAMP;
						break;
					case 3:
						table->bounded_mode = BOUNDED_SPECIFIC;
						break;
					default:	/* a SELECT has to end */
						table->bounded_mode = BOUNDED_LATEST;
				}
				break;
			case OPT_SCAN_BOUNDED_SPECIFIC_OFFSETS:
				table->bounded_offsets = parse_offsets_option(name, value, &table->nbounded_offsets);
				break;
			case OPT_SCAN_BOUNDED_TIMESTAMP_MILLIS:
				table->bounded_timestamp = parse_millis_option(name, value);
				break;
			case OPT_SCAN_STARTUP_MODE:
				table->startup_mode = (StartupMode) parse_mode_option(name, value, startup_values);
				break;
			case OPT_SCAN_STARTUP_SPECIFIC_OFFSETS:
				table->startup_offsets = parse_offsets_option(name, value, &table->nstartup_offsets);
				break;
			case OPT_SCAN_STARTUP_TIMESTAMP_MILLIS:
				table->startup_timestamp = parse_millis_option(name, value);
				break;
			case OPT_SCAN_TOPIC_PARTITION_DISCOVERY_INTERVAL:
				table->discovery_ms = parse_discovery_option(name, value);
				break;
			case OPT_SINK_BUFFER_FLUSH_INTERVAL:
				table->window_ms = parse_window_option(name, value, GUC_UNIT_MS);
				break;
			case OPT_SINK_BUFFER_FLUSH_MAX_ROWS:
				table->window_rows = parse_window_option(name, value, 0);
				break;
			case OPT_TIME_ZONE:
				table->time_zone = parse_time_zone_option(name, value);
				break;
			case OPT_TOPIC:
				parse_topic_option(name, value, table);
				break;
			case OPT_TOPIC_PATTERN:
				topic_pattern_check(name, value);
				table->topic_pattern = value;
				break;
			case OPT_TRUNCATABLE:
				table->truncatable = option_parse_bool(name, value);
				break;
			case OPT_UPDATABLE:
				table->updatable = option_parse_bool(name, value);
				break;
			case OPT_VALUE_FIELDS_INCLUDE:
				table->value_has_key = option_parse_enum(name, value, fields_include_values) == 0;
				break;
			case OPT_VALUE_FORMAT:
				table->value_format = parse_format_option(name, value);
				break;
			default:
				break;
		}
	}

	/* What is required. */
	if (!given[OPT_CONNECTOR])
		require_option("connector", _("\"upsert-kafka\" reads the topic as a changelog by key, \"kafka\" shows every message as a row."));
	if (table->topic != NULL && table->topic_pattern != NULL)
		stray_option("topic_pattern", _("It takes the place of \"topic\": use one of the two."));
	if (table->topic == NULL && table->topic_pattern == NULL)
		require_option("topic", _("It names the topic, or several: \"a;b\". Option \"topic_pattern\" takes all topics whose names match."));
	if (table->topic == NULL)
		table->topic = table->topic_pattern;
	if (table->value_format == NULL)
		require_option("value_format", NULL);
	if (table->upsert && table->key_format == NULL)
		require_option("key_format", _("An upsert table takes its key columns from the message key."));

	/* What fits together. */
	if (table->upsert)
	{
		static const OptionKeyword startup[] = {
			OPT_SCAN_STARTUP_MODE, OPT_SCAN_STARTUP_SPECIFIC_OFFSETS, OPT_SCAN_STARTUP_TIMESTAMP_MILLIS
		};

		for (int i = 0; i < lengthof(startup); i++)
		{
			for (int j = 0; given[startup[i]] && j < lengthof(option_defs); j++)
			{
				if (option_defs[j].keyword == startup[i])
					stray_option(option_defs[j].name, _("An upsert topic is always read from its beginning; connector \"kafka\" reads a part of a topic."));
			}
		}
	}
	else
	{
		if (given[OPT_CHANGELOG])
			stray_option("changelog", _("It needs connector \"upsert-kafka\"."));
		if (given[OPT_SINK_BUFFER_FLUSH_MAX_ROWS])
			stray_option("sink_buffer_flush_max_rows", _("It needs connector \"upsert-kafka\"."));
		if (given[OPT_SINK_BUFFER_FLUSH_INTERVAL])
			stray_option("sink_buffer_flush_interval", _("It needs connector \"upsert-kafka\"."));
		if (given[OPT_TRUNCATABLE])
			stray_option("truncatable", _("It needs connector \"upsert-kafka\"."));
	}
	if (table->key_format && table->key_format->changelog)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("format \"%s\" cannot be used for keys", table->key_format->name),
				 errhint("Use key_format \"json\": it reads the keys that are written beside such values, wrapped with their schema or not.")));
	if (given[OPT_DELETE_MARKER_VALUE] && !given[OPT_DELETE_MARKER])
		stray_option("delete_marker_value", _("It needs delete_marker, which names the field."));
	if (table->delete_marker && (table->value_format->changelog || table->value_format->single_column))
		stray_option("delete_marker", table->value_format->changelog ? _("Change events say themselves what is deleted.") :
					 psprintf(_("Values of format \"%s\" have no fields."), table->value_format->name));
	/* Flink's rule */
	if ((table->window_rows > 0) != (table->window_ms > 0))
		require_option(table->window_rows > 0 ? "sink_buffer_flush_interval" : "sink_buffer_flush_max_rows",
					   _("sink_buffer_flush_max_rows and sink_buffer_flush_interval must be greater than zero together."));
	check_mode_argument(table->startup_mode == STARTUP_TIMESTAMP, given[OPT_SCAN_STARTUP_TIMESTAMP_MILLIS],
						"scan_startup_mode", "timestamp", "scan_startup_timestamp_millis");
	check_mode_argument(table->startup_mode == STARTUP_SPECIFIC, given[OPT_SCAN_STARTUP_SPECIFIC_OFFSETS],
						"scan_startup_mode", "specific-offsets", "scan_startup_specific_offsets");
	check_mode_argument(table->bounded_mode == BOUNDED_TIMESTAMP, given[OPT_SCAN_BOUNDED_TIMESTAMP_MILLIS],
						"scan_bounded_mode", "timestamp", "scan_bounded_timestamp_millis");
	check_mode_argument(table->bounded_mode == BOUNDED_SPECIFIC, given[OPT_SCAN_BOUNDED_SPECIFIC_OFFSETS],
						"scan_bounded_mode", "specific-offsets", "scan_bounded_specific_offsets");
	/* Flink's rule, too: an offset says something about one topic */
	if (!topic_table_is_plain(table) && table->startup_mode == STARTUP_SPECIFIC)
		stray_option("scan_startup_specific_offsets", _("Offsets can be given for one topic only."));
	if (!topic_table_is_plain(table) && table->bounded_mode == BOUNDED_SPECIFIC)
		stray_option("scan_bounded_specific_offsets", _("Offsets can be given for one topic only."));
	if (table->key_format == NULL && given[OPT_KEY_FIELDS])
		stray_option("key_fields", _("It needs key_format."));
	if (table->key_format == NULL && given[OPT_KEY_FIELDS_PREFIX])
		stray_option("key_fields_prefix", _("It needs key_format."));
	if (table->key_format == NULL && !table->value_has_key)
		stray_option("value_fields_include", _("\"EXCEPT_KEY\" needs key_format."));
	if (table->key_fields_prefix && table->value_has_key)
		stray_option("key_fields_prefix", _("It needs value_fields_include \"EXCEPT_KEY\": otherwise key and value would both hold the key columns, under different names."));

	foreach(lc, format_options)
	{
		FormatOptionRef *ref = lfirst(lc);
		DefElem    *def;

		if (ref->format != (ref->is_key ? table->key_format : table->value_format))
			stray_option(ref->given, psprintf(_("It needs %s \"%s\"."),
											  ref->is_key ? "key_format" : "value_format", ref->format->name));
		def = makeDefElem(pstrdup(ref->option->name), (Node *) makeString(format_option_value(ref)), -1);
		if (ref->is_key)
			table->key_options = lappend(table->key_options, def);
		else
			table->value_options = lappend(table->value_options, def);
	}
	table->ignores_errors = ignores_parse_errors(table->key_options) || ignores_parse_errors(table->value_options);
	if (table->key_format && table->key_format->check_options)
		table->key_format->check_options(table->key_options, true);
	if (table->value_format->check_options)
		table->value_format->check_options(table->value_options, false);
	foreach(lc, table->value_options)
	{
		DefElem    *def = lfirst(lc);

		if (table->changelog && strcmp(def->defname, "truncate") == 0 && strcmp(defGetString(def), "apply") == 0)
			stray_option("changelog", _("With truncate 'apply' a table has the state of its keys, or with connector \"kafka\" the log of changes."));
	}
}

/* ------------------------------------------------------------------------
 * A column's list
 * ------------------------------------------------------------------------ */

const char *
metadata_name(const TopicColumn *column)
{
	Assert(column->metadata != META_NONE);
	if (column->metadata == META_FORMAT)
		return psprintf(FORMAT_METADATA_PREFIX "%s", column->field);
	return metadata_values[column->metadata - 1];
}

/* What formats offer, as it is spelled in metadata '...'; NULL-terminated. */
static const char **
format_metadata_names(void)
{
	const char *const *formats = format_names();
	const char **names = NULL;
	int			n = 0;

	for (int i = 0; formats[i]; i++)
	{
		for (const FormatMetadata *m = format_lookup(formats[i])->metadata; m && m->name; m++)
		{
			int			known = 0;
			char	   *name = psprintf(FORMAT_METADATA_PREFIX "%s", m->name);

			while (known < n && strcmp(names[known], name) != 0)
				known++;
			if (known < n)
				continue;
			names = names ? repalloc(names, sizeof(char *) * (n + 2)) : palloc(sizeof(char *) * 2);
			names[n++] = name;
		}
	}
	if (names == NULL)
		names = palloc(sizeof(char *));
	names[n] = NULL;
	return names;
}

static void
parse_metadata_option(const char *name, const char *value, ColumnOptions *column)
{
	const char **of_format = format_metadata_names();
	bool		is_format = strncmp(value, FORMAT_METADATA_PREFIX, strlen(FORMAT_METADATA_PREFIX)) == 0;
	const char *const *names = is_format ? (const char *const *) of_format : metadata_values;
	int			i = word_index(value, metadata_values);
	const char *closest;
	StringInfoData hint;

	if (i >= 0)
	{
		column->metadata = (MetadataKind) (i + 1);
		return;
	}
	/* the table's list says which format it is, so topic_table.c sees whether it has it */
	i = word_index(value, of_format);
	if (i >= 0)
	{
		column->metadata = META_FORMAT;
		column->metadata_field = of_format[i] + strlen(FORMAT_METADATA_PREFIX);
		return;
	}

	initStringInfo(&hint);
	closest = option_closest(value, names);
	if (closest)
		appendStringInfo(&hint, _("Perhaps you meant \"%s\". "), closest);
	appendStringInfoString(&hint, is_format ? _("Metadata that formats offer is: ") : _("Metadata that a column can show is: "));
	for (i = 0; names[i]; i++)
		appendStringInfo(&hint, "%s%s", i ? ", " : "", names[i]);
	appendStringInfoChar(&hint, '.');
	option_bad_value(name, value, hint.data);
}

void
column_options_parse(List *options, ColumnOptions *column)
{
	List	   *seen = NIL;
	ListCell   *lc;

	memset(column, 0, sizeof(*column));
	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *value = defGetString(def);
		const char *canonical;
		OptionKeyword keyword = option_keyword(AttributeRelationId, def->defname, &canonical);

		if (keyword != OPT_NONE)
			seen = note_option(seen, canonical, def->defname);
		switch (keyword)
		{
			case OPT_KEY:
				column->key = option_parse_bool(def->defname, value);
				break;
			case OPT_FIELD:
				if (value[0] == '\0')
					option_bad_value(def->defname, value, _("The value is the field's name in the message."));
				column->field = value;
				break;
			case OPT_METADATA:
				parse_metadata_option(def->defname, value, column);
				break;
			default:
				option_unknown(def->defname, option_names(AttributeRelationId));
		}
	}
	if (column->field && column->metadata != META_NONE)
		stray_option("field", _("A metadata column is not taken from the message's content."));
}
