-- Options of servers, user mappings, foreign tables and columns: each one used, and
-- each one got wrong.
\set VERBOSITY default

-- === servers ====================================================================
-- bootstrap_servers is required, and must name something
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka;
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers ' ');
-- a typo gets the closest name as hint
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_server 'localhost:9092');
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092', "security.protcol" 'plaintext');
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092', colour 'blue');
-- timeout takes milliseconds or a unit
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092', timeout 'soon');
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092', timeout '5');
-- client properties: Kafka's spelling, Flink's prefix or snake_case; the client itself checks the value
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:9092', "security.protocol" 'pigeon');
CREATE SERVER opt FOREIGN DATA WRAPPER upsert_kafka
	OPTIONS ("properties.bootstrap.servers" 'localhost:9092', timeout '5s', security_protocol 'plaintext', "properties.client.id" 'test');
-- two spellings of one option in one list
CREATE SERVER opt2 FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'a:1', "properties.bootstrap.servers" 'b:1');
ALTER SERVER opt OPTIONS (ADD "security.protocol" 'ssl');
-- secrets are no server options, whatever their spelling
ALTER SERVER opt OPTIONS (ADD sasl_password 'pssst');
ALTER SERVER opt OPTIONS (ADD "properties.ssl.key.pem" 'pssst');
-- what the extension sets itself, or what would run code
ALTER SERVER opt OPTIONS (ADD "enable.auto.commit" 'true');
ALTER SERVER opt OPTIONS (ADD "auto.offset.reset" 'latest');
ALTER SERVER opt OPTIONS (ADD "plugin.library.paths" '/tmp/x.so');
ALTER SERVER opt OPTIONS (ADD "sasl.kerberos.kinit.cmd" 'rm -rf /');
-- Java's properties have their own hints
ALTER SERVER opt OPTIONS (ADD "properties.ssl.truststore.location" '/tmp/trust.jks');
-- the wrapper itself takes none
CREATE FOREIGN DATA WRAPPER opt_wrapper HANDLER upsert_kafka.topic_handler VALIDATOR upsert_kafka.topic_validator OPTIONS (a 'b');

-- === user mappings ==============================================================
-- secrets live here
CREATE USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (sasl_username 'me', "sasl.password" 'pssst', "sasl.mechanism" 'PLAIN');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD "properties.sasl.password" 'again');
-- what describes the server does not
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD bootstrap_servers 'elsewhere:9092');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD "client.id" 'me');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD "sasl.oauthbearer.token.endpoint.url" 'http://169.254.169.254/');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD "sasl.jaas.config" 'x');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD sasl_pasword 'x');
ALTER USER MAPPING FOR CURRENT_USER SERVER opt OPTIONS (ADD elephant 'x');
DROP USER MAPPING FOR CURRENT_USER SERVER opt;
CREATE USER MAPPING FOR PUBLIC SERVER opt OPTIONS ("ssl.key.password" 'pssst');

-- === files of the server ========================================================
CREATE ROLE opt_user;
GRANT USAGE ON FOREIGN SERVER opt TO opt_user;
SET ROLE opt_user;
CREATE USER MAPPING FOR opt_user SERVER opt OPTIONS ("ssl.key.location" '/etc/ssl/private/key.pem');
CREATE USER MAPPING FOR opt_user SERVER opt OPTIONS ("properties.ssl.keystore.location" '/etc/shadow');
RESET ROLE;
GRANT pg_read_server_files TO opt_user;
SET ROLE opt_user;
CREATE USER MAPPING FOR opt_user SERVER opt OPTIONS ("ssl.key.location" '/etc/ssl/private/key.pem');
RESET ROLE;
DROP USER MAPPING FOR opt_user SERVER opt;
REVOKE ALL ON FOREIGN SERVER opt FROM opt_user;
DROP ROLE opt_user;

-- === tables: what is required ===================================================
CREATE FOREIGN TABLE opt_t (id int, v text) SERVER opt;
CREATE FOREIGN TABLE opt_t (id int, v text) SERVER opt OPTIONS (connector 'upsert-kafka');
CREATE FOREIGN TABLE opt_t (id int, v text) SERVER opt OPTIONS (connector 'upsert-kafka', topic 'opt');
CREATE FOREIGN TABLE opt_t (id int, v text) SERVER opt OPTIONS (connector 'upsert-kafka', topic 'opt', value_format 'json');
-- in snake_case, and as Flink writes it
CREATE FOREIGN TABLE opt_t (id int OPTIONS (key 'true'), v text) SERVER opt
	OPTIONS (connector 'upsert-kafka', topic 'opt', key_format 'json', value_format 'json');
CREATE FOREIGN TABLE opt_flink (id int OPTIONS (key 'true'), v text) SERVER opt
	OPTIONS (connector 'upsert-kafka', topic 'opt', "key.format" 'json', "value.format" 'json',
		"value.json.fail-on-missing-field" 'true', "value.fields-include" 'EXCEPT_KEY');
CREATE FOREIGN TABLE opt_log (v text) SERVER opt OPTIONS (connector 'kafka', topic 'opt', format 'raw');

-- === tables: each option wrong ==================================================
ALTER FOREIGN TABLE opt_t OPTIONS (SET connector 'kafka-upsert');
ALTER FOREIGN TABLE opt_t OPTIONS (SET topic '');
ALTER FOREIGN TABLE opt_t OPTIONS (SET topic 'a,b');
ALTER FOREIGN TABLE opt_t OPTIONS (SET topic 'a/b');
ALTER FOREIGN TABLE opt_t OPTIONS (SET value_format 'jsonl');
ALTER FOREIGN TABLE opt_t OPTIONS (SET key_format 'orc');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD format 'json');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "value.format" 'json');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD on_error 'ignore');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD time_zone 'Middle/Earth');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD changelog 'maybe');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD changelog 'true');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_fields_include 'NONE');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD value_fields_include 'EXCEPT_KEY');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD key_fields_prefix '');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD key_fields_prefix 'k_');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD key_fields 'id');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD key_fields 'id;;v');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD key_fields 'id;id');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD valeu_format 'json');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "properties.security.protocol" 'ssl');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD sasl_password 'pssst');
-- ... and right
ALTER FOREIGN TABLE opt_t OPTIONS (ADD on_error 'skip', ADD time_zone 'Europe/Berlin', ADD changelog 'true', ADD "value.fields-include" 'except-key');

-- === tables: options of formats =================================================
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_json_fail_on_missing_field 'perhaps');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_json_fail_on_missing 'true');
-- Flink's places for the registry's secrets are not ours
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "value.avro-confluent.basic-auth.user-info" 'me:secret');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "key.json.fail-on-mising-field" 'true');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "value.csv.null-literal" 'n/a');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_json_empty_value 'keep');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_raw_endianness 'big-endian');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD json_empty_value 'delete', ADD "value.json.empty-value" 'error');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD value_json_fail_on_missing_field 'true', ADD "json.empty-value" 'delete', ADD key_json_fail_on_missing_field 'true');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD "raw.endianness" 'LITTLE_ENDIAN');

-- === tables: where a scan starts and ends =======================================
-- an upsert topic is read from its beginning
ALTER FOREIGN TABLE opt_t OPTIONS (ADD scan_startup_mode 'earliest-offset');
ALTER FOREIGN TABLE opt_t OPTIONS (ADD "scan.startup.timestamp-millis" '0');
-- a mode and its argument belong together
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'yesterday');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'group-offsets');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'timestamp');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'specific-offsets');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_timestamp_millis '1700000000000');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'latest-offset', ADD scan_startup_specific_offsets 'partition:0,offset:42');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'timestamp', ADD scan_startup_timestamp_millis '2026-01-01');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'specific-offsets', ADD scan_startup_specific_offsets '0:42');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'specific-offsets', ADD scan_startup_specific_offsets 'partition:0,offset:42;partition:0,offset:43');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_startup_mode 'specific-offsets', ADD scan_startup_specific_offsets 'partition:0,offset:99999999999999999999');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_bounded_mode 'tomorrow');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_bounded_mode 'timestamp');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_bounded_specific_offsets 'partition:0,offset:42');
ALTER FOREIGN TABLE opt_log OPTIONS (ADD scan_bounded_mode 'timestamp', ADD scan_bounded_timestamp_millis '-1');
-- all modes
ALTER FOREIGN TABLE opt_log OPTIONS (ADD "scan.startup.mode" 'specific-offsets', ADD "scan.startup.specific-offsets" 'partition:0,offset:42;partition:1,offset:300',
	ADD scan_bounded_mode 'specific-offsets', ADD scan_bounded_specific_offsets 'partition:0,offset:50;partition:1,offset:301');
ALTER FOREIGN TABLE opt_log OPTIONS (SET "scan.startup.mode" 'timestamp', DROP "scan.startup.specific-offsets", ADD scan_startup_timestamp_millis '1700000000000',
	SET scan_bounded_mode 'timestamp', DROP scan_bounded_specific_offsets, ADD scan_bounded_timestamp_millis '1700000001000');
ALTER FOREIGN TABLE opt_log OPTIONS (SET "scan.startup.mode" 'latest-offset', DROP scan_startup_timestamp_millis,
	SET scan_bounded_mode 'unbounded', DROP scan_bounded_timestamp_millis);
ALTER FOREIGN TABLE opt_log OPTIONS (SET "scan.startup.mode" 'earliest-offset', SET scan_bounded_mode 'latest-offset');

-- === columns ====================================================================
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD kee 'true');
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD key 'primary');
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD field '');
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD metadata 'ofset');
-- of another format: each list is right by itself, the table as a whole is not
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD metadata 'value.source.timestamp');
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (DROP metadata);
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD field 'x', ADD metadata 'offset');
ALTER FOREIGN TABLE opt_t ALTER COLUMN v OPTIONS (ADD field 'V');
ALTER FOREIGN TABLE opt_t ADD COLUMN m1 text OPTIONS (metadata 'timestamp_type'), ADD COLUMN m2 bytea OPTIONS (metadata 'raw key');

DROP FOREIGN TABLE opt_t, opt_flink, opt_log;
DROP SERVER opt CASCADE;
