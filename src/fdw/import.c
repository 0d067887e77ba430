/*
 * import.c
 *	  IMPORT FOREIGN SCHEMA: a foreign table for each topic of the server, with
 *	  columns guessed from the last messages.
 *
 * A Kafka has no schemas; the remote schema's name means nothing.  The proposal
 * is a start: what a sample shows is not what every message will be.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "fdw/import_guess.h"
#include "fdw/option_list.h"
#include "fdw/topic_fdw.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define DEFAULT_SAMPLE 100
#define MAX_SAMPLE 10000
#define SAMPLE_BATCH 500

typedef struct ImportOptions
{
	int			sample;			/* messages per topic */
	const char *connector;		/* NULL: by the keys */
} ImportOptions;

static const char *const import_option_names[] = {"connector", "sample", NULL};
static const char *const import_connectors[] = {"upsert-kafka", "kafka", NULL};

typedef struct TopicSample
{
	int			n;				/* messages */
	BytesGuess	keys;
	BytesGuess	values;
} TopicSample;

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

/* The last messages of the topic, about as many from each partition that has any. */
static void
sample_topic(KafkaConsumer *consumer, const char *topic, int wanted, TopicSample *sample)
{
	int			npartitions = kafka_partition_count(consumer, topic, false);
	KafkaRange *ranges = palloc0(sizeof(KafkaRange) * npartitions);
	int64	   *low = palloc(sizeof(int64) * npartitions);
	int64	   *end = palloc(sizeof(int64) * npartitions);
	KafkaRecord *records = palloc(sizeof(KafkaRecord) * SAMPLE_BATCH);
	int			filled = 0;
	int			open = 0;

	sample->n = 0;
	guess_init(&sample->keys);
	guess_init(&sample->values);

	for (int i = 0; i < npartitions; i++)
	{
		ranges[i].topic = topic;
		ranges[i].partition = i;
		ranges[i].source = i;
	}
	kafka_query_offsets(consumer, npartitions, ranges, low, end);
	for (int i = 0; i < npartitions; i++)
	{
		if (low[i] < end[i])
			filled++;
	}
	for (int i = 0; i < npartitions; i++)
	{
		int64		share = filled > 0 ? (wanted + filled - 1) / filled : 0;

		ranges[i].end = end[i];
		ranges[i].start = Max(low[i], end[i] - share);
		if (ranges[i].start < ranges[i].end)
			open++;
	}

	kafka_consume_start(consumer, ranges, npartitions);
	while (open > 0)
	{
		int			n = kafka_consume(consumer, records, SAMPLE_BATCH, 1000, false, NULL);

		for (int i = 0; i < n; i++)
		{
			sample->n++;
			if (records[i].key)
				guess_bytes(&sample->keys, records[i].key, records[i].key_len);
			if (records[i].value)
				guess_bytes(&sample->values, records[i].value, records[i].value_len);
		}
		open = 0;
		for (int i = 0; i < npartitions; i++)
		{
			if (!ranges[i].done)
				open++;
		}
	}
	kafka_consume_stop(consumer);
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

/* One column; 'field' is its name in the message, NULL where there is none. */
static void
append_column(StringInfo sql, List **names, const char *wanted, const char *type, const char *field, bool key)
{
	char	   *name = column_name(names, wanted);

	appendStringInfo(sql, "%s\n\t%s %s", list_length(*names) > 1 ? "," : "", quote_identifier(name), type);
	if (key || (field && strcmp(field, name) != 0))
	{
		appendStringInfoString(sql, " OPTIONS (");
		if (key)
			appendStringInfoString(sql, "key 'true'");
		if (field && strcmp(field, name) != 0)
			appendStringInfo(sql, "%sfield %s", key ? ", " : "", quote_literal_cstr(field));
		appendStringInfoChar(sql, ')');
	}
}

static bool
has_field(const BytesGuess *guess, const char *name)
{
	ListCell   *lc;

	foreach(lc, guess->fields)
	{
		if (strcmp(((FieldGuess *) lfirst(lc))->name, name) == 0)
			return true;
	}
	return false;
}

static char *
create_command(const char *table, const char *topic, const char *server, const ImportOptions *options, TopicSample *sample)
{
	bool		keyed = sample->n > 0 && sample->keys.n == sample->n;
	bool		upsert;
	bool		json_keys = keyed && sample->keys.objects;
	bool		json_values = sample->values.n > 0 && sample->values.objects;
	List	   *names = NIL;
	StringInfoData sql;
	ListCell   *lc;

	/* an upsert table has a key, even if the sample doesn't show it */
	upsert = options->connector ? strcmp(options->connector, "upsert-kafka") == 0 : keyed;
	keyed |= upsert;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE FOREIGN TABLE %s (", quote_identifier(table));

	if (json_keys)
	{
		foreach(lc, sample->keys.fields)
		{
			FieldGuess *field = lfirst(lc);

			append_column(&sql, &names, field->name, guess_type(field), field->name, true);
		}
	}
	else if (keyed)
		append_column(&sql, &names, json_values && has_field(&sample->values, "key") ? "message_key" : "key",
					  sample->keys.utf8 ? "text" : "bytea", NULL, true);

	if (json_values)
	{
		foreach(lc, sample->values.fields)
		{
			FieldGuess *field = lfirst(lc);

			/* for what both have, the key is what counts */
			if (!(json_keys && has_field(&sample->keys, field->name)))
				append_column(&sql, &names, field->name, guess_type(field), field->name, false);
		}
	}
	else
		append_column(&sql, &names, "value", sample->values.utf8 ? "text" : "bytea", NULL, false);

	appendStringInfo(&sql, "\n) SERVER %s OPTIONS (connector '%s', topic %s",
					 quote_identifier(server), upsert ? "upsert-kafka" : "kafka", quote_literal_cstr(topic));
	if (keyed)
		appendStringInfo(&sql, ", key_format '%s'", json_keys ? "json" : "raw");
	appendStringInfo(&sql, ", value_format '%s'", json_values ? "json" : "raw");
	appendStringInfoChar(&sql, ')');
	return sql.data;
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
	KafkaConsumer *consumer;
	char	  **topics;
	int			ntopics;
	List	   *commands = NIL;
	List	   *tables = NIL;

	parse_options(stmt->options, &options);
	consumer = kafka_consumer_acquire(kafka_config_get(serverOid, GetUserId()), 0, context);
	topics = kafka_list_topics(consumer, &ntopics);

	for (int i = 0; i < ntopics; i++)
	{
		TopicSample sample;
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
		sample_topic(consumer, topics[i], options.sample, &sample);
		if (sample.n == 0)
			ereport(NOTICE,
					(errmsg("no message of topic \"%s\" was looked at", topics[i]),
					 errdetail("Its foreign table gets a column for the whole value.")));
		command = create_command(table, topics[i], stmt->server_name, &options, &sample);
		MemoryContextSwitchTo(caller);
		commands = lappend(commands, pstrdup(command));
		MemoryContextReset(scratch);
	}

	kafka_consumer_release(consumer);
	MemoryContextDelete(context);
	return commands;
}
