# Commits that meet a Kafka in trouble: no broker, one that never answers, one that does not
# acknowledge; cancel and termination while they wait; and what at-least-once means when
# PostgreSQL itself aborts after Kafka has acknowledged.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UpsertKafka;
use Faults;

my $node = start_node('main', conf => "upsert_kafka.commit_timeout = '4s'\nupsert_kafka.workers = off\n");
my $topic = create_topic(unique_topic('write'), 1);
# a broker that can be frozen, and one that never says a word
my $proxy = start_proxy();
my $frozen = $proxy->{address};
my $silent = start_proxy();
freeze($silent);
my $stuck = create_topic(unique_topic('stuck'), 1);

$node->safe_psql('postgres', qq{
	CREATE TABLE local (id int PRIMARY KEY, v text);
	CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), v text)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE SERVER frozen FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$frozen', timeout '4s');
	CREATE FOREIGN TABLE stuck (v text)
		SERVER frozen OPTIONS (connector 'kafka', topic '$stuck', value_format 'json');
	CREATE FOREIGN TABLE stuck_none (v text)
		SERVER frozen OPTIONS (connector 'kafka', topic '$stuck', value_format 'json', delivery_guarantee 'none');
	CREATE SERVER silent FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$silent->{address}', timeout '4s');
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
	qr/ERROR/, 30, 'a broker that never answers');

# The session's client is connected, then the broker is frozen or gone.
sub freeze_in_transaction
{
	my ($signal, $settings) = @_;
	return qq{$settings
		INSERT INTO stuck VALUES ('before');
		BEGIN;
		INSERT INTO local VALUES (1);
		INSERT INTO stuck VALUES ('x');
		\\! kill -$signal $proxy->{pid}
		COMMIT;};
}

fails(freeze_in_transaction('STOP', ''), qr/did not acknowledge/, 30, 'a frozen broker');
thaw($proxy);
# statement_timeout is off by then
fails(freeze_in_transaction('STOP', "SET statement_timeout = '2500ms';"), qr/did not acknowledge/, 30,
	'the same with statement_timeout');
thaw($proxy);

# nobody waits with delivery_guarantee none
my $took = $node->safe_psql('postgres', qq{
	INSERT INTO stuck_none VALUES ('before');
	\\! kill -STOP $proxy->{pid}
	SELECT clock_timestamp() AS begin \\gset
	BEGIN; INSERT INTO local VALUES (1); INSERT INTO stuck_none VALUES ('x'); COMMIT;
	SELECT clock_timestamp() - :'begin' < interval '3 s';});
thaw($proxy);
is($took, 't', 'delivery_guarantee none waits for nothing');
is($node->safe_psql('postgres', 'DELETE FROM local RETURNING id'), '1', 'and commits');

# --- cancel and terminate a commit that waits -------------------------------------

# A session whose COMMIT hangs.
sub hanging_commit
{
	my $shell = open_shell($node, q{SET upsert_kafka.commit_timeout = '60s';}, q{INSERT INTO stuck VALUES ('before');},
		q{BEGIN;}, q{INSERT INTO local VALUES (1);}, q{INSERT INTO stuck VALUES ('x');});
	freeze($proxy);
	shell_send($shell, 'COMMIT;');
	$node->poll_query_until('postgres',
		"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $shell->{pid} AND query LIKE 'COMMIT%'")
	  or die 'the commit does not wait';
	return $shell;
}

my $shell = hanging_commit();
my $begin = time();
$node->safe_psql('postgres', "SELECT pg_cancel_backend($shell->{pid})");
shell_wait($shell);
cmp_ok(time() - $begin, '<', 30, 'a commit that waits can be cancelled');
thaw($proxy);
like($shell->{err}, qr/57014: canceling statement due to user request/, 'and says so');
is(shell($shell, 'SELECT count(*) FROM local;'), '0', 'the session goes on, the transaction is aborted');
is(shell($shell, q{INSERT INTO stuck VALUES ('after') RETURNING v;}), 'after', 'and can write again');
close_shell($shell);

$shell = hanging_commit();
$begin = time();
$node->safe_psql('postgres', "SELECT pg_terminate_backend($shell->{pid}, 30000)");
cmp_ok(time() - $begin, '<', 30, 'a commit that waits can be terminated');
thaw($proxy);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $shell->{pid}"), '0', 'its process is gone');
is($node->safe_psql('postgres', 'SELECT count(*) FROM local'), '0', 'the transaction is aborted');
$shell->{run}->kill_kill;

# the last one: the proxy does not come back
fails(freeze_in_transaction('KILL', ''), qr/did not acknowledge/, 30, 'a broker that is gone');

# --- PostgreSQL aborts after Kafka has acknowledged ---------------------------------

# Write skew: each of two serializable transactions reads what the other one writes. PostgreSQL finds out when the
# second one commits, after its callbacks, so its message is in the topic: at-least-once is not less than
# that, and not more either.
$node->safe_psql('postgres', q{INSERT INTO local VALUES (1, 'on call'), (2, 'on call')});
my $other = open_shell($node, 'BEGIN ISOLATION LEVEL SERIALIZABLE;', q{SELECT count(*) FROM local WHERE v = 'on call';},
	q{UPDATE local SET v = 'off' WHERE id = 1;}, q{INSERT INTO t VALUES (1, 'of an aborted transaction');});
$node->safe_psql('postgres', q{
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM local WHERE v = 'on call';
	UPDATE local SET v = 'off' WHERE id = 2;
	INSERT INTO t VALUES (2, 'of a committed transaction');
	COMMIT;
});
shell($other, 'COMMIT;');
like($other->{err}, qr/40001: could not serialize access/, 'PostgreSQL aborts the second of two transactions');
is(shell($other, 'SELECT upsert_kafka.last_written() IS NULL;'), 't', 'its messages are in no bookmark');
close_shell($other);
is($node->safe_psql('postgres', 'SELECT id, v FROM local ORDER BY id'), "1|on call\n2|off", 'its rows are gone');
is($node->safe_psql('postgres', 'SELECT id, v FROM t ORDER BY id'),
	"1|of an aborted transaction\n2|of a committed transaction", 'its messages are not: at-least-once');

# --- nothing is left behind ---------------------------------------------------------

$node->psql('postgres', q{
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
