-- === cases of the field, applied: the outcome is the same whatever the batches are ===
-- Each stream goes into five tables: applied in batches of 1, 2, 3 and 1000 messages, and loaded at once. No worker acts here:
-- refresh() does, so that batches are what they are said to be.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA applied;
SET search_path = applied, public;
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER applied_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

CREATE FUNCTION materialize_five(source text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR n IN 1..3 LOOP
		PERFORM upsert_kafka.materialize(source::regclass, source || n), upsert_kafka.refresh((source || n)::regclass);
	END LOOP;
	PERFORM upsert_kafka.materialize(source::regclass, source || 1000), upsert_kafka.refresh((source || 1000)::regclass);
END $$;
CREATE FUNCTION apply_five(source text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n text; different bigint; messages bigint[] := '{}';
BEGIN
	PERFORM upsert_kafka.materialize(source::regclass, source || '_loaded');
	FOREACH n IN ARRAY '{1,2,3,1000,_loaded}'::text[] LOOP
		PERFORM set_config('upsert_kafka.batch_rows', CASE n WHEN '_loaded' THEN '10000' ELSE n END, true);
		messages := messages || upsert_kafka.refresh((source || n)::regclass);
		EXECUTE format('SELECT count(*) FROM ((TABLE %1$I EXCEPT ALL TABLE %2$I) UNION ALL (TABLE %2$I EXCEPT ALL TABLE %1$I)) d', source || n, source || 1) INTO different;
		IF different > 0 THEN RETURN format('current table %s differs', n); END IF;
		EXECUTE format('SELECT count(*) FROM ((TABLE %1$I EXCEPT ALL TABLE %2$I) UNION ALL (TABLE %2$I EXCEPT ALL TABLE %1$I)) d',
			source || n || '_history', source || 1 || '_history') INTO different;
		IF different > 0 THEN RETURN format('history %s differs', n); END IF;
		-- what a query finds in the topic is what was applied
		EXECUTE format('SELECT count(*) FROM ((TABLE %1$I EXCEPT ALL TABLE %2$I) UNION ALL (TABLE %2$I EXCEPT ALL TABLE %1$I)) d', source || n, source) INTO different;
		IF different > 0 THEN RETURN format('topic and table %s differ', n); END IF;
	END LOOP;
	RETURN format('all the same, messages: %s', messages);
END $$;
CREATE FUNCTION seconds(r tstzrange) RETURNS text LANGUAGE sql AS $$
	SELECT format('[%s, %s)', extract(epoch FROM lower(r))::numeric::float, extract(epoch FROM upper(r))::numeric::float)
$$;

-- === one partition, a key for each case ===
\! test/kt create applied_t --fresh
CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_t', key_format 'json', value_format 'json');
SELECT materialize_five('t');
\o |test/kt produce applied_t
-- A01: upsert, delete, upsert (key 1); upsert, delete (key 2)
\qecho '[ts=1000] {"id":1}|{"v":"a"}'
\qecho '[ts=2000] {"id":1}|\\N'
\qecho '[ts=3000] {"id":1}|{"v":"b"}'
\qecho '[ts=1000] {"id":2}|{"v":"x"}'
\qecho '[ts=2000] {"id":2}|\\N'
-- A02: a hot key
\qecho '[ts=1000] {"id":3}|{"v":"a"}'
\qecho '[ts=2000] {"id":3}|{"v":"b"}'
\qecho '[ts=3000] {"id":3}|{"v":"c"}'
-- A11: a delete twice; a delete of a key that never was
\qecho '[ts=1000] {"id":4}|{"v":"a"}'
\qecho '[ts=2000] {"id":4}|\\N'
\qecho '[ts=3000] {"id":4}|\\N'
\qecho '[ts=1000] {"id":5}|\\N'
-- K01: two changes at one moment
\qecho '[ts=1000] {"id":11}|{"v":"a"}'
\qecho '[ts=2000] {"id":11}|{"v":"b"}'
\qecho '[ts=2000] {"id":11}|{"v":"c"}'
-- K02: time goes backwards
\qecho '[ts=1000] {"id":12}|{"v":"a"}'
\qecho '[ts=500] {"id":12}|{"v":"b"}'
\qecho '[ts=1500] {"id":12}|{"v":"c"}'
-- K05: NULL is a value; the same again
\qecho '[ts=1000] {"id":13}|{}'
\qecho '[ts=2000] {"id":13}|{"v":"x"}'
\qecho '[ts=3000] {"id":13}|{"v":"x"}'
-- K06: delete and insert again
\qecho '[ts=1000] {"id":14}|{"v":"a"}'
\qecho '[ts=2000] {"id":14}|\\N'
\qecho '[ts=3000] {"id":14}|{"v":"b"}'
-- X05: the key wins
\qecho '[ts=1000] {"id":15}|{"id":16,"v":"a"}'
\qecho '[ts=2000] {"id":15}|\\N'
-- X12: a field that means nothing to json is plain data
\qecho '[ts=1000] {"id":17}|{"v":"b","__deleted":"true"}'
\o
SELECT apply_five('t');
SELECT * FROM t1 ORDER BY id;
-- K01: of the two changes at one moment the last one counts, the other lasted for no time.
-- K02: by event time b came first: history is by event time, the current row is the topic's last word.
-- K05: the same value again is a version of its own (its message is), never two that are open.
SELECT id, v, seconds(system_time) FROM t1_history ORDER BY id, system_time;
SELECT id, count(*) FROM t1_history WHERE upper_inf(system_time) GROUP BY id HAVING count(*) > 1;
-- K06 as of each moment
SELECT s AS seconds, r.v FROM unnest('{0.999,1,1.999,2,2.999,3,1e9}'::float[]) s LEFT JOIN LATERAL t1__as_of(to_timestamp(s), 14) r ON true;
-- the position is the next offset
SELECT * FROM upsert_kafka.position('t1');

-- === A05: only key columns ===
\! test/kt create applied_links --fresh
CREATE FOREIGN TABLE links (scope text OPTIONS (key 'true'), role text OPTIONS (key 'true'))
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_links', key_format 'json', value_format 'json');
SELECT materialize_five('links');
\o |test/kt produce applied_links
\qecho '[ts=1000] {"scope":"s1","role":"r1"}|{"scope":"s1","role":"r1"}'
\qecho '[ts=2000] {"scope":"s1","role":"r1"}|{"scope":"s1","role":"r1"}'
\qecho '[ts=3000] {"scope":"s2","role":"r1"}|{}'
\o
SELECT apply_five('links');
SELECT * FROM links1 ORDER BY 1, 2;

-- === A06, A08: one key in many spellings ===
\! test/kt create applied_spelling --fresh
CREATE FOREIGN TABLE spelling (region text OPTIONS (key 'true'), n numeric OPTIONS (key 'true'), u uuid OPTIONS (key 'true'), v text)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_spelling', key_format 'json', value_format 'json');
SELECT materialize_five('spelling');
\o |test/kt produce applied_spelling
\qecho '[ts=1000] {"region":"eu","n":7.0,"u":"550E8400-E29B-41D4-A716-446655440000"}|{"v":"a"}'
\qecho '[ts=2000] { "u" : "550e8400e29b41d4a716446655440000", "n" : 7, "region" : "eu" }|{"v":"b"}'
\qecho '[ts=3000] {"region":"e\\u0075","n":"7.00","u":"{550e8400-e29b-41d4-a716-446655440000}"}|{"v":"c"}'
\o
SELECT apply_five('spelling');
SELECT region, n = 7 AS seven, v FROM spelling1;
\! printf '%s\n' '[ts=4000] {"n":7e0,"region":"eu","u":"550e8400e29b41d4a716446655440000"}|∅' | test/kt produce applied_spelling
SELECT upsert_kafka.refresh('spelling1'), upsert_kafka.refresh('spelling_loaded');
SELECT count(*) FROM spelling1;
SELECT count(*) FROM spelling_loaded;
SELECT region, v, seconds(system_time) FROM spelling1_history ORDER BY system_time;

-- === A04, A09: raw keys and values; empty is not null ===
\! test/kt create applied_raw --fresh
CREATE FOREIGN TABLE raw (k text OPTIONS (key 'true'), v text)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_raw', key_format 'raw', value_format 'raw');
SELECT materialize_five('raw');
\! printf '%s\n' '[ts=1000] k1|z' '[ts=1000] k2|z' '[ts=2000] k1|' '[ts=2000] k2|∅' '[ts=1000] "order-18"|b' | test/kt produce applied_raw
SELECT apply_five('raw');
SELECT k, length(k), v, v IS NULL AS "null" FROM raw1 ORDER BY k;

-- === A12: an upsert is the whole row; defaults are not the message's ===
\! test/kt create applied_whole --fresh
CREATE FOREIGN TABLE whole (id int OPTIONS (key 'true'), a text, b text DEFAULT 'zzz', c int)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_whole', key_format 'json', value_format 'json');
SELECT materialize_five('whole');
\! printf '%s\n' '[ts=1000] {"id":1}|{"a":"x","b":"y","c":1}' '[ts=2000] {"id":1}|{"a":"x2"}' '[ts=3000] {"id":1}|{"a":"x3","b":null,"c":2}' | test/kt produce applied_whole
SELECT apply_five('whole');
SELECT id, a, b, c, seconds(system_time) FROM whole1_history ORDER BY system_time;

-- === X04: a key in two partitions; whatever comes in first ===
-- Each partition's last message, then the greatest time: b of partition 3 (2000), though c (1500) is later in partition 0.
\! test/kt create applied_parts -p 4 --fresh
CREATE FOREIGN TABLE parts (id int OPTIONS (key 'true'), v text)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_parts', key_format 'json', value_format 'json');
SELECT materialize_five('parts');
SELECT upsert_kafka.materialize('parts', 'parts_0_first');
SELECT upsert_kafka.refresh('parts_0_first');
\! printf '%s\n' '[p=0 ts=1000] {"id":1}|{"v":"a"}' '[p=0 ts=1500] {"id":1}|{"v":"c"}' | test/kt produce applied_parts
SELECT upsert_kafka.refresh('parts_0_first');
\! printf '%s\n' '[p=3 ts=2000] {"id":1}|{"v":"b"}' | test/kt produce applied_parts
SELECT upsert_kafka.refresh('parts_0_first');
SELECT apply_five('parts');
SELECT * FROM parts_0_first;
-- the other way round: partition 3 comes in first
\! test/kt create applied_parts_3 -p 4 --fresh
CREATE FOREIGN TABLE parts_3 (id int OPTIONS (key 'true'), v text)
  SERVER applied_kafka OPTIONS (connector 'upsert-kafka', topic 'applied_parts_3', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('parts_3', 'parts_3_first');
SELECT upsert_kafka.refresh('parts_3_first');
\! printf '%s\n' '[p=3 ts=2000] {"id":1}|{"v":"b"}' | test/kt produce applied_parts_3
SELECT upsert_kafka.refresh('parts_3_first');
\! printf '%s\n' '[p=0 ts=1000] {"id":1}|{"v":"a"}' | test/kt produce applied_parts_3
SELECT upsert_kafka.refresh('parts_3_first');
\! printf '%s\n' '[p=0 ts=1500] {"id":1}|{"v":"c"}' | test/kt produce applied_parts_3
SELECT upsert_kafka.refresh('parts_3_first');
SELECT * FROM parts_3_first;
SELECT id, v, seconds(system_time) FROM parts_3_first_history ORDER BY system_time;
-- no rows: the histories are one, too
(TABLE parts_0_first_history EXCEPT ALL TABLE parts_3_first_history) UNION ALL (TABLE parts_3_first_history EXCEPT ALL TABLE parts_0_first_history);
(TABLE parts1_history EXCEPT ALL TABLE parts_3_first_history) UNION ALL (TABLE parts_3_first_history EXCEPT ALL TABLE parts1_history);

-- === away with it ===
SET client_min_messages = warning;
SELECT count(upsert_kafka.drop(target)) FROM upsert_kafka.tables;
DROP SERVER applied_kafka CASCADE;
DROP SCHEMA applied CASCADE;
RESET client_min_messages;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
\! for t in t links spelling raw whole parts parts_3; do test/kt delete applied_$t; done
