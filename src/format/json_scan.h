/*
 * json_scan.h
 *	  A one-pass validating scanner of JSON text (RFC 8259, strict), directed by
 *	  the member names that are wanted.
 *
 * It converts nothing, allocates nothing and knows nothing of the backend: it
 * works on UTF-8 bytes that are not NUL-terminated and never reads past their
 * end.  Whether the bytes are valid UTF-8 is the caller's to check.
 */
#ifndef UK_JSON_SCAN_H
#define UK_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nesting beyond this is refused; scanning itself does not recurse. */
#define JSON_MAX_DEPTH 1000

typedef enum JsonKind
{
	JK_MISSING,					/* no such member */
	JK_NULL,
	JK_FALSE,
	JK_TRUE,
	JK_NUMBER,
	JK_STRING,
	JK_OBJECT,
	JK_ARRAY
} JsonKind;

/* One value, still as text: it points into the scanned bytes. */
typedef struct JsonText
{
	const char *text;			/* a string's without its quotes */
	uint32_t	len;
	uint8_t		kind;			/* JsonKind */
	bool		escaped;		/* a string that contains a backslash */
	bool		integral;		/* a number without fraction and exponent */
} JsonText;

typedef enum JsonError
{
	JSON_OK,
	JSON_EXPECTED_VALUE,
	JSON_EXPECTED_OBJECT,
	JSON_EXPECTED_NAME,
	JSON_EXPECTED_COLON,
	JSON_EXPECTED_COMMA_OR_BRACE,
	JSON_EXPECTED_COMMA_OR_BRACKET,
	JSON_EXPECTED_END,
	JSON_BAD_NUMBER,
	JSON_BAD_ESCAPE,
	JSON_BAD_UNICODE_ESCAPE,
	JSON_CONTROL_CHARACTER,
	JSON_UNTERMINATED_STRING,
	JSON_TOO_DEEP,
	JSON_LONE_SURROGATE,		/* only from json_unescape */
	JSON_NUL_ESCAPE				/* only from json_unescape */
} JsonError;

typedef struct JsonScan
{
	const char *at;				/* where the scan stands; where it failed */
	const char *end;
	JsonError	error;
} JsonScan;

/* A wanted member name, in UTF-8. */
typedef struct JsonField
{
	const char *name;
	uint32_t	len;
	uint32_t	hash;			/* set by json_fields_init */
} JsonField;

typedef struct JsonFields
{
	int			n;
	const JsonField *fields;
	const int32_t *slots;		/* hash table of indexes into fields, -1 = free */
	uint32_t	mask;
	uint32_t	max_len;		/* of a name */
} JsonFields;

/* How many slots json_fields_init needs for n names. */
extern uint32_t json_fields_slots(int n);

/*
 * fields[0 .. n) have distinct names; fields and slots (json_fields_slots(n) of
 * them) must live as long as *result.
 */
extern void json_fields_init(JsonFields *result, int n, JsonField *fields, int32_t *slots);

static inline void
json_scan_init(JsonScan *scan, const char *bytes, size_t len)
{
	scan->at = bytes;
	scan->end = bytes + len;
	scan->error = JSON_OK;
}

/*
 * Scan one object, from before its brace to behind it.  found[i] is the value of
 * fields->fields[i], the last one where a name is repeated, or JK_MISSING.
 * Everything else is skipped, but validated.  False: scan->error tells why.
 */
extern bool json_scan_object(JsonScan *scan, const JsonFields *fields, JsonText *found);

/* Scan one value of any kind. */
extern bool json_scan_value(JsonScan *scan, JsonText *value);

/* Nothing but white space may follow. */
extern bool json_scan_end(JsonScan *scan);

/*
 * Walk the elements of an array: begin at its bracket, then next until it
 * returns false, which is an error if scan->error says so.
 */
extern bool json_scan_array_begin(JsonScan *scan);
extern bool json_scan_array_next(JsonScan *scan, bool first, JsonText *element);

/*
 * The characters that a string's text stands for.  'out' has room for value->len
 * bytes, which always suffices.  strip_nul: \u0000 stands for nothing instead of
 * being an error.
 */
extern JsonError json_unescape(const JsonText *value, bool strip_nul, char *out, size_t *outlen);

/* The UTF-16 unit that the escape at p stands for, and its length in bytes. */
extern uint32_t json_escaped_unit(const char *p, int *len);

/*
 * A copy of JSON text, valid or not, without its \u0000 escapes; \\u0000 is none.  'out'
 * has room for value->len bytes.
 */
extern size_t json_strip_nul_escapes(const JsonText *value, char *out);

/* What is wrong, to follow "invalid JSON at byte N: ". */
extern const char *json_error_text(JsonError error);

/* "null", "number", "string", "object" .. */
extern const char *json_kind_name(JsonKind kind);

#endif							/* UK_JSON_SCAN_H */
