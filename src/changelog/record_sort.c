/*
 * record_sort.c
 *	  Flat copies of records and their external sort by key.  Knows PostgreSQL's
 *	  tuplesort and nothing of scans or of what the records mean.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "changelog/record_sort.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* What stands in front of the bytes; copied in and out, so never aligned. */
typedef struct StoredHead
{
	int64		offset;
	int64		timestamp;
	const char *topic;			/* copies never leave the process */
	int32		source;
	int32		partition;
	int32		leader_epoch;
	int32		timestamp_type;
	int32		key_len;		/* -1: null */
	int32		value_len;		/* -1: null */
	int32		nheaders;
} StoredHead;

static inline void
put_bytes(char **p, const void *bytes, Size len)
{
	if (len > 0)
		memcpy(*p, bytes, len);
	*p += len;
}

void
stored_record_size(const KafkaRecord *record, bool headers, StoredSize *size)
{
	Size		total = VARHDRSZ + sizeof(StoredHead);

	if (record->key)
		total += record->key_len;
	if (record->value)
		total += record->value_len;
	size->nheaders = 0;
	size->headers = NULL;
	if (headers)
	{
		size->nheaders = kafka_record_headers(record, &size->headers);
		for (int i = 0; i < size->nheaders; i++)
		{
			total += strlen(size->headers[i].name) + 1 + sizeof(int32);
			if (size->headers[i].value)
				total += size->headers[i].value_len;
		}
	}
	if (!AllocSizeIsValid(total))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("message of topic \"%s\" is too large", record->topic),
				 errdetail("Partition %d, offset " INT64_FORMAT ": %zu bytes.",
						   record->partition, record->offset, total)));
	size->total = total;
}

void
stored_record_fill(StoredRecord *stored, const KafkaRecord *record, const StoredSize *size)
{
	StoredHead	head;
	char	   *p;

	/* what pads it goes to the disk with it */
	memset(&head, 0, sizeof(head));
	head.offset = record->offset;
	head.timestamp = record->timestamp;
	head.topic = record->topic;
	head.source = record->source;
	head.partition = record->partition;
	head.leader_epoch = record->leader_epoch;
	head.timestamp_type = record->timestamp_type;
	head.key_len = record->key ? (int32) record->key_len : -1;
	head.value_len = record->value ? (int32) record->value_len : -1;
	head.nheaders = size->nheaders;

	SET_VARSIZE(stored, size->total);
	p = VARDATA(stored);
	put_bytes(&p, &head, sizeof(head));
	if (head.key_len > 0)
		put_bytes(&p, record->key, head.key_len);
	if (head.value_len > 0)
		put_bytes(&p, record->value, head.value_len);
	for (int i = 0; i < size->nheaders; i++)
	{
		const KafkaHeader *header = &size->headers[i];
		int32		len = header->value ? (int32) header->value_len : -1;

		put_bytes(&p, header->name, strlen(header->name) + 1);
		put_bytes(&p, &len, sizeof(len));
		if (len > 0)
			put_bytes(&p, header->value, len);
	}
	Assert(p == (char *) stored + size->total);
}

void
stored_record_get(const StoredRecord *stored, KafkaRecord *record)
{
	/* sorting may have shortened the varlena header */
	const char *p = VARDATA_ANY(stored);
	StoredHead	head;

	memcpy(&head, p, sizeof(head));
	p += sizeof(head);

	memset(record, 0, sizeof(KafkaRecord));
	record->topic = head.topic;
	record->source = head.source;
	record->partition = head.partition;
	record->offset = head.offset;
	record->timestamp = head.timestamp;
	record->timestamp_type = (KafkaTimestampType) head.timestamp_type;
	record->leader_epoch = head.leader_epoch;
	if (head.key_len >= 0)
	{
		record->key = p;
		record->key_len = head.key_len;
		p += head.key_len;
	}
	if (head.value_len >= 0)
	{
		record->value = p;
		record->value_len = head.value_len;
		p += head.value_len;
	}
	if (head.nheaders > 0)
	{
		KafkaHeader *headers = palloc(sizeof(KafkaHeader) * head.nheaders);

		for (int i = 0; i < head.nheaders; i++)
		{
			int32		len;

			headers[i].name = p;
			p += strlen(p) + 1;
			memcpy(&len, p, sizeof(len));
			p += sizeof(len);
			headers[i].value = len < 0 ? NULL : p;
			headers[i].value_len = len < 0 ? 0 : len;
			if (len > 0)
				p += len;
		}
		record->headers = headers;
		record->nheaders = head.nheaders;
	}
}

RecordSortLayout *
record_sort_layout(const TopicTable *table, bool time)
{
	RecordSortLayout *layout = palloc0(sizeof(RecordSortLayout));
	int			n = table->nkeys + (time ? 1 : 0);
	AttrNumber *attnums = palloc(sizeof(AttrNumber) * n);

	layout->nkeys = n;
	layout->desc = CreateTemplateTupleDesc(n + 3);
	for (int i = 0; i < table->nkeys; i++)
	{
		const TopicColumn *column = &table->columns[table->keys[i] - 1];

		TupleDescInitEntry(layout->desc, i + 1, column->name, column->type, column->typmod, 0);
		TupleDescInitEntryCollation(layout->desc, i + 1, column->collation);
	}
	if (time)
		TupleDescInitEntry(layout->desc, n, "time", INT8OID, -1, 0);
	TupleDescInitEntry(layout->desc, n + 1, "source", INT4OID, -1, 0);
	TupleDescInitEntry(layout->desc, n + 2, "offset", INT8OID, -1, 0);
	TupleDescInitEntry(layout->desc, n + 3, "record", BYTEAOID, -1, 0);
	for (int i = 0; i < n; i++)
		attnums[i] = i + 1;
	layout->keys = key_desc_create(layout->desc, n, attnums);
	return layout;
}

RecordSort *
record_sort_begin(const RecordSortLayout *layout, int work_kb, bool rewindable)
{
	RecordSort *sort = palloc0(sizeof(RecordSort));
	int			n = layout->nkeys + 2;
	AttrNumber *attnums = palloc(sizeof(AttrNumber) * n);
	Oid		   *operators = palloc(sizeof(Oid) * n);
	Oid		   *collations = palloc(sizeof(Oid) * n);
	bool	   *nulls_first = palloc0(sizeof(bool) * n);
	KeyDesc    *rest;
	AttrNumber	rest_attnums[2];

	rest_attnums[0] = layout->nkeys + 1;
	rest_attnums[1] = layout->nkeys + 2;
	rest = key_desc_create(layout->desc, 2, rest_attnums);
	for (int i = 0; i < n; i++)
	{
		const KeyColumn *column = i < layout->nkeys ? &layout->keys->columns[i]
			: &rest->columns[i - layout->nkeys];

		attnums[i] = i + 1;
		operators[i] = column->lt_operator;
		collations[i] = column->collation;
	}
	sort->layout = layout;
	sort->cxt = CurrentMemoryContext;
	sort->rewindable = rewindable;
	sort->state = tuplesort_begin_heap(layout->desc, n, attnums, operators, collations, nulls_first,
									   work_kb, NULL,
									   rewindable ? TUPLESORT_RANDOMACCESS_compat : TUPLESORT_NONE_compat);
	sort->put_slot = MakeSingleTupleTableSlot(layout->desc, &TTSOpsVirtual);
	return sort;
}

void
record_sort_put(RecordSort *sort, const Datum *keys, int32 source, int64 offset,
				const StoredRecord *stored)
{
	TupleTableSlot *slot = sort->put_slot;
	const RecordSortLayout *layout = sort->layout;

	ExecClearTuple(slot);
	for (int i = 0; i < layout->nkeys; i++)
		slot->tts_values[i] = keys[i];
	slot->tts_values[RECORD_SORT_SOURCE(layout)] = Int32GetDatum(source);
	slot->tts_values[RECORD_SORT_OFFSET(layout)] = Int64GetDatum(offset);
	slot->tts_values[RECORD_SORT_RECORD(layout)] = PointerGetDatum(stored);
	memset(slot->tts_isnull, false, sizeof(bool) * (layout->nkeys + 3));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort->state, slot);
}

void
record_sort_perform(RecordSort *sort)
{
	tuplesort_performsort(sort->state);
}

bool
record_sort_next(RecordSort *sort, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sort->cxt);
	bool		found = tuplesort_gettupleslot(sort->state, true, true, slot, NULL);

	MemoryContextSwitchTo(old);
	if (found)
		slot_getallattrs(slot);
	return found;
}

TupleTableSlot *
record_sort_make_slot(const RecordSortLayout *layout)
{
	return MakeSingleTupleTableSlot(layout->desc, &TTSOpsMinimalTuple);
}

void
record_sort_end(RecordSort *sort)
{
	tuplesort_end(sort->state);
	ExecDropSingleTupleTableSlot(sort->put_slot);
	pfree(sort);
}

int64
tuplesort_disk_kb(Tuplesortstate *state)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(state, &stats);
	return stats.spaceType == SORT_SPACE_TYPE_DISK ? stats.spaceUsed : 0;
}
