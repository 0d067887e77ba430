/*
 * upsert_kafka.c
 *	  Module start: settings, and nothing else.
 */
#include "postgres.h"

#include <limits.h>

#include "compat.h"
#include "fmgr.h"
#include "history/history.h"
#include "miscadmin.h"
#include "upsert_kafka.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

int			uk_max_workers = 4;
int			uk_max_senders = 4;
bool		uk_workers = true;
int			uk_idle_timeout = 60000;
int			uk_batch_rows = 10000;
int			uk_batch_bytes = 16384;
int			uk_batch_time = 100;
int			uk_wait_timeout = 60000;
int			uk_queue_kb = 65536;
int			uk_outbox_limit = 1024 * 1024;
int			uk_commit_timeout = 10000;

void
_PG_init(void)
{
	DefineCustomIntVariable("upsert_kafka.batch_bytes",
							gettext_noop("Most bytes of messages that one apply transaction takes."),
							NULL, &uk_batch_bytes, 16384, 64, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.batch_rows",
							gettext_noop("Most messages that one apply transaction takes."),
							NULL, &uk_batch_rows, 10000, 1, 1000000,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.batch_time",
							gettext_noop("How long an apply transaction may collect messages while more are arriving."),
							NULL, &uk_batch_time, 100, 0, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.commit_timeout",
							gettext_noop("How long a commit waits until Kafka has acknowledged what the transaction has written."),
							NULL, &uk_commit_timeout, 10000, 100, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.idle_timeout",
							gettext_noop("Time after which a session closes a Kafka client it does not use."),
							NULL, &uk_idle_timeout, 60000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);

	/* a session that loads the library by itself may not define a PGC_POSTMASTER one */
	DefineCustomIntVariable("upsert_kafka.max_senders",
							gettext_noop("Most processes of the server that send the outboxes of exactly-once tables."),
							NULL, &uk_max_senders, 4, 1, 64,
							process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
							0, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.max_workers",
							gettext_noop("Most apply and backfill workers that run at once in the server."),
							NULL, &uk_max_workers, 4, 1, 256,
							process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
							0, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.outbox_limit",
							gettext_noop("Most bytes of messages that may wait in the outbox of a server."),
							gettext_noop("-1 means no limit."), &uk_outbox_limit, 1024 * 1024, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.queue_size",
							gettext_noop("Bytes that one Kafka client reads ahead."),
							NULL, &uk_queue_kb, 65536, 1024, 1024 * 1024,
							PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("upsert_kafka.wait_timeout",
							gettext_noop("How long upsert_kafka.wait_for waits when it is not told."),
							NULL, &uk_wait_timeout, 60000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("upsert_kafka.workers",
							 gettext_noop("Lets workers run; off on clones that must not act."),
							 NULL, &uk_workers, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("upsert_kafka");

	history_init();
	topic_modify_init();
	uk_worker_init();
}
