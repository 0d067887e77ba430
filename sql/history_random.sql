-- === history: every way to read it agrees with its definition ===
-- Random boundaries, read by each access path, compared with the definition of a versions table written in plain SQL.
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
SET TimeZone = 'UTC';
CREATE SCHEMA random;
SET search_path = random, public;
CREATE SERVER random_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE FOREIGN TABLE t_topic (a text OPTIONS (key 'true'), b int OPTIONS (key 'true'), v int, w text)
  SERVER random_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('t_topic', 't');

-- up to 'keys' keys, 'n' boundaries at 'moments' moments; derived rows name an upsert that is there
CREATE FUNCTION fill(keys int, n int, moments int) RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
DECLARE
	ka text; kb int; op "char"; at timestamptz; u record;
BEGIN
	DELETE FROM t__versions;
	FOR i IN 1..n LOOP
		ka := 'k' || floor(random() * keys)::int / 2;
		kb := floor(random() * 2);
		at := '2026-01-01'::timestamptz + floor(random() * moments) * interval '1 minute';
		op := (ARRAY['u', 'u', 'u', 'd', 'r', 'r', 'e', 'U', 'R', 'D'])[1 + floor(random() * 10)];
		IF op IN ('r', 'R') THEN
			SELECT * INTO u FROM t__versions WHERE a = ka AND b = kb AND __op IN ('u', 'U') AND __valid_from <= at
			 ORDER BY CASE WHEN i % 2 = 0 THEN random() ELSE - extract(epoch FROM __valid_from) END LIMIT 1;
			IF FOUND THEN
				INSERT INTO t__versions (a, b, v, w, __valid_from, __seq, __op, __partition, __offset) VALUES (ka, kb, u.v, u.w, at, i, op, u.__partition, u.__offset);
			END IF;
		ELSE
			INSERT INTO t__versions (a, b, v, w, __valid_from, __seq, __op, __partition, __offset)
			VALUES (ka, kb, CASE WHEN op IN ('u', 'U') THEN i END, CASE WHEN op IN ('u', 'U') THEN 'w' || i END, at, i, op, 0, i);
		END IF;
	END LOOP;
END $$;

-- the definition: the greatest sequence number at each moment, consecutive boundaries of one holder taken together
CREATE VIEW definition AS
WITH effective AS (
	SELECT DISTINCT ON (a, b, __valid_from) *, CASE WHEN __op IN ('u', 'U', 'r', 'R') THEN __partition || ':' || __offset END AS holder
	  FROM t__versions ORDER BY a, b, __valid_from, __seq DESC
), changes AS (
	SELECT *, row_number() OVER w = 1 OR lag(holder) OVER w IS DISTINCT FROM holder AS changed
	  FROM effective WINDOW w AS (PARTITION BY a, b ORDER BY __valid_from)
), versions AS (
	SELECT *, tstzrange(__valid_from, lead(__valid_from) OVER (PARTITION BY a, b ORDER BY __valid_from)) AS system_time
	  FROM changes WHERE changed
)
SELECT a, b, v, w, system_time FROM versions WHERE holder IS NOT NULL;

-- each access path on its own, whatever the planner would make of a join
CREATE FUNCTION whole(ts timestamptz) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t__as_of($1); END $$;
CREATE FUNCTION whole_v(ts timestamptz) RETURNS TABLE (v int) LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT x.v FROM t__as_of($1) x; END $$;
CREATE FUNCTION part(ts timestamptz, a text) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t__as_of($1) x WHERE x.a = $2; END $$;
CREATE FUNCTION probe(ts timestamptz, a text, b int) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t__as_of($1, $2, $3); END $$;
CREATE FUNCTION list(ts timestamptz, a text[], b int) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t__as_of($1) x WHERE x.a = ANY ($2) AND x.b = $3; END $$;
CREATE FUNCTION one_key(a text, b bigint) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t_history x WHERE x.a = $1 AND x.b = $2; END $$;
CREATE FUNCTION range_of_key(from_time timestamptz, to_time timestamptz, a text, b int) RETURNS SETOF t_history LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t__from_to($1, $2) x WHERE x.a = $3 AND x.b = $4; END $$;
-- their plans are these
CREATE FUNCTION access_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan #>> '{0,Plan,Access}';
END $$;
SELECT access_of('SELECT * FROM t__as_of(now())') AS whole, access_of('SELECT * FROM t__as_of(now()) WHERE a = ''k1''') AS part,
       access_of('SELECT * FROM t__as_of(now(), ''k1'', 1)') AS probe, access_of('SELECT * FROM t_history WHERE a = ''k1'' AND b = 1') AS one_key;

CREATE TABLE moments (ts timestamptz);
CREATE FUNCTION differences(what text, got text, wanted text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM (((%1$s) EXCEPT ALL (%2$s)) UNION ALL ((%2$s) EXCEPT ALL (%1$s))) x', got, wanted) INTO n;
	RETURN CASE WHEN n > 0 THEN what || ': ' || n || ' rows differ' END;
END $$;
CREATE FUNCTION compare() RETURNS SETOF text LANGUAGE sql AS $$
SELECT d FROM (VALUES
	(differences('everything', 'SELECT * FROM t_history', 'SELECT * FROM definition')),
	(differences('everything, no range', 'SELECT a, b, v FROM t_history', 'SELECT a, b, v FROM definition')),
	(differences('whole table', 'SELECT m.ts, x.* FROM moments m, whole(m.ts) x',
		'SELECT m.ts, d.* FROM moments m JOIN definition d ON d.system_time @> m.ts')),
	(differences('whole table, no range', 'SELECT m.ts, x.v FROM moments m, whole_v(m.ts) x',
		'SELECT m.ts, d.v FROM moments m JOIN definition d ON d.system_time @> m.ts')),
	(differences('part of a key', 'SELECT m.ts, x.* FROM moments m, part(m.ts, ''k1'') x',
		'SELECT m.ts, d.* FROM moments m JOIN definition d ON d.system_time @> m.ts WHERE d.a = ''k1''')),
	(differences('probe', 'SELECT m.ts, x.* FROM moments m, keys k, probe(m.ts, k.a, k.b) x',
		'SELECT m.ts, d.* FROM moments m JOIN definition d ON d.system_time @> m.ts')),
	(differences('temporal join', 'SELECT k.*, m.ts, x.v, x.system_time FROM moments m CROSS JOIN keys k LEFT JOIN LATERAL t__as_of(m.ts) x USING (a, b)',
		'SELECT k.*, m.ts, d.v, d.system_time FROM moments m CROSS JOIN keys k LEFT JOIN definition d ON d.a = k.a AND d.b = k.b AND d.system_time @> m.ts')),
	(differences('temporal join, no range', 'SELECT k.*, m.ts, x.v FROM moments m CROSS JOIN keys k LEFT JOIN LATERAL t__as_of(m.ts) x USING (a, b)',
		'SELECT k.*, m.ts, d.v FROM moments m CROSS JOIN keys k LEFT JOIN definition d ON d.a = k.a AND d.b = k.b AND d.system_time @> m.ts')),
	(differences('one key', 'SELECT x.* FROM keys k, one_key(k.a, k.b) x', 'SELECT * FROM definition')),
	(differences('between', 'SELECT m.ts, n.ts, x.* FROM moments m, moments n, t__between(m.ts, n.ts) x',
		'SELECT m.ts, n.ts, d.* FROM moments m, moments n, definition d WHERE m.ts <= n.ts AND lower(d.system_time) <= n.ts AND coalesce(upper(d.system_time), ''infinity'') > m.ts')),
	(differences('range of a key', 'SELECT m.ts, n.ts, x.* FROM moments m, moments n, keys k, range_of_key(m.ts, n.ts, k.a, k.b) x',
		'SELECT m.ts, n.ts, d.* FROM moments m, moments n, definition d WHERE m.ts < n.ts AND lower(d.system_time) < n.ts AND coalesce(upper(d.system_time), ''infinity'') > m.ts')),
	(differences('list of keys', 'SELECT m.ts, x.* FROM moments m, list(m.ts, ''{k0,k1,k1,NULL}'', 1) x',
		'SELECT m.ts, d.* FROM moments m JOIN definition d ON d.system_time @> m.ts WHERE d.a IN (''k0'', ''k1'') AND d.b = 1'))
) AS c (d) WHERE d IS NOT NULL
$$;
CREATE VIEW keys AS SELECT DISTINCT a, b FROM t__versions UNION SELECT 'none', 0;
-- joins probe
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off;
SELECT setseed(0.42);

-- some keys, many boundaries at the same moments
SELECT fill(12, 600, 40);
INSERT INTO moments SELECT '2026-01-01'::timestamptz + i * interval '4 minutes' FROM generate_series(-1, 11) i;
SELECT compare();
-- many keys of few boundaries: how a history ends
SELECT fill(120, 500, 40);
SELECT compare();
-- one key that a snapshot has to jump over and into, beside short ones
SELECT fill(2, 1500, 2000);
SELECT count(*) > 400 AS long FROM t__versions WHERE a = 'k0' AND b = 0;
SET session_replication_role = replica;
INSERT INTO t__versions (a, b, v, __valid_from, __seq, __op, __partition, __offset)
SELECT k, 1, 1, '2026-01-01', 10000 + row_number() OVER (), 'u', 1, row_number() OVER () FROM unnest('{a,b,k1,x,z}'::text[]) k;
RESET session_replication_role;
TRUNCATE moments;
INSERT INTO moments SELECT '2026-01-01'::timestamptz + i * interval '300 minutes' FROM generate_series(-1, 7) i;
SELECT compare();
-- nothing at all
SELECT fill(1, 0, 1);
SELECT compare();

DROP VIEW definition, keys;
DROP TABLE moments;
DROP FUNCTION whole, whole_v, part, probe, list, one_key, range_of_key;
SELECT upsert_kafka.drop('t');
DROP FOREIGN TABLE t_topic;
DROP SERVER random_kafka;
DROP FUNCTION fill, differences, compare, access_of;
DROP SCHEMA random;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
