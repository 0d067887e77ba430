-- Values that a change event does not hold: PostgreSQL sends a large value only when it changes, and Debezium puts a
-- marker in its place. A maintained table keeps the value that the row had (C09); the marker is never stored.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
-- refresh() applies here, so that the session sees the warnings
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER una FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create una -p 2 --fresh
CREATE FOREIGN TABLE una_t (id int OPTIONS (key 'true'), v text, n int, b bytea) SERVER una
	OPTIONS (connector 'upsert-kafka', topic 'una', key_format 'json', value_format 'debezium-json');
-- by the order of the log and by event time, with history and without
CREATE FOREIGN TABLE una_at (id int OPTIONS (key 'true'), v text, n int, at timestamptz OPTIONS (metadata 'value.source.timestamp')) SERVER una
	OPTIONS (connector 'upsert-kafka', topic 'una', key_format 'json', value_format 'debezium-json');
CREATE FUNCTION una_refresh() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM upsert_kafka.refresh('una_hist'), upsert_kafka.refresh('una_plain'), upsert_kafka.refresh('una_event');
	RETURN (SELECT string_agg(format('%s: %s %s %s', t, id, coalesce(left(v, 6) || '..' || length(v), 'null'), n), ', ' ORDER BY id, t) FROM (
		SELECT 'hist' AS t, id, v, n FROM una_hist UNION ALL SELECT 'plain', id, v, n FROM una_plain
		UNION ALL SELECT 'event', id, v, n FROM una_event) x);
END $$;
SELECT string_agg(md5(i::text), '') AS big FROM generate_series(1, 250) i \gset
SELECT string_agg(md5((-i)::text), '') AS other FROM generate_series(1, 100) i \gset

-- === C09: three messages in three batches, and in one ===========================
SELECT upsert_kafka.materialize('una_t', 'una_hist'), upsert_kafka.materialize('una_t', 'una_plain', history => false),
	upsert_kafka.materialize('una_at', 'una_event', event_time => 'at', current_by => 'event_time');
SELECT una_refresh();
\o |test/kt produce una
\qecho '{"id":1}|{"before":null,"after":{"id":1,"v":"':big'","n":1,"b":"SGk="},"op":"c","source":{"ts_ms":1000}}'
\o
SELECT una_refresh();
\o |test/kt produce una
\qecho '{"id":1}|{"before":null,"after":{"id":1,"v":"__debezium_unavailable_value","n":2,"b":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="},"op":"u","source":{"ts_ms":2000}}'
\o
SELECT una_refresh();
\o |test/kt produce una
\qecho '{"id":1}|{"before":null,"after":{"id":1,"v":"__debezium_unavailable_value","n":3,"b":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="},"op":"u","source":{"ts_ms":3000}}'
\o
SELECT una_refresh();
SELECT v = :'big' AS same, b FROM una_hist;
-- every version has it
SELECT n, v = :'big' AS same FROM una_event_history ORDER BY n;
-- key 2: all of it in one batch, with a new value between
\o |test/kt produce una
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"':big'","n":1},"op":"c","source":{"ts_ms":1000}}'
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":2},"op":"u","source":{"ts_ms":2000}}'
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"':other'","n":3},"op":"u","source":{"ts_ms":3000}}'
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":4},"op":"u","source":{"ts_ms":4000}}'
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":5},"op":"u","source":{"ts_ms":1500}}'
\o
SELECT una_refresh();
-- the value is that of the message before in the log, not in time: n 5 came last, and is of an earlier moment
SELECT n, length(v), system_time FROM una_event_history WHERE id = 2 ORDER BY system_time;
\o |test/kt produce una
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":6},"op":"u","source":{"ts_ms":6000}}'
\o
SELECT una_refresh();

-- === a first load of the same topic says the same ===============================
DROP TABLE una_hist, una_plain, una_event;
SELECT upsert_kafka.materialize('una_t', 'una_hist'), upsert_kafka.materialize('una_t', 'una_plain', history => false),
	upsert_kafka.materialize('una_at', 'una_event', event_time => 'at', current_by => 'event_time');
SELECT una_refresh();
SELECT n, length(v), system_time FROM una_event_history WHERE id = 2 ORDER BY system_time;
SELECT n, v = :'big' AS same, b FROM una_hist WHERE id = 1;

-- === a key in two partitions: each keeps what its own messages said =============
\o |test/kt produce una -p 1 -t 4000000000000
\qecho '{"id":2}|{"before":null,"after":{"id":2,"v":"one","n":10},"op":"c","source":{"ts_ms":10000}}'
\o
SELECT una_refresh();
\o |test/kt produce una
\qecho '[p=1 ts=4000000001000] {"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":11},"op":"u","source":{"ts_ms":11000}}'
\qecho '[p=0 ts=4000000002000] {"id":2}|{"before":null,"after":{"id":2,"v":"__debezium_unavailable_value","n":12},"op":"u","source":{"ts_ms":12000}}'
\o
SELECT una_refresh();
SELECT n, length(v) FROM una_event_history WHERE id = 2 AND n > 5 ORDER BY n;

-- === X11: nothing to keep =======================================================
-- never seen, or deleted: NULL, and a warning
\o |test/kt produce una
\qecho '{"id":3}|{"before":null,"after":{"id":3,"v":"__debezium_unavailable_value","n":2},"op":"u","source":{"ts_ms":2000}}'
\qecho '{"id":1}|{"before":null,"after":null,"op":"d","source":{"ts_ms":20000}}'
\o
SELECT una_refresh();
\o |test/kt produce una
\qecho '{"id":1}|{"before":null,"after":{"id":1,"v":"__debezium_unavailable_value","n":2},"op":"u","source":{"ts_ms":21000}}'
\o
SELECT una_refresh();
-- how many there were is to be seen afterwards: keys 1 and 3 have no v. A rebuild counts anew
SELECT DISTINCT target, missing_values FROM upsert_kafka.progress ORDER BY 1;
SELECT upsert_kafka.rebuild('una_plain');
SELECT DISTINCT target, missing_values FROM upsert_kafka.progress WHERE target = 'una_plain'::regclass;
SELECT upsert_kafka.refresh('una_plain') > 0 AS read;
SELECT DISTINCT target, missing_values FROM upsert_kafka.progress WHERE target = 'una_plain'::regclass;
-- a scan has nothing but the last message
SELECT * FROM una_at WHERE id = 2;
-- in arrays: the marker, or its bytes; in a map, in uuid[] by its hash
CREATE FOREIGN TABLE una_forms (v text, ta text[], ba bytea[], ia int[], ua uuid[], j jsonb) SERVER una
	OPTIONS (connector 'kafka', topic 'una', value_format 'debezium-json', value_debezium_json_unavailable 'error');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"v":"__debezium_unavailable_value"},"op":"u"}');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"ta":["__debezium_unavailable_value"]},"op":"u"}');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"ba":["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]},"op":"u"}');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"ia":[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]},"op":"u"}');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"j":{"__debezium_unavailable_value":"__debezium_unavailable_value"}},"op":"u"}');
-- what only looks like it
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"v":"__debezium_unavailable_value!","ta":["__debezium_unavailable_value","x"],"ia":[95,95,100]},"op":"u"}');
-- it can be another text
ALTER FOREIGN TABLE una_forms OPTIONS (ADD value_debezium_json_unavailable_value 'n/a', SET value_debezium_json_unavailable 'keep');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"v":"__debezium_unavailable_value","j":{"a":"n/a"}},"op":"u"}');
SELECT upsert_kafka.decode(NULL::una_forms, NULL, '{"after":{"v":"n/a"},"op":"u"}');
-- Java's name-based UUID of those bytes
SELECT upsert_kafka.decode(NULL::una_forms, NULL, convert_to('{"after":{"ua":["' || (overlay(overlay(md5('n/a') placing '3' from 13 for 1)
	placing (('{8,9,a,b}'::text[])[1 + (('x' || substr(md5('n/a'), 17, 1))::bit(4)::int & 3)]) from 17 for 1))::uuid || '"]},"op":"u"}', 'UTF8'));

DROP TABLE una_hist, una_plain, una_event;
DROP FUNCTION una_refresh;
DROP FOREIGN TABLE una_t, una_at, una_forms;
DROP SERVER una;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! test/kt delete una
