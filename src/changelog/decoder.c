/*
 * decoder.c
 *	  Makes the decoder of a foreign table for the columns that are wanted: which of them
 *	  key, value and metadata fill, and how much of a value has to be looked at.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "changelog/columns.h"
#include "changelog/decode_internal.h"

static bool
is_wanted(const Bitmapset *wanted, AttrNumber attnum)
{
	return wanted == NULL ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, wanted) ||
		bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, wanted);
}

static Decoder *
create_decoder(const TopicTable *table, const FormatRoutine *format, List *options, bool is_key,
			   int ncolumns, FormatColumn *columns)
{
	DecoderSpec spec = {0};
	FormatColumn *fields = palloc(sizeof(FormatColumn) * Max(table->natts, 1));
	int		   *positions = palloc0(sizeof(int) * (table->natts + 1));
	const char **keys = palloc(sizeof(char *) * Max(table->nkeys, 1));
	Decoder    *decoder;

	for (int i = 0; i < table->nkeys; i++)
		keys[i] = table->columns[table->keys[i] - 1].field;
	spec.nkeys = table->nkeys;
	spec.keys = keys;

	spec.nfields = is_key ? topic_key_fields(table, fields) : topic_value_fields(table, fields);
	spec.fields = fields;
	for (int i = 0; i < spec.nfields; i++)
	{
		positions[fields[i].index] = i;
		if (table->delete_marker && strcmp(fields[i].field, table->delete_marker) == 0)
			positions[table->natts] = i;
	}
	for (int i = 0; i < ncolumns; i++)
		columns[i].position = positions[columns[i].index];
	pfree(positions);
	spec.ncolumns = ncolumns;
	spec.columns = columns;
	spec.options = options;
	spec.is_key = is_key;
	spec.has_key = table->nkeys > 0;
	spec.upsert = table->upsert;
	spec.connect = is_key && table->value_format->connect;
	spec.time_zone = table->time_zone;
	if (format->registry)
		spec.registry = registry_access_get(table->serverid, table->userid);
	decoder = format->create(&spec);
	decoder->routine = format;
	return decoder;
}

ChangeDecoder *
change_decoder_create(const TopicTable *table, const Bitmapset *wanted)
{
	ChangeDecoder *decoder = palloc0(sizeof(ChangeDecoder));
	FormatColumn *keys = palloc0(sizeof(FormatColumn) * Max(table->natts, 1));
	FormatColumn *values = palloc0(sizeof(FormatColumn) * (table->natts + 1));
	int			nkeys = 0;
	int			nvalues = 0;

	decoder->table = table;
	decoder->sink.arg = decoder;
	decoder->has_kinds = topic_table_has_kinds(table);
	decoder->natts = table->natts;
	decoder->marker = -1;
	decoder->metadata = palloc0(sizeof(MetadataColumn) * Max(table->natts, 1));
	decoder->shared = palloc(sizeof(int) * Max(table->natts, 1));

	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (!OidIsValid(column->type))
			continue;
		if (column->is_key)
		{
			if (!table->upsert && !is_wanted(wanted, column->attnum))
				continue;
			format_column_init(&keys[nkeys++], column);
			decoder->shared[decoder->nshared++] = i;
		}
		else if (!is_wanted(wanted, column->attnum))
			continue;
		else if (column->metadata != META_NONE && column->metadata != META_FORMAT)
		{
			MetadataColumn *metadata = &decoder->metadata[decoder->nmetadata++];

			metadata->index = i;
			metadata->row_kind = column->metadata == META_ROW_KIND;
			metadata->name = column->name;
			metadata->reader = metadata_reader_create(table, column);
			decoder->shared[decoder->nshared++] = i;
		}
		else
			format_column_init(&values[nvalues++], column);
	}

	if (table->delete_marker)
	{
		FormatColumn *marker = &values[nvalues++];

		marker->index = decoder->marker = decoder->natts++;
		marker->field = marker->column = table->delete_marker;
		marker->type = TEXTOID;
		marker->typmod = -1;
		marker->collation = DEFAULT_COLLATION_OID;
		decoder->marker_len = strlen(table->delete_marker_value);
	}

	if (nkeys > 0)
		decoder->key = create_decoder(table, table->key_format, table->key_options, true, nkeys, keys);

	if (nvalues > 0 || decoder->has_kinds)
		decoder->value_use = VALUE_DECODED;
	else if (table->value_options != NIL && !table->value_format->single_column)
		decoder->value_use = VALUE_MARKERS;
	if (decoder->value_use != VALUE_UNUSED)
		decoder->value = create_decoder(table, table->value_format, table->value_options, false, nvalues, values);
	if (decoder->value && decoder->value->decides)
		decoder->value_use = VALUE_DECODED;
	else if (decoder->value_use == VALUE_MARKERS && !table->upsert)
		decoder->value_use = VALUE_UNUSED;
	decoder->ignores_errors = (decoder->key && decoder->key->ignores_errors) ||
		(decoder->value && decoder->value->ignores_errors);
	return decoder;
}

void
change_decoder_tell_unchanged(ChangeDecoder *decoder, int nkeys, const AttrNumber *keys, bool moves)
{
	decoder->tell_unchanged = true;
	if (nkeys > 0 && decoder->table->value_format->old_key_header)
		decoder->old_key = old_key_reader_create(decoder->table, nkeys, keys);
	decoder->tell_moves = moves && decoder->old_key != NULL;
}
