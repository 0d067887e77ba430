/*
 * topic_table.c
 *	  A foreign table on a topic, resolved: its options, its columns' options and
 *	  everything that only shows when they are seen together (decision 17).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "fdw/option_list.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

extern Datum upsert_kafka_topic_validator(PG_FUNCTION_ARGS);

bool
topic_server_is_ours(Oid serverid)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(GetForeignServer(serverid)->fdwid);
	FmgrInfo	finfo;

	if (!OidIsValid(wrapper->fdwvalidator))
		return false;
	/* by what the wrapper does: there may be several, under other names */
	fmgr_info(wrapper->fdwvalidator, &finfo);
	return finfo.fn_addr == upsert_kafka_topic_validator;
}

bool
topic_table_is_ours(Oid relid)
{
	return get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE &&
		topic_server_is_ours(GetForeignServerIdByRelId(relid));
}

/* An array of a composite (text, bytea), whatever its fields are called. */
static bool
is_header_array(Oid type)
{
	Oid			element = get_element_type(type);
	TupleDesc	desc;
	int			nlive = 0;
	bool		ok = true;

	if (!OidIsValid(element) || get_typtype(element) != TYPTYPE_COMPOSITE)
		return false;
	desc = lookup_rowtype_tupdesc(element, -1);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (att->atttypid != (nlive == 0 ? TEXTOID : BYTEAOID))
			ok = false;
		nlive++;
	}
	ReleaseTupleDesc(desc);
	return ok && nlive == 2;
}

static const char millisecond_types[] = "timestamp with time zone or timestamp, with at least 3 fractional digits";

/* Milliseconds must fit: rounding would move rows to another moment. */
static bool
is_millisecond_type(const TopicColumn *column)
{
	return (column->type == TIMESTAMPTZOID || column->type == TIMESTAMPOID) &&
		(column->typmod < 0 || column->typmod >= 3);
}

static void
check_metadata_type(const TopicTable *table, const TopicColumn *column)
{
	const char *wanted = NULL;
	Oid			type = column->type;

	const FormatMetadata *of_format;

	switch (column->metadata)
	{
		case META_NONE:
			return;
		case META_FORMAT:
			of_format = format_metadata(table->value_format, column->field);
			if (of_format == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
						 errmsg("value format \"%s\" of foreign table \"%s\" has no metadata \"%s\"",
								table->value_format->name, table->name, metadata_name(column)),
						 errdetail("It is to be shown by column \"%s\".", column->name)));
			if (of_format->type == TIMESTAMPTZOID)
			{
				if (!is_millisecond_type(column))
					wanted = millisecond_types;
			}
			else if (type != of_format->type)
				wanted = format_type_be(of_format->type);
			break;
		case META_TOPIC:
		case META_TIMESTAMP_TYPE:
		case META_ROW_KIND:
			if (type != TEXTOID)
				wanted = "text";
			break;
		case META_PARTITION:
			if (type != INT4OID && type != INT8OID)
				wanted = "integer or bigint";
			break;
		case META_LEADER_EPOCH:
			if (type != INT4OID && type != INT8OID)
				wanted = "integer or bigint";
			break;
		case META_OFFSET:
			if (type != INT8OID)
				wanted = "bigint";
			break;
		case META_TIMESTAMP:
			if (!is_millisecond_type(column))
				wanted = millisecond_types;
			break;
		case META_HEADERS:
			if (type != JSONBOID && !is_header_array(type))
				wanted = "jsonb or an array of a composite type (name text, value bytea)";
			break;
		case META_RAW_KEY:
		case META_RAW_VALUE:
			if (type != BYTEAOID && type != TEXTOID)
				wanted = "bytea or text";
			break;
	}
	if (wanted)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("column \"%s\" of foreign table \"%s\" cannot show metadata \"%s\"",
						column->name, table->name, metadata_name(column)),
				 errdetail("Its type is %s.", format_type_with_typemod(type, column->typmod)),
				 errhint("The type must be %s.", wanted)));
}

static TopicColumn *
column_by_name(const TopicTable *table, const char *name)
{
	for (int i = 0; i < table->natts; i++)
	{
		if (OidIsValid(table->columns[i].type) && strcmp(table->columns[i].name, name) == 0)
			return &table->columns[i];
	}
	return NULL;
}

/* What the server computes whenever it is read is no part of a message. */
static void
check_virtual(const TopicTable *table, Form_pg_attribute att)
{
	List	   *options = GetForeignColumnOptions(table->relid, att->attnum);

	if (options != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("virtual generated column \"%s\" of foreign table \"%s\" cannot have options",
						NameStr(att->attname), table->name),
				 errdetail("It is no part of a message."),
				 errhint("A column that is GENERATED .. STORED is written.")));
}

static void
read_columns(TopicTable *table, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		marked = false;
	ListCell   *lc;

	table->natts = desc->natts;
	table->columns = palloc0(sizeof(TopicColumn) * desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		TopicColumn *column = &table->columns[i];
		ColumnOptions options;

		column->attnum = i + 1;
		if (att->attisdropped || att_is_virtual_compat(att))
		{
			column->name = "";
			if (!att->attisdropped)
				check_virtual(table, att);
			continue;
		}
		column->name = pstrdup(NameStr(att->attname));
		column->type = att->atttypid;
		column->typmod = att->atttypmod;
		column->collation = att->attcollation;
		column->not_null = att->attnotnull;
		column_options_parse(GetForeignColumnOptions(table->relid, i + 1), &options);
		column->is_key = options.key;
		column->metadata = options.metadata;
		column->field = options.metadata_field ? options.metadata_field : options.field;
		marked |= options.key;
	}

	if (table->key_fields && marked)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("foreign table \"%s\" names its key columns twice", table->name),
				 errhint("Use either the table option \"key_fields\" or the column option \"key\".")));
	foreach(lc, table->key_fields)
	{
		const char *name = lfirst(lc);
		TopicColumn *column = column_by_name(table, name);

		if (column == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("column \"%s\" named in option \"key_fields\" of foreign table \"%s\" does not exist",
							name, table->name)));
		column->is_key = true;
	}
}

/* Names in the message; a prefix keeps key and value columns apart (Flink's rule). */
static void
resolve_fields(TopicTable *table)
{
	const char *prefix = table->key_fields_prefix;

	for (int i = 0; i < table->natts; i++)
	{
		TopicColumn *column = &table->columns[i];

		if (!OidIsValid(column->type) || column->metadata != META_NONE)
			continue;
		if (prefix && column->is_key && column->field == NULL)
		{
			if (strncmp(column->name, prefix, strlen(prefix)) != 0 || strlen(column->name) == strlen(prefix))
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_COLUMN_NAME),
						 errmsg("key column \"%s\" of foreign table \"%s\" does not begin with the key_fields_prefix \"%s\"",
								column->name, table->name, prefix),
						 errhint("Rename the column, or name its field by the column option \"field\".")));
			column->field = column->name + strlen(prefix);
		}
		if (column->field == NULL)
			column->field = column->name;
	}
}

static void
check_keys(const TopicTable *table)
{
	for (int i = 0; i < table->nkeys; i++)
	{
		const TopicColumn *column = &table->columns[table->keys[i] - 1];

		if (column->metadata != META_NONE)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("column \"%s\" of foreign table \"%s\" cannot be both a key and a metadata column",
							column->name, table->name),
					 errhint("Key columns are taken from the message key.")));
	}

	if (table->nkeys > 0 && table->key_format == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("foreign table \"%s\" has key columns but no option \"key_format\"", table->name),
				 errhint("Add key_format, which says how the message key is read.")));
	if (table->nkeys == 0 && table->key_format != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("foreign table \"%s\" has no key column", table->name),
				 errhint("Mark the columns that the message key holds: ALTER FOREIGN TABLE .. ALTER COLUMN .. OPTIONS (ADD key 'true').")));
}

/* raw and its like make one column of all the bytes */
static void
check_single_column(const TopicTable *table)
{
	int			nvalues = 0;

	if (table->key_format && table->key_format->single_column && table->nkeys > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("key format \"%s\" fills one column, but foreign table \"%s\" has %d key columns",
						table->key_format->name, table->name, table->nkeys)));
	if (!table->value_format->single_column)
		return;
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (OidIsValid(column->type) && !column->is_key && column->metadata == META_NONE)
			nvalues++;
	}
	if (nvalues > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("value format \"%s\" fills one column, but foreign table \"%s\" has %d",
						table->value_format->name, table->name, nvalues),
				 errhint("Mark key columns by the option \"key\" and metadata columns by the option \"metadata\".")));
}

/* Where fields have no names of their own, only the table's columns tell which one it is. */
static void
check_delete_marker(const TopicTable *table)
{
	if (table->delete_marker == NULL || !table->value_format->positional)
		return;
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (OidIsValid(column->type) && column->metadata == META_NONE && (!column->is_key || table->value_has_key) &&
			strcmp(column->field, table->delete_marker) == 0)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
			 errmsg("foreign table \"%s\" has no column \"%s\", which option \"delete_marker\" names", table->name, table->delete_marker),
			 errhint("Fields of format \"%s\" are known by the table's columns.", table->value_format->name)));
}

TopicTable *
topic_table_get(Relation rel)
{
	TopicTable *table = palloc0(sizeof(TopicTable));
	ForeignTable *foreign;

	if (!topic_table_is_ours(RelationGetRelid(rel)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a foreign table on a Kafka topic", RelationGetRelationName(rel)),
				 errhint("Create one by CREATE FOREIGN TABLE on a server of the foreign-data wrapper upsert_kafka.")));

	foreign = GetForeignTable(RelationGetRelid(rel));
	table->relid = RelationGetRelid(rel);
	table->schema_name = get_namespace_name(RelationGetNamespace(rel));
	table->name = pstrdup(RelationGetRelationName(rel));
	table->serverid = foreign->serverid;
	table->userid = GetUserId();
	table->server_name = GetForeignServer(foreign->serverid)->servername;

	table_options_parse(foreign->options, table);
	read_columns(table, rel);
	resolve_fields(table);

	table->keys = palloc(sizeof(AttrNumber) * Max(table->natts, 1));
	for (int i = 0; i < table->natts; i++)
	{
		if (!table->columns[i].is_key)
			continue;
		table->keys[table->nkeys++] = i + 1;
		table->columns[i].not_null |= table->upsert;
	}
	check_keys(table);
	for (int i = 0; i < table->natts; i++)
		check_metadata_type(table, &table->columns[i]);
	check_single_column(table);
	check_delete_marker(table);
	return table;
}
