/*
 * apply.h
 *	  Turning changes into rows of the current table, of its versions and of its
 *	  origins, in the caller's transaction.
 *
 * Feeds (steady batches) and backfill give changes key by key, each key's in
 * (partition, offset) order; apply looks up what the tables hold, decides by
 * timeline.h and writes.  It knows nothing of Kafka or of positions.
 */
#ifndef UK_APPLY_H
#define UK_APPLY_H

#include "changelog/change.h"
#include "materialize/catalog.h"

typedef struct Applier Applier;

/* Where a maintained table's columns come from, by position; for one definition of both. */
typedef struct ApplyMap ApplyMap;

/* ERROR 55000 when the source lost a column that is needed.  In CurrentMemoryContext. */
extern ApplyMap *apply_map_create(const MaintainedTable *table, const TopicTable *topic);

/* From here on messages name sources by these positions, which are not copied. */
extern void apply_map_positions(ApplyMap *map, const Positions *positions);

/*
 * Fill in change->event_time: the event time column, or the Kafka timestamp.  Deletes
 * take the column only if it is metadata of the value's format, which tells when the row was
 * deleted; those that lack it are 'bare' and take the Kafka timestamp, as all others do.
 * False, and *error filled in (record aside), when it
 * has none (NULL, infinite, unset) or a key column is NULL: then the change
 * cannot be applied, which is its message's fault (decision 7).
 */
extern bool apply_check(const ApplyMap *map, Change *change, ChangeError *error);

/* The typed key as text of a record, for messages and the errors table; palloc'd. */
extern char *apply_key_text(const ApplyMap *map, const Datum *values, const bool *isnull);

/* Order of changes for applier_key_begin: (key, partition, offset). */
extern void apply_sort(const ApplyMap *map, Change *changes, int n);
extern bool apply_same_key(const ApplyMap *map, const Change *a, const Change *b);
extern int	apply_key_columns(const ApplyMap *map, const AttrNumber **attnums);

/*
 * Opens the tables for writing; the caller has taken maintained_table_lock, pushed a
 * snapshot taken after it, and switched to the table's owner.  *next_seq is
 * counted up.  fresh: the tables are empty, nothing needs to be looked up.
 */
extern Applier *applier_begin(const MaintainedTable *table, const ApplyMap *map, int64 *next_seq, bool fresh);

/*
 * From here on changes may be older than what the tables hold (replay of errors): each
 * finds its place by the full rule, which works in any order.
 */
extern void applier_any_order(Applier *applier);

/*
 * Changes of one key, in (partition, offset) order.  The values of a change must
 * stay until the key ends, unless the next change of the key comes from the
 * same partition.
 */
extern void applier_key_begin(Applier *applier, const Change *change);
extern void applier_change(Applier *applier, const Change *change);
extern void applier_key_end(Applier *applier);

/*
 * Changes of any keys in the order of each source, ROW_TRUNCATE and changes with an old_key
 * among them.  Sorts them; a key may come again only after applier_flush().
 */
extern void applier_batch(Applier *applier, Change *changes, int n);

/*
 * The source was truncated: what a delete of every row that there is says, with the
 * offset and the moment of the change.  All changes before it have been applied, all of
 * them from its partition.  Between two keys.
 */
extern void applier_truncate(Applier *applier, const Change *change);

/*
 * The same for one key, where the caller knows better which rows there are: the delete
 * that a truncation means to the key of 'like', into *result and values, isnull (of
 * TopicTable.natts).
 */
extern void apply_truncate_change(const ApplyMap *map, const Change *truncation, const Change *like, Change *result,
								  Datum *values, bool *isnull);

/* One row of an append table. */
extern void applier_append(Applier *applier, const Change *change);

/* Makes what was written so far visible to the keys that follow, should one come again. */
extern void applier_flush(Applier *applier);

/* Writes what is buffered and closes. */
extern void applier_end(Applier *applier);

#endif							/* UK_APPLY_H */
