# The outbox where there is no worker, in copies of its database, on a standby that takes over, and
# when its database goes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my $kt = $ENV{KT} || 'test/kt';

# Keys and values, without partition and offset.
sub values_of
{
	my ($topic) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $kt, '-b', broker(), 'consume', $topic ], '>', \$out, '2>', \$err) or die "cannot consume: $err";
	return join(' ', map { /"v":"(\w+)"/ ? $1 : '?' } split /\n/, $out);
}

my $status = "SELECT state || ' ' || waiting_rows FROM upsert_kafka.outbox_status";
my $flush = "SELECT upsert_kafka.flush_outbox('kafka')";

sub make_table
{
	my ($topic) = @_;
	return "CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text) SERVER kafka OPTIONS (connector 'upsert-kafka', "
	  . "topic '$topic', key_format 'json', value_format 'json', delivery_guarantee 'exactly-once')";
}

# === without shared_preload_libraries: rows wait, the view says so, a session sends ===
my $plain = start_node('plain', preload => 0);
my $topic = create_topic(unique_topic('outbox'), 1);
$plain->safe_psql('postgres', make_table($topic));
$plain->safe_psql('postgres', "INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b')");
is($plain->safe_psql('postgres', $status), 'no_sender 2', 'nobody sends');
is(values_of($topic), '', 'and nothing is sent');
is($plain->safe_psql('postgres', $flush), '2', 'until a session does');
is(values_of($topic), 'a b', 'then it is there');
is($plain->safe_psql('postgres', $status), 'idle 0', 'and the outbox empty');

# what a session has sent is not sent again when its transaction is undone afterwards
$plain->safe_psql('postgres', "INSERT INTO t VALUES (3, 'c')");
is($plain->safe_psql('postgres', "BEGIN; $flush; ROLLBACK"), '1', 'sent, but not committed');
is($plain->safe_psql('postgres', $status), 'no_sender 1', 'so it seems to wait');
$plain->safe_psql('postgres', "INSERT INTO t VALUES (4, 'd')");
$plain->safe_psql('postgres', $flush);
is(values_of($topic), 'a b c d', 'it is found in Kafka, and not sent twice');

# two sessions at once
$plain->safe_psql('postgres', "INSERT INTO t SELECT i, 'x' || i FROM generate_series(10, 19) i");
my @children;
foreach (1 .. 3)
{
	my $pid = fork();
	if (!$pid)
	{
		open(STDOUT, '>', '/dev/null');
		exec('psql', '-X', '-q', '-d', $plain->connstr('postgres'), '-c', $flush) or die;
	}
	push @children, $pid;
}
waitpid($_, 0) foreach @children;
is(values_of($topic), 'a b c d ' . join(' ', map { "x$_" } 10 .. 19), 'sessions that send at the same time send once');

# another producer's open transaction hides what is sent: an error in time, and no second sending
my $released = PostgreSQL::Test::Utils::tempdir() . '/released';
my $open = "!begin\n99|open\n!hold 120 $released\n";
IPC::Run::run([ $kt, '-b', broker(), 'produce', $topic ], '<', \$open) or die 'cannot produce';
$plain->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD timeout '3s')");
$plain->safe_psql('postgres', "INSERT INTO t VALUES (20, 'hidden')");
foreach my $try ('the first time', 'again')
{
	my ($rc, $out, $err) = $plain->psql('postgres', $flush);
	like($err, qr/messages from the outbox of server "kafka" cannot be read yet/, "what is sent cannot be read, $try");
	like($err, qr/Topic "$topic", partition 0: .* another producer holds the last stable offset at \d+/, 'the error says why');
}
$plain->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (DROP timeout)");
append_to_file($released, '');
is($plain->safe_psql('postgres', $flush), '1', 'until that transaction ends');
is(values_of($topic), 'a b c d ' . join(' ', map { "x$_" } 10 .. 19) . ' hidden', 'it is sent once');

# a broker that is not there: an error, and everything stays
$plain->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET bootstrap_servers '127.0.0.1:1', ADD timeout '1s')");
$plain->safe_psql('postgres', "INSERT INTO t VALUES (5, 'e')");
my ($rc, $out, $err) = $plain->psql('postgres', $flush);
isnt($rc, 0, 'an error without broker');
like($err, qr/did not/, 'that says so');
is($plain->safe_psql('postgres', $status), 'no_sender 1', 'nothing is lost');
$plain->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET bootstrap_servers '" . broker() . "', DROP timeout)");

# === a restored dump does not send until told ===
my $dump = "$PostgreSQL::Test::Utils::tmp_check/outbox.dump";
$plain->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $plain->connstr('postgres') ], 'pg_dump with a message waiting');
# the original sends what is in the dump, and more
$plain->safe_psql('postgres', "INSERT INTO t VALUES (6, 'f')");
$plain->safe_psql('postgres', $flush);
foreach my $db ('copy', 'other_copy')
{
	$plain->safe_psql('postgres', "CREATE DATABASE $db");
	$plain->command_ok([ 'pg_restore', '-e', '-d', $plain->connstr($db), $dump ], "pg_restore into $db");
	is($plain->safe_psql($db, $status), 'restored 1', 'it is restored');
	($rc, $out, $err) = $plain->psql($db, $flush);
	like($err, qr/came with a copy/, 'and does not send');
	# what is written meanwhile waits behind it
	$plain->safe_psql($db, "INSERT INTO t VALUES (7, '$db')");
	is($plain->safe_psql($db, $status), 'restored 2', 'also what is new');
}
($rc, $out, $err) = $plain->psql('copy', "SELECT upsert_kafka.resume_outbox('kafka')");
like($err, qr/1 messages to server "kafka" had been sent by the original/, 'what the original has sent is not sent again');
is($plain->safe_psql('copy', $status), 'no_sender 1', 'the rest waits');
is($plain->safe_psql('copy', $flush), '1', 'and is sent');
($rc, $out, $err) = $plain->psql('other_copy', "SELECT upsert_kafka.resume_outbox('kafka', discard => true)");
like($err, qr/2 messages to server "kafka" were thrown away/, 'or all of it is thrown away');
is($plain->safe_psql('other_copy', $flush), '0', 'nothing is left');
$plain->safe_psql('other_copy', "INSERT INTO t VALUES (8, 'g')");
is($plain->safe_psql('other_copy', $flush), '1', 'and it goes on');
$plain->safe_psql('postgres', 'CREATE DATABASE cloned TEMPLATE copy');
$plain->safe_psql('cloned', "INSERT INTO t VALUES (9, 'never')");
is($plain->safe_psql('cloned', $status), 'restored 1', 'a database made from a template does not send either');
my $before = 'a b c d ' . join(' ', map { "x$_" } 10 .. 19) . ' hidden e f copy g';
is(values_of($topic), $before, 'each message is there once');

# over the original: it is a restored one, too, since its server was made anew
$plain->safe_psql('postgres', "INSERT INTO t VALUES (20, 'h')");
($rc, $out, $err) = $plain->psql('postgres', 'DROP SERVER kafka CASCADE');
like($err, qr/cannot drop server "kafka" while messages for it wait/, 'a server is not dropped with messages');
$plain->safe_psql('postgres', $flush);
$plain->command_ok([ 'pg_restore', '--clean', '-d', $plain->connstr('postgres'), $dump ], 'pg_restore --clean over the original');
is($plain->safe_psql('postgres', $status), 'restored 1', 'it is restored');
($rc, $out, $err) = $plain->psql('postgres', "SELECT upsert_kafka.resume_outbox('kafka')");
like($err, qr/1 messages to server "kafka" had been sent by the original/, 'it knows what it has sent');
$plain->safe_psql('postgres', "INSERT INTO t VALUES (21, 'i')");
$plain->safe_psql('postgres', $flush);
is(values_of($topic), "$before h i", 'each message is there once');
$plain->stop;

# === with workers ===
my $node = start_node('primary', streaming => 1);
$topic = create_topic(unique_topic('outbox_workers'), 1);
$node->safe_psql('postgres', make_table($topic));

# the name of the server is not what it is known by
$node->safe_psql('postgres', "INSERT INTO t VALUES (1, 'a')");
wait_until($node, $status, 'idle 0', 'sent by a worker');
$node->safe_psql('postgres', 'ALTER SERVER kafka RENAME TO renamed');
$node->safe_psql('postgres', "INSERT INTO t VALUES (2, 'b')");
wait_until($node, $status, 'idle 0', 'also under another name');
$node->safe_psql('postgres', 'ALTER SERVER renamed RENAME TO kafka');

# messages that wait when the server starts: nobody commits anything, and they are sent
$node->append_conf('postgresql.conf', "upsert_kafka.workers = off\n");
$node->reload;
wait_until($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka outbox%'", '0', 'no sender runs');
$node->safe_psql('postgres', "INSERT INTO t VALUES (3, 'c')");
is($node->safe_psql('postgres', $status), 'no_sender 1', 'workers are off');
$node->append_conf('postgresql.conf', "upsert_kafka.workers = on\n");
$node->restart;
wait_until($node, $status, 'idle 0', 'what waited is sent after a restart');
is(values_of($topic), 'a b c', 'all of it');

# a standby takes over
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', "INSERT INTO t VALUES (4, 'd')");
wait_until($node, $status, 'idle 0', 'sent by the primary');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
# the standby never hears of this one, which Kafka has
$standby->stop;
$node->safe_psql('postgres', "INSERT INTO t VALUES (5, 'lost_with_the_primary')");
wait_until($node, $status, 'idle 0', 'sent by the primary alone');
$node->stop('immediate');
$standby->start;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
$standby->safe_psql('postgres', "INSERT INTO t VALUES (6, 'e')");
wait_until($standby, $status, 'idle 0', 'sent by the new primary');
is(values_of($topic), 'a b c d lost_with_the_primary e', 'the numbers of the two primaries are not taken for each other');

# databases with a sender in them can be dropped, and the extension, too
$standby->safe_psql('postgres', 'CREATE DATABASE gone');
$standby->safe_psql('gone', 'CREATE EXTENSION upsert_kafka');
$standby->safe_psql('gone', "CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '" . broker() . "')");
$standby->safe_psql('gone', make_table($topic));
$standby->safe_psql('gone', "INSERT INTO t VALUES (7, 'f')");
wait_until($standby, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'gone' AND backend_type = 'upsert_kafka outbox sender'", '1', 'a sender is there');
$standby->safe_psql('postgres', 'DROP DATABASE gone');
pass('its database can be dropped');
$standby->safe_psql('postgres', "INSERT INTO t VALUES (8, 'g')");
wait_until($standby, $status, 'idle 0', 'a sender runs');
$standby->safe_psql('postgres', 'DROP EXTENSION upsert_kafka CASCADE');
wait_until($standby, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres' AND backend_type LIKE 'upsert_kafka%'", '0', 'and leaves when the extension is dropped');
$standby->safe_psql('postgres', 'CREATE EXTENSION upsert_kafka');
$standby->stop;
done_testing();
