-- === DDL on maintained tables: followed, refused, cleaned up ===
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER ddl_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE SCHEMA ddl;
CREATE SCHEMA ddl2;
SET search_path = ddl, public;
CREATE FOREIGN TABLE src (id int OPTIONS (key 'true'), x text, "Y" int, at timestamptz)
  SERVER ddl_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('src', '"MyT"', event_time => 'at');
SELECT upsert_kafka.materialize('src', 'plain', history => false);

-- columns of the current table and its parts, in one line each, and what the registration knows
CREATE VIEW public.ddl_columns AS
SELECT relname, string_agg(attname, ' ' ORDER BY attnum) FILTER (WHERE attname !~ '^__') AS columns
  FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
 WHERE relnamespace::regnamespace::text LIKE 'ddl%' AND relkind IN ('r', 'f') AND relname <> 'src'
 GROUP BY relname ORDER BY relname;
CREATE VIEW public.ddl_map AS
SELECT target, columns, source_columns, key_columns, event_time FROM upsert_kafka.maintained_table ORDER BY target::text;

-- === columns (K03) ===
-- dropped: history and versions lose it, too
ALTER TABLE "MyT" DROP COLUMN x;
ALTER TABLE plain DROP COLUMN x;
SELECT * FROM public.ddl_columns;
-- added: the topic fills it where the foreign table has a column of that name
ALTER TABLE "MyT" ADD COLUMN x text, ADD COLUMN mine jsonb;
ALTER TABLE plain ADD COLUMN x text;
-- renamed: in all of them, key columns included; what it is called in the foreign table stays
ALTER TABLE "MyT" RENAME COLUMN "Y" TO "Why not";
ALTER TABLE "MyT" RENAME id TO key;
ALTER TABLE plain RENAME id TO key;
SELECT * FROM public.ddl_columns;
SELECT * FROM public.ddl_map;
SELECT oid::regprocedure, proargnames FROM pg_proc WHERE proname = 'MyT__as_of' AND pronargs = 2 ORDER BY 1;
-- drop and add in one command is no rename
ALTER TABLE "MyT" DROP COLUMN mine, ADD COLUMN mine2 text;
SELECT columns FROM public.ddl_columns WHERE relname LIKE 'MyT%';

-- a new column of the foreign table: add it to both, it is filled from then on
ALTER FOREIGN TABLE src ADD COLUMN z numeric(10,2);
ALTER TABLE "MyT" ADD COLUMN z numeric;
ALTER TABLE "MyT" ADD COLUMN z numeric(10,2);
-- the foreign table's names may change
ALTER FOREIGN TABLE src RENAME COLUMN at TO at_time;
ALTER FOREIGN TABLE src RENAME COLUMN z TO zz;
SELECT * FROM public.ddl_map;
-- the functions know its time zone
ALTER FOREIGN TABLE src OPTIONS (ADD time_zone 'Europe/Berlin');
SELECT prosrc FROM pg_proc WHERE oid = 'ddl."MyT__as_of"(timestamp)'::regprocedure;

-- === refused ===
-- keys
ALTER TABLE "MyT" DROP COLUMN key;
ALTER TABLE "MyT" DROP CONSTRAINT "MyT_pkey";
-- another primary key on the same columns is as good
ALTER TABLE "MyT" DROP CONSTRAINT "MyT_pkey", ADD CONSTRAINT "MyT_pkey2" PRIMARY KEY (key);
-- types
ALTER TABLE "MyT" ALTER COLUMN x TYPE varchar(10);
ALTER FOREIGN TABLE src ALTER COLUMN x TYPE varchar(10);
-- columns that no message could fill
ALTER TABLE "MyT" ADD COLUMN n int DEFAULT 1;
ALTER TABLE "MyT" ADD COLUMN n int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE "MyT" ADD COLUMN n int NOT NULL;
ALTER TABLE "MyT" ADD COLUMN __n int;
ALTER TABLE "MyT" RENAME COLUMN x TO system_time;
-- ways around the guard, and around the log
CREATE TABLE parent (LIKE "MyT");
ALTER TABLE "MyT" INHERIT parent;
CREATE TABLE parted (LIKE "MyT") PARTITION BY LIST (key);
ALTER TABLE parted ATTACH PARTITION "MyT" DEFAULT;
DROP TABLE parent, parted;
ALTER TABLE "MyT" SET UNLOGGED;
-- parts by themselves, unless they stay as they are
ALTER TABLE "MyT__versions" ADD COLUMN n int;
ALTER FOREIGN TABLE "MyT_history" RENAME TO h;
ALTER TABLE plain__origins SET SCHEMA ddl2;
ALTER TABLE "MyT__versions" SET (autovacuum_enabled = off);
CREATE INDEX ON "MyT__versions" (x);
DROP TABLE "MyT__versions" CASCADE;
DROP FOREIGN TABLE "MyT_history" CASCADE;
DROP TABLE plain__origins;
-- the source
ALTER FOREIGN TABLE src DROP COLUMN x;
ALTER FOREIGN TABLE src DROP COLUMN at_time;
DROP FOREIGN TABLE src;
DROP SERVER ddl_kafka CASCADE;
-- the event time fills no column here, and is needed all the same
BEGIN;
ALTER TABLE "MyT" DROP COLUMN at;
ALTER TABLE plain DROP COLUMN at;
SAVEPOINT s;
ALTER FOREIGN TABLE src DROP COLUMN at_time;
ROLLBACK TO s;
ALTER FOREIGN TABLE src ALTER COLUMN at_time TYPE text;
ROLLBACK;
-- a name whose parts would not fit
ALTER TABLE "MyT" RENAME TO x234567890123456789012345678901234567890123456789012345;
-- a name that is taken
CREATE TABLE other_history ();
ALTER TABLE "MyT" RENAME TO other;
DROP TABLE other_history;

-- === name, schema, owner ===
-- what others have built on the functions stays
CREATE VIEW public.ddl_view AS SELECT key FROM "MyT__as_of"('2026-01-01 12:00+00');
ALTER TABLE "MyT" RENAME TO t;
ALTER TABLE t SET SCHEMA ddl2;
ALTER TABLE plain RENAME TO p;
SELECT pg_get_viewdef('public.ddl_view') LIKE '%ddl2.t__as_of(%' AS follows;
ALTER SCHEMA ddl2 RENAME TO ddl3;
SELECT prosrc FROM pg_proc WHERE oid = 'ddl3.t__as_of(timestamptz, int)'::regprocedure;
CREATE ROLE regress_ddl_owner;
GRANT CREATE, USAGE ON SCHEMA ddl3 TO regress_ddl_owner;
ALTER TABLE ddl3.t OWNER TO regress_ddl_owner;
SELECT relname, relnamespace::regnamespace, relowner::regrole FROM pg_class
 WHERE relnamespace::regnamespace::text LIKE 'ddl%' AND relkind <> 'i' ORDER BY relname;
SELECT DISTINCT proname, pronamespace::regnamespace, proowner::regrole FROM pg_proc
 WHERE pronamespace::regnamespace::text LIKE 'ddl%' ORDER BY proname;
SELECT * FROM public.ddl_map;

-- === other people's DDL is not our business ===
CREATE TABLE yours (a int PRIMARY KEY, b int);
ALTER TABLE yours ADD c int DEFAULT 1, DROP CONSTRAINT yours_pkey, ADD __d int;
ALTER TABLE yours RENAME b TO system_time;
DROP TABLE yours;

-- === without its guard a table is left alone ===
-- pg_restore --clean drops the triggers first, and everything else one by one
DROP TRIGGER upsert_kafka_guard ON p;
SELECT target, state FROM upsert_kafka.tables ORDER BY target::text;
-- disabled is as good as dropped
ALTER TABLE ddl3.t DISABLE TRIGGER upsert_kafka_guard;
SELECT state FROM upsert_kafka.tables WHERE target = 'ddl3.t'::regclass;
SELECT upsert_kafka.resume('ddl3.t');
ALTER TABLE ddl3.t ENABLE TRIGGER upsert_kafka_guard;
SELECT state FROM upsert_kafka.tables WHERE target = 'ddl3.t'::regclass;
ALTER TABLE p DROP CONSTRAINT plain_pkey;
DROP TABLE p__origins;
-- .. and makes them last; then what must follow follows again
ALTER TABLE p ADD CONSTRAINT plain_pkey PRIMARY KEY (key);
CREATE TRIGGER upsert_kafka_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON p
	FOR EACH STATEMENT EXECUTE FUNCTION upsert_kafka.refuse_dml();
SELECT target, state, error_sqlstate, error_message FROM upsert_kafka.tables ORDER BY target::text;
-- .. and what keeps the parts with it, which no dump has, is known again
DELETE FROM pg_depend WHERE refobjid = 'ddl3.t'::regclass AND deptype = 'a' AND classid = 'pg_proc'::regclass;
SET search_path = ddl3;
DROP TRIGGER upsert_kafka_guard ON t;
CREATE TRIGGER upsert_kafka_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON t
	FOR EACH STATEMENT EXECUTE FUNCTION upsert_kafka.refuse_dml();
SET search_path = ddl, public;
SELECT count(*) FROM pg_depend WHERE refobjid = 'ddl3.t'::regclass AND deptype = 'a' AND classid = 'pg_proc'::regclass;

-- === DROP TABLE ===
-- takes its parts along, but not what others built on them
DROP TABLE ddl3.t;
DROP VIEW public.ddl_view;
BEGIN;
DROP TABLE ddl3.t;
SELECT target FROM upsert_kafka.tables;
ROLLBACK;
SELECT target FROM upsert_kafka.tables ORDER BY target::text;
-- a restored dump has lost the dependencies between them
DELETE FROM pg_depend WHERE refobjid = 'ddl3.t'::regclass AND deptype = 'a' AND classid IN ('pg_class'::regclass, 'pg_proc'::regclass)
   AND objid IN (SELECT oid FROM pg_class WHERE relname IN ('t_history', 't__versions') UNION SELECT oid FROM pg_proc WHERE proname LIKE 't\_\_%');
DROP TABLE ddl3.t;
SELECT relname FROM pg_class WHERE relnamespace = 'ddl3'::regnamespace;
SELECT proname FROM pg_proc WHERE pronamespace = 'ddl3'::regnamespace;
-- target and source in one command
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA ddl CASCADE;
RESET client_min_messages;
SELECT count(*) FROM upsert_kafka.maintained_table;

-- === DROP EXTENSION leaves the tables as plain tables ===
BEGIN;
CREATE FOREIGN TABLE ddl3.src (id int OPTIONS (key 'true'), x text)
  SERVER ddl_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('ddl3.src', 't');
SET LOCAL client_min_messages = warning;
DROP EXTENSION upsert_kafka CASCADE;
SELECT relname FROM pg_class WHERE relnamespace = 'ddl3'::regnamespace AND relkind <> 'i' ORDER BY relname;
INSERT INTO ddl3.t VALUES (1, 'a');
ROLLBACK;

DROP VIEW public.ddl_columns, public.ddl_map;
DROP SCHEMA ddl3 CASCADE;
DROP ROLE regress_ddl_owner;
DROP SERVER ddl_kafka;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
