/*
 * catalog.h
 *	  Registrations of maintained tables and their positions, read from and
 *	  written to the extension's catalogs.
 *
 * Callers are inside a transaction with an active snapshot.  Catalogs belong to
 * the extension's owner; these functions switch to it, so they work whoever
 * calls.  Who may do what is the caller's question.
 */
#ifndef UK_CATALOG_H
#define UK_CATALOG_H

#include "datatype/timestamp.h"
#include "fdw/options.h"
#include "nodes/pg_list.h"

typedef enum TableState
{
	TABLE_BACKFILL,				/* first load: target is empty until it commits */
	TABLE_LIVE,
	TABLE_PAUSED,
	TABLE_STOPPED,				/* at a message; see error columns */
	TABLE_TOPIC_CHANGED,		/* topic gone, recreated or shrunk */
	TABLE_DATA_LOST,			/* position below the low watermark */
	TABLE_RESTORED				/* a copy: does nothing until resume (decision 16) */
} TableState;

typedef struct MaintainedTable
{
	Oid			target;			/* current table (or append table) */
	Oid			source;			/* foreign table on the topic */
	Oid			versions;		/* InvalidOid without history */
	Oid			history;
	Oid			origins;		/* InvalidOid with history and for append tables */
	Oid			owner;			/* of target: apply runs as this role */
	bool		append;			/* no key: every message a row */
	int			ncolumns;		/* target column <- source column, by name */
	char	  **columns;
	char	  **source_columns;
	int			nkeys;
	char	  **key_columns;	/* of target, in primary key order */
	char	   *event_time;		/* source column; NULL: the Kafka timestamp */
	bool		current_by_event_time;	/* current => 'event_time' */
	OnError		on_error;
	TableState	state;
	bool		foreign_copy;	/* registered under another system identifier or
								 * database, or without its guard trigger (a
								 * restore that has not ended): treat as
								 * TABLE_RESTORED */
} MaintainedTable;

/* Of one source; its index is the source's number (sources.h). */
typedef struct Position
{
	const char *topic;
	int32		partition;
	bool		given_up;		/* its topic was deleted: never read again */
	int64		next_offset;
	int64		last_offset;	/* of the last applied record, -1: none */
	int64		last_timestamp;
	uint32		last_hash;		/* of its key and value: tells a recreated topic */
} Position;

typedef struct Positions
{
	char	   *topic;			/* as the foreign table has named what it reads */
	int			n;
	Position   *positions;		/* by source */
	bool		several;		/* of several topics: sources have rows in topic_source */
	int			nstored;		/* so many of them are there */
	int64		next_seq;		/* next __seq of the versions table */
} Positions;

/* NULL if not registered.  palloc'd in CurrentMemoryContext. */
extern MaintainedTable *maintained_table_get(Oid target);

/* The same, even if the table is gone: owner is InvalidOid then. */
extern MaintainedTable *maintained_table_read(Oid target);

/*
 * Has the current table its guard trigger, and is it enabled?  pg_dump makes triggers
 * last and --clean drops them first, so a table without it is being restored
 * or taken apart: nothing is applied to it, and no DDL on it is refused or
 * followed.
 */
#define GUARD_TRIGGER	"upsert_kafka_guard"
extern bool maintained_table_is_guarded(Oid target);

/* What MaintainedTable.foreign_copy tells, of a registration's columns. */
extern bool registration_is_copy(Oid target, int64 system_identifier, Oid database);
extern List *maintained_table_targets(void);	/* OIDs of all of this database */

/* The target whose versions, history or origins table this is; InvalidOid: none. */
extern Oid	maintained_table_of_part(Oid relid);

/*
 * Write a registration: insert takes all fields, with state; update all but
 * state and target; delete takes positions and errors along.
 */
extern void maintained_table_insert(const MaintainedTable *table);
extern void maintained_table_update(const MaintainedTable *table);
extern void maintained_table_delete(Oid target);

/* Make a copied registration this database's own (resume of a restored table). */
extern void maintained_table_adopt(Oid target);

extern Positions *positions_get(Oid target);	/* NULL: never read anything */
extern void positions_set(Oid target, const Positions *positions);
extern void positions_forget(Oid target);	/* as if nothing had been read; sources keep their numbers */

/*
 * topic_sources.c: rows of the catalog topic_source.  get returns them as positions of which
 * nothing was read, *n = 0 for tables of one plain topic; add stores those from 'first' on.
 */
extern Position *topic_sources_get(Oid target, int *n);
extern void topic_sources_add(Oid target, const Positions *positions, int first);
extern void topic_source_give_up(Oid target, int32 source);
extern void topic_sources_forget(Oid target);

extern const char *table_state_name(TableState state);

/*
 * Sets state and the error columns (sqlerrcode 0, detail NULL: cleared); source and
 * offset are -1 where no message is to blame.
 */
extern void table_state_set(Oid target, TableState state, int sqlerrcode, const char *detail,
							int32 source, int64 offset);

/*
 * Count values that messages left out and no earlier one has told (case X11); n < 0: from
 * 0 again.  Under the table's lock.
 */
extern void missing_values_add(Oid target, int64 n);

/* The error columns; palloc'd.  False: no error is recorded. */
typedef struct RegistrationError
{
	int			sqlerrcode;
	char	   *message;
	int32		source;			/* -1: the table as a whole */
	int64		offset;
} RegistrationError;
extern bool registration_error_get(Oid target, RegistrationError *error);

/* A row of the errors table; raw bytes may be NULL = Kafka null. */
typedef struct MessageError
{
	const char *topic;
	int32		source;
	int64		offset;
	int64		timestamp;
	const char *key;
	Size		key_len;
	const char *value;
	Size		value_len;
	int			sqlerrcode;
	const char *column;
	const char *message;
	const char *key_text;		/* the typed key as record text, NULL if unknown:
								 * a later good message for it supersedes the error */
	bool		truncated;		/* the source was truncated after it: */
	int64		truncated_offset;	/* there, */
	TimestampTz truncated_at;	/* and then */
} MessageError;
extern void message_error_record(Oid target, const MessageError *error);
/*
 * Recorded errors of a table in (source, offset) order, with topic, coordinates,
 * timestamp, raw bytes and truncation only; palloc'd.  And the removal of one that has
 * been applied after all; nothing happens if there is none.
 */
extern List *message_errors_get(Oid target);
extern void message_error_delete(Oid target, int32 source, int64 offset);
extern void message_errors_forget(Oid target);	/* all of them, before a rebuild */

extern bool message_errors_exist(Oid target);
extern bool message_errors_ahead(Oid target, int32 source, int64 offset);	/* there or later */

/* Mark all errors of a partition superseded by a truncation of the source. */
extern void message_errors_truncate(Oid target, int32 source, int64 offset, TimestampTz at);

/*
 * Mark errors superseded by later messages of their keys (case X12), key by key.  NULL:
 * there are none to mark.  Nobody else changes the table's errors between begin and end.
 */
typedef struct ErrorSweep ErrorSweep;
extern ErrorSweep *message_errors_sweep_begin(Oid target);
extern void message_errors_sweep_key(ErrorSweep *sweep, const char *key_text, int32 source, int64 offset);
extern void message_errors_sweep_end(ErrorSweep *sweep);

/*
 * One writer per maintained table: a heavyweight lock on the registration, held to
 * the end of the transaction, taken before any snapshot that apply uses
 * (decision 18).  Waits interruptibly; with nowait returns false instead.
 * Conflicts with itself only, not with DDL or vacuum.
 */
extern bool maintained_table_lock(Oid target, bool nowait);

/*
 * The same, waiting, and then the relations that apply writes and reads by their
 * columns' names: DDL on them that is not committed yet is waited for here, so that
 * registration and relations, read afterwards, agree.  Whether they exist is for the
 * caller to find out.  May leave a little in the current memory context.
 */
extern void maintained_table_lock_to_apply(Oid target);

/* One GRANT or REVOKE at a time on a table and its history; to the end of the transaction. */
extern void maintained_table_lock_privileges(Oid target);

/* True while apply itself writes: the guard trigger lets it pass. */
extern bool apply_in_progress;

#endif							/* UK_CATALOG_H */
