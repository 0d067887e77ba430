/*
 * version_reader_internal.h
 *	  The state of a version reader, shared by its files: probes and ordered passes
 *	  (version_reader.c), the skipping pass (version_snapshot.c).
 */
#ifndef UK_VERSION_READER_INTERNAL_H
#define UK_VERSION_READER_INTERNAL_H

#include "access/itup.h"
#include "access/relscan.h"
#include "history/version_reader.h"

/*
 * How far from a moment its boundary is looked for first.  An index scan
 * examines all entries of a page that satisfy its keys before it returns the
 * first of them; without a bound on the other side that makes a key with many
 * versions dear.  A window adapts to the distances found, so that about one
 * probe in fifty has to be repeated without it.
 */
typedef struct Window
{
	bool		set;
	double		width;			/* microseconds */
} Window;

/* What a boundary row says. */
typedef struct Boundary
{
	TimestampTz valid_from;
	bool		has_row;
	bool		derived;		/* an earlier boundary may have the same holder */
	int32		partition;		/* the holder, if has_row */
	int64		offset;
} Boundary;

struct VersionReader
{
	MemoryContext context;
	const HistoryTable *table;
	Relation	versions;
	Relation	index;
	Snapshot	snapshot;
	const VersionCondition *condition;
	bool		whole_key;		/* condition gives all key columns */
	bool		done;
	FmgrInfo   *compare[INDEX_MAX_KEYS];	/* 3-way, as the index compares */

	/* each is always used with one number of scan keys */
	IndexScanDesc scan;			/* the pass, or the probe */
	IndexScanDesc jump_scan;	/* HISTORY_SNAPSHOT: the pass after a jump */
	IndexScanDesc period_scan;	/* finds where a version begins and ends */
	IndexScanDesc window_scan;	/* the same, or the probe, within a window */
	IndexScanDesc pass;			/* HISTORY_SNAPSHOT: scan or jump_scan */
	TupleTableSlot *period_slot;

	/* own-type equality per key, for keys taken from a row */
	ScanKeyData row_keys[INDEX_MAX_KEYS];

	/* HISTORY_SNAPSHOT: the key the pass is in, as an index entry */
	IndexTuple	entry;			/* BTMaxItemSize bytes */
	IndexTuple	jump_entry;		/* what the scan keys of the last jump point into */
	bool		have_entry;
	bool		answered;		/* its version is found, or there is none */
	bool		later_seen;		/* it has entries after the moment */
	int			steps;			/* over entries of it since the last descent */
	int			step_limit;
	ScanKeyData jump_keys[INDEX_MAX_KEYS];	/* members of the row comparison */

	/*
	 * HISTORY_VERSIONS: the version that is being built, the last boundary
	 * read (a row of the same moment may still replace it), the first row of
	 * the next key; out is what the caller looks at.
	 */
	TupleTableSlot *run;
	TupleTableSlot *candidate;
	TupleTableSlot *incoming;
	TupleTableSlot *out;
	bool		have_run;
	bool		have_candidate;
	bool		have_incoming;
	bool		key_ended;
	bool		exhausted;
	TimestampTz run_from;
	Boundary	run_boundary;
	Boundary	candidate_boundary;
	Boundary	incoming_boundary;

	Window		back;			/* from a moment to the boundary before it */
	Window		ahead;			/* from a boundary to the next one */

	int64		probes;
	int64		rows;
};

/* Descend into the index, with the scan descriptor that is kept for it. */
extern IndexScanDesc version_reader_descend(VersionReader *reader, IndexScanDesc *scan, ScanKey keys, int nkeys);

extern void version_read_boundary(VersionReader *reader, TupleTableSlot *slot, Boundary *boundary);

/* From when and until when it holds; have_later: the key may have boundaries after this one. */
extern void version_fill_period(VersionReader *reader, TupleTableSlot *slot, const Boundary *boundary, bool have_later,
								Version *version);

/* HISTORY_SNAPSHOT: the next key's version at the moment. */
extern void version_snapshot_start(VersionReader *reader);
extern bool version_snapshot_next(VersionReader *reader, bool want_period, Version *version);

#endif							/* UK_VERSION_READER_INTERNAL_H */
