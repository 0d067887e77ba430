-- === what the planner and EXPLAIN know of topics ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER plans_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create regress_plans -p 2 --fresh
\! for i in $(seq 1 2000); do echo "[p=$((i % 2))] {\"id\":$((i % 100))}|{\"n\":$i,\"v\":\"text $((i % 7))\"}"; done | test/kt produce regress_plans
CREATE FOREIGN TABLE log (id int OPTIONS (key 'true'), n int, v text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'))
    SERVER plans_kafka OPTIONS (connector 'kafka', topic 'regress_plans', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
CREATE FOREIGN TABLE state (id int OPTIONS (key 'true'), n int, v text)
    SERVER plans_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_plans', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE changes (id int OPTIONS (key 'true'), n int, v text, kind text OPTIONS (metadata 'row_kind'))
    SERVER plans_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_plans', key_format 'json', value_format 'json', changelog 'true');

-- EXPLAIN ANALYZE, what is the same on every PostgreSQL
CREATE FUNCTION explain_analyze(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
    END LOOP;
END $$;

-- === EXPLAIN: modes and conditions; a plain one does not contact Kafka ===
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE part = 1 AND n > 5;
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM state WHERE id = 3;
EXPLAIN (COSTS OFF) SELECT * FROM changes;
CREATE SERVER plans_nowhere FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '500');
CREATE FOREIGN TABLE nowhere (n int, part int OPTIONS (metadata 'partition'))
    SERVER plans_nowhere OPTIONS (connector 'kafka', topic 'nothing', value_format 'json', scan_startup_mode 'earliest-offset');
EXPLAIN (COSTS OFF, VERBOSE) SELECT n FROM nowhere WHERE part = 1;
SELECT explain_analyze('SELECT n FROM nowhere LIMIT 0');

-- === EXPLAIN ANALYZE: what was read ===
SELECT explain_analyze('SELECT * FROM log WHERE part = 1 AND off < 10');
SELECT explain_analyze('SELECT * FROM state');
SELECT explain_analyze('SELECT kind FROM changes LIMIT 10');
-- all formats take it, and nothing secret is shown
CREATE USER MAPPING FOR CURRENT_USER SERVER plans_nowhere OPTIONS (sasl_username 'alice', sasl_password 'wonderland');
CREATE FUNCTION explain(format text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan text;
BEGIN
    EXECUTE 'EXPLAIN (VERBOSE, FORMAT ' || format || ') ' || query INTO plan;
    RETURN plan;
END $$;
SELECT f AS format, p LIKE '%Scan_Mode%append%Kafka_Conditions%part%1%' AS complete, p LIKE '%wonderland%' OR p LIKE '%alice%' OR p LIKE '%127.0.0.1%' AS secrets
  FROM unnest(ARRAY['json', 'yaml', 'xml']) f, LATERAL explain(f, 'SELECT n FROM nowhere WHERE part = 1') p;
SELECT explain('json', 'SELECT n FROM nowhere WHERE part = 1')::json->0->'Plan'->>'Kafka Conditions' AS conditions;
DROP FUNCTION explain(text, text);

-- === estimates: a default before ANALYZE, the truth after ===
CREATE FUNCTION estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
SELECT estimate('SELECT * FROM log'), estimate('SELECT * FROM state');
ANALYZE log, state, changes;
SELECT relname, reltuples FROM pg_class WHERE relname IN ('log', 'state', 'changes') ORDER BY 1;
SELECT estimate('SELECT * FROM log') AS log, estimate('SELECT * FROM log WHERE part = 1') AS part, estimate('SELECT * FROM log WHERE id = 7') AS id, estimate('SELECT * FROM state') AS state;
SELECT tablename, attname, n_distinct FROM pg_stats WHERE tablename IN ('log', 'state') AND attname IN ('id', 'part', 'v') ORDER BY 1, 2;
-- an empty topic is analyzed as empty
\! test/kt create regress_plans_empty -p 1 --fresh
CREATE FOREIGN TABLE empty (n int) SERVER plans_kafka OPTIONS (connector 'kafka', topic 'regress_plans_empty', value_format 'json', scan_startup_mode 'earliest-offset');
ANALYZE empty;
SELECT reltuples FROM pg_class WHERE relname = 'empty';
SELECT * FROM empty;

-- === a topic is not read once per row where it need not be ===
CREATE TABLE few AS SELECT generate_series(1, 3) AS id;
ANALYZE few;
EXPLAIN (COSTS OFF) SELECT * FROM few JOIN state USING (id);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT * FROM few f JOIN state s ON f.id < s.id;
SELECT count(*) FROM few f JOIN state s ON f.id < s.id;
-- an upsert topic is read once even where the plan scans it again and again
SELECT explain_analyze('SELECT id, (SELECT count(*) FROM state s WHERE s.id = f.id) FROM few f');
SELECT explain_analyze('SELECT id, (SELECT count(*) FROM changes c WHERE c.id = f.id) FROM few f');
RESET enable_hashjoin;
RESET enable_mergejoin;

-- === plans follow DDL, and functions keep theirs ===
PREPARE p AS SELECT count(*), count(v) FROM state;
EXECUTE p;
ALTER FOREIGN TABLE state OPTIONS (SET topic 'regress_plans_empty');
EXECUTE p;
ALTER FOREIGN TABLE state OPTIONS (SET topic 'regress_plans');
ALTER FOREIGN TABLE state ALTER COLUMN v OPTIONS (ADD field 'w');
EXECUTE p;
-- views, row locks, inheritance
CREATE VIEW seen AS SELECT id, n FROM state;
SELECT count(*), sum(n) FROM seen;
SELECT id, n FROM state WHERE id = 5 FOR UPDATE;
CREATE TABLE parent (id int, n int, v text);
INSERT INTO parent VALUES (-1, 0, 'local');
ALTER FOREIGN TABLE state INHERIT parent;
SELECT tableoid::regclass, count(*) FROM parent GROUP BY 1 ORDER BY 1;

DROP FUNCTION estimate(text), explain_analyze(text);
DROP TABLE few;
DROP SERVER plans_nowhere CASCADE;
DROP SERVER plans_kafka CASCADE;
DROP TABLE parent;
