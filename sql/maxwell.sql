-- Format maxwell-json: what the messages of Maxwell's daemon mean, message by message (upsert_kafka.decode) and on a topic.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER maxwell FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
-- the key's field is called pk.id
CREATE FOREIGN TABLE maxwell_t (id int OPTIONS (key 'true', field 'pk.id'), v text, kind text OPTIONS (metadata 'row_kind'), at timestamptz OPTIONS (metadata 'value.ingestion-timestamp')) SERVER maxwell
	OPTIONS (connector 'upsert-kafka', topic 'maxwell', key_format 'json', value_format 'maxwell-json');
-- the log of changes
CREATE FOREIGN TABLE maxwell_log (id int, v text, kind text OPTIONS (metadata 'row_kind')) SERVER maxwell
	OPTIONS (connector 'kafka', topic 'maxwell', value_format 'maxwell-json');

-- === kinds of rows ==============================================================
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"insert","ts":1709296497,"xid":1,"commit":true,"data":{"id":7,"v":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"bootstrap-insert","ts":1709296497,"data":{"id":7,"v":"a"}}');
-- the row before an update: what "old" does not hold is unchanged, what is null there was null
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"update","ts":1709296497,"data":{"id":7,"v":"b"},"old":{"v":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"update","ts":1709296497,"data":{"id":7,"v":"b"},"old":{"v":null}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"update","ts":1709296497,"data":{"id":7,"v":"b"},"old":{"id":6}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"update","ts":1709296497,"data":{"id":7,"v":"b"}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"delete","ts":1709296497,"data":{"id":7,"v":"b"}}');
-- E04: progress and DDL are about no row; their keys have no field pk.id
SELECT type, (SELECT count(*) FROM upsert_kafka.decode(NULL::maxwell_log, NULL, message)) AS log, (SELECT count(*) FROM upsert_kafka.decode(NULL::maxwell_t, '{"database":"d","table":"t","_uuid":"u1"}', message)) AS upsert,
	(SELECT count(*) FROM upsert_kafka.decode(NULL::maxwell_t, NULL, message)) AS no_key
  FROM unnest('{bootstrap-start,bootstrap-complete,table-create,table-alter,table-drop,database-create,database-alter,database-drop}'::text[]) type,
	LATERAL (SELECT convert_to(format('{"type":%s,"database":"d","table":"t","old":{},"def":{},"data":{},"ts":1709296496001,"sql":"ALTER TABLE t AUTO_INCREMENT = 9"}', to_json(type)), 'UTF8')) m(message);
-- what is no event at all
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"INSERT","data":{"id":7,"v":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","data":{"id":7,"v":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"insert"}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"delete","data":null}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"insert","data":[{"id":7}]}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_log, NULL, '{"database":"d","table":"t","type":"update","data":{"id":7},"old":[]}');
-- in an upsert table a delete needs nothing but the key
SELECT * FROM upsert_kafka.decode(NULL::maxwell_t, '{"database":"d","table":"t","pk.id":7}', '{"type":"delete","ts":1709296497}');
-- the row of the old key would stay
SELECT * FROM upsert_kafka.decode(NULL::maxwell_t, '{"database":"d","table":"t","pk.id":7}', '{"type":"update","ts":1709296497,"data":{"id":7,"v":"b"},"old":{"id":6}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_t, '{"database":"d","table":"t"}', '{"type":"insert","ts":1709296497,"data":{"id":7,"v":"b"}}');

-- === metadata ===================================================================
CREATE FOREIGN TABLE maxwell_meta (id int, b bytea, db text OPTIONS (metadata 'value.database'), tb text OPTIONS (metadata 'value.table'), pk text[] OPTIONS (metadata 'value.primary-key-columns'),
	at timestamptz OPTIONS (metadata 'value.ingestion-timestamp')) SERVER maxwell OPTIONS (connector 'kafka', topic 'maxwell', value_format 'maxwell-json');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_meta, NULL, '{"database":"d","table":"t","type":"update","ts":1709296497,"primary_key_columns":["id"],"data":{"id":7,"b":"SGk="},"old":{"b":null}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_meta, NULL, '{"type":"insert","data":{"id":7}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_meta, NULL, '{"type":"insert","ts":9223372036854775807,"data":{"id":7}}');
SELECT * FROM upsert_kafka.decode(NULL::maxwell_meta, NULL, '{"type":"insert","ts":1.5,"data":{"id":7}}');

-- === writing: Flink's messages, an update is a delete and an insert =============
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-U,+U,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, NULL)::maxwell_log, kind);
ALTER FOREIGN TABLE maxwell_log OPTIONS (ADD "maxwell-json.encode.ignore-null-fields" 'true');
SELECT convert_from(value, 'UTF8') FROM upsert_kafka.encode(ROW(1, NULL, NULL)::maxwell_log);

-- === E04: on a topic ============================================================
\! test/kt create maxwell --fresh
\o |test/kt produce maxwell
\qecho '{"database":"d","table":"t","_uuid":"u1"}|{"database":"d","table":"t","type":"bootstrap-start","ts":1709296496,"data":{}}'
\qecho '{"database":"d","table":"t","pk.id":7}|{"database":"d","table":"t","type":"bootstrap-insert","ts":1709296496,"data":{"id":7,"v":"a"}}'
\qecho '\\N|{"type":"table-alter","database":"d","table":"t","old":{},"def":{},"ts":1709296496001,"sql":"ALTER TABLE t AUTO_INCREMENT = 9"}'
\qecho '{"database":"d","table":"t","pk.id":7}|{"database":"d","table":"t","type":"update","ts":1709296497,"xid":1,"commit":true,"data":{"id":7,"v":"b"},"old":{"v":"a"}}'
\qecho '{"database":"d","table":"t","pk.id":8}|{"database":"d","table":"t","type":"delete","ts":1709296498,"xid":2,"commit":true,"data":{"id":8,"v":"z"}}'
\o
SELECT id, v, kind, at FROM maxwell_t;
SELECT * FROM maxwell_log;
SELECT upsert_kafka.materialize('maxwell_t', 'maxwell_current', event_time => 'at');
SELECT upsert_kafka.wait_for('maxwell_current');
SELECT id, v FROM maxwell_current;
SELECT * FROM upsert_kafka.position('maxwell_current');
-- keyed by a column of the payload, a changed key ends the old row
SELECT upsert_kafka.materialize('maxwell_log', 'maxwell_by_id', primary_key => '{id}');
\o |test/kt produce maxwell
\qecho '{"database":"d","table":"t","pk.id":9}|{"database":"d","table":"t","type":"update","ts":1709296499,"data":{"id":9,"v":"b"},"old":{"id":7}}'
\o
SELECT upsert_kafka.wait_for('maxwell_by_id');
SELECT id, v FROM maxwell_by_id;
-- which the table by the message key cannot
SELECT upsert_kafka.wait_for('maxwell_current');

DROP TABLE maxwell_current, maxwell_by_id;
DROP FOREIGN TABLE maxwell_t, maxwell_log, maxwell_meta;
DROP SERVER maxwell;
\! test/kt delete maxwell
