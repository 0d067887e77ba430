/*
 * layout.h
 *	  Which columns are in the key and the value of a table's messages, and in what order.
 */
#ifndef UK_LAYOUT_H
#define UK_LAYOUT_H

#include "fdw/options.h"

/* A table's column as the formats see it */
extern FormatColumn layout_column(const TopicColumn *column);

/*
 * As Flink's sinks have it: the key holds the key columns in the order of key_fields (or
 * of the table), the value all other columns but metadata, with the key columns among
 * them if the table's value has them.  Returns their number; 'columns' has room for natts.
 */
extern int	layout_key(const TopicTable *table, FormatColumn *columns);
extern int	layout_value(const TopicTable *table, FormatColumn *columns);

#endif							/* UK_LAYOUT_H */
