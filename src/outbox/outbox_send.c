/*
 * outbox_send.c
 *	  Sends a stream of the outbox: whole transactions, in the order of their commits,
 *	  each exactly once.  The process around it is outbox_sender.c or a session.
 *
 * The greatest number that was sent is stored with a Kafka group in the same Kafka
 * transaction as the messages; rows are deleted here only after it has
 * committed.  Whoever opens a stream has initialized its transactional id, so that
 * no older sender can commit any more, and then reads the stored number: what is
 * not above it was sent, whatever happened to whoever sent it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "common/hashfn.h"
#include "fdw/options.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "outbox/outbox_readable.h"
#include "outbox/outbox_send.h"
#include "outbox/outbox_tables.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "upsert_kafka.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define CALL_TIMEOUT_MS		20000	/* the last transaction of the id may have to time out */
#define TRANSACTION_MS		15000	/* what readers wait for at most if we are killed .. */
#define TRANSACTION_MAX_MS	600000	/* .. and for a transaction too large for it (brokers: 15 min) */
#define MESSAGE_MARGIN_MS	3000
#define BATCH_MESSAGES		1000
#define BATCH_BYTES			(1024 * 1024)
#define SEARCH_PATIENCE		5	/* a search for the refused message waits for each */
#define MARKER_MS			200 /* a commit's marker is in the log by then, or something is in its way */
#define MARKER_POLL_MS		20

/*
 * Brokers forget the offsets of a group that nobody uses, after a week by default.
 * Where the stored number may matter and has been left alone for so long, its
 * absence says nothing any more.
 */
#define STORED_LASTS		(INT64CONST(24) * 3600 * USECS_PER_SEC)

OutboxSender *
outbox_sender_create(int32 stream, bool own_transactions)
{
	OutboxSender *sender = palloc0(sizeof(OutboxSender));

	sender->stream = stream;
	sender->own_transactions = own_transactions;
	return sender;
}

/* --- transactions ------------------------------------------------------------ */

static MemoryContext outer_context; /* of the code around a transaction of our own */

static void
begin(OutboxSender *sender)
{
	if (sender->own_transactions)
	{
		outer_context = CurrentMemoryContext;
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
	}
	PushActiveSnapshot(GetLatestSnapshot());
}

/* Nothing is lost with a commit that a crash undoes: Kafka tells it again. */
static void
end(OutboxSender *sender, bool durable)
{
	PopActiveSnapshot();
	if (!sender->own_transactions)
		return;
	if (!durable)
		(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
	CommitTransactionCommand();
	MemoryContextSwitchTo(outer_context);
}

/*
 * Kafka must never know of a transaction that a crash of ours can undo: with
 * synchronous_commit off a committed one is visible before it is on disk.
 */
static void
make_durable(void)
{
	XLogRecPtr	inserted = GetXLogInsertRecPtr();

	/* at the start of a page the position lies behind its header, which nobody wrote yet */
	if (inserted % XLOG_BLCKSZ <= SizeOfXLogLongPHD)
		inserted -= inserted % XLOG_BLCKSZ;
	XLogFlush(inserted);
}

/* --- opening ------------------------------------------------------------------- */

/* The state in the open context, as it is now; NULL if the stream is gone. */
static OutboxStream *
state_read(OutboxSender *sender)
{
	MemoryContext old = MemoryContextSwitchTo(sender->open_context);
	OutboxStream *state = outbox_stream_get(sender->stream);

	MemoryContextSwitchTo(old);
	return state;
}

static OutboxResult
state_check(const OutboxStream *state)
{
	if (state == NULL || !OidIsValid(state->serverid))
		return OUTBOX_GONE;
	if (state->foreign_copy || state->stopped_seq != 0)
		return OUTBOX_STOPPED;
	return OUTBOX_SENT;
}

/*
 * The configuration with exactly the mapping that the messages were written with: another
 * one's credentials would reach other topics, and order them differently.
 */
static KafkaConfig *
sender_config(const OutboxStream *state)
{
	if (state->role_name != NULL &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(state->roleid),
							   ObjectIdGetDatum(state->serverid)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("user mapping for \"%s\" on server \"%s\" does not exist", state->role_name,
						state->server_name),
				 errdetail("Messages that were written with it wait in the outbox."),
				 errhint("Create it again, or throw the messages away with upsert_kafka.resume_outbox(.., discard => true).")));
	return kafka_config_get(state->serverid, state->roleid);
}

static KafkaProducer *
open_producer(OutboxSender *sender, const KafkaConfig *config)
{
	KafkaProducerSettings settings = {0};
	int			ms = TRANSACTION_MS;

	for (int i = 0; i < sender->patience && ms < TRANSACTION_MAX_MS; i++)
		ms *= 2;
	settings.partitioner = KAFKA_PARTITIONER_DEFAULT;
	settings.wait_for_acks = true;
	settings.transactional_id = sender->state->transactional_id;
	settings.transaction_timeout_ms = Min(ms, TRANSACTION_MAX_MS);
	settings.message_timeout_ms = settings.transaction_timeout_ms - MESSAGE_MARGIN_MS;
	return kafka_producer_acquire(config, &settings, sender->open_context);
}

static int64
transaction_ms(const OutboxSender *sender)
{
	return Min((int64) TRANSACTION_MS << Min(sender->patience, 10), TRANSACTION_MAX_MS);
}

/* What Kafka has stored, as a number of ours; -1: nothing. */
static int64
stored_seq(KafkaConsumer *consumer, const OutboxStream *state)
{
	/* stored is what comes next */
	if (kafka_partition_count(consumer, state->carrier, true) <= 0)
		return -1;
	return kafka_group_offset(consumer, state->group, state->carrier, 0) - 1;
}

static void
stop_at(OutboxSender *sender, int64 seq, int code, const char *text)
{
	OutboxStream *state = sender->state;

	state->stopped_seq = seq;
	state->error_code = code;
	state->error = pnstrdup(text, pg_mbcliplen(text, strlen(text), 1000));
	state->error_at = GetCurrentTimestamp();
	outbox_stream_update(state, false);
	ereport(sender->own_transactions ? LOG : WARNING,
			(errcode(code),
			 errmsg("outbox of server \"%s\" has stopped at message %lld", state->server_name,
					(long long) seq),
			 errdetail_internal("%s", text),
			 errhint("Mend the cause and call upsert_kafka.resume_outbox(), or upsert_kafka.outbox_skip() to go on without the message.")));
}

/* The first message that waits; false if none does. */
static bool
first_waiting(const OutboxSender *sender, OutboxMessage *message)
{
	OutboxScan *scan = outbox_scan_begin(sender->stream, sender->state->last_sent + 1, PG_INT64_MAX);
	bool		found = outbox_scan_next(scan, message);

	outbox_scan_end(scan);
	return found;
}

/* --- what readers see ------------------------------------------------------------ */

static void
set_unreadable(OutboxSender *sender, const char *text)
{
	char	   *copy = text != NULL ? MemoryContextStrdup(sender->open_context, text) : NULL;

	if (sender->state->unreadable != NULL)
		pfree(sender->state->unreadable);
	sender->state->unreadable = copy;
}

static List *
topics_between(const OutboxSender *sender, int64 first, int64 last)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(outer, "upsert_kafka outbox topics", ALLOCSET_DEFAULT_SIZES);
	OutboxScan *scan = outbox_scan_begin(sender->stream, first, last);
	OutboxMessage message;
	List	   *topics = NIL;

	MemoryContextSwitchTo(context);
	while (outbox_scan_next(scan, &message))
	{
		ListCell   *lc;
		bool		known = false;

		CHECK_FOR_INTERRUPTS();
		foreach(lc, topics)
			known = known || strcmp(lfirst(lc), message.out.topic) == 0;
		if (!known)
		{
			MemoryContextSwitchTo(outer);
			topics = lappend(topics, pstrdup(message.out.topic));
			MemoryContextSwitchTo(context);
		}
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(outer);
	outbox_scan_end(scan);
	MemoryContextDelete(context);
	return topics;
}

/*
 * At the opening: what an earlier sender has left, and what was sent and is found out only
 * now, whose offsets nobody knows: then it is all that its topics hold.
 */
static void
look_at_opening(OutboxSender *sender, int64 stored)
{
	OutboxStream *state = sender->state;
	KafkaConfig *config;
	char	   *text = state->unreadable;

	if (text == NULL && stored <= state->last_sent)
		return;
	config = sender_config(state);
	if (text != NULL)
		text = outbox_unreadable_forget(config, text);
	if (stored > state->last_sent)
		text = outbox_unreadable_add_topics(text, config, topics_between(sender, state->last_sent + 1, stored));
	set_unreadable(sender, outbox_unreadable_look(sender->consumer, text, true));
}

/*
 * After a commit: wait until readers of committed messages see them.  That is when the
 * commit's markers are in the log, some milliseconds later.  Where a transaction of
 * another producer is in front of them it can take a quarter of an hour, which must not
 * stop the outbox: that they cannot be read yet is noted, and waited for by whoever
 * wants to read them.
 */
static void
wait_readable(OutboxSender *sender, int n, const KafkaWritten *written)
{
	bool		blocked = sender->state->unreadable != NULL;
	char	   *text = outbox_unreadable_add(sender->state->unreadable, n, written);
	TimestampTz begun = GetCurrentTimestamp();
	long		poll = 1;

	while ((text = outbox_unreadable_look(sender->consumer, text, blocked)) != NULL && !blocked &&
		   !TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), MARKER_MS))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, poll, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		poll = Min(poll * 2, MARKER_POLL_MS);
	}
	set_unreadable(sender, text);
}

/* Nothing is to be sent: has what could not be read become readable? */
static OutboxResult
idle(OutboxSender *sender)
{
	char	   *before = sender->state->unreadable;

	if (before != NULL)
	{
		char	   *text = outbox_unreadable_look(sender->consumer, before, true);

		if (text == NULL || strcmp(text, before) != 0)
		{
			set_unreadable(sender, text);
			begin(sender);
			outbox_stream_update(sender->state, false);
			end(sender, false);
		}
	}
	return OUTBOX_IDLE;
}

/* --- opening and closing ----------------------------------------------------------- */

/*
 * Bring what PostgreSQL knows up to what Kafka has.  False when that cannot be found
 * out, and the stream has been stopped.
 */
static bool
settle(OutboxSender *sender)
{
	OutboxStream *state = sender->state;
	int64		stored = stored_seq(sender->consumer, state);
	bool		settled = true;

	begin(sender);
	look_at_opening(sender, stored);
	if (stored > state->last_sent)
	{
		int64		rows = 0;
		int64		bytes = 0;

		outbox_remove(state->id, state->last_sent + 1, stored, &rows, &bytes);
		state->removed_rows += rows;
		state->removed_bytes += bytes;
		state->last_sent = stored;
		state->last_sent_at = GetCurrentTimestamp();
		outbox_stream_update(state, false);
	}
	else if (stored < 0 && state->unsettled_since != 0 &&
			 GetCurrentTimestamp() - state->unsettled_since > STORED_LASTS)
	{
		OutboxMessage message;

		if (first_waiting(sender, &message))
		{
			stop_at(sender, message.seq, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
					psprintf("Kafka has forgotten what was sent: nothing is stored for group \"%s\", topic \"%s\". "
							 "Messages from this one on may have been sent before.",
							 state->group, state->carrier));
			settled = false;
		}
	}
	end(sender, true);
	return settled;
}

/*
 * Remember, for good, that Kafka may know more than we do from now on, and under
 * which topic it keeps the sequence.
 */
static bool
begin_sending(OutboxSender *sender)
{
	OutboxStream *state = sender->state;
	OutboxMessage message;
	bool		waiting;
	bool		carrier_gone;

	if (state->unsettled_since != 0)
		return true;
	carrier_gone = kafka_partition_count(sender->consumer, state->carrier, true) <= 0;
	begin(sender);
	waiting = first_waiting(sender, &message);
	if (waiting)
	{
		state->unsettled_since = GetCurrentTimestamp();
		/* the old one was deleted, and with it what Kafka had stored: all that is known here */
		if (carrier_gone)
			state->carrier = MemoryContextStrdup(sender->open_context, message.out.topic);
		outbox_stream_update(state, false);
	}
	end(sender, true);
	return waiting;
}

static OutboxResult
open_stream(OutboxSender *sender)
{
	OutboxResult result;
	KafkaConfig *config = NULL;
	MemoryContext old;

	sender->open_context = AllocSetContextCreate(sender->own_transactions ? TopMemoryContext :
												 CurrentMemoryContext,
												 "upsert_kafka outbox sender", ALLOCSET_DEFAULT_SIZES);
	begin(sender);
	if (!outbox_exists())
		result = OUTBOX_GONE;
	else if (sender->own_transactions && !outbox_lock_sender(sender->stream, true, true))
		result = OUTBOX_BUSY;
	else
	{
		sender->state = state_read(sender);
		result = state_check(sender->state);
	}
	if (result == OUTBOX_SENT)
	{
		old = MemoryContextSwitchTo(sender->open_context);
		config = sender_config(sender->state);
		MemoryContextSwitchTo(old);
	}
	end(sender, false);

	if (result == OUTBOX_SENT)
	{
		sender->consumer = kafka_consumer_acquire(config, 0, sender->open_context);
		sender->producer = open_producer(sender, config);
		kafka_transaction_begin(sender->producer, CALL_TIMEOUT_MS);
		if (!settle(sender))
			result = OUTBOX_STOPPED;
	}
	return result;
}

void
outbox_sender_close(OutboxSender *sender)
{
	/* an abort has released the lock already */
	if (sender->own_transactions && sender->state != NULL)
	{
		begin(sender);
		if (outbox_exists())
			outbox_unlock_sender(sender->stream);
		end(sender, false);
	}
	if (sender->open_context != NULL)
		MemoryContextDelete(sender->open_context);
	sender->open_context = NULL;
	sender->state = NULL;
	sender->consumer = NULL;
	sender->producer = NULL;
	sender->producing = false;
}

/* --- sending ---------------------------------------------------------------------- */

/* The producer has one partitioner, the tables of a stream may have several. */
static void
choose_partition(OutboxSender *sender, OutboxMessage *message)
{
	KafkaOutRecord *out = &message->out;
	int			n;

	if (out->partition >= 0 || message->partitioner == KAFKA_PARTITIONER_DEFAULT || out->key == NULL)
		return;
	n = kafka_producer_partitions(sender->producer, out->topic);
	if (message->partitioner == KAFKA_PARTITIONER_RANDOM)
		out->partition = hash_bytes_uint32((uint32) message->seq) % (uint32) n;
	else
		out->partition = kafka_partition_of(message->partitioner, out->key, out->key_len, n);
}

/* Messages that are handed to the library together */
typedef struct MessageBatch
{
	MemoryContext context;		/* what the messages point to; reset when they are sent */
	int			n;
	Size		bytes;
	OutboxMessage messages[BATCH_MESSAGES];
	const KafkaOutRecord *records[BATCH_MESSAGES];
} MessageBatch;

static void
send_messages(OutboxSender *sender, MessageBatch *batch)
{
	int			begin = 0;		/* of what goes to one topic */

	if (batch->n == 0)
		return;
	sender->last_tried = batch->messages[batch->n - 1].seq;
	sender->producing = true;
	for (int i = 0; i < batch->n; i++)
	{
		choose_partition(sender, &batch->messages[i]);
		batch->records[i] = &batch->messages[i].out;
		if (i > begin && strcmp(batch->records[i]->topic, batch->records[begin]->topic) != 0)
		{
			kafka_produce_many(sender->producer, i - begin, &batch->records[begin]);
			begin = i;
		}
	}
	kafka_produce_many(sender->producer, batch->n - begin, &batch->records[begin]);
	if (sender->care > 1)
		kafka_producer_flush(sender->producer, transaction_ms(sender));
	sender->producing = false;
	batch->n = 0;
	batch->bytes = 0;
	MemoryContextReset(batch->context);
}

/* Queue whole transactions; returns the last number, 0 if nothing waits. */
static int64
queue_transactions(OutboxSender *sender)
{
	MessageBatch *batch = palloc(sizeof(MessageBatch));
	OutboxScan *scan = outbox_scan_begin(sender->stream, sender->state->last_sent + 1, PG_INT64_MAX);
	MemoryContext old;
	OutboxMessage message;
	uint64		xid = 0;
	int64		last = 0;
	int			rows = 0;
	int64		bytes = 0;

	batch->n = 0;
	batch->bytes = 0;
	batch->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox batch", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(batch->context);
	while (outbox_scan_next(scan, &message))
	{
		Size		size = outbox_message_size(&message.out);

		CHECK_FOR_INTERRUPTS();
		if (rows > 0 && message.xid != xid &&
			(sender->care > 0 || rows >= uk_batch_rows || bytes >= uk_batch_bytes * INT64CONST(1024)))
			break;
		xid = message.xid;
		last = message.seq;
		rows++;
		bytes += size;
		batch->messages[batch->n++] = message;
		batch->bytes += size;
		/* with care, so that an error is about this one */
		if (batch->n == BATCH_MESSAGES || batch->bytes >= BATCH_BYTES || sender->care > 1)
			send_messages(sender, batch);
	}
	send_messages(sender, batch);
	MemoryContextSwitchTo(old);
	outbox_scan_end(scan);
	MemoryContextDelete(batch->context);
	pfree(batch);
	return last;
}

void
outbox_sender_settle(OutboxSender *sender)
{
	if (sender->state == NULL || sender->state->unsettled_since == 0)
		return;
	begin(sender);
	sender->state->unsettled_since = 0;
	outbox_stream_update(sender->state, false);
	end(sender, true);
}

OutboxResult
outbox_send(OutboxSender *sender)
{
	OutboxStream *state;
	KafkaWritten offset;
	KafkaWritten *written;
	int			nwritten;
	int64		last;
	int64		rows = 0;
	int64		bytes = 0;

	if (sender->open_context == NULL)
	{
		OutboxResult result = open_stream(sender);

		if (result != OUTBOX_SENT)
		{
			outbox_sender_close(sender);
			return result;
		}
	}
	else
	{
		OutboxResult result;

		begin(sender);
		result = state_check(outbox_stream_get(sender->stream));
		end(sender, false);
		if (result != OUTBOX_SENT)
		{
			outbox_sender_close(sender);
			return result;
		}
	}
	if (!begin_sending(sender))
		return idle(sender);

	state = sender->state;
	begin(sender);
	last = queue_transactions(sender);
	end(sender, false);
	if (last == 0)
		return idle(sender);
	make_durable();

	offset.topic = state->carrier;
	offset.partition = 0;
	offset.offset = last + 1;
	kafka_transaction_commit(sender->producer, state->group, 1, &offset, transaction_ms(sender));

	nwritten = kafka_producer_written(sender->producer, &written);

	begin(sender);
	outbox_remove(state->id, state->last_sent + 1, last, &rows, &bytes);
	/* last, since the markers are on their way meanwhile */
	wait_readable(sender, nwritten, written);
	state->removed_rows += rows;
	state->removed_bytes += bytes;
	state->last_sent = last;
	state->last_sent_at = GetCurrentTimestamp();
	outbox_stream_update(state, false);
	end(sender, false);

	sender->care = 0;
	sender->patience = 0;
	kafka_transaction_begin(sender->producer, CALL_TIMEOUT_MS);
	return OUTBOX_SENT;
}

/* --- failures ------------------------------------------------------------------------ */

/* What is wrong with a message will not pass: its size, time, form. */
static bool
is_refusal(int sqlerrcode)
{
	int			category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == MAKE_SQLSTATE('2', '2', '0', '0', '0') ||
		category == MAKE_SQLSTATE('5', '4', '0', '0', '0');
}

/* The refused message is known: the stream stops there. */
static void
stop_at_refused(OutboxSender *sender, int64 seq, int64 last_sent, const ErrorData *error)
{
	sender->open_context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox stop",
												 ALLOCSET_DEFAULT_SIZES);
	begin(sender);
	if (!sender->own_transactions || outbox_lock_sender(sender->stream, true, true))
	{
		sender->state = state_read(sender);
		/* the right to send was given back for a moment: somebody else may have gone on */
		if (state_check(sender->state) == OUTBOX_SENT && sender->state->last_sent == last_sent)
		{
			/* its transaction was never committed, and what came before is settled */
			sender->state->unsettled_since = 0;
			stop_at(sender, seq, error->sqlerrcode,
					error->detail != NULL ? psprintf("%s: %s", error->message, error->detail) :
					error->message);
		}
	}
	end(sender, true);
	outbox_sender_close(sender);
}

bool
outbox_sender_failed(OutboxSender *sender, const ErrorData *error, bool lasting)
{
	bool		producing = sender->producing;
	int64		last_tried = sender->last_tried;
	int64		last_sent = sender->state != NULL ? sender->state->last_sent : -1;

	/* the abort of the transaction has given the right to send back */
	if (sender->open_context != NULL)
		MemoryContextDelete(sender->open_context);
	sender->open_context = NULL;
	sender->state = NULL;
	sender->consumer = NULL;
	sender->producer = NULL;
	sender->producing = false;

	if (is_refusal(error->sqlerrcode) ||
		(lasting && producing && error->sqlerrcode == ERRCODE_FDW_TABLE_NOT_FOUND))
	{
		if (sender->care < 2)
		{
			sender->care++;
			if (sender->care == 2)
				sender->patience = Max(sender->patience, SEARCH_PATIENCE);
			return true;
		}
		if (!producing)
			return false;
		stop_at_refused(sender, last_tried, last_sent, error);
		sender->care = 0;
		return true;
	}

	/* perhaps it was too much for the time; a broker that is down fails at once in the next round */
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == MAKE_SQLSTATE('0', '8', '0', '0', '0') ||
		error->sqlerrcode == ERRCODE_T_R_SERIALIZATION_FAILURE)
	{
		if (sender->care == 0)
			sender->care = 1;
		else
			sender->patience = Min(sender->patience + 1, 6);
	}
	return false;
}
