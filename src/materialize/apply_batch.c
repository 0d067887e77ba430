/*
 * apply_batch.c
 *	  Changes in the order of the log: applied key by key, as far as that makes no
 *	  difference.
 *
 * It does for what looks at other keys than its own: a truncation, and a row that takes
 * values over from the key that it had before.  What is before such a change is applied
 * before it, what is behind it after it.
 */
#include "postgres.h"

#include "materialize/apply_internal.h"
#include "miscadmin.h"

/* Key by key; sorts them. */
static void
apply_keys(Applier *applier, Change *changes, int n)
{
	const ApplyMap *map = applier->map;

	if (n == 0)
		return;
	apply_sort(map, changes, n);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || !apply_same_key(map, &changes[i - 1], &changes[i]))
		{
			CHECK_FOR_INTERRUPTS();
			if (i > 0)
				applier_key_end(applier);
			applier_key_begin(applier, &changes[i]);
		}
		applier_change(applier, &changes[i]);
	}
	applier_key_end(applier);
}

void
applier_batch(Applier *applier, Change *changes, int n)
{
	int			start = 0;

	for (int i = 0; i < n; i++)
	{
		Change	   *change = &changes[i];

		if (likely(change->kind != ROW_TRUNCATE && change->old_key == NULL))
			continue;
		apply_keys(applier, &changes[start], i - start);
		start = i;
		if (change->kind == ROW_TRUNCATE)
		{
			applier_truncate(applier, change);
			start++;
		}
		else
		{
			/* keys come again behind it */
			applier_flush(applier);
			apply_take_over(applier, change);
		}
	}
	apply_keys(applier, &changes[start], n - start);
}
