-- === writes that fail: an error of the right class, and nothing is committed ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER upsert_kafka_test FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create regress_write_errors -p 2 -c max.message.bytes=100000 --fresh
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text, at timestamptz)
    SERVER upsert_kafka_test OPTIONS (connector 'upsert-kafka', topic 'regress_write_errors', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE a (v text, part int OPTIONS (metadata 'partition'))
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_errors_append', value_format 'json');
CREATE TABLE local (v int);
\! test/kt create regress_write_errors_append -p 2 --fresh

-- === what cannot be encoded: column and key are named, at once ===
INSERT INTO t VALUES (7, 'x', 'infinity');
\echo :LAST_ERROR_SQLSTATE

-- === what Kafka refuses: at the commit, which then is none ===
-- too large for the topic, which is asked for that: what comes before it is not sent either
BEGIN;
INSERT INTO local VALUES (1);
INSERT INTO t VALUES (1, 'before');
INSERT INTO t VALUES (1, repeat('x', 200000));
COMMIT;
\echo :LAST_ERROR_SQLSTATE
-- too large for any
BEGIN;
INSERT INTO t VALUES (1, 'before');
INSERT INTO t VALUES (1, repeat('x', 2000000));
COMMIT;
\echo :LAST_ERROR_SQLSTATE
\! test/kt consume regress_write_errors
-- not where it is undone; many that are not too large are no batch that is; and what counts is the size after compression
BEGIN;
SAVEPOINT s;
INSERT INTO t VALUES (1, repeat('x', 200000));
ROLLBACK TO s;
INSERT INTO t SELECT i, repeat('x', 20000) FROM generate_series(1, 100) i;
COMMIT;
ALTER SERVER upsert_kafka_test OPTIONS (ADD "compression.type" 'lz4');
INSERT INTO t SELECT 100 + i, repeat('x', 200000) FROM generate_series(1, 3) i;
ALTER SERVER upsert_kafka_test OPTIONS (DROP "compression.type");
SELECT length(v), count(*) FROM t GROUP BY length(v) ORDER BY 1;
TRUNCATE t;
\set VERBOSITY terse
-- a server that allows larger messages reads them, too
\set VERBOSITY default
\! test/kt create regress_write_large -p 1 -c max.message.bytes=10000000 --fresh
ALTER SERVER upsert_kafka_test OPTIONS (ADD "message.max.bytes" '10000000');
CREATE FOREIGN TABLE large (v text) SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_large', value_format 'json', scan_startup_mode 'earliest-offset');
INSERT INTO large VALUES (repeat('x', 6000000));
SELECT length(v) FROM large;
DROP FOREIGN TABLE large;
ALTER SERVER upsert_kafka_test OPTIONS (DROP "message.max.bytes");
\set VERBOSITY terse
-- a partition that is not there: what comes before it is not sent either
BEGIN;
INSERT INTO local VALUES (2);
INSERT INTO a VALUES ('x', 0), ('y', 7);
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM a;
BEGIN;
SAVEPOINT s;
INSERT INTO a VALUES ('y', 7);
ROLLBACK TO s;
INSERT INTO a VALUES ('z', 1);
COMMIT;
SELECT * FROM a;
-- no such topic
CREATE FOREIGN TABLE missing (v text) SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_missing', value_format 'json');
\! test/kt delete regress_write_missing --if-exists
BEGIN;
INSERT INTO local VALUES (3);
INSERT INTO missing VALUES ('x');
COMMIT;
\echo :LAST_ERROR_SQLSTATE
-- no broker: within the time that a commit has
CREATE SERVER upsert_kafka_nowhere FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '1s');
CREATE FOREIGN TABLE nowhere (v text) SERVER upsert_kafka_nowhere OPTIONS (connector 'kafka', topic 'regress_write_nowhere', value_format 'json');
SET upsert_kafka.commit_timeout = '1s';
SELECT clock_timestamp() AS begin \gset
BEGIN;
INSERT INTO local VALUES (4);
INSERT INTO nowhere VALUES ('x');
\set VERBOSITY sqlstate
COMMIT;
SELECT clock_timestamp() - :'begin' < interval '9 s' AS in_time;
RESET upsert_kafka.commit_timeout;
\set VERBOSITY default
-- nothing of all that was committed
SELECT * FROM local;
SELECT id, v FROM t;
SELECT upsert_kafka.last_written();
-- and the session goes on
INSERT INTO t VALUES (1, 'good');
SELECT id, v FROM t;

-- a server that is gone by the time of the commit
BEGIN;
CREATE SERVER upsert_kafka_gone FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE gone (id int OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_gone OPTIONS (connector 'upsert-kafka', topic 'regress_write_errors', key_format 'json', value_format 'json');
INSERT INTO gone VALUES (2, 'sent all the same');
DROP SERVER upsert_kafka_gone CASCADE;
COMMIT;
SELECT id, v FROM t ORDER BY id;

-- === read-only transactions ===
BEGIN READ ONLY;
INSERT INTO t VALUES (3);
ROLLBACK;

-- === options of writing ===
ALTER FOREIGN TABLE t OPTIONS (ADD partitioner 'murmur');
ALTER FOREIGN TABLE t OPTIONS (ADD delivery_guarantee 'twice');
ALTER FOREIGN TABLE t OPTIONS (ADD sink_buffer_flush_max_rows '10');
ALTER FOREIGN TABLE t OPTIONS (ADD "sink.buffer-flush.interval" '1s');
ALTER FOREIGN TABLE t OPTIONS (ADD sink_buffer_flush_max_rows 'ten', ADD sink_buffer_flush_interval '1s');
ALTER FOREIGN TABLE t OPTIONS (ADD sink_buffer_flush_max_rows '10', ADD sink_buffer_flush_interval 'soon');
ALTER FOREIGN TABLE t OPTIONS (ADD partitioner 'fnv1a', ADD "sink.partitioner" 'random');
ALTER FOREIGN TABLE a OPTIONS (ADD sink_buffer_flush_max_rows '10', ADD sink_buffer_flush_interval '1s');
ALTER FOREIGN TABLE a OPTIONS (ADD truncatable 'true');
ALTER FOREIGN TABLE t OPTIONS (ADD updatable 'perhaps');

DROP FOREIGN TABLE t, a, missing, nowhere;
DROP TABLE local;
DROP SERVER upsert_kafka_test;
DROP SERVER upsert_kafka_nowhere;
