/*
 * writer.h
 *	  Writing one table from C, below SQL: buffered inserts, updates and deletes of
 *	  rows found through one btree.
 *
 * Fires row triggers, checks constraints, computes generated columns and keeps all
 * indexes, as the executor would; statement triggers do not fire, which is how the guard
 * trigger lets apply pass.  The caller holds the lock that makes it the only
 * writer, and touches each key once between two calls of table_writer_flush.
 */
#ifndef UK_WRITER_H
#define UK_WRITER_H

#include "access/genam.h"
#include "access/sdir.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

typedef struct TableWriter TableWriter;

/*
 * Open for writing with RowExclusiveLock; the relation stays locked to the end of the
 * transaction.  'index' (InvalidOid: none) serves table_writer_scan.  ERROR 0A000
 * for deferrable triggers and constraints: they would run as another role
 * (DESIGN.md, decision 13).  Uses the active snapshot.
 */
extern TableWriter *table_writer_open(Oid relid, Oid index);
extern Relation table_writer_relation(TableWriter *writer);

/* A slot to fill: all columns NULL, tts_values/tts_isnull writable. */
extern TupleTableSlot *table_writer_slot(TableWriter *writer);

/*
 * Insert the slot of the last table_writer_slot call; copies it.  Buffered: visible
 * to scans after table_writer_flush only.  Columns in 'defaults' of open are not touched.
 */
extern void table_writer_insert(TableWriter *writer);
extern void table_writer_flush(TableWriter *writer);

/* Flush, and let scans from here on see what this transaction has written. */
extern void table_writer_refresh(TableWriter *writer);

/*
 * Find rows through the index: its first nkeys columns equal to keys[], and, where
 * use_from, the column after them >= from (a timestamptz).  Then next() gives
 * the rows in or against index order; NULL at the end.  The slot is valid
 * until the next call.
 */
extern void table_writer_scan(TableWriter *writer, int nkeys, const Datum *keys, bool use_from, int64 from);
extern TupleTableSlot *table_writer_next(TableWriter *writer, ScanDirection direction);

/*
 * Replace or remove the row that table_writer_next returned last.  The new row is
 * in the slot of table_writer_slot.
 */
extern void table_writer_update(TableWriter *writer);
extern void table_writer_delete(TableWriter *writer);

/* Value of a column's DEFAULT for a new row; false if it has none. */
extern bool table_writer_default(TableWriter *writer, AttrNumber attnum, Datum *value, bool *isnull);

extern void table_writer_close(TableWriter *writer);

#endif							/* UK_WRITER_H */
