/*
 * avro_derive.c
 *	  Columns -> the schema that Flink's AvroSchemaConverter derives for them.
 *
 * Types that Flink lacks take the nearest: finer times are microseconds, whatever else
 * has no Avro type is a string.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "format/avro_derive.h"
#include "format/value_output.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#define FLINK_NAMESPACE "org.apache.flink.avro.generated"

static void append_type(StringInfo out, Oid type, int32 typmod, bool nullable, const char *name,
						const FormatColumn *column, bool legacy);

static void
append_field(StringInfo out, const char *field, Oid type, int32 typmod, bool nullable, const char *name,
			 const FormatColumn *column, bool legacy)
{
	appendStringInfoString(out, "{\"name\":");
	escape_json(out, field);
	appendStringInfoString(out, ",\"type\":");
	append_type(out, type, typmod, nullable, psprintf("%s_%s", name, field), column, legacy);
	appendStringInfoString(out, nullable ? ",\"default\":null}" : "}");
}

static void
append_record(StringInfo out, Oid type, int32 typmod, const char *name, const FormatColumn *column, bool legacy)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(type, typmod);
	bool		first = true;

	appendStringInfoString(out, "{\"type\":\"record\",\"name\":");
	escape_json(out, name);
	appendStringInfoString(out, ",\"fields\":[");
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (!first)
			appendStringInfoChar(out, ',');
		first = false;
		append_field(out, NameStr(att->attname), att->atttypid, att->atttypmod, true, name, column, legacy);
	}
	appendStringInfoString(out, "]}");
	FreeTupleDesc(desc);
}

static void
append_decimal(StringInfo out, int32 typmod, const FormatColumn *column)
{
	int			precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	int			scale = (typmod - VARHDRSZ) & 0x7ff;

	if (typmod < (int32) VARHDRSZ || scale > precision)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("type %s of column \"%s\" has no Avro schema",
						format_type_with_typemod(NUMERICOID, typmod), column->column),
				 errhint("Avro's decimals have a precision and a scale: declare numeric(p,s), or give the schema by the option \"schema\" of the format.")));
	appendStringInfo(out, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d}", precision, scale);
}

/* The type without the union with null around it */
static void
append_plain_type(StringInfo out, Oid type, int32 typmod, const char *name, const FormatColumn *column, bool legacy)
{
	bool		millis = typmod >= 0 && typmod <= 3;
	Oid			element;

	check_stack_depth();
	switch (type)
	{
		case BOOLOID:
			appendStringInfoString(out, "\"boolean\"");
			return;
		case INT2OID:
		case INT4OID:
			appendStringInfoString(out, "\"int\"");
			return;
		case INT8OID:
			appendStringInfoString(out, "\"long\"");
			return;
		case FLOAT4OID:
			appendStringInfoString(out, "\"float\"");
			return;
		case FLOAT8OID:
			appendStringInfoString(out, "\"double\"");
			return;
		case BYTEAOID:
			appendStringInfoString(out, "\"bytes\"");
			return;
		case NUMERICOID:
			append_decimal(out, typmod, column);
			return;
		case DATEOID:
			appendStringInfoString(out, "{\"type\":\"int\",\"logicalType\":\"date\"}");
			return;
		case TIMEOID:
			appendStringInfoString(out, millis ? "{\"type\":\"int\",\"logicalType\":\"time-millis\"}"
								   : "{\"type\":\"long\",\"logicalType\":\"time-micros\"}");
			return;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			appendStringInfo(out, "{\"type\":\"long\",\"logicalType\":\"%stimestamp-%s\"}",
							 type == TIMESTAMPOID && !legacy ? "local-" : "", millis ? "millis" : "micros");
			return;
		default:
			break;
	}
	element = array_element_type(type);
	if (OidIsValid(element))
	{
		appendStringInfoString(out, "{\"type\":\"array\",\"items\":");
		append_type(out, element, typmod, true, name, column, legacy);
		appendStringInfoChar(out, '}');
	}
	else if (get_typtype(type) == TYPTYPE_COMPOSITE)
		append_record(out, type, typmod, name, column, legacy);
	else
		appendStringInfoString(out, "\"string\"");
}

static void
append_type(StringInfo out, Oid type, int32 typmod, bool nullable, const char *name,
			const FormatColumn *column, bool legacy)
{
	Oid			base = getBaseTypeAndTypmod(type, &typmod);

	if (nullable)
		appendStringInfoString(out, "[\"null\",");
	append_plain_type(out, base, typmod, name, column, legacy);
	if (nullable)
		appendStringInfoChar(out, ']');
}

/* name: of the record and what is in it; space: its namespace, or NULL where it is known */
static void
append_columns(StringInfo out, const char *name, const char *space, int ncolumns, const FormatColumn *columns, bool legacy)
{
	appendStringInfo(out, "{\"type\":\"record\",\"name\":\"%s\",", name);
	if (space)
		appendStringInfo(out, "\"namespace\":\"%s\",", space);
	appendStringInfoString(out, "\"fields\":[");
	for (int i = 0; i < ncolumns; i++)
	{
		if (i > 0)
			appendStringInfoChar(out, ',');
		append_field(out, columns[i].field, columns[i].type, columns[i].typmod, !columns[i].not_null, name,
					 &columns[i], legacy);
	}
	appendStringInfoString(out, "]}");
}

static char *
in_utf8(const StringInfoData *out)
{
	Size		len = out->len;
	const char *utf8 = text_to_utf8(out->data, &len);

	return pnstrdup(utf8, len);
}

char *
avro_derive_schema(int ncolumns, const FormatColumn *columns, bool legacy)
{
	StringInfoData out;

	initStringInfo(&out);
	append_columns(&out, "record", FLINK_NAMESPACE, ncolumns, columns, legacy);
	return in_utf8(&out);
}

char *
avro_derive_event_schema(int ncolumns, const FormatColumn *columns)
{
	StringInfoData out;

	initStringInfo(&out);
	appendStringInfoString(&out, "[\"null\",{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"" FLINK_NAMESPACE
						   "\",\"fields\":[{\"name\":\"before\",\"type\":[\"null\",");
	append_columns(&out, "record_before", NULL, ncolumns, columns, true);
	appendStringInfoString(&out, "],\"default\":null},{\"name\":\"after\",\"type\":[\"null\",");
	append_columns(&out, "record_after", NULL, ncolumns, columns, true);
	appendStringInfoString(&out, "],\"default\":null},{\"name\":\"op\",\"type\":[\"null\",\"string\"],\"default\":null}]}]");
	return in_utf8(&out);
}
