-- === scenario S2: versioned tables, and what was the rate when the order came in? ===
-- Rates come as plain messages, in an append topic: no Kafka key, the time is in the value.
--
-- The Flink way:
--   CREATE TABLE rates (currency STRING, rate DECIMAL(32,10), update_time TIMESTAMP(3), WATERMARK FOR update_time AS update_time - INTERVAL '5' SECOND)
--   WITH ('connector' = 'kafka', 'topic' = 'rates', 'format' = 'json', ..);
--   CREATE VIEW versioned_rates AS SELECT currency, rate, update_time FROM (
--     SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY update_time DESC) AS n FROM rates) WHERE n = 1;
--   SELECT .. FROM orders o LEFT JOIN versioned_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;
--                                       -- each order comes out when the watermarks of both topics have passed it
-- The upsert_kafka way: say which column is the key and which is the time. There is no watermark; what comes late finds its place.
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER s2_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create s2_rates --fresh
\o |test/kt produce s2_rates -k ''
\qecho '{"update_time":"2026-01-01 09:00:00","currency":"Yen","rate":102}'
\qecho '{"update_time":"2026-01-01 09:00:00","currency":"Euro","rate":114}'
\qecho '{"update_time":"2026-01-01 09:00:00","currency":"USD","rate":1}'
\qecho '{"update_time":"2026-01-01 11:15:00","currency":"Euro","rate":119}'
\qecho '{"update_time":"2026-01-01 11:45:00","currency":"Pounds","rate":107}'
\qecho '{"update_time":"2026-01-01 11:49:00","currency":"Pounds","rate":108}'
\o
CREATE FOREIGN TABLE rates (currency text, rate numeric(32,10), update_time timestamp(3))
  SERVER s2_kafka OPTIONS (connector 'kafka', topic 's2_rates', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT upsert_kafka.materialize('rates', 'versioned_rates', primary_key => '{currency}', event_time => 'update_time');
SELECT upsert_kafka.wait_for('versioned_rates');

-- now: the last version of each key
SELECT * FROM versioned_rates ORDER BY currency;
-- the first version of a key came as an insert, the others as updates
SELECT to_char(lower(system_time), 'HH24:MI') AS update_time, currency, rate::real,
       CASE row_number() OVER (PARTITION BY currency ORDER BY system_time) WHEN 1 THEN '+I' ELSE '+U' END AS kind
  FROM versioned_rates_history ORDER BY 1, kind, array_position('{Yen,Euro,USD,Pounds}', currency);

-- === as of ===
-- before anything
SELECT currency, rate::real FROM versioned_rates__as_of('2026-01-01 08:59:59.999+00') ORDER BY currency;
SELECT currency, rate::real FROM versioned_rates__as_of('2026-01-01 10:00+00') ORDER BY currency;
SELECT currency, rate::real FROM versioned_rates__as_of('2026-01-01 11:30+00') ORDER BY currency;
SELECT currency, rate::real FROM versioned_rates__as_of('2026-01-01 11:46+00') ORDER BY currency;
-- a version begins at its moment, not after it
SELECT currency, rate::real FROM versioned_rates__as_of('2026-01-01 11:49+00') ORDER BY currency;
SELECT t AS time, r.rate::real AS pounds
  FROM unnest('{11:44:59.999,11:45,11:46,11:48:59.999,11:49,23:00}'::time[]) t LEFT JOIN LATERAL versioned_rates__as_of('2026-01-01'::timestamp + t, 'Pounds') r ON true;

-- === the temporal join: each order with the rate that was in force ===
\! test/kt create s2_orders --fresh
\o |test/kt produce s2_orders -k ''
\qecho '{"order_id":1,"order_time":"2026-01-01 08:30:00","currency":"Euro","price":10.00}'
\qecho '{"order_id":2,"order_time":"2026-01-01 10:15:00","currency":"Euro","price":10.00}'
\qecho '{"order_id":3,"order_time":"2026-01-01 11:30:00","currency":"Euro","price":10.00}'
\qecho '{"order_id":4,"order_time":"2026-01-01 11:46:00","currency":"Pounds","price":5.50}'
\qecho '{"order_id":5,"order_time":"2026-01-01 11:49:00","currency":"Pounds","price":5.50}'
\qecho '{"order_id":6,"order_time":"2026-01-01 10:00:00","currency":"Yen","price":300}'
\qecho '{"order_id":7,"order_time":"2026-01-01 12:00:00","currency":"Franc","price":20}'
\o
-- the orders may be a topic, too: here they are read straight from it
CREATE FOREIGN TABLE orders (order_id int, order_time timestamp(3), currency text, price numeric(32,2))
  SERVER s2_kafka OPTIONS (connector 'kafka', topic 's2_orders', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT o.order_id, o.order_time, o.currency, o.price, r.rate::real, (o.price * r.rate)::numeric(32,2) AS converted
  FROM orders o LEFT JOIN LATERAL versioned_rates__as_of(o.order_time) r USING (currency) ORDER BY o.order_id;
-- inner: no version, no row
SELECT o.order_id, r.rate::real FROM orders o JOIN LATERAL versioned_rates__as_of(o.order_time) r USING (currency) ORDER BY o.order_id;

-- === late, and out of order: the history is corrected, the answer to the same question with it ===
\! printf '{"update_time":"2026-01-01 10:10:00","currency":"Euro","rate":115}\n' | test/kt produce s2_rates -k ''
SELECT upsert_kafka.wait_for('versioned_rates');
SELECT o.order_id, o.order_time, r.rate::real FROM orders o JOIN LATERAL versioned_rates__as_of(o.order_time) r USING (currency) WHERE o.currency = 'Euro' ORDER BY o.order_id;
-- what is current is the topic's last word, unless the table is told to follow event time (as Flink's view does)
SELECT rate::real AS last_word FROM versioned_rates WHERE currency = 'Euro';
SELECT upsert_kafka.materialize('rates', 'rates_by_time', primary_key => '{currency}', event_time => 'update_time', current_by => 'event_time');
SELECT upsert_kafka.wait_for('rates_by_time');
SELECT rate::real AS latest FROM rates_by_time WHERE currency = 'Euro';

-- === the same from an upsert topic: the key is Kafka's, the time Kafka's timestamp, and deletes end a version ===
\! test/kt create s2_rates_upsert --fresh
\o |test/kt produce s2_rates_upsert
\qecho '[ts=2026-01-01T09:00:00Z] {"currency":"Yen"}|{"rate":102}'
\qecho '[ts=2026-01-01T09:00:00Z] {"currency":"Euro"}|{"rate":114}'
\qecho '[ts=2026-01-01T11:15:00Z] {"currency":"Euro"}|{"rate":119}'
\qecho '[ts=2026-01-01T12:00:00Z] {"currency":"Euro"}|\\N'
\o
CREATE FOREIGN TABLE rates_upsert (currency text OPTIONS (key 'true'), rate numeric(32,10), update_time timestamptz(3) OPTIONS (metadata 'timestamp'))
  SERVER s2_kafka OPTIONS (connector 'upsert-kafka', topic 's2_rates_upsert', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('rates_upsert', 'rates_of_upserts', event_time => 'update_time');
SELECT upsert_kafka.wait_for('rates_of_upserts');
SELECT t AS time, r.rate::real AS euro
  FROM unnest('{08:59:59,09:00,11:14:59,11:15,11:59:59,12:00}'::time[]) t LEFT JOIN LATERAL rates_of_upserts__as_of('2026-01-01'::timestamp + t, 'Euro') r ON true;
SELECT currency, rate::real FROM rates_of_upserts;

DROP TABLE versioned_rates, rates_by_time, rates_of_upserts;
DROP FOREIGN TABLE rates, orders, rates_upsert;
DROP SERVER s2_kafka;
\! test/kt delete s2_rates
\! test/kt delete s2_orders
\! test/kt delete s2_rates_upsert
