/*
 * spill_log.h
 *	  Bytes that are appended, read again by position, and cut off at the end: the
 *	  newest in memory, the rest in a temporary file.
 */
#ifndef UK_SPILL_LOG_H
#define UK_SPILL_LOG_H

#include "utils/palloc.h"
#include "utils/resowner.h"

typedef struct SpillLog SpillLog;

/*
 * Everything lives in a child of 'parent'; the file belongs to 'owner', which closes
 * it after an ERROR.  limit: bytes in memory, which only a single larger piece exceeds.
 */
extern SpillLog *spill_log_create(MemoryContext parent, ResourceOwner owner, Size limit);
extern void spill_log_free(SpillLog *log);

/*
 * Room for len bytes at the end, to be filled at once: no call of this module and
 * no ERROR may come before.  *position is where they are found again.
 */
extern char *spill_log_append(SpillLog *log, Size len, int64 *position);

/* Bytes that were appended, in any pieces. */
extern void spill_log_read(SpillLog *log, int64 position, void *to, Size len);
/*
 * What lies at position, if it is in memory: up to *len bytes, which is set; valid until
 * the log is changed.  NULL if it is not.
 */
extern const char *spill_log_peek(const SpillLog *log, int64 position, Size *len);
extern void spill_log_overwrite(SpillLog *log, int64 position, const void *from, Size len);

extern int64 spill_log_end(const SpillLog *log);

/* Forget everything from 'position' on. */
extern void spill_log_truncate(SpillLog *log, int64 position);

#endif							/* UK_SPILL_LOG_H */
