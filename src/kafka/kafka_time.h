/*
 * kafka_time.h
 *	  Kafka's times are milliseconds since 1970, PostgreSQL's microseconds since 2000.
 */
#ifndef UK_KAFKA_TIME_H
#define UK_KAFKA_TIME_H

#include "datatype/timestamp.h"

#define KAFKA_EPOCH_MS	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

/* The millisecond that a finite time lies in; first to ms, so that the shift cannot overflow. */
static inline int64
kafka_ms_of(TimestampTz time)
{
	return time / 1000 - (time % 1000 < 0) + KAFKA_EPOCH_MS;
}

/* Of a time that kafka_ms_of() has made */
static inline TimestampTz
kafka_time_of(int64 ms)
{
	return (ms - KAFKA_EPOCH_MS) * 1000;
}

#endif							/* UK_KAFKA_TIME_H */
