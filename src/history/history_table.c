/*
 * history_table.c
 *	  Which versions table a history table is served from, and where its columns are.
 *
 * Owns a cache per backend, kept true by relcache invalidations.  Columns are
 * matched by name: the tables are altered one after the other, and dropped
 * columns leave holes.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "history/history.h"
#include "history/versions.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#define CATALOG_SCHEMA	"upsert_kafka"
#define CATALOG_TABLE	"maintained_table"

typedef struct CacheEntry
{
	Oid			relid;			/* hash key: the history table */
	bool		valid;
	Oid			catalog;		/* maintained_table, as it was read */
	HistoryTable *table;		/* in CacheMemoryContext; replaced, never changed */
} CacheEntry;

static HTAB *cache = NULL;

/* Counts invalidations: an entry built while one came in is not kept. */
static uint64 cache_generation = 0;

static void
cache_invalidate(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	CacheEntry *entry;

	cache_generation++;
	hash_seq_init(&status, cache);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (!entry->valid)
			continue;
		if (!OidIsValid(relid) || relid == entry->relid || relid == entry->catalog ||
			relid == entry->table->versions || relid == entry->table->index ||
			relid == entry->table->target)
			entry->valid = false;
	}
}

static void
cache_create(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(CacheEntry);
	ctl.hcxt = CacheMemoryContext;
	cache = hash_create("upsert_kafka history tables", 16, &ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(cache_invalidate, (Datum) 0);
}

/*
 * Find the registration of a history table.  Read with the extension owner's
 * eyes: whoever may read a history need not see the catalog.  A catalog
 * snapshot, because parallel workers may not take another one.
 */
static bool
registration_lookup(Oid catalog, Oid history, Oid *target, Oid *versions)
{
	Relation	rel = table_open(catalog, AccessShareLock);
	AttrNumber	history_attnum = get_attnum(catalog, "history");
	AttrNumber	versions_attnum = get_attnum(catalog, "versions");
	AttrNumber	target_attnum = get_attnum(catalog, "target");
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	bool		found = false;

	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, history_attnum, RelationGetDescr(rel), &isnull);

		if (isnull || DatumGetObjectId(value) != history)
			continue;
		*target = DatumGetObjectId(heap_getattr(tuple, target_attnum, RelationGetDescr(rel), &isnull));
		value = heap_getattr(tuple, versions_attnum, RelationGetDescr(rel), &isnull);
		*versions = isnull ? InvalidOid : DatumGetObjectId(value);
		found = !isnull;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* attnum of a system column of the versions table */
static AttrNumber
system_column(Relation versions, const char *name, Oid type)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(versions), name);

	if (attnum == InvalidAttrNumber ||
		TupleDescAttr(RelationGetDescr(versions), attnum - 1)->atttypid != type)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("versions table \"%s\" has no column \"%s\" of type %s",
						RelationGetRelationName(versions), name, format_type_be(type))));
	return attnum;
}

/* Is it a plain btree (keys, __valid_from, __seq)?  Then fill in the keys. */
static bool
index_matches(Relation index, AttrNumber valid_from, AttrNumber seq, HistoryTable *table)
{
	Form_pg_index form = index->rd_index;
	int			n = form->indnkeyatts;

	if (index->rd_rel->relam != BTREE_AM_OID || !form->indisvalid || n < 3 ||
		form->indkey.values[n - 2] != valid_from || form->indkey.values[n - 1] != seq ||
		RelationGetIndexExpressions(index) != NIL || RelationGetIndexPredicate(index) != NIL)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (index->rd_indoption[i] != 0)
			return false;
	}

	table->nkeys = n - 2;
	for (int i = 0; i < table->nkeys; i++)
	{
		HistoryKey *key = &table->keys[i];

		key->versions_attnum = form->indkey.values[i];
		key->history_attnum = InvalidAttrNumber;
		key->opfamily = index->rd_opfamily[i];
		key->opcintype = index->rd_opcintype[i];
		key->collation = index->rd_indcollation[i];
	}
	return true;
}

static void
find_index(Relation versions, AttrNumber valid_from, AttrNumber seq, HistoryTable *table)
{
	ListCell   *lc;

	table->index = InvalidOid;
	foreach(lc, RelationGetIndexList(versions))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index_matches(index, valid_from, seq, table))
			table->index = RelationGetRelid(index);
		index_close(index, NoLock);
		if (OidIsValid(table->index))
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("versions table \"%s\" has no usable index", RelationGetRelationName(versions)),
			 errhint("Create a btree index on its key columns, " VERSION_VALID_FROM " and " VERSION_SEQ ", in this order.")));
}

static void
map_columns(Relation history, Relation versions, HistoryTable *table)
{
	TupleDesc	desc = RelationGetDescr(history);

	table->system_time = InvalidAttrNumber;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Form_pg_attribute from;

		table->versions_attnums[i] = InvalidAttrNumber;
		if (att->attisdropped)
			continue;
		if (strcmp(NameStr(att->attname), HISTORY_SYSTEM_TIME) == 0 && att->atttypid == TSTZRANGEOID)
		{
			table->system_time = i + 1;
			continue;
		}
		table->versions_attnums[i] = get_attnum(RelationGetRelid(versions), NameStr(att->attname));
		if (table->versions_attnums[i] <= 0)
		{
			table->versions_attnums[i] = InvalidAttrNumber;
			continue;
		}
		from = TupleDescAttr(RelationGetDescr(versions), table->versions_attnums[i] - 1);
		if (from->atttypid != att->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of history table \"%s\" has type %s, but its versions have type %s",
							NameStr(att->attname), RelationGetRelationName(history),
							format_type_be(att->atttypid), format_type_be(from->atttypid)),
					 errhint("Give the column the same type in the history table and in \"%s\".",
							 RelationGetRelationName(versions))));
		for (int k = 0; k < table->nkeys; k++)
		{
			if (table->keys[k].versions_attnum == table->versions_attnums[i])
				table->keys[k].history_attnum = i + 1;
		}
	}
}

static Size
table_size(int natts)
{
	return offsetof(HistoryTable, versions_attnums) + sizeof(AttrNumber) * natts;
}

/* NULL when the registration isn't there; palloc'd in CurrentMemoryContext. */
static HistoryTable *
history_table_build(Oid relid, Oid catalog)
{
	Relation	history;
	Relation	versions;
	HistoryTable *table;
	Oid			target;
	Oid			versions_oid;

	if (!OidIsValid(catalog) || !registration_lookup(catalog, relid, &target, &versions_oid))
		return NULL;

	history = relation_open(relid, NoLock);
	versions = table_open(versions_oid, AccessShareLock);

	table = palloc0(table_size(RelationGetDescr(history)->natts));
	table->relid = relid;
	table->target = target;
	table->versions = versions_oid;
	table->natts = RelationGetDescr(history)->natts;
	table->valid_from = system_column(versions, VERSION_VALID_FROM, TIMESTAMPTZOID);
	table->op = system_column(versions, VERSION_OP, CHAROID);
	table->partition = system_column(versions, VERSION_PARTITION, INT4OID);
	table->offset = system_column(versions, VERSION_OFFSET, INT8OID);
	find_index(versions, table->valid_from, system_column(versions, VERSION_SEQ, INT8OID), table);
	map_columns(history, versions, table);

	table_close(versions, NoLock);
	relation_close(history, NoLock);
	return table;
}

HistoryTable *
history_table_get(Oid relid, bool missing_ok)
{
	CacheEntry *entry;
	HistoryTable *table;
	bool		found;

	if (cache == NULL)
		cache_create();

	entry = hash_search(cache, &relid, HASH_FIND, NULL);
	if (entry != NULL && entry->valid)
	{
		/* the lock may bring an invalidation that ends the entry */
		LockRelationOid(entry->table->versions, AccessShareLock);
		entry = hash_search(cache, &relid, HASH_FIND, NULL);
	}
	if (entry == NULL || !entry->valid)
	{
		Oid			schema = get_namespace_oid(CATALOG_SCHEMA, true);
		Oid			catalog = OidIsValid(schema) ? get_relname_relid(CATALOG_TABLE, schema) : InvalidOid;
		uint64		generation = cache_generation;
		HistoryTable *kept;

		table = history_table_build(relid, catalog);
		if (table == NULL)
		{
			if (missing_ok)
				return NULL;
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("foreign table \"%s\" is not the history of a maintained table",
							get_rel_name(relid)),
					 errhint("History tables are made by upsert_kafka.materialize().")));
		}

		if (generation == cache_generation)
		{
			kept = MemoryContextAlloc(CacheMemoryContext, table_size(table->natts));
			memcpy(kept, table, table_size(table->natts));
			entry = hash_search(cache, &relid, HASH_ENTER, &found);
			if (found)
				pfree(entry->table);
			entry->table = kept;
			entry->catalog = catalog;
			entry->valid = true;
		}
		return table;
	}

	table = palloc(table_size(entry->table->natts));
	memcpy(table, entry->table, table_size(entry->table->natts));
	return table;
}

void
history_check_access(const HistoryTable *table, Oid userid)
{
	Oid			owner = InvalidOid;
	HeapTuple	tuple;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table->relid));
	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	if (pg_class_aclcheck(table->versions, owner, ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s", get_rel_name(table->versions)),
				 errdetail("The owner of history table \"%s\" may not read it.", get_rel_name(table->relid))));

	/* policies speak of current rows; nobody said which past ones they hide */
	if (check_enable_rls(table->target, userid, true) == RLS_ENABLED ||
		check_enable_rls(table->versions, userid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("history of table \"%s\" is closed by row security", get_rel_name(table->target)),
				 errhint("The table's owner and roles with BYPASSRLS can read it.")));
}
