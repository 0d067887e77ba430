/*
 * key_filter.h
 *	  Messages of which keys a scan wants: those whose columns equal given values.
 *	  Messages of other keys never change what comes out of these.
 */
#ifndef UK_KEY_FILTER_H
#define UK_KEY_FILTER_H

#include "fmgr.h"

typedef struct KeyFilterColumn
{
	int			key;			/* index among the key columns */
	Oid			collation;
	FmgrInfo	cmp;			/* of the key's type with the value's */
	Datum		value;
} KeyFilterColumn;

typedef struct KeyFilter
{
	int			n;
	bool		nothing;		/* one of the values is NULL: equal to nothing */
	KeyFilterColumn *columns;
} KeyFilter;

/* key[] holds the key columns, in their order; filter may be NULL. */
static inline bool
key_filter_passes(KeyFilter *filter, const Datum *key)
{
	if (filter == NULL)
		return true;
	for (int i = 0; i < filter->n; i++)
	{
		KeyFilterColumn *column = &filter->columns[i];

		if (DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
											key[column->key], column->value)) != 0)
			return false;
	}
	return true;
}

#endif							/* UK_KEY_FILTER_H */
