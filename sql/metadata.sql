-- Metadata columns: what a record says beside its key and value.
\set VERBOSITY default
\set broker `echo ${BROKER:-127.0.0.1:9092}`
CREATE SERVER meta FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');
CREATE TYPE meta_header AS (dropped int, name text, value bytea);
ALTER TYPE meta_header DROP ATTRIBUTE dropped;
\! test/kt create metadata -p 2 --fresh
\! printf '%s\n' "[p=0 ts=1700000000123 h=a:1 h=b:2 h=a:'3 4'] k1|one" "[p=0 ts=2026-01-31T12:00:00.5Z h=null h=empty: h=bytes:x'00ff' h=utf:grün] k2|two" '[p=1] \N|' "[p=1 ts=-1] x'ff00'|\N" | test/kt produce metadata

-- === headers ====================================================================
-- order and duplicates are kept, null is told from empty; bytes that are no text come as base64
CREATE FOREIGN TABLE meta_headers (
	p int OPTIONS (metadata 'partition'), o bigint OPTIONS (metadata 'offset'),
	j jsonb OPTIONS (metadata 'headers'), a meta_header[] OPTIONS (metadata 'headers')
) SERVER meta OPTIONS (connector 'kafka', topic 'metadata', value_format 'raw');
SELECT p, o, j FROM meta_headers ORDER BY p, o;
SELECT o, h.name, h.value, h.value IS NULL AS is_null FROM meta_headers, unnest(a) WITH ORDINALITY AS h(name, value, i) WHERE p = 0 ORDER BY o, h.i;
-- an upsert topic has them as well
CREATE FOREIGN TABLE meta_upsert (k text OPTIONS (key 'true'), v text, a meta_header[] OPTIONS (metadata 'headers')) SERVER meta
	OPTIONS (connector 'upsert-kafka', topic 'metadata', key_format 'raw', value_format 'raw', on_error 'skip');
SET client_min_messages = error;
SELECT k, v, array_length(a, 1) AS headers FROM meta_upsert ORDER BY k;
RESET client_min_messages;

-- === the rest ===================================================================
CREATE FOREIGN TABLE meta_all (
	topic text OPTIONS (metadata 'topic'),
	p bigint OPTIONS (metadata 'partition'),
	o bigint OPTIONS (metadata 'offset'),
	ts timestamptz OPTIONS (metadata 'timestamp'),
	local timestamp(3) OPTIONS (metadata 'timestamp'),
	tt text OPTIONS (metadata 'timestamp-type'),
	key bytea OPTIONS (metadata 'raw_key'),
	value bytea OPTIONS (metadata 'raw_value'),
	text_value text OPTIONS (metadata 'raw value')
) SERVER meta OPTIONS (connector 'kafka', topic 'metadata', value_format 'raw', time_zone 'Asia/Kolkata');
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT topic, p, o, CASE WHEN p = 0 THEN ts END AS ts, CASE WHEN p = 0 THEN local END AS local, ts IS NULL AS unset, tt FROM meta_all ORDER BY p, o;
-- the session's zone does not show in a timestamp without zone
SET TimeZone = 'America/New_York';
SELECT ts, local FROM meta_all WHERE p = 0 ORDER BY o;
RESET TimeZone;
RESET DateStyle;
-- A04: null, zero-length and bytes
SELECT key, value, text_value FROM meta_all ORDER BY p, o;
-- bytes that are no text, asked for as text, are the message's error; not asked for, they are none
CREATE FOREIGN TABLE meta_text (p int OPTIONS (metadata 'partition'), k text OPTIONS (metadata 'raw_key')) SERVER meta
	OPTIONS (connector 'kafka', topic 'metadata', value_format 'raw');
SELECT k FROM meta_text;
SELECT count(*) FROM meta_text;

\set VERBOSITY terse
DROP SERVER meta CASCADE;
DROP TYPE meta_header;
\! test/kt delete metadata
