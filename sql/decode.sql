-- upsert_kafka.decode(): what one message means to a foreign table, without any Kafka.
\set VERBOSITY default
CREATE SERVER dry FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');

-- === upserts and deletes ========================================================
CREATE FOREIGN TABLE dry (id int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dry
	OPTIONS (connector 'upsert-kafka', topic 'dry', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"v": "a"}');
-- a tombstone: key and metadata columns only
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', NULL);
-- X05: key and value disagree, the key wins
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"id": 2, "v": "a"}');
-- A12: a value is the whole new row; what it lacks is NULL
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{}');
-- A05: nothing but key columns
CREATE FOREIGN TABLE dry_link (scope text OPTIONS (key 'true'), role text OPTIONS (key 'true')) SERVER dry
	OPTIONS (connector 'upsert-kafka', topic 'dry', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::dry_link, '{"scope": "s2", "role": "r1"}', '{}');
-- A08: key columns go through their type's input function
CREATE FOREIGN TABLE dry_uuid (id uuid OPTIONS (key 'true'), v text) SERVER dry
	OPTIONS (connector 'upsert-kafka', topic 'dry', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::dry_uuid, '{"id": "550E8400-E29B-41D4-A716-446655440000"}', NULL);
SELECT * FROM upsert_kafka.decode(NULL::dry_uuid, '{"id": "550e8400e29b41d4a716446655440000"}', NULL);

-- === raw ========================================================================
CREATE FOREIGN TABLE dry_raw (k text OPTIONS (key 'true'), v text) SERVER dry
	OPTIONS (connector 'upsert-kafka', topic 'dry', key_format 'raw', value_format 'raw');
-- A04: zero length is not null
SELECT k, v, v IS NULL AS is_null FROM upsert_kafka.decode(NULL::dry_raw, 'k1', '');
SELECT k, v, v IS NULL AS is_null FROM upsert_kafka.decode(NULL::dry_raw, '', NULL);
-- A09: a raw key keeps its quotes
SELECT * FROM upsert_kafka.decode(NULL::dry_raw, '"order-18"', 'a');

-- === messages that are wrong ====================================================
-- the text says where, and whether it was the key or the value
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"v": ');
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": "one"}', '{"v": "a"}');
SELECT * FROM upsert_kafka.decode(NULL::dry, 'order-17', '{"v": "a"}');
-- X01: no key, with and without a value; a key that lacks its column
DO $$ BEGIN
	PERFORM upsert_kafka.decode(NULL::dry, NULL, '{"id": 1, "v": "a"}');
EXCEPTION WHEN not_null_violation THEN RAISE NOTICE '% %', sqlstate, sqlerrm;
END $$;
SELECT * FROM upsert_kafka.decode(NULL::dry, NULL, NULL);
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"ID": 1}', NULL);
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": null}', '{"v": "a"}');
-- domains: their checks are the message's errors, too
CREATE DOMAIN dry_positive AS int CHECK (VALUE > 0);
ALTER FOREIGN TABLE dry ADD COLUMN n dry_positive;
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"n": 5}');
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"n": -5}');
-- with on_error 'skip' there is nothing to hint at
ALTER FOREIGN TABLE dry OPTIONS (ADD on_error 'skip');
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"n": "x"}');

-- === columns come and go ========================================================
ALTER FOREIGN TABLE dry DROP COLUMN v;
ALTER FOREIGN TABLE dry ADD COLUMN "Mixed Case" text OPTIONS (field 'mixedCase'), ADD COLUMN tail int;
SELECT * FROM upsert_kafka.decode(NULL::dry, '{"id": 1}', '{"v": "gone", "mixedCase": "M", "n": 7, "tail": 8}');

-- === append tables ==============================================================
-- a null value is a row, a null key leaves its columns NULL
CREATE FOREIGN TABLE dry_log (k text OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind')) SERVER dry
	OPTIONS (connector 'kafka', topic 'dry', key_format 'json', value_format 'json');
SELECT * FROM upsert_kafka.decode(NULL::dry_log, '{"k": "x"}', '{"v": "a"}');
SELECT * FROM upsert_kafka.decode(NULL::dry_log, '{"k": "x"}', NULL);
SELECT * FROM upsert_kafka.decode(NULL::dry_log, NULL, '{"v": "a"}');
SELECT * FROM upsert_kafka.decode(NULL::dry_log, '{}', '{}');

-- === metadata ===================================================================
CREATE TYPE dry_header AS (name text, value bytea);
CREATE FOREIGN TABLE dry_meta (
	topic text OPTIONS (metadata 'topic'), p int OPTIONS (metadata 'partition'), o bigint OPTIONS (metadata 'offset'),
	ts timestamptz OPTIONS (metadata 'timestamp'), tt text OPTIONS (metadata 'timestamp-type'),
	h jsonb OPTIONS (metadata 'headers'), ha dry_header[] OPTIONS (metadata 'headers'),
	e int OPTIONS (metadata 'leader-epoch'), k bytea OPTIONS (metadata 'raw_key'), v bytea OPTIONS (metadata 'raw_value'),
	kt text OPTIONS (metadata 'raw key')
) SERVER dry OPTIONS (connector 'kafka', topic 'dry', value_format 'raw');
\x
SELECT * FROM upsert_kafka.decode(NULL::dry_meta, 'key', '\x00ff');
SELECT * FROM upsert_kafka.decode(NULL::dry_meta, NULL, '');
\x
-- bytes that are no text
SELECT * FROM upsert_kafka.decode(NULL::dry_meta, '\xff', NULL);

-- === settings of the session don't show =========================================
CREATE FOREIGN TABLE dry_time (id int OPTIONS (key 'true'), ts timestamptz, d date) SERVER dry
	OPTIONS (connector 'upsert-kafka', topic 'dry', key_format 'json', value_format 'json', time_zone 'Asia/Kolkata');
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, DMY';
SELECT * FROM upsert_kafka.decode(NULL::dry_time, '{"id": 1}', '{"ts": "2026-03-01 12:00:00", "d": "2026-03-04"}');
-- the session's settings are back, after an error as well
SELECT '05/04/2026'::date;
SELECT * FROM upsert_kafka.decode(NULL::dry_time, '{"id": 1}', '{"ts": "noon"}');
SELECT '05/04/2026'::date;
SHOW TimeZone;
RESET DateStyle;
RESET TimeZone;

-- === who may ====================================================================
CREATE ROLE dry_user;
GRANT USAGE ON SCHEMA upsert_kafka TO dry_user;
SET ROLE dry_user;
SELECT * FROM upsert_kafka.decode(NULL::dry_raw, 'k', 'v');
RESET ROLE;
GRANT SELECT ON dry_raw TO dry_user;
SET ROLE dry_user;
SELECT * FROM upsert_kafka.decode(NULL::dry_raw, 'k', 'v');
RESET ROLE;
DROP OWNED BY dry_user;
DROP ROLE dry_user;
SELECT * FROM upsert_kafka.decode(1, 'k', 'v');

\set VERBOSITY terse
DROP SERVER dry CASCADE;
DROP DOMAIN dry_positive;
DROP TYPE dry_header;
