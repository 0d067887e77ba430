/*
 * import_sample.c
 *	  Read the last messages of a topic and propose columns from them.
 *
 * No message is an error here; see import_guess.c and import_events.c.
 */
#include "postgres.h"

#include "fdw/import_sample.h"
#include "fdw/option_list.h"
#include "nodes/makefuncs.h"

#define SAMPLE_BATCH 500

static void
look_at(TopicSample *sample, const KafkaRecord *record)
{
	JsonText	key = {.kind = JK_MISSING};
	JsonText	value = {.kind = JK_MISSING};

	sample->n++;
	if (record->key)
		guess_bytes(&sample->keys, record->key, record->key_len, &key);
	if (record->value)
		guess_bytes(&sample->values, record->value, record->value_len, &value);
	guess_event(&sample->events, &key, record->key != NULL, &value, record->value != NULL);
}

void
sample_topic(KafkaConsumer *consumer, const char *topic, int wanted, TopicSample *sample)
{
	int			npartitions = kafka_partition_count(consumer, topic, false);
	KafkaRange *ranges = palloc0(sizeof(KafkaRange) * npartitions);
	int64	   *low = palloc(sizeof(int64) * npartitions);
	int64	   *end = palloc(sizeof(int64) * npartitions);
	KafkaRecord *records = palloc(sizeof(KafkaRecord) * SAMPLE_BATCH);
	int			filled = 0;

	memset(sample, 0, sizeof(*sample));
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
	}

	/* one after another: the same messages are to propose the same table, with columns in the same order */
	for (int i = 0; i < npartitions; i++)
	{
		if (ranges[i].start >= ranges[i].end)
			continue;
		kafka_consume_start(consumer, &ranges[i], 1);
		while (!ranges[i].done)
		{
			int			n = kafka_consume(consumer, records, SAMPLE_BATCH, 1000, false, NULL);

			for (int j = 0; j < n; j++)
				look_at(sample, &records[j]);
		}
		kafka_consume_stop(consumer);
	}
}

static void
json_part(const BytesGuess *guess, bool is_key, ImportPart *part)
{
	ListCell   *lc;

	memset(part, 0, sizeof(*part));
	part->format = "json";
	part->guessed = true;
	foreach(lc, guess->fields)
	{
		FieldGuess *field = lfirst(lc);

		import_column(part, field->name, guess_type(field), field->name, false);
	}
	if (guess->framed > 0)
		part->options = lappend(part->options,
								makeDefElem(is_key ? "key_json_registry_framing" : "value_json_registry_framing",
											(Node *) makeString("strip"), -1));
}

void
sample_raw_part(const BytesGuess *guess, const char *name, ImportPart *part)
{
	memset(part, 0, sizeof(*part));
	part->format = "raw";
	part->guessed = true;
	import_column(part, name, guess->utf8 ? "text" : "bytea", NULL, false);
}

void
sample_parts(const TopicSample *sample, ImportPart *keys, ImportPart *values, bool *keyed)
{
	int			format = event_format(&sample->events, keyed);

	memset(keys, 0, sizeof(*keys));
	if (format >= 0)
	{
		event_value_part(&sample->events, format, values);
		if (sample->values.framed > 0)
			values->options = list_make1(makeDefElem(psprintf("value_%s_registry_framing", option_snake_case(values->format)), (Node *) makeString("strip"), -1));
		if (*keyed && sample->keys.objects)
			event_key_part(&sample->events, format, sample->keys.fields, keys);
		if (keys->columns && sample->keys.framed > 0)
			keys->options = list_make1(makeDefElem("key_json_registry_framing", (Node *) makeString("strip"), -1));
		*keyed = keys->columns != NIL;
		return;
	}

	if (sample->values.n > 0 && sample->values.objects)
		json_part(&sample->values, false, values);
	else
		sample_raw_part(&sample->values, "value", values);
	*keyed = sample->n > 0 && sample->keys.n == sample->n;
	if (*keyed && sample->keys.objects)
		json_part(&sample->keys, true, keys);
	else if (*keyed)
		sample_raw_part(&sample->keys, "key", keys);
}
