-- === format json: what a message becomes, seen through upsert_kafka.decode() ===
-- No topic is read here; decode() is the path that scans and workers take. Ids like B06 are cases of the field.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
CREATE SERVER json_server FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');

-- rows of a value, and what an error says
CREATE FUNCTION value_of(anyelement, text) RETURNS SETOF anyelement LANGUAGE sql AS
$$ SELECT * FROM upsert_kafka.decode($1, NULL, convert_to($2, 'UTF8')) $$;
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

CREATE FOREIGN TABLE jv (v text) SERVER json_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');

-- an error names table, column and coordinates, and what to do next
CREATE FOREIGN TABLE jn (b bigint, n numeric, m numeric, j jsonb, f float8, s smallint, i integer, flag boolean)
	SERVER json_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM value_of(NULL::jn, '{"i":"abc"}');

-- === numbers ===
-- B06: exact beyond 2^53, whatever the size; too big for the column is an error of that column
SELECT b, n FROM value_of(NULL::jn, '{"b":9007199254740993,"n":9007199254740993}');
SELECT b, n FROM value_of(NULL::jn, '{"b":-9223372036854775808,"n":123456789012345678901234}');
SELECT refused(NULL::jn, '{"b":9223372036854775808}');
SELECT b, n FROM value_of(NULL::jn, '{"n":18446744073709551615}');
-- a big number that no column wants harms nobody
SELECT b, n FROM value_of(NULL::jn, '{"z":99999999999999999999999,"y":1e999,"b":1}');
-- B07: decimals keep digits and scale, in jsonb too
SELECT n, m, j, f FROM value_of(NULL::jn, '{"n":12345678901234567890.123456789,"m":1.10,"j":{"p":1.10},"f":0.5}');
SELECT length(n::text) FROM value_of(NULL::jn, '{"n":1E400}');
SELECT refused(NULL::jn, '{"f":1e400}');
SELECT refused(NULL::jn, '{"f":1e-400}');
-- X09: an integral number in any spelling fits an integer column, 1.5 does not
SELECT b, s, i FROM value_of(NULL::jn, '{"b":1e3,"s":1.0,"i":-2.50e1}');
SELECT refused(NULL::jn, '{"i":1.5}');
SELECT refused(NULL::jn, '{"s":1e5}');
SELECT refused(NULL::jn, '{"i":1e-400}');
-- strings go through the type's input function
SELECT b, n, s FROM value_of(NULL::jn, '{"b":"90000","n":" 1.50 ","s":"+5"}');
SELECT refused(NULL::jn, '{"i":"1.0"}');
-- C06, X13: numbers are true unless 0; true is no number
SELECT flag, s FROM value_of(NULL::jn, '{"flag":true,"s":1}')
UNION ALL SELECT flag, s FROM value_of(NULL::jn, '{"flag":1,"s":0}')
UNION ALL SELECT flag, s FROM value_of(NULL::jn, '{"flag":-0.0e5}')
UNION ALL SELECT flag, s FROM value_of(NULL::jn, '{"flag":-1}')
UNION ALL SELECT flag, s FROM value_of(NULL::jn, '{"flag":1e-9}')
UNION ALL SELECT flag, s FROM value_of(NULL::jn, '{"flag":"t"}');
SELECT refused(NULL::jn, '{"flag":"t","s":true}');
SELECT refused(NULL::jn, '{"flag":"maybe"}');

-- === text ===
-- B01: NUL cannot be stored; its look-alike is eight plain characters
SELECT refused(NULL::jv, '{"v":"x\u0000y"}');
SELECT v, length(v) FROM value_of(NULL::jv, '{"v":"x\\u0000y"}');
CREATE FOREIGN TABLE jj (t text, j json, b jsonb) SERVER json_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT j FROM value_of(NULL::jj, '{"j":{"v":"x\u0000y"}}');
SELECT refused(NULL::jj, '{"b":{"v":"x\u0000y"}}');
-- or dropped, if one says so: only real NULs go
CREATE FOREIGN TABLE jstrip (t text, b jsonb) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json', value_json_nul_handling 'strip');
SELECT t, b FROM value_of(NULL::jstrip, '{"t":"x\u0000y\\u0000","b":{"v":"x\u0000y\\u0000"}}');
-- surrogates come in pairs
SELECT v = U&'\+01F600 \00E9/\0008"\\' AS same FROM value_of(NULL::jv, '{"v":"\ud83d\ude00 \u00e9\/\b\"\\"}');
SELECT refused(NULL::jv, '{"v":"a\ud83d"}');
SELECT refused(NULL::jv, '{"v":"\ud83da"}');
SELECT refused(NULL::jv, '{"v":"\ude00"}');
-- B03: bytes that are no UTF-8, and a raw control character
SELECT refused(NULL::jv, '\x7b2276223a22ff227d'::bytea);
SELECT refused(NULL::jv, '\x7b2276223a22c080227d'::bytea);
SELECT refused(NULL::jv, '\x7b2276223a22eda080227d'::bytea);
SELECT refused(NULL::jv, '\x7b227a223a22ff222c2276223a2261227d'::bytea);
SELECT refused(NULL::jv, '\x7b2276223a22610962227d'::bytea);
-- everything else becomes its own text, as it stands in the message
SELECT v FROM value_of(NULL::jv, '{"v":1.10}')
UNION ALL SELECT v FROM value_of(NULL::jv, '{"v":true}')
UNION ALL SELECT v FROM value_of(NULL::jv, '{"v":{"a": 1, "b":[1,  2.50]}}')
UNION ALL SELECT coalesce(v, '(null)') FROM value_of(NULL::jv, '{"v":null}');

-- === messages ===
-- B04: what is wrong is found and does not stick to the next message
SELECT v, refused(NULL::jv, v::text) FROM (VALUES
	(1, '{"v":"a"}'), (2, '{"v":12zz,"w":1}'), (3, '{"v":"c"}'), (4, '{"v":007}'), (5, '{"v":"e",}'), (6, '{"v":"f"}'),
	(7, '{"v":"e"} x'), (8, '{"v":"e"'), (9, '{"v":"e'), (10, '{"v" 1}'), (11, '{v:1}'), (12, '{"z":tru}'), (13, '{"v":"\x"}'),
	(14, '{"v":"\u12"}'), (15, '{"v":[1 2]}'), (16, '{"v":+1}'), (17, '{"v":.5}'), (18, '{"v":NaN}'), (19, '{"v":1,/*c*/"w":2}'),
	(20, ' '), (21, '{'), (22, '{"v":{"a":[1}}'), (23, ' {"v" : "ok" } '), (24, 'é')) AS m(n, v) ORDER BY n;
-- only objects are rows; X03: "null" is none
SELECT m, refused(NULL::jv, m) FROM unnest(ARRAY['null', '[]', '[{"v":1}]', '7', '"x"', 'true', 'xyz']) m;
-- nesting is bounded, and does not need the stack
SELECT length(v) FROM value_of(NULL::jv, '{"v":' || repeat('[', 999) || repeat(']', 999) || '}');
SELECT refused(NULL::jv, '{"v":' || repeat('[', 1000) || repeat(']', 1000) || '}');
SELECT refused(NULL::jv, '{"z":' || repeat('{"a":', 100000));
-- B09: of a repeated member the last one counts, and only that
SELECT i, flag FROM value_of(NULL::jn, '{"i":"bad","flag":true,"i":2}');
-- B10: names are exact; a column may name its field; escapes in names are read
CREATE FOREIGN TABLE jcase (v text, "V" text, w text OPTIONS (field 'Ärger'), w2 text OPTIONS (field 'Ärger')) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM value_of(NULL::jcase, '{"V":"x"}')
UNION ALL SELECT * FROM value_of(NULL::jcase, '{"V":"x","v":"y","Ärger":1}')
UNION ALL SELECT * FROM value_of(NULL::jcase, '{"\u0056":"x","\u00c4rger":2,"\ud800":3,"":4}');
-- A12: what is absent or null is NULL; a column default is none of its business
CREATE FOREIGN TABLE jdef (id integer, a text, b text DEFAULT 'zzz', c integer) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM value_of(NULL::jdef, '{"a":"x","b":"y","c":1}')
UNION ALL SELECT * FROM value_of(NULL::jdef, '{"a":"x2"}')
UNION ALL SELECT * FROM value_of(NULL::jdef, '{"a":"x3","b":null,"c":2}');
-- unless the absence is declared to be an error
ALTER FOREIGN TABLE jdef OPTIONS (ADD value_json_fail_on_missing_field 'true');
SELECT refused(NULL::jdef, '{"id":1,"a":"x","b":null}');
SELECT refused(NULL::jdef, '{"id":1,"a":"x","b":null,"c":null}');
-- B13: a schema registry's framing is named, or stripped if one says so
SELECT refused(NULL::jv, '\x000000004d7b2276223a2261227d'::bytea);
SELECT * FROM upsert_kafka.decode(NULL::jv, NULL, '\x000000004d7b2276223a2261227d');
ALTER FOREIGN TABLE jv OPTIONS (ADD value_json_registry_framing 'strip');
SELECT * FROM upsert_kafka.decode(NULL::jv, NULL, '\x000000004d7b2276223a2261227d')
UNION ALL SELECT * FROM upsert_kafka.decode(NULL::jv, NULL, '{"v":"plain"}');
-- X06: one byte-order mark is passed over
SELECT * FROM upsert_kafka.decode(NULL::jv, NULL, '\xefbbbf7b2276223a2261227d');
SELECT refused(NULL::jv, '\xefbbbfefbbbf7b2276223a2261227d'::bytea);
-- X02, X03: a value of no bytes, or of the four bytes null, is an error unless told
CREATE FOREIGN TABLE ju (id integer OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER json_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY', changelog 'true');
SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":1}', '');
SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":1}', 'null');
ALTER FOREIGN TABLE ju OPTIONS (ADD value_json_empty_value 'delete', ADD value_json_null_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":1}', '')
UNION ALL SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":2}', ' null ')
UNION ALL SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":3}', NULL);
ALTER FOREIGN TABLE ju OPTIONS (SET value_json_empty_value 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":1}', '');
-- an empty or plain key is an error of the key (A09)
SELECT * FROM upsert_kafka.decode(NULL::ju, '', '{"v":"a"}');
SELECT * FROM upsert_kafka.decode(NULL::ju, 'order-17', '{"v":"a"}');
-- and cannot mean a delete
ALTER FOREIGN TABLE ju OPTIONS (ADD key_json_empty_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::ju, '{"id":1}', '{"v":"a"}');
-- a wrong word is refused at once
ALTER FOREIGN TABLE ju OPTIONS (SET value_json_null_value 'ignore');

-- === types without a JSON form ===
-- C07: bytea is base64, or Postgres' own hexadecimal; anything else is refused, not stored
CREATE FOREIGN TABLE jb (b bytea) SERVER json_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
-- .. nothing behind the last group either
SELECT v, refused(NULL::jb, format('{"b":"%s"}', v)) FROM unnest(ARRAY['SGkh=', 'SGkh=SGkh', '=', 'SA=', 'SA===', 'SA==SA==', 'SGk=x']) v;
SELECT m, (value_of(NULL::jb, m)).b FROM unnest(ARRAY['{"b":"SGk="}', '{"b":"\\x4869"}', '{"b":""}', '{"b":"/+8="}', '{"b":"AQID\nBAU=\n"}']) m;
SELECT m, refused(NULL::jb, m) FROM unnest(ARRAY['{"b":"SGk"}', '{"b":"S==="}', '{"b":"SGk=="}', '{"b":"AQ==AQ=="}', '{"b":"****"}', '{"b":"\\x4"}', '{"b":1234}', '{"b":true}']) m;
-- C08: strings into jsonb are JSON text (Debezium sends them so), ranges and uuids are read, nothing is cut
CREATE FOREIGN TABLE jt (j jsonb, r tstzrange, c varchar(3), p numeric(5,2), u uuid) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT * FROM value_of(NULL::jt, '{"j":"{\"a\": [1, 2]}","r":"[2024-03-01 00:00:00+00,infinity)","c":"äöü","p":3.145,"u":"550E8400E29B41D4A716446655440000"}');
SELECT refused(NULL::jt, '{"c":"abcdef"}');
SELECT refused(NULL::jt, '{"j":"abc"}');
SELECT refused(NULL::jt, '{"p":12345}');
SELECT refused(NULL::jt, '{"r":{"lower":1}}');
-- C04: a naive time is read in the table's zone, whatever the session's settings; C03: a bare number is no time
CREATE FOREIGN TABLE jtime (t timestamp, z timestamptz, d date, c time, t3 timestamp(3)) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SET timezone = 'Asia/Shanghai';
SET datestyle = 'SQL, DMY';
SELECT extract(epoch FROM z) AS z, to_char(t, 'YYYY-MM-DD HH24:MI:SS.US') AS t, d - date '01/03/2024' AS d, c, extract(microseconds FROM t3) AS t3
  FROM value_of(NULL::jtime, '{"t":"2024-03-01T01:55:15.5","z":"2024-03-01 01:55:15","d":"2024-03-02","c":"12:13:14.567","t3":"2024-03-01 00:00:00.123456"}');
ALTER FOREIGN TABLE jtime OPTIONS (ADD time_zone 'Europe/Berlin');
SELECT extract(epoch FROM z) AS z FROM value_of(NULL::jtime, '{"z":"2024-03-01 01:55:15"}')
UNION ALL SELECT extract(epoch FROM z) FROM value_of(NULL::jtime, '{"z":"2024-03-01T01:55:15Z"}')
UNION ALL SELECT extract(epoch FROM z) FROM value_of(NULL::jtime, '{"z":"2024-03-01T01:55:15+05:30"}');
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
-- X08: an offset is ignored where the column has no zone, as everywhere in Postgres
SELECT to_char(t, 'HH24:MI') AS t FROM value_of(NULL::jtime, '{"t":"2024-03-01T12:00:00+05:30"}');
SELECT refused(NULL::jtime, '{"z":1709296496789}');
SELECT refused(NULL::jtime, '{"d":20240301}');
SELECT refused(NULL::jtime, '{"t":"2024-02-30 00:00:00"}');

-- === nested values ===
CREATE TYPE json_pair AS (a integer, b text);
CREATE TYPE json_nested AS (p json_pair, list json_pair[], n numeric(5,2));
CREATE DOMAIN json_positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN json_required AS text NOT NULL;
CREATE FOREIGN TABLE ja (i integer[], t text[], j jsonb[], c json_nested, p json_positive, ps json_positive[]) SERVER json_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'json');
-- arrays, in as many dimensions as brackets
SELECT i, t, j FROM value_of(NULL::ja, '{"i":[1,null,"3"],"t":["x,y","\"q\"","NULL",null,"",1.50,true,{"b":1},[1,2]],"j":[[1,2],{"a":null},"\"s\""]}');
SELECT i, t FROM value_of(NULL::ja, '{"i":[[1,2],[3,4]],"t":[["a"],["b"]]}')
UNION ALL SELECT i, t FROM value_of(NULL::ja, '{"i":[],"t":[[],[]]}')
UNION ALL SELECT i, t FROM value_of(NULL::ja, '{"i":"{5,6}"}');
SELECT m, refused(NULL::ja, m) FROM unnest(ARRAY['{"i":[[1,2],[3]]}', '{"i":[1,[2]]}', '{"i":[[1],2]}', '{"i":[[],1]}', '{"i":[[1],null]}',
	'{"i":[1,"x"]}', '{"i":{"a":1}}', '{"i":1}', '{"i":[[[[[[[1]]]]]]]}']) m;
-- composites by attribute name, to any depth; what is missing is NULL
SELECT c FROM value_of(NULL::ja, '{"c":{"p":{"b":"x","z":[1],"a":1},"list":[{"a":2},null,{"b":"{}"}],"n":1.005}}')
UNION ALL SELECT c FROM value_of(NULL::ja, '{"c":{}}')
UNION ALL SELECT c FROM value_of(NULL::ja, '{"c":"(\"(1,y)\",,2)"}');
SELECT refused(NULL::ja, '{"c":[1]}');
SELECT refused(NULL::ja, '{"c":{"p":{"a":"x"}}}');
-- domains have their say, on NULL too
SELECT p, ps FROM value_of(NULL::ja, '{"p":5,"ps":[1,2]}');
SELECT refused(NULL::ja, '{"p":0}');
SELECT refused(NULL::ja, '{"ps":[1,-1]}');
CREATE FOREIGN TABLE jd (r json_required) SERVER json_server OPTIONS (connector 'kafka', topic 'x', value_format 'json');
SELECT refused(NULL::jd, '{}');
SELECT refused(NULL::jd, '{"r":null}');

-- === B11: wide tables, up to what the server allows ===
DO $$
BEGIN
	EXECUTE 'CREATE FOREIGN TABLE jwide500 (' || (SELECT string_agg(format('c%s integer OPTIONS (field %L)', i, 'k' || i), ', ') FROM generate_series(0, 499) i)
		|| ') SERVER json_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''json'')';
	EXECUTE 'CREATE FOREIGN TABLE jwide1600 (' || (SELECT string_agg(format('%I text', rpad('long_name_', 59, 'x') || lpad(i::text, 4, '0')), ', ') FROM generate_series(0, 1599) i)
		|| ') SERVER json_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''json'')';
END $$;
-- member i holds i: every column has its value, in the table's order and backwards
SELECT dir, count(*), sum((value::int = substr(key, 2)::int)::int) AS right_ones
  FROM (VALUES ('asc', 1), ('desc', -1)) d(dir, s),
       LATERAL (SELECT to_jsonb(w) AS row FROM value_of(NULL::jwide500,
         (SELECT '{' || string_agg(format('"k%s":%s', i, i), ',' ORDER BY i * s) || '}' FROM generate_series(0, 499) i)) w) r,
       jsonb_each_text(row) GROUP BY dir ORDER BY dir;
SELECT dir, count(*), sum((value::int = right(key, 4)::int)::int) AS right_ones
  FROM (VALUES ('asc', 1), ('desc', -1)) d(dir, s),
       LATERAL (SELECT to_jsonb(w) AS row FROM value_of(NULL::jwide1600,
         (SELECT '{' || string_agg(format('"%s":"%s"', rpad('long_name_', 59, 'x') || lpad(i::text, 4, '0'), i), ',' ORDER BY i * s) || '}' FROM generate_series(0, 1599) i)) w) r,
       jsonb_each_text(row) GROUP BY dir ORDER BY dir;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP SERVER json_server CASCADE;
DROP TYPE json_nested, json_pair;
DROP DOMAIN json_positive, json_required;
DROP FUNCTION value_of, refused(anyelement, bytea), refused(anyelement, text);
