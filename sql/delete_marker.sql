-- === delete_marker: a field of the value that says that the row is gone (X12) ===
-- as Debezium's unwrapped events have it (__deleted), and soft deletes of other producers
\set VERBOSITY default
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER dm FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create dm -p 2 --fresh
CREATE FOREIGN TABLE dm_plain (id int OPTIONS (key 'true'), v text) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE dm_t (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'json', delete_marker '__deleted');
\! printf '%s\n' '[ts=1000] {"id":1}|{"v":"a","__deleted":"false"}' '[ts=1000] {"id":2}|{"v":"b","__deleted":"false"}' '[ts=2000] {"id":2}|{"v":"b2","__deleted":"true"}' '[ts=1000] {"id":3}|{"v":"c"}' '[ts=2000 p=1] {"id":4}|{"v":"d","__deleted":true}' '[ts=2000 p=1] {"id":5}|{"v":"e","__deleted":null}' | test/kt produce dm

-- without the option the field is data like any other
SELECT * FROM dm_plain ORDER BY id;
-- with it the text true, or the JSON value, is a delete
SELECT * FROM dm_t ORDER BY id;
SELECT count(*) FROM dm_t;
SELECT v FROM dm_t WHERE id = 2;
SELECT * FROM upsert_kafka.decode(NULL::dm_t, '{"id":1}', '{"v":"a","__deleted":"true"}');
-- the changes of it
ALTER FOREIGN TABLE dm_t OPTIONS (ADD changelog 'true');
SELECT * FROM dm_t WHERE id IN (1, 2) ORDER BY id;
ALTER FOREIGN TABLE dm_t OPTIONS (DROP changelog);
-- another value; the field may be a column as well
ALTER FOREIGN TABLE dm_t OPTIONS (SET delete_marker 'v', ADD delete_marker_value 'e');
SELECT id, v FROM dm_t ORDER BY id;
ALTER FOREIGN TABLE dm_t OPTIONS (SET delete_marker '__deleted', DROP delete_marker_value);
-- a bad value is still the message's error, and no delete
SELECT * FROM upsert_kafka.decode(NULL::dm_t, '{"id":1}', '{"v":"a","__deleted":"true"');

-- === maintained tables: the row goes, its versions end at the message's time ===
SELECT upsert_kafka.materialize('dm_t', 'dm_kept');
SELECT upsert_kafka.refresh('dm_kept');
SELECT * FROM dm_kept ORDER BY id;
SELECT id, v, system_time FROM dm_kept_history ORDER BY id, lower(system_time);
\! printf '%s\n' '[ts=5000] {"id":1}|{"v":"a2","__deleted":"true"}' '[ts=5000] {"id":3}|{"v":"c2"}' '[ts=6000] {"id":2}|{"v":"again"}' | test/kt produce dm
SELECT upsert_kafka.refresh('dm_kept');
SELECT * FROM dm_kept ORDER BY id;
SELECT id, v, system_time FROM dm_kept_history WHERE id < 4 ORDER BY id, lower(system_time);
-- read anew, it is the same
SELECT upsert_kafka.rebuild('dm_kept', discard_history => true);
SELECT upsert_kafka.refresh('dm_kept');
SELECT id, v, system_time FROM dm_kept_history WHERE id < 4 ORDER BY id, lower(system_time);
-- what is written deletes by tombstones, and a row that has the marker is a delete
DELETE FROM dm_t WHERE id = 2;
SELECT id, v FROM dm_t ORDER BY id;

-- === logs without keys: the columns of the row are all there ===================
\! test/kt create dm_log --fresh
\! printf '%s\n' '[ts=1000] ∅|{"id":1,"v":"a","__deleted":"false"}' '[ts=1000] ∅|{"id":2,"v":"b"}' '[ts=2000] ∅|{"id":1,"v":"a","__deleted":"true"}' '[ts=2000] ∅|∅' | test/kt produce dm_log
CREATE FOREIGN TABLE dm_log (id int, v text, kind text OPTIONS (metadata 'row_kind')) SERVER dm
	OPTIONS (connector 'kafka', topic 'dm_log', value_format 'json', delete_marker '__deleted');
SELECT * FROM dm_log;
-- they tell of deletes, which needs a key
SELECT upsert_kafka.materialize('dm_log', 'dm_rows');
SELECT upsert_kafka.materialize('dm_log', 'dm_rows', primary_key => '{id}');
SELECT upsert_kafka.refresh('dm_rows');
SELECT * FROM dm_rows;
SELECT id, v, system_time FROM dm_rows_history ORDER BY id;

-- === other formats ==============================================================
-- csv: a column tells which field it is
CREATE FOREIGN TABLE dm_csv (id int OPTIONS (key 'true'), v text, gone text, kind text OPTIONS (metadata 'row_kind')) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'csv', value_format 'csv', value_fields_include 'EXCEPT_KEY', delete_marker 'gone', delete_marker_value 'D');
SELECT d.* FROM unnest(ARRAY['a,', 'b,D', 'c,d']) v, upsert_kafka.decode(NULL::dm_csv, '1', convert_to(v, 'UTF8')) d;
ALTER FOREIGN TABLE dm_csv OPTIONS (SET delete_marker 'other');
SELECT * FROM upsert_kafka.decode(NULL::dm_csv, '1', 'a,');
-- avro: booleans and texts alike
CREATE FOREIGN TABLE dm_avro (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'avro', delete_marker 'gone',
	value_avro_schema '{"type":"record","name":"R","fields":[{"name":"v","type":"string"},{"name":"gone","type":["null","boolean"]}]}');
SELECT d.* FROM unnest(ARRAY['02610200', '02610201', '026100']) v, upsert_kafka.decode(NULL::dm_avro, '{"id":1}', decode(v, 'hex')) d;
-- where it means nothing
CREATE FOREIGN TABLE dm_bad (id int OPTIONS (key 'true'), v text) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'raw', delete_marker 'gone');
CREATE FOREIGN TABLE dm_bad (id int OPTIONS (key 'true'), v text) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'debezium-json', delete_marker 'gone');
CREATE FOREIGN TABLE dm_bad (id int OPTIONS (key 'true'), v text) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'json', delete_marker_value 'gone');
CREATE FOREIGN TABLE dm_bad (id int OPTIONS (key 'true'), v text) SERVER dm
	OPTIONS (connector 'upsert-kafka', topic 'dm', key_format 'json', value_format 'json', delete_marker '');

SET client_min_messages = warning;
DROP TABLE dm_kept, dm_rows;
DROP SERVER dm CASCADE;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! test/kt delete dm; test/kt delete dm_log
