/*
 * metadata.h
 *	  Metadata columns of a record, as Datums.  Private to src/changelog.
 */
#ifndef UK_METADATA_H
#define UK_METADATA_H

#include "changelog/change.h"

typedef struct MetadataReader MetadataReader;

/*
 * For one metadata column.  'time_zone' is where timestamps without zone are.
 * Allocated in CurrentMemoryContext.
 */
extern MetadataReader *metadata_reader_create(const TopicTable *table, const TopicColumn *column);

/*
 * Datum in CurrentMemoryContext, or the reader's for what never changes.
 * Row kinds are not the record's: NULL, see metadata_row_kind().  Class 22 errors
 * where bytes don't fit the column's type.
 */
extern Datum metadata_read(MetadataReader *reader, const KafkaRecord *record, bool *isnull);

/* Datum of the reader's context. */
extern Datum metadata_row_kind(MetadataReader *reader, RowKind kind);

#endif							/* UK_METADATA_H */
