/*
 * topic_explain.c
 *	  What EXPLAIN tells of a scan of a topic.  Never contacts Kafka: partitions and
 *	  offsets are shown once the scan knows them.
 */
#include "postgres.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "fdw/topic_fdw.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"

/* Slices that are listed; more are counted only */
#define MAX_SLICES	20

static const char *
mode_name(const TopicTable *table)
{
	if (!table->upsert)
		return "append";
	return table->changelog ? "changelog" : "current state";
}

static void
explain_conditions(ForeignScan *plan, const TopicTable *table, ExplainState *es)
{
	List	   *used = (List *) list_nth(plan->fdw_private, TOPIC_PLAN_QUALS);
	List	   *clauses = NIL;
	List	   *context;
	ListCell   *lc;

	if (used == NIL)
		return;
	foreach(lc, used)
		clauses = lappend(clauses, list_nth(plan->scan.plan.qual, lfirst_int(lc)));
	context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, NIL);
	ExplainPropertyText(table->upsert ? "Key Conditions" : "Kafka Conditions",
						deparse_expression((Node *) make_ands_explicit(clauses), context,
										   list_length(es->rtable) > 1 || es->verbose, false), es);
}

static void
explain_extent(const TopicTable *table, const TopicReader *reader, ExplainState *es)
{
	int			nslices;
	int			nsources;
	int			nread = 0;
	const TopicSlice *slices = topic_reader_slices(reader, &nslices, &nsources);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < nslices; i++)
	{
		if (i == 0 || slices[i].source != slices[i - 1].source)
			nread++;
		if (i == MAX_SLICES)
			appendStringInfo(&text, " and %d more", nslices - i);
		if (i >= MAX_SLICES)
			continue;
		appendStringInfoString(&text, i > 0 ? ", " : "");
		if (!topic_table_is_plain(table))
			appendStringInfo(&text, "%s:", slices[i].topic);
		appendStringInfo(&text, "%d [" INT64_FORMAT "," INT64_FORMAT ")",
						 slices[i].partition, slices[i].start, slices[i].end);
	}
	/* half-open, as ranges are written */
	ExplainPropertyInteger("Partitions", NULL, nsources, es);
	ExplainPropertyInteger("Partitions Read", NULL, nread, es);
	if (nslices > 0)
		ExplainPropertyText("Offsets", text.data, es);
}

void
topic_explain_topics(const TopicTable *table, ExplainState *es)
{
	List	   *names = NIL;

	if (topic_table_is_plain(table))
		ExplainPropertyText("Topic", table->topic, es);
	else if (table->topic_pattern)
		ExplainPropertyText("Topic Pattern", table->topic_pattern, es);
	else
	{
		for (int i = 0; i < table->ntopics; i++)
			names = lappend(names, unconstify(char *, table->topics[i]));
		ExplainPropertyList("Topics", names, es);
	}
}

void
topicExplainForeignScan(ForeignScanState *node, ExplainState *es)
{
	TopicScanState *state = (TopicScanState *) node->fdw_state;
	const TopicTable *table = topic_scan_table(state->scan);
	const TopicReader *reader = topic_scan_reader(state->scan);
	TopicScanStats stats;

	topic_explain_topics(table, es);
	ExplainPropertyText("Scan Mode", mode_name(table), es);
	explain_conditions((ForeignScan *) node->ss.ps.plan, table, es);
	if (reader == NULL || !topic_reader_is_open(reader))
		return;
	explain_extent(table, reader, es);
	if (!es->analyze)
		return;
	topic_scan_stats(state->scan, &stats);
	ExplainPropertyInteger("Messages", NULL, stats.messages, es);
	ExplainPropertyInteger("Message Bytes", NULL, stats.bytes, es);
	ExplainPropertyInteger("Tombstones", NULL, stats.tombstones, es);
	if (topic_table_skips(table))
		ExplainPropertyInteger("Skipped Messages", NULL, stats.skipped, es);
	if (table->upsert)
		ExplainPropertyInteger("Spilled", "kB", stats.disk_kb, es);
}
