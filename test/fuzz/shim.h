/*
 * shim.h
 *	  As much of a PostgreSQL backend as decoders need, made for sanitizers.
 *
 * Every palloc is a malloc of its own, errors jump as they do in a backend, types are
 * few and simple but read all of their text.  Nothing here is part of the extension.
 */
#ifndef UK_FUZZ_SHIM_H
#define UK_FUZZ_SHIM_H

#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

/* the C library's will do */
#undef snprintf
#undef vsnprintf
#undef sprintf
#undef fprintf
#undef vfprintf

/* --- memory (shim_memory.c) --- */

/* Of all contexts: blocks and bytes that live, and the most bytes that lived since the last reset of the peak. */
extern Size shim_blocks(void);
extern Size shim_bytes(void);
extern Size shim_context_bytes(MemoryContext context);

/* Beyond this many live bytes a run has failed. */
extern void shim_limit_bytes(Size limit);

/* --- errors (shim_error.c) --- */

/* The error that is being handled, after a sigsetjmp came back. */
extern const ErrorData *shim_error(void);

/* Says what is wrong and ends the process, for libFuzzer to record. */
extern void shim_fail(const char *fmt,...) pg_attribute_printf(1, 2) __attribute__((noreturn));

/* Where the stack begins: check_stack_depth() counts from here. */
extern void shim_stack_base(void);

/* --- encodings (shim_text.c) --- */

extern int	shim_encoding;		/* of the database: PG_UTF8 or PG_LATIN1 */
extern bool shim_is_utf8(const char *text, Size len);

/* --- types (shim_types.c) --- */

/* Beside those of pg_type.h */
#define ROW_OID			90001	/* (a int4, b text, c int4[], d numeric(10,2)), with a dropped column */
#define ROW_ARRAY_OID	90002
#define NESTED_OID		90003	/* (x row, y timestamp, z row[]) */
#define POSITIVE_OID	90010	/* domain over int4, > 0 */
#define NAMED_OID		90011	/* domain over text, NOT NULL */
#define INTS_OID		90012	/* domain over int4[], not empty */
#define PRICE_OID		90013	/* domain over numeric(8,3), >= 0 */
#define COLOUR_OID		90020	/* enum: red, green, blue */
#define HSTORE_OID		90030

typedef struct ShimType
{
	Oid			oid;
	const char *name;
	int16		len;
	bool		byval;
	char		align;
	char		category;
	char		typtype;
	Oid			element;		/* of arrays */
	Oid			base;			/* of domains */
	int32		typmod;			/* of domains */
	Datum		(*in) (const char *text, Oid ioparam, int32 typmod);
	char	   *(*out) (Datum value);
} ShimType;

extern const ShimType *shim_type(Oid oid);

/* --- values --- */

extern Datum shim_input(const ShimType *type, const char *text, int32 typmod);
extern char *shim_output(const ShimType *type, Datum value);
extern void shim_bad_input(const char *type, const char *text) __attribute__((noreturn));
extern void shim_out_of_range(const char *type, const char *text) __attribute__((noreturn));

/* shim_numeric.c */
extern Datum shim_numeric_in(const char *text, Oid ioparam, int32 typmod);
extern char *shim_numeric_out(Datum value);

/* shim_time.c */
extern Datum shim_date_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_time_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_timestamp_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_timestamptz_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_interval_in(const char *text, Oid ioparam, int32 typmod);
extern char *shim_interval_out(Datum value);
extern char *shim_date_out(Datum value);
extern char *shim_time_out(Datum value);
extern char *shim_timestamp_out(Datum value);

/* shim_values.c */
extern Datum shim_array_in(const char *text, Oid ioparam, int32 typmod);
extern char *shim_array_out(Datum value);
extern Datum shim_record_in(const char *text, Oid ioparam, int32 typmod);
extern char *shim_record_out(Datum value);

/* shim_input.c */
extern Datum shim_bool_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_int2_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_int4_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_int8_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_float4_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_float8_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_text_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_char_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_bytea_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_json_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_jsonb_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_uuid_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_bit_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_enum_in(const char *text, Oid ioparam, int32 typmod);
extern Datum shim_opaque_in(const char *text, Oid ioparam, int32 typmod);
extern char *shim_bool_out(Datum value);
extern char *shim_int2_out(Datum value);
extern char *shim_int4_out(Datum value);
extern char *shim_int8_out(Datum value);
extern char *shim_float4_out(Datum value);
extern char *shim_float8_out(Datum value);
extern char *shim_text_out(Datum value);
extern char *shim_bytea_out(Datum value);
extern char *shim_uuid_out(Datum value);

#endif							/* UK_FUZZ_SHIM_H */
