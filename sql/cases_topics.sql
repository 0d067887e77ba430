-- === cases of the field: the topic changes under a maintained table ===
-- It is never a silent jump: the table's state says what happened, and its hint what to do. No worker acts here, refresh() does.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SCHEMA topics;
SET search_path = topics, public;
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER topics_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FUNCTION source(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FOREIGN TABLE %1$I (id int OPTIONS (key ''true''), v text)
		SERVER topics_kafka OPTIONS (connector ''upsert-kafka'', topic %2$L, key_format ''json'', value_format ''json'')', name || '_topic', 'topics_' || name);
	PERFORM upsert_kafka.materialize((name || '_topic')::regclass, name);
	PERFORM upsert_kafka.refresh(name::regclass);
END $$;
CREATE VIEW states AS SELECT target, state, error_partition, error_offset FROM upsert_kafka.tables ORDER BY target::text;

-- === H01: transactions; markers and aborted messages have offsets, too ===
\! test/kt create topics_tx --fresh
SELECT source('tx');
\o |test/kt produce topics_tx
\qecho '!begin'
\qecho '{"id":1}|{"v":"a"}'
\qecho '{"id":2}|{"v":"b"}'
\qecho '{"id":3}|{"v":"c"}'
\qecho '!commit'
\qecho '!begin'
\qecho '{"id":1}|{"v":"aborted"}'
\qecho '{"id":4}|{"v":"aborted"}'
\qecho '!abort'
\o
-- what was committed, at once, and then nothing more; the position is behind the last marker
SELECT upsert_kafka.refresh('tx');
SELECT upsert_kafka.refresh('tx');
SELECT * FROM tx ORDER BY id;
SELECT next_offset >= 3 AS behind FROM upsert_kafka.position('tx');
-- only newer data is seen afterwards
\! printf '%s\n' '{"id":5}|{"v":"e"}' | test/kt produce topics_tx
SELECT upsert_kafka.refresh('tx');
SELECT * FROM tx ORDER BY id;

-- === H02: expired records ===
\! test/kt create topics_expired -p 3 --fresh
\! printf '%s\n' '[p=0] {"id":1}|{"v":"a"}' '[p=0] {"id":2}|{"v":"b"}' '[p=1] {"id":3}|{"v":"c"}' '[p=1] {"id":4}|{"v":"d"}' | test/kt produce topics_expired
\! test/kt trim topics_expired 0 end
\! test/kt trim topics_expired 1 1
-- partition 0 has nothing left, 1 begins at its second record, 2 was never written: a new table takes what there is
SELECT source('expired');
SELECT * FROM expired;
SELECT * FROM upsert_kafka.position('expired') ORDER BY partition;
-- a table that was behind is told: deletes may be among what is lost
\! printf '%s\n' '[p=1] {"id":5}|{"v":"e"}' '[p=1] {"id":6}|{"v":"f"}' | test/kt produce topics_expired
\! test/kt trim topics_expired 1 3
SELECT upsert_kafka.refresh('expired');
SELECT * FROM states WHERE target = 'expired'::regclass;
SELECT upsert_kafka.refresh('expired');
SELECT * FROM expired;
-- by hand it goes on with what the topic has
SELECT upsert_kafka.resume('expired', accept_data_loss => true);
SELECT upsert_kafka.refresh('expired');
SELECT * FROM expired ORDER BY id;

-- === H03, H04: the topic is made anew ===
-- with fewer messages than were read: the position is behind its end
\! test/kt create topics_shorter --fresh
\! printf '%s\n' '{"id":1}|{"v":"a"}' '{"id":2}|{"v":"b"}' '{"id":3}|{"v":"c"}' | test/kt produce topics_shorter
SELECT source('shorter');
\! test/kt create topics_shorter --fresh
\! printf '%s\n' '{"id":9}|{"v":"new"}' | test/kt produce topics_shorter
SELECT upsert_kafka.refresh('shorter');
SELECT * FROM states WHERE target = 'shorter'::regclass;
-- with more: the offsets look right, the last applied record does not
\! test/kt create topics_longer --fresh
\! printf '%s\n' '{"id":1}|{"v":"a"}' '{"id":2}|{"v":"b"}' | test/kt produce topics_longer
SELECT source('longer');
\! test/kt create topics_longer --fresh
\! printf '%s\n' '{"id":6}|{"v":"new"}' '{"id":7}|{"v":"new"}' '{"id":8}|{"v":"new"}' '{"id":9}|{"v":"new"}' | test/kt produce topics_longer
SELECT upsert_kafka.refresh('longer');
SELECT * FROM states WHERE target = 'longer'::regclass;
-- with fewer partitions
\! test/kt create topics_narrower -p 2 --fresh
\! printf '%s\n' '[p=0] {"id":1}|{"v":"a"}' '[p=1] {"id":2}|{"v":"b"}' | test/kt produce topics_narrower
SELECT source('narrower');
\! test/kt create topics_narrower -p 1 --fresh
\! printf '%s\n' '{"id":1}|{"v":"a"}' | test/kt produce topics_narrower
SELECT upsert_kafka.refresh('narrower');
SELECT * FROM states WHERE target = 'narrower'::regclass;
-- the rows stay until somebody decides
SELECT (SELECT count(*) FROM shorter) AS shorter, (SELECT count(*) FROM longer) AS longer, (SELECT count(*) FROM narrower) AS narrower;
SELECT upsert_kafka.refresh('longer');
SELECT upsert_kafka.resume('longer');
SELECT upsert_kafka.rebuild('longer', discard_history => true);
SELECT upsert_kafka.refresh('longer');
SELECT * FROM longer ORDER BY id;
SELECT * FROM states WHERE target = 'longer'::regclass;
-- or rows and history stay, and the topic that is there now is read on top of them: what it says of a key counts
SELECT upsert_kafka.resume('shorter', accept_data_loss => true);
SELECT upsert_kafka.resume('narrower', accept_data_loss => true);
\! printf '%s\n' '{"id":1}|{"v":"z"}' '{"id":2}|∅' | test/kt produce topics_shorter
SELECT upsert_kafka.refresh('shorter'), upsert_kafka.refresh('narrower');
SELECT * FROM shorter ORDER BY id;
SELECT * FROM narrower ORDER BY id;
SELECT id, v, upper_inf(system_time) AS holds FROM shorter_history ORDER BY id, lower(system_time);
SELECT topic, partition, position, given_up FROM upsert_kafka.progress WHERE target IN ('shorter'::regclass, 'narrower'::regclass) ORDER BY target::text, given_up DESC, partition;
SELECT upsert_kafka.rebuild('shorter');
SELECT * FROM shorter ORDER BY id;
SELECT id, v, upper_inf(system_time) AS holds FROM shorter_history ORDER BY id, lower(system_time);
-- not where the foreign table reads another topic: that is another table's
ALTER FOREIGN TABLE narrower_topic OPTIONS (SET topic 'topics_shorter');
SELECT upsert_kafka.refresh('narrower');
SELECT upsert_kafka.resume('narrower', accept_data_loss => true);
ALTER FOREIGN TABLE narrower_topic OPTIONS (SET topic 'topics_narrower');
SELECT upsert_kafka.resume('narrower');
SELECT upsert_kafka.refresh('narrower');

-- === H05: partitions that are added are read from their start ===
\! test/kt create topics_wider -p 2 --fresh
\! printf '%s\n' '[p=0] {"id":1}|{"v":"a"}' | test/kt produce topics_wider
SELECT source('wider');
\! test/kt grow topics_wider 4
\! printf '%s\n' '[p=3] {"id":2}|{"v":"b"}' '[p=2] {"id":3}|{"v":"c"}' | test/kt produce topics_wider
SELECT upsert_kafka.refresh('wider');
SELECT * FROM wider ORDER BY id;
SELECT * FROM upsert_kafka.position('wider') ORDER BY partition;

-- === H07: batches in every codec are read, by a scan and by apply ===
\! for codec in gzip snappy lz4 zstd; do test/kt create topics_$codec -c compression.type=$codec --fresh; seq 1 1000 | sed 's/.*/{"id":&}|{"v":"some text, number &"}/' | test/kt produce topics_$codec; done
SELECT source(codec) FROM unnest('{gzip,snappy,lz4,zstd}'::text[]) codec;
SELECT (SELECT count(v) FROM gzip_topic) AS gzip, (SELECT count(v) FROM snappy_topic) AS snappy, (SELECT count(v) FROM lz4_topic) AS lz4, (SELECT count(v) FROM zstd_topic) AS zstd;
SELECT (SELECT count(v) FROM gzip) AS gzip, (SELECT count(v) FROM snappy) AS snappy, (SELECT count(v) FROM lz4) AS lz4, (SELECT count(v) FROM zstd) AS zstd;

-- === away with it ===
SET client_min_messages = warning;
SELECT count(upsert_kafka.drop(target)) FROM upsert_kafka.tables;
DROP SERVER topics_kafka CASCADE;
DROP SCHEMA topics CASCADE;
RESET client_min_messages;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in tx expired shorter longer narrower wider gzip snappy lz4 zstd; do test/kt delete topics_$t; done
