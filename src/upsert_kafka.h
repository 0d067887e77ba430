/*
 * upsert_kafka.h
 *	  Settings (GUCs) that more than one part reads.
 */
#ifndef UK_UPSERT_KAFKA_H
#define UK_UPSERT_KAFKA_H

extern int	uk_max_workers;		/* apply and backfill workers of the whole server */
extern int	uk_max_senders;		/* outbox senders of the whole server */
extern bool uk_workers;			/* off: no worker runs (decision 16) */
extern int	uk_idle_timeout;	/* ms until an unused consumer is closed; 0 = at
								 * end of use */
extern int	uk_batch_rows;		/* messages per apply transaction */
extern int	uk_batch_bytes;		/* kB per apply transaction */
extern int	uk_batch_time;		/* ms a steady batch may collect */
extern int	uk_wait_timeout;	/* ms: default of wait_for */
extern int	uk_commit_timeout;	/* ms: how long a commit waits for acknowledgements */
extern int	uk_queue_kb;		/* kB a consumer prefetches */
extern int	uk_outbox_limit;	/* kB that may wait in a stream of the outbox, -1: any */

extern void topic_modify_init(void);	/* fdw/topic_modify.c: ON CONFLICT is refused in time */
extern void uk_worker_init(void);	/* materialize/launcher.c: shared memory and the launcher */

#endif							/* UK_UPSERT_KAFKA_H */
