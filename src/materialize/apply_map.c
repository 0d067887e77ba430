/*
 * apply_map.c
 *	  Where a maintained table's columns come from, and what makes a change
 *	  applicable: its key and its moment.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "changelog/keys.h"
#include "format/format.h"
#include "lib/stringinfo.h"
#include "materialize/apply_map.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

static int
source_column(const TopicTable *topic, const char *name, const MaintainedTable *table)
{
	for (int i = 0; i < topic->natts; i++)
		if (OidIsValid(topic->columns[i].type) && strcmp(topic->columns[i].name, name) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("foreign table \"%s\" has no column \"%s\"", topic->name, name),
			 errdetail("Maintained table \"%s\" takes a column from it.", get_rel_name(table->target)),
			 errhint("Add the column to the foreign table again, or drop it from the maintained table.")));
	return -1;					/* not reached */
}

/*
 * Event triggers refuse DDL that would change a type on one side only.  They can be
 * switched off, and a Datum of another type would be the end of the process.
 */
static void
check_type(const TopicColumn *from, Oid relid, const char *name)
{
	AttrNumber	attnum;

	if (!OidIsValid(relid))
		return;
	attnum = get_attnum(relid, name);
	if (attnum == InvalidAttrNumber || get_atttype(relid, attnum) != from->type)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column \"%s\" of \"%s\" does not fit the column of the foreign table that fills it",
						name, get_rel_name(relid)),
				 errdetail("Column \"%s\" of the foreign table is of type %s.",
						   from->name, format_type_be(from->type))));
}

ApplyMap *
apply_map_create(const MaintainedTable *table, const TopicTable *topic)
{
	ApplyMap   *map = palloc0(sizeof(ApplyMap));

	/* its format may have been changed since materialize() looked */
	if (table->append && topic_table_has_kinds(topic))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("maintained table \"%s\" has no key, but foreign table \"%s\" tells of updates and deletes",
						get_rel_name(table->target), topic->name),
				 errhint("Materialize it anew with the argument primary_key.")));

	map->ncolumns = table->ncolumns;
	map->names = table->columns;
	map->sources = palloc(Max(table->ncolumns, 1) * sizeof(int));
	for (int i = 0; i < table->ncolumns; i++)
	{
		const TopicColumn *from;

		map->sources[i] = source_column(topic, table->source_columns[i], table);
		from = &topic->columns[map->sources[i]];
		check_type(from, table->target, table->columns[i]);
		check_type(from, table->versions, table->columns[i]);
		check_type(from, table->origins, table->columns[i]);
	}

	map->nkeys = table->nkeys;
	map->keys = palloc(Max(table->nkeys, 1) * sizeof(AttrNumber));
	map->key_columns = palloc(Max(table->nkeys, 1) * sizeof(int));
	for (int k = 0; k < table->nkeys; k++)
	{
		int			i;

		for (i = 0; i < table->ncolumns && strcmp(table->columns[i], table->key_columns[k]) != 0; i++)
			;
		if (i == table->ncolumns)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("maintained table \"%s\" has lost its key column \"%s\"",
							get_rel_name(table->target), table->key_columns[k])));
		map->key_columns[k] = i;
		map->keys[k] = map->sources[i] + 1;
	}

	map->event_time = -1;
	if (table->event_time)
	{
		map->event_time = source_column(topic, table->event_time, table);
		map->event_time_type = getBaseType(topic->columns[map->event_time].type);
		map->deletes_have_time = topic->columns[map->event_time].metadata == META_FORMAT;
		if (map->event_time_type != TIMESTAMPTZOID && map->event_time_type != TIMESTAMPOID)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("event time column \"%s\" of foreign table \"%s\" is of type %s",
							table->event_time, topic->name, format_type_be(map->event_time_type))));
	}
	map->time_zone = pg_tzset(topic->time_zone);

	if (map->nkeys > 0)
	{
		TupleDesc	desc = CreateTemplateTupleDesc(topic->natts);

		for (int i = 0; i < topic->natts; i++)
		{
			const TopicColumn *column = &topic->columns[i];
			Oid			type = OidIsValid(column->type) ? column->type : INT4OID;

			TupleDescInitEntry(desc, i + 1, column->name ? column->name : "", type,
							   OidIsValid(column->type) ? column->typmod : -1, 0);
			if (OidIsValid(column->type))
				TupleDescInitEntryCollation(desc, i + 1, column->collation);
		}
		map->key_desc = key_desc_create(desc, map->nkeys, map->keys);
	}
	map->topic = topic;
	return map;
}

static bool
refuse(ChangeError *error, int sqlerrcode, const char *column, const char *message)
{
	error->sqlerrcode = sqlerrcode;
	error->column = column;
	error->message = message;
	return false;
}

/* A timestamp without time zone is a wall clock's in the table's time zone (decision 14). */
static TimestampTz
wall_clock(Timestamp timestamp, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			offset;
	TimestampTz result;

	if (timestamp2tm(timestamp, NULL, &tm, &fsec, NULL, NULL) != 0)
		return DT_NOEND;
	offset = DetermineTimeZoneOffset(&tm, zone);
	if (tm2timestamp(&tm, fsec, &offset, &result) != 0)
		return DT_NOEND;
	return result;
}

void
apply_map_positions(ApplyMap *map, const Positions *positions)
{
	map->positions = positions;
}

bool
apply_check(const ApplyMap *map, Change *change, ChangeError *error)
{
	const TopicColumn *columns = map->topic->columns;
	bool		gone = change->kind == ROW_DELETE || change->kind == ROW_TRUNCATE;

	for (int k = 0; k < map->nkeys && change->kind != ROW_TRUNCATE; k++)
		if (change->isnull[map->keys[k] - 1])
			return refuse(error, ERRCODE_NOT_NULL_VIOLATION, columns[map->keys[k] - 1].name,
						  "null value in a key column");

	change->bare = map->deletes_have_time && gone && change->isnull[map->event_time];
	if (map->event_time >= 0 && !change->bare && (!gone || map->deletes_have_time))
	{
		const char *name = columns[map->event_time].name;
		TimestampTz moment;

		if (change->isnull[map->event_time])
			return refuse(error, ERRCODE_NULL_VALUE_NOT_ALLOWED, name, "null event time");
		moment = DatumGetTimestampTz(change->values[map->event_time]);
		if (!TIMESTAMP_NOT_FINITE(moment) && map->event_time_type == TIMESTAMPOID)
			moment = wall_clock(moment, map->time_zone);
		if (TIMESTAMP_NOT_FINITE(moment))
			return refuse(error, ERRCODE_DATETIME_VALUE_OUT_OF_RANGE, name, "event time is not finite");
		change->event_time = moment;
		return true;
	}

	/*
	 * Without history an upsert's moment is of no consequence; -1 is still
	 * refused, so that the errors do not depend on that choice.
	 */
	if (change->timestamp < 0)
		return refuse(error, ERRCODE_DATETIME_VALUE_OUT_OF_RANGE, NULL, "message has no timestamp");
	change->event_time = kafka_timestamp(change->timestamp);
	return true;
}

TimestampTz
kafka_timestamp(int64 ms)
{
	/* year 200000 and beyond: PostgreSQL ends at 294276 */
	if (ms > INT64CONST(9223371331199999))
		ms = INT64CONST(9223371331199999);
	return ms * 1000 - ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)) * USECS_PER_DAY;
}

/* A field of a record's text, quoted as record_out() does, so that no two keys have one text. */
static void
append_field(StringInfo text, const char *field)
{
	if (field[0] != '\0' && strpbrk(field, "\"\\(), \t\n\r\v\f") == NULL)
	{
		appendStringInfoString(text, field);
		return;
	}
	appendStringInfoChar(text, '"');
	for (; *field; field++)
	{
		if (*field == '"' || *field == '\\')
			appendStringInfoChar(text, *field);
		appendStringInfoChar(text, *field);
	}
	appendStringInfoChar(text, '"');
}

char *
apply_key_text(const ApplyMap *map, const Datum *values, const bool *isnull)
{
	StringInfoData text;
	DecodeSettings settings;

	/* the same whoever applies */
	decode_settings_enter(&settings, map->topic->time_zone);
	PG_TRY();
	{
		initStringInfo(&text);
		for (int k = 0; k < map->nkeys; k++)
		{
			int			i = map->keys[k] - 1;
			Oid			output;
			bool		varlena;
			char	   *field;

			appendStringInfoChar(&text, k == 0 ? '(' : ',');
			if (isnull[i])
				continue;
			getTypeOutputInfo(map->topic->columns[i].type, &output, &varlena);
			field = OidOutputFunctionCall(output, values[i]);
			append_field(&text, field);
			pfree(field);
		}
		appendStringInfoChar(&text, ')');
	}
	PG_FINALLY();
	{
		decode_settings_leave(&settings);
	}
	PG_END_TRY();
	return text.data;
}

static int
compare_changes(const void *a, const void *b, void *arg)
{
	const ApplyMap *map = arg;
	const Change *x = a;
	const Change *y = b;
	int			result = key_compare(map->key_desc, x->values, y->values);

	if (result != 0)
		return result;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return 0;
}

void
apply_sort(const ApplyMap *map, Change *changes, int n)
{
	qsort_arg(changes, n, sizeof(Change), compare_changes, unconstify(ApplyMap *, map));
}

bool
apply_same_key(const ApplyMap *map, const Change *a, const Change *b)
{
	return key_compare(map->key_desc, a->values, b->values) == 0;
}

int
apply_key_columns(const ApplyMap *map, const AttrNumber **attnums)
{
	*attnums = map->keys;
	return map->nkeys;
}
