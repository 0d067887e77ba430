-- === maintained tables: what materialize() makes, and what it refuses ===
-- No worker acts here: nothing in this file needs a broker.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER mat_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE SCHEMA mat;
SET search_path = mat, public;
CREATE FOREIGN TABLE rates_topic (
	currency text OPTIONS (key 'true'),
	"Rate" numeric(10,4) NOT NULL,
	note varchar(20) COLLATE "C",
	update_time timestamptz OPTIONS (metadata 'timestamp'),
	gone int
) SERVER mat_kafka OPTIONS (connector 'upsert-kafka', topic 'currency_rates', key_format 'json', value_format 'json');
-- K03: a dropped column leaves a hole in the attribute numbers
ALTER FOREIGN TABLE rates_topic DROP COLUMN gone;

-- an unqualified target goes to the schema of the foreign table
SELECT upsert_kafka.materialize('rates_topic', target => 'currency_rates', event_time => 'update_time');

-- current table, versions and history; each with its comment
SELECT relname, relkind, reloptions, obj_description(oid, 'pg_class') AS comment
  FROM pg_class WHERE relnamespace = 'mat'::regnamespace AND relkind <> 'i' ORDER BY relname;
-- the current table has the real types, NOT NULL and a primary key; a delete has only its key, so versions don't
SELECT attrelid::regclass AS relation, attname, format_type(atttypid, atttypmod), collname, attnotnull
  FROM pg_attribute LEFT JOIN pg_collation c ON c.oid = attcollation AND collname <> 'default'
 WHERE attrelid IN ('currency_rates'::regclass, 'currency_rates__versions'::regclass, 'currency_rates_history'::regclass)
   AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text, attnum;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'mat' ORDER BY 1;
-- AS OF functions
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'mat'::regnamespace ORDER BY oid::regprocedure::text;
-- nothing has been read yet
SELECT target, source, topic, history, state, key_columns, event_time, current_by, on_error, errors FROM upsert_kafka.tables;
SELECT * FROM upsert_kafka.position('currency_rates');

-- === only the topic changes it ===
INSERT INTO currency_rates VALUES ('Euro', 1.18);
UPDATE currency_rates SET note = 'x';
DELETE FROM currency_rates;
TRUNCATE currency_rates;
COPY currency_rates FROM stdin;
\.
TRUNCATE currency_rates__versions;

-- === other shapes ===
-- no history: origins instead, and the schema may be named
CREATE SCHEMA mat2;
SELECT upsert_kafka.materialize('rates_topic', 'mat2."Rates"', history => false, on_error => 'skip');
SELECT relname FROM pg_class WHERE relnamespace = 'mat2'::regnamespace ORDER BY relname;
-- an append topic has no key: a table of messages; with a primary key it is versioned like an upsert topic
CREATE FOREIGN TABLE orders_topic (
	id int, amount numeric, order_time timestamp,
	part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset')
) SERVER mat_kafka OPTIONS (connector 'kafka', topic 'orders', value_format 'json', on_error 'skip');
SELECT upsert_kafka.materialize('orders_topic', 'orders');
SELECT upsert_kafka.materialize('orders_topic', 'orders_by_id', primary_key => '{id}', event_time => 'order_time', current_by => 'event_time', on_error => 'stop');
SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid::regclass::text LIKE 'orders%' AND contype = 'p' ORDER BY 1, 2;
-- on_error is the foreign table's where it is not told
SELECT target, history, key_columns, event_time, current_by, on_error FROM upsert_kafka.tables ORDER BY target::text;

-- === refusals: names ===
-- taken, by the table itself or by one of its parts
SELECT upsert_kafka.materialize('rates_topic', 'currency_rates');
CREATE VIEW r_history AS SELECT 1;
SELECT upsert_kafka.materialize('rates_topic', 'r');
-- the longest name has 53 bytes: its versions table has 63
SELECT upsert_kafka.materialize('rates_topic', repeat('x', 54));
SELECT length(upsert_kafka.materialize('rates_topic', repeat('x', 53))::text);
SELECT upsert_kafka.materialize('rates_topic', 'nowhere.r');
SELECT upsert_kafka.materialize('rates_topic', 'a.b.c');
SELECT upsert_kafka.materialize('rates_topic', NULL);
-- names of history columns
CREATE FOREIGN TABLE reserved (k int OPTIONS (key 'true'), system_time text)
  SERVER mat_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('reserved', 'r2');
ALTER FOREIGN TABLE reserved RENAME system_time TO __offset;
SELECT upsert_kafka.materialize('reserved', 'r2');

-- === refusals: sources ===
SELECT upsert_kafka.materialize('currency_rates', 'r2');
CREATE FOREIGN TABLE changelog (k int OPTIONS (key 'true'), v text, kind text OPTIONS (metadata 'row_kind'))
  SERVER mat_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json', changelog 'true');
SELECT upsert_kafka.materialize('changelog', 'r2');
-- the row kind is no data: without the changelog it is left out
ALTER FOREIGN TABLE changelog OPTIONS (DROP changelog);
SELECT upsert_kafka.materialize('changelog', 'r2');
SELECT attname FROM pg_attribute WHERE attrelid = 'r2'::regclass AND attnum > 0 ORDER BY attnum;

-- === refusals: arguments ===
SELECT upsert_kafka.materialize('rates_topic', 'r3', event_time => 'nothing');
SELECT upsert_kafka.materialize('rates_topic', 'r3', event_time => 'note');
SELECT upsert_kafka.materialize('rates_topic', 'r3', event_time => 'update_time', history => false);
SELECT upsert_kafka.materialize('rates_topic', 'r3', current_by => 'event_time', history => false);
SELECT upsert_kafka.materialize('rates_topic', 'r3', current_by => 'clock');
SELECT upsert_kafka.materialize('rates_topic', 'r3', on_error => 'ignore');
SELECT upsert_kafka.materialize('rates_topic', 'r3', primary_key => '{note}');
SELECT upsert_kafka.materialize('orders_topic', 'r3', history => true);
SELECT upsert_kafka.materialize('orders_topic', 'r3', primary_key => '{}');
SELECT upsert_kafka.materialize('orders_topic', 'r3', primary_key => '{id,nothing}');
SELECT upsert_kafka.materialize('orders_topic', 'r3', primary_key => '{id,id}');
SELECT upsert_kafka.materialize('orders_topic', 'r3', primary_key => '{id,NULL}');

-- === drop ===
SELECT upsert_kafka.drop('rates_topic');
-- like DROP TABLE it stops at what others have built on it
CREATE VIEW euro AS SELECT * FROM currency_rates__as_of('2026-01-01 12:00+00') WHERE currency = 'Euro';
SELECT upsert_kafka.drop('currency_rates');
DROP VIEW euro;
SELECT upsert_kafka.drop('currency_rates');
SELECT upsert_kafka.drop(target) FROM (SELECT target FROM upsert_kafka.tables WHERE target <> 'mat2."Rates"'::regclass) t;
SELECT relname FROM pg_class WHERE relnamespace = 'mat'::regnamespace ORDER BY relname;
SELECT target FROM upsert_kafka.tables;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA mat, mat2 CASCADE;
RESET client_min_messages;
-- nothing is left behind in the catalogs
SELECT count(*) FROM upsert_kafka.maintained_table;
DROP SERVER mat_kafka;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
