-- === conditions on partition, offset and timestamp narrow what is read ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER pushdown_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
-- four partitions of 100 messages; the message at offset o of partition p has n = 100 p + o and timestamp 10000 + 10 o ms
\! test/kt create regress_pushdown -p 4 --fresh
\! for p in 0 1 2 3; do for o in $(seq 0 99); do echo "[p=$p ts=$((10000 + 10 * o))] k|{\"n\":$((100 * p + o)),\"t\":\"$o\"}"; done; done | test/kt produce regress_pushdown
CREATE FOREIGN TABLE log (n int, t text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'), ts timestamptz OPTIONS (metadata 'timestamp'))
    SERVER pushdown_kafka OPTIONS (connector 'kafka', topic 'regress_pushdown', value_format 'json', scan_startup_mode 'earliest-offset');

-- rows that come out, messages that were read, and whether a scan without pushed conditions finds the same rows
CREATE FUNCTION compare(condition text, OUT "rows" bigint, OUT messages bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE plan json; all_rows bigint; all_n bigint; rows_n bigint;
BEGIN
    EXECUTE 'SELECT count(*), sum(n) FROM log WHERE ' || condition INTO "rows", rows_n;
    EXECUTE 'SELECT count(*), sum(n) FROM (SELECT * FROM log OFFSET 0) log WHERE ' || condition INTO all_rows, all_n;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM log WHERE ' || condition INTO plan;
    messages := jsonb_path_query_first(plan::jsonb, '$.**."Messages"');
    same := ("rows", rows_n) IS NOT DISTINCT FROM (all_rows, all_n);
END $$;
SELECT c AS condition, r.* FROM unnest(ARRAY[
    -- one column
    'part = 2', 'part <> 2', 'part < 1', 'part <= 1', 'part > 2', 'part >= 2', '2 = part', '1 > part', 'part BETWEEN 1 AND 2',
    'off = 50', 'off < 10', 'off <= 10', 'off > 89', 'off >= 89', 'off BETWEEN 10 AND 19', '89 < off',
    'part IN (0, 3)', 'part = ANY (ARRAY[0, 3, NULL])', 'part NOT IN (0, 3)', 'off IN (1, 2, 98)', 'off = ANY (''{5,7}'')', 'off < ALL (ARRAY[20, 10])', 'off < ANY (ARRAY[20, 10])',
    -- in any mix
    'part = 1 AND off = 5', 'part = 1 OR off = 5', '(part = 1 AND off < 5) OR (part = 2 AND off > 95)', 'part = 1 AND (off < 5 OR off > 95)', 'NOT (part = 1 OR off > 10)',
    'part = 1 AND part = 2', 'off > 50 AND off < 40',
    -- an arm without such a condition keeps everything (peer defect 3)
    'part = 1 OR n = 399', 'part = 1 OR t = ''7''', '(part = 1 OR n = 399) AND off < 10',
    -- other types, and values outside of any topic
    'part = 2::bigint', 'off = 50::smallint', 'off > 9223372036854775807', 'off >= 9223372036854775807', 'off < -5', 'off > -5', 'part = -1', 'part = 7', 'part > 2147483647', 'off <= 9223372036854775807', 'off = 3.0', 'off < 2.5',
    -- NULL is never true
    'part = NULL', 'part = NULL OR off = 3', 'part = ANY (NULL::int[])', 'off > ALL (ARRAY[1, NULL])',
    -- not comparable before the scan: valid SQL all the same (peer defect 6)
    'off < length(t)', 'off > n', 'off + 0 = 5', 'part = off', 'part = (random() * 0)::int',
    -- timestamps: from below only
    'ts >= to_timestamp(10.9)', 'ts > to_timestamp(10.9)', 'ts = to_timestamp(10.5)', 'ts < to_timestamp(10.1)', 'ts BETWEEN to_timestamp(10.5) AND to_timestamp(10.505)',
    'ts >= ''infinity''', 'ts > ''-infinity''', 'ts >= ''1969-01-01''', 'ts >= to_timestamp(10.9) AND part = 3', 'ts >= to_timestamp(10.9) OR off < 3',
    'ts IN (to_timestamp(10.98), to_timestamp(10.99))', 'ts >= timestamp ''1970-01-01'' AND part = 0', 'ts > date ''1970-01-03''', 'ts IS NULL'
]) AS c, LATERAL compare(c) r;
-- more values than are worth keeping apart
SELECT * FROM compare('off IN (SELECT 1) OR off = ANY ((SELECT array_agg(g)::bigint[] FROM generate_series(90, 60000) g)::bigint[])');
SELECT * FROM compare('part = ANY ((SELECT array_agg(g)::int[] FROM generate_series(1, 3000) g)::int[]) AND off = ANY ((SELECT array_agg(g)::bigint[] FROM generate_series(90, 3000) g)::bigint[])');

-- a message is not decoded unless it is asked for, even between others
SELECT * FROM compare('part = 1 AND off IN (3, 4, 5, 97) OR part = 2 AND off >= 99');
-- timestamps that run backwards: no later message is lost
\! test/kt create regress_pushdown_time -p 1 --fresh
\! printf '%s\n' '[ts=5000] k|{"n":1}' '[ts=1000] k|{"n":2}' '[ts=9000] k|{"n":3}' '[ts=2000] k|{"n":4}' '[ts=-1] k|{"n":5}' | test/kt produce regress_pushdown_time
CREATE FOREIGN TABLE backwards (n int, ts timestamptz OPTIONS (metadata 'timestamp'))
    SERVER pushdown_kafka OPTIONS (connector 'kafka', topic 'regress_pushdown_time', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT n FROM backwards WHERE ts >= to_timestamp(5);
SELECT n FROM backwards WHERE ts >= to_timestamp(1.5) AND ts < to_timestamp(6);
SELECT n FROM backwards WHERE ts IS NULL;

-- === parameters ===
PREPARE by_offset(int, bigint) AS SELECT n FROM log WHERE part = $1 AND off >= $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_offset(1, 98);
EXECUTE by_offset(1, 98);
EXECUTE by_offset(3, 99);
EXECUTE by_offset(3, NULL);
RESET plan_cache_mode;
PREPARE by_list(int[]) AS SELECT count(*) FROM log WHERE part = ANY ($1);
SET plan_cache_mode = force_generic_plan;
EXECUTE by_list('{1,2}');
EXECUTE by_list('{}');
EXECUTE by_list(NULL);
RESET plan_cache_mode;
-- correlated subqueries are evaluated anew for every row (peer defect 4)
SELECT p, (SELECT count(*) FROM log WHERE part = p AND off < p * 10) FROM generate_series(0, 4) p;
SELECT p, n FROM generate_series(1, 2) p, LATERAL (SELECT n FROM log WHERE part = p AND off IN (p, p + 50)) l ORDER BY 1, 2;
EXPLAIN (COSTS OFF) SELECT p, (SELECT count(*) FROM log WHERE part = p) FROM generate_series(0, 3) p;
-- the value of a subquery
SELECT n FROM log WHERE part = 0 AND off >= (SELECT max(off) - 1 FROM log);
-- outer joins
SELECT p, n FROM generate_series(2, 5) p LEFT JOIN log ON part = p AND off = 7 ORDER BY 1;

-- === upsert topics: the row's metadata are its last message's, so nothing narrows ===
CREATE FOREIGN TABLE state (k text OPTIONS (key 'true'), n int, part int OPTIONS (metadata 'partition'))
    SERVER pushdown_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_pushdown', key_format 'raw', value_format 'json');
EXPLAIN (COSTS OFF) SELECT * FROM state WHERE part = 1;
SELECT * FROM state WHERE part = 1;
SELECT * FROM state WHERE part = 3;

DROP FUNCTION compare(text);
DEALLOCATE ALL;
DROP SERVER pushdown_kafka CASCADE;
