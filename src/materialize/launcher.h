/*
 * launcher.h
 *	  What the launcher hands to the processes that it starts.
 */
#ifndef UK_LAUNCHER_H
#define UK_LAUNCHER_H

/* In bgw_extra; bgw_main_arg is the slot. */
typedef struct WorkerStart
{
	uint32		generation;		/* of the slot when it was reserved */
	Oid			database;
} WorkerStart;

extern PGDLLEXPORT void upsert_kafka_launcher_main(Datum arg);
extern PGDLLEXPORT void upsert_kafka_worker_main(Datum arg);

#endif							/* UK_LAUNCHER_H */
