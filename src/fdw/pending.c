/*
 * pending.c
 *	  The buffer of messages that a transaction has written and not sent: one log
 *	  in the order of the statements.  Knows subtransactions; who sends is commit.c.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "fdw/pending_internal.h"
#include "fdw/spill_log.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Bytes of records read back at once */
#define READ_BYTES		(1024 * 1024)

/* Where the log stood when a subtransaction queued its first record. */
typedef struct PendingSavepoint
{
	int			level;
	int64		position;
} PendingSavepoint;

/* In TopTransactionContext; NULL: the transaction has written nothing. */
typedef struct Pending
{
	MemoryContext cxt;
	SpillLog   *log;
	int			ntargets;
	int			max_targets;
	PendingTarget **targets;
	PendingTarget *last_target;
	int			nsavepoints;	/* by level, ascending */
	int			max_savepoints;
	PendingSavepoint *savepoints;
} Pending;

static Pending *pending;

/*
 * What stands in front of a record's bytes; copied in and out, so never aligned.  The
 * log has only 'base' where the rest is as in 'plain', as it is for most: a
 * statement of many rows is a matter of how much goes to the disk and back.
 */
typedef struct PendingBase
{
	uint32		target;			/* with HEAD_MORE: the rest follows */
	int32		key_len;		/* -1: null */
	int32		value_len;		/* -1: null */
} PendingBase;

typedef struct PendingMore
{
	int64		timestamp;
	int64		queued_at;
	int32		partition;
	int32		headers_len;
	int32		nheaders;
	int32		unused;			/* padding that is not written undefined */
} PendingMore;

typedef struct PendingHead
{
	PendingBase base;
	PendingMore more;
} PendingHead;

#define HEAD_MORE	0x80000000

static const PendingMore plain = {.timestamp = -1, .partition = -1};

struct PendingBatch
{
	MemoryContext cxt;
	MemoryContext headers_cxt;	/* reset at each fetch */
	Size		size;
	char	   *bytes;			/* of what is not in memory */
	int			max;
	PendingRecord *records;
};

struct PendingReader
{
	MemoryContext cxt;
	MemoryContext batch_cxt;
	int64		position;
	int64		end;
	int			ntargets;
	const char **topics;		/* by target: NULL, it is not of the table's */
};

static void
pending_create(void)
{
	MemoryContext cxt = AllocSetContextCreate(TopTransactionContext, "pending writes", ALLOCSET_SMALL_SIZES);
	Pending    *created = MemoryContextAllocZero(cxt, sizeof(Pending));

	commit_register();
	created->cxt = cxt;
	created->log = spill_log_create(cxt, TopTransactionResourceOwner, work_mem * (Size) 1024);
	pending = created;
}

static bool
target_fits(const PendingTarget *target, const TopicTable *table, const char *topic, Oid userid)
{
	return target->serverid == table->serverid && target->userid == userid &&
		target->partitioner == table->partitioner && target->delivery == table->delivery &&
		(target->delivery != DELIVERY_EXACTLY_ONCE || target->source == table->relid) &&
		target->window_rows == table->window_rows && target->window_ms == table->window_ms &&
		strcmp(target->topic, topic) == 0;
}

static PendingTarget *
target_of(const TopicTable *table, const char *topic, Oid userid)
{
	PendingTarget *target = pending->last_target;
	MemoryContext old;

	if (target != NULL && target_fits(target, table, topic, userid))
		return target;
	for (int i = 0; i < pending->ntargets; i++)
	{
		if (target_fits(pending->targets[i], table, topic, userid))
			return pending->last_target = pending->targets[i];
	}

	old = MemoryContextSwitchTo(pending->cxt);
	if (pending->ntargets == pending->max_targets)
	{
		int			max = Max(8, pending->max_targets * 2);

		if (pending->targets == NULL)
			pending->targets = palloc(sizeof(PendingTarget *) * max);
		else
			pending->targets = repalloc(pending->targets, sizeof(PendingTarget *) * max);
		pending->max_targets = max;
	}
	target = palloc0(sizeof(PendingTarget));
	target->index = pending->ntargets;
	target->serverid = table->serverid;
	target->userid = userid;
	target->topic = pstrdup(topic);
	target->partitioner = table->partitioner;
	target->delivery = table->delivery;
	target->source = table->relid;
	target->window_rows = table->window_rows;
	target->window_ms = table->window_ms;
	/* as it is now: the server may be altered or dropped before the commit */
	target->config = kafka_config_get(table->serverid, userid);
	target->first = -1;
	target->max_partition = -1;
	pending->targets[pending->ntargets++] = target;
	MemoryContextSwitchTo(old);
	return pending->last_target = target;
}

/* The first record of a subtransaction: remember where to cut. */
static void
note_savepoint(int64 position)
{
	int			level = GetCurrentTransactionNestLevel();
	PendingSavepoint *savepoint;

	if (level <= 1 ||
		(pending->nsavepoints > 0 && pending->savepoints[pending->nsavepoints - 1].level >= level))
		return;
	if (pending->nsavepoints == pending->max_savepoints)
	{
		int			max = Max(8, pending->max_savepoints * 2);

		if (pending->savepoints == NULL)
			pending->savepoints = MemoryContextAlloc(pending->cxt, sizeof(PendingSavepoint) * max);
		else
			pending->savepoints = repalloc(pending->savepoints, sizeof(PendingSavepoint) * max);
		pending->max_savepoints = max;
	}
	savepoint = &pending->savepoints[pending->nsavepoints++];
	savepoint->level = level;
	savepoint->position = position;
}

static inline char *
put_bytes(char *p, const void *bytes, Size len)
{
	if (len > 0)
		memcpy(p, bytes, len);
	return p + len;
}

static inline Size
head_len(const PendingBase *base)
{
	return sizeof(PendingBase) + (base->target & HEAD_MORE ? sizeof(PendingMore) : 0);
}

void
pending_add(const TopicTable *table, Oid userid, const KafkaOutRecord *record)
{
	PendingTarget *target;
	PendingHead head;
	Size		headers_len = 0;
	Size		total;
	int64		position;
	char	   *p;

	if (pending == NULL)
		pending_create();
	target = target_of(table, record->topic, userid);
	for (int i = 0; i < record->nheaders; i++)
	{
		headers_len += strlen(record->headers[i].name) + 1 + sizeof(int32);
		if (record->headers[i].value != NULL)
			headers_len += record->headers[i].value_len;
	}
	memset(&head, 0, sizeof(head));
	head.more.timestamp = record->timestamp;
	head.more.queued_at = target->window_rows > 0 ? GetCurrentTimestamp() : 0;
	head.more.partition = record->partition;
	head.more.headers_len = (int32) headers_len;
	head.more.nheaders = record->nheaders;
	head.base.target = (uint32) target->index;
	if (memcmp(&head.more, &plain, sizeof(plain)) != 0)
		head.base.target |= HEAD_MORE;
	head.base.key_len = record->key != NULL ? (int32) record->key_len : -1;
	head.base.value_len = record->value != NULL ? (int32) record->value_len : -1;

	total = head_len(&head.base) + headers_len;
	if (record->key != NULL)
		total += record->key_len;
	if (record->value != NULL)
		total += record->value_len;
	if (!AllocSizeIsValid(total))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("message for topic \"%s\" is too large", record->topic),
				 errdetail("It has %zu bytes.", total)));

	note_savepoint(spill_log_end(pending->log));
	p = spill_log_append(pending->log, total, &position);
	p = put_bytes(p, &head.base, sizeof(PendingBase));
	if (head.base.target & HEAD_MORE)
		p = put_bytes(p, &head.more, sizeof(PendingMore));
	if (head.base.key_len > 0)
		p = put_bytes(p, record->key, head.base.key_len);
	if (head.base.value_len > 0)
		p = put_bytes(p, record->value, head.base.value_len);
	for (int i = 0; i < record->nheaders; i++)
	{
		const KafkaHeader *header = &record->headers[i];
		int32		len = header->value != NULL ? (int32) header->value_len : -1;

		p = put_bytes(p, header->name, strlen(header->name) + 1);
		p = put_bytes(p, &len, sizeof(len));
		if (len > 0)
			p = put_bytes(p, header->value, len);
	}
	if (target->first < 0)
		target->first = position;
	target->max_partition = Max(target->max_partition, record->partition);
	target->max_bytes = Max(target->max_bytes, record->key_len + record->value_len);
	target->all_bytes += record->key_len + record->value_len;
}

PendingTarget *
pending_target(int index)
{
	return pending != NULL && index < pending->ntargets ? pending->targets[index] : NULL;
}

static inline Size
body_len(const PendingHead *head)
{
	return Max(head->base.key_len, 0) + (Size) Max(head->base.value_len, 0) + head->more.headers_len;
}

/* What head and body say, which is pointed into; an array of headers is palloc'd. */
static void
record_set(PendingRecord *record, int64 position, const PendingHead *head, const char *p)
{
	KafkaOutRecord *out = &record->out;
	KafkaHeader *headers;

	memset(record, 0, sizeof(PendingRecord));
	record->position = position;
	record->target = pending->targets[head->base.target & ~HEAD_MORE];
	record->queued_at = head->more.queued_at;
	out->topic = record->target->topic;
	out->partition = head->more.partition;
	out->timestamp = head->more.timestamp;
	if (head->base.key_len >= 0)
	{
		out->key = p;
		out->key_len = head->base.key_len;
		p += head->base.key_len;
	}
	if (head->base.value_len >= 0)
	{
		out->value = p;
		out->value_len = head->base.value_len;
		p += head->base.value_len;
	}
	if (head->more.nheaders == 0)
		return;

	headers = palloc(sizeof(KafkaHeader) * head->more.nheaders);
	for (int i = 0; i < head->more.nheaders; i++)
	{
		int32		value_len;

		headers[i].name = p;
		p += strlen(p) + 1;
		memcpy(&value_len, p, sizeof(value_len));
		p += sizeof(value_len);
		headers[i].value = value_len < 0 ? NULL : p;
		headers[i].value_len = Max(value_len, 0);
		p += headers[i].value_len;
	}
	out->nheaders = head->more.nheaders;
	out->headers = headers;
}

bool
pending_fetch(int64 *position, int64 end, PendingRecord *record)
{
	PendingHead head;
	Size		len;
	char	   *p;

	if (*position >= end)
		return false;
	head.more = plain;
	spill_log_read(pending->log, *position, &head.base, sizeof(PendingBase));
	if (head.base.target & HEAD_MORE)
		spill_log_read(pending->log, *position + sizeof(PendingBase), &head.more, sizeof(PendingMore));
	len = body_len(&head);
	/* never empty: an empty key needs a place to point to */
	p = palloc(len + 1);
	spill_log_read(pending->log, *position + head_len(&head.base), p, len);
	record_set(record, *position, &head, p);
	record->bytes = p;
	*position += head_len(&head.base) + len;
	return true;
}

PendingBatch *
pending_batch_create(void)
{
	PendingBatch *batch = palloc0(sizeof(PendingBatch));

	batch->cxt = CurrentMemoryContext;
	batch->headers_cxt = AllocSetContextCreate(batch->cxt, "pending headers", ALLOCSET_SMALL_SIZES);
	return batch;
}

/* Up to *len bytes of the log, not copied where they are in memory. */
static const char *
batch_bytes(PendingBatch *batch, int64 position, Size *len)
{
	const char *bytes = spill_log_peek(pending->log, position, len);

	if (bytes != NULL)
		return bytes;
	if (batch->size < *len)
	{
		if (batch->bytes != NULL)
			pfree(batch->bytes);
		batch->bytes = MemoryContextAllocHuge(batch->cxt, *len);
		batch->size = *len;
	}
	*len = Min((int64) *len, spill_log_end(pending->log) - position);
	spill_log_read(pending->log, position, batch->bytes, *len);
	return batch->bytes;
}

int
pending_batch_fetch(PendingBatch *batch, int64 *position, int64 end, PendingRecord **records)
{
	Size		want = READ_BYTES;
	int			n = 0;
	MemoryContext old;

	if (*position >= end)
		return 0;
	MemoryContextReset(batch->headers_cxt);
	old = MemoryContextSwitchTo(batch->headers_cxt);
	while (n == 0)
	{
		Size		len = Min((int64) want, end - *position);
		const char *bytes = batch_bytes(batch, *position, &len);
		Size		at = 0;

		while (len - at >= sizeof(PendingBase))
		{
			PendingHead head;
			Size		total;

			head.more = plain;
			memcpy(&head.base, bytes + at, sizeof(PendingBase));
			total = head_len(&head.base);
			if (total <= len - at)
			{
				if (head.base.target & HEAD_MORE)
					memcpy(&head.more, bytes + at + sizeof(PendingBase), sizeof(PendingMore));
				total += body_len(&head);
			}
			if (total > len - at)
			{
				/* if it is the first one, it needs more room; else it begins the next batch */
				want = Max(want, total);
				break;
			}
			if (n == batch->max)
			{
				batch->max = Max(256, batch->max * 2);
				if (batch->records == NULL)
					batch->records = MemoryContextAlloc(batch->cxt, sizeof(PendingRecord) * batch->max);
				else
					batch->records = repalloc(batch->records, sizeof(PendingRecord) * batch->max);
			}
			record_set(&batch->records[n++], *position + at, &head, bytes + at + head_len(&head.base));
			at += total;
		}
		*position += at;
	}
	MemoryContextSwitchTo(old);
	*records = batch->records;
	return n;
}

void
pending_record_free(PendingRecord *record)
{
	pfree(record->bytes);
	if (record->out.nheaders > 0)
		pfree(unconstify(KafkaHeader *, record->out.headers));
	record->bytes = NULL;
}

int64
pending_mark(void)
{
	return pending != NULL ? spill_log_end(pending->log) : 0;
}

void
pending_clear(void)
{
	Pending    *cleared = pending;

	pending = NULL;
	if (cleared == NULL)
		return;
	spill_log_free(cleared->log);
	MemoryContextDelete(cleared->cxt);
}

void
pending_forget(void)
{
	pending = NULL;
}

void
pending_subabort(int level)
{
	bool		cut = false;
	int64		position = 0;

	if (pending == NULL)
		return;
	while (pending->nsavepoints > 0 && pending->savepoints[pending->nsavepoints - 1].level >= level)
	{
		position = pending->savepoints[--pending->nsavepoints].position;
		cut = true;
	}
	if (!cut)
		return;
	spill_log_truncate(pending->log, position);
	for (int i = 0; i < pending->ntargets; i++)
		if (pending->targets[i]->first >= position)
			pending->targets[i]->first = -1;
}

void
pending_subcommit(int level)
{
	PendingSavepoint *last;

	if (pending == NULL || pending->nsavepoints == 0)
		return;
	last = &pending->savepoints[pending->nsavepoints - 1];
	if (last->level < level)
		return;
	/* the parent is undone from its own first record on, which may lie before */
	if (level <= 2 ||
		(pending->nsavepoints > 1 && pending->savepoints[pending->nsavepoints - 2].level == level - 1))
		pending->nsavepoints--;
	else
		last->level = level - 1;
}

/* ---- reading it back ----------------------------------------------------- */

static bool
is_read(const PendingTarget *target, const TopicTable *table, int64 mark)
{
	return target->first >= 0 && target->first < mark && target->serverid == table->serverid &&
		topic_table_reads(table, target->topic);
}

static bool
has_records(const TopicTable *table, int64 mark)
{
	for (int i = 0; pending != NULL && i < pending->ntargets; i++)
		if (is_read(pending->targets[i], table, mark))
			return true;
	return false;
}

PendingReader *
pending_read_begin(const TopicTable *table, int64 mark)
{
	MemoryContext cxt;
	PendingReader *reader;

	if (!has_records(table, mark))
		return NULL;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "pending reader", ALLOCSET_SMALL_SIZES);
	reader = MemoryContextAllocZero(cxt, sizeof(PendingReader));
	reader->cxt = cxt;
	reader->batch_cxt = AllocSetContextCreate(cxt, "pending records", ALLOCSET_DEFAULT_SIZES);
	reader->end = mark;
	reader->ntargets = pending->ntargets;
	reader->topics = MemoryContextAllocZero(cxt, sizeof(char *) * reader->ntargets);
	for (int i = 0; i < reader->ntargets; i++)
		if (is_read(pending->targets[i], table, mark))
			reader->topics[i] = pstrdup(pending->targets[i]->topic);
	return reader;
}

int
pending_read_next(PendingReader *reader, KafkaRecord *records, int max)
{
	MemoryContext old = MemoryContextSwitchTo(reader->batch_cxt);
	Size		bytes = 0;
	int			n = 0;

	MemoryContextReset(reader->batch_cxt);
	while (n < max && (n == 0 || bytes < READ_BYTES))
	{
		int64		position = reader->position;
		PendingRecord pending_record;
		const KafkaOutRecord *out = &pending_record.out;
		KafkaRecord *record = &records[n];
		const char *topic;

		CHECK_FOR_INTERRUPTS();
		if (!pending_fetch(&reader->position, reader->end, &pending_record))
			break;
		bytes += out->key_len + out->value_len;
		topic = pending_record.target->index < reader->ntargets ?
			reader->topics[pending_record.target->index] : NULL;
		if (topic == NULL)
		{
			if (n == 0)
				MemoryContextReset(reader->batch_cxt);
			continue;
		}
		memset(record, 0, sizeof(KafkaRecord));
		record->topic = topic;
		record->source = PENDING_SOURCE;
		record->partition = out->partition;
		record->offset = PENDING_OFFSET + position;
		record->timestamp = out->timestamp;
		if (out->timestamp >= 0)
			record->timestamp_type = KAFKA_TIMESTAMP_CREATE_TIME;
		record->leader_epoch = -1;
		record->key = out->key;
		record->key_len = out->key_len;
		record->value = out->value;
		record->value_len = out->value_len;
		record->headers = out->headers;
		record->nheaders = out->nheaders;
		n++;
	}
	MemoryContextSwitchTo(old);
	return n;
}

void
pending_read_end(PendingReader *reader)
{
	MemoryContextDelete(reader->cxt);
}
