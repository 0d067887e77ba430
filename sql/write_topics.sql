-- === writing through a foreign table over several topics: the metadata column "topic" says where a row goes ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER wtopics_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! for t in regress_wtopics_a regress_wtopics_b; do test/kt create $t -p 2 --fresh; done
\! test/kt delete regress_wtopics_c --if-exists

-- === append: as Flink's sink, the topic is part of each row ===
CREATE FOREIGN TABLE wt_log (
    n int, topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset')
) SERVER wtopics_kafka OPTIONS (connector 'kafka', topic 'regress_wtopics_a;regress_wtopics_b', value_format 'json', scan_startup_mode 'earliest-offset');
INSERT INTO wt_log (n, topic, part) VALUES (1, 'regress_wtopics_a', 0), (2, 'regress_wtopics_b', 1), (3, 'regress_wtopics_a', 1) RETURNING n, topic;
SELECT n, topic, part, off FROM wt_log ORDER BY n;
\! test/kt consume regress_wtopics_b | cut -d' ' -f1,3-
-- the bookmark names both topics
SELECT upsert_kafka.last_written();
-- own rows of all topics are there before they are sent
BEGIN;
COPY wt_log (n, topic) FROM stdin;
4	regress_wtopics_a
5	regress_wtopics_b
\.
SELECT n, topic, off FROM wt_log WHERE n > 3 ORDER BY n;
SELECT n FROM wt_log WHERE n > 3 AND topic = 'regress_wtopics_b';
SAVEPOINT s;
INSERT INTO wt_log (n, topic) VALUES (6, 'regress_wtopics_b');
ROLLBACK TO s;
COMMIT;
SELECT topic, array_agg(n ORDER BY n) FROM wt_log GROUP BY topic ORDER BY topic;
-- a default
ALTER FOREIGN TABLE wt_log ALTER COLUMN topic SET DEFAULT 'regress_wtopics_b';
INSERT INTO wt_log (n) VALUES (7) RETURNING topic;

-- === errors ===
INSERT INTO wt_log (n, topic) VALUES (8, NULL);
INSERT INTO wt_log (n, topic) VALUES (8, 'regress_wtopics_c');
CREATE FOREIGN TABLE wt_blind (n int) SERVER wtopics_kafka
    OPTIONS (connector 'kafka', topic 'regress_wtopics_a;regress_wtopics_b', value_format 'json');
INSERT INTO wt_blind VALUES (8);
-- nothing of such a transaction is sent
BEGIN;
INSERT INTO wt_log (n, topic) VALUES (9, 'regress_wtopics_a');
INSERT INTO wt_log (n, topic) VALUES (9, 'nowhere');
COMMIT;
SELECT count(*) FROM wt_log WHERE n > 7;
-- over one topic the column is not for writing, as before
CREATE FOREIGN TABLE wt_one (n int, topic text OPTIONS (metadata 'topic')) SERVER wtopics_kafka
    OPTIONS (connector 'kafka', topic 'regress_wtopics_a', value_format 'json');
INSERT INTO wt_one VALUES (8, 'regress_wtopics_a');
INSERT INTO wt_one VALUES (8, NULL) RETURNING *;
EXPLAIN (COSTS OFF) INSERT INTO wt_log (n) VALUES (1);

-- === a pattern: any topic that matches and exists ===
CREATE FOREIGN TABLE wt_match (n int, topic text OPTIONS (metadata 'topic')) SERVER wtopics_kafka
    OPTIONS (connector 'kafka', topic_pattern 'regress_wtopics_[abc]', value_format 'json', scan_startup_mode 'earliest-offset');
INSERT INTO wt_match VALUES (10, 'regress_wtopics_a');
INSERT INTO wt_match VALUES (10, 'regress_wtopics_d');
INSERT INTO wt_match VALUES (10, 'regress_wtopics_c');
\! test/kt create regress_wtopics_c -p 1
INSERT INTO wt_match VALUES (10, 'regress_wtopics_c');
SELECT topic, count(*) FROM wt_match WHERE n = 10 GROUP BY topic ORDER BY topic;

-- === upsert: INSERT names the topic, UPDATE and DELETE stay in the one that the row came from ===
\! for t in regress_wtopics_a regress_wtopics_b regress_wtopics_c; do test/kt create $t -p 2 --fresh; done
CREATE FOREIGN TABLE wt_state (
    id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic')
) SERVER wtopics_kafka OPTIONS (connector 'upsert-kafka', topic_pattern 'regress_wtopics_[abc]', key_format 'json', value_format 'json', value_fields_include 'EXCEPT_KEY');
INSERT INTO wt_state VALUES (1, 'one', 'regress_wtopics_a'), (2, 'two', 'regress_wtopics_b'), (3, 'three', 'regress_wtopics_c');
BEGIN;
UPDATE wt_state SET v = v || '!' WHERE id < 3 RETURNING *;
DELETE FROM wt_state WHERE id = 3 RETURNING *;
-- rows that are not sent yet have a topic, too
INSERT INTO wt_state VALUES (4, 'four', 'regress_wtopics_c');
UPDATE wt_state SET v = 'four!' WHERE id = 4;
SELECT * FROM wt_state ORDER BY id;
COMMIT;
SELECT * FROM wt_state ORDER BY id;
-- another key: the tombstone and the new row, both there
UPDATE wt_state SET id = 20 WHERE id = 2;
\! for t in a b c; do echo $t; test/kt consume regress_wtopics_$t | cut -d' ' -f3- | sort; done
-- a row does not move to another topic
UPDATE wt_state SET topic = 'regress_wtopics_b' WHERE id = 1;
UPDATE wt_state SET topic = topic, v = 'same' WHERE id = 1 RETURNING *;
INSERT INTO wt_state VALUES (5, 'five');
INSERT INTO wt_state VALUES (NULL, 'x', 'regress_wtopics_a');
-- TRUNCATE: a tombstone for each row, in its topic
TRUNCATE wt_state;
SELECT * FROM wt_state;
\! for t in a b c; do echo $t; test/kt consume regress_wtopics_$t | cut -d' ' -f3- | sort | uniq | grep '∅\|null\|\\N'; done

-- === exactly once, through the outbox ===
ALTER FOREIGN TABLE wt_state OPTIONS (ADD delivery_guarantee 'exactly-once');
BEGIN;
INSERT INTO wt_state VALUES (6, 'six', 'regress_wtopics_a'), (7, 'seven', 'regress_wtopics_b'), (8, 'eight', 'regress_wtopics_a');
UPDATE wt_state SET v = 'VI' WHERE id = 6;
SELECT * FROM wt_state ORDER BY id;
COMMIT;
SELECT upsert_kafka.flush_outbox('wtopics_kafka') >= 0 AS flushed;
\! for i in $(seq 100); do test/kt ends regress_wtopics_a | awk '$3 != $4 {exit 1}' && test/kt ends regress_wtopics_b | awk '$3 != $4 {exit 1}' && break; sleep 0.05; done
SELECT * FROM wt_state ORDER BY id;
SELECT waiting_rows FROM upsert_kafka.outbox_status WHERE server = 'wtopics_kafka';

\! for t in regress_wtopics_a regress_wtopics_b regress_wtopics_c; do test/kt delete $t --if-exists; done
DROP SERVER wtopics_kafka CASCADE;
