/*
 * feed_errors.c
 *	  Recorded errors that messages clear by being applied.
 */
#include "postgres.h"

#include "materialize/feed_internal.h"
#include "miscadmin.h"

/*
 * A message that stopped the table is no error any more once it goes in: else
 * retry_errors() would apply it again.
 */
static void
delete_errors(Oid target, const ChangeBatch *batch, const Positions *positions)
{
	bool	   *asked = palloc0(sizeof(bool) * Max(positions->n, 1));
	bool	   *ahead = palloc(sizeof(bool) * Max(positions->n, 1));

	for (int i = 0; i < batch->nchanges; i++)
	{
		int32		source = batch->changes[i].source;

		if (!asked[source])
			ahead[source] = message_errors_ahead(target, source, positions->positions[source].next_offset);
		asked[source] = true;
		if (ahead[source])
			message_error_delete(target, source, batch->changes[i].offset);
	}
	pfree(asked);
	pfree(ahead);
}

/* Later messages of a key clear its errors (case X12). */
static void
supersede_errors(Oid target, const ApplyMap *map, const ChangeBatch *batch)
{
	ErrorSweep *sweep = message_errors_sweep_begin(target);

	for (int i = 0; i < batch->nchanges && sweep != NULL; i++)
	{
		const Change *change = &batch->changes[i];

		CHECK_FOR_INTERRUPTS();
		if (change->kind == ROW_TRUNCATE)
		{
			message_errors_sweep_end(sweep);
			message_errors_truncate(target, change->source, change->offset, change->event_time);
			sweep = message_errors_sweep_begin(target);
		}
		else
		{
			char	   *key = apply_key_text(map, change->values, change->isnull);

			message_errors_sweep_key(sweep, key, change->source, change->offset);
			pfree(key);
		}
	}
	if (sweep != NULL)
		message_errors_sweep_end(sweep);
}

void
feed_clear_errors(const FeedSource *source, const ChangeBatch *batch, const Positions *positions)
{
	Oid			target = source->table->target;

	if (batch->nchanges == 0 || !message_errors_exist(target))
		return;
	delete_errors(target, batch, positions);
	if (!source->table->append)
		supersede_errors(target, source->map, batch);
}
