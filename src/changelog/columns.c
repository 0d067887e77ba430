/*
 * columns.c
 *	  Columns of a foreign table -> fields of its messages, as Flink has them.
 *
 * Knows of formats only whether they hold more than one column.
 */
#include "postgres.h"

#include "changelog/columns.h"

void
format_column_init(FormatColumn *result, const TopicColumn *column)
{
	memset(result, 0, sizeof(*result));
	result->index = column->attnum - 1;
	result->field = column->field;
	result->column = column->name;
	result->type = column->type;
	result->typmod = column->typmod;
	result->collation = column->collation;
	result->is_metadata = column->metadata == META_FORMAT;
	result->not_null = column->not_null;
}

static void
add_field(FormatColumn *fields, int *n, const TopicColumn *column)
{
	format_column_init(&fields[*n], column);
	fields[*n].position = *n;
	(*n)++;
}

int
topic_key_fields(const TopicTable *table, FormatColumn *fields)
{
	int			n = 0;
	ListCell   *lc;

	if (table->key_fields == NIL)
	{
		for (int i = 0; i < table->nkeys; i++)
			add_field(fields, &n, &table->columns[table->keys[i] - 1]);
		return n;
	}
	foreach(lc, table->key_fields)
	{
		for (int i = 0; i < table->nkeys; i++)
		{
			const TopicColumn *column = &table->columns[table->keys[i] - 1];

			if (strcmp(column->name, (const char *) lfirst(lc)) == 0)
			{
				add_field(fields, &n, column);
				break;
			}
		}
	}
	return n;
}

int
topic_value_fields(const TopicTable *table, FormatColumn *fields)
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
		add_field(fields, &n, column);
	}
	return n;
}
