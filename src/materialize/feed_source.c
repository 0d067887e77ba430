/*
 * feed_source.c
 *	  The source of a maintained table: what it is, decoding by the table's
 *	  policy, recording what cannot be applied, moving positions.
 *
 * Shared by steady feeds, the first load and the replay of errors.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "materialize/feed_internal.h"
#include "miscadmin.h"
#include "upsert_kafka.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

void
feed_source_define(FeedSource *source)
{
	Relation	rel = try_relation_open(source->table->source, AccessShareLock);
	const AttrNumber *keys;
	int			nkeys;

	if (rel == NULL)
	{
		/* a worker may open what has just been dropped, both of them */
		const char *name = get_rel_name(source->table->target);

		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("source of maintained table \"%s\" is gone", name ? name : psprintf("%u", source->table->target))));
	}
	source->topic = topic_table_get(rel);
	source->topic->userid = source->table->owner;

	/* not kept: ALTER FOREIGN TABLE must not wait until a broker answers */
	relation_close(rel, AccessShareLock);
	source->map = apply_map_create(source->table, source->topic);
	source->decoder = change_decoder_create(source->topic, NULL);
	nkeys = apply_key_columns(source->map, &keys);
	change_decoder_tell_unchanged(source->decoder, nkeys, keys, OidIsValid(source->table->origins));
}

void
feed_source_connect(FeedSource *source, MemoryContext context)
{
	KafkaConfig *config = kafka_config_get(source->topic->serverid, source->table->owner);

	/* a worker waits for what comes; a session's refresh() ends */
	config->follow = MyBackendType == B_BG_WORKER;
	source->timeout_ms = config->timeout_ms;
	source->consumer = kafka_consumer_acquire(config, uk_queue_kb, context);
}

void
feed_record_error(FeedSource *source, const KafkaRecord *record, const ChangeError *error)
{
	MessageError row;

	memset(&row, 0, sizeof(row));
	row.topic = record->topic;
	row.source = record->source;
	row.offset = record->offset;
	row.timestamp = record->timestamp;
	row.key = record->key;
	row.key_len = record->key_len;
	row.value = record->value;
	row.value_len = record->value_len;
	row.sqlerrcode = error->sqlerrcode;
	row.column = error->column;
	row.message = error->message;
	if (error->key_known && !source->table->append)
		row.key_text = apply_key_text(source->map, error->values, error->isnull);
	message_error_record(source->table->target, &row);
}

void
feed_stop_at(FeedSource *source, const KafkaRecord *record, const ChangeError *error)
{
	feed_record_error(source, record, error);
	table_state_set(source->table->target, TABLE_STOPPED, error->sqlerrcode,
					change_error_text(source->topic, record, error), record->source, record->offset);
	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg("maintained table \"%s\" stopped at a message", get_rel_name(source->table->target)),
			 errdetail_internal("%s", change_error_text(source->topic, record, error)),
			 errhint("See upsert_kafka.errors; go past it with upsert_kafka.skip(), or mend the cause and call upsert_kafka.resume().")));
}

/*
 * A row before an update says nothing that the row after it does not, unless the update
 * has changed the key: then the row of the old key is gone.
 */
static bool
becomes_delete(FeedSource *source, ChangeBatch *batch, int i)
{
	Change	   *before = &batch->changes[i];
	const Change *after = i + 1 < batch->nchanges && before[1].record == before->record ? &before[1] : NULL;
	const AttrNumber *keys;
	int			nkeys = apply_key_columns(source->map, &keys);

	for (int k = 0; k < nkeys; k++)
	{
		if (before->isnull[keys[k] - 1])
			return false;
		if (after && after->isnull[keys[k] - 1])
			after = NULL;
	}
	if (after && apply_same_key(source->map, before, after))
		return false;
	before->kind = ROW_DELETE;
	before->unchanged = NULL;
	if (after && after->unchanged)
	{
		before->moves = true;
		before[1].old_key = before->values;
	}
	return true;
}

int
feed_decode(FeedSource *source, const KafkaRecord *records, int n, ChangeBatch *batch, ChangeError **stop)
{
	bool		skip = source->table->on_error == ON_ERROR_SKIP;
	int			done;
	int			kept = 0;
	int32		refused = -1;	/* the last record that was */
	ChangeError reason = {0};

	change_batch_reset(batch);
	change_decode(source->decoder, records, n, batch, skip ? DECODE_SKIP : DECODE_STOP);
	done = batch->nrecords;
	*stop = batch->stop;

	for (int i = 0; i < batch->nchanges && !source->table->append; i++)
	{
		ChangeError *error;

		/* a message is applied whole or not at all */
		if (batch->changes[i].record == refused)
			continue;
		if (batch->changes[i].kind == ROW_UPDATE_BEFORE && !becomes_delete(source, batch, i))
			continue;
		if (batch->changes[i].kind == ROW_TRUNCATE && !source->one_source)
			change_error_truncate(&reason);
		else if (apply_check(source->map, &batch->changes[i], &reason))
		{
			if (kept != i)
				batch->changes[kept] = batch->changes[i];
			kept++;
			continue;
		}
		error = palloc(sizeof(ChangeError));
		*error = reason;
		refused = error->record = batch->changes[i].record;
		while (kept > 0 && batch->changes[kept - 1].record == refused)
			kept--;
		error->values = batch->changes[i].values;
		error->isnull = batch->changes[i].isnull;
		error->key_known = error->sqlerrcode != ERRCODE_NOT_NULL_VIOLATION && batch->changes[i].kind != ROW_TRUNCATE;
		if (!skip)
		{
			*stop = error;
			done = error->record;
			break;
		}
		feed_record_error(source, &records[error->record], error);
	}
	if (!source->table->append)
		batch->nchanges = kept;
	/* what stops is recorded with the state, what is behind it when its turn comes */
	for (int i = 0; i < batch->nerrors; i++)
		if (&batch->errors[i] != batch->stop && batch->errors[i].record < done)
			feed_record_error(source, &records[batch->errors[i].record], &batch->errors[i]);
	return done;
}

void
feed_advance(Positions *positions, const KafkaRecord *records, int n)
{
	int			missing = positions->n;
	bool	   *seen = palloc0(Max(positions->n, 1) * sizeof(bool));

	/* only each source's last counts */
	for (int i = n - 1; i >= 0 && missing > 0; i--)
	{
		int			s = records[i].source;

		if (seen[s])
			continue;
		seen[s] = true;
		missing--;
		positions->positions[s].next_offset = records[i].offset + 1;
		positions->positions[s].last_offset = records[i].offset;
		positions->positions[s].last_timestamp = records[i].timestamp;
		positions->positions[s].last_hash = sources_record_hash(&records[i]);
	}
	pfree(seen);
}

Positions *
positions_copy(const Positions *positions)
{
	Positions  *copy = palloc(sizeof(Positions));

	*copy = *positions;
	copy->topic = pstrdup(positions->topic);
	copy->positions = palloc(Max(positions->n, 1) * sizeof(Position));
	memcpy(copy->positions, positions->positions, positions->n * sizeof(Position));
	return copy;
}
