# Dump and restore (K07): tables, versions, history, functions, registration, positions and errors come back,
# the restore is not hindered by our triggers, and a copy does not act.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_locks_per_transaction = 256");
$node->start;

# Everything that a restore must bring back, as text. OIDs and times of creation differ, names do not.
my $picture = q{
SET search_path = '';
SELECT * FROM app.rates ORDER BY 1;
SELECT * FROM app.rates__versions ORDER BY __seq;
SELECT * FROM app.plain ORDER BY 1;
SELECT * FROM app.plain__origins ORDER BY 1;
SELECT c.oid::regclass, c.relkind, r.rolname, c.reloptions, pg_catalog.obj_description(c.oid, 'pg_class')
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
 WHERE c.relnamespace = 'app'::regnamespace ORDER BY c.relname;
SELECT c.relname, a.grantor::regrole, a.grantee::regrole, a.privilege_type, a.is_grantable
  FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a WHERE c.relnamespace = 'app'::regnamespace ORDER BY 1, 2, 3, 4;
SELECT attrelid::regclass, attname, attacl FROM pg_catalog.pg_attribute WHERE attacl IS NOT NULL AND attrelid::regclass::text LIKE 'app.%' ORDER BY 1, 2;
SELECT oid::regprocedure, prosrc FROM pg_catalog.pg_proc WHERE pronamespace = 'app'::regnamespace ORDER BY proname, oid::regprocedure::text;
SELECT tgrelid::regclass, tgname FROM pg_catalog.pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid::regclass::text;
SELECT indexrelid::regclass, pg_catalog.pg_get_indexdef(indexrelid) FROM pg_catalog.pg_index WHERE indrelid::regclass::text LIKE 'app.%' ORDER BY indexrelid::regclass::text;
SELECT target, source, versions, history, origins, columns, source_columns, key_columns, event_time, on_error, state, system_identifier
  FROM upsert_kafka.maintained_table ORDER BY target::text;
SELECT * FROM upsert_kafka.position_state ORDER BY target::text;
SELECT * FROM upsert_kafka.message_error ORDER BY target::text;
SELECT * FROM upsert_kafka.topic_source ORDER BY target::text, source;
};
my $states = q{SELECT string_agg(target || ' ' || state, ', ' ORDER BY target::text) FROM upsert_kafka.tables};

$node->safe_psql('postgres', 'CREATE DATABASE origin');
$node->safe_psql('origin', q{
CREATE ROLE app_owner;
CREATE ROLE app_reader;
CREATE EXTENSION upsert_kafka;
CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1');
GRANT USAGE ON FOREIGN SERVER kafka TO app_owner;
CREATE SCHEMA app AUTHORIZATION app_owner;
SET ROLE app_owner;
CREATE FOREIGN TABLE app.topic ("Key" text OPTIONS (key 'true'), v numeric(10,2), gone int, at timestamptz)
  SERVER kafka OPTIONS (connector 'upsert-kafka', topic 'rates', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('app.topic', 'rates', event_time => 'at');
SELECT upsert_kafka.materialize('app.topic', 'plain', history => false);
ALTER TABLE app.rates DROP COLUMN gone;
ALTER TABLE app.rates RENAME COLUMN v TO value;
GRANT SELECT ON app.rates TO app_reader WITH GRANT OPTION;
GRANT SELECT ("Key") ON app.plain TO app_reader;
RESET ROLE;
-- what apply would have written
SET session_replication_role = replica;
INSERT INTO app.rates VALUES ('Euro', 1.18, '2026-01-02 00:00+00');
INSERT INTO app.rates__versions ("Key", value, at, __valid_from, __seq, __op, __partition, __offset)
VALUES ('Euro', 1.14, '2026-01-01 00:00+00', '2026-01-01 00:00+00', 1, 'u', 0, 0), ('Euro', 1.18, '2026-01-02 00:00+00', '2026-01-02 00:00+00', 2, 'u', 0, 5);
INSERT INTO app.plain VALUES ('Yen', 100, 1, NULL);
INSERT INTO app.plain__origins ("Key", __valid_from, __seq, __op, __partition, __offset) VALUES ('Yen', '2026-01-01 00:00+00', 1, 'u', 3, 7);
INSERT INTO upsert_kafka.position_state VALUES ('app.rates', 'rates', '{0,1}', '{6,0}', '{5,-1}', '{1767225600000,-1}', '{4711,0}', 3, '2026-01-03 00:00+00');
INSERT INTO upsert_kafka.topic_source VALUES ('app.rates', 0, 'rates', 0, false), ('app.rates', 1, 'other rates', 1, true);
INSERT INTO upsert_kafka.message_error (target, topic, partition, "offset", raw_key, raw_value, sqlstate, message)
VALUES ('app.rates', 'rates', 0, 3, '"Euro"', '\x00ff', '22P02', 'wrong');
UPDATE upsert_kafka.maintained_table SET state = 'live';
});
my $original = $node->safe_psql('origin', $picture);
like($original, qr/4711/, 'the picture shows positions');
like($original, qr/other rates/, 'and numbers of sources');
is($node->safe_psql('origin', $states), 'app.plain live, app.rates live', 'the original is live');

my $dir = PostgreSQL::Test::Utils::tempdir;
$node->command_ok([ 'pg_dump', '-f', "$dir/plain.sql", 'origin' ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/custom", 'origin' ], 'pg_dump -Fc');
sub target { return ('-d', $node->connstr(shift)); }

# === a plain dump into another database of the same cluster ===
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/plain.sql", target('copy') ], 'restore with psql');
is($node->safe_psql('copy', $picture), $original, 'everything is back');
is($node->safe_psql('copy', $states), 'app.plain restored, app.rates restored', 'a copy does not act');
is($node->safe_psql('copy', q{SELECT string_agg(partition || '=' || next_offset, ' ') FROM upsert_kafka.position('app.rates')}),
	'0=6 1=0', 'its positions are known');
my ($ret, $out, $err) = $node->psql('copy', q{INSERT INTO app.rates VALUES ('Yen', 1)});
like($err, qr/only its topic changes it/, 'DML is refused in the copy');
($ret, $out, $err) = $node->psql('copy', 'DROP FOREIGN TABLE app.rates_history CASCADE');
like($err, qr/cannot drop the history/, 'its parts are protected');
$node->safe_psql('copy', 'GRANT SELECT ON app.plain TO app_owner; ALTER TABLE app.rates ADD COLUMN more text; ALTER TABLE app.rates RENAME TO rates2');
is($node->safe_psql('copy', q{SELECT count(*) FROM pg_attribute WHERE attname = 'more' AND attrelid IN ('app.rates2__versions'::regclass, 'app.rates2_history'::regclass)}),
	2, 'its parts follow');
# pg_dump knows nothing of what keeps the parts together; the guard trigger brought it back
is($node->safe_psql('copy', q{SELECT count(*) FROM pg_depend WHERE refobjid = 'app.rates2'::regclass AND deptype = 'a'
	AND (classid = 'pg_proc'::regclass OR objid IN ('app.rates2_history'::regclass, 'app.rates2__versions'::regclass))}), 10, 'dependencies are back');
$node->safe_psql('copy', 'DROP TABLE app.rates2');
is($node->safe_psql('copy', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'rates2%'}), 0, 'its parts go with it');
is($node->safe_psql('copy', q{SELECT (SELECT count(*) FROM upsert_kafka.maintained_table), (SELECT count(*) FROM upsert_kafka.position_state), (SELECT count(*) FROM upsert_kafka.message_error), (SELECT count(*) FROM upsert_kafka.topic_source)}),
	'1|0|0|0', 'its registration goes with it');

# === pg_restore into a new database, in one transaction and with several jobs ===
$node->safe_psql('postgres', 'CREATE DATABASE one');
$node->command_ok([ 'pg_restore', '--clean', '--if-exists', '--single-transaction', target('one'), "$dir/custom" ],
	'pg_restore --clean --single-transaction into an empty database');
is($node->safe_psql('one', $picture), $original, 'everything is back');
# GRANTs on a table and on its history come at the same time here
for my $jobs (2, 4, 8)
{
	$node->safe_psql('postgres', "CREATE DATABASE jobs$jobs");
	$node->command_ok([ 'pg_restore', '-j', $jobs, target("jobs$jobs"), "$dir/custom" ], "pg_restore -j $jobs");
	is($node->safe_psql("jobs$jobs", $picture), $original, 'everything is back');
}

# === over the tables that are there: the guard goes first, and with it all that would refuse ===
$node->command_ok([ 'pg_restore', '--clean', '--single-transaction', target('one'), "$dir/custom" ], 'pg_restore --clean over a copy');
is($node->safe_psql('one', $picture), $original, 'everything is back');
$node->command_ok([ 'pg_restore', '--clean', '--if-exists', '-e', target('origin'), "$dir/custom" ], 'pg_restore --clean over the original');
is($node->safe_psql('origin', $picture), $original, 'everything is back');
is($node->safe_psql('origin', $states), 'app.plain live, app.rates live', 'the original goes on from its restored positions');

# === in sections: until the triggers are there, the restore has not ended ===
$node->safe_psql('postgres', 'CREATE DATABASE sections');
$node->command_ok([ 'pg_restore', '--section=pre-data', '--section=data', target('sections'), "$dir/custom" ], 'pg_restore without triggers');
is($node->safe_psql('sections', $states), 'app.plain restored, app.rates restored', 'a restore that has not ended does not act');
$node->command_ok([ 'pg_restore', '--section=post-data', target('sections'), "$dir/custom" ], 'pg_restore of the rest');
is($node->safe_psql('sections', $picture), $original, 'everything is back');

$node->stop;
done_testing();
