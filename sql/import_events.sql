-- === IMPORT FOREIGN SCHEMA: change events are recognised by their envelopes ===
\set VERBOSITY default
\set broker `echo "$BROKER"`
SET datestyle = 'ISO';
CREATE SERVER impev FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker', timeout '10s');
CREATE SCHEMA impev;
SET search_path = impev, public;
CREATE VIEW proposed AS
	SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attfdwoptions AS options
	  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	 WHERE c.relkind = 'f' AND c.relnamespace = 'impev'::regnamespace AND a.attnum > 0
	 ORDER BY 1, 2;
CREATE VIEW proposed_table AS
	SELECT ftrelid::regclass AS table, ftoptions AS options FROM pg_foreign_table
	  JOIN pg_class c ON c.oid = ftrelid WHERE c.relnamespace = 'impev'::regnamespace ORDER BY c.relname;

-- Debezium's, bare: an event about no row and a tombstone are among them
\! test/kt create impev_dbz --fresh
\! printf '%s\n' '{"id": 1}|{"before": null, "after": {"id": 1, "v": "a", "n": 1.5}, "op": "c", "ts_ms": 1}' '∅|{"op": "m", "message": {}}' '{"id": 1}|{"before": {"id": 1, "v": "a", "n": 1.5}, "after": null, "op": "d"}' '{"id": 1}|∅' '{"id": 2}|{"before": null, "after": {"id": 2, "v": "b", "n": null, "late": true}, "op": "r"}' | test/kt produce impev_dbz
-- wrapped with their schema, in key and value: the schema's types, logical ones included
\! test/kt create impev_dbz_schema --fresh
\! echo '{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},{"type":"string","optional":false,"name":"io.debezium.data.Uuid","field":"u"}]},"payload":{"id":7,"u":"550e8400-e29b-41d4-a716-446655440000"}}|{"schema":{"type":"struct","fields":[{"type":"struct","optional":true,"name":"s.t.Value","field":"before","fields":[{"type":"int64","field":"id"}]},{"type":"struct","optional":true,"name":"s.t.Value","field":"after","fields":[{"type":"int64","optional":false,"field":"id"},{"type":"string","field":"u","name":"io.debezium.data.Uuid"},{"type":"int16","field":"small"},{"type":"boolean","field":"ok"},{"type":"double","field":"f"},{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2","connect.decimal.precision":"9"},"field":"price"},{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"},"field":"wide"},{"type":"struct","name":"io.debezium.data.VariableScaleDecimal","field":"any"},{"type":"int32","name":"io.debezium.time.Date","field":"day"},{"type":"int64","name":"io.debezium.time.MicroTimestamp","field":"at"},{"type":"int64","name":"io.debezium.time.Timestamp","field":"at3"},{"type":"string","name":"io.debezium.time.ZonedTimestamp","field":"atz"},{"type":"int64","name":"io.debezium.time.MicroTime","field":"tod"},{"type":"int64","name":"io.debezium.time.MicroDuration","field":"lasts"},{"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"3"},"field":"bits"},{"type":"string","name":"io.debezium.data.Json","field":"j"},{"type":"string","name":"io.debezium.data.Enum","parameters":{"allowed":"x,y"},"field":"e"},{"type":"bytes","field":"b"},{"type":"array","items":{"type":"int32"},"field":"ints"},{"type":"array","items":{"type":"int32","name":"io.debezium.time.Date"},"field":"days"},{"type":"struct","name":"io.debezium.data.geometry.Geometry","field":"g"}]},{"type":"string","field":"op"}]},"payload":{"before":null,"after":{"id":7,"u":"550e8400-e29b-41d4-a716-446655440000","small":1,"ok":true,"f":0.5,"price":"AeJA","wide":"AeJA","any":{"scale":1,"value":"AeJA"},"day":19783,"at":1709296496789012,"at3":1709296496789,"atz":"2024-03-01T12:34:56Z","tod":3600000000,"lasts":1000000,"bits":"BQ==","j":"{\"a\": 1}","e":"x","b":"SGk=","ints":[1,2],"days":[0],"g":{"wkb":"AQ==","srid":4326}},"op":"c"}}' | test/kt produce impev_dbz_schema
-- without keys: a log of changes
\! test/kt create impev_dbz_log --fresh
\! printf '%s\n' '∅|{"before": null, "after": {"id": 1, "v": "a"}, "op": "c"}' '∅|{"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}, "op": "u"}' | test/kt produce impev_dbz_log
-- Canal's: all values are text, types come from MySQL's names
\! test/kt create impev_canal --fresh
\! printf '%s\n' '∅|{"data":null,"database":"d","isDdl":true,"mysqlType":null,"sql":"alter ..","table":"t","type":"ALTER"}' '∅|{"data":[{"id":"11","v":"a","w":"2.50","at":"2026-01-31 12:00:00","big":"1","raw":"\u00e9"}],"database":"d","isDdl":false,"mysqlType":{"id":"bigint(20)","v":"varchar(20)","w":"decimal(9,2)","at":"datetime","big":"bigint(20) unsigned","raw":"blob"},"old":null,"pkNames":["id"],"table":"t","type":"INSERT"}' | test/kt produce impev_canal
-- without those names: what the texts look like
\! test/kt create impev_canal_plain --fresh
\! printf '%s\n' '∅|{"data":[{"id":11,"day":"2026-01-31"}],"type":"INSERT"}' '∅|{"data":[{"id":11,"day":"2026-01-31"}],"type":"DELETE"}' | test/kt produce impev_canal_plain
-- Maxwell's: the key names its columns with a prefix
\! test/kt create impev_maxwell --fresh
\! printf '%s\n' '{"database":"d","table":"t","pk.id":7}|{"database":"d","table":"t","type":"insert","ts":1709296496,"data":{"id":7,"v":"a"}}' '∅|{"type":"table-alter","database":"d","table":"t","old":{},"def":{}}' '{"database":"d","table":"t","pk.id":7}|{"database":"d","table":"t","type":"update","ts":1709296497,"data":{"id":7,"v":"b"},"old":{"v":"a"}}' | test/kt produce impev_maxwell
-- GoldenGate's, with keys that are text
\! test/kt create impev_ogg --fresh
\! printf '%s\n' 'D.T_1|{"table":"D.T","op_type":"I","op_ts":"2026-01-31 12:00:00.000000","after":{"ID":1,"V":"a"}}' 'D.T_1|{"table":"D.T","op_type":"U","before":{"ID":1,"V":"a"},"after":{"ID":1,"V":"b"}}' | test/kt produce impev_ogg
-- no change events: one value among them is something else; an object that just has such members
\! test/kt create impev_mixed --fresh
\! printf '%s\n' '∅|{"before": null, "after": {"id": 1}, "op": "c"}' '∅|{"id": 1}' | test/kt produce impev_mixed
\! test/kt create impev_none --fresh
\! printf '%s\n' '∅|{"type": "insert", "data": 1, "op": "c"}' | test/kt produce impev_none

IMPORT FOREIGN SCHEMA topics LIMIT TO (impev_dbz, impev_dbz_schema, impev_dbz_log, impev_canal, impev_canal_plain, impev_maxwell, impev_ogg, impev_mixed, impev_none)
	FROM SERVER impev INTO impev;
SELECT * FROM proposed_table;
SELECT attname, type, options FROM proposed WHERE relname = 'impev_dbz_schema';
SELECT relname, attname, type, options FROM proposed WHERE relname <> 'impev_dbz_schema';

-- the tables can be read
SELECT * FROM impev_dbz ORDER BY id;
\x
SELECT * FROM impev_dbz_schema;
\x
SELECT * FROM impev_dbz_log;
SELECT * FROM impev_canal;
SELECT * FROM impev_maxwell;
SELECT * FROM impev_ogg;

-- the connector can be chosen: a log of changes whose keys are there all the same
DROP FOREIGN TABLE impev_dbz, impev_ogg;
IMPORT FOREIGN SCHEMA topics LIMIT TO (impev_dbz) FROM SERVER impev INTO impev OPTIONS (connector 'kafka');
SELECT * FROM impev_dbz;
-- or the state of keys that say nothing of columns
IMPORT FOREIGN SCHEMA topics LIMIT TO (impev_ogg) FROM SERVER impev INTO impev OPTIONS (connector 'upsert-kafka');
SELECT * FROM impev_ogg;

-- === Framing of a registry, where the server has none: B13, G02 ===
-- JSON text behind it can be read
\! test/kt create impev_framed_json --fresh
\! printf '%s\n' "x'000000004d7b226964223a317d'|x'000000004e7b2276223a2261227d'" | test/kt produce impev_framed_json
-- also change events
\! test/kt create impev_framed_dbz --fresh
SELECT format('x''000000004d%s''|x''000000004e%s''', encode('{"id":1}', 'hex'), encode('{"after":{"id":1,"v":"a"},"op":"c"}', 'hex')) AS message \gset
\o |test/kt produce impev_framed_dbz
\qecho :message
\o
-- Avro cannot, and the proposal says so
\! test/kt create impev_framed_avro --fresh
\! printf '%s\n' "x'000000002906616263'|x'000000002a0e02085a6fc3ab0404d2'" | test/kt produce impev_framed_avro
-- numbers of eight bytes begin with zeros, too, but look different each
\! test/kt create impev_numbers --fresh
\! for i in 1 2 3 4 5 6 7 8 9 10; do printf "∅|x'0000%02x%02x00000001'\n" $i $i; done | test/kt produce impev_numbers
IMPORT FOREIGN SCHEMA topics LIMIT TO (impev_framed_json, impev_framed_dbz, impev_framed_avro, impev_numbers) FROM SERVER impev INTO impev;
SELECT * FROM proposed_table t WHERE t.table::text ~ 'framed|numbers';
SELECT relname, attname, type, options FROM proposed WHERE relname ~ 'framed|numbers';
SELECT * FROM impev_framed_json;
SELECT * FROM impev_framed_dbz;
SELECT * FROM impev_framed_avro;

RESET search_path;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA impev CASCADE;
DROP SERVER impev CASCADE;
\! for t in dbz dbz_schema dbz_log canal canal_plain maxwell ogg mixed none framed_json framed_dbz framed_avro numbers; do test/kt delete impev_$t; done
