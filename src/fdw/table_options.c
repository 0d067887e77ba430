/*
 * table_options.c
 *	  A foreign table's option list: values, and what of it fits together.
 *
 * Looks at this list alone and at no catalog; options of formats are checked against
 * what the formats declare (format_options.c).
 */
#include "postgres.h"

#include <ctype.h>
#include <limits.h>

#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "fdw/option_list.h"
#include "fdw/topic_find.h"
#include "format/lenient.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "pgtime.h"
#include "utils/guc.h"

#define TOPIC_NAME_MAX	249		/* Kafka's limit: the name is a directory's */

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

/* === Values ================================================================= */

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

/* === What is wrong with an option =========================================== */

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

/* Arguments belong to their mode, and the mode needs its argument. */
static void
check_mode_argument(bool mode_chosen, bool given, const char *mode_option, const char *mode, const char *argument)
{
	if (mode_chosen && !given)
		require_option(argument, psprintf(_("%s \"%s\" needs it."), mode_option, mode));
	if (given && !mode_chosen)
		option_stray(argument, psprintf(_("It needs %s \"%s\"."), mode_option, mode));
}

static int
parse_mode_option(const char *name, const char *value, const char *const *words)
{
	static const char *const group_offsets[] = {"group-offsets", NULL};

	if (option_word_index(value, group_offsets) == 0)
		option_bad_value(name, value, _("No consumer group is joined: positions of maintained tables are kept in the database. Use \"specific-offsets\" to read from given offsets."));
	return option_parse_enum(name, value, words);
}

/* === The list =============================================================== */

/* What is said of a table by an option of our own. */
static void
take_option(OptionKeyword keyword, const char *name, const char *value, TopicTable *table)
{
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

/* A format's option; its value is looked at when it is known which formats there are. */
static FormatOptionRef *
format_option_ref(const char *name, const char *canonical, const char *value)
{
	FormatOptionRef *ref = palloc(sizeof(FormatOptionRef));

	if (!format_option_find(canonical, ref))
		table_option_unknown(name);
	ref->given = name;
	ref->value = value;
	return ref;
}

static void
check_required(const TopicTable *table, const bool *given)
{
	if (!given[OPT_CONNECTOR])
		require_option("connector", _("\"upsert-kafka\" reads the topic as a changelog by key, \"kafka\" shows every message as a row."));
	if (given[OPT_TOPIC] && given[OPT_TOPIC_PATTERN])
		option_stray("topic_pattern", _("It takes the place of \"topic\": use one of the two."));
	if (!given[OPT_TOPIC] && !given[OPT_TOPIC_PATTERN])
		require_option("topic", _("It names the topic, or several: \"a;b\". Option \"topic_pattern\" takes all topics whose names match."));
	if (table->value_format == NULL)
		require_option("value_format", NULL);
	if (table->upsert && table->key_format == NULL)
		require_option("key_format", _("An upsert table takes its key columns from the message key."));
}

/* What the other connector has no use for */
static void
check_connector(const TopicTable *table, const bool *given)
{
	static const OptionKeyword of_append[] = {
		OPT_SCAN_STARTUP_MODE, OPT_SCAN_STARTUP_SPECIFIC_OFFSETS, OPT_SCAN_STARTUP_TIMESTAMP_MILLIS
	};
	static const OptionKeyword of_upsert[] = {
		OPT_CHANGELOG, OPT_SINK_BUFFER_FLUSH_MAX_ROWS, OPT_SINK_BUFFER_FLUSH_INTERVAL, OPT_TRUNCATABLE
	};

	for (int i = 0; table->upsert && i < lengthof(of_append); i++)
	{
		if (given[of_append[i]])
			option_stray(option_keyword_name(of_append[i]), _("An upsert topic is always read from its beginning; connector \"kafka\" reads a part of a topic."));
	}
	for (int i = 0; !table->upsert && i < lengthof(of_upsert); i++)
	{
		if (given[of_upsert[i]])
			option_stray(option_keyword_name(of_upsert[i]), _("It needs connector \"upsert-kafka\"."));
	}
	/* Flink's rule */
	if ((table->window_rows > 0) != (table->window_ms > 0))
		require_option(table->window_rows > 0 ? "sink_buffer_flush_interval" : "sink_buffer_flush_max_rows",
					   _("sink_buffer_flush_max_rows and sink_buffer_flush_interval must be greater than zero together."));
}

static void
check_scan_modes(const TopicTable *table, const bool *given)
{
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
		option_stray("scan_startup_specific_offsets", _("Offsets can be given for one topic only."));
	if (!topic_table_is_plain(table) && table->bounded_mode == BOUNDED_SPECIFIC)
		option_stray("scan_bounded_specific_offsets", _("Offsets can be given for one topic only."));
}

static void
check_keys(const TopicTable *table, const bool *given)
{
	if (table->key_format && table->key_format->changelog)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("format \"%s\" cannot be used for keys", table->key_format->name),
				 errhint("Use key_format \"json\": it reads the keys that are written beside such values, wrapped with their schema or not.")));
	if (table->key_format == NULL && given[OPT_KEY_FIELDS])
		option_stray("key_fields", _("It needs key_format."));
	if (table->key_format == NULL && given[OPT_KEY_FIELDS_PREFIX])
		option_stray("key_fields_prefix", _("It needs key_format."));
	if (table->key_format == NULL && !table->value_has_key)
		option_stray("value_fields_include", _("\"EXCEPT_KEY\" needs key_format."));
	if (table->key_fields_prefix && table->value_has_key)
		option_stray("key_fields_prefix", _("It needs value_fields_include \"EXCEPT_KEY\": otherwise key and value would both hold the key columns, under different names."));
}

static void
check_delete_marker(const TopicTable *table, const bool *given)
{
	if (given[OPT_DELETE_MARKER_VALUE] && !given[OPT_DELETE_MARKER])
		option_stray("delete_marker_value", _("It needs delete_marker, which names the field."));
	if (table->delete_marker && (table->value_format->changelog || table->value_format->single_column))
		option_stray("delete_marker", table->value_format->changelog ? _("Change events say themselves what is deleted.") :
					 psprintf(_("Values of format \"%s\" have no fields."), table->value_format->name));
}

/* Options of formats, as the formats get them */
static void
take_format_options(const List *refs, TopicTable *table)
{
	ListCell   *lc;

	foreach(lc, refs)
	{
		const FormatOptionRef *ref = lfirst(lc);
		DefElem    *def;

		if (ref->format != (ref->is_key ? table->key_format : table->value_format))
			option_stray(ref->given, psprintf(_("It needs %s \"%s\"."),
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
			option_stray("changelog", _("With truncate 'apply' a table has the state of its keys, or with connector \"kafka\" the log of changes."));
	}
}

void
table_options_parse(List *options, TopicTable *table)
{
	bool		given[OPT_NONE] = {false};
	List	   *seen = NIL;
	List	   *of_formats = NIL;
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
		const char *canonical;
		OptionKeyword keyword = option_keyword(ForeignTableRelationId, def->defname, &canonical);

		if (keyword == OPT_NONE)
		{
			FormatOptionRef *ref = format_option_ref(def->defname, canonical, defGetString(def));

			canonical = psprintf("%s_%s_%s", ref->is_key ? "key" : "value", option_snake_case(ref->format->name), ref->option->name);
			of_formats = lappend(of_formats, ref);
		}
		else
			given[keyword] = true;
		seen = option_note(seen, canonical, def->defname);
		take_option(keyword, def->defname, defGetString(def), table);
	}

	check_required(table, given);
	if (table->topic == NULL)
		table->topic = table->topic_pattern;
	check_connector(table, given);
	check_keys(table, given);
	check_delete_marker(table, given);
	check_scan_modes(table, given);
	take_format_options(of_formats, table);
}
