\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET DateStyle = 'ISO';
CREATE SERVER s1_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- === scenario S1, the input: an append topic of CSV records ===
-- The Flink way:
--   CREATE TABLE input_topic ("valueKey" INT NOT NULL, "value" STRING, ts TIMESTAMP(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
--   WITH ('connector' = 'kafka', 'topic' = 'input_topic', 'format' = 'csv', 'scan.startup.mode' = 'earliest-offset', ..);
-- The upsert_kafka way: the same columns by their place, and no watermark, since a query ends.
\! test/kt create s1_input_topic --fresh
\o |test/kt produce s1_input_topic -k ''
\qecho '[ts=2022-01-13T14:05:12.1Z] 19,first'
\qecho '[ts=2022-01-13T14:05:13.25Z] 7,"with a comma, and ""quotes"""'
\qecho '[ts=2022-01-13T14:05:14Z] 19,'
\qecho '[ts=2022-01-13T14:05:17.5Z] 19,""'
\qecho '[ts=2022-01-13T14:05:18Z] 19,fourth'
\qecho '[ts=2022-01-13T14:05:19.07Z] 19,fifth'
\o
CREATE FOREIGN TABLE input_topic (
	"valueKey" int NOT NULL, value text, ts timestamp OPTIONS (metadata 'timestamp')
) SERVER s1_kafka OPTIONS (connector 'kafka', topic 's1_input_topic', value_format 'csv', scan_startup_mode 'earliest-offset');
SELECT *, value IS NULL AS is_null FROM input_topic ORDER BY ts;
-- the count per key, with the time of its last change: what the query elsewhere keeps in the upsert topic
SELECT "valueKey", count(*) AS "countNumber", max(ts) AS ts FROM input_topic GROUP BY 1 ORDER BY 1;
-- columns that are not asked for are passed over
SELECT count(*), count(value) FROM input_topic;

-- === scenario S1, reading: an upsert topic as a table and as a changelog ===
-- A query elsewhere counts messages per key and writes every change to an upsert topic; we read it back.
--
-- The Flink way:
--   CREATE TABLE versioned_topic ("valueKey" INT, "countNumber" BIGINT, ts TIMESTAMP(3), PRIMARY KEY ("valueKey") NOT ENFORCED)
--   WITH ('connector' = 'upsert-kafka', 'topic' = 'versioned_topic', 'key.format' = 'json', 'value.format' = 'json', ..);
--   SELECT * FROM versioned_topic;      -- a job that prints +I -U +U for ever
-- The upsert_kafka way: the state is one foreign table, the changelog another (option changelog), and both end.
\! test/kt create s1_versioned_topic --fresh
\o |test/kt produce s1_versioned_topic
\qecho '{"valueKey":19}|{"valueKey":19,"countNumber":1,"ts":"2022-01-13 14:05:12.1"}'
\qecho '{"valueKey":7}|{"valueKey":7,"countNumber":1,"ts":"2022-01-13 14:05:13.25"}'
\qecho '{"valueKey":19}|{"valueKey":19,"countNumber":2,"ts":"2022-01-13 14:05:14"}'
\qecho '{"valueKey":19}|{"valueKey":19,"countNumber":3,"ts":"2022-01-13 14:05:17.5"}'
\qecho '{"valueKey":19}|{"valueKey":19,"countNumber":4,"ts":"2022-01-13 14:05:18"}'
\qecho '{"valueKey":7}|\\N'
\qecho '{"valueKey":19}|{"valueKey":19,"countNumber":5,"ts":"2022-01-13 14:05:19.07"}'
\o

CREATE FOREIGN TABLE versioned_topic (
	"valueKey" int OPTIONS (key 'true'), "countNumber" bigint, ts timestamp(3)
) SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 's1_versioned_topic', key_format 'json', value_format 'json');
-- the state: one row per key, the deleted one is gone
SELECT * FROM versioned_topic;

CREATE FOREIGN TABLE versioned_changes (
	kind text OPTIONS (metadata 'row_kind'),
	"valueKey" int OPTIONS (key 'true'), "countNumber" bigint, ts timestamp(3),
	raw_key text OPTIONS (metadata 'raw_key'), raw_value text OPTIONS (metadata 'raw_value')
) SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 's1_versioned_topic', key_format 'json', value_format 'json', changelog 'true');
-- the changelog: each update is the row before and the row after
SELECT kind, "valueKey", "countNumber", ts FROM versioned_changes;
-- only the after-images of updates
SELECT kind, "valueKey", "countNumber", ts FROM versioned_changes WHERE kind = '+U';
-- the last message, byte for byte
SELECT raw_key, raw_value FROM versioned_changes WHERE "countNumber" = 5;
-- no row says that it differs
SELECT raw_key, raw_value FROM versioned_changes WHERE "countNumber" = 5
   AND (raw_key, raw_value) IS DISTINCT FROM ('{"valueKey":19}', '{"valueKey":19,"countNumber":5,"ts":"2022-01-13 14:05:19.07"}');

-- === scenario S1, writing: the count is kept in an upsert topic ===
-- The Flink way: INSERT INTO versioned_topic SELECT `valueKey`, COUNT(*), MAX(ts) FROM input_topic GROUP BY `valueKey`;    -- a job that writes each change for ever
-- The upsert_kafka way: an INSERT writes what its query gives, here every change there was, and ends.
\! test/kt create s1_written_topic --fresh
CREATE FOREIGN TABLE written_topic (
	"valueKey" int OPTIONS (key 'true'), "countNumber" bigint, ts timestamp(3)
) SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 's1_written_topic', key_format 'json', value_format 'json');
INSERT INTO written_topic SELECT "valueKey", count(*) OVER (PARTITION BY "valueKey" ORDER BY ts), ts FROM input_topic ORDER BY ts;
\! test/kt consume s1_written_topic
-- fewer columns than the table has
INSERT INTO written_topic ("valueKey", "countNumber") VALUES (20, 1);
SELECT * FROM written_topic ORDER BY 1;

-- === what is refused ===
-- an upsert table needs both formats
CREATE FOREIGN TABLE refused ("valueKey" int OPTIONS (key 'true')) SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 't', value_format 'json');
CREATE FOREIGN TABLE refused ("valueKey" int OPTIONS (key 'true')) SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json');
-- it has no start mode: a changelog read from its middle is no table
CREATE FOREIGN TABLE refused ("valueKey" int OPTIONS (key 'true'))
  SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json', scan_startup_mode 'latest-offset');
CREATE FOREIGN TABLE refused ("valueKey" int OPTIONS (key 'true'))
  SERVER s1_kafka OPTIONS (connector 'upsert-kafka', topic 't', "key.format" 'json', "value.format" 'json', "scan.startup.mode" 'timestamp', "scan.startup.timestamp-millis" '0');
-- a column that does not exist is an error at once, not an empty result
SELECT valuekey FROM versioned_topic;
SELECT "countNumbr" FROM versioned_changes WHERE kind = '+U';
INSERT INTO written_topic ("valueKey", "countNumbr") VALUES (20, 2);

DROP FOREIGN TABLE versioned_topic, versioned_changes, written_topic, input_topic;
DROP SERVER s1_kafka;
\! test/kt delete s1_versioned_topic
\! test/kt delete s1_written_topic
\! test/kt delete s1_input_topic
