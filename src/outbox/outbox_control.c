/*
 * outbox_control.c
 *	  SQL functions around the outbox: sending in a session, passing a message by hand,
 *	  letting a stopped or restored one go on, status, and what DROP SERVER means.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_foreign_server.h"
#include "commands/event_trigger.h"
#include "compat.h"
#include "executor/spi.h"
#include "fdw/options.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "materialize/parts.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "outbox/outbox_catalog.h"
#include "outbox/outbox_readable.h"
#include "outbox/outbox_send.h"
#include "outbox/outbox_shared.h"
#include "outbox/outbox_tables.h"
#include "storage/latch.h"
#include "upsert_kafka.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(upsert_kafka_flush_outbox);
PG_FUNCTION_INFO_V1(upsert_kafka_outbox_skip);
PG_FUNCTION_INFO_V1(upsert_kafka_resume_outbox);
PG_FUNCTION_INFO_V1(upsert_kafka_outbox_is_copy);
PG_FUNCTION_INFO_V1(upsert_kafka_outbox_sender);
PG_FUNCTION_INFO_V1(upsert_kafka_outbox_follow_drop);

#define BUSY_POLL_MS	20		/* while a sender is at it */

/* The streams of a server that is ours; whoever calls may use it, or owns it. */
static List *
streams_of(const char *server_name, bool need_owner, const char *function)
{
	ForeignServer *server = GetForeignServerByName(server_name, false);
	List	   *result = NIL;
	ListCell   *lc;

	PreventCommandIfReadOnly(function);
	if (!topic_server_is_ours(server->serverid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a Kafka server", server_name)));
	if (need_owner)
	{
		if (!server_ownercheck_compat(server->serverid, GetUserId()))
			aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_FOREIGN_SERVER, server_name);
	}
	else
	{
		AclResult	acl = server_aclcheck_compat(server->serverid, GetUserId(), ACL_USAGE);

		if (acl != ACLCHECK_OK)
			aclcheck_error(acl, OBJECT_FOREIGN_SERVER, server_name);
	}
	foreach(lc, outbox_streams())
	{
		OutboxStream *stream = lfirst(lc);

		if (stream->serverid == server->serverid)
			result = lappend(result, stream);
	}
	return result;
}

/* --- flush ----------------------------------------------------------------------- */

/*
 * One step in a subtransaction of its own, so that an error can be looked into.
 * False: the stream has stopped, or there is nothing more.
 */
static bool
flush_step(OutboxSender *sender)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile OutboxResult result = OUTBOX_SENT;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		result = outbox_send(sender);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	if (error == NULL)
		return result == OUTBOX_SENT;
	if (!outbox_sender_failed(sender, error, false))
		ReThrowError(error);
	return true;
}

static void
raise_stopped(const OutboxStream *stream)
{
	if (stream->foreign_copy)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("outbox of server \"%s\" came with a copy of the database and does not send", stream->server_name),
				 errhint("Use upsert_kafka.resume_outbox() if this copy is to send what waits in it, or its option discard if the original does.")));
	if (stream->stopped_seq != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("outbox of server \"%s\" has stopped at message %lld", stream->server_name,
						(long long) stream->stopped_seq),
				 stream->error ? errdetail("%s", stream->error) : 0,
				 errhint("Mend the cause and call upsert_kafka.resume_outbox(), or upsert_kafka.outbox_skip() to go on without the message.")));
}

/*
 * Get the right to send, to the end of the transaction: until then nobody else knows
 * that the rows are gone.  False when a worker has sent all there was at the call.
 */
static bool
take_or_wait(OutboxStream *stream)
{
	int64		goal = stream->last_seq;

	while (!outbox_lock_sender(stream->id, false, true))
	{
		OutboxStream *now;

		outbox_wake(stream->id);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, BUSY_POLL_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();

		now = outbox_stream_get(stream->id);
		if (now == NULL || now->last_sent >= goal)
			return false;
		raise_stopped(now);
	}
	return true;
}

static int64
flush_stream(OutboxStream *stream)
{
	OutboxSender *sender;
	OutboxStream *now;
	int64		before = stream->removed_rows;

	raise_stopped(stream);
	if (stream->written_rows > stream->removed_rows && take_or_wait(stream))
	{
		sender = outbox_sender_create(stream->id, false);
		while (flush_step(sender))
			CHECK_FOR_INTERRUPTS();
		outbox_sender_settle(sender);
		outbox_sender_close(sender);
	}
	now = outbox_stream_get(stream->id);
	if (now == NULL)
		return 0;
	outbox_wait_readable(now, NULL, 0);
	return now->removed_rows - before;
}

Datum
upsert_kafka_flush_outbox(PG_FUNCTION_ARGS)
{
	char	   *server_name = NameStr(*PG_GETARG_NAME(0));
	List	   *streams = streams_of(server_name, false, "upsert_kafka.flush_outbox()");
	int64		sent = 0;
	ListCell   *lc;

	foreach(lc, streams)
		sent += flush_stream(lfirst(lc));
	PG_RETURN_INT64(sent);
}

/* --- waiting for a bookmark --------------------------------------------------------- */

bool
outbox_wait_sent(int32 id, int64 seq, const TopicTable *table, TimestampTz until)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox wait",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		found;

	for (;;)
	{
		OutboxStream *stream;

		MemoryContextReset(context);
		PushActiveSnapshot(GetLatestSnapshot());
		stream = outbox_stream_get(id);
		PopActiveSnapshot();
		found = stream != NULL && stream->last_seq >= seq;
		if (!found || stream->serverid != table->serverid)
			break;
		if (stream->last_sent >= seq)
		{
			/* perhaps for more than that: what came later is not told apart */
			outbox_wait_readable(stream, table, until);
			break;
		}
		if (!RecoveryInProgress())
		{
			raise_stopped(stream);
			if (worker_shared == NULL || !uk_workers)
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("no process sends the outbox of server \"%s\"", stream->server_name),
						 errhint("Call upsert_kafka.flush_outbox().")));
		}
		if (GetCurrentTimestamp() >= until)
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("timed out waiting for the outbox of server \"%s\"", stream->server_name),
					 errdetail("Message %lld has not been sent yet; the last one that has is %lld.",
							   (long long) seq, (long long) stream->last_sent),
					 errhint("The view upsert_kafka.outbox_status shows why.")));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, BUSY_POLL_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return found;
}

/* --- by hand ------------------------------------------------------------------------ */

/* Take the right to send, then read anew what it protects. */
static OutboxStream *
lock_and_reread(const OutboxStream *stream)
{
	OutboxStream *now;

	while (!outbox_lock_sender(stream->id, false, true))
	{
		outbox_ask(stream->id);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, BUSY_POLL_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	now = outbox_stream_get(stream->id);
	if (now == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("outbox of server \"%s\" was dropped concurrently", stream->server_name)));
	return now;
}

static void
forget_stop(OutboxStream *stream)
{
	stream->stopped_seq = 0;
	stream->error_code = 0;
	stream->error = NULL;
	stream->error_at = 0;
}

Datum
upsert_kafka_outbox_skip(PG_FUNCTION_ARGS)
{
	char	   *server_name = NameStr(*PG_GETARG_NAME(0));
	int64		seq = PG_GETARG_INT64(1);
	List	   *streams = streams_of(server_name, true, "upsert_kafka.outbox_skip()");
	ListCell   *lc;

	foreach(lc, streams)
	{
		OutboxStream *stream = lfirst(lc);
		int64		rows = 0;
		int64		bytes = 0;

		if (stream->stopped_seq != seq || stream->foreign_copy)
			continue;
		stream = lock_and_reread(stream);
		if (stream->stopped_seq != seq)
			continue;
		outbox_remove(stream->id, seq, seq, &rows, &bytes);
		stream->removed_rows += rows;
		stream->removed_bytes += bytes;
		forget_stop(stream);
		outbox_stream_update(stream, false);
		outbox_wake_on_commit(stream->id);
		PG_RETURN_VOID();
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("outbox of server \"%s\" has not stopped at message %lld", server_name, (long long) seq),
			 errhint("The view upsert_kafka.outbox_status shows where an outbox has stopped.")));
}

/* What the original of a copy has sent since the copy was made. */
static int64
sent_by_original(const OutboxStream *stream)
{
	KafkaConfig *config = kafka_config_get(stream->serverid, stream->roleid);
	KafkaConsumer *consumer = kafka_consumer_acquire(config, 0, CurrentMemoryContext);
	int64		sent = 0;

	if (kafka_partition_count(consumer, stream->carrier, true) > 0)
		sent = kafka_group_offset(consumer, stream->group, stream->carrier, 0) - 1;
	kafka_consumer_release(consumer);
	return sent;
}

static void
resume_stream(OutboxStream *stream, bool discard)
{
	int64		last = 0;
	int64		rows = 0;
	int64		bytes = 0;

	if (!stream->foreign_copy && stream->stopped_seq == 0 && !discard)
		return;
	(void) lock_and_reread(stream);
	/* no writer in between, whose messages would be counted but not seen */
	outbox_lock_order(stream->id);
	stream = lock_and_reread(stream);

	if (!discard && stream->role_name != NULL && !OidIsValid(stream->roleid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role \"%s\" does not exist", stream->role_name),
				 errdetail("Messages that were written with its user mapping wait in the outbox of server \"%s\".",
						   stream->server_name)));

	/* what was written since the copy was made has numbers of its own, which the original may have used, too */
	if (discard)
		last = stream->last_seq;
	else if (stream->foreign_copy)
		last = Min(sent_by_original(stream),
				   stream->copied_seq != 0 ? stream->copied_seq : stream->last_seq);
	if (last > stream->last_sent)
	{
		outbox_remove(stream->id, 0, last, &rows, &bytes);
		stream->last_sent = last;
	}
	stream->removed_rows += rows;
	stream->removed_bytes += bytes;
	stream->unsettled_since = 0;
	forget_stop(stream);
	if (stream->foreign_copy)
	{
		outbox_stream_adopt(stream);
		outbox_counter_update(stream);
		outbox_stream_update(stream, true);
	}
	else
		outbox_stream_update(stream, false);
	if (rows > 0)
		ereport(NOTICE,
				(discard ? errmsg("%lld messages to server \"%s\" were thrown away", (long long) rows,
								  stream->server_name) :
				 errmsg("%lld messages to server \"%s\" had been sent by the original of this copy",
						(long long) rows, stream->server_name)));
	outbox_wake_on_commit(stream->id);
}

Datum
upsert_kafka_resume_outbox(PG_FUNCTION_ARGS)
{
	char	   *server_name = NameStr(*PG_GETARG_NAME(0));
	bool		discard = PG_GETARG_BOOL(1);
	List	   *streams = streams_of(server_name, true, "upsert_kafka.resume_outbox()");
	ListCell   *lc;

	foreach(lc, streams)
		resume_stream(lfirst(lc), discard);
	PG_RETURN_VOID();
}

/* --- status ---------------------------------------------------------------------------- */

Datum
upsert_kafka_outbox_is_copy(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(outbox_is_copy(PG_GETARG_INT64(0), PG_GETARG_OID(1), PG_GETARG_OID(2)));
}

/* (available, pid, last_error, last_error_at) of a stream's sender */
Datum
upsert_kafka_outbox_sender(PG_FUNCTION_ARGS)
{
	int32		stream = PG_GETARG_INT32(0);
	TupleDesc	desc;
	Datum		values[4];
	bool		isnull[4] = {0};
	char		error[OUTBOX_ERROR_LEN];
	TimestampTz error_at;
	int			pid = outbox_sender_pid(stream, error, &error_at);

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = BoolGetDatum(worker_shared != NULL && uk_workers);
	values[1] = Int32GetDatum(pid);
	isnull[1] = pid == 0;
	isnull[2] = isnull[3] = error_at == 0;
	values[2] = CStringGetTextDatum(error);
	values[3] = TimestampTzGetDatum(error_at);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull)));
}

/* --- DROP SERVER ------------------------------------------------------------------------- */

/* The servers that the command of this event has dropped */
static List *
dropped_servers(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *result = NIL;
	int			guc_level = ddl_session_enter();

	if (SPI_execute("SELECT objid FROM pg_catalog.pg_event_trigger_dropped_objects()"
					" WHERE classid = 'pg_catalog.pg_foreign_server'::pg_catalog.regclass", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the objects of an event trigger");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		oid = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext spi_context = MemoryContextSwitchTo(context);

		if (!isnull)
			result = lappend_oid(result, DatumGetObjectId(oid));
		MemoryContextSwitchTo(spi_context);
	}
	ddl_session_leave(guc_level);
	return result;
}

Datum
upsert_kafka_outbox_follow_drop(PG_FUNCTION_ARGS)
{
	List	   *streams;
	List	   *dropped;
	ListCell   *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"outbox_follow_drop\" was not called by an event trigger")));

	streams = outbox_streams();
	dropped = streams != NIL ? dropped_servers() : NIL;
	foreach(lc, streams)
	{
		OutboxStream *stream = lfirst(lc);

		if (!list_member_oid(dropped, stream->stored_serverid))
			continue;
		/* whoever is writing to it now finds the server gone, or its messages are seen here */
		outbox_lock_order(stream->id);
		stream = outbox_stream_get(stream->id);
		if (stream == NULL)
			continue;
		if (stream->written_rows > stream->removed_rows)
			ereport(ERROR,
					(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					 errmsg("cannot drop server \"%s\" while messages for it wait in the outbox", stream->server_name),
					 errdetail("%lld messages wait.", (long long) (stream->written_rows - stream->removed_rows)),
					 errhint("Send them with upsert_kafka.flush_outbox(), or throw them away with upsert_kafka.resume_outbox(.., discard => true).")));
		outbox_stream_delete(stream->id);
		outbox_wake_on_commit(stream->id);
	}
	PG_RETURN_NULL();
}
