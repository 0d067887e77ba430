/* upsert_kafka--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION upsert_kafka" to load this file. \quit

-- === foreign tables on topics (src/fdw) ========================================

CREATE FUNCTION topic_handler() RETURNS fdw_handler
AS 'MODULE_PATHNAME', 'upsert_kafka_topic_handler' LANGUAGE C STRICT;
COMMENT ON FUNCTION topic_handler() IS 'handler of the foreign-data wrapper upsert_kafka';

CREATE FUNCTION topic_validator(options text[], catalog oid) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_topic_validator' LANGUAGE C STRICT;
COMMENT ON FUNCTION topic_validator(text[], oid) IS 'checks one option list of servers, user mappings, foreign tables and columns';

CREATE FOREIGN DATA WRAPPER upsert_kafka HANDLER topic_handler VALIDATOR topic_validator;
COMMENT ON FOREIGN DATA WRAPPER upsert_kafka IS 'Kafka topics as tables';

CREATE FUNCTION topic_ddl_check() RETURNS event_trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_topic_ddl_check' LANGUAGE C;
COMMENT ON FUNCTION topic_ddl_check() IS 'warns of foreign tables on topics that cannot be used as they stand';

CREATE EVENT TRIGGER upsert_kafka_topic_ddl_check ON ddl_command_end
	WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'IMPORT FOREIGN SCHEMA')
	EXECUTE FUNCTION topic_ddl_check();
COMMENT ON EVENT TRIGGER upsert_kafka_topic_ddl_check IS 'warns of foreign tables on topics that cannot be used as they stand';

-- === dry runs (src/changelog) ==================================================

CREATE FUNCTION decode("table" anyelement, key bytea, value bytea) RETURNS SETOF anyelement
AS 'MODULE_PATHNAME', 'upsert_kafka_decode' LANGUAGE C STABLE ROWS 1;
COMMENT ON FUNCTION decode(anyelement, bytea, bytea) IS
	'rows that a message with this key and value (NULL = Kafka null) gives in a foreign table, named by a NULL of its row type';

-- === history tables (src/history) ==============================================

CREATE FUNCTION history_handler() RETURNS fdw_handler
AS 'MODULE_PATHNAME', 'upsert_kafka_history_handler' LANGUAGE C STRICT;
COMMENT ON FUNCTION history_handler() IS 'handler of the foreign-data wrapper upsert_kafka_history';

CREATE FUNCTION history_validator(options text[], catalog oid) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_history_validator' LANGUAGE C STRICT;
COMMENT ON FUNCTION history_validator(text[], oid) IS 'history tables take no options';

CREATE FOREIGN DATA WRAPPER upsert_kafka_history HANDLER history_handler VALIDATOR history_validator;
COMMENT ON FOREIGN DATA WRAPPER upsert_kafka_history IS 'versions of maintained tables';
CREATE SERVER upsert_kafka_history FOREIGN DATA WRAPPER upsert_kafka_history;
COMMENT ON SERVER upsert_kafka_history IS 'versions of maintained tables, in this database';
GRANT USAGE ON FOREIGN SERVER upsert_kafka_history TO PUBLIC;

-- === catalogs of maintained tables (src/materialize) ===========================

-- One row per maintained table.  regclass and name only, so that pg_dump restores it.
CREATE TABLE maintained_table (
	target regclass PRIMARY KEY,
	source regclass NOT NULL,
	versions regclass,
	history regclass,
	origins regclass,
	append boolean NOT NULL DEFAULT false,
	columns name[] NOT NULL,
	source_columns name[] NOT NULL,
	key_columns name[] NOT NULL,
	event_time name,
	current_by text NOT NULL DEFAULT 'offset' CHECK (current_by IN ('offset', 'event_time')),
	on_error text NOT NULL DEFAULT 'stop' CHECK (on_error IN ('stop', 'skip')),
	state text NOT NULL DEFAULT 'backfill'
		CHECK (state IN ('backfill', 'live', 'paused', 'stopped', 'topic_changed', 'data_lost', 'restored')),
	state_since timestamptz NOT NULL DEFAULT now(),
	error_sqlstate text,
	error_message text,
	error_partition integer,
	error_offset bigint,
	system_identifier bigint NOT NULL,	-- of the cluster that may act on this row (decision 16)
	database_oid oid NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE maintained_table IS 'registrations of maintained tables; see the view tables';
SELECT pg_catalog.pg_extension_config_dump('maintained_table', '');

-- One row per maintained table, updated by every apply transaction: HOT, hence the fillfactor.
CREATE TABLE position_state (
	target regclass PRIMARY KEY,
	topic text NOT NULL,
	partitions integer[] NOT NULL,
	next_offsets bigint[] NOT NULL,
	last_offsets bigint[] NOT NULL,
	last_timestamps bigint[] NOT NULL,
	last_hashes bigint[] NOT NULL,
	next_seq bigint NOT NULL DEFAULT 0,
	updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON TABLE position_state IS 'next offset to read per partition of each maintained table; see the view progress';
SELECT pg_catalog.pg_extension_config_dump('position_state', '');

CREATE TABLE message_error (
	target regclass NOT NULL,
	topic text NOT NULL,
	partition integer NOT NULL,
	"offset" bigint NOT NULL,
	"timestamp" timestamptz,
	raw_key bytea,
	raw_value bytea,
	column_name text,
	sqlstate text NOT NULL,
	message text NOT NULL,
	key_text text COLLATE "C",
	superseded_partition integer,
	superseded_offset bigint,
	recorded_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (target, partition, "offset")
);
-- a later good message of a key looks for its errors; hash, since a key may be longer than a btree takes
CREATE INDEX message_error_key_text ON message_error USING hash (key_text);
COMMENT ON TABLE message_error IS 'messages that were not applied; see the view errors';
SELECT pg_catalog.pg_extension_config_dump('message_error', '');

-- === functions of maintained tables ============================================

-- === views =====================================================================

-- === DDL on maintained tables ==================================================

-- === workers ===================================================================
