-- === AS OF plans: one probe per key, and estimates that hold ===
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET jit = off;
CREATE SCHEMA plans;
SET search_path = plans, public;
CREATE SERVER plans_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE FOREIGN TABLE items_topic (item int OPTIONS (key 'true'), price int, note text)
  SERVER plans_kafka OPTIONS (connector 'upsert-kafka', topic 'items', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE stock_topic (region int OPTIONS (key 'true'), item int OPTIONS (key 'true'), n int)
  SERVER plans_kafka OPTIONS (connector 'upsert-kafka', topic 'stock', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('items_topic', 'items'), upsert_kafka.materialize('stock_topic', 'stock');
SET session_replication_role = replica;
-- items: 400 keys, 20,000 versions a minute apart. Some keys have many versions; a third of all versions are deletes
INSERT INTO items__versions (item, price, note, __valid_from, __seq, __op, __partition, __offset)
SELECT item, CASE WHEN op = 'u' THEN i END, CASE WHEN op = 'u' THEN 'note ' || i % 10 END,
       '2026-01-01'::timestamptz + i * interval '1 minute', i, op, 0, i
  FROM (SELECT i, ((i * 7919::bigint) % 20000 * ((i * 7919::bigint) % 20000) / 1000000)::int AS item,
               (CASE WHEN (i * 31) % 3 = 0 THEN 'd' ELSE 'u' END)::"char" AS op FROM generate_series(1, 20000) i) v;
-- stock: 1,000 keys of two columns that go together (an item belongs to one region), 10 versions each, no deletes
INSERT INTO stock__versions (region, item, n, __valid_from, __seq, __op, __partition, __offset)
SELECT i % 1000 / 20, i % 1000, i, '2026-01-01'::timestamptz + i * interval '1 minute', i, 'u', 0, i FROM generate_series(1, 10000) i;
-- the current table tells how many keys of several columns there are
INSERT INTO stock SELECT i / 20, i, i FROM generate_series(0, 999) i;
RESET session_replication_role;
ANALYZE items__versions, stock__versions, stock;
CREATE TABLE orders AS
SELECT i AS id, ((i * 7907::bigint) % 20000 * ((i * 7907::bigint) % 20000) / 1000000)::int AS item, i % 1000 / 20 AS region, i % 1000 AS stock_item,
       '2026-01-08'::timestamptz + i * interval '7 seconds' AS order_time FROM generate_series(1, 4000) i;
ANALYZE orders;

-- === which plan ===
-- a point lookup is one probe
EXPLAIN (COSTS OFF) SELECT price FROM items__as_of('2026-01-10 12:00+00', 7);
EXPLAIN (COSTS OFF) SELECT price FROM items__as_of('2026-01-10 12:00+00') WHERE item = 7;
-- now() and parameters are moments like others; bigint is compared with the int key in the index
PREPARE lookup(timestamptz, bigint) AS SELECT price FROM items_history WHERE system_time @> $1 AND item = $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE lookup(now(), 7);
RESET plan_cache_mode;
-- the temporal join: the probe gets key and moment of each outer row
EXPLAIN (COSTS OFF) SELECT o.*, r.price FROM orders o LEFT JOIN LATERAL items__as_of(o.order_time) r USING (item);
EXPLAIN (COSTS OFF) SELECT o.*, r.price FROM orders o JOIN LATERAL items__as_of(o.order_time) r USING (item);
-- further ON conditions stay with the scan, any expression is a moment
EXPLAIN (COSTS OFF) SELECT o.*, r.price FROM orders o LEFT JOIN LATERAL items__as_of(o.order_time - interval '1 hour') r
    ON r.item = o.item AND r.price > 100 AND r.note <> 'note 3';
-- without the function
EXPLAIN (COSTS OFF) SELECT o.*, r.price FROM orders o LEFT JOIN items_history r ON r.item = o.item AND r.system_time @> o.order_time;
-- a key of two columns; and two temporal joins
EXPLAIN (COSTS OFF) SELECT o.id, s.n FROM orders o JOIN LATERAL stock__as_of(o.order_time) s ON (s.region, s.item) = (o.region, o.stock_item) WHERE o.id <= 100;
EXPLAIN (COSTS OFF) SELECT o.id, r.price, s.n FROM orders o LEFT JOIN LATERAL items__as_of(o.order_time) r USING (item)
  LEFT JOIN LATERAL stock__as_of(o.order_time) s ON s.region = o.region AND s.item = o.stock_item WHERE o.id <= 100;
-- the whole table at a moment, and the part with the first key column
EXPLAIN (COSTS OFF) SELECT * FROM items__as_of('2026-01-10 12:00+00');
EXPLAIN (COSTS OFF) SELECT * FROM stock__as_of('2026-01-05 12:00+00') WHERE region = 3;
-- a key's history, all of it or a piece; everything
EXPLAIN (COSTS OFF) SELECT * FROM items_history WHERE item = 7;
EXPLAIN (COSTS OFF) SELECT * FROM items__between('2026-01-10', '2026-01-11') WHERE item = 7;
EXPLAIN (COSTS OFF) SELECT count(*) FROM items_history;
-- a list of keys is one probe each
EXPLAIN (COSTS OFF) SELECT price FROM items__as_of('2026-01-10 12:00+00') WHERE item IN (1, 2, 3);
-- what does not inline is one call per moment: use the form with the key, one probe always
EXPLAIN (COSTS OFF) SELECT price FROM items__as_of(clock_timestamp()) WHERE item = 7;
EXPLAIN (COSTS OFF) SELECT price FROM items__as_of(clock_timestamp(), 7);
-- VERBOSE names the index
EXPLAIN (COSTS OFF, VERBOSE) SELECT price FROM items__as_of('2026-01-10 12:00+00', 7);
-- history scans may run in parallel workers
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT sum(r.price) FROM orders o JOIN LATERAL items__as_of(o.order_time) r USING (item);
SELECT sum(r.price) FROM orders o JOIN LATERAL items__as_of(o.order_time) r USING (item);
SET max_parallel_workers_per_gather = 0;
SELECT sum(r.price) FROM orders o JOIN LATERAL items__as_of(o.order_time) r USING (item);
RESET max_parallel_workers_per_gather; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;

-- === how much is read ===
CREATE FUNCTION explain_scan(query text) RETURNS TABLE (probes text, versions text) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT json) ' || query INTO plan;
	RETURN QUERY SELECT p->>'Index Probes', p->>'Versions Read' FROM jsonb_path_query(plan, '$.**?(@."Index Probes" != null)') p LIMIT 1;
END $$;
-- of the thousand versions of key 0 one is read
SELECT count(*) FROM items__versions WHERE item = 0;
SELECT * FROM explain_scan('SELECT price FROM items__as_of(''2026-01-10 12:00+00'', 0)');
-- the end of the version is looked for only when it is wanted
SELECT * FROM explain_scan('SELECT price, system_time FROM items__as_of(''2026-01-10 12:00+00'', 0)');
-- nor is it, in a join, for the condition's sake: at most a few probes in a hundred are made twice
SELECT probes::int BETWEEN 4000 AND 4400 AS one_probe_each, versions::int <= 4000 AS one_version_each
  FROM explain_scan('SELECT o.id, r.price FROM orders o LEFT JOIN LATERAL items__as_of(o.order_time) r USING (item)');
-- a whole table reads one version per key from the heap
SELECT versions FROM explain_scan('SELECT item, price FROM items__as_of(''2026-02-10 12:00+00'')');
-- a piece of a key's history reads that piece, and the neighbours that end it
SELECT versions::int < 30 AS few FROM explain_scan('SELECT * FROM items__between(''2026-01-10'', ''2026-01-10 06:00'') WHERE item = 0');

-- === estimates: planned rows within twice the real ones, both ways: no rows ===
CREATE FUNCTION misestimate(query text) RETURNS TABLE (planned float, actual float) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || query INTO plan;
	planned := greatest(1, (plan->0->'Plan'->>'Plan Rows')::float);
	actual := greatest(1, (plan->0->'Plan'->>'Actual Rows')::float);
	IF planned / actual NOT BETWEEN 0.5 AND 2 THEN
		RETURN NEXT;
	END IF;
END $$;
SELECT m.*, q FROM unnest('{
	"SELECT * FROM items_history",
	"SELECT * FROM items_history WHERE item = 0",
	"SELECT * FROM items_history WHERE item = 399",
	"SELECT * FROM items_history WHERE note = ''note 3''",
	"SELECT * FROM items_history WHERE price < 5000",
	"SELECT item, count(*) FROM items_history GROUP BY item",
	"SELECT * FROM items__as_of(''2026-01-10 12:00+00'')",
	"SELECT * FROM items__as_of(now())",
	"SELECT * FROM items__as_of(''2025-01-01'')",
	"SELECT * FROM items__as_of(''2026-01-10 12:00+00'', 7)",
	"SELECT * FROM items__as_of(''2026-01-10 12:00+00'') WHERE item IN (1, 2, 3, 4, 5, 6)",
	"SELECT * FROM items__between(''2026-01-05'', ''2026-01-06'')",
	"SELECT * FROM items__between(''2026-01-05'', ''2026-01-06'') WHERE item = 0",
	"SELECT * FROM stock_history WHERE region = 3 AND item = 77",
	"SELECT * FROM stock__as_of(''2026-01-05'') WHERE region = 3",
	"SELECT * FROM orders o JOIN LATERAL items__as_of(o.order_time) r USING (item)",
	"SELECT * FROM orders o LEFT JOIN LATERAL items__as_of(o.order_time) r USING (item)",
	"SELECT * FROM orders o JOIN items_history r ON r.item = o.item AND r.system_time @> o.order_time",
	"SELECT * FROM orders o JOIN items_history r ON r.item = o.item AND r.system_time @> o.order_time WHERE o.id < 100",
	"SELECT * FROM orders o JOIN LATERAL items__as_of(o.order_time) r ON r.item = o.item AND r.note = ''note 3''",
	"SELECT * FROM orders o JOIN items__as_of(''2026-01-10 12:00+00'') r USING (item)",
	"SELECT * FROM orders o JOIN LATERAL stock__as_of(o.order_time) s ON s.region = o.region AND s.item = o.stock_item",
	"SELECT * FROM orders o LEFT JOIN LATERAL stock__as_of(o.order_time) s ON s.region = o.region AND s.item = o.stock_item",
	"SELECT * FROM stock_history s JOIN orders o ON s.region = o.region AND s.item = o.stock_item AND s.system_time @> o.order_time",
	"SELECT * FROM orders o JOIN stock__as_of(''2026-01-05'') s ON s.region = o.region AND s.item = o.stock_item",
	"SELECT id FROM orders o WHERE EXISTS (SELECT FROM items__as_of(o.order_time) r WHERE r.item = o.item)"
}'::text[]) q, misestimate(q) m;
-- a prepared plan ends with the index it uses
PREPARE until_ddl AS SELECT count(*) FROM items_history WHERE item = 7;
EXECUTE until_ddl;
DO $$ BEGIN EXECUTE (SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE indrelid = 'items__versions'::regclass); END $$;
EXECUTE until_ddl;
CREATE INDEX ON items__versions (item, __valid_from, __seq);
EXECUTE until_ddl;

DROP TABLE orders;
SELECT upsert_kafka.drop('items'), upsert_kafka.drop('stock');
DROP FOREIGN TABLE items_topic, stock_topic;
DROP SERVER plans_kafka;
DROP FUNCTION explain_scan, misestimate;
DROP SCHEMA plans;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
