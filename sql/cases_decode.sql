-- === The cases B to F and X that are about decoding, by their own inputs (G: t/090_registry.pl) ===
\set VERBOSITY default
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
SET datestyle = 'ISO';
CREATE SERVER cd FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
-- a row, or what was wrong with the message
CREATE FUNCTION cd(tab anyelement, key text, value text) RETURNS TABLE (result text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT d::text FROM upsert_kafka.decode(tab, convert_to(key, 'UTF8'), convert_to(value, 'UTF8')) d;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS result = PG_EXCEPTION_DETAIL;
	result := concat(SQLSTATE, ' ', SQLERRM, ' / ', regexp_replace(result, '^Topic "x", partition 0, offset 0: ', ''));
	RETURN NEXT;
END $$;
CREATE FOREIGN TABLE cd_t (id int OPTIONS (key 'true'), v text) SERVER cd
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE cd_raw (k text OPTIONS (key 'true'), v text) SERVER cd
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'raw', value_fields_include 'EXCEPT_KEY');
CREATE FOREIGN TABLE cd_csv (id int, v text) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
CREATE FOREIGN TABLE cd_json (v text, j json, jb jsonb, b bigint, n numeric, m numeric, f float8, s smallint, flag boolean) SERVER cd
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');

-- === B: JSON text and numbers ===
-- B01: NUL, and what only looks like it
SELECT * FROM cd(NULL::cd_t, '{"id":1}', '{"v":"x\u0000y"}');
SELECT v = 'x\u0000y' AS same FROM upsert_kafka.decode(NULL::cd_t, '{"id":1}', convert_to('{"v":"x\\u0000y"}', 'UTF8'));
SELECT * FROM cd(NULL::cd_json, NULL, '{"jb":{"v":"x\u0000y"}}');
SELECT j FROM upsert_kafka.decode(NULL::cd_json, NULL, convert_to('{"j":{"v":"x\u0000y"}}', 'UTF8'));
-- B03: bytes that are no UTF-8, a control character; in keys, raw and csv, too
CREATE FUNCTION cd_bytes(part text, message bytea, OUT result text) LANGUAGE plpgsql AS $$
BEGIN
	CASE part
		WHEN 'json' THEN SELECT v INTO result FROM upsert_kafka.decode(NULL::cd_t, '{"id":1}', message);
		WHEN 'key' THEN SELECT v INTO result FROM upsert_kafka.decode(NULL::cd_t, message, '{"v":"a"}');
		WHEN 'raw' THEN SELECT v INTO result FROM upsert_kafka.decode(NULL::cd_raw, 'k', message);
		WHEN 'csv' THEN SELECT v INTO result FROM upsert_kafka.decode(NULL::cd_csv, NULL, message);
	END CASE;
EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
END $$;
SELECT m, cd_bytes('json', decode(m, 'hex')) AS json, cd_bytes('key', decode(m, 'hex')) AS key, cd_bytes('raw', decode(m, 'hex')) AS raw, cd_bytes('csv', decode(m, 'hex')) AS csv
	FROM unnest(ARRAY['7b2276223a22ff227d', '7b2276223a22c080227d', '7b2276223a22eda080227d', '7b2276223a22610962227d']) m;
-- B04: what no JSON is
SELECT r.* FROM unnest(ARRAY['{"v":12zz,"w":1}', '{"v":007}', '{"v":"e",}', '{"v":"f"}']) v, cd(NULL::cd_t, '{"id":1}', v) r;
-- B06: integers beyond 2^53, beyond bigint, and where no column wants them
SELECT r.* FROM unnest(ARRAY['{"b":9007199254740993,"n":9007199254740993}', '{"b":-9223372036854775808,"n":123456789012345678901234}', '{"b":9223372036854775808}', '{"n":18446744073709551615}', '{"n":1,"other":18446744073709551615}']) v, cd(NULL::cd_json, NULL, v) r;
-- B07: every digit, and no infinity or zero out of exponents
SELECT n, m, jb, f FROM upsert_kafka.decode(NULL::cd_json, NULL, '{"n":12345678901234567890.123456789,"m":1.10,"jb":{"p":1.10},"f":0.5}');
SELECT length(n::text) FROM upsert_kafka.decode(NULL::cd_json, NULL, '{"n":1E400}');
SELECT r.* FROM unnest(ARRAY['{"f":1e400}', '{"f":1e-400}']) v, cd(NULL::cd_json, NULL, v) r;
-- B09: the last of two members, in key and value
SELECT * FROM cd(NULL::cd_t, '{"id":1,"id":2}', '{"v":"first","v":"last"}');
-- B10: names are exact
SELECT r.* FROM unnest(ARRAY['{"V":"x"}', '{"V":"x","v":"y"}']) v, cd(NULL::cd_t, '{"id":1}', v) r;
-- B13: framing of a registry
SELECT cd_bytes('json', '\x000000004d7b2276223a2261227d');

-- === C: types ===
-- C01: without a schema a decimal's base64 is no number, or looks like one
SELECT n FROM unnest(ARRAY['{"n":"1234"}']) v, upsert_kafka.decode(NULL::cd_json, NULL, convert_to(v, 'UTF8'));
SELECT * FROM cd(NULL::cd_json, NULL, '{"n":"AeJA"}');
CREATE FOREIGN TABLE cd_dbz (p numeric, at timestamp, tz timestamptz, b bytea) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json');
CREATE FUNCTION cd_logical(type text, name text, value text, columns text, OUT result text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT %I::text FROM upsert_kafka.decode(NULL::cd_dbz, NULL, convert_to(%L, ''UTF8''))', columns, format('{"schema":{"type":"struct","fields":[{"field":"after","type":"struct","fields":[{"field":%s,"type":%s,"name":%s,"parameters":{"scale":"2"}}]}]},"payload":{"after":{%1$s:%4$s},"op":"c"}}',
		to_json(columns), to_json(type), to_json(name), value)) INTO result;
EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
END $$;
SELECT p, cd_logical('bytes', 'org.apache.kafka.connect.data.Decimal', to_json(p)::text, 'p') FROM unnest(ARRAY['AeJA', '/2o=', 'AIA=', 'gA==', 'AA==', '1234', 'SztMqFqGxHoJiiI//////w==', 'AeJ']) p;
-- C03: units by the schema's name
SELECT name, v, cd_logical('int64', 'io.debezium.time.' || name, v, 'at') FROM (VALUES ('MicroTimestamp', '86400000000'), ('MicroTimestamp', '1709296496789012'), ('MicroTimestamp', '-1'), ('Timestamp', '1709296496789'), ('NanoTimestamp', '1709296496789012345')) x (name, v);
SELECT * FROM cd(NULL::cd_dbz, NULL, '{"after":{"tz":1709296496789},"op":"c"}');
-- C04: a wall clock's time is the same under any session's zone
SET TimeZone = 'Asia/Shanghai';
SELECT cd_logical('int64', 'io.debezium.time.Timestamp', '1709258115000', 'at');
SET TimeZone = 'UTC';
SELECT cd_logical('int64', 'io.debezium.time.Timestamp', '1709258115000', 'at');
-- C06: booleans and small integers
SELECT r.* FROM unnest(ARRAY['{"flag":true,"s":1}', '{"flag":1,"s":0}', '{"flag":"t","s":true}']) v, cd(NULL::cd_json, NULL, v) r;
-- C07: bytes
SELECT b FROM upsert_kafka.decode(NULL::cd_dbz, NULL, '{"after":{"b":"SGk="},"op":"c"}');
CREATE FOREIGN TABLE cd_canal (id bigint, v text, w numeric, b bytea, kind text OPTIONS (metadata 'row_kind')) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json');
SELECT b FROM upsert_kafka.decode(NULL::cd_canal, NULL, convert_to('{"data":[{"b":"\u00c3\u00a9"}],"type":"INSERT"}', 'UTF8'));
SELECT * FROM cd(NULL::cd_canal, NULL, '{"data":[{"b":"\ufffd"}],"type":"INSERT"}');
CREATE FOREIGN TABLE cd_bytea (b bytea) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT r.* FROM unnest(ARRAY['{"b":"\\x4869"}', '{"b":"SGk="}', '{"b":"Hi!"}']) v, cd(NULL::cd_bytea, NULL, v) r;
-- C08: strings into other types
CREATE FOREIGN TABLE cd_strings (j jsonb, r tstzrange, c varchar(3), p numeric(5,2)) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT r.* FROM unnest(ARRAY['abcdef', 'abc']) c, cd(NULL::cd_strings, NULL, replace('{"j":"{\"a\": [1, 2]}","r":"[2024-03-01 00:00:00+00,infinity)","c":"abcdef","p":3.145}', 'abcdef', c)) r;

-- === D: Debezium ===
CREATE FOREIGN TABLE cd_cdc (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER cd
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'debezium-json');
-- D01: wrapped key and value; plain json does not know them; Connect's null is a delete
SELECT * FROM cd(NULL::cd_cdc, '{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}]},"payload":{"id":1}}', '{"schema":{"type":"struct","fields":[]},"payload":{"before":null,"after":{"id":1,"v":"a"},"source":{"table":"t"},"op":"c","ts_ms":1709296496789}}');
SELECT * FROM cd(NULL::cd_t, '{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}]},"payload":{"id":1}}', '{"schema":{},"payload":{"after":{"id":1,"v":"a"},"op":"c"}}');
SELECT * FROM cd(NULL::cd_cdc, '{"id":1}', '{"schema":null,"payload":null}');
-- D02: no row before; without a key a delete needs one
SELECT r.* FROM unnest(ARRAY['{"before":null,"after":{"id":1,"v":"a"},"op":"u"}', '{"before":{"id":2,"v":null},"after":null,"op":"d"}', '{"before":null,"after":null,"op":"d"}']) v, cd(NULL::cd_cdc, '{"id":1}', v) r;
SELECT * FROM cd(NULL::cd_dbz, NULL, '{"before":null,"after":null,"op":"d"}');
-- D03: operations
SELECT op, r.* FROM unnest(ARRAY['r', 'c', 'x', 'm']) op LEFT JOIN LATERAL cd(NULL::cd_cdc, '{"id":1}', format('{"before":null,"after":{"id":1,"v":"a"},"op":%s}', to_json(op))) r ON true;
-- D05: MongoDB's documents
CREATE FOREIGN TABLE cd_mongo (id jsonb OPTIONS (key 'true'), after jsonb) SERVER cd
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'debezium-json');
SELECT after -> 'n' ->> '$numberLong' FROM upsert_kafka.decode(NULL::cd_mongo, convert_to('{"id":"{\"$oid\": \"65e1c0ffee0123456789abcd\"}"}', 'UTF8'),
	convert_to('{"before":null,"after":"{\"_id\": {\"$oid\": \"65e1c0ffee0123456789abcd\"},\"n\": {\"$numberLong\": \"9007199254740993\"},\"tags\": [\"a\"]}","updateDescription":null,"op":"c"}', 'UTF8'));
SELECT * FROM cd(NULL::cd_cdc, '{"id":1}', '{"after":"{\"v\": \"a\"}","op":"c"}');
SELECT * FROM cd(NULL::cd_mongo, '{"id":"1"}', '{"before":null,"after":null,"updateDescription":{"updatedFields":"{}"},"op":"u"}');

-- === E: Canal and Maxwell ===
-- E01: DDL is no row, whatever its key
SELECT count(r) FROM unnest(ARRAY['{"data":null,"database":"d","es":1709296496000,"id":1,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,"sql":"alter table t add x int","sqlType":null,"table":"t","ts":1709296496100,"type":"ALTER"}', '{"data":null,"database":"d","isDdl":false,"type":"QUERY","table":"t"}']) v, cd(NULL::cd_canal, NULL, v) r;
-- E02: several rows, all values text, nulls before a change
SELECT r.* FROM unnest(ARRAY['{"data":[{"id":"11","v":"a","w":"2.50"},{"id":"12","v":null,"w":"0.25"}],"database":"d","isDdl":false,"old":null,"pkNames":["id"],"table":"t","type":"INSERT"}', '{"data":[{"id":"12","v":"b","w":"0.25"}],"database":"d","isDdl":false,"old":[{"v":null}],"pkNames":["id"],"table":"t","type":"UPDATE"}']) v, cd(NULL::cd_canal, NULL, v) r;
-- E04: Maxwell's bootstrap and table changes
CREATE FOREIGN TABLE cd_maxwell (id int OPTIONS (key 'true', field 'pk.id'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER cd
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'maxwell-json');
SELECT n, r.* FROM (VALUES (1, '{"database":"d","table":"t","_uuid":"u1"}', '{"database":"d","table":"t","type":"bootstrap-start","ts":1709296496,"data":{}}'), (2, '{"database":"d","table":"t","pk.id":7}', '{"database":"d","table":"t","type":"bootstrap-insert","ts":1709296496,"data":{"id":7,"v":"a"}}'),
	(3, NULL, '{"type":"table-alter","database":"d","table":"t","old":{},"def":{},"ts":1709296496001,"sql":"ALTER TABLE t AUTO_INCREMENT = 9"}'), (4, '{"database":"d","table":"t","pk.id":7}', '{"database":"d","table":"t","type":"update","ts":1709296497,"xid":1,"commit":true,"data":{"id":7,"v":"b"},"old":{"v":"a"}}'),
	(5, '{"database":"d","table":"t","pk.id":8}', '{"database":"d","table":"t","type":"delete","ts":1709296498,"xid":2,"commit":true,"data":{"id":8,"v":"z"}}')) m (n, k, v) LEFT JOIN LATERAL cd(NULL::cd_maxwell, m.k, m.v) r ON true ORDER BY n;

-- === F: CSV ===
-- F02: line ends, an empty message, two records
SELECT r.* FROM unnest(ARRAY['1,a', E'2,b\n', E'3,c\r\n', '', E'4,d\n5,e']) WITH ORDINALITY v (v, n), cd(NULL::cd_csv, NULL, v) r ORDER BY n;
-- F03: too few, too many; delimiters
CREATE FOREIGN TABLE cd_csv3 (a int, b text, c text) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT r.* FROM unnest(ARRAY['1,a', '1,a,b,c']) WITH ORDINALITY v (v, n), cd(NULL::cd_csv3, NULL, v) r ORDER BY n;
ALTER FOREIGN TABLE cd_csv3 OPTIONS (ADD value_csv_field_delimiter '||');
ALTER FOREIGN TABLE cd_csv3 OPTIONS (ADD value_csv_field_delimiter '\u0001');
SELECT * FROM cd(NULL::cd_csv3, NULL, E'1\u0001a\u0001b');
ALTER FOREIGN TABLE cd_csv3 OPTIONS (SET value_csv_field_delimiter E'\u0001');
SELECT * FROM cd(NULL::cd_csv3, NULL, E'1\u0001a\u0001b');
ALTER FOREIGN TABLE cd_csv3 OPTIONS (SET value_csv_field_delimiter '"');

-- === X: decisions ===
-- X01, X02, X03: no key, nothing, null
SELECT n, r.* FROM (VALUES (1, NULL, '{"id":1,"v":"a"}'), (2, NULL, NULL), (3, '{"id":1}', ''), (4, '{"id":1}', 'null'), (5, '{"id":1}', NULL)) m (n, k, v), cd(NULL::cd_t, m.k, m.v) r ORDER BY n;
-- X05: the key wins
SELECT * FROM cd(NULL::cd_t, '{"id":1}', '{"id":2,"v":"a"}');
-- X06: a byte-order mark, in value and key, before CSV
SELECT cd_bytes('json', '\xefbbbf7b2276223a2261227d'), cd_bytes('key', '\xefbbbf7b226964223a317d'), cd_bytes('csv', '\xefbbbf312c61');
-- X07: infinity has sentinels, for Debezium only
SELECT v, cd_logical('int64', 'io.debezium.time.' || name, v, 'at') FROM (VALUES ('Timestamp', '9223372036825200000'), ('MicroTimestamp', '9223372036825200'), ('MicroTimestamp', '9223371331200000000'), ('Timestamp', '9223372036854775807')) x (name, v);
-- X08: an offset where there is no zone
CREATE FOREIGN TABLE cd_at (at timestamp) SERVER cd OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM cd(NULL::cd_at, NULL, '{"at":"2024-03-01T12:00:00+05:30"}');
SELECT cd_logical('string', 'io.debezium.time.ZonedTimestamp', '"2024-03-01T12:00:00+05:30"', 'at');
-- X09: whole numbers in any spelling
SELECT v, r.* FROM unnest(ARRAY['1.0', '1e3', '1.5', '"1.0"']) v, cd(NULL::cd_t, format('{"id":%s}', v), '{"v":"a"}') r;
-- X10: TRUNCATE
SELECT * FROM cd(NULL::cd_cdc, NULL, '{"source":{"table":"t"},"op":"t","ts_ms":1709296496789}');
-- X11: placeholders in arrays
CREATE FOREIGN TABLE cd_toast (id int OPTIONS (key 'true'), v text[], i int[]) SERVER cd OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'debezium-json');
SELECT * FROM cd(NULL::cd_toast, '{"id":1}', format('{"after":{"v":["__debezium_unavailable_value"],"i":[%s]},"op":"u"}', (SELECT string_agg(ascii(c)::text, ',') FROM regexp_split_to_table('__debezium_unavailable_value', '') c)));
-- X12: a delete marker is data, until an option names it
SELECT * FROM cd(NULL::cd_t, '{"id":2}', '{"id":2,"v":"b","__deleted":"true"}');
ALTER FOREIGN TABLE cd_t OPTIONS (ADD delete_marker '__deleted');
ALTER FOREIGN TABLE cd_t ADD COLUMN kind text OPTIONS (metadata 'row_kind');
SELECT * FROM cd(NULL::cd_t, '{"id":2}', '{"id":2,"v":"b","__deleted":"true"}');
-- X13: fields of nothing; numbers as booleans
SELECT b IS NULL AS b_null, c = '' AS c_empty FROM upsert_kafka.decode(NULL::cd_csv3, NULL, E'1\u0001\u0001""');
SELECT r.* FROM unnest(ARRAY['-1', '2', '0', '"2"']) v, cd(NULL::cd_json, NULL, format('{"flag":%s}', v)) r;

SET client_min_messages = warning;
DROP FUNCTION cd, cd_bytes, cd_logical;
DROP SERVER cd CASCADE;
