/*
 * outbox_shared.h
 *	  Streams of the outbox that have something to send, or a sender, in shared
 *	  memory: what writers, senders and the launcher tell each other.
 *
 * An entry exists while there is something to tell; what must survive a restart is
 * in the tables.  All functions may be called without shared memory.
 */
#ifndef UK_OUTBOX_SHARED_H
#define UK_OUTBOX_SHARED_H

#include "datatype/timestamp.h"

#define OUTBOX_ENTRIES		64
#define OUTBOX_ERROR_LEN	256

typedef struct OutboxEntry
{
	Oid			database;		/* InvalidOid: free */
	int32		stream;
	bool		waiting;		/* something may have to be sent */
	bool		wanted;			/* somebody else wants the right to send */
	int			slot;			/* of its sender, or -1 */
	TimestampTz not_before;		/* of the next sender, after a failure */
	int			failures;		/* in a row */
	TimestampTz error_at;		/* 0: none since the last success */
	char		error[OUTBOX_ERROR_LEN];
} OutboxEntry;

/* A stream of this database has something to send: its sender, or a new one, looks. */
extern void outbox_wake(int32 stream);

/* The same when the current transaction has committed. */
extern void outbox_wake_on_commit(int32 stream);

/* Ask a stream's sender, if there is one, to give up the right to send. */
extern void outbox_ask(int32 stream);

/* --- the sender's --- */

/* Was it asked?  Once.  Then it leaves, and another one comes later. */
extern bool outbox_asked(int32 stream);
extern void outbox_postpone(int32 stream, int64 ms);

/* Called before it looks: what comes later wakes it again. */
extern void outbox_begin_look(int32 stream);

/* How a round ended; NULL: well. */
extern void outbox_note(int32 stream, const char *error, int64 retry_ms);

/* Failures in a row so far. */
extern int	outbox_failures(int32 stream);

/* Do other streams, of any database, wait for a process? */
extern bool outbox_others_wait(void);

/* --- status --- */

/* pid of the process that sends a stream, or 0; its last error, "" if none. */
extern int	outbox_sender_pid(int32 stream, char *error, TimestampTz *error_at);

#endif							/* UK_OUTBOX_SHARED_H */
