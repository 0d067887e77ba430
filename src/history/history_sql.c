/*
 * history_sql.c
 *	  SQL text of a versions table, a history table and its functions.
 *
 * Owns the form of t__as_of and its kin: LANGUAGE sql, STABLE, not STRICT, no
 * SET, RETURNS SETOF, string body.  Only that form is inlined by the planner,
 * which makes a lateral call one index probe, and follows ADD and DROP COLUMN.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "history/history_sql.h"
#include "history/versions.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* One function of a history: how it is called and what it selects. */
typedef struct HistoryFunction
{
	char	   *name;
	char	   *parameters;		/* with names, for CREATE */
	char	   *types;			/* without, for a signature */
	char	   *condition;
	const char *comment;
} HistoryFunction;

static const struct
{
	const char *name;
	const char *definition;
}			system_columns[VERSION_NSYSTEM] =
{
	{VERSION_VALID_FROM, "pg_catalog.timestamptz NOT NULL"},
	{VERSION_SEQ, "pg_catalog.int8 NOT NULL"},
	{VERSION_OP, "pg_catalog.\"char\" NOT NULL"},
	{VERSION_PARTITION, "pg_catalog.int4 NOT NULL"},
	{VERSION_OFFSET, "pg_catalog.int8 NOT NULL"},
	{VERSION_TIMESTAMP, "pg_catalog.timestamptz"},
	{VERSION_EVENT_TIME, "pg_catalog.timestamptz"},
	{VERSION_CAUSE, "pg_catalog.int8"},
};

char *
history_object_name(const char *table, const char *suffix)
{
	char	   *name = psprintf("%s%s", table, suffix);

	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name \"%s\" is too long", name),
				 errdetail("Names have at most %d bytes.", NAMEDATALEN - 1),
				 errhint("Use a table name of at most %d bytes.",
						 (int) (NAMEDATALEN - 1 - strlen(suffix)))));
	return name;
}

static char *
object_reference(const HistorySpec *spec, const char *suffix)
{
	return quote_qualified_identifier(spec->schema,
									  history_object_name(spec->table, suffix));
}

/* The system columns' names are taken; say so before CREATE TABLE says it worse. */
static void
check_column_names(const HistorySpec *spec)
{
	for (int i = 0; i < spec->ncolumns; i++)
	{
		bool		taken = strcmp(spec->columns[i].name, HISTORY_SYSTEM_TIME) == 0;

		for (int j = 0; j < VERSION_NSYSTEM; j++)
			taken = taken || strcmp(spec->columns[i].name, system_columns[j].name) == 0;
		if (taken)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("column name \"%s\" is used by the history of table \"%s\"",
							spec->columns[i].name, spec->table),
					 errhint("Rename the column of the foreign table, and name the message's field by its option field.")));
	}
}

static char *
collation_reference(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *text;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	text = quote_qualified_identifier(get_namespace_name(form->collnamespace),
									  NameStr(form->collname));
	ReleaseSysCache(tuple);
	return text;
}

/* name type [COLLATE ..] [NOT NULL], .. of the current table's columns */
static void
append_columns(StringInfo sql, const HistorySpec *spec, bool keys_not_null)
{
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const HistoryColumn *column = &spec->columns[i];

		appendStringInfo(sql, "%s%s %s", i > 0 ? ", " : "",
						 quote_identifier(column->name),
						 format_type_extended(column->type, column->typmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(column->collation) && column->collation != get_typcollation(column->type))
			appendStringInfo(sql, " COLLATE %s", collation_reference(column->collation));
		for (int k = 0; keys_not_null && k < spec->nkeys; k++)
		{
			if (spec->keys[k] == i)
				appendStringInfoString(sql, " NOT NULL");
		}
	}
}

List *
versions_create_commands(const HistorySpec *spec)
{
	StringInfoData sql;
	char	   *versions = object_reference(spec, HISTORY_SUFFIX_VERSIONS);

	check_column_names(spec);

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", versions);
	append_columns(&sql, spec, true);
	for (int i = 0; i < VERSION_NSYSTEM; i++)
		appendStringInfo(&sql, ", %s %s", system_columns[i].name, system_columns[i].definition);
	appendStringInfoChar(&sql, ')');

	return list_make2(sql.data,
					  psprintf("COMMENT ON TABLE %s IS %s", versions,
							   quote_literal_cstr(psprintf("versions of %s, read through %s",
														   spec->table,
														   history_object_name(spec->table, HISTORY_SUFFIX_HISTORY)))));
}

char *
versions_index_command(const HistorySpec *spec)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE INDEX ON %s (", object_reference(spec, HISTORY_SUFFIX_VERSIONS));
	for (int k = 0; k < spec->nkeys; k++)
		appendStringInfo(&sql, "%s, ", quote_identifier(spec->columns[spec->keys[k]].name));
	appendStringInfo(&sql, "%s, %s)", VERSION_VALID_FROM, VERSION_SEQ);
	return sql.data;
}

/* The equality of a key column: its type's own, wherever the type lives (citext ..). */
static char *
key_equality(const HistorySpec *spec, const HistoryColumn *column)
{
	TypeCacheEntry *type = lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_EQ_OPR);
	HeapTuple	tuple = NULL;
	Form_pg_operator form;
	char	   *text;

	if (OidIsValid(type->btree_opf) && OidIsValid(type->eq_opr))
		tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(type->eq_opr));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("type %s of key column \"%s\" has no default btree operator class",
						format_type_be(column->type), column->name)));
	form = (Form_pg_operator) GETSTRUCT(tuple);
	text = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return text;
}

/*
 * t__as_of(ts), t__as_of(ts, key columns), t__between and t__from_to, each for timestamptz
 * and for timestamp, which is read in the table's time zone: a bare cast would
 * follow the session's.
 */
static List *
history_functions(const HistorySpec *spec)
{
	static const char *const moment_types[] = {"pg_catalog.timestamptz", "pg_catalog.timestamp"};
	List	   *functions = NIL;
	StringInfoData key_parameters;
	StringInfoData key_types;
	StringInfoData key_condition;
	const char *moment_name = "ts ";

	initStringInfo(&key_parameters);
	initStringInfo(&key_types);
	initStringInfo(&key_condition);
	for (int k = 0; k < spec->nkeys; k++)
	{
		const HistoryColumn *column = &spec->columns[spec->keys[k]];
		char	   *type = format_type_extended(column->type, -1, FORMAT_TYPE_FORCE_QUALIFY);

		/* two parameters can't have one name */
		if (strcmp(column->name, "ts") == 0)
			moment_name = "";
		appendStringInfo(&key_parameters, ", %s %s", quote_identifier(column->name), type);
		appendStringInfo(&key_types, ", %s", type);
		appendStringInfo(&key_condition, "h.%s %s ", quote_identifier(column->name),
						 key_equality(spec, column));
		/* arguments take the collation of the call, the index has the column's */
		if (OidIsValid(column->collation))
			appendStringInfo(&key_condition, "($%d COLLATE %s) AND ", k + 2,
							 collation_reference(column->collation));
		else
			appendStringInfo(&key_condition, "$%d AND ", k + 2);
	}

	for (int i = 0; i < lengthof(moment_types); i++)
	{
		const char *type = moment_types[i];
		const char *first = "$1";
		const char *second = "$2";
		HistoryFunction *function;

		if (i > 0)
		{
			char	   *zone = quote_literal_cstr(spec->time_zone);

			first = psprintf("pg_catalog.timezone(%s::pg_catalog.text, $1)", zone);
			second = psprintf("pg_catalog.timezone(%s::pg_catalog.text, $2)", zone);
		}

		function = palloc0(sizeof(HistoryFunction));
		function->name = history_object_name(spec->table, "__as_of");
		function->parameters = psprintf("ts %s", type);
		function->types = pstrdup(type);
		function->condition = psprintf("h." HISTORY_SYSTEM_TIME " OPERATOR(pg_catalog.@>) %s", first);
		function->comment = "rows as of a moment (FOR SYSTEM_TIME AS OF)";
		functions = lappend(functions, function);

		if (spec->nkeys > 0)
		{
			function = palloc0(sizeof(HistoryFunction));
			function->name = history_object_name(spec->table, "__as_of");
			function->parameters = psprintf("%s%s%s", moment_name, type, key_parameters.data);
			function->types = psprintf("%s%s", type, key_types.data);
			function->condition = psprintf("%sh." HISTORY_SYSTEM_TIME " OPERATOR(pg_catalog.@>) %s",
										   key_condition.data, first);
			function->comment = "the row of one key as of a moment";
			functions = lappend(functions, function);
		}

		/*
		 * SQL:2011's predicates (a > b and NULL select nothing).  The CASE
		 * keeps a > b from tstzrange(), which refuses it, and NULL, which it
		 * takes as unbounded.
		 */
		for (int inclusive = 1; inclusive >= 0; inclusive--)
		{
			function = palloc0(sizeof(HistoryFunction));
			function->name = history_object_name(spec->table, inclusive ? "__between" : "__from_to");
			function->parameters = psprintf("from_time %s, to_time %s", type, type);
			function->types = psprintf("%s, %s", type, type);
			function->condition =
				psprintf("h." HISTORY_SYSTEM_TIME " OPERATOR(pg_catalog.&&)"
						 " CASE WHEN %s OPERATOR(pg_catalog.<=) %s"
						 " THEN pg_catalog.tstzrange(%s, %s, '%s'::pg_catalog.text) END",
						 first, second, first, second, inclusive ? "[]" : "[)");
			function->comment = inclusive ?
				"versions between two moments, the second included (FOR SYSTEM_TIME BETWEEN)" :
				"versions between two moments, the second excluded (FOR SYSTEM_TIME FROM .. TO)";
			functions = lappend(functions, function);
		}
	}

	return functions;
}

static char *
function_signature(const HistorySpec *spec, const HistoryFunction *function)
{
	return psprintf("%s(%s)", quote_qualified_identifier(spec->schema, function->name),
					function->types);
}

List *
history_function_commands(const HistorySpec *spec)
{
	List	   *commands = NIL;
	ListCell   *lc;
	char	   *history = object_reference(spec, HISTORY_SUFFIX_HISTORY);

	foreach(lc, history_functions(spec))
	{
		HistoryFunction *function = lfirst(lc);
		char	   *body = psprintf("SELECT h.* FROM %s AS h WHERE %s", history, function->condition);

		commands = lappend(commands,
						   psprintf("CREATE OR REPLACE FUNCTION %s(%s) RETURNS SETOF %s"
									" LANGUAGE sql STABLE PARALLEL SAFE AS %s",
									quote_qualified_identifier(spec->schema, function->name),
									function->parameters, history, quote_literal_cstr(body)));
		commands = lappend(commands,
						   psprintf("COMMENT ON FUNCTION %s IS %s",
									function_signature(spec, function),
									quote_literal_cstr(function->comment)));
	}
	return commands;
}

List *
history_function_signatures(const HistorySpec *spec, List **names)
{
	List	   *signatures = NIL;
	ListCell   *lc;

	if (names != NULL)
		*names = NIL;
	foreach(lc, history_functions(spec))
	{
		HistoryFunction *function = lfirst(lc);

		signatures = lappend(signatures, function_signature(spec, function));
		if (names != NULL)
			*names = lappend(*names, function->name);
	}
	return signatures;
}

List *
history_create_commands(const HistorySpec *spec)
{
	StringInfoData sql;
	char	   *history = object_reference(spec, HISTORY_SUFFIX_HISTORY);

	check_column_names(spec);

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE FOREIGN TABLE %s (", history);
	append_columns(&sql, spec, false);
	appendStringInfo(&sql, ", " HISTORY_SYSTEM_TIME " pg_catalog.tstzrange NOT NULL)"
					 " SERVER upsert_kafka_history");

	return list_concat(list_make2(sql.data,
								  psprintf("COMMENT ON FOREIGN TABLE %s IS %s", history,
										   quote_literal_cstr(psprintf("versions of %s, each with the time [from, to) in which it held",
																	   spec->table)))),
					   history_function_commands(spec));
}
