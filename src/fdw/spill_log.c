/*
 * spill_log.c
 *	  A log of bytes in bounded memory.  Knows PostgreSQL's temporary files and
 *	  nothing of what the bytes mean.
 */
#include "postgres.h"

#include "compat.h"
#include "fdw/spill_log.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#define FIRST_BYTES		8192

/* Positions [0, file_len) are in the file, [file_len, file_len + mem_len) in memory. */
struct SpillLog
{
	MemoryContext cxt;
	ResourceOwner owner;
	Size		limit;
	BufFile    *file;			/* NULL: never full */
	int64		file_len;
	char	   *mem;
	Size		mem_len;
	Size		mem_size;
};

SpillLog *
spill_log_create(MemoryContext parent, ResourceOwner owner, Size limit)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "spill log", ALLOCSET_SMALL_SIZES);
	SpillLog   *log = MemoryContextAllocZero(cxt, sizeof(SpillLog));

	log->cxt = cxt;
	log->owner = owner;
	log->limit = Max(limit, FIRST_BYTES);
	return log;
}

void
spill_log_free(SpillLog *log)
{
	if (log->file != NULL)
		BufFileClose(log->file);
	MemoryContextDelete(log->cxt);
}

static void
seek(SpillLog *log, int64 position)
{
	if (BufFileSeek(log->file, 0, position, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in a temporary file: %m")));
}

static void
write_memory_out(SpillLog *log)
{
	if (log->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(log->cxt);
		ResourceOwner old_owner = CurrentResourceOwner;

		/* the file must outlive the subtransaction that happens to fill the memory */
		CurrentResourceOwner = log->owner;
		PG_TRY();
		{
			log->file = BufFileCreateTemp(false);
		}
		PG_FINALLY();
		{
			CurrentResourceOwner = old_owner;
		}
		PG_END_TRY();
		MemoryContextSwitchTo(old);
	}
	seek(log, log->file_len);
	BufFileWrite(log->file, log->mem, log->mem_len);
	log->file_len += log->mem_len;
	log->mem_len = 0;
	if (log->mem_size > log->limit)
	{
		/* it was made for one large piece */
		pfree(log->mem);
		log->mem = NULL;
		log->mem_size = 0;
	}
}

char *
spill_log_append(SpillLog *log, Size len, int64 *position)
{
	if (log->mem_len > 0 && log->mem_len + len > log->limit)
		write_memory_out(log);
	if (log->mem_len + len > log->mem_size)
	{
		Size		size = Max(log->mem_size * 2, FIRST_BYTES);

		size = Max(Min(size, log->limit), log->mem_len + len);
		if (log->mem != NULL)
			log->mem = repalloc_huge(log->mem, size);
		else
			log->mem = MemoryContextAllocHuge(log->cxt, size);
		log->mem_size = size;
	}
	*position = log->file_len + log->mem_len;
	log->mem_len += len;
	return log->mem + log->mem_len - len;
}

void
spill_log_read(SpillLog *log, int64 position, void *to, Size len)
{
	char	   *p = to;

	Assert(position >= 0 && position + (int64) len <= spill_log_end(log));
	if (position < log->file_len)
	{
		Size		from_file = Min((int64) len, log->file_len - position);

		seek(log, position);
		BufFileReadExact_compat(log->file, p, from_file);
		p += from_file;
		position += from_file;
		len -= from_file;
	}
	if (len > 0)
		memcpy(p, log->mem + (position - log->file_len), len);
}

const char *
spill_log_peek(const SpillLog *log, int64 position, Size *len)
{
	if (position < log->file_len)
		return NULL;
	*len = Min((int64) *len, spill_log_end(log) - position);
	return log->mem + (position - log->file_len);
}

void
spill_log_overwrite(SpillLog *log, int64 position, const void *from, Size len)
{
	const char *p = from;

	Assert(position >= 0 && position + (int64) len <= spill_log_end(log));
	if (position < log->file_len)
	{
		Size		to_file = Min((int64) len, log->file_len - position);

		seek(log, position);
		BufFileWrite(log->file, unconstify(char *, p), to_file);
		p += to_file;
		position += to_file;
		len -= to_file;
	}
	if (len > 0)
		memcpy(log->mem + (position - log->file_len), p, len);
}

int64
spill_log_end(const SpillLog *log)
{
	return log->file_len + log->mem_len;
}

void
spill_log_truncate(SpillLog *log, int64 position)
{
	if (position >= log->file_len)
		log->mem_len = Min((int64) log->mem_len, position - log->file_len);
	else
	{
		/* what is behind it in the file is written over */
		log->file_len = position;
		log->mem_len = 0;
	}
}
