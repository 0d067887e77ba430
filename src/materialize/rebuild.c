/*
 * rebuild.c
 *	  rebuild(): reads a topic anew from its start.  Versions of messages that the
 *	  topic no longer holds are kept, each at its place, unless they are to be
 *	  discarded (DESIGN.md, decision 6).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "history/versions.h"
#include "lib/stringinfo.h"
#include "materialize/apply_map.h"
#include "materialize/control.h"
#include "materialize/feed_internal.h"
#include "materialize/owner.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define FETCH_ROWS	1000

/* The messages that a versions table tells of, in (key, partition, offset) order */
typedef struct MessageStream
{
	const ApplyMap *map;
	Portal		portal;
	SPITupleTable *rows;		/* the fetched ones, NULL at first */
	uint64		nrows;
	uint64		next;
	bool		end;
	Change		change;			/* points into rows, and to values below */
	Datum	   *values;
	bool	   *isnull;
} MessageStream;

static char *
relation_sql(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * Past the guard trigger, for which an ERROR must not leave the door open, and past row
 * security that is forced upon the owner, from whom it would hide rows.
 */
static void
run_past_guard(const char *sql)
{
	bool		before = apply_in_progress;
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(user, security | SECURITY_NOFORCE_RLS);
	apply_in_progress = true;
	PG_TRY();
	{
		if (SPI_execute(sql, false, 0) < 0)
			elog(ERROR, "cannot run: %s", sql);
	}
	PG_FINALLY();
	{
		apply_in_progress = before;
		SetUserIdAndSecContext(user, security);
	}
	PG_END_TRY();
}

/* --- discard ----------------------------------------------------------------------------- */

/* Empty everything and let a worker, or refresh(), make the first load. */
static void
start_over(const MaintainedTable *table)
{
	StringInfoData sql;
	Oid			parts[3] = {table->target, table->versions, table->origins};
	OwnerScope	scope;

	initStringInfo(&sql);
	for (int i = 0; i < lengthof(parts); i++)
	{
		if (OidIsValid(parts[i]))
			appendStringInfo(&sql, "%s ONLY %s", sql.len == 0 ? "TRUNCATE TABLE" : ",",
							 relation_sql(parts[i]));
	}
	owner_enter(&scope, table->owner);
	SPI_connect();
	run_past_guard(sql.data);
	SPI_finish();
	owner_leave(&scope);

	positions_forget(table->target);
	topic_sources_forget(table->target);
	message_errors_forget(table->target);
	missing_values_add(table->target, -1);
	table_state_set(table->target, TABLE_BACKFILL, 0, NULL, -1, -1);
}

/* --- keep --------------------------------------------------------------------------------- */

static void
stream_next(MessageStream *stream)
{
	const ApplyMap *map = stream->map;
	HeapTuple	tuple;
	TupleDesc	desc;
	Change	   *change = &stream->change;
	Datum		value;
	bool		null;
	int			column = map->ncolumns;
	char		op;

	if (stream->next == stream->nrows)
	{
		if (stream->rows != NULL)
			SPI_freetuptable(stream->rows);
		SPI_cursor_fetch(stream->portal, true, FETCH_ROWS);
		stream->rows = SPI_tuptable;
		stream->nrows = SPI_processed;
		stream->next = 0;
		if (stream->nrows == 0)
		{
			stream->end = true;
			return;
		}
	}
	tuple = stream->rows->vals[stream->next++];
	desc = stream->rows->tupdesc;

	memset(stream->isnull, true, map->topic->natts * sizeof(bool));
	for (int i = 0; i < map->ncolumns; i++)
		stream->values[map->sources[i]] =
			heap_getattr(tuple, i + 1, desc, &stream->isnull[map->sources[i]]);

	/* heap_getattr is a macro on 14 and looks at its arguments more than once */
	op = DatumGetChar(heap_getattr(tuple, column + 1, desc, &null));
	change->kind = VERSION_OP_HAS_ROW(op) ? ROW_INSERT : ROW_DELETE;
	change->source = DatumGetInt32(heap_getattr(tuple, column + 2, desc, &null));
	change->offset = DatumGetInt64(heap_getattr(tuple, column + 3, desc, &null));
	change->event_time = DatumGetTimestampTz(heap_getattr(tuple, column + 4, desc, &null));
	value = heap_getattr(tuple, column + 5, desc, &null);
	change->timestamp = null ? -1 : (DatumGetTimestampTz(value) - kafka_timestamp(0)) / 1000;
	change->values = stream->values;
	change->isnull = stream->isnull;
}

/* Sees the table as it is at this moment, whatever happens to it afterwards. */
static void
stream_open(MessageStream *stream, const MaintainedTable *table, const ApplyMap *map)
{
	StringInfoData sql;

	memset(stream, 0, sizeof(*stream));
	stream->map = map;
	stream->values = palloc0(map->topic->natts * sizeof(Datum));
	stream->isnull = palloc(map->topic->natts * sizeof(bool));

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (int i = 0; i < map->ncolumns; i++)
		appendStringInfo(&sql, "%s, ", quote_identifier(map->names[i]));
	appendStringInfo(&sql,
					 VERSION_OP ", " VERSION_PARTITION ", " VERSION_OFFSET ", " VERSION_VALID_FROM ", " VERSION_TIMESTAMP
					 " FROM ONLY %s WHERE " VERSION_OP " IN ('u', 'U', 'd', 'D') ORDER BY ",
					 relation_sql(table->versions));
	for (int i = 0; i < table->nkeys; i++)
		appendStringInfo(&sql, "%s, ", quote_identifier(table->key_columns[i]));
	appendStringInfoString(&sql, VERSION_PARTITION ", " VERSION_OFFSET);

	stream->portal = SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, false, 0);
	if (stream->portal == NULL)
		elog(ERROR, "cannot run: %s", sql.data);
	pfree(sql.data);
}

static int
stream_compare(const MessageStream *a, const MessageStream *b)
{
	int			cmp = key_compare(a->map->key_desc, a->values, b->values);

	if (cmp != 0)
		return cmp;
	if (a->change.source != b->change.source)
		return a->change.source < b->change.source ? -1 : 1;
	if (a->change.offset != b->change.offset)
		return a->change.offset < b->change.offset ? -1 : 1;
	return 0;
}

/* A topic that was made anew counts its offsets anew: old ones find no place among them. */
static void
check_offset(const MaintainedTable *table, const Positions *positions, const Change *change)
{
	const Position *position = change->source < positions->n ? &positions->positions[change->source] : NULL;

	if (position != NULL && change->offset < position->next_offset)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("history of table \"%s\" does not fit topic \"%s\"", get_rel_name(table->target),
					position != NULL ? position->topic : positions->topic),
			 errdetail("It holds a message of partition %d, offset %lld, which lies after the topic's end.",
					   position != NULL ? position->partition : change->source, (long long) change->offset),
			 errhint("Use discard_history => true.")));
}

/*
 * Put the messages of 'old' that the load did not find back to their places, as
 * if the topic still had them.  Recorded errors of messages that are in now go.
 */
static void
put_back(const MaintainedTable *table, MessageStream *old, Applier *applier, const Positions *positions)
{
	MessageStream new;
	bool		had_errors = message_errors_exist(table->target);

	stream_open(&new, table, old->map);
	stream_next(old);
	stream_next(&new);
	while (!old->end || (had_errors && !new.end))
	{
		int			cmp;

		CHECK_FOR_INTERRUPTS();
		if (old->end)
			cmp = 1;
		else
			cmp = new.end ? -1 : stream_compare(old, &new);

		if (cmp > 0)
		{
			if (had_errors)
				message_error_delete(table->target, new.change.source, new.change.offset);
			stream_next(&new);
			continue;
		}
		if (cmp < 0)
		{
			check_offset(table, positions, &old->change);
			applier_key_begin(applier, &old->change);
			applier_change(applier, &old->change);
			applier_key_end(applier);
			applier_flush(applier);
		}
		stream_next(old);
	}
	SPI_cursor_close(new.portal);
}

/* Where topics that are not read any more have been read up to. */
static void
keep_unread(const TopicTable *topic, const Positions *before, Positions *positions)
{
	for (int i = 0; before != NULL && i < Min(before->n, positions->n); i++)
	{
		Position   *position = &positions->positions[i];

		if (position->given_up || !topic_table_reads(topic, position->topic))
			*position = before->positions[i];
	}
}

/*
 * In one transaction, so that readers see the old rows until all is done: hence
 * DELETE, which hides nothing from the cursor opened before, instead of TRUNCATE.
 */
static void
load_and_keep(const MaintainedTable *table)
{
	FeedSource	source;
	MessageStream old;
	Positions  *before;
	Positions  *positions;
	MaintainedTable *loaded;
	Applier    *applier;
	OwnerScope	scope;

	memset(&source, 0, sizeof(source));
	source.table = maintained_table_get(table->target);
	owner_enter(&scope, table->owner);
	SPI_connect();
	feed_source_define(&source);

	stream_open(&old, table, source.map);
	run_past_guard(psprintf("DELETE FROM ONLY %s", relation_sql(table->target)));
	run_past_guard(psprintf("DELETE FROM ONLY %s", relation_sql(table->versions)));
	before = positions_get(table->target);
	/* a list has taken the place of the one topic: the history knows sources by its numbers */
	if (before != NULL && !topic_table_is_plain(source.topic) && !before->several)
		topic_sources_add(table->target, before, 0);
	positions_forget(table->target);
	table_state_set(table->target, TABLE_BACKFILL, 0, NULL, -1, -1);
	(void) backfill_run(table->target);

	loaded = maintained_table_get(table->target);
	if (loaded->state != TABLE_LIVE)
	{
		RegistrationError error;

		(void) registration_error_get(table->target, &error);
		ereport(ERROR,
				(errcode(error.sqlerrcode != 0 ? error.sqlerrcode : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot rebuild table \"%s\"", get_rel_name(table->target)),
				 errdetail_internal("%s", error.message),
				 errhint("Nothing was changed. With discard_history => true the table stops at this message instead.")));
	}

	positions = positions_get(table->target);
	keep_unread(source.topic, before, positions);
	apply_map_positions(source.map, positions);
	PushActiveSnapshot(GetLatestSnapshot());
	applier = applier_begin(source.table, source.map, &positions->next_seq, false);
	applier_any_order(applier);
	put_back(table, &old, applier, positions);
	applier_end(applier);
	PopActiveSnapshot();

	SPI_cursor_close(old.portal);
	positions_set(table->target, positions);	/* which SPI_finish frees */
	SPI_finish();
	owner_leave(&scope);
}

void
rebuild_run(const MaintainedTable *table, bool discard_history)
{
	if (discard_history || !OidIsValid(table->versions))
		start_over(table);
	else if (table->state == TABLE_TOPIC_CHANGED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("history of table \"%s\" cannot be kept", get_rel_name(table->target)),
				 errdetail("The topic is another one than before, and its offsets say nothing about the messages in the history."),
				 errhint("Use discard_history => true, or copy the history elsewhere before.")));
	else
		load_and_keep(table);
}
