/*
 * keys.h
 *	  Identity of a row: the typed key, hashed and compared by the column types'
 *	  own operators, never by bytes (DESIGN.md, decision 4; case A06).
 */
#ifndef UK_KEYS_H
#define UK_KEYS_H

#include "access/tupdesc.h"
#include "fmgr.h"

typedef struct KeyColumn
{
	AttrNumber	attnum;			/* of the row that values[] describes */
	Oid			type;
	Oid			collation;
	int16		typlen;
	bool		typbyval;
	FmgrInfo	hash;			/* default hash opclass; fn_oid 0: none, such keys
								 * can only be sorted */
	FmgrInfo	cmp;			/* default btree opclass, 3-way */
	Oid			lt_operator;	/* for tuplesort */
} KeyColumn;

typedef struct KeyDesc
{
	int			n;
	bool		hashable;		/* all columns have a hash function */
	KeyColumn  *columns;
} KeyDesc;

/*
 * Collations are the columns' own: text that a nondeterministic collation calls
 * equal is one key.  ERROR 42883 naming the column when a type has no default btree operator
 * class.  Allocated in CurrentMemoryContext.
 */
extern KeyDesc *key_desc_create(TupleDesc desc, int n, const AttrNumber *attnums);

/*
 * values[] is indexed by attnum - 1; key columns are never NULL.  key_hash only
 * where desc->hashable.
 */
extern uint32 key_hash(const KeyDesc *desc, const Datum *values);
extern int	key_compare(const KeyDesc *desc, const Datum *a, const Datum *b);

#endif							/* UK_KEYS_H */
