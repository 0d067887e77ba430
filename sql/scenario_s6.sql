-- === scenario S6, reading: salaries from an upsert topic, joined to a dimension ===
--
-- The Flink way:
--   CREATE TABLE source (user_id INT, salary BIGINT, PRIMARY KEY (user_id) NOT ENFORCED)
--   WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'key.json.ignore-parse-errors' = 'true', 'value.format' = 'json', 'value.json.fail-on-missing-field' = 'false', ..);
--   SELECT s.user_id, d.name, d.age, SUM(s.salary) FROM source s LEFT JOIN dim_mysql FOR SYSTEM_TIME AS OF s.proctime AS d ON .. GROUP BY ..;
-- The upsert_kafka way: a maintained table, and a join of two tables in one snapshot. What cannot be read is passed by as well, but not in
-- silence: it is in upsert_kafka.errors, with its bytes and where it came from. (The dimension in MySQL and the result there are not here.)
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER s6_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
\! test/kt create s6_source --fresh
CREATE FOREIGN TABLE source (user_id int OPTIONS (key 'true'), salary bigint)
  SERVER s6_kafka OPTIONS (connector 'upsert-kafka', topic 's6_source', "key.format" 'json', "value.format" 'json', "value.json.fail-on-missing-field" 'false', on_error 'skip');
SELECT upsert_kafka.materialize('source', 'salaries');
CREATE TABLE dim (id int PRIMARY KEY, name text, age int);
INSERT INTO dim VALUES (1, 'Ada', 36), (2, 'Grace', 45);
CREATE VIEW result AS
SELECT s.user_id, d.name, d.age, sum(s.salary) AS sum_salary FROM salaries s LEFT JOIN dim d ON d.id = s.user_id GROUP BY 1, 2, 3;

-- numbers as strings; a key that is no JSON, one that is no number; a value without the field; a user whom the dimension does not know
\o |test/kt produce s6_source
\qecho '{"user_id":"1"}|{"user_id":"1", "salary":"90000"}'
\qecho 'user 2|{"user_id":"2", "salary":"80000"}'
\qecho '{"user_id":"two"}|{"user_id":"2", "salary":"80000"}'
\qecho '{"user_id":"2"}|{"user_id":"2"}'
\qecho '{"user_id":"3"}|{"user_id":"3", "salary":"70000"}'
\o
SELECT upsert_kafka.wait_for('salaries');
SELECT * FROM salaries ORDER BY user_id;
SELECT "offset", convert_from(raw_key, 'UTF8') AS key, column_name, sqlstate, message FROM upsert_kafka.errors WHERE target = 'salaries'::regclass ORDER BY "offset";
SELECT * FROM result ORDER BY user_id;

-- an upsert replaces, it does not add; the dimension is as it is now
\! printf '{"user_id":"1"}|{"user_id":"1", "salary":"95000"}\n{"user_id":"2"}|{"user_id":"2", "salary":"80000"}\n' | test/kt produce s6_source
UPDATE dim SET age = 37 WHERE id = 1;
SELECT upsert_kafka.wait_for('salaries');
SELECT * FROM result ORDER BY user_id;

-- the null value: the user's row is gone, and the result row with it
\! printf '{"user_id":"1"}|∅\n' | test/kt produce s6_source
SELECT upsert_kafka.wait_for('salaries');
SELECT * FROM result ORDER BY user_id;
-- straight from the topic the same; what was passed by is told in a warning
SELECT * FROM source ORDER BY user_id;

DROP VIEW result;
DROP TABLE salaries, dim;
DROP FOREIGN TABLE source;
DROP SERVER s6_kafka;
\! test/kt delete s6_source
