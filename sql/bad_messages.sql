-- Messages that cannot be read: the error tells where, on_error 'skip' passes by exactly them, and
-- what is not the message's fault is never passed by.
\set VERBOSITY default
\set SHOW_CONTEXT never
\set broker `echo ${BROKER:-127.0.0.1:9092}`
CREATE SERVER bad FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- === B14: one bad message among a thousand ======================================
\! test/kt create bad_one --fresh
\! for i in $(seq 0 999); do if [ $i = 500 ]; then echo 'k|{"n":"abc"}'; else echo "k|{\"n\":$i}"; fi; done | test/kt produce bad_one
CREATE FOREIGN TABLE bad_one (n int, o bigint OPTIONS (metadata 'offset')) SERVER bad
	OPTIONS (connector 'kafka', topic 'bad_one', value_format 'json');
SELECT count(n) FROM bad_one;
-- nobody asks for the column: nothing is wrong
SELECT count(*) FROM bad_one;
ALTER FOREIGN TABLE bad_one OPTIONS (ADD on_error 'skip');
SELECT count(n), sum(n), min(o), max(o) FROM bad_one;
SELECT o FROM bad_one WHERE n IS NULL OR o = 500;

-- === B04: runs of bad ones, at the start, at the end, in a row ==================
\! test/kt create bad_many --fresh
\! printf '%s\n' 'a|{' 'b|{"n":1}' 'c|{"n":' 'd|[1]' 'e|{"n":2,"x":"\ud800"}' 'f|{"n":99999999999}' 'g|{"n":3}' 'h|nul' | test/kt produce bad_many
CREATE FOREIGN TABLE bad_many (n int, o bigint OPTIONS (metadata 'offset')) SERVER bad
	OPTIONS (connector 'kafka', topic 'bad_many', value_format 'json', on_error 'skip');
SELECT n, o FROM bad_many;
-- inside of transactions, subtransactions and cursors, read-only ones too
BEGIN READ ONLY;
SAVEPOINT s;
DECLARE c CURSOR FOR SELECT n, o FROM bad_many;
FETCH 2 FROM c;
FETCH ALL FROM c;
RELEASE s;
COMMIT;

-- === keys =======================================================================
\! test/kt create bad_keys --fresh
\! printf '%s\n' '{"id":1}|{"v":"a"}' '\N|{"id":2,"v":"b"}' '{"id":"x"}|{"v":"c"}' '{"no":1}|{"v":"d"}' '{"id":3}|{"v":"e"}' '\N|\N' | test/kt produce bad_keys
CREATE FOREIGN TABLE bad_keys (id int OPTIONS (key 'true'), v text) SERVER bad
	OPTIONS (connector 'upsert-kafka', topic 'bad_keys', key_format 'json', value_format 'json');
-- X01
SELECT * FROM bad_keys;
ALTER FOREIGN TABLE bad_keys OPTIONS (ADD on_error 'skip');
SELECT * FROM bad_keys ORDER BY id;

-- === X12: a bad new value does not replace the old row ==========================
\! test/kt create bad_value --fresh
\! printf '%s\n' '{"id":1}|{"v":"a","n":1}' '{"id":2}|{"v":"b","n":1}' '{"id":1}|{"v":"c","n":"abc"}' | test/kt produce bad_value
CREATE FOREIGN TABLE bad_value (id int OPTIONS (key 'true'), v text, n int) SERVER bad
	OPTIONS (connector 'upsert-kafka', topic 'bad_value', key_format 'json', value_format 'json', on_error 'skip');
SELECT * FROM bad_value ORDER BY id;
ALTER FOREIGN TABLE bad_value OPTIONS (SET on_error 'stop');
SELECT * FROM bad_value ORDER BY id;

-- === B15: what is not the message's fault is not passed by ======================
CREATE FUNCTION bad_check(int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = 3 THEN RAISE EXCEPTION 'the database has a problem' USING ERRCODE = current_setting('bad.errcode'); END IF;
	RETURN $1 <> 2;
END $$;
CREATE DOMAIN bad_domain AS int CHECK (bad_check(VALUE));
CREATE FOREIGN TABLE bad_database (n bad_domain) SERVER bad
	OPTIONS (connector 'kafka', topic 'bad_many', value_format 'json', on_error 'skip');
SET bad.errcode = '53100';
SELECT * FROM bad_database;
SET bad.errcode = 'P0001';
SELECT * FROM bad_database;
-- it says where it happened, too
\set VERBOSITY terse
DO $$ DECLARE context text; BEGIN
	PERFORM * FROM bad_database;
EXCEPTION WHEN raise_exception THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RAISE NOTICE '%', substring(context FROM 'decoding[^\n]*');
END $$;
-- while this is the message's
SET bad.errcode = '22023';
SELECT * FROM bad_database;

RESET bad.errcode;
DROP SERVER bad CASCADE;
DROP DOMAIN bad_domain;
DROP FUNCTION bad_check(int);
\! for t in bad_one bad_many bad_keys bad_value; do test/kt delete $t; done
