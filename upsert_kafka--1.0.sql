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

-- === dry runs (src/changelog) ==================================================

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

CREATE FUNCTION wake_workers() RETURNS trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_wake_workers' LANGUAGE C;
COMMENT ON FUNCTION wake_workers() IS 'lets workers look at the registrations again after commit';

-- for rows that do not come through our functions, such as those of a restore
CREATE TRIGGER wake_workers AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON maintained_table
	FOR EACH STATEMENT EXECUTE FUNCTION wake_workers();

CREATE FUNCTION wait_for(target regclass, timeout interval DEFAULT NULL) RETURNS boolean
AS 'MODULE_PATHNAME', 'upsert_kafka_wait_for' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION wait_for(regclass, interval) IS 'waits until all that is committed in the topic now has been applied';

CREATE FUNCTION pause(target regclass) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_pause' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION pause(regclass) IS 'keeps a maintained table as it is until resume';

CREATE FUNCTION resume(target regclass, accept_data_loss boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_resume' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION resume(regclass, boolean) IS 'lets a paused, stopped or restored maintained table go on';

CREATE FUNCTION refresh(target regclass) RETURNS bigint
AS 'MODULE_PATHNAME', 'upsert_kafka_refresh' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION refresh(regclass) IS 'applies what the topic holds now, in this session; returns the number of messages';

CREATE FUNCTION skip(target regclass, partition integer, "offset" bigint) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_skip' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION skip(regclass, integer, bigint) IS 'records the message at which a table has stopped as skipped, and goes on after it';

CREATE FUNCTION retry_errors(target regclass) RETURNS bigint
AS 'MODULE_PATHNAME', 'upsert_kafka_retry_errors' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION retry_errors(regclass) IS 'applies recorded errors again, at their place; returns how many went in';

CREATE FUNCTION rebuild(target regclass, discard_history boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_rebuild' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION rebuild(regclass, boolean) IS 'reads the topic of a maintained table anew from its start';

CREATE FUNCTION worker_progress(OUT target oid, OUT pid integer, OUT lag_messages bigint, OUT end_offsets bigint[],
	OUT rows_per_second double precision, OUT eta interval, OUT messages bigint, OUT bytes bigint, OUT memory bigint,
	OUT last_error text, OUT last_error_at timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'upsert_kafka_worker_progress' LANGUAGE C VOLATILE ROWS 10;
COMMENT ON FUNCTION worker_progress() IS 'what workers tell about tables of this database; see the view progress';

-- One row per partition; columns from rows_per_second on are of the table as a whole.
CREATE VIEW progress WITH (security_barrier) AS
SELECT t.target,
	p.partition,
	CASE WHEN t.system_identifier <> (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c)
		OR t.database_oid <> (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
		THEN 'restored' ELSE t.state END AS phase,
	p.position,
	greatest(w.end_offsets[p.partition], p.position) AS end_offset,
	greatest(w.end_offsets[p.partition] - p.position, 0) AS lag_messages,
	CASE WHEN w.end_offsets[p.partition] > p.position AND p.last_timestamp >= 0
		THEN greatest(extract(epoch FROM pg_catalog.clock_timestamp())::double precision - p.last_timestamp / 1000.0::double precision, 0)
		WHEN w.end_offsets[p.partition] <= p.position THEN 0 END AS lag_seconds,
	w.rows_per_second,
	w.eta,
	w.messages,
	(SELECT count(*) FROM message_error e WHERE e.target = t.target) AS errors,
	w.memory,
	w.pid AS worker,
	w.last_error,
	w.last_error_at
FROM maintained_table t
	LEFT JOIN position_state s ON s.target = t.target
	LEFT JOIN LATERAL ROWS FROM (pg_catalog.unnest(s.partitions), pg_catalog.unnest(s.next_offsets), pg_catalog.unnest(s.last_timestamps))
		AS p (partition, position, last_timestamp) ON true
	LEFT JOIN worker_progress() w ON w.target = t.target
WHERE pg_catalog.has_table_privilege(t.target, 'SELECT');
COMMENT ON VIEW progress IS 'how far maintained tables are, partition by partition';
GRANT SELECT ON progress TO PUBLIC;
