-- What only shows when several option lists are seen together is a warning at DDL, since a dump
-- restores column options one by one, and an error at first use.
\set VERBOSITY default
CREATE SERVER warn FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092');
CREATE FUNCTION use(text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT * FROM upsert_kafka.decode(NULL::%I, NULL, NULL)', $1);
END $$;
\set SHOW_CONTEXT never

-- === no key column ==============================================================
CREATE FOREIGN TABLE warn_t (id int, v text) SERVER warn
	OPTIONS (connector 'upsert-kafka', topic 'warn', key_format 'json', value_format 'json');
SELECT use('warn_t');
-- quiet as soon as it is right
ALTER FOREIGN TABLE warn_t ALTER COLUMN id OPTIONS (ADD key 'true');
SELECT * FROM upsert_kafka.decode(NULL::warn_t, '{"id": 1}', '{"v": "a"}');
-- and back
ALTER FOREIGN TABLE warn_t ALTER COLUMN id OPTIONS (SET key 'false');
ALTER FOREIGN TABLE warn_t ALTER COLUMN id OPTIONS (SET key 'true');

-- === a key column that is a metadata column =====================================
ALTER FOREIGN TABLE warn_t ADD COLUMN o bigint OPTIONS (key 'true', metadata 'offset');
SELECT use('warn_t');
ALTER FOREIGN TABLE warn_t DROP COLUMN o;

-- === key columns without a key format ===========================================
CREATE FOREIGN TABLE warn_log (id int OPTIONS (key 'true'), v text) SERVER warn
	OPTIONS (connector 'kafka', topic 'warn', value_format 'json');
SELECT use('warn_log');
ALTER FOREIGN TABLE warn_log OPTIONS (ADD key_format 'json');

-- === key columns named twice, or not there ======================================
ALTER FOREIGN TABLE warn_log OPTIONS (ADD key_fields 'id');
ALTER FOREIGN TABLE warn_log ALTER COLUMN id OPTIONS (DROP key);
ALTER FOREIGN TABLE warn_log OPTIONS (SET key_fields 'id;nr');
SELECT use('warn_log');
-- RENAME is seen, too
ALTER FOREIGN TABLE warn_log OPTIONS (SET key_fields 'id');
ALTER FOREIGN TABLE warn_log RENAME COLUMN id TO nr;
ALTER FOREIGN TABLE warn_log RENAME COLUMN nr TO id;
-- Flink's prefix rule: every key column has it, and the key's fields are without
ALTER FOREIGN TABLE warn_log OPTIONS (ADD key_fields_prefix 'k_', ADD value_fields_include 'EXCEPT_KEY');
ALTER FOREIGN TABLE warn_log OPTIONS (SET key_fields 'k_id');
ALTER FOREIGN TABLE warn_log RENAME COLUMN id TO k_id;
SELECT * FROM upsert_kafka.decode(NULL::warn_log, '{"id": 1}', '{"v": "a", "id": 2}');

-- === formats that fill one column ===============================================
-- A09
CREATE FOREIGN TABLE warn_raw (a text OPTIONS (key 'true'), b text OPTIONS (key 'true'), v text) SERVER warn
	OPTIONS (connector 'upsert-kafka', topic 'warn', key_format 'raw', value_format 'raw');
SELECT use('warn_raw');
ALTER FOREIGN TABLE warn_raw ALTER COLUMN b OPTIONS (DROP key);
ALTER FOREIGN TABLE warn_raw ALTER COLUMN b OPTIONS (ADD metadata 'topic');

-- === types ======================================================================
ALTER FOREIGN TABLE warn_raw ADD COLUMN m int OPTIONS (metadata 'offset');
SELECT use('warn_raw');
ALTER FOREIGN TABLE warn_raw ALTER COLUMN m TYPE bigint;
ALTER FOREIGN TABLE warn_raw ADD COLUMN ts timestamptz(0) OPTIONS (metadata 'timestamp');
ALTER FOREIGN TABLE warn_raw ALTER COLUMN ts TYPE timestamptz(3);
ALTER FOREIGN TABLE warn_raw ADD COLUMN h json OPTIONS (metadata 'headers');
CREATE TYPE warn_header AS (name text, value text);
ALTER FOREIGN TABLE warn_raw ALTER COLUMN h TYPE warn_header[];
CREATE TYPE warn_header2 AS (name text, value bytea);
ALTER FOREIGN TABLE warn_raw ALTER COLUMN h TYPE warn_header2[];
-- a key must have an order
CREATE FOREIGN TABLE warn_type (k json OPTIONS (key 'true'), v text) SERVER warn
	OPTIONS (connector 'upsert-kafka', topic 'warn', key_format 'json', value_format 'json');

-- === other people's DDL =========================================================
-- a restore is not warned: the options that it lacks come later
SET check_function_bodies = off;
CREATE FOREIGN TABLE warn_restored (id int, v text) SERVER warn
	OPTIONS (connector 'upsert-kafka', topic 'warn', key_format 'json', value_format 'json');
RESET check_function_bodies;
-- tables of other wrappers are none of our business
CREATE FOREIGN DATA WRAPPER warn_other;
CREATE SERVER warn_other FOREIGN DATA WRAPPER warn_other;
CREATE FOREIGN TABLE warn_foreign (id int) SERVER warn_other OPTIONS (anything 'goes');
ALTER FOREIGN TABLE warn_foreign ADD COLUMN v text;
SELECT use('warn_foreign');
DROP FOREIGN DATA WRAPPER warn_other CASCADE;
-- anybody is warned who may create tables
CREATE ROLE warn_user;
GRANT USAGE ON FOREIGN SERVER warn TO warn_user;
CREATE SCHEMA warn_schema AUTHORIZATION warn_user;
SET ROLE warn_user;
CREATE FOREIGN TABLE warn_schema.t (id int, v text) SERVER warn
	OPTIONS (connector 'upsert-kafka', topic 'warn', key_format 'json', value_format 'json');
ALTER FOREIGN TABLE warn_schema.t ALTER COLUMN id OPTIONS (ADD key 'true');
RESET ROLE;
DROP OWNED BY warn_user CASCADE;
DROP ROLE warn_user;
-- only as an event trigger
SELECT upsert_kafka.topic_ddl_check();

DROP SERVER warn CASCADE;
DROP TYPE warn_header, warn_header2;
DROP FUNCTION use(text);
