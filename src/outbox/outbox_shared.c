/*
 * outbox_shared.c
 *	  What writers, senders and the launcher tell each other of the outbox, in the
 *	  shared memory of the workers.  Knows no tables.
 */
#include "postgres.h"

#include "access/xact.h"
#include "materialize/worker.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "outbox/outbox_shared.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static List *wake_streams = NIL;	/* at the commit of this transaction */

/* Under the lock; NULL when there is none and, with make, no room for one. */
static OutboxEntry *
entry_find(int32 stream, bool make)
{
	OutboxEntry *unused = NULL;

	for (int i = 0; i < OUTBOX_ENTRIES; i++)
	{
		OutboxEntry *entry = &worker_shared->outbox[i];

		if (entry->database == MyDatabaseId && entry->stream == stream)
			return entry;
		if (unused == NULL &&
			(!OidIsValid(entry->database) ||
			 (!entry->waiting && entry->slot < 0 && entry->error_at == 0)))
			unused = entry;
	}
	if (!make || unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(OutboxEntry));
	unused->database = MyDatabaseId;
	unused->stream = stream;
	unused->slot = -1;
	return unused;
}

/* Where there is no room the stream waits until a worker looks again (outbox_look). */
void
outbox_wake(int32 stream)
{
	OutboxEntry *entry;
	Latch	   *latch = NULL;

	if (worker_shared == NULL)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, true);
	if (entry != NULL)
	{
		entry->waiting = true;
		if (entry->slot >= 0)
			latch = worker_shared->slots[entry->slot].latch;
		else
			latch = worker_shared->launcher_latch;
	}
	if (latch != NULL)
		SetLatch(latch);
	LWLockRelease(worker_shared->lock);
}

/* The messages are visible when this runs. */
static void
wake_callback(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	if (event == XACT_EVENT_COMMIT)
	{
		ListCell   *lc;

		foreach(lc, wake_streams)
			outbox_wake(lfirst_int(lc));
	}
	wake_streams = NIL;			/* it was the transaction's memory */
}

void
outbox_wake_on_commit(int32 stream)
{
	static bool registered = false;
	MemoryContext old;

	if (worker_shared == NULL)
		return;
	if (!registered)
	{
		RegisterXactCallback(wake_callback, NULL);
		registered = true;
	}
	old = MemoryContextSwitchTo(TopTransactionContext);
	wake_streams = list_append_unique_int(wake_streams, stream);
	MemoryContextSwitchTo(old);
}

void
outbox_ask(int32 stream)
{
	OutboxEntry *entry;

	if (worker_shared == NULL)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, false);
	if (entry != NULL && entry->slot >= 0)
	{
		Latch	   *latch = worker_shared->slots[entry->slot].latch;

		entry->wanted = true;
		if (latch != NULL)
			SetLatch(latch);
	}
	LWLockRelease(worker_shared->lock);
}

bool
outbox_asked(int32 stream)
{
	OutboxEntry *entry;
	bool		wanted = false;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, false);
	if (entry != NULL)
	{
		wanted = entry->wanted;
		entry->wanted = false;
	}
	LWLockRelease(worker_shared->lock);
	return wanted;
}

void
outbox_postpone(int32 stream, int64 ms)
{
	OutboxEntry *entry;

	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, false);
	if (entry != NULL)
	{
		entry->waiting = true;
		entry->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
	}
	LWLockRelease(worker_shared->lock);
}

void
outbox_begin_look(int32 stream)
{
	OutboxEntry *entry;

	if (worker_shared == NULL)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, true);
	if (entry != NULL)
		entry->waiting = false;
	LWLockRelease(worker_shared->lock);
}

void
outbox_note(int32 stream, const char *error, int64 retry_ms)
{
	OutboxEntry *entry;
	TimestampTz now = GetCurrentTimestamp();

	if (worker_shared == NULL)
		return;
	LWLockAcquire(worker_shared->lock, LW_EXCLUSIVE);
	entry = entry_find(stream, error != NULL);
	if (entry != NULL && error == NULL)
	{
		entry->error_at = 0;
		entry->failures = 0;
		entry->not_before = 0;
	}
	else if (entry != NULL)
	{
		int			len = pg_mbcliplen(error, strlen(error), OUTBOX_ERROR_LEN - 1);

		memcpy(entry->error, error, len);
		entry->error[len] = '\0';
		entry->error_at = now;
		entry->failures++;
		entry->waiting = true;
		entry->not_before = TimestampTzPlusMilliseconds(now, retry_ms);
	}
	LWLockRelease(worker_shared->lock);
}

int
outbox_failures(int32 stream)
{
	OutboxEntry *entry;
	int			failures;

	if (worker_shared == NULL)
		return 0;
	LWLockAcquire(worker_shared->lock, LW_SHARED);
	entry = entry_find(stream, false);
	failures = entry != NULL ? entry->failures : 0;
	LWLockRelease(worker_shared->lock);
	return failures;
}

bool
outbox_others_wait(void)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		waiting = false;

	LWLockAcquire(worker_shared->lock, LW_SHARED);
	for (int i = 0; i < OUTBOX_ENTRIES && !waiting; i++)
	{
		OutboxEntry *entry = &worker_shared->outbox[i];

		waiting = OidIsValid(entry->database) && entry->waiting && entry->slot < 0 &&
			entry->not_before <= now;
	}
	LWLockRelease(worker_shared->lock);
	return waiting;
}

int
outbox_sender_pid(int32 stream, char *error, TimestampTz *error_at)
{
	OutboxEntry *entry;
	int			pid = 0;

	error[0] = '\0';
	*error_at = 0;
	if (worker_shared == NULL)
		return 0;
	LWLockAcquire(worker_shared->lock, LW_SHARED);
	entry = entry_find(stream, false);
	if (entry != NULL)
	{
		if (entry->slot >= 0 && worker_shared->slots[entry->slot].state == SLOT_RUNNING)
			pid = worker_shared->slots[entry->slot].pid;
		*error_at = entry->error_at;
		if (entry->error_at != 0)
			strlcpy(error, entry->error, OUTBOX_ERROR_LEN);
	}
	LWLockRelease(worker_shared->lock);
	return pid;
}
