-- === history: what the rows of a versions table mean ===
-- Versions are written by hand here, so that each rule is seen alone; nothing needs a broker.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA hist;
SET search_path = hist, public;
CREATE SERVER hist_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE FOREIGN TABLE rates_topic (currency text OPTIONS (key 'true'), rate numeric, note text)
  SERVER hist_kafka OPTIONS (connector 'upsert-kafka', topic 'rates', key_format 'json', value_format 'json', time_zone 'Europe/Berlin');
SELECT upsert_kafka.materialize('rates_topic', 'rates');
-- versions are apply's alone to write; in replica role no trigger says so
CREATE FUNCTION boundary(seq bigint, currency text, at text, op "char", rate numeric DEFAULT NULL, "offset" bigint DEFAULT NULL) RETURNS void
LANGUAGE sql SET session_replication_role = replica AS $$
	INSERT INTO rates__versions (currency, rate, __valid_from, __seq, __op, __partition, __offset, __timestamp)
	VALUES ($2, $5, ('2026-01-01 ' || $3)::timestamptz, $1, $4, 0, coalesce($6, $1), now())
$$;

-- K06: delete and insert again. Each version reaches to the next boundary, the last one to no end
SELECT boundary(1, 'Euro', '00:00:01', 'u', 1.1), boundary(2, 'Euro', '00:00:02', 'd'), boundary(3, 'Euro', '00:00:03', 'u', 1.3);
SELECT rate, system_time FROM rates_history WHERE currency = 'Euro';
-- as of the last microsecond before a boundary, and at it: [from, to)
SELECT ts, rate FROM unnest('{"2026-01-01 00:00:00.999999","2026-01-01 00:00:01","2026-01-01 00:00:01.999999","2026-01-01 00:00:02","2026-01-01 00:00:02.999999","2026-01-01 00:00:03",infinity,-infinity}'::timestamptz[]) ts
  LEFT JOIN LATERAL rates__as_of(ts) ON true;

-- K01: two changes at one moment: the greatest sequence number holds, the other lasted for no time
SELECT boundary(11, 'Yen', '00:00:01', 'u', 1), boundary(12, 'Yen', '00:00:02', 'u', 2), boundary(13, 'Yen', '00:00:02', 'u', 3);
SELECT rate, system_time FROM rates_history WHERE currency = 'Yen';
SELECT currency, rate FROM rates__as_of('2026-01-01 00:00:02+00') ORDER BY 1;
-- an upsert and a delete at one moment: no row, and no empty range
SELECT boundary(21, 'Mark', '00:00:01', 'u', 1), boundary(22, 'Mark', '00:00:02', 'u', 2), boundary(23, 'Mark', '00:00:02', 'd');
SELECT rate, system_time FROM rates_history WHERE currency = 'Mark';

-- K02: boundaries that come late find their place by time, whatever their sequence number
SELECT boundary(31, 'Lira', '00:00:10', 'u', 1), boundary(32, 'Lira', '00:00:05', 'u', 2), boundary(33, 'Lira', '00:00:15', 'u', 3);
SELECT rate, system_time FROM rates_history WHERE currency = 'Lira';

-- derived rows: re-asserted boundaries of one holder are one version (r), ended ones show nothing (e)
SELECT boundary(41, 'Peso', '00:00:01', 'u', 1), boundary(42, 'Peso', '00:00:03', 'u', 2), boundary(43, 'Peso', '00:00:05', 'd'),
       boundary(44, 'Peso', '00:00:03', 'r', 1, 41), boundary(45, 'Peso', '00:00:05', 'r', 1, 41), boundary(46, 'Peso', '00:00:09', 'e');
SELECT rate, system_time FROM rates_history WHERE currency = 'Peso';
-- a probe sees the same version whole, from wherever it looks
SELECT ts, rate, system_time FROM unnest('{"2026-01-01 00:00:01","2026-01-01 00:00:04","2026-01-01 00:00:08","2026-01-01 00:00:09"}'::timestamptz[]) ts
  LEFT JOIN LATERAL rates__as_of(ts, 'Peso') ON true;
-- an end in the middle parts a holder's time in two
SELECT boundary(51, 'Real', '00:00:01', 'u', 1), boundary(52, 'Real', '00:00:02', 'e'), boundary(53, 'Real', '00:00:03', 'r', 1, 51);
SELECT rate, system_time FROM rates_history WHERE currency = 'Real';
-- capital letters mean the same: they only tell that several partitions wrote the key
SELECT boundary(61, 'Won', '00:00:01', 'U', 1), boundary(62, 'Won', '00:00:02', 'R', 1, 61), boundary(63, 'Won', '00:00:03', 'D');
SELECT rate, system_time FROM rates_history WHERE currency = 'Won';

-- K05: NULL is a value like others: one open version, two changes told apart by their message
SELECT boundary(71, 'Rand', '00:00:01', 'u', NULL), boundary(72, 'Rand', '00:00:02', 'u', 7), boundary(73, 'Rand', '00:00:03', 'u', 7);
SELECT rate, system_time FROM rates_history WHERE currency = 'Rand';

-- === ranges of time (SQL:2011) ===
SET session_replication_role = replica;
DELETE FROM rates__versions;
RESET session_replication_role;
SELECT boundary(1, 'Euro', '10:00', 'u', 1), boundary(2, 'Euro', '11:00', 'u', 2), boundary(3, 'Euro', '12:00', 'u', 3), boundary(4, 'Yen', '10:30', 'u', 100);
-- BETWEEN takes in the version that starts at its end, FROM .. TO does not
SELECT rate FROM rates__between('2026-01-01 10:30+00', '2026-01-01 12:00+00') WHERE currency = 'Euro' ORDER BY 1;
SELECT rate FROM rates__from_to('2026-01-01 10:30+00', '2026-01-01 12:00+00') WHERE currency = 'Euro' ORDER BY 1;
-- a version that ends at the start has ended
SELECT rate FROM rates__between('2026-01-01 11:00+00', '2026-01-01 11:00+00') ORDER BY 1;
SELECT rate FROM rates__from_to('2026-01-01 11:00+00', '2026-01-01 11:00+00') ORDER BY 1;
-- the wrong way round, or NULL: nothing, and no error
SELECT count(*) FROM rates__between('2026-01-01 12:00+00', '2026-01-01 10:00+00');
SELECT count(*) FROM rates__from_to('2026-01-01 12:00+00', '2026-01-01 10:00+00');
SELECT count(*) FROM rates__between(NULL, '2026-01-01 10:00+00');
SELECT count(*) FROM rates__from_to('2026-01-01 10:00+00', NULL);
SELECT count(*) FROM rates__as_of(NULL::timestamptz);
SELECT count(*) FROM rates__between('-infinity', 'infinity');
-- conditions of one's own on the range
SELECT currency, rate FROM rates_history WHERE upper_inf(system_time) ORDER BY 1;
SELECT currency, rate FROM rates_history WHERE system_time <@ '[2026-01-01 10:00+00,2026-01-01 12:00+00)' ORDER BY 1, 2;
SELECT rate FROM rates_history WHERE currency = 'Euro' AND system_time && 'empty';
SELECT rate FROM rates_history WHERE currency = 'Euro' AND '2026-01-01 11:30+00'::timestamptz <@ system_time;

-- === moments ===
-- a timestamp is read in the table's time zone (Berlin), whatever the session's
SET TimeZone = 'Asia/Tokyo';
SELECT rate FROM rates__as_of('2026-01-01 12:30'::timestamp, 'Euro');
SELECT rate FROM rates__as_of(timestamp '2026-01-01 12:30') WHERE currency = 'Euro';
SELECT rate FROM rates__between(timestamp '2026-01-01 12:30', timestamp '2026-01-01 13:00') WHERE currency = 'Euro' ORDER BY 1;
RESET TimeZone;
SET TimeZone = 'UTC';
-- an untyped constant is a timestamptz
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
-- any expression will do, volatile ones too
SELECT rate FROM rates__as_of(now() + interval '1 day', 'Euro');
SELECT rate FROM rates__as_of(clock_timestamp(), 'Euro');
SELECT rate FROM rates__as_of((SELECT max(__valid_from) FROM rates__versions), currency => 'Euro');

-- === reading, again and again ===
-- a list of keys: each once, NULLs and doubles don't matter
SELECT currency, rate FROM rates_history WHERE currency IN ('Yen', 'Euro', NULL, 'Yen', 'none') AND system_time @> timestamptz '2026-01-01 11:30+00' ORDER BY 1;
SELECT currency, rate FROM rates_history WHERE currency = ANY ('{Yen,Yen}') ORDER BY 1;
-- prepared, custom and generic
PREPARE as_of(timestamptz, text) AS SELECT rate FROM rates__as_of($1, $2);
EXECUTE as_of('2026-01-01 10:30+00', 'Euro');
SET plan_cache_mode = force_generic_plan;
EXECUTE as_of('2026-01-01 11:30+00', 'Euro');
EXECUTE as_of('2026-01-01 09:30+00', 'Euro');
EXECUTE as_of(NULL, 'Euro');
RESET plan_cache_mode;
-- a cursor sees what was there when it was opened
BEGIN;
DECLARE c CURSOR FOR SELECT currency, rate FROM rates__as_of('2026-01-01 23:00+00');
FETCH 1 FROM c;
SELECT boundary(5, 'Aaa', '09:00', 'u', 1), boundary(6, 'Euro', '13:00', 'u', 4);
FETCH ALL FROM c;
CLOSE c;
SELECT currency, rate FROM rates__as_of('2026-01-01 23:00+00') ORDER BY 1;
ROLLBACK;
-- locked and updated rows join with it
CREATE TABLE orders (id int PRIMARY KEY, currency text, order_time timestamptz, rate numeric);
INSERT INTO orders VALUES (1, 'Euro', '2026-01-01 10:30+00'), (2, 'Euro', '2026-01-01 09:00+00'), (3, 'Yen', '2026-01-01 20:00+00');
UPDATE orders o SET rate = r.rate FROM rates_history r WHERE r.currency = o.currency AND r.system_time @> o.order_time;
SELECT id, rate FROM orders ORDER BY 1;
SELECT o.id, r.rate FROM orders o JOIN rates_history r ON r.currency = o.currency AND r.system_time @> o.order_time ORDER BY 1 FOR UPDATE OF o;
-- a branch of UNION ALL
SELECT o.id, u.* FROM orders o, LATERAL (
	SELECT r.rate, r.system_time FROM rates_history r WHERE r.currency = o.currency AND r.system_time @> o.order_time
	UNION ALL SELECT -1, NULL) u ORDER BY 1, 2;
-- the row as a whole
SELECT h FROM rates_history h WHERE currency = 'Euro' AND system_time @> timestamptz '2026-01-01 11:30+00';
-- it is read only
INSERT INTO rates_history VALUES ('Euro', 1);
UPDATE rates_history SET rate = 1;
DELETE FROM rates_history;

-- === K03: columns by name, whatever holes their numbers have ===
CREATE FOREIGN TABLE shape_topic ("Id" name OPTIONS (key 'true'), ts varchar(5) OPTIONS (key 'true'), gone int, x text)
  SERVER hist_kafka OPTIONS (connector 'upsert-kafka', topic 'shape', key_format 'json', value_format 'json');
ALTER FOREIGN TABLE shape_topic DROP COLUMN gone;
SELECT upsert_kafka.materialize('shape_topic', '"MyT"');
SET session_replication_role = replica;
INSERT INTO "MyT__versions" ("Id", ts, x, __valid_from, __seq, __op, __partition, __offset) VALUES ('a', 'b', 'old', '2026-01-01', 1, 'u', 0, 1);
RESET session_replication_role;
SELECT "Id", ts, x FROM "MyT_history";
ALTER TABLE "MyT" ADD COLUMN y int;
SET session_replication_role = replica;
INSERT INTO "MyT__versions" ("Id", ts, x, y, __valid_from, __seq, __op, __partition, __offset) VALUES ('a', 'b', 'new', 42, '2026-01-02', 2, 'u', 0, 2);
RESET session_replication_role;
SELECT "Id", ts, x, y FROM "MyT_history";
ALTER TABLE "MyT" DROP COLUMN x;
SELECT * FROM "MyT_history";
-- a key column that is called ts leaves the moment without a name
SELECT y FROM "MyT__as_of"('2026-01-03', 'a', ts => 'b');

-- === only registered pairs are served, in a known shape ===
CREATE FOREIGN TABLE stray (currency text, system_time tstzrange) SERVER upsert_kafka_history;
SELECT * FROM stray;
CREATE FOREIGN TABLE stray2 (currency text) SERVER upsert_kafka_history OPTIONS (versions 'rates__versions');
CREATE SERVER stray FOREIGN DATA WRAPPER upsert_kafka_history OPTIONS (host 'x');
DROP FOREIGN TABLE stray;
BEGIN;
DO $$ BEGIN EXECUTE (SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE indrelid = 'rates__versions'::regclass); END $$;
SELECT * FROM rates_history;
ROLLBACK;

-- === rights ===
CREATE ROLE regress_hist;
GRANT USAGE ON SCHEMA hist TO regress_hist;
SET ROLE regress_hist;
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
RESET ROLE;
GRANT SELECT ON rates TO regress_hist;
-- who may read the table may read its history, and not the versions table
SET ROLE regress_hist;
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
SELECT count(*) FROM rates__versions;
RESET ROLE;
-- row security speaks of current rows: it closes the history to those whom it binds
ALTER TABLE rates ENABLE ROW LEVEL SECURITY;
SET ROLE regress_hist;
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
RESET ROLE;
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
ALTER ROLE regress_hist BYPASSRLS;
SET ROLE regress_hist;
SELECT rate FROM rates__as_of('2026-01-01 11:30+00', 'Euro');
RESET ROLE;
ALTER TABLE rates DISABLE ROW LEVEL SECURITY;

-- === away with it ===
DROP TABLE orders;
SELECT upsert_kafka.drop('rates'), upsert_kafka.drop('"MyT"');
DROP FOREIGN TABLE rates_topic, shape_topic;
DROP SERVER hist_kafka;
REVOKE USAGE ON SCHEMA hist FROM regress_hist;
DROP ROLE regress_hist;
DROP FUNCTION boundary;
DROP SCHEMA hist;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
