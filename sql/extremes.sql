-- === the widest rows, the longest names, the deepest nesting and lengths that lie, in every format ===
-- decode() and encode() show what messages mean; no broker is asked.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
CREATE SERVER extremes_server FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');

-- how a message is refused
CREATE FUNCTION refused(t anyelement, value bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM * FROM upsert_kafka.decode(t, NULL, value);
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN sqlstate || ': ' || coalesce(substring(sqlerrm FROM 'column "[^"]*"') || ': ', '') || regexp_replace(detail, '^Topic [^:]*: ', '');
END $$;
CREATE FUNCTION refused(t anyelement, value text) RETURNS text LANGUAGE sql AS
$$ SELECT refused(t, convert_to(value, 'UTF8')) $$;

-- === 1,600 columns with names of 63 bytes: what is written of a row reads as the same row ===
CREATE FUNCTION wide(format text, name_lead text) RETURNS TABLE (columns int, name_bytes int, same boolean) LANGUAGE plpgsql AS $$
DECLARE
	names text[] := (SELECT array_agg(name_lead || lpad(i::text, 63 - octet_length(name_lead), '0') ORDER BY i) FROM generate_series(1, 1600) i);
BEGIN
	DROP FOREIGN TABLE IF EXISTS wide;
	EXECUTE (SELECT 'CREATE FOREIGN TABLE wide (' || string_agg(format('%I %s', name, (ARRAY['int', 'text', 'numeric(10,2)', 'date'])[1 + i % 4]), ', ' ORDER BY i)
		FROM unnest(names) WITH ORDINALITY AS n (name, i)) || format(') SERVER extremes_server OPTIONS (connector ''kafka'', topic ''x'', value_format %L)', format);
	RETURN QUERY EXECUTE 'SELECT 1600, $2, d IS NOT DISTINCT FROM r
		FROM jsonb_populate_record(NULL::wide, $1) r, upsert_kafka.encode(r) e, upsert_kafka.decode(NULL::wide, NULL, e.value) d'
		USING (SELECT jsonb_object_agg(name, CASE i % 4 WHEN 0 THEN i::text WHEN 1 THEN 'text ' || i WHEN 2 THEN NULL ELSE '2020-01-02' END)
			FROM unnest(names) WITH ORDINALITY AS n (name, i)), (SELECT max(octet_length(name)) FROM unnest(names) name);
END $$;
SET client_min_messages = warning;
SELECT f.format, w.* FROM unnest(ARRAY['json', 'csv', 'avro', 'debezium-json', 'canal-json', 'maxwell-json', 'ogg-json']) f (format), wide(f.format, 'name_') w;
-- 29 letters of two bytes; Avro's names are ASCII
SELECT f.format, w.* FROM unnest(ARRAY['json', 'csv', 'debezium-json', 'canal-json', 'maxwell-json', 'ogg-json']) f (format), wide(f.format, repeat('ü', 29)) w;
RESET client_min_messages;

-- === values nested 100,000 deep ===
CREATE FOREIGN TABLE deep_json (v jsonb, t text) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
CREATE FOREIGN TABLE deep_debezium (v jsonb, t text) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'debezium-json');
CREATE FOREIGN TABLE deep_canal (v jsonb, t text) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'canal-json');
CREATE FOREIGN TABLE deep_maxwell (v jsonb, t text) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'maxwell-json');
CREATE FOREIGN TABLE deep_ogg (v jsonb, t text) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'ogg-json');
-- arrays and objects, in a column, in what no column wants, and with no end; in front of it all
SELECT format, refused(NULL::deep_json, text) FROM (VALUES
	('array', '{"v":' || repeat('[', 100000) || repeat(']', 100000) || '}'),
	('object', '{"v":' || repeat('{"a":', 100000) || '1' || repeat('}', 100000) || '}'),
	('text', '{"t":' || repeat('[{"a":', 50000) || '1' || repeat('}]', 50000) || '}'),
	('unwanted', '{"other":' || repeat('[', 100000) || repeat(']', 100000) || '}'),
	('no end', '{"v":' || repeat('[', 100000)),
	('at once', repeat('[', 100000))) x (format, text);
SELECT refused(NULL::deep_debezium, '{"after":{"v":' || repeat('[', 100000) || repeat(']', 100000) || '},"op":"c"}');
SELECT refused(NULL::deep_debezium, '{"schema":' || repeat('{"fields":[', 100000) || repeat(']}', 100000) || ',"payload":{"after":{"v":1},"op":"c"}}');
SELECT refused(NULL::deep_canal, '{"data":[{"v":' || repeat('[', 100000) || repeat(']', 100000) || '}],"type":"INSERT"}');
SELECT refused(NULL::deep_maxwell, '{"data":{"v":' || repeat('[', 100000) || repeat(']', 100000) || '},"type":"insert"}');
SELECT refused(NULL::deep_ogg, '{"after":{"v":' || repeat('[', 100000) || repeat(']', 100000) || '},"op_type":"I"}');
-- schemas of Kafka Connect nested to where messages may be
SELECT refused(NULL::deep_debezium, '{"schema":' || repeat('{"type":"array","items":', 990) || '{}' || repeat('}', 990) || ',"payload":{"after":{"v":1},"op":"c"}}');

-- a record of Avro within itself, wanted and passed over
CREATE FOREIGN TABLE deep_avro (id int, next jsonb) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
	'{"type": "record", "name": "node", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "node"]},
	  {"name": "tree", "type": ["null", {"type": "array", "items": {"type": "map", "values": "node"}}]}]}');
SELECT refused(NULL::deep_avro, decode(repeat('0202', 100000) || repeat('0000', 100000), 'hex'));
CREATE FOREIGN TABLE deep_avro_unwanted (id int) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
	'{"type": "record", "name": "node", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "node"]},
	  {"name": "tree", "type": ["null", {"type": "array", "items": {"type": "map", "values": "node"}}]}]}');
SELECT refused(NULL::deep_avro_unwanted, decode(repeat('0202', 100000) || repeat('0000', 100000), 'hex'));
SELECT refused(NULL::deep_avro_unwanted, decode(repeat('02000202020200', 100000), 'hex'));
-- what is in reason is read
SELECT id, length(next::text) FROM upsert_kafka.decode(NULL::deep_avro, NULL, decode(repeat('0202', 500) || '0200' || repeat('00', 501), 'hex'));

-- schemas nested 100,000 deep, which jansson refuses, and 1,000 deep
DO $$
BEGIN
	EXECUTE format('CREATE FOREIGN TABLE deep_schema (v jsonb) SERVER extremes_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''avro'', value_avro_schema %L)',
		repeat('{"type":"array","items":', 100000) || '"int"' || repeat('}', 100000));
END $$;
SELECT refused(NULL::deep_schema, ''::bytea);
DROP FOREIGN TABLE deep_schema;
DO $$
BEGIN
	EXECUTE format('CREATE FOREIGN TABLE deep_schema (v jsonb) SERVER extremes_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''avro'', value_avro_schema %L)',
		repeat('{"type":"array","items":', 1000) || '"int"' || repeat('}', 1000));
END $$;
SELECT length(v::text) FROM upsert_kafka.decode(NULL::deep_schema, NULL, decode(repeat('02', 1000) || '0e' || repeat('00', 1000), 'hex'));
SELECT refused(NULL::deep_schema, decode(repeat('02', 999), 'hex'));

-- === lengths that lie: nothing is allocated for what is not there ===
CREATE FOREIGN TABLE lying (t text, b bytea, ints int[], m jsonb, n numeric) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'avro', value_avro_schema
	'{"type": "record", "name": "r", "fields": [{"name": "t", "type": "string"}, {"name": "b", "type": "bytes"},
	  {"name": "ints", "type": {"type": "array", "items": "int"}}, {"name": "m", "type": {"type": "map", "values": "null"}},
	  {"name": "n", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}}, {"name": "nulls", "type": {"type": "array", "items": "null"}}]}');
SELECT what, refused(NULL::lying, decode(hex, 'hex')) FROM (VALUES
	('text of 1 GB', '8080808008' || '61'),
	('text of 2^62 bytes', 'feffffffffffffffff01' || '61'),
	('text of less than nothing', '01' || '61'),
	('bytes of 2 GB', '00' || 'feffffff0f' || '61'),
	('2^40 integers', '0000' || '808080808040' || '02'),
	('2^63 integers in 2 bytes', '0000' || 'ffffffffffffffffff01' || '04' || '0202'),
	('integers that take more bytes than are told', '0000' || '05' || '02' || '020406' || '00' || '00' || '0202' || '00'),
	('entries that take less', '000000' || '01' || '08' || '0261' || '00' || '0202' || '00'),
	('2^40 entries', '000000' || '808080808040' || '02'),
	('a number without an end', 'ffffffffffffffffffffffff'),
	('2^40 nulls', '00000000' || '0202' || '808080808040' || '00')) x (what, hex);
-- nulls take no bytes; a million of them are enough
SELECT refused(NULL::lying, decode('00000000' || '0202' || '80897a' || '00', 'hex')) AS million, refused(NULL::lying, decode('00000000' || '0202' || '82897a' || '00', 'hex')) AS one_more;
-- decimals of more digits than numeric has
SELECT left(refused(NULL::lying, decode('00000000' || 'a0aa0d' || repeat('7f', 109200) || '00', 'hex')), 90);

-- === an error says no more than how a long value begins ===
CREATE FOREIGN TABLE telling (i int, j jsonb) SERVER extremes_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT length(r), left(r, 80), right(r, 8) FROM refused(NULL::telling, '{"i":"' || repeat('ü', 100000) || '"}') r;
SELECT length(r) < 2500 AS short FROM refused(NULL::telling, '{"j":"' || repeat('ü', 100000) || '"}') r;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP SERVER extremes_server CASCADE;
DROP FUNCTION wide, refused(anyelement, bytea), refused(anyelement, text);
