/*
 * import_schema.h
 *	  Columns from the schemas of a registry.
 */
#ifndef UK_IMPORT_SCHEMA_H
#define UK_IMPORT_SCHEMA_H

#include "fdw/import_columns.h"
#include "registry/registry.h"

/*
 * What a schema proposes for keys or values.  False with *problem: nothing, and why.
 * Allocated in CurrentMemoryContext.
 */
extern bool import_schema_part(const RegistrySchema *schema, bool is_key, ImportPart *part, const char **problem);

#endif							/* UK_IMPORT_SCHEMA_H */
