/*
 * outbox_catalog.c
 *	  Streams of the outbox: who sends what, how far it is, and the locks on it.
 *	  Knows nothing of Kafka nor of processes.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_user_mapping.h"
#include "commands/extension.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "outbox/outbox_catalog.h"
#include "outbox/outbox_tables.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* Columns of outbox_stream, in the script's order */
enum
{
	OS_STREAM = 1,
	OS_SERVER_NAME,
	OS_ROLE_NAME,
	OS_SERVER_OID,
	OS_ROLE_OID,
	OS_SYSTEM_IDENTIFIER,
	OS_DATABASE_OID,
	OS_GROUP,
	OS_TRANSACTIONAL_ID,
	OS_CARRIER,
	OS_LAST_SENT,
	OS_REMOVED_ROWS,
	OS_REMOVED_BYTES,
	OS_LAST_SENT_AT,
	OS_UNSETTLED_SINCE,
	OS_STOPPED_SEQ,
	OS_ERROR_SQLSTATE,
	OS_ERROR_MESSAGE,
	OS_ERROR_AT,
	OS_UNREADABLE,
	OS_NATTS = OS_UNREADABLE
};

/* Columns of outbox_counter */
enum
{
	OC_STREAM = 1,
	OC_LAST_SEQ,
	OC_WRITTEN_ROWS,
	OC_WRITTEN_BYTES,
	OC_COPIED_SEQ,
	OC_NATTS = OC_COPIED_SEQ
};

/* What the locks of a stream are for: the last field of their tag */
#define LOCK_ORDER	0
#define LOCK_SENDER	1
#define LOCK_CREATE	2

Oid
outbox_table(const char *name)
{
	Oid			nspid;
	Oid			relid = InvalidOid;

	/* anybody may make a schema of that name where the extension is not installed */
	if (OidIsValid(get_extension_oid("upsert_kafka", true)) &&
		OidIsValid(nspid = get_namespace_oid("upsert_kafka", true)))
		relid = get_relname_relid(name, nspid);
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"upsert_kafka\" is not installed in this database"),
				 errhint("Use CREATE EXTENSION upsert_kafka.")));
	return relid;
}

bool
outbox_exists(void)
{
	Oid			nspid;

	return OidIsValid(get_extension_oid("upsert_kafka", true)) &&
		OidIsValid(nspid = get_namespace_oid("upsert_kafka", true)) &&
		OidIsValid(get_relname_relid("outbox_stream", nspid)) &&
		OidIsValid(get_relname_relid("outbox_counter", nspid)) &&
		OidIsValid(get_relname_relid("outbox_message", nspid)) &&
		OidIsValid(get_relname_relid("outbox_message_pkey", nspid));
}

/* --- locks ------------------------------------------------------------------ */

static void
make_tag(LOCKTAG *tag, int32 id, int what)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, outbox_table("outbox_stream"), (Oid) id, what);
}

void
outbox_lock_order(int32 id)
{
	LOCKTAG		tag;

	make_tag(&tag, id, LOCK_ORDER);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	AcceptInvalidationMessages();
}

bool
outbox_lock_sender(int32 id, bool session, bool nowait)
{
	LOCKTAG		tag;

	make_tag(&tag, id, LOCK_SENDER);
	if (LockAcquire(&tag, ExclusiveLock, session, nowait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	AcceptInvalidationMessages();
	return true;
}

void
outbox_unlock_sender(int32 id)
{
	LOCKTAG		tag;

	make_tag(&tag, id, LOCK_SENDER);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* --- rows --------------------------------------------------------------------- */

static HeapTuple
row_seen_by(Relation rel, const char *index, int32 id, Snapshot snapshot)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
	scan = systable_beginscan(rel, outbox_table(index), true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

/*
 * What a writer reads here is the state of a queue, no data that its transaction depends
 * on: with an MVCC snapshot a SERIALIZABLE one would fail for it.  SnapshotSelf may miss
 * a row that is being updated.
 */
static HeapTuple
row_of(Relation rel, const char *index, int32 id)
{
	HeapTuple	tuple = row_seen_by(rel, index, id, SnapshotSelf);

	return HeapTupleIsValid(tuple) ? tuple : row_seen_by(rel, index, id, NULL);
}

static char *
name_or_null(Datum value, bool isnull)
{
	return isnull ? NULL : pstrdup(NameStr(*DatumGetName(value)));
}

static TimestampTz
time_or_zero(Datum value, bool isnull)
{
	return isnull ? 0 : DatumGetTimestampTz(value);
}

/* A copy knows its server and role by their names only. */
static void
find_by_names(OutboxStream *stream)
{
	ForeignServer *server = GetForeignServerByName(stream->server_name, true);

	stream->serverid = server != NULL ? server->serverid : InvalidOid;
	stream->roleid = stream->role_name != NULL ? get_role_oid(stream->role_name, true) : InvalidOid;
}

/* An original follows the names that its server and role have now. */
static void
find_by_oids(OutboxStream *stream)
{
	stream->server_name = GetForeignServer(stream->serverid)->servername;
	if (OidIsValid(stream->roleid))
	{
		char	   *name = GetUserNameFromId(stream->roleid, true);

		if (name != NULL)
			stream->role_name = name;
	}
}

static OutboxStream *
stream_from_tuple(Relation rel, HeapTuple tuple)
{
	OutboxStream *stream = palloc0(sizeof(OutboxStream));
	Datum		values[OS_NATTS];
	bool		isnull[OS_NATTS];
	Relation	counter_rel;
	HeapTuple	counter;

	heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
	stream->id = DatumGetInt32(values[OS_STREAM - 1]);
	stream->server_name = name_or_null(values[OS_SERVER_NAME - 1], false);
	stream->role_name = name_or_null(values[OS_ROLE_NAME - 1], isnull[OS_ROLE_NAME - 1]);
	stream->serverid = DatumGetObjectId(values[OS_SERVER_OID - 1]);
	stream->roleid = DatumGetObjectId(values[OS_ROLE_OID - 1]);
	stream->stored_serverid = stream->serverid;
	stream->foreign_copy = outbox_is_copy(DatumGetInt64(values[OS_SYSTEM_IDENTIFIER - 1]),
										  DatumGetObjectId(values[OS_DATABASE_OID - 1]), stream->serverid);
	stream->group = TextDatumGetCString(values[OS_GROUP - 1]);
	stream->transactional_id = TextDatumGetCString(values[OS_TRANSACTIONAL_ID - 1]);
	stream->carrier = TextDatumGetCString(values[OS_CARRIER - 1]);
	stream->last_sent = DatumGetInt64(values[OS_LAST_SENT - 1]);
	stream->removed_rows = DatumGetInt64(values[OS_REMOVED_ROWS - 1]);
	stream->removed_bytes = DatumGetInt64(values[OS_REMOVED_BYTES - 1]);
	stream->last_sent_at = time_or_zero(values[OS_LAST_SENT_AT - 1], isnull[OS_LAST_SENT_AT - 1]);
	stream->unsettled_since = time_or_zero(values[OS_UNSETTLED_SINCE - 1], isnull[OS_UNSETTLED_SINCE - 1]);
	if (!isnull[OS_STOPPED_SEQ - 1])
		stream->stopped_seq = DatumGetInt64(values[OS_STOPPED_SEQ - 1]);
	if (!isnull[OS_ERROR_SQLSTATE - 1])
	{
		const char *state = TextDatumGetCString(values[OS_ERROR_SQLSTATE - 1]);

		if (strlen(state) == 5)
			stream->error_code = MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
	}
	if (!isnull[OS_ERROR_MESSAGE - 1])
		stream->error = TextDatumGetCString(values[OS_ERROR_MESSAGE - 1]);
	stream->error_at = time_or_zero(values[OS_ERROR_AT - 1], isnull[OS_ERROR_AT - 1]);
	if (!isnull[OS_UNREADABLE - 1])
		stream->unreadable = TextDatumGetCString(values[OS_UNREADABLE - 1]);

	if (stream->foreign_copy)
		find_by_names(stream);
	else
		find_by_oids(stream);

	counter_rel = table_open(outbox_table("outbox_counter"), AccessShareLock);
	counter = row_of(counter_rel, "outbox_counter_pkey", stream->id);
	if (HeapTupleIsValid(counter))
	{
		Datum		counts[OC_NATTS];
		bool		nulls[OC_NATTS];

		heap_deform_tuple(counter, RelationGetDescr(counter_rel), counts, nulls);
		stream->last_seq = DatumGetInt64(counts[OC_LAST_SEQ - 1]);
		stream->written_rows = DatumGetInt64(counts[OC_WRITTEN_ROWS - 1]);
		stream->written_bytes = DatumGetInt64(counts[OC_WRITTEN_BYTES - 1]);
		if (!nulls[OC_COPIED_SEQ - 1])
			stream->copied_seq = DatumGetInt64(counts[OC_COPIED_SEQ - 1]);
		heap_freetuple(counter);
	}
	table_close(counter_rel, AccessShareLock);
	return stream;
}

OutboxStream *
outbox_stream_get(int32 id)
{
	Relation	rel;
	HeapTuple	tuple;
	OutboxStream *stream = NULL;

	if (!outbox_exists())
		return NULL;
	rel = table_open(outbox_table("outbox_stream"), AccessShareLock);
	tuple = row_of(rel, "outbox_stream_pkey", id);
	if (HeapTupleIsValid(tuple))
		stream = stream_from_tuple(rel, tuple);
	table_close(rel, AccessShareLock);
	return stream;
}

static int
stream_cmp(const ListCell *a, const ListCell *b)
{
	return ((OutboxStream *) lfirst(a))->id - ((OutboxStream *) lfirst(b))->id;
}

static List *
streams_seen_by(Snapshot snapshot)
{
	List	   *streams = NIL;
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!outbox_exists())
		return NIL;
	rel = table_open(outbox_table("outbox_stream"), AccessShareLock);
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		streams = lappend(streams, stream_from_tuple(rel, tuple));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	list_sort(streams, stream_cmp);
	return streams;
}

List *
outbox_streams(void)
{
	return streams_seen_by(NULL);
}

/* --- making and changing ---------------------------------------------------------- */

static Datum
name_datum(const char *name)
{
	Name		result = palloc0(sizeof(NameData));

	namestrcpy(result, name);
	return NameGetDatum(result);
}

static void
stream_values(const OutboxStream *stream, Datum *values, bool *isnull)
{
	memset(isnull, false, sizeof(bool) * OS_NATTS);
	values[OS_STREAM - 1] = Int32GetDatum(stream->id);
	values[OS_SERVER_NAME - 1] = name_datum(stream->server_name);
	isnull[OS_ROLE_NAME - 1] = stream->role_name == NULL;
	values[OS_ROLE_NAME - 1] = stream->role_name ? name_datum(stream->role_name) : (Datum) 0;
	values[OS_SERVER_OID - 1] = ObjectIdGetDatum(stream->serverid);
	values[OS_ROLE_OID - 1] = ObjectIdGetDatum(stream->roleid);
	values[OS_SYSTEM_IDENTIFIER - 1] = Int64GetDatum((int64) GetSystemIdentifier());
	values[OS_DATABASE_OID - 1] = ObjectIdGetDatum(MyDatabaseId);
	values[OS_GROUP - 1] = CStringGetTextDatum(stream->group);
	values[OS_TRANSACTIONAL_ID - 1] = CStringGetTextDatum(stream->transactional_id);
	values[OS_CARRIER - 1] = CStringGetTextDatum(stream->carrier);
	values[OS_LAST_SENT - 1] = Int64GetDatum(stream->last_sent);
	values[OS_REMOVED_ROWS - 1] = Int64GetDatum(stream->removed_rows);
	values[OS_REMOVED_BYTES - 1] = Int64GetDatum(stream->removed_bytes);
	values[OS_LAST_SENT_AT - 1] = TimestampTzGetDatum(stream->last_sent_at);
	isnull[OS_LAST_SENT_AT - 1] = stream->last_sent_at == 0;
	values[OS_UNSETTLED_SINCE - 1] = TimestampTzGetDatum(stream->unsettled_since);
	isnull[OS_UNSETTLED_SINCE - 1] = stream->unsettled_since == 0;
	values[OS_STOPPED_SEQ - 1] = Int64GetDatum(stream->stopped_seq);
	isnull[OS_STOPPED_SEQ - 1] = stream->stopped_seq == 0;
	isnull[OS_ERROR_SQLSTATE - 1] = stream->error_code == 0;
	if (stream->error_code != 0)
		values[OS_ERROR_SQLSTATE - 1] = CStringGetTextDatum(unpack_sql_state(stream->error_code));
	isnull[OS_ERROR_MESSAGE - 1] = stream->error == NULL;
	if (stream->error != NULL)
		values[OS_ERROR_MESSAGE - 1] = CStringGetTextDatum(stream->error);
	values[OS_ERROR_AT - 1] = TimestampTzGetDatum(stream->error_at);
	isnull[OS_ERROR_AT - 1] = stream->error_at == 0;
	isnull[OS_UNREADABLE - 1] = stream->unreadable == NULL;
	if (stream->unreadable != NULL)
		values[OS_UNREADABLE - 1] = CStringGetTextDatum(stream->unreadable);
}

void
outbox_stream_update(const OutboxStream *stream, bool identity)
{
	Relation	rel = table_open(outbox_table("outbox_stream"), RowExclusiveLock);
	HeapTuple	old = row_of(rel, "outbox_stream_pkey", stream->id);
	Datum		values[OS_NATTS] = {0};
	bool		isnull[OS_NATTS];
	bool		replace[OS_NATTS] = {0};

	if (HeapTupleIsValid(old))
	{
		HeapTuple	tuple;

		stream_values(stream, values, isnull);
		for (int column = identity ? OS_SERVER_NAME : OS_CARRIER; column <= OS_NATTS; column++)
			replace[column - 1] = true;
		tuple = heap_modify_tuple(old, RelationGetDescr(rel), values, isnull, replace);
		CatalogTupleUpdate(rel, &old->t_self, tuple);
		heap_freetuple(tuple);
		heap_freetuple(old);
	}
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

static void
counter_values(const OutboxStream *stream, Datum *values, bool *isnull)
{
	memset(isnull, false, sizeof(bool) * OC_NATTS);
	values[OC_STREAM - 1] = Int32GetDatum(stream->id);
	values[OC_LAST_SEQ - 1] = Int64GetDatum(stream->last_seq);
	values[OC_WRITTEN_ROWS - 1] = Int64GetDatum(stream->written_rows);
	values[OC_WRITTEN_BYTES - 1] = Int64GetDatum(stream->written_bytes);
	values[OC_COPIED_SEQ - 1] = Int64GetDatum(stream->copied_seq);
	isnull[OC_COPIED_SEQ - 1] = stream->copied_seq == 0;
}

void
outbox_counter_update(const OutboxStream *stream)
{
	Relation	rel = table_open(outbox_table("outbox_counter"), RowExclusiveLock);
	HeapTuple	old = row_of(rel, "outbox_counter_pkey", stream->id);
	Datum		values[OC_NATTS];
	bool		isnull[OC_NATTS];

	if (HeapTupleIsValid(old))
	{
		HeapTuple	tuple;

		counter_values(stream, values, isnull);
		tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
		CatalogTupleUpdate(rel, &old->t_self, tuple);
		heap_freetuple(tuple);
		heap_freetuple(old);
	}
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * What Kafka knows a stream by.  The server's OID is in it, so that a server that
 * is dropped and made again under its name never meets the old one's sequence; the
 * number tells the streams of one server apart.  A stream has one transactional
 * id as long as it lives: only whoever has initialized that id may believe what it
 * reads back as the stored sequence, since no older producer can change it any more.
 */
static void
make_names(OutboxStream *stream)
{
	char	   *who = psprintf(UINT64_FORMAT "-%u-%s-%u-%d", GetSystemIdentifier(), MyDatabaseId,
							   stream->server_name, stream->serverid, stream->id);

	stream->group = psprintf("upsert_kafka-outbox-%s", who);
	stream->transactional_id = psprintf("upsert_kafka-%s", who);
}

void
outbox_stream_adopt(OutboxStream *stream)
{
	make_names(stream);
	stream->foreign_copy = false;
	stream->stored_serverid = stream->serverid;
	stream->copied_seq = 0;
	stream->unreadable = NULL;	/* the original's, perhaps of another Kafka */
}

static void
stream_insert(OutboxStream *stream)
{
	Relation	rel = table_open(outbox_table("outbox_stream"), RowExclusiveLock);
	Relation	counter_rel = table_open(outbox_table("outbox_counter"), RowExclusiveLock);
	Datum		values[OS_NATTS] = {0};
	bool		isnull[OS_NATTS];
	HeapTuple	tuple;

	stream_values(stream, values, isnull);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);

	counter_values(stream, values, isnull);
	tuple = heap_form_tuple(RelationGetDescr(counter_rel), values, isnull);
	CatalogTupleInsert(counter_rel, tuple);
	heap_freetuple(tuple);

	table_close(counter_rel, RowExclusiveLock);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

static OutboxStream *
stream_seen_by(Snapshot snapshot, Oid serverid, Oid roleid, int32 *max_id)
{
	ListCell   *lc;
	OutboxStream *found = NULL;

	*max_id = 0;
	foreach(lc, streams_seen_by(snapshot))
	{
		OutboxStream *stream = lfirst(lc);

		*max_id = Max(*max_id, stream->id);
		if (stream->serverid == serverid && stream->roleid == roleid &&
			(OidIsValid(roleid) || stream->role_name == NULL))
			found = stream;
	}
	return found;
}

/* As row_of(); *max_id is set where there is none. */
static OutboxStream *
stream_find(Oid serverid, Oid roleid, int32 *max_id)
{
	OutboxStream *stream = stream_seen_by(SnapshotSelf, serverid, roleid, max_id);

	return stream != NULL ? stream : stream_seen_by(NULL, serverid, roleid, max_id);
}

OutboxStream *
outbox_stream_ensure(Oid serverid, Oid roleid, const char *carrier)
{
	int32		max_id;
	OutboxStream *stream;
	LOCKTAG		tag;

	/* outbox_exists() hides a missing extension; here it is an error */
	make_tag(&tag, 0, LOCK_CREATE);
	stream = stream_find(serverid, roleid, &max_id);
	if (stream != NULL)
		return stream;

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	AcceptInvalidationMessages();
	stream = stream_find(serverid, roleid, &max_id);
	if (stream != NULL)
		return stream;

	stream = palloc0(sizeof(OutboxStream));
	stream->id = max_id + 1;
	stream->serverid = serverid;
	stream->server_name = GetForeignServer(serverid)->servername;
	stream->roleid = roleid;
	stream->role_name = OidIsValid(roleid) ? GetUserNameFromId(roleid, false) : NULL;
	stream->carrier = pstrdup(carrier);
	make_names(stream);
	stream_insert(stream);
	return stream;
}

static void
delete_row(const char *table, const char *index, int32 id)
{
	Relation	rel = table_open(outbox_table(table), RowExclusiveLock);
	HeapTuple	tuple = row_of(rel, index, id);

	if (HeapTupleIsValid(tuple))
	{
		CatalogTupleDelete(rel, &tuple->t_self);
		heap_freetuple(tuple);
	}
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

void
outbox_stream_delete(int32 id)
{
	delete_row("outbox_stream", "outbox_stream_pkey", id);
	delete_row("outbox_counter", "outbox_counter_pkey", id);
}

/*
 * DROP SERVER takes its streams along, so one without its server has been restored
 * into the database that it comes from.
 */
bool
outbox_is_copy(int64 system_identifier, Oid database, Oid serverid)
{
	return system_identifier != (int64) GetSystemIdentifier() || database != MyDatabaseId ||
		!SearchSysCacheExists1(FOREIGNSERVEROID, ObjectIdGetDatum(serverid));
}
