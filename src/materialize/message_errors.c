/*
 * message_errors.c
 *	  The catalog of messages that could not be applied: recorded with their raw
 *	  bytes, superseded by a later message of their key, read back for a replay.
 *	  Must not know how they came to be wrong.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_collation.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "materialize/catalog_rows.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* Columns of message_error; partitions there are numbers of sources */
enum
{
	ME_TARGET = 1,
	ME_TOPIC,
	ME_PARTITION,
	ME_OFFSET,
	ME_TIMESTAMP,
	ME_RAW_KEY,
	ME_RAW_VALUE,
	ME_COLUMN_NAME,
	ME_SQLSTATE,
	ME_MESSAGE,
	ME_KEY_TEXT,
	ME_SUPERSEDED_PARTITION,
	ME_SUPERSEDED_OFFSET,
	ME_RECORDED_AT,
	ME_TRUNCATED_AT,
	ME_NATTS = ME_TRUNCATED_AT
};

/* Kafka's milliseconds since 1970; false if unset or outside PostgreSQL's range */
static bool
kafka_timestamp(int64 ms, TimestampTz *result)
{
	int64		us;

	if (ms < 0 || ms > PG_INT64_MAX / 1000)
		return false;
	us = ms * 1000 - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	if (!IS_VALID_TIMESTAMP(us))
		return false;
	*result = us;
	return true;
}

static Datum
bytes_to_datum(const char *bytes, Size len)
{
	bytea	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), bytes, len);
	return PointerGetDatum(result);
}

/*
 * A message that is met again (after a rebuild, or a retry that failed) replaces its row.  What
 * came after it in the topic still does: the columns that tell of that stay.
 */
void
message_error_record(Oid target, const MessageError *error)
{
	Relation	rel;
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple	old;
	HeapTuple	tuple;
	TimestampTz ts;
	Datum		values[ME_NATTS] = {0};
	bool		isnull[ME_NATTS] = {0};
	bool		replace[ME_NATTS];

	catalog_ids_require();

	values[ME_TARGET - 1] = ObjectIdGetDatum(target);
	values[ME_TOPIC - 1] = CStringGetTextDatum(error->topic);
	values[ME_PARTITION - 1] = Int32GetDatum(error->source);
	values[ME_OFFSET - 1] = Int64GetDatum(error->offset);
	if (kafka_timestamp(error->timestamp, &ts))
		values[ME_TIMESTAMP - 1] = TimestampTzGetDatum(ts);
	else
		isnull[ME_TIMESTAMP - 1] = true;
	if (error->key != NULL)
		values[ME_RAW_KEY - 1] = bytes_to_datum(error->key, error->key_len);
	else
		isnull[ME_RAW_KEY - 1] = true;
	if (error->value != NULL)
		values[ME_RAW_VALUE - 1] = bytes_to_datum(error->value, error->value_len);
	else
		isnull[ME_RAW_VALUE - 1] = true;
	if (error->column != NULL)
		values[ME_COLUMN_NAME - 1] = CStringGetTextDatum(error->column);
	else
		isnull[ME_COLUMN_NAME - 1] = true;
	values[ME_SQLSTATE - 1] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
	values[ME_MESSAGE - 1] = CStringGetTextDatum(error->message);
	if (error->key_text != NULL)
		values[ME_KEY_TEXT - 1] = CStringGetTextDatum(error->key_text);
	else
		isnull[ME_KEY_TEXT - 1] = true;
	isnull[ME_SUPERSEDED_PARTITION - 1] = true;
	isnull[ME_SUPERSEDED_OFFSET - 1] = true;
	values[ME_RECORDED_AT - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	isnull[ME_TRUNCATED_AT - 1] = true;

	rel = table_open(catalog_ids.message_error, RowExclusiveLock);
	ScanKeyInit(&keys[0], ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, values[ME_TARGET - 1]);
	ScanKeyInit(&keys[1], ME_PARTITION, BTEqualStrategyNumber, F_INT4EQ, values[ME_PARTITION - 1]);
	ScanKeyInit(&keys[2], ME_OFFSET, BTEqualStrategyNumber, F_INT8EQ, values[ME_OFFSET - 1]);
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 3, keys);
	old = systable_getnext(scan);
	if (HeapTupleIsValid(old))
	{
		memset(replace, true, sizeof(replace));
		replace[ME_SUPERSEDED_PARTITION - 1] = replace[ME_SUPERSEDED_OFFSET - 1] = replace[ME_TRUNCATED_AT - 1] = false;
		tuple = heap_modify_tuple(old, RelationGetDescr(rel), values, isnull, replace);
		CatalogTupleUpdate(rel, &old->t_self, tuple);
	}
	else
	{
		tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
		CatalogTupleInsert(rel, tuple);
	}
	systable_endscan(scan);
	heap_freetuple(tuple);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

void
message_errors_forget(Oid target)
{
	catalog_ids_require();
	delete_rows_of_target(catalog_ids.message_error, catalog_ids.message_error_pkey, target);
	CommandCounterIncrement();
}

bool
message_errors_exist(Oid target)
{
	Relation	rel;
	HeapTuple	tuple;

	if (!catalog_ids_find())
		return false;
	rel = table_open(catalog_ids.message_error, AccessShareLock);
	tuple = row_of_target(rel, catalog_ids.message_error_pkey, target);
	table_close(rel, AccessShareLock);
	return HeapTupleIsValid(tuple);
}

bool
message_errors_ahead(Oid target, int32 source, int64 offset)
{
	Relation	rel;
	ScanKeyData keys[3];
	SysScanDesc scan;
	bool		found;

	catalog_ids_require();
	rel = table_open(catalog_ids.message_error, AccessShareLock);
	ScanKeyInit(&keys[0], ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	ScanKeyInit(&keys[1], ME_PARTITION, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(source));
	ScanKeyInit(&keys[2], ME_OFFSET, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(offset));
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 3, keys);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* --- superseding -------------------------------------------------------------------- */

/*
 * By a hash index, since key texts may be longer than a btree takes.  Such an index
 * only tells where to look, so this is not a systable scan, which must not recheck.
 */
struct ErrorSweep
{
	Oid			target;
	Relation	rel;
	Relation	index;
	TupleTableSlot *slot;
	Snapshot	snapshot;
	IndexScanDesc scan;
};

/* So many errors are looked at to find one that can be superseded still. */
#define LOOK_AT_ERRORS	1000

static bool
any_to_supersede(Relation rel, Oid target)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 1, &key);
	for (int n = 0; !found && HeapTupleIsValid(tuple = systable_getnext(scan)); n++)
		found = n == LOOK_AT_ERRORS ||
			(!heap_attisnull(tuple, ME_KEY_TEXT, RelationGetDescr(rel)) &&
			 heap_attisnull(tuple, ME_SUPERSEDED_OFFSET, RelationGetDescr(rel)));
	systable_endscan(scan);
	return found;
}

static void
sweep_open_scan(ErrorSweep *sweep)
{
	sweep->snapshot = RegisterSnapshot(GetCatalogSnapshot(RelationGetRelid(sweep->rel)));
	sweep->scan = index_beginscan_compat(sweep->rel, sweep->index, sweep->snapshot, 1);
}

static void
sweep_close_scan(ErrorSweep *sweep)
{
	index_endscan(sweep->scan);
	UnregisterSnapshot(sweep->snapshot);
}

ErrorSweep *
message_errors_sweep_begin(Oid target)
{
	ErrorSweep *sweep;
	Relation	rel;

	catalog_ids_require();
	rel = table_open(catalog_ids.message_error, RowExclusiveLock);
	if (!any_to_supersede(rel, target))
	{
		table_close(rel, RowExclusiveLock);
		return NULL;
	}
	sweep = palloc(sizeof(ErrorSweep));
	sweep->target = target;
	sweep->rel = rel;
	sweep->index = index_open(catalog_ids.message_error_key_text, RowExclusiveLock);
	sweep->slot = table_slot_create(rel, NULL);
	sweep_open_scan(sweep);
	return sweep;
}

/* Supersede the row in the slot, if it is an error of this key that came before. */
static bool
supersede_row(ErrorSweep *sweep, Datum wanted, int32 source, int64 offset)
{
	TupleDesc	desc = RelationGetDescr(sweep->rel);
	HeapTuple	tuple = ExecFetchSlotHeapTuple(sweep->slot, false, NULL);
	Datum		values[ME_NATTS];
	bool		isnull[ME_NATTS];
	bool		replace[ME_NATTS] = {0};
	HeapTuple	modified;

	heap_deform_tuple(tuple, desc, values, isnull);
	if (DatumGetObjectId(values[ME_TARGET - 1]) != sweep->target ||
		isnull[ME_KEY_TEXT - 1] || !isnull[ME_SUPERSEDED_OFFSET - 1] ||
		!DatumGetBool(DirectFunctionCall2Coll(texteq, C_COLLATION_OID, values[ME_KEY_TEXT - 1], wanted)))
		return false;
	/* an error is not superseded by what came before it */
	if (DatumGetInt32(values[ME_PARTITION - 1]) == source && DatumGetInt64(values[ME_OFFSET - 1]) >= offset)
		return false;

	values[ME_SUPERSEDED_PARTITION - 1] = Int32GetDatum(source);
	values[ME_SUPERSEDED_OFFSET - 1] = Int64GetDatum(offset);
	isnull[ME_SUPERSEDED_PARTITION - 1] = isnull[ME_SUPERSEDED_OFFSET - 1] = false;
	replace[ME_SUPERSEDED_PARTITION - 1] = replace[ME_SUPERSEDED_OFFSET - 1] = true;
	modified = heap_modify_tuple(tuple, desc, values, isnull, replace);
	CatalogTupleUpdate(sweep->rel, &tuple->t_self, modified);
	heap_freetuple(modified);
	return true;
}

void
message_errors_sweep_key(ErrorSweep *sweep, const char *key_text, int32 source, int64 offset)
{
	Datum		wanted = CStringGetTextDatum(key_text);
	ScanKeyData key;
	bool		changed = false;

	ScanKeyInit(&key, 1, HTEqualStrategyNumber, F_TEXTEQ, wanted);
	index_rescan(sweep->scan, &key, 1, NULL, 0);
	while (index_getnext_slot(sweep->scan, ForwardScanDirection, sweep->slot))
	{
		CHECK_FOR_INTERRUPTS();
		changed |= supersede_row(sweep, wanted, source, offset);
	}
	pfree(DatumGetPointer(wanted));
	if (!changed)
		return;
	/* what was changed must be seen as it is now */
	CommandCounterIncrement();
	sweep_close_scan(sweep);
	sweep_open_scan(sweep);
}

void
message_errors_sweep_end(ErrorSweep *sweep)
{
	sweep_close_scan(sweep);
	ExecDropSingleTupleTableSlot(sweep->slot);
	index_close(sweep->index, RowExclusiveLock);
	table_close(sweep->rel, RowExclusiveLock);
	pfree(sweep);
}

void
message_errors_truncate(Oid target, int32 source, int64 offset, TimestampTz at)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		changed = false;

	catalog_ids_require();
	rel = table_open(catalog_ids.message_error, RowExclusiveLock);
	ScanKeyInit(&key, ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[ME_NATTS];
		bool		isnull[ME_NATTS];
		bool		replace[ME_NATTS] = {0};
		HeapTuple	modified;

		CHECK_FOR_INTERRUPTS();
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
		if (!isnull[ME_SUPERSEDED_OFFSET - 1] || DatumGetInt32(values[ME_PARTITION - 1]) != source ||
			DatumGetInt64(values[ME_OFFSET - 1]) >= offset)
			continue;
		values[ME_SUPERSEDED_PARTITION - 1] = Int32GetDatum(source);
		values[ME_SUPERSEDED_OFFSET - 1] = Int64GetDatum(offset);
		values[ME_TRUNCATED_AT - 1] = TimestampTzGetDatum(at);
		for (int column = ME_SUPERSEDED_PARTITION; column <= ME_TRUNCATED_AT; column++)
		{
			if (column == ME_RECORDED_AT)
				continue;
			isnull[column - 1] = false;
			replace[column - 1] = true;
		}
		modified = heap_modify_tuple(tuple, RelationGetDescr(rel), values, isnull, replace);
		CatalogTupleUpdate(rel, &tuple->t_self, modified);
		heap_freetuple(modified);
		changed = true;
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	if (changed)
		CommandCounterIncrement();
}

static const char *
copy_bytes(Datum value, bool isnull, Size *len)
{
	bytea	   *bytes;
	char	   *copy;

	*len = 0;
	if (isnull)
		return NULL;
	bytes = DatumGetByteaPP(value);
	*len = VARSIZE_ANY_EXHDR(bytes);
	copy = palloc(*len + 1);	/* zero-length is not null */
	memcpy(copy, VARDATA_ANY(bytes), *len);
	return copy;
}

List *
message_errors_get(Oid target)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *errors = NIL;

	catalog_ids_require();
	rel = table_open(catalog_ids.message_error, AccessShareLock);
	ScanKeyInit(&key, ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		MessageError *error = palloc0(sizeof(MessageError));
		Datum		values[ME_NATTS];
		bool		isnull[ME_NATTS];

		heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
		error->topic = TextDatumGetCString(values[ME_TOPIC - 1]);
		error->source = DatumGetInt32(values[ME_PARTITION - 1]);
		error->offset = DatumGetInt64(values[ME_OFFSET - 1]);
		error->timestamp = isnull[ME_TIMESTAMP - 1] ? -1
			: (DatumGetTimestampTz(values[ME_TIMESTAMP - 1]) +
			   ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)) * USECS_PER_DAY) / 1000;
		error->key = copy_bytes(values[ME_RAW_KEY - 1], isnull[ME_RAW_KEY - 1], &error->key_len);
		error->value = copy_bytes(values[ME_RAW_VALUE - 1], isnull[ME_RAW_VALUE - 1], &error->value_len);
		error->truncated = !isnull[ME_TRUNCATED_AT - 1];
		if (error->truncated)
		{
			error->truncated_offset = DatumGetInt64(values[ME_SUPERSEDED_OFFSET - 1]);
			error->truncated_at = DatumGetTimestampTz(values[ME_TRUNCATED_AT - 1]);
		}
		errors = lappend(errors, error);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return errors;
}

void
message_error_delete(Oid target, int32 source, int64 offset)
{
	Relation	rel;
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple	tuple;

	catalog_ids_require();
	rel = table_open(catalog_ids.message_error, RowExclusiveLock);
	ScanKeyInit(&keys[0], ME_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	ScanKeyInit(&keys[1], ME_PARTITION, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(source));
	ScanKeyInit(&keys[2], ME_OFFSET, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(offset));
	scan = systable_beginscan(rel, catalog_ids.message_error_pkey, true, NULL, 3, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		CatalogTupleDelete(rel, &tuple->t_self);
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	if (HeapTupleIsValid(tuple))
		CommandCounterIncrement();
}
