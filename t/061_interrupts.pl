# Nothing hangs: statement_timeout, cancel and terminate act within about a second in every
# state of a scan, refresh or wait, whatever the broker does; a broker that does not answer
# is an error within the server's timeout; DROP and shutdown don't wait for it (H09, I04).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use UpsertKafka;
use Faults;

# It is about a second on an idle machine. What must not happen is that something waits for a broker's 60 s, and
# that is told apart on a machine that has other things to do, too.
my $soon = 15;

my $node = start_node('interrupts', conf => "upsert_kafka.max_workers = 10\nupsert_kafka.wait_timeout = 2min\nlog_min_messages = info\n");
my $proxy = start_proxy();
my $proxy_pid = $proxy->{pid};

sub sql { return $node->safe_psql('postgres', $_[0]); }

# a broker that is not there, one that never answers, one that can be frozen at any time
my $mute = start_proxy();
freeze($mute);
sql("CREATE DOMAIN costly AS text CHECK (length(md5(repeat(VALUE, 50))) = 32);
	CREATE SERVER dead FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '60s');
	CREATE SERVER dead_soon FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '1s');
	CREATE SERVER mute FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$mute->{address}', timeout '60s');
	CREATE SERVER mute_soon FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$mute->{address}', timeout '1s');
	CREATE SERVER proxy FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$proxy->{address}', timeout '60s');
	CREATE SERVER proxy_soon FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$proxy->{address}', timeout '4s')");

my $big = create_topic(unique_topic('interrupts'), 2);
{
	my $filler = 'x' x 60;
	produce($big, map { sprintf('[p=%d] {"k":%d}|{"v":"%s%d"}', $_ % 2, $_, $filler, $_) } 1 .. 200_000);
}
# Decoding a value takes some time, so that whoever wants to disturb a load comes before its end.
sub source
{
	my ($name, $server, $connector) = @_;
	my $key = $connector eq 'kafka' ? '' : ", key_format 'json'";
	my $key_column = $connector eq 'kafka' ? 'k int' : "k int OPTIONS (key 'true')";
	sql("CREATE FOREIGN TABLE $name ($key_column, v costly) SERVER $server OPTIONS (connector '$connector', topic '$big', value_format 'json'$key)");
}
foreach my $server ('dead', 'dead_soon', 'mute', 'mute_soon', 'proxy', 'proxy_soon', 'kafka')
{
	source("${server}_append", $server, 'kafka');
	source("${server}_state", $server, 'upsert-kafka');
}

sub has_ended
{
	my ($pid) = @_;
	my $until = time + 60;
	sleep(0.05) while -d "/proc/$pid" && time < $until;
	return !-d "/proc/$pid";
}

# Run commands, of which the last one takes for ever, and end it in three ways.
sub interruptible
{
	my ($what, @commands) = @_;
	my $last = pop @commands;

	my ($seconds, $state, $said) = timed($node, @commands, "SET statement_timeout = '300ms'", $last);
	thaw($proxy);
	ok($state eq '57014' && $seconds < 0.3 + $soon, "$what: statement_timeout")
	  or diag("after $seconds s: $said");

	foreach my $how ('cancel', 'terminate')
	{
		my $session = start_session($node, @commands, $last);
		# the last command has been at work for a while (long ones are cut off in this view)
		my $pid = session_pid($session, "state = 'active' AND query <> '' AND starts_with(\$last\$$last\$last\$, query) AND now() - query_start > '200 ms'");
		my $since = time;
		sql("SELECT pg_${how}_backend($pid)") if $pid;
		$seconds = end_session($session, $since);
		thaw($proxy);
		my $expected = $how eq 'cancel' ? qr/57014/ : qr/57P01|server closed the connection/;
		ok($pid && $session->{err} =~ $expected && $seconds < $soon, "$what: $how")
		  or diag("pid $pid, after $seconds s: $session->{err}$session->{out}");
		# gone for good, no process that hangs in its exit
		ok(has_ended($pid), "$what: the process has ended") if $pid && $how eq 'terminate';
	}
	return;
}

# === scans ================================================================================
interruptible('scan, no broker', 'SELECT * FROM dead_append');
interruptible('scan, mute broker', 'SELECT * FROM mute_append');
interruptible('current state, mute broker', 'SELECT * FROM mute_state');
interruptible('ANALYZE, mute broker', 'ANALYZE mute_append');
interruptible('IMPORT FOREIGN SCHEMA, mute broker', 'IMPORT FOREIGN SCHEMA x FROM SERVER mute INTO public');
interruptible('scan, broker frozen on the way',
	"SET upsert_kafka.queue_size = '1MB'", 'BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM proxy_append', 'FETCH 1 FROM c',
	"\\! kill -STOP $proxy_pid", 'MOVE ALL IN c');
interruptible('scan of a big topic',
	'SELECT sum(length(v)) FROM (' . join(' UNION ALL ', ('SELECT v FROM kafka_append') x 60) . ') s');
interruptible('current state with spill',
	"SET work_mem = '64kB'", 'SELECT count(v) FROM (' . join(' UNION ALL ', ('SELECT v FROM kafka_state') x 20) . ') s');

# === a broker that does not answer is an error in time =======================================
foreach my $server ('dead_soon', 'mute_soon')
{
	my ($seconds, $state, $said) = timed($node, "SELECT * FROM ${server}_append");
	ok($state eq '08001' && $seconds < 1 + $soon, "$server: class 08 within the timeout") or diag("after $seconds s: $said");
	like($said, qr/server "$server" did not answer within 1000 ms/, "$server: named");
}
{
	my ($seconds, $state, $said) = timed($node, "SET upsert_kafka.queue_size = '1MB'", 'BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM proxy_soon_append',
		'FETCH 1 FROM c', "\\! kill -STOP $proxy_pid", 'MOVE ALL IN c');
	thaw($proxy);
	ok($state eq '08006' && $seconds < 4 + 2 * $soon, 'frozen on the way: class 08 within the timeout') or diag("after $seconds s: $said");
	like($said, qr/Still missing: partition 0 is at offset \d+ of 100000/, 'with what is missing');
}

# === maintained tables in a session ==========================================================
# Without workers first: refresh() does the work.
sql("ALTER SYSTEM SET upsert_kafka.workers = off");
$node->reload;
wait_until($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'", '0', 'no workers');
sql("SELECT upsert_kafka.materialize('mute_state', target => 'load_mute');
	SELECT upsert_kafka.materialize('kafka_state', target => 'load_big');
	SELECT upsert_kafka.materialize('proxy_state', target => 'live')");
interruptible('refresh, first load, mute broker', "SELECT upsert_kafka.refresh('load_mute')");
interruptible('wait_for, mute broker', "SELECT upsert_kafka.wait_for('load_mute')");
interruptible('refresh, first load of a big topic', 'BEGIN', "SELECT upsert_kafka.refresh('load_big') FROM generate_series(1, 1)");
is(sql("SELECT count(*) FROM load_big"), '0', 'nothing of it stays');
sql("SELECT upsert_kafka.refresh('live')");
interruptible('refresh, broker frozen before', "\\! kill -STOP $proxy_pid", "SELECT upsert_kafka.refresh('live')");
produce($big, map { sprintf('[p=%d] {"k":%d}|{"v":"new%d"}', $_ % 2, $_, $_) } 1 .. 50_000);
interruptible('rebuild', "SELECT upsert_kafka.rebuild('live')");
is(sql("SELECT count(*) FROM live"), '200000', 'and the table is as it was');

# === workers ===================================================================================
# All of them wait for a broker that does not answer: the mute one before it has read anything,
# the frozen one in the middle of following.
sql("SELECT upsert_kafka.refresh('live')");
sql("ALTER SYSTEM RESET upsert_kafka.workers");
$node->reload;
sql("SELECT upsert_kafka.materialize('mute_state', target => 'mute_$_')") foreach 1 .. 3;
wait_until($node, "SELECT count(*) >= 2 FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka backfill%' AND query ~ 'mute' AND now() - xact_start > '200 ms'",
	't', 'workers load');
is(sql("SELECT upsert_kafka.wait_for('live')"), 't', 'another table goes on beside them');
interruptible('wait_for a table that is loading', "SELECT upsert_kafka.wait_for('load_big') FROM pg_sleep(0) WHERE upsert_kafka.wait_for('load_mute')");

sub within
{
	my ($what, $limit, @commands) = @_;
	my ($seconds, $state, $said) = timed($node, "SET statement_timeout = '30s'", @commands);
	ok($state eq '' && $seconds < $limit, $what) or diag("after $seconds s: $said");
	return;
}
sub backfill_worker
{
	my ($table) = @_;
	my $query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka backfill worker' AND query ~ '\\m$table\\M' AND now() - xact_start > '200 ms' LIMIT 1";
	foreach (1 .. 1000)
	{
		my $found = sql($query);
		return $found if $found;
		sleep(0.1);
	}
	die "no worker loads $table";
}

my $pid = backfill_worker('mute_1');
my $since = time;
sql("SELECT pg_terminate_backend($pid)");
ok(has_ended($pid) && time - $since < $soon, 'a loading worker can be terminated');
backfill_worker('mute_2');
within('pause() of a table whose worker is stuck', $soon, "SELECT upsert_kafka.pause('mute_2')");
backfill_worker('mute_3');
within('DROP TABLE of a table whose worker is stuck', $soon, "DROP TABLE mute_3");
backfill_worker('mute_1');
within('upsert_kafka.drop() likewise', $soon, "SELECT upsert_kafka.\"drop\"('mute_1')");
backfill_worker('load_mute');
within('DROP FOREIGN TABLE of the source is refused at once', $soon, "DO \$\$BEGIN DROP FOREIGN TABLE mute_state; RAISE 'dropped'; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END\$\$");
backfill_worker('load_mute');
within('ALTER FOREIGN TABLE of the source', $soon, "ALTER FOREIGN TABLE mute_state ADD COLUMN extra int");
within('ALTER TABLE likewise', $soon, "ALTER TABLE load_mute ADD COLUMN extra int");

# a load gives way in its middle, too, and starts again: of rows that go in at once, and of sorted ones
sql("CREATE FOREIGN TABLE slow (k int, v costly, extra int) SERVER proxy OPTIONS (connector 'kafka', topic '$big', value_format 'json');
	SELECT upsert_kafka.materialize('slow', target => 'slow_append');
	SELECT upsert_kafka.materialize('proxy_state', target => 'slow_state')");
foreach my $table ('slow_append', 'slow_state')
{
	backfill_worker($table);
	freeze($proxy);
	within("ALTER TABLE $table while it is being loaded", $soon + 1, "ALTER TABLE $table DROP COLUMN v");
	thaw($proxy);
}

# a following worker whose broker freezes: at work, and when it looks at the topic again
freeze($proxy);
sleep(6);
within('SELECT of a table whose worker is stuck', $soon, "SELECT count(*) FROM live");
within('DROP TABLE of a table whose live worker is stuck', $soon, "BEGIN", "DROP TABLE live", "ROLLBACK");
# one that opens its feed: a worker that has just been started, and waits for the broker outside of any transaction
# (others may have been in the middle of a question when the broker froze)
my $frozen = sql('SELECT now()');
my $started_since = "backend_type = 'upsert_kafka apply worker' AND backend_start > '$frozen'";
$pid = sql("SELECT worker FROM upsert_kafka.progress WHERE target = 'live'::regclass LIMIT 1");
sql("SELECT pg_terminate_backend($pid)") if $pid;
ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $started_since AND now() - backend_start > '2 s')"),
	'a new worker has been started');
my $in_transaction;
foreach (1 .. 10)
{
	# one that waited in a transaction would be in it each time
	$in_transaction = sql("SELECT query, now() - xact_start, wait_event FROM pg_stat_activity WHERE $started_since AND now() - xact_start > '500 ms'") or last;
	sleep(0.5);
}
is($in_transaction, '', 'it waits outside of any transaction');
within('DROP TABLE of a table whose worker is opening it', $soon, "DROP TABLE live");

# more clients with an open question than the pool keeps: they end only when their threads have had an answer
thaw($proxy);
my $small = create_topic(unique_topic('interrupts_small'), 1);
produce($small, '{"k":1}|{"v":"x"}');
sql("CREATE FOREIGN TABLE small_state (k int OPTIONS (key 'true'), v text) SERVER proxy OPTIONS (connector 'upsert-kafka', topic '$small', value_format 'json', key_format 'json')");
sql("SELECT upsert_kafka.materialize('small_state', target => 'small_$_')") foreach 1 .. 12;
sql("SELECT upsert_kafka.wait_for('small_$_')") foreach 1 .. 12;
freeze($proxy);
sleep(6);                       # each table's topic is looked at every 5 s
sql('DROP TABLE ' . join(', ', map { "small_$_" } 1 .. 12));
wait_until($node, "SELECT count(*) FROM upsert_kafka.progress WHERE target::text LIKE 'small%'", '0', 'their feeds are closed');
thaw($proxy);
sleep(2);                       # whoever has an answer now must find its client; a crash is seen at the end

# === DROP DATABASE and shutdown with workers that are stuck ===================================
sql("CREATE DATABASE other");
$node->safe_psql('other', "CREATE EXTENSION upsert_kafka;
	CREATE SERVER mute FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$mute->{address}', timeout '60s');
	CREATE FOREIGN TABLE f (k int OPTIONS (key 'true'), v text) SERVER mute OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('f', target => 'm')");
ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'other' AND backend_type LIKE 'upsert_kafka backfill%' AND now() - xact_start > '200 ms')"), 'stuck in another database');
within('DROP DATABASE', 2 + $soon, "DROP DATABASE other");

backfill_worker('load_mute');
my @stuck = map { start_session($node, $_) } 'SELECT * FROM mute_append', 'SELECT * FROM dead_append', "SELECT upsert_kafka.wait_for('load_mute')";
session_pid($_, "state = 'active' AND now() - query_start > '200 ms'") foreach @stuck;
$since = time;
$node->stop('fast');
my $took = time - $since;
cmp_ok($took, '<', 30, 'fast shutdown');
note "fast shutdown took $took s";
end_session($_) foreach @stuck;

my $log = slurp_file($node->logfile);
unlike($log, qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
stop_proxy($_) foreach $proxy, $mute;
done_testing();
