/*
 * shim_values.c
 *	  Arrays as PostgreSQL lays them out, and rows in a layout of our own.
 */
#include "shim.h"

#include "access/tupmacs.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* === Arrays ================================================================= */

ArrayType *
construct_empty_array(Oid elmtype)
{
	ArrayType  *result = palloc0(sizeof(ArrayType));

	SET_VARSIZE(result, sizeof(ArrayType));
	result->elemtype = elmtype;
	return result;
}

static int
items_of(int ndims, const int *dims)
{
	int64		n = 1;

	if (ndims < 0 || ndims > MAXDIM)
		elog(ERROR, "invalid number of dimensions: %d", ndims);
	for (int i = 0; i < ndims; i++)
	{
		if (dims[i] < 0)
			shim_fail("an array with %d elements", dims[i]);
		n *= dims[i];
		if (n > (int64) MaxArraySize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("array size exceeds the maximum allowed")));
	}
	return ndims > 0 ? (int) n : 0;
}

ArrayType *
construct_md_array(Datum *elems, bool *nulls, int ndims, int *dims, int *lbs,
				   Oid elmtype, int elmlen, bool elmbyval, char elmalign)
{
	int			n = items_of(ndims, dims);
	bool		has_nulls = false;
	Size		overhead;
	Size		size = 0;
	ArrayType  *result;
	char	   *p;

	if (n == 0)
		return construct_empty_array(elmtype);
	for (int i = 0; i < n; i++)
	{
		if (nulls && nulls[i])
			has_nulls = true;
		else
		{
			size = att_addlength_datum(size, elmlen, elems[i]);
			size = att_align_nominal(size, elmalign);
		}
	}
	overhead = has_nulls ? ARR_OVERHEAD_WITHNULLS(ndims, n) : ARR_OVERHEAD_NONULLS(ndims);
	if (!AllocSizeIsValid(overhead + size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed")));
	result = palloc0(overhead + size);
	SET_VARSIZE(result, overhead + size);
	result->ndim = ndims;
	result->dataoffset = has_nulls ? (int32) overhead : 0;
	result->elemtype = elmtype;
	memcpy(ARR_DIMS(result), dims, ndims * sizeof(int));
	memcpy(ARR_LBOUND(result), lbs, ndims * sizeof(int));
	p = ARR_DATA_PTR(result);
	for (int i = 0; i < n; i++)
	{
		Size		len;

		if (nulls && nulls[i])
			continue;
		if (has_nulls)
			ARR_NULLBITMAP(result)[i / 8] |= 1 << (i % 8);
		len = att_addlength_datum(0, elmlen, elems[i]);
		if (elmbyval)
			store_att_byval(p, elems[i], elmlen);
		else
			memcpy(p, DatumGetPointer(elems[i]), len);
		p += att_align_nominal(len, elmalign);
	}
	return result;
}

void
deconstruct_array(ArrayType *array, Oid elmtype, int elmlen, bool elmbyval, char elmalign,
				  Datum **elemsp, bool **nullsp, int *nelemsp)
{
	int			n = items_of(ARR_NDIM(array), ARR_DIMS(array));
	char	   *p = ARR_DATA_PTR(array);

	*elemsp = palloc(sizeof(Datum) * n);
	*nullsp = palloc0(sizeof(bool) * n);
	*nelemsp = n;
	for (int i = 0; i < n; i++)
	{
		Size		len;

		if (ARR_NULLBITMAP(array) && !(ARR_NULLBITMAP(array)[i / 8] & 1 << (i % 8)))
		{
			(*elemsp)[i] = (Datum) 0;
			(*nullsp)[i] = true;
			continue;
		}
		(*elemsp)[i] = fetch_att(p, elmbyval, elmlen);
		len = att_addlength_pointer(0, elmlen, p);
		p += att_align_nominal(len, elmalign);
	}
}

/* {1,2}: no quotes, no nesting */
Datum
shim_array_in(const char *text, Oid element, int32 typmod)
{
	const ShimType *type = shim_type(element);
	Datum		values[100];
	bool		nulls[100];
	int			n = 0;
	int			one = 1;
	const char *p = text + 1;

	if (text[0] != '{' || text[strlen(text) - 1] != '}' || strpbrk(text + 1, "{\"\\"))
		shim_bad_input("array", text);
	while (*p && *p != '}')
	{
		Size		len = strcspn(p, ",}");
		char	   *item = pnstrdup(p, len);

		if (len == 0 || n == lengthof(values))
			shim_bad_input("array", text);
		nulls[n] = pg_strcasecmp(item, "null") == 0;
		values[n] = nulls[n] ? (Datum) 0 : shim_input(type, item, typmod);
		n++;
		p += len;
		if (*p == ',' && *++p == '}')
			shim_bad_input("array", text);
	}
	if (p[0] != '}' || p[1])
		shim_bad_input("array", text);
	return PointerGetDatum(construct_md_array(values, nulls, n > 0 ? 1 : 0, &n, &one, element,
											  type->len, type->byval, type->align));
}

char *
shim_array_out(Datum value)
{
	ArrayType  *array = (ArrayType *) DatumGetPointer(value);
	const ShimType *type = shim_type(ARR_ELEMTYPE(array));
	Datum	   *values;
	bool	   *nulls;
	int			n;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < ARR_NDIM(array); i++)
		appendStringInfo(&text, "[%d:%d]", ARR_LBOUND(array)[i], ARR_DIMS(array)[i]);
	deconstruct_array(array, ARR_ELEMTYPE(array), type->len, type->byval, type->align, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
		appendStringInfo(&text, "%c%s", i == 0 ? '{' : ',', nulls[i] ? "NULL" : shim_output(type, values[i]));
	appendStringInfoString(&text, n == 0 ? "{}" : "}");
	return text.data;
}

/* === Rows =================================================================== */

/* Behind the header: per attribute 8 bytes (a datum, or the bytes that follow; -1: NULL) */
#define ROW_HEADER MAXALIGN(SizeofHeapTupleHeader)

TupleDesc
BlessTupleDesc(TupleDesc tupdesc)
{
	return tupdesc;
}

void
FreeTupleDesc(TupleDesc tupdesc)
{
	pfree(tupdesc);
}

HeapTuple
#if PG_VERSION_NUM >= 170000
heap_form_tuple(TupleDesc desc, const Datum *values, const bool *isnull)
#else
heap_form_tuple(TupleDesc desc, Datum *values, bool *isnull)
#endif
{
	HeapTuple	tuple = palloc0(sizeof(HeapTupleData));
	Size		size = ROW_HEADER;
	char	   *p;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		size += 16;
		if (!isnull[i] && !att->attbyval)
			size += MAXALIGN(att_addlength_datum(0, att->attlen, values[i]));
	}
	if (!AllocSizeIsValid(size))
		elog(ERROR, "a row of %zu bytes", size);
	tuple->t_data = palloc0(size);
	tuple->t_len = size;
	HeapTupleHeaderSetDatumLength(tuple->t_data, size);
	HeapTupleHeaderSetTypeId(tuple->t_data, desc->tdtypeid);
	HeapTupleHeaderSetTypMod(tuple->t_data, desc->tdtypmod);
	HeapTupleHeaderSetNatts(tuple->t_data, desc->natts);
	p = (char *) tuple->t_data + ROW_HEADER;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		int64		len = isnull[i] ? -1 : att->attbyval ? 0 : (int64) att_addlength_datum(0, att->attlen, values[i]);

		memcpy(p, &len, 8);
		p += 8;
		if (len == 0 && att->attbyval)
			memcpy(p, &values[i], 8);
		p += 8;
		if (len > 0)
		{
			memcpy(p, DatumGetPointer(values[i]), len);
			p += MAXALIGN(len);
		}
	}
	return tuple;
}

void
heap_deform_tuple(HeapTuple tuple, TupleDesc desc, Datum *values, bool *isnull)
{
	char	   *p = (char *) tuple->t_data + ROW_HEADER;

	if (HeapTupleHeaderGetNatts(tuple->t_data) != desc->natts)
		shim_fail("a row of %d attributes instead of %d", HeapTupleHeaderGetNatts(tuple->t_data), desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		int64		len;

		memcpy(&len, p, 8);
		isnull[i] = len < 0;
		values[i] = (Datum) 0;
		if (len == 0)
			memcpy(&values[i], p + 8, 8);
		p += 16;
		if (len > 0)
		{
			values[i] = PointerGetDatum(p);
			p += MAXALIGN(len);
		}
	}
}

Datum
HeapTupleHeaderGetDatum(HeapTupleHeader tuple)
{
	return PointerGetDatum(tuple);
}

/* a function in some minor versions only */
#ifndef DatumGetHeapTupleHeader
HeapTupleHeader
DatumGetHeapTupleHeader(Datum value)
{
	return (HeapTupleHeader) DatumGetPointer(value);
}
#endif

Datum
shim_record_in(const char *text, Oid type, int32 typmod)
{
	shim_bad_input("record", text);
}

char *
shim_record_out(Datum value)
{
	HeapTupleHeader header = (HeapTupleHeader) DatumGetPointer(value);
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header), -1);
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *isnull = palloc(sizeof(bool) * desc->natts);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	StringInfoData text;

	initStringInfo(&text);
	heap_deform_tuple(&tuple, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped && !isnull[i])
			shim_fail("a dropped attribute has a value");
		appendStringInfo(&text, "%c%s", i == 0 ? '(' : ',',
						 isnull[i] ? "" : shim_output(shim_type(att->atttypid), values[i]));
	}
	appendStringInfoChar(&text, ')');
	return text.data;
}
