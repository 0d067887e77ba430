/*
 * metadata.c
 *	  Metadata columns: what a record says beside its key and value.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "changelog/metadata.h"
#include "common/base64.h"
#include "common/int.h"
#include "fdw/pending.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

struct MetadataReader
{
	MetadataKind kind;
	Oid			type;
	/* META_TOPIC: every topic met so far, in the reader's context */
	MemoryContext context;
	int			ntopics;
	int			last_topic;
	struct TopicText
	{
		const char *name;
		Datum		text;
	}		   *topics;

	Datum		row_kinds[ROW_UPDATE_AFTER + 1];	/* META_ROW_KIND */
	Datum		timestamp_types[3]; /* by KafkaTimestampType */
	pg_tz	   *time_zone;		/* META_TIMESTAMP into timestamp */

	/* META_HEADERS into an array of a composite */
	TupleDesc	header_desc;
	int			name_index;
	int			value_index;
	Oid			element_type;
	int16		element_len;
	bool		element_byval;
	char		element_align;
};

const char *
row_kind_text(RowKind kind)
{
	switch (kind)
	{
		case ROW_UPSERT:
		case ROW_INSERT:
			return "+I";
		case ROW_UPDATE_BEFORE:
			return "-U";
		case ROW_UPDATE_AFTER:
			return "+U";
		case ROW_DELETE:
			return "-D";
		case ROW_TRUNCATE:
			break;				/* no row */
	}
	return "";					/* keep compilers quiet */
}

RowKind
row_kind_parse(const char *text)
{
	static const RowKind kinds[] = {ROW_INSERT, ROW_UPDATE_BEFORE, ROW_UPDATE_AFTER, ROW_DELETE};

	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(text, row_kind_text(kinds[i])) == 0)
			return kinds[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid row kind \"%s\"", text),
			 errhint("Row kinds are +I, -U, +U and -D.")));
	return ROW_INSERT;			/* not reached */
}

MetadataReader *
metadata_reader_create(const TopicTable *table, const TopicColumn *column)
{
	MetadataReader *reader = palloc0(sizeof(MetadataReader));

	reader->kind = column->metadata;
	reader->context = CurrentMemoryContext;
	reader->type = column->type;
	switch (column->metadata)
	{
		case META_ROW_KIND:
			for (int kind = 0; kind < lengthof(reader->row_kinds); kind++)
				reader->row_kinds[kind] = CStringGetTextDatum(row_kind_text((RowKind) kind));
			break;
		case META_TIMESTAMP_TYPE:
			/* Kafka's own names, as Flink shows them */
			reader->timestamp_types[KAFKA_TIMESTAMP_NONE] = CStringGetTextDatum("NoTimestampType");
			reader->timestamp_types[KAFKA_TIMESTAMP_CREATE_TIME] = CStringGetTextDatum("CreateTime");
			reader->timestamp_types[KAFKA_TIMESTAMP_LOG_APPEND_TIME] = CStringGetTextDatum("LogAppendTime");
			break;
		case META_TIMESTAMP:
			reader->time_zone = pg_tzset(table->time_zone);
			break;
		case META_HEADERS:
			if (column->type != JSONBOID)
			{
				TupleDesc	desc;
				int			nlive = 0;

				reader->element_type = get_element_type(column->type);
				get_typlenbyvalalign(reader->element_type, &reader->element_len,
									 &reader->element_byval, &reader->element_align);
				desc = lookup_rowtype_tupdesc(reader->element_type, -1);
				reader->header_desc = CreateTupleDescCopy(desc);
				ReleaseTupleDesc(desc);
				for (int i = 0; i < reader->header_desc->natts; i++)
				{
					if (TupleDescAttr(reader->header_desc, i)->attisdropped)
						continue;
					*(nlive++ == 0 ? &reader->name_index : &reader->value_index) = i;
				}
			}
			break;
		default:
			break;
	}
	return reader;
}

Datum
metadata_row_kind(MetadataReader *reader, RowKind kind)
{
	return reader->row_kinds[kind];
}

/* Kafka's text is UTF-8: 22021 where it is not, or does not fit the database. */
static Datum
utf8_to_text(const char *bytes, Size len)
{
	char	   *converted;
	text	   *result;

	if (len > MaxAllocSize / 4)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("text of %zu bytes is too long", len)));
	converted = pg_any_to_server(bytes, (int) len, PG_UTF8);
	if (converted == bytes)
		return PointerGetDatum(cstring_to_text_with_len(bytes, (int) len));
	result = cstring_to_text(converted);
	pfree(converted);
	return PointerGetDatum(result);
}

static Datum
bytes_to_bytea(const char *bytes, Size len)
{
	bytea	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), bytes, len);
	return PointerGetDatum(result);
}

static Datum
read_raw(MetadataReader *reader, const char *bytes, Size len, bool *isnull)
{
	if (bytes == NULL)
	{
		*isnull = true;
		return (Datum) 0;
	}
	return reader->type == BYTEAOID ? bytes_to_bytea(bytes, len) : utf8_to_text(bytes, len);
}

static Datum
read_timestamp(MetadataReader *reader, int64 ms, bool *isnull)
{
	if (ms < 0)
	{
		*isnull = true;
		return (Datum) 0;
	}
	return epoch_millis_datum(ms, reader->type, reader->time_zone);
}

/* ------------------------------------------------------------------------
 * Headers: order and duplicates kept, null told from empty
 * ------------------------------------------------------------------------ */

static void
push_string(JsonbParseState **state, JsonbIteratorToken token, const char *string, Size len)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = (char *) string;
	value.val.string.len = (int) len;
	(void) pushJsonbValue(state, token, &value);
}

/* {"name": .., "value": text or null}, or {"name": .., "base64": ..} for other bytes */
static void
push_header(JsonbParseState **state, const KafkaHeader *header)
{
	char	   *name = pg_any_to_server(header->name, strlen(header->name), PG_UTF8);

	(void) pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	push_string(state, WJB_KEY, "name", 4);
	push_string(state, WJB_VALUE, name, strlen(name));
	if (header->value == NULL)
	{
		JsonbValue	null = {.type = jbvNull};

		push_string(state, WJB_KEY, "value", 5);
		(void) pushJsonbValue(state, WJB_VALUE, &null);
	}
	else if (memchr(header->value, '\0', header->value_len) == NULL &&
			 pg_encoding_verifymbstr(PG_UTF8, header->value, (int) header->value_len) == header->value_len)
	{
		char	   *value = pg_any_to_server(header->value, (int) header->value_len, PG_UTF8);

		push_string(state, WJB_KEY, "value", 5);
		push_string(state, WJB_VALUE, value,
					value == header->value ? header->value_len : strlen(value));
	}
	else
	{
		int			max = pg_b64_enc_len((int) header->value_len);
		char	   *base64 = palloc(max + 1);
		int			len = pg_b64_encode((const void *) header->value, (int) header->value_len, base64, max);

		push_string(state, WJB_KEY, "base64", 6);
		push_string(state, WJB_VALUE, base64, Max(len, 0));
	}
	(void) pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

static Datum
headers_to_jsonb(const KafkaHeader *headers, int n)
{
	JsonbParseState *state = NULL;

	(void) pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		push_header(&state, &headers[i]);
	return JsonbPGetDatum(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_ARRAY, NULL)));
}

static Datum
headers_to_array(MetadataReader *reader, const KafkaHeader *headers, int n)
{
	int			natts = reader->header_desc->natts;
	Datum	   *elements = palloc(sizeof(Datum) * Max(n, 1));
	Datum	   *values = palloc0(sizeof(Datum) * natts);
	bool	   *isnull = palloc(sizeof(bool) * natts);

	for (int i = 0; i < n; i++)
	{
		memset(isnull, true, natts);
		values[reader->name_index] = utf8_to_text(headers[i].name, strlen(headers[i].name));
		isnull[reader->name_index] = false;
		if (headers[i].value)
		{
			values[reader->value_index] = bytes_to_bytea(headers[i].value, headers[i].value_len);
			isnull[reader->value_index] = false;
		}
		elements[i] = HeapTupleGetDatum(heap_form_tuple(reader->header_desc, values, isnull));
	}
	return PointerGetDatum(construct_array(elements, n, reader->element_type, reader->element_len,
										   reader->element_byval, reader->element_align));
}

static Datum
read_headers(MetadataReader *reader, const KafkaRecord *record)
{
	KafkaHeader *headers = NULL;
	int			n = kafka_record_headers(record, &headers);

	return reader->type == JSONBOID ? headers_to_jsonb(headers, n) : headers_to_array(reader, headers, n);
}

/* One text per topic: rows refer to it. */
static Datum
topic_text(MetadataReader *reader, const char *topic)
{
	MemoryContext old;

	for (int i = 0; i < reader->ntopics; i++)
	{
		int			at = (reader->last_topic + i) % reader->ntopics;

		if (strcmp(reader->topics[at].name, topic) == 0)
		{
			reader->last_topic = at;
			return reader->topics[at].text;
		}
	}
	old = MemoryContextSwitchTo(reader->context);
	if (reader->topics == NULL)
		reader->topics = palloc(sizeof(struct TopicText));
	else
		reader->topics = repalloc(reader->topics, sizeof(struct TopicText) * (reader->ntopics + 1));
	reader->topics[reader->ntopics].name = pstrdup(topic);
	reader->topics[reader->ntopics].text = CStringGetTextDatum(topic);
	MemoryContextSwitchTo(old);
	reader->last_topic = reader->ntopics++;
	return reader->topics[reader->last_topic].text;
}

Datum
metadata_read(MetadataReader *reader, const KafkaRecord *record, bool *isnull)
{
	bool		pending = record_is_pending(record);

	*isnull = false;
	switch (reader->kind)
	{
		case META_TOPIC:
			return topic_text(reader, record->topic);
		case META_PARTITION:
			/* a message that is not sent yet may not have one */
			if (record->partition < 0)
				break;
			return reader->type == INT8OID ? Int64GetDatum(record->partition) : Int32GetDatum(record->partition);
		case META_OFFSET:
			if (pending)
				break;
			return Int64GetDatum(record->offset);
		case META_TIMESTAMP:
			return read_timestamp(reader, record->timestamp, isnull);
		case META_TIMESTAMP_TYPE:
			if (pending && record->timestamp < 0)
				break;
			return reader->timestamp_types[record->timestamp_type];
		case META_HEADERS:
			return read_headers(reader, record);
		case META_LEADER_EPOCH:
			if (record->leader_epoch < 0 || pending)
				break;
			return reader->type == INT8OID ? Int64GetDatum(record->leader_epoch) : Int32GetDatum(record->leader_epoch);
		case META_RAW_KEY:
			return read_raw(reader, record->key, record->key_len, isnull);
		case META_RAW_VALUE:
			return read_raw(reader, record->value, record->value_len, isnull);
		case META_ROW_KIND:
		case META_FORMAT:
		case META_NONE:
			break;
	}
	*isnull = true;
	return (Datum) 0;
}
