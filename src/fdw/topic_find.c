/*
 * topic_find.c
 *	  Topics of a foreign table: names that a list gives or a pattern matches, and what
 *	  the broker knows of them.  Must not know who reads them, or from where.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "fdw/option_list.h"
#include "fdw/topic_find.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/*
 * The pattern as PostgreSQL's regular expressions take it, to be matched by a whole name.
 * What says how to read it (case, say) must stay in front.
 */
static text *
whole_pattern(const char *pattern)
{
	const char *rest = pattern;
	StringInfoData whole;

	initStringInfo(&whole);
	if (strncmp(rest, "(?", 2) == 0)
	{
		Size		letters = strspn(rest + 2, "abcdefghijklmnopqrstuvwxyz");

		if (letters > 0 && rest[2 + letters] == ')')
		{
			appendBinaryStringInfo(&whole, rest, letters + 3);
			rest += letters + 3;
		}
	}
	appendStringInfo(&whole, "^(?:%s)$", rest);
	return cstring_to_text_with_len(whole.data, whole.len);
}

void
topic_pattern_check(const char *option, const char *pattern)
{
	if (pattern[0] == '\0')
		option_bad_value(option, pattern, _("The value is a regular expression that the whole name of a topic matches."));
	if (strncmp(pattern, "***", 3) == 0)
		option_bad_value(option, pattern, _("A prefix \"***\" cannot be used here."));
	/* by itself, too: "a)|(b" is one only between our parentheses, and would match anything */
	option_check_regex(option, pattern, pattern);
	option_check_regex(option, pattern, text_to_cstring(whole_pattern(pattern)));
}

bool
topic_table_reads(const TopicTable *table, const char *topic)
{
	for (int i = 0; i < table->ntopics; i++)
		if (strcmp(table->topics[i], topic) == 0)
			return true;
	if (table->topic_pattern == NULL || strncmp(topic, INTERNAL_TOPIC_PREFIX, strlen(INTERNAL_TOPIC_PREFIX)) == 0)
		return false;
	return RE_compile_and_execute(whole_pattern(table->topic_pattern), unconstify(char *, topic), strlen(topic),
								  REG_ADVANCED | REG_NOSUB, C_COLLATION_OID, 0, NULL);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

FoundTopic *
topic_find(KafkaConsumer *consumer, const TopicTable *table, bool missing_ok, int *n)
{
	bool		pattern = table->topic_pattern != NULL;
	const char **names;
	int		   *partitions;
	int			nnames = 0;
	FoundTopic *found;

	if (pattern)
	{
		int			nall;
		char	  **all = kafka_list_topics(consumer, &nall);

		names = palloc(sizeof(char *) * Max(nall, 1));
		for (int i = 0; i < nall; i++)
			if (topic_table_reads(table, all[i]))
				names[nnames++] = all[i];
	}
	else
	{
		names = palloc(sizeof(char *) * table->ntopics);
		for (; nnames < table->ntopics; nnames++)
			names[nnames] = table->topics[nnames];
		qsort(names, nnames, sizeof(char *), compare_names);
	}

	/* by name: a list of all topics has some that are not ready yet, as it has them */
	partitions = palloc(sizeof(int) * Max(nnames, 1));
	kafka_partition_counts(consumer, nnames, names, missing_ok || pattern, partitions);
	found = palloc(sizeof(FoundTopic) * Max(nnames, 1));
	*n = 0;
	for (int i = 0; i < nnames; i++)
	{
		/* deleted since it was listed */
		if (pattern && partitions[i] < 0)
			continue;
		found[*n].name = names[i];
		found[(*n)++].npartitions = partitions[i];
	}
	return found;
}

KafkaRange *
topic_find_ranges(KafkaConsumer *consumer, const TopicTable *table, int *n)
{
	int			ntopics;
	FoundTopic *topics = topic_find(consumer, table, false, &ntopics);
	KafkaRange *ranges;

	*n = 0;
	for (int t = 0; t < ntopics; t++)
		*n += topics[t].npartitions;
	ranges = palloc0(sizeof(KafkaRange) * Max(*n, 1));
	*n = 0;
	for (int t = 0; t < ntopics; t++)
	{
		for (int p = 0; p < topics[t].npartitions; p++)
		{
			ranges[*n].topic = topics[t].name;
			ranges[*n].partition = p;
			ranges[*n].source = *n;
			(*n)++;
		}
	}
	return ranges;
}
