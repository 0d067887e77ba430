-- === an upsert topic as a changelog: +I -U +U -D ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER changelog_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

\! test/kt create regress_changelog -p 1 --fresh
\o |test/kt produce regress_changelog
\qecho '{"id":1}|{"v":"a","w":1}'
\qecho '{"id":1}|{"v":"a","w":1}'
\qecho '{"id":2}|{"v":"x"}'
\qecho '{"id":1}|{"v":"b","w":1}'
\qecho '{"id":1}|\\N'
\qecho '{"id":1}|\\N'
\qecho '{"id":9}|\\N'
\qecho '{"id":1}|{"v":"b","w":1}'
\qecho '{"id":2}|{"v":null}'
\qecho '{"id":2}|{}'
\o
CREATE FOREIGN TABLE changes (kind text OPTIONS (metadata 'row_kind'), id int OPTIONS (key 'true'), v text, w int, off bigint OPTIONS (metadata 'offset'))
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog', key_format 'json', value_format 'json', changelog 'true');
-- in the log's order; offsets 1, 5, 6 and 9 change nothing; -U and -D are the old row as its message wrote it (A11, K05)
SELECT * FROM changes;
-- which changes there are does not depend on the columns that are read
SELECT kind, id FROM changes;
SELECT count(*) FROM changes;
SELECT kind, count(*) FROM changes GROUP BY kind ORDER BY kind;
-- conditions look at changes
SELECT kind, id, v FROM changes WHERE kind = '-D';

EXPLAIN (COSTS OFF) SELECT kind, id, v FROM changes WHERE id = 2 AND v IS NOT NULL;
SELECT kind, id, v FROM changes WHERE id = 2;

-- === a key in several partitions ===
\! test/kt create regress_changelog_parts -p 3 --fresh
\o |test/kt produce regress_changelog_parts
\qecho '[p=0 ts=1000] {"id":1}|{"v":"a"}'
\qecho '[p=2 ts=2000] {"id":1}|{"v":"b"}'
\qecho '[p=0 ts=1500] {"id":1}|{"v":"c"}'
\qecho '[p=0 ts=3000] {"id":1}|\\N'
\qecho '[p=1 ts=9000] {"id":2}|{"v":"a"}'
\qecho '[p=1 ts=3000] {"id":2}|{"v":"b"}'
\qecho '[p=2 ts=4000] {"id":2}|{"v":"c"}'
\o
CREATE FOREIGN TABLE parts (kind text OPTIONS (metadata 'row_kind'), id int OPTIONS (key 'true'), v text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'))
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog_parts', key_format 'json', value_format 'json', changelog 'true');
-- by time, each partition's order kept.  Key 1: a, c, b, and the delete in partition 0 is the last word.  Key 2: partition 1 goes
-- back from a (9000) to b (3000), which is older than c (4000) of partition 2
SELECT kind, id, v, part, off FROM parts;
-- the changes end where the current state is
CREATE FOREIGN TABLE state (id int OPTIONS (key 'true'), v text)
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog_parts', key_format 'json', value_format 'json');
SELECT * FROM state;

-- === bad messages ===
\! test/kt create regress_changelog_bad -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"n":1}' '{"id":1}|{"n":"abc"}' '{"id":1}|{"n":2}' '{}|{"n":3}' | test/kt produce regress_changelog_bad
CREATE FOREIGN TABLE bad (kind text OPTIONS (metadata 'row_kind'), id int OPTIONS (key 'true'), n int)
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog_bad', key_format 'json', value_format 'json', changelog 'true');
SELECT * FROM bad;
ALTER FOREIGN TABLE bad OPTIONS (ADD on_error 'skip');
SELECT * FROM bad;

-- === any memory gives the same; applied in order the changes give the state ===
\! test/kt create regress_changelog_many -p 3 --fresh
\! awk 'BEGIN { srand(7); for (i = 1; i <= 20000; i++) { k = int(rand() * 500); p = rand() < 0.9 ? k % 3 : int(rand() * 3); t = 100000 + i + int(rand() * 50); v = rand() < 0.2 ? "\\N" : sprintf("{\"v\":\"some value %d\"}", int(rand() * 5)); printf "[p=%d ts=%d] {\"id\":%d}|%s\n", p, t, k, v } }' | test/kt produce regress_changelog_many
CREATE FOREIGN TABLE many (kind text OPTIONS (metadata 'row_kind'), id int OPTIONS (key 'true'), v text, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset'))
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog_many', key_format 'json', value_format 'json', changelog 'true');
CREATE FOREIGN TABLE many_state (id int OPTIONS (key 'true'), v text)
    SERVER changelog_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_changelog_many', key_format 'json', value_format 'json');
SET work_mem = '64MB';
CREATE TEMP TABLE large AS SELECT row_number() OVER () AS i, * FROM many;
SET work_mem = '64kB';
CREATE TEMP TABLE small AS SELECT row_number() OVER () AS i, * FROM many;
RESET work_mem;
SELECT (SELECT count(*) FROM large) > 10000 AS many, (SELECT count(*) FROM (TABLE large EXCEPT TABLE small) x) + (SELECT count(*) FROM (TABLE small EXCEPT TABLE large) x) AS different;
-- every old row is the row before: no contradictions
SELECT count(*) FROM (SELECT kind, v, lag(kind) OVER w AS before, lag(v) OVER w AS v_before FROM small WINDOW w AS (PARTITION BY id ORDER BY i)) x
 WHERE NOT CASE kind WHEN '+I' THEN before IS NULL OR before = '-D'
                     WHEN '+U' THEN before = '-U' AND v <> v_before
                     ELSE before IN ('+I', '+U') AND v = v_before END;
-- the last change of each key is the state: no rows
(SELECT id, v FROM (SELECT DISTINCT ON (id) * FROM small ORDER BY id, i DESC) x WHERE kind <> '-D' EXCEPT SELECT id, v FROM many_state)
UNION ALL
(SELECT id, v FROM many_state EXCEPT SELECT id, v FROM (SELECT DISTINCT ON (id) * FROM small ORDER BY id, i DESC) x WHERE kind <> '-D');

DROP SERVER changelog_kafka CASCADE;
