-- === scenario S2, the CDC half: a topic of change events is a versioned table by itself ===
-- Debezium tells every change of products in the source database, with the time it happened there.
--
-- The Flink way:
--   CREATE TABLE products (product_id STRING, product_name STRING, price DECIMAL(32, 2),
--     update_time TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL, PRIMARY KEY (product_id) NOT ENFORCED,
--     WATERMARK FOR update_time AS update_time) WITH ('connector' = 'kafka', 'format' = 'debezium-json', ..);
--   SELECT .. FROM orders AS o LEFT JOIN products FOR SYSTEM_TIME AS OF o.order_time AS p ON o.product_id = p.product_id;
--                                       -- comes out when watermarks pass; a further order is needed to move them
-- The upsert_kafka way: the same metadata column is the event time of a maintained table, for deletes as well.
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER s2c_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
-- the events came to Kafka long after they happened, the tombstone by a clock that is late: what counts is the source's time
\! test/kt create s2c_products --fresh
\o |test/kt produce s2c_products -t 1700000000000
\qecho '{"product_id":"p_001"}|{"before":null,"after":{"product_id":"p_001","product_name":"scooter","price":11.11},"source":{"ts_ms":0,"db":"shop","table":"products"},"op":"r","ts_ms":1601514000000}'
\qecho '{"product_id":"p_002"}|{"before":null,"after":{"product_id":"p_002","product_name":"basketball","price":23.11},"source":{"ts_ms":0,"db":"shop","table":"products"},"op":"r","ts_ms":1601514000000}'
\qecho '{"product_id":"p_001"}|{"before":{"product_id":"p_001","product_name":"scooter","price":11.11},"after":{"product_id":"p_001","product_name":"scooter","price":12.99},"source":{"ts_ms":1601553600000,"db":"shop","table":"products"},"op":"u","ts_ms":1601553600100}'
\qecho '{"product_id":"p_002"}|{"before":{"product_id":"p_002","product_name":"basketball","price":23.11},"after":{"product_id":"p_002","product_name":"basketball","price":19.99},"source":{"ts_ms":1601553600000,"db":"shop","table":"products"},"op":"u","ts_ms":1601553600100}'
\qecho '{"product_id":"p_001"}|{"before":{"product_id":"p_001","product_name":"scooter","price":12.99},"after":{"product_id":"p_001","product_name":"scooter","price":11.99},"source":{"ts_ms":1601575200000,"db":"shop","table":"products"},"op":"u","ts_ms":1601575200100}'
\qecho '{"product_id":"p_002"}|{"before":{"product_id":"p_002","product_name":"basketball","price":19.99},"after":null,"source":{"ts_ms":1601575200000,"db":"shop","table":"products"},"op":"d","ts_ms":1601575200100}'
\qecho '[ts=1601550000000] {"product_id":"p_002"}|\\N'
\o

CREATE FOREIGN TABLE s2c_topic (
	product_id text OPTIONS (key 'true'), product_name text, price numeric(32,2),
	update_time timestamptz OPTIONS (metadata 'value.source.timestamp')
) SERVER s2c_kafka OPTIONS (connector 'upsert-kafka', topic 's2c_products', key_format 'json', value_format 'debezium-json');
-- the state now, straight from the topic
SELECT * FROM s2c_topic;
SELECT upsert_kafka.materialize('s2c_topic', target => 's2c_products', event_time => 'update_time');
SELECT upsert_kafka.wait_for('s2c_products');
SELECT * FROM s2c_products;
-- as of any moment; at 18:00 p_002 is gone
SELECT product_id, price FROM s2c_products__as_of('2020-10-01 11:59:59+00') ORDER BY 1;
SELECT product_id, price FROM s2c_products__as_of('2020-10-01 12:00:00+00') ORDER BY 1;
SELECT product_id, price FROM s2c_products__as_of('2020-10-01 17:59:59.999+00') ORDER BY 1;
SELECT product_id, price FROM s2c_products__as_of('2020-10-01 18:00:00+00') ORDER BY 1;
-- the tombstone behind the delete is no second one: each version ends where the next begins
SELECT product_id, price, system_time FROM s2c_products_history ORDER BY product_id, system_time;

-- === the temporal join (V16) ===
CREATE TABLE s2c_orders (order_id text, product_id text, order_time timestamptz, amount int);
INSERT INTO s2c_orders VALUES
	('o_001', 'p_001', '2020-10-01 00:01:00+00', 1), ('o_002', 'p_002', '2020-10-01 00:02:00+00', 1),
	('o_003', 'p_001', '2020-10-01 12:00:00+00', 1), ('o_004', 'p_002', '2020-10-01 12:00:00+00', 1),
	('o_005', 'p_001', '2020-10-01 18:00:00+00', 10), ('o_006', 'p_002', '2020-10-01 18:00:00+00', 10);
SELECT o.order_id, o.order_time, p.product_name, p.price, p.update_time, o.amount * p.price AS total
  FROM s2c_orders o LEFT JOIN LATERAL s2c_products__as_of(o.order_time) p USING (product_id) ORDER BY o.order_id;

-- === the same topic without its keys: an append table, keyed by a column of the payload ===
CREATE FOREIGN TABLE s2c_log (
	kind text OPTIONS (metadata 'row_kind'), product_id text, price numeric(32,2),
	update_time timestamptz OPTIONS (metadata 'value.source.timestamp')
) SERVER s2c_kafka OPTIONS (connector 'kafka', topic 's2c_products', value_format 'debezium-json');
-- its rows are the changelog, as in Flink: rows before and after a change have the change's time
SELECT * FROM s2c_log;
SELECT upsert_kafka.materialize('s2c_log', 's2c_by_column');
SELECT upsert_kafka.materialize('s2c_log', 's2c_by_column', primary_key => '{product_id}', event_time => 'update_time');
SELECT upsert_kafka.wait_for('s2c_by_column');
SELECT * FROM s2c_by_column;
SELECT product_id, price, system_time FROM s2c_by_column_history ORDER BY product_id, system_time;

-- === what comes later ===
-- p_002 is inserted again in the transaction that deleted it, and the price of p_001 changed at 15:00, told late
\o |test/kt produce s2c_products -t 1700000001000
\qecho '{"product_id":"p_002"}|{"before":null,"after":{"product_id":"p_002","product_name":"football","price":5},"source":{"ts_ms":1601575200000},"op":"c"}'
\qecho '{"product_id":"p_001"}|{"before":null,"after":{"product_id":"p_001","product_name":"scooter","price":12.5},"source":{"ts_ms":1601564400000},"op":"u"}'
\o
SELECT upsert_kafka.wait_for('s2c_products');
SELECT product_id, product_name, price, system_time FROM s2c_products_history ORDER BY product_id, system_time;

DROP TABLE s2c_products, s2c_by_column, s2c_orders;
DROP FOREIGN TABLE s2c_topic, s2c_log;
DROP SERVER s2c_kafka;
\! test/kt delete s2c_products
