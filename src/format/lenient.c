/*
 * lenient.c
 *	  Conversions whose errors are caught, see lenient.h.
 *
 * Type input may leave locks, pins and half-built state behind that only the abort of a
 * subtransaction clears.  It writes nothing and takes no transaction id.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/defrem.h"
#include "format/lenient.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

bool
ignores_parse_errors(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = (DefElem *) lfirst(lc);

		if (strcmp(option->defname, IGNORE_PARSE_ERRORS) == 0)
			return defGetBoolean(option);
	}
	return false;
}

static bool
is_bad_value(int sqlerrcode)
{
	return ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_DATA_EXCEPTION ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_TO_CATEGORY(ERRCODE_PROGRAM_LIMIT_EXCEEDED);
}

bool
lenient_convert(void (*convert) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile edata = NULL;
	bool		good;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		convert(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	good = edata == NULL;
	if (!good)
	{
		if (!is_bad_value(edata->sqlerrcode))
			ReThrowError(edata);
		FreeErrorData(edata);
	}
	return good;
}
