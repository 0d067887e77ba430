-- === scenario S1, reading: an upsert topic as a table and as a changelog ===
-- A query elsewhere counts messages per key and writes every change to an upsert topic; we read it back.
--
-- The Flink way:
--   CREATE TABLE versioned_topic ("valueKey" INT, "countNumber" BIGINT, ts TIMESTAMP(3), PRIMARY KEY ("valueKey") NOT ENFORCED)
--   WITH ('connector' = 'upsert-kafka', 'topic' = 'versioned_topic', 'key.format' = 'json', 'value.format' = 'json', ..);
--   SELECT * FROM versioned_topic;      -- a job that prints +I -U +U for ever
-- The upsert_kafka way: the state is one foreign table, the changelog another (option changelog), and both end.
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET DateStyle = 'ISO';
CREATE SERVER s1_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
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

DROP FOREIGN TABLE versioned_topic, versioned_changes;
DROP SERVER s1_kafka;
\! test/kt delete s1_versioned_topic
