-- === upsert_kafka.encode(): the message that a row becomes, without any Kafka ===
-- That the bytes are Flink's is compared in test/conformance; here are the rules that Flink doesn't know, and the errors.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
CREATE SERVER enc FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');
-- a row's message as text; what an error says
CREATE FUNCTION written(anyelement, OUT key text, OUT value text) LANGUAGE sql AS
$$ SELECT convert_from(key, 'UTF8'), convert_from(value, 'UTF8') FROM upsert_kafka.encode($1) $$;
CREATE FUNCTION unwritten(anyelement) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	PERFORM upsert_kafka.encode($1);
	RETURN 'written';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', sqlstate, sqlerrm, nullif(detail, ''), nullif(hint, ''));
END $$;

-- === keys and values ===
CREATE FOREIGN TABLE enc_all (a int OPTIONS (key 'true'), at timestamptz OPTIONS (metadata 'timestamp'), gone int, b text OPTIONS (key 'true'), v text OPTIONS (field 'theV'))
	SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json');
ALTER FOREIGN TABLE enc_all DROP COLUMN gone;
-- members in the order of the columns, by their field names; metadata columns are no content
SELECT * FROM written(ROW(1, now(), 'x', NULL)::enc_all);
-- the key's members stand in the order of key_fields
CREATE FOREIGN TABLE enc_prefix (k_a int, a int, k_b text, v text) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x',
	key_format 'json', value_format 'json', key_fields 'k_b;k_a', key_fields_prefix 'k_', value_fields_include 'EXCEPT_KEY');
SELECT * FROM written(ROW(1, 11, 'x', 'v')::enc_prefix);
-- nothing but a key: an empty object, no tombstone
CREATE FOREIGN TABLE enc_link (a int OPTIONS (key 'true')) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x',
	key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');
SELECT * FROM written(ROW(1)::enc_link);
-- X01: an upsert row has a key; an append row may have none, or one with nulls
SELECT unwritten(ROW(1, now(), NULL, 'v')::enc_all);
CREATE FOREIGN TABLE enc_append (a int OPTIONS (key 'true'), v text) SERVER enc OPTIONS (connector 'kafka', topic 'x', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE enc_nokey (v text) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM written(ROW(NULL, 'v')::enc_append) UNION ALL SELECT * FROM written(ROW('v')::enc_nokey);
-- rows of other types
SELECT unwritten(ROW(1)) UNION ALL SELECT unwritten(c) FROM pg_catalog.pg_class c WHERE oid = 'pg_catalog.pg_class'::regclass;
SELECT * FROM upsert_kafka.encode(NULL::enc_all);

-- === types ===
CREATE TYPE enc_mood AS ENUM ('so so', 'fine');
CREATE TYPE enc_pair AS (a int, b text);
CREATE DOMAIN enc_positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE enc_types (id int OPTIONS (key 'true'), bool boolean, i2 smallint, i8 bigint, f4 real, f8 float8, n numeric, dec numeric(10,2),
	c char(4), vc varchar(9), by bytea, d date, ti time, ttz timetz, ts timestamp, tz timestamptz, j json, jb jsonb, ia int[], p enc_pair,
	pa enc_pair[], u uuid, iv interval, ip inet, mood enc_mood, r tstzrange, pos enc_positive, pt point, bits varbit)
	SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json');
CREATE FUNCTION members(anyelement) RETURNS TABLE (member text, value json) LANGUAGE sql AS
$$ SELECT m.key, m.value FROM json_each((written($1)).value::json) m $$;
-- every type, under settings that must not show
SET timezone = 'America/New_York'; SET datestyle = 'German'; SET intervalstyle = 'iso_8601'; SET extra_float_digits = -15; SET bytea_output = 'escape';
SELECT * FROM members(ROW(1, true, 2, 9007199254740993, 0.1, 1e7, 100, 10.50, 'ab', 'q"', '\x00ff', '2020-01-31', '12:13:14.500', '12:13:14+02',
	'2020-01-31 03:04:05.120', '2020-01-31 03:04:05+02', '{"x": 1.0}', '{"b":[1,2.50,{}],"a":{"c":null}}', '{{1,2},{3,NULL}}', ROW(1,'x'),
	ARRAY[ROW(1,NULL)::enc_pair, NULL], '550E8400-E29B-41D4-A716-446655440000', '1 day 02:00', '10.0.0.1/8', 'so so',
	tstzrange('2020-01-31 03:04:05+02', NULL), 5, '(0.123456789,2)', '101')::enc_types);
RESET timezone; RESET datestyle; RESET intervalstyle; RESET extra_float_digits; RESET bytea_output;
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
-- NULLs are written
SELECT * FROM written(ROW(1,NULL)::enc_append);

-- === strings ===
-- Jackson's escapes: short ones, capitals, pairs beyond the BMP; DEL, slash and U+2028 stand for themselves (B09)
SELECT value FROM written(ROW(E'"\\/\b\t\n\f\r' || U&'\0001\001F\007F' || 'é中' || U&'\+01F600\+10FFFF')::enc_nokey);
-- an escape is found wherever it is among bytes that are looked at eight at a time
SELECT count(*) AS wrong FROM generate_series(0, 20) n, unnest(ARRAY['"', '\', E'\x01', U&'\+01F600', 'é', U&'\2028', '~', ' ', '!', '#', '[', ']']) c,
	LATERAL (SELECT repeat('x', n) || c || repeat('y', 20 - n) AS v) s,
	LATERAL upsert_kafka.encode(ROW(v)::enc_nokey) e
WHERE convert_from(e.value, 'UTF8')::json->>'v' <> v OR (convert_from(e.value, 'UTF8') LIKE '%\\%') <> (c IN ('"', '\', E'\x01', U&'\+01F600'));
-- names of members are strings, too
CREATE FOREIGN TABLE enc_names ("q""uote" int, "中" int, x int OPTIONS (field U&'\+01F600')) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT value FROM written(ROW(1, 2, 3)::enc_names);
-- long ones
SELECT length(value) FROM written(ROW(repeat('x"', 500000))::enc_nokey);

-- === numbers ===
CREATE FOREIGN TABLE enc_f8 (v float8) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
CREATE FOREIGN TABLE enc_f4 (v real) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
CREATE FOREIGN TABLE enc_n (v numeric) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
-- Java's notation, its shortest digits (1E23 lies between two floats) and its smallest numbers; names for what is no number
SELECT string_agg((written(ROW(v)::enc_f8)).value, ' ' ORDER BY n) FROM unnest('{0,-0,1,0.001,0.00099,9999999,10000000,-123456.75,1e23,2e-44,4.9e-324,9.9e-324,1.7976931348623157e308,9007199254740993,NaN,Infinity,-Infinity}'::float8[]) WITH ORDINALITY u(v, n);
SELECT string_agg((written(ROW(v)::enc_f4)).value, ' ' ORDER BY n) FROM unnest('{0.1,-0,16777216,33554432,1.4e-45,3.4028235e38,1e10,NaN}'::real[]) WITH ORDINALITY u(v, n);
-- BigDecimal's: trailing zeros are no digits, an exponent for what ends in zeros before the point or begins with many behind it
SELECT string_agg((written(ROW(v)::enc_n)).value, ' ' ORDER BY n) FROM unnest('{0,0.00,-0.0,1,10,100.00,120,1.10,-0.05,0.000001,0.0000012,0.0000001,-27e-9,454621864049246170,12345678901234567890.0123456789}'::numeric[]) WITH ORDINALITY u(v, n);
-- every digit of the scale instead
ALTER FOREIGN TABLE enc_n OPTIONS (ADD value_json_encode_decimal_as_plain_number 'true');
SELECT string_agg((written(ROW(v)::enc_n)).value, ' ' ORDER BY n) FROM unnest('{0,0.00,100.00,1.10,0.0000001,1e20}'::numeric[]) WITH ORDINALITY u(v, n);

-- === json ===
-- json keeps its text, jsonb is compact; a string as the whole value is JSON text inside a string, as it is read (C08)
CREATE FOREIGN TABLE enc_j (j json, jb jsonb) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT value FROM written(ROW('[1, 2.0,"x"]', '[1, 2.0,"x"]')::enc_j)
UNION ALL SELECT value FROM written(ROW('7', '7.0')::enc_j)
UNION ALL SELECT value FROM written(ROW('[]', '{}')::enc_j)
UNION ALL SELECT value FROM written(ROW(' "a\n"', '"a\n"')::enc_j);
SELECT j, jb FROM upsert_kafka.encode(ROW(' "a\n"', '"a\n"')::enc_j) e, upsert_kafka.decode(NULL::enc_j, NULL, e.value);

-- === options, in both spellings ===
CREATE FOREIGN TABLE enc_opt (id int OPTIONS (key 'true'), at timestamp, p enc_pair, v text) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x',
	key_format 'json', value_format 'json', "value.json.timestamp-format.standard" 'ISO-8601', json_encode_ignore_null_fields 'true');
-- nested NULLs are left out, too, as Flink does
SELECT * FROM written(ROW(1, '2020-01-02 03:04:05.120', ROW(NULL, 'b'), NULL)::enc_opt);
ALTER FOREIGN TABLE enc_opt OPTIONS (DROP "value.json.timestamp-format.standard", ADD json_timestamp_format 'sql', SET json_encode_ignore_null_fields 'off');
SELECT * FROM written(ROW(1, '2020-01-02 03:04:05.120', ROW(NULL, 'b'), NULL)::enc_opt);
-- one option in two spellings, and values that are none
ALTER FOREIGN TABLE enc_opt OPTIONS (ADD value_json_timestamp_format_standard 'SQL');
ALTER FOREIGN TABLE enc_opt OPTIONS (SET json_timestamp_format 'ISO');
ALTER FOREIGN TABLE enc_opt OPTIONS (SET json_encode_ignore_null_fields 'perhaps');
ALTER FOREIGN TABLE enc_opt OPTIONS (ADD "value.json.encode.decimal-as-plain-number" '2.5');
-- PostgreSQL's maps have no null keys: Flink's options for them are known, and have nothing to decide
ALTER FOREIGN TABLE enc_opt OPTIONS (ADD "value.json.map-null-key.mode" 'LITERAL', ADD "value.json.map-null-key.literal" 'none');
ALTER FOREIGN TABLE enc_opt OPTIONS (SET "value.json.map-null-key.mode" 'KEEP');

-- === what cannot be written: column, table and key are named ===
SELECT unwritten(ROW(1, 'infinity', NULL, NULL)::enc_opt);
SELECT unwritten(json_populate_record(NULL::enc_types, json_build_object('id', 7, c, v))) FROM (VALUES
	('d', '-infinity'), ('tz', 'infinity'), ('n', 'NaN'), ('n', '-Infinity')) x(c, v);
CREATE FOREIGN TABLE enc_key (k timestamp OPTIONS (key 'true'), v date) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json');
SELECT unwritten(ROW('infinity', NULL)::enc_key);
-- nothing of a row that failed is left for the next one
SELECT unwritten(ROW('2020-01-01', 'infinity')::enc_key) UNION ALL SELECT unwritten(ROW('2020-01-01', '2020-01-01')::enc_key);

-- === raw ===
-- binary numbers as Flink's, text as it is, other types by their text; NULL is Kafka's null
DO $$
DECLARE
	type text;
BEGIN
	FOREACH type IN ARRAY ARRAY['boolean', 'smallint', 'integer', 'bigint', 'real', 'float8', 'text', 'bytea', 'numeric', 'timestamptz', 'jsonb', 'enc_positive']
	LOOP
		EXECUTE format('CREATE FOREIGN TABLE %I (v %s) SERVER enc OPTIONS (connector ''kafka'', topic ''x'', value_format ''raw'')', 'enc_raw_' || type, type);
	END LOOP;
END $$;
CREATE FUNCTION raw_written(type text, v text) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	result bytea;
BEGIN
	EXECUTE format('SELECT value FROM upsert_kafka.encode(ROW(%L)::%I)', v, 'enc_raw_' || type) INTO result;
	RETURN result;
END $$;
SELECT type, v, raw_written(type, v) AS bytes FROM (VALUES ('boolean', 't'), ('smallint', '-2'), ('integer', '1'), ('bigint', '1'), ('real', '1.5'), ('float8', '-NaN'),
	('bytea', '\x00ff'), ('bytea', ''), ('enc_positive', '258'), ('integer', NULL)) x(type, v);
SELECT type, v, convert_from(raw_written(type, v), 'UTF8') AS text FROM (VALUES ('text', 'é"'), ('text', ''), ('numeric', '1.50'), ('numeric', 'NaN'),
	('timestamptz', '2020-01-02 03:04:05.1+02'), ('timestamptz', 'infinity'), ('jsonb', '{"a":1}')) x(type, v);
-- bytea inside of another type's text is hexadecimal, whatever the session prefers
CREATE FOREIGN TABLE enc_raw_array (v bytea[]) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'raw');
SET bytea_output = 'escape';
SELECT convert_from(raw_written('array', '{"\\x6100"}'), 'UTF8');
RESET bytea_output;
ALTER FOREIGN TABLE enc_raw_integer OPTIONS (ADD value_raw_endianness 'little-endian');
ALTER FOREIGN TABLE enc_raw_float8 OPTIONS (ADD value_raw_endianness 'little-endian');
SELECT raw_written('integer', '1'), raw_written('float8', '1.5');
-- a key beside the value doesn't count against the one column; alone it is the value
CREATE FOREIGN TABLE enc_rr (k text OPTIONS (key 'true'), v text) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'raw');
CREATE FOREIGN TABLE enc_r (k text OPTIONS (key 'true')) SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'raw');
SELECT * FROM written(ROW('k1', 'v1')::enc_rr) UNION ALL SELECT * FROM written(ROW('k1', NULL)::enc_rr) UNION ALL SELECT * FROM written(ROW('k1')::enc_r);
CREATE FOREIGN TABLE enc_two (a text, b text) SERVER enc OPTIONS (connector 'kafka', topic 'x', value_format 'raw');
SELECT unwritten(ROW('a', 'b')::enc_two);

-- === what is written is read back as the same row ===
CREATE FOREIGN TABLE enc_random (id bigint OPTIONS (key 'true'), bool boolean, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric, dec numeric(12,2),
	t text, c char(4), by bytea, d date, ti time, ttz timetz, ts timestamp, tz timestamptz, jb jsonb, ia int[], ta text[], fa float8[], p enc_pair,
	pa enc_pair[], u uuid, iv interval, ip inet, mood enc_mood, r tsrange, pos enc_positive, bits varbit)
	SERVER enc OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json', time_zone 'Asia/Kolkata');
CREATE FUNCTION random_int(low bigint, high bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT low + floor(random() * (high - low + 1))::bigint $$;
CREATE FUNCTION random_text() RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(chr((CASE random_int(0, 9) WHEN 0 THEN random_int(1, 31) WHEN 1 THEN random_int(128, 55295) WHEN 2 THEN random_int(57344, 1114111)
		WHEN 3 THEN (ARRAY[34, 92, 47, 39, 127, 44, 123])[random_int(1, 7)] ELSE random_int(32, 126) END)::int), ''), '') FROM generate_series(1, random_int(0, 30)) $$;
CREATE FUNCTION random_float8() RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE random_int(0, 2) WHEN 0 THEN random_int(-100000, 100000)::float8 / 100
		ELSE ((random() + 1) * power(10::float8, random_int(-300, 300)) * sign(random() - 0.5)) END;
END $$;
CREATE FUNCTION random_row(id bigint) RETURNS enc_random LANGUAGE plpgsql AS $$
DECLARE
	r enc_random;
	column_name text;
	some_text text := random_text();
BEGIN
	r.id := id;
	r.bool := random() < 0.5;
	r.i2 := random_int(-32768, 32767);
	r.i4 := random_int(-2147483648, 2147483647);
	r.i8 := random_int(-4000000000000000000, 4000000000000000000);
	r.f8 := random_float8();
	r.f4 := CASE WHEN abs(r.f8) BETWEEN 1e-37 AND 1e38 THEN r.f8 ELSE random() END;
	r.n := random_int(-99999, 99999)::numeric * power(10::numeric, random_int(-30, 30)::numeric);
	r.dec := random_int(-999999999999, 999999999999)::numeric / 100;
	r.t := some_text;
	r.c := left(replace(random_text(), ' ', ''), 4);
	r.by := convert_to(random_text(), 'UTF8');
	r.d := '4000-01-01 BC'::date + random_int(0, 5000000)::int;
	r.ti := '00:00'::time + random_int(0, 86399999999) * interval '1 microsecond';
	r.ttz := r.ti AT TIME ZONE make_interval(hours => random_int(-12, 12)::int);
	r.ts := r.d + r.ti;
	r.tz := '1970-01-01'::timestamptz + random_int(-60000000000, 90000000000) * interval '1 second' + r.ti::interval;
	r.jb := jsonb_build_object(random_text(), random_text(), 'n', r.n, 'a', jsonb_build_array(1.50, NULL, true, jsonb_build_object()));
	r.ia := CASE random_int(0, 3) WHEN 0 THEN '{}' WHEN 1 THEN ARRAY[[1, NULL], [r.i4, 4]] ELSE ARRAY[r.i4, NULL] END;
	r.ta := ARRAY[random_text(), NULL, random_text()];
	r.fa := ARRAY[r.f8, 'NaN', '-Infinity', random_float8()];
	r.p := ROW(r.i4, random_text());
	r.pa := ARRAY[ROW(NULL, random_text())::enc_pair, NULL, r.p];
	r.u := md5(r.i4::text)::uuid;
	r.iv := make_interval(months => random_int(-99, 99)::int, days => random_int(-99, 99)::int, secs => random_int(-9999999, 9999999)::float8 / 100);
	r.ip := '10.0.0.0'::inet + random_int(0, 16777215);
	r.mood := (enum_range(NULL::enc_mood))[random_int(1, 2)];
	r.r := tsrange(r.ts, r.ts + interval '1.5 seconds', '[]');
	r.pos := random_int(1, 100);
	r.bits := random_int(0, 1023)::bit(10);
	-- some column is NULL, the key never
	column_name := (ARRAY['bool', 'i2', 'n', 't', 'by', 'ts', 'jb', 'ia', 'p', 'u', 'pos', 'none'])[random_int(1, 12)];
	RETURN json_populate_record(r, json_build_object(column_name, NULL));
END $$;
SELECT setseed(0.5);
SELECT to_json(given) AS written, to_json(back) AS read FROM (SELECT random_row(g) AS given FROM generate_series(1, 500) g OFFSET 0) x,
	LATERAL upsert_kafka.encode(given) e, LATERAL upsert_kafka.decode(NULL::enc_random, e.key, e.value) back
WHERE given IS DISTINCT FROM back;
