/*
 * shim_error.c
 *	  ereport, PG_TRY, subtransactions and what else of a backend's state decoders touch.
 *
 * Texts of errors are made for real, so that what they are made from is read.
 */
#include "shim.h"

#include <sanitizer/asan_interface.h>
#include <setjmp.h>
#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/elog.h"
#include "utils/resowner.h"

/* Twice a server's default, for the larger frames of sanitizers */
#define MAX_STACK (4 * 1024 * 1024)

sigjmp_buf *PG_exception_stack = NULL;
ErrorContextCallback *error_context_stack = NULL;
ResourceOwner CurrentResourceOwner = NULL;
volatile sig_atomic_t InterruptPending = false;

static ErrorData current;
static bool handling = false;	/* 'current' is an error */
static const char *stack_base = NULL;
static int	subtransactions = 0;

void
shim_fail(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	fprintf(stderr, "FAILED: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	abort();
}

void
shim_stack_base(void)
{
	stack_base = __builtin_frame_address(0);
}

const ErrorData *
shim_error(void)
{
	if (!handling)
		shim_fail("a jump without an error");
	return &current;
}

void
check_stack_depth(void)
{
	const char *here = __builtin_frame_address(0);

	if (stack_base - here > MAX_STACK)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("stack depth limit exceeded")));
}

void
ProcessInterrupts(void)
{
}

void
#if PG_VERSION_NUM >= 160000
ExceptionalCondition(const char *condition, const char *file, int line)
#else
ExceptionalCondition(const char *condition, const char *error, const char *file, int line)
#endif
{
	shim_fail("Assert(%s), %s:%d", condition, file, line);
}

/* === Reports ================================================================ */

bool
errstart(int elevel, const char *domain)
{
	if (handling && current.elevel >= ERROR)
		shim_fail("an error while another one is handled: %s", current.message);
	memset(&current, 0, sizeof(current));
	current.elevel = elevel;
	current.sqlerrcode = elevel >= ERROR ? ERRCODE_INTERNAL_ERROR : elevel >= WARNING ? ERRCODE_WARNING : 0;
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (current.message == NULL)
		shim_fail("a report without a text, %s:%d", filename, lineno);
	current.filename = filename;
	current.lineno = lineno;
	if (current.elevel < ERROR)
	{
		FlushErrorState();
		return;
	}
	handling = true;
	pg_re_throw();
}

void
pg_re_throw(void)
{
	if (PG_exception_stack == NULL)
		shim_fail("an error that nobody catches: %s", current.message);
	siglongjmp(*PG_exception_stack, 1);
}

int
errcode(int sqlerrcode)
{
	current.sqlerrcode = sqlerrcode;
	return 0;
}

static char *
vformat(const char *fmt, va_list args)
{
	va_list		again;
	char		few[1];
	int			len;
	char	   *result;

	va_copy(again, args);
	len = vsnprintf(few, sizeof(few), fmt, args);
	if (len < 0)
		shim_fail("cannot format \"%s\"", fmt);
	result = MemoryContextAlloc(ErrorContext, len + 1);
	vsnprintf(result, len + 1, fmt, again);
	va_end(again);
	return result;
}

#define SET_TEXT(field) \
	do { \
		va_list		args; \
		va_start(args, fmt); \
		current.field = vformat(fmt, args); \
		va_end(args); \
	} while (0)

int
errmsg(const char *fmt,...)
{
	SET_TEXT(message);
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	SET_TEXT(message);
	return 0;
}

int
errdetail(const char *fmt,...)
{
	SET_TEXT(detail);
	return 0;
}

int
errdetail_internal(const char *fmt,...)
{
	SET_TEXT(detail);
	return 0;
}

int
errhint(const char *fmt,...)
{
	SET_TEXT(hint);
	return 0;
}

int
geterrcode(void)
{
	return shim_error()->sqlerrcode;
}

ErrorData *
CopyErrorData(void)
{
	ErrorData  *copy = palloc(sizeof(ErrorData));

	*copy = *shim_error();
	copy->message = pstrdup(copy->message);
	copy->detail = copy->detail ? pstrdup(copy->detail) : NULL;
	copy->hint = copy->hint ? pstrdup(copy->hint) : NULL;
	return copy;
}

void
FreeErrorData(ErrorData *edata)
{
	pfree(edata->message);
	if (edata->detail)
		pfree(edata->detail);
	if (edata->hint)
		pfree(edata->hint);
	pfree(edata);
}

void
FlushErrorState(void)
{
	handling = false;
	memset(&current, 0, sizeof(current));
	MemoryContextReset(ErrorContext);
}

void
ReThrowError(ErrorData *edata)
{
	current = *edata;
	current.message = MemoryContextStrdup(ErrorContext, edata->message);
	current.detail = edata->detail ? MemoryContextStrdup(ErrorContext, edata->detail) : NULL;
	current.hint = edata->hint ? MemoryContextStrdup(ErrorContext, edata->hint) : NULL;
	handling = true;
	pg_re_throw();
}

/* === Subtransactions ======================================================== */

void
BeginInternalSubTransaction(const char *name)
{
	subtransactions++;
}

void
ReleaseCurrentSubTransaction(void)
{
	if (--subtransactions < 0)
		shim_fail("a subtransaction ends that has not begun");
}

void
RollbackAndReleaseCurrentSubTransaction(void)
{
	ReleaseCurrentSubTransaction();
}

char *
unpack_sql_state(int sql_state)
{
	static char text[6];

	for (int i = 0; i < 5; i++)
	{
		text[i] = PGUNSIXBIT(sql_state);
		sql_state >>= 6;
	}
	return text;
}
