/*
 * catalog.c
 *	  Reads and writes the extension's catalogs: where they are, and the registrations of
 *	  maintained tables (positions.c, topic_sources.c and message_errors.c have the others).
 *
 * Rows are read and written below SQL, like system catalogs: no parsing per
 * apply transaction, no rights of the caller involved, and always the newest
 * committed rows, whatever the isolation level.  Must not know Kafka, nor
 * decide who may do what.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "materialize/catalog_rows.h"
#include "materialize/parts.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

bool		apply_in_progress = false;

/* Columns of maintained_table, in the script's order */
enum
{
	MT_TARGET = 1,
	MT_SOURCE,
	MT_VERSIONS,
	MT_HISTORY,
	MT_ORIGINS,
	MT_APPEND,
	MT_COLUMNS,
	MT_SOURCE_COLUMNS,
	MT_KEY_COLUMNS,
	MT_EVENT_TIME,
	MT_CURRENT_BY,
	MT_ON_ERROR,
	MT_STATE,
	MT_STATE_SINCE,
	MT_ERROR_SQLSTATE,
	MT_ERROR_MESSAGE,
	MT_ERROR_PARTITION,
	MT_ERROR_OFFSET,
	MT_SYSTEM_IDENTIFIER,
	MT_DATABASE_OID,
	MT_CREATED_AT,
	MT_MISSING_VALUES,
	MT_NATTS = MT_MISSING_VALUES
};

CatalogIds	catalog_ids;

static const char *const state_names[] = {
	[TABLE_BACKFILL] = "backfill",
	[TABLE_LIVE] = "live",
	[TABLE_PAUSED] = "paused",
	[TABLE_STOPPED] = "stopped",
	[TABLE_TOPIC_CHANGED] = "topic_changed",
	[TABLE_DATA_LOST] = "data_lost",
	[TABLE_RESTORED] = "restored",
};

static void
catalog_ids_invalidate(Datum arg, Oid relid)
{
	if (relid == InvalidOid ||
		relid == catalog_ids.maintained_table ||
		relid == catalog_ids.position_state ||
		relid == catalog_ids.topic_source ||
		relid == catalog_ids.message_error)
		catalog_ids.valid = false;
}

/*
 * False where the extension does not exist.  The extension is asked for, not only
 * its schema: anybody may make a schema of that name where it is not installed.
 */
bool
catalog_ids_find(void)
{
	static bool registered = false;
	CatalogIds	ids;
	Oid			nspid;

	if (catalog_ids.valid)
		return true;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(catalog_ids_invalidate, (Datum) 0);
		registered = true;
	}

	if (!OidIsValid(get_extension_oid("upsert_kafka", true)))
		return false;
	nspid = get_namespace_oid("upsert_kafka", true);
	if (!OidIsValid(nspid))
		return false;

	ids.maintained_table = get_relname_relid("maintained_table", nspid);
	ids.maintained_table_pkey = get_relname_relid("maintained_table_pkey", nspid);
	ids.position_state = get_relname_relid("position_state", nspid);
	ids.position_state_pkey = get_relname_relid("position_state_pkey", nspid);
	ids.topic_source = get_relname_relid("topic_source", nspid);
	ids.topic_source_pkey = get_relname_relid("topic_source_pkey", nspid);
	ids.message_error = get_relname_relid("message_error", nspid);
	ids.message_error_pkey = get_relname_relid("message_error_pkey", nspid);
	ids.message_error_key_text = get_relname_relid("message_error_key_text", nspid);

	/* CREATE EXTENSION is still running, or DROP EXTENSION already */
	if (!OidIsValid(ids.maintained_table) || !OidIsValid(ids.maintained_table_pkey) ||
		!OidIsValid(ids.position_state) || !OidIsValid(ids.position_state_pkey) ||
		!OidIsValid(ids.topic_source) || !OidIsValid(ids.topic_source_pkey) ||
		!OidIsValid(ids.message_error) || !OidIsValid(ids.message_error_pkey) ||
		!OidIsValid(ids.message_error_key_text))
		return false;

	ids.valid = true;
	catalog_ids = ids;
	return true;
}

void
catalog_ids_require(void)
{
	if (!catalog_ids_find())
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"upsert_kafka\" is not installed in this database"),
				 errhint("Use CREATE EXTENSION upsert_kafka.")));
}

/* --- values of array columns ------------------------------------------------ */

static ArrayType *
names_to_array(char *const *names, int n)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		Name		name = palloc0(sizeof(NameData));

		namestrcpy(name, names[i]);
		elems[i] = NameGetDatum(name);
	}
	return construct_array(elems, n, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR);
}

static char **
names_from_array(Datum value, int *n)
{
	Datum	   *elems;
	char	  **names;

	deconstruct_array(DatumGetArrayTypeP(value), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
					  &elems, NULL, n);
	names = palloc(sizeof(char *) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
		names[i] = pstrdup(NameStr(*DatumGetName(elems[i])));
	return names;
}

/* --- locks ------------------------------------------------------------------- */

bool
maintained_table_lock(Oid target, bool nowait)
{
	LOCKTAG		tag;

	catalog_ids_require();
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, catalog_ids.maintained_table, target, 0);
	if (LockAcquire(&tag, ExclusiveLock, false, nowait) == LOCKACQUIRE_NOT_AVAIL)
		return false;

	/* what happened to the table while we waited is part of what we lock */
	AcceptInvalidationMessages();
	return true;
}

void
maintained_table_lock_to_apply(Oid target)
{
	MaintainedTable *table;

	(void) maintained_table_lock(target, false);
	PushActiveSnapshot(GetLatestSnapshot());
	table = maintained_table_read(target);
	PopActiveSnapshot();
	if (table == NULL)
		return;
	LockRelationOid(target, RowExclusiveLock);
	if (OidIsValid(table->versions))
		LockRelationOid(table->versions, RowExclusiveLock);
	if (OidIsValid(table->origins))
		LockRelationOid(table->origins, RowExclusiveLock);
	LockRelationOid(table->source, AccessShareLock);
}

/*
 * Writers of one registration row go one after the other, so that each changes
 * the newest committed row.  Separate from the apply lock: pause() must not wait
 * for a long batch.
 */
static void
registration_lock(Oid target)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, catalog_ids.maintained_table, target, 1);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	AcceptInvalidationMessages();
}

void
maintained_table_lock_privileges(Oid target)
{
	LOCKTAG		tag;

	catalog_ids_require();
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, catalog_ids.maintained_table, target, 2);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	AcceptInvalidationMessages();
}

/* --- registrations ------------------------------------------------------------ */

/* A copy of the row with this target, or NULL; rel is one of our catalogs. */
HeapTuple
row_of_target(Relation rel, Oid index, Oid target)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, index, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

static TableState
state_from_name(const char *name)
{
	for (int i = 0; i < lengthof(state_names); i++)
		if (strcmp(state_names[i], name) == 0)
			return (TableState) i;
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("unknown state \"%s\" in catalog \"maintained_table\"", name)));
}

const char *
table_state_name(TableState state)
{
	return state_names[state];
}

static Oid
oid_or_invalid(Datum value, bool isnull)
{
	return isnull ? InvalidOid : DatumGetObjectId(value);
}

bool
registration_is_copy(Oid target, int64 system_identifier, Oid database)
{
	return system_identifier != (int64) GetSystemIdentifier() || database != MyDatabaseId ||
		!maintained_table_is_guarded(target);
}

bool
maintained_table_is_guarded(Oid target)
{
	Relation	rel = table_open(TriggerRelationId, AccessShareLock);
	NameData	name;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		guarded;

	namestrcpy(&name, GUARD_TRIGGER);
	ScanKeyInit(&keys[0], Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(target));
	ScanKeyInit(&keys[1], Anum_pg_trigger_tgname, BTEqualStrategyNumber, F_NAMEEQ,
				NameGetDatum(&name));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 2, keys);
	tuple = systable_getnext(scan);
	guarded = HeapTupleIsValid(tuple) &&
		((Form_pg_trigger) GETSTRUCT(tuple))->tgenabled != TRIGGER_DISABLED;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return guarded;
}

MaintainedTable *
maintained_table_get(Oid target)
{
	MaintainedTable *table = maintained_table_read(target);

	/* a registration whose table is gone is none */
	return table != NULL && OidIsValid(table->owner) ? table : NULL;
}

MaintainedTable *
maintained_table_read(Oid target)
{
	Relation	rel;
	HeapTuple	tuple;
	HeapTuple	class_tuple;
	Datum		values[MT_NATTS];
	bool		isnull[MT_NATTS];
	MaintainedTable *table;

	if (!catalog_ids_find())
		return NULL;

	rel = table_open(catalog_ids.maintained_table, AccessShareLock);
	tuple = row_of_target(rel, catalog_ids.maintained_table_pkey, target);
	if (!HeapTupleIsValid(tuple))
	{
		table_close(rel, AccessShareLock);
		return NULL;
	}
	heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);

	table = palloc0(sizeof(MaintainedTable));
	table->target = target;
	class_tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(target));
	if (HeapTupleIsValid(class_tuple))
	{
		table->owner = ((Form_pg_class) GETSTRUCT(class_tuple))->relowner;
		ReleaseSysCache(class_tuple);
	}
	table->source = DatumGetObjectId(values[MT_SOURCE - 1]);
	table->versions = oid_or_invalid(values[MT_VERSIONS - 1], isnull[MT_VERSIONS - 1]);
	table->history = oid_or_invalid(values[MT_HISTORY - 1], isnull[MT_HISTORY - 1]);
	table->origins = oid_or_invalid(values[MT_ORIGINS - 1], isnull[MT_ORIGINS - 1]);
	table->append = DatumGetBool(values[MT_APPEND - 1]);
	table->columns = names_from_array(values[MT_COLUMNS - 1], &table->ncolumns);
	table->source_columns = names_from_array(values[MT_SOURCE_COLUMNS - 1], &table->nkeys);
	if (table->nkeys != table->ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("arrays of different lengths in catalog \"maintained_table\"")));
	table->key_columns = names_from_array(values[MT_KEY_COLUMNS - 1], &table->nkeys);
	if (!isnull[MT_EVENT_TIME - 1])
		table->event_time = pstrdup(NameStr(*DatumGetName(values[MT_EVENT_TIME - 1])));
	table->current_by_event_time =
		strcmp(TextDatumGetCString(values[MT_CURRENT_BY - 1]), "event_time") == 0;
	table->on_error = strcmp(TextDatumGetCString(values[MT_ON_ERROR - 1]), "skip") == 0 ?
		ON_ERROR_SKIP : ON_ERROR_STOP;
	table->state = state_from_name(TextDatumGetCString(values[MT_STATE - 1]));
	table->foreign_copy =
		registration_is_copy(target, DatumGetInt64(values[MT_SYSTEM_IDENTIFIER - 1]),
							 DatumGetObjectId(values[MT_DATABASE_OID - 1]));

	heap_freetuple(tuple);
	table_close(rel, AccessShareLock);
	return table;
}

/* Values of the columns that DDL may change */
static void
registration_values(const MaintainedTable *table, Datum *values, bool *isnull, bool *replace)
{
#define PUT(column, value, null) \
	do { \
		values[(column) - 1] = (value); \
		isnull[(column) - 1] = (null); \
		replace[(column) - 1] = true; \
	} while (0)

	PUT(MT_SOURCE, ObjectIdGetDatum(table->source), false);
	PUT(MT_VERSIONS, ObjectIdGetDatum(table->versions), !OidIsValid(table->versions));
	PUT(MT_HISTORY, ObjectIdGetDatum(table->history), !OidIsValid(table->history));
	PUT(MT_ORIGINS, ObjectIdGetDatum(table->origins), !OidIsValid(table->origins));
	PUT(MT_APPEND, BoolGetDatum(table->append), false);
	PUT(MT_COLUMNS, PointerGetDatum(names_to_array(table->columns, table->ncolumns)), false);
	PUT(MT_SOURCE_COLUMNS,
		PointerGetDatum(names_to_array(table->source_columns, table->ncolumns)), false);
	PUT(MT_KEY_COLUMNS, PointerGetDatum(names_to_array(table->key_columns, table->nkeys)), false);
	if (table->event_time != NULL)
	{
		Name		name = palloc0(sizeof(NameData));

		namestrcpy(name, table->event_time);
		PUT(MT_EVENT_TIME, NameGetDatum(name), false);
	}
	else
		PUT(MT_EVENT_TIME, (Datum) 0, true);
	PUT(MT_CURRENT_BY,
		CStringGetTextDatum(table->current_by_event_time ? "event_time" : "offset"), false);
	PUT(MT_ON_ERROR, CStringGetTextDatum(table->on_error == ON_ERROR_SKIP ? "skip" : "stop"), false);
#undef PUT
}

void
maintained_table_insert(const MaintainedTable *table)
{
	Relation	rel;
	HeapTuple	tuple;
	Datum		values[MT_NATTS] = {0};
	bool		isnull[MT_NATTS];
	bool		replace[MT_NATTS];
	Datum		now = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());

	catalog_ids_require();
	memset(isnull, true, sizeof(isnull));
	registration_values(table, values, isnull, replace);
	values[MT_TARGET - 1] = ObjectIdGetDatum(table->target);
	values[MT_STATE - 1] = CStringGetTextDatum(table_state_name(table->state));
	values[MT_STATE_SINCE - 1] = now;
	values[MT_SYSTEM_IDENTIFIER - 1] = Int64GetDatum((int64) GetSystemIdentifier());
	values[MT_DATABASE_OID - 1] = ObjectIdGetDatum(MyDatabaseId);
	values[MT_CREATED_AT - 1] = now;
	values[MT_MISSING_VALUES - 1] = Int64GetDatum(0);
	isnull[MT_TARGET - 1] = isnull[MT_STATE - 1] = isnull[MT_STATE_SINCE - 1] = false;
	isnull[MT_SYSTEM_IDENTIFIER - 1] = isnull[MT_DATABASE_OID - 1] = false;
	isnull[MT_CREATED_AT - 1] = isnull[MT_MISSING_VALUES - 1] = false;

	rel = table_open(catalog_ids.maintained_table, RowExclusiveLock);
	registration_lock(table->target);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/* Change columns of a registration under its lock; false if it does not exist. */
static bool
registration_modify(Oid target, Datum *values, bool *isnull, bool *replace)
{
	Relation	rel;
	HeapTuple	tuple;

	rel = table_open(catalog_ids.maintained_table, RowExclusiveLock);
	registration_lock(target);
	tuple = row_of_target(rel, catalog_ids.maintained_table_pkey, target);
	if (HeapTupleIsValid(tuple))
	{
		HeapTuple	changed;

		/* state_since tells when the state changed, not when it was said again */
		if (replace[MT_STATE_SINCE - 1])
		{
			bool		null;
			Datum		state = heap_getattr(tuple, MT_STATE, RelationGetDescr(rel), &null);

			if (strcmp(TextDatumGetCString(state),
					   TextDatumGetCString(values[MT_STATE - 1])) == 0)
				replace[MT_STATE_SINCE - 1] = false;
		}

		changed = heap_modify_tuple(tuple, RelationGetDescr(rel), values, isnull, replace);
		CatalogTupleUpdate(rel, &tuple->t_self, changed);
		heap_freetuple(changed);
	}
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
	return HeapTupleIsValid(tuple);
}

void
maintained_table_update(const MaintainedTable *table)
{
	Datum		values[MT_NATTS] = {0};
	bool		isnull[MT_NATTS] = {0};
	bool		replace[MT_NATTS] = {0};

	catalog_ids_require();
	registration_values(table, values, isnull, replace);
	(void) registration_modify(table->target, values, isnull, replace);
}

void
maintained_table_adopt(Oid target)
{
	Datum		values[MT_NATTS] = {0};
	bool		isnull[MT_NATTS] = {0};
	bool		replace[MT_NATTS] = {0};

	catalog_ids_require();
	values[MT_SYSTEM_IDENTIFIER - 1] = Int64GetDatum((int64) GetSystemIdentifier());
	values[MT_DATABASE_OID - 1] = ObjectIdGetDatum(MyDatabaseId);
	replace[MT_SYSTEM_IDENTIFIER - 1] = replace[MT_DATABASE_OID - 1] = true;
	(void) registration_modify(target, values, isnull, replace);
}

void
missing_values_add(Oid target, int64 n)
{
	Relation	rel;
	HeapTuple	tuple;
	Datum		values[MT_NATTS] = {0};
	bool		isnull[MT_NATTS] = {0};
	bool		replace[MT_NATTS] = {0};
	int64		before = 0;

	catalog_ids_require();
	rel = table_open(catalog_ids.maintained_table, AccessShareLock);
	tuple = row_of_target(rel, catalog_ids.maintained_table_pkey, target);
	if (n >= 0 && HeapTupleIsValid(tuple))
	{
		bool		null;
		Datum		count = heap_getattr(tuple, MT_MISSING_VALUES, RelationGetDescr(rel), &null);

		before = null ? 0 : DatumGetInt64(count);
	}
	table_close(rel, AccessShareLock);
	values[MT_MISSING_VALUES - 1] = Int64GetDatum(n < 0 ? 0 : before + n);
	replace[MT_MISSING_VALUES - 1] = true;
	(void) registration_modify(target, values, isnull, replace);
}

void
table_state_set(Oid target, TableState state, int sqlerrcode, const char *detail,
				int32 source, int64 offset)
{
	Datum		values[MT_NATTS] = {0};
	bool		isnull[MT_NATTS] = {0};
	bool		replace[MT_NATTS] = {0};
	bool		has_error = sqlerrcode != 0;

	catalog_ids_require();
	values[MT_STATE - 1] = CStringGetTextDatum(table_state_name(state));
	values[MT_STATE_SINCE - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	if (has_error)
		values[MT_ERROR_SQLSTATE - 1] = CStringGetTextDatum(unpack_sql_state(sqlerrcode));
	if (detail != NULL)
		values[MT_ERROR_MESSAGE - 1] = CStringGetTextDatum(detail);
	values[MT_ERROR_PARTITION - 1] = Int32GetDatum(source);
	values[MT_ERROR_OFFSET - 1] = Int64GetDatum(offset);
	isnull[MT_ERROR_SQLSTATE - 1] = !has_error;
	isnull[MT_ERROR_MESSAGE - 1] = detail == NULL;
	isnull[MT_ERROR_PARTITION - 1] = !has_error || source < 0;
	isnull[MT_ERROR_OFFSET - 1] = !has_error || offset < 0;
	for (int column = MT_STATE; column <= MT_ERROR_OFFSET; column++)
		replace[column - 1] = true;
	(void) registration_modify(target, values, isnull, replace);
}

bool
registration_error_get(Oid target, RegistrationError *error)
{
	Relation	rel;
	HeapTuple	tuple;
	Datum		values[MT_NATTS];
	bool		isnull[MT_NATTS];
	bool		found = false;

	catalog_ids_require();
	memset(error, 0, sizeof(*error));
	error->source = -1;
	error->offset = -1;
	rel = table_open(catalog_ids.maintained_table, AccessShareLock);
	tuple = row_of_target(rel, catalog_ids.maintained_table_pkey, target);
	if (HeapTupleIsValid(tuple))
	{
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
		found = !isnull[MT_ERROR_SQLSTATE - 1];
		if (found)
		{
			const char *state = TextDatumGetCString(values[MT_ERROR_SQLSTATE - 1]);

			if (strlen(state) == 5)
				error->sqlerrcode = MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
		}
		error->message = found && !isnull[MT_ERROR_MESSAGE - 1] ?
			TextDatumGetCString(values[MT_ERROR_MESSAGE - 1]) : pstrdup("");
		if (found && !isnull[MT_ERROR_PARTITION - 1])
			error->source = DatumGetInt32(values[MT_ERROR_PARTITION - 1]);
		if (found && !isnull[MT_ERROR_OFFSET - 1])
			error->offset = DatumGetInt64(values[MT_ERROR_OFFSET - 1]);
		heap_freetuple(tuple);
	}
	table_close(rel, AccessShareLock);
	return found;
}

void
delete_rows_of_target(Oid relid, Oid index, Oid target)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(target));
	scan = systable_beginscan(rel, index, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		CatalogTupleDelete(rel, &tuple->t_self);
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
}

void
maintained_table_delete(Oid target)
{
	if (!catalog_ids_find())
		return;
	registration_lock(target);
	delete_rows_of_target(catalog_ids.maintained_table, catalog_ids.maintained_table_pkey, target);
	delete_rows_of_target(catalog_ids.position_state, catalog_ids.position_state_pkey, target);
	delete_rows_of_target(catalog_ids.topic_source, catalog_ids.topic_source_pkey, target);
	delete_rows_of_target(catalog_ids.message_error, catalog_ids.message_error_pkey, target);
	CommandCounterIncrement();
}

/* OIDs in column MT_TARGET of the rows whose 'column' is 'value' (0: of all rows) */
static List *
targets_where(int column, Oid value)
{
	List	   *targets = NIL;
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!catalog_ids_find())
		return NIL;
	rel = table_open(catalog_ids.maintained_table, AccessShareLock);
	if (column != 0)
		ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
	scan = systable_beginscan(rel, InvalidOid, false, NULL, column != 0 ? 1 : 0, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		null;

		targets = lappend_oid(targets,
							  DatumGetObjectId(heap_getattr(tuple, MT_TARGET,
															RelationGetDescr(rel), &null)));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	/* the order of the heap changes with every update */
	list_sort(targets, list_oid_cmp);
	return targets;
}

List *
maintained_table_targets(void)
{
	return targets_where(0, InvalidOid);
}

Oid
maintained_table_of_part(Oid relid)
{
	static const int columns[] = {MT_VERSIONS, MT_HISTORY, MT_ORIGINS};

	for (int i = 0; i < lengthof(columns); i++)
	{
		List	   *targets = targets_where(columns[i], relid);

		if (targets != NIL)
			return linitial_oid(targets);
	}
	return InvalidOid;
}
