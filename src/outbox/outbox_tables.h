/*
 * outbox_tables.h
 *	  Small things that the files of src/outbox share.
 */
#ifndef UK_OUTBOX_TABLES_H
#define UK_OUTBOX_TABLES_H

#include "datatype/timestamp.h"
#include "utils/timestamp.h"

/* Kafka's times are milliseconds since 1970. */
static inline int64
outbox_unix_ms(TimestampTz time)
{
	return (time + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) / 1000;
}

static inline TimestampTz
outbox_time_of(int64 unix_ms)
{
	return unix_ms * 1000 - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

/* OID of one of the outbox's tables or indexes; ERROR 42704 without the extension. */
extern Oid	outbox_table(const char *name);

/* Did a stream with this identity come with a copy of a database, or from a dump? */
extern bool outbox_is_copy(int64 system_identifier, Oid database, Oid serverid);

#endif							/* UK_OUTBOX_TABLES_H */
