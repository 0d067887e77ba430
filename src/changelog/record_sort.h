/*
 * record_sort.h
 *	  Records that outlive the consumer's memory: a flat copy of one record, and
 *	  an external sort of such copies by (key columns [, time], source, offset).
 */
#ifndef UK_RECORD_SORT_H
#define UK_RECORD_SORT_H

#include "access/tupdesc.h"
#include "changelog/keys.h"
#include "executor/tuptable.h"
#include "fdw/options.h"
#include "utils/tuplesort.h"

/*
 * A record as one flat varlena; read it with stored_record_get().  'headers' says
 * whether the headers are wanted too: they cost a look-up per record.
 */
typedef struct varlena StoredRecord;

/* Bytes that stored_record_fill() will write, varlena header included. */
typedef struct StoredSize
{
	Size		total;
	int			nheaders;
	KafkaHeader *headers;		/* palloc'd in CurrentMemoryContext, or NULL */
} StoredSize;

extern void stored_record_size(const KafkaRecord *record, bool headers, StoredSize *size);
extern void stored_record_fill(StoredRecord *stored, const KafkaRecord *record, const StoredSize *size);

/*
 * The record again; key, value and headers point into 'stored', the topic is the one
 * that was put in and must still be there.  The array of headers is palloc'd in
 * CurrentMemoryContext, and only when there are any.
 */
extern void stored_record_get(const StoredRecord *stored, KafkaRecord *record);

/* Columns of a sort: those that come first, then source, offset, the record. */
typedef struct RecordSortLayout
{
	TupleDesc	desc;
	int			nkeys;
	KeyDesc    *keys;			/* attnums 1 .. nkeys, for compact arrays */
} RecordSortLayout;

/* Slot columns, as indexes */
#define RECORD_SORT_SOURCE(layout)		((layout)->nkeys)
#define RECORD_SORT_OFFSET(layout)		((layout)->nkeys + 1)
#define RECORD_SORT_RECORD(layout)		((layout)->nkeys + 2)

/*
 * The table's key columns come first, and with 'time' a bigint behind them.  In
 * CurrentMemoryContext.  ERROR 42883 if a key type has no btree operator class.
 */
extern RecordSortLayout *record_sort_layout(const TopicTable *table, bool time);

typedef struct RecordSort
{
	const RecordSortLayout *layout;
	MemoryContext cxt;
	Tuplesortstate *state;
	TupleTableSlot *put_slot;
	bool		rewindable;
} RecordSort;

/* In CurrentMemoryContext; work_kb bounds its memory, the rest goes to disk. */
extern RecordSort *record_sort_begin(const RecordSortLayout *layout, int work_kb, bool rewindable);
extern void record_sort_put(RecordSort *sort, const Datum *keys, int32 source, int64 offset,
							const StoredRecord *stored);
extern void record_sort_perform(RecordSort *sort);

/* Next tuple as a copy that the slot owns, in the sort's context; false at the end. */
extern bool record_sort_next(RecordSort *sort, TupleTableSlot *slot);
extern TupleTableSlot *record_sort_make_slot(const RecordSortLayout *layout);
extern void record_sort_end(RecordSort *sort);

/* kB on disk, 0: everything fitted into memory. */
extern int64 tuplesort_disk_kb(Tuplesortstate *state);

#endif							/* UK_RECORD_SORT_H */
