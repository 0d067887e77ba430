/*
 * version_reader.h
 *	  Reads the versions of keys, or the one version of a moment, from a versions
 *	  table through its index.
 *
 * Knows the layout (versions.h) and nothing of plans or of the history table's
 * columns.
 */
#ifndef UK_VERSION_READER_H
#define UK_VERSION_READER_H

#include "access/skey.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "history/history.h"
#include "utils/snapshot.h"

/* What to read.  Datums in keys must live until the next start. */
typedef struct VersionCondition
{
	HistoryAccess access;
	int			nkeys;			/* leading key columns that are given */
	ScanKeyData keys[INDEX_MAX_KEYS];	/* their index scan keys, by equality */
	TimestampTz moment;			/* HISTORY_PROBE, HISTORY_SNAPSHOT */
	TimestampTz first;			/* HISTORY_VERSIONS: versions that end at or before
								 * this moment, */
	TimestampTz last;			/* or start after this one, may be left out */
} VersionCondition;

/* One version: its row is slot's, valid until the next call. */
typedef struct Version
{
	TupleTableSlot *slot;
	TimestampTz from;
	TimestampTz to;
	bool		unbounded;		/* 'to' is not set: it still holds */
} Version;

typedef struct VersionReader VersionReader;

/*
 * Both relations are open and locked, the snapshot registered, for as long as the reader
 * lives.  Slots go into *tuple_table, whose owner resets them after an ERROR
 * too.  Allocated in CurrentMemoryContext.
 */
extern VersionReader *version_reader_open(const HistoryTable *table, Relation versions, Relation index,
										  Snapshot snapshot, List **tuple_table);
extern void version_reader_close(VersionReader *reader);

/*
 * Begin, or begin anew.  The condition must stay as it is until the next start;
 * access and nkeys may not change at all.
 */
extern void version_reader_start(VersionReader *reader, const VersionCondition *condition);

/*
 * The next version; false at the end.  from, to and unbounded are set only with
 * want_period (finding them may cost a second probe).  Versions come in no
 * promised order.
 */
extern bool version_reader_next(VersionReader *reader, bool want_period, Version *version);

/* Descents into the index and rows fetched from the heap since the opening. */
extern void version_reader_counts(const VersionReader *reader, int64 *probes, int64 *rows);

#endif							/* UK_VERSION_READER_H */
