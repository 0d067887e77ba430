/*
 * outbox_catalog.h
 *	  Streams of the outbox and their messages in the extension's tables.
 *	  Private to src/outbox.
 *
 * Rows are read and written below SQL: no rights of the caller are involved, and
 * always the newest committed rows are seen.  Callers are inside a transaction.
 */
#ifndef UK_OUTBOX_CATALOG_H
#define UK_OUTBOX_CATALOG_H

#include "access/htup.h"
#include "access/skey.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "outbox/outbox.h"
#include "utils/relcache.h"

typedef struct OutboxStream
{
	int32		id;
	Oid			serverid;		/* InvalidOid: there is no such server any more */
	Oid			roleid;			/* whose mapping; InvalidOid: PUBLIC's, or none */
	char	   *server_name;
	char	   *role_name;		/* NULL with roleid InvalidOid */
	Oid			stored_serverid;	/* the server it was made for */
	bool		foreign_copy;	/* came with a copy of the database, or is restored
								 * into it: must not send */
	char	   *group;			/* the Kafka group that keeps the sequence */
	char	   *transactional_id;
	char	   *carrier;		/* topic whose partition 0 it is kept for */

	/* the sender's */
	int64		last_sent;		/* at least this much is in Kafka, and deleted here */
	int64		removed_rows;	/* sent or given up, ever */
	int64		removed_bytes;
	TimestampTz last_sent_at;	/* 0: never */
	TimestampTz unsettled_since;	/* 0: Kafka has nothing that last_sent does not tell */
	int64		stopped_seq;	/* 0: not stopped */
	int			error_code;
	char	   *error;
	TimestampTz error_at;
	char	   *unreadable;		/* a bookmark of what was sent, and could not be read
								 * yet (outbox_readable.h); NULL: nothing */

	/* the writers' */
	int64		last_seq;
	int64		written_rows;
	int64		written_bytes;
	int64		copied_seq;		/* in a copy that was written to since: what came
								 * with it ends here; else 0 */
} OutboxStream;

/* NULL if it does not exist; palloc'd. */
extern OutboxStream *outbox_stream_get(int32 id);
extern List *outbox_streams(void);	/* of OutboxStream, by id */

/* The stream of a server and mapping, made if need be; 'carrier' for a new one. */
extern OutboxStream *outbox_stream_ensure(Oid serverid, Oid roleid, const char *carrier);

/* Write the sender's fields; or, with identity, all that names the stream too. */
extern void outbox_stream_update(const OutboxStream *stream, bool identity);
extern void outbox_stream_delete(int32 id);
extern void outbox_counter_update(const OutboxStream *stream);

/* Make a copied stream this database's own; outbox_stream_update follows. */
extern void outbox_stream_adopt(OutboxStream *stream);

/*
 * Locks of a stream: its order is the writers', to the end of their transaction;
 * the right to send is one process's, 'session': until released or an abort.
 * False if nowait and somebody else has it.
 */
extern void outbox_lock_order(int32 id);
extern bool outbox_lock_sender(int32 id, bool session, bool nowait);
extern void outbox_unlock_sender(int32 id);

/* --- messages ------------------------------------------------------------ */

typedef struct OutboxMessage
{
	int64		seq;
	uint64		xid;
	Oid			source;
	KafkaPartitioner partitioner;
	KafkaOutRecord out;
	TimestampTz queued_at;
} OutboxMessage;

/* Bytes of a message as the limits count them. */
extern Size outbox_message_size(const KafkaOutRecord *record);

/* Insert messages of a stream; seq ascending, greater than all before. */
typedef struct OutboxInsert OutboxInsert;
extern OutboxInsert *outbox_insert_begin(void);
extern void outbox_insert(OutboxInsert *insert, int32 stream, const OutboxMessage *message);
extern void outbox_insert_end(OutboxInsert *insert);

/*
 * Read messages with first <= seq <= last in order.  next fills *message, palloc'd
 * in the current memory context.
 */
typedef struct OutboxScan OutboxScan;
extern OutboxScan *outbox_scan_begin(int32 stream, int64 first, int64 last);
extern bool outbox_scan_next(OutboxScan *scan, OutboxMessage *message);
extern void outbox_scan_end(OutboxScan *scan);

/* Remove a range, and count it in *rows and *bytes. */
extern void outbox_remove(int32 stream, int64 first, int64 last, int64 *rows, int64 *bytes);

/* May the extension's tables be used?  False while it is created or dropped. */
extern bool outbox_exists(void);

#endif							/* UK_OUTBOX_CATALOG_H */
