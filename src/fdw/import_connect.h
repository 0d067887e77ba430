/*
 * import_connect.h
 *	  PostgreSQL types for what sources say of their columns: Kafka Connect's schemas,
 *	  and MySQL's type names.
 */
#ifndef UK_IMPORT_CONNECT_H
#define UK_IMPORT_CONNECT_H

#include "fdw/import_columns.h"
#include "format/json_scan.h"

/*
 * The fields of a struct's schema, as columns; with 'field' those of that field of it.
 * False: it is no such schema.
 */
extern bool import_connect_columns(const JsonText *schema, const char *field, ImportPart *part);

/* The type for the name of a schema, with its parameter of that name; NULL if the name says nothing. */
extern const char *import_connect_name(const char *name, int length);

/* The type for one of MySQL's, such as "bigint(20) unsigned" */
extern const char *import_mysql_type(const char *name);

#endif							/* UK_IMPORT_CONNECT_H */
