-- === TRUNCATE of a source, applied (X10): every row that there is goes, at the event's moment ===
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER tru FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create tru --fresh
CREATE FOREIGN TABLE tru_t (id int OPTIONS (key 'true'), v text, at timestamptz OPTIONS (metadata 'value.source.timestamp')) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
\! printf '%s\n' '[ts=1000] {"id":1}|{"after":{"id":1,"v":"a"},"op":"c","source":{"ts_ms":1000}}' '[ts=1000] {"id":2}|{"after":{"id":2,"v":"b"},"op":"c","source":{"ts_ms":1000}}' '[ts=1500] {"id":2}|{"after":null,"op":"d","source":{"ts_ms":1500}}' '[ts=1600] {"id":3}|{"after":{"id":3,"v":"c"},"op":"c","source":{"ts_ms":1600}}' '[ts=2100] ∅|{"source":{"table":"t","ts_ms":2000},"op":"t","ts_ms":2050}' '[ts=3000] {"id":1}|{"after":{"id":1,"v":"again"},"op":"c","source":{"ts_ms":3000}}' | test/kt produce tru

-- === what a message means, and what a topic's state is ========================
SELECT * FROM upsert_kafka.decode(NULL::tru_t, NULL, '{"source":{"table":"t"},"op":"t"}');
-- whatever the key
SELECT * FROM upsert_kafka.decode(NULL::tru_t, '{"id":"no number"}', '{"schema":{},"payload":{"source":{"table":"t"},"op":"t"}}');
SELECT * FROM tru_t;
SELECT count(*) FROM tru_t;
SELECT * FROM tru_t WHERE id = 3;
-- changes of state are another matter
ALTER FOREIGN TABLE tru_t OPTIONS (ADD changelog 'true');

-- === maintained tables: a first load, and a feed in batches of every size, say the same ===
SELECT upsert_kafka.materialize('tru_t', 'tru_load', event_time => 'at'), upsert_kafka.materialize('tru_t', 'tru_plain', history => false),
	upsert_kafka.materialize('tru_t', 'tru_event', event_time => 'at', current_by => 'event_time'), upsert_kafka.materialize('tru_t', 'tru_kafka');
CREATE FUNCTION tru_refresh() RETURNS TABLE (what text, rows text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM upsert_kafka.refresh('tru_load'), upsert_kafka.refresh('tru_plain'), upsert_kafka.refresh('tru_event'), upsert_kafka.refresh('tru_kafka');
	RETURN QUERY SELECT t, string_agg(format('%s %s', id, v), ', ' ORDER BY id) FROM (SELECT 'load' AS t, id, v FROM tru_load UNION ALL SELECT 'plain', id, v FROM tru_plain
		UNION ALL SELECT 'event', id, v FROM tru_event UNION ALL SELECT 'kafka', id, v FROM tru_kafka) x GROUP BY t ORDER BY t;
END $$;
CREATE FUNCTION tru_versions(OUT what text, OUT id int, OUT v text, OUT system_time tstzrange) RETURNS SETOF record LANGUAGE sql AS $$
	SELECT 'load', id, v, system_time FROM tru_load_history UNION ALL SELECT 'event', id, v, system_time FROM tru_event_history
	UNION ALL SELECT 'kafka', id, v, system_time FROM tru_kafka_history ORDER BY 1, 2, 4 $$;
SELECT * FROM tru_refresh();
-- at the moment that the source tells, or Kafka's, where no event time is asked for
SELECT * FROM tru_versions();
CREATE TABLE tru_first AS SELECT * FROM tru_versions();
-- live: the same messages once more, with more rows, two truncations in a row, and a row between them in one batch
\! printf '%s\n' '[ts=4000] {"id":4}|{"after":{"id":4,"v":"d"},"op":"c","source":{"ts_ms":4000}}' '[ts=5000] ∅|{"source":{"table":"t","ts_ms":5000},"op":"t"}' '[ts=5100] ∅|{"source":{"table":"t","ts_ms":5100},"op":"t"}' '[ts=5200] {"id":5}|{"after":{"id":5,"v":"e"},"op":"c","source":{"ts_ms":5200}}' '[ts=5300] {"id":1}|{"after":{"id":1,"v":"third"},"op":"c","source":{"ts_ms":5300}}' '[ts=6000] ∅|{"source":{"table":"t","ts_ms":6000},"op":"t"}' '[ts=7000] {"id":5}|{"after":{"id":5,"v":"e2"},"op":"c","source":{"ts_ms":7000}}' | test/kt produce tru
SELECT * FROM tru_refresh();
CREATE TABLE tru_fed AS SELECT * FROM tru_versions();
SELECT * FROM tru_fed WHERE what = 'load' ORDER BY id, system_time;
-- what was there before has stayed, but for what has ended since
SELECT f.* FROM tru_first f LEFT JOIN tru_fed d USING (what, id, v, system_time) WHERE d.what IS NULL ORDER BY 1, 2;
SELECT f.id, f.v FROM tru_load__as_of('1970-01-01 00:00:05.25+00') f ORDER BY 1;
SELECT f.id, f.v FROM tru_load__as_of('1970-01-01 00:00:05.05+00') f ORDER BY 1;
-- read anew: by rebuild, which keeps versions, and from nothing
SELECT upsert_kafka.rebuild('tru_load'), upsert_kafka.rebuild('tru_event', discard_history => true), upsert_kafka.rebuild('tru_plain', discard_history => true);
SELECT * FROM tru_refresh();
SELECT * FROM (TABLE tru_fed EXCEPT ALL SELECT * FROM tru_versions()) x UNION ALL (SELECT * FROM tru_versions() EXCEPT ALL TABLE tru_fed);
-- message by message
DROP TABLE tru_load, tru_event, tru_kafka, tru_plain;
SET upsert_kafka.batch_rows = 1;
SELECT upsert_kafka.materialize('tru_t', 'tru_load', event_time => 'at'), upsert_kafka.materialize('tru_t', 'tru_plain', history => false),
	upsert_kafka.materialize('tru_t', 'tru_event', event_time => 'at', current_by => 'event_time'), upsert_kafka.materialize('tru_t', 'tru_kafka');
SELECT * FROM tru_refresh();
SELECT * FROM (TABLE tru_fed EXCEPT ALL SELECT * FROM tru_versions()) x UNION ALL (SELECT * FROM tru_versions() EXCEPT ALL TABLE tru_fed);
RESET upsert_kafka.batch_rows;

-- === errors before it are no more to be mended, and do not come back ==========
\! test/kt create tru_bad --fresh
CREATE DOMAIN tru_small AS int CONSTRAINT small CHECK (VALUE < 10);
CREATE FOREIGN TABLE tru_bad (id int OPTIONS (key 'true'), n tru_small) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru_bad', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply', on_error 'skip');
SELECT upsert_kafka.materialize('tru_bad', 'tru_mended');
\! printf '%s\n' '[ts=1000] {"id":1}|{"after":{"id":1,"n":11},"op":"c"}' '[ts=1000] {"id":2}|{"after":{"id":2,"n":2},"op":"c"}' '[ts=2000] ∅|{"op":"t"}' '[ts=3000] {"id":3}|{"after":{"id":3,"n":13},"op":"c"}' | test/kt produce tru_bad
SELECT upsert_kafka.refresh('tru_mended');
SELECT "offset", superseded_offset, truncated_at FROM upsert_kafka.message_error WHERE target = 'tru_mended'::regclass ORDER BY 1;
SELECT DISTINCT errors FROM upsert_kafka.progress WHERE target = 'tru_mended'::regclass;
ALTER DOMAIN tru_small DROP CONSTRAINT small;
SELECT upsert_kafka.retry_errors('tru_mended');
-- key 3 is there, what was before has gone, and its history is told
SELECT * FROM tru_mended;
SELECT id, n, system_time FROM tru_mended_history ORDER BY id;

-- === other formats, and logs of changes ========================================
\! test/kt create tru_canal --fresh
CREATE FOREIGN TABLE tru_canal (id int, v text, kind text OPTIONS (metadata 'row_kind'), at timestamptz OPTIONS (metadata 'value.event-timestamp')) SERVER tru
	OPTIONS (connector 'kafka', topic 'tru_canal', value_format 'canal-json', value_canal_json_truncate 'apply', value_canal_json_table_include 't');
\! printf '%s\n' '[ts=1000] ∅|{"data":[{"id":"1","v":"a"},{"id":"2","v":"b"}],"table":"t","es":900,"type":"INSERT"}' '[ts=1500] ∅|{"data":null,"table":"other","es":1400,"isDdl":true,"type":"TRUNCATE"}' '[ts=2000] ∅|{"data":null,"table":"t","es":1900,"isDdl":true,"type":"TRUNCATE"}' '[ts=3000] ∅|{"data":[{"id":"2","v":"c"}],"table":"t","es":2900,"type":"INSERT"}' | test/kt produce tru_canal
-- a log shows rows, of which it is none
SELECT id, v, kind FROM tru_canal;
SELECT upsert_kafka.materialize('tru_canal', 'tru_rows', primary_key => '{id}', event_time => 'at');
SELECT upsert_kafka.refresh('tru_rows');
SELECT id, v FROM tru_rows;
SELECT id, v, system_time FROM tru_rows_history ORDER BY id, system_time;
CREATE FOREIGN TABLE tru_ogg (id int OPTIONS (key 'true'), v text) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru', key_format 'json', value_format 'ogg-json', value_ogg_json_truncate 'apply');
SELECT * FROM upsert_kafka.decode(NULL::tru_ogg, NULL, '{"op_type":"T","table":"t"}');

-- === several partitions have no common order: an error, as without the option ===
\! test/kt create tru_wide -p 2 --fresh
\! printf '%s\n' '[ts=1000] {"id":1}|{"after":{"id":1,"v":"a"},"op":"c"}' '[ts=2000] ∅|{"op":"t"}' '[ts=3000] {"id":2}|{"after":{"id":2,"v":"b"},"op":"c"}' | test/kt produce tru_wide
CREATE FOREIGN TABLE tru_wide (id int OPTIONS (key 'true'), v text) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru_wide', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
SELECT * FROM tru_wide;
ALTER FOREIGN TABLE tru_wide OPTIONS (ADD on_error 'skip');
SELECT * FROM tru_wide ORDER BY id;
ALTER FOREIGN TABLE tru_wide OPTIONS (DROP on_error);
SELECT upsert_kafka.materialize('tru_wide', 'tru_stopped');
SELECT upsert_kafka.refresh('tru_stopped');
SELECT state, error_sqlstate, error_offset, error_message FROM upsert_kafka.tables WHERE target = 'tru_stopped'::regclass;
SELECT upsert_kafka.skip('tru_stopped', 0, 1);
SELECT upsert_kafka.refresh('tru_stopped');
SELECT * FROM tru_stopped ORDER BY id;
-- nor have several topics
\! test/kt create tru_other --fresh
\! printf '%s\n' '[ts=1000] {"id":4}|{"after":{"id":4,"v":"d"},"op":"c"}' | test/kt produce tru_other
CREATE FOREIGN TABLE tru_topics (id int OPTIONS (key 'true'), v text) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru_bad;tru_other', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
SELECT id FROM tru_topics;
SELECT upsert_kafka.materialize('tru_topics', 'tru_of_topics');
SELECT upsert_kafka.refresh('tru_of_topics') > 0 AS applied;
SELECT state, error_sqlstate, error_offset FROM upsert_kafka.tables WHERE target = 'tru_of_topics'::regclass;
-- a way out: go past it, and delete what is older by the source's own time; the tombstones go where the rows are
\! test/kt create tru_out -p 2 --fresh
\! printf '%s\n' '[p=0] {"id":1}|{"after":{"id":1,"v":"a"},"op":"c","source":{"ts_ms":1000}}' '[p=1] {"id":2}|{"after":{"id":2,"v":"b"},"op":"c","source":{"ts_ms":1000}}' '[p=0] ∅|{"op":"t","source":{"ts_ms":2000}}' '[p=1] {"id":3}|{"after":{"id":3,"v":"c"},"op":"c","source":{"ts_ms":2000}}' '[p=0] {"id":4}|{"after":{"id":4,"v":"d"},"op":"c","source":{"ts_ms":3000}}' | test/kt produce tru_out
CREATE FOREIGN TABLE tru_out (id int OPTIONS (key 'true'), v text, at timestamptz OPTIONS (metadata 'value.source.timestamp')) SERVER tru
	OPTIONS (connector 'upsert-kafka', topic 'tru_out', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
SELECT upsert_kafka.materialize('tru_out', 'tru_went_on');
SELECT upsert_kafka.refresh('tru_went_on') > 0 AS read;
ALTER FOREIGN TABLE tru_out OPTIONS (SET value_debezium_json_truncate 'ignore');
SELECT state, error_sqlstate FROM upsert_kafka.tables WHERE target = 'tru_went_on'::regclass;
SELECT upsert_kafka.resume('tru_went_on');
SELECT upsert_kafka.refresh('tru_went_on') > 0 AS read;
SELECT * FROM tru_went_on ORDER BY id;
DELETE FROM tru_out WHERE at < '1970-01-01 00:00:02+00';
SELECT upsert_kafka.refresh('tru_went_on') > 0 AS read;
SELECT * FROM tru_went_on ORDER BY id;
SELECT * FROM tru_out ORDER BY id;
\! for p in 0 1; do test/kt consume tru_out -p $p | tail -1; done

SET client_min_messages = warning;
DROP FUNCTION tru_refresh, tru_versions;
DROP TABLE tru_load, tru_event, tru_kafka, tru_plain, tru_mended, tru_rows, tru_stopped, tru_of_topics, tru_went_on, tru_first, tru_fed;
DROP SERVER tru CASCADE;
DROP DOMAIN tru_small;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in tru tru_bad tru_canal tru_wide tru_other tru_out; do test/kt delete $t; done
