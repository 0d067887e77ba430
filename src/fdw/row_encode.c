/*
 * row_encode.c
 *	  Rows to messages: changelog/encode.h makes the bytes, this file what metadata
 *	  columns say about the message.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "changelog/change.h"
#include "changelog/encode.h"
#include "fdw/option_list.h"
#include "fdw/row_encode.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

struct RowEncoder
{
	const TopicTable *table;
	ChangeEncoder *encoder;
	StringInfoData key_bytes;
	StringInfoData value_bytes;
	int			nmetadata;		/* columns that say something about the message */
	const TopicColumn **metadata;
	const TopicColumn *column;	/* being looked at, for errors */
	RowKind		kind;			/* of the row at hand */
	MemoryContext scratch;
};

bool
table_is_writable(const TopicTable *table)
{
	return table->updatable && table->value_format->create_encoder != NULL &&
		(table->nkeys == 0 || table->key_format->create_encoder != NULL);
}

RowEncoder *
row_encoder_create(const TopicTable *table, const Bitmapset *given)
{
	RowEncoder *encoder = palloc0(sizeof(RowEncoder));

	encoder->table = table;
	encoder->encoder = change_encoder_create(table);
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
	encoder->kind = ROW_INSERT;
}

static void
refuse_metadata(const TopicTable *table, const TopicColumn *column, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_GENERATED_ALWAYS),
			 errmsg("cannot write metadata column \"%s\" of foreign table \"%s\"", column->name, table->name),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

/* Timestamp, headers, partition; the row kind where the format tells it. */
static void
write_metadata(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;
	KafkaHeader *headers;

	for (int i = 0; i < encoder->nmetadata; i++)
	{
		const TopicColumn *column = encoder->metadata[i];
		Datum		value = values[column->attnum - 1];

		if (isnull[column->attnum - 1])
			continue;
		encoder->column = column;
		switch (column->metadata)
		{
			case META_TIMESTAMP:
				record->timestamp = metadata_write_timestamp(table, column, value);
				break;
			case META_HEADERS:
				record->nheaders = metadata_write_headers(column, value, &headers);
				record->headers = headers;
				break;
			case META_PARTITION:
				if (table->upsert)
					refuse_metadata(table, column,
									_("Messages of one key must stay in one partition, which follows from the key."),
									_("The option \"partitioner\" says how."));
				record->partition = metadata_write_partition(column, value);
				break;
			case META_ROW_KIND:
				if (table->value_format->changelog && !table->upsert)
				{
					encoder->kind = row_kind_parse(TextDatumGetCString(value));
					break;
				}
				/* FALLTHROUGH */
			default:
				refuse_metadata(table, column,
								psprintf(_("Metadata \"%s\" is what the topic says of a message."),
										 metadata_name(column)),
								_("Leave the column out, or give NULL."));
		}
	}
}

/* In PG_CATCH: the same error in the house's form, where it is the value's. */
static void
raise_metadata_error(RowEncoder *encoder)
{
	ErrorData  *cause;

	if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
		PG_RE_THROW();
	MemoryContextSwitchTo(encoder->scratch);
	cause = CopyErrorData();
	FlushErrorState();
	/* a primary text becomes a sentence */
	cause->message[0] = pg_toupper((unsigned char) cause->message[0]);
	ereport(ERROR,
			(errcode(cause->sqlerrcode),
			 errmsg("cannot write column \"%s\" of foreign table \"%s\"", encoder->column->name, encoder->table->name),
			 errdetail("%s.", cause->message),
			 cause->hint ? errhint("%s", cause->hint) : 0));
}

void
row_encode_key(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	MemoryContext old = MemoryContextSwitchTo(encoder->scratch);

	resetStringInfo(&encoder->key_bytes);
	if (change_encode_key(encoder->encoder, values, isnull, &encoder->key_bytes))
	{
		record->key = encoder->key_bytes.data;
		record->key_len = encoder->key_bytes.len;
	}
	MemoryContextSwitchTo(old);
}

void
row_encode_value(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;
	MemoryContext old = MemoryContextSwitchTo(encoder->scratch);

	if (encoder->nmetadata > 0)
	{
		PG_TRY();
		{
			write_metadata(encoder, values, isnull, record);
		}
		PG_CATCH();
		{
			raise_metadata_error(encoder);
		}
		PG_END_TRY();
	}
	resetStringInfo(&encoder->value_bytes);
	if (change_encode_event(encoder->encoder, encoder->kind, values, isnull, &encoder->value_bytes))
	{
		record->value = encoder->value_bytes.data;
		record->value_len = encoder->value_bytes.len;
	}
	else if (table->upsert)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("cannot write null to foreign table \"%s\"", table->name),
				 errdetail("Format \"%s\" writes it as Kafka's null, which deletes the row.",
						   table->value_format->name),
				 errhint("Use DELETE to delete the row.")));
	MemoryContextSwitchTo(old);
}
