/*
 * outbox_write.c
 *	  The writers' side of the outbox: at the end of a transaction its messages get
 *	  their numbers, in the order of commits, and room is found for them.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "foreign/foreign.h"
#include "kafka/kafka_time.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "outbox/outbox_catalog.h"
#include "outbox/outbox_shared.h"
#include "outbox/outbox_tables.h"
#include "storage/latch.h"
#include "upsert_kafka.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define ROOM_POLL_MS	20

/*
 * Numbers begin anew, higher than all before, with every timeline: a standby that
 * takes over may lack the last transactions of its primary, whose numbers Kafka has
 * already and would take for its own.
 */
#define SEQ_PER_TIMELINE	(INT64CONST(1) << 40)

struct OutboxWriter
{
	int			ntargets;
	OutboxStream **streams;		/* of each target; targets may share one */
	OutboxInsert *insert;
	MemoryContext context;		/* reset for every message */
	uint64		xid;
	TimestampTz now;
	int64	   *checked_bytes;	/* of each target's stream: room is known for so much */
};

/* The role whose mapping a user writes with: his own, or PUBLIC's or none (InvalidOid). */
static Oid
mapping_role(Oid serverid, Oid userid)
{
	if (SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid),
							  ObjectIdGetDatum(serverid)))
		return userid;
	return InvalidOid;
}

static int
stream_ptr_cmp(const void *a, const void *b)
{
	return (*(OutboxStream *const *) a)->id - (*(OutboxStream *const *) b)->id;
}

OutboxWriter *
outbox_write_begin(int ntargets, const OutboxTarget *targets)
{
	OutboxWriter *writer = palloc0(sizeof(OutboxWriter));
	OutboxStream **ordered = palloc(sizeof(OutboxStream *) * ntargets);
	int			nordered = 0;

	writer->ntargets = ntargets;
	writer->streams = palloc0(sizeof(OutboxStream *) * ntargets);
	writer->checked_bytes = palloc0(sizeof(int64) * ntargets);
	writer->xid = U64FromFullTransactionId(GetTopFullTransactionId());
	writer->now = GetCurrentTimestamp();
	writer->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox message",
											ALLOCSET_SMALL_SIZES);

	PushActiveSnapshot(GetLatestSnapshot());
	for (int i = 0; i < ntargets; i++)
	{
		OutboxStream *stream = outbox_stream_ensure(targets[i].serverid,
													mapping_role(targets[i].serverid, targets[i].userid),
													targets[i].topic);

		for (int j = 0; j < nordered && writer->streams[i] == NULL; j++)
			if (ordered[j]->id == stream->id)
				writer->streams[i] = ordered[j];
		if (writer->streams[i] == NULL)
			writer->streams[i] = ordered[nordered++] = stream;
	}
	/* one order for all, so that no two transactions wait for each other */
	qsort(ordered, nordered, sizeof(OutboxStream *), stream_ptr_cmp);
	for (int i = 0; i < nordered; i++)
	{
		OutboxStream *stream = ordered[i];
		OutboxStream *now;

		outbox_lock_order(stream->id);
		now = outbox_stream_get(stream->id);
		if (now == NULL || !OidIsValid(now->serverid))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("server \"%s\" was dropped while messages were written to it",
							stream->server_name)));
		*stream = *now;
		if (stream->foreign_copy && stream->copied_seq == 0)
			stream->copied_seq = Max(stream->last_seq, 1);
		stream->last_seq = Max(stream->last_seq, GetWALInsertionTimeLine_compat() * SEQ_PER_TIMELINE);
	}
	writer->insert = outbox_insert_begin();
	PopActiveSnapshot();
	return writer;
}

/* --- room --------------------------------------------------------------------- */

static void
raise_no_room(const OutboxStream *stream, int64 waiting, int64 bytes)
{
	const char *hint;

	if (waiting <= 0)
		hint = "A single transaction cannot write more than that: raise upsert_kafka.outbox_limit, or write less at once.";
	else if (stream->foreign_copy)
		hint = "The outbox came with a copy of the database: see upsert_kafka.resume_outbox().";
	else if (stream->stopped_seq != 0)
		hint = "It has stopped at a message: see the view upsert_kafka.outbox_status, upsert_kafka.outbox_skip() and upsert_kafka.resume_outbox().";
	else if (worker_shared == NULL || !uk_workers)
		hint = "No process sends it: call upsert_kafka.flush_outbox().";
	else
		hint = "Its sender cannot keep up, or Kafka does not answer: see the view upsert_kafka.outbox_status.";
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("outbox of server \"%s\" is full", stream->server_name),
			 errdetail("%lld bytes wait to be sent, this transaction adds %lld or more, and upsert_kafka.outbox_limit is %d kB.",
					   (long long) waiting, (long long) bytes, uk_outbox_limit),
			 errhint("%s", hint)));
}

/*
 * Wait until the stream has room for what this transaction has written to it so
 * far.  The sender needs nothing that we hold.
 */
static void
wait_for_room(OutboxWriter *writer, OutboxStream *stream, int64 bytes)
{
	int64		limit = uk_outbox_limit * INT64CONST(1024);
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), uk_commit_timeout);

	if (uk_outbox_limit < 0)
		return;
	for (;;)
	{
		OutboxStream *now;
		int64		waiting = stream->written_bytes - stream->removed_bytes;

		if (waiting + bytes <= limit)
			return;
		if (waiting <= 0)
			raise_no_room(stream, waiting, bytes);

		PushActiveSnapshot(GetLatestSnapshot());
		now = outbox_stream_get(stream->id);
		PopActiveSnapshot();
		if (now == NULL)
			return;
		stream->removed_bytes = now->removed_bytes;
		stream->removed_rows = now->removed_rows;
		waiting = stream->written_bytes - stream->removed_bytes;
		if (waiting + bytes <= limit)
			return;
		if (waiting <= 0 || bytes > limit || now->foreign_copy || now->stopped_seq != 0 || worker_shared == NULL ||
			!uk_workers || GetCurrentTimestamp() >= until)
			raise_no_room(now, waiting, bytes);

		outbox_wake(stream->id);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ROOM_POLL_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* --- messages ------------------------------------------------------------------- */

/* What this transaction has written to a target's stream */
static int64 *
bytes_of(OutboxWriter *writer, int target)
{
	for (int i = 0; i < target; i++)
		if (writer->streams[i] == writer->streams[target])
			return &writer->checked_bytes[i];
	return &writer->checked_bytes[target];
}

void
outbox_write(OutboxWriter *writer, int target, Oid source, KafkaPartitioner partitioner,
			 const KafkaOutRecord *record)
{
	OutboxStream *stream = writer->streams[target];
	OutboxMessage message = {0};
	int64	   *bytes = bytes_of(writer, target);
	MemoryContext old;

	MemoryContextReset(writer->context);
	old = MemoryContextSwitchTo(writer->context);
	*bytes += outbox_message_size(record);
	wait_for_room(writer, stream, *bytes);

	message.seq = ++stream->last_seq;
	message.xid = writer->xid;
	message.source = source;
	message.partitioner = partitioner;
	message.out = *record;
	/* the time of the change, however late it is sent */
	if (record->timestamp < 0)
		message.out.timestamp = kafka_ms_of(writer->now);
	message.queued_at = writer->now;
	stream->written_rows++;
	MemoryContextSwitchTo(old);
	outbox_insert(writer->insert, stream->id, &message);
}

void
outbox_write_end(OutboxWriter *writer)
{
	outbox_insert_end(writer->insert);
	PushActiveSnapshot(GetLatestSnapshot());
	for (int i = 0; i < writer->ntargets; i++)
	{
		OutboxStream *stream = writer->streams[i];
		int64	   *bytes = bytes_of(writer, i);

		if (bytes != &writer->checked_bytes[i])
			continue;
		stream->written_bytes += *bytes;
		outbox_counter_update(stream);
		outbox_wake_on_commit(stream->id);
	}
	PopActiveSnapshot();
	MemoryContextDelete(writer->context);
}

int32
outbox_written_stream(const OutboxWriter *writer, int target, int64 *seq)
{
	*seq = writer->streams[target]->last_seq;
	return writer->streams[target]->id;
}
