/*
 * version_snapshot.c
 *	  All keys' versions at one moment, or those of a key prefix: backwards over the index,
 *	  with a jump where a key has many entries.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "history/version_reader_internal.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * Index entries of one key that a snapshot steps over before it descends anew.
 * At first about a page of them, since a descent reads another page; fewer
 * while keys turn out to be longer than that.
 */
#define MAX_STEPS	200
#define MIN_STEPS	8

void
version_snapshot_start(VersionReader *reader)
{
	ScanKeyData keys[INDEX_MAX_KEYS];
	int			nkeys = reader->condition->nkeys;

	memcpy(keys, reader->condition->keys, sizeof(ScanKeyData) * nkeys);
	reader->have_entry = false;
	reader->answered = false;
	reader->steps = 0;
	reader->step_limit = MAX_STEPS;
	reader->pass = version_reader_descend(reader, &reader->scan, keys, nkeys);
}

static bool
entry_has_same_key(VersionReader *reader, IndexTuple entry)
{
	TupleDesc	desc = RelationGetDescr(reader->index);

	for (int i = reader->condition->nkeys; i < reader->table->nkeys; i++)
	{
		bool		isnull_a;
		bool		isnull_b;
		Datum		a = index_getattr(entry, i + 1, desc, &isnull_a);
		Datum		b = index_getattr(reader->entry, i + 1, desc, &isnull_b);

		if (isnull_a || isnull_b)
		{
			if (isnull_a != isnull_b)
				return false;
		}
		else if (DatumGetInt32(FunctionCall2Coll(reader->compare[i], reader->table->keys[i].collation,
												 a, b)) != 0)
			return false;
	}
	return true;
}

/*
 * Descend to where the pass is needed next.  In a key whose version is still
 * looked for: to the last entry with (key, __valid_from) <= (this key, moment);
 * after it: to the last entry with (key) < (this key).  Both as one row
 * comparison, so that the pass goes on backwards from there.
 */
static void
jump(VersionReader *reader)
{
	const VersionCondition *condition = reader->condition;
	const HistoryTable *table = reader->table;
	TupleDesc	desc = RelationGetDescr(reader->index);
	ScanKeyData keys[INDEX_MAX_KEYS + 1];
	ScanKey		members = reader->jump_keys;
	int			nmembers = 0;
	StrategyNumber strategy = reader->answered ? BTLessStrategyNumber : BTLessEqualStrategyNumber;

	/* the scan keys point into the entry; the pass overwrites reader->entry */
	memcpy(reader->jump_entry, reader->entry, IndexTupleSize(reader->entry));

	for (int i = condition->nkeys; i < table->nkeys; i++)
	{
		const HistoryKey *key = &table->keys[i];
		bool		isnull;

		ScanKeyEntryInitialize(&members[nmembers], SK_ROW_MEMBER, i + 1, strategy, InvalidOid,
							   key->collation, reader->compare[i]->fn_oid,
							   index_getattr(reader->jump_entry, i + 1, desc, &isnull));
		if (isnull)
			return;				/* a row comparison can't tell it: walk on */
		nmembers++;
	}
	if (!reader->answered)
	{
		ScanKeyEntryInitialize(&members[nmembers], SK_ROW_MEMBER, table->nkeys + 1, strategy,
							   InvalidOid, InvalidOid, F_TIMESTAMPTZ_CMP,
							   TimestampTzGetDatum(condition->moment));
		nmembers++;
	}
	Assert(condition->nkeys < table->nkeys);	/* what has one key only is probed */
	memcpy(keys, condition->keys, sizeof(ScanKeyData) * condition->nkeys);
	if (nmembers == 1)
	{
		/* (key) < (this key): a row of one is none to btree, which would read on behind it */
		const HistoryKey *key = &table->keys[condition->nkeys];
		Oid			less = get_opfamily_member(key->opfamily, key->opcintype, key->opcintype,
											   BTLessStrategyNumber);

		ScanKeyEntryInitialize(&keys[condition->nkeys], 0, condition->nkeys + 1, BTLessStrategyNumber,
							   InvalidOid, key->collation, get_opcode(less), members[0].sk_argument);
	}
	else
	{
		members[nmembers - 1].sk_flags |= SK_ROW_END;
		MemSet(&keys[condition->nkeys], 0, sizeof(ScanKeyData));
		keys[condition->nkeys].sk_flags = SK_ROW_HEADER;
		keys[condition->nkeys].sk_attno = condition->nkeys + 1;
		keys[condition->nkeys].sk_strategy = strategy;
		keys[condition->nkeys].sk_argument = PointerGetDatum(members);
	}

	reader->pass = version_reader_descend(reader, &reader->jump_scan, keys, condition->nkeys + 1);
	reader->step_limit = Max(reader->step_limit / 2, MIN_STEPS);
	reader->steps = 0;
}

/*
 * Backwards over the index.  Entries after the moment and those of a key that
 * is answered are told from the index alone; the heap is visited once per key.
 */
bool
version_snapshot_next(VersionReader *reader, bool want_period, Version *version)
{
	const VersionCondition *condition = reader->condition;
	TupleDesc	desc = RelationGetDescr(reader->index);

	while (index_getnext_tid(reader->pass, BackwardScanDirection) != NULL)
	{
		IndexTuple	entry = reader->pass->xs_itup;
		Boundary	boundary;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();

		if (reader->have_entry && entry_has_same_key(reader, entry))
			reader->steps++;
		else
		{
			/* walked to the end of a key: it was short enough */
			if (reader->steps > 0)
				reader->step_limit = Min(reader->step_limit * 2, MAX_STEPS);
			memcpy(reader->entry, entry, IndexTupleSize(entry));
			reader->have_entry = true;
			reader->answered = false;
			reader->later_seen = false;
			reader->steps = 0;
		}

		if (!reader->answered &&
			DatumGetTimestampTz(index_getattr(entry, reader->table->nkeys + 1, desc, &isnull)) >
			condition->moment)
			reader->later_seen = true;
		else if (!reader->answered)
		{
			if (!index_fetch_heap(reader->pass, reader->out))
				continue;		/* not visible to us */
			reader->rows++;
			reader->answered = true;
			reader->steps = 0;
			version_read_boundary(reader, reader->out, &boundary);
			if (!boundary.has_row)
				continue;

			version->slot = reader->out;
			if (want_period)
				version_fill_period(reader, reader->out, &boundary, reader->later_seen, version);
			return true;
		}

		if (reader->steps >= reader->step_limit)
			jump(reader);
	}
	return false;
}
