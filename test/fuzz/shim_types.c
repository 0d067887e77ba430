/*
 * shim_types.c
 *	  The catalog: types, row types, domains, and calling functions.
 */
#include "shim.h"

#include "parser/parse_coerce.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define NUMERIC_TYPMOD(precision, scale) (((precision) << 16 | (scale)) + VARHDRSZ)

#define SCALAR(oid, name, len, byval, align, category, io) \
	{oid, name, len, byval, align, category, TYPTYPE_BASE, InvalidOid, InvalidOid, -1, shim_##io##_in, shim_##io##_out}
#define VARLENA(oid, name, category, io) SCALAR(oid, name, -1, false, 'i', category, io)
#define OPAQUE(oid, name, category, typtype) \
	{oid, name, -1, false, 'i', category, typtype, InvalidOid, InvalidOid, -1, shim_opaque_in, shim_text_out}
#define ARRAY(oid, name, element) \
	{oid, name, -1, false, 'i', 'A', TYPTYPE_BASE, element, InvalidOid, -1, shim_array_in, shim_array_out}
#define ROW(oid, name) \
	{oid, name, -1, false, 'd', 'C', TYPTYPE_COMPOSITE, InvalidOid, InvalidOid, -1, shim_record_in, shim_record_out}
#define DOMAIN(oid, name, len, byval, align, category, base, typmod) \
	{oid, name, len, byval, align, category, TYPTYPE_DOMAIN, InvalidOid, base, typmod, NULL, NULL}

static const ShimType types[] = {
	SCALAR(BOOLOID, "bool", 1, true, 'c', 'B', bool),
	SCALAR(INT2OID, "int2", 2, true, 's', 'N', int2),
	SCALAR(INT4OID, "int4", 4, true, 'i', 'N', int4),
	SCALAR(INT8OID, "int8", 8, true, 'd', 'N', int8),
	SCALAR(FLOAT4OID, "float4", 4, true, 'i', 'N', float4),
	SCALAR(FLOAT8OID, "float8", 8, true, 'd', 'N', float8),
	VARLENA(NUMERICOID, "numeric", 'N', numeric),
	VARLENA(TEXTOID, "text", 'S', text),
	VARLENA(VARCHAROID, "varchar", 'S', text),
	VARLENA(BPCHAROID, "bpchar", 'S', text),
	VARLENA(BYTEAOID, "bytea", 'U', bytea),
	SCALAR(DATEOID, "date", 4, true, 'i', 'D', date),
	SCALAR(TIMEOID, "time", 8, true, 'd', 'D', time),
	SCALAR(TIMESTAMPOID, "timestamp", 8, true, 'd', 'D', timestamp),
	{TIMESTAMPTZOID, "timestamptz", 8, true, 'd', 'D', TYPTYPE_BASE, InvalidOid, InvalidOid, -1,
	shim_timestamptz_in, shim_timestamp_out},
	SCALAR(UUIDOID, "uuid", 16, false, 'c', 'U', uuid),
	{JSONOID, "json", -1, false, 'i', 'U', TYPTYPE_BASE, InvalidOid, InvalidOid, -1, shim_json_in, shim_text_out},
	{JSONBOID, "jsonb", -1, false, 'i', 'U', TYPTYPE_BASE, InvalidOid, InvalidOid, -1, shim_jsonb_in, shim_text_out},
	{BITOID, "bit", -1, false, 'i', 'V', TYPTYPE_BASE, InvalidOid, InvalidOid, -1, shim_bit_in, shim_text_out},
	{VARBITOID, "varbit", -1, false, 'i', 'V', TYPTYPE_BASE, InvalidOid, InvalidOid, -1, shim_bit_in, shim_text_out},
	OPAQUE(TIMETZOID, "timetz", 'D', TYPTYPE_BASE),
	SCALAR(INTERVALOID, "interval", 16, false, 'd', 'T', interval),
	OPAQUE(INETOID, "inet", 'I', TYPTYPE_BASE),
	OPAQUE(POINTOID, "point", 'G', TYPTYPE_BASE),
	OPAQUE(INT4RANGEOID, "int4range", 'R', TYPTYPE_RANGE),
	OPAQUE(HSTORE_OID, "hstore", 'U', TYPTYPE_BASE),
	{COLOUR_OID, "colour", -1, false, 'i', 'E', TYPTYPE_ENUM, InvalidOid, InvalidOid, -1, shim_enum_in, shim_text_out},
	ARRAY(BOOLARRAYOID, "_bool", BOOLOID),
	ARRAY(INT2ARRAYOID, "_int2", INT2OID),
	ARRAY(INT4ARRAYOID, "_int4", INT4OID),
	ARRAY(INT8ARRAYOID, "_int8", INT8OID),
	ARRAY(FLOAT8ARRAYOID, "_float8", FLOAT8OID),
	ARRAY(NUMERICARRAYOID, "_numeric", NUMERICOID),
	ARRAY(TEXTARRAYOID, "_text", TEXTOID),
	ARRAY(BYTEAARRAYOID, "_bytea", BYTEAOID),
	ARRAY(DATEARRAYOID, "_date", DATEOID),
	ARRAY(TIMESTAMPARRAYOID, "_timestamp", TIMESTAMPOID),
	ARRAY(TIMESTAMPTZARRAYOID, "_timestamptz", TIMESTAMPTZOID),
	ARRAY(UUIDARRAYOID, "_uuid", UUIDOID),
	ARRAY(JSONBARRAYOID, "_jsonb", JSONBOID),
	ARRAY(ROW_ARRAY_OID, "_row", ROW_OID),
	ROW(ROW_OID, "row"),
	ROW(NESTED_OID, "nested"),
	DOMAIN(POSITIVE_OID, "positive", 4, true, 'i', 'N', INT4OID, -1),
	DOMAIN(NAMED_OID, "named", -1, false, 'i', 'S', TEXTOID, -1),
	DOMAIN(INTS_OID, "ints", -1, false, 'i', 'A', INT4ARRAYOID, -1),
	DOMAIN(PRICE_OID, "price", -1, false, 'i', 'N', NUMERICOID, NUMERIC_TYPMOD(8, 3))
};

const ShimType *
shim_type(Oid oid)
{
	for (int i = 0; i < lengthof(types); i++)
	{
		if (types[i].oid == oid)
			return &types[i];
	}
	shim_fail("there is no type %u", oid);
}

static const ShimType *
base_of(const ShimType *type)
{
	while (OidIsValid(type->base))
		type = shim_type(type->base);
	return type;
}

Datum
shim_input(const ShimType *type, const char *text, int32 typmod)
{
	type = base_of(type);
	return type->in(text, type->element, typmod);
}

char *
shim_output(const ShimType *type, Datum value)
{
	return base_of(type)->out(value);
}

/* === Catalog ================================================================ */

Oid
getBaseTypeAndTypmod(Oid typid, int32 *typmod)
{
	const ShimType *type = shim_type(typid);

	while (OidIsValid(type->base))
	{
		*typmod = type->typmod;
		type = shim_type(type->base);
	}
	return type->oid;
}

Oid
getBaseType(Oid typid)
{
	int32		typmod = -1;

	return getBaseTypeAndTypmod(typid, &typmod);
}

char
get_typtype(Oid typid)
{
	return shim_type(typid)->typtype;
}

Oid
get_element_type(Oid typid)
{
	return shim_type(typid)->element;
}

Oid
get_range_subtype(Oid rangeOid)
{
	return InvalidOid;
}

Oid
get_multirange_range(Oid multirangeOid)
{
	return InvalidOid;
}

Oid
get_base_element_type(Oid typid)
{
	return get_element_type(getBaseType(typid));
}

void
get_type_category_preferred(Oid typid, char *typcategory, bool *typispreferred)
{
	*typcategory = shim_type(typid)->category;
	*typispreferred = false;
}

void
get_typlenbyvalalign(Oid typid, int16 *typlen, bool *typbyval, char *typalign)
{
	const ShimType *type = shim_type(typid);

	*typlen = type->len;
	*typbyval = type->byval;
	*typalign = type->align;
}

/* Functions have the oids of their types. */
void
getTypeInputInfo(Oid type, Oid *typInput, Oid *typIOParam)
{
	*typInput = type;
	*typIOParam = shim_type(type)->element;
}

void
getTypeOutputInfo(Oid type, Oid *typOutput, bool *typIsVarlena)
{
	*typOutput = type;
	*typIsVarlena = shim_type(type)->len == -1;
}

char *
format_type_be(Oid type_oid)
{
	return pstrdup(shim_type(type_oid)->name);
}

char *
format_type_with_typemod(Oid type_oid, int32 typemod)
{
	return typemod < 0 ? format_type_be(type_oid) : psprintf("%s(%d)", shim_type(type_oid)->name, typemod);
}

HeapTuple
SearchSysCache1(int cacheId, Datum key1)
{
	HeapTuple	tuple = palloc0(sizeof(HeapTupleData));
	const ShimType *type = shim_type(DatumGetObjectId(key1));
	Form_pg_type form;

	tuple->t_data = palloc0(MAXALIGN(SizeofHeapTupleHeader) + sizeof(FormData_pg_type));
	tuple->t_data->t_hoff = MAXALIGN(SizeofHeapTupleHeader);
	form = (Form_pg_type) GETSTRUCT(tuple);
	form->oid = type->oid;
	strlcpy(NameStr(form->typname), type->name, NAMEDATALEN);
	return tuple;
}

void
ReleaseSysCache(HeapTuple tuple)
{
	pfree(tuple->t_data);
	pfree(tuple);
}

/* === Row types ============================================================== */

typedef struct Attribute
{
	const char *name;			/* NULL: dropped */
	Oid			type;
	int32		typmod;
} Attribute;

static const Attribute row_attributes[] = {
	{"a", INT4OID, -1},
	{"b", TEXTOID, -1},
	{NULL, INT4OID, -1},
	{"c", INT4ARRAYOID, -1},
	{"d", NUMERICOID, NUMERIC_TYPMOD(10, 2)}
};

static const Attribute nested_attributes[] = {
	{"x", ROW_OID, -1},
	{"y", TIMESTAMPOID, 3},
	{"z", ROW_ARRAY_OID, -1}
};

TupleDesc
lookup_rowtype_tupdesc_copy(Oid type_id, int32 typmod)
{
	const Attribute *attributes = type_id == ROW_OID ? row_attributes : nested_attributes;
	int			n = type_id == ROW_OID ? lengthof(row_attributes) : lengthof(nested_attributes);
	TupleDesc	desc;

	if (type_id != ROW_OID && type_id != NESTED_OID)
		shim_fail("type %u is no row type", type_id);
	desc = palloc0(TupleDescSize(&(struct TupleDescData)
								 {
									 .natts = n
								 }));
	desc->natts = n;
	desc->tdtypeid = type_id;
	desc->tdtypmod = -1;
	desc->tdrefcount = -1;
	for (int i = 0; i < n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const ShimType *type = shim_type(attributes[i].type);

		strlcpy(NameStr(att->attname), attributes[i].name ? attributes[i].name : "........pg.dropped.3........", NAMEDATALEN);
		att->attisdropped = attributes[i].name == NULL;
		att->atttypid = att->attisdropped ? InvalidOid : type->oid;
		att->atttypmod = attributes[i].typmod;
		att->attlen = type->len;
		att->attbyval = type->byval;
		att->attalign = type->align;
		att->attnum = i + 1;
	}
	return desc;
}

/* === Domains ================================================================ */

/* The cache is a block of the context that it is said to be in. */
void
domain_check(Datum value, bool isnull, Oid domainType, void **extra, MemoryContext mcxt)
{
	const ShimType *type = shim_type(domainType);
	bool		good = true;

	if (*extra == NULL)
		*extra = MemoryContextAlloc(mcxt, sizeof(Oid));
	*(Oid *) *extra = domainType;
	if (isnull && domainType == NAMED_OID)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("domain %s does not allow null values", type->name)));
	if (isnull)
		return;
	if (domainType == POSITIVE_OID)
		good = DatumGetInt32(value) > 0;
	else if (domainType == INTS_OID)
		good = strcmp(shim_array_out(value), "{}") != 0;
	else
		good = shim_output(type, value)[0] != '-';
	if (!good)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("value for domain %s violates check constraint", type->name)));
}

/* === Functions ============================================================== */

void
fmgr_info(Oid functionId, FmgrInfo *finfo)
{
	memset(finfo, 0, sizeof(*finfo));
	finfo->fn_oid = functionId;
	finfo->fn_mcxt = CurrentMemoryContext;
}

Datum
InputFunctionCall(FmgrInfo *flinfo, char *str, Oid typioparam, int32 typmod)
{
	const ShimType *type = shim_type(flinfo->fn_oid);

	if (type->element != typioparam)
		shim_fail("input of %s with another type's parameter", type->name);
	return shim_input(type, str, typmod);
}

char *
OutputFunctionCall(FmgrInfo *flinfo, Datum val)
{
	return shim_output(shim_type(flinfo->fn_oid), val);
}

static Datum
call(PGFunction func, int nargs, Datum arg1, Datum arg2, Datum arg3)
{
	LOCAL_FCINFO(fcinfo, 3);
	Datum		result;

	InitFunctionCallInfoData(*fcinfo, NULL, nargs, InvalidOid, NULL, NULL);
	fcinfo->args[0] = (NullableDatum) {arg1, false};
	fcinfo->args[1] = (NullableDatum) {arg2, false};
	fcinfo->args[2] = (NullableDatum) {arg3, false};
	result = func(fcinfo);
	if (fcinfo->isnull)
		elog(ERROR, "function returned NULL");
	return result;
}

Datum
DirectFunctionCall1Coll(PGFunction func, Oid collation, Datum arg1)
{
	return call(func, 1, arg1, (Datum) 0, (Datum) 0);
}

Datum
DirectFunctionCall2Coll(PGFunction func, Oid collation, Datum arg1, Datum arg2)
{
	return call(func, 2, arg1, arg2, (Datum) 0);
}

Datum
DirectFunctionCall3Coll(PGFunction func, Oid collation, Datum arg1, Datum arg2, Datum arg3)
{
	return call(func, 3, arg1, arg2, arg3);
}

/* Any 32 digits will do. */
Datum
md5_text(PG_FUNCTION_ARGS)
{
	return PointerGetDatum(cstring_to_text("0123456789abcdef0123456789abcdef"));
}

/* No type of ours is cast to jsonb by a function. */
CoercionPathType
find_coercion_pathway(Oid targetTypeId, Oid sourceTypeId, CoercionContext ccontext, Oid *funcid)
{
	*funcid = InvalidOid;
	return COERCION_PATH_NONE;
}

Datum
OidFunctionCall1Coll(Oid functionId, Oid collation, Datum arg1)
{
	shim_fail("there is no function %u", functionId);
}

/* ^(?:word)$ and nothing else */
bool
RE_compile_and_execute(text *text_re, char *dat, int dat_len, int cflags, Oid collation, int nmatch, regmatch_t *pmatch)
{
	char	   *pattern = text_to_cstring(text_re);
	char	   *name = pnstrdup(dat, dat_len);
	bool		result = strlen(pattern) == strlen(name) + 6 && strncmp(pattern + 4, name, strlen(name)) == 0;

	pfree(pattern);
	pfree(name);
	return result;
}
