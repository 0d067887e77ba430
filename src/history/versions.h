/*
 * versions.h
 *	  The layout of a versions table: what apply writes and history reads.
 *
 * <t>__versions holds the columns of the current table, by name, and the system columns
 * below, and has one btree: (key columns, __valid_from, __seq).  It is
 * append-only.  A row is a boundary: from __valid_from on, until the next
 * boundary of the key, the key is in the state that the row tells.  Several
 * rows at one moment: the greatest __seq holds, the others lasted for no time
 * and are not shown.
 *
 *	__op	 meaning										row's values
 *	u  U	 an upsert, at its event time					the new row
 *	d  D	 a delete, at its Kafka timestamp, or at the	key only, rest NULL
 *			 time that its change event tells; a tombstone
 *			 right behind a delete: at that delete's
 *	r  R	 derived: the upsert named by __partition,		that upsert's row
 *			 __offset holds (again) from here on
 *	e  E	 derived: nothing holds from here on			key only, rest NULL
 *
 * Derived rows repair boundaries whose holder changed because of a late message
 * or a delete; __cause names its offset.  u and d rows alone are the messages
 * themselves: the whole table can be recomputed from them.
 *
 * Upper case: several partitions have written this key as far as this row knows.
 * Invariant: if a key has messages of several partitions, the row with its
 * greatest (__valid_from, __seq) is upper case, so that one probe shows it.
 *
 * Where no history is kept, <t>__origins has the same columns, unique on (key
 * columns, __partition): the last message of each key in each partition, 'u' or
 * 'd'.  A lower-case row has only its key columns filled in (the current table
 * has the values); upper-case 'U' rows have the whole row.  'm' and 'M' are deletes of rows that
 * go on under another key, and tombstones behind them; they have the whole row that was
 * deleted, for the new key's to take values from.
 */
#ifndef UK_VERSIONS_H
#define UK_VERSIONS_H

#define VERSION_VALID_FROM	"__valid_from"	/* timestamptz not null */
#define VERSION_SEQ			"__seq"			/* bigint not null */
#define VERSION_OP			"__op"			/* "char" not null */
#define VERSION_PARTITION	"__partition"	/* integer not null: number of the source (see
											 * fdw/topic_find.h) of the holder (u r), of the
											 * delete (d), of the cause (e) */
#define VERSION_OFFSET		"__offset"		/* bigint not null */
#define VERSION_TIMESTAMP	"__timestamp"	/* timestamptz, Kafka's own; NULL if unset */
#define VERSION_EVENT_TIME	"__event_time"	/* timestamptz; r only: the holder's event
											 * time; NULL otherwise (it is __valid_from) */
#define VERSION_CAUSE		"__cause"		/* bigint; r and e only: offset of the
											 * message that made this row necessary */
#define VERSION_NSYSTEM		8

/* Column of the history table beside the current table's */
#define HISTORY_SYSTEM_TIME	"system_time"	/* tstzrange [from, to) */

#define VERSION_OP_IS_DERIVED(op)	((op) == 'r' || (op) == 'e' || (op) == 'R' || (op) == 'E')
#define VERSION_OP_HAS_ROW(op)		((op) == 'u' || (op) == 'r' || (op) == 'U' || (op) == 'R')
#define ORIGIN_OP_IS_WHOLE(op)		((op) == 'U' || (op) == 'm' || (op) == 'M')
#define VERSION_OP_IS_SHARED(op)	((op) >= 'A' && (op) <= 'Z')

#endif							/* UK_VERSIONS_H */
