-- === format raw: the bytes of a message are the value of one column ===
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
CREATE SERVER raw_server FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');

-- every type that raw reads in its own way, one foreign table each
DO $$
DECLARE
	type text;
BEGIN
	FOREACH type IN ARRAY ARRAY['text', 'bytea', 'boolean', 'smallint', 'integer', 'bigint', 'real', 'float8', 'varchar(3)', 'char(3)', 'uuid', 'numeric', 'jsonb', 'date']
	LOOP
		EXECUTE format('CREATE FOREIGN TABLE %I (v %s) SERVER raw_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''raw'')',
			'raw_' || regexp_replace(type, '\W.*', ''), type);
	END LOOP;
END $$;
CREATE FUNCTION raw_read(type text, value bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT quote_nullable(v::text) FROM upsert_kafka.decode(NULL::%I, NULL, $1)', 'raw_' || type) INTO result USING value;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS result = PG_EXCEPTION_DETAIL;
	RETURN sqlstate || ': ' || regexp_replace(result, '^Topic [^:]*: ', '');
END $$;

-- text and bytea are the bytes; a value of no bytes is an empty one, not NULL (A04)
SELECT type, value, raw_read(type, value) FROM (VALUES
	('text', 'a'::bytea), ('text', ''), ('text', '\xf09f9880'), ('bytea', '\x00ff'), ('bytea', ''), ('text', '"quoted"')) t(type, value);
-- B01, B03: what is no text is refused
SELECT type, value, raw_read(type, value) FROM (VALUES ('text', '\xff'::bytea), ('text', '\x6100'), ('text', '\xc080')) t(type, value);
-- lengths are checked, nothing is cut
SELECT type, value, raw_read(type, value) FROM (VALUES ('varchar', 'abc'::bytea), ('varchar', 'abcdef'), ('char', 'a')) t(type, value);
-- numbers and booleans are binary, big-endian and of fixed width, as Flink has them
SELECT type, value, raw_read(type, value) FROM (VALUES
	('boolean', '\x01'::bytea), ('boolean', '\x00'), ('boolean', '\xff'), ('smallint', '\x0001'), ('integer', '\xffffffff'),
	('bigint', '\x0000000000000007'), ('real', '\x3fc00000'), ('float8', '\x3ff8000000000000')) t(type, value);
SELECT type, value, raw_read(type, value) FROM (VALUES
	('boolean', ''::bytea), ('smallint', '\xff'), ('integer', '\x000001'), ('integer', '42'), ('bigint', ''), ('real', '\x00'), ('float8', '\x00')) t(type, value);
-- other types are written as text
SELECT type, value, raw_read(type, value) FROM (VALUES
	('uuid', '550E8400-E29B-41D4-A716-446655440000'::bytea), ('numeric', '1.10'), ('jsonb', '{"a": 1}'), ('date', '2024-02-29'),
	('uuid', ''), ('numeric', 'abc'), ('date', '2024-02-30')) t(type, value);

-- === byte order ===
ALTER FOREIGN TABLE raw_integer OPTIONS (ADD value_raw_endianness 'little-endian');
ALTER FOREIGN TABLE raw_float8 OPTIONS (ADD "value.raw.endianness" 'little-endian');
SELECT raw_read('integer', '\x01000000'), raw_read('float8', '\x000000000000f83f');
ALTER FOREIGN TABLE raw_bigint OPTIONS (ADD value_raw_endianness 'middle-endian');

-- === keys ===
-- A09: a plain string as key; quotes are part of it
CREATE FOREIGN TABLE raw_key (k text OPTIONS (key 'true'), v text) SERVER raw_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'json', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::raw_key, 'order-17', '{"v":"a"}')
UNION ALL SELECT * FROM upsert_kafka.decode(NULL::raw_key, '"order-18"', '{"v":"b"}')
UNION ALL SELECT * FROM upsert_kafka.decode(NULL::raw_key, 'order-17', NULL);
-- B03 for keys: the message says that it was the key
SELECT * FROM upsert_kafka.decode(NULL::raw_key, '\xfffe', '{"v":"a"}');
-- a domain checks what it is given
CREATE DOMAIN raw_code AS text CHECK (VALUE ~ '^[A-Z]+$');
CREATE DOMAIN raw_small AS integer CHECK (VALUE < 10);
CREATE FOREIGN TABLE raw_domain (k raw_small OPTIONS (key 'true'), v raw_code) SERVER raw_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'raw', value_format 'raw', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::raw_domain, '\x00000007', 'ABC');
SELECT * FROM upsert_kafka.decode(NULL::raw_domain, '\x0000000a', 'ABC');
SELECT * FROM upsert_kafka.decode(NULL::raw_domain, '\x00000007', 'abc');
-- text in another encoding, both ways; what it has no character for is an error, not a question mark
CREATE FOREIGN TABLE raw_latin (v text) SERVER raw_server OPTIONS (connector 'kafka', topic 'x', value_format 'raw', value_raw_charset 'ISO-8859-1');
SELECT v = U&'caf\00E9' AS same FROM upsert_kafka.decode(NULL::raw_latin, NULL, '\x636166e9');
SELECT value FROM upsert_kafka.encode(ROW(U&'caf\00E9')::raw_latin);
SELECT upsert_kafka.encode(ROW(U&'\4E2D')::raw_latin);
ALTER FOREIGN TABLE raw_latin OPTIONS (SET value_raw_charset 'UTF-16');
-- one column is all that bytes without structure can fill
CREATE FOREIGN TABLE raw_two (a text, b text) SERVER raw_server OPTIONS (connector 'kafka', topic 'x', value_format 'raw');
SELECT * FROM upsert_kafka.decode(NULL::raw_two, NULL, 'a');

\set VERBOSITY terse
SET client_min_messages = warning;
DROP SERVER raw_server CASCADE;
DROP DOMAIN raw_code, raw_small;
DROP FUNCTION raw_read;
