/*
 * version_reader.c
 *	  The access paths into a versions table: one probe for a key's version at a
 *	  moment, a skipping pass for all keys' versions at a moment, an ordered pass
 *	  for all versions.
 *
 * Owns the index scans.  Must not know of plans, expressions or history tables'
 * columns.
 *
 * A boundary is effective when it has the greatest __seq of its moment.  Read
 * backwards, the first visible row of a (key, __valid_from) is the effective
 * one; read forwards, the last.  A version reaches from the first of
 * consecutive effective boundaries with the same holder to the next with
 * another.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "compat.h"
#include "history/version_reader_internal.h"
#include "history/versions.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define MAX_WINDOW	1e17		/* three thousand years: no bound */

VersionReader *
version_reader_open(const HistoryTable *table, Relation versions, Relation index,
					Snapshot snapshot, List **tuple_table)
{
	VersionReader *reader = palloc0(sizeof(VersionReader));

	reader->context = CurrentMemoryContext;
	reader->table = table;
	reader->versions = versions;
	reader->index = index;
	reader->snapshot = snapshot;
	reader->run = table_slot_create(versions, tuple_table);
	reader->candidate = table_slot_create(versions, tuple_table);
	reader->incoming = table_slot_create(versions, tuple_table);
	reader->out = table_slot_create(versions, tuple_table);
	reader->period_slot = table_slot_create(versions, tuple_table);
	reader->entry = palloc(BLCKSZ);
	reader->jump_entry = palloc(BLCKSZ);

	for (int i = 0; i < table->nkeys; i++)
	{
		const HistoryKey *key = &table->keys[i];
		Oid			equal = get_opfamily_member(key->opfamily, key->opcintype, key->opcintype,
												BTEqualStrategyNumber);

		reader->compare[i] = index_getprocinfo(index, i + 1, BTORDER_PROC);
		ScanKeyEntryInitialize(&reader->row_keys[i], 0, i + 1, BTEqualStrategyNumber,
							   InvalidOid, key->collation, get_opcode(equal), (Datum) 0);
	}
	return reader;
}

static void
close_scan(IndexScanDesc *scan)
{
	if (*scan != NULL)
		index_endscan(*scan);
	*scan = NULL;
}

void
version_reader_close(VersionReader *reader)
{
	close_scan(&reader->scan);
	close_scan(&reader->jump_scan);
	close_scan(&reader->period_scan);
	close_scan(&reader->window_scan);
}

IndexScanDesc
version_reader_descend(VersionReader *reader, IndexScanDesc *scan, ScanKey keys, int nkeys)
{
	if (*scan == NULL)
	{
		*scan = index_beginscan_compat(reader->versions, reader->index, reader->snapshot, nkeys);
		/* snapshots look at index entries */
		(*scan)->xs_want_itup = (scan == &reader->scan || scan == &reader->jump_scan) &&
			reader->condition->access == HISTORY_SNAPSHOT;
	}
	index_rescan(*scan, keys, nkeys, NULL, 0);
	reader->probes++;
	return *scan;
}

static void
moment_key(VersionReader *reader, ScanKey key, StrategyNumber strategy, RegProcedure procedure,
		   TimestampTz moment)
{
	ScanKeyEntryInitialize(key, 0, reader->table->nkeys + 1, strategy, InvalidOid, InvalidOid,
						   procedure, TimestampTzGetDatum(moment));
}

/*
 * Learn from a search.  A miss costs a second descent, be there nothing at all
 * or something farther away.
 */
static void
window_adapt(Window *window, bool missed)
{
	if (!window->set)
		return;
	if (missed)
		window->width = Min(window->width * 2, MAX_WINDOW);
	else
		window->width -= window->width / 64;
}

/* The first distance found sets the scale. */
static void
window_begin(Window *window, TimestampTz distance)
{
	if (!window->set)
		window->width = 4.0 * distance + 1;
	window->set = true;
}

/* The moment a window before (sign -1) or after (+1) another; false: no bound. */
static bool
window_bound(const Window *window, TimestampTz moment, int sign, TimestampTz *bound)
{
	double		edge = (double) moment + sign * window->width;

	if (!window->set || window->width >= MAX_WINDOW || fabs(edge) >= MAX_WINDOW * 10)
		return false;
	*bound = (TimestampTz) edge;
	return true;
}

void
version_read_boundary(VersionReader *reader, TupleTableSlot *slot, Boundary *boundary)
{
	const HistoryTable *table = reader->table;
	bool		isnull;
	char		op = DatumGetChar(slot_getattr(slot, table->op, &isnull));

	boundary->valid_from = DatumGetTimestampTz(slot_getattr(slot, table->valid_from, &isnull));
	boundary->has_row = VERSION_OP_HAS_ROW(op);
	boundary->derived = VERSION_OP_IS_DERIVED(op);
	boundary->partition = DatumGetInt32(slot_getattr(slot, table->partition, &isnull));
	boundary->offset = DatumGetInt64(slot_getattr(slot, table->offset, &isnull));
}

static inline bool
same_holder(const Boundary *a, const Boundary *b)
{
	return a->has_row && b->has_row && a->partition == b->partition && a->offset == b->offset;
}

static bool
next_row(VersionReader *reader, IndexScanDesc scan, ScanDirection direction,
		 TupleTableSlot *slot, Boundary *boundary)
{
	CHECK_FOR_INTERRUPTS();
	if (!index_getnext_slot(scan, direction, slot))
		return false;
	reader->rows++;
	version_read_boundary(reader, slot, boundary);
	return true;
}

/*
 * Scan keys for the one key that 'slot' belongs to: the caller's where it gave
 * the whole key.
 */
static void
key_of_row(VersionReader *reader, TupleTableSlot *slot, ScanKeyData *keys)
{
	int			nkeys = reader->table->nkeys;

	if (reader->whole_key)
	{
		memcpy(keys, reader->condition->keys, sizeof(ScanKeyData) * nkeys);
		return;
	}
	memcpy(keys, reader->row_keys, sizeof(ScanKeyData) * nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		bool		isnull;

		keys[i].sk_argument = slot_getattr(slot, reader->table->keys[i].versions_attnum, &isnull);
	}
}

/*
 * Where the version that holds at 'boundary' begins: the first of the effective
 * boundaries before it, back to back, with the same holder.
 */
static TimestampTz
find_from(VersionReader *reader, const ScanKeyData *row_keys, const Boundary *boundary)
{
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = reader->table->nkeys;
	IndexScanDesc scan;
	Boundary	earlier;
	TimestampTz from = boundary->valid_from;

	if (!boundary->derived)
		return from;			/* the message itself: nothing held it before */

	memcpy(keys, row_keys, sizeof(ScanKeyData) * nkeys);
	moment_key(reader, &keys[nkeys], BTLessStrategyNumber, F_TIMESTAMPTZ_LT, from);
	scan = version_reader_descend(reader, &reader->period_scan, keys, nkeys + 1);
	while (next_row(reader, scan, BackwardScanDirection, reader->period_slot, &earlier))
	{
		if (earlier.valid_from == from)
			continue;			/* outdone at its own moment */
		if (!same_holder(&earlier, boundary))
			break;
		from = earlier.valid_from;
		if (!earlier.derived)
			break;
	}
	ExecClearTuple(reader->period_slot);
	return from;
}

/*
 * Where it ends: the next effective boundary with another holder.
 * False if there is none.
 */
static bool
find_to(VersionReader *reader, const ScanKeyData *row_keys, const Boundary *boundary, TimestampTz *to)
{
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = reader->table->nkeys;
	TimestampTz bound = 0;
	bool		bounded = window_bound(&reader->ahead, boundary->valid_from, 1, &bound);
	bool		missed = false;

	memcpy(keys, row_keys, sizeof(ScanKeyData) * nkeys);
	moment_key(reader, &keys[nkeys], BTGreaterStrategyNumber, F_TIMESTAMPTZ_GT, boundary->valid_from);
	for (;;)
	{
		IndexScanDesc scan;
		Boundary	candidate;
		Boundary	later;
		bool		have_candidate = false;

		if (bounded)
		{
			moment_key(reader, &keys[nkeys + 1], BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE, bound);
			scan = version_reader_descend(reader, &reader->window_scan, keys, nkeys + 2);
		}
		else
			scan = version_reader_descend(reader, &reader->period_scan, keys, nkeys + 1);
		while (next_row(reader, scan, ForwardScanDirection, reader->period_slot, &later))
		{
			if (have_candidate && later.valid_from != candidate.valid_from &&
				!same_holder(&candidate, boundary))
				break;			/* nothing outdid the candidate at its moment */
			candidate = later;
			have_candidate = true;
		}
		ExecClearTuple(reader->period_slot);
		if (have_candidate && !same_holder(&candidate, boundary))
		{
			if (!missed)
				window_adapt(&reader->ahead, false);
			window_begin(&reader->ahead, candidate.valid_from - boundary->valid_from);
			*to = candidate.valid_from;
			return true;
		}
		if (!bounded)
			return false;
		window_adapt(&reader->ahead, true);
		missed = true;
		bounded = false;
	}
}

void
version_fill_period(VersionReader *reader, TupleTableSlot *slot, const Boundary *boundary, bool have_later,
			Version *version)
{
	ScanKeyData row_keys[INDEX_MAX_KEYS];

	key_of_row(reader, slot, row_keys);
	version->from = find_from(reader, row_keys, boundary);
	version->unbounded = !have_later || !find_to(reader, row_keys, boundary, &version->to);
}

/* === one probe ============================================================= */

static bool
next_probe(VersionReader *reader, bool want_period, Version *version)
{
	const VersionCondition *condition = reader->condition;
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = reader->table->nkeys;
	Boundary	boundary;
	TimestampTz bound = 0;
	bool		bounded = window_bound(&reader->back, condition->moment, -1, &bound);
	bool		found = false;

	if (reader->done)
		return false;
	reader->done = true;

	memcpy(keys, condition->keys, sizeof(ScanKeyData) * nkeys);
	moment_key(reader, &keys[nkeys], BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE, condition->moment);
	if (bounded)
	{
		moment_key(reader, &keys[nkeys + 1], BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE, bound);
		found = next_row(reader, version_reader_descend(reader, &reader->window_scan, keys, nkeys + 2),
						 BackwardScanDirection, reader->out, &boundary);
	}
	window_adapt(&reader->back, bounded && !found);
	if (!found)
		found = next_row(reader, version_reader_descend(reader, &reader->scan, keys, nkeys + 1),
						 BackwardScanDirection, reader->out, &boundary);
	if (!found)
		return false;
	window_begin(&reader->back, condition->moment - boundary.valid_from);
	if (!boundary.has_row)
		return false;

	version->slot = reader->out;
	if (want_period)
		version_fill_period(reader, reader->out, &boundary, true, version);
	return true;
}

/* === all versions ========================================================== */

static inline void
swap_slots(TupleTableSlot **a, TupleTableSlot **b)
{
	TupleTableSlot *slot = *a;

	*a = *b;
	*b = slot;
}

static bool
rows_have_same_key(VersionReader *reader, TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = reader->condition->nkeys; i < reader->table->nkeys; i++)
	{
		AttrNumber	attnum = reader->table->keys[i].versions_attnum;
		bool		isnull_a;
		bool		isnull_b;
		Datum		value_a = slot_getattr(a, attnum, &isnull_a);
		Datum		value_b = slot_getattr(b, attnum, &isnull_b);

		if (isnull_a || isnull_b)
		{
			if (isnull_a != isnull_b)
				return false;
		}
		else if (DatumGetInt32(FunctionCall2Coll(reader->compare[i], reader->table->keys[i].collation,
												 value_a, value_b)) != 0)
			return false;
	}
	return true;
}

/* Hand out the version that is being built. */
static void
finish_run(VersionReader *reader, bool unbounded, TimestampTz to, Version *version)
{
	swap_slots(&reader->run, &reader->out);
	reader->have_run = false;
	version->slot = reader->out;
	version->from = reader->run_from;
	version->to = to;
	version->unbounded = unbounded;
}

/*
 * The candidate is effective: it goes on with the version that is being built,
 * or ends it and may begin another.  True: *version is set.
 */
static bool
commit_candidate(VersionReader *reader, Version *version)
{
	const Boundary *candidate = &reader->candidate_boundary;
	bool		finished = false;

	reader->have_candidate = false;
	if (reader->have_run && same_holder(&reader->run_boundary, candidate))
		return false;
	if (reader->have_run)
	{
		finish_run(reader, false, candidate->valid_from, version);
		finished = true;
	}
	if (candidate->has_row)
	{
		swap_slots(&reader->run, &reader->candidate);
		reader->have_run = true;
		reader->run_boundary = *candidate;
		reader->run_from = candidate->valid_from;
	}
	/* nothing of this key that starts later is wanted */
	if (reader->whole_key && candidate->valid_from > reader->condition->last)
	{
		reader->have_run = false;
		reader->exhausted = true;
		reader->key_ended = true;
	}
	return finished;
}

static inline void
take_incoming(VersionReader *reader)
{
	swap_slots(&reader->candidate, &reader->incoming);
	reader->candidate_boundary = reader->incoming_boundary;
	reader->have_candidate = true;
	reader->have_incoming = false;
}

static bool
next_in_order(VersionReader *reader, Version *version)
{
	for (;;)
	{
		if (reader->key_ended)
		{
			if (reader->have_candidate && commit_candidate(reader, version))
				return true;
			if (reader->have_run)
			{
				finish_run(reader, true, 0, version);
				return true;
			}
			if (reader->have_incoming)
			{
				take_incoming(reader);
				reader->key_ended = false;
			}
			else if (reader->exhausted)
				return false;
		}

		if (reader->exhausted ||
			!next_row(reader, reader->scan, ForwardScanDirection, reader->incoming,
					  &reader->incoming_boundary))
		{
			reader->exhausted = true;
			reader->key_ended = true;
			continue;
		}
		reader->have_incoming = true;

		if (!reader->have_candidate)
			take_incoming(reader);	/* the very first row */
		else if (!reader->whole_key &&
				 !rows_have_same_key(reader, reader->incoming, reader->candidate))
			reader->key_ended = true;
		else if (reader->incoming_boundary.valid_from == reader->candidate_boundary.valid_from)
			take_incoming(reader);	/* outdoes it at its moment */
		else
		{
			bool		finished = commit_candidate(reader, version);

			if (!reader->exhausted)
				take_incoming(reader);
			else
				reader->have_incoming = false;
			if (finished)
				return true;
		}
	}
}

/*
 * Where to begin with a key of which only versions that reach beyond 'first'
 * are wanted: the beginning of the version that holds then.  *from stays as it
 * is if there is none.
 */
static void
find_first(VersionReader *reader, TimestampTz *from)
{
	const VersionCondition *condition = reader->condition;
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = reader->table->nkeys;
	IndexScanDesc scan;
	Boundary	boundary;

	memcpy(keys, condition->keys, sizeof(ScanKeyData) * nkeys);
	moment_key(reader, &keys[nkeys], BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE, condition->first);
	scan = version_reader_descend(reader, &reader->period_scan, keys, nkeys + 1);
	if (next_row(reader, scan, BackwardScanDirection, reader->period_slot, &boundary))
		*from = boundary.has_row ? find_from(reader, condition->keys, &boundary) : boundary.valid_from;
	ExecClearTuple(reader->period_slot);
}

void
version_reader_start(VersionReader *reader, const VersionCondition *condition)
{
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = condition->nkeys;
	TimestampTz from = DT_NOBEGIN;
	MemoryContext old = MemoryContextSwitchTo(reader->context);

	reader->condition = condition;
	reader->whole_key = condition->nkeys == reader->table->nkeys;
	reader->done = false;
	memcpy(keys, condition->keys, sizeof(ScanKeyData) * nkeys);

	switch (condition->access)
	{
		case HISTORY_PROBE:
			break;
		case HISTORY_SNAPSHOT:
			version_snapshot_start(reader);
			break;
		case HISTORY_VERSIONS:
			reader->have_run = false;
			reader->have_candidate = false;
			reader->have_incoming = false;
			reader->key_ended = false;
			reader->exhausted = false;
			if (reader->whole_key)
			{
				if (condition->first > DT_NOBEGIN)
					find_first(reader, &from);
				moment_key(reader, &keys[nkeys], BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE, from);
				nkeys++;
			}
			(void) version_reader_descend(reader, &reader->scan, keys, nkeys);
			break;
	}
	MemoryContextSwitchTo(old);
}

bool
version_reader_next(VersionReader *reader, bool want_period, Version *version)
{
	bool		found = false;

	/* index scans keep memory from call to call, in the current context */
	MemoryContext old = MemoryContextSwitchTo(reader->context);

	switch (reader->condition->access)
	{
		case HISTORY_PROBE:
			found = next_probe(reader, want_period, version);
			break;
		case HISTORY_SNAPSHOT:
			found = version_snapshot_next(reader, want_period, version);
			break;
		case HISTORY_VERSIONS:
			found = next_in_order(reader, version);
			break;
	}
	MemoryContextSwitchTo(old);
	return found;
}

void
version_reader_counts(const VersionReader *reader, int64 *probes, int64 *rows)
{
	*probes = reader->probes;
	*rows = reader->rows;
}
