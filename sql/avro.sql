-- === format avro: one message is one Avro value, without its schema ===
SET TimeZone = 'America/New_York';    -- the session's settings must not show
SET DateStyle = 'SQL, DMY';
CREATE SERVER avro_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');

-- === the schema is the table's: column order, nullable columns are unions with null ===
-- NOT NULL columns and keys of upsert tables have no union around them, as in Flink
CREATE FOREIGN TABLE avro_derived (id int OPTIONS (key 'true'), v text, n int NOT NULL)
  SERVER avro_kafka OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'avro', value_format 'avro');
SELECT encode(key, 'hex') AS key, encode(value, 'hex') AS value FROM upsert_kafka.encode(ROW(1, 'a', -1)::avro_derived);
SELECT encode(value, 'hex') AS value FROM upsert_kafka.encode(ROW(1, NULL, 3)::avro_derived);
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202026101');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x020006');
-- a tombstone
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', NULL);
-- what has no place
SELECT upsert_kafka.encode(ROW(1, 'a', NULL)::avro_derived);
-- a projection reads the same bytes: columns that are not wanted are passed over
SELECT n FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202026101');

-- every type that has one of its own, there and back
CREATE TYPE avro_point AS (x int, y numeric(6,2));
CREATE DOMAIN avro_positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE avro_types (b bool, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric(10,2), big numeric(38,0), t text, vc varchar(5), c char(3),
    by bytea, d date, t0 time(0), t6 time, ts3 timestamp(3), ts6 timestamp, tz3 timestamptz(3), tz6 timestamptz, u uuid, ar int[], ta text[], p avro_point, pa avro_point[],
    dom avro_positive, j jsonb, iv interval)
  SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro');
CREATE TABLE avro_rows AS SELECT r FROM (VALUES
    (ROW(true, -32768, 2147483647, -9223372036854775808, 1.5, -0.0, -123.45, 12345678901234567890123456789012345678, 'Zoë', '12345', 'ab', '\x00ff', '2020-01-02', '12:13:14',
         '12:13:14.567891', '2020-01-02 03:04:05.123', '1969-12-31 23:59:59.999999', '2020-01-02 03:04:05.123+00', '0044-03-15 00:00:00+00 BC', '01234567-89ab-cdef-0123-456789abcdef',
         '{1,NULL,3}', '{}', ROW(1, 2.50), ARRAY[ROW(NULL, -0.01), NULL]::avro_point[], 5, '{"k": [1, null]}', '1 day 2 hours')::avro_types),
    (ROW(NULL, NULL, NULL, NULL, 'NaN', '-Infinity', 0, -1, '', NULL, NULL, '', '0001-01-01', '00:00', '24:00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::avro_types)
  ) AS x (r);
SELECT count(*), count(*) FILTER (WHERE back IS NOT DISTINCT FROM r.r) AS same
  FROM avro_rows r, upsert_kafka.encode(r.r) e, upsert_kafka.decode(NULL::avro_types, NULL, e.value) back;
-- the columns mean what they meant
SET TimeZone = 'UTC';
SELECT d.b, d.i2, d.i8, d.f8, d.n, d.big, d.t, d.c, d.by, d.tz6, d.u, d.pa, d.j, d.iv FROM avro_rows r, upsert_kafka.encode(r.r) e, upsert_kafka.decode(NULL::avro_types, NULL, e.value) d WHERE (r.r).b;
-- a domain's say
SELECT * FROM upsert_kafka.decode(NULL::avro_types, NULL, (SELECT decode(repeat('00', 24) || '0201' || '0000', 'hex')));
-- a type that says too little for a schema
CREATE FOREIGN TABLE avro_vague (n numeric) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro');
DROP FOREIGN TABLE avro_vague;
-- numbers that don't fit
CREATE FOREIGN TABLE avro_small (v smallint) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro');
SELECT * FROM upsert_kafka.decode(NULL::avro_small, NULL, '\x0280f104');
-- times at the ends: 64 bits of microseconds since 1970 end before PostgreSQL's last year, and hold more than its first
CREATE FOREIGN TABLE avro_times (t timestamp) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro');
SELECT d.t FROM upsert_kafka.encode(ROW('294246-12-31 23:59:59.999999')::avro_times) e, upsert_kafka.decode(NULL::avro_times, NULL, e.value) d;
SELECT upsert_kafka.encode(ROW('294276-12-31 23:59:59')::avro_times);
SELECT upsert_kafka.encode(ROW('infinity')::avro_times);
CREATE FOREIGN TABLE avro_time_text (t text)
  SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "R", "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}');
SELECT * FROM upsert_kafka.decode(NULL::avro_times, NULL, '\x02ffffffffffffffffff01');
SELECT * FROM upsert_kafka.decode(NULL::avro_time_text, NULL, '\xffffffffffffffffff01');

-- === a given schema: fields are found by name ===
-- order, nullability, fields that the table doesn't have, columns that the schema doesn't have
CREATE FOREIGN TABLE avro_given (a int, b text, gone int)
  SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "R", "namespace": "com.acme", "fields": [
     {"name": "b", "type": "string"}, {"name": "unused", "type": {"type": "array", "items": {"type": "map", "values": "long"}}},
     {"name": "self", "type": ["null", "R"]}, {"name": "a", "type": ["long", "null", "string"]}]}');
-- b, [{"k": 1}] in a block that tells its size, self with everything in it, a as a long
SELECT * FROM upsert_kafka.decode(NULL::avro_given, NULL, decode('0278' || '010a02026b0200' || '00' || '00' || '000e', 'hex'));
-- the same without a size, a record in itself, a as text; then null
SELECT * FROM upsert_kafka.decode(NULL::avro_given, NULL, decode('0278' || '0202026b020000' || '02' || '02790000' || '02' || '04043432', 'hex'));
SELECT * FROM upsert_kafka.decode(NULL::avro_given, NULL, decode('0278' || '00' || '00' || '02', 'hex'));
-- text that is no number is the input function's error
SELECT * FROM upsert_kafka.decode(NULL::avro_given, NULL, decode('0278' || '00' || '00' || '0402' || '78', 'hex'));
-- to be written, every column needs a field
SELECT upsert_kafka.encode(ROW(1, 'b', 2)::avro_given);
-- schemas that are none
CREATE FOREIGN TABLE avro_bad (a int) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema '{"type": "record"}');
ALTER FOREIGN TABLE avro_bad OPTIONS (SET value_avro_schema '{"type": "array", "items": "nonsense"}');
ALTER FOREIGN TABLE avro_bad OPTIONS (SET value_avro_schema '{');
ALTER FOREIGN TABLE avro_bad OPTIONS (ADD value_avro_encoding 'xml');
ALTER FOREIGN TABLE avro_bad OPTIONS (ADD value_avro_schem 'x');
DROP FOREIGN TABLE avro_bad;

-- enum, fixed, uuid, duration, unions of several types, all logical types; into types of the same kind and into text
CREATE FOREIGN TABLE avro_kinds (e text, f bytea, u uuid, du interval, un text, dec numeric, decf numeric, d date, tm time, tu time, ms timestamptz, us timestamptz, ns timestamptz, lms timestamp,
    lus timestamp, lns timestamp) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "K", "fields": [
     {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}}, {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
     {"name": "u", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}}, {"name": "du", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
     {"name": "un", "type": ["null", "int", "string", "E", {"type": "map", "values": ["null", "double"]}]},
     {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}}, {"name": "decf", "type": {"type": "fixed", "name": "DF", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 3}},
     {"name": "d", "type": {"type": "int", "logicalType": "date"}}, {"name": "tm", "type": {"type": "int", "logicalType": "time-millis"}}, {"name": "tu", "type": {"type": "long", "logicalType": "time-micros"}},
     {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}}, {"name": "ns", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
     {"name": "lms", "type": {"type": "long", "logicalType": "local-timestamp-millis"}}, {"name": "lus", "type": {"type": "long", "logicalType": "local-timestamp-micros"}}, {"name": "lns", "type": {"type": "long", "logicalType": "local-timestamp-nanos"}}]}');
SELECT '02010203000102030405060708090a0b0c0d0e0f010000000200000003000000' AS head,
  '04ff6a' || 'ffffffff' || 'ae9d02' || '8eb7fa29' || '02' || '86b4aec3ec5b' || '01' || '01' || '00' || '02' || 'd00f' AS tail \gset
SET TimeZone = 'UTC';
SELECT * FROM upsert_kafka.decode(NULL::avro_kinds, NULL, decode(:'head' || '00' || :'tail', 'hex')) \gx
SELECT un FROM unnest(ARRAY['0254', '04046f6b', '0602', '0802027802000000000000f83f00', '080202790000']) WITH ORDINALITY AS x (un_bytes, n),
  upsert_kafka.decode(NULL::avro_kinds, NULL, decode(:'head' || un_bytes || :'tail', 'hex')) ORDER BY n;
-- symbols and branches that there are not
SELECT * FROM upsert_kafka.decode(NULL::avro_kinds, NULL, '\x04');
SELECT * FROM upsert_kafka.decode(NULL::avro_kinds, NULL, decode(:'head' || '0a', 'hex'));
-- what is written is what was read, but for the nanosecond that a timestamp lost
SELECT replace(encode(e.value, 'hex'), 'cf0f', '01') = :'head' || '00' || :'tail' AS same
  FROM upsert_kafka.decode(NULL::avro_kinds, NULL, decode(:'head' || '00' || :'tail', 'hex')) back, upsert_kafka.encode(back) e;
-- a duration has no sign, and four bytes each
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::avro_kinds, '{"e": "RED", "f": "\\x010203", "u": "00010203-0405-0607-0809-0a0b0c0d0e0f", "du": "-1 s"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::avro_kinds, '{"e": "RED", "f": "\\x010203", "u": "00010203-0405-0607-0809-0a0b0c0d0e0f", "du": "2000 h"}'));
DROP FOREIGN TABLE avro_kinds;
CREATE FOREIGN TABLE avro_kinds (e text, f bytea, u uuid, dec numeric) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "K", "fields": [
     {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}}, {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
     {"name": "u", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}}, {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}]}');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW('GREEN', '\x010203', '00010203-0405-0607-0809-0a0b0c0d0e0f', -1.5)::avro_kinds);
SELECT upsert_kafka.encode(ROW('BLUE', '\x010203', '00010203-0405-0607-0809-0a0b0c0d0e0f', 1)::avro_kinds);
SELECT upsert_kafka.encode(ROW('RED', '\x01', '00010203-0405-0607-0809-0a0b0c0d0e0f', 1)::avro_kinds);
SELECT upsert_kafka.encode(ROW('RED', '\x010203', '00010203-0405-0607-0809-0a0b0c0d0e0f', 1.005)::avro_kinds);
SELECT upsert_kafka.encode(ROW('RED', '\x010203', '00010203-0405-0607-0809-0a0b0c0d0e0f', 100)::avro_kinds);

-- === encoding json: unions name their branch, bytes are characters, all fields are there ===
CREATE FOREIGN TABLE avro_text (id int, v text, b bytea, at timestamp(3), a int[], j jsonb, f float8, e text, r jsonb) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_encoding 'json', value_avro_schema
  '{"type": "record", "name": "T", "namespace": "com.acme", "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": ["null", "string"]}, {"name": "b", "type": ["null", "bytes"]},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]}, {"name": "a", "type": {"type": "array", "items": ["null", "int"]}}, {"name": "j", "type": {"type": "map", "values": "string"}},
    {"name": "f", "type": "double"}, {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": ["X", "Y"]}]}, {"name": "r", "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "next", "type": ["null", "T"]}]}]}]}');
SELECT convert_from(value, 'UTF8') FROM upsert_kafka.encode(ROW(1, E'a"\n\U0001F600', '\x00c3a9', '2024-03-01 12:34:56.789', '{1,NULL}', '{"k": "v"}', 'NaN', 'Y', '{"next": null}')::avro_text);
SELECT d.v = E'a"\n\U0001F600' AS same, d.b, d.at, d.a, d.j, d.f, d.e, d.r FROM upsert_kafka.encode(ROW(1, E'a"\n\U0001F600', '\x00c3a9', '2024-03-01 12:34:56.789', '{1,NULL}', '{"k": "v"}', 'NaN', 'Y', '{"next": null}')::avro_text) e, upsert_kafka.decode(NULL::avro_text, NULL, e.value) d;
CREATE FUNCTION avro_text(v text) RETURNS SETOF avro_text LANGUAGE sql AS $$
  SELECT d.* FROM upsert_kafka.decode(NULL::avro_text, NULL, convert_to(replace('{"id": 1, "v": null, "b": null, "at": null, "a": [], "j": {}, "f": 1, "e": null, "r": null, "unknown": [1]}', split_part(v, ' ~ ', 1), split_part(v, ' ~ ', 2)), 'UTF8')) d $$;
-- in any order, a field that is not in the schema, an escaped name
SELECT * FROM avro_text('"id": 1, ~ "\u0069d": 2,');
-- what the binary encoding could not say either, each its own error
SELECT * FROM avro_text('"v": null ~ "v": "plain"');
SELECT * FROM avro_text('"v": null ~ "v": {"int": 1}');
SELECT * FROM avro_text('"v": null ~ "v": {"string": "a", "int": 1}');
SELECT * FROM avro_text('"v": null, ~ ');
SELECT * FROM avro_text('"id": 1 ~ "id": 2147483648');
SELECT * FROM avro_text('"id": 1 ~ "id": 1.0');
SELECT * FROM avro_text('"id": 1 ~ "id": null');
SELECT * FROM avro_text('"b": null ~ "b": {"bytes": "\u0100"}');
SELECT * FROM avro_text('"e": null ~ "e": {"com.acme.E": "Z"}');
SELECT * FROM avro_text('"v": null ~ "v": {"string": "\u0000"}');
SELECT * FROM avro_text('[1]} ~ [1]');
SELECT * FROM avro_text('[1]} ~ [1]} {}');
DROP FUNCTION avro_text(text);
DROP FOREIGN TABLE avro_text;

-- nested values to jsonb, as text, and from jsonb
CREATE FOREIGN TABLE avro_nested (r jsonb, m jsonb, rt text, deep int[]) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "N", "fields": [
     {"name": "r", "type": {"type": "record", "name": "In", "fields": [{"name": "s", "type": "string"}, {"name": "f", "type": "double"}, {"name": "b", "type": ["null", "boolean"]}, {"name": "l", "type": {"type": "array", "items": "Unknown"}}]}},
     {"name": "m", "type": {"type": "map", "values": ["null", "int", "string"]}}, {"name": "rt", "type": ["null", "string"]},
     {"name": "deep", "type": {"type": "array", "items": {"type": "array", "items": ["null", "int"]}}}]}');
ALTER FOREIGN TABLE avro_nested OPTIONS (SET value_avro_schema
  '{"type": "record", "name": "N", "fields": [
     {"name": "r", "type": {"type": "record", "name": "In", "fields": [{"name": "s", "type": "string"}, {"name": "f", "type": "double"}, {"name": "b", "type": ["null", "boolean"]}, {"name": "l", "type": {"type": "array", "items": "int"}}]}},
     {"name": "m", "type": {"type": "map", "values": ["null", "int", "string"]}}, {"name": "rt", "type": ["null", "string"]},
     {"name": "deep", "type": {"type": "array", "items": {"type": "array", "items": ["null", "int"]}}}]}');
SELECT d.* FROM upsert_kafka.encode(ROW('{"s": "q\"\u00e9", "f": 1.5, "b": null, "l": [1, -2]}', '{"a": 1, "b": null, "c": "x"}', NULL, '{{1,NULL},{3,4}}')::avro_nested) e,
  upsert_kafka.decode(NULL::avro_nested, NULL, e.value) d;
SELECT upsert_kafka.encode(ROW('{"s": 1, "f": 1.5, "l": []}', '{}', NULL, '{}')::avro_nested);
SELECT upsert_kafka.encode(ROW('{"s": "x", "f": 1.5}', '{}', NULL, '{}')::avro_nested);
SELECT upsert_kafka.encode(ROW('{"s": "x", "f": 1.5, "l": [], "more": 1}', '{}', NULL, '{}')::avro_nested);
SELECT upsert_kafka.encode(ROW('{"s": "x", "f": 1.5, "l": [1.5]}', '{}', NULL, '{}')::avro_nested);
SELECT upsert_kafka.encode(ROW('{"s": "x", "f": 1.5, "l": []}', '{}', NULL, '{1}')::avro_nested);

-- a union's branch is the first that loses nothing of a JSON value, whatever comes first
CREATE FOREIGN TABLE avro_union (v jsonb) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "U", "fields": [{"name": "v", "type": [{"type": "record", "name": "E", "fields": []}, "float", "int", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "double", "null",
     {"type": "record", "name": "F", "fields": [{"name": "a", "type": ["null", "string"]}]}, {"type": "map", "values": "long"}]}]}');
SELECT given, encode(e.value, 'hex') AS bytes, back.v AS back FROM unnest(ARRAY['{}', '{"a": "x"}', '{"a": 1}', '7', '7.5', '70000.25', '3000000000', 'null']::jsonb[]) given, upsert_kafka.encode(ROW(given)::avro_union) e,
  upsert_kafka.decode(NULL::avro_union, NULL, e.value) back;
SELECT upsert_kafka.encode(ROW('{"a": true}')::avro_union);
DROP FOREIGN TABLE avro_union;

-- a schema that is no record is the value of the one column
CREATE FOREIGN TABLE avro_scalar (k text OPTIONS (key 'true'), v int) SERVER avro_kafka
  OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'avro', key_avro_schema '"string"', value_format 'avro', value_avro_schema '["null", "int"]', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::avro_scalar, '\x06616263', '\x020e');
SELECT * FROM upsert_kafka.encode(ROW('abc', 7)::avro_scalar);
ALTER FOREIGN TABLE avro_scalar ADD COLUMN w int;

-- === times: naive columns and instants ===
CREATE FOREIGN TABLE avro_zone (ts timestamp(3), tz timestamptz(3)) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', time_zone 'Europe/Berlin');
-- Flink's legacy mapping: both are instants; the naive column shows Berlin's time
SELECT * FROM upsert_kafka.decode(NULL::avro_zone, NULL, '\x0286b4aec3ec5b0286b4aec3ec5b');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW('2020-01-02 04:04:05.123', '2020-01-02 03:04:05.123+00')::avro_zone);
-- the other mapping: a naive time is what it is
ALTER FOREIGN TABLE avro_zone OPTIONS (ADD value_avro_timestamp_mapping_legacy 'false');
SELECT * FROM upsert_kafka.decode(NULL::avro_zone, NULL, '\x0286b4aec3ec5b0286b4aec3ec5b');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW('2020-01-02 03:04:05.123', '2020-01-02 03:04:05.123+00')::avro_zone);
SELECT upsert_kafka.encode(ROW('infinity', NULL)::avro_zone);

-- === bytes that are no value of the schema ===
-- G02 bare Avro that was something else, a frame, what follows
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x00000000010202026101');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x020202610100');
-- it ends too early, at every place
CREATE FUNCTION avro_outcome(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM * FROM upsert_kafka.decode(NULL::avro_types, NULL, bytes);
	RETURN 'read';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT avro_outcome(substr(e.value, 1, n)) AS outcome, count(*) > 100 AS often FROM avro_rows r, upsert_kafka.encode(r.r) e, generate_series(0, length(e.value) - 1) n WHERE (r.r).b GROUP BY 1;
-- counts and lengths that the message can't have: negative, huge, the least number; each is refused before any memory is taken
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202fffffffffffffffffe01');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x020209');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202ffffffffffffffffff01');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202ffffffffffffffffffff01');
CREATE FOREIGN TABLE avro_bombs (a int[], n jsonb, r jsonb) SERVER avro_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
  '{"type": "record", "name": "B", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}, {"name": "n", "type": {"type": "array", "items": "null"}},
     {"name": "r", "type": {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}}]}');
SELECT * FROM upsert_kafka.decode(NULL::avro_bombs, NULL, '\xfeffffffffffffffff01');
SELECT * FROM upsert_kafka.decode(NULL::avro_bombs, NULL, '\xffffffffffffffffff0100');
SELECT * FROM upsert_kafka.decode(NULL::avro_bombs, NULL, '\x00feffffffffffffffff01');
SELECT a, jsonb_array_length(n) AS n, r FROM upsert_kafka.decode(NULL::avro_bombs, NULL, decode('04040600' || 'cf0f0000' || '0200', 'hex'));
SELECT a, jsonb_array_length(n) AS n, r FROM upsert_kafka.decode(NULL::avro_bombs, NULL, decode('00' || 'd00f00' || '0200', 'hex'));
-- G01 depth: a list of a million links is more than the stack has
\set VERBOSITY terse
SELECT * FROM upsert_kafka.decode(NULL::avro_bombs, NULL, decode('0000' || repeat('02', 1000000) || '00', 'hex'));
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default
-- text: no NUL, no bytes that are no UTF-8
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x0202020001');
SELECT * FROM upsert_kafka.decode(NULL::avro_derived, '\x02', '\x020202ff01');
-- bytes at random, then a good message with one byte changed: errors of class 22, 23 (the domain's) or rows ("re"), never anything else
SELECT setseed(0.5);
SELECT DISTINCT substr(avro_outcome((SELECT decode(string_agg(lpad(to_hex((random() * 255)::int), 2, '0'), ''), 'hex') FROM generate_series(1, 60 + n % 2))), 1, 2) AS class FROM generate_series(1, 2000) n ORDER BY 1;
SELECT DISTINCT substr(avro_outcome(set_byte(e.value, (random() * (length(e.value) - 1))::int, (random() * 255)::int)), 1, 2) AS class FROM avro_rows r, upsert_kafka.encode(r.r) e, generate_series(1, 2000) ORDER BY 1;

-- === the registry's place is the server's, secrets are the mapping's ===
CREATE FOREIGN TABLE avro_confluent (id int OPTIONS (key 'true'), v text) SERVER avro_kafka OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'avro-confluent', value_format 'avro-confluent');
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '\x000000000102', NULL);
ALTER SERVER avro_kafka OPTIONS (ADD registry_url 'file:///etc/passwd');
ALTER SERVER avro_kafka OPTIONS (ADD registry_url 'http://me:secret@localhost');
ALTER SERVER avro_kafka OPTIONS (ADD registry_url 'http:///x');
ALTER SERVER avro_kafka OPTIONS (ADD registry_password 'x');
ALTER SERVER avro_kafka OPTIONS (ADD registry_ur 'x');
ALTER SERVER avro_kafka OPTIONS (ADD registry_url 'http://127.0.0.1:1/');
CREATE USER MAPPING FOR PUBLIC SERVER avro_kafka OPTIONS (registry_url 'http://127.0.0.1:1');
CREATE USER MAPPING FOR PUBLIC SERVER avro_kafka OPTIONS (registry_token E'x\r\nHost: elsewhere');
-- a table's url is Flink's spelling, and may only say what the server says
ALTER FOREIGN TABLE avro_confluent OPTIONS (ADD "value.avro-confluent.url" 'http://169.254.169.254/');
ALTER FOREIGN TABLE avro_confluent OPTIONS (SET "value.avro-confluent.url" 'http://127.0.0.1:1', ADD "key.avro-confluent.url" 'http://127.0.0.1:1/');
\set VERBOSITY terse
-- nothing listens there: class 08, which is tried again and never skipped
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '\x000000000102', NULL);
ALTER FOREIGN TABLE avro_confluent OPTIONS (ADD on_error 'skip');
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '\x000000000102', NULL);
\set VERBOSITY default
-- G02 what has no frame needs no registry to be refused
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '\x0e02085a6fc3ab0404d2', NULL);
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '{"id":1}', NULL);
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '\x000000', NULL);
SELECT * FROM upsert_kafka.decode(NULL::avro_confluent, '', NULL);

RESET DateStyle;
RESET TimeZone;
DROP FUNCTION avro_outcome;
DROP TABLE avro_rows;
DROP SERVER avro_kafka CASCADE;
DROP TYPE avro_point;
DROP DOMAIN avro_positive;
