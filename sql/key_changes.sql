-- Rows whose key changes at the source: Debezium sends a delete, a tombstone and a row under the new key, whose headers name the other key.
-- Large values that did not change are not in it (PostgreSQL, REPLICA IDENTITY DEFAULT): they are those of the old key's row (C09).
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
-- refresh() applies here, so that the session sees the warnings
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER kch FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create kch --fresh
-- keyed by the message key, and a log of changes whose rows bear their key
CREATE FOREIGN TABLE kch_t (id int OPTIONS (key 'true'), v text, n int, at timestamptz OPTIONS (metadata 'value.source.timestamp')) SERVER kch
	OPTIONS (connector 'upsert-kafka', topic 'kch', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
CREATE FOREIGN TABLE kch_l (id int, v text, n int) SERVER kch
	OPTIONS (connector 'kafka', topic 'kch', value_format 'debezium-json', value_debezium_json_truncate 'apply');
CREATE FUNCTION kch_make() RETURNS void LANGUAGE sql AS $$
	SELECT upsert_kafka.materialize('kch_t', 'kch_hist'), upsert_kafka.materialize('kch_t', 'kch_plain', history => false),
		upsert_kafka.materialize('kch_t', 'kch_event', event_time => 'at', current_by => 'event_time'),
		upsert_kafka.materialize('kch_l', 'kch_log', primary_key => '{id}'), upsert_kafka.materialize('kch_l', 'kch_log_plain', primary_key => '{id}', history => false) $$;
CREATE FUNCTION kch_refresh(OUT tables text, OUT rows text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	PERFORM upsert_kafka.refresh('kch_hist'), upsert_kafka.refresh('kch_plain'), upsert_kafka.refresh('kch_event'),
		upsert_kafka.refresh('kch_log'), upsert_kafka.refresh('kch_log_plain');
	RETURN QUERY SELECT string_agg(t, ' ' ORDER BY t), x.rows FROM (SELECT t, string_agg(format('%s %s %s', id, coalesce(v, 'null'), n), ', ' ORDER BY id) AS rows
		FROM (SELECT 'hist' AS t, id, v, n FROM kch_hist UNION ALL SELECT 'plain', id, v, n FROM kch_plain UNION ALL SELECT 'event', id, v, n FROM kch_event
			UNION ALL SELECT 'log', id, v, n FROM kch_log UNION ALL SELECT 'log_plain', id, v, n FROM kch_log_plain) y GROUP BY t) x GROUP BY x.rows ORDER BY 1;
END $$;

-- === three messages, in three batches and in one ==================================
SELECT kch_make();
SELECT * FROM kch_refresh();
\! printf '%s\n' '{"id":1}|{"after":{"id":1,"v":"big","n":1},"op":"c","source":{"ts_ms":1000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
\! printf '%s\n' '[h=__debezium.newkey:{"id":2}] {"id":1}|{"before":{"id":1},"op":"d","source":{"ts_ms":2000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
\! printf '%s\n' '{"id":1}|∅' | test/kt produce kch
SELECT * FROM kch_refresh();
\! printf '%s\n' '[h=__debezium.oldkey:{"id":1}] {"id":2}|{"after":{"id":2,"v":"__debezium_unavailable_value","n":1},"op":"c","source":{"ts_ms":2000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
-- in one batch: a chain of changes (the header's schema is Connect's), and the first key again meanwhile, by another row that moves in its turn
\o |test/kt produce kch
\qecho '{"id":2}|{"after":{"id":2,"v":"__debezium_unavailable_value","n":2},"op":"u","source":{"ts_ms":3000}}'
\qecho '{"id":1}|{"after":{"id":1,"v":"other","n":10},"op":"c","source":{"ts_ms":3000}}'
\qecho '[h=__debezium.newkey:{"id":3}] {"id":2}|{"before":{"id":2},"op":"d","source":{"ts_ms":4000}}'
\qecho '{"id":2}|∅'
\qecho '[h=__debezium.oldkey:''{"schema":{"type":"struct","fields":[{"field":"id","type":"int32"}]},"payload":{"id":2}}''] {"id":3}|{"after":{"id":3,"v":"__debezium_unavailable_value","n":2},"op":"c","source":{"ts_ms":4000}}'
\qecho '{"id":3}|{"after":{"id":3,"v":"__debezium_unavailable_value","n":3},"op":"u","source":{"ts_ms":4500}}'
\qecho '[h=__debezium.newkey:{"id":2}] {"id":1}|{"before":{"id":1},"op":"d","source":{"ts_ms":5000}}'
\qecho '{"id":1}|∅'
\qecho '[h=__debezium.oldkey:{"id":1}] {"id":2}|{"after":{"id":2,"v":"__debezium_unavailable_value","n":11},"op":"c","source":{"ts_ms":5000}}'
\o
SELECT * FROM kch_refresh();
-- and back: once more, after the connector had not noted that it had sent it
\! printf '%s\n' '[h=__debezium.newkey:{"id":1}] {"id":3}|{"before":{"id":3},"op":"d","source":{"ts_ms":6000}}' '{"id":3}|∅' '[h=__debezium.oldkey:{"id":3}] {"id":1}|{"after":{"id":1,"v":"__debezium_unavailable_value","n":4},"op":"c","source":{"ts_ms":6000}}' '[h=__debezium.newkey:{"id":1}] {"id":3}|{"before":{"id":3},"op":"d","source":{"ts_ms":6000}}' '{"id":3}|∅' '[h=__debezium.oldkey:{"id":3}] {"id":1}|{"after":{"id":1,"v":"__debezium_unavailable_value","n":4},"op":"c","source":{"ts_ms":6000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
SELECT id, v, n, system_time FROM kch_event_history ORDER BY system_time, id;
CREATE TABLE kch_fed AS SELECT * FROM kch_event_history;

-- === a first load of the same topic says the same, and a rebuild =================
DROP TABLE kch_hist, kch_plain, kch_event, kch_log, kch_log_plain;
SELECT kch_make();
SELECT * FROM kch_refresh();
SELECT * FROM (TABLE kch_fed EXCEPT ALL TABLE kch_event_history) x UNION ALL (TABLE kch_event_history EXCEPT ALL TABLE kch_fed);
SELECT upsert_kafka.rebuild('kch_event'), upsert_kafka.rebuild('kch_plain');
SELECT * FROM kch_refresh();
SELECT * FROM (TABLE kch_fed EXCEPT ALL TABLE kch_event_history) x UNION ALL (TABLE kch_event_history EXCEPT ALL TABLE kch_fed);
SELECT DISTINCT missing_values FROM upsert_kafka.progress WHERE target::text LIKE 'kch%';

-- === X11: where there is nothing to take =========================================
-- the old key was never seen; the header is not to be read (Connect's StringConverter), or is of another kind
\! printf '%s\n' '[h=__debezium.oldkey:{"id":70}] {"id":71}|{"after":{"id":71,"v":"__debezium_unavailable_value","n":1},"op":"c","source":{"ts_ms":7000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
\! printf '%s\n' '{"id":80}|{"after":{"id":80,"v":"eighty","n":1},"op":"c","source":{"ts_ms":8000}}' '[h=__debezium.newkey:Struct{id=81}] {"id":80}|{"before":{"id":80},"op":"d","source":{"ts_ms":9000}}' '[h=__debezium.oldkey:Struct{id=80}] {"id":81}|{"after":{"id":81,"v":"__debezium_unavailable_value","n":1},"op":"c","source":{"ts_ms":9000}}' '[h=__debezium.oldkey:{"id":"eighty"}] {"id":82}|{"after":{"id":82,"v":"__debezium_unavailable_value","n":1},"op":"c","source":{"ts_ms":9000}}' '[h=__debezium.oldkey] {"id":83}|{"after":{"id":83,"v":"__debezium_unavailable_value","n":1},"op":"c","source":{"ts_ms":9000}}' | test/kt produce kch
SELECT * FROM kch_refresh();
DROP TABLE kch_hist, kch_plain, kch_event, kch_log, kch_log_plain;
-- the other key's messages are in another partition, of which nothing tells how far they had come
\! test/kt create kch_wide -p 2 --fresh
\! printf '%s\n' '[p=0] {"id":1}|{"after":{"id":1,"v":"one","n":1},"op":"c"}' '[p=0 h=__debezium.newkey:{"id":2}] {"id":1}|{"before":{"id":1},"op":"d"}' '[p=1 h=__debezium.oldkey:{"id":1}] {"id":2}|{"after":{"id":2,"v":"__debezium_unavailable_value","n":1},"op":"c"}' '[p=1] {"id":3}|{"after":{"id":3,"v":"three","n":1},"op":"c"}' '[p=1 h=__debezium.newkey:{"id":4}] {"id":3}|{"before":{"id":3},"op":"d"}' '[p=1 h=__debezium.oldkey:{"id":3}] {"id":4}|{"after":{"id":4,"v":"__debezium_unavailable_value","n":1},"op":"c"}' | test/kt produce kch_wide
CREATE FOREIGN TABLE kch_wide (id int OPTIONS (key 'true'), v text, n int) SERVER kch
	OPTIONS (connector 'upsert-kafka', topic 'kch_wide', key_format 'json', value_format 'debezium-json');
SELECT upsert_kafka.materialize('kch_wide', 'kch_of_two'), upsert_kafka.materialize('kch_wide', 'kch_of_two_plain', history => false);
SELECT upsert_kafka.refresh('kch_of_two'), upsert_kafka.refresh('kch_of_two_plain');
SELECT * FROM kch_of_two ORDER BY id;
SELECT * FROM kch_of_two_plain ORDER BY id;
SELECT target, missing_values FROM upsert_kafka.progress WHERE target::text LIKE 'kch_of%' AND missing_values > 0 GROUP BY 1, 2 ORDER BY 1;
-- a scan has the last messages only
SELECT * FROM kch_wide ORDER BY id;

-- === one message for both keys: the primary key of a log is not that of the messages =
\! test/kt create kch_one --fresh
\! printf '%s\n' '{"code":"x"}|{"after":{"id":1,"code":"x","v":"one"},"op":"c"}' '{"code":"x"}|{"before":{"id":1},"after":{"id":2,"code":"x","v":"__debezium_unavailable_value"},"op":"u"}' '{"code":"x"}|{"before":{"id":2},"after":{"id":3,"code":"x","v":"__debezium_unavailable_value"},"op":"u"}' | test/kt produce kch_one
CREATE FOREIGN TABLE kch_one (id int, code text, v text) SERVER kch OPTIONS (connector 'kafka', topic 'kch_one', value_format 'debezium-json');
SELECT upsert_kafka.materialize('kch_one', 'kch_code', primary_key => '{id}'), upsert_kafka.materialize('kch_one', 'kch_code_plain', primary_key => '{id}', history => false);
SELECT upsert_kafka.refresh('kch_code'), upsert_kafka.refresh('kch_code_plain');
SELECT * FROM kch_code UNION ALL SELECT * FROM kch_code_plain;
SELECT id, v FROM kch_code__between('-infinity', 'infinity') ORDER BY id;
-- GoldenGate's compressed updates: columns that did not change are not there
\! test/kt create kch_ogg --fresh
\! printf '%s\n' '∅|{"op_type":"I","after":{"id":1,"v":"one","n":1}}' '∅|{"op_type":"U","before":{"id":1},"after":{"id":2,"n":2}}' '∅|{"op_type":"I","after":{"id":1,"v":"another","n":1}}' '∅|{"op_type":"U","before":{"id":2},"after":{"id":3}}' | test/kt produce kch_ogg
CREATE FOREIGN TABLE kch_ogg (id int, v text, n int) SERVER kch OPTIONS (connector 'kafka', topic 'kch_ogg', value_format 'ogg-json');
SELECT upsert_kafka.materialize('kch_ogg', 'kch_gate', primary_key => '{id}'), upsert_kafka.materialize('kch_ogg', 'kch_gate_plain', primary_key => '{id}', history => false);
SELECT upsert_kafka.refresh('kch_gate'), upsert_kafka.refresh('kch_gate_plain');
(SELECT * FROM kch_gate ORDER BY id) UNION ALL (SELECT * FROM kch_gate_plain ORDER BY id);

-- === at random: what the source has, whatever the batches ==========================
-- inserts, updates that leave v alone or not, deletes, key changes, truncations of a table of few keys
CREATE TABLE kch_source (id int PRIMARY KEY, v text, n int);
CREATE TABLE kch_messages (i int GENERATED ALWAYS AS IDENTITY, line text);
CREATE FUNCTION kch_say(headers text, key int, op text, v text, n int, ms int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO kch_messages (line) SELECT format('[%sts=%s] {"id":%s}|%s', headers, ms, key,
		CASE op WHEN '' THEN '∅' WHEN 'd' THEN json_build_object('before', json_build_object('id', key), 'op', op, 'source', json_build_object('ts_ms', ms))::text
		ELSE json_build_object('after', json_build_object('id', key, 'v', v, 'n', n), 'op', op, 'source', json_build_object('ts_ms', ms))::text END) $$;
CREATE FUNCTION kch_work(steps int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	there kch_source;
	other int;
	what float;
	ms int;
	unchanged constant text = '__debezium_unavailable_value';
BEGIN
	FOR i IN 1 .. steps LOOP
		what := random();
		ms := 1000000 + (SELECT count(*) FROM kch_messages) * 10;
		SELECT * INTO there FROM kch_source ORDER BY random() LIMIT 1;
		SELECT g INTO other FROM generate_series(1, 9) g WHERE g NOT IN (SELECT id FROM kch_source) ORDER BY random() LIMIT 1;
		IF there.id IS NULL OR (what < 0.2 AND other IS NOT NULL) THEN
			INSERT INTO kch_source VALUES (other, 'v' || i, i);
			PERFORM kch_say('', other, 'c', 'v' || i, i, ms);
		ELSIF what < 0.3 THEN
			UPDATE kch_source SET v = 'v' || i, n = i WHERE id = there.id;
			PERFORM kch_say('', there.id, 'u', 'v' || i, i, ms);
		ELSIF what < 0.5 THEN
			UPDATE kch_source SET n = i WHERE id = there.id;
			PERFORM kch_say('', there.id, 'u', unchanged, i, ms);
		ELSIF what < 0.6 THEN
			DELETE FROM kch_source WHERE id = there.id;
			PERFORM kch_say('', there.id, 'd', NULL, NULL, ms), kch_say('', there.id, '', NULL, NULL, ms);
		ELSIF what < 0.98 AND other IS NOT NULL THEN
			UPDATE kch_source SET id = other, n = i WHERE id = there.id;
			PERFORM kch_say(format('h=__debezium.newkey:{"id":%s} ', other), there.id, 'd', NULL, NULL, ms), kch_say('', there.id, '', NULL, NULL, ms),
				kch_say(format('h=__debezium.oldkey:{"id":%s} ', there.id), other, 'c', unchanged, i, ms);
		ELSIF what >= 0.98 THEN
			DELETE FROM kch_source;
			INSERT INTO kch_messages (line) VALUES (format('[ts=%s] ∅|{"op":"t","source":{"ts_ms":%s}}', ms, ms));
		END IF;
	END LOOP;
END $$;
SET client_min_messages = error;
SELECT setseed(0.25);
SELECT kch_work(400);
SELECT count(*) FILTER (WHERE line LIKE '%oldkey%') > 80 AS moves, count(*) FILTER (WHERE line LIKE '%"t"%') > 1 AS truncations FROM kch_messages;
-- fed in small batches, the second half in larger ones, over and over the same keys
\! test/kt create kch --fresh
SELECT kch_make();
CREATE FUNCTION kch_differs() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT t FROM (SELECT 'hist' AS t, id, v, n FROM kch_hist UNION ALL SELECT 'plain', id, v, n FROM kch_plain UNION ALL SELECT 'event', id, v, n FROM kch_event
		UNION ALL SELECT 'log', id, v, n FROM kch_log UNION ALL SELECT 'log_plain', id, v, n FROM kch_log_plain) x FULL JOIN
		(SELECT t, id, v, n FROM kch_source, unnest('{hist,plain,event,log,log_plain}'::text[]) t) y USING (t, id, v, n) WHERE x.id IS NULL OR y.id IS NULL $$;
CREATE VIEW kch_versions AS SELECT 'hist' AS t, id, v, n, system_time FROM kch_hist_history UNION ALL SELECT 'event', id, v, n, system_time FROM kch_event_history
	UNION ALL SELECT 'log', id, v, n, system_time FROM kch_log_history;
SELECT * FROM kch_refresh();
\copy (SELECT line FROM kch_messages WHERE i <= 350 ORDER BY i) TO PROGRAM 'test/kt produce kch'
SET upsert_kafka.batch_rows = 3;
SELECT count(*) >= 0 AS refreshed FROM kch_refresh();
\copy (SELECT line FROM kch_messages WHERE i > 350 ORDER BY i) TO PROGRAM 'test/kt produce kch'
SET upsert_kafka.batch_rows = 50;
SELECT count(*) >= 0 AS refreshed FROM kch_refresh();
SELECT * FROM kch_differs();
CREATE TABLE kch_kept AS TABLE kch_versions;
CREATE FUNCTION kch_compare() RETURNS SETOF kch_versions LANGUAGE sql AS $$
	(TABLE kch_kept EXCEPT ALL TABLE kch_versions) UNION ALL (TABLE kch_versions EXCEPT ALL TABLE kch_kept) ORDER BY 1, 2, 5 $$;
-- a first load, a rebuild that keeps the history, and one message at a time
SELECT upsert_kafka.rebuild(t, discard_history => true) FROM unnest('{kch_hist,kch_plain,kch_event,kch_log,kch_log_plain}'::regclass[]) t;
SELECT count(*) >= 0 AS refreshed FROM kch_refresh();
SELECT * FROM kch_differs();
SELECT * FROM kch_compare();
SELECT upsert_kafka.rebuild(t) FROM unnest('{kch_hist,kch_event,kch_log}'::regclass[]) t;
SELECT * FROM kch_differs();
SELECT * FROM kch_compare();
DROP VIEW kch_versions CASCADE;
DROP TABLE kch_hist, kch_plain, kch_event, kch_log, kch_log_plain;
\! test/kt create kch --fresh
SELECT kch_make();
SELECT * FROM kch_refresh();
\copy (SELECT line FROM kch_messages ORDER BY i) TO PROGRAM 'test/kt produce kch'
SET upsert_kafka.batch_rows = 1;
SELECT count(*) >= 0 AS refreshed FROM kch_refresh();
SELECT * FROM kch_differs();
SELECT DISTINCT missing_values FROM upsert_kafka.progress WHERE target::text ~ 'kch_(hist|plain|event|log)';
RESET upsert_kafka.batch_rows;
-- all keys of a table, more than are applied at once, in a first load
TRUNCATE kch_messages;
DO $$
BEGIN
	FOR i IN 1 .. 2500 LOOP
		PERFORM kch_say('', i, 'c', 'v' || i, i, 1000);
	END LOOP;
	FOR i IN 1 .. 2500 LOOP
		PERFORM kch_say(format('h=__debezium.newkey:{"id":%s} ', i + 5000), i, 'd', NULL, NULL, 2000), kch_say('', i, '', NULL, NULL, 2000),
			kch_say(format('h=__debezium.oldkey:{"id":%s} ', i), i + 5000, 'c', '__debezium_unavailable_value', i, 2000);
	END LOOP;
END $$;
\! test/kt create kch --fresh
\copy (SELECT line FROM kch_messages ORDER BY i) TO PROGRAM 'test/kt produce kch'
SELECT upsert_kafka.rebuild(t, discard_history => true) FROM unnest('{kch_hist,kch_plain,kch_event,kch_log,kch_log_plain}'::regclass[]) t;
SELECT count(*) >= 0 AS refreshed FROM kch_refresh();
SELECT count(*), bool_and(v = 'v' || (id - 5000)) FROM kch_hist;
SELECT count(*), bool_and(v = 'v' || (id - 5000)) FROM kch_plain;
SELECT count(*), bool_and(v = 'v' || (id - 5000)) FROM kch_event;
SELECT count(*), bool_and(v = 'v' || (id - 5000)) FROM kch_log;
SELECT count(*), bool_and(v = 'v' || (id - 5000)) FROM kch_log_plain;

DROP TABLE kch_hist, kch_plain, kch_event, kch_log, kch_log_plain, kch_of_two, kch_of_two_plain, kch_code, kch_code_plain, kch_gate, kch_gate_plain, kch_fed, kch_kept, kch_source, kch_messages;
DROP FUNCTION kch_make, kch_refresh, kch_say, kch_work, kch_differs;
DROP SERVER kch CASCADE;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in kch kch_wide kch_one kch_ogg; do test/kt delete $t; done
