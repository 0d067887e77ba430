-- === scans that cannot be: an error of the right class, in time ===
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
SET client_min_messages = warning;
CREATE SERVER errors_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE SERVER errors_nowhere FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '1000');
CREATE SERVER errors_patient FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '60000');

-- class of an error, and whether it came in time: well before any timeout of 30 s or more, on a machine that does other things, too
CREATE FUNCTION fails(query text, at_most interval, OUT code text, OUT in_time boolean) LANGUAGE plpgsql AS $$
DECLARE begun timestamptz := clock_timestamp();
BEGIN
    EXECUTE query;
    code := 'no error';
EXCEPTION WHEN OTHERS THEN
    code := SQLSTATE;
    in_time := clock_timestamp() - begun < at_most;
END $$;

-- === no broker (H09) ===
CREATE FOREIGN TABLE nowhere (n int) SERVER errors_nowhere
    OPTIONS (connector 'kafka', topic 'regress_errors', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT * FROM fails('SELECT * FROM nowhere', '20 s');
SELECT * FROM fails('ANALYZE nowhere', '20 s');
-- statement_timeout acts within a second whatever the broker does (peer defect 7), cancelling too
CREATE FOREIGN TABLE patient (n int) SERVER errors_patient
    OPTIONS (connector 'kafka', topic 'regress_errors', value_format 'json', scan_startup_mode 'earliest-offset');
SET statement_timeout = '300ms';
SELECT clock_timestamp() AS begun \gset
SELECT * FROM patient;
SET statement_timeout = 0;
SELECT clock_timestamp() - :'begun' < '20 s' AS in_time;

-- === no topic, no partition (H05) ===
CREATE FOREIGN TABLE missing (n int) SERVER errors_kafka
    OPTIONS (connector 'kafka', topic 'regress_errors_missing', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT * FROM missing;
\! test/kt create regress_errors -p 2 --fresh
\! printf '%s\n' '[p=0] k|{"n":1}' '[p=1] k|{"n":"abc"}' '[p=1] k|{"n":3}' | test/kt produce regress_errors
CREATE FOREIGN TABLE log (n int, part int OPTIONS (metadata 'partition'), off bigint OPTIONS (metadata 'offset')) SERVER errors_kafka
    OPTIONS (connector 'kafka', topic 'regress_errors', value_format 'json', scan_startup_mode 'earliest-offset');
SELECT * FROM log WHERE part = 7;
-- partitions that are added later are seen by the next scan
\! test/kt grow regress_errors 3
\! printf '%s\n' '[p=2] k|{"n":2}' | test/kt produce regress_errors
SELECT n FROM log WHERE part <> 1 ORDER BY n;

-- === a wrong message: where it is and what to do; the session goes on, with the same consumer ===
SELECT * FROM log;
SELECT * FROM log WHERE part = 1 AND off > 0;
-- a cancelled or failed scan leaves no thread behind (peer defect 8)
CREATE FUNCTION threads() RETURNS int LANGUAGE sql AS $$ SELECT count(*)::int FROM pg_ls_dir('/proc/' || pg_backend_pid() || '/task') $$;
SELECT threads() AS before \gset
DO $$ BEGIN FOR i IN 1..20 LOOP BEGIN PERFORM * FROM log; EXCEPTION WHEN invalid_text_representation THEN NULL; END; END LOOP; END $$;
SELECT threads() <= :before AS no_more_threads;

-- === on_error 'skip' does not cover what is not the message's fault ===
ALTER FOREIGN TABLE log OPTIONS (ADD on_error 'skip');
SELECT count(*) FROM log;
SELECT 1 / (n - 1) FROM log WHERE part = 0;
CREATE DOMAIN small AS int CHECK (VALUE < 3);
CREATE FOREIGN TABLE domains (n small, off bigint OPTIONS (metadata 'offset')) SERVER errors_kafka
    OPTIONS (connector 'kafka', topic 'regress_errors', value_format 'json', scan_startup_mode 'earliest-offset', on_error 'skip');
SELECT count(*), min(n), max(n) FROM domains;

-- === rights: the mapping is that of the user whose query it is, through a view that of its owner ===
CREATE SERVER errors_mapped FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker', timeout '5s');
CREATE FOREIGN TABLE mapped (n int, part int OPTIONS (metadata 'partition')) SERVER errors_mapped
    OPTIONS (connector 'kafka', topic 'regress_errors', value_format 'json', scan_startup_mode 'earliest-offset');
CREATE ROLE regress_errors_owner;
CREATE ROLE regress_errors_user;
-- the broker of this test knows no SASL: who has this mapping cannot connect
CREATE USER MAPPING FOR regress_errors_owner SERVER errors_mapped
    OPTIONS ("security.protocol" 'sasl_plaintext', "sasl.mechanisms" 'PLAIN', sasl_username 'a', sasl_password 'b');
GRANT SELECT ON mapped TO regress_errors_owner, regress_errors_user;
CREATE VIEW mapped_view AS SELECT * FROM mapped;
ALTER VIEW mapped_view OWNER TO regress_errors_owner;
GRANT SELECT ON mapped_view TO regress_errors_user;
SET ROLE regress_errors_user;
SELECT n FROM mapped WHERE part = 0;
SELECT code IN ('08001', '08006', '28000') AS refused, in_time FROM fails('SELECT * FROM mapped_view', '20 s');
SELECT * FROM missing;
RESET ROLE;
DROP VIEW mapped_view;
DROP SERVER errors_mapped CASCADE;
DROP ROLE regress_errors_owner, regress_errors_user;

DROP FUNCTION fails(text, interval), threads();
DROP SERVER errors_kafka CASCADE;
DROP SERVER errors_nowhere CASCADE;
DROP SERVER errors_patient CASCADE;
DROP DOMAIN small;
