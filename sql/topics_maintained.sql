-- === a maintained table over several topics. No worker acts here, refresh() does ===
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SCHEMA sevm;
SET search_path = sevm, public;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER sevm_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! for t in regress_sevm_a regress_sevm_b regress_sevm_c regress_sevm_d; do test/kt delete $t --if-exists; done
\! for t in regress_sevm_a regress_sevm_c; do test/kt create $t -p 2; done
\o |test/kt produce regress_sevm_a
\qecho '[p=0 ts=1000] {"id":1}|{"v":"a1"}'
\qecho '[p=1 ts=2000] {"id":2}|{"v":"a2"}'
\qecho '[p=0 ts=3000] {"id":3}|{"v":"a3"}'
\o
\o |test/kt produce regress_sevm_c
\qecho '[p=0 ts=2000] {"id":1}|{"v":"c1"}'
\qecho '[p=1 ts=1000] {"id":2}|{"v":"c2"}'
\qecho '[p=1 ts=4000] {"id":3}|\\N'
\o

CREATE FOREIGN TABLE matching (
    id int OPTIONS (key 'true'), v text, n int, topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition')
) SERVER sevm_kafka OPTIONS (connector 'upsert-kafka', topic_pattern 'regress_sevm_[abc]', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('matching', 'kept');
SELECT upsert_kafka.refresh('kept');
-- rows, and versions, show the real topic and partition of their message
SELECT * FROM kept ORDER BY id;
SELECT id, v, topic, part, system_time FROM kept_history ORDER BY id, system_time;
SELECT id, v FROM kept__as_of('1970-01-01 00:00:03.5+00') ORDER BY id;
-- what is stored is the number of each partition among those of all topics
SELECT source, topic, partition FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass ORDER BY source;
SELECT id, __op, __partition, __offset FROM kept__versions ORDER BY id, __valid_from, __seq;
SELECT topic, partition, position FROM upsert_kafka.progress WHERE target = 'kept'::regclass ORDER BY topic, partition;
SELECT * FROM upsert_kafka.position('kept');
SELECT upsert_kafka.wait_for('kept');

-- === H05: a topic that comes later is found, and read from its beginning; numbers stay ===
\! test/kt create regress_sevm_b -p 3
\! printf '%s\n' '[p=2 ts=5000] {"id":2}|{"v":"b2"}' '[p=0 ts=1500] {"id":1}|{"v":"b1"}' '[p=0 ts=6000] {"id":4}|{"v":"b4"}' | test/kt produce regress_sevm_b
\! printf '%s\n' '[p=0 ts=7000] {"id":5}|{"v":"a5"}' | test/kt produce regress_sevm_a
\! test/kt grow regress_sevm_a 3
\! printf '%s\n' '[p=2 ts=8000] {"id":6}|{"v":"a6"}' | test/kt produce regress_sevm_a
SELECT upsert_kafka.refresh('kept');
SELECT source, topic, partition FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass ORDER BY source;
-- the table is the topics' state, and late versions of key 1 found their place
SELECT * FROM kept ORDER BY id;
SELECT * FROM kept EXCEPT SELECT * FROM matching;
SELECT v, topic, system_time FROM kept_history WHERE id = 1 ORDER BY system_time;
-- bookmarks name topics
SELECT upsert_kafka.wait_for('kept', 'regress_sevm_a:2:1,regress_sevm_b:0:2,elsewhere:0:100');
SELECT upsert_kafka.wait_for('kept', 'regress_sevm_b:0:3', '0 s');

-- === a topic that is deleted is no silent loss ===
\! test/kt delete regress_sevm_b
SELECT upsert_kafka.refresh('kept');
SELECT state, error_topic, error_message FROM upsert_kafka.tables WHERE target = 'kept'::regclass;
SELECT upsert_kafka.refresh('kept');
-- looking again does not help while it is away
SELECT upsert_kafka.resume('kept');
SELECT upsert_kafka.refresh('kept');
-- it is given up by hand: its rows stay, the others go on
SELECT upsert_kafka.resume('kept', accept_data_loss => true);
\! printf '%s\n' '[p=1 ts=10000] {"id":10}|{"v":"c10"}' | test/kt produce regress_sevm_c
SELECT upsert_kafka.refresh('kept');
SELECT * FROM kept ORDER BY id;
SELECT topic, given_up, count(*) FROM upsert_kafka.progress WHERE target = 'kept'::regclass GROUP BY 1, 2 ORDER BY 1;
-- a topic of this name that comes later is another one, with numbers of its own
\! test/kt create regress_sevm_b -p 1
\! printf '%s\n' '[p=0 ts=11000] {"id":11}|{"v":"again"}' | test/kt produce regress_sevm_b
SELECT upsert_kafka.refresh('kept');
SELECT * FROM kept WHERE id = 11;
SELECT source, topic, partition, given_up FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass ORDER BY source;
SELECT upsert_kafka.wait_for('kept', 'regress_sevm_b:0:1');

-- === H04: a topic that is made anew between two looks ===
\! test/kt create regress_sevm_a -p 3 --fresh
\! printf '%s\n' '[p=0 ts=12000] {"id":12}|{"v":"new a"}' | test/kt produce regress_sevm_a
SELECT upsert_kafka.refresh('kept');
SELECT state, error_topic, error_partition, error_message FROM upsert_kafka.tables WHERE target = 'kept'::regclass;
-- offsets of the earlier topic say nothing about this one, so the history cannot be matched with it
SELECT upsert_kafka.rebuild('kept');
SELECT upsert_kafka.resume('kept', accept_data_loss => true);
SELECT upsert_kafka.refresh('kept');
SELECT id, v, topic FROM kept WHERE id IN (3, 5, 12) ORDER BY id;

-- === rebuild: history that the topics no longer hold stays, numbers too ===
CREATE TABLE before AS SELECT * FROM kept_history;
CREATE TABLE numbers AS SELECT * FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass;
SELECT upsert_kafka.rebuild('kept');
SELECT state FROM upsert_kafka.tables WHERE target = 'kept'::regclass;
SELECT * FROM kept_history EXCEPT SELECT * FROM before;
SELECT * FROM before EXCEPT SELECT * FROM kept_history;
SELECT count(*) FROM (SELECT * FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass EXCEPT SELECT * FROM numbers) n;
SELECT upsert_kafka.refresh('kept');
-- to discard it is to begin anew: what there is now
SELECT upsert_kafka.rebuild('kept', discard_history => true);
SELECT upsert_kafka.refresh('kept');
SELECT * FROM kept EXCEPT SELECT * FROM matching;
SELECT * FROM matching EXCEPT SELECT * FROM kept;
SELECT source, topic, partition, given_up FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass ORDER BY source;

-- === messages that cannot be applied are told from one another by their topic ===
\! printf '%s\n' '[p=0 ts=9000] {"id":7}|{"v":"bad in a","n":"no number"}' | test/kt produce regress_sevm_a
\! printf '%s\n' '[p=0 ts=9000] {"id":8}|{"v":"bad in b","n":"no number"}' | test/kt produce regress_sevm_b
\! printf '%s\n' '[p=0 ts=9000] {"id":9}|{"v":"bad in c","n":"no number"}' | test/kt produce regress_sevm_c
-- the table stops at one of them
SELECT upsert_kafka.refresh('kept');
SELECT state, error_topic IS NOT NULL AS topic, error_partition, error_message LIKE '%topic "' || error_topic || '", partition 0, offset ' || error_offset || ':%' AS named
  FROM upsert_kafka.tables WHERE target = 'kept'::regclass;
DO $$
DECLARE p int; o bigint;
BEGIN
    WHILE (SELECT t.state = 'stopped' FROM upsert_kafka.tables t WHERE t.target = 'kept'::regclass) LOOP
        SELECT error_partition, error_offset INTO p, o FROM upsert_kafka.tables WHERE target = 'kept'::regclass;
        PERFORM upsert_kafka.skip('kept', p, o);
        SET LOCAL client_min_messages = error;
        PERFORM upsert_kafka.refresh('kept');
    END LOOP;
END $$;
SELECT topic, partition, "offset", convert_from(raw_value, 'UTF8')::json ->> 'v' AS value, superseded FROM upsert_kafka.errors WHERE target = 'kept'::regclass ORDER BY topic;
-- a later message of the key, in another topic, supersedes the error
\! printf '%s\n' '[p=0 ts=9500] {"id":7}|{"v":"b7"}' | test/kt produce regress_sevm_b
SELECT upsert_kafka.refresh('kept');
SELECT topic, superseded FROM upsert_kafka.errors WHERE target = 'kept'::regclass ORDER BY topic;
-- what can be read after all finds its place
ALTER FOREIGN TABLE matching OPTIONS (ADD value_json_ignore_parse_errors 'true');
SELECT upsert_kafka.retry_errors('kept');
SELECT id, v, n, topic, part FROM kept WHERE id BETWEEN 7 AND 9 ORDER BY id;
SELECT id, v, topic, system_time FROM kept_history WHERE id = 7 ORDER BY system_time;
SELECT * FROM kept EXCEPT SELECT * FROM matching;
SELECT * FROM matching EXCEPT SELECT * FROM kept;
SELECT topic, "offset" FROM upsert_kafka.errors WHERE target = 'kept'::regclass ORDER BY topic;

-- === from one topic to a list, with history ===
CREATE FOREIGN TABLE widened (
    id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic')
) SERVER sevm_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_sevm_c', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('widened', 'wide');
SELECT upsert_kafka.refresh('wide');
ALTER FOREIGN TABLE widened OPTIONS (SET topic 'regress_sevm_a;regress_sevm_c');
-- numbers that the history knows stay, also if a rebuild is what comes next
SELECT upsert_kafka.rebuild('wide');
SELECT source, topic, partition FROM upsert_kafka.topic_source WHERE target = 'wide'::regclass ORDER BY source;
SELECT * FROM wide EXCEPT SELECT * FROM widened;
SELECT * FROM widened EXCEPT SELECT * FROM wide;
-- back to the one: the other's rows are history that it no longer reads, and stay until they are discarded
ALTER FOREIGN TABLE widened OPTIONS (SET topic 'regress_sevm_c');
SELECT upsert_kafka.rebuild('wide');
SELECT upsert_kafka.refresh('wide');
SELECT topic, count(*) FROM wide_history GROUP BY topic ORDER BY topic;
SELECT upsert_kafka.rebuild('wide', discard_history => true);
SELECT upsert_kafka.refresh('wide');
SELECT topic, count(*) FROM wide_history GROUP BY topic ORDER BY topic;
SELECT count(*) FROM upsert_kafka.topic_source WHERE target = 'wide'::regclass;

-- === a list that changes; here without history ===
CREATE FOREIGN TABLE listed (
    id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic')
) SERVER sevm_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_sevm_c', key_format 'json', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('listed', 'current', history => false);
SELECT upsert_kafka.refresh('current');
-- over one plain topic numbers are partitions, and nothing is stored of them
SELECT count(*) FROM upsert_kafka.topic_source WHERE target = 'current'::regclass;
SELECT * FROM current ORDER BY id;
-- a topic joins: it is read from its beginning
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_b;regress_sevm_c');
SELECT upsert_kafka.refresh('current');
SELECT * FROM current ORDER BY id;
SELECT source, topic, partition FROM upsert_kafka.topic_source WHERE target = 'current'::regclass ORDER BY source;
-- one that does not exist is no state of the table: it is asked for again
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_b;regress_sevm_c;regress_sevm_d');
SELECT upsert_kafka.refresh('current');
SELECT state FROM upsert_kafka.tables WHERE target = 'current'::regclass;
\! test/kt create regress_sevm_d -p 1
\! printf '%s\n' '[p=0 ts=20000] {"id":1}|{"v":"d1"}' | test/kt produce regress_sevm_d
SELECT upsert_kafka.refresh('current');
SELECT * FROM current WHERE id = 1;
-- a topic leaves: its rows stay, and it goes on where it was when it comes back
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_c');
\! printf '%s\n' '[p=0 ts=21000] {"id":1}|{"v":"d1 later"}' | test/kt produce regress_sevm_d
SELECT upsert_kafka.refresh('current');
SELECT * FROM current ORDER BY id;
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_c;regress_sevm_d');
SELECT upsert_kafka.refresh('current');
SELECT * FROM current WHERE id = 1;
-- rebuild() does away with what it does not read
SELECT upsert_kafka.rebuild('current');
SELECT upsert_kafka.refresh('current');
SELECT * FROM current EXCEPT SELECT * FROM listed;
SELECT * FROM listed EXCEPT SELECT * FROM current;
-- other topics altogether are another table's
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_a;regress_sevm_b');
SELECT upsert_kafka.refresh('current');
SELECT error_message FROM upsert_kafka.tables WHERE target = 'current'::regclass;
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_c;regress_sevm_d');
SELECT upsert_kafka.resume('current');
SELECT upsert_kafka.refresh('current');
-- a topic of the list is deleted: the table waits until the list says so, too
\! test/kt delete regress_sevm_d
SELECT upsert_kafka.refresh('current');
SELECT state, error_message FROM upsert_kafka.tables WHERE target = 'current'::regclass;
ALTER FOREIGN TABLE listed OPTIONS (SET topic 'regress_sevm_c;regress_sevm_b');
SELECT upsert_kafka.resume('current');
SELECT upsert_kafka.refresh('current');
SELECT state FROM upsert_kafka.tables WHERE target = 'current'::regclass;

-- === a pattern that matches nothing yet, and an append table ===
CREATE FOREIGN TABLE log_topics (
    v text, topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset')
) SERVER sevm_kafka OPTIONS (connector 'kafka', topic_pattern 'regress_sevm_d', value_format 'json', scan_startup_mode 'latest-offset');
SELECT upsert_kafka.materialize('log_topics', 'log');
SELECT upsert_kafka.refresh('log');
SELECT upsert_kafka.wait_for('log');
\! test/kt create regress_sevm_d -p 2
\! printf '%s\n' '[p=1 ts=1000] |{"v":"x"}' | test/kt produce regress_sevm_d
-- discovered topics are read from their start, whatever the start mode is
SELECT upsert_kafka.refresh('log');
SELECT * FROM log;

SELECT count(upsert_kafka.drop(target)) FROM upsert_kafka.tables;
SELECT count(*) FROM upsert_kafka.topic_source;
\! for t in regress_sevm_a regress_sevm_b regress_sevm_c regress_sevm_d; do test/kt delete $t --if-exists; done
SET client_min_messages = warning;
DROP SCHEMA sevm CASCADE;
DROP SERVER sevm_kafka CASCADE;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
