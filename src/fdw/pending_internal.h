/*
 * pending_internal.h
 *	  What the buffer of pending writes (pending.c) and its sender (commit.c) share.
 */
#ifndef UK_PENDING_INTERNAL_H
#define UK_PENDING_INTERNAL_H

#include "fdw/pending.h"

/* Where messages go and how; each record names one of these by its index. */
typedef struct PendingTarget
{
	int			index;
	Oid			serverid;
	Oid			userid;
	const char *topic;
	KafkaPartitioner partitioner;
	DeliveryGuarantee delivery;
	Oid			source;			/* DELIVERY_EXACTLY_ONCE: the foreign table */
	int			outbox_index;	/* among the targets of the outbox's writer */
	int			window_rows;	/* reduction: 0 = none */
	int			window_ms;
	KafkaConfig *config;
	int64		first;			/* position of its first record, -1: none */
	int32		max_partition;	/* named by a record, also by one that was undone; -1: none */
	Size		max_bytes;		/* of a record's key and value, as above */
	Size		all_bytes;		/* of all records', as above */
} PendingTarget;

/* One record */
typedef struct PendingRecord
{
	PendingTarget *target;
	int64		position;
	char	   *bytes;			/* key, value and headers, in one piece; NULL in a batch */
	int64		queued_at;		/* TimestampTz; only where a window needs it */
	KafkaOutRecord out;
} PendingRecord;

/* The target with this index; NULL behind the last one. */
extern PendingTarget *pending_target(int index);

/*
 * The record at *position, which moves on; false at 'end'.  In CurrentMemoryContext.
 */
extern bool pending_fetch(int64 *position, int64 end, PendingRecord *record);
extern void pending_record_free(PendingRecord *record);

/*
 * The same for many: about 1 MB of records, which live until the next call, or until
 * something is added.  Returns how many, 0 at 'end'.  In the context of its creation.
 */
typedef struct PendingBatch PendingBatch;
extern PendingBatch *pending_batch_create(void);
extern int	pending_batch_fetch(PendingBatch *batch, int64 *position, int64 end, PendingRecord **records);

/*
 * Forget everything: clear frees memory and file, forget leaves them to the end of
 * the transaction and never raises.
 */
extern void pending_clear(void);
extern void pending_forget(void);

/* Forget what was queued in subtransactions of this level and deeper, or hand it up. */
extern void pending_subabort(int level);
extern void pending_subcommit(int level);

/* commit.c: see that the transaction's end is noticed. */
extern void commit_register(void);

#endif							/* UK_PENDING_INTERNAL_H */
