/*
 * apply_map.h
 *	  Inside of ApplyMap, for apply itself.
 */
#ifndef UK_APPLY_MAP_H
#define UK_APPLY_MAP_H

#include "changelog/keys.h"
#include "materialize/apply.h"
#include "pgtime.h"

struct ApplyMap
{
	const TopicTable *topic;
	const Positions *positions; /* names of the sources, for messages; NULL: not known */
	int			ncolumns;		/* of the maintained table that are fed */
	char	  **names;
	int		   *sources;		/* index of each in a change's values */
	int			nkeys;
	AttrNumber *keys;			/* attnum in the foreign table */
	int		   *key_columns;	/* index among the ncolumns */
	KeyDesc    *key_desc;		/* over a change's values; NULL without key */
	int			event_time;		/* index in a change's values, -1: Kafka's */
	Oid			event_time_type;
	bool		deletes_have_time;	/* it is metadata of the value's format */
	pg_tz	   *time_zone;
};

/* Kafka's milliseconds since 1970 as timestamptz */
extern int64 kafka_timestamp(int64 ms);

#endif							/* UK_APPLY_MAP_H */
