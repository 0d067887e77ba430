/*
 * topic_analyze.c
 *	  ANALYZE of topics: a random sample out of one whole scan.  Pages stand for
 *	  messages, so that the planner knows how much a scan reads, rows or not.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "fdw/topic_fdw.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sampling.h"

static int
acquire_sample(Relation relation, int elevel, HeapTuple *rows, int targrows,
			   double *totalrows, double *totaldeadrows)
{
	TopicScan  *scan = topic_scan_create(relation, NULL, relation->rd_rel->relowner, false);
	TupleDesc	desc = RelationGetDescr(relation);
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *isnull = palloc(sizeof(bool) * desc->natts);
	ReservoirStateData sampling;
	TopicScanStats stats;
	double		seen = 0;
	double		to_skip = -1;	/* -1: not set yet */
	int			n = 0;

	reservoir_init_selection_state(&sampling, targrows);
	topic_scan_start(scan, NULL, NULL);
	while (topic_scan_next(scan, values, isnull))
	{
		int			place = -1;

		vacuum_delay_point_compat();
		if (n < targrows)
			place = n++;
		else
		{
			/* Vitter's algorithm Z, as for local tables */
			if (to_skip < 0)
				to_skip = reservoir_get_next_S(&sampling, seen, targrows);
			if (to_skip <= 0)
			{
				place = (int) (targrows * sampler_random_fract_compat(sampling.randstate));
				heap_freetuple(rows[place]);
			}
			to_skip -= 1;
		}
		if (place >= 0)
			rows[place] = heap_form_tuple(desc, values, isnull);
		seen += 1;
	}
	topic_scan_stats(scan, &stats);
	ereport(elevel,
			(errmsg("\"%s\": topic \"%s\" contains " INT64_FORMAT " messages and %.0f rows; %d rows in sample",
					RelationGetRelationName(relation), topic_scan_table(scan)->topic,
					stats.messages, seen, n)));
	topic_scan_end(scan);
	*totalrows = seen;
	*totaldeadrows = 0;
	return n;
}

bool
topicAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc *func, BlockNumber *totalpages)
{
	TopicTable *table = topic_table_get(relation);
	TopicReader *reader = topic_reader_create(table, relation->rd_rel->relowner);

	topic_reader_open(reader);
	*totalpages = Min((topic_reader_extent(reader) + TOPIC_MESSAGES_PER_PAGE - 1) / TOPIC_MESSAGES_PER_PAGE,
					  MaxBlockNumber);
	topic_reader_end(reader);
	*func = acquire_sample;
	return true;
}
