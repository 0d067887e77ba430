-- === Values that messages spell in several ways: time_unit, decimal_format, binary_format, nul_handling, empty_value, time_zone ===
-- in each format that has them, read and written
\set VERBOSITY default
SET datestyle = 'ISO';
SET TimeZone = 'Asia/Shanghai';		-- which must not show
CREATE SERVER vf FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE DOMAIN vf_price AS numeric(9,2) CHECK (VALUE < 100000);
CREATE TYPE vf_row AS (at timestamptz, p numeric(9,2), b bytea);

-- === time_unit (C03): what numbers count is said by the option, never guessed ===
CREATE FOREIGN TABLE vf_time (tz timestamptz, ts timestamp, ts0 timestamptz(0), d date, t time, r vf_row, a timestamptz[], n bigint)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json');
CREATE FUNCTION vf_read(value text) RETURNS TABLE (tz timestamptz, ts timestamp, ts0 timestamptz, d date, t time, r vf_row, a timestamptz[], n bigint)
	LANGUAGE sql SET TimeZone = 'UTC' AS $$ SELECT * FROM upsert_kafka.decode(NULL::vf_time, NULL, convert_to(value, 'UTF8')) $$;
SET TimeZone = 'UTC';
-- without it: 22008
SELECT vf_read('{"tz": 1709296496789}');
SELECT vf_read('{"d": 20240301}');
ALTER FOREIGN TABLE vf_time OPTIONS (ADD value_json_time_unit 'ms');
SELECT * FROM vf_read('{"tz": 1709296496789, "ts": 1709296496789, "ts0": 1709296496789, "d": 19783, "t": 45296789, "r": {"at": 0}, "a": [0, null, -1], "n": 1709296496789}') \gx
-- text is text still; digits in a string are a number, too; so are fractions and exponents
SELECT tz FROM unnest(ARRAY['"2024-03-01T12:34:56Z"', '"1709296496789"', '1709296496789.0125', '1.709296496789E12', '-1', 'null']) v, vf_read('{"tz": ' || v || '}');
-- units
ALTER FOREIGN TABLE vf_time OPTIONS (SET value_json_time_unit 's');
SELECT tz, t FROM vf_read('{"tz": 1709296496.789012, "t": 1.5}');
ALTER FOREIGN TABLE vf_time OPTIONS (SET value_json_time_unit 'us');
SELECT tz FROM unnest(ARRAY['86400000000', '1709296496789012', '-1']) v, vf_read('{"tz": ' || v || '}');
ALTER FOREIGN TABLE vf_time OPTIONS (SET value_json_time_unit 'ns');
SELECT tz, t FROM vf_read('{"tz": 1709296496789012345, "t": 86400000000000}');
-- out of range, part of a day, a time of more than a day: the message's errors
SELECT vf_read('{"tz": 9223372036854775807999}');
SELECT vf_read('{"d": 1.5}');
SELECT vf_read('{"d": 99999999999}');
ALTER FOREIGN TABLE vf_time OPTIONS (SET value_json_time_unit 's');
SELECT vf_read('{"t": -1}');
SELECT vf_read('{"t": 86401}');
SELECT vf_read('{"tz": 17092964967890}');
-- an instant in a timestamp column is that of the table's time_zone
ALTER FOREIGN TABLE vf_time OPTIONS (ADD time_zone 'Europe/Berlin');
SELECT tz, ts FROM vf_read('{"tz": 1709296496, "ts": 1709296496}');
-- what is written counts the same, and is read as what it was; finer parts are cut off
SELECT convert_from(e.value, 'UTF8') AS written, d.tz, d.ts, d.d, d.t, d.r, d.a
  FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56.7Z', '2024-03-01 13:34:56', '1969-12-31 23:59:59.5Z', '1969-12-31', '00:00:01', ROW('1970-01-01 00:00:01Z', 1.5, '\x00'), '{1970-01-01 00:00:02Z,NULL}', 5)::vf_time) e,
  LATERAL (SELECT * FROM upsert_kafka.decode(NULL::vf_time, NULL, e.value)) d \gx
SELECT upsert_kafka.encode(ROW('infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::vf_time);
SELECT upsert_kafka.encode(ROW(NULL, NULL, NULL, 'infinity', NULL, NULL, NULL, NULL)::vf_time);
ALTER FOREIGN TABLE vf_time OPTIONS (SET value_json_time_unit 'ns');
SELECT convert_from(value, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56.789012Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::vf_time);
SELECT upsert_kafka.encode(ROW('9999-01-01Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::vf_time);
DROP FUNCTION vf_read(text);
DROP FOREIGN TABLE vf_time;

-- in keys; in csv; in change events, whose times are a wall clock's if they are Debezium's; in Avro's plain numbers
CREATE FOREIGN TABLE vf_key (at timestamptz OPTIONS (key 'true'), v text)
	SERVER vf OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json', key_json_time_unit 's');
SELECT d.*, convert_from(e.key, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56Z', 'a')::vf_key) e, upsert_kafka.decode(NULL::vf_key, e.key, e.value) d;
CREATE FOREIGN TABLE vf_csv (tz timestamptz, ts timestamp, d date, t time, a timestamptz[])
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'csv', value_csv_time_unit 'ms', time_zone 'Europe/Berlin');
SELECT * FROM upsert_kafka.decode(NULL::vf_csv, NULL, '1709296496789,1709296496789,19783,1500,0;;2024-03-01 12:00:00Z');
SELECT convert_from(e.value, 'UTF8'), d.* FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56.789Z', '2024-03-01 12:34:56', '2024-03-01', '00:00:01.5', '{1970-01-01 00:00:02Z,NULL}')::vf_csv) e, upsert_kafka.decode(NULL::vf_csv, NULL, e.value) d;
CREATE FOREIGN TABLE vf_dbz (tz timestamptz, ts timestamp)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json', value_debezium_json_time_unit 'ms', time_zone 'Europe/Berlin');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56Z', '2024-03-01 12:34:56')::vf_dbz) e, upsert_kafka.decode(NULL::vf_dbz, NULL, e.value) d;
CREATE FOREIGN TABLE vf_canal (tz timestamptz, ts timestamp)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json', value_canal_json_time_unit 'ms');
CREATE FOREIGN TABLE vf_maxwell (tz timestamptz, ts timestamp)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'maxwell-json', value_maxwell_json_time_unit 's');
CREATE FOREIGN TABLE vf_ogg (tz timestamptz, ts timestamp)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'ogg-json', value_ogg_json_time_unit 'us');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56Z', '2024-03-01 12:34:56')::vf_canal) e, upsert_kafka.decode(NULL::vf_canal, NULL, e.value) d;
SELECT * FROM upsert_kafka.decode(NULL::vf_canal, NULL, '{"data":[{"tz":"1709296496000","ts":"2024-03-01 12:34:56"}],"type":"INSERT"}');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56Z', '2024-03-01 12:34:56')::vf_maxwell) e, upsert_kafka.decode(NULL::vf_maxwell, NULL, e.value) d;
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56Z', '2024-03-01 12:34:56')::vf_ogg) e, upsert_kafka.decode(NULL::vf_ogg, NULL, e.value) d;
CREATE FOREIGN TABLE vf_avro (tz timestamptz, ts timestamp, d date, t time) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_time_unit 'ms', value_avro_schema
	'{"type":"record","name":"R","fields":[{"name":"tz","type":"long"},{"name":"ts","type":["null","long"]},{"name":"d","type":"int"},{"name":"t","type":"int"}]}');
SELECT d.*, encode(e.value, 'hex') FROM upsert_kafka.encode(ROW('2024-03-01 12:34:56.789Z', NULL, '2024-03-01', '00:00:01.5')::vf_avro) e, upsert_kafka.decode(NULL::vf_avro, NULL, e.value) d;
ALTER FOREIGN TABLE vf_avro OPTIONS (SET value_avro_schema '{"type":"record","name":"R","fields":[{"name":"tz","type":"int"},{"name":"ts","type":["null","long"]},{"name":"d","type":"int"},{"name":"t","type":"int"}]}');
SELECT upsert_kafka.encode(ROW('2024-03-01 12:34:56.789Z', NULL, '2024-03-01', '00:00:01.5')::vf_avro);
ALTER FOREIGN TABLE vf_avro OPTIONS (DROP value_avro_time_unit);
SELECT upsert_kafka.encode(ROW('2024-03-01 12:34:56.789Z', NULL, '2024-03-01', '00:00:01.5')::vf_avro);
-- no such unit
ALTER FOREIGN TABLE vf_avro OPTIONS (ADD value_avro_time_unit 'minutes');
DROP FOREIGN TABLE vf_key, vf_csv, vf_dbz, vf_canal, vf_maxwell, vf_ogg, vf_avro;

-- === decimal_format (C01): numbers, text, or Kafka Connect's bytes with the column's scale ===
CREATE FOREIGN TABLE vf_dec (p numeric(9,2), n numeric, dom vf_price, a numeric(9,2)[], r vf_row)
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json', value_json_decimal_format 'text');
-- text: written as strings with every digit, also what JSON's numbers cannot say; both are read whatever the option says
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW(1.5, 'NaN', 100, '{1,NULL,-0.05}', ROW(NULL, 1, NULL))::vf_dec) e, upsert_kafka.decode(NULL::vf_dec, NULL, e.value) d \gx
SELECT p, n FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": 1.5, "n": 1e3}');
-- base64 needs the scale, which only the column has
ALTER FOREIGN TABLE vf_dec OPTIONS (SET value_json_decimal_format 'base64');
SELECT * FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": "AeJA"}');
ALTER FOREIGN TABLE vf_dec ALTER COLUMN n TYPE numeric(38,2);
SELECT v, p, n FROM unnest(ARRAY['AeJA', '/2o=', 'AIA=', 'gA==', 'AA==', '1234']) v, upsert_kafka.decode(NULL::vf_dec, NULL, convert_to(format('{"p": %1$s, "n": %1$s}', to_json(v)), 'UTF8')) ORDER BY 1;
SELECT n FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"n": "SztMqFqGxHoJiiI//////w=="}');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": "AeJ"}');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, convert_to('{"p": "\\x01e240"}', 'UTF8'));		-- hexadecimal is bytea's alone
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": ""}');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": {"scale": 2}}');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": 1.5}');		-- a number is one
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": "SztMqFqGxHoJiiI//////w=="}');		-- too many digits
SELECT dom FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"dom": "AJiWgA=="}');	-- the domain has its say: 100000.00
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW(1234.56, -26588.24, -1.5, '{1.28,NULL,-1.28}', ROW(NULL, 0, NULL))::vf_dec) e, upsert_kafka.decode(NULL::vf_dec, NULL, e.value) d \gx
SELECT upsert_kafka.encode(ROW('NaN', NULL, NULL, NULL, NULL)::vf_dec);
-- without a schema and the option such text is no number, and 1234 cannot be told apart
ALTER FOREIGN TABLE vf_dec OPTIONS (SET value_json_decimal_format 'number');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": "AeJA"}');
SELECT p FROM upsert_kafka.decode(NULL::vf_dec, NULL, '{"p": "1234"}');
DROP FOREIGN TABLE vf_dec;
-- in change events
CREATE FOREIGN TABLE vf_dbz (p numeric(9,2)) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json', value_debezium_json_decimal_format 'base64');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW(1234.56)::vf_dbz) e, upsert_kafka.decode(NULL::vf_dbz, NULL, e.value) d;
CREATE FOREIGN TABLE vf_canal (p numeric(9,2)) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json', value_canal_json_decimal_format 'text');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW(100)::vf_canal) e, upsert_kafka.decode(NULL::vf_canal, NULL, e.value) d;
DROP FOREIGN TABLE vf_dbz, vf_canal;

-- === binary_format (C07): base64, hexadecimal, or a character per byte ===
CREATE FOREIGN TABLE vf_bin (b bytea, a bytea[], r vf_row) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('\x4869', '{"\\xc3a9",NULL}', ROW(NULL, NULL, '\x00'))::vf_bin) e, upsert_kafka.decode(NULL::vf_bin, NULL, e.value) d \gx
ALTER FOREIGN TABLE vf_bin OPTIONS (ADD value_json_binary_format 'hex');
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('\x4869', '{"\\xc3a9",NULL}', ROW(NULL, NULL, '\x00'))::vf_bin) e, upsert_kafka.decode(NULL::vf_bin, NULL, e.value) d \gx
SELECT b FROM upsert_kafka.decode(NULL::vf_bin, NULL, '{"b": "\\\\x4869"}');
SELECT b FROM upsert_kafka.decode(NULL::vf_bin, NULL, '{"b": "SGk="}');
ALTER FOREIGN TABLE vf_bin OPTIONS (SET value_json_binary_format 'latin1');
SELECT convert_from(e.value, 'UTF8') AS written, d.* FROM upsert_kafka.encode(ROW('\x4869', '{"\\xc3a9",NULL}', ROW(NULL, NULL, '\x00'))::vf_bin) e, upsert_kafka.decode(NULL::vf_bin, NULL, e.value) d \gx
SELECT b FROM upsert_kafka.decode(NULL::vf_bin, NULL, '{"b": "\\ufffd"}');
-- canal's default; others can have it
CREATE FOREIGN TABLE vf_canal (b bytea, a bytea[]) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('\xc3a9', '{"\\xc3"}')::vf_canal) e, upsert_kafka.decode(NULL::vf_canal, NULL, e.value) d;
CREATE FOREIGN TABLE vf_maxwell (b bytea) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'maxwell-json', value_maxwell_json_binary_format 'hex');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('\xc3a9')::vf_maxwell) e, upsert_kafka.decode(NULL::vf_maxwell, NULL, e.value) d;
CREATE FOREIGN TABLE vf_csv (b bytea, a bytea[]) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'csv', value_csv_binary_format 'hex');
SELECT d.*, convert_from(e.value, 'UTF8') FROM upsert_kafka.encode(ROW('\xc3a9', '{"\\x00","\\xff"}')::vf_csv) e, upsert_kafka.decode(NULL::vf_csv, NULL, e.value) d;
SELECT * FROM upsert_kafka.decode(NULL::vf_csv, NULL, 'xyz,');
ALTER FOREIGN TABLE vf_csv OPTIONS (SET value_csv_binary_format 'latin1');
DROP FOREIGN TABLE vf_bin, vf_canal, vf_maxwell, vf_csv;

-- === nul_handling (B01): PostgreSQL's text has no NUL ===
CREATE FOREIGN TABLE vf_nul (v text) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json', value_json_nul_handling 'strip');
SELECT v FROM upsert_kafka.decode(NULL::vf_nul, NULL, '{"v":"x\\u0000y"}');
-- .. of the JSON text in a string as well
CREATE FOREIGN TABLE vf_nul_jsonb (j jsonb) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json', value_json_nul_handling 'strip');
SELECT d.j FROM unnest(ARRAY['{"j":"{\"a\":\"x\\u0000y\"}"}', '{"j":"\"x\\\\u0000y\""}', '{"j":{"a":"x\u0000y"}}', '{"j":1}', '{"j":null}']) v, upsert_kafka.decode(NULL::vf_nul_jsonb, NULL, convert_to(v, 'UTF8')) d;
\set VERBOSITY sqlstate
SELECT d.j FROM upsert_kafka.decode(NULL::vf_nul_jsonb, NULL, convert_to('{"j":"\"x\\"}', 'UTF8')) d;
\set VERBOSITY default
CREATE FOREIGN TABLE vf_nul_csv (v text, w text) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_csv, NULL, '\x7800792c007a');
ALTER FOREIGN TABLE vf_nul_csv OPTIONS (ADD value_csv_nul_handling 'strip');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_csv, NULL, '\x7800792c007a');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_csv, NULL, '\x00');
CREATE FOREIGN TABLE vf_nul_raw (v text) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'raw');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_raw, NULL, '\x780079');
ALTER FOREIGN TABLE vf_nul_raw OPTIONS (ADD value_raw_nul_handling 'strip');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_raw, NULL, '\x780079');
CREATE FOREIGN TABLE vf_nul_avro (v text, j jsonb) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema '{"type":"record","name":"R","fields":[{"name":"v","type":"string"},{"name":"j","type":{"type":"array","items":"string"}}]}');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_avro, NULL, '\x067800790206007a7a00');
ALTER FOREIGN TABLE vf_nul_avro OPTIONS (ADD value_avro_nul_handling 'strip');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_avro, NULL, '\x067800790206007a7a00');
CREATE FOREIGN TABLE vf_nul_canal (v text) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json', value_canal_json_nul_handling 'strip');
SELECT * FROM upsert_kafka.decode(NULL::vf_nul_canal, NULL, '{"data":[{"v":"x\\u0000y"}],"type":"INSERT"}');
DROP FOREIGN TABLE vf_nul, vf_nul_jsonb, vf_nul_csv, vf_nul_raw, vf_nul_avro, vf_nul_canal;

-- === empty_value (X02): a value of no bytes is an error, a delete, or nothing ===
CREATE FOREIGN TABLE vf_empty (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind'))
	SERVER vf OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'debezium-json');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty, '{"id":1}', '');
ALTER FOREIGN TABLE vf_empty OPTIONS (ADD value_debezium_json_empty_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty, '{"id":1}', '');
ALTER FOREIGN TABLE vf_empty OPTIONS (SET value_debezium_json_empty_value 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty, '{"id":1}', '');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty, NULL, '');		-- no row, so its key is none either
CREATE FOREIGN TABLE vf_empty_log (v text, kind text OPTIONS (metadata 'row_kind'))
	SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json', value_canal_json_empty_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty_log, NULL, '');		-- a log has no key by which a row would be gone
CREATE FOREIGN TABLE vf_empty_avro (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind'))
	SERVER vf OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'avro');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty_avro, '{"id":1}', '');
ALTER FOREIGN TABLE vf_empty_avro OPTIONS (ADD value_avro_empty_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty_avro, '{"id":1}', '');
ALTER FOREIGN TABLE vf_empty_avro OPTIONS (SET value_avro_empty_value 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::vf_empty_avro, '{"id":1}', '');
ALTER FOREIGN TABLE vf_empty_avro OPTIONS (SET key_format 'avro', ADD key_avro_empty_value 'ignore');
DROP FOREIGN TABLE vf_empty, vf_empty_log, vf_empty_avro;

-- === registry_framing (B13) of change events, as of json ===
CREATE FOREIGN TABLE vf_framed (id int, v text) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json');
SELECT * FROM upsert_kafka.decode(NULL::vf_framed, NULL, '\x000000004d'::bytea || '{"after":{"id":1,"v":"a"},"op":"c"}');
ALTER FOREIGN TABLE vf_framed OPTIONS (ADD value_debezium_json_registry_framing 'strip');
SELECT * FROM upsert_kafka.decode(NULL::vf_framed, NULL, '\x000000004d'::bytea || '{"after":{"id":1,"v":"a"},"op":"c"}');
SELECT * FROM upsert_kafka.decode(NULL::vf_framed, NULL, '{"after":{"id":1,"v":"a"},"op":"c"}');
DROP FOREIGN TABLE vf_framed;

-- === time_zone (C04): times without an offset are those of the table, whatever the session says ===
CREATE FOREIGN TABLE vf_zone (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'json', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_csv (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'csv', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_raw (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'raw', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_avro (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'avro', time_zone 'Europe/Berlin', value_avro_schema '{"type":"record","name":"R","fields":[{"name":"tz","type":"string"}]}');
CREATE FOREIGN TABLE vf_zone_canal (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_maxwell (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'maxwell-json', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_ogg (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'ogg-json', time_zone 'Europe/Berlin');
CREATE FOREIGN TABLE vf_zone_dbz (tz timestamptz) SERVER vf OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json', time_zone 'Europe/Berlin');
CREATE VIEW vf_zones AS SELECT * FROM (
	SELECT 'json', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone, NULL, '{"tz":"2024-07-01 12:00:00"}') d
	UNION ALL SELECT 'csv', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_csv, NULL, '2024-07-01 12:00:00') d
	UNION ALL SELECT 'raw', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_raw, NULL, '2024-07-01 12:00:00') d
	UNION ALL SELECT 'avro', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_avro, NULL, '\x26323032342d30372d30312031323a30303a3030') d
	UNION ALL SELECT 'canal', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_canal, NULL, '{"data":[{"tz":"2024-07-01 12:00:00"}],"type":"INSERT"}') d
	UNION ALL SELECT 'maxwell', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_maxwell, NULL, '{"data":{"tz":"2024-07-01 12:00:00"},"type":"insert"}') d
	UNION ALL SELECT 'ogg', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_ogg, NULL, '{"after":{"tz":"2024-07-01 12:00:00"},"op_type":"I"}') d
	UNION ALL SELECT 'debezium', tz, (upsert_kafka.encode(d)).value FROM upsert_kafka.decode(NULL::vf_zone_dbz, NULL, '{"after":{"tz":"2024-07-01 12:00:00"},"op":"c"}') d) x (format, tz, written);
SELECT format, tz, convert_from(written, 'UTF8') FROM vf_zones;
SET TimeZone = 'Asia/Shanghai';
SELECT DISTINCT tz FROM vf_zones;
RESET TimeZone;

SET client_min_messages = warning;
DROP SERVER vf CASCADE;
DROP DOMAIN vf_price;
DROP TYPE vf_row;
