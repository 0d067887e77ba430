/*
 * catalog_rows.h
 *	  Access to rows of the extension's catalogs; private to catalog.c,
 *	  positions.c, topic_sources.c and message_errors.c.
 */
#ifndef UK_CATALOG_ROWS_H
#define UK_CATALOG_ROWS_H

#include "access/htup.h"
#include "materialize/catalog.h"

/*
 * OIDs of the catalogs.  Only a complete set is kept, and dropped when a relcache
 * message names one of them, so that DROP and CREATE EXTENSION are seen.
 */
typedef struct CatalogIds
{
	bool		valid;
	Oid			maintained_table;
	Oid			maintained_table_pkey;
	Oid			position_state;
	Oid			position_state_pkey;
	Oid			topic_source;
	Oid			topic_source_pkey;
	Oid			message_error;
	Oid			message_error_pkey;
	Oid			message_error_key_text;
} CatalogIds;

extern CatalogIds catalog_ids;

/* Fill catalog_ids; where the extension does not exist, false or ERROR 42704. */
extern bool catalog_ids_find(void);
extern void catalog_ids_require(void);

/* A copy of the row with this target, or NULL; the index begins with the target. */
extern HeapTuple row_of_target(Relation rel, Oid index, Oid target);
extern void delete_rows_of_target(Oid relid, Oid index, Oid target);

#endif							/* UK_CATALOG_ROWS_H */
