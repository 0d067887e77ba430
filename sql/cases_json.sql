-- === cases of the field, format json: what a message of another format must not become ===
-- decode() shows what a message means to a table; no broker is asked.
CREATE SERVER cases_json FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');

-- === C01: Connect's decimals are base64; without their schema nothing says so ===
CREATE FOREIGN TABLE cj_decimal (id int OPTIONS (key 'true'), p numeric)
  SERVER cases_json OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
-- text that is no number is an error, never 0 or NULL
SELECT * FROM upsert_kafka.decode(NULL::cj_decimal, '{"id":1}', '{"p":"AeJA"}');
SELECT * FROM upsert_kafka.decode(NULL::cj_decimal, '{"id":1}', '{"p":"/2o="}');
-- what looks like a number is one: the limit (decimal.handling.mode=string is the way out)
SELECT * FROM upsert_kafka.decode(NULL::cj_decimal, '{"id":1}', '{"p":"1234"}');
SELECT * FROM upsert_kafka.decode(NULL::cj_decimal, '{"id":1}', '{"p":"1234.56"}');

-- === C09: a placeholder is text like any to format json ===
CREATE FOREIGN TABLE cj_toast (id int OPTIONS (key 'true'), v text)
  SERVER cases_json OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::cj_toast, '{"id":1}', '{"v":"__debezium_unavailable_value"}');

-- === D01: an envelope read as plain json: the key has no id, so there is no row of NULLs ===
SELECT * FROM upsert_kafka.decode(NULL::cj_toast, '{"schema":{"type":"struct"},"payload":{"id":1}}', '{"schema":{"type":"struct"},"payload":{"before":null,"after":{"id":1,"v":"a"},"op":"c"}}');
-- === D05: MongoDB's documents come as strings: jsonb takes them apart ===
CREATE FOREIGN TABLE cj_mongo (id jsonb OPTIONS (key 'true'), after jsonb)
  SERVER cases_json OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT id->>'$oid' AS oid, after->'n'->>'$numberLong' AS n
  FROM upsert_kafka.decode(NULL::cj_mongo, convert_to('{"id":"{\"$oid\": \"65e1c0ffee0123456789abcd\"}"}', 'UTF8'),
  convert_to('{"before":null,"after":"{\"_id\": {\"$oid\": \"65e1c0ffee0123456789abcd\"},\"n\": {\"$numberLong\": \"9007199254740993\"}}","op":"c"}', 'UTF8'));

-- === X12: a delete marker in a value is data ===
CREATE FOREIGN TABLE cj_soft (id int OPTIONS (key 'true'), v text, __deleted text)
  SERVER cases_json OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::cj_soft, '{"id":2}', '{"id":2,"v":"b","__deleted":"true"}');

SET client_min_messages = warning;
DROP SERVER cases_json CASCADE;
