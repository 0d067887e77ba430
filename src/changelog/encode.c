/*
 * encode.c
 *	  Rows of a foreign table -> keys and values of messages.
 *
 * Knows which column goes where and how errors are told; bytes are the formats'.
 */
#include "postgres.h"

#include "changelog/change.h"
#include "changelog/columns.h"
#include "changelog/encode.h"
#include "miscadmin.h"

struct ChangeEncoder
{
	const TopicTable *table;
	Encoder    *key;			/* NULL: no key columns */
	Encoder    *value;
	const char *column;			/* being encoded, for errors */
	bool		in_value;
};

static Encoder *
create_encoder(const TopicTable *table, const FormatRoutine *format, List *options, bool is_key,
			   int ncolumns, const FormatColumn *columns)
{
	EncoderSpec spec = {0};
	Encoder    *encoder;

	if (format->create_encoder == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("foreign table \"%s\" cannot be written: format \"%s\" only reads", table->name, format->name)));
	spec.ncolumns = ncolumns;
	spec.columns = columns;
	spec.options = options;
	spec.is_key = is_key;
	spec.topic = topic_table_is_plain(table) ? table->topic : NULL;
	spec.time_zone = table->time_zone;
	if (format->registry)
		spec.registry = registry_access_get(table->serverid, table->userid);
	encoder = format->create_encoder(&spec);
	encoder->routine = format;
	return encoder;
}

ChangeEncoder *
change_encoder_create(const TopicTable *table)
{
	ChangeEncoder *encoder = palloc0(sizeof(ChangeEncoder));
	FormatColumn *columns = palloc0(sizeof(FormatColumn) * Max(table->natts, 1));
	FormatColumn *keys = palloc0(sizeof(FormatColumn) * Max(table->natts, 1));
	int			n;

	encoder->table = table;
	if (table->nkeys > 0)
	{
		n = topic_key_fields(table, keys);
		encoder->key = create_encoder(table, table->key_format, table->key_options, true, n, keys);
	}
	n = topic_value_fields(table, columns);
	encoder->value = create_encoder(table, table->value_format, table->value_options, false, n, columns);
	return encoder;
}

/* The key as an error shows it: text where it is short text, else hexadecimal. */
static char *
key_text(const char *key, Size len)
{
	const Size	shown = 100;
	char	   *result;
	Size		n = Min(len, shown);

	for (Size i = 0; i < n; i++)
	{
		if ((unsigned char) key[i] < 0x20 || (unsigned char) key[i] >= 0x7f)
		{
			result = palloc(2 + 2 * n + 4);
			strcpy(result, "\\x");
			for (i = 0; i < n; i++)
				sprintf(result + 2 + 2 * i, "%02x", (unsigned char) key[i]);
			if (len > shown)
				strcat(result, "...");
			return result;
		}
	}
	return psprintf("%.*s%s", (int) n, key, len > shown ? "..." : "");
}

/* The key of a row whose value has an error; NULL if there is none. */
static char *
key_of_row(ChangeEncoder *encoder, const Datum *values, const bool *isnull)
{
	StringInfoData key;
	const char *column = NULL;

	if (encoder->key == NULL)
		return NULL;
	initStringInfo(&key);
	if (!encoder->key->routine->encode(encoder->key, values, isnull, &key, &column))
		return NULL;
	return key_text(key.data, key.len);
}

/* In PG_CATCH: the same error with the names of column, table and key, where it is the value's. */
static void
raise_in_house_form(ChangeEncoder *encoder, MemoryContext context, const Datum *values, const bool *isnull)
{
	int			category = ERRCODE_TO_CATEGORY(geterrcode());
	const char *column = encoder->column;
	ErrorData  *edata;
	char	   *key;

	if (category != ERRCODE_DATA_EXCEPTION && category != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
		PG_RE_THROW();
	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	key = encoder->in_value ? key_of_row(encoder, values, isnull) : NULL;
	ereport(ERROR,
			(errcode(edata->sqlerrcode),
			 column ? errmsg("cannot write column \"%s\" of foreign table \"%s\"", column, encoder->table->name)
			 : errmsg("cannot write a row of foreign table \"%s\"", encoder->table->name),
			 key ? errdetail("Topic \"%s\", key %s: %s%s", encoder->table->topic, key, edata->message, sentence_end(edata->message))
			 : errdetail("Topic \"%s\": %s%s", encoder->table->topic, edata->message, sentence_end(edata->message)),
			 edata->hint ? errhint("%s", edata->hint) : 0));
}

static bool
encode(ChangeEncoder *encoder, Encoder *part, const Datum *values, const bool *isnull, StringInfo bytes)
{
	MemoryContext context = CurrentMemoryContext;
	int			len = bytes->len;
	bool		result = false;

	encoder->in_value = part == encoder->value;
	encoder->column = NULL;
	PG_TRY();
	{
		result = part->routine->encode(part, values, isnull, bytes, &encoder->column);
	}
	PG_CATCH();
	{
		bytes->len = len;
		raise_in_house_form(encoder, context, values, isnull);
	}
	PG_END_TRY();
	return result;
}

bool
change_encode_key(ChangeEncoder *encoder, const Datum *values, const bool *isnull, StringInfo key)
{
	const TopicTable *table = encoder->table;

	if (encoder->key == NULL)
		return false;
	for (int i = 0; table->upsert && i < table->nkeys; i++)
	{
		if (isnull[table->keys[i] - 1])
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in key column \"%s\" of foreign table \"%s\"",
							table->columns[table->keys[i] - 1].name, table->name),
					 errhint("Every row of an upsert topic has a key.")));
	}
	return encode(encoder, encoder->key, values, isnull, key);
}

bool
change_encode_value(ChangeEncoder *encoder, const Datum *values, const bool *isnull, StringInfo value)
{
	return change_encode_event(encoder, ROW_INSERT, values, isnull, value);
}

bool
change_encode_event(ChangeEncoder *encoder, RowKind kind, const Datum *values, const bool *isnull, StringInfo value)
{
	encoder->value->kind = kind;
	return encode(encoder, encoder->value, values, isnull, value);
}
