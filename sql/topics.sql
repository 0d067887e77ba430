-- === one foreign table over several topics: a list, or a pattern ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE SERVER several_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

\! for t in regress_several_a regress_several_b regress_several_c regress_severals regress_sev; do test/kt create $t -p 2 --fresh; done
\o |test/kt produce regress_several_a
\qecho '[p=0 ts=1000] {"id":1}|{"v":"a1"}'
\qecho '[p=0 ts=3000] {"id":2}|{"v":"a2"}'
\qecho '[p=1 ts=2000] {"id":3}|{"v":"a3"}'
\o
\o |test/kt produce regress_several_b
\qecho '[p=0 ts=2000] {"id":1}|{"v":"b1"}'
\qecho '[p=1 ts=1000] {"id":2}|{"v":"b2"}'
\qecho '[p=1 ts=4000] {"id":4}|{"v":"b4"}'
\qecho '[p=1 ts=5000] {"id":3}|\\N'
\o
\! printf '%s\n' '[p=0 ts=9000] {"id":9}|{"v":"other"}' | test/kt produce regress_severals

-- === a list ===
CREATE FOREIGN TABLE sev_list (
    id int OPTIONS (key 'true'), v text,
    topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset')
) SERVER several_kafka OPTIONS (connector 'kafka', topic 'regress_several_b; regress_several_a', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
-- each row tells its real topic and partition
SELECT id, v, topic, part, off FROM sev_list ORDER BY topic, part, off;
-- conditions on the topic narrow what is read, those on the partition mean each topic's own
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ 'Topic|Conditions|Filter|Partitions|Offsets|Messages' THEN RETURN NEXT line; END IF;
    END LOOP;
END $$;
SELECT explained($$SELECT * FROM sev_list$$);
SELECT explained($$SELECT * FROM sev_list WHERE topic = 'regress_several_b'$$);
SELECT explained($$SELECT * FROM sev_list WHERE topic IN ('regress_several_a', 'nowhere') AND part = 0$$);
SELECT explained($$SELECT * FROM sev_list WHERE (topic = 'regress_several_a' AND off >= 1) OR (topic = 'regress_several_b' AND part = 1 AND off < 1)$$);
-- what only a look at the rows can tell narrows nothing, and is no less right
SELECT explained($$SELECT * FROM sev_list WHERE topic LIKE '%a'$$);
SELECT v FROM sev_list WHERE topic <> 'regress_several_a' ORDER BY v;
SELECT v FROM sev_list WHERE topic = ALL (ARRAY['regress_several_a', NULL]) ORDER BY v;
PREPARE of_topic(text) AS SELECT count(*) FROM sev_list WHERE topic = $1;
EXECUTE of_topic('regress_several_a');
EXECUTE of_topic(NULL);
-- where a scan begins is told by time for all of them
ALTER FOREIGN TABLE sev_list OPTIONS (SET scan_startup_mode 'timestamp', scan_startup_timestamp_millis '2500');
SELECT v FROM sev_list ORDER BY v;
ALTER FOREIGN TABLE sev_list OPTIONS (SET scan_startup_mode 'earliest-offset', DROP scan_startup_timestamp_millis);
ANALYZE sev_list;

-- === an upsert table: the same key in two topics is one row ===
CREATE FOREIGN TABLE sev_state (
    id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition')
) SERVER several_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_several_a;regress_several_b', key_format 'json', value_format 'json');
-- the greatest Kafka timestamp among the topics' last messages of a key counts: key 3 was deleted in the other one
SELECT * FROM sev_state ORDER BY id;
-- which message counts depends on all of a key, so a condition on the topic is a filter only
SELECT * FROM sev_state WHERE topic = 'regress_several_a' ORDER BY id;
SELECT explained($$SELECT * FROM sev_state WHERE topic = 'regress_several_a' AND id = 2$$);
-- equal timestamps: the later topic by name
\! printf '%s\n' '[p=0 ts=7000] {"id":5}|{"v":"a5"}' | test/kt produce regress_several_a
\! printf '%s\n' '[p=0 ts=7000] {"id":5}|{"v":"b5"}' | test/kt produce regress_several_b
SELECT v, topic FROM sev_state WHERE id = 5;
-- on disk as in memory
\! seq 1000 3999 | awk '{ printf "[p=%d ts=%d] {\"id\":%d}|{\"v\":\"a%d %0100d\"}\n", $1 % 2, 8000 + $1 % 3, $1, $1, 0 }' | test/kt produce regress_several_a
\! seq 1000 3999 | awk '{ printf "[p=%d ts=%d] {\"id\":%d}|{\"v\":\"b%d %0100d\"}\n", $1 % 2, 8000 + $1 % 2, $1, $1, 0 }' | test/kt produce regress_several_b
CREATE TEMP TABLE in_memory AS SELECT id, split_part(v, ' ', 1) AS v, topic, part FROM sev_state;
SET work_mem = '64kB';
CREATE TEMP TABLE on_disk AS SELECT id, split_part(v, ' ', 1) AS v, topic, part FROM sev_state;
RESET work_mem;
SELECT topic, count(*) FROM on_disk GROUP BY topic ORDER BY topic;
SELECT * FROM in_memory EXCEPT SELECT * FROM on_disk;
-- the changes of all topics in one order
CREATE FOREIGN TABLE sev_changes (
    id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind'), topic text OPTIONS (metadata 'topic')
) SERVER several_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_several_a;regress_several_b', key_format 'json', value_format 'json', changelog 'true');
SELECT kind, id, v, topic FROM sev_changes WHERE id < 10;

-- === a pattern: the whole name matches ===
CREATE FOREIGN TABLE sev_match (
    id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic')
) SERVER several_kafka OPTIONS (connector 'kafka', topic_pattern 'regress_several_[abc]|regress_sev', key_format 'json', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT topic, count(*) FROM sev_match WHERE id < 10 GROUP BY 1 ORDER BY 1;
-- a scan finds what there is when it begins
\! printf '%s\n' '[p=1 ts=6000] {"id":6}|{"v":"c6"}' | test/kt produce regress_several_c
\! test/kt delete regress_several_b
SELECT topic, count(*) FROM sev_match WHERE id < 10 GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE sev_match OPTIONS (SET topic_pattern '(?i)REGRESS_SEVERAL_.');
SELECT topic, count(*) FROM sev_match WHERE id < 10 GROUP BY 1 ORDER BY 1;
-- nothing matches: no row; topics that brokers keep for themselves never match
ALTER FOREIGN TABLE sev_match OPTIONS (SET topic_pattern 'nowhere_.*');
SELECT * FROM sev_match;
SELECT explained($$SELECT * FROM sev_match$$);
ALTER FOREIGN TABLE sev_match OPTIONS (SET topic_pattern '.*consumer_offsets');
SELECT * FROM sev_match;
-- a topic of a list must be there
SELECT * FROM sev_list;

-- === errors name topic and partition ===
\! test/kt create regress_several_b --fresh
\! printf '%s\n' '[p=0 ts=1000] {"id":1}|{"v":' | test/kt produce regress_several_b
SELECT v FROM sev_list WHERE topic = 'regress_several_a' AND id < 10 ORDER BY id;
SELECT v FROM sev_list;
SELECT v FROM sev_state;
ALTER FOREIGN TABLE sev_state OPTIONS (ADD on_error 'skip');
SELECT v FROM sev_state WHERE id < 10 ORDER BY id;

-- === options ===
CREATE FUNCTION refused(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE said text; hinted text;
BEGIN
    EXECUTE 'CREATE FOREIGN TABLE piece (v text) SERVER several_kafka OPTIONS (connector ''kafka'', value_format ''json'', ' || options || ')';
    DROP FOREIGN TABLE piece;
    RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, hinted = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ' ' || said || ': ' || hinted;
END $$;
SELECT refused($$topic 'a', topic_pattern 'a'$$);
SELECT refused($$"topic-pattern" 'a.*'$$);
SELECT refused($$topics 'a;b'$$);
SELECT refused($$topic_patern 'a.*'$$);
SELECT refused($$topic 'a;'$$);
SELECT refused($$topic ';'$$);
SELECT refused($$topic 'a;b;a'$$);
SELECT refused($$topic 'a,b'$$);
SELECT refused($$topic_pattern ''$$);
SELECT refused($$topic_pattern 'a('$$);
SELECT refused($$topic_pattern 'a)|(b'$$);
SELECT refused($$topic_pattern '***=a'$$);
SELECT refused($$topic 'a', "scan.topic-partition-discovery.interval" '5min'$$);
SELECT refused($$topic 'a', scan_topic_partition_discovery_interval '-1'$$);
SELECT refused($$topic 'a', scan_topic_partition_discovery_interval 'often'$$);
-- an offset says something about one topic
SELECT refused($$topic 'a;b', scan_startup_mode 'specific-offsets', scan_startup_specific_offsets 'partition:0,offset:1'$$);
SELECT refused($$topic_pattern 'a', scan_bounded_mode 'specific-offsets', scan_bounded_specific_offsets 'partition:0,offset:1'$$);
