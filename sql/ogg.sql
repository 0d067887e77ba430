-- Format ogg-json: what the messages of Oracle GoldenGate mean, message by message (upsert_kafka.decode) and on a topic.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER ogg FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE ogg_log (id int OPTIONS (field 'ID'), v text OPTIONS (field 'V'), kind text OPTIONS (metadata 'row_kind')) SERVER ogg
	OPTIONS (connector 'kafka', topic 'ogg', value_format 'ogg-json');
CREATE FOREIGN TABLE ogg_t (id int OPTIONS (key 'true', field 'ID'), v text OPTIONS (field 'V'), kind text OPTIONS (metadata 'row_kind')) SERVER ogg
	OPTIONS (connector 'upsert-kafka', topic 'ogg', key_format 'json', value_format 'ogg-json');

-- === kinds of rows ==============================================================
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"I","op_ts":"2020-05-13 15:40:06.000000","current_ts":"2020-05-13T15:40:07.000000","pos":"1","after":{"ID":1,"V":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":1,"V":"b"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"D","before":{"ID":1,"V":"b"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_t, '{"ID":1}', '{"table":"O.T","op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":1,"V":"b"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_t, '{"ID":1}', '{"table":"O.T","op_type":"D"}');
-- an update needs no row before it; a delete does, unless the message key names the row
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","after":{"ID":1,"V":"b"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"D"}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","before":{"ID":1,"V":"a"}}');
-- a compressed update holds what has changed, and the key; the rest keeps its value, which a maintained table knows (below)
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":1}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","before":{"ID":1},"after":{"ID":1}}');
ALTER FOREIGN TABLE ogg_log OPTIONS (ADD "ogg-json.missing" 'null');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":1}}');
ALTER FOREIGN TABLE ogg_log OPTIONS (DROP "ogg-json.missing");
-- X10: TRUNCATE is an error, or ignored
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"T"}');
ALTER FOREIGN TABLE ogg_t OPTIONS (ADD value_ogg_json_truncate 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::ogg_t, NULL, '{"table":"O.T","op_type":"T"}');
-- what is no event at all
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"table":"O.T","op_type":"i","after":{"ID":1,"V":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"ID":1,"V":"a"}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '{"op_type":"I","after":"{}"}');
SELECT * FROM upsert_kafka.decode(NULL::ogg_log, NULL, '[]');
-- the row of the old key would stay
SELECT * FROM upsert_kafka.decode(NULL::ogg_t, '{"ID":2}', '{"op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":2,"V":"a"}}');

-- === metadata ===================================================================
CREATE FOREIGN TABLE ogg_meta (id int OPTIONS (field 'ID'), tb text OPTIONS (metadata 'value.table'), pk text[] OPTIONS (metadata 'value.primary-keys'),
	at timestamptz OPTIONS (metadata 'value.event-timestamp'), sent timestamptz OPTIONS (metadata 'value.ingestion-timestamp')) SERVER ogg OPTIONS (connector 'kafka', topic 'ogg', value_format 'ogg-json');
SELECT * FROM upsert_kafka.decode(NULL::ogg_meta, NULL, '{"table":"O.T","op_type":"I","op_ts":"2020-05-13 15:40:06.123456","current_ts":"2020-05-13T15:40:07.000","primary_keys":["ID","X"],"after":{"ID":1}}');
-- these times have no zone: the table's is theirs
ALTER FOREIGN TABLE ogg_meta OPTIONS (ADD time_zone 'America/New_York');
SELECT * FROM upsert_kafka.decode(NULL::ogg_meta, NULL, '{"table":"O.T","op_type":"D","op_ts":"2020-05-13 15:40:06.123456","before":{"ID":1}}');

-- === writing: Flink's messages, an update is a delete and an insert =============
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-U,+U,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, NULL)::ogg_log, kind);
ALTER FOREIGN TABLE ogg_log OPTIONS (ADD "ogg-json.encode.ignore-null-fields" 'true');
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, NULL)::ogg_log, kind);

-- === on a topic =================================================================
\! test/kt create ogg --fresh
\o |test/kt produce ogg -k ''
\qecho '{"table":"O.T","op_type":"I","op_ts":"2020-05-13 15:40:06.000000","after":{"ID":1,"V":"a"}}'
\qecho '{"table":"O.T","op_type":"I","op_ts":"2020-05-13 15:40:07.000000","after":{"ID":2,"V":"b"}}'
\qecho '{"table":"O.T","op_type":"U","op_ts":"2020-05-13 15:40:08.000000","before":{"ID":1,"V":"a"},"after":{"ID":3,"V":"c"}}'
\qecho '{"table":"O.T","op_type":"D","op_ts":"2020-05-13 15:40:09.000000","before":{"ID":2,"V":"b"}}'
\o
ALTER FOREIGN TABLE ogg_log ADD COLUMN at timestamptz OPTIONS (metadata 'value.event-timestamp');
SELECT * FROM ogg_log;
-- the changed key and the delete end rows at the source's time
SELECT upsert_kafka.materialize('ogg_log', 'ogg_current', primary_key => '{id}', event_time => 'at');
SELECT upsert_kafka.wait_for('ogg_current');
SELECT id, v, at FROM ogg_current;
\o |test/kt produce ogg -k ''
\qecho '{"table":"O.T","op_type":"U","op_ts":"2020-05-13 15:40:10.000000","before":{"ID":3},"after":{"ID":3}}'
\o
SELECT upsert_kafka.wait_for('ogg_current');
SELECT id, v, at FROM ogg_current;
SELECT id, v, system_time FROM ogg_current_history ORDER BY system_time;

DROP TABLE ogg_current;
DROP FOREIGN TABLE ogg_log, ogg_t, ogg_meta;
DROP SERVER ogg;
\! test/kt delete ogg
