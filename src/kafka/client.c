/*
 * client.c
 *	  Handles: making them, the pool of idle ones, and the reaper thread that
 *	  destroys them.  Owns every thread that this module starts.
 *
 * rd_kafka_destroy() waits for threads that may be resolving a name or be stuck
 * in a handshake, so the backend never calls it: it hands the handle to the
 * reaper.  The reaper and the helper threads (call.c) touch libc and librdkafka
 * only; everything that they share with the main thread is malloc'ed and under
 * 'lock' or counted.
 */
#include "postgres.h"

#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "kafka/kafka_internal.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "upsert_kafka.h"
#include "utils/memutils.h"

#define MAX_IDLE_PER_KEY 4
#define EXIT_WAIT_MS 2000
#define LAST_WORDS_MS 1500		/* of a producer's: below EXIT_WAIT_MS */
#define LAST_SLICE_MS 50
#define MAX_GIVEN_UP 4			/* of a mapping, that have not ended when a new one is made */
#define GIVEN_UP_SLICE_MS 20
#define TRIM_AFTER_MS 1000
#define MALLOC_ARENAS 4
#define THREAD_STACK (256 * 1024)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reaper_wakeup;
static pthread_cond_t handle_gone;
static KafkaHandle *idle;		/* pool: unused, kept until idle_until */
static KafkaHandle *doomed;		/* to be destroyed */
static KafkaHandle *handles;	/* all that the reaper has not taken yet */
static int	nhandles;			/* made and not yet destroyed */
static bool reaper_running;
static int64 trim_at;			/* when to return memory to the system; 0: no need */
static bool exiting;			/* the process is about to end */

static int	pool_pid;			/* process that the above belongs to */
static KafkaClient *clients;	/* main thread: those not released */

int64
kafka_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
timespec_from_ms(struct timespec *ts, int64 ms)
{
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = (ms % 1000) * 1000000;
}

/*
 * Start a detached thread that blocks every signal, so that PostgreSQL's
 * handlers run in the main thread only (case I03).
 */
bool
kafka_thread_start(void *(*run) (void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t	thread;
	sigset_t	all;
	sigset_t	old;
	int			rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc == 0;
}

/* --- destroying ------------------------------------------------------------- */

/*
 * What a producer still owes: messages that nobody waits for are sent, an open
 * transaction is aborted, so that it does not hold readers up until it times
 * out.  Best effort; reports of failures have no reader any more.
 */
static void
producer_last_words(KafkaHandle *handle)
{
	int64		deadline = kafka_now_ms() + LAST_WORDS_MS;
	rd_kafka_event_t *event;

	if (handle->refused || !(handle->in_transaction || !handle->key.wait_for_acks))
		return;
	while (rd_kafka_outq_len(handle->rk) > 0 && kafka_now_ms() < deadline)
	{
		if (!handle->in_transaction)
			rd_kafka_flush(handle->rk, LAST_SLICE_MS);
		if ((event = rd_kafka_queue_poll(handle->events, handle->in_transaction ? LAST_SLICE_MS : 0)) != NULL)
			rd_kafka_event_destroy(event);
	}
	if (handle->in_transaction)
	{
		rd_kafka_error_t *error = rd_kafka_abort_transaction(handle->rk, Max(deadline - kafka_now_ms(), LAST_SLICE_MS));

		if (error)
			rd_kafka_error_destroy(error);
	}
}

/* Any thread; may take long.  No message of the handle may be referenced. */
static void
handle_destroy(KafkaHandle *handle)
{
	if (handle->rk && handle->key.producer)
	{
		producer_last_words(handle);
		kafka_topics_free(handle->topics);
	}
	if (handle->records)
		rd_kafka_queue_destroy(handle->records);
	if (handle->events)
		rd_kafka_queue_destroy(handle->events);
	if (handle->rk)
		rd_kafka_destroy_flags(handle->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	close(handle->fd[0]);
	close(handle->fd[1]);
	free(handle);
}

/*
 * Each thread of a client has its own malloc arena, and glibc keeps what was
 * freed there: a session that has read a big topic once would stay at the size
 * of its queue.  Called with the lock held, works without it.
 */
static void
trim_memory(void)
{
	trim_at = 0;
	pthread_mutex_unlock(&lock);
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	pthread_mutex_lock(&lock);
}

/* With the lock held, when nobody refers to it any more. */
static void
doom(KafkaHandle *handle)
{
	handle->next = doomed;
	doomed = handle;
}

/*
 * With the lock held: the client, or the pool, parts with it for good.  A helper thread
 * may still be waiting for an answer with it, and is the last one then.
 */
static void
give_up(KafkaHandle *handle)
{
	handle->given_up = true;
	if (pg_atomic_sub_fetch_u32(&handle->refcount, 1) == 0)
		doom(handle);
}

static void
leave_handles(KafkaHandle *handle)
{
	KafkaHandle **link = &handles;

	while (*link != handle)
		link = &(*link)->older;
	*link = handle->older;
}

static void *
reaper_main(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;)
	{
		int64		now = kafka_now_ms();
		int64		next = PG_INT64_MAX;
		KafkaHandle **link = &idle;
		KafkaHandle *handle;

		while ((handle = *link) != NULL)
		{
			if (handle->idle_until <= now)
			{
				*link = handle->next;
				give_up(handle);
			}
			else
			{
				next = Min(next, handle->idle_until);
				link = &handle->next;
			}
		}

		if ((handle = doomed) != NULL)
		{
			doomed = handle->next;
			leave_handles(handle);
			pthread_mutex_unlock(&lock);
			handle_destroy(handle);
			pthread_mutex_lock(&lock);
			nhandles--;
			/* not yet: the main thread is about to free what it had of it */
			trim_at = exiting ? 0 : kafka_now_ms() + TRIM_AFTER_MS;
			pthread_cond_broadcast(&handle_gone);
		}
		else if (trim_at != 0 && trim_at <= now)
			trim_memory();
		else if (idle != NULL || trim_at != 0)
		{
			struct timespec until;

			timespec_from_ms(&until, trim_at != 0 ? Min(next, trim_at) : next);
			pthread_cond_timedwait(&reaper_wakeup, &lock, &until);
		}
		else
			break;
	}
	reaper_running = false;
	pthread_cond_broadcast(&handle_gone);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* With the lock held: see that somebody looks after 'idle' and 'doomed'. */
static void
reaper_wake(void)
{
	if (trim_at == 0 && !exiting && (idle != NULL || doomed != NULL))
		trim_at = kafka_now_ms() + TRIM_AFTER_MS;
	if (reaper_running)
		pthread_cond_signal(&reaper_wakeup);
	else if (idle != NULL || doomed != NULL)
	{
		/* when no thread can be had, the next call tries again */
		reaper_running = kafka_thread_start(reaper_main, NULL);
	}
}

void
kafka_handle_ref(KafkaHandle *handle)
{
	pg_atomic_fetch_add_u32(&handle->refcount, 1);
}

/* Any thread.  The last one sends the handle to the reaper. */
void
kafka_handle_unref(KafkaHandle *handle)
{
	if (pg_atomic_sub_fetch_u32(&handle->refcount, 1) > 0)
		return;
	pthread_mutex_lock(&lock);
	doom(handle);
	reaper_wake();
	pthread_mutex_unlock(&lock);
}

/*
 * A session that is cancelled again and again must not make handles, and with them
 * threads, faster than they end.  Not for longer than a broker may take to answer;
 * other servers' handles are not waited for.  Workers never wait: nobody cancels
 * them, and they have other tables.
 */
static void
wait_for_others(const KafkaHandleKey *key, int timeout_ms)
{
	int64		deadline = kafka_now_ms() + timeout_ms;
	bool		go_on = false;

	while (!go_on)
	{
		int			given_up = 0;

		pthread_mutex_lock(&lock);
		for (KafkaHandle *other = handles; other != NULL; other = other->older)
		{
			if (other->given_up && other->key.serverid == key->serverid && other->key.umid == key->umid)
				given_up++;
		}
		go_on = given_up <= MAX_GIVEN_UP || kafka_now_ms() >= deadline;
		if (!go_on)
		{
			struct timespec until;

			reaper_wake();
			timespec_from_ms(&until, kafka_now_ms() + GIVEN_UP_SLICE_MS);
			pthread_cond_timedwait(&handle_gone, &lock, &until);
		}
		pthread_mutex_unlock(&lock);
		if (!go_on)
			CHECK_FOR_INTERRUPTS();
	}
}

/* --- the pool --------------------------------------------------------------- */

static bool
same_use(const KafkaHandleKey *a, const KafkaHandleKey *b)
{
	return a->producer == b->producer && a->queue_kb == b->queue_kb && a->follow == b->follow &&
		a->narrow == b->narrow && a->wait_for_acks == b->wait_for_acks &&
		a->transactional == b->transactional && a->message_timeout_ms == b->message_timeout_ms &&
		a->batch_bytes == b->batch_bytes;
}

/*
 * An idle handle with this key, or NULL.  Handles of the same mapping whose
 * configuration has changed are not waited for: they are closed.  So is a
 * producer that has failed for good while it rested.
 */
static KafkaHandle *
pool_take(const KafkaHandleKey *key)
{
	KafkaHandle **link = &idle;
	KafkaHandle *handle;
	KafkaHandle *found = NULL;

	pthread_mutex_lock(&lock);
	while ((handle = *link) != NULL)
	{
		bool		same = handle->key.serverid == key->serverid && handle->key.umid == key->umid;

		if (same && (handle->key.fingerprint != key->fingerprint ||
					 rd_kafka_fatal_error(handle->rk, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR))
		{
			*link = handle->next;
			give_up(handle);
		}
		else if (same && found == NULL && same_use(&handle->key, key))
		{
			*link = handle->next;
			found = handle;
		}
		else
			link = &handle->next;
	}
	reaper_wake();
	pthread_mutex_unlock(&lock);
	return found;
}

static void
pool_put(KafkaHandle *handle)
{
	int			same = 0;

	pthread_mutex_lock(&lock);
	for (KafkaHandle *other = idle; other != NULL; other = other->next)
	{
		if (other->key.serverid == handle->key.serverid && other->key.umid == handle->key.umid &&
			other->key.producer == handle->key.producer)
			same++;
	}
	if (same >= MAX_IDLE_PER_KEY || uk_idle_timeout == 0)
		give_up(handle);
	else
	{
		handle->idle_until = kafka_now_ms() + uk_idle_timeout;
		handle->next = idle;
		idle = handle;
	}
	reaper_wake();
	pthread_mutex_unlock(&lock);
}

/* --- making ----------------------------------------------------------------- */

static KafkaHandle *
handle_create(const KafkaConfig *config, const KafkaHandleKey *key, const KafkaProducerSettings *settings)
{
	rd_kafka_conf_t *conf = key->producer ? kafka_producer_conf(config, settings) :
		kafka_consumer_conf(config, key->queue_kb);
	KafkaHandle *handle;
	char		text[KAFKA_ERROR_TEXT];
	sigset_t	all;
	sigset_t	old;

	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG |
							 (key->producer ? RD_KAFKA_EVENT_DR : 0));

	handle = calloc(1, sizeof(KafkaHandle));
	if (handle == NULL)
	{
		rd_kafka_conf_destroy(conf);
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	}
	if (pipe2(handle->fd, O_NONBLOCK | O_CLOEXEC) != 0)
	{
		int			save_errno = errno;

		rd_kafka_conf_destroy(conf);
		free(handle);
		errno = save_errno;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create pipe: %m")));
	}

	text[0] = '\0';
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	handle->rk = rd_kafka_new(key->producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	pthread_sigmask(SIG_SETMASK, &old, NULL);

	if (handle->rk == NULL)
	{
		rd_kafka_conf_destroy(conf);
		close(handle->fd[0]);
		close(handle->fd[1]);
		free(handle);
		ereport(ERROR,
				(errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
				 errmsg("could not create a Kafka client for server \"%s\"", config->server_name),
				 errdetail("%s.", text),
				 OidIsValid(config->umid) ? 0 :
				 errhint("There is no user mapping for this role on the server; passwords and keys are options of it.")));
	}

	handle->key = *key;
	pg_atomic_init_u32(&handle->refcount, 1);
	handle->events = rd_kafka_queue_get_main(handle->rk);
	rd_kafka_set_log_queue(handle->rk, handle->events);
	rd_kafka_queue_io_event_enable(handle->events, handle->fd[1], "e", 1);
	if (!key->producer)
	{
		handle->records = rd_kafka_queue_get_consumer(handle->rk);
		rd_kafka_queue_io_event_enable(handle->records, handle->fd[1], "r", 1);
	}

	pthread_mutex_lock(&lock);
	handle->older = handles;
	handles = handle;
	nhandles++;
	pthread_mutex_unlock(&lock);
	return handle;
}

#ifdef __GLIBC__
static void
end_at_once(int status, void *arg)
{
	_exit(status);
}
#endif

/*
 * Process exit: give back what is still held, and wait a moment for the threads
 * to end.  libc's own exit handlers (OpenSSL's among them) run next and must not
 * find threads at work: if some are left, they are passed over.
 */
static void
kafka_at_exit(int code, Datum arg)
{
	struct timespec until;

	if (pool_pid != MyProcPid)
		return;

	while (clients != NULL)
	{
		clients->busy = true;
		clients->release(clients);
	}

	pthread_mutex_lock(&lock);
	exiting = true;
	trim_at = 0;
	for (KafkaHandle *handle = idle; handle != NULL; handle = handle->next)
		handle->idle_until = 0;
	reaper_wake();
	timespec_from_ms(&until, kafka_now_ms() + EXIT_WAIT_MS);
	while (nhandles > 0 || reaper_running)
	{
		if (pthread_cond_timedwait(&handle_gone, &lock, &until) != 0)
			break;
	}
#ifdef __GLIBC__
	/* what is registered last runs first */
	if (nhandles > 0 || reaper_running)
		on_exit(end_at_once, NULL);
#endif
	pthread_mutex_unlock(&lock);
}

/* Once per process: what a parent process had is not ours (case I01). */
static void
pool_init(void)
{
	pthread_condattr_t attr;

	if (pool_pid == MyProcPid)
		return;

	idle = NULL;
	doomed = NULL;
	handles = NULL;
	clients = NULL;
	nhandles = 0;
	trim_at = 0;
	exiting = false;
	reaper_running = false;
	pthread_mutex_init(&lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reaper_wakeup, &attr);
	pthread_cond_init(&handle_gone, &attr);
	pthread_condattr_destroy(&attr);
#ifdef __GLIBC__
	/* what one thread has freed another can use, instead of one heap for each */
	mallopt(M_ARENA_MAX, MALLOC_ARENAS);
#endif
	pool_pid = MyProcPid;
	on_proc_exit(kafka_at_exit, (Datum) 0);
}

/* --- clients ---------------------------------------------------------------- */

static void
client_callback(void *arg)
{
	KafkaClient *client = arg;

	client->release(client);
}

/*
 * Give a client a handle, pooled or new, and its owner the duty to release it.
 * The caller has zeroed it in the memory of 'owner' and set owner and release;
 * everything else that can fail for want of memory should come before.
 */
void
kafka_client_open(KafkaClient *client, const KafkaConfig *config, const KafkaHandleKey *key,
				  const KafkaProducerSettings *settings)
{
	pool_init();
	client->server_name = MemoryContextStrdup(client->owner, config->server_name);
	client->timeout_ms = config->timeout_ms;
	client->waited_ms = config->timeout_ms;

	client->handle = key->transactional ? NULL : pool_take(key);
	if (client->handle == NULL)
	{
		if (MyBackendType == B_BACKEND)
			wait_for_others(key, config->timeout_ms);
		client->handle = handle_create(config, key, settings);
	}

	client->callback.func = client_callback;
	client->callback.arg = client;
	MemoryContextRegisterResetCallback(client->owner, &client->callback);
	client->next = clients;
	if (clients)
		clients->prev = client;
	clients = client;
}

/*
 * Part with the handle: back to the pool if it is reusable, or to the reaper.
 * The last thing that a release function does.
 */
void
kafka_client_close(KafkaClient *client, bool reusable)
{
	KafkaHandle *handle = client->handle;

	client->handle = NULL;
	if (client->prev)
		client->prev->next = client->next;
	else
		clients = client->next;
	if (client->next)
		client->next->prev = client->prev;

	kafka_job_end(client);
	if (reusable && !client->busy && handle->refused == RD_KAFKA_RESP_ERR_NO_ERROR && !handle->key.transactional)
		pool_put(handle);
	else
	{
		pthread_mutex_lock(&lock);
		give_up(handle);
		reaper_wake();
		pthread_mutex_unlock(&lock);
	}
}

/* --- events ----------------------------------------------------------------- */

/* Empty the pipe before looking at what it announced. */
void
kafka_drain_pipe(KafkaHandle *handle)
{
	char		bytes[256];

	while (read(handle->fd[0], bytes, sizeof(bytes)) == sizeof(bytes))
		 /* more */ ;
}

static void
take_log(rd_kafka_event_t *event)
{
	const char *facility;
	const char *text;
	int			level;

	if (rd_kafka_event_log(event, &facility, &text, &level) != 0)
		return;
	/* syslog levels; a refused connection is 3 and comes again and again */
	ereport(level <= 2 ? LOG : level <= 6 ? DEBUG1 : DEBUG2,
			(errmsg_internal("librdkafka: %s: %s", facility, text),
			 errhidestmt(true), errhidecontext(true)));
}

/* A failure that no new try mends; 'refused' keeps the first one. */
static void
take_error(KafkaHandle *handle, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t err = rd_kafka_event_error(event);
	const char *text = rd_kafka_event_error_string(event);
	rd_kafka_resp_err_t fatal = RD_KAFKA_RESP_ERR_NO_ERROR;
	char		fatal_text[KAFKA_ERROR_TEXT];

	if (err == RD_KAFKA_RESP_ERR__FATAL)
	{
		fatal = rd_kafka_fatal_error(handle->rk, fatal_text, sizeof(fatal_text));
		if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR)
			text = fatal_text;
	}
	if (kafka_error_is_alert(err, text))
		err = RD_KAFKA_RESP_ERR__SSL;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || handle->last_error[0] == '\0')
		strlcpy(handle->last_error, text, KAFKA_ERROR_TEXT);
	/* a TLS connection that breaks later on is made again */
	if (kafka_error_refuses(err) && !(err == RD_KAFKA_RESP_ERR__SSL && handle->answered) &&
		handle->refused == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		handle->refused = err;
		handle->fatal = fatal;
		strlcpy(handle->refused_text, text, KAFKA_ERROR_TEXT);
	}
}

/*
 * Log lines to the server log, client errors to last_error and 'refused',
 * delivery reports to the producer.  Main thread, in which librdkafka runs no
 * callback.
 */
void
kafka_drain_events(KafkaClient *client)
{
	KafkaHandle *handle = client->handle;
	rd_kafka_event_t *event;

	while ((event = rd_kafka_queue_poll(handle->events, 0)) != NULL)
	{
		switch (rd_kafka_event_type(event))
		{
			case RD_KAFKA_EVENT_LOG:
				take_log(event);
				break;
			case RD_KAFKA_EVENT_ERROR:
				take_error(handle, event);
				break;
			case RD_KAFKA_EVENT_DR:
				client->delivered(client, event);
				break;
			default:
				break;
		}
		rd_kafka_event_destroy(event);
	}
}
