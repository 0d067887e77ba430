/*
 * topic_sources.c
 *	  The numbers of a maintained table's sources in the extension's catalog.  Only tables
 *	  that read, or have read, several topics have rows there, of which two may have had one
 *	  name, one after the other: over one plain topic a source's number is its partition.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "materialize/catalog_rows.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

/* Columns of topic_source */
enum
{
	TS_TARGET = 1,
	TS_SOURCE,
	TS_TOPIC,
	TS_PARTITION,
	TS_GIVEN_UP,
	TS_NATTS = TS_GIVEN_UP
};

Position *
topic_sources_get(Oid target, int *n)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Position   *sources = palloc0(sizeof(Position));
	int			max = 1;

	*n = 0;
	if (!catalog_ids_find())
		return sources;
	rel = table_open(catalog_ids.topic_source, AccessShareLock);
	ScanKeyInit(&key, TS_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, catalog_ids.topic_source_pkey, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[TS_NATTS];
		bool		isnull[TS_NATTS];
		Position   *source;

		if (*n == max)
			sources = repalloc(sources, sizeof(Position) * (max *= 2));
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
		if (DatumGetInt32(values[TS_SOURCE - 1]) != *n)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("source %d is missing in catalog \"topic_source\"", *n)));
		source = &sources[(*n)++];
		memset(source, 0, sizeof(Position));
		source->topic = TextDatumGetCString(values[TS_TOPIC - 1]);
		source->partition = DatumGetInt32(values[TS_PARTITION - 1]);
		source->given_up = DatumGetBool(values[TS_GIVEN_UP - 1]);
		source->last_offset = source->last_timestamp = -1;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return sources;
}

void
topic_sources_add(Oid target, const Positions *positions, int first)
{
	Relation	rel;

	if (first >= positions->n)
		return;
	rel = table_open(catalog_ids.topic_source, RowExclusiveLock);
	for (int i = first; i < positions->n; i++)
	{
		const Position *source = &positions->positions[i];
		Datum		values[TS_NATTS];
		bool		isnull[TS_NATTS] = {0};
		HeapTuple	tuple;

		values[TS_TARGET - 1] = ObjectIdGetDatum(target);
		values[TS_SOURCE - 1] = Int32GetDatum(i);
		values[TS_TOPIC - 1] = CStringGetTextDatum(source->topic);
		values[TS_PARTITION - 1] = Int32GetDatum(source->partition);
		values[TS_GIVEN_UP - 1] = BoolGetDatum(source->given_up);
		tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
		CatalogTupleInsert(rel, tuple);
		heap_freetuple(tuple);
	}
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

void
topic_source_give_up(Oid target, int32 source)
{
	Relation	rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	catalog_ids_require();
	rel = table_open(catalog_ids.topic_source, RowExclusiveLock);
	ScanKeyInit(&keys[0], TS_TARGET, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	ScanKeyInit(&keys[1], TS_SOURCE, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(source));
	scan = systable_beginscan(rel, catalog_ids.topic_source_pkey, true, NULL, 2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Datum		values[TS_NATTS] = {0};
		bool		isnull[TS_NATTS] = {0};
		bool		replace[TS_NATTS] = {0};
		HeapTuple	changed;

		values[TS_GIVEN_UP - 1] = BoolGetDatum(true);
		replace[TS_GIVEN_UP - 1] = true;
		changed = heap_modify_tuple(tuple, RelationGetDescr(rel), values, isnull, replace);
		CatalogTupleUpdate(rel, &tuple->t_self, changed);
		heap_freetuple(changed);
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

void
topic_sources_forget(Oid target)
{
	catalog_ids_require();
	delete_rows_of_target(catalog_ids.topic_source, catalog_ids.topic_source_pkey, target);
	CommandCounterIncrement();
}
