/*
 * options.h
 *	  The options of servers, user mappings, foreign tables and columns, checked
 *	  and resolved into structs.
 *
 * The validator sees one option list at a time (decision 17); topic_table_get()
 * sees them all and raises what spans columns or levels.
 */
#ifndef UK_OPTIONS_H
#define UK_OPTIONS_H

#include "format/format.h"
#include "kafka/kafka.h"
#include "kafka/producer.h"

#include "registry/registry.h"
#include "utils/relcache.h"

typedef enum MetadataKind
{
	META_NONE,
	META_TOPIC,					/* text */
	META_PARTITION,				/* int */
	META_OFFSET,				/* bigint */
	META_TIMESTAMP,				/* timestamptz */
	META_TIMESTAMP_TYPE,		/* text: CreateTime, LogAppendTime, NoTimestampType */
	META_HEADERS,				/* jsonb, or an array of a composite (name text, value bytea) */
	META_LEADER_EPOCH,			/* int */
	META_ROW_KIND,				/* text: +I -U +U -D */
	META_RAW_KEY,				/* bytea */
	META_RAW_VALUE,				/* bytea */
	META_FORMAT					/* what the value's format offers: field is its name */
} MetadataKind;

typedef enum OnError
{
	ON_ERROR_STOP,
	ON_ERROR_SKIP
} OnError;

typedef enum StartupMode
{
	STARTUP_EARLIEST,
	STARTUP_LATEST,
	STARTUP_TIMESTAMP,
	STARTUP_SPECIFIC
} StartupMode;

typedef enum BoundedMode
{
	BOUNDED_LATEST,				/* the last stable offset at scan start: the default */
	BOUNDED_TIMESTAMP,
	BOUNDED_SPECIFIC
} BoundedMode;

typedef enum DeliveryGuarantee
{
	DELIVERY_AT_LEAST_ONCE,		/* the commit waits for all acknowledgements */
	DELIVERY_NONE,				/* it waits for nothing */
	DELIVERY_EXACTLY_ONCE		/* through the outbox (src/outbox) */
} DeliveryGuarantee;

typedef struct PartitionOffset
{
	int32		partition;
	int64		offset;
} PartitionOffset;

typedef struct TopicColumn
{
	AttrNumber	attnum;			/* index in TopicTable.columns is attnum - 1 */
	const char *name;
	Oid			type;			/* InvalidOid: dropped */
	int32		typmod;
	Oid			collation;
	bool		is_key;			/* decoded from the message key */
	bool		not_null;		/* declared NOT NULL, or key of an upsert table */
	MetadataKind metadata;		/* not META_NONE: taken from the record */
	const char *field;			/* name in the message, or of the format's metadata */
} TopicColumn;

/* Everything that a foreign table on a topic says, resolved. */
typedef struct TopicTable
{
	Oid			relid;
	const char *schema_name;
	const char *name;
	Oid			serverid;
	const char *server_name;
	Oid			userid;			/* whose user mapping counts; the current user's, unless the
								 * caller says otherwise */

	bool		upsert;			/* connector upsert-kafka; else kafka (append) */
	bool		changelog;		/* changelog 'true' */
	const char *topic;			/* as given: a name, a list "a;b", or the pattern */
	int			ntopics;		/* 0: there is a pattern */
	const char **topics;
	const char *topic_pattern;	/* NULL: there is a list */
	int			discovery_ms;	/* between looks for new topics and partitions; 0: whenever
								 * a worker looks at the topics, -1: never */

	const FormatRoutine *key_format;	/* NULL: no key columns */
	List	   *key_options;	/* DefElems, prefix stripped */
	const FormatRoutine *value_format;
	List	   *value_options;
	bool		value_has_key;	/* value_fields_include ALL */

	const char *delete_marker;	/* field of the value that says of a row that it is gone; or
								 * NULL */
	const char *delete_marker_value;	/* .. by this text */

	OnError		on_error;
	bool		ignores_errors; /* option ignore_parse_errors, of key or value */
	const char *time_zone;		/* default UTC */

	StartupMode startup_mode;
	int64		startup_timestamp;	/* ms */
	int			nstartup_offsets;
	PartitionOffset *startup_offsets;
	BoundedMode bounded_mode;
	int64		bounded_timestamp;
	int			nbounded_offsets;
	PartitionOffset *bounded_offsets;

	/* writing */
	KafkaPartitioner partitioner;
	DeliveryGuarantee delivery;
	int			window_rows;	/* sink_buffer_flush_*: 0 = every change is sent */
	int			window_ms;
	bool		updatable;
	bool		truncatable;

	int			natts;
	TopicColumn *columns;
	int			nkeys;
	AttrNumber *keys;			/* attnums of the key columns, in column order */

	/* as given; resolved into columns[] */
	List	   *key_fields;		/* column names, NIL: by column options */
	const char *key_fields_prefix;
} TopicTable;

/*
 * May messages be passed by?  Then which ones are must not depend on the columns that a
 * query reads: a message counts only if all of it can be decoded.
 */
static inline bool
topic_table_skips(const TopicTable *table)
{
	return table->on_error == ON_ERROR_SKIP || table->ignores_errors;
}

/* Does it read one topic, which it names?  Then sources are that topic's partitions. */
static inline bool
topic_table_is_plain(const TopicTable *table)
{
	return table->ntopics == 1;
}

/* topic_find.c: is this topic in the list, or does it match the pattern? */
extern bool topic_table_reads(const TopicTable *table, const char *topic);

/* Do values say of their rows what became of them, inserts, updates or deletes? */
static inline bool
topic_table_has_kinds(const TopicTable *table)
{
	return table->value_format->changelog || table->delete_marker != NULL;
}

/* Is this a foreign table (or server) of a wrapper with our validator? */
extern bool topic_table_is_ours(Oid relid);
extern bool topic_server_is_ours(Oid serverid);

/*
 * Options of a foreign table, all checks done.  palloc'd in
 * CurrentMemoryContext.  ERROR HV000 family with a hint; 42809 for a relation
 * that is no foreign table on a topic.
 */
extern TopicTable *topic_table_get(Relation rel);

/*
 * Client configuration for a server as 'userid' sees it.  A missing user mapping
 * is fine.  palloc'd in CurrentMemoryContext.
 */
extern KafkaConfig *kafka_config_get(Oid serverid, Oid userid);

/* The same client, to which the end of a partition is that of open transactions, too. */
extern KafkaConfig *kafka_config_uncommitted(const KafkaConfig *config);

/*
 * The server's schema registry as 'userid' may ask it; url is NULL where there is none.
 * palloc'd in CurrentMemoryContext.
 */
extern RegistryAccess *registry_access_get(Oid serverid, Oid userid);

/*
 * ERROR HV00D invalid option, with the closest of names[] (NULL-terminated) as
 * hint.
 */
extern void option_unknown(const char *name, const char *const *names) pg_attribute_noreturn();

#endif							/* UK_OPTIONS_H */
