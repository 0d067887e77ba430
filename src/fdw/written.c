/*
 * written.c
 *	  The session's own committed writes: kept per partition, shown as a bookmark,
 *	  waited for by scans.  Knows nothing of how they were sent.
 */
#include "postgres.h"

#include <ctype.h>

#include "fdw/written.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(upsert_kafka_last_written);

#define TOPIC_SIZE		252		/* Kafka allows 249 characters */
#define MAX_PARTITION	999999	/* that a bookmark may name: far more than any topic has */
#define FIRST_POLL_MS	10		/* between looks at the last stable offset */
#define MAX_POLL_MS		200
#define RECREATED_MS	1000	/* a log that is shorter than what was written is believed after this */

typedef struct WrittenKey
{
	Oid			serverid;
	int32		partition;
	char		topic[TOPIC_SIZE];	/* zero-padded: hashed as bytes */
} WrittenKey;

typedef struct WrittenEntry
{
	WrittenKey	key;
	int64		next_offset;	/* -1: nothing committed */
	int64		noted;			/* by the transaction in progress; -1: nothing */
	uint64		transaction;	/* the last one that committed something here */
} WrittenEntry;

static HTAB *entries;			/* in TopMemoryContext */
static bool any_noted;
static uint64 last_transaction; /* counts those that have written something */

static void
key_set(WrittenKey *key, Oid serverid, const char *topic, int32 partition)
{
	memset(key, 0, sizeof(WrittenKey));
	key->serverid = serverid;
	key->partition = partition;
	strlcpy(key->topic, topic, TOPIC_SIZE);
}

void
written_note(Oid serverid, int n, const KafkaWritten *written)
{
	if (entries == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(WrittenKey);
		ctl.entrysize = sizeof(WrittenEntry);
		ctl.hcxt = TopMemoryContext;
		entries = hash_create("own Kafka writes", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	for (int i = 0; i < n; i++)
	{
		WrittenKey	key;
		WrittenEntry *entry;
		bool		found;

		key_set(&key, serverid, written[i].topic, written[i].partition);
		entry = hash_search(entries, &key, HASH_ENTER, &found);
		if (!found)
		{
			entry->next_offset = entry->noted = -1;
			entry->transaction = 0;
		}
		entry->noted = Max(entry->noted, written[i].offset + 1);
		any_noted = true;
	}
}

static void
settle(bool committed)
{
	HASH_SEQ_STATUS seq;
	WrittenEntry *entry;

	if (!any_noted)
		return;
	any_noted = false;
	if (committed)
		last_transaction++;
	hash_seq_init(&seq, entries);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (entry->noted >= 0 && committed)
		{
			/* not the greater of both: the topic may have been made anew */
			entry->next_offset = entry->noted;
			entry->transaction = last_transaction;
		}
		entry->noted = -1;
	}
}

void
written_commit(void)
{
	settle(true);
}

void
written_abort(void)
{
	settle(false);
}

static WrittenEntry *
find_entry(Oid serverid, const char *topic, int32 partition)
{
	WrittenKey	key;

	if (entries == NULL)
		return NULL;
	key_set(&key, serverid, topic, partition);
	return hash_search(entries, &key, HASH_FIND, NULL);
}

/* ---- read your own writes ------------------------------------------------ */

/* The first partition that does not show yet what was written; -1: none. */
static int
first_missing(Oid serverid, int npartitions, const KafkaRange *partitions, const int64 *end)
{
	for (int i = 0; entries != NULL && i < npartitions; i++)
	{
		const WrittenEntry *entry = find_entry(serverid, partitions[i].topic, partitions[i].partition);

		if (entry != NULL && entry->next_offset > end[i])
			return i;
	}
	return -1;
}

/*
 * Was the topic made anew since, or is the server another one?  Then its log is
 * shorter than what was written, transactions that are open included: forget that.
 */
static void
forget_what_is_gone(const KafkaConfig *config, int npartitions, const KafkaRange *partitions)
{
	KafkaConsumer *consumer = kafka_consumer_acquire(kafka_config_uncommitted(config), 0, CurrentMemoryContext);
	int64	   *high = palloc(sizeof(int64) * npartitions);

	kafka_query_offsets(consumer, npartitions, partitions, NULL, high);
	kafka_consumer_release(consumer);
	for (int i = 0; i < npartitions; i++)
	{
		WrittenEntry *entry = find_entry(config->serverid, partitions[i].topic, partitions[i].partition);

		if (entry != NULL && entry->next_offset > high[i])
			entry->next_offset = -1;
	}
	pfree(high);
}

void
written_wait(KafkaConsumer *consumer, const KafkaConfig *config, int npartitions,
			 const KafkaRange *partitions, int64 *end)
{
	TimestampTz start = GetCurrentTimestamp();
	long		poll = FIRST_POLL_MS;
	bool		asked = false;
	int			missing;

	while ((missing = first_missing(config->serverid, npartitions, partitions, end)) >= 0)
	{
		long		waited = TimestampDifferenceMilliseconds(start, GetCurrentTimestamp());

		if (waited >= Min(RECREATED_MS, config->timeout_ms) && !asked)
		{
			asked = true;
			forget_what_is_gone(config, npartitions, partitions);
			continue;
		}
		if (waited >= config->timeout_ms)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("own writes to topic \"%s\" cannot be read yet", partitions[missing].topic),
					 errdetail("Partition %d: this session has written up to offset %lld, but an open Kafka transaction of another producer holds the last stable offset at %lld.",
							   partitions[missing].partition,
							   (long long) find_entry(config->serverid, partitions[missing].topic, partitions[missing].partition)->next_offset - 1,
							   (long long) end[missing]),
					 errhint("It ends by commit or abort, or after that producer's transaction.timeout.ms.")));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(poll, Max(config->timeout_ms - waited, 1)), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		poll = Min(poll * 2, MAX_POLL_MS);
		kafka_query_offsets(consumer, npartitions, partitions, NULL, end);
	}
}

/* ---- bookmarks ----------------------------------------------------------- */

static int
compare_entries(const void *a, const void *b)
{
	const WrittenEntry *left = *(WrittenEntry *const *) a;
	const WrittenEntry *right = *(WrittenEntry *const *) b;
	int			cmp = strcmp(left->key.topic, right->key.topic);

	if (cmp != 0)
		return cmp;
	return left->key.partition < right->key.partition ? -1 : left->key.partition > right->key.partition;
}

void
bookmark_append(StringInfo text, const char *topic, int32 partition, int64 next_offset)
{
	appendStringInfo(text, "%s%s:%d:%lld", text->len > 0 ? "," : "", topic, partition, (long long) next_offset);
}

/* topic:partition:next_offset,.. of the last transaction that has written something */
Datum
upsert_kafka_last_written(PG_FUNCTION_ARGS)
{
	HASH_SEQ_STATUS seq;
	WrittenEntry *entry;
	WrittenEntry **found;
	StringInfoData text;
	int			n = 0;

	if (entries == NULL || last_transaction == 0)
		PG_RETURN_NULL();
	found = palloc(sizeof(WrittenEntry *) * Max(hash_get_num_entries(entries), 1));
	hash_seq_init(&seq, entries);
	while ((entry = hash_seq_search(&seq)) != NULL)
		if (entry->transaction == last_transaction && entry->next_offset >= 0)
			found[n++] = entry;
	if (n == 0)
		PG_RETURN_NULL();
	qsort(found, n, sizeof(WrittenEntry *), compare_entries);
	initStringInfo(&text);
	for (int i = 0; i < n; i++)
		bookmark_append(&text, found[i]->key.topic, found[i]->key.partition, found[i]->next_offset);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(text.data, text.len));
}

static bool
parse_number(const char **p, char end, int64 max, int64 *result)
{
	const char *start = *p;

	*result = 0;
	for (; isdigit((unsigned char) **p); (*p)++)
	{
		if (*result > (max - (**p - '0')) / 10)
			return false;
		*result = *result * 10 + (**p - '0');
	}
	return *p > start && (**p == end || **p == '\0');
}

bool
bookmark_parse(const char *text, int *n, BookmarkEntry **result)
{
	const char *p = text;
	int			max = 1;

	for (const char *c = text; *c; c++)
		max += *c == ',';
	*result = palloc(sizeof(BookmarkEntry) * max);
	*n = 0;
	for (;;)
	{
		BookmarkEntry *entry = &(*result)[*n];
		const char *colon = strchr(p, ':');
		int64		partition;

		if (colon == NULL || colon == p || colon - p >= TOPIC_SIZE || memchr(p, ',', colon - p))
			return false;
		entry->topic = pnstrdup(p, colon - p);
		p = colon + 1;
		if (!parse_number(&p, ':', MAX_PARTITION, &partition) || *p != ':')
			return false;
		entry->partition = (int32) partition;
		p++;
		if (!parse_number(&p, ',', PG_INT64_MAX, &entry->next_offset))
			return false;
		(*n)++;
		if (*p == '\0')
			return true;
		p++;
	}
}
