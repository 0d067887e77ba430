/*
 * shim_memory.c
 *	  Memory contexts on malloc: a block for each palloc, so that AddressSanitizer sees
 *	  its ends and its end.
 *
 * A block's header stands in front of it and is poisoned for everybody but this file.
 */
#include "shim.h"

#include <sanitizer/asan_interface.h>

#include "nodes/memnodes.h"

#define UNCHECKED __attribute__((no_sanitize("address")))

typedef struct Block
{
	struct Block *previous;
	struct Block *next;
	struct Context *context;
	Size		size;
} Block;

typedef struct Context
{
	MemoryContextData base;		/* what PostgreSQL's macros look at */
	struct Context *parent;
	struct Context *first_child;
	struct Context *next_child;
	Block	   *blocks;
	Size		bytes;
} Context;

StaticAssertDecl(sizeof(Block) % MAXIMUM_ALIGNOF == 0, "blocks are aligned");

static Size live_blocks = 0;
static Size live_bytes = 0;
static Size limit_bytes = SIZE_MAX;

static Context top = {.base = {.type = T_AllocSetContext, .name = "top"}};
static Context error_context = {.base = {.type = T_AllocSetContext, .name = "errors"}};

MemoryContext TopMemoryContext = &top.base;
MemoryContext ErrorContext = &error_context.base;
MemoryContext CurrentMemoryContext = &top.base;

Size
shim_blocks(void)
{
	return live_blocks;
}

Size
shim_bytes(void)
{
	return live_bytes;
}

Size
shim_context_bytes(MemoryContext context)
{
	Context    *c = (Context *) context;
	Size		result = c->bytes;

	for (Context *child = c->first_child; child; child = child->next_child)
		result += shim_context_bytes(&child->base);
	return result;
}

void
shim_limit_bytes(Size limit)
{
	limit_bytes = limit;
}

static void
check_size(Size size, bool huge)
{
	if (huge ? !AllocHugeSizeIsValid(size) : !AllocSizeIsValid(size))
		elog(ERROR, "invalid memory alloc request size %zu", size);
	if (size > limit_bytes || live_bytes + size > limit_bytes)
		shim_fail("%zu bytes of memory in use, and %zu more wanted", live_bytes, size);
}

UNCHECKED static void
link_block(Block *block, Context *context, Size size)
{
	block->previous = NULL;
	block->next = context->blocks;
	block->context = context;
	block->size = size;
	if (context->blocks)
		context->blocks->previous = block;
	context->blocks = block;
	context->bytes += size;
	live_bytes += size;
	live_blocks++;
}

UNCHECKED static void
unlink_block(Block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else
		block->context->blocks = block->next;
	if (block->next)
		block->next->previous = block->previous;
	block->context->bytes -= block->size;
	live_bytes -= block->size;
	live_blocks--;
}

UNCHECKED static Size
block_size(const Block *block)
{
	return block->size;
}

UNCHECKED static Context *
block_context(const Block *block)
{
	return block->context;
}

static void *
allocate(MemoryContext context, Size size, bool huge)
{
	Block	   *block;

	check_size(size, huge);
	block = malloc(sizeof(Block) + size);
	if (block == NULL)
		shim_fail("malloc of %zu bytes", size);
	link_block(block, (Context *) context, size);
	ASAN_POISON_MEMORY_REGION(block, sizeof(Block));
	return block + 1;
}

static void *
reallocate(void *pointer, Size size, bool huge)
{
	Block	   *old = (Block *) pointer - 1;
	Size		old_size = block_size(old);
	void	   *result = allocate(&block_context(old)->base, size, huge);

	memcpy(result, pointer, Min(old_size, size));
	pfree(pointer);
	return result;
}

/* --- PostgreSQL's ------------------------------------------------------------ */

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return allocate(context, size, false);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(allocate(context, size, false), 0, size);
}

void *
MemoryContextAllocZeroAligned(MemoryContext context, Size size)
{
	return MemoryContextAllocZero(context, size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return allocate(context, size, true);
}

void *
palloc(Size size)
{
	return allocate(CurrentMemoryContext, size, false);
}

void *
palloc0(Size size)
{
	return MemoryContextAllocZero(CurrentMemoryContext, size);
}

void *
palloc_extended(Size size, int flags)
{
	void	   *result = allocate(CurrentMemoryContext, size, (flags & MCXT_ALLOC_HUGE) != 0);

	return flags & MCXT_ALLOC_ZERO ? memset(result, 0, size) : result;
}

void *
repalloc(void *pointer, Size size)
{
	return reallocate(pointer, size, false);
}

void *
repalloc_huge(void *pointer, Size size)
{
	return reallocate(pointer, size, true);
}

/* A pointer into a block, and a second pfree, are what ASan sees in free(). */
void
pfree(void *pointer)
{
	Block	   *block = (Block *) pointer - 1;

	ASAN_UNPOISON_MEMORY_REGION(block, sizeof(Block));
	unlink_block(block);
	free(block);
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size min, Size init, Size max)
{
	Context    *context = calloc(1, sizeof(Context));

	context->base.type = T_AllocSetContext;
	context->base.name = name;
	live_blocks++;
	MemoryContextSetParent(&context->base, parent);
	return &context->base;
}

void
MemoryContextSetParent(MemoryContext context, MemoryContext new_parent)
{
	Context    *c = (Context *) context;

	if (c->parent)
	{
		Context   **link = &c->parent->first_child;

		while (*link != c)
			link = &(*link)->next_child;
		*link = c->next_child;
	}
	c->parent = (Context *) new_parent;
	c->base.parent = new_parent;
	c->next_child = NULL;
	if (new_parent)
	{
		c->next_child = c->parent->first_child;
		c->parent->first_child = c;
	}
}

void
MemoryContextReset(MemoryContext context)
{
	Context    *c = (Context *) context;

	while (c->first_child)
		MemoryContextDelete(&c->first_child->base);
	while (context->reset_cbs)
	{
		MemoryContextCallback *callback = context->reset_cbs;

		context->reset_cbs = callback->next;
		callback->func(callback->arg);
	}
	while (c->blocks)
		pfree(c->blocks + 1);
}

void
MemoryContextDelete(MemoryContext context)
{
	if (context == CurrentMemoryContext)
		shim_fail("the current memory context is deleted");
	MemoryContextReset(context);
	MemoryContextSetParent(context, NULL);
	live_blocks--;
	free(context);
}

void
MemoryContextRegisterResetCallback(MemoryContext context, MemoryContextCallback *cb)
{
	cb->next = context->reset_cbs;
	context->reset_cbs = cb;
}

Size
MemoryContextMemAllocated(MemoryContext context, bool recurse)
{
	return shim_context_bytes(context);
}

char *
MemoryContextStrdup(MemoryContext context, const char *string)
{
	Size		size = strlen(string) + 1;

	return memcpy(MemoryContextAlloc(context, size), string, size);
}

char *
pstrdup(const char *in)
{
	return MemoryContextStrdup(CurrentMemoryContext, in);
}

char *
pnstrdup(const char *in, Size len)
{
	char	   *result;

	len = strnlen(in, len);
	result = palloc(len + 1);
	memcpy(result, in, len);
	result[len] = '\0';
	return result;
}
