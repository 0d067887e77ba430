-- === a bad message keeps its key's row, and is superseded by the next good one (X12) ===
\! test/kt create superseded -p 2 --fresh
\set broker `echo "$BROKER"`
CREATE SERVER sup_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE sup_topic (id int OPTIONS (key 'true'), v text, n int)
  SERVER sup_kafka OPTIONS (connector 'upsert-kafka', topic 'superseded', key_format 'json', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('sup_topic', 'sup');
-- two bad messages of key 2, and a key that cannot be read
\! printf '{"id":1}|{"v":"a"}\n{"id":1}|{"n":"abc"}\n{"id":2}|{"n":1.5}\n{"id":2}|{"v":"b","n":[]}\n{"id":"x"}|{"v":"c"}\n' | test/kt produce superseded
SELECT upsert_kafka.wait_for('sup');
SELECT * FROM sup;
SELECT partition, "offset", convert_from(raw_key, 'UTF8') AS key, convert_from(raw_value, 'UTF8') AS value, column_name, sqlstate, message, superseded
  FROM upsert_kafka.errors WHERE target = 'sup'::regclass ORDER BY "offset";
SELECT errors FROM upsert_kafka.tables WHERE target = 'sup'::regclass;
-- a good message of key 1; a delete of key 2 is one, too
\! printf '{"id":1}|{"v":"c"}\n{"id":2}|∅\n' | test/kt produce superseded
SELECT upsert_kafka.wait_for('sup');
SELECT * FROM sup;
SELECT "offset", superseded FROM upsert_kafka.errors WHERE target = 'sup'::regclass ORDER BY "offset";
SELECT errors FROM upsert_kafka.tables WHERE target = 'sup'::regclass;
-- errors go with their table
DROP TABLE sup;
SELECT count(*) FROM upsert_kafka.message_error;
DROP FOREIGN TABLE sup_topic;
DROP SERVER sup_kafka;
\! test/kt delete superseded
