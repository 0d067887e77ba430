/*
 * json_value.h
 *	  A JSON value -> Datum of a PostgreSQL type: scalars, json, arrays,
 *	  composites and domains, nested as the type is.
 *
 * Shared by all formats whose messages are JSON.
 */
#ifndef UK_JSON_VALUE_H
#define UK_JSON_VALUE_H

#include "format/format.h"
#include "format/json_scan.h"

typedef struct JsonTarget JsonTarget;

/*
 * How values become column->type, in column->style.  Allocated in CurrentMemoryContext.
 * strip_nul: \u0000 is dropped instead of being an error.
 */
extern JsonTarget *json_target_create(const FormatColumn *column, const char *time_zone, bool strip_nul);

/*
 * While *lenient, a value that is no good gives NULL, wherever it is nested.  Domains have
 * their say about that NULL.
 */
extern void json_target_set_lenient(JsonTarget *target, const bool *lenient);

/*
 * Convert a scanned value (so it is valid JSON, and the message valid UTF-8).
 * Missing members and JSON null give NULL, after the domain's say.  The Datum is
 * allocated in CurrentMemoryContext.  ERROR class 22, or 23 from domains.
 */
extern Datum json_value_datum(JsonTarget *target, const JsonText *value, bool *isnull);

/*
 * Before a message is scanned: passes over a byte-order mark (case X06), ERROR 22021 unless
 * the rest is UTF-8.
 */
extern void json_message_begin(const char **bytes, Size *len);

/*
 * Field table over names in the database encoding, allocated in
 * CurrentMemoryContext.  Names may repeat: field_of[i] is the field of names[i].
 */
extern JsonFields *json_fields_create(int n, const char *const *names, int *field_of);

/* How a scanned value begins, for messages: in the database encoding, palloc'd. */
extern char *json_excerpt(const JsonText *value);

/* ERROR for a scan that failed; 'bytes' is where it began. */
extern void json_scan_raise(const JsonScan *scan, const char *bytes) pg_attribute_noreturn();

#endif							/* UK_JSON_VALUE_H */
