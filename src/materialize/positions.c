/*
 * positions.c
 *	  The catalog of positions: how far each source of a maintained table has been applied.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_type.h"
#include "materialize/catalog_rows.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Columns of position_state; partitions there are numbers of sources */
enum
{
	PS_TARGET = 1,
	PS_TOPIC,
	PS_PARTITIONS,
	PS_NEXT_OFFSETS,
	PS_LAST_OFFSETS,
	PS_LAST_TIMESTAMPS,
	PS_LAST_HASHES,
	PS_NEXT_SEQ,
	PS_UPDATED_AT,
	PS_NATTS = PS_UPDATED_AT
};

static ArrayType *
int64s_to_array(const int64 *values, int n)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
		elems[i] = Int64GetDatum(values[i]);
	return construct_array(elems, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

static int64 *
int64s_from_array(Datum value, int expected)
{
	Datum	   *elems;
	int64	   *values;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(value), INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
					  TYPALIGN_DOUBLE, &elems, NULL, &n);
	if (n != expected)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("arrays of different lengths in catalog \"position_state\"")));
	values = palloc(sizeof(int64) * Max(n, 1));
	for (int i = 0; i < n; i++)
		values[i] = DatumGetInt64(elems[i]);
	return values;
}

Positions *
positions_get(Oid target)
{
	Relation	rel;
	HeapTuple	tuple;
	Datum		values[PS_NATTS];
	bool		isnull[PS_NATTS];
	Positions  *result;
	Datum	   *numbers;
	int64	   *next_offsets;
	int64	   *last_offsets;
	int64	   *last_timestamps;
	int64	   *last_hashes;

	if (!catalog_ids_find())
		return NULL;
	rel = table_open(catalog_ids.position_state, AccessShareLock);
	tuple = row_of_target(rel, catalog_ids.position_state_pkey, target);
	if (!HeapTupleIsValid(tuple))
	{
		table_close(rel, AccessShareLock);
		return NULL;
	}
	heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);

	result = palloc0(sizeof(Positions));
	result->topic = TextDatumGetCString(values[PS_TOPIC - 1]);
	result->next_seq = DatumGetInt64(values[PS_NEXT_SEQ - 1]);
	deconstruct_array(DatumGetArrayTypeP(values[PS_PARTITIONS - 1]), INT4OID, sizeof(int32), true,
					  TYPALIGN_INT, &numbers, NULL, &result->n);
	next_offsets = int64s_from_array(values[PS_NEXT_OFFSETS - 1], result->n);
	last_offsets = int64s_from_array(values[PS_LAST_OFFSETS - 1], result->n);
	last_timestamps = int64s_from_array(values[PS_LAST_TIMESTAMPS - 1], result->n);
	last_hashes = int64s_from_array(values[PS_LAST_HASHES - 1], result->n);

	result->positions = topic_sources_get(target, &result->nstored);
	result->several = result->nstored > 0;
	if (!result->several)
		result->positions = palloc0(sizeof(Position) * Max(result->n, 1));
	else if (result->nstored != result->n)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("catalogs \"position_state\" and \"topic_source\" do not fit together")));
	for (int i = 0; i < result->n; i++)
	{
		Position   *position = &result->positions[i];

		if (!result->several)
		{
			position->topic = result->topic;
			position->partition = DatumGetInt32(numbers[i]);
		}
		position->next_offset = next_offsets[i];
		position->last_offset = last_offsets[i];
		position->last_timestamp = last_timestamps[i];
		position->last_hash = (uint32) last_hashes[i];
	}

	heap_freetuple(tuple);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Runs in every apply transaction: one index probe and one HOT update (no indexed
 * column changes and the fillfactor leaves room).
 */
void
positions_set(Oid target, const Positions *positions)
{
	int			n = positions->n;
	Datum	   *partitions = palloc(sizeof(Datum) * Max(n, 1));
	int64	   *numbers = palloc(sizeof(int64) * Max(n, 1));
	Relation	rel;
	HeapTuple	old;
	HeapTuple	tuple;
	Datum		values[PS_NATTS];
	bool		isnull[PS_NATTS] = {0};

	catalog_ids_require();

#define PUT_NUMBERS(column, field) \
	do { \
		for (int i = 0; i < n; i++) \
			numbers[i] = (int64) positions->positions[i].field; \
		values[(column) - 1] = PointerGetDatum(int64s_to_array(numbers, n)); \
	} while (0)

	for (int i = 0; i < n; i++)
		partitions[i] = Int32GetDatum(i);
	values[PS_TARGET - 1] = ObjectIdGetDatum(target);
	values[PS_TOPIC - 1] = CStringGetTextDatum(positions->topic);
	values[PS_PARTITIONS - 1] =
		PointerGetDatum(construct_array(partitions, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	PUT_NUMBERS(PS_NEXT_OFFSETS, next_offset);
	PUT_NUMBERS(PS_LAST_OFFSETS, last_offset);
	PUT_NUMBERS(PS_LAST_TIMESTAMPS, last_timestamp);
	PUT_NUMBERS(PS_LAST_HASHES, last_hash);
	values[PS_NEXT_SEQ - 1] = Int64GetDatum(positions->next_seq);
	values[PS_UPDATED_AT - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
#undef PUT_NUMBERS

	rel = table_open(catalog_ids.position_state, RowExclusiveLock);
	old = row_of_target(rel, catalog_ids.position_state_pkey, target);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
	if (HeapTupleIsValid(old))
	{
		CatalogTupleUpdate(rel, &old->t_self, tuple);
		heap_freetuple(old);
	}
	else
		CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
	if (positions->several)
		topic_sources_add(target, positions, positions->nstored);
}

void
positions_forget(Oid target)
{
	catalog_ids_require();
	delete_rows_of_target(catalog_ids.position_state, catalog_ids.position_state_pkey, target);
	CommandCounterIncrement();
}
