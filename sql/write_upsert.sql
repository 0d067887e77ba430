-- === writing upsert topics: rows become keys, values and tombstones ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER upsert_kafka_test FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

\! test/kt create regress_write_upsert -p 1 --fresh
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text, n numeric(10,2), off bigint OPTIONS (metadata 'offset'), ts timestamptz OPTIONS (metadata 'timestamp'))
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_upsert', key_format 'json', value_format 'json');

-- INSERT writes key and full value; what only the broker knows is NULL in RETURNING
INSERT INTO t (id, v, n) VALUES (1, 'a', 1.10), (2, 'b', 2), (3, 'c', NULL) RETURNING *;
-- after the commit the rows are the topic's
SELECT id, v, n, off, ts > now() - interval '1 minute' AS fresh FROM t ORDER BY id;

-- UPDATE writes the whole row, DELETE a tombstone: Kafka's null, not an empty value
UPDATE t SET v = 'b2' WHERE n = 2 RETURNING *;
DELETE FROM t WHERE v = 'a' RETURNING id, v, n, off;
-- UPDATE of a key: a tombstone for the old one, a value for the new one
UPDATE t SET id = 30 WHERE id = 3;
-- an INSERT is an upsert, and columns that are not named are NULL
INSERT INTO t (id, v) VALUES (2, 'b3');
SELECT id, v, n FROM t ORDER BY id;
\! test/kt consume regress_write_upsert

-- === rows that stand in another partition than the partitioner's: a new value comes after the tombstone for the old row ===
\! test/kt create regress_write_placed -p 2 --fresh
SELECT format('[p=%s] {"id":%s}|{"v":"%s"}', i % 2, i, i) FROM generate_series(1, 40) i \g (format=unaligned tuples_only=on) |test/kt produce regress_write_placed
CREATE FOREIGN TABLE placed (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_placed', key_format 'json', value_format 'json');
SELECT count(*), sum(id) FROM placed;
BEGIN;
DELETE FROM placed WHERE id <= 20;
INSERT INTO placed SELECT i, 'again' FROM generate_series(1, 20) i;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE v = 'again') AS again FROM placed;
-- in many batches, and one after another
CREATE FUNCTION exchange() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM placed WHERE id > 20;
	FOR i IN 21 .. 40 LOOP
		INSERT INTO placed VALUES (i, 'later');
	END LOOP;
END $$;
SELECT exchange();
SELECT count(*), count(*) FILTER (WHERE v = 'later') AS later FROM placed;
-- a changed row stays where it was, a new one of its key does not
\! test/kt create regress_write_placed -p 2 --fresh
SELECT format('[p=%s] {"id":%s}|{"v":"%s"}', i % 2, i, i) FROM generate_series(1, 40) i \g (format=unaligned tuples_only=on) |test/kt produce regress_write_placed
BEGIN;
UPDATE placed SET v = 'changed';
INSERT INTO placed SELECT i, 'new' FROM generate_series(1, 40) i;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE v = 'new') AS new FROM placed;
-- exchanged keys
\! test/kt create regress_write_placed -p 2 --fresh
SELECT format('[p=%s] {"id":%s}|{"v":"%s"}', i % 2, i, i) FROM generate_series(1, 40) i \g (format=unaligned tuples_only=on) |test/kt produce regress_write_placed
UPDATE placed SET id = 41 - id;
SELECT count(*), bool_and(id + v::int = 41) AS exchanged FROM placed;
DROP FUNCTION exchange;
DROP FOREIGN TABLE placed;
\! test/kt delete regress_write_placed

-- === any WHERE, joins, sub-selects ===
INSERT INTO t (id, v) SELECT i, 'v' || i FROM generate_series(100, 105) i;
UPDATE t SET v = v || '!' FROM (VALUES (100), (101)) s (i) WHERE t.id = s.i AND v LIKE 'v%' RETURNING id, v;
DELETE FROM t WHERE id IN (SELECT id + 2 FROM t WHERE v LIKE '%!');
-- a join that brings a row twice changes it once
UPDATE t SET v = s.x FROM (VALUES (104, 'first'), (104, 'second')) s (i, x) WHERE t.id = s.i;
-- also where the scan of the target runs again and again
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
BEGIN;
EXPLAIN (COSTS OFF) UPDATE t SET v = s.id || ' was first' FROM t s WHERE s.id IN (2, 30) AND t.id > s.id;
UPDATE t SET v = s.id || ' was first' FROM t s WHERE s.id IN (2, 30) AND t.id > s.id;
SELECT v LIKE '%was first' AS changed, count(*) FROM t GROUP BY 1 ORDER BY 1;
ROLLBACK;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
WITH gone AS (DELETE FROM t WHERE id = 105 RETURNING *) INSERT INTO t (id, v) SELECT 205, v FROM gone RETURNING id, v;
-- a statement does not see what it writes itself
INSERT INTO t (id, v) SELECT id + 1000, v FROM t;
SELECT id, v FROM t ORDER BY id;

-- === rows can exchange their keys, or each take the next one's: no tombstone comes behind a new row ===
BEGIN;
INSERT INTO t (id, v) SELECT i, 'row ' || i FROM generate_series(3001, 3005) i;
UPDATE t SET id = id + 1 WHERE id > 3000;
UPDATE t SET id = id - 1 WHERE id > 3000;
UPDATE t SET id = CASE id WHEN 3001 THEN 3002 WHEN 3002 THEN 3001 ELSE id + 1 END WHERE id > 3000;
SELECT id, v FROM t WHERE id > 3000 ORDER BY id;
ROLLBACK;
-- also where the key's type has no hash function, and where other producers spell it in other ways
\! test/kt create regress_write_swap -p 2 --fresh
\o |test/kt produce regress_write_swap
\qecho '[p=0] { "b":"01" ,"s":"x"}|{"v":"zero-one"}'
\qecho '[p=1] {"s":"x","b":"10"}|{"v":"one-zero"}'
\o
CREATE FOREIGN TABLE swap (b bit(2) OPTIONS (key 'true'), s text OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_swap', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');
UPDATE swap SET b = ~b;
SELECT * FROM swap ORDER BY b;
DROP FOREIGN TABLE swap;

-- === ON CONFLICT is refused: INSERT is an upsert already ===
INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET v = 'x';
INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING;

-- === the key must be there, and metadata is the topic's to give ===
INSERT INTO t (v) VALUES ('no key');
UPDATE t SET id = NULL WHERE id = 30;
INSERT INTO t (id, off) VALUES (1, 17);
UPDATE t SET off = 17 WHERE id = 30;

-- === TRUNCATE: a tombstone for every key ===
TRUNCATE t;
SELECT * FROM t;
\! test/kt consume regress_write_upsert | tail -12 | awk '{ print $3, $4 }' | sort
ALTER FOREIGN TABLE t OPTIONS (ADD truncatable 'false');
TRUNCATE t;
ALTER FOREIGN TABLE t OPTIONS (DROP truncatable, ADD updatable 'false');
INSERT INTO t (id) VALUES (1);
ALTER FOREIGN TABLE t OPTIONS (DROP updatable);

-- === the tombstone meets the message it deletes: raw key bytes and partition are reused ===
\! test/kt create regress_write_spelling -p 4 --fresh
\o |test/kt produce regress_write_spelling
\qecho '[p=3] { "n" : 7,  "region":"eu" }|{"v":"a"}'
\qecho '[p=2] {"region":"us","n":"8"}|{"v":"b"}'
\o
CREATE FOREIGN TABLE spelling (region text OPTIONS (key 'true'), n int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_spelling', key_format 'json', value_format 'json');
UPDATE spelling SET v = 'a2' WHERE region = 'eu';
DELETE FROM spelling WHERE region = 'us';
-- the key keeps its spelling and its partition while its value is the same
UPDATE spelling SET n = 7, v = 'a3' WHERE region = 'eu';
\! test/kt consume regress_write_spelling | sort

-- === partitions are those of the Java client ===
INSERT INTO spelling VALUES ('eu', 1, 'x'), ('eu', 2, 'x'), ('us', 3, 'x'), ('us', 4, 'x');
\o |test/kt produce regress_write_spelling -p key
\qecho '{"region":"eu","n":1}|java'
\qecho '{"region":"eu","n":2}|java'
\qecho '{"region":"us","n":3}|java'
\qecho '{"region":"us","n":4}|java'
\o
\! test/kt consume regress_write_spelling | grep -e x -e java | awk '{ print $1, $3, $4 }' | sort -k2,2 -k3,3

-- === what the value holds, under which names ===
\! test/kt create regress_write_names -p 1 --fresh
CREATE FOREIGN TABLE names (k_id int OPTIONS (key 'true'), "V" text OPTIONS (field 'v w'), k_x text OPTIONS (key 'true'), gone int, b bytea)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_names', key_format 'json', value_format 'json',
        key_fields_prefix 'k_', value_fields_include 'EXCEPT_KEY');
ALTER FOREIGN TABLE names DROP COLUMN gone;
INSERT INTO names VALUES (1, 'a "quoted" ü', 'x', '\x00ff');
UPDATE names SET b = NULL;
\! test/kt consume regress_write_names
SELECT * FROM names;

-- === defaults, generated columns, triggers, views ===
\! test/kt create regress_write_gen -p 1 --fresh
CREATE FOREIGN TABLE gen (id int OPTIONS (key 'true') DEFAULT 5, v text DEFAULT 'dflt', twice int GENERATED ALWAYS AS (id * 2) STORED)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_gen', key_format 'json', value_format 'json');
INSERT INTO gen DEFAULT VALUES;
UPDATE gen SET id = 6 RETURNING *;
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN RAISE WARNING 'delete %', OLD; RETURN OLD; END IF;
    NEW.v := upper(NEW.v);
    IF NEW.v = 'MOVE' THEN NEW.id := NEW.id + 100; END IF;
    IF NEW.v = 'SKIP' THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER shout BEFORE INSERT OR UPDATE OR DELETE ON gen FOR EACH ROW EXECUTE FUNCTION shout();
INSERT INTO gen (id, v) VALUES (7, 'loud'), (8, 'skip') RETURNING *;
-- a trigger that changes the key: the old one gets its tombstone
UPDATE gen SET v = 'move' WHERE id = 7 RETURNING id, v;
DELETE FROM gen WHERE id = 107;
CREATE FUNCTION report() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% % -> %', TG_OP, OLD, NEW; RETURN NULL; END $$;
CREATE TRIGGER report AFTER INSERT OR UPDATE OR DELETE ON gen FOR EACH ROW EXECUTE FUNCTION report();
CREATE VIEW gen_view AS SELECT * FROM gen WHERE id < 50 WITH CHECK OPTION;
INSERT INTO gen_view (id, v) VALUES (9, 'in');
INSERT INTO gen_view (id, v) VALUES (99, 'out');
UPDATE gen_view SET v = 'changed' WHERE id = 9;
\! test/kt consume regress_write_gen
SELECT * FROM gen ORDER BY id;

-- a column that is computed when it is read, which PostgreSQL 18 has, is no part of the message
\! test/kt create regress_write_virtual -p 1 --fresh
SELECT current_setting('server_version_num')::int >= 180000 AS has_virtual \gset
\if :has_virtual
CREATE FOREIGN TABLE virtual (id int OPTIONS (key 'true'), twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_virtual', key_format 'json', value_format 'json', value_json_fail_on_missing_field 'true');
\else
CREATE FOREIGN TABLE virtual (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_virtual', key_format 'json', value_format 'json', value_json_fail_on_missing_field 'true');
\endif
INSERT INTO virtual (id, v) VALUES (1, 'a'), (2, 'b');
UPDATE virtual SET v = v || '!' WHERE id = 2 RETURNING id, v;
\if :has_virtual
SELECT count(*) = 2 AND bool_and(twice = id * 2) AS good FROM virtual \gset
\else
SELECT count(*) = 2 AS good FROM virtual \gset
\endif
\echo :good
\! test/kt consume regress_write_virtual
DROP FOREIGN TABLE virtual;

-- === COPY, and partitions of a partitioned table ===
\! test/kt create regress_write_part -p 1 --fresh
CREATE TABLE parent (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parent_local PARTITION OF parent FOR VALUES FROM (0) TO (10);
CREATE FOREIGN TABLE parent_topic PARTITION OF parent FOR VALUES FROM (10) TO (20)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_part', key_format 'json', key_fields 'id', value_format 'json');
INSERT INTO parent VALUES (1, 'local'), (11, 'topic') RETURNING tableoid::regclass, *;
COPY parent FROM stdin;
2	local
12	copied
13	\N
\.
COPY parent_topic (id) FROM stdin;
14
\.
-- a row moves into the topic by an UPDATE that changes the topic's rows, too
UPDATE parent SET id = id + 9, v = 'moved' WHERE id IN (2) OR v = 'none';
UPDATE parent SET v = v || '!' WHERE id IN (1, 12);
DELETE FROM parent WHERE id = 13;
DELETE FROM parent WHERE id = 14;
INSERT INTO parent VALUES (3, 'goes'), (15, 'goes');
WITH gone AS (DELETE FROM parent WHERE v = 'goes' RETURNING tableoid::regclass, *) SELECT * FROM gone ORDER BY id;
SELECT tableoid::regclass, * FROM parent ORDER BY id;
\! test/kt consume regress_write_part
-- a row stays within the bounds of its partition
UPDATE parent SET id = 5 WHERE id = 11;
\echo :LAST_ERROR_SQLSTATE
UPDATE parent SET id = 13 WHERE id = 11 RETURNING tableoid::regclass, *;
INSERT INTO parent_topic VALUES (99, 'beyond');
CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := 5; RETURN NEW; END $$;
CREATE TRIGGER away BEFORE INSERT ON parent_topic FOR EACH ROW EXECUTE FUNCTION away();
INSERT INTO parent VALUES (15, 'sent away');
SELECT tableoid::regclass, * FROM parent ORDER BY id;

-- === raw: bytes are what they are; what would delete is refused ===
\! test/kt create regress_write_raw -p 1 --fresh
CREATE FOREIGN TABLE raw (k text OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_raw', key_format 'raw', value_format 'raw');
INSERT INTO raw VALUES ('k', ''), ('', 'empty key');
INSERT INTO raw VALUES ('k', NULL);
\! test/kt consume regress_write_raw
SELECT * FROM raw ORDER BY k;

-- === reduction: only the last change of a key within the window is sent ===
\! test/kt create regress_write_window -p 1 --fresh
CREATE FOREIGN TABLE win (id int OPTIONS (key 'true'), v int)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_window', key_format 'json', value_format 'json',
        "sink.buffer-flush.max-rows" '4', "sink.buffer-flush.interval" '1 min');
-- two windows of four rows: 1 and 2, then 1 and 3
INSERT INTO win VALUES (1, 1), (2, 1), (1, 2), (1, 3), (3, 1), (3, 2), (1, 4), (3, 3);
BEGIN;
INSERT INTO win VALUES (4, 1);
UPDATE win SET v = 2 WHERE id = 4;
DELETE FROM win WHERE id = 4;
COMMIT;
\! test/kt consume regress_write_window
SELECT * FROM win ORDER BY id;

-- === a changelog can be written, its rows cannot be changed ===
CREATE FOREIGN TABLE log (kind text OPTIONS (metadata 'row_kind'), id int OPTIONS (key 'true'), v int)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_window', key_format 'json', value_format 'json', changelog 'true');
DELETE FROM log;
TRUNCATE log;
BEGIN;
INSERT INTO log (id, v) VALUES (1, 5);
-- own writes come last
SELECT * FROM log WHERE id = 1;
COMMIT;

-- === what can be done with a table ===
SELECT table_name, is_insertable_into FROM information_schema.tables WHERE table_name IN ('t', 'log') ORDER BY 1;
SELECT c.relname, pg_relation_is_updatable(c.oid, false) FROM pg_class c WHERE relname IN ('t', 'log', 'gen_view') ORDER BY 1;
EXPLAIN (COSTS OFF) UPDATE t SET v = 'x' WHERE id = 3;
EXPLAIN (COSTS OFF) INSERT INTO t (id) VALUES (1);

DROP TABLE parent;
DROP VIEW gen_view;
DROP FOREIGN TABLE t, spelling, names, gen, raw, win, log;
DROP FUNCTION shout(), report(), away();
DROP SERVER upsert_kafka_test;
