/*
 * http.h
 *	  One HTTP request at a time, from a backend.  Private to src/registry.
 */
#ifndef UK_HTTP_H
#define UK_HTTP_H

#include "lib/stringinfo.h"
#include "registry/registry.h"

/*
 * GET, or POST of 'json' if it is not NULL.  The answer's body is appended, its status
 * returned.  At most access->timeout_ms, interruptible; no redirects are followed.
 * ERROR 08006 if there is no answer, 54000 if it is too long.
 */
extern int	http_request(const RegistryAccess *access, const char *url, const char *json, StringInfo body);

#endif							/* UK_HTTP_H */
