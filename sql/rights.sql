-- === rights: an ordinary user from start to end, and what another one sees ===
ALTER SYSTEM SET upsert_kafka.workers = off;
SELECT pg_reload_conf();
CREATE SERVER rights_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
CREATE ROLE regress_owner;
CREATE ROLE regress_reader;
CREATE ROLE regress_friend;
CREATE SCHEMA rights;
GRANT USAGE ON SCHEMA rights TO PUBLIC;
CREATE FOREIGN TABLE rights.src (id int OPTIONS (key 'true'), v text, secret text)
  SERVER rights_kafka OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');

-- === materialize needs to read the source, and to create in the schema ===
SET ROLE regress_owner;
SELECT upsert_kafka.materialize('rights.src', 't');
RESET ROLE;
GRANT SELECT ON rights.src TO regress_owner;
SET ROLE regress_owner;
SELECT upsert_kafka.materialize('rights.src', 't');
RESET ROLE;
GRANT CREATE ON SCHEMA rights TO regress_owner;
-- default privileges open new tables to a reader: the current table and its history alike, but not the versions
ALTER DEFAULT PRIVILEGES FOR ROLE regress_owner GRANT SELECT ON TABLES TO regress_friend;
SET ROLE regress_owner;
SELECT upsert_kafka.materialize('rights.src', 't');
SELECT upsert_kafka.materialize('rights.src', 'n', history => false);
RESET ROLE;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_owner REVOKE SELECT ON TABLES FROM regress_friend;
-- who may SELECT, from whom, * with grant option
CREATE FUNCTION rights.readers(acl aclitem[]) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(coalesce(r.rolname, 'public') || CASE WHEN is_grantable THEN '*' ELSE '' END || '/' || grantor::regrole, ' ' ORDER BY n)
	  FROM aclexplode(acl) WITH ORDINALITY AS a(grantor, grantee, privilege_type, is_grantable, n) LEFT JOIN pg_roles r ON r.oid = grantee WHERE privilege_type = 'SELECT'
$$;
CREATE VIEW rights.readers AS
SELECT relname, relowner::regrole, rights.readers(relacl) FROM pg_class
 WHERE relnamespace = 'rights'::regnamespace AND relkind IN ('r', 'f') AND relname <> 'src' ORDER BY relname;
SELECT * FROM rights.readers;
SET ROLE regress_owner;
REVOKE SELECT ON rights.t, rights.n FROM regress_friend;

-- === the catalogs are closed, the views show what one may read ===
SELECT count(*) FROM upsert_kafka.maintained_table;
SELECT target, state FROM upsert_kafka.tables ORDER BY target::text;
RESET ROLE;
INSERT INTO upsert_kafka.message_error (target, topic, partition, "offset", raw_key, raw_value, sqlstate, message)
VALUES ('rights.t', 't', 0, 7, '1', '{"secret":"s"}', '22P02', 'wrong');
SET ROLE regress_reader;
SELECT target FROM upsert_kafka.tables;
SELECT * FROM upsert_kafka.position('rights.t');
-- some columns are not enough to see raw messages, nor to see the table listed
RESET ROLE;
SET ROLE regress_owner;
GRANT SELECT (id, v) ON rights.t TO regress_reader;
RESET ROLE;
SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'rights.t_history'::regclass AND attacl IS NOT NULL ORDER BY attnum;
SET ROLE regress_reader;
SELECT count(*) FROM upsert_kafka.errors;
RESET ROLE;

-- === GRANT and REVOKE on the table are mirrored on its history ===
SET ROLE regress_owner;
REVOKE SELECT (id, v) ON rights.t FROM regress_reader;
GRANT SELECT, INSERT ON rights.t TO regress_reader WITH GRANT OPTION;
SET ROLE regress_reader;
GRANT SELECT ON rights.t TO regress_friend;
RESET ROLE;
SELECT * FROM rights.readers;
SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'rights.t_history'::regclass AND attacl IS NOT NULL ORDER BY attnum;
SET ROLE regress_friend;
SELECT target, errors FROM upsert_kafka.tables;
SELECT target, raw_value, superseded FROM upsert_kafka.errors;
SELECT count(*) FROM upsert_kafka.position('rights.t');
SELECT count(*) FROM rights.t__versions;
-- what others may read they may not change, nor drop
INSERT INTO rights.t VALUES (1);
SELECT upsert_kafka.drop('rights.t');
SET ROLE regress_reader;
INSERT INTO rights.t VALUES (1);
RESET ROLE;
-- rights on the history alone do not last
GRANT SELECT ON rights.t_history TO PUBLIC;
SELECT * FROM rights.readers WHERE relname = 't_history';

-- names without a schema, and all tables of one
SET search_path = rights;
REVOKE SELECT ON t FROM regress_reader CASCADE;
SELECT * FROM readers WHERE relname LIKE 't%';
GRANT SELECT ON ALL TABLES IN SCHEMA rights TO regress_friend;
SELECT * FROM readers;
REVOKE SELECT ON ALL TABLES IN SCHEMA rights FROM regress_friend;
GRANT SELECT ON t TO regress_reader, regress_friend;
RESET search_path;

-- === row security closes the raw messages, and texts that may repeat values ===
UPDATE upsert_kafka.maintained_table SET state = 'stopped', error_sqlstate = '22P02', error_message = 'invalid input: "s"', error_partition = 0, error_offset = 7
 WHERE target = 'rights.t'::regclass;
ALTER TABLE rights.t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_friend;
SELECT count(*) FROM upsert_kafka.errors;
SELECT state, error_sqlstate, error_message, error_offset FROM upsert_kafka.tables;
SET ROLE regress_owner;
SELECT count(*) FROM upsert_kafka.errors;
SELECT state, error_sqlstate, error_message, error_offset FROM upsert_kafka.tables WHERE target = 'rights.t'::regclass;
RESET ROLE;
ALTER TABLE rights.t DISABLE ROW LEVEL SECURITY;

-- === the owner's DDL is followed with his own rights ===
SET ROLE regress_owner;
ALTER TABLE rights.t DROP COLUMN secret;
ALTER TABLE rights.t RENAME TO t2;
RESET ROLE;
-- somebody without any right on the table changes what its functions depend on
ALTER FOREIGN TABLE rights.src OWNER TO regress_friend;
GRANT USAGE ON FOREIGN SERVER rights_kafka TO regress_friend;
SET ROLE regress_friend;
ALTER FOREIGN TABLE rights.src OPTIONS (ADD time_zone 'Asia/Tokyo');
RESET ROLE;
SELECT proowner::regrole, prosrc FROM pg_proc WHERE oid = 'rights.t2__as_of(timestamp)'::regprocedure;
-- a role that is mentioned only in a history cannot be dropped
DROP ROLE regress_reader;
REVOKE ALL ON rights.t2 FROM regress_reader CASCADE;
SELECT * FROM rights.readers;
DROP ROLE regress_reader;

SET ROLE regress_owner;
SELECT upsert_kafka.drop('rights.t2');
DROP TABLE rights.n;
RESET ROLE;
SELECT relname FROM pg_class WHERE relnamespace = 'rights'::regnamespace AND relkind IN ('r', 'f');
SELECT count(*) FROM upsert_kafka.maintained_table;
SELECT count(*) FROM upsert_kafka.message_error;

SET client_min_messages = warning;
DROP SCHEMA rights CASCADE;
RESET client_min_messages;
DROP SERVER rights_kafka;
DROP ROLE regress_owner, regress_friend;
ALTER SYSTEM RESET upsert_kafka.workers;
SELECT pg_reload_conf();
