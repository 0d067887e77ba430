-- === format csv: one message is one record, columns go by their place ===
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER csv_server FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- what a value becomes, field by field, or its error; and what a row becomes
CREATE FUNCTION csv_read(t anyelement, value bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	hint text;
BEGIN
	SELECT string_agg(this_row::text, ' ') INTO result FROM upsert_kafka.decode(t, NULL, value) this_row;
	RETURN coalesce(result, 'no row');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS result = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN sqlstate || ': ' || regexp_replace(result, '^Topic [^:]*: ', '') || regexp_replace(' ' || hint, ' Use on_error.*$', '');
END $$;
CREATE FUNCTION csv_write(r anyelement) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	hint text;
BEGIN
	SELECT quote_literal(convert_from(value, 'UTF8')) INTO result FROM upsert_kafka.encode(r);
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS result = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN sqlstate || ': ' || regexp_replace(result, '^Topic "x"(, key [^:]*)?: ', '') || ' ' || hint;
END $$;
-- a row, written and read back: must be the same
CREATE FUNCTION csv_same(r anyelement) RETURNS boolean LANGUAGE sql AS $$
	SELECT this_row::text = r::text FROM upsert_kafka.encode(r) m, upsert_kafka.decode(r, m.key, m.value) this_row
$$;

CREATE FOREIGN TABLE csv_t (n int, v text, w text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
CREATE FOREIGN TABLE csv_pair (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');

-- F02: a line end is no part of the last column; a second record is an error, and so is no record (X02)
SELECT value, csv_read(NULL::csv_pair, value) FROM (VALUES
	('1,a'::bytea), (E'2,b\n'), (E'3,c\r\n'), (E'3,c\r'), (''), (E'4,d\n5,e'), (E'4,d\n\n'), (E'\n')) t(value);
-- F03: too few or too many fields; a delimiter behind the last one is passed over
SELECT value, csv_read(NULL::csv_t, value) FROM (VALUES ('1,a'::bytea), ('1,a,b,c'), ('1,a,b,'), ('1,a,b,,'), ('1,a,b,""')) t(value);
-- X13: COPY's rule, an empty field is NULL, with quotes it is an empty text
SELECT value, csv_read(NULL::csv_t, value) FROM (VALUES ('1,,""'::bytea), (',,'), (' 7 , a , b ')) t(value);
-- X06: a byte-order mark is passed over, once
SELECT csv_read(NULL::csv_pair, '\xefbbbf312c61'), replace(csv_read(NULL::csv_pair, '\xefbbbfefbbbf312c61'), U&'\FEFF', 'BOM ') AS twice;
-- B03: what is no text in UTF-8 is refused, wherever it stands
SELECT csv_read(NULL::csv_pair, '\x312cff'), csv_read(NULL::csv_pair, '\x312c6100');
-- quotes begin a field or mean nothing; inside, two of them are one, and delimiters and line ends are text
SELECT value, csv_read(NULL::csv_pair, value) FROM (VALUES
	('"1","a,b"'::bytea), ('1,"say ""hi"""'), (E'1,"a\nb"'), ('1,a"b'), ('1, "a"'), ('1,"a'), ('1,"a"b'), ('1,"a" '), ('1,"'), ('1,"""')) t(value);
-- fields that the type refuses
SELECT value, csv_read(NULL::csv_pair, value) FROM (VALUES ('x,a'::bytea), ('1.0,a'), ('99999999999,a'), ('"",a')) t(value);
-- only wanted columns are converted, but the record must be whole
CREATE FOREIGN TABLE csv_off (n int, o bigint OPTIONS (metadata 'offset'), v text) SERVER csv_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT csv_read(NULL::csv_off, '1,a');

-- === keys ===
-- the key is a record of the key columns, the value one of all columns; the key's columns come from the key
CREATE FOREIGN TABLE csv_up (a int OPTIONS (key 'true'), b text OPTIONS (key 'true'), v text) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv');
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '1,x', '1,x,v');
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '1,"x,y"', NULL);
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '1', '1,x,v');
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '', '1,x,v');
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '1,', '1,x,v');
-- X06: a key with a byte-order mark is the same key
SELECT * FROM upsert_kafka.decode(NULL::csv_up, '\xefbbbf312c78', '1,x,v');
-- without the key columns in the value; A09: a key that is one plain string
CREATE FOREIGN TABLE csv_except (k text OPTIONS (key 'true'), n int, v text) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::csv_except, 'order-17', '5,a');
SELECT * FROM upsert_kafka.decode(NULL::csv_except, '"order-18"', '5,a');
-- key_fields gives the order of the key's fields, both ways
CREATE FOREIGN TABLE csv_order (a int, b text, v text) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv', key_fields 'b;a', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::csv_order, 'x,1', 'v');
SELECT convert_from(key, 'UTF8') AS key, convert_from(value, 'UTF8') AS value FROM upsert_kafka.encode(ROW(1, 'x', 'v')::csv_order);
-- nothing but key columns: the value has no fields and no bytes
CREATE FOREIGN TABLE csv_keys (a int OPTIONS (key 'true'), b text OPTIONS (key 'true')) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv', value_fields_include 'EXCEPT_KEY');
SELECT key, value FROM upsert_kafka.encode(ROW(1, 'x')::csv_keys);
SELECT * FROM upsert_kafka.decode(NULL::csv_keys, '1,x', '');

-- === options, each one used ===
-- F03: delimiters as Flink's DDL has them, a character or its escape
CREATE FOREIGN TABLE csv_tab (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', "value.csv.field-delimiter" '\t');
CREATE FOREIGN TABLE csv_u1 (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', "csv.field-delimiter" '\u0001');
CREATE FOREIGN TABLE csv_x1 (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', value_csv_delimiter E'\x01');
SELECT csv_read(NULL::csv_tab, E'1\ta,b'), csv_read(NULL::csv_u1, '\x31016161'), csv_read(NULL::csv_x1, '\x31016161');
SELECT csv_write(ROW(1, 'a b')::csv_tab), csv_write(ROW(1, E'a\tb')::csv_tab), csv_write(ROW(1, 'a,b')::csv_tab);
-- another quote, another escape, another delimiter
CREATE FOREIGN TABLE csv_alt (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv',
	csv_field_delimiter ';', csv_quote_character '''', csv_escape_character '\');
SELECT value, csv_read(NULL::csv_alt, value) FROM (VALUES
	('1;''a;b'''::bytea), ('1;''it''''s'''), ('1;''it\\''s'''), ('1;a\\;b'), ('1;a\\nb\\tc\\\\d'), ('1;a\\'), ('1;''a\\'), ('1;\\0')) t(value);
-- no quotes at all
CREATE FOREIGN TABLE csv_bare (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_disable_quote_character 'true');
SELECT csv_read(NULL::csv_bare, '1,"a"'), csv_read(NULL::csv_bare, '1,"a,b"');
SELECT csv_write(ROW(1, 'a"b')::csv_bare), csv_write(ROW(1, 'a,b')::csv_bare), csv_write(ROW(1, '')::csv_bare);
CREATE FOREIGN TABLE csv_escaped (n int, v text) SERVER csv_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_disable_quote_character 'true', csv_escape_character '\', csv_null_literal '\N');
SELECT csv_write(ROW(1, E'a,b\\c\nd')::csv_escaped), csv_write(ROW(1, NULL)::csv_escaped), csv_write(ROW(1, '')::csv_escaped);
SELECT csv_same(ROW(1, E'a,b\\c\nd\r"')::csv_escaped), csv_same(ROW(1, NULL)::csv_escaped), csv_same(ROW(1, '\N')::csv_escaped);
-- a null literal takes the place of the empty field; with quotes it is a text
CREATE FOREIGN TABLE csv_null (n int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_null_literal 'n/a');
SELECT value, csv_read(NULL::csv_null, value) FROM (VALUES ('n/a,n/a'::bytea), ('1,"n/a"'), ('1,'), (',a')) t(value);
SELECT csv_write(ROW(NULL, NULL)::csv_null), csv_write(ROW(1, 'n/a')::csv_null), csv_write(ROW(1, '')::csv_null);
-- comments are no rows, nor are they counted as such
CREATE FOREIGN TABLE csv_notes (v text, w text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_allow_comments 'true');
SELECT value, csv_read(NULL::csv_notes, value) FROM (VALUES
	('# a,b'::bytea), ('  #'), (E'# note\na,b\n# end\n'), ('a,#b'), ('"#a",b'), (E'#\n')) t(value);
SELECT csv_read(NULL::csv_pair, '#1,a'), csv_write(ROW('#a', '#b')::csv_notes), csv_same(ROW('#a', ' #b')::csv_notes);
-- what an empty value means
CREATE FOREIGN TABLE csv_empty (k int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv', csv_empty_value 'delete');
SELECT * FROM upsert_kafka.decode(NULL::csv_empty, '1', '');
ALTER FOREIGN TABLE csv_empty OPTIONS (SET csv_empty_value 'ignore');
SELECT * FROM upsert_kafka.decode(NULL::csv_empty, '1', '');
-- bad fields become NULL and missing ones, too; what is no record of the table is skipped
CREATE FOREIGN TABLE csv_ignore (n int, d date, v varchar(3), a int[]) SERVER csv_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_ignore_parse_errors 'true');
SELECT value, csv_read(NULL::csv_ignore, value) FROM (VALUES
	('1,2024-02-29,abc,1;2'::bytea), ('x,2024-02-30,abcd,1;x'), ('1,2024-02-29'), ('x'), ('1,2024-02-29,a,1,5'), ('1,"a'), ('')) t(value);
-- in an upsert table as well, but a row has its key, whose errors stay
CREATE DOMAIN csv_positive AS int CHECK (VALUE > 0);
CREATE DOMAIN csv_given AS text NOT NULL;
CREATE FOREIGN TABLE csv_ignore_key (k int OPTIONS (key 'true'), n csv_positive, v csv_given) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'x', key_format 'csv', value_format 'csv', key_csv_ignore_parse_errors 'true',
	value_csv_ignore_parse_errors 'true', value_fields_include 'EXCEPT_KEY');
SELECT * FROM upsert_kafka.decode(NULL::csv_ignore_key, '1', 'x,a');
SELECT * FROM upsert_kafka.decode(NULL::csv_ignore_key, 'x', '1,a');
-- what a domain forbids is no parse error
SELECT * FROM upsert_kafka.decode(NULL::csv_ignore_key, '1', '-1,a');
SELECT * FROM upsert_kafka.decode(NULL::csv_ignore_key, '1', '1,');
SELECT * FROM upsert_kafka.decode(NULL::csv_ignore_key, '1', '1');
-- decimals
CREATE FOREIGN TABLE csv_plain (d numeric(20,9)) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
CREATE FOREIGN TABLE csv_science (d numeric(20,9)) SERVER csv_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_write_bigdecimal_in_scientific_notation 'true');
SELECT d, csv_write(ROW(d)::csv_plain), csv_write(ROW(d)::csv_science) FROM (VALUES (100.0), (1.10), (0.000000027)) t(d);

-- === options, misused: refused when the table is made ===
\set t 'CREATE FOREIGN TABLE csv_bad (v text) SERVER csv_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''csv'','
-- F03: longer than a byte, not ASCII, equal to the quote, a line end
:t csv_field_delimiter '||');
:t csv_field_delimiter '§');
:t csv_field_delimiter '');
:t csv_field_delimiter '\u0000');
:t csv_field_delimiter '"');
:t csv_field_delimiter '\n');
:t csv_quote_character ',');
:t csv_quote_character '''', csv_disable_quote_character 'true');
:t csv_escape_character ',');
:t csv_escape_character 'n');
:t csv_array_element_delimiter '::');
:t csv_null_literal 'a,b');
:t csv_null_literal '"');
:t csv_allow_comments 'maybe');
:t csv_allow_comments 'true', csv_field_delimiter '#');
:t csv_allow_comments 'true', csv_null_literal '#');
:t csv_ignore_parse_errors 'yes please');
:t csv_empty_value 'skip');
:t csv_write_bigdecimal_in_scientific_notation '2');
:t csv_line_delimiter ';');
:t csv_delimiter ';', csv_field_delimiter ';');
:t json_fail_on_missing_field 'true');
ALTER FOREIGN TABLE csv_except OPTIONS (ADD key_csv_empty_value 'delete');
-- an escape that is the quote is no other way to write it: quotes are doubled
CREATE FOREIGN TABLE csv_same_escape (v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_escape_character '"');
SELECT csv_read(NULL::csv_same_escape, '"a""b"');

-- === types ===
CREATE TYPE csv_mood AS ENUM ('sad', 'ok');
CREATE TYPE csv_point AS (x int, label text);
CREATE FOREIGN TABLE csv_types (b boolean, s smallint, i bigint, r real, d float8, m numeric(10,2), by bytea, da date, ti time, ts timestamp(3), tz timestamptz,
	mood csv_mood, u uuid, j jsonb, iv interval, ra int4range)
	SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv', time_zone 'Europe/Berlin');
SELECT * FROM upsert_kafka.decode(NULL::csv_types, NULL,
	'yes, 1 ,2,1.5,NaN,1.005,AQID,2024-02-29,12:13:14.5,2024-02-29T12:13:14.5678,2024-02-29 12:00:00,ok,550E8400E29B41D4A716446655440000,"{""a"": 1}",1 day,"[1,3)"') \gx
SELECT * FROM upsert_kafka.decode(NULL::csv_types, NULL, 'f,,,,,,\\x0102,,,,2024-02-29 12:00:00Z,,,,,') \gx
-- written: times in UTC, floats and base64 as Java writes them, whatever the session's settings are
SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'; SET bytea_output = 'escape'; SET intervalstyle = 'iso_8601'; SET extra_float_digits = -5;
SELECT csv_write(ROW(true, 1, 2, 0.1, 1e7, 1.10, '\x010203', '2024-02-29', '12:13:14.5', '2024-02-29 12:13:14.56', '2024-02-29 12:00:00+01',
	'ok', '550E8400-E29B-41D4-A716-446655440000', '{"a": 1}', '1 day 02:00', '[1,3)')::csv_types);
RESET timezone; RESET datestyle; RESET bytea_output; RESET intervalstyle; RESET extra_float_digits;
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY';
SELECT csv_write(ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::csv_types);
-- arrays and composites are one field, split once more; empty parts are NULL
CREATE FOREIGN TABLE csv_nested (n int[], v text[], p csv_point) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT value, csv_read(NULL::csv_nested, value) FROM (VALUES
	('1;2,a;b,7;seven'::bytea), ('1;;3,;,;'), (',,'), ('"","",7;'), ('1;x,,'), (',,7'), (',,7;a;b'), (',"a,b;c",')) t(value);
SELECT csv_write(ROW('{1,2,NULL}', '{a,"b,c"}', '(7,seven)')::csv_nested), csv_write(ROW('{}', NULL, '(,)')::csv_nested);
-- what has no form is an error, not something else
SELECT csv_write(ROW(NULL, ARRAY['a;b'], NULL)::csv_nested);
SELECT csv_write(ROW(NULL, ARRAY['a', ''], NULL)::csv_nested);
SELECT csv_write(ROW('{NULL}', NULL, NULL)::csv_nested);
SELECT csv_write(ROW('{{1,2},{3,4}}', NULL, NULL)::csv_nested);
SELECT csv_write(ROW(NULL, NULL, '(7,a;b)')::csv_nested);
-- with another delimiter and a null literal it has
CREATE FOREIGN TABLE csv_nested_alt (n int[], v text[], p csv_point) SERVER csv_server
	OPTIONS (connector 'kafka', topic 'x', value_format 'csv', csv_array_element_delimiter '|', csv_null_literal '-');
SELECT csv_write(ROW('{NULL,1}', '{a;b,"",NULL}', '(,a;b)')::csv_nested_alt), csv_write(ROW('{NULL}', '{}', NULL)::csv_nested_alt);
SELECT csv_same(ROW('{NULL,1}', '{a;b,"",NULL}', '(,a;b)')::csv_nested_alt), csv_same(ROW('{NULL}', '{}', NULL)::csv_nested_alt);
SELECT csv_write(ROW(NULL, '{-}', NULL)::csv_nested_alt), csv_write(ROW(NULL, '{""}', NULL)::csv_nested_alt);
-- deeper nesting is PostgreSQL's text of it
CREATE TYPE csv_deep AS (p csv_point, a int[]);
CREATE FOREIGN TABLE csv_deeper (d csv_deep, l csv_point[]) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT csv_write(ROW('("(1,x)","{1,2}")', '{"(1,a)","(2,b)"}')::csv_deeper), csv_same(ROW('("(1,x)","{1,2}")', '{"(1,a)","(2,b)"}')::csv_deeper);
-- domains have their say, NULL included
CREATE FOREIGN TABLE csv_domains (n csv_positive, v csv_given, a csv_positive[]) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT value, csv_read(NULL::csv_domains, value) FROM (VALUES ('1,a,1;2'::bytea), ('0,a,'), ('1,,'), ('1,a,1;-2')) t(value);

-- === writing: Flink's bytes ===
-- quoted is what has a character up to the comma, a backslash, or more than 24 characters
SELECT v, csv_write(ROW(1, v)::csv_pair) FROM unnest(ARRAY['plain', '', 'a"b', 'a\b', 'a/b', 'a b', 'a+b', 'a-b', '日本語']) v;
-- ... of which those beyond the BMP count twice
SELECT to_hex(ascii(c)) AS character, n, csv_write(ROW(1, repeat(c, n))::csv_pair) LIKE '%"%' AS quoted
  FROM (VALUES ('x', 24), ('x', 25), (U&'\65E5', 24), (U&'\65E5', 25), (U&'\+01F600', 12), (U&'\+01F600', 13)) t(c, n);
-- NULL is an empty field, and a record of one NULL an empty line
CREATE FOREIGN TABLE csv_one (v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'x', value_format 'csv');
SELECT csv_write(ROW(NULL, NULL)::csv_pair), csv_write(ROW(NULL)::csv_one), csv_write(ROW('')::csv_one);
SELECT csv_same(ROW(NULL)::csv_one), csv_same(ROW('')::csv_one), csv_same(ROW(U&'\FEFFx')::csv_one), csv_same(ROW(E'a\r\n"b",')::csv_one);

-- === in a topic ===
\! test/kt create csv_topic --fresh
\o |test/kt produce csv_topic
\qecho '1|1,a'
\qecho '2|2,"b,c"'
\qecho '3|#3,no row'
\qecho '1|\\N'
\qecho '4|4'
\qecho '5|5,e,extra'
\o
CREATE FOREIGN TABLE csv_upsert (k int OPTIONS (key 'true'), v text) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'csv_topic', key_format 'csv', value_format 'csv', csv_allow_comments 'true');
-- a message that is no record of the table stops the query ...
SELECT * FROM csv_upsert ORDER BY k;
-- ... or is passed over and told
ALTER FOREIGN TABLE csv_upsert OPTIONS (ADD on_error 'skip');
SELECT * FROM csv_upsert ORDER BY k;
-- a column that is missing can be NULL; one too many cannot be anything, and the message is skipped
ALTER FOREIGN TABLE csv_upsert OPTIONS (ADD csv_ignore_parse_errors 'true');
SELECT * FROM csv_upsert ORDER BY k;
-- written and read back: an empty text, NULL, what needs quotes; a DELETE is a tombstone
INSERT INTO csv_upsert VALUES (10, ''), (11, NULL), (12, E'a "b",\nc'), (13, '# no comment');
UPDATE csv_upsert SET v = 'new' WHERE k = 13;
DELETE FROM csv_upsert WHERE k = 2;
\! test/kt consume csv_topic | tail -n 7
SELECT k, quote_nullable(v) AS v FROM csv_upsert WHERE k >= 10 OR k = 2 ORDER BY k;
-- what a domain forbids is no bad field but a bad message, between others
CREATE DOMAIN csv_word AS text CHECK (VALUE !~ ',');
CREATE FOREIGN TABLE csv_checked (k int OPTIONS (key 'true'), v csv_word) SERVER csv_server
	OPTIONS (connector 'upsert-kafka', topic 'csv_topic', key_format 'csv', value_format 'csv', csv_ignore_parse_errors 'true', on_error 'skip');
SELECT * FROM csv_checked ORDER BY k;
-- comments are not counted, though no column is asked for
CREATE FOREIGN TABLE csv_append (k int, v text) SERVER csv_server OPTIONS (connector 'kafka', topic 'csv_topic', value_format 'csv',
	scan_bounded_mode 'specific-offsets', scan_bounded_specific_offsets 'partition:0,offset:3');
SELECT count(*) FROM csv_append;
ALTER FOREIGN TABLE csv_append OPTIONS (ADD csv_allow_comments 'true');
SELECT count(*) FROM csv_append;
\! test/kt delete csv_topic

-- === whatever comes ===
-- random bytes and mutations of good records never do harm: each is a row or an error of class 22
CREATE FUNCTION csv_fuzz(rounds int) RETURNS TABLE (outcomes bigint, strange text) LANGUAGE plpgsql AS $$
DECLARE
	seeds bytea[] := ARRAY['1,2024-02-29,abc,1;2', '"1","2024-02-29","a""b",";"', E'-1,,"a\nb",1;;3\r\n', ',,,', '# c', '\xefbbbf31']::bytea[];
	message bytea;
	rows bigint := 0;
BEGIN
	PERFORM setseed(0.5);
	FOR i IN 1 .. rounds LOOP
		message := seeds[1 + i % 6];
		FOR j IN 0 .. i % 4 LOOP
			message := CASE i % 3
				WHEN 0 THEN set_byte(message, (random() * (length(message) - 1))::int, (random() * 255)::int)
				WHEN 1 THEN substr(message, 1, (random() * length(message))::int) || '\x2c'::bytea || substr(message, (random() * length(message))::int)
				ELSE substr(message, 1, (random() * length(message))::int) || '\x22'::bytea || substr(message, (random() * length(message))::int)
			END;
		END LOOP;
		BEGIN
			PERFORM FROM upsert_kafka.decode(CASE WHEN false THEN NULL::csv_ignore END, NULL, message);
		EXCEPTION WHEN OTHERS THEN
			IF sqlstate !~ '^22' THEN
				strange := sqlstate || ' ' || encode(message, 'hex');
				outcomes := i;
				RETURN NEXT;
			END IF;
		END;
		rows := rows + 1;
	END LOOP;
	outcomes := rows;
	strange := NULL;
	RETURN NEXT;
END $$;
SET client_min_messages = error;
SELECT * FROM csv_fuzz(3000);
RESET client_min_messages;
-- many columns, long fields
DO $$
DECLARE
	ddl text := (SELECT 'CREATE FOREIGN TABLE csv_wide (' || string_agg('c' || i || ' int', ',') || ') SERVER csv_server OPTIONS (connector ''kafka'', topic ''x'', value_format ''csv'')' FROM generate_series(1, 1600) i);
BEGIN
	EXECUTE ddl;
END $$;
SELECT c1, c800, c1600 FROM upsert_kafka.decode(NULL::csv_wide, NULL, (SELECT string_agg(i::text, ',') FROM generate_series(1, 1600) i)::bytea);
SELECT n, length(v) FROM upsert_kafka.decode(NULL::csv_pair, NULL, convert_to('1,"' || repeat('x""', 1000000) || '"', 'UTF8'));
SELECT csv_read(NULL::csv_pair, convert_to(repeat(',', 1000000), 'UTF8'));

DROP SERVER csv_server CASCADE;
DROP FUNCTION csv_read, csv_write, csv_same, csv_fuzz;
DROP TYPE csv_mood, csv_deep, csv_point;
DROP DOMAIN csv_positive, csv_given, csv_word;
