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

/* Of a table over several topics; a schema registry has other subjects for each. */
typedef struct TopicEncoder
{
	const char *topic;
	ChangeEncoder *encoder;
} TopicEncoder;

struct RowEncoder
{
	const TopicTable *table;
	MemoryContext cxt;
	ChangeEncoder *encoder;		/* of the topic of the row at hand */
	const TopicColumn *topic_column;	/* NULL: there is none, or only one topic */
	int			ntopics;		/* written to so far */
	TopicEncoder *topics;
	int			topic;			/* the last one */
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
	encoder->cxt = CurrentMemoryContext;
	encoder->encoder = change_encoder_create(table);
	encoder->metadata = palloc(sizeof(TopicColumn *) * Max(table->natts, 1));
	for (int i = 0; i < table->natts; i++)
	{
		const TopicColumn *column = &table->columns[i];

		if (OidIsValid(column->type) && column->metadata != META_NONE &&
			(given == NULL || bms_is_member(column->attnum - FirstLowInvalidHeapAttributeNumber, given)))
			encoder->metadata[encoder->nmetadata++] = column;
		if (OidIsValid(column->type) && column->metadata == META_TOPIC && !topic_table_is_plain(table) &&
			encoder->topic_column == NULL)
			encoder->topic_column = column;
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

/* From here on rows go to this topic. */
static const char *
use_topic(RowEncoder *encoder, const char *topic)
{
	MemoryContext old;
	TopicEncoder *added;
	TopicTable *table;

	for (int i = 0; i < encoder->ntopics; i++)
	{
		int			at = (encoder->topic + i) % encoder->ntopics;

		if (strcmp(encoder->topics[at].topic, topic) == 0)
		{
			encoder->topic = at;
			encoder->encoder = encoder->topics[at].encoder;
			return encoder->topics[at].topic;
		}
	}

	old = MemoryContextSwitchTo(encoder->cxt);
	if (encoder->topics == NULL)
		encoder->topics = palloc(sizeof(TopicEncoder));
	else
		encoder->topics = repalloc(encoder->topics, sizeof(TopicEncoder) * (encoder->ntopics + 1));
	/* the table as it would be over this topic alone */
	table = palloc(sizeof(TopicTable));
	*table = *encoder->table;
	table->topic = pstrdup(topic);
	table->topics = &table->topic;
	table->ntopics = 1;
	table->topic_pattern = NULL;
	added = &encoder->topics[encoder->ntopics];
	added->topic = table->topic;
	added->encoder = change_encoder_create(table);
	MemoryContextSwitchTo(old);
	encoder->topic = encoder->ntopics++;
	encoder->encoder = added->encoder;
	return added->topic;
}

void
row_encode_same_topic(RowEncoder *encoder, const KafkaOutRecord *origin, KafkaOutRecord *record)
{
	if (!topic_table_is_plain(encoder->table))
		record->topic = use_topic(encoder, origin->topic);
}

/* "a", "b" or what a name must match */
static char *
topics_text(const TopicTable *table)
{
	StringInfoData text;

	if (table->topic_pattern)
		return psprintf(_("Its topics match \"%s\"."), table->topic_pattern);
	initStringInfo(&text);
	for (int i = 0; i < table->ntopics; i++)
		appendStringInfo(&text, "%s\"%s\"", i > 0 ? ", " : "", table->topics[i]);
	return psprintf(_("Its topics are %s."), text.data);
}

void
row_encode_topic(RowEncoder *encoder, const Datum *values, const bool *isnull, KafkaOutRecord *record)
{
	const TopicTable *table = encoder->table;
	const TopicColumn *column = encoder->topic_column;
	MemoryContext old;
	char	   *topic;

	if (topic_table_is_plain(table))
		return;
	if (column == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot insert into foreign table \"%s\"", table->name),
				 errdetail("It reads several topics, and no column says which one a row goes to."),
				 errhint("Add a column with the option metadata 'topic'.")));
	if (isnull[column->attnum - 1])
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in column \"%s\" of foreign table \"%s\"", column->name, table->name),
				 errdetail("It names the topic that a row goes to."),
				 errhint("%s", topics_text(table))));

	old = MemoryContextSwitchTo(encoder->scratch);
	topic = TextDatumGetCString(values[column->attnum - 1]);
	if ((encoder->ntopics == 0 || strcmp(encoder->topics[encoder->topic].topic, topic) != 0) &&
		!topic_table_reads(table, topic))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("foreign table \"%s\" does not read topic \"%s\"", table->name, topic),
				 errdetail("A row of it would go there, by column \"%s\".", column->name),
				 errhint("%s", topics_text(table))));
	record->topic = use_topic(encoder, topic);
	MemoryContextSwitchTo(old);
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

static void
refuse_given(const TopicTable *table, const TopicColumn *column)
{
	refuse_metadata(table, column,
					psprintf(_("Metadata \"%s\" is what the topic says of a message."), metadata_name(column)),
					_("Leave the column out, or give NULL."));
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
			case META_TOPIC:
				/* INSERT has taken it from here */
				if (!topic_table_is_plain(table) && strcmp(TextDatumGetCString(value), record->topic) == 0)
					break;
				if (!topic_table_is_plain(table))
					refuse_metadata(table, column,
									_("The message that an UPDATE replaces stays in its topic, and so does the new one."),
									_("DELETE the row, and INSERT it into the other topic in a later transaction."));
				refuse_given(table, column);
				break;
			case META_ROW_KIND:
				if (!table->value_format->changelog || table->upsert)
					refuse_given(table, column);
				encoder->kind = row_kind_parse(TextDatumGetCString(value));
				break;
			default:
				refuse_given(table, column);
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
