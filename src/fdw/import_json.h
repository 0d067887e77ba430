/*
 * import_json.h
 *	  A walk over all members of a JSON object, known names or not.
 *
 * For proposals only: messages are read by json_scan_object().
 */
#ifndef UK_IMPORT_JSON_H
#define UK_IMPORT_JSON_H

#include "format/json_scan.h"

typedef struct JsonMembers
{
	JsonScan	scan;
	bool		done;
} JsonMembers;

/* 'object' is a value that has been scanned, so it is valid; anything but an object has no members. */
extern void json_members_begin(JsonMembers *members, const JsonText *object);
extern bool json_members_next(JsonMembers *members, JsonText *name, JsonText *value);

/* A string's characters in the database encoding, palloc'd; NULL where no option could spell them, or for "" */
extern char *json_string(const JsonText *string);

/* The member of that name, JK_MISSING if there is none; the last one counts. */
extern JsonText json_member(const JsonText *object, const char *name);

/* Is it the string 'text'? */
extern bool json_is_text(const JsonText *value, const char *text);

#endif							/* UK_IMPORT_JSON_H */
