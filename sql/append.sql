-- === append topics: every message a row ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER append_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

\! test/kt create regress_append -p 2 --fresh
\o |test/kt produce regress_append
\qecho '[p=0 ts=1000] {"id":1}|{"a":"x","b":"y","c":1}'
\qecho '[p=0 ts=2000] {"id":1}|{"a":"x2"}'
\qecho '[p=0 ts=3000 h=source:test h=source:again h=empty: h=none] {"id":1}|{"a":"x3","b":null,"c":2}'
\qecho '[p=1 ts=1500] {"id":2}|\\N'
\qecho '[p=1 ts=2500] \\N|{"a":"no key"}'
\o

CREATE FOREIGN TABLE log (
    id int OPTIONS (key 'true'), a text, gone int, b text, c int,
    part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'), ts timestamptz OPTIONS (metadata 'timestamp')
) SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append', key_format 'json', value_format 'json',
    scan_startup_mode 'earliest-offset');

-- an absent field and JSON null are NULL (A12); a null value is a row of NULLs (peer defect 1), and so is a null key
SELECT id, a, b, c, part, off, ts AT TIME ZONE 'UTC' AS ts FROM log ORDER BY part, off;

-- a dropped column is a hole, no shift (peer defect 9); an added one is read from then on
ALTER FOREIGN TABLE log DROP COLUMN gone;
ALTER FOREIGN TABLE log ADD COLUMN headers jsonb OPTIONS (metadata 'headers');
SELECT id, c, part, off, headers FROM log WHERE headers <> '[]' OR part = 1 ORDER BY part, off;

-- whole rows, system columns, no column at all
SELECT log FROM log WHERE part = 0 AND off = 0;
SELECT tableoid::regclass, xmin, cmax, a FROM log WHERE part = 0 AND off = 0;
SELECT count(*) FROM log;

-- === where a scan begins and ends ===
CREATE FUNCTION rows_with(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    EXECUTE 'CREATE FOREIGN TABLE piece (part int OPTIONS (metadata ''partition''), off bigint OPTIONS (metadata ''offset''), a text)
             SERVER append_kafka OPTIONS (connector ''kafka'', topic ''regress_append'', value_format ''json'', ' || options || ')';
    SELECT string_agg(part || ':' || off, ' ' ORDER BY part, off) INTO result FROM piece;
    DROP FOREIGN TABLE piece;
    RETURN result;
END $$;
SELECT rows_with($$scan_startup_mode 'earliest-offset'$$);
-- nothing is behind the end
SELECT rows_with($$scan_startup_mode 'latest-offset'$$);
SELECT rows_with($$scan_startup_mode 'timestamp', scan_startup_timestamp_millis '2000'$$);
-- partitions that are not named are read whole
SELECT rows_with($$scan_startup_mode 'specific-offsets', scan_startup_specific_offsets 'partition:0,offset:2'$$);
-- ends are exclusive
SELECT rows_with($$scan_startup_mode 'earliest-offset', scan_bounded_mode 'timestamp', scan_bounded_timestamp_millis '2000'$$);
SELECT rows_with($$scan_startup_mode 'earliest-offset', scan_bounded_mode 'specific-offsets', scan_bounded_specific_offsets 'partition:0,offset:1;partition:1,offset:100'$$);
DROP FUNCTION rows_with(text);

-- === transactions, aborts, expired records (H01, H02) ===
\! test/kt create regress_append_tx -p 3 --fresh
\o |test/kt produce regress_append_tx
\qecho '!begin'
\qecho '{"id":1}|{"a":"committed"}'
\qecho '{"id":2}|{"a":"committed"}'
\qecho '!commit'
\qecho '!begin'
\qecho '{"id":3}|{"a":"aborted"}'
\qecho '!abort'
\qecho '[p=1] {"id":4}|{"a":"expired"}'
\qecho '[p=1] {"id":5}|{"a":"expired"}'
\o
\! test/kt trim regress_append_tx 1 end
CREATE FOREIGN TABLE tx (id int OPTIONS (key 'true'), a text, part int OPTIONS (metadata 'partition'))
    SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append_tx', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
-- the scan ends although the last offsets are markers and aborted records; partition 1 is empty by expiry, 2 was never written
SELECT * FROM tx ORDER BY id;

-- an open transaction: the end is its first record, and nothing waits
\o |test/kt produce regress_append_tx
\qecho '!begin'
\qecho '{"id":6}|{"a":"open"}'
\qecho '!hold 5'
\o
SELECT * FROM tx ORDER BY id;

-- === bad messages (B04, B14) ===
\! test/kt create regress_append_bad -p 1 --fresh
\o |test/kt produce regress_append_bad
\qecho '{"id":1}|{"v":"a"}'
\qecho '{"id":2}|{"v":12zz,"w":1}'
\qecho '{"id":3}|{"v":"c"}'
\qecho '{"id":4}|{"v":007}'
\qecho '{"id":5}|{"v":"e",}'
\qecho '{"id":6}|{"v":"f"}'
\o
CREATE FOREIGN TABLE bad (id int OPTIONS (key 'true'), v text, off bigint OPTIONS (metadata 'offset'))
    SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append_bad', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT * FROM bad;
-- conditions keep a scan away from it
SELECT * FROM bad WHERE off NOT IN (1, 3, 4);
SELECT * FROM bad WHERE off < 1 OR off = 5;
-- only wanted columns are decoded: keys are good
SELECT id FROM bad;
-- 'skip' passes bad messages by, says so once, and which they are does not depend on the columns
ALTER FOREIGN TABLE bad OPTIONS (ADD on_error 'skip');
SELECT * FROM bad;
SELECT count(*) FROM bad;
-- the neighbours of the one bad message in a thousand come through (B14)
\! test/kt create regress_append_thousand -p 1 --fresh
\! for i in $(seq 0 999); do if [ $i = 500 ]; then echo "{\"n\":\"abc\"}"; else echo "{\"n\":$i}"; fi; done | test/kt produce regress_append_thousand -k ''
CREATE FOREIGN TABLE thousand (n int)
    SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append_thousand', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT sum(n) FROM thousand;
ALTER FOREIGN TABLE thousand OPTIONS (ADD on_error 'skip');
SELECT count(*), sum(n) FROM thousand;

-- on PostgreSQL before 17 such a scan keeps its query from using parallel workers, which would be an error
CREATE TABLE big AS SELECT g AS n FROM generate_series(1, 50000) g;
ANALYZE big;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET client_min_messages = error;
SELECT count(*) FROM bad JOIN big ON n = id;
SELECT count(*) FROM big JOIN bad ON n = id;
SELECT (SELECT count(*) FROM big), id FROM bad;
SELECT * FROM (SELECT count(*) FROM big) b, (SELECT count(*) FROM bad) a;
WITH b AS MATERIALIZED (SELECT count(*) FROM big) SELECT b.*, id FROM b, bad;
SELECT count(*) FROM big WHERE n > (SELECT count(*) FROM bad);
SELECT count(*) FROM (SELECT n FROM big WHERE n IN (SELECT id FROM bad)) x, (SELECT n FROM big OFFSET 0) y WHERE x.n = y.n;
SET client_min_messages = warning;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
DROP TABLE big;

-- === memory: many batches, rescans with a parameter (I07) ===
\! test/kt create regress_append_many -p 2 --fresh
\! seq 1 20000 | sed 's/.*/[p=0] k|{"n":&,"t":"text &"}/' | test/kt produce regress_append_many
\! seq 20001 40000 | sed 's/.*/[p=1] k|{"n":&,"t":"text &"}/' | test/kt produce regress_append_many
CREATE FOREIGN TABLE many (n int, t text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'))
    SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append_many', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT count(*), count(DISTINCT n), sum(n), count(*) FILTER (WHERE t <> 'text ' || n) AS wrong FROM many;
SELECT count(*) FILTER (WHERE t <> 'text ' || n) AS wrong, count(DISTINCT n) FROM generate_series(1, 3) r, LATERAL (SELECT * FROM many WHERE off % 3 = r % 3 OFFSET 0) m;
-- LIMIT ends early
SELECT n FROM many WHERE part = 0 LIMIT 2;

-- === joins, cursors, two scans at once, PL/pgSQL, read only ===
SELECT count(*) FROM many a JOIN many b USING (n) WHERE a.n <= 10;
BEGIN READ ONLY;
DECLARE first SCROLL CURSOR FOR SELECT n FROM many WHERE part = 0 ORDER BY off;
DECLARE second CURSOR FOR SELECT n FROM many WHERE part = 1;
FETCH 2 FROM first;
FETCH 1 FROM second;
FETCH 1 FROM first;
FETCH BACKWARD 1 FROM first;
-- an error in a subtransaction leaves the cursors alone
SAVEPOINT s;
SELECT sum(n / 0) FROM many;
ROLLBACK TO s;
FETCH 1 FROM second;
COMMIT;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT n FROM many WHERE part = 1 AND off < 3;
COMMIT;
FETCH ALL FROM held;
CLOSE held;
DO $$
DECLARE r record; total bigint := 0;
BEGIN
    FOR r IN SELECT n FROM many WHERE off < 10 LOOP
        total := total + r.n + (SELECT count(*) FROM many m WHERE m.part = 1 AND m.off = r.n);
    END LOOP;
    RAISE WARNING 'total %', total;
END $$;

-- === messages cannot be changed (writing more of them: write_append) ===
UPDATE many SET n = 1;
DELETE FROM many;
TRUNCATE many;

-- === a bad message counts when its row is reached ===
-- what LIMIT leaves unread is not looked at, wherever batches end
\! test/kt create regress_append_limit -p 1 --fresh
\! printf '%s\n' 'a|{"v":1}' 'a|{"v":2}' 'a|{"v":"x"}' 'a|{"v":4}' | test/kt produce regress_append_limit
CREATE FOREIGN TABLE few (v int) SERVER append_kafka OPTIONS (connector 'kafka', topic 'regress_append_limit', value_format 'json');
SELECT * FROM few LIMIT 2;
SELECT * FROM few;

DROP SERVER append_kafka CASCADE;
