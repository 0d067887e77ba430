-- === nothing stays behind ===
SET client_min_messages = warning;
DROP EXTENSION upsert_kafka CASCADE;
RESET client_min_messages;
SELECT fdwname FROM pg_foreign_data_wrapper;
SELECT evtname FROM pg_event_trigger;

-- the schema is PostgreSQL's doing and stays, but it is empty: no error without CASCADE
DROP SCHEMA upsert_kafka;

-- and the extension can come back
CREATE EXTENSION upsert_kafka;
DROP EXTENSION upsert_kafka;
DROP SCHEMA upsert_kafka;
