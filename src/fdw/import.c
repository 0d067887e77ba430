/*
 * import.c
 *	  IMPORT FOREIGN SCHEMA: a foreign table for each topic of the server, with the
 *	  columns of its schema in the registry, or those that its last messages show.
 *
 * A Kafka has no schemas; the remote schema's name means nothing.  What a sample shows
 * is not what every message will be, so a guess is made only where the registry has nothing.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "fdw/import_sample.h"
#include "fdw/import_schema.h"
#include "fdw/option_list.h"
#include "fdw/options.h"
#include "fdw/topic_fdw.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define DEFAULT_SAMPLE 100
#define MAX_SAMPLE 10000

typedef struct ImportOptions
{
	int			sample;			/* messages per topic */
	const char *connector;		/* NULL: by the keys */
} ImportOptions;

static const char *const import_option_names[] = {"connector", "sample", NULL};
static const char *const import_connectors[] = {"upsert-kafka", "kafka", NULL};

static void
parse_options(List *options, ImportOptions *result)
{
	ListCell   *lc;

	result->sample = DEFAULT_SAMPLE;
	result->connector = NULL;
	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *value = defGetString(def);

		if (strcmp(def->defname, "sample") == 0)
		{
			const char *hint = NULL;

			if (!parse_int(value, &result->sample, 0, &hint) || result->sample < 0 || result->sample > MAX_SAMPLE)
				option_bad_value(def->defname, value, "The value is a number of messages from 0 to 10000.");
		}
		else if (strcmp(def->defname, "connector") == 0)
			result->connector = import_connectors[option_parse_enum(def->defname, value, import_connectors)];
		else
			option_unknown(def->defname, import_option_names);
	}
}

/* --- the command ------------------------------------------------------------ */

static bool
name_taken(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

/* 'wanted' as an identifier that no other column has. */
static char *
column_name(List **names, const char *wanted)
{
	char	   *name = pstrdup(wanted);

	name[pg_mbcliplen(name, strlen(name), NAMEDATALEN - 1)] = '\0';
	for (int i = 2; name_taken(*names, name); i++)
	{
		char	   *suffix = psprintf("_%d", i);
		int			room = NAMEDATALEN - 1 - (int) strlen(suffix);

		name = psprintf("%.*s%s", pg_mbcliplen(wanted, strlen(wanted), room), wanted, suffix);
	}
	*names = lappend(*names, name);
	return name;
}

/* One column; field, key and metadata are its options, NULL or false: it has none. */
static void
append_column(StringInfo sql, List **names, const ImportColumn *column, const char *wanted, bool key, bool not_null,
			  const char *metadata)
{
	char	   *name = column_name(names, wanted);
	bool		field = column->field && strcmp(column->field, name) != 0;

	appendStringInfo(sql, "%s\n\t%s %s", list_length(*names) > 1 ? "," : "", quote_identifier(name), column->type);
	if (key || field || metadata)
	{
		appendStringInfoString(sql, " OPTIONS (");
		if (key)
			appendStringInfoString(sql, "key 'true'");
		if (field)
			appendStringInfo(sql, "%sfield %s", key ? ", " : "", quote_literal_cstr(column->field));
		if (metadata)
			appendStringInfo(sql, "metadata %s", quote_literal_cstr(metadata));
		appendStringInfoChar(sql, ')');
	}
	if (not_null)
		appendStringInfoString(sql, " NOT NULL");
}

/* Is there a column of that name?  Their own names may become others, so what was wanted counts. */
static bool
has_column(const ImportPart *part, const char *name)
{
	ListCell   *lc;

	foreach(lc, part->columns)
	{
		if (strcmp(((ImportColumn *) lfirst(lc))->name, name) == 0)
			return true;
	}
	return false;
}

static void
append_options(StringInfo sql, const ImportPart *part)
{
	ListCell   *lc;

	foreach(lc, part->options)
	{
		DefElem    *def = lfirst(lc);

		appendStringInfo(sql, ", %s %s", quote_identifier(def->defname), quote_literal_cstr(strVal(def->arg)));
	}
}

/* Columns are members of it, by name */
static bool
has_fields(const ImportPart *part)
{
	return part->columns != NIL && ((ImportColumn *) linitial(part->columns))->field != NULL;
}

static char *
create_command(const char *table, const char *topic, const char *server, bool upsert,
			   const ImportPart *keys, const ImportPart *values)
{
	const ImportColumn row_kind = {.name = "row_kind", .type = "text"};
	List	   *names = NIL;
	bool		shared = false;
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE FOREIGN TABLE %s (", quote_identifier(table));
	foreach(lc, keys->columns)
	{
		ImportColumn *column = lfirst(lc);
		bool		taken = !has_fields(keys) && has_column(values, column->name);

		append_column(&sql, &names, column, taken ? psprintf("message_%s", column->name) : column->name, true, false, NULL);
	}
	foreach(lc, values->columns)
	{
		ImportColumn *column = lfirst(lc);

		/* for what both have, the key is what counts */
		if (has_fields(values) && has_fields(keys) && has_column(keys, column->name))
			shared = true;
		else
			append_column(&sql, &names, column, column->name, false, upsert && column->not_null, NULL);
	}
	if (values->changelog && !upsert)
		append_column(&sql, &names, &row_kind, row_kind.name, false, false, "row_kind");

	appendStringInfo(&sql, "\n) SERVER %s OPTIONS (connector '%s', topic %s",
					 quote_identifier(server), upsert ? "upsert-kafka" : "kafka", quote_literal_cstr(topic));
	if (keys->columns)
		appendStringInfo(&sql, ", key_format '%s'", keys->format);
	appendStringInfo(&sql, ", value_format '%s'", values->format);
	/* what is written has the fields that were found */
	if (keys->columns && has_fields(values) && !shared)
		appendStringInfoString(&sql, ", value_fields_include 'EXCEPT_KEY'");
	append_options(&sql, keys);
	append_options(&sql, values);
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

/* --- what is known of a topic ----------------------------------------------- */

/*
 * The registry's schema of a topic's keys or values: of its subject, or of the id that
 * all messages of the sample have in front.  False: the topic is not to be imported.
 */
static bool
ask_registry(const RegistryAccess *registry, const char *topic, bool is_key, const BytesGuess *guess, ImportPart *part)
{
	char	   *subject = psprintf("%s-%s", topic, is_key ? "key" : "value");
	const RegistrySchema *schema = registry_latest_schema(registry, subject);
	ImportPart	found;
	const char *problem;

	if (schema == NULL && guess_is_framed(guess))
	{
		subject = psprintf("schema %u", guess->last_id);
		schema = registry_find_schema(registry, guess->last_id);
	}
	if (schema == NULL)
		return true;
	if (import_schema_part(schema, is_key, &found, &problem))
	{
		*part = found;
		return true;
	}
	ereport(NOTICE,
			(errmsg("topic \"%s\" is not imported", topic),
			 errdetail("The registry has a schema for its %s, %s: %s.", is_key ? "keys" : "values", subject, problem)));
	return false;
}

/* Bytes that only a registry can tell: a table of bytea is all that they give. */
static void
warn_of_framing(const char *topic, bool is_key, const BytesGuess *guess, const ImportPart *part, bool has_registry)
{
	if (part->format == NULL || strcmp(part->format, "raw") != 0 || !guess_is_framed(guess))
		return;
	ereport(WARNING,
			(errmsg("%s of topic \"%s\" look framed by a schema registry", is_key ? "keys" : "values", topic),
			 errdetail("They begin with byte 0x00 and a schema id, %u in the last one. Their foreign table has the bytes as they are.", guess->last_id),
			 has_registry ? errhint("The registry of the server does not know that schema.") :
			 errhint("Set the option \"registry_url\" of the server, and import the topic again.")));
}

/* The command for one topic, or NULL if it is not imported. */
static char *
propose(KafkaConsumer *consumer, const RegistryAccess *registry, const char *topic, const char *table,
		const char *server, const ImportOptions *options)
{
	TopicSample sample;
	ImportPart	keys;
	ImportPart	values;
	bool		keyed;
	bool		upsert;

	sample_topic(consumer, topic, options->sample, &sample);
	sample_parts(&sample, &keys, &values, &keyed);
	if (registry->url)
	{
		bool		guessed_keys = keys.columns != NIL;

		if (!ask_registry(registry, topic, false, &sample.values, &values) ||
			!ask_registry(registry, topic, true, &sample.keys, &keys))
			return NULL;
		if (!guessed_keys && keys.columns)
			keyed = sample.keys.n == sample.n;
	}
	if (sample.n == 0 && values.guessed)
		ereport(NOTICE,
				(errmsg("no message of topic \"%s\" was looked at", topic),
				 errdetail("Its foreign table gets a column for the whole value.")));

	/* an upsert table has a key, even if the sample doesn't show it */
	upsert = options->connector ? strcmp(options->connector, "upsert-kafka") == 0 : keyed;
	if (upsert && keys.columns == NIL)
		sample_raw_part(&sample.keys, "key", &keys);
	warn_of_framing(topic, true, &sample.keys, &keys, registry->url != NULL);
	warn_of_framing(topic, false, &sample.values, &values, registry->url != NULL);
	return create_command(table, topic, server, upsert, &keys, &values);
}

/* Is a table of this name asked for?  PostgreSQL filters too, but after the work. */
static bool
is_wanted(const ImportForeignSchemaStmt *stmt, const char *table)
{
	bool		listed = false;
	ListCell   *lc;

	if (stmt->list_type == FDW_IMPORT_SCHEMA_ALL)
		return true;
	foreach(lc, stmt->table_list)
	{
		if (strcmp(lfirst_node(RangeVar, lc)->relname, table) == 0)
			listed = true;
	}
	return listed == (stmt->list_type == FDW_IMPORT_SCHEMA_LIMIT_TO);
}

List *
topicImportForeignSchema(ImportForeignSchemaStmt *stmt, Oid serverOid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka import", ALLOCSET_DEFAULT_SIZES);
	MemoryContext scratch = AllocSetContextCreate(context, "upsert_kafka sample", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	ImportOptions options;
	RegistryAccess *registry;
	KafkaConsumer *consumer;
	char	  **topics;
	int			ntopics;
	List	   *commands = NIL;
	List	   *tables = NIL;

	parse_options(stmt->options, &options);
	consumer = kafka_consumer_acquire(kafka_config_get(serverOid, GetUserId()), 0, context);
	registry = registry_access_get(serverOid, GetUserId());
	topics = kafka_list_topics(consumer, &ntopics);

	for (int i = 0; i < ntopics; i++)
	{
		char	   *table = pstrdup(topics[i]);
		char	   *command;

		/* the names of LIMIT TO were cut by the parser as well; topics are ASCII */
		if (strlen(table) >= NAMEDATALEN)
			table[NAMEDATALEN - 1] = '\0';
		if (!is_wanted(stmt, table))
			continue;
		if (name_taken(tables, table))
		{
			ereport(WARNING,
					(errmsg("topic \"%s\" is not imported", topics[i]),
					 errdetail("A name has at most %d bytes, and another topic begins like this one.", NAMEDATALEN - 1)));
			continue;
		}
		tables = lappend(tables, table);

		MemoryContextSwitchTo(scratch);
		command = propose(consumer, registry, topics[i], table, stmt->server_name, &options);
		MemoryContextSwitchTo(caller);
		if (command)
			commands = lappend(commands, pstrdup(command));
		MemoryContextReset(scratch);
	}

	kafka_consumer_release(consumer);
	MemoryContextDelete(context);
	return commands;
}
