-- === writing append topics: every row is a message ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER upsert_kafka_test FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- without key columns the key is null
\! test/kt create regress_write_append -p 2 --fresh
CREATE FOREIGN TABLE a (part int OPTIONS (metadata 'partition'), v int, ts timestamptz OPTIONS (metadata 'timestamp'),
    h jsonb OPTIONS (metadata 'headers'), off bigint OPTIONS (metadata 'offset'), topic text OPTIONS (metadata 'topic'), kind text OPTIONS (metadata 'timestamp-type'))
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_append', value_format 'json');
-- partition, timestamp and headers can be given
INSERT INTO a (v, part, ts, h) VALUES
    (1, 1, '2026-01-01 00:00:00.123+00', '[{"name": "n", "value": "text"}, {"name": "n", "value": null}, {"name": "b", "base64": "AP8="}]'),
    (2, 1, '1970-01-01 00:00:00.001+00', '[]'),
    (3, 0, NULL, NULL) RETURNING *;
\! test/kt consume regress_write_append -l | sed 's/ [0-9]\{13\}\( \|$\)/ TIME\1/' | sort
SELECT v, part, h, off, topic, kind FROM a ORDER BY v;
SELECT v, ts FROM a WHERE v < 3 ORDER BY v;

-- own rows that are not sent yet are at the end, without what only the broker knows
BEGIN;
INSERT INTO a (v, part, ts) VALUES (4, 0, '2026-01-01 00:00+00'), (5, 1, NULL);
INSERT INTO a (v) SELECT max(v) + 1 FROM a;
SELECT v, part, ts, h, off, topic, kind FROM a WHERE v > 3;
-- conditions on offsets are conditions on what they are
SELECT v FROM a WHERE off >= 0 AND v > 2;
ROLLBACK;
SELECT count(*) FROM a;

-- === what cannot be written ===
INSERT INTO a (v, off) VALUES (1, 1);
INSERT INTO a (v, topic) VALUES (1, 'other');
INSERT INTO a (v, part) VALUES (1, -1);
INSERT INTO a (v, ts) VALUES (1, 'infinity');
INSERT INTO a (v, ts) VALUES (1, '1969-12-31 23:59:59+00');
-- the last one that can be read again, and the last one that PostgreSQL knows
BEGIN;
INSERT INTO a (v, ts) VALUES (9, '294247-01-10 04:00:54.775+00');
SELECT ts AT TIME ZONE 'UTC' FROM a WHERE v = 9;
INSERT INTO a (v, ts) VALUES (9, '294276-12-31 23:59:59.999+00');
ROLLBACK;
INSERT INTO a (v, h) VALUES (1, '{"n": "v"}');
INSERT INTO a (v, h) VALUES (1, '[{"name": "n"}]');
UPDATE a SET v = 1;
DELETE FROM a;
TRUNCATE a;
INSERT INTO a (v) VALUES (1) ON CONFLICT DO NOTHING;
SELECT pg_relation_is_updatable('a'::regclass, false);

-- === headers as an array of a composite, timestamp without time zone ===
CREATE TYPE header AS (name text, value bytea);
CREATE FOREIGN TABLE b (v int, h header[] OPTIONS (metadata 'headers'), ts timestamp OPTIONS (metadata 'timestamp'))
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_append', value_format 'json', time_zone 'Europe/Berlin');
INSERT INTO b VALUES (10, ARRAY[('x', '\x00'), ('y', NULL)]::header[], '2026-07-01 12:00');
INSERT INTO b VALUES (11, ARRAY[(NULL, '\x00')]::header[]);
SELECT * FROM b WHERE v = 10;
SELECT ts AT TIME ZONE 'UTC' AS utc, h FROM a WHERE v = 10;

-- === key columns are optional; NULLs in them are the format's ===
\! test/kt create regress_write_keyed -p 1 --fresh
CREATE FOREIGN TABLE keyed (k text OPTIONS (key 'true'), v text)
    SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_keyed', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');
INSERT INTO keyed VALUES ('a', '1'), ('a', '2'), (NULL, '3');
COPY keyed FROM stdin;
b	4
\.
\! test/kt consume regress_write_keyed
SELECT * FROM keyed;

-- === raw: NULL is Kafka's null ===
\! test/kt create regress_write_append_raw -p 1 --fresh
CREATE FOREIGN TABLE rawlog (line text) SERVER upsert_kafka_test OPTIONS (connector 'kafka', topic 'regress_write_append_raw', value_format 'raw');
INSERT INTO rawlog VALUES ('one'), (''), (NULL);
\! test/kt consume regress_write_append_raw
SELECT line, line IS NULL AS "null" FROM rawlog;

-- === options of partitions and guarantees ===
\! test/kt create regress_write_random -p 3 --fresh
CREATE FOREIGN TABLE spread (v int) SERVER upsert_kafka_test
    OPTIONS (connector 'kafka', topic 'regress_write_random', value_format 'json', "sink.partitioner" 'random', "sink.delivery-guarantee" 'none');
INSERT INTO spread SELECT generate_series(1, 300);
-- nobody waits for acknowledgements, so there is no bookmark of them either
CREATE FUNCTION arrived() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 300 LOOP
        IF (SELECT count(*) FROM spread) = 300 THEN RETURN true; END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
    RETURN false;
END $$;
SELECT arrived();
SELECT upsert_kafka.last_written() LIKE '%random%' AS in_bookmark;
\! test/kt consume regress_write_random | awk '{ print $1 }' | sort -u

DROP FUNCTION arrived();
DROP FOREIGN TABLE a, b, keyed, rawlog, spread;
DROP TYPE header;
DROP SERVER upsert_kafka_test;
