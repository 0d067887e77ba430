/*
 * outbox_sender.c
 *	  The process that sends one stream of the outbox after each commit, as long as
 *	  there is something to send.  The launcher starts it; outbox_send.c does the work.
 */
#include "postgres.h"

#include "access/xact.h"
#include "materialize/worker.h"
#include "miscadmin.h"
#include "outbox/outbox_catalog.h"
#include "outbox/outbox_send.h"
#include "outbox/outbox_shared.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "upsert_kafka.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define IDLE_MS			10000	/* without anything to send, until it ends */
#define LOOK_MS			500		/* while another producer's transaction hides what was sent */
#define TURN_MS			10000	/* of a stream, where others wait for a process */
#define RETRY_FIRST_MS	1000	/* doubled with each failure .. */
#define RETRY_MAX_MS	60000	/* .. up to this */
#define ASKED_MS		200		/* so long it leaves the stream to whoever asks for it */
#define LASTING_FAILURES	5	/* after about half a minute */
#define RETRY_FENCED_MS	100		/* somebody took the id: he will be done soon */

void
outbox_look(void)
{
	ListCell   *lc;

	if (worker_shared == NULL)
		return;
	foreach(lc, outbox_streams())
	{
		OutboxStream *stream = lfirst(lc);
		char		error[OUTBOX_ERROR_LEN];
		TimestampTz error_at;

		if (OidIsValid(stream->serverid) && !stream->foreign_copy && stream->stopped_seq == 0 &&
			stream->written_rows > stream->removed_rows &&
			outbox_sender_pid(stream->id, error, &error_at) == 0)
			outbox_wake(stream->id);
	}
}

static char *
stream_name(int32 id)
{
	OutboxStream *stream;
	char	   *name;
	MemoryContext context = CurrentMemoryContext;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	stream = outbox_stream_get(id);
	name = MemoryContextStrdup(context, stream != NULL ? stream->server_name : "?");
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return name;
}

static int64
retry_pause(int32 stream, const ErrorData *error)
{
	int64		pause = RETRY_FIRST_MS;

	if (error->sqlerrcode == ERRCODE_T_R_SERIALIZATION_FAILURE && outbox_failures(stream) == 0)
		return RETRY_FENCED_MS;
	for (int i = outbox_failures(stream); i > 0 && pause < RETRY_MAX_MS; i--)
		pause *= 2;
	return Min(pause, RETRY_MAX_MS);
}

static void
sending_context(void *arg)
{
	errcontext("sending the outbox of server \"%s\"", (const char *) arg);
}

/*
 * One step that never raises.  After a failure that time may heal *failed is set:
 * the process ends, and the launcher starts another one later.
 */
static OutboxResult
step(OutboxSender *sender, const char *name, bool *failed)
{
	MemoryContext context = CurrentMemoryContext;
	volatile OutboxResult result = OUTBOX_SENT;
	ErrorData  *volatile error = NULL;
	ErrorContextCallback callback;

	callback.callback = sending_context;
	callback.arg = unconstify(char *, name);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	PG_TRY();
	{
		result = outbox_send(sender);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(context);

	if (error == NULL)
	{
		if (result == OUTBOX_SENT || result == OUTBOX_IDLE)
			outbox_note(sender->stream, NULL, 0);
		return result;
	}
	if (outbox_sender_failed(sender, error, outbox_failures(sender->stream) >= LASTING_FAILURES))
		return OUTBOX_SENT;

	outbox_note(sender->stream, error->detail != NULL ? psprintf("%s: %s", error->message, error->detail) :
				error->message, retry_pause(sender->stream, error));
	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg("could not send the outbox of server \"%s\": %s", name, error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
	*failed = true;
	return OUTBOX_IDLE;
}

static void
wait_a_while(long ms)
{
	pgstat_report_stat(true);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Max(ms, 1), PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/*
 * PostgreSQL releases locks of a session at an abort, and advisory ones at its end, but
 * not the others, since nobody leaves in between with one: we do.
 */
static void
release_at_exit(int code, Datum arg)
{
	AbortOutOfAnyTransaction();
	LockReleaseAll(DEFAULT_LOCKMETHOD, true);
}

void
outbox_sender_main(int32 stream)
{
	MemoryContext loop_context = AllocSetContextCreate(TopMemoryContext, "upsert_kafka outbox loop",
													   ALLOCSET_DEFAULT_SIZES);
	OutboxSender *sender;
	const char *name;
	TimestampTz started = GetCurrentTimestamp();
	TimestampTz idle_since = 0;

	before_shmem_exit(release_at_exit, (Datum) 0);
	MemoryContextSwitchTo(TopMemoryContext);
	sender = outbox_sender_create(stream, true);
	name = stream_name(stream);

	for (;;)
	{
		bool		ignored = false;
		bool		failed = false;
		OutboxResult result;
		TimestampTz now;

		MemoryContextSwitchTo(loop_context);
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (worker_stop_requested(&ignored) || !uk_workers)
			worker_leave(OUTCOME_LEFT);

		if (outbox_asked(stream))
		{
			outbox_postpone(stream, ASKED_MS);
			worker_leave(OUTCOME_LEFT);
		}

		outbox_begin_look(stream);
		pgstat_report_activity(STATE_RUNNING, psprintf("sending the outbox of server \"%s\"", name));
		result = step(sender, name, &failed);
		if (failed)
			worker_leave(OUTCOME_LEFT);

		now = GetCurrentTimestamp();
		switch (result)
		{
			case OUTBOX_SENT:
				idle_since = 0;
				if (TimestampDifferenceExceeds(started, now, TURN_MS) && outbox_others_wait())
				{
					outbox_wake(stream);
					worker_leave(OUTCOME_LEFT);
				}
				break;
			case OUTBOX_IDLE:
				if (idle_since == 0)
					idle_since = now;
				if (TimestampDifferenceExceeds(idle_since, now, IDLE_MS) || outbox_others_wait())
				{
					outbox_sender_settle(sender);
					worker_leave(OUTCOME_LEFT);
				}
				pgstat_report_activity(STATE_IDLE, psprintf("waiting for messages to server \"%s\"", name));
				wait_a_while(Min(IDLE_MS - TimestampDifferenceMilliseconds(idle_since, now) + 1,
								 sender->state->unreadable != NULL ? LOOK_MS : IDLE_MS));
				break;
			case OUTBOX_BUSY:
				wait_a_while(200);
				break;
			case OUTBOX_STOPPED:
			case OUTBOX_GONE:
				outbox_note(stream, NULL, 0);
				worker_leave(OUTCOME_LEFT);
		}
	}
}
