-- Format debezium-json: values as Debezium's real connectors (3.5.0.Final, PostgreSQL and MariaDB) were seen to send them; test/debezium found them.
\set VERBOSITY default
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SERVER real FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:1');
CREATE FOREIGN TABLE real_values (id int, d date, ds date[], ts timestamp, ts3 timestamp(3), tz timestamptz, n numeric, b bit(1), bv bit varying, p point, iv interval, flag boolean) SERVER real
	OPTIONS (connector 'kafka', topic 'real', value_format 'debezium-json');

-- === X07: infinite days ==========================================================
-- with time.precision.mode adaptive a snapshot (r) and streaming (c) send different numbers, all beyond PostgreSQL's range
CREATE FUNCTION real_event(field text, type text, name text, value text) RETURNS bytea LANGUAGE sql AS $$
	SELECT convert_to('{"schema":{"type":"struct","fields":[{"type":"struct","fields":[],"optional":true,"name":"real.public.t.Value","field":"before"},{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},' ||
		'{"type":"' || type || '","optional":true,"name":"' || name || '","version":1,"field":"' || field || '"}],"optional":true,"name":"real.public.t.Value","field":"after"},{"type":"string","optional":false,"field":"op"}],' ||
		'"optional":false,"name":"real.public.t.Envelope","version":2},"payload":{"before":null,"after":{"id":1,"' || field || '":' || value || '},"op":"c","ts_ms":1700000000000}}', 'UTF8') $$;
SELECT v, d FROM unnest('{-622191234,-625821272,-2147472692,-2147472691,2145042905}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, real_event('d', 'int32', 'io.debezium.time.Date', v));
-- their neighbours are still no days
SELECT d FROM upsert_kafka.decode(NULL::real_values, NULL, real_event('d', 'int32', 'io.debezium.time.Date', '-2147472690'));
SELECT d FROM upsert_kafka.decode(NULL::real_values, NULL, real_event('d', 'int32', 'io.debezium.time.Date', '-622191235'));

-- === time.precision.mode isostring ===============================================
-- signed years of any length, year 0, a zone on days, the sentinels as text; with a schema and without
SELECT v, d FROM unnest('{2024-02-29Z,1970-01-01Z,+5874897-12-31Z,-0043-03-15Z,-4712-01-01Z,0000-12-30Z,+292278994-08-16Z,+292269055-12-02Z,-5877611-06-21Z,-5877611-06-22Z}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, convert_to('{"before":null,"after":{"id":1,"d":"' || v || '"},"op":"c"}', 'UTF8'));
SELECT v, ts, ts3 FROM unnest('{2024-02-29T23:59:59.999999Z,9999-12-31T23:59:59Z,+12345-06-07T08:09:10Z,-0043-03-15T12:00:00Z,0000-12-31T00:00:00Z,+294247-01-10T04:00:25.2Z,-290308-12-21T19:59:27.6Z}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, convert_to('{"before":null,"after":{"id":1,"ts":"' || v || '","ts3":"' || v || '"},"op":"c"}', 'UTF8'));
SELECT ds FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"ds":["2024-02-29Z",null,"-5877611-06-21Z"]},"op":"c"}');
SELECT d FROM upsert_kafka.decode(NULL::real_values, NULL, real_event('d', 'string', 'io.debezium.time.IsoDate', '"-0043-03-15Z"'));
SELECT d FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"d":"-5877611-06-20Z"},"op":"c"}');
-- zoned timestamps are text in every mode
SELECT v, tz FROM unnest('{-0043-03-15T12:00:00.000000Z,0001-01-01T00:00:00.000000Z,+12345-06-07T08:09:10.000000Z,infinity}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, real_event('tz', 'string', 'io.debezium.time.ZonedTimestamp', to_json(v)::text));
SELECT v, ts FROM unnest('{-0043-03-15T12:00:00.000000Z,0001-01-01T00:00:00.000000Z,+12345-06-07T08:09:10.000000Z,infinity}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, real_event('ts', 'string', 'io.debezium.time.ZonedTimestamp', to_json(v)::text));
-- MariaDB's TIME into interval
SELECT iv FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"iv":"23:59:59.999Z"},"op":"c"}');
SELECT iv FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"iv":"P0Y-1M2DT0H0M0S"},"op":"c"}');

-- === other values ================================================================
-- numeric's infinities under decimal.handling.mode string
SELECT n FROM unnest('{NaN,POSITIVE_INFINITY,NEGATIVE_INFINITY,12.3400}'::text[]) v,
	LATERAL upsert_kafka.decode(NULL::real_values, NULL, convert_to('{"before":null,"after":{"id":1,"n":"' || v || '"},"op":"c"}', 'UTF8'));
-- bit(1) is a boolean
SELECT b, bv, flag FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"b":true,"bv":false,"flag":true},"op":"c"}');
-- a point is a struct
SELECT p FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"p":{"x":0.1,"y":1e+100,"wkb":"AQEAAACamZmZmZm5P33DlCWtSbJU","srid":null}},"op":"c"}');
SELECT p FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"p":"(1,2)"},"op":"c"}');
SELECT p FROM upsert_kafka.decode(NULL::real_values, NULL, '{"before":null,"after":{"id":1,"p":{"x":0.1}},"op":"c"}');

-- === extension types =============================================================
-- hstore and ltree call bad text a syntax error: it is the message's fault all the same (22P02), not the table's
CREATE EXTENSION hstore;
CREATE FOREIGN TABLE real_hstore (id int, h hstore) SERVER real OPTIONS (connector 'kafka', topic 'real', value_format 'debezium-json');
SELECT h FROM upsert_kafka.decode(NULL::real_hstore, NULL, '{"before":null,"after":{"id":1,"h":"a=>1"},"op":"c"}');
\set VERBOSITY sqlstate
SELECT h FROM upsert_kafka.decode(NULL::real_hstore, NULL, '{"before":null,"after":{"id":1,"h":"{\"a\":\"1\",\"b c\":null}"},"op":"c"}');
\set VERBOSITY default

DROP FOREIGN TABLE real_values, real_hstore;
DROP EXTENSION hstore;
DROP FUNCTION real_event;
DROP SERVER real;
