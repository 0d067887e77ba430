-- === upsert topics: the current state ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER upsert_kafka_test FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- the last message of a key counts, null deletes (A01, A02)
\! test/kt create regress_upsert -p 1 --fresh
\o |test/kt produce regress_upsert
\qecho '{"id":1}|{"v":"a"}'
\qecho '{"id":1}|\\N'
\qecho '{"id":1}|{"v":"b"}'
\qecho '{"id":2}|{"v":"x"}'
\qecho '{"id":2}|\\N'
\qecho '{"id":3}|{"v":"a"}'
\qecho '{"id":3}|{"v":"b"}'
\qecho '{"id":3}|{"v":"c"}'
\qecho '{"id":9}|\\N'
\o
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text, off bigint OPTIONS (metadata 'offset'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert', key_format 'json', value_format 'json');
SELECT * FROM t ORDER BY id;
-- conditions look at the current rows: key 1 has no row with 'a' any more
SELECT * FROM t WHERE v = 'a';
SELECT * FROM t WHERE off = 0;
SELECT id FROM t ORDER BY id;
SELECT count(*) FROM t;

-- === what is null and what is empty (A04) ===
\! test/kt create regress_upsert_raw -p 1 --fresh
\o |test/kt produce regress_upsert_raw
\qecho 'k1|z'
\qecho 'k2|z'
\qecho 'k1|'
\qecho 'k2|\\N'
\o
CREATE FOREIGN TABLE raw (k text OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_raw', key_format 'raw', value_format 'raw');
SELECT k, v = '' AS empty, v IS NULL AS "null" FROM raw;

-- === only key columns (A05) ===
\! test/kt create regress_upsert_keys -p 1 --fresh
\o |test/kt produce regress_upsert_keys
\qecho '{"scope":"s1","role":"r1"}|{"scope":"s1","role":"r1"}'
\qecho '{"scope":"s1","role":"r1"}|{"scope":"s1","role":"r1"}'
\qecho '{"scope":"s2","role":"r1"}|{}'
\o
CREATE FOREIGN TABLE keys (scope text OPTIONS (key 'true'), role text OPTIONS (key 'true'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_keys', key_format 'json', value_format 'json');
SELECT * FROM keys ORDER BY 1, 2;

-- === one key, many spellings (A06) ===
\! test/kt create regress_upsert_spelling -p 1 --fresh
\o |test/kt produce regress_upsert_spelling
\qecho '{"region":"eu","n":7}|{"v":"a"}'
\qecho '{ "n" : 7, "region" : "eu" }|{"v":"b"}'
\qecho '{"region":"eu","n":"7"}|{"v":"c"}'
\o
CREATE FOREIGN TABLE spelling (region text OPTIONS (key 'true'), n int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_spelling', key_format 'json', value_format 'json');
SELECT * FROM spelling;
\! printf '%s\n' '{"region":"e\u0075","n":7}|\N' | test/kt produce regress_upsert_spelling
SELECT * FROM spelling;
-- equal numerics are one key; the newest spelling shows
\! test/kt create regress_upsert_numeric -p 1 --fresh
\! printf '%s\n' '{"n":1.0}|{"v":"a"}' '{"n":1.00}|{"v":"b"}' '{"n":"NaN"}|{"v":"c"}' '{"n":"nan"}|{"v":"d"}' | test/kt produce regress_upsert_numeric
CREATE FOREIGN TABLE numbers (n numeric OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_numeric', key_format 'json', value_format 'json');
SELECT * FROM numbers ORDER BY n;
-- a key type without hash operators is sorted; one without any is refused by name
CREATE FOREIGN TABLE numbers_varbit (n bit varying OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_bits', key_format 'raw', value_format 'raw');
\! test/kt create regress_upsert_bits -p 1 --fresh
\! printf '%s\n' '101|a' '11|b' '101|c' '11|\N' | test/kt produce regress_upsert_bits
SELECT * FROM numbers_varbit;
CREATE FOREIGN TABLE numbers_point (n point OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_bits', key_format 'raw', value_format 'raw');
SELECT * FROM numbers_point;

-- === delete by uuid (A08), bare string keys (A09) ===
\! test/kt create regress_upsert_uuid -p 1 --fresh
\! printf '%s\n' '{"id":"550E8400-E29B-41D4-A716-446655440000"}|{"v":"a"}' '{"id":"550e8400e29b41d4a716446655440000"}|\N' | test/kt produce regress_upsert_uuid
CREATE FOREIGN TABLE uuids (id uuid OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_uuid', key_format 'json', value_format 'json');
SELECT * FROM uuids;
\! test/kt create regress_upsert_string -p 1 --fresh
\! printf '%s\n' 'order-17|{"v":"a"}' 'order-17|\N' '"order-18"|{"v":"b"}' | test/kt produce regress_upsert_string
CREATE FOREIGN TABLE strings (k text OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_string', key_format 'raw', value_format 'json');
SELECT k, length(k), v FROM strings;
ALTER FOREIGN TABLE strings OPTIONS (SET key_format 'json');
SELECT k, v FROM strings;

-- === a tombstone after a delete, and of a key that was never there (A11) ===
\! test/kt create regress_upsert_tombstones -p 1 --fresh
\! printf '%s\n' '{"id":3}|{"v":"a"}' '{"id":3}|\N' '{"id":3}|\N' '{"id":9}|\N' | test/kt produce regress_upsert_tombstones
CREATE FOREIGN TABLE tombstones (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_tombstones', key_format 'json', value_format 'json');
SELECT * FROM tombstones;

-- === an upsert is the whole row (A12) ===
\! test/kt create regress_upsert_whole -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"a":"x","b":"y","c":1}' '{"id":1}|{"a":"x2"}' '{"id":2}|{"a":"x","b":"y","c":1}' '{"id":2}|{"a":"x3","b":null,"c":2}' | test/kt produce regress_upsert_whole
CREATE FOREIGN TABLE whole (id int OPTIONS (key 'true'), a text, b text DEFAULT 'zzz', c int)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_whole', key_format 'json', value_format 'json');
SELECT * FROM whole ORDER BY id;

-- === null keys (X01), values that disagree with their key (X05) ===
\! test/kt create regress_upsert_odd -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"id":2,"v":"a"}' '\N|{"id":1,"v":"a"}' '{"id":1}|{"v":"b"}' | test/kt produce regress_upsert_odd
CREATE FOREIGN TABLE odd (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_odd', key_format 'json', value_format 'json');
SELECT * FROM odd;
ALTER FOREIGN TABLE odd OPTIONS (ADD on_error 'skip');
SELECT * FROM odd;

-- === values that the format may take for a delete, or for nothing (X02, X03) ===
\! test/kt create regress_upsert_markers -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"v":"a"}' '{"id":1}|' '{"id":2}|{"v":"b"}' '{"id":2}|null' '{"id":3}|{"v":"c"}' | test/kt produce regress_upsert_markers
CREATE FOREIGN TABLE markers (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_markers', key_format 'json', value_format 'json');
SELECT * FROM markers ORDER BY id;
ALTER FOREIGN TABLE markers OPTIONS (ADD value_json_empty_value 'delete', ADD value_json_null_value 'delete');
SELECT * FROM markers ORDER BY id;
SELECT count(*) FROM markers;
ALTER FOREIGN TABLE markers OPTIONS (SET value_json_empty_value 'ignore');
SELECT * FROM markers ORDER BY id;

-- === a bad value of an existing row (X12) ===
\! test/kt create regress_upsert_bad -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"n":1}' '{"id":1}|{"n":"abc"}' '{"id":2}|{"n":2}' '{"id":2}|{"n":"def"}' '{"id":2}|{"n":3}' | test/kt produce regress_upsert_bad
CREATE FOREIGN TABLE bad_rows (id int OPTIONS (key 'true'), n int)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_bad', key_format 'json', value_format 'json');
-- the bad value of key 2 was replaced and does not matter any more, that of key 1 does
SELECT * FROM bad_rows ORDER BY id;
-- skipped, it leaves the good one, whatever columns are read
ALTER FOREIGN TABLE bad_rows OPTIONS (ADD on_error 'skip');
SELECT * FROM bad_rows ORDER BY id;
SELECT id FROM bad_rows ORDER BY id;

-- === a key in several partitions: the last of each, then the greatest time (X04) ===
\! test/kt create regress_upsert_parts -p 4 --fresh
\o |test/kt produce regress_upsert_parts
\qecho '[p=0 ts=1000] {"id":1}|{"v":"a"}'
\qecho '[p=3 ts=2000] {"id":1}|{"v":"b"}'
\qecho '[p=0 ts=1500] {"id":1}|{"v":"c"}'
\qecho '[p=1 ts=9000] {"id":2}|{"v":"early, with a late clock"}'
\qecho '[p=1 ts=3000] {"id":2}|{"v":"last of its partition"}'
\qecho '[p=2 ts=4000] {"id":2}|{"v":"wins"}'
\qecho '[p=0 ts=5000] {"id":3}|{"v":"a"}'
\qecho '[p=2 ts=5000] {"id":3}|{"v":"same time, greater partition"}'
\qecho '[p=0 ts=7000] {"id":4}|{"v":"a"}'
\qecho '[p=1 ts=8000] {"id":4}|\\N'
\qecho '[p=0 ts=8000] {"id":5}|\\N'
\qecho '[p=1 ts=7000] {"id":5}|{"v":"older than its delete"}'
\o
CREATE FOREIGN TABLE parts (id int OPTIONS (key 'true'), v text, part int OPTIONS (metadata 'partition'), ts timestamptz OPTIONS (metadata 'timestamp'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_parts', key_format 'json', value_format 'json');
SELECT id, v, part FROM parts ORDER BY id;
-- a condition on the row's partition must not change which message wins
SELECT id, v, part FROM parts WHERE part = 0 ORDER BY id;
SELECT id, v, part FROM parts WHERE part = 1 ORDER BY id;

-- random messages, against the rule in SQL: no rows, whatever fits into memory
\! test/kt create regress_upsert_random -p 4 --fresh
\! awk 'BEGIN { srand(11); for (i = 1; i <= 20000; i++) { k = int(rand() * 3000); p = rand() < 0.7 ? k % 4 : int(rand() * 4); t = 100000 + i + int(rand() * 3000); v = rand() < 0.3 ? "\\N" : sprintf("{\"v\":\"value %d\"}", i); printf "[p=%d ts=%d] {\"id\":%d}|%s\n", p, t, k, v } }' | test/kt produce regress_upsert_random
CREATE FOREIGN TABLE random_state (id int OPTIONS (key 'true'), v text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_random', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE random_log (id int OPTIONS (key 'true'), v text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'), ts timestamptz OPTIONS (metadata 'timestamp'), raw bytea OPTIONS (metadata 'raw_value'))
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_upsert_random', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
CREATE TEMP TABLE expected AS
    SELECT id, v, part, off FROM (SELECT DISTINCT ON (id) * FROM (SELECT DISTINCT ON (id, part) * FROM random_log ORDER BY id, part, off DESC) last ORDER BY id, ts DESC, part DESC) winner WHERE raw IS NOT NULL;
SELECT count(*) > 1500 AS many, count(*) FILTER (WHERE part <> id % 4) > 100 AS foreign_partitions FROM expected;
(TABLE random_state EXCEPT TABLE expected) UNION ALL (TABLE expected EXCEPT TABLE random_state);
SET work_mem = '64kB';
(TABLE random_state EXCEPT TABLE expected) UNION ALL (TABLE expected EXCEPT TABLE random_state);
ALTER FOREIGN TABLE random_state OPTIONS (ADD on_error 'skip');
(TABLE random_state EXCEPT TABLE expected) UNION ALL (TABLE expected EXCEPT TABLE random_state);
RESET work_mem;

-- === more than fits into memory gives the same ===
\! test/kt create regress_upsert_many -p 3 --fresh
\! seq 1 30000 | sed 's/.*/[p=key h=n:&] {"id":&}|{"n":&,"t":"some text to fill the memory with, number &"}/' | test/kt produce regress_upsert_many
\! seq 3 3 30000 | sed 's/.*/[p=key h=n:again] {"id":&}|{"n":-&,"t":"again"}/' | test/kt produce regress_upsert_many
\! seq 2 2 30000 | sed 's/.*/[p=key] {"id":&}|\\N/' | test/kt produce regress_upsert_many
CREATE FOREIGN TABLE many (id int OPTIONS (key 'true'), n int, t text, headers jsonb OPTIONS (metadata 'headers'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_upsert_many', key_format 'json', value_format 'json');
CREATE FUNCTION spilled(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
    RETURN (jsonb_path_query_first(plan::jsonb, '$.**."Spilled"'))::int > 0;
END $$;
SET work_mem = '64MB';
SELECT count(*), sum(n), count(*) FILTER (WHERE n < 0) AS again FROM many;
SELECT spilled('SELECT n, t FROM many');
SET work_mem = '64kB';
SELECT count(*), sum(n), count(*) FILTER (WHERE n < 0) AS again FROM many;
SELECT spilled('SELECT n, t FROM many');
-- headers survive the way over the disk
SELECT count(*) FROM many WHERE headers->0->>'value' = CASE WHEN n < 0 THEN 'again' ELSE id::text END;
-- once and again: a rescan does not read the topic again
SELECT sum(s) FROM generate_series(1, 3) g, LATERAL (SELECT sum(n) + g * 0 AS s FROM many WHERE n <> g OFFSET 0) x;
RESET work_mem;
-- who asks for one key does not keep the others: nothing is spilled
SELECT id, n, headers->0->>'name' AS header FROM many WHERE id = 15001;
SET work_mem = '64kB';
SELECT spilled('SELECT n, t FROM many WHERE id = 15001'), spilled('SELECT n, t FROM many WHERE id + 0 = 15001') AS otherwise;
RESET work_mem;
SELECT id, n FROM many WHERE 9 = id;
SELECT id, n FROM many WHERE id = 2::bigint;
SELECT id, n FROM many WHERE id = 5::numeric;
SELECT id, n FROM many WHERE id = NULL::int;
SELECT id, n FROM many WHERE id = 1 AND id = 3;
PREPARE one_key(bigint) AS SELECT id, n FROM many WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE one_key(7);
EXECUTE one_key(7);
EXECUTE one_key(99);
EXECUTE one_key(NULL);
RESET plan_cache_mode;
DEALLOCATE one_key;
-- but a value that changes from row to row must not make every rescan read the topic again
EXPLAIN (COSTS OFF) SELECT g, (SELECT n FROM many WHERE id = g) FROM generate_series(1, 3) g;
SELECT g, (SELECT n FROM many WHERE id = g) FROM generate_series(1, 3) g;
SELECT * FROM spelling WHERE region = 'eu';
SELECT k, v FROM raw WHERE k = 'k1' COLLATE "POSIX";
SELECT count(*) FROM numbers WHERE n = 1;
SELECT count(*) FROM numbers_varbit WHERE n = '101' AND v = 'c';
-- two scans of one query, and a cursor in the middle of another
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM many ORDER BY id;
FETCH 2 FROM c;
SELECT count(*) FROM many a JOIN many b ON a.id = b.n AND a.id < 100;
FETCH 2 FROM c;
COMMIT;

DROP FUNCTION spilled(text);
DROP SERVER upsert_kafka_test CASCADE;
