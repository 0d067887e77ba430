-- Format debezium-json: what change events mean, message by message (upsert_kafka.decode) and on a topic.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER dbz FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE dbz_t (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz', key_format 'json', value_format 'debezium-json');
-- without keys: the log of changes
CREATE FOREIGN TABLE dbz_log (id int, v text, kind text OPTIONS (metadata 'row_kind')) SERVER dbz
	OPTIONS (connector 'kafka', topic 'dbz', value_format 'debezium-json');

-- === D01: wrapped or bare, in key and value alike ===============================
SELECT * FROM upsert_kafka.decode(NULL::dbz_t,
	'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}]},"payload":{"id":1}}',
	'{"schema":{"type":"struct","fields":[]},"payload":{"before":null,"after":{"id":1,"v":"a"},"source":{"table":"t"},"op":"c","ts_ms":1709296496789}}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":{"id":1,"v":"a"},"op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"schema":null,"payload":{"id":1}}', '{"before":null,"after":{"id":1,"v":"a"},"op":"c"}');
-- Connect's null is a tombstone; a log of changes has told of the delete before
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"schema":null,"payload":null}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, '{"id":1}', '{"schema":null,"payload":null}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, '{"id":1}', NULL);
-- a wrapped key still needs the key columns
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"schema":{},"payload":{"ID":1}}', NULL);
-- format json on this topic finds no key: never a row of NULLs
CREATE FOREIGN TABLE dbz_json (id int OPTIONS (key 'true'), v text) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::dbz_json, '{"schema":{"type":"struct"},"payload":{"id":1}}', '{"schema":{},"payload":{}}');
-- a column of the key that is called payload
CREATE FOREIGN TABLE dbz_payload (schema text OPTIONS (key 'true'), payload int OPTIONS (key 'true')) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz', key_format 'json', value_format 'debezium-json');
SELECT * FROM upsert_kafka.decode(NULL::dbz_payload, '{"schema":"s","payload":1}', NULL);

-- === kinds of rows ==============================================================
-- an upsert table: the row there is, or none
SELECT op, (SELECT kind FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', convert_to(format('{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"b"},"op":%s}', to_json(op)), 'UTF8')))
  FROM unnest('{c,r,u,d}'::text[]) op;
-- an append table: the changelog
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":null,"after":{"id":1,"v":"a"},"op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":null,"after":{"id":1,"v":"a"},"op":"r"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"b"},"op":"u"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":{"id":1,"v":"b"},"after":null,"op":"d"}');
-- D02: an update needs no row before it; a delete does, unless the message key names the row
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":null,"after":{"id":1,"v":"a"},"op":"u"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":null,"after":null,"op":"d"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":null,"op":"d"}');
CREATE FOREIGN TABLE dbz_keyed_log (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dbz
	OPTIONS (connector 'kafka', topic 'dbz', key_format 'json', value_format 'debezium-json');
SELECT * FROM upsert_kafka.decode(NULL::dbz_keyed_log, '{"id":1}', '{"before":null,"after":null,"op":"d"}');
-- what is no row at all
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":null,"op":"u"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":{"id":1},"op":"x"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":{"id":1},"op":1}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"id":1,"v":"a"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"schema":{},"payload":{"id":1,"v":"a"}}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', 'null');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":{"id":1,"v":"a"},"op":"c"');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"before":null,"after":{"id":"one","v":"a"},"op":"c"}');
-- D03: a logical message is about no row, and its key is not the table's
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"prefix":"p"}', '{"op":"m","message":{"prefix":"p"}}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_log, NULL, '{"op":"m","message":{"prefix":"p"}}');
-- X10: TRUNCATE is an error, or ignored
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, NULL, '{"source":{"table":"t"},"op":"t","ts_ms":1709296496789}');
ALTER FOREIGN TABLE dbz_t OPTIONS (ADD value_debezium_json_truncate 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, NULL, '{"source":{"table":"t"},"op":"t","ts_ms":1709296496789}');
-- X01: rows still need their key
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, NULL, '{"before":null,"after":{"id":1,"v":"a"},"op":"c"}');
ALTER FOREIGN TABLE dbz_t OPTIONS (DROP value_debezium_json_truncate);
ALTER FOREIGN TABLE dbz_t OPTIONS (ADD value_debezium_json_truncate 'cascade');
-- keys are no events
ALTER FOREIGN TABLE dbz_t OPTIONS (SET key_format 'debezium-json');

-- === D05: a document as a JSON string ===========================================
CREATE FOREIGN TABLE dbz_mongo (id jsonb OPTIONS (key 'true'), after jsonb, kind text OPTIONS (metadata 'row_kind')) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz', key_format 'json', value_format 'debezium-json');
SELECT id->>'$oid' AS oid, after->'n'->>'$numberLong' AS n, kind FROM upsert_kafka.decode(NULL::dbz_mongo, '{"id":"{\\"$oid\\": \\"65e1c0ffee0123456789abcd\\"}"}',
	'{"before":null,"after":"{\\"_id\\": {\\"$oid\\": \\"65e1c0ffee0123456789abcd\\"},\\"n\\": {\\"$numberLong\\": \\"9007199254740993\\"},\\"tags\\": [\\"a\\"]}","updateDescription":null,"op":"c"}');
SELECT kind FROM upsert_kafka.decode(NULL::dbz_mongo, '{"id":"{\\"$oid\\": \\"65e1c0ffee0123456789abcd\\"}"}', '{"before":null,"after":null,"updateDescription":null,"op":"d"}');
-- flat columns cannot take it; a patch is no row
SELECT * FROM upsert_kafka.decode(NULL::dbz_t, '{"id":1}', '{"before":null,"after":"{\\"id\\": 1}","op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_mongo, '{"id":"1"}', '{"before":null,"after":null,"updateDescription":{"updatedFields":"{}"},"op":"u"}');

-- === metadata ===================================================================
CREATE FOREIGN TABLE dbz_meta (id int, kind text OPTIONS (metadata 'row_kind'),
	source_ts timestamptz OPTIONS (metadata 'value.source.timestamp'), ts timestamp(3) OPTIONS (metadata 'value.ingestion-timestamp'),
	db text OPTIONS (metadata 'value.source.database'), sc text OPTIONS (metadata 'value.source.schema'), tb text OPTIONS (metadata 'value.source.table'),
	props jsonb OPTIONS (metadata 'value.source.properties'), sch text OPTIONS (metadata 'value.schema')) SERVER dbz
	OPTIONS (connector 'kafka', topic 'dbz', value_format 'debezium-json');
-- both rows of an update carry the update's
SELECT * FROM upsert_kafka.decode(NULL::dbz_meta, NULL, '{"schema":{"a":1},"payload":{"before":{"id":1},"after":{"id":2},"op":"u","ts_ms":1589361987936,
	"source":{"ts_ms":1589361987000,"db":"inventory","schema":"s","table":"products","pos":154,"gtid":null}}}');
-- none of it is there; MongoDB has collections
SELECT * FROM upsert_kafka.decode(NULL::dbz_meta, NULL, '{"after":{"id":1},"op":"c"}');
SELECT tb, source_ts FROM upsert_kafka.decode(NULL::dbz_meta, NULL, '{"after":{"id":1},"op":"c","source":{"collection":"c","ts_ms":-1}}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_meta, NULL, '{"after":{"id":1},"op":"c","source":{"ts_ms":9223372036854775807}}');
SELECT * FROM upsert_kafka.decode(NULL::dbz_meta, NULL, '{"after":{"id":1},"op":"c","source":{"ts_ms":"now"}}');
-- a wrong type, a wrong name, another format: warnings at DDL time, errors at use
ALTER FOREIGN TABLE dbz_meta ADD COLUMN x int OPTIONS (metadata 'value.source.timestamp');
ALTER FOREIGN TABLE dbz_meta DROP COLUMN x;
ALTER FOREIGN TABLE dbz_meta ADD COLUMN x text OPTIONS (metadata 'value.source.tabel');
ALTER FOREIGN TABLE dbz_json ADD COLUMN x text OPTIONS (metadata 'value.source.table');
SELECT * FROM upsert_kafka.decode(NULL::dbz_json, '{"id":1}', NULL);

-- === logical types ==============================================================
CREATE FOREIGN TABLE dbz_types (p numeric, pi int, pj jsonb, pt text, ts timestamp, ts3 timestamp(3), tz timestamptz, d date, t time, iv interval,
	n bigint, bits bit varying, b bytea, u uuid, flag boolean, si smallint, tsa timestamp[], pa numeric[]) SERVER dbz
	OPTIONS (connector 'kafka', topic 'dbz', value_format 'debezium-json');
-- one column of an event: its name, its schema without the braces, its value
CREATE FUNCTION dbz_event(field text, schema text, value text) RETURNS bytea LANGUAGE sql AS $$
	SELECT convert_to('{"schema":{"type":"struct","fields":[{"type":"struct","field":"before"},{"type":"struct","fields":[{"field":' || to_json(field) || ',' || schema ||
		'}],"field":"after"}]},"payload":{"before":null,"after":{' || to_json(field) || ':' || value || '},"op":"c"}}', 'UTF8') $$;
CREATE FUNCTION dbz_named(field text, type text, value text) RETURNS bytea LANGUAGE sql AS $$
	SELECT dbz_event(field, '"name":' || to_json(type) || ',"parameters":{"scale":"2","length":"5"}', value) $$;
-- C01: decimals are two's complement, even those that look like a number
SELECT v, p FROM unnest('{AeJA,/2o=,AIA=,gA==,AA==,1234,SztMqFqGxHoJiiI//////w==}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'org.apache.kafka.connect.data.Decimal', to_json(v)::text));
-- other scales, other columns, none
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_event('p', '"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-3"}', '"AeJA"'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_event('p', '"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"0"}', '"/w=="'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_event('p', '"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"7"}', '"/w=="'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'io.debezium.data.VariableScaleDecimal', '{"scale":3,"value":"AeJA"}'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'org.apache.kafka.connect.data.Decimal', 'null'));
SELECT pi FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('pi', 'org.apache.kafka.connect.data.Decimal', '"ZA=="'));
SELECT pj, pt FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('pj', 'org.apache.kafka.connect.data.Decimal', '"AeJA"'));
SELECT pj, pt FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('pt', 'org.apache.kafka.connect.data.Decimal', '"AeJA"'));
SELECT pa FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_event('pa', '"type":"array","items":{"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}', '["AeJA",null,"gA=="]'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'org.apache.kafka.connect.data.Decimal', '"?"'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'org.apache.kafka.connect.data.Decimal', '""'));
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('p', 'io.debezium.data.VariableScaleDecimal', '{"value":"AeJA"}'));
-- without a schema: text and numbers as they are, and base64 is none
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"p":"1234.50"},"op":"c"}');
SELECT p FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"p":"AeJA"},"op":"c"}');
-- C03: the schema decides what a number counts, never its size; every digit is kept
SELECT type, number, ts FROM (VALUES ('MicroTimestamp', '86400000000'), ('MicroTimestamp', '1709296496789012'), ('MicroTimestamp', '-1'),
	('Timestamp', '1709296496789'), ('NanoTimestamp', '1709296496789012345')) t(type, number),
	LATERAL upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.' || type, number));
SELECT tz FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"tz":1709296496789},"op":"c"}');
-- or an option does
ALTER FOREIGN TABLE dbz_types OPTIONS (ADD value_debezium_json_time_unit 'ms');
SELECT tz, d, t, n FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"tz":1709296496789,"d":18263,"t":45296789,"n":5},"op":"c"}');
SELECT tz, ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"tz":"2024-03-01T12:34:56.789Z","ts":"2024-03-01 12:00"},"op":"c"}');
ALTER FOREIGN TABLE dbz_types OPTIONS (DROP value_debezium_json_time_unit);
ALTER FOREIGN TABLE dbz_types OPTIONS (ADD value_debezium_json_time_unit 'minutes');
-- dates, times, durations
SELECT d FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('d', 'io.debezium.time.Date', '18263'));
SELECT d FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('d', 'org.apache.kafka.connect.data.Date', '-800000'));
SELECT t FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('t', 'io.debezium.time.MicroTime', '45296789012'));
SELECT t FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('t', 'org.apache.kafka.connect.data.Time', '45296789'));
SELECT iv FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('iv', 'io.debezium.time.MicroTime', '-3020399000000'));
SELECT iv FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('iv', 'io.debezium.time.MicroDuration', '36800000001'));
SELECT iv FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('iv', 'io.debezium.time.Interval', '"P1Y2M3DT4H5M6S"'));
SELECT tsa FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_event('tsa', '"type":"array","items":{"name":"io.debezium.time.MicroTimestamp"}', '[1709296496789012,null,-1]'));
SELECT ts3 FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts3', 'io.debezium.time.MicroTimestamp', '1709296496789512'));
-- a bigint column gets the number, whatever it counts; text the readable form
SELECT n FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('n', 'io.debezium.time.MicroTimestamp', '1709296496789012'));
SELECT pt FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('pt', 'io.debezium.time.MicroTimestamp', '1709296496789012'));
SELECT t FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('t', 'io.debezium.time.MicroTime', '86400000001'));
SELECT ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.Timestamp', '1.5'));
-- X07: PostgreSQL's infinity, as Debezium's versions have sent it; other numbers are what they are, or out of range
SELECT type, number, ts FROM (VALUES ('Timestamp', '9223372036825200000'), ('Timestamp', '9223372036825200'), ('MicroTimestamp', '9223372036825200000'),
	('MicroTimestamp', '9223371331200000000'), ('Timestamp', '-9223372036832400000'), ('MicroTimestamp', '-9223372036832400000'),
	('MicroTimestamp', '9223372036825200'), ('ZonedTimestamp', '"infinity"')) t(type, number),
	LATERAL upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.' || type, number));
SELECT ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.Timestamp', '9223372036825201'));
SELECT ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.Timestamp', '99999999999999999999'));
SELECT d FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('d', 'io.debezium.time.Date', '2147483647'));
-- X08: a zoned timestamp without a zone to go to is UTC
SELECT ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.ZonedTimestamp', '"2024-03-01T12:00:00+05:30"'));
SELECT tz FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('tz', 'io.debezium.time.ZonedTimestamp', '"2024-03-01T12:00:00+05:30"'));
-- C04: a wall clock's time is the same in every session
SELECT ts, tz AT TIME ZONE 'UTC' AS tz FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.Timestamp', '1709258115000'));
SET TimeZone = 'Asia/Shanghai';
SELECT ts FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('ts', 'io.debezium.time.Timestamp', '1709258115000'));
-- into timestamptz it is read in the table's time zone, not the session's
SELECT tz AT TIME ZONE 'UTC' AS tz FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('tz', 'io.debezium.time.Timestamp', '1709258115000'));
ALTER FOREIGN TABLE dbz_types OPTIONS (ADD time_zone 'Asia/Shanghai');
SELECT tz AT TIME ZONE 'UTC' AS tz FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('tz', 'io.debezium.time.Timestamp', '1709258115000'));
ALTER FOREIGN TABLE dbz_types OPTIONS (DROP time_zone);
SET TimeZone = 'UTC';
-- C06: booleans and small integers
SELECT flag, si FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"flag":true,"si":1},"op":"c"}');
SELECT flag, si FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"flag":1,"si":0},"op":"c"}');
SELECT flag, si FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"flag":"t","si":true},"op":"c"}');
-- C07: bytes are base64; bit strings come as little-endian bytes
SELECT b FROM upsert_kafka.decode(NULL::dbz_types, NULL, '{"after":{"b":"SGk="},"op":"c"}');
SELECT bits FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('bits', 'io.debezium.data.Bits', '"BQ=="'));
-- strings that are said to be something take the column's input function
SELECT u, pj FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('u', 'io.debezium.data.Uuid', '"550e8400-e29b-41d4-a716-446655440000"'));
SELECT u, pj FROM upsert_kafka.decode(NULL::dbz_types, NULL, dbz_named('pj', 'io.debezium.data.Json', '"{\"a\":[1,2.50]}"'));
-- keys have a schema, too
CREATE FOREIGN TABLE dbz_day (d date OPTIONS (key 'true'), v text) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz', key_format 'json', value_format 'debezium-json');
SELECT * FROM upsert_kafka.decode(NULL::dbz_day, '{"schema":{"type":"struct","fields":[{"field":"d","type":"int32","name":"io.debezium.time.Date"}]},"payload":{"d":18263}}', NULL);
-- a schema that is none says nothing, and the next one counts
SELECT (upsert_kafka.decode(NULL::dbz_types, NULL, e)).d FROM unnest(ARRAY['{"schema":{"fields":[1,{"field":"after","fields":{}}]},"payload":{"after":{"d":"2020-01-02"},"op":"c"}}'::bytea, dbz_named('d', 'io.debezium.time.Date', '18263')]) e;

-- === writing: Flink's messages, an update is a delete and an insert =============
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-U,+U,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, NULL)::dbz_log, kind);
ALTER FOREIGN TABLE dbz_log OPTIONS (ADD "debezium-json.encode.ignore-null-fields" 'true');
SELECT kind, convert_from(value, 'UTF8') FROM unnest('{+I,-D}'::text[]) kind, LATERAL upsert_kafka.encode(ROW(1, NULL, NULL)::dbz_log, kind);
ALTER FOREIGN TABLE dbz_log OPTIONS (DROP "debezium-json.encode.ignore-null-fields");
-- what is written is read back
SELECT k AS told, r.* FROM unnest('{+I,-D}'::text[]) k, LATERAL upsert_kafka.encode(ROW(1, E'a"\n', NULL)::dbz_log, k), LATERAL upsert_kafka.decode(NULL::dbz_log, NULL, value) r;
-- other formats tell of no deletes
CREATE FOREIGN TABLE dbz_plain (id int, v text) SERVER dbz OPTIONS (connector 'kafka', topic 'dbz', value_format 'json');
SELECT * FROM upsert_kafka.encode(ROW(1, 'a')::dbz_plain, '-U');

-- === on a topic =================================================================
\! test/kt create dbz --fresh
-- D03: a snapshot, changes, and all of it again; A11: a delete and its tombstone are one delete, and one of nothing is none
\o |test/kt produce dbz
\qecho '[ts=1700000001000] {"id":1}|{"before":null,"after":{"id":1,"v":"a"},"op":"r"}'
\qecho '[ts=1700000002000] {"id":1}|{"before":null,"after":{"id":1,"v":"a"},"op":"c"}'
\qecho '[ts=1700000003000] {"id":1}|{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"b"},"op":"u"}'
\qecho '[ts=1700000004000] {"id":1}|{"before":null,"after":{"id":1,"v":"a"},"op":"r"}'
\qecho '[ts=1700000005000] {"id":1}|{"before":null,"after":{"id":1,"v":"a"},"op":"c"}'
\qecho '[ts=1700000006000] {"id":1}|{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"b"},"op":"u"}'
\qecho '[ts=1700000007000] {"prefix":"p"}|{"op":"m","message":{"prefix":"p"}}'
\qecho '[ts=1700000008000] {"id":3}|{"before":null,"after":{"id":3,"v":"a"},"op":"c"}'
\qecho '[ts=1700000009000] {"id":3}|{"before":{"id":3,"v":"a"},"after":null,"op":"d"}'
\qecho '[ts=1700000010000] {"id":3}|\\N'
\qecho '[ts=1700000011000] {"id":9}|\\N'
\o
SELECT * FROM dbz_t;
SELECT count(*), max(v) FROM dbz_t;
ALTER FOREIGN TABLE dbz_t OPTIONS (ADD changelog 'true');
SELECT * FROM dbz_t;
ALTER FOREIGN TABLE dbz_t OPTIONS (DROP changelog);
SELECT upsert_kafka.materialize('dbz_t', 'dbz_current');
SELECT upsert_kafka.wait_for('dbz_current');
SELECT * FROM dbz_current;
-- one closed version of key 3, nothing of key 9
SELECT id, v, upper_inf(system_time) AS holds FROM dbz_current_history ORDER BY id, system_time;
SELECT * FROM upsert_kafka.position('dbz_current');
-- keyed by a column of the payload, without the message key
SELECT upsert_kafka.materialize('dbz_log', 'dbz_by_id', primary_key => '{id}');
SELECT upsert_kafka.wait_for('dbz_by_id');
SELECT * FROM dbz_by_id;
-- an update that changes the key is the end of the old row (where the source tells it so)
\o |test/kt produce dbz -k ''
\qecho '{"before":{"id":1,"v":"b"},"after":{"id":5,"v":"b"},"op":"u"}'
\qecho '{"before":{"id":5,"v":"b"},"after":{"id":5,"v":"c"},"op":"u"}'
\o
SELECT upsert_kafka.wait_for('dbz_by_id');
SELECT * FROM dbz_by_id;
-- these have no message key: the upsert table stops at the first of them
SELECT upsert_kafka.wait_for('dbz_current');

-- === C04: worker, refresh and scan agree on a wall clock's time, whatever their time zones ===
\! test/kt create dbz_clock --fresh
\! echo '{"id":1}|{"schema":{"fields":[{"field":"after","fields":[{"field":"at","name":"io.debezium.time.Timestamp"},{"field":"tz","name":"io.debezium.time.Timestamp"}]}]},"payload":{"after":{"id":1,"at":1709258115000,"tz":1709258115000},"op":"c"}}' | test/kt produce dbz_clock
CREATE FOREIGN TABLE dbz_clock (id int OPTIONS (key 'true'), at timestamp, tz timestamptz) SERVER dbz
	OPTIONS (connector 'upsert-kafka', topic 'dbz_clock', key_format 'json', value_format 'debezium-json');
SET TimeZone = 'Asia/Shanghai';
SELECT upsert_kafka.materialize('dbz_clock', 'dbz_worker');
SELECT upsert_kafka.wait_for('dbz_worker');
SELECT 'scan' AS who, at, tz AT TIME ZONE 'UTC' AS utc FROM dbz_clock UNION ALL SELECT 'worker', at, tz AT TIME ZONE 'UTC' FROM dbz_worker;
SET TimeZone = 'UTC';

DROP TABLE dbz_current, dbz_by_id, dbz_worker;
DROP FOREIGN TABLE dbz_clock, dbz_plain;
DROP FOREIGN TABLE dbz_t, dbz_log, dbz_json, dbz_payload, dbz_keyed_log, dbz_mongo, dbz_meta, dbz_types, dbz_day;
DROP FUNCTION dbz_event, dbz_named;
DROP SERVER dbz;
\! test/kt delete dbz
\! test/kt delete dbz_clock
