/*
 * parts.c
 *	  Makes the objects around a maintained table and keeps them with it: names,
 *	  definitions, dependencies, privileges.  Must not know Kafka, nor how
 *	  versions are written or read.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "history/history_sql.h"
#include "history/versions.h"
#include "materialize/parts.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

static void set_relation_acl(Oid relid, Acl *acl);

static const char *const function_suffixes[] = {"__as_of", "__between", "__from_to"};

/* --- names -------------------------------------------------------------------- */

void
part_names(const char *target, PartNames *names)
{
	names->versions = history_object_name(target, HISTORY_SUFFIX_VERSIONS);
	names->history = history_object_name(target, HISTORY_SUFFIX_HISTORY);
	names->origins = history_object_name(target, "__origins");
	for (int i = 0; i < lengthof(function_suffixes); i++)
		names->functions[i] = history_object_name(target, function_suffixes[i]);
}

bool
column_name_is_reserved(const char *name)
{
	return strncmp(name, "__", 2) == 0 || strcmp(name, HISTORY_SYSTEM_TIME) == 0;
}

void
column_name_refuse(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_RESERVED_NAME),
			 errmsg("a maintained table cannot have a column named \"%s\"", name),
			 errdetail("\"%s\" and names that begin with \"__\" are those of its history.",
					   HISTORY_SYSTEM_TIME),
			 errhint("Give the column of the foreign table another name, and the option field '%s'.", name)));
}

char *
relation_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/* --- running DDL ---------------------------------------------------------------- */

int
ddl_session_enter(void)
{
	int			level = NewGUCNestLevel();

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("default_table_access_method", "heap", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	return level;
}

void
ddl_session_leave(int guc_level)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	AtEOXact_GUC(true, guc_level);
}

void
ddl_run(const char *format,...)
{
	StringInfoData sql;
	int			result;

	initStringInfo(&sql);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&sql, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&sql, needed);
	}

	result = SPI_execute(sql.data, false, 0);
	if (result < 0)
		elog(ERROR, "%s: %s", SPI_result_code_string(result), sql.data);
	pfree(sql.data);
	CommandCounterIncrement();
}

/* --- making the parts -------------------------------------------------------------- */

void
append_column(StringInfo sql, Form_pg_attribute att, bool not_null)
{
	appendStringInfo(sql, "%s %s", quote_identifier(NameStr(att->attname)),
					 format_type_extended(att->atttypid, att->atttypmod,
										  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
	if (OidIsValid(att->attcollation) && att->attcollation != get_typcollation(att->atttypid))
		appendStringInfo(sql, " COLLATE %s", generate_collation_name(att->attcollation));
	if (not_null)
		appendStringInfoString(sql, " NOT NULL");
}

static bool
is_key(const MaintainedTable *table, const char *name)
{
	for (int i = 0; i < table->nkeys; i++)
		if (strcmp(table->key_columns[i], name) == 0)
			return true;
	return false;
}

/* The current table as the history's SQL wants to know it. */
static HistorySpec *
history_spec(const MaintainedTable *table)
{
	HistorySpec *spec = palloc0(sizeof(HistorySpec));
	Relation	rel = relation_open(table->target, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	HistoryColumn *columns = palloc0(sizeof(HistoryColumn) * Max(desc->natts, 1));
	int		   *keys = palloc0(sizeof(int) * Max(table->nkeys, 1));
	Relation	source;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		HistoryColumn *column = &columns[spec->ncolumns];

		if (att->attisdropped)
			continue;
		column->name = pstrdup(NameStr(att->attname));
		column->type = att->atttypid;
		column->typmod = att->atttypmod;
		column->collation = att->attcollation;
		for (int k = 0; k < table->nkeys; k++)
			if (strcmp(table->key_columns[k], column->name) == 0)
				keys[k] = spec->ncolumns;
		spec->ncolumns++;
	}
	spec->schema = get_namespace_name(RelationGetNamespace(rel));
	spec->table = pstrdup(RelationGetRelationName(rel));
	spec->columns = columns;
	spec->nkeys = table->nkeys;
	spec->keys = keys;
	relation_close(rel, AccessShareLock);

	source = relation_open(table->source, AccessShareLock);
	spec->time_zone = topic_table_get(source)->time_zone;
	relation_close(source, AccessShareLock);
	return spec;
}

static void
run_all(List *commands)
{
	ListCell   *lc;

	foreach(lc, commands)
		ddl_run("%s", (char *) lfirst(lc));
}

static void
create_guard(Oid relid)
{
	ddl_run("CREATE TRIGGER " GUARD_TRIGGER " BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s "
			"FOR EACH STATEMENT EXECUTE FUNCTION upsert_kafka.refuse_dml()", relation_name(relid));
}

/* The last message of each key and partition, in the layout that versions.h describes. */
static Oid
create_origins(const MaintainedTable *table, const char *schema, const char *name)
{
	char	   *qualified = quote_qualified_identifier(schema, name);
	Relation	rel = relation_open(table->target, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", qualified);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		append_column(&sql, att, is_key(table, NameStr(att->attname)));
		appendStringInfoString(&sql, ", ");
	}
	relation_close(rel, AccessShareLock);
	/* overwritten by each message of its key: leave room for HOT */
	appendStringInfoString(&sql,
						   VERSION_VALID_FROM " timestamp with time zone NOT NULL, "
						   VERSION_SEQ " bigint NOT NULL, "
						   VERSION_OP " \"char\" NOT NULL, "
						   VERSION_PARTITION " integer NOT NULL, "
						   VERSION_OFFSET " bigint NOT NULL, "
						   VERSION_TIMESTAMP " timestamp with time zone, "
						   VERSION_EVENT_TIME " timestamp with time zone, "
						   VERSION_CAUSE " bigint) WITH (fillfactor = 60)");
	ddl_run("%s", sql.data);

	resetStringInfo(&sql);
	appendStringInfo(&sql, "CREATE UNIQUE INDEX ON %s (", qualified);
	for (int i = 0; i < table->nkeys; i++)
		appendStringInfo(&sql, "%s, ", quote_identifier(table->key_columns[i]));
	appendStringInfoString(&sql, VERSION_PARTITION ")");
	ddl_run("%s", sql.data);
	pfree(sql.data);

	ddl_run("COMMENT ON TABLE %s IS %s", qualified,
			quote_literal_cstr(psprintf("last message of each key of %s in each partition",
										get_rel_name(table->target))));
	return get_relname_relid(name, get_rel_namespace(table->target));
}

void
parts_create(MaintainedTable *table, bool history)
{
	Oid			namespace = get_rel_namespace(table->target);
	PartNames	names;

	part_names(get_rel_name(table->target), &names);
	create_guard(table->target);

	if (history)
	{
		HistorySpec *spec = history_spec(table);

		run_all(versions_create_commands(spec));
		ddl_run("%s", versions_index_command(spec));
		table->versions = get_relname_relid(names.versions, namespace);
		create_guard(table->versions);

		run_all(history_create_commands(spec));
		table->history = get_relname_relid(names.history, namespace);
	}
	else if (!table->append)
	{
		table->origins = create_origins(table, get_namespace_name(namespace), names.origins);
		create_guard(table->origins);
	}
	/* default privileges may have opened them to others */
	parts_mirror_privileges(table);
	parts_record_dependencies(table);
}

/*
 * CREATE OR REPLACE keeps views on them alive, but cannot rename a parameter: where
 * a key column has another name now, the functions that take it go first.
 */
void
parts_create_functions(const MaintainedTable *table, bool key_renamed)
{
	ListCell   *lc;

	if (!OidIsValid(table->history))
		return;
	if (key_renamed)
	{
		foreach(lc, parts_functions(table))
			ddl_run("DROP FUNCTION %s", format_procedure_qualified(lfirst_oid(lc)));
	}
	run_all(history_function_commands(history_spec(table)));
	parts_record_dependencies(table);
}

List *
parts_functions(const MaintainedTable *table)
{
	List	   *result = NIL;
	char	   *history;
	Oid			namespace;
	Oid			rowtype;
	int			base_len;

	if (!OidIsValid(table->history) || (history = get_rel_name(table->history)) == NULL)
		return NIL;
	base_len = (int) strlen(history) - (int) strlen(HISTORY_SUFFIX_HISTORY);
	if (base_len <= 0 || strcmp(history + base_len, HISTORY_SUFFIX_HISTORY) != 0)
		return NIL;
	namespace = get_rel_namespace(table->history);
	rowtype = get_rel_type_id(table->history);

	for (int i = 0; i < lengthof(function_suffixes); i++)
	{
		char	   *name = psprintf("%.*s%s", base_len, history, function_suffixes[i]);
		CatCList   *list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));

		for (int j = 0; j < list->n_members; j++)
		{
			Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(&list->members[j]->tuple);

			if (proc->pronamespace == namespace && proc->prorettype == rowtype)
				result = lappend_oid(result, proc->oid);
		}
		ReleaseSysCacheList(list);
	}
	return result;
}

/* --- what keeps them together ----------------------------------------------------- */

static void
depend_on_target(Oid class, Oid object, Oid target)
{
	ObjectAddress part;
	ObjectAddress table;

	ObjectAddressSet(part, class, object);
	ObjectAddressSet(table, RelationRelationId, target);
	(void) deleteDependencyRecordsForSpecific(class, object, DEPENDENCY_AUTO,
											  RelationRelationId, target);
	recordDependencyOn(&part, &table, DEPENDENCY_AUTO);
}

void
parts_record_dependencies(const MaintainedTable *table)
{
	const Oid	parts[] = {table->history, table->versions, table->origins};
	ListCell   *lc;

	for (int i = 0; i < lengthof(parts); i++)
		if (OidIsValid(parts[i]) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(parts[i])))
			depend_on_target(RelationRelationId, parts[i], table->target);
	foreach(lc, parts_functions(table))
		depend_on_target(ProcedureRelationId, lfirst_oid(lc), table->target);
	CommandCounterIncrement();
}

void
parts_drop(const MaintainedTable *table, DropBehavior behavior)
{
	const Oid	parts[] = {table->history, table->versions, table->origins};
	ObjectAddresses *objects = new_object_addresses();
	ObjectAddress object;
	ListCell   *lc;

	foreach(lc, parts_functions(table))
	{
		ObjectAddressSet(object, ProcedureRelationId, lfirst_oid(lc));
		add_exact_object_address(&object, objects);
	}
	for (int i = 0; i < lengthof(parts); i++)
	{
		if (!OidIsValid(parts[i]) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(parts[i])))
			continue;
		ObjectAddressSet(object, RelationRelationId, parts[i]);
		add_exact_object_address(&object, objects);
	}
	performMultipleDeletions(objects, behavior, 0);
	free_object_addresses(objects);
	CommandCounterIncrement();
}

/* --- privileges ---------------------------------------------------------------------- */

/*
 * The part of an ACL that a history takes over: what the owner has, and everybody
 * else's SELECT with its grantor and grant option.  NULL stays NULL.
 */
static Acl *
select_acl(const Acl *acl, Oid owner)
{
	Acl		   *result;
	AclItem    *to;
	int			n = 0;

	if (acl == NULL)
		return NULL;

	result = palloc0(ACL_N_SIZE(ACL_NUM(acl)));
	result->ndim = 1;
	result->elemtype = ACLITEMOID;
	ARR_LBOUND(result)[0] = 1;
	to = ACL_DAT(result);
	for (int i = 0; i < ACL_NUM(acl); i++)
	{
		AclItem		item = ACL_DAT(acl)[i];

		if (item.ai_grantee != owner)
			ACLITEM_SET_RIGHTS(item, ACLITEM_GET_RIGHTS(item) &
							   (ACL_SELECT | ACL_GRANT_OPTION_FOR(ACL_SELECT)));
		if (ACLITEM_GET_RIGHTS(item) != ACL_NO_RIGHTS)
			to[n++] = item;
	}
	ARR_DIMS(result)[0] = n;
	SET_VARSIZE(result, ACL_N_SIZE(n));
	return result;
}

static bool
acl_equal(const Acl *a, const Acl *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return ACL_NUM(a) == ACL_NUM(b) &&
		memcmp(ACL_DAT(a), ACL_DAT(b), ACL_NUM(a) * sizeof(AclItem)) == 0;
}

/* An ACL out of a syscache tuple, NULL if there is none */
static Acl *
tuple_acl(int cache, HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(cache, tuple, attnum, &isnull);

	return isnull ? NULL : DatumGetAclPCopy(value);
}

/* Who is named by an ACL must not be dropped: keep pg_shdepend right. */
static void
acl_dependencies(Oid relid, AttrNumber attnum, Oid owner, const Acl *old, const Acl *new)
{
	Oid		   *old_members = NULL;
	Oid		   *new_members = NULL;
	int			nold = old != NULL ? aclmembers(old, &old_members) : 0;
	int			nnew = new != NULL ? aclmembers(new, &new_members) : 0;

	updateAclDependencies(RelationRelationId, relid, attnum, owner,
						  nold, old_members, nnew, new_members);
}

/*
 * A copy of a relation's pg_class tuple that VACUUM and ANALYZE don't update in place
 * before the caller has done so, with UnlockTuple() afterwards.  GRANT does it this way since the
 * minor versions of late 2024, which let in-place updates wait for this lock.
 */
static HeapTuple
lock_class_tuple(Relation pg_class, Oid relid)
{
	ItemPointerData locked;

	ItemPointerSetInvalid(&locked);
	for (;;)
	{
		HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));

		if (ItemPointerIsValid(&locked))
		{
			if (HeapTupleIsValid(tuple) && ItemPointerEquals(&locked, &tuple->t_self))
				return tuple;
			UnlockTuple(pg_class, &locked, ExclusiveLock);
		}
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for relation %u", relid);
		locked = tuple->t_self;
		heap_freetuple(tuple);
		LockTuple(pg_class, &locked, ExclusiveLock);
		AcceptInvalidationMessages();
	}
}

static void
set_relation_acl(Oid relid, Acl *acl)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = lock_class_tuple(pg_class, relid);
	ItemPointerData locked = tuple->t_self;
	Acl		   *old;

	old = tuple_acl(RELOID, tuple, Anum_pg_class_relacl);
	if (!acl_equal(old, acl))
	{
		Datum		values[Natts_pg_class] = {0};
		bool		nulls[Natts_pg_class] = {0};
		bool		replace[Natts_pg_class] = {0};
		HeapTuple	changed;

		values[Anum_pg_class_relacl - 1] = PointerGetDatum(acl);
		nulls[Anum_pg_class_relacl - 1] = acl == NULL;
		replace[Anum_pg_class_relacl - 1] = true;
		changed = heap_modify_tuple(tuple, RelationGetDescr(pg_class), values, nulls, replace);
		CatalogTupleUpdate(pg_class, &changed->t_self, changed);
		acl_dependencies(relid, 0, ((Form_pg_class) GETSTRUCT(tuple))->relowner, old, acl);
		CommandCounterIncrement();
	}
	UnlockTuple(pg_class, &locked, ExclusiveLock);
	table_close(pg_class, RowExclusiveLock);
}

static void
set_column_acl(Oid relid, const char *column, Oid owner, Acl *acl)
{
	Relation	pg_attribute = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopyAttName(relid, column);

	if (HeapTupleIsValid(tuple))
	{
		Acl		   *old = tuple_acl(ATTNAME, tuple, Anum_pg_attribute_attacl);

		if (!acl_equal(old, acl))
		{
			Datum		values[Natts_pg_attribute] = {0};
			bool		nulls[Natts_pg_attribute] = {0};
			bool		replace[Natts_pg_attribute] = {0};
			HeapTuple	changed;

			values[Anum_pg_attribute_attacl - 1] = PointerGetDatum(acl);
			nulls[Anum_pg_attribute_attacl - 1] = acl == NULL;
			replace[Anum_pg_attribute_attacl - 1] = true;
			changed = heap_modify_tuple(tuple, RelationGetDescr(pg_attribute), values, nulls, replace);
			CatalogTupleUpdate(pg_attribute, &changed->t_self, changed);
			acl_dependencies(relid, ((Form_pg_attribute) GETSTRUCT(tuple))->attnum, owner, old, acl);
			CommandCounterIncrement();
		}
	}
	table_close(pg_attribute, RowExclusiveLock);
}

/*
 * Written into the catalogs rather than by GRANT: the history gets the very items of
 * the table, grantors and grant options included, whoever runs the GRANT.
 */
void
parts_mirror_privileges(const MaintainedTable *table)
{
	HeapTuple	tuple;
	Relation	rel;
	TupleDesc	desc;
	Acl		   *acl;

	/* all rows, whatever row security says, and all that they ever were: for the owner */
	if (OidIsValid(table->versions) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table->versions)))
		set_relation_acl(table->versions, NULL);
	if (OidIsValid(table->origins) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table->origins)))
		set_relation_acl(table->origins, NULL);

	if (!OidIsValid(table->history) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table->history)))
		return;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table->target));
	if (!HeapTupleIsValid(tuple))
		return;
	acl = select_acl(tuple_acl(RELOID, tuple, Anum_pg_class_relacl), table->owner);
	ReleaseSysCache(tuple);
	set_relation_acl(table->history, acl);

	rel = relation_open(table->target, AccessShareLock);
	desc = RelationGetDescr(rel);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		/* the relation's descriptor has no ACLs */
		tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table->target), Int16GetDatum(att->attnum));
		if (!HeapTupleIsValid(tuple))
			continue;
		acl = select_acl(tuple_acl(ATTNUM, tuple, Anum_pg_attribute_attacl), table->owner);
		ReleaseSysCache(tuple);
		if (acl != NULL && ACL_NUM(acl) == 0)
			acl = NULL;
		set_column_acl(table->history, NameStr(att->attname), table->owner, acl);
	}
	relation_close(rel, AccessShareLock);
}
