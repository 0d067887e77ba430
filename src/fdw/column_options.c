/*
 * column_options.c
 *	  A column's option list, and the names of metadata.
 */
#include "postgres.h"

#include "catalog/pg_attribute.h"
#include "commands/defrem.h"
#include "fdw/option_list.h"
#include "lib/stringinfo.h"

#define FORMAT_METADATA_PREFIX	"value."	/* as in Flink */

/* in the order of MetadataKind, META_NONE left out and META_FORMAT, whose names are the formats' */
static const char *const metadata_values[] = {
	"topic", "partition", "offset", "timestamp", "timestamp-type", "headers",
	"leader-epoch", "row_kind", "raw_key", "raw_value", NULL
};

const char *
metadata_name(const TopicColumn *column)
{
	Assert(column->metadata != META_NONE);
	if (column->metadata == META_FORMAT)
		return psprintf(FORMAT_METADATA_PREFIX "%s", column->field);
	return metadata_values[column->metadata - 1];
}

/* What formats offer, as it is spelled in metadata '...'; NULL-terminated. */
static const char **
format_metadata_names(void)
{
	const char *const *formats = format_names();
	const char **names = NULL;
	int			n = 0;

	for (int i = 0; formats[i]; i++)
	{
		for (const FormatMetadata *m = format_lookup(formats[i])->metadata; m && m->name; m++)
		{
			int			known = 0;
			char	   *name = psprintf(FORMAT_METADATA_PREFIX "%s", m->name);

			while (known < n && strcmp(names[known], name) != 0)
				known++;
			if (known < n)
				continue;
			names = names ? repalloc(names, sizeof(char *) * (n + 2)) : palloc(sizeof(char *) * 2);
			names[n++] = name;
		}
	}
	if (names == NULL)
		names = palloc(sizeof(char *));
	names[n] = NULL;
	return names;
}

static void
parse_metadata_option(const char *name, const char *value, ColumnOptions *column)
{
	const char **of_format = format_metadata_names();
	bool		is_format = strncmp(value, FORMAT_METADATA_PREFIX, strlen(FORMAT_METADATA_PREFIX)) == 0;
	const char *const *names = is_format ? (const char *const *) of_format : metadata_values;
	int			i = option_word_index(value, metadata_values);
	const char *closest;
	StringInfoData hint;

	if (i >= 0)
	{
		column->metadata = (MetadataKind) (i + 1);
		return;
	}
	/* the table's list says which format it is, so topic_table.c sees whether it has it */
	i = option_word_index(value, of_format);
	if (i >= 0)
	{
		column->metadata = META_FORMAT;
		column->metadata_field = of_format[i] + strlen(FORMAT_METADATA_PREFIX);
		return;
	}

	initStringInfo(&hint);
	closest = option_closest(value, names);
	if (closest)
		appendStringInfo(&hint, _("Perhaps you meant \"%s\". "), closest);
	appendStringInfoString(&hint, is_format ? _("Metadata that formats offer is: ") : _("Metadata that a column can show is: "));
	for (i = 0; names[i]; i++)
		appendStringInfo(&hint, "%s%s", i ? ", " : "", names[i]);
	appendStringInfoChar(&hint, '.');
	option_bad_value(name, value, hint.data);
}

void
column_options_parse(List *options, ColumnOptions *column)
{
	List	   *seen = NIL;
	ListCell   *lc;

	memset(column, 0, sizeof(*column));
	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *value = defGetString(def);
		const char *canonical;
		OptionKeyword keyword = option_keyword(AttributeRelationId, def->defname, &canonical);

		if (keyword != OPT_NONE)
			seen = option_note(seen, canonical, def->defname);
		switch (keyword)
		{
			case OPT_KEY:
				column->key = option_parse_bool(def->defname, value);
				break;
			case OPT_FIELD:
				if (value[0] == '\0')
					option_bad_value(def->defname, value, _("The value is the field's name in the message."));
				column->field = value;
				break;
			case OPT_METADATA:
				parse_metadata_option(def->defname, value, column);
				break;
			default:
				option_unknown(def->defname, option_names(AttributeRelationId));
		}
	}
	if (column->field && column->metadata != META_NONE)
		option_stray("field", _("A metadata column is not taken from the message's content."));
}
