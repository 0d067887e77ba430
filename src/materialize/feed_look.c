/*
 * feed_look.c
 *	  What this process has last seen of the ends of a table's sources.
 *
 * It outlives a feed that has failed, as one does whose topic is deleted, and nothing
 * else: in any longer time messages can come and go with their topic, seen by nobody.
 */
#include "postgres.h"

#include "materialize/feed_internal.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

typedef struct FeedLook
{
	Oid			target;
	TimestampTz at;
	int			n;
	int64	   *ends;			/* by source */
} FeedLook;

static List *looks;				/* in TopMemoryContext */

#define LOOK_VALID_MS	15000

static FeedLook *
find_look(Oid target)
{
	ListCell   *lc;

	foreach(lc, looks)
		if (((FeedLook *) lfirst(lc))->target == target)
			return lfirst(lc);
	return NULL;
}

void
feed_forget_look(Oid target)
{
	FeedLook   *look = find_look(target);

	if (look == NULL)
		return;
	looks = list_delete_ptr(looks, look);
	pfree(look->ends);
	pfree(look);
}

void
feed_look_note(Oid target, int n, const int64 *ends)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	FeedLook   *look = find_look(target);

	if (look == NULL)
	{
		look = palloc0(sizeof(FeedLook));
		look->target = target;
		look->ends = palloc(sizeof(int64));
		looks = lappend(looks, look);
	}
	look->n = 0;
	look->ends = repalloc(look->ends, sizeof(int64) * Max(n, 1));
	memcpy(look->ends, ends, sizeof(int64) * n);
	look->n = n;
	look->at = GetCurrentTimestamp();
	MemoryContextSwitchTo(old);
}

bool
feed_look_settled(Oid target, const Positions *positions, int32 source)
{
	const FeedLook *look = find_look(target);

	return look != NULL && source < look->n && look->ends[source] >= 0 &&
		!TimestampDifferenceExceeds(look->at, GetCurrentTimestamp(), LOOK_VALID_MS) &&
		positions->positions[source].next_offset >= look->ends[source];
}
