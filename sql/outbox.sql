-- === exactly once: messages wait in the outbox of their transaction, and are sent after its commit ===
-- A worker sends them where there is one; flush_outbox() does it here or waits for the worker.
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER outbox_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker', "message.max.bytes" '5000');
\! test/kt create regress_outbox -p 1 --fresh
\! test/kt create regress_outbox_log -p 2 --fresh
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text) SERVER outbox_kafka
    OPTIONS (connector 'upsert-kafka', topic 'regress_outbox', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY', delivery_guarantee 'exactly-once');
CREATE FOREIGN TABLE log (n int, ts timestamptz OPTIONS (metadata 'timestamp'), part int OPTIONS (metadata 'partition'), h jsonb OPTIONS (metadata 'headers'))
    SERVER outbox_kafka OPTIONS (connector 'kafka', topic 'regress_outbox_log', value_format 'json', scan_startup_mode 'earliest-offset', delivery_guarantee 'exactly-once');

-- nothing has been written yet
SELECT upsert_kafka.flush_outbox('outbox_kafka');
SELECT count(*) FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';

-- === what is committed is sent, in order; what is undone is not ===
BEGIN;
INSERT INTO t VALUES (1, 'a'), (2, 'b');
SAVEPOINT s;
INSERT INTO t VALUES (3, 'undone');
ROLLBACK TO s;
UPDATE t SET v = 'a2' WHERE id = 1;
DELETE FROM t WHERE id = 2;
-- own writes are visible in their transaction, as with any guarantee
SELECT * FROM t;
COMMIT;
BEGIN;
INSERT INTO t VALUES (4, 'undone');
ROLLBACK;
-- waits for the worker, or sends; a SELECT right after the commit might not see it yet
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
SELECT * FROM t;
\! test/kt consume regress_outbox | cut -d' ' -f3-
SELECT server, user_mapping, state, waiting_rows, waiting_bytes, oldest, last_written = last_sent AS all_sent, last_error FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';

-- === timestamp, partition and headers travel along ===
INSERT INTO log VALUES (1, '2026-01-01 00:00:00.123+00', 1, '[{"name": "a", "value": "x"}, {"name": "b", "value": null}]');
INSERT INTO log (n, part) VALUES (2, 1);
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
SET timezone = 'UTC';
SELECT n, CASE WHEN n = 1 THEN ts END AS ts, part, h, now() - ts < '1 min' AS "now" FROM log ORDER BY n;

-- === many messages are handed to the library together, by topic and partition, each in its order ===
ALTER FOREIGN TABLE log ADD COLUMN off bigint OPTIONS (metadata 'offset');
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        INSERT INTO log (n) SELECT 1000 + i * 5 + j FROM generate_series(0, 4) j;
        INSERT INTO t VALUES (-(i % 300), i::text);
    END LOOP;
END $$;
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
SELECT count(*), count(DISTINCT n) AS n, count(*) FILTER (WHERE n < before) AS out_of_order FROM (SELECT n, lag(n) OVER (PARTITION BY part ORDER BY off) AS before FROM log WHERE n > 1000) l;
SELECT count(*), sum(v::int) FROM t WHERE id <= 0;
DELETE FROM t WHERE id <= 0;
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;

-- === a bookmark: the place in the outbox; wait_for waits until it is sent, and then for the topic ===
-- (the table is not kept by a worker if there is none: what is waited for is already there)
SELECT upsert_kafka.materialize('t', 't_kept', history => false);
INSERT INTO t VALUES (5, 'marked');
SELECT upsert_kafka.last_written() AS bookmark \gset
SELECT :'bookmark' ~ '^\*:\d+:\d+$' AS form;
SELECT upsert_kafka.wait_for('t_kept', :'bookmark');
SELECT upsert_kafka.wait_for('t_kept');
SELECT * FROM t_kept ORDER BY id;
-- no such stream, no such number in it
SELECT upsert_kafka.wait_for('t_kept', '*:99999:1');
SELECT upsert_kafka.wait_for('t_kept', regexp_replace(:'bookmark', '\d+$', '9000000000000000000'));

-- === a message that Kafka will never take stops its outbox there ===
CREATE FUNCTION wait_for_state(wanted text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    FOR i IN 1 .. 600 LOOP
        SELECT state INTO result FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';
        EXIT WHEN result = wanted;
        PERFORM pg_sleep(0.05);
    END LOOP;
    RETURN result;
END $$;
SELECT last_sent AS base FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka' \gset
BEGIN;
INSERT INTO t VALUES (6, 'before');
INSERT INTO t SELECT 7, string_agg(md5(i::text), '') FROM generate_series(1, 300) i;
INSERT INTO t VALUES (8, 'behind');
COMMIT;
INSERT INTO t VALUES (9, 'another transaction');
SELECT wait_for_state('stopped');
SELECT state, waiting_rows, stopped_at - :base AS stopped_at, last_sent - :base AS last_sent, last_error FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';
-- nothing of the transaction is visible, nor what comes behind it
\! test/kt consume regress_outbox | cut -d' ' -f3- | tail -1
-- the owner of the table sees the messages
SELECT server, seq - :base AS seq, source, topic, partition, convert_from(key, 'UTF8') AS key, length(value), transaction_id = first_value(transaction_id) OVER (ORDER BY seq) AS first FROM upsert_kafka.outbox ORDER BY seq;
-- whoever waits for it is told (the text names the message)
\set VERBOSITY sqlstate
SELECT upsert_kafka.flush_outbox('outbox_kafka');
INSERT INTO t VALUES (10, 'waits, too');
SELECT upsert_kafka.wait_for('t_kept', upsert_kafka.last_written());
SELECT upsert_kafka.wait_for('t_kept');
\set VERBOSITY default
-- trying again does not help
SELECT upsert_kafka.resume_outbox('outbox_kafka');
SELECT wait_for_state('stopped');
-- only the message itself can be passed
SELECT upsert_kafka.outbox_skip('outbox_kafka', 1);
SELECT upsert_kafka.outbox_skip('outbox_kafka', stopped_at) FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';
SELECT wait_for_state('idle');
\! test/kt consume regress_outbox | cut -d' ' -f3- | tail -4

-- === another producer's open transaction in front: sent, and not to be read yet ===
\! printf '!begin\n99|open\n!hold 120 test/.release\n' | test/kt produce regress_outbox
ALTER SERVER outbox_kafka OPTIONS (ADD timeout '4s');
INSERT INTO t VALUES (13, 'hidden');
SELECT upsert_kafka.last_written() AS bookmark \gset
-- the server's timeout, and wait_for's own (the texts name offsets)
\set VERBOSITY sqlstate
SELECT upsert_kafka.flush_outbox('outbox_kafka');
SELECT upsert_kafka.wait_for('t_kept', :'bookmark', '100 ms');
\set VERBOSITY default
-- the outbox goes on
INSERT INTO t VALUES (14, 'hidden, too');
SELECT wait_for_state('idle');
SELECT unreadable ~ '^regress_outbox:0:\d+$' AS unreadable FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka';
SELECT * FROM t WHERE id > 12;
-- until the transaction ends
ALTER SERVER outbox_kafka OPTIONS (SET timeout '60s');
\! (sleep 1; touch test/.release) &
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
SELECT * FROM t WHERE id > 12 ORDER BY id;
SELECT upsert_kafka.wait_for('t_kept', upsert_kafka.last_written());
SELECT * FROM t_kept WHERE id > 12 ORDER BY id;
ALTER SERVER outbox_kafka OPTIONS (DROP timeout);

-- === rights: the view for whoever may use the server, messages for the table's owner, steering for the server's owner ===
DROP ROLE IF EXISTS regress_outbox_user;
CREATE ROLE regress_outbox_user;
GRANT SELECT, INSERT ON t TO regress_outbox_user;
SET ROLE regress_outbox_user;
SELECT count(*) FROM upsert_kafka.outbox_status;
SELECT count(*) FROM upsert_kafka.outbox;
SELECT upsert_kafka.flush_outbox('outbox_kafka');
SELECT upsert_kafka.outbox_skip('outbox_kafka', 1);
SELECT upsert_kafka.resume_outbox('outbox_kafka');
SELECT count(*) FROM upsert_kafka.outbox_message;
-- writing needs no right on the extension's tables
INSERT INTO t VALUES (11, 'by another role');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER outbox_kafka TO regress_outbox_user;
SET ROLE regress_outbox_user;
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
SELECT count(*) FROM upsert_kafka.outbox_status;
RESET ROLE;
-- a user mapping of one's own is a stream of its own
CREATE USER MAPPING FOR regress_outbox_user SERVER outbox_kafka;
SET ROLE regress_outbox_user;
INSERT INTO t VALUES (12, 'with a mapping');
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;
RESET ROLE;
SELECT user_mapping, state FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka' ORDER BY user_mapping NULLS FIRST;
\! test/kt consume regress_outbox | cut -d' ' -f3- | tail -2

-- === the outbox is bounded ===
SET upsert_kafka.outbox_limit = '2kB';
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 30) i;
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 3) i;
RESET upsert_kafka.outbox_limit;
SELECT upsert_kafka.flush_outbox('outbox_kafka') >= 0 AS flushed;

-- === a server is not dropped while something waits for it ===
CREATE FOREIGN TABLE nowhere (n int) SERVER outbox_kafka
    OPTIONS (connector 'kafka', topic 'regress_outbox_missing', value_format 'json', delivery_guarantee 'exactly-once');
-- writing does not ask Kafka: that there is no such topic shows when it is sent
INSERT INTO nowhere VALUES (1);
SELECT upsert_kafka.drop('t_kept');
DROP SERVER outbox_kafka CASCADE;
-- what was written through a table that is gone is the server's owner's to see
DROP FOREIGN TABLE nowhere;
SELECT topic, convert_from(value, 'UTF8') AS value FROM upsert_kafka.outbox;
SET ROLE regress_outbox_user;
SELECT topic FROM upsert_kafka.outbox;
RESET ROLE;
SELECT upsert_kafka.resume_outbox('outbox_kafka', discard => true);
SELECT waiting_rows, state FROM upsert_kafka.outbox_status WHERE server = 'outbox_kafka' AND user_mapping IS NULL;
DROP USER MAPPING FOR regress_outbox_user SERVER outbox_kafka;
DROP SERVER outbox_kafka CASCADE;
SELECT count(*) FROM upsert_kafka.outbox_stream;
SELECT count(*) FROM upsert_kafka.outbox_message;
DROP FUNCTION wait_for_state(text);
DROP ROLE regress_outbox_user;

-- === arguments ===
SELECT upsert_kafka.flush_outbox('no_such_server');
SELECT upsert_kafka.flush_outbox('upsert_kafka_history');
