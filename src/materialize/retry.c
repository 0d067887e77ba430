/*
 * retry.c
 *	  retry_errors(): messages that could not be applied are decoded and applied
 *	  again, each at the place that it has in the topic's order.
 */
#include "postgres.h"

#include "access/xact.h"
#include "materialize/apply_map.h"
#include "materialize/feed_internal.h"
#include "materialize/owner.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* A message at or after the position is the feed's to apply, not ours. */
static bool
is_past(const Positions *positions, const MessageError *error)
{
	return error->source < positions->n && error->offset < positions->positions[error->source].next_offset;
}

/* The row that the message gives went with all others when the source was truncated after it. */
static void
truncate_after(Applier *applier, const ApplyMap *map, const MessageError *error, const Change *change)
{
	Change		truncation = *change;
	Change	   *gone = palloc(sizeof(Change));

	truncation.offset = error->truncated_offset;
	truncation.event_time = error->truncated_at;
	truncation.timestamp = -1;	/* not kept: it says something among several partitions only */
	apply_truncate_change(map, &truncation, change, gone, palloc0(map->topic->natts * sizeof(Datum)),
						  palloc(map->topic->natts * sizeof(bool)));
	applier_change(applier, gone);
}

int64
retry_errors_run(Oid target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "upsert_kafka retry", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	FeedSource	source;
	Positions  *positions;
	ChangeBatch *batch;
	Applier    *applier;
	OwnerScope	scope;
	ListCell   *lc;
	int64		retried = 0;

	maintained_table_lock_to_apply(target);
	PushActiveSnapshot(GetLatestSnapshot());
	old = MemoryContextSwitchTo(context);
	memset(&source, 0, sizeof(source));
	source.table = maintained_table_get(target);
	if (source.table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a maintained table", get_rel_name(target))));
	positions = positions_get(target);

	owner_enter(&scope, source.table->owner);
	if (positions != NULL)
	{
		source.table->on_error = ON_ERROR_SKIP; /* what fails again stays recorded */
		feed_source_define(&source);
		batch = change_batch_create(context);
		applier = applier_begin(source.table, source.map, &positions->next_seq, false);
		applier_any_order(applier);
		foreach(lc, message_errors_get(target))
		{
			const MessageError *error = lfirst(lc);
			KafkaRecord record;
			ChangeError *stop;

			CHECK_FOR_INTERRUPTS();
			if (!is_past(positions, error))
				continue;
			memset(&record, 0, sizeof(record));
			record.topic = error->topic;
			record.source = error->source;
			record.partition = positions->positions[error->source].partition;
			record.offset = error->offset;
			record.timestamp = error->timestamp;
			record.timestamp_type = KAFKA_TIMESTAMP_CREATE_TIME;
			record.leader_epoch = -1;
			record.key = error->key;
			record.key_len = error->key_len;
			record.value = error->value;
			record.value_len = error->value_len;

			(void) feed_decode(&source, &record, 1, batch, &stop);
			if (batch->nchanges == 0)
				continue;
			for (int i = 0; i < batch->nchanges; i++)
			{
				if (source.table->append)
				{
					applier_append(applier, &batch->changes[i]);
					continue;
				}
				applier_key_begin(applier, &batch->changes[i]);
				applier_change(applier, &batch->changes[i]);
				if (error->truncated && batch->changes[i].kind != ROW_DELETE)
					truncate_after(applier, source.map, error, &batch->changes[i]);
				applier_key_end(applier);
				applier_flush(applier);
			}
			message_error_delete(target, error->source, error->offset);
			retried++;
		}
		applier_end(applier);
		positions_set(target, positions);
	}
	owner_leave(&scope);

	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return retried;
}
