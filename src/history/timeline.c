/*
 * timeline.c
 *	  Which rows a message adds to the versions of its key.
 *
 * See timeline.h for the rule.  Two ways: a key whose messages all came from one
 * partition, in offset order, is settled message by message with a look at the
 * boundaries from the message's moment on; a key of several partitions is
 * settled by sweeping over all its messages, since no order exists between
 * partitions and any of them may take effect at any boundary.
 */
#include "postgres.h"

#include "history/timeline.h"
#include "history/versions.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* What the deletes of one partition void, while sweeping over time. */
typedef struct PartitionDeletes
{
	int32		partition;
	int64		offset;			/* greatest offset of a delete so far, -1 none */
	int64		timestamp;		/* greatest Kafka timestamp of one */
} PartitionDeletes;

static VersionRow *
push(MemoryContext context, VersionRow **rows, int *n, int *max, const VersionRow *row)
{
	if (*n == *max)
	{
		*max = Max(16, *max * 2);
		if (*rows == NULL)
			*rows = MemoryContextAllocHuge(context, *max * sizeof(VersionRow));
		else
			*rows = repalloc_huge(*rows, *max * sizeof(VersionRow));
	}
	(*rows)[*n] = *row;
	return &(*rows)[(*n)++];
}

Timeline *
timeline_create(MemoryContext context, int64 *next_seq)
{
	Timeline   *timeline = MemoryContextAllocZero(context, sizeof(Timeline));

	timeline->context = context;
	timeline->next_seq = next_seq;
	return timeline;
}

/* Forget the key; the arrays are kept unless one hot key has blown them up. */
void
timeline_reset(Timeline *timeline)
{
	timeline->shared = false;
	timeline->nboundaries = timeline->nmessages = timeline->nadded = 0;
	if (timeline->max_boundaries > 4096)
	{
		pfree(timeline->boundaries);
		timeline->boundaries = NULL;
		timeline->max_boundaries = 0;
	}
	if (timeline->max_messages > 4096)
	{
		pfree(timeline->messages);
		timeline->messages = NULL;
		timeline->max_messages = 0;
	}
}

/* Index of the first boundary with valid_from >= moment. */
static int
boundary_search(const Timeline *timeline, TimestampTz moment)
{
	int			low = 0,
				high = timeline->nboundaries;

	/* nearly always the message comes after everything */
	if (high > 0 && timeline->boundaries[high - 1].valid_from < moment)
		return high;
	while (low < high)
	{
		int			mid = low + (high - low) / 2;

		if (timeline->boundaries[mid].valid_from < moment)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Put an effective row at its place, over the one that held there. */
static void
boundary_set(Timeline *timeline, const VersionRow *row)
{
	int			i = boundary_search(timeline, row->valid_from);

	if (i < timeline->nboundaries && timeline->boundaries[i].valid_from == row->valid_from)
	{
		timeline->boundaries[i] = *row;
		return;
	}
	(void) push(timeline->context, &timeline->boundaries, &timeline->nboundaries, &timeline->max_boundaries, row);
	if (i < timeline->nboundaries - 1)
	{
		memmove(&timeline->boundaries[i + 1], &timeline->boundaries[i],
				(timeline->nboundaries - 1 - i) * sizeof(VersionRow));
		timeline->boundaries[i] = *row;
	}
}

/* Add a row to write; it takes effect at its boundary. */
static void
add(Timeline *timeline, const VersionRow *row)
{
	VersionRow	copy = *row;

	copy.seq = (*timeline->next_seq)++;
	if (timeline->shared)
		copy.op = pg_toupper((unsigned char) copy.op);
	(void) push(timeline->context, &timeline->added, &timeline->nadded, &timeline->max_added, &copy);
	boundary_set(timeline, &copy);
}

/* A derived row at 'moment': holder holds there, or nothing (holder NULL). */
static void
add_derived(Timeline *timeline, TimestampTz moment, const VersionRow *holder, int32 partition, int64 cause)
{
	VersionRow	row;

	memset(&row, 0, sizeof(row));
	if (holder)
	{
		row = *holder;
		row.op = 'r';
	}
	else
	{
		row.op = 'e';
		row.partition = partition;
		row.offset = cause;
		row.timestamp = -1;
		row.event_time = moment;
	}
	row.valid_from = moment;
	row.cause = cause;
	add(timeline, &row);
}

void
timeline_load(Timeline *timeline, const VersionRow *row)
{
	boundary_set(timeline, row);
	if (VERSION_OP_IS_SHARED(row->op))
		timeline->shared = true;
	if (!VERSION_OP_IS_DERIVED(row->op))
		(void) push(timeline->context, &timeline->messages, &timeline->nmessages, &timeline->max_messages, row);
}

void
timeline_message(Timeline *timeline, const VersionRow *message)
{
	bool		is_delete = message->op == 'd';
	int			first;

	Assert(message->op == 'u' || message->op == 'd');
	if (timeline->shared)
	{
		/* its effect is settled with that of all others */
		add(timeline, message);
		(void) push(timeline->context, &timeline->messages, &timeline->nmessages, &timeline->max_messages,
					&timeline->added[timeline->nadded - 1]);
		return;
	}
	add(timeline, message);

	/*
	 * One partition, greatest offset: a delete ends everything from its moment
	 * on; an upsert holds wherever nothing does, or something of no later
	 * event time.
	 */
	first = boundary_search(timeline, message->valid_from) + 1;
	for (int i = first; i < timeline->nboundaries; i++)
	{
		VersionRow *at = &timeline->boundaries[i];
		bool		holds = VERSION_OP_HAS_ROW(at->op);

		CHECK_FOR_INTERRUPTS();
		if (is_delete ? holds : (!holds || at->event_time <= message->event_time))
			add_derived(timeline, at->valid_from, is_delete ? NULL : message,
						message->partition, message->offset);
	}
}

static int
compare_messages(const void *a, const void *b)
{
	const VersionRow *x = a;
	const VersionRow *y = b;

	if (x->valid_from != y->valid_from)
		return x->valid_from < y->valid_from ? -1 : 1;
	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return 0;
}

static bool
voided(const VersionRow *upsert, const PartitionDeletes *deletes, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (deletes[i].offset < 0)
			continue;
		if (deletes[i].partition == upsert->partition
			? upsert->offset < deletes[i].offset
			: upsert->timestamp < deletes[i].timestamp)
			return true;
	}
	return false;
}

/*
 * Holder among messages[0 .. n), which are sorted by (time, partition, offset): NULL
 * if none.  Goes back in time until something holds: nearly always the first look.
 */
static const VersionRow *
find_holder(const VersionRow *messages, int n, const PartitionDeletes *deletes, int ndeletes)
{
	int			i = n - 1;

	while (i >= 0)
	{
		TimestampTz moment = messages[i].valid_from;
		const VersionRow *best = NULL;
		int32		partition = -1;
		bool		found = false;

		CHECK_FOR_INTERRUPTS();

		/*
		 * Those of one moment: each partition speaks by its last upsert that is
		 * not void, they go by (Kafka timestamp, partition).
		 */
		for (; i >= 0 && messages[i].valid_from == moment; i--)
		{
			const VersionRow *m = &messages[i];

			if (m->op == 'd' || m->op == 'D')
				continue;
			if (found && m->partition == partition)
				continue;
			if (voided(m, deletes, ndeletes))
				continue;
			found = true;
			partition = m->partition;
			if (best == NULL || m->timestamp > best->timestamp ||
				(m->timestamp == best->timestamp && m->partition > best->partition))
				best = m;
		}
		if (best)
			return best;
	}
	return NULL;
}

void
timeline_settle(Timeline *timeline, int64 cause)
{
	PartitionDeletes *deletes = NULL;
	int			ndeletes = 0,
				max_deletes = 0;
	VersionRow *messages = timeline->messages;
	int			n = timeline->nmessages;

	if (!timeline->shared || n == 0)
		return;
	qsort(messages, n, sizeof(VersionRow), compare_messages);

	for (int i = 0; i < n;)
	{
		TimestampTz moment = messages[i].valid_from;
		const VersionRow *holder;
		VersionRow *at;
		int			end = i;

		CHECK_FOR_INTERRUPTS();
		for (; end < n && messages[end].valid_from == moment; end++)
		{
			VersionRow *m = &messages[end];
			int			p;

			if (m->op != 'd' && m->op != 'D')
				continue;
			for (p = 0; p < ndeletes && deletes[p].partition != m->partition; p++)
				;
			if (p == ndeletes)
			{
				if (ndeletes == max_deletes)
				{
					max_deletes = Max(8, max_deletes * 2);
					deletes = deletes ? repalloc(deletes, max_deletes * sizeof(PartitionDeletes))
						: MemoryContextAlloc(timeline->context, max_deletes * sizeof(PartitionDeletes));
				}
				deletes[ndeletes].partition = m->partition;
				deletes[ndeletes].offset = -1;
				deletes[ndeletes++].timestamp = PG_INT64_MIN;
			}
			deletes[p].offset = Max(deletes[p].offset, m->offset);
			deletes[p].timestamp = Max(deletes[p].timestamp, m->timestamp);
		}
		holder = find_holder(messages, end, deletes, ndeletes);
		i = end;

		/* every message has a boundary of its own moment, so this one exists */
		at = &timeline->boundaries[boundary_search(timeline, moment)];
		Assert(at->valid_from == moment);
		if (holder == NULL
			? VERSION_OP_HAS_ROW(at->op)
			: (!VERSION_OP_HAS_ROW(at->op) || at->partition != holder->partition || at->offset != holder->offset))
			add_derived(timeline, moment, holder, messages[end - 1].partition, cause);
	}
	if (deletes)
		pfree(deletes);

	/* invariant of versions.h: the last row shows that the key is shared */
	if (timeline->nboundaries > 0)
	{
		VersionRow *top = &timeline->boundaries[timeline->nboundaries - 1];

		if (!VERSION_OP_IS_SHARED(top->op))
		{
			VersionRow	holder = *top;

			add_derived(timeline, top->valid_from, VERSION_OP_HAS_ROW(top->op) ? &holder : NULL,
						top->partition, cause);
		}
	}
}

const VersionRow *
timeline_top(const Timeline *timeline)
{
	const VersionRow *top;

	if (timeline->nboundaries == 0)
		return NULL;
	top = &timeline->boundaries[timeline->nboundaries - 1];
	return VERSION_OP_HAS_ROW(top->op) ? top : NULL;
}

const VersionRow *
timeline_last_word(const Timeline *timeline)
{
	const VersionRow *word = NULL;
	const VersionRow **last = NULL;
	int			n = 0,
				max = 0;

	/* the last message of each partition .. */
	for (int i = 0; i < timeline->nmessages; i++)
	{
		const VersionRow *m = &timeline->messages[i];
		int			p;

		for (p = 0; p < n && last[p]->partition != m->partition; p++)
			;
		if (p == n)
		{
			if (n == max)
			{
				max = Max(8, max * 2);
				last = last ? repalloc(last, max * sizeof(*last))
					: MemoryContextAlloc(timeline->context, max * sizeof(*last));
			}
			last[n++] = m;
		}
		else if (m->offset > last[p]->offset)
			last[p] = m;
	}

	/* .. and of those the greatest (Kafka timestamp, partition) */
	for (int p = 0; p < n; p++)
		if (word == NULL || last[p]->timestamp > word->timestamp ||
			(last[p]->timestamp == word->timestamp && last[p]->partition > word->partition))
			word = last[p];
	if (last)
		pfree(last);
	return word;
}
