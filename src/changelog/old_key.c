/*
 * old_key.c
 *	  The key that a row had before, from a message's header.
 *
 * Kafka Connect writes headers by a converter of their own: by default as JSON without a
 * schema, else as JSON with one, whatever the formats of keys and values are.  What is
 * no such object tells no key, and is no fault of the message, which is whole without it.
 */
#include "postgres.h"

#include "changelog/columns.h"
#include "changelog/old_key.h"
#include "format/formats.h"
#include "format/lenient.h"

struct OldKeyReader
{
	const FormatRoutine *format;	/* of the values */
	Decoder    *decoder;
	int			natts;
	int			nkeys;
	const AttrNumber *keys;
};

typedef struct OldKey
{
	OldKeyReader *reader;
	const KafkaHeader *header;
	RowSink		sink;
} OldKey;

OldKeyReader *
old_key_reader_create(const TopicTable *table, int nkeys, const AttrNumber *keys)
{
	OldKeyReader *reader = palloc0(sizeof(OldKeyReader));
	FormatColumn *columns = palloc0(sizeof(FormatColumn) * nkeys);
	DecoderSpec spec = {0};

	for (int k = 0; k < nkeys; k++)
		format_column_init(&columns[k], &table->columns[keys[k] - 1]);
	spec.ncolumns = spec.nfields = nkeys;
	spec.columns = spec.fields = columns;
	spec.is_key = true;
	spec.connect = true;
	spec.time_zone = table->time_zone;
	/* the options of a JSON key say how its values are spelled, and so are the header's */
	if (table->key_format == &json_format)
		spec.options = table->key_options;
	reader->format = table->value_format;
	reader->decoder = json_format.create(&spec);
	reader->natts = table->natts;
	reader->nkeys = nkeys;
	reader->keys = keys;
	return reader;
}

/* The last one of that name, or NULL. */
static const KafkaHeader *
find_header(const KafkaRecord *record, const char *name)
{
	KafkaHeader *headers = NULL;

	for (int i = kafka_record_headers(record, &headers) - 1; i >= 0; i--)
		if (strcmp(headers[i].name, name) == 0 && headers[i].value != NULL)
			return &headers[i];
	return NULL;
}

static void
no_emit(RowSink *sink, RowKind kind)
{
}

static void
decode_header(void *arg)
{
	OldKey	   *key = arg;

	json_format.decode(key->reader->decoder, key->header->value, key->header->value_len, &key->sink);
}

const Datum *
old_key_read(OldKeyReader *reader, const KafkaRecord *record)
{
	OldKey		key = {.reader = reader};
	bool		known;

	key.header = find_header(record, reader->format->old_key_header);
	if (key.header == NULL)
		return NULL;
	key.sink.values = palloc0(sizeof(Datum) * reader->natts);
	key.sink.isnull = palloc(sizeof(bool) * reader->natts);
	memset(key.sink.isnull, true, sizeof(bool) * reader->natts);
	key.sink.emit = no_emit;
	known = lenient_convert(decode_header, &key);
	for (int k = 0; k < reader->nkeys; k++)
		known = known && !key.sink.isnull[reader->keys[k] - 1];
	pfree(key.sink.isnull);
	return known ? key.sink.values : NULL;
}

bool
old_key_moves(const OldKeyReader *reader, const KafkaRecord *record)
{
	return find_header(record, reader->format->new_key_header) != NULL;
}
