-- === Every kind of type through every format: what is written is read back as the same value ===
\set VERBOSITY default
SET TimeZone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA types_test;
SET search_path = types_test, public;
CREATE SERVER types FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy');
CREATE TYPE pair AS (a int, b text);
CREATE TYPE deep AS (p pair, ps pair[], m mood, r int4range);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN word AS varchar(10) NOT NULL CHECK (VALUE !~ ' ');
CREATE DOMAIN grid AS int[] CHECK (array_ndims(VALUE) = 2);
CREATE DOMAIN small_pair AS pair CHECK ((VALUE).a < 10);

-- a value of a type by way of each format: the value again, what was written, or what was wrong
CREATE FUNCTION round_trip(format text, type text, value text, OUT same boolean, OUT written text, OUT problem text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL client_min_messages = error;
	EXECUTE format('CREATE FOREIGN TABLE types_t (v %s) SERVER types OPTIONS (connector ''kafka'', topic ''x'', value_format %L)', type, format);
	EXECUTE format('SELECT d.v::text IS NOT DISTINCT FROM e.v::text, CASE WHEN %1$L IN (''avro'') THEN encode(w.value, ''escape'') ELSE convert_from(w.value, ''UTF8'') END
		FROM (SELECT %2$L::%3$s AS v) e, upsert_kafka.encode(ROW(e.v)::types_t) w, upsert_kafka.decode(NULL::types_t, NULL, w.value) d', format, value, type)
		INTO same, written;
	EXECUTE 'DROP FOREIGN TABLE types_t';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS written = PG_EXCEPTION_DETAIL;
	problem := concat_ws(' ', SQLSTATE, SQLERRM, written);
	written := NULL;
END $$;

CREATE TABLE samples (n int GENERATED ALWAYS AS IDENTITY, type text, value text);
INSERT INTO samples (type, value) VALUES
	('boolean', 'true'), ('smallint', '-32768'), ('integer', '2147483647'), ('bigint', '-9223372036854775808'),
	('real', '0.1'), ('double precision', '-1.5e300'), ('numeric', '12345678901234567890.123456789'), ('numeric(9,2)', '-0.05'),
	('text', E'a"b\\c,d;e\n'), ('varchar(5)', 'ab c'), ('char(4)', 'ab'), ('name', 'a name'), ('"char"', 'x'),
	('bytea', '\x00ff27'), ('date', '2024-02-29'), ('time', '23:59:59.999999'), ('time(3)', '12:00:00.5'), ('timetz', '12:00:00.5+02'),
	('timestamp', '2024-02-29 12:00:00.123456'), ('timestamptz', '2024-02-29 12:00:00.123456+02'), ('interval', '1 year 2 mons -3 days 04:05:06.5'),
	('uuid', '550e8400-e29b-41d4-a716-446655440000'), ('inet', '192.168.1.7/24'), ('inet', '::ffff:1.2.3.4'), ('cidr', '10.0.0.0/8'), ('macaddr', '08:00:2b:01:02:03'), ('macaddr8', '08:00:2b:01:02:03:04:05'),
	('bit(3)', '101'), ('varbit', '0011'), ('point', '(1.5,-2)'), ('line', '{1,-1,0}'), ('lseg', '[(0,0),(1,1)]'), ('box', '(2,2),(1,1)'), ('path', '((0,0),(1,1),(2,0))'),
	('polygon', '((0,0),(1,1),(2,0))'), ('circle', '<(0,0),1.5>'), ('int4range', '[1,5)'), ('numrange', '(,3.5]'), ('tstzrange', '[2024-01-01 00:00:00+00,infinity)'), ('daterange', 'empty'),
	('int4multirange', '{[1,3),[5,7)}'), ('json', '{"a": [1, 2.50]}'), ('jsonb', '{"a": [1, 2.50], "b": null}'), ('jsonpath', '$."a"[*]?(@ > 1)'), ('tsvector', '''fat'':2 ''rat'':3'), ('tsquery', '''fat'' & ''rat'''),
	('xid8', '42'), ('pg_lsn', '16/B374D848'), ('oid', '4294967295'), ('regclass', 'pg_class'), ('oidvector', '1 2'), ('int2vector', '1 2'), ('money', '$12.34'),
	('mood', 'very happy'), ('positive', '5'), ('word', 'one'), ('pair', '(1,"x, y")'), ('small_pair', '(1,x)'), ('deep', '("(1,x)","{""(2,y)"",NULL}",ok,"[1,5)")'),
	('int[]', '{1,NULL,3}'), ('int[]', '{}'), ('int[]', '{{1,2},{3,4}}'), ('text[]', '{a,"b,c",NULL,"null"}'), ('mood[]', '{sad,"very happy"}'), ('uuid[]', '{550e8400-e29b-41d4-a716-446655440000}'), ('bytea[]', '{"\\x00","\\xff"}'),
	('timestamptz[]', '{"2024-02-29 12:00:00+00"}'), ('numeric(9,2)[]', '{1.50,-0.05}'), ('inet[]', '{10.0.0.1}'), ('int4range[]', '{"[1,5)",empty}'), ('jsonb[]', '{"{\"a\": 1}"}'), ('positive[]', '{1,2}'), ('grid', '{{1,2},{3,4}}'), ('pair[]', '{"(1,x)","(,)"}'), ('int', NULL), ('word[]', '{a,b}');

-- json: the bytes, all read back
SELECT s.type, r.* FROM samples s, LATERAL round_trip('json', s.type, s.value) r ORDER BY n;
-- the formats of change events write rows the same way: none differs
SELECT f.format, s.type, r.problem, r.written FROM samples s, unnest(ARRAY['debezium-json', 'canal-json', 'maxwell-json', 'ogg-json']) WITH ORDINALITY f (format, o), LATERAL round_trip(f.format, s.type, s.value) r
  WHERE r.same IS NOT TRUE ORDER BY o, n;
-- csv: elements have no quotes, so that some values have no form
SELECT s.type, r.* FROM samples s, LATERAL round_trip('csv', s.type, s.value) r ORDER BY n;
-- raw: text or fixed-width binary; a NULL is Kafka's null
SELECT s.type, r.same, r.problem FROM samples s, LATERAL round_trip('raw', s.type, s.value) r WHERE s.type NOT IN ('boolean', 'smallint', 'integer', 'bigint', 'real', 'double precision', 'bytea', 'positive') AND r.same IS NOT TRUE ORDER BY n;
-- avro: by the schema that columns give; numeric has none without its scale, nor have arrays of more dimensions
SELECT s.type, r.same, r.problem FROM samples s, LATERAL round_trip('avro', s.type, s.value) r WHERE r.same IS NOT TRUE ORDER BY n;
SELECT s.type, r.same, r.written FROM samples s, LATERAL round_trip('avro', s.type, s.value) r WHERE r.same AND s.type IN ('uuid', 'inet', 'int4range', 'mood', 'interval', 'point', 'deep', 'pair[]') ORDER BY n;

-- === what is no value of the type is the message's error, in each format =======
CREATE FUNCTION bad(format text, type text, message bytea, OUT code text, OUT detail text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FOREIGN TABLE types_t (v %s) SERVER types OPTIONS (connector ''kafka'', topic ''x'', value_format %L)', type, format);
	EXECUTE 'SELECT v::text FROM upsert_kafka.decode(NULL::types_t, NULL, $1)' USING message INTO detail;
	EXECUTE 'DROP FOREIGN TABLE types_t';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, code = RETURNED_SQLSTATE;
END $$;
SELECT t.type, f.format, b.* FROM (VALUES ('mood', 'angry'), ('positive', '0'), ('word', 'two words'), ('uuid', 'x'), ('inet', '300.0.0.1'), ('int4range', '[5,1)'), ('point', '1'), ('interval', '1 parsec'),
	('bit(3)', '1'), ('grid', '{1}'), ('int[]', '{1'), ('pair', '(1)'), ('varchar(3)', 'abcd')) t (type, value),
	LATERAL (VALUES ('json', convert_to(json_build_object('v', t.value)::text, 'UTF8')), ('raw', convert_to(t.value, 'UTF8')),
		('avro', '\x02'::bytea || set_byte('\x00', 0, 2 * length(t.value)) || convert_to(t.value, 'UTF8'))) f (format, message),
	LATERAL bad(f.format, t.type, f.message) b WHERE NOT (f.format = 'avro' AND t.type IN ('positive', 'grid', 'int[]', 'pair')) ORDER BY t.type, f.format;
-- .. also where the type's own input function calls it something else, knows no such thing, cuts it in silence, or would make of it what depends on when it is read
SELECT t.type, f.format, b.code, b.detail LIKE 'Topic "x", partition 0, offset 0:%' AS of_message FROM (VALUES ('tsvector', '''a:'), ('tsquery', 'a &'), ('jsonpath', '$.['), ('regclass', 'no_such'), ('regproc', 'no_such'), ('regrole', 'no_such'), ('regnamespace', 'no_such'),
	('name', repeat('x', 64)), ('"char"', 'ab'), ('int2vector', '{1,2}'), ('date', 'tomorrow'), ('time', 'Now'), ('timestamp', 'yesterday 12:00'), ('timestamptz', 'now'), ('tstzrange', '[today,)'), ('timestamp[]', '{now}')) t (type, value),
	LATERAL (VALUES ('json', convert_to(json_build_object('v', t.value)::text, 'UTF8')), ('raw', convert_to(t.value, 'UTF8'))) f (format, message),
	LATERAL bad(f.format, t.type, f.message) b ORDER BY t.type, f.format;
SELECT * FROM bad('json', 'int2vector', '{"v": [1, null]}');
-- these mean the same always, and names may hold such words
SELECT b.detail FROM (VALUES ('timestamptz', 'epoch'), ('timestamptz', 'infinity'), ('time', 'allballs'), ('name', 'now')) t (type, value), LATERAL bad('raw', t.type, convert_to(t.value, 'UTF8')) b;
-- xml, where PostgreSQL has it
SELECT f, r.* FROM unnest(ARRAY['json', 'csv', 'raw', 'avro']) f, LATERAL round_trip(f, 'xml', '<a b="c">d</a>') r WHERE NOT coalesce(r.same OR r.problem LIKE '0A000%', false);
-- NULL for a domain that has none
SELECT f.format, b.* FROM (VALUES ('json', '{"v": null}'::bytea), ('json', '{}'), ('csv', '\x0a'), ('avro', '\x00')) f (format, message), LATERAL bad(f.format, 'word', f.message) b;

SET client_min_messages = warning;
RESET search_path;
DROP SCHEMA types_test CASCADE;
DROP SERVER types CASCADE;
