-- Option ignore_parse_errors: what a column cannot take is NULL, what cannot be parsed is skipped and told. Messages one by one (upsert_kafka.decode), then topics.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER ign FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE TYPE ign_pair AS (n int, s text);
CREATE DOMAIN ign_positive AS int CHECK (VALUE > 0);
CREATE DOMAIN ign_given AS int NOT NULL;

-- === fields =====================================================================
CREATE FOREIGN TABLE ign_json (n int, t timestamp, a int[], p ign_pair, q ign_pair[], b bytea, j jsonb, s text) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'json', "value.json.ignore-parse-errors" 'true');
-- a good message is what it is without the option
SELECT * FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":1,"t":"2024-01-02 03:04:05","a":[1,2],"p":{"n":1,"s":"x"},"q":[{"n":1}],"b":"AQI=","j":{"k":1},"s":"x"}');
-- only what is bad becomes NULL: fields, elements of arrays, members of nested rows
SELECT * FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":"abc","t":"2024-02-30","a":[1,"x",3],"p":{"n":1.5,"s":"x"},"q":[{"n":1,"s":"a"},{"n":[],"s":"b"},7],"b":"?","j":{"k":1},"s":"x"}');
-- other shapes are NULL as a whole
SELECT * FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":{"s":"inner"},"t":1,"a":[[1],[2,3]],"p":[1],"q":{},"b":{},"j":"{","s":"x"}');
SELECT a, s FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"a":7,"n":99999999999,"s":"a\\u0000b"}');
-- PostgreSQL's text of an array or a row is one value
SELECT a, p FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"a":"{1,x}","p":"(1"}');
-- the next message has nothing to do with it
SELECT n, s FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":2,"s":"y"}');

-- === documents ==================================================================
-- B03, B04: skipped, and told
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":1');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":1}{"n":2}');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '[1]');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, 'null');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '\x7b2273223a22c3227d');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, convert_to('{"s":' || repeat('[', 1001) || repeat(']', 1001) || '}', 'UTF8'));
-- without the option each is an error
ALTER FOREIGN TABLE ign_json OPTIONS (SET "value.json.ignore-parse-errors" 'false');
SELECT count(*) FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":1');
SELECT n FROM upsert_kafka.decode(NULL::ign_json, NULL, '{"n":"abc"}');

-- === Flink's rule ===============================================================
ALTER FOREIGN TABLE ign_json OPTIONS (SET "value.json.ignore-parse-errors" 'true', ADD json_fail_on_missing_field 'true');
ALTER FOREIGN TABLE ign_json OPTIONS (ADD json_fail_on_missing_field 'false');
CREATE FOREIGN TABLE ign_both (k int OPTIONS (key 'true'), v int) SERVER ign OPTIONS (connector 'upsert-kafka', topic 'ign', key_format 'json', value_format 'json',
	"key.json.ignore-parse-errors" 'true', "key.json.fail-on-missing-field" 'true');

-- === domains: what they forbid is no parse error ================================
CREATE FOREIGN TABLE ign_domain (n ign_positive, g ign_given) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'json', json_ignore_parse_errors 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_domain, NULL, '{"n":"x","g":1}');
SELECT * FROM upsert_kafka.decode(NULL::ign_domain, NULL, '{"n":-1,"g":1}');
SELECT * FROM upsert_kafka.decode(NULL::ign_domain, NULL, '{"n":1,"g":"x"}');

-- === keys =======================================================================
CREATE FOREIGN TABLE ign_key (id int OPTIONS (key 'true'), v int, kind text OPTIONS (metadata 'row_kind')) SERVER ign
	OPTIONS (connector 'upsert-kafka', topic 'ign_key', key_format 'json', value_format 'json', key_json_ignore_parse_errors 'true', value_json_ignore_parse_errors 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{"id":1}', '{"v":"x"}');
-- a key column is never NULL
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{"id":"x"}', '{"v":1}');
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{}', '{"v":1}');
SELECT * FROM upsert_kafka.decode(NULL::ign_key, NULL, '{"v":1}');
-- a key that cannot be parsed is skipped, under a tombstone too; nothing is deleted
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{"id":1', '{"v":1}');
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{"id":1', NULL);
SELECT * FROM upsert_kafka.decode(NULL::ign_key, '{"id":1}', '{"v":1');
-- where rows have no key, its column is as any other
CREATE FOREIGN TABLE ign_append (id int OPTIONS (key 'true'), v int) SERVER ign OPTIONS (connector 'kafka', topic 'ign_key', key_format 'json', value_format 'json',
	key_json_ignore_parse_errors 'true', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::ign_append, '{"id":"x"}', '{"v":1}');
-- the option is the key's: the value's errors stay
SELECT * FROM upsert_kafka.decode(NULL::ign_append, '{"id":"x"}', '{"v":"x"}');

-- === change events ==============================================================
CREATE FOREIGN TABLE ign_dbz (id int, d date, a timestamp[], ts timestamptz OPTIONS (metadata 'value.source.timestamp'), kind text OPTIONS (metadata 'row_kind')) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'debezium-json', "debezium-json.ignore-parse-errors" 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"before":{"id":1,"d":"2024-01-01"},"after":{"id":1,"d":"never"},"op":"u","source":{"ts_ms":"soon"}}');
-- logical types: what does not fit its schema
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"schema":{"type":"struct","fields":[{"field":"after","type":"struct","fields":[{"field":"id","type":"int32"},{"field":"d","type":"int32","name":"io.debezium.time.Date"},{"field":"a","type":"array","items":{"type":"int64","name":"io.debezium.time.Timestamp"}}]}]},"payload":{"before":null,"after":{"id":1,"d":"x","a":[0,"x",1000]},"op":"c","source":{"ts_ms":0}}}');
-- events that tell nothing are skipped; a TRUNCATE tells something
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"after":{"id":1}}');
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"before":null,"after":null,"op":"d"}');
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"before":null,"after":"x","op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::ign_dbz, NULL, '{"op":"t"}');

-- rows of one message that come before the bad one are not told twice, nor left over
CREATE FOREIGN TABLE ign_canal (id int, v int, kind text OPTIONS (metadata 'row_kind')) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'canal-json', "canal-json.ignore-parse-errors" 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_canal, NULL, '{"data":[{"id":"1","v":"1"},{"id":"2","v":"x"}],"type":"INSERT"}');
SELECT * FROM upsert_kafka.decode(NULL::ign_canal, NULL, '{"data":[{"id":"1","v":"1"},{"id":"2","v":"2"}],"old":[{"v":"0"}],"type":"UPDATE"}');
CREATE FOREIGN TABLE ign_maxwell (id int, v int, kind text OPTIONS (metadata 'row_kind')) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'maxwell-json', "maxwell-json.ignore-parse-errors" 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_maxwell, NULL, '{"data":{"id":1,"v":"x"},"old":{"v":1},"type":"update"}');
SELECT * FROM upsert_kafka.decode(NULL::ign_maxwell, NULL, '{"data":[],"type":"insert"}');
CREATE FOREIGN TABLE ign_ogg (id int, v int, kind text OPTIONS (metadata 'row_kind')) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign', value_format 'ogg-json', "ogg-json.ignore-parse-errors" 'true');
SELECT * FROM upsert_kafka.decode(NULL::ign_ogg, NULL, '{"before":{"id":1,"v":1},"after":{"id":1,"v":"x"},"op_type":"U"}');
SELECT * FROM upsert_kafka.decode(NULL::ign_ogg, NULL, '{"op_type":"I"}');

-- === topics =====================================================================
\! test/kt create ign_many --fresh
\! printf '%s\n' 'a|{' 'b|{"n":1}' 'c|{"n":' 'd|[1]' 'e|{"n":"two"}' 'f|{"n":99999999999}' 'g|{"n":3}' 'h|nul' | test/kt produce ign_many
CREATE FOREIGN TABLE ign_many (n int, o bigint OPTIONS (metadata 'offset')) SERVER ign
	OPTIONS (connector 'kafka', topic 'ign_many', value_format 'json', json_ignore_parse_errors 'true');
-- B04: on_error is 'stop', and stops at none of them
SELECT n, o FROM ign_many;
-- the rows do not depend on the columns
SELECT count(*) FROM ign_many;
ALTER FOREIGN TABLE ign_many OPTIONS (ADD on_error 'skip');
SELECT count(n), count(*) FROM ign_many;
BEGIN READ ONLY;
DECLARE c CURSOR FOR SELECT n, o FROM ign_many;
FETCH 2 FROM c;
SAVEPOINT s;
FETCH ALL FROM c;
COMMIT;
-- an error that is left stops where it is reached, behind what was skipped
ALTER FOREIGN TABLE ign_many OPTIONS (SET on_error 'stop');
ALTER FOREIGN TABLE ign_many ALTER n TYPE ign_given;
SELECT n, o FROM ign_many LIMIT 1;
SELECT n, o FROM ign_many;

-- X12: what cannot be parsed does not replace the old row; a bad field does
\! test/kt create ign_key --fresh
\! printf '%s\n' '{"id":1}|{"v":1}' '{"id":2}|{"v":2}' '{"id":3}|{"v":3}' '{"id":1}|{"v":10' '{"id":2}|{"v":"x"}' '{"id":3|\N' '{"id":1}|' | test/kt produce ign_key
SELECT * FROM ign_key ORDER BY id;
SELECT count(*) FROM ign_key;
SELECT id FROM ign_key WHERE id = 1;
ALTER FOREIGN TABLE ign_key OPTIONS (ADD changelog 'true');
SELECT id, v, kind FROM ign_key;
ALTER FOREIGN TABLE ign_key OPTIONS (DROP changelog);

-- === a maintained table: applied, and recorded ==================================
-- no worker acts here: refresh() does
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
SELECT upsert_kafka.materialize('ign_key', 'ign_loaded');
SELECT upsert_kafka.refresh('ign_loaded');
SELECT id, v FROM ign_loaded ORDER BY id;
SELECT partition, "offset", sqlstate, column_name, convert_from(raw_key, 'UTF8') AS key, convert_from(raw_value, 'UTF8') AS value, message
	FROM upsert_kafka.errors WHERE target = 'ign_loaded'::regclass ORDER BY "offset";
-- what comes later, with an error that the option does not cover: it stops there, what was skipped before is recorded, what comes behind is not yet
\! printf '%s\n' '{"id":4}|{"v":4}' '{"id":4}|{' '{"id":5}|{"v":"x"}' '{"id":"x"}|{"v":6}' '{"id":4}|nul' '{"id":6}|{"v":6}' | test/kt produce ign_key
SELECT upsert_kafka.refresh('ign_loaded');
SELECT state, errors FROM upsert_kafka.tables WHERE target = 'ign_loaded'::regclass;
SELECT "offset", sqlstate FROM upsert_kafka.errors WHERE target = 'ign_loaded'::regclass ORDER BY "offset";
SELECT upsert_kafka.skip('ign_loaded', 0, 10);
SELECT upsert_kafka.refresh('ign_loaded');
SELECT id, v FROM ign_loaded ORDER BY id;
SELECT "offset", sqlstate FROM upsert_kafka.errors WHERE target = 'ign_loaded'::regclass ORDER BY "offset";
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();

SELECT upsert_kafka.drop('ign_loaded');
\! test/kt delete ign_many
\! test/kt delete ign_key
DROP SERVER ign CASCADE;
DROP DOMAIN ign_positive, ign_given;
DROP TYPE ign_pair;
