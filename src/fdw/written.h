/*
 * written.h
 *	  What this session has written and committed: the next offset per partition.
 *	  Scans wait for it, and clients carry it to other sessions as a bookmark.
 */
#ifndef UK_WRITTEN_H
#define UK_WRITTEN_H

#include "fdw/options.h"
#include "kafka/producer.h"
#include "lib/stringinfo.h"

/*
 * Acknowledged in the transaction that is committing.  May run out of memory;
 * written_commit and written_abort, which decide what becomes of it, never raise.
 */
extern void written_note(Oid serverid, int n, const KafkaWritten *written);
extern void written_commit(void);
extern void written_abort(void);

/*
 * Read your own writes: while an open transaction of another producer holds the last
 * stable offsets end[] of these partitions below what this session has
 * committed, ask again; ERROR 55P03 after the server's timeout.
 */
extern void written_wait(KafkaConsumer *consumer, const KafkaConfig *config, int npartitions,
						 const KafkaRange *partitions, int64 *end);

/*
 * In the place of a topic, where no topic can have this name: the partition is a
 * stream of the outbox then, and the offset a number in it.
 */
#define BOOKMARK_OUTBOX	"*"

/* One entry of a bookmark. */
typedef struct BookmarkEntry
{
	const char *topic;
	int32		partition;
	int64		next_offset;
} BookmarkEntry;

/* false: the text is no bookmark.  palloc'd in CurrentMemoryContext. */
extern bool bookmark_parse(const char *text, int *n, BookmarkEntry **entries);

/* Add an entry to a bookmark's text, which begins empty. */
extern void bookmark_append(StringInfo text, const char *topic, int32 partition, int64 next_offset);

#endif							/* UK_WRITTEN_H */
