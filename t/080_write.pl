# Commits that meet a Kafka in trouble: no broker, one that never answers, one that does not
# acknowledge; cancel and termination while they wait; and what at-least-once means when
# PostgreSQL itself aborts after Kafka has acknowledged.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UpsertKafka;

my $node = start_node('main', conf => "upsert_kafka.commit_timeout = '2s'\nupsert_kafka.workers = off\n");
my $topic = create_topic(unique_topic('write'), 1);
# a broker that can be frozen
my ($frozen, $proxy) = start_proxy();
my $stuck = create_topic(unique_topic('stuck'), 1);

# accepts connections and never says a word
my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16) or die "cannot listen: $!";
my $silent_port = $silent->sockport;

$node->safe_psql('postgres', qq{
	CREATE TABLE local (id int PRIMARY KEY, v text);
	CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE SERVER frozen FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$frozen', timeout '1s');
	CREATE FOREIGN TABLE stuck (v text)
		SERVER frozen OPTIONS (connector 'kafka', topic '$stuck', value_format 'json');
	CREATE FOREIGN TABLE stuck_none (v text)
		SERVER frozen OPTIONS (connector 'kafka', topic '$stuck', value_format 'json', delivery_guarantee 'none');
	CREATE SERVER silent FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:$silent_port', timeout '1s');
	CREATE FOREIGN TABLE silent (v text)
		SERVER silent OPTIONS (connector 'kafka', topic 'any', value_format 'json');
});

# SQL that must fail like this, within so many seconds.
sub fails
{
	my ($sql, $like, $seconds, $what) = @_;
	my $begin = time();
	my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1);
	isnt($rc, 0, "$what: fails");
	like($err, $like, "$what: says why");
	cmp_ok(time() - $begin, '<', $seconds, "$what: in time");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM local'), '0', "$what: nothing was committed");
	return;
}

# --- the broker -----------------------------------------------------------------

fails(q{BEGIN; INSERT INTO local VALUES (1); INSERT INTO silent VALUES ('x'); COMMIT;},
	qr/ERROR/, 10, 'a broker that never answers');

# The session's client is connected, then the broker is frozen or gone.
sub freeze_in_transaction
{
	my ($signal, $settings) = @_;
	return qq{$settings
		INSERT INTO stuck VALUES ('before');
		BEGIN;
		INSERT INTO local VALUES (1);
		INSERT INTO stuck VALUES ('x');
		\\! kill -$signal $proxy
		COMMIT;};
}

fails(freeze_in_transaction('STOP', ''), qr/did not acknowledge/, 10, 'a frozen broker');
kill 'CONT', $proxy;
# statement_timeout is off by then
fails(freeze_in_transaction('STOP', "SET statement_timeout = '900ms';"), qr/did not acknowledge/, 10,
	'the same with statement_timeout');
kill 'CONT', $proxy;

# nobody waits with delivery_guarantee none
my $took = $node->safe_psql('postgres', qq{
	INSERT INTO stuck_none VALUES ('before');
	\\! kill -STOP $proxy
	SELECT clock_timestamp() AS begin \\gset
	BEGIN; INSERT INTO local VALUES (1); INSERT INTO stuck_none VALUES ('x'); COMMIT;
	SELECT clock_timestamp() - :'begin' < interval '1 s';});
kill 'CONT', $proxy;
is($took, 't', 'delivery_guarantee none waits for nothing');
is($node->safe_psql('postgres', 'DELETE FROM local RETURNING id'), '1', 'and commits');

# --- cancel and terminate a commit that waits -------------------------------------

# Starts a session whose COMMIT hangs; returns its harness and output.
sub hanging_commit
{
	my ($name) = @_;
	my ($out, $err) = ('', '');
	my $sql = qq{SET application_name = '$name'; SET upsert_kafka.commit_timeout = '60s';
		INSERT INTO stuck VALUES ('before');
		BEGIN; INSERT INTO local VALUES (1); INSERT INTO stuck VALUES ('x');
		\\! kill -STOP $proxy
		COMMIT;
		SELECT 'alive ' || count(*) FROM local;};
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
		'<', \$sql, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$run->pump_nb;
	$node->poll_query_until('postgres',
		qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND query LIKE 'COMMIT%' AND wait_event_type = 'Extension'})
	  or die 'the commit does not wait';
	return ($run, \$out, \$err);
}

my $begin;
my ($run, $out, $err) = hanging_commit('cancelled');
$begin = time();
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'});
$run->finish;
kill 'CONT', $proxy;
cmp_ok(time() - $begin, '<', 5, 'a commit that waits can be cancelled');
like($$err, qr/canceling statement due to user request/, 'and says so');
like($$out, qr/alive 0/, 'the session goes on, the transaction is aborted');

($run, $out, $err) = hanging_commit('terminated');
$begin = time();
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'terminated'});
$run->finish;
kill 'CONT', $proxy;
cmp_ok(time() - $begin, '<', 8, 'a commit that waits can be terminated');
like($$err, qr/terminating connection/, 'and says so');
is($node->safe_psql('postgres', 'SELECT count(*) FROM local'), '0', 'the transaction is aborted');

# the last one: the proxy does not come back
fails(freeze_in_transaction('KILL', ''), qr/did not acknowledge/, 10, 'a broker that is gone');

# --- PostgreSQL aborts after Kafka has acknowledged ---------------------------------

# Write skew: each of two serializable transactions reads what the other one writes. PostgreSQL finds out when the
# second one commits, after its callbacks, so its message is in the topic: at-least-once is not less than
# that, and not more either.
$node->safe_psql('postgres', q{INSERT INTO local VALUES (1, 'on call'), (2, 'on call')});
my $in = '';
my $out2 = '';
my $other = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out2, '2>', \my $err2,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$in = q{BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM local WHERE v = 'on call';
	UPDATE local SET v = 'off' WHERE id = 1;
	INSERT INTO t VALUES (1, 'of an aborted transaction');
	SELECT 'ready';
};
$other->pump until $out2 =~ /ready/;
$node->safe_psql('postgres', q{
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM local WHERE v = 'on call';
	UPDATE local SET v = 'off' WHERE id = 2;
	INSERT INTO t VALUES (2, 'of a committed transaction');
	COMMIT;
});
$in .= "COMMIT;\nSELECT upsert_kafka.last_written() IS NULL;\n";
$other->pump until $out2 =~ /ready\n[tf]/ || $err2 =~ /FATAL/;
$in .= "\\q\n";
$other->finish;
like($err2, qr/could not serialize access/, 'PostgreSQL aborts the second of two transactions');
like($out2, qr/ready\nt/, 'its messages are in no bookmark');
is($node->safe_psql('postgres', 'SELECT id, v FROM local ORDER BY id'), "1|on call\n2|off", 'its rows are gone');
is($node->safe_psql('postgres', 'SELECT id, v FROM t ORDER BY id'),
	"1|of an aborted transaction\n2|of a committed transaction", 'its messages are not: at-least-once');

# --- nothing is left behind ---------------------------------------------------------

($run) = $node->psql('postgres', q{
	SET work_mem = '64kB';
	BEGIN; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i; SELECT 1 / 0;}, on_error_stop => 1);
$node->safe_psql('postgres', q{
	SET work_mem = '64kB';
	BEGIN; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i; UPDATE t SET v = 'y'; ROLLBACK;
	BEGIN; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i; DELETE FROM t; COMMIT;});
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left behind');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '0', 'the last one has deleted all');
my $log = slurp_file($node->logfile);
unlike($log, qr/leak|terminated by signal/, 'no leak, no crash');

$node->stop;
done_testing();
