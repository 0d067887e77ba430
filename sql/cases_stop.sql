-- === cases of the field: a maintained table meets a message that it cannot take ===
-- on_error 'stop' stops it exactly there, with everything before it applied; 'skip' records the message and goes on.
-- No worker acts here, refresh() does.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SCHEMA stop;
SET search_path = stop, public;
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER stop_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE VIEW bad AS
SELECT target, partition, "offset", convert_from(raw_key, 'UTF8') AS key, convert_from(raw_value, 'UTF8') AS value, column_name AS "column", sqlstate
  FROM upsert_kafka.errors ORDER BY target::text, partition, "offset";

-- === B04: malformed messages do not poison their successors ===
\! test/kt create stop_malformed --fresh
CREATE FOREIGN TABLE malformed (id int OPTIONS (key 'true'), v text, w int)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_malformed', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('malformed', 'strict');
SELECT upsert_kafka.materialize('malformed', 'lenient', on_error => 'skip');
-- the same in the first load and in what comes afterwards: one more each
SELECT upsert_kafka.materialize('malformed', 'loaded', on_error => 'skip');
SELECT upsert_kafka.refresh('strict'), upsert_kafka.refresh('lenient');
\o |test/kt produce stop_malformed
\qecho '{"id":1}|{"v":"a"}'
\qecho '{"id":2}|{"v":12zz,"w":1}'
\qecho '{"id":3}|{"v":"c"}'
\qecho '{"id":4}|{"v":007}'
\qecho '{"id":5}|{"v":"e",}'
\qecho '{"id":6}|{"v":"f"}'
\o
-- strict: stops at offset 1, which is also its position
SELECT upsert_kafka.refresh('strict');
SELECT * FROM strict;
SELECT state, error_sqlstate, error_message, error_partition, error_offset FROM upsert_kafka.tables WHERE target = 'strict'::regclass;
SELECT * FROM upsert_kafka.position('strict');
SELECT * FROM bad WHERE target = 'strict'::regclass;
-- it stays there until somebody decides: about exactly this message, and then about the next one
SELECT upsert_kafka.refresh('strict');
SELECT upsert_kafka.skip('strict', 0, 2);
SELECT upsert_kafka.skip('strict', 0, 1);
SELECT upsert_kafka.refresh('strict');
SELECT * FROM strict ORDER BY id;
SELECT next_offset FROM upsert_kafka.position('strict');
-- skip: rows 1, 3 and 6; offsets 1, 3 and 4 are recorded
SELECT upsert_kafka.refresh('lenient'), upsert_kafka.refresh('loaded');
SELECT * FROM lenient ORDER BY id;
SELECT "offset", value FROM bad WHERE target = 'lenient'::regclass;
(TABLE lenient EXCEPT TABLE loaded) UNION ALL (TABLE loaded EXCEPT TABLE lenient);
SELECT target, errors FROM upsert_kafka.tables ORDER BY target::text;

-- === B14: one among a thousand ===
\! test/kt create stop_poison --fresh
CREATE FOREIGN TABLE poison (id int OPTIONS (key 'true'), n int)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_poison', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('poison', 'poison_strict', history => false);
SELECT upsert_kafka.refresh('poison_strict');
SELECT upsert_kafka.materialize('poison', 'poison_lenient', history => false, on_error => 'skip');
\! for i in $(seq 0 999); do if [ $i = 500 ]; then echo '{"id":500}|{"n":"abc"}'; else echo "{\"id\":$i}|{\"n\":$i}"; fi; done | test/kt produce stop_poison
SET upsert_kafka.batch_rows = 300;
SELECT upsert_kafka.refresh('poison_strict');
SELECT count(*), max(n), next_offset FROM poison_strict, upsert_kafka.position('poison_strict') GROUP BY next_offset;
SELECT * FROM bad WHERE target = 'poison_strict'::regclass;
SELECT upsert_kafka.skip('poison_strict', 0, 500);
SELECT upsert_kafka.refresh('poison_strict');
SELECT count(*), max(n), next_offset FROM poison_strict, upsert_kafka.position('poison_strict') GROUP BY next_offset;
SELECT upsert_kafka.refresh('poison_lenient');
SELECT count(*), max(n) FROM poison_lenient;
SELECT * FROM bad WHERE target = 'poison_lenient'::regclass;
RESET upsert_kafka.batch_rows;

-- === B15: errors of the database are never skipped ===
\! test/kt create stop_database --fresh
CREATE FOREIGN TABLE db (id int OPTIONS (key 'true'), v text)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_database', key_format 'json', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('db', 'checked');
SELECT upsert_kafka.refresh('checked');
ALTER TABLE checked ADD CONSTRAINT not_bad CHECK (v <> 'bad');
\! printf '%s\n' '{"id":1}|{"v":"a"}' '{"id":2}|{"v":"bad"}' '{"id":3}|{"v":"c"}' | test/kt produce stop_database
-- refresh is one transaction: nothing of it stays
SELECT upsert_kafka.refresh('checked');
SELECT * FROM checked;
SELECT next_offset FROM upsert_kafka.position('checked');
SELECT count(*) FROM bad WHERE target = 'checked'::regclass;
ALTER TABLE checked DROP CONSTRAINT not_bad;
-- a trigger's own error, and being cancelled, neither
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.id = 3 THEN RAISE EXCEPTION 'not today' USING ERRCODE = current_setting('stop.errcode'); END IF;
	RETURN new;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON checked FOR EACH ROW EXECUTE FUNCTION refuse();
\set VERBOSITY sqlstate
SET stop.errcode = '22P02';
SELECT upsert_kafka.refresh('checked');
SET stop.errcode = '40001';
SELECT upsert_kafka.refresh('checked');
SET stop.errcode = '57014';
SELECT upsert_kafka.refresh('checked');
\set VERBOSITY default
SELECT count(*), (SELECT count(*) FROM bad WHERE target = 'checked'::regclass) AS errors FROM checked;
DROP TRIGGER refuse ON checked;
SELECT upsert_kafka.refresh('checked');
SELECT * FROM checked ORDER BY id;

-- === X01, X02, X03: null keys, empty values, the four bytes null ===
\! test/kt create stop_odd --fresh
CREATE FOREIGN TABLE odd (id int OPTIONS (key 'true'), v text)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_odd', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('odd', 'odd_strict');
SELECT upsert_kafka.materialize('odd', 'odd_lenient', on_error => 'skip');
CREATE FOREIGN TABLE odd_deletes (id int OPTIONS (key 'true'), v text)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_odd', key_format 'json', value_format 'json', on_error 'skip', json_empty_value 'delete', json_null_value 'delete');
SELECT upsert_kafka.materialize('odd_deletes', 'odd_deleted');
\o |test/kt produce stop_odd
\qecho '{"id":1}|{"v":"a"}'
\qecho '{"id":2}|{"v":"b"}'
\qecho '{"id":3}|{"v":"c"}'
\qecho '\\N|{"id":1,"v":"x"}'
\qecho '\\N|\\N'
\qecho '{"id":1}|'
\qecho '{"id":2}|null'
\o
SELECT upsert_kafka.refresh('odd_strict'), upsert_kafka.refresh('odd_lenient'), upsert_kafka.refresh('odd_deleted');
-- the rows stay; a null key is never taken from the value
SELECT * FROM odd_strict ORDER BY id;
SELECT * FROM odd_lenient ORDER BY id;
SELECT * FROM odd_deleted ORDER BY id;
SELECT * FROM bad WHERE target::text LIKE 'odd%';

-- === X12: between a bad new value and a good one the old row stays ===
\! test/kt create stop_stale --fresh
CREATE FOREIGN TABLE stale_topic (id int OPTIONS (key 'true'), v text, n int)
  SERVER stop_kafka OPTIONS (connector 'upsert-kafka', topic 'stop_stale', key_format 'json', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('stale_topic', 'stale');
SELECT upsert_kafka.refresh('stale');
\! printf '%s\n' '[ts=1000] {"id":1}|{"v":"a"}' '[ts=2000] {"id":1}|{"n":"abc"}' '[ts=1000] {"id":2}|{"v":"b","__deleted":"true"}' | test/kt produce stop_stale
SELECT upsert_kafka.refresh('stale');
SELECT * FROM stale ORDER BY id;
SELECT "offset", convert_from(raw_key, 'UTF8') AS key, superseded FROM upsert_kafka.errors WHERE target = 'stale'::regclass;
\! printf '%s\n' '[ts=3000] {"id":1}|{"v":"c"}' | test/kt produce stop_stale
SELECT upsert_kafka.refresh('stale');
SELECT * FROM stale ORDER BY id;
SELECT superseded FROM upsert_kafka.errors WHERE target = 'stale'::regclass;
SELECT errors FROM upsert_kafka.tables WHERE target = 'stale'::regclass;
-- the history never had it
SELECT v, extract(epoch FROM lower(system_time))::int AS from_s FROM stale_history WHERE id = 1 ORDER BY 2;

-- === away with it ===
SET client_min_messages = warning;
DROP VIEW bad;
SELECT count(upsert_kafka.drop(target)) FROM upsert_kafka.tables;
DROP SERVER stop_kafka CASCADE;
DROP SCHEMA stop CASCADE;
RESET client_min_messages;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in malformed poison database odd stale; do test/kt delete stop_$t; done
