/*
 * lenient.h
 *	  Option ignore_parse_errors: a value that is no good becomes NULL.
 *
 * Formats that have the option set Decoder.ignores_errors.  Whoever drives them decodes a
 * message again with Decoder.lenient set, only after it failed: good ones cost nothing.
 */
#ifndef UK_LENIENT_H
#define UK_LENIENT_H

#include "format/format.h"

#define IGNORE_PARSE_ERRORS		"ignore_parse_errors"

/* For a format's FormatOption list. */
#define IGNORE_PARSE_ERRORS_OPTION \
	{IGNORE_PARSE_ERRORS, "bool", "a value that its column cannot take is NULL, a message that cannot be parsed is skipped"}

/* Is the option among a format's options, and true? */
extern bool ignores_parse_errors(List *options);

/*
 * Call convert(arg) in an internal subtransaction; false if it raised what type input says
 * of a bad value.  Other errors pass through, domain checks among them.  Memory context and
 * resource owner are as before.  Not in parallel mode before PostgreSQL 17.
 */
extern bool lenient_convert(void (*convert) (void *arg), void *arg);

#endif							/* UK_LENIENT_H */
