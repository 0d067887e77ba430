# Passwords, certificates and rights, with a Kafka that asks for them: who gets in, who does
# not and what the error says, that secrets appear nowhere, and that apply is its owner's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;
use Acl;
use Faults;

plan skip_all => 'the broker at hand has no listener for SASL and TLS' unless $ENV{BROKER_SASL};
my ($sasl, $ssl, $sasl_ssl) = @ENV{ 'BROKER_SASL', 'BROKER_SSL', 'BROKER_SASL_SSL' };
my $ca = slurp_file($ENV{BROKER_CA});
my $other_ca = slurp_file($ENV{BROKER_OTHER_CA});

# all that was said to anybody
my $said = '';
my $node = start_node('security', conf => "log_statement = none\nlog_min_messages = debug1\nupsert_kafka.wait_timeout = 2min\n");

sub as
{
	my ($role, @commands) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', join(";\n", "SET ROLE $role", @commands), extra_params => [ '-v', 'VERBOSITY=verbose' ], on_error_stop => 1);
	$said .= $out . $err;
	return wantarray ? ($rc, $out, $err) : $out . $err;
}
sub allowed
{
	my ($role, $sql, $expected, $what) = @_;
	is(scalar(as($role, $sql)), $expected, $what);
	return;
}
sub refused
{
	my ($role, $sql, $state, $like, $what) = @_;
	my ($rc, $out, $err) = as($role, $sql);
	ok($err =~ /ERROR:  $state:/ && $err =~ $like, $what) or diag("$out$err");
	return;
}

my $topic = create_topic(unique_topic('security'), 1);
produce($topic, '{"k":1}|{"v":"a"}', '{"k":2}|{"v":"b"}', '{"k":1}|{"v":"c"}');

# app may use the servers and has a password of its own; bob's Kafka user may read nothing
$node->safe_psql('postgres', qq{
	CREATE ROLE app LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE forgetful LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE deputy LOGIN; GRANT app TO deputy;
	CREATE ROLE files LOGIN; GRANT pg_read_server_files TO files;
	GRANT CREATE ON SCHEMA public TO app, bob, forgetful, stranger, files;
	GRANT USAGE ON FOREIGN DATA WRAPPER upsert_kafka TO app, files;
	CREATE SERVER sasl FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$sasl', "security.protocol" 'SASL_PLAINTEXT', "sasl.mechanism" 'PLAIN', timeout '10s');
	CREATE SERVER scram FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$sasl', "security.protocol" 'SASL_PLAINTEXT', "sasl.mechanism" 'SCRAM-SHA-256', timeout '10s');
	CREATE SERVER ssl FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$ssl', "security.protocol" 'SSL', "ssl.ca.pem" '$ca', timeout '10s');
	CREATE SERVER wrong_ca FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$ssl', "security.protocol" 'SSL', "ssl.ca.pem" '$other_ca', timeout '10s');
	CREATE SERVER no_tls FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$ssl', timeout '2s');
	CREATE SERVER tls_for_nothing FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '${\ broker()}', "security.protocol" 'SSL', "ssl.ca.pem" '$ca', timeout '10s');
	CREATE SERVER sasl_ssl FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$sasl_ssl', "security.protocol" 'SASL_SSL', "sasl.mechanism" 'PLAIN', "ssl.ca.pem" '$ca', timeout '10s');
	GRANT USAGE ON FOREIGN SERVER sasl, scram, ssl, wrong_ca, no_tls, tls_for_nothing, sasl_ssl TO app, bob, forgetful, stranger, files;
	CREATE USER MAPPING FOR app SERVER sasl OPTIONS (sasl_username 'alice', sasl_password 'alice-secret');
	CREATE USER MAPPING FOR bob SERVER sasl OPTIONS (sasl_username 'bob', sasl_password 'bob-secret');
	CREATE USER MAPPING FOR forgetful SERVER sasl OPTIONS (sasl_username 'alice', sasl_password 'forgotten-secret');
	CREATE USER MAPPING FOR app SERVER scram OPTIONS (sasl_username 'alice', sasl_password 'scram-secret');
	CREATE USER MAPPING FOR app SERVER sasl_ssl OPTIONS (sasl_username 'alice', sasl_password 'alice-secret');
	CREATE USER MAPPING FOR bob SERVER sasl_ssl OPTIONS (sasl_username 'alice', sasl_password 'wrong-secret');
});
foreach my $server ('sasl', 'scram', 'ssl', 'wrong_ca', 'no_tls', 'tls_for_nothing', 'sasl_ssl')
{
	as('app', "CREATE FOREIGN TABLE ${server}_state (k int OPTIONS (key 'true'), v text) SERVER $server
		OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json'); GRANT SELECT ON ${server}_state TO PUBLIC");
}
# a table is read with the rights of who asks
my $all = 'SELECT string_agg(v, NULL ORDER BY k) FROM';

# === who gets in ===========================================================================
allowed('app', "$all sasl_state", 'cb', 'SASL, right password');
allowed('app', "$all ssl_state", 'cb', 'TLS, right authority, no user mapping');
allowed('app', "$all sasl_ssl_state", 'cb', 'SASL over TLS');
refused('forgetful', "$all sasl_state", '28000', qr/server "sasl" refused authentication.*Check sasl_username and sasl_password in the user mapping/s, 'SASL, wrong password');
refused('bob', "$all sasl_ssl_state", '28000', qr/server "sasl_ssl" refused authentication/, 'SASL over TLS, wrong password');
refused('app', "$all wrong_ca_state", '28000', qr/TLS connection to Kafka server "wrong_ca" was refused.*certificate verify failed.*authority that signed/s, 'TLS, another authority');
refused('app', "$all no_tls_state", '08001', qr/server "no_tls" did not answer.*security\.protocol/s, 'no TLS where it is wanted');
refused('app', "$all tls_for_nothing_state", '28000', qr/TLS connection to Kafka server "tls_for_nothing" was refused.*Check "security.protocol"/s, 'TLS where it is not');
refused('bob', "$all sasl_state", '42501', qr/server "sasl" denies access to topic "$topic".*needs the operations Describe and Read/s, 'topic not authorised');
# several topics: who may not read one of a list gets none of it; a pattern finds what one may describe
my $beside = create_topic(unique_topic('security_beside'), 1);
produce($beside, '{"k":4}|{"v":"z"}');
as('app', "CREATE FOREIGN TABLE sasl_list (k int OPTIONS (key 'true'), v text) SERVER sasl
	OPTIONS (connector 'upsert-kafka', topic '$topic;$beside', key_format 'json', value_format 'json'); GRANT SELECT ON sasl_list TO PUBLIC",
	"CREATE FOREIGN TABLE sasl_match (k int OPTIONS (key 'true'), v text) SERVER sasl
	OPTIONS (connector 'upsert-kafka', topic_pattern '$topic|$beside', key_format 'json', value_format 'json'); GRANT SELECT ON sasl_match TO PUBLIC");
allowed('app', "$all sasl_list", 'cbz', 'a list, with the right to read all of it');
allowed('app', "$all sasl_match", 'cbz', 'a pattern');
refused('bob', "$all sasl_list", '42501', qr/server "sasl" denies access to topic "($topic|$beside)"/, 'a list, without the right');
allowed('bob', "$all sasl_match", '', 'a pattern finds nothing without the right to describe');
refused('stranger', "$all sasl_state", 'HV00N', qr/client for server "sasl".*no user mapping for this role/s, 'no user mapping at all');
# Debian's library cannot log in to Kafka 4 with SCRAM, and the hint says so
refused('app', "$all scram_state", '28000', qr/server "scram" refused authentication.*Check sasl_username and sasl_password/s, 'SCRAM');
{
	my ($version) = $node->safe_psql('postgres', 'SELECT upsert_kafka.version()') =~ /librdkafka (\d+\.\d+\.\d+)/i;
	like(scalar(as('app', "$all scram_state")), qr/cannot log in to Kafka 4 with SCRAM/, "SCRAM: the hint for librdkafka $version")
	  if defined $version && join('', map { sprintf '%03d', $_ } split /\./, $version) lt '002006001';
}
# tokens: without a source of them the client would wait for one for ever
$node->safe_psql('postgres', qq{
	CREATE SERVER oauth FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$sasl', "security.protocol" 'SASL_PLAINTEXT', "sasl.mechanism" 'OAUTHBEARER', timeout '30s');
	GRANT USAGE ON FOREIGN SERVER oauth TO app, bob, forgetful;
	CREATE USER MAPPING FOR app SERVER oauth OPTIONS ("sasl.oauthbearer.config" 'principal=alice');
	CREATE USER MAPPING FOR bob SERVER oauth OPTIONS ("sasl.oauthbearer.config" 'principal=bob');
	CREATE USER MAPPING FOR forgetful SERVER oauth OPTIONS ("sasl.oauthbearer.config" 'principal=');
});
as('app', "CREATE FOREIGN TABLE oauth_state (k int OPTIONS (key 'true'), v text) SERVER oauth
	OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json'); GRANT SELECT ON oauth_state TO PUBLIC");
refused('app', "$all oauth_state", 'HV00N', qr/client for server "oauth".*OAUTHBEARER needs tokens.*HINT:  .*oidc/s, 'OAUTHBEARER, no source of tokens');
$node->safe_psql('postgres', q{ALTER SERVER oauth OPTIONS (ADD "enable.sasl.oauthbearer.unsecure.jwt" 'true')});
allowed('app', "$all oauth_state", 'cb', 'OAUTHBEARER with unsigned tokens');
refused('bob', "$all oauth_state", '42501', qr/server "oauth" denies access to topic "$topic"/, 'OAUTHBEARER: it is the name in the token that counts');
refused('forgetful', "$all oauth_state", '28000', qr/server "oauth" refused authentication.*HINT:  Check what the options "sasl\.oauthbearer\.\."/s, 'OAUTHBEARER, no token to be had');
# a password that is mended works in the same session
$node->safe_psql('postgres', "ALTER USER MAPPING FOR forgetful SERVER sasl OPTIONS (SET sasl_password 'alice-secret')");
allowed('forgetful', "$all sasl_state", 'cb', 'a mended password');

# === secrets ===============================================================================
refused('app', "CREATE SERVER s FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'x', \"sasl.password\" 'server-secret')", 'HV00D', qr/sasl.password/, 'no secret in a server');
as('app', "CREATE USER MAPPING FOR app SERVER ssl OPTIONS (\"ssl.key.pem\" 'key-secret', \"ssl.certificate.pem\" 'nonsense-secret')");
refused('app', "$all ssl_state", 'HV00N', qr/client for server "ssl".*ssl\.(?:key|certificate)\.pem/s, 'a key that is none is not shown');
as('app', 'DROP USER MAPPING FOR app SERVER ssl');
allowed('stranger', "SELECT count(*) FROM pg_user_mappings WHERE umoptions IS NOT NULL", '0', 'mappings are not shown to others');
like(scalar(as('app', 'EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM sasl_state')), qr/Foreign Scan on public.sasl_state/, 'EXPLAIN');
# the library's own words, all of them
$node->safe_psql('postgres', "CREATE SERVER chatty FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$sasl_ssl', \"security.protocol\" 'SASL_SSL', \"sasl.mechanism\" 'PLAIN', \"ssl.ca.pem\" '$ca', debug 'all');
	ALTER SYSTEM SET log_min_messages = debug2; SELECT pg_reload_conf();
	GRANT USAGE ON FOREIGN SERVER chatty TO app; CREATE USER MAPPING FOR app SERVER chatty OPTIONS (sasl_username 'alice', sasl_password 'alice-secret')");
as('app', "CREATE FOREIGN TABLE chatty_state (k int OPTIONS (key 'true'), v text) SERVER chatty
		OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')");
allowed('app', "SET client_min_messages = warning; $all chatty_state", 'cb', "debug 'all'");
$node->safe_psql('postgres', "ALTER SYSTEM RESET log_min_messages; SELECT pg_reload_conf()");

# === files and code =========================================================================
my $file_option = "\"ssl.ca.location\" '$ENV{BROKER_CA}'";
refused('app', "CREATE SERVER f FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$ssl', \"security.protocol\" 'SSL', $file_option)", '42501', qr/ssl.ca.location/, 'a file of the server needs a role');
refused('app', "CREATE USER MAPPING FOR app SERVER ssl OPTIONS ($file_option)", '42501', qr/ssl.ca.location/, 'in a mapping, too');
as('files', "CREATE SERVER f FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$ssl', \"security.protocol\" 'SSL', $file_option);
	CREATE FOREIGN TABLE f_state (k int OPTIONS (key 'true'), v text) SERVER f OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')");
allowed('files', "$all f_state", 'cb', 'who has the role may');
refused('files', "ALTER SERVER f OPTIONS (ADD \"plugin.library.paths\" '/tmp/x.so')", 'HV00D', qr/plugin.library.paths/, 'code is refused to everybody');

# === apply is the owner's ======================================================================
as('app', "SELECT upsert_kafka.materialize('sasl_state', target => 't')");
allowed('app', "SELECT upsert_kafka.wait_for('t'); $all t", "t\ncb", "a worker applies with the owner's password");
as('app', 'GRANT SELECT ON t TO stranger');
produce($topic, '{"k":3}|{"v":"d"}');
allowed('stranger', "SELECT upsert_kafka.wait_for('t'); $all t", "t\ncbd", 'wait_for needs no password');
foreach my $call ("refresh('t')", "pause('t')", "resume('t')", "skip('t', 0, 0)", "retry_errors('t')", "rebuild('t')", '"drop"(\'t\')')
{
	refused('stranger', "SELECT upsert_kafka.$call", '42501', qr/must be owner of table t/, "$call is the owner's");
}
$node->safe_psql('postgres', 'ALTER SYSTEM SET upsert_kafka.workers = off');
$node->reload;
wait_until($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'", '0', 'no workers');
produce($topic, '{"k":4}|{"v":"e"}');
refused('deputy', "$all sasl_state", 'HV00N', qr/no user mapping/, 'a deputy has no password');
allowed('deputy', "SELECT upsert_kafka.refresh('t'); $all t", "1\ncbde", "and refreshes with the owner's");
produce($topic, '{"k":5}|{"v":"f"}');
allowed('postgres', "SELECT upsert_kafka.refresh('t'); $all t", "1\ncbdef", 'so does a superuser');

# Triggers run as the owner, in a refresh() by a superuser too, and cannot become anybody else
as('app', q{CREATE TABLE who (name name, session name, path text); CREATE FUNCTION note_who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO public.who VALUES (current_user, session_user, current_setting('search_path')); RETURN NEW; END $$;
	CREATE TRIGGER note BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note_who()});
produce($topic, '{"k":6}|{"v":"g"}');
allowed('postgres', "SELECT upsert_kafka.refresh('t'); SELECT name, path FROM who", "1\napp|pg_catalog, pg_temp", 'a trigger runs as the owner, with a fixed search_path');
foreach my $attack ('RESET ROLE', 'RESET SESSION AUTHORIZATION', 'SET SESSION AUTHORIZATION postgres', 'SET LOCAL ROLE postgres', 'CREATE ROLE evil SUPERUSER', 'CREATE TEMP TABLE pg_class (x int)')
{
	as('app', "CREATE OR REPLACE FUNCTION note_who() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN EXECUTE '$attack'; RETURN NEW; END \$\$");
	produce($topic, '{"k":7}|{"v":"h"}');
	refused('postgres', "SELECT upsert_kafka.refresh('t')", '(?:42501|25001|0A000)', qr/./, "a trigger cannot $attack");
}
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_roles WHERE rolname = 'evil'"), '0', 'nobody was made');
as('app', 'DROP TRIGGER note ON t');
# what waits for the commit would run as whoever commits
as('app', q{CREATE OR REPLACE FUNCTION note_who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.who VALUES (current_user); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER later AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_who()});
refused('postgres', "SELECT upsert_kafka.refresh('t')", '0A000', qr/trigger "later" on maintained table "t" is deferrable/, 'a deferrable trigger is refused');
as('app', 'DROP TRIGGER later ON t');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET upsert_kafka.workers');
$node->reload;
allowed('app', "SELECT upsert_kafka.wait_for('t'); $all t", "t\ncbdefgh", 'and all is well without it');
# a password that is withdrawn: the table waits and says so
$node->safe_psql('postgres', "ALTER USER MAPPING FOR app SERVER sasl OPTIONS (SET sasl_password 'withdrawn-secret');
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'");
wait_until($node, "SELECT bool_or(last_error ~ 'refused authentication') FROM upsert_kafka.progress WHERE target = 't'::regclass", 't', 'a withdrawn password shows in progress');
$said .= $node->safe_psql('postgres', "SELECT last_error FROM upsert_kafka.progress; SELECT query FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka%'");
$node->safe_psql('postgres', "ALTER USER MAPPING FOR app SERVER sasl OPTIONS (SET sasl_password 'alice-secret')");
allowed('app', "SELECT upsert_kafka.wait_for('t')", 't', 'and passes when it is given back');

# === writing ====================================================================================
my ($write, $other) = map { create_topic(unique_topic("security_$_"), 1) } 'write', 'other';
my $inserts = "INSERT INTO w VALUES (1, 'row-content'); INSERT INTO notes VALUES ('with a message')";
my $hint = qr/DETAIL:  Topic "$write".*HINT:  The Kafka user needs the operations Describe and Write on the topic/s;
sub holds { my ($name) = @_; return $node->safe_psql('postgres', "SELECT count(*) || ' ' || coalesce(string_agg(v, ' ' ORDER BY __offset), '') FROM $name"); }
# what is in the topics, read by one who may
foreach my $name ($write, $other)
{
	as('app', "CREATE FOREIGN TABLE read_$name (k int, v text, __offset bigint OPTIONS (metadata 'offset')) SERVER sasl
		OPTIONS (connector 'kafka', topic '$name', value_format 'json', scan_startup_mode 'earliest-offset')");
}
$node->safe_psql('postgres', "CREATE USER MAPPING FOR postgres SERVER sasl OPTIONS (sasl_username 'alice', sasl_password 'alice-secret')");
as('bob', "CREATE TABLE notes (note text);
	CREATE FOREIGN TABLE w (k int OPTIONS (key 'true'), v text) SERVER sasl OPTIONS (connector 'upsert-kafka', topic '$write', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE o (k int OPTIONS (key 'true'), v text) SERVER sasl OPTIONS (connector 'upsert-kafka', topic '$other', key_format 'json', value_format 'json')");

# what an earlier run has given
forbid('bob', id => 'upsert_kafka-*');
forbid('bob', group => 'upsert_kafka-outbox-*');
# no right at all; one to read, of a user who may write nowhere (the broker refuses a producer then), or only to another topic
refused('bob', "BEGIN; $inserts; COMMIT", '42501', qr/server "sasl" denies writing to topic "$write".*$hint/s, 'writing without any right');
allow('bob', topic => $write, 'Describe', 'Read');
refused('bob', "BEGIN; $inserts; COMMIT", '42501', qr/server "sasl" denies writing to topic "$write".*$hint/s, 'writing with the right to read, and none to write anywhere');
allow('bob', topic => $other, 'Describe', 'Write');
refused('bob', "BEGIN; $inserts; COMMIT", '42501', qr/server "sasl" denies writing to topic "$write".*$hint/s, 'writing with the right to read');
refused('bob', "BEGIN; INSERT INTO o VALUES (1, 'before'); $inserts; COMMIT", '42501', qr/denies writing to topic "$write"/, 'beside a topic that may be written to');
is($node->safe_psql('postgres', 'SELECT count(*) FROM notes'), '0', 'the transactions have left nothing here');
is(holds("read_$write"), '0 ', 'nor there');
# the session is as good as new, and a right that is given counts at once
{
	my ($in, $out) = ('', '');
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>&1', IPC::Run::timeout(300));
	my $say = sub { $out = ''; $in .= "$_[0];\n\\echo said\n"; $session->pump until $out =~ /^said$/m; $said .= $out; return $out; };
	$say->('SET ROLE bob');
	like($say->($inserts), qr/denies writing to topic "$write"/, 'a refusal');
	is($say->("INSERT INTO o VALUES (2, repeat('x', 100000))"), "said\n", 'another topic in the same session, whose limits he may not ask for');
	is($say->("INSERT INTO o VALUES (2, 'after')"), "said\n", 'and once more');
	is($say->('SELECT count(*) FROM w'), "0\nsaid\n", 'which reads nothing that it has not written');
	allow('bob', topic => $write, 'Write');
	is($say->("BEGIN; $inserts; COMMIT"), "said\n", 'the right is given');
	forbid('bob', topic => $write, 'Write');
	like($say->($inserts), qr/denies writing to topic "$write"/, 'and taken');
	$in .= "\\q\n";
	$session->finish;
}
is(holds("read_$write"), '1 row-content', 'what was allowed is there, and nothing else');
like(holds("read_$other"), qr/\bafter$/, 'in the other topic, too');

# exactly once: the commit is not Kafka's affair. Its refusal shows in the view, and is tried again until it is mended
as('bob', "ALTER FOREIGN TABLE w OPTIONS (ADD delivery_guarantee 'exactly-once')");
my $mine = "FROM upsert_kafka.outbox_status WHERE server = 'sasl' AND user_mapping = 'bob'";
as('bob', "BEGIN; INSERT INTO w VALUES (2, 'row-first'), (3, 'row-second'); DELETE FROM w WHERE k = 2; COMMIT", "INSERT INTO w VALUES (4, 'row-third')");
wait_until($node, "SELECT state || ' ' || waiting_rows || (last_error ~ 'denies transactions') $mine", 'retrying 4true', 'no right to transactions');
$said .= $node->safe_psql('postgres', "SELECT last_error $mine");
refused('bob', "SELECT upsert_kafka.flush_outbox('sasl')", '42501', qr/denies transactions.*HINT:  .*on the transactional id/s, 'a session is told');
allow('bob', id => 'upsert_kafka-*', 'Describe', 'Write');
allow('bob', group => 'upsert_kafka-outbox-*', 'Describe', 'Read');
wait_until($node, "SELECT state || ' ' || waiting_rows || (last_error ~ 'denies writing to topic \"$write\"') $mine", 'retrying 4true', 'no right to the topic');
$said .= $node->safe_psql('postgres', "SELECT last_error $mine");
refused('bob', "SELECT upsert_kafka.flush_outbox('sasl')", '42501', qr/server "sasl" denies writing to topic "$write".*$hint/s, 'a session is told that, too');
# with several topics in the transaction the library does not tell which
as('bob', "ALTER FOREIGN TABLE o OPTIONS (ADD delivery_guarantee 'exactly-once')", "INSERT INTO o VALUES (3, 'row-other')");
refused('bob', "SELECT upsert_kafka.flush_outbox('sasl')", '42501', qr/denies writing to (?:topic "$write"|a topic.*DETAIL:  One of the topics (?=.*"$write")(?=.*"$other"))/s, 'all that it can be are named');
is(holds("read_$write"), '1 row-content', 'nothing of it can be read');
allow('bob', topic => $write, 'Write');
wait_until($node, "SELECT state || ' ' || waiting_rows || coalesce(last_error, '') $mine", 'idle 0', 'the right is given, and all is sent');
is(holds("read_$write"), '5 row-content row-first row-second row-third', 'once, in order, nothing lost (the fifth is the DELETE)');
like(holds("read_$other"), qr/\bafter row-other$/, 'in the other topic, too');

# === nothing was told ==
# === nothing was told ============================================================================
my $log = slurp_file($node->logfile);
like($log, qr/librdkafka: .*SASL/i, 'the log has much of the library');
# what a user types wrong is in the log as his statement; ours are the lines of the other kinds
(my $ours = $log) =~ s/STATEMENT:  .*?(?=^\d{4}-)//gms;
unlike($ours, qr/[a-z]+-secret/, 'no secret in the log');
unlike($said, qr/[a-z]+-secret/, 'nor in any answer');
unlike($ours . $said, qr/row-content|row-first/, 'nor the rows of a refused transaction');
unlike($log, qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
$node->stop;
done_testing();
