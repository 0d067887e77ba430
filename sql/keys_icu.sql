-- A key's collation decides too which keys are one: here case does not count. (A server without ICU: keys_icu_1.out)
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS without_icu \gset
\if :without_icu
\quit
\endif
\set broker `echo ${BROKER:-127.0.0.1:9092}`
\! test/kt create keys_icu --fresh
\! printf '%s\n' '{"k":"a"}|{"v":"1"}' '{"k":"a "}|{"v":"2"}' '{"k":"A"}|{"v":"3"}' | test/kt produce keys_icu
CREATE SERVER keys_icu FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE COLLATION keys_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FOREIGN TABLE keys_nocase (k text OPTIONS (key 'true') COLLATE keys_nocase, v text) SERVER keys_icu
	OPTIONS (connector 'upsert-kafka', topic 'keys_icu', key_format 'json', value_format 'json');
SELECT v FROM keys_nocase ORDER BY v;

\set VERBOSITY terse
DROP SERVER keys_icu CASCADE;
DROP COLLATION keys_nocase;
\! test/kt delete keys_icu
