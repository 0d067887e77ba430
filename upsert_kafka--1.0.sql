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

CREATE FUNCTION last_written() RETURNS text
AS 'MODULE_PATHNAME', 'upsert_kafka_last_written' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION last_written() IS
	'where the messages of this session''s last transaction that has written to topics end: topic:partition:next_offset,..';

CREATE FUNCTION version(OUT library text, OUT librdkafka text, OUT features text) RETURNS record
AS 'MODULE_PATHNAME', 'upsert_kafka_version' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.version() IS 'versions of this library and of its Kafka client, and what the client was built with';

-- === dry runs (src/changelog) ==================================================

CREATE FUNCTION decode("table" anyelement, key bytea, value bytea) RETURNS SETOF anyelement
AS 'MODULE_PATHNAME', 'upsert_kafka_decode' LANGUAGE C STABLE ROWS 1;
COMMENT ON FUNCTION decode(anyelement, bytea, bytea) IS
	'rows that a message with this key and value (NULL = Kafka null) gives in a foreign table, named by a NULL of its row type';

CREATE FUNCTION encode("row" anyelement, row_kind text DEFAULT '+I', OUT key bytea, OUT value bytea) RETURNS record
AS 'MODULE_PATHNAME', 'upsert_kafka_encode' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION encode(anyelement, text) IS
	'key and value (NULL = Kafka null) of the message that tells of this row of a foreign table: +I, +U, -U or -D';

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
	created_at timestamptz NOT NULL DEFAULT now(),
	missing_values bigint NOT NULL DEFAULT 0	-- that messages left out and no earlier one has told (src/materialize/apply_before.c)
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
COMMENT ON TABLE position_state IS 'next offset to read per partition of each maintained table, by the numbers of topic_source; see the view progress';
SELECT pg_catalog.pg_extension_config_dump('position_state', '');

-- One row per partition that a table over several topics has found, with the number that stands for it wherever a
-- partition is stored: in __partition of versions, in position_state, in errors. Of a table over one plain topic there is no row
-- (until it is given up for another one of its name): the number is the partition. given_up: the topic was deleted; one of the same name has other numbers.
CREATE TABLE topic_source (
	target regclass NOT NULL,
	source integer NOT NULL,
	topic text NOT NULL,
	partition integer NOT NULL,
	given_up boolean NOT NULL DEFAULT false,
	PRIMARY KEY (target, source)
);
COMMENT ON TABLE topic_source IS 'partitions of maintained tables over several topics, and the numbers they are stored under';
SELECT pg_catalog.pg_extension_config_dump('topic_source', '');

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
	truncated_at timestamptz,	-- superseded by a TRUNCATE of the source, then
	PRIMARY KEY (target, partition, "offset")
);
-- a later good message of a key looks for its errors; hash, since a key may be longer than a btree takes
CREATE INDEX message_error_key_text ON message_error USING hash (key_text);
COMMENT ON TABLE message_error IS 'messages that were not applied; see the view errors';
SELECT pg_catalog.pg_extension_config_dump('message_error', '');

-- === functions of maintained tables ============================================

CREATE FUNCTION materialize(
	source regclass, target text, event_time name DEFAULT NULL, history boolean DEFAULT NULL,
	primary_key name[] DEFAULT NULL, on_error text DEFAULT NULL, current_by text DEFAULT 'offset')
RETURNS regclass
AS 'MODULE_PATHNAME', 'upsert_kafka_materialize' LANGUAGE C;
COMMENT ON FUNCTION materialize(regclass, text, name, boolean, name[], text, text)
	IS 'makes a table that is kept up to date with the topic of a foreign table';

CREATE FUNCTION "drop"(target regclass) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_drop' LANGUAGE C STRICT;
COMMENT ON FUNCTION "drop"(regclass) IS 'drops a maintained table with its history and all that belongs to it';

CREATE FUNCTION "position"(target regclass, OUT topic text, OUT partition integer, OUT next_offset bigint) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'upsert_kafka_position' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION "position"(regclass) IS 'the next offset that a maintained table reads from each partition';

-- for the views: is this registration another cluster's or database's, or not yet restored?
CREATE FUNCTION registration_is_copy(target regclass, system_identifier bigint, database_oid oid) RETURNS boolean
AS 'MODULE_PATHNAME', 'upsert_kafka_is_copy' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION registration_is_copy(regclass, bigint, oid) IS 'whether a registration came with a copy of the database';

-- === views =====================================================================

GRANT USAGE ON SCHEMA upsert_kafka TO PUBLIC;

-- A user sees what concerns the tables that he may read; a table that is gone is nobody's.  Texts of errors
-- repeat values, so row security closes them as it closes the raw messages.
CREATE VIEW tables WITH (security_barrier) AS
SELECT m.target,
	m.source,
	(SELECT o.option_value
	 FROM pg_catalog.pg_foreign_table f, pg_catalog.pg_options_to_table(f.ftoptions) o
	 WHERE f.ftrelid = m.source AND pg_catalog.translate(o.option_name, '.-', '__') IN ('topic', 'topic_pattern')) AS topic,
	m.history,
	CASE WHEN upsert_kafka.registration_is_copy(m.target, m.system_identifier, m.database_oid)
		THEN 'restored' ELSE m.state END AS state,
	m.state_since,
	m.error_sqlstate,
	CASE WHEN NOT pg_catalog.row_security_active(m.target) THEN m.error_message END AS error_message,
	COALESCE(s.partition, m.error_partition) AS error_partition,
	m.error_offset,
	m.key_columns,
	m.event_time,
	m.current_by,
	m.on_error,
	(SELECT pg_catalog.count(*) FROM upsert_kafka.message_error e
	 WHERE e.target = m.target AND e.superseded_offset IS NULL) AS errors,
	m.created_at,
	COALESCE(s.topic, CASE WHEN m.error_partition IS NOT NULL THEN p.topic END) AS error_topic
FROM upsert_kafka.maintained_table m
	LEFT JOIN upsert_kafka.topic_source s ON s.target = m.target AND s.source = m.error_partition
	LEFT JOIN upsert_kafka.position_state p ON p.target = m.target
WHERE pg_catalog.has_table_privilege(m.target, 'SELECT');
COMMENT ON VIEW tables IS 'maintained tables: where they come from, how they are kept, in which state they are';
GRANT SELECT ON tables TO PUBLIC;

-- Raw messages show every column of every row: the right to read the whole table is needed, and no row security.
CREATE VIEW errors WITH (security_barrier) AS
SELECT e.target,
	e.topic,
	COALESCE(s.partition, e.partition) AS partition,
	e."offset",
	e."timestamp",
	e.raw_key,
	e.raw_value,
	e.column_name,
	e.sqlstate,
	e.message,
	e.recorded_at,
	e.superseded_offset IS NOT NULL AS superseded
FROM upsert_kafka.message_error e
	LEFT JOIN upsert_kafka.topic_source s ON s.target = e.target AND s.source = e.partition
WHERE pg_catalog.has_table_privilege(e.target, 'SELECT')
	AND NOT pg_catalog.row_security_active(e.target);
COMMENT ON VIEW errors IS 'messages that were not applied; superseded: a later message of the key was';
GRANT SELECT ON errors TO PUBLIC;

-- === DDL on maintained tables ==================================================

CREATE FUNCTION refuse_dml() RETURNS trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_refuse_dml' LANGUAGE C;
COMMENT ON FUNCTION refuse_dml() IS 'guard of maintained tables: only their topic changes them';

CREATE FUNCTION follow_ddl() RETURNS event_trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_follow_ddl' LANGUAGE C;
COMMENT ON FUNCTION follow_ddl() IS 'lets history and registration follow the maintained table';
CREATE EVENT TRIGGER upsert_kafka_follow_ddl ON ddl_command_end
	WHEN TAG IN ('ALTER TABLE', 'ALTER FOREIGN TABLE', 'ALTER INDEX', 'ALTER SCHEMA', 'CREATE TRIGGER', 'GRANT', 'REVOKE')
	EXECUTE FUNCTION follow_ddl();
COMMENT ON EVENT TRIGGER upsert_kafka_follow_ddl IS 'lets history and registration follow maintained tables';

CREATE FUNCTION before_grant() RETURNS event_trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_before_grant' LANGUAGE C;
COMMENT ON FUNCTION before_grant() IS 'lets one GRANT at a time run on a maintained table and its history';
CREATE EVENT TRIGGER upsert_kafka_before_grant ON ddl_command_start
	WHEN TAG IN ('GRANT', 'REVOKE') EXECUTE FUNCTION before_grant();
COMMENT ON EVENT TRIGGER upsert_kafka_before_grant IS 'lets one GRANT at a time run on a maintained table and its history';

CREATE FUNCTION follow_drop() RETURNS event_trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_follow_drop' LANGUAGE C;
COMMENT ON FUNCTION follow_drop() IS 'drops what belongs to a dropped maintained table, and refuses to drop it alone';
CREATE EVENT TRIGGER upsert_kafka_follow_drop ON sql_drop EXECUTE FUNCTION follow_drop();
COMMENT ON EVENT TRIGGER upsert_kafka_follow_drop IS 'drops what belongs to dropped maintained tables';

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

CREATE FUNCTION wait_for(target regclass, bookmark text, timeout interval DEFAULT NULL) RETURNS boolean
AS 'MODULE_PATHNAME', 'upsert_kafka_wait_for_bookmark' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION wait_for(regclass, text, interval) IS 'waits until what last_written() has told of, in any session, has been applied';

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

-- One row per partition; columns from rows_per_second to last_error_at are of the table as a whole.
CREATE VIEW progress WITH (security_barrier) AS
SELECT t.target,
	COALESCE(n.partition, p.partition) AS partition,
	CASE WHEN upsert_kafka.registration_is_copy(t.target, t.system_identifier, t.database_oid)
		THEN 'restored' ELSE t.state END AS phase,
	p.position,
	CASE WHEN w.end_offsets[p.partition] IS NOT NULL THEN greatest(w.end_offsets[p.partition], p.position) END AS end_offset,
	CASE WHEN w.end_offsets[p.partition] IS NOT NULL THEN greatest(w.end_offsets[p.partition] - p.position, 0) END AS lag_messages,
	CASE WHEN w.end_offsets[p.partition] > p.position AND p.last_timestamp >= 0
		THEN greatest(extract(epoch FROM pg_catalog.clock_timestamp())::double precision - p.last_timestamp / 1000.0, 0)
		WHEN w.end_offsets[p.partition] <= p.position THEN 0 END AS lag_seconds,
	w.rows_per_second,
	w.eta,
	w.messages,
	(SELECT pg_catalog.count(*) FROM upsert_kafka.message_error e
	 WHERE e.target = t.target AND e.superseded_offset IS NULL) AS errors,
	t.missing_values,
	w.memory,
	w.pid AS worker,
	CASE WHEN NOT pg_catalog.row_security_active(t.target) THEN w.last_error END AS last_error,
	w.last_error_at,
	COALESCE(n.topic, CASE WHEN p.partition IS NOT NULL THEN s.topic END) AS topic,
	COALESCE(n.given_up, false) AS given_up
FROM upsert_kafka.maintained_table t
	LEFT JOIN upsert_kafka.position_state s ON s.target = t.target
	LEFT JOIN LATERAL ROWS FROM (pg_catalog.unnest(s.partitions), pg_catalog.unnest(s.next_offsets), pg_catalog.unnest(s.last_timestamps))
		AS p (partition, position, last_timestamp) ON true
	LEFT JOIN upsert_kafka.topic_source n ON n.target = t.target AND n.source = p.partition
	LEFT JOIN upsert_kafka.worker_progress() w ON w.target = t.target
WHERE pg_catalog.has_table_privilege(t.target, 'SELECT');
COMMENT ON VIEW progress IS 'how far maintained tables are, partition by partition';
GRANT SELECT ON progress TO PUBLIC;

-- === outbox (src/outbox) =======================================================

-- One row per server and user mapping that exactly-once tables write through.  Names are for a
-- restored copy, where the OIDs and the identity are another database's.
CREATE TABLE outbox_stream (
	stream integer PRIMARY KEY,
	server_name name NOT NULL,
	role_name name,						-- whose mapping; NULL: that of PUBLIC, or none
	server_oid oid NOT NULL,
	role_oid oid NOT NULL,
	system_identifier bigint NOT NULL,	-- of the cluster that may send (decision 16)
	database_oid oid NOT NULL,
	kafka_group text NOT NULL,
	transactional_id text NOT NULL,
	carrier text NOT NULL,				-- topic whose partition 0 the group's offset is stored for
	last_sent bigint NOT NULL DEFAULT 0,
	removed_rows bigint NOT NULL DEFAULT 0,
	removed_bytes bigint NOT NULL DEFAULT 0,
	last_sent_at timestamptz,
	unsettled_since timestamptz,		-- what is in Kafka may be more than last_sent tells
	stopped_seq bigint,
	error_sqlstate text,
	error_message text,
	error_at timestamptz,
	unreadable text						-- bookmark of what is sent, and hidden by another producer's transaction
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_stream IS 'senders of the outbox and how far they are; see the view outbox_status';
SELECT pg_catalog.pg_extension_config_dump('outbox_stream', '');

-- What was ever written to a stream: changed by each transaction that writes to it, hence a table of its own.
CREATE TABLE outbox_counter (
	stream integer PRIMARY KEY,
	last_seq bigint NOT NULL,
	written_rows bigint NOT NULL,
	written_bytes bigint NOT NULL,
	copied_seq bigint						-- in a copy: the last message that its original may have sent
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_counter IS 'what was written to the outbox so far; see the view outbox_status';
SELECT pg_catalog.pg_extension_config_dump('outbox_counter', '');

-- Rows that are sent are deleted at once, so most of the table is dead most of the time.
CREATE TABLE outbox_message (
	stream integer NOT NULL,
	seq bigint NOT NULL,
	transaction_id xid8 NOT NULL,
	source regclass NOT NULL,
	topic text NOT NULL,
	partition integer,					-- NULL: the partitioner decides when it is sent
	partitioner smallint NOT NULL,
	key bytea,
	value bytea,
	"timestamp" timestamptz NOT NULL,
	header_names text[],
	header_values bytea[],
	queued_at timestamptz NOT NULL,
	PRIMARY KEY (stream, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000);
COMMENT ON TABLE outbox_message IS 'messages of exactly-once tables that wait to be sent; see the view outbox';
SELECT pg_catalog.pg_extension_config_dump('outbox_message', '');

CREATE FUNCTION flush_outbox(server name) RETURNS bigint
AS 'MODULE_PATHNAME', 'upsert_kafka_flush_outbox' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION flush_outbox(name) IS 'sends, in this session, what waits in the outbox of a server; returns the number of messages';

CREATE FUNCTION outbox_skip(server name, seq bigint) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_outbox_skip' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION outbox_skip(name, bigint) IS 'removes the message at which the outbox of a server has stopped, and goes on after it';

CREATE FUNCTION resume_outbox(server name, discard boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME', 'upsert_kafka_resume_outbox' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION resume_outbox(name, boolean)
	IS 'lets a stopped outbox go on and a restored one begin to send; discard: throws away what waits';

CREATE FUNCTION outbox_is_copy(system_identifier bigint, database_oid oid, server_oid oid) RETURNS boolean
AS 'MODULE_PATHNAME', 'upsert_kafka_outbox_is_copy' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION outbox_is_copy(bigint, oid, oid) IS 'whether a stream of the outbox came with a copy of the database';

CREATE FUNCTION outbox_sender(stream integer, OUT available boolean, OUT pid integer, OUT last_error text, OUT last_error_at timestamptz)
AS 'MODULE_PATHNAME', 'upsert_kafka_outbox_sender' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION outbox_sender(integer) IS 'the process that sends a stream of the outbox; see the view outbox_status';

CREATE FUNCTION outbox_follow_drop() RETURNS event_trigger
AS 'MODULE_PATHNAME', 'upsert_kafka_outbox_follow_drop' LANGUAGE C;
COMMENT ON FUNCTION outbox_follow_drop() IS 'refuses to drop a server while messages for it wait in the outbox';
CREATE EVENT TRIGGER upsert_kafka_outbox_follow_drop ON sql_drop
	WHEN TAG IN ('DROP SERVER', 'DROP FOREIGN DATA WRAPPER', 'DROP OWNED', 'DROP EXTENSION')
	EXECUTE FUNCTION outbox_follow_drop();
COMMENT ON EVENT TRIGGER upsert_kafka_outbox_follow_drop IS 'refuses to drop a server while messages for it wait in the outbox';

-- for rows that do not come through foreign tables, such as those of a restore
CREATE TRIGGER wake_workers AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON outbox_stream
	FOR EACH STATEMENT EXECUTE FUNCTION wake_workers();

-- One row per server and user mapping, for whoever may use the server.
CREATE VIEW outbox_status WITH (security_barrier) AS
SELECT f.srvname AS server,
	s.role_name AS user_mapping,
	CASE WHEN copied THEN 'restored'
		WHEN s.stopped_seq IS NOT NULL THEN 'stopped'
		WHEN c.written_rows <= s.removed_rows THEN 'idle'
		WHEN w.pid IS NOT NULL THEN 'sending'
		WHEN NOT w.available THEN 'no_sender'
		WHEN w.last_error IS NOT NULL THEN 'retrying'
		ELSE 'waiting' END AS state,
	c.written_rows - s.removed_rows AS waiting_rows,
	c.written_bytes - s.removed_bytes AS waiting_bytes,
	(SELECT m.queued_at FROM upsert_kafka.outbox_message m
	 WHERE m.stream = s.stream AND m.seq > s.last_sent ORDER BY m.stream, m.seq LIMIT 1) AS oldest,
	c.last_seq AS last_written,
	s.last_sent,
	s.last_sent_at,
	s.unreadable,
	s.stopped_seq AS stopped_at,
	w.pid AS sender,
	CASE WHEN s.stopped_seq IS NOT NULL THEN s.error_message ELSE w.last_error END AS last_error,
	CASE WHEN s.stopped_seq IS NOT NULL THEN s.error_at ELSE w.last_error_at END AS last_error_at
FROM upsert_kafka.outbox_stream s
	JOIN upsert_kafka.outbox_counter c ON c.stream = s.stream
	CROSS JOIN LATERAL upsert_kafka.outbox_is_copy(s.system_identifier, s.database_oid, s.server_oid) AS copied
	JOIN pg_catalog.pg_foreign_server f ON CASE WHEN copied THEN f.srvname = s.server_name ELSE f.oid = s.server_oid END
	CROSS JOIN LATERAL upsert_kafka.outbox_sender(s.stream) w
WHERE pg_catalog.has_server_privilege(f.oid, 'USAGE');
COMMENT ON VIEW outbox_status IS 'what waits in the outbox of exactly-once tables, and who sends it';
GRANT SELECT ON outbox_status TO PUBLIC;

-- Messages show every column of every row written through a table: they are its owner's, and when it is gone the server's owner's.
CREATE VIEW outbox WITH (security_barrier) AS
SELECT f.srvname AS server,
	m.seq,
	m.transaction_id,
	m.source,
	m.topic,
	m.partition,
	m.key,
	m.value,
	m."timestamp",
	m.header_names,
	m.header_values,
	m.queued_at
FROM upsert_kafka.outbox_message m
	JOIN upsert_kafka.outbox_stream s ON s.stream = m.stream AND m.seq > s.last_sent
	JOIN pg_catalog.pg_foreign_server f ON CASE WHEN upsert_kafka.outbox_is_copy(s.system_identifier, s.database_oid, s.server_oid)
		THEN f.srvname = s.server_name ELSE f.oid = s.server_oid END
	LEFT JOIN pg_catalog.pg_class r ON r.oid = m.source
WHERE pg_catalog.pg_has_role(coalesce(r.relowner, f.srvowner), 'USAGE');
COMMENT ON VIEW outbox IS 'messages that wait to be sent, for the owners of the tables they were written through, or of the server where these are dropped';
GRANT SELECT ON outbox TO PUBLIC;
