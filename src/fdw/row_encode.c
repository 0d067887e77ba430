/*
 * row_encode.c
 *	  Rows to messages: which columns go where, in Flink's order, and errors that
 *	  name column and key.  Knows formats by their vtable only.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "fdw/option_list.h"
#include "fdw/row_encode.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Bytes of a key's column that an error shows */
#define KEY_TEXT_MAX	100

struct RowEncoder
{
	const TopicTable *table;
	Encoder    *key;			/* NULL: messages without key */
	Encoder    *value;
	StringInfoData key_bytes;
	StringInfoData value_bytes;
	int			nmetadata;		/* columns that say something about the message */
	const TopicColumn **metadata;
	const char *column;			/* being encoded, for errors */
	MemoryContext scratch;
};

bool
table_is_writable(const TopicTable *table)
{
	return table->updatable && table->value_format->create_encoder != NULL &&
		(table->nkeys == 0 || table->key_format->create_encoder != NULL);
}

static Encoder *
create_encoder(const TopicTable *table, const FormatRoutine *format, List *options, bool is_key)
{
	FormatColumn *columns = palloc0(sizeof(FormatColumn) * Max(table->natts, 1));
	EncoderSpec spec = {0};
	Encoder    *encoder;
	int			n = 0;

	if (format->create_encoder == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot write to foreign table \"%s\"", table->name),
				 errdetail("Format \"%s\" can only be read.", format->name)));
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];
		FormatColumn *result;

		if (!OidIsValid(column->type) || column->metadata != META_NONE)
			continue;
		if (is_key ? !column->is_key :
			column->is_key && (!table->value_has_key || format->single_column))
			continue;
		result = &columns[n++];
		result->index = i;
		result->field = column->field;
		result->column = column->name;
		result->type = column->type;
		result->typmod = column->typmod;
		result->collation = column->collation;
	}
	if (format->single_column && n != 1)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("cannot write to foreign table \"%s\"", table->name),
				 errdetail("Format \"%s\" writes one column, but there are %d.", format->name, n)));
	spec.ncolumns = n;
	spec.columns = columns;
	spec.options = options;
	spec.is_key = is_key;
	encoder = format->create_encoder(&spec);
	encoder->routine = format;
	return encoder;
}

RowEncoder *
row_encoder_create(const TopicTable *table, const Bitmapset *given)
{
	RowEncoder *encoder = palloc0(sizeof(RowEncoder));

	encoder->table = table;
	if (table->nkeys > 0)
		encoder->key = create_encoder(table, table->key_format, table->key_options, true);
	encoder->value = create_encoder(table, table->value_format, table->value_options, false);
	encoder->metadata = palloc(sizeof(TopicColumn *) * Max(table->natts, 1));
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (OidIsValid(column->type) && column->metadata != META_NONE &&
			(given == NULL || bms_is_member(column->attnum - FirstLowInvalidHeapAttributeNumber, given)))
			encoder->metadata[encoder->nmetadata++] = column;
	}
	initStringInfo(&encoder->key_bytes);
	initStringInfo(&encoder->value_bytes);
	encoder->scratch = AllocSetContextCreate(CurrentMemoryContext, "row encoder", ALLOCSET_DEFAULT_SIZES);
	return encoder;
}

void
row_encoder_reset(RowEncoder *encoder)
{
	MemoryContextReset(encoder->scratch);
}

void
row_encode_start(RowEncoder *encoder, KafkaOutRecord *record)
{
	memset(record, 0, sizeof(KafkaOutRecord));
	record->topic = encoder->table->topic;
	record->partition = -1;
	record->timestamp = -1;
}

/* "Key (id)=(7)", as PostgreSQL's own errors name a row; NULL for a table without keys. */
static char *
key_text(const TopicTable *table, const Datum *values, const bool *isnull)
{
	StringInfoData names;
	StringInfoData texts;

	if (table->nkeys == 0)
		return NULL;
	initStringInfo(&names);
	initStringInfo(&texts);
	for (int i = 0; i < table->nkeys; i++)
	{
		const TopicColumn *column = &table->columns[table->keys[i] - 1];
		const char *separator = i > 0 ? ", " : "";

		appendStringInfo(&names, "%s%s", separator, column->name);
		appendStringInfoString(&texts, separator);
		if (isnull[column->attnum - 1])
			appendStringInfoString(&texts, "null");
		else
		{
			Oid			output;
			bool		varlena;
			char	   *text;
			int			len;

			getTypeOutputInfo(column->type, &output, &varlena);
			text = OidOutputFunctionCall(output, values[column->attnum - 1]);
			len = strlen(text);
			if (len <= KEY_TEXT_MAX)
				appendStringInfoString(&texts, text);
			else
				appendStringInfo(&texts, "%.*s..", pg_mbcliplen(text, len, KEY_TEXT_MAX), text);
		}
	}
	return psprintf(_("Key (%s)=(%s)"), names.data, texts.data);
}

static void
raise_row_error(RowEncoder *encoder, const Datum *values, const bool *isnull, const ErrorData *cause)
{
	const TopicTable *table = encoder->table;
	char	   *key = key_text(table, values, isnull);
	const char *stop = cause->message[0] != '\0' && strchr(".!?", cause->message[strlen(cause->message) - 1]) ? "" : ".";

	ereport(ERROR,
			(errcode(cause->sqlerrcode),
			 encoder->column != NULL ?
			 errmsg("cannot write column \"%s\" of foreign table \"%s\"", encoder->column, table->name) :
			 errmsg("cannot write to foreign table \"%s\"", table->name),
			 key != NULL ? errdetail_internal("%s: %s%s", key, cause->message, stop) :
			 errdetail_internal("%s%s", cause->message, stop),
			 cause->hint ? errhint("%s", cause->hint) : 0));
}

typedef enum EncodePart
{
	ENCODE_KEY,
	ENCODE_VALUE,
	ENCODE_METADATA
} EncodePart;

/* Timestamp, headers, partition. */
static void
write_metadata(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;

	for (int i = 0; i < encoder->nmetadata; i++)
	{
		const TopicColumn *column = encoder->metadata[i];
		Datum		value = values[column->attnum - 1];

		if (isnull[column->attnum - 1])
			continue;
		encoder->column = column->name;
		switch (column->metadata)
		{
			case META_TIMESTAMP:
				record->timestamp = metadata_write_timestamp(table, column, value);
				break;
			case META_HEADERS:
				{
					KafkaHeader *headers;

					record->nheaders = metadata_write_headers(column, value, &headers);
					record->headers = headers;
					break;
				}
			case META_PARTITION:
				if (table->upsert)
					ereport(ERROR,
							(errcode(ERRCODE_GENERATED_ALWAYS),
							 errmsg("cannot write metadata column \"%s\" of foreign table \"%s\"",
									column->name, table->name),
							 errdetail("Messages of one key must stay in one partition, which follows from the key."),
							 errhint("The option \"partitioner\" says how.")));
				record->partition = metadata_write_partition(column, value);
				break;
			default:
				ereport(ERROR,
						(errcode(ERRCODE_GENERATED_ALWAYS),
						 errmsg("cannot write metadata column \"%s\" of foreign table \"%s\"",
								column->name, table->name),
						 errdetail("Metadata \"%s\" is what the topic says of a message.",
								   metadata_name(column->metadata)),
						 errhint("Leave the column out, or give NULL.")));
		}
	}
	encoder->column = NULL;
}

/*
 * Run one part under the message's settings, with errors in the house's form.
 * Returns false for Kafka null.
 */
static bool
encode_part(RowEncoder *encoder, EncodePart part, const Datum *values, const bool *isnull,
			KafkaOutRecord *record)
{
	MemoryContext old = MemoryContextSwitchTo(encoder->scratch);
	DecodeSettings settings;
	volatile bool present = true;
	ErrorData  *volatile cause = NULL;

	encoder->column = NULL;
	decode_settings_enter(&settings, encoder->table->time_zone);
	PG_TRY();
	{
		switch (part)
		{
			case ENCODE_KEY:
				resetStringInfo(&encoder->key_bytes);
				present = encoder->key->routine->encode(encoder->key, values, isnull,
														&encoder->key_bytes, &encoder->column);
				break;
			case ENCODE_VALUE:
				resetStringInfo(&encoder->value_bytes);
				present = encoder->value->routine->encode(encoder->value, values, isnull,
														  &encoder->value_bytes, &encoder->column);
				break;
			case ENCODE_METADATA:
				write_metadata(encoder, values, isnull, record);
				break;
		}
	}
	PG_CATCH();
	{
		decode_settings_leave(&settings);
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(encoder->scratch);
		cause = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (cause != NULL)
		raise_row_error(encoder, values, isnull, cause);
	decode_settings_leave(&settings);
	encoder->column = NULL;
	MemoryContextSwitchTo(old);
	return present;
}

void
row_encode_key(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;

	if (encoder->key == NULL)
		return;
	for (int i = 0; table->upsert && i < table->nkeys; i++)
	{
		const TopicColumn *column = &table->columns[table->keys[i] - 1];

		if (isnull[column->attnum - 1])
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in key column \"%s\" of foreign table \"%s\"", column->name, table->name),
					 errdetail("A message of an upsert topic is identified by its key."),
					 err_generic_string(PG_DIAG_SCHEMA_NAME, table->schema_name),
					 err_generic_string(PG_DIAG_TABLE_NAME, table->name),
					 err_generic_string(PG_DIAG_COLUMN_NAME, column->name)));
	}
	if (!encode_part(encoder, ENCODE_KEY, values, isnull, record))
		return;
	record->key = encoder->key_bytes.data;
	record->key_len = encoder->key_bytes.len;
}

void
row_encode_value(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;

	if (encoder->nmetadata > 0)
		(void) encode_part(encoder, ENCODE_METADATA, values, isnull, record);
	if (encode_part(encoder, ENCODE_VALUE, values, isnull, record))
	{
		record->value = encoder->value_bytes.data;
		record->value_len = encoder->value_bytes.len;
	}
	else if (table->upsert)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in foreign table \"%s\"", table->name),
				 errdetail("%s: format \"%s\" writes it as Kafka's null, which deletes the row.",
						   key_text(table, values, isnull), table->value_format->name),
				 errhint("Use DELETE to delete the row.")));
}
