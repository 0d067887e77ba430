/*
 * outbox_rows.c
 *	  The messages of the outbox as rows: multi-insert by writers, ordered reading and
 *	  removal by senders.  Knows neither Kafka nor who may do what.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "kafka/kafka_time.h"
#include "materialize/writer.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "outbox/outbox_catalog.h"
#include "outbox/outbox_tables.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

/* Columns of outbox_message, in the script's order */
enum
{
	OM_STREAM = 1,
	OM_SEQ,
	OM_TRANSACTION_ID,
	OM_SOURCE,
	OM_TOPIC,
	OM_PARTITION,
	OM_PARTITIONER,
	OM_KEY,
	OM_VALUE,
	OM_TIMESTAMP,
	OM_HEADER_NAMES,
	OM_HEADER_VALUES,
	OM_QUEUED_AT,
	OM_NATTS = OM_QUEUED_AT
};

struct OutboxInsert
{
	TableWriter *writer;
	MemoryContext context;		/* values of one row */
};

struct OutboxScan
{
	Relation	rel;
	Relation	index;
	SysScanDesc scan;
	Snapshot	snapshot;
	HeapTuple	tuple;			/* the last one */
	MemoryContext context;		/* of the index scan, which allocates as it goes */
};

Size
outbox_message_size(const KafkaOutRecord *record)
{
	Size		size = record->key_len + record->value_len;

	for (int i = 0; i < record->nheaders; i++)
		size += strlen(record->headers[i].name) + record->headers[i].value_len;
	return size;
}

/* --- writing ----------------------------------------------------------------- */

OutboxInsert *
outbox_insert_begin(void)
{
	OutboxInsert *insert = palloc0(sizeof(OutboxInsert));

	insert->writer = table_writer_open(outbox_table("outbox_message"), InvalidOid);
	insert->context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox row",
											ALLOCSET_SMALL_SIZES);
	return insert;
}

static Datum
bytea_datum(const char *bytes, Size len)
{
	bytea	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), bytes, len);
	return PointerGetDatum(result);
}

/* Header names are text to Kafka: UTF-8 there, the database's encoding here. */
static void
header_values(const KafkaOutRecord *record, Datum *values, bool *isnull)
{
	Datum	   *names;
	Datum	   *contents;
	bool	   *nulls;
	int			dims[1] = {record->nheaders};
	int			lbs[1] = {1};

	isnull[OM_HEADER_NAMES - 1] = isnull[OM_HEADER_VALUES - 1] = record->nheaders == 0;
	if (record->nheaders == 0)
		return;

	names = palloc(sizeof(Datum) * record->nheaders);
	contents = palloc0(sizeof(Datum) * record->nheaders);
	nulls = palloc0(sizeof(bool) * record->nheaders);
	for (int i = 0; i < record->nheaders; i++)
	{
		const KafkaHeader *header = &record->headers[i];

		names[i] = CStringGetTextDatum(pg_any_to_server(header->name, strlen(header->name), PG_UTF8));
		nulls[i] = header->value == NULL;
		if (!nulls[i])
			contents[i] = bytea_datum(header->value, header->value_len);
	}
	values[OM_HEADER_NAMES - 1] =
		PointerGetDatum(construct_array(names, record->nheaders, TEXTOID, -1, false, TYPALIGN_INT));
	values[OM_HEADER_VALUES - 1] =
		PointerGetDatum(construct_md_array(contents, nulls, 1, dims, lbs, BYTEAOID, -1, false,
										   TYPALIGN_INT));
}

void
outbox_insert(OutboxInsert *insert, int32 stream, const OutboxMessage *message)
{
	const KafkaOutRecord *out = &message->out;
	TupleTableSlot *slot = table_writer_slot(insert->writer);
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;
	MemoryContext old;

	MemoryContextReset(insert->context);
	old = MemoryContextSwitchTo(insert->context);
	memset(isnull, false, sizeof(bool) * OM_NATTS);
	values[OM_STREAM - 1] = Int32GetDatum(stream);
	values[OM_SEQ - 1] = Int64GetDatum(message->seq);
	values[OM_TRANSACTION_ID - 1] = FullTransactionIdGetDatum(FullTransactionIdFromU64(message->xid));
	values[OM_SOURCE - 1] = ObjectIdGetDatum(message->source);
	values[OM_TOPIC - 1] = CStringGetTextDatum(out->topic);
	values[OM_PARTITION - 1] = Int32GetDatum(out->partition);
	isnull[OM_PARTITION - 1] = out->partition < 0;
	values[OM_PARTITIONER - 1] = Int16GetDatum((int16) message->partitioner);
	isnull[OM_KEY - 1] = out->key == NULL;
	if (out->key != NULL)
		values[OM_KEY - 1] = bytea_datum(out->key, out->key_len);
	isnull[OM_VALUE - 1] = out->value == NULL;
	if (out->value != NULL)
		values[OM_VALUE - 1] = bytea_datum(out->value, out->value_len);
	values[OM_TIMESTAMP - 1] = TimestampTzGetDatum(kafka_time_of(out->timestamp));
	header_values(out, values, isnull);
	values[OM_QUEUED_AT - 1] = TimestampTzGetDatum(message->queued_at);
	MemoryContextSwitchTo(old);
	table_writer_insert(insert->writer);
}

void
outbox_insert_end(OutboxInsert *insert)
{
	table_writer_close(insert->writer);
	MemoryContextDelete(insert->context);
	pfree(insert);
	CommandCounterIncrement();
}

/* --- reading ----------------------------------------------------------------- */

OutboxScan *
outbox_scan_begin(int32 stream, int64 first, int64 last)
{
	OutboxScan *scan = palloc0(sizeof(OutboxScan));
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(stream));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(first));
	ScanKeyInit(&keys[2], 2, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(last));
	scan->context = CurrentMemoryContext;
	scan->rel = table_open(outbox_table("outbox_message"), RowExclusiveLock);
	scan->index = index_open(outbox_table("outbox_message_pkey"), AccessShareLock);
	scan->snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan->scan = systable_beginscan_ordered(scan->rel, scan->index, scan->snapshot, 3, keys);
	return scan;
}

static void
header_read(OutboxMessage *message, Datum names_array, Datum values_array)
{
	Datum	   *names;
	Datum	   *values;
	bool	   *nulls;
	KafkaHeader *headers;
	int			nnames;
	int			nvalues;

	deconstruct_array(DatumGetArrayTypeP(names_array), TEXTOID, -1, false, TYPALIGN_INT, &names, NULL,
					  &nnames);
	deconstruct_array(DatumGetArrayTypeP(values_array), BYTEAOID, -1, false, TYPALIGN_INT, &values,
					  &nulls, &nvalues);
	if (nnames != nvalues)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("arrays of different lengths in table \"outbox_message\"")));
	headers = palloc0(sizeof(KafkaHeader) * Max(nnames, 1));
	for (int i = 0; i < nnames; i++)
	{
		char	   *name = TextDatumGetCString(names[i]);

		headers[i].name = pg_server_to_any(name, strlen(name), PG_UTF8);
		if (nulls[i])
			continue;
		headers[i].value = VARDATA_ANY(DatumGetPointer(values[i]));
		headers[i].value_len = VARSIZE_ANY_EXHDR(DatumGetPointer(values[i]));
	}
	message->out.nheaders = nnames;
	message->out.headers = headers;
}

static bool
next_tuple(OutboxScan *scan)
{
	MemoryContext old = MemoryContextSwitchTo(scan->context);

	scan->tuple = systable_getnext_ordered(scan->scan, ForwardScanDirection);
	MemoryContextSwitchTo(old);
	return HeapTupleIsValid(scan->tuple);
}

bool
outbox_scan_next(OutboxScan *scan, OutboxMessage *message)
{
	HeapTuple	tuple;
	Datum		values[OM_NATTS];
	bool		isnull[OM_NATTS];
	KafkaOutRecord *out = &message->out;

	if (!next_tuple(scan))
		return false;
	/* the scan's is in a page that is pinned no longer than to the next one */
	tuple = heap_copytuple(scan->tuple);
	memset(message, 0, sizeof(OutboxMessage));
	heap_deform_tuple(tuple, RelationGetDescr(scan->rel), values, isnull);
	message->seq = DatumGetInt64(values[OM_SEQ - 1]);
	message->xid = U64FromFullTransactionId(DatumGetFullTransactionId(values[OM_TRANSACTION_ID - 1]));
	message->source = DatumGetObjectId(values[OM_SOURCE - 1]);
	message->partitioner = (KafkaPartitioner) DatumGetInt16(values[OM_PARTITIONER - 1]);
	message->queued_at = DatumGetTimestampTz(values[OM_QUEUED_AT - 1]);
	out->topic = TextDatumGetCString(values[OM_TOPIC - 1]);
	out->partition = isnull[OM_PARTITION - 1] ? -1 : DatumGetInt32(values[OM_PARTITION - 1]);
	out->timestamp = kafka_ms_of(DatumGetTimestampTz(values[OM_TIMESTAMP - 1]));
	if (!isnull[OM_KEY - 1])
	{
		bytea	   *key = DatumGetByteaPP(values[OM_KEY - 1]);

		out->key = VARDATA_ANY(key);
		out->key_len = VARSIZE_ANY_EXHDR(key);
	}
	if (!isnull[OM_VALUE - 1])
	{
		bytea	   *value = DatumGetByteaPP(values[OM_VALUE - 1]);

		out->value = VARDATA_ANY(value);
		out->value_len = VARSIZE_ANY_EXHDR(value);
	}
	if (!isnull[OM_HEADER_NAMES - 1] && !isnull[OM_HEADER_VALUES - 1])
		header_read(message, values[OM_HEADER_NAMES - 1], values[OM_HEADER_VALUES - 1]);
	return true;
}

void
outbox_scan_end(OutboxScan *scan)
{
	systable_endscan_ordered(scan->scan);
	UnregisterSnapshot(scan->snapshot);
	index_close(scan->index, AccessShareLock);
	table_close(scan->rel, RowExclusiveLock);
	pfree(scan);
}

/* outbox_message_size() of the scan's tuple; what is stored outside of it stays there. */
static Size
stored_size(OutboxScan *scan)
{
	Datum		values[OM_NATTS];
	bool		isnull[OM_NATTS];
	OutboxMessage message = {0};

	heap_deform_tuple(scan->tuple, RelationGetDescr(scan->rel), values, isnull);
	if (!isnull[OM_KEY - 1])
		message.out.key_len = toast_raw_datum_size(values[OM_KEY - 1]) - VARHDRSZ;
	if (!isnull[OM_VALUE - 1])
		message.out.value_len = toast_raw_datum_size(values[OM_VALUE - 1]) - VARHDRSZ;
	if (!isnull[OM_HEADER_NAMES - 1] && !isnull[OM_HEADER_VALUES - 1])
		header_read(&message, values[OM_HEADER_NAMES - 1], values[OM_HEADER_VALUES - 1]);
	return outbox_message_size(&message.out);
}

void
outbox_remove(int32 stream, int64 first, int64 last, int64 *rows, int64 *bytes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka outbox removal",
												  ALLOCSET_DEFAULT_SIZES);
	OutboxScan *scan = outbox_scan_begin(stream, first, last);
	MemoryContext old = MemoryContextSwitchTo(context);

	while (next_tuple(scan))
	{
		CHECK_FOR_INTERRUPTS();
		(*rows)++;
		*bytes += stored_size(scan);
		CatalogTupleDelete(scan->rel, &scan->tuple->t_self);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	outbox_scan_end(scan);
	MemoryContextDelete(context);
	CommandCounterIncrement();
}
