/*
 * topic_scan.c
 *	  Running scans of topics: records become rows in batches, and the executor's
 *	  callbacks hand these out.  Owns all memory of a scan; what to read and how to decode
 *	  are for topic_read.c and changelog/.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "changelog/change.h"
#include "changelog/normalize.h"
#include "changelog/reduce.h"
#include "compat.h"
#include "executor/executor.h"
#include "fdw/pending.h"
#include "fdw/topic_fdw.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Winners that are decoded at once, and own writes */
#define DECODE_WINNERS	1000

struct TopicScan
{
	TopicTable *table;
	TupleDesc	desc;
	Oid			userid;
	Bitmapset  *wanted;			/* NULL: all */
	bool		rewindable;
	MemoryContext cxt;

	TopicReader *reader;		/* NULL: never started */
	ChangeDecoder *decoder;
	ChangeDecoder *key_decoder; /* of upsert topics: what reducing needs */
	ChangeBatch *batch;			/* rows in hand */
	const KafkaRecord *bad_record;	/* the message after them cannot be decoded */
	int			next_change;

	/* own writes that are not sent yet follow the topic's records */
	int64		mark;			/* those queued before the scan was made */
	PendingReader *pending;		/* NULL: none, or not yet there */
	bool		topic_done;		/* of this pass */
	KafkaRecord *pending_records;

	bool		nothing;		/* the filter lets nothing pass */

	/* upsert topics: everything was read, and rows come from one of these */
	Reducer    *reducer;
	Normalizer *normalizer;
	KafkaRecord *winners;
	const KafkaRecord *origin;	/* of the last row, in winners */

	int64		disk_kb;
	int64		skipped;		/* in all passes */
	int64		pass_skipped;
	int64		most_skipped;	/* of one pass: what the WARNING tells */
	char	   *first_skipped;
};

TopicScan *
topic_scan_create(Relation rel, const Bitmapset *wanted, Oid userid, bool rewindable)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "topic scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TopicScan  *scan = palloc0(sizeof(TopicScan));

	scan->table = topic_table_get(rel);
	scan->table->userid = userid;
	scan->desc = CreateTupleDescCopy(RelationGetDescr(rel));
	scan->userid = userid;
	scan->wanted = bms_copy(wanted);
	scan->rewindable = rewindable;
	scan->cxt = cxt;
	/* a statement does not see what it writes itself */
	scan->mark = pending_mark();
	MemoryContextSwitchTo(old);
	return scan;
}

static bool
is_wanted(const Bitmapset *wanted, const TopicColumn *column)
{
	return wanted == NULL || bms_is_member(column->attnum - FirstLowInvalidHeapAttributeNumber, wanted);
}

/*
 * Columns to decode.  Which messages are bad, and which changes are effective, must not
 * depend on the columns that a query happens to read.
 */
static const Bitmapset *
decoded_columns(const TopicScan *scan)
{
	if (topic_table_skips(scan->table) || (scan->table->upsert && scan->table->changelog))
		return NULL;
	return scan->wanted;
}

/* Must headers be kept with records that are held back? */
static bool
keeps_headers(const TopicScan *scan)
{
	for (int i = 0; i < scan->table->natts; i++)
	{
		const TopicColumn *column = &scan->table->columns[i];

		if (OidIsValid(column->type) && column->metadata == META_HEADERS &&
			is_wanted(decoded_columns(scan), column))
			return true;
	}
	return false;
}

static void
prepare(TopicScan *scan)
{
	if (scan->decoder == NULL)
		scan->decoder = change_decoder_create(scan->table, decoded_columns(scan));
	if (scan->key_decoder == NULL)
		scan->key_decoder = topic_table_skips(scan->table) ? scan->decoder
			: change_decoder_create(scan->table, CHANGE_WANT_NOTHING);
	if (scan->batch == NULL)
		scan->batch = change_batch_create(scan->cxt);
	if (scan->reader == NULL)
		scan->reader = topic_reader_create(scan->table, scan->userid);
}

static void
note_first_skipped(TopicScan *scan, const char *text)
{
	if (text && scan->first_skipped == NULL)
		scan->first_skipped = MemoryContextStrdup(scan->cxt, text);
}

/*
 * Would own writes be read by the same statement after the commit?  A table that ends
 * somewhere in the past, or begins at the end, shows none of them.
 */
static bool
shows_own_writes(const TopicTable *table)
{
	return table->bounded_mode == BOUNDED_LATEST && table->startup_mode != STARTUP_LATEST;
}

static void
start_pass(TopicScan *scan, const TopicBoxes *boxes)
{
	scan->topic_done = false;
	if (scan->pending != NULL)
		pending_read_end(scan->pending);
	scan->pending = NULL;
	topic_reader_start(scan->reader, boxes);
}

/* The topic's records, then own writes; 0 at the end. */
static int
next_records(TopicScan *scan, KafkaRecord **records)
{
	int			n;

	if (!scan->topic_done)
	{
		n = topic_reader_next(scan->reader, records);
		if (n > 0)
			return n;
		topic_reader_release(scan->reader);
		scan->topic_done = true;
		if (shows_own_writes(scan->table))
			scan->pending = pending_read_begin(scan->table, scan->mark);
	}
	if (scan->pending == NULL)
		return 0;
	if (scan->pending_records == NULL)
		scan->pending_records = palloc(sizeof(KafkaRecord) * DECODE_WINNERS);
	*records = scan->pending_records;
	n = pending_read_next(scan->pending, scan->pending_records, DECODE_WINNERS);
	if (n == 0)
	{
		pending_read_end(scan->pending);
		scan->pending = NULL;
	}
	return n;
}

static void
run_reducer(TopicScan *scan, KeyFilter *filter)
{
	const ReducerStats *stats;
	KafkaRecord *records;
	int			nslices;
	int			npartitions;
	int			n;

	scan->reducer = reducer_create(scan->table, scan->key_decoder, filter,
								   keeps_headers(scan), scan->rewindable);
	start_pass(scan, NULL);
	(void) topic_reader_slices(scan->reader, &nslices, &npartitions);
	reducer_set_single(scan->reducer, npartitions == 1);
	while ((n = next_records(scan, &records)) > 0)
		reducer_add(scan->reducer, records, n);
	reducer_finish(scan->reducer);
	if (scan->winners == NULL)
		scan->winners = palloc(sizeof(KafkaRecord) * DECODE_WINNERS);

	stats = reducer_stats(scan->reducer);
	scan->disk_kb += stats->disk_kb;
	scan->skipped += stats->skipped;
	scan->pass_skipped = stats->skipped;
	note_first_skipped(scan, stats->first_skipped);
}

static void
run_normalizer(TopicScan *scan, KeyFilter *filter)
{
	const NormalizerStats *stats;
	KafkaRecord *records;
	int			n;

	scan->normalizer = normalizer_create(scan->table, scan->desc, scan->key_decoder,
										 scan->decoder, filter, scan->wanted,
										 keeps_headers(scan), scan->rewindable);
	start_pass(scan, NULL);
	while ((n = next_records(scan, &records)) > 0)
		normalizer_add(scan->normalizer, records, n);
	normalizer_finish(scan->normalizer);

	stats = normalizer_stats(scan->normalizer);
	scan->disk_kb += stats->disk_kb;
	scan->skipped += stats->skipped;
	scan->pass_skipped = stats->skipped;
	note_first_skipped(scan, stats->first_skipped);
}

void
topic_scan_start(TopicScan *scan, const TopicBoxes *boxes, KeyFilter *filter)
{
	MemoryContext old = MemoryContextSwitchTo(scan->cxt);

	prepare(scan);
	change_batch_reset(scan->batch);
	scan->bad_record = NULL;
	scan->next_change = 0;
	scan->most_skipped = Max(scan->most_skipped, scan->pass_skipped);
	scan->pass_skipped = 0;

	scan->nothing = filter && filter->nothing;
	if (scan->nothing)
		 /* not even read */ ;
	else if (!scan->table->upsert)
		start_pass(scan, boxes);
	else if (scan->table->changelog)
	{
		if (scan->normalizer && normalizer_can_rewind(scan->normalizer))
			normalizer_rewind(scan->normalizer);
		else
		{
			/* asked for again without notice: it may happen more often */
			if (scan->normalizer)
			{
				normalizer_end(scan->normalizer);
				scan->normalizer = NULL;
				scan->rewindable = true;
			}
			run_normalizer(scan, filter);
		}
	}
	else
	{
		if (scan->reducer && reducer_can_rewind(scan->reducer))
			reducer_rewind(scan->reducer);
		else
		{
			if (scan->reducer)
			{
				reducer_end(scan->reducer);
				scan->reducer = NULL;
				scan->rewindable = true;
			}
			run_reducer(scan, filter);
		}
	}
	MemoryContextSwitchTo(old);
}

/*
 * A bad message is an error when its row is reached, not when its batch is: what a
 * LIMIT leaves unread is nobody's problem, and where batches end does not show.
 */
static DecodeMode
append_mode(const TopicScan *scan)
{
	if (scan->table->on_error == ON_ERROR_SKIP)
		return DECODE_SKIP;
	return IsInParallelMode() && !SUBTRANSACTION_IN_PARALLEL_MODE_compat ? DECODE_RAISE : DECODE_STOP;
}

/* The next rows into the batch; false at the end. */
static bool
fill_batch(TopicScan *scan)
{
	ChangeBatch *batch = scan->batch;
	KafkaRecord *records;
	int			n;
	int			skipped;

	change_batch_reset(batch);
	scan->next_change = 0;
	scan->bad_record = NULL;
	if (scan->table->upsert)
	{
		/* bad messages were sorted out, or raised, before */
		n = reducer_next(scan->reducer, scan->winners, DECODE_WINNERS);
		if (n > 0)
			change_decode(scan->decoder, scan->winners, n, batch, DECODE_RAISE);
		return n > 0;
	}

	n = next_records(scan, &records);
	if (n == 0)
		return false;
	change_decode(scan->decoder, records, n, batch, append_mode(scan));
	if (batch->stop)
		scan->bad_record = &records[batch->stop->record];
	skipped = batch->nerrors - (batch->stop != NULL);
	if (skipped > 0)
	{
		const ChangeError *error = &batch->errors[0];

		if (scan->first_skipped == NULL)
			note_first_skipped(scan, change_error_text(scan->table, &records[error->record], error));
		scan->skipped += skipped;
		scan->pass_skipped += skipped;
	}
	return true;
}

bool
topic_scan_next(TopicScan *scan, Datum *values, bool *isnull)
{
	const Change *change;

	if (scan->nothing)
		return false;
	if (scan->normalizer)
		return normalizer_next(scan->normalizer, values, isnull);
	do
	{
		while (scan->next_change >= scan->batch->nchanges)
		{
			MemoryContext old = MemoryContextSwitchTo(scan->cxt);
			bool		more;

			if (scan->bad_record)
				change_error_raise(scan->table, scan->bad_record, scan->batch->stop);
			more = fill_batch(scan);

			MemoryContextSwitchTo(old);
			if (!more)
				return false;
		}
		change = &scan->batch->changes[scan->next_change++];
		/* a value that means a delete; one that is about all rows */
	} while ((scan->table->upsert && change->kind == ROW_DELETE) || change->kind == ROW_TRUNCATE);
	if (scan->table->upsert)
		scan->origin = &scan->winners[change->record];
	memcpy(values, change->values, sizeof(Datum) * scan->table->natts);
	memcpy(isnull, change->isnull, sizeof(bool) * scan->table->natts);
	return true;
}

void
topic_scan_origin(const TopicScan *scan, KafkaOutRecord *origin)
{
	origin->topic = scan->origin->topic;
	origin->partition = scan->origin->partition;
	origin->key = scan->origin->key;
	origin->key_len = scan->origin->key_len;
}

void
topic_scan_end(TopicScan *scan)
{
	int64		skipped = Max(scan->most_skipped, scan->pass_skipped);

	if (skipped > 0)
		ereport(WARNING,
				(errmsg_plural(INT64_FORMAT " message of topic \"%s\" was skipped",
							   INT64_FORMAT " messages of topic \"%s\" were skipped",
							   (unsigned long) skipped, skipped, scan->table->topic),
				 errdetail("First of them: %s", scan->first_skipped)));
	if (scan->reducer)
		reducer_end(scan->reducer);
	if (scan->normalizer)
		normalizer_end(scan->normalizer);
	if (scan->pending)
		pending_read_end(scan->pending);
	if (scan->reader)
		topic_reader_end(scan->reader);
	MemoryContextDelete(scan->cxt);
}

const TopicTable *
topic_scan_table(const TopicScan *scan)
{
	return scan->table;
}

const TopicReader *
topic_scan_reader(const TopicScan *scan)
{
	return scan->reader;
}

void
topic_scan_stats(const TopicScan *scan, TopicScanStats *stats)
{
	memset(stats, 0, sizeof(TopicScanStats));
	if (scan->reader)
	{
		const TopicReaderStats *read = topic_reader_stats(scan->reader);

		stats->messages = read->messages;
		stats->bytes = read->bytes;
		stats->tombstones = read->tombstones;
	}
	stats->skipped = scan->skipped;
	stats->disk_kb = scan->disk_kb;
}

/* ---- executor callbacks -------------------------------------------------- */

void
topicBeginForeignScan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	TopicScanState *state = palloc0(sizeof(TopicScanState));
	List	   *members = (List *) list_nth(plan->fdw_private, TOPIC_PLAN_WANTED);
	Bitmapset  *wanted = NULL;
	bool		rewindable;
	bool		is_target;
	ListCell   *lc;

	foreach(lc, members)
	{
		int			member = lfirst_int(lc);
		int			attnum = member + FirstLowInvalidHeapAttributeNumber;

		wanted = bms_add_member(wanted, member);
		if (attnum < 0 && attnum != TableOidAttributeNumber && attnum != SelfItemPointerAttributeNumber)
			state->system_columns = true;
	}
	/*
	 * Below a parameter the executor gives no notice of rescans.  Rows that are to be
	 * changed must come in the same order again, so that they are the same rows.
	 */
	is_target = ExecRelationIsTargetRelation(node->ss.ps.state, plan->scan.scanrelid);
	rewindable = (eflags & EXEC_FLAG_REWIND) != 0 || !bms_is_empty(plan->scan.plan.allParam) || is_target;
	state->scan = topic_scan_create(node->ss.ss_currentRelation, wanted,
									foreign_scan_user(plan, node->ss.ps.state), rewindable);
	state->conditions = (List *) list_nth(plan->fdw_private, TOPIC_PLAN_CONDITIONS);
	state->expr_states = ExecInitExprList(plan->fdw_exprs, (PlanState *) node);
	if (is_target && topic_scan_table(state->scan)->upsert && !topic_scan_table(state->scan)->changelog)
		state->row_ids = row_ids_create();
	node->fdw_state = state;
}

static void
start(ForeignScanState *node, TopicScanState *state)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TopicBoxes *boxes = NULL;

	if (topic_scan_table(state->scan)->upsert)
	{
		MemoryContext old = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);

		if (state->filter == NULL)
			state->filter = topic_keys_evaluate(state->conditions, state->expr_states, econtext);
		MemoryContextSwitchTo(old);
	}
	else
		/* in the per-tuple context: the interval set is not needed any more afterwards */
		boxes = topic_conditions_evaluate(state->conditions, state->expr_states, econtext);
	if (state->row_ids != NULL)
		row_ids_rescan(state->row_ids);
	topic_scan_start(state->scan, boxes, state->filter);
	state->started = true;
}

/*
 * Where a query reads xmin or its like, a real tuple is needed; the system
 * columns of a message are as empty as those of postgres_fdw's rows.
 */
static void
store_with_system_columns(TupleTableSlot *slot)
{
	HeapTuple	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);

	HeapTupleHeaderSetXmax(tuple->t_data, InvalidTransactionId);
	HeapTupleHeaderSetXmin(tuple->t_data, InvalidTransactionId);
	HeapTupleHeaderSetCmin(tuple->t_data, InvalidTransactionId);
	ExecStoreHeapTuple(tuple, slot, false);
}

TupleTableSlot *
topicIterateForeignScan(ForeignScanState *node)
{
	TopicScanState *state = (TopicScanState *) node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ItemPointerData ctid;

	ItemPointerSetInvalid(&ctid);
	if (!state->started)
		start(node, state);
	ExecClearTuple(slot);
	if (!topic_scan_next(state->scan, slot->tts_values, slot->tts_isnull))
		return slot;
	if (state->row_ids != NULL)
	{
		KafkaOutRecord origin;

		topic_scan_origin(state->scan, &origin);
		row_ids_put(state->row_ids, &origin, &ctid);
	}
	if (state->system_columns)
		store_with_system_columns(slot);
	else
		ExecStoreVirtualTuple(slot);
	slot->tts_tid = ctid;
	return slot;
}

/* Conditions are evaluated anew: parameters may have changed. */
void
topicReScanForeignScan(ForeignScanState *node)
{
	((TopicScanState *) node->fdw_state)->started = false;
}

void
topicEndForeignScan(ForeignScanState *node)
{
	TopicScanState *state = (TopicScanState *) node->fdw_state;

	if (state == NULL)
		return;
	topic_scan_end(state->scan);
	if (state->row_ids != NULL)
		row_ids_end(state->row_ids);
}
