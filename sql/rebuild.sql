-- === rebuild: read the topic anew, with what it no longer holds kept ===
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set broker `echo ${BROKER:-127.0.0.1:9092}`
\! test/kt create regress_rebuild -p 2 --fresh
CREATE SCHEMA rebuild;
SET search_path = rebuild;
CREATE SERVER rebuild_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE rates_topic (currency text OPTIONS (key 'true'), rate int, at timestamptz)
	SERVER rebuild_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_rebuild', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('rates_topic', target => 'rates', event_time => 'at');

-- late rows, a delete, a key in two partitions
\! printf '%s\n' '[ts=2026-01-01T00:00:00Z] {"currency":"Euro"}|{"rate":1,"at":"2026-01-01 00:00:00"}' '[ts=2026-01-01T00:00:01Z] {"currency":"Yen"}|{"rate":1,"at":"2026-01-01 00:00:01"}' | test/kt produce regress_rebuild
\! printf '%s\n' '[ts=2026-01-01T00:00:10Z] {"currency":"Euro"}|{"rate":2,"at":"2026-01-01 00:00:10"}' '[ts=2026-01-01T00:00:11Z] {"currency":"Yen"}|\N' '[ts=2026-01-01T00:00:12Z] {"currency":"Euro"}|{"rate":3,"at":"2026-01-01 00:00:05"}' | test/kt produce regress_rebuild
\! printf '%s\n' '[p=1 ts=2026-01-01T00:00:13Z] {"currency":"Euro"}|{"rate":9,"at":"2026-01-01 00:00:07"}' '[ts=2026-01-01T00:00:14Z] {"currency":"Pound"}|{"rate":1,"at":"2026-01-01 00:00:06"}' | test/kt produce regress_rebuild
SELECT upsert_kafka.wait_for('rates');
SELECT * FROM rates ORDER BY currency;
SELECT * FROM rates_history ORDER BY currency, system_time;
CREATE TABLE rates_before AS TABLE rates;
CREATE TABLE history_before AS TABLE rates_history;

-- the topic forgets all of partition 0 but its last message; the table does not
\! test/kt trim regress_rebuild 0 5
SELECT upsert_kafka.rebuild('rates');
SELECT * FROM upsert_kafka.position('rates');
(TABLE rates_before EXCEPT TABLE rates) UNION ALL (TABLE rates EXCEPT TABLE rates_before);
(TABLE history_before EXCEPT TABLE rates_history) UNION ALL (TABLE rates_history EXCEPT TABLE history_before);
SELECT count(*) FROM rates_history;

-- it goes on from there
\! printf '%s\n' '[ts=2026-01-01T00:00:20Z] {"currency":"Euro"}|{"rate":4,"at":"2026-01-01 00:00:20"}' | test/kt produce regress_rebuild
SELECT upsert_kafka.wait_for('rates');
SELECT * FROM rates ORDER BY currency;

-- row security that is forced upon the owner hides rows from him, and not from the rebuild
CREATE ROLE rebuild_owner;
GRANT CREATE, USAGE ON SCHEMA rebuild TO rebuild_owner;
GRANT SELECT ON rates_topic TO rebuild_owner;
ALTER TABLE rates OWNER TO rebuild_owner;
ALTER TABLE rates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SET ROLE rebuild_owner;
SELECT count(*) FROM rates;
SELECT upsert_kafka.rebuild('rates');
RESET ROLE;
SELECT * FROM rates ORDER BY currency;
ALTER TABLE rates DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
ALTER TABLE rates OWNER TO CURRENT_USER;
DROP OWNED BY rebuild_owner;
DROP ROLE rebuild_owner;

-- a rebuild that is rolled back changes nothing, and hides nothing from others meanwhile
BEGIN;
SELECT upsert_kafka.rebuild('rates');
ROLLBACK;
SELECT count(*) FROM rates_history;

-- without its history: what the topic holds now, nothing else
SELECT upsert_kafka.rebuild('rates', discard_history => true);
SELECT upsert_kafka.wait_for('rates');
SELECT * FROM rates_history ORDER BY currency, system_time;

-- a topic made anew has nothing to do with the old history
SELECT upsert_kafka.pause('rates');
\! test/kt create regress_rebuild -p 1 --fresh
SELECT upsert_kafka.rebuild('rates');

-- === only where it can work, and only by the owner ===
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT upsert_kafka.rebuild('rates');
ROLLBACK;
SELECT upsert_kafka.rebuild('rates_before');
CREATE ROLE rebuild_other;
GRANT USAGE ON SCHEMA rebuild TO rebuild_other;
SET ROLE rebuild_other;
SELECT upsert_kafka.rebuild('rates');
RESET ROLE;

SELECT upsert_kafka."drop"('rates');
SET client_min_messages = warning;
DROP SCHEMA rebuild CASCADE;
DROP SERVER rebuild_kafka;
DROP ROLE rebuild_other;
\! test/kt delete regress_rebuild
