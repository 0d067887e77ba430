-- === columns that come, go and change their names while messages flow (K03, J02) ===
\! test/kt create ddl_live --fresh
\set broker `echo "$BROKER"`
CREATE SERVER live_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE FOREIGN TABLE live_topic (id int OPTIONS (key 'true'), gone int, "X" text)
  SERVER live_kafka OPTIONS (connector 'upsert-kafka', topic 'ddl_live', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('live_topic', '"MyT"');
SELECT upsert_kafka.materialize('live_topic', 'plain', history => false);
\! printf '[ts=1000] {"id":1}|{"gone":1,"X":"a","y":"p"}\n' | test/kt produce ddl_live
SELECT upsert_kafka.wait_for('"MyT"'), upsert_kafka.wait_for('plain');

-- a column goes, another comes: from then on it is filled, old versions have NULL
ALTER TABLE "MyT" DROP COLUMN gone;
ALTER TABLE plain DROP COLUMN gone;
ALTER FOREIGN TABLE live_topic ADD COLUMN y text;
ALTER TABLE "MyT" ADD COLUMN y text;
\! printf '[ts=2000] {"id":1}|{"gone":2,"X":"b","y":"q"}\n' | test/kt produce ddl_live
SELECT upsert_kafka.wait_for('"MyT"'), upsert_kafka.wait_for('plain');
SELECT id, "X", y, extract(epoch FROM lower(system_time))::int AS from_second FROM "MyT_history" ORDER BY system_time;

-- names change, on both sides
ALTER TABLE "MyT" RENAME COLUMN "X" TO z;
ALTER TABLE "MyT" RENAME COLUMN id TO key;
ALTER FOREIGN TABLE live_topic RENAME COLUMN y TO yy;
ALTER FOREIGN TABLE live_topic ALTER COLUMN yy OPTIONS (ADD field 'y');
ALTER TABLE plain RENAME COLUMN id TO key;
\! printf '[ts=3000] {"id":1}|{"gone":3,"X":"c","y":"r"}\n[ts=3500] {"id":2}|{"X":"d"}\n' | test/kt produce ddl_live
SELECT upsert_kafka.wait_for('"MyT"'), upsert_kafka.wait_for('plain');
SELECT key, z, y, extract(epoch FROM lower(system_time))::int AS from_second FROM "MyT_history" ORDER BY key, system_time;

-- another name, another schema, and a column less
CREATE SCHEMA live;
ALTER TABLE "MyT" RENAME TO t;
ALTER TABLE t SET SCHEMA live;
ALTER TABLE live.t DROP COLUMN z;
\! printf '[ts=4000] {"id":1}|{"gone":4,"X":"e","y":"s"}\n[ts=4500] {"id":2}|∅\n' | test/kt produce ddl_live
SELECT upsert_kafka.wait_for('live.t'), upsert_kafka.wait_for('plain');
SELECT key, y, extract(epoch FROM lower(system_time))::int AS from_second, upper(system_time) IS NOT NULL AS ended FROM live.t_history ORDER BY key, system_time;
SELECT * FROM live.t__as_of(to_timestamp(2.5), 1);
SELECT * FROM live.t;
SELECT * FROM plain;

-- a drop that is rolled back changes nothing
BEGIN;
SELECT upsert_kafka.drop('live.t');
ROLLBACK;
\! printf '[ts=5000] {"id":3}|{"y":"t"}\n' | test/kt produce ddl_live
SELECT upsert_kafka.wait_for('live.t');
SELECT * FROM live.t ORDER BY key;
-- dropped and made again in one transaction, it is loaded anew
BEGIN;
DROP TABLE plain;
SELECT upsert_kafka.materialize('live_topic', 'plain', history => false);
COMMIT;
SELECT upsert_kafka.wait_for('plain');
SELECT * FROM plain ORDER BY id;

-- where event triggers are switched off a type may change on one side only: an error, and no crash
SET session_replication_role = replica;
ALTER TABLE plain ALTER COLUMN "X" TYPE int USING 1;
RESET session_replication_role;
\! printf '{"id":4}|{"X":"f"}\n' | test/kt produce ddl_live
SELECT upsert_kafka.refresh('plain');
SET session_replication_role = replica;
ALTER TABLE plain ALTER COLUMN "X" TYPE text;
RESET session_replication_role;
SELECT upsert_kafka.wait_for('plain');
SELECT id, "X" FROM plain WHERE id = 4;

DROP TABLE plain, live.t;
DROP SCHEMA live;
DROP FOREIGN TABLE live_topic;
DROP SERVER live_kafka;
\! test/kt delete ddl_live
