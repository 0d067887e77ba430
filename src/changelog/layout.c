/*
 * layout.c
 *	  Columns of the key and of the value, in order: shared by decoding and encoding.
 *
 * Knows tables, but no formats beyond whether they take one column only.
 */
#include "postgres.h"

#include "changelog/layout.h"

FormatColumn
layout_column(const TopicColumn *column)
{
	FormatColumn result = {0};

	result.index = column->attnum - 1;
	result.field = column->field;
	result.column = column->name;
	result.type = column->type;
	result.typmod = column->typmod;
	result.collation = column->collation;
	result.is_metadata = column->metadata == META_FORMAT;
	result.not_null = column->not_null;
	return result;
}

/* The key's columns in the order of its fields */
int
layout_key(const TopicTable *table, FormatColumn *columns)
{
	int			n = 0;
	ListCell   *lc;

	if (table->key_fields == NIL)
	{
		for (int i = 0; i < table->nkeys; i++)
			columns[n++] = layout_column(&table->columns[table->keys[i] - 1]);
		return n;
	}
	foreach(lc, table->key_fields)
	{
		for (int i = 0; i < table->nkeys; i++)
		{
			const TopicColumn *column = &table->columns[table->keys[i] - 1];

			if (strcmp(column->name, (const char *) lfirst(lc)) == 0)
			{
				columns[n++] = layout_column(column);
				break;
			}
		}
	}
	return n;
}

int
layout_value(const TopicTable *table, FormatColumn *columns)
{
	bool		single = table->value_format->single_column;
	int			nothers = 0;
	int			n = 0;

	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (OidIsValid(column->type) && column->metadata == META_NONE && !column->is_key)
			nothers++;
	}
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (!OidIsValid(column->type) || column->metadata != META_NONE)
			continue;
		/* a format of one column takes the key only where there is nothing else */
		if (column->is_key && (!table->value_has_key || (single && nothers > 0)))
			continue;
		columns[n++] = layout_column(column);
	}
	return n;
}
