-- Format canal-json: what the messages of Canal and TiCDC mean, message by message (upsert_kafka.decode) and on a topic.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER canal FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
-- the log of changes
CREATE FOREIGN TABLE canal_log (id int, v text, w numeric, kind text OPTIONS (metadata 'row_kind')) SERVER canal
	OPTIONS (connector 'kafka', topic 'canal', value_format 'canal-json');
-- what a key holds; Canal itself writes none
CREATE FOREIGN TABLE canal_t (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER canal
	OPTIONS (connector 'upsert-kafka', topic 'canal', key_format 'json', value_format 'canal-json');

-- === E02: several rows in one message, all values strings, some null ============
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"11","v":"a","w":"2.50"},{"id":"12","v":null,"w":"0.25"}],"database":"d","isDdl":false,"old":null,"pkNames":["id"],"table":"t","type":"INSERT"}');
-- the row before an update: what "old" does not hold is unchanged, what is null there was null
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"12","v":"b","w":"0.25"}],"database":"d","isDdl":false,"old":[{"v":null}],"pkNames":["id"],"table":"t","type":"UPDATE"}');
-- each row has an "old" of its own
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1","v":"b","w":"1"},{"id":"2","v":"c","w":"2"}],"old":[{"v":"a"},{"w":"3"}],"type":"UPDATE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1","v":"b","w":"1"},{"id":"2"}],"old":null,"type":"DELETE"}');
-- an update without any "old" is the row after it alone
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1","v":"b"}],"old":null,"type":"UPDATE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1","v":"b"}],"old":[null],"type":"UPDATE"}');
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[],"old":null,"type":"INSERT"}');
-- a tombstone tells a log of changes nothing
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_log, NULL, NULL);

-- === E01: DDL and the like are about no row, with any key or none ===============
SELECT type, (SELECT count(*) FROM upsert_kafka.decode(NULL::canal_log, NULL, message)) AS log, (SELECT count(*) FROM upsert_kafka.decode(NULL::canal_t, NULL, message)) AS upsert
  FROM unnest('{CREATE,ALTER,ERASE,QUERY,RENAME,CINDEX,DINDEX,GTID,XACOMMIT,XAROLLBACK,MHEARTBEAT,TIDB_WATERMARK}'::text[]) type,
	LATERAL (SELECT convert_to(format('{"data":null,"database":"d","es":1709296496000,"id":1,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,"sql":"alter table t add x int","sqlType":null,"table":"t","ts":1709296496100,"type":%s}', to_json(type)), 'UTF8')) m(message);
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":null,"database":"d","isDdl":false,"type":"QUERY","table":"t"}');
-- X10: TRUNCATE is an error, or ignored
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":null,"isDdl":true,"type":"TRUNCATE","table":"t"}');
ALTER FOREIGN TABLE canal_log OPTIONS (ADD value_canal_json_truncate 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":null,"isDdl":true,"type":"TRUNCATE","table":"t"}');
-- what is no event at all
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1"}],"type":"insert"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1"}]}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":null,"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":{"id":"1"},"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[1],"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":["{\\"id\\":1}"],"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[null],"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1"},{"id":"2"}],"old":[{"v":"a"}],"type":"UPDATE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"one"}],"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '{"data":[{"id":"1"}],"type":"INSERT"');
SELECT * FROM upsert_kafka.decode(NULL::canal_log, NULL, '');

-- === upsert tables, where a producer writes keys ================================
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":1}', '{"data":[{"id":"1","v":"b"}],"old":[{"v":"a"}],"type":"UPDATE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":1}', '{"data":[{"id":"1","v":"b"}],"type":"DELETE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":1}', NULL);
-- one key is no name of several rows
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":1}', '{"data":[{"id":"1","v":"b"},{"id":"2","v":"b"}],"type":"INSERT"}');
-- the row of the old key would stay
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":2}', '{"data":[{"id":"2","v":"b"}],"old":[{"id":"1"}],"type":"UPDATE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_t, '{"id":2}', '{"data":[{"id":"2","v":"b"}],"old":[{"id":"2","v":"a"}],"type":"UPDATE"}');
-- rows need their key
SELECT * FROM upsert_kafka.decode(NULL::canal_t, NULL, '{"data":[{"id":"1","v":"b"}],"type":"INSERT"}');

-- === C07: bytes are characters up to U+00FF =====================================
CREATE FOREIGN TABLE canal_types (id int, b bytea, flag boolean, d date, ts timestamp, j jsonb, n bigint) SERVER canal
	OPTIONS (connector 'kafka', topic 'canal', value_format 'canal-json');
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"b":"\\u00c3\\u00a9"}],"type":"INSERT"}');
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, convert_to('{"data":[{"b":"ÿé\u0000\n\\\/\"\t\u001fA"},{"b":""},{"b":null},{"b":"\\x41"}],"type":"INSERT"}', 'UTF8'));
-- U+FFFD stands for bytes that are gone; other characters never were bytes
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, convert_to('{"data":[{"b":"a�"}],"type":"INSERT"}', 'UTF8'));
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"b":"a\\ufffd"}],"type":"INSERT"}');
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, convert_to('{"data":[{"b":"Ā"}],"type":"INSERT"}', 'UTF8'));
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, convert_to('{"data":[{"b":"😀"}],"type":"INSERT"}', 'UTF8'));
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"b":1}],"type":"INSERT"}');
-- as Flink has them
ALTER FOREIGN TABLE canal_types OPTIONS (ADD "canal-json.binary-format" 'base64');
SELECT b FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"b":"SGk="}],"type":"INSERT"}');
ALTER FOREIGN TABLE canal_types OPTIONS (DROP "canal-json.binary-format");
-- strings become what the column is
SELECT flag, d, ts, j, n FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"flag":"1","d":"2020-01-02","ts":"2020-01-02 03:04:05.123456","j":"{\\"a\\": [1, 2.50]}","n":"9007199254740993"}],"type":"INSERT"}');
SELECT ts FROM upsert_kafka.decode(NULL::canal_types, NULL, '{"data":[{"ts":"0000-00-00 00:00:00"}],"type":"INSERT"}');

-- === metadata ===================================================================
CREATE FOREIGN TABLE canal_meta (id int, kind text OPTIONS (metadata 'row_kind'), db text OPTIONS (metadata 'value.database'), tb text OPTIONS (metadata 'value.table'),
	types jsonb OPTIONS (metadata 'value.sql-type'), pk text[] OPTIONS (metadata 'value.pk-names'), at timestamptz OPTIONS (metadata 'value.event-timestamp'),
	sent timestamp(3) OPTIONS (metadata 'value.ingestion-timestamp')) SERVER canal OPTIONS (connector 'kafka', topic 'canal', value_format 'canal-json');
-- all rows of a message share it, those before an update too
SELECT * FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":[{"id":"2"},{"id":"3"}],"old":[{"id":"1"},{}],"type":"UPDATE","database":"d","table":"t","sqlType":{"id":4},"pkNames":["id"],"es":1709296496000,"ts":1709296496100}');
SELECT * FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":[{"id":"1"}],"type":"DELETE"}');
SELECT * FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":[{"id":"1"}],"type":"DELETE","es":"yesterday"}');

-- === filters: regular expressions for whole names ===============================
ALTER FOREIGN TABLE canal_meta OPTIONS (ADD "canal-json.database.include" 'd|e[0-9]+', ADD "canal-json.table.include" 'order(s|_items)');
SELECT db, tb, (SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, convert_to(format('{"data":[{"id":"1"}],"type":"INSERT","database":%s,"table":%s}', to_json(db), to_json(tb)), 'UTF8')))
  FROM unnest('{d,e42,dd,D,d,e}'::text[], '{orders,order_items,orders,orders,my_orders,orders}'::text[]) t(db, tb);
-- they choose before anything else is looked at
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":"?","type":"?","database":"other","table":"orders"}');
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":null,"type":"TRUNCATE","database":"d","table":"other"}');
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":null,"type":"TRUNCATE","database":"d","table":"orders"}');
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":[{"id":"1"}],"type":"INSERT","table":"orders"}');
-- no name is needed where there is no row
SELECT count(*) FROM upsert_kafka.decode(NULL::canal_meta, NULL, '{"data":null,"type":"QUERY"}');
ALTER FOREIGN TABLE canal_meta OPTIONS (SET "canal-json.table.include" 'order(s');

-- === writing: Flink's messages, an update is a delete and an insert =============
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-U,+U,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, 'a', 100.00, NULL)::canal_log, kind);
ALTER FOREIGN TABLE canal_log OPTIONS (ADD "canal-json.encode.decimal-as-plain-number" 'true', ADD "canal-json.encode.ignore-null-fields" 'true');
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, 100.00, NULL)::canal_log, kind);
-- bytes as they are read, in either way
SELECT convert_from(value, 'UTF8') AS message, b FROM upsert_kafka.encode(ROW(1, '\x00c3e94122ff', NULL, NULL, '2020-01-02 03:04:05.12', NULL, NULL)::canal_types),
	LATERAL upsert_kafka.decode(NULL::canal_types, NULL, value);
ALTER FOREIGN TABLE canal_types OPTIONS (ADD value_canal_json_binary_format 'base64', ADD "canal-json.timestamp-format.standard" 'ISO-8601');
SELECT convert_from(value, 'UTF8') AS message, b FROM upsert_kafka.encode(ROW(1, '\x00c3e94122ff', NULL, NULL, '2020-01-02 03:04:05.12', NULL, NULL)::canal_types),
	LATERAL upsert_kafka.decode(NULL::canal_types, NULL, value);
-- an upsert table deletes by a tombstone
SELECT kind, convert_from(key, 'UTF8') AS key, convert_from(value, 'UTF8') AS value FROM unnest('{+I,+U,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, 'a', NULL)::canal_t, kind);
SELECT * FROM upsert_kafka.encode(ROW(1, 'a', NULL)::canal_t, '-U');
SELECT * FROM upsert_kafka.encode(ROW(1, 'a', NULL)::canal_t, 'U');

-- === on a topic, without keys: maintained by a column of the rows ===============
\! test/kt create canal --fresh
\o |test/kt produce canal -k ''
\qecho '{"data":[{"id":"11","v":"a","w":"2.50"},{"id":"12","v":null,"w":"0.25"},{"id":"13","v":"x","w":"1"}],"database":"d","isDdl":false,"old":null,"es":1709296496000,"table":"t","type":"INSERT"}'
\qecho '{"data":null,"database":"d","es":1709296496000,"isDdl":true,"sql":"alter table t add x int","table":"t","type":"ALTER"}'
\qecho '{"data":[{"id":"12","v":"b","w":"0.25"}],"database":"d","isDdl":false,"old":[{"v":null}],"es":1709296497000,"table":"t","type":"UPDATE"}'
\qecho '{"data":[{"id":"13","v":"x","w":"1"}],"database":"d","isDdl":false,"old":null,"es":1709296498000,"table":"t","type":"DELETE"}'
\o
SELECT * FROM canal_log;
CREATE FOREIGN TABLE canal_at (id int, v text, w numeric, at timestamptz OPTIONS (metadata 'value.event-timestamp')) SERVER canal
	OPTIONS (connector 'kafka', topic 'canal', value_format 'canal-json');
SELECT upsert_kafka.materialize('canal_at', 'canal_current', primary_key => '{id}', event_time => 'at');
SELECT upsert_kafka.wait_for('canal_current');
SELECT * FROM canal_current ORDER BY id;
-- updates that change the key end the old rows, one after the other: id = id + 1; the rows of one message are applied together
\o |test/kt produce canal -k ''
\qecho '{"data":[{"id":"13","v":"b","w":"0.25"},{"id":"12","v":"a","w":"2.50"}],"database":"d","old":[{"id":"12"},{"id":"11"}],"es":1709296499000,"table":"t","type":"UPDATE"}'
\o
SELECT upsert_kafka.wait_for('canal_current');
SELECT * FROM canal_current ORDER BY id;
SELECT count(DISTINCT xmin::text) FROM canal_current;
-- all of it at its own time, deletes too
SELECT id, v, system_time FROM canal_current_history ORDER BY system_time, id;
-- a row of several that is bad stops them all
\o |test/kt produce canal -k ''
\qecho '{"data":[{"id":"31","v":"a","w":"2.50"},{"id":"thirty-two","v":"b","w":"0.25"}],"database":"d","es":1709296500000,"table":"t","type":"INSERT"}'
\o
SELECT upsert_kafka.wait_for('canal_current');
SELECT id FROM canal_current ORDER BY id;

-- === written to the topic: a log of changes in another format ===================
\! test/kt create canal_copy --fresh
CREATE FOREIGN TABLE canal_copy (id int, v text, w numeric, kind text OPTIONS (metadata 'row_kind')) SERVER canal
	OPTIONS (connector 'kafka', topic 'canal_copy', value_format 'debezium-json');
INSERT INTO canal_copy (id, v) VALUES (1, 'a');
INSERT INTO canal_copy VALUES (1, 'a', NULL, '-U'), (1, 'b', 2.50, '+U'), (2, 'c', NULL, NULL), (1, 'b', 2.50, '-D');
\! test/kt consume canal_copy | cut -d' ' -f4-
SELECT * FROM canal_copy;
INSERT INTO canal_copy VALUES (1, 'a', NULL, 'D');
-- the state of keys has no row kinds to write
INSERT INTO canal_t VALUES (1, 'a', '-D');

DROP TABLE canal_current;
DROP FOREIGN TABLE canal_log, canal_t, canal_types, canal_meta, canal_at, canal_copy;
DROP SERVER canal;
\! test/kt delete canal
\! test/kt delete canal_copy
