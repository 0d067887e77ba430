-- === IMPORT FOREIGN SCHEMA: tables proposed from topics and their last messages ===
\set VERBOSITY default
\set broker `echo "$BROKER"`
CREATE SERVER imp FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker', timeout '10s');
CREATE SCHEMA imp;
SET search_path = imp, public;
CREATE VIEW proposed AS
	SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attfdwoptions AS options
	  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	 WHERE c.relkind = 'f' AND c.relnamespace = 'imp'::regnamespace AND a.attnum > 0
	 ORDER BY 1, 2;
CREATE VIEW proposed_table AS
	SELECT ftrelid::regclass AS table, ftoptions AS options FROM pg_foreign_table
	  JOIN pg_class c ON c.oid = ftrelid WHERE c.relnamespace = 'imp'::regnamespace ORDER BY c.relname;

-- every kind of member: types that fit all values of the sample, in the order of the messages, whichever partition comes first
\! test/kt create import_kinds -p 2 --fresh
\! printf '%s\n' '[p=0] {"id": 1}|{"id": 1, "n": 1, "price": 10, "big": 9223372036854775808, "ok": true, "at": "2026-01-31T12:00:00Z", "local": "2026-01-31 12:00:00.5", "day": "2026-01-31", "mixed": 1, "tags": ["a"], "none": null, "Odd name": "x"}' '[p=1] {"id": 2}|{"n": -2, "price": 1.50, "big": 1, "ok": false, "at": "2026-01-31T12:00:00.25+01:00", "local": "2026-02-28T00:00", "day": "2025-12-24", "mixed": "one", "tags": {"a": 1}, "none": null, "Odd name": null, "late": "2026-13-01"}' '[p=1] {"id": 2}|∅' | test/kt produce import_kinds

-- keys that are text, values that are JSON; one value has a member called key
\! test/kt create import_text_key --fresh
\! printf '%s\n' 'a|{"key": 1, "v": "x"}' 'b|{"key": 2, "v": "y"}' | test/kt produce import_text_key
-- no keys: rows of an append topic
\! test/kt create import_log --fresh
\! printf '%s\n' 'first line' 'second line' | test/kt produce import_log -k ''
-- bytes that are no text
\! test/kt create import_bytes --fresh
\! printf '%s\n' "x'00000001'|x'ff00'" | test/kt produce import_bytes
-- only some messages have keys; not every value is an object
\! test/kt create import_some --fresh
\! printf '%s\n' 'a|{"v": 1}' '∅|[1, 2]' | test/kt produce import_some
-- nothing at all
\! test/kt create import_empty --fresh
-- names that need quotes, are too long for PostgreSQL, or that no column could have
\! test/kt create import.Names-1 --fresh
\! printf '%s\n' 'a|{"select": 1, "it'"'"'s \"q\"": 2, "": 3, "nul\u0000": 4, "a_name_that_is_much_longer_than_the_sixty_three_bytes_of_an_identifier": 5, "a_name_that_is_much_longer_than_the_sixty_three_bytes_of_an_ident": 6}' | test/kt produce import.Names-1

IMPORT FOREIGN SCHEMA topics LIMIT TO (import_kinds, import_text_key, import_log, import_bytes, import_some, import_empty, "import.Names-1")
	FROM SERVER imp INTO imp;
SELECT * FROM proposed_table;
SELECT attname, type, options FROM proposed WHERE relname = 'import_kinds';
SELECT relname, attname, type, options FROM proposed WHERE relname NOT IN ('import_kinds', 'import.Names-1');
SELECT attname, type, options FROM proposed WHERE relname = 'import.Names-1';

-- the tables can be read
SELECT id, n, price, at AT TIME ZONE 'UTC' AS at, local, mixed, tags, "Odd name" FROM import_kinds;
SELECT * FROM import_text_key ORDER BY message_key;
SELECT * FROM import_log;
SELECT * FROM import_bytes;
SELECT * FROM import_some;
SELECT * FROM import_empty;
SELECT "it's ""q""", a_name_that_is_much_longer_than_the_sixty_three_bytes_of_an_i_2 FROM "import.Names-1";

-- the connector can be chosen; a smaller sample sees less: the tombstone of partition 1 and one value
DROP FOREIGN TABLE import_kinds, import_log, import_text_key;
IMPORT FOREIGN SCHEMA topics LIMIT TO (import_kinds, import_text_key) FROM SERVER imp INTO imp OPTIONS (connector 'kafka', sample '2');
SELECT t.options FROM proposed_table t WHERE t.table = 'import_kinds'::regclass;
SELECT attname, type FROM proposed WHERE relname = 'import_kinds' AND attname IN ('n', 'mixed', 'late');
IMPORT FOREIGN SCHEMA topics LIMIT TO (import_log) FROM SERVER imp INTO imp OPTIONS (connector 'upsert-kafka', sample '0');
SELECT relname, attname, type, options FROM proposed WHERE relname = 'import_log';

-- EXCEPT: all topics but these, and those of the broker itself
DROP FOREIGN TABLE import_kinds, import_log, import_text_key, import_bytes, import_some, import_empty, "import.Names-1";
\set topics `test/kt list`
SELECT string_agg(quote_ident(topic), ', ') AS others
  FROM regexp_split_to_table(:'topics', E'\n') topic WHERE topic !~ '^import_log$|^__|^$' \gset
IMPORT FOREIGN SCHEMA topics EXCEPT (:others) FROM SERVER imp INTO imp;
SELECT DISTINCT relname FROM proposed;

-- what is wrong says so
IMPORT FOREIGN SCHEMA topics FROM SERVER imp INTO imp OPTIONS (samples '2');
IMPORT FOREIGN SCHEMA topics FROM SERVER imp INTO imp OPTIONS (sample 'all');
IMPORT FOREIGN SCHEMA topics FROM SERVER imp INTO imp OPTIONS (connector 'files');
-- a table that is there already: nothing is imported
IMPORT FOREIGN SCHEMA topics LIMIT TO (import_log, import_bytes) FROM SERVER imp INTO imp;
SELECT DISTINCT relname FROM proposed;
-- H09: no broker
CREATE SERVER imp_down FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '300ms');
\set VERBOSITY sqlstate
IMPORT FOREIGN SCHEMA topics FROM SERVER imp_down INTO imp;
\set VERBOSITY default

RESET search_path;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA imp CASCADE;
DROP SERVER imp CASCADE;
DROP SERVER imp_down CASCADE;
\! for t in kinds text_key log bytes some empty; do test/kt delete import_$t; done; test/kt delete import.Names-1
