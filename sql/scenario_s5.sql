-- === scenario S5: page views per region ===
--
-- The Flink way:
--   CREATE TABLE pageviews (user_id BIGINT, page_id BIGINT, viewtime TIMESTAMP(3), user_region STRING, WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND)
--   WITH ('connector' = 'kafka', 'topic' = 'pageviews', 'format' = 'json', ..);
--   SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region;   -- a job that changes its answers for ever
-- The upsert_kafka way: the same SELECT is a query. It counts what is in the topic when it starts, and nothing needs a watermark to end.
-- An INSERT writes its result into an upsert topic, key and value in avro.
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER s5_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create s5_pageviews -p 2 --fresh
\o |test/kt produce s5_pageviews -k ''
\qecho '[p=0] {"user_id":1,"page_id":10,"viewtime":"2026-01-01 10:00:00","user_region":"europe"}'
\qecho '[p=1] {"user_id":2,"page_id":10,"viewtime":"2026-01-01 10:00:01","user_region":"asia"}'
\qecho '[p=0] {"user_id":1,"page_id":11,"viewtime":"2026-01-01 10:00:07","user_region":"europe"}'
\qecho '[p=1] {"user_id":3,"page_id":12,"viewtime":"2026-01-01 10:00:03","user_region":"europe"}'
\qecho '[p=0] {"user_id":9007199254740993,"page_id":12,"viewtime":"2026-01-01 10:00:02.5","user_region":"asia"}'
\qecho '[p=1] {"user_id":4,"page_id":13,"viewtime":"2026-01-01 10:00:09"}'
\o
CREATE FOREIGN TABLE pageviews (user_id bigint, page_id bigint, viewtime timestamp(3), user_region text)
  SERVER s5_kafka OPTIONS (connector 'kafka', topic 's5_pageviews', value_format 'json', scan_startup_mode 'earliest-offset');

-- straight from the topic; a missing region is a group like any other
SELECT user_region, count(*) AS pv, count(DISTINCT user_id) AS uv FROM pageviews GROUP BY user_region ORDER BY user_region;
-- as a table that follows the topic: every message is a row, with indexes and statistics like any
SELECT upsert_kafka.materialize('pageviews', 'pageviews_kept');
SELECT upsert_kafka.wait_for('pageviews_kept');
CREATE INDEX ON pageviews_kept (user_region);
SELECT user_region, count(*) AS pv, count(DISTINCT user_id) AS uv FROM pageviews_kept GROUP BY user_region ORDER BY user_region;

-- more views come; one is late by its viewtime, which no watermark holds against it
\o |test/kt produce s5_pageviews -k ''
\qecho '[p=1] {"user_id":5,"page_id":10,"viewtime":"2026-01-01 09:00:00","user_region":"asia"}'
\qecho '[p=0] {"user_id":2,"page_id":14,"viewtime":"2026-01-01 10:01:00","user_region":"asia"}'
\o
SELECT upsert_kafka.wait_for('pageviews_kept');
SELECT user_region, count(*) AS pv, count(DISTINCT user_id) AS uv FROM pageviews_kept GROUP BY user_region ORDER BY user_region;
-- topic and table agree: no rows
(TABLE pageviews EXCEPT ALL TABLE pageviews_kept) UNION ALL (TABLE pageviews_kept EXCEPT ALL TABLE pageviews);

-- === the result as an upsert topic ===
-- The Flink way: INSERT INTO pageviews_per_region SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region;
\! test/kt create s5_pageviews_per_region --fresh
CREATE FOREIGN TABLE pageviews_per_region (user_region text OPTIONS (key 'true') NOT NULL, pv bigint, uv bigint)
  SERVER s5_kafka OPTIONS (connector 'upsert-kafka', topic 's5_pageviews_per_region', key_format 'avro', value_format 'avro');
-- a primary key is never NULL
INSERT INTO pageviews_per_region SELECT user_region, count(*), count(DISTINCT user_id) FROM pageviews GROUP BY user_region;
INSERT INTO pageviews_per_region SELECT user_region, count(*), count(DISTINCT user_id) FROM pageviews_kept WHERE user_region IS NOT NULL GROUP BY user_region ORDER BY user_region;
SELECT * FROM pageviews_per_region ORDER BY user_region;
-- the bytes: a record of one string as key; a value of the string and two nullable numbers
\! test/kt consume s5_pageviews_per_region

DROP FOREIGN TABLE pageviews_per_region;
\! test/kt delete s5_pageviews_per_region
DROP TABLE pageviews_kept;
DROP FOREIGN TABLE pageviews;
DROP SERVER s5_kafka;
\! test/kt delete s5_pageviews
