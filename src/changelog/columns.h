/*
 * columns.h
 *	  Which columns of a foreign table are fields of its keys and of its values, and in
 *	  which order: the same for reading and writing.
 */
#ifndef UK_COLUMNS_H
#define UK_COLUMNS_H

#include "fdw/options.h"

/* What a format is told of a column.  Keeps strings by reference. */
extern void format_column_init(FormatColumn *result, const TopicColumn *column);

/*
 * All fields of the key, in the order of key_fields or of the table; all of the value,
 * in the order of the table: no metadata, key columns only where the table's value has
 * them.  'fields' has room for table->natts.  Returns their number.
 */
extern int	topic_key_fields(const TopicTable *table, FormatColumn *fields);
extern int	topic_value_fields(const TopicTable *table, FormatColumn *fields);

#endif							/* UK_COLUMNS_H */
