-- === writing in transactions: nothing is sent before the commit, and nothing of what is undone ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER upsert_kafka_test FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create regress_write_tx -p 1 --fresh
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_tx', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');
CREATE FOREIGN TABLE messages (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_tx', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');

-- nothing was written yet
SELECT upsert_kafka.last_written() IS NULL AS nothing;

-- === own writes are visible before they are sent ===
BEGIN;
INSERT INTO t VALUES (1, 'a');
UPDATE t SET v = v || 'b' WHERE id = 1;
UPDATE t SET v = v || 'c' WHERE id = 1;
INSERT INTO t VALUES (2, 'x');
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (2, 'y');
SELECT * FROM t ORDER BY id;
-- the topic itself has nothing, and the append table on it shows what will be sent
\! test/kt consume regress_write_tx
SELECT * FROM messages;
COMMIT;
\! test/kt consume regress_write_tx

-- === ROLLBACK, savepoints, exceptions ===
BEGIN;
INSERT INTO t VALUES (3, 'undone');
ROLLBACK;
BEGIN;
INSERT INTO t VALUES (4, 'kept');
SAVEPOINT a;
INSERT INTO t VALUES (5, 'undone');
SAVEPOINT b;
DELETE FROM t;
SELECT count(*) FROM t;
RELEASE b;
ROLLBACK TO a;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (5, 'kept');
SAVEPOINT c;
INSERT INTO t VALUES (6, 'released');
RELEASE c;
SAVEPOINT d;
SAVEPOINT e;
INSERT INTO t VALUES (6, 'undone');
ROLLBACK TO d;
COMMIT;
DO $$
BEGIN
    FOR i IN 10 .. 15 LOOP
        BEGIN
            INSERT INTO t VALUES (i, 'block');
            IF i % 2 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN
            NULL;
        END;
    END LOOP;
END $$;
-- an error undoes its statement's rows with the transaction
INSERT INTO t SELECT 20 + i, (1 / (3 - i))::text FROM generate_series(0, 5) i;
\! test/kt consume regress_write_tx | tail -n +7
SELECT id, v FROM t ORDER BY id;

-- === more than work_mem: on disk, and cut by ROLLBACK TO all the same ===
SET work_mem = '64kB';
BEGIN;
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1000, 4999) i;
SAVEPOINT big;
INSERT INTO t SELECT i, repeat('y', 100) FROM generate_series(3000, 6999) i;
UPDATE t SET v = 'z' WHERE id BETWEEN 2000 AND 3999;
SELECT count(*), count(*) FILTER (WHERE v = 'z') AS z, count(*) FILTER (WHERE v LIKE 'y%') AS y FROM t WHERE id >= 1000;
ROLLBACK TO big;
-- 100 kB in one value
INSERT INTO t SELECT i, repeat('w', 100000) FROM generate_series(4990, 4999) i;
DELETE FROM t WHERE id BETWEEN 1000 AND 1999;
SELECT count(*), count(*) FILTER (WHERE length(v) = 100000) AS w, count(*) FILTER (WHERE v LIKE 'y%') AS y FROM t WHERE id >= 1000;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE length(v) = 100000) AS w, count(*) FILTER (WHERE v LIKE 'y%') AS y FROM t WHERE id >= 1000;
SELECT count(*), count(v) FROM messages WHERE id >= 1000;
DELETE FROM t WHERE id >= 1000;
RESET work_mem;

-- === many messages are handed to the library by partition, and stay in their order in each ===
\! test/kt create regress_write_many -p 4 --fresh
CREATE FOREIGN TABLE many (k int OPTIONS (key 'true'), n int, tag text, ts timestamptz OPTIONS (metadata 'timestamp'), part int OPTIONS (metadata 'partition'), place bigint OPTIONS (metadata 'offset'))
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_many', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
SET work_mem = '64kB';
BEGIN;
INSERT INTO many (k, n) SELECT i % 1000, i FROM generate_series(1, 20000) i;
-- some with a time of their own, partitions that are named, another topic in between, one of 900 kB
INSERT INTO many (k, n, ts) SELECT i % 1000, i, CASE WHEN i % 3 = 0 THEN timestamptz '2026-01-01' END FROM generate_series(20001, 22000) i;
INSERT INTO t VALUES (5000, 'in between');
INSERT INTO many (k, n, part) SELECT -i, i, i % 4 FROM generate_series(22001, 24000) i;
INSERT INTO many (k, n, tag) VALUES (7, 24001, repeat('x', 900000));
INSERT INTO many (k, n) SELECT i % 1000, i FROM generate_series(24002, 30000) i;
COMMIT;
SELECT count(*), count(DISTINCT n) AS n, count(*) FILTER (WHERE n < before) AS out_of_order, max(length(tag)), count(*) FILTER (WHERE ts = '2026-01-01') AS with_time,
    count(DISTINCT (k, part)) FILTER (WHERE k >= 0) AS keys, count(*) FILTER (WHERE k < 0 AND part = n % 4) AS named
FROM (SELECT *, lag(n) OVER (PARTITION BY part ORDER BY place) AS before FROM many) m;
SELECT * FROM t WHERE id = 5000;
DELETE FROM t WHERE id = 5000;
RESET work_mem;
DROP FOREIGN TABLE many;

-- === statements inside of statements, cursors, deferred triggers ===
-- a scan keeps what it saw when it began; a function's own statements see what was written before them
CREATE FUNCTION put(int, text) RETURNS bigint LANGUAGE sql VOLATILE AS $$ INSERT INTO t VALUES ($1, $2); SELECT count(*) FROM t; $$;
SELECT id, put(id + 100, 'by function') FROM t WHERE id < 10 ORDER BY id;
BEGIN;
INSERT INTO t VALUES (7, 'before');
DECLARE c CURSOR WITH HOLD FOR SELECT id, v FROM t WHERE id < 10 ORDER BY id;
DECLARE d CURSOR FOR SELECT id, v FROM t WHERE id < 10 ORDER BY id;
INSERT INTO t VALUES (8, 'after');
FETCH ALL FROM d;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
-- what a deferred trigger writes is sent, too
CREATE TABLE source (id int);
CREATE FUNCTION forward() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (NEW.id, 'deferred'); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER forward AFTER INSERT ON source DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION forward();
BEGIN;
INSERT INTO source VALUES (50);
SELECT count(*) FROM t WHERE id = 50;
COMMIT;
SELECT * FROM t WHERE id = 50;
-- procedures commit as they go
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 60 .. 63 LOOP
        INSERT INTO t VALUES (i, 'step');
        IF i < 63 THEN COMMIT; ELSE ROLLBACK; END IF;
    END LOOP;
END $$;
CALL in_steps();
SELECT * FROM t WHERE id BETWEEN 60 AND 69 ORDER BY id;

-- === PREPARE TRANSACTION is refused ===
BEGIN;
INSERT INTO t VALUES (70, 'prepared');
PREPARE TRANSACTION 'regress_write_tx';
SELECT count(*) FROM t WHERE id = 70;

-- === a bookmark of the last committed messages ===
\! test/kt create regress_write_bookmark -p 2 --fresh
CREATE FOREIGN TABLE b (part int OPTIONS (metadata 'partition'), v int)
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_bookmark', value_format 'json');
INSERT INTO b VALUES (0, 1), (0, 2), (1, 3);
SELECT upsert_kafka.last_written();
BEGIN;
INSERT INTO b VALUES (0, 4);
SELECT upsert_kafka.last_written() AS not_yet;
ROLLBACK;
SELECT upsert_kafka.last_written() AS still;
INSERT INTO b VALUES (0, 4);
SELECT upsert_kafka.last_written();

-- with it any session waits until a maintained table has the rows
SELECT upsert_kafka.materialize('t', 'kept');
INSERT INTO t VALUES (80, 'for the bookmark');
SELECT upsert_kafka.last_written() AS bookmark \gset
\c -
SELECT upsert_kafka.last_written() IS NULL AS another_session;
SELECT upsert_kafka.wait_for('kept', :'bookmark');
SELECT * FROM kept WHERE id = 80;
-- other topics are not waited for; what is to come is
SELECT upsert_kafka.wait_for('kept', 'other:0:5');
\set VERBOSITY terse
SELECT upsert_kafka.wait_for('kept', 'regress_write_tx:0:1000000', timeout => '100 ms');
\set VERBOSITY default
-- a literal that is a time is the other function's
SELECT upsert_kafka.wait_for('kept', '10 s'), upsert_kafka.wait_for('kept', '00:00:10'), upsert_kafka.wait_for('kept', NULL);
SELECT upsert_kafka.wait_for('kept', 'nonsense');
SELECT upsert_kafka.wait_for('kept', 'regress_write_tx:0');
SELECT upsert_kafka.wait_for('kept', 'regress_write_tx:999999999:1');
SELECT upsert_kafka.wait_for('kept', '');
SELECT upsert_kafka.drop('kept');

-- === read your own writes: an open transaction of somebody else holds them back ===
SET client_min_messages = warning;
ALTER SERVER upsert_kafka_test OPTIONS (ADD timeout '4s');
\! test/kt create regress_write_held -p 1 --fresh
CREATE FOREIGN TABLE held (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_held', key_format 'json', value_format 'json');
\o |test/kt produce regress_write_held
\qecho '!begin'
\qecho '{"id":1}|{"v":"open"}'
\qecho '!hold 120 test/.release'
\o
INSERT INTO held VALUES (2, 'mine');
SELECT * FROM held;
-- a longer timeout outlasts it
ALTER SERVER upsert_kafka_test OPTIONS (SET timeout '60s');
\! (sleep 1; touch test/.release) &
SELECT * FROM held;
-- a topic that was made anew owes nothing
INSERT INTO held VALUES (2, 'x'), (3, 'y');
\! test/kt create regress_write_held -p 1 --fresh
SELECT * FROM held;

DROP FOREIGN TABLE t, messages, b, held;
DROP TABLE source;
DROP FUNCTION put(int, text), forward();
DROP PROCEDURE in_steps();
DROP SERVER upsert_kafka_test;
