/*
 * keys.c
 *	  Hash and order of typed keys, by the column types' own operator classes.
 *
 * Knows nothing of messages: 1.0 and 1.00 are one numeric key whatever their
 * bytes were (case A06).
 */
#include "postgres.h"

#include "changelog/keys.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

KeyDesc *
key_desc_create(TupleDesc desc, int n, const AttrNumber *attnums)
{
	KeyDesc    *result = palloc(sizeof(KeyDesc));

	result->n = n;
	result->hashable = true;
	result->columns = palloc0(sizeof(KeyColumn) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, attnums[i] - 1);
		KeyColumn  *column = &result->columns[i];
		TypeCacheEntry *type = lookup_type_cache(att->atttypid,
												 TYPECACHE_CMP_PROC_FINFO | TYPECACHE_HASH_PROC_FINFO | TYPECACHE_LT_OPR);

		if (!OidIsValid(type->cmp_proc_finfo.fn_oid) || !OidIsValid(type->lt_opr))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("type %s of key column \"%s\" has no default btree operator class",
							format_type_be(att->atttypid), NameStr(att->attname)),
					 errhint("Give the column a type that can be compared, such as jsonb for json.")));

		column->attnum = attnums[i];
		column->type = att->atttypid;
		column->collation = att->attcollation;
		column->typlen = att->attlen;
		column->typbyval = att->attbyval;
		column->lt_operator = type->lt_opr;
		/* copies: the type cache may be rebuilt, and fn_extra is ours */
		fmgr_info_copy(&column->cmp, &type->cmp_proc_finfo, CurrentMemoryContext);
		if (OidIsValid(type->hash_proc_finfo.fn_oid))
			fmgr_info_copy(&column->hash, &type->hash_proc_finfo, CurrentMemoryContext);
		else
			result->hashable = false;
	}
	return result;
}

uint32
key_hash(const KeyDesc *desc, const Datum *values)
{
	uint32		result = 0;

	Assert(desc->hashable);
	for (int i = 0; i < desc->n; i++)
	{
		KeyColumn  *column = &desc->columns[i];
		Datum		hash = FunctionCall1Coll(&column->hash, column->collation, values[column->attnum - 1]);

		result = i == 0 ? DatumGetUInt32(hash) : hash_combine(result, DatumGetUInt32(hash));
	}
	return result;
}

int
key_compare(const KeyDesc *desc, const Datum *a, const Datum *b)
{
	for (int i = 0; i < desc->n; i++)
	{
		KeyColumn  *column = &desc->columns[i];
		int32		cmp = DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
														  a[column->attnum - 1], b[column->attnum - 1]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}
