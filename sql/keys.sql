-- Identity of a row is its typed key, by the column types' own operators: never its bytes.
\set VERBOSITY default
\set broker `echo ${BROKER:-127.0.0.1:9092}`
CREATE SERVER keys FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- === A06: one key, many spellings ===============================================
\! test/kt create keys_spelling --fresh
CREATE FOREIGN TABLE keys_spelling (region text OPTIONS (key 'true'), n int OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_spelling', key_format 'json', value_format 'json');
\! echo '{"region":"eu","n":7}|{"v":"a"}' | test/kt produce keys_spelling
SELECT * FROM keys_spelling;
\! echo '{ "n" : 7, "region" : "eu" }|{"v":"b"}' | test/kt produce keys_spelling
SELECT * FROM keys_spelling;
\! echo '{"region":"eu","n":"7"}|{"v":"c"}' | test/kt produce keys_spelling
SELECT * FROM keys_spelling;
\! echo '{"region":"e\u0075","n":7}|\N' | test/kt produce keys_spelling
SELECT * FROM keys_spelling;

-- === numbers ====================================================================
-- 1.0 and 1.00 are one numeric key; so are NaN and NaN, 0 and -0
\! test/kt create keys_numeric --fresh
\! printf '%s\n' '{"k":1.0}|{"v":"a"}' '{"k":1.00}|{"v":"b"}' '{"k":"NaN"}|{"v":"c"}' '{"k":"nan"}|{"v":"d"}' '{"k":0}|{"v":"e"}' '{"k":-0.0}|{"v":"f"}' '{"k":1e0}|{"v":"g"}' | test/kt produce keys_numeric
CREATE FOREIGN TABLE keys_numeric (k numeric OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_numeric', key_format 'json', value_format 'json');
SELECT k = 1 AS one, k = 0 AS zero, v FROM keys_numeric ORDER BY k;
CREATE FOREIGN TABLE keys_float (k float8 OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_numeric', key_format 'json', value_format 'json');
SELECT k = 1 AS one, k = 0 AS zero, v FROM keys_float ORDER BY k;
-- as text they are seven
CREATE FOREIGN TABLE keys_number_text (k text OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_numeric', key_format 'json', value_format 'json');
SELECT count(*) FROM keys_number_text;

-- === text =======================================================================
-- blanks at the end of char(n) don't count; letter case does not where the collation says so
\! test/kt create keys_text --fresh
\! printf '%s\n' '{"k":"a"}|{"v":"1"}' '{"k":"a "}|{"v":"2"}' '{"k":"A"}|{"v":"3"}' | test/kt produce keys_text
CREATE FOREIGN TABLE keys_text (k text OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_text', key_format 'json', value_format 'json');
SELECT k, v FROM keys_text ORDER BY v;
CREATE FOREIGN TABLE keys_char (k char(3) OPTIONS (key 'true') COLLATE "C", v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_text', key_format 'json', value_format 'json');
SELECT k, v FROM keys_char ORDER BY v;

-- === types that can be sorted, but not hashed ===================================
\! test/kt create keys_bit --fresh
\! printf '%s\n' '{"k":"101"}|{"v":"1"}' '{"k":"011"}|{"v":"2"}' '{"k":"101"}|{"v":"3"}' '{"k":"011"}|\N' | test/kt produce keys_bit
CREATE FOREIGN TABLE keys_bit (k bit(3) OPTIONS (key 'true'), v text) SERVER keys
	OPTIONS (connector 'upsert-kafka', topic 'keys_bit', key_format 'json', value_format 'json');
SELECT * FROM keys_bit;

\set VERBOSITY terse
DROP SERVER keys CASCADE;
\! for t in keys_spelling keys_numeric keys_text keys_bit; do test/kt delete $t; done
