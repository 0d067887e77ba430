/*
 * apply_internal.h
 *	  The state of apply, shared by its files: versions and the current table
 *	  (apply.c), origins (apply_origins.c), what messages left out (apply_before.c) and
 *	  whose keys changed (apply_move.c), order between keys (apply_batch.c, apply_truncate.c).
 */
#ifndef UK_APPLY_INTERNAL_H
#define UK_APPLY_INTERNAL_H

#include "access/htup.h"
#include "history/timeline.h"
#include "history/versions.h"
#include "materialize/apply_map.h"
#include "materialize/writer.h"

/* Attribute numbers of one written table, by column of the map and by system column. */
typedef struct Layout
{
	AttrNumber *columns;		/* 0: the table has no such column */
	AttrNumber	valid_from;
	AttrNumber	seq;
	AttrNumber	op;
	AttrNumber	partition;
	AttrNumber	offset;
	AttrNumber	timestamp;
	AttrNumber	event_time;
	AttrNumber	cause;
} Layout;

/*
 * Where the values of a version's row come from: a change in hand, or a row of
 * the versions or origins table.
 */
typedef struct RowSource
{
	const Change *change;
	HeapTuple	tuple;
} RowSource;

/* The last message of the key in one partition, where no history is kept. */
typedef struct Origin
{
	VersionRow	row;			/* row.row: RowSource, or NULL if only the current table has it */
	bool		stored;
	bool		changed;
} Origin;

struct Applier
{
	const MaintainedTable *table;
	const ApplyMap *map;
	int64	   *next_seq;
	bool		fresh;
	bool		any_order;
	MemoryContext context;
	MemoryContext key_context;	/* of the key at hand */

	TableWriter *current;
	TableWriter *versions;
	TableWriter *origins;
	Layout		current_layout;
	Layout		versions_layout;	/* of versions or origins */

	/* the key at hand */
	Datum	   *keys;
	int32		partition;		/* of its messages, while it has only one; -1 none yet */
	Timeline   *timeline;
	TimestampTz loaded_from;	/* boundaries from here on are in the timeline */
	Change		last;			/* last change, complete */
	bool		has_last;
	Change		completed;		/* of apply_complete */
	MemoryContext kept[2];		/* values that changes took over, in turn; */
	int32		kept_partition; /* those of this partition */
	bool		kept_last;		/* index of the last one */
	int64		missing_values; /* that there was nothing to take for */
	RowSource	winner;			/* with current_by_event_time: row of the top */
	bool		winner_changed;
	int			norigins;
	int			max_origins;
	Origin	   *origin;
};

/*
 * Fill a slot's fed columns from a change or a stored row; only_key leaves all others
 * NULL.  apply_fill_key sets the key at hand, apply_fill_system the columns of versions.h.
 */
extern void apply_fill_columns(Applier *applier, TupleTableSlot *slot, const Layout *layout,
							   const RowSource *source, bool only_key);
extern void apply_fill_key(Applier *applier, TupleTableSlot *slot, const Layout *layout);
extern void apply_fill_system(TupleTableSlot *slot, const Layout *layout, const VersionRow *row);

/* A row as a tuple of its own, in the layout of versions or origins and the key's context. */
extern RowSource *apply_copy_row(Applier *applier, const RowSource *source);

/* A stored row as VersionRow; 'row' is a RowSource copy in the key's context if with_row. */
extern VersionRow apply_read_system(Applier *applier, TupleTableSlot *slot, bool with_row);

/* Bring the current table's row of the key at hand to winner; NULL: the key is gone. */
extern void apply_write_current(Applier *applier, const RowSource *winner);

/*
 * The change as it is to be applied, with what it takes over from the message before it.
 * The struct is good until the next call, its values as long as a change's must be.
 */
extern const Change *apply_complete(Applier *applier, const Change *change);

/*
 * Between two keys, all changes before this one being applied and flushed: its unchanged
 * values from the row of its old key, where that is known.  They live in CurrentMemoryContext.
 */
extern void apply_take_over(Applier *applier, Change *change);

/* The key's origins: read them, note a change, write them and the current table. */
extern void origins_load(Applier *applier);
extern void origins_change(Applier *applier, const Change *change);
extern void origins_write(Applier *applier);

#endif							/* UK_APPLY_INTERNAL_H */
