-- === Types of extensions, through their input and output functions: citext, hstore ===
-- where PostgreSQL has no contrib modules there is nothing to see here (types_ext_1.out)
SET client_min_messages = warning;
SELECT count(*) = 2 AS available FROM pg_available_extensions WHERE name IN ('citext', 'hstore') \gset
SELECT :'available' AS available;
\if :available
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE SERVER types_ext FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE FOREIGN TABLE ext_json (c citext, h hstore, cs citext[]) SERVER types_ext OPTIONS (connector 'kafka', topic 'x', value_format 'json');
CREATE FOREIGN TABLE ext_csv (c citext, h hstore, cs citext[]) SERVER types_ext OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
CREATE FOREIGN TABLE ext_raw (h hstore) SERVER types_ext OPTIONS (connector 'kafka', topic 'x', value_format 'raw');
CREATE FOREIGN TABLE ext_avro (c citext, h hstore, cs citext[]) SERVER types_ext OPTIONS (connector 'kafka', topic 'x', value_format 'avro');
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('Ab', 'a=>1, "b c"=>NULL', '{X,y}')::ext_json) e, upsert_kafka.decode(NULL::ext_json, NULL, e.value) d;
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('Ab', 'a=>1, "b c"=>NULL', '{X,y}')::ext_csv) e, upsert_kafka.decode(NULL::ext_csv, NULL, e.value) d;
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('a=>1, "b c"=>NULL')::ext_raw) e, upsert_kafka.decode(NULL::ext_raw, NULL, e.value) d;
SELECT encode(e.value, 'escape') AS written, d.* FROM upsert_kafka.encode(ROW('Ab', 'a=>1, "b c"=>NULL', '{X,y}')::ext_avro) e, upsert_kafka.decode(NULL::ext_avro, NULL, e.value) d;
-- objects are no hstore by themselves: use jsonb; an Avro map is one
SELECT * FROM upsert_kafka.decode(NULL::ext_json, NULL, '{"h": {"a": "1"}}');
ALTER FOREIGN TABLE ext_avro OPTIONS (ADD value_avro_schema '{"type":"record","name":"R","fields":[{"name":"h","type":{"type":"map","values":["null","string"]}}]}');
SELECT h FROM upsert_kafka.decode(NULL::ext_avro, NULL, '\x04026102023102620000');
-- what is no hstore is the message's error, within an array as well
CREATE TYPE ext_pair AS (a int, h hstore);
CREATE FOREIGN TABLE ext_bad (h hstore, hs hstore[], p ext_pair) SERVER types_ext OPTIONS (connector 'kafka', topic 'x', value_format 'json');
\set VERBOSITY sqlstate
SELECT h FROM upsert_kafka.decode(NULL::ext_bad, NULL, '{"h": "a=>"}');
SELECT hs FROM upsert_kafka.decode(NULL::ext_bad, NULL, '{"hs": "{a=>}"}');
SELECT p FROM upsert_kafka.decode(NULL::ext_bad, NULL, '{"p": "(1,a=>)"}');
\set VERBOSITY default
SELECT hs, p FROM upsert_kafka.decode(NULL::ext_bad, NULL, '{"hs": ["a=>1"], "p": {"a": 1, "h": "b=>2"}}');
DROP FOREIGN TABLE ext_bad;
DROP TYPE ext_pair;
-- identity by the type's own equality: keys that differ in case are one (A06)
CREATE FOREIGN TABLE ext_key (k citext OPTIONS (key 'true'), v int) SERVER types_ext OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'json');
SELECT d.* FROM unnest(ARRAY['Key', 'KEY']) k, upsert_kafka.decode(NULL::ext_key, convert_to(k, 'UTF8'), '{"v": 1}') d;
SELECT count(DISTINCT d.k) FROM unnest(ARRAY['Key', 'KEY']) k, upsert_kafka.decode(NULL::ext_key, convert_to(k, 'UTF8'), '{"v": 1}') d;
DROP SERVER types_ext CASCADE;
DROP EXTENSION citext;
DROP EXTENSION hstore;
\endif
