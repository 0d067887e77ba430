-- === recorded messages: each goes in once, whole, and clears no other's error ===
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET client_min_messages = warning;
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER merr FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- === what has stopped a table and goes in after all is no error any more: a row of an append table is not there twice ===
\! test/kt create merr_append --fresh
CREATE FOREIGN TABLE merr_append_t (k int) SERVER merr OPTIONS (connector 'kafka', topic 'merr_append', value_format 'json');
SELECT upsert_kafka.materialize('merr_append_t', 'merr_append');
SELECT upsert_kafka.refresh('merr_append');
\! printf '∅|{"k":1}\n∅|{"k":"two"}\n∅|{"k":3}\n' | test/kt produce merr_append
SELECT upsert_kafka.refresh('merr_append');
SELECT state, error_offset, errors FROM upsert_kafka.tables WHERE target = 'merr_append'::regclass;
-- the cause is mended, and it goes in
ALTER FOREIGN TABLE merr_append_t OPTIONS (ADD value_json_ignore_parse_errors 'true');
SELECT upsert_kafka.resume('merr_append');
SELECT upsert_kafka.refresh('merr_append');
SELECT errors FROM upsert_kafka.tables WHERE target = 'merr_append'::regclass;
SELECT upsert_kafka.retry_errors('merr_append');
SELECT k FROM merr_append ORDER BY k;

-- === a message of several rows is applied whole or not at all, whichever row is bad ===
\! test/kt create merr_rows --fresh
CREATE FOREIGN TABLE merr_rows_t (id int, v text, at timestamptz) SERVER merr OPTIONS (connector 'kafka', topic 'merr_rows', value_format 'canal-json');
SELECT upsert_kafka.materialize('merr_rows_t', 'merr_rows', primary_key => '{id}', event_time => 'at', on_error => 'skip');
SELECT upsert_kafka.refresh('merr_rows');
\o |test/kt produce merr_rows -k ''
\qecho '{"data":[{"id":"1","v":"a","at":null},{"id":"2","v":"a","at":"2020-01-01 00:00:00Z"}],"type":"INSERT"}'
\qecho '{"data":[{"id":"3","v":"a","at":"2020-01-01 00:00:00Z"},{"id":"4","v":"a","at":null}],"type":"INSERT"}'
\qecho '{"data":[{"id":"5","v":"a","at":"2020-01-01 00:00:00Z"},{"id":"6","v":"a","at":"2020-01-01 00:00:00Z"}],"type":"INSERT"}'
\o
SELECT upsert_kafka.refresh('merr_rows');
SELECT id FROM merr_rows ORDER BY id;
SELECT "offset", column_name, message FROM upsert_kafka.errors WHERE target = 'merr_rows'::regclass ORDER BY "offset";

-- === a retry that fails again forgets nothing of what came after the message ===
\! test/kt create merr_truncated --fresh
CREATE DOMAIN merr_small AS int CONSTRAINT small CHECK (VALUE < 10);
CREATE FOREIGN TABLE merr_truncated_t (id int OPTIONS (key 'true'), n merr_small) SERVER merr
	OPTIONS (connector 'upsert-kafka', topic 'merr_truncated', key_format 'json', value_format 'debezium-json', value_debezium_json_truncate 'apply');
SELECT upsert_kafka.materialize('merr_truncated_t', 'merr_truncated', on_error => 'skip');
SELECT upsert_kafka.refresh('merr_truncated');
\o |test/kt produce merr_truncated
\qecho '[ts=1000] {"id":1}|{"after":{"id":1,"n":11},"op":"c"}'
\qecho '[ts=2000] ∅|{"op":"t"}'
\qecho '[ts=3000] {"id":2}|{"after":{"id":2,"n":2},"op":"c"}'
\o
SELECT upsert_kafka.refresh('merr_truncated');
SELECT upsert_kafka.retry_errors('merr_truncated');
SELECT "offset", superseded FROM upsert_kafka.errors WHERE target = 'merr_truncated'::regclass;
ALTER DOMAIN merr_small DROP CONSTRAINT small;
SELECT upsert_kafka.retry_errors('merr_truncated');
-- the row was there, until the source was truncated
SELECT * FROM merr_truncated ORDER BY id;
SELECT id, n, upper_inf(system_time) AS holds FROM merr_truncated_history ORDER BY id;

-- === a key is one whatever is in it, and whoever applies: only its own errors are superseded (X12) ===
\! test/kt create merr_keys --fresh
CREATE FOREIGN TABLE merr_keys_t (a text OPTIONS (key 'true'), b text OPTIONS (key 'true'), at timestamptz OPTIONS (key 'true'), n int) SERVER merr
	OPTIONS (connector 'upsert-kafka', topic 'merr_keys', key_format 'json', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('merr_keys_t', 'merr_keys');
SELECT upsert_kafka.refresh('merr_keys');
\! printf '%s\n' '{"a":"x,y","b":"z","at":"2020-01-01 00:00:00Z"}|{"n":"bad"}' '{"a":"x","b":"y,z","at":"2020-01-01 00:00:00Z"}|{"n":"bad"}' '{"a":"","b":"\"\\","at":"2020-01-01 00:00:00Z"}|{"n":"bad"}' | test/kt produce merr_keys
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German';
SELECT upsert_kafka.refresh('merr_keys');
SELECT "offset", key_text FROM upsert_kafka.message_error WHERE target = 'merr_keys'::regclass ORDER BY "offset";
RESET TimeZone;
RESET DateStyle;
\! printf '%s\n' '{"a":"x,y","b":"z","at":"2020-01-01 00:00:00Z"}|{"n":1}' '{"a":"","b":"\"\\","at":"2020-01-01 00:00:00Z"}|{"n":1}' | test/kt produce merr_keys
SELECT upsert_kafka.refresh('merr_keys');
SELECT "offset", superseded FROM upsert_kafka.errors WHERE target = 'merr_keys'::regclass ORDER BY "offset";
-- a first load says the same
SELECT upsert_kafka.materialize('merr_keys_t', 'merr_keys_load');
SELECT upsert_kafka.refresh('merr_keys_load');
SELECT "offset", superseded FROM upsert_kafka.errors WHERE target = 'merr_keys_load'::regclass ORDER BY "offset";

DROP TABLE merr_append, merr_rows, merr_truncated, merr_keys, merr_keys_load;
DROP SERVER merr CASCADE;
DROP DOMAIN merr_small;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in merr_append merr_rows merr_truncated merr_keys; do test/kt delete $t; done
