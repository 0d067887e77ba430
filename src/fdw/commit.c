/*
 * commit.c
 *	  The end of a transaction that has written to topics: before it commits, its
 *	  messages are sent in order and their acknowledgements waited for, and those of
 *	  exactly-once tables put into the outbox.  Owns the transaction callbacks; the
 *	  buffer is pending.c's.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "fdw/pending_internal.h"
#include "fdw/written.h"
#include "miscadmin.h"
#include "outbox/outbox.h"
#include "upsert_kafka.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* librdkafka gives a message up so much earlier than the commit does. */
#define TIMEOUT_MARGIN_MS	500

/* A topic that takes less than this is not looked for. */
#define SMALL_BYTES			(64 * 1024)

/* One producer; targets that differ in other things share it. */
typedef struct Sender
{
	Oid			serverid;
	Oid			userid;
	KafkaPartitioner partitioner;
	DeliveryGuarantee delivery;
	const KafkaConfig *config;
	int			batch_bytes;	/* most that one of the topics takes; 0: as always */
	KafkaProducer *producer;
} Sender;

/* Of a key's bytes and partition. */
typedef struct WindowKey
{
	uint32		hash;
	char		status;
	int			index;			/* among the window's records */
} WindowKey;

struct windowtable_hash;

/* Of one target at a time: messages of different targets keep their order. */
typedef struct Window
{
	const PendingTarget *target;	/* NULL: empty */
	int			n;
	int			max;
	PendingRecord *records;		/* without bytes: a later one has replaced it */
	struct windowtable_hash *keys;
	Size		bytes;
	TimestampTz begin;
} Window;

static bool window_key_equal(Window *window, int a, int b);

#define SH_PREFIX windowtable
#define SH_ELEMENT_TYPE WindowKey
#define SH_KEY_TYPE int
#define SH_KEY index
#define SH_HASH_KEY(tb, key) ((uint32) (key))	/* not used: keys come with their hash */
#define SH_EQUAL(tb, a, b) window_key_equal((Window *) (tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a) (a)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Sending
{
	MemoryContext cxt;			/* everything below, records included */
	int			nsenders;
	int			max_senders;
	Sender	   *senders;
	Window		window;
	OutboxWriter *outbox;		/* NULL: this pass is for what is sent directly */
} Sending;

static Sending *sending;		/* in TopTransactionContext, while messages are sent */

static void commit_callback(XactEvent event, void *arg);
static void subcommit_callback(SubXactEvent event, SubTransactionId sub, SubTransactionId parent, void *arg);

void
commit_register(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(commit_callback, NULL);
	RegisterSubXactCallback(subcommit_callback, NULL);
	registered = true;
}

/* ---- sending ------------------------------------------------------------- */

static void
acquire_producer(Sender *sender)
{
	KafkaProducerSettings settings = {0};
	KafkaConfig config = *sender->config;

	settings.partitioner = sender->partitioner;
	settings.wait_for_acks = sender->delivery != DELIVERY_NONE;
	settings.batch_bytes = sender->batch_bytes;
	settings.message_timeout_ms = Max(uk_commit_timeout - TIMEOUT_MARGIN_MS, uk_commit_timeout / 2);
	config.timeout_ms = Min(config.timeout_ms, uk_commit_timeout);
	sender->producer = kafka_producer_acquire(&config, &settings, sending->cxt);
}

static Sender *
sender_of(const PendingTarget *target)
{
	Sender	   *sender;

	for (int i = 0; i < sending->nsenders; i++)
	{
		sender = &sending->senders[i];
		if (sender->serverid == target->serverid && sender->userid == target->userid &&
			sender->partitioner == target->partitioner && sender->delivery == target->delivery)
			return sender;
	}
	if (sending->nsenders == sending->max_senders)
	{
		int			max = Max(4, sending->max_senders * 2);

		if (sending->senders == NULL)
			sending->senders = MemoryContextAlloc(sending->cxt, sizeof(Sender) * max);
		else
			sending->senders = repalloc(sending->senders, sizeof(Sender) * max);
		sending->max_senders = max;
	}

	sender = &sending->senders[sending->nsenders];
	memset(sender, 0, sizeof(Sender));
	sender->serverid = target->serverid;
	sender->userid = target->userid;
	sender->partitioner = target->partitioner;
	sender->delivery = target->delivery;
	sender->config = target->config;
	acquire_producer(sender);
	sending->nsenders++;
	return sender;
}

static void
send_record(const PendingRecord *record)
{
	const PendingTarget *target = record->target;

	if (target->delivery == DELIVERY_EXACTLY_ONCE)
		outbox_write(sending->outbox, target->outbox_index, target->source, target->partitioner,
					 &record->out);
	else
		kafka_produce(sender_of(target)->producer, &record->out);
}

/* ---- reduction ----------------------------------------------------------- */

static bool
window_key_equal(Window *window, int a, int b)
{
	const KafkaOutRecord *left = &window->records[a].out;
	const KafkaOutRecord *right = &window->records[b].out;

	return left->partition == right->partition && left->key_len == right->key_len &&
		(left->key == NULL) == (right->key == NULL) &&
		(left->key_len == 0 || memcmp(left->key, right->key, left->key_len) == 0);
}

static void
window_flush(void)
{
	Window	   *window = &sending->window;

	if (window->target == NULL)
		return;
	for (int i = 0; i < window->n; i++)
	{
		PendingRecord *record = &window->records[i];

		CHECK_FOR_INTERRUPTS();
		if (record->bytes == NULL)
			continue;
		send_record(record);
		pending_record_free(record);
	}
	windowtable_destroy(window->keys);
	window->keys = NULL;
	window->n = 0;
	window->bytes = 0;
	window->target = NULL;
}

/* Does the window end before this record? */
static bool
window_ends(const PendingRecord *record)
{
	const Window *window = &sending->window;
	const PendingTarget *target = window->target;

	return target != NULL &&
		(record->target != target ||
		 window->n >= target->window_rows ||
		 window->bytes > work_mem * (Size) 1024 ||
		 record->queued_at - window->begin >= target->window_ms * INT64CONST(1000));
}

static Size
record_size(const PendingRecord *record)
{
	return GetMemoryChunkSpace(record->bytes) + sizeof(PendingRecord) + sizeof(WindowKey);
}

/*
 * Takes the record.  What is replaced leaves its place: the last change of a key goes
 * where it was made.
 */
static void
window_add(const PendingRecord *record)
{
	Window	   *window = &sending->window;
	WindowKey  *key;
	uint32		hash;
	bool		found;

	if (window->target == NULL)
	{
		window->target = record->target;
		window->begin = record->queued_at;
		window->keys = windowtable_create(sending->cxt, 256, window);
	}
	if (window->n == window->max)
	{
		window->max = Max(256, window->max * 2);
		if (window->records == NULL)
			window->records = MemoryContextAllocHuge(sending->cxt, sizeof(PendingRecord) * window->max);
		else
			window->records = repalloc_huge(window->records, sizeof(PendingRecord) * window->max);
	}
	window->records[window->n] = *record;
	window->bytes += record_size(record);

	hash = hash_combine(hash_bytes((const unsigned char *) record->out.key, record->out.key_len),
						(uint32) record->out.partition);
	key = windowtable_insert_hash(window->keys, window->n, hash, &found);
	if (found)
	{
		PendingRecord *replaced = &window->records[key->index];

		window->bytes -= record_size(replaced);
		pending_record_free(replaced);
		key->index = window->n;
	}
	window->n++;
}

/* ---- the commit ---------------------------------------------------------- */

/*
 * Is everything there that a target's records need?  False: one of them, perhaps one that
 * was undone, would be refused.
 */
static bool
check_target(const PendingTarget *target)
{
	Sender	   *sender = sender_of(target);
	bool		good = target->max_partition < kafka_producer_partitions(sender->producer, target->topic);
	int			batch_bytes;

	/* the question is for those who may have to hear a no, not for every small transaction */
	if (target->all_bytes <= SMALL_BYTES)
		return good;
	if (target->max_bytes > kafka_producer_message_limit(sender->producer, target->topic, &batch_bytes))
		good = false;
	if (batch_bytes > 0 && target->all_bytes > batch_bytes)
		sender->batch_bytes = sender->batch_bytes > 0 ? Min(sender->batch_bytes, batch_bytes) : batch_bytes;
	return good;
}

/*
 * Are all topics and partitions there, and no message too large?  What is refused then was
 * not sent by half.
 */
static void
check_targets(int64 end)
{
	PendingTarget *target;
	bool		doubtful = false;
	int64		position = 0;
	PendingRecord record;

	for (int i = 0; (target = pending_target(i)) != NULL; i++)
	{
		/* all of its records may have been undone */
		if (target->first >= 0 && target->delivery != DELIVERY_EXACTLY_ONCE && !check_target(target))
			doubtful = true;
	}
	for (int i = 0; i < sending->nsenders; i++)
	{
		Sender	   *sender = &sending->senders[i];

		if (sender->batch_bytes == 0)
			continue;
		kafka_producer_release(sender->producer);
		acquire_producer(sender);
	}
	while (doubtful && pending_fetch(&position, end, &record))
	{
		CHECK_FOR_INTERRUPTS();
		target = record.target;
		if (record.out.partition >= 0 && target->delivery != DELIVERY_EXACTLY_ONCE)
			kafka_producer_check_partition(sender_of(target)->producer, record.out.topic, record.out.partition);
		if (target->all_bytes > SMALL_BYTES && target->delivery != DELIVERY_EXACTLY_ONCE)
			kafka_producer_check_size(sender_of(target)->producer, &record.out);
		pending_record_free(&record);
	}
}

/* Messages of one target, together where they are sent directly. */
static void
send_run(int n, const PendingRecord *records, const KafkaOutRecord **out)
{
	if (n == 0)
		return;
	if (sending->outbox != NULL)
	{
		for (int i = 0; i < n; i++)
			send_record(&records[i]);
		return;
	}
	for (int i = 0; i < n; i++)
		out[i] = &records[i].out;
	kafka_produce_many(sender_of(records[0].target)->producer, n, out);
}

static void
send_batch(int n, const PendingRecord *records, int64 end)
{
	const KafkaOutRecord **out = palloc(sizeof(KafkaOutRecord *) * n);
	int			begin = 0;		/* of what is to be sent together */

	for (int i = 0; i < n; i++)
	{
		const PendingRecord *record = &records[i];
		bool		now = (record->target->delivery == DELIVERY_EXACTLY_ONCE) == (sending->outbox != NULL);
		bool		window = record->target->window_rows > 1;

		if (i > begin && (!now || window || record->target != records[begin].target))
		{
			send_run(i - begin, &records[begin], out);
			begin = i;
		}
		if (now && window_ends(record))
			window_flush();
		if (now && window)
		{
			int64		position = record->position;
			PendingRecord own;

			/* it is kept for longer than the batch */
			(void) pending_fetch(&position, end, &own);
			window_add(&own);
		}
		if (!now || window)
			begin = i + 1;
	}
	send_run(n - begin, &records[begin], out);
	pfree(out);
}

static void
send_all(int64 end)
{
	PendingBatch *batch = pending_batch_create();
	PendingRecord *records;
	int64		position = 0;
	int			n;

	while ((n = pending_batch_fetch(batch, &position, end, &records)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		send_batch(n, records, end);
	}
	window_flush();
}

/*
 * Last of all, since others wait from here on until this transaction has ended.  What
 * Kafka says of these messages nobody knows yet: a bookmark names their place here.
 */
static void
write_outbox(void)
{
	PendingTarget *target;
	OutboxTarget *targets;
	int			n = 0;

	while (pending_target(n) != NULL)
		n++;
	targets = palloc(sizeof(OutboxTarget) * Max(n, 1));
	n = 0;
	for (int i = 0; (target = pending_target(i)) != NULL; i++)
	{
		if (target->first < 0 || target->delivery != DELIVERY_EXACTLY_ONCE)
			continue;
		targets[n].serverid = target->serverid;
		targets[n].userid = target->userid;
		targets[n].topic = target->topic;
		target->outbox_index = n++;
	}
	if (n == 0)
		return;

	sending->outbox = outbox_write_begin(n, targets);
	send_all(pending_mark());
	outbox_write_end(sending->outbox);
	for (int i = 0; i < n; i++)
	{
		KafkaWritten written = {.topic = BOOKMARK_OUTBOX};

		written.partition = outbox_written_stream(sending->outbox, i, &written.offset);
		written_note(targets[i].serverid, 1, &written);
	}
}

static void
send_and_wait(void)
{
	MemoryContext cxt = AllocSetContextCreate(TopTransactionContext, "sending to Kafka", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TimestampTz until;

	sending = palloc0(sizeof(Sending));
	sending->cxt = cxt;
	check_targets(pending_mark());
	send_all(pending_mark());

	/* statement_timeout is off by now: the limit is our own */
	until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), uk_commit_timeout);
	for (int i = 0; i < sending->nsenders; i++)
	{
		Sender	   *sender = &sending->senders[i];

		if (sender->delivery != DELIVERY_NONE)
			kafka_producer_flush(sender->producer,
								 Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until), 1));
	}
	for (int i = 0; i < sending->nsenders; i++)
	{
		Sender	   *sender = &sending->senders[i];
		KafkaWritten *written;

		/* without waiting only a part of it would be known */
		if (sender->delivery != DELIVERY_NONE)
		{
			int			n = kafka_producer_written(sender->producer, &written);

			written_note(sender->serverid, n, written);
		}
		kafka_producer_release(sender->producer);
		sender->producer = NULL;
	}
	write_outbox();
	sending = NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

static void
commit_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			if (pending_mark() > 0)
				send_and_wait();
			/* closes the file, which nobody would do at a commit without a warning */
			pending_clear();
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (pending_mark() > 0)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot prepare a transaction that has written to foreign tables on Kafka topics"),
						 errhint("Its messages are sent by COMMIT.")));
			pending_clear();
			break;
		case XACT_EVENT_COMMIT:
			written_commit();
			break;
		case XACT_EVENT_ABORT:
			for (int i = 0; sending != NULL && i < sending->nsenders; i++)
				if (sending->senders[i].producer != NULL)
					kafka_producer_purge(sending->senders[i].producer);
			sending = NULL;
			pending_forget();
			written_abort();
			break;
		default:
			break;
	}
}

static void
subcommit_callback(SubXactEvent event, SubTransactionId sub, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		pending_subabort(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		pending_subcommit(GetCurrentTransactionNestLevel());
}
