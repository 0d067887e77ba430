# Nothing leaks: threads, descriptors and memory of a session stay bounded over hundreds of
# failing statements of each kind, and go when its Kafka clients have been idle. No thread of
# librdkafka gets a signal (I03), none is in the postmaster (I01); signals do no harm.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time usleep);
use UpsertKafka;
use Faults;

my $statements = 200;

my $node = start_node('leaks', conf => "log_statement = none\njit = off\nupsert_kafka.wait_timeout = 2min\n");
my $proxy = start_proxy();
my $topic = create_topic(unique_topic('leaks'), 4);
produce($topic, map { sprintf('[p=%d] {"k":%d}|{"v":"%s"}', $_ % 4, $_, 'x' x 80) } 1 .. 40_000);
my $wrong = create_topic(unique_topic('leaks_wrong'), 1);
produce($wrong, (map { qq({"k":$_}|{"v":"x"}) } 1 .. 100), '{"k":1}|{"v":', '{"k":2}|{"v":"y"}');

$node->safe_psql('postgres', qq{
	CREATE SERVER dead FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1', timeout '100ms');
	CREATE SERVER proxy FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$proxy->{address}', timeout '60s');
	CREATE FOREIGN TABLE log (k int OPTIONS (key 'true'), v text, "offset" bigint OPTIONS (metadata 'offset'))
		SERVER kafka OPTIONS (connector 'kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE state (k int OPTIONS (key 'true'), v text, "offset" bigint OPTIONS (metadata 'offset'))
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE missing (v text) SERVER kafka OPTIONS (connector 'kafka', topic 'no.such.topic', value_format 'json');
	CREATE FOREIGN TABLE down (v text) SERVER dead OPTIONS (connector 'kafka', topic 'x', value_format 'json');
	CREATE FOREIGN TABLE wrong (k int OPTIONS (key 'true'), v text)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$wrong', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE slow (k int, v text) SERVER proxy OPTIONS (connector 'kafka', topic '$topic', value_format 'json');
	SELECT upsert_kafka.materialize('wrong', target => 'stopped');
});

# === failing statements ===================================================================
# Each kind in a session of its own, all at once; what a session has after the first twenty
# is compared with what it has after two hundred more.
my %kinds = (
	'topic missing' => { sql => 'SELECT * FROM missing;', state => 'HV00R' },
	'broker down' => { sql => 'SELECT * FROM down;', state => '08001' },
	'wrong message' => { sql => 'SELECT * FROM wrong;', state => '22P02' },
	'division by zero in a scan' => { sql => 'SELECT 1 / ("offset" - 5000) FROM log;', state => '22012' },
	'division by zero in a state' => { sql => 'SELECT 1 / (k - 5000) FROM state;', state => '22012' },
	'timeout in a scan' => { sql => 'SELECT count(v) FROM log a, LATERAL (SELECT v AS w FROM log b WHERE b."offset" < a."offset") s;', state => '57014', before => "SET statement_timeout = '20ms';" },
	'cursor open at rollback' => { sql => 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM log; FETCH 1 FROM c; SELECT 1 / 0; ROLLBACK;', state => '22012' },
	'error in a subtransaction' => {
		sql => "DO \$\$ BEGIN PERFORM 1 / (\"offset\" - 5000) FROM log; EXCEPTION WHEN division_by_zero THEN RAISE WARNING 'again'; END \$\$;", state => '01000' },
	'LIMIT, no error' => { sql => 'SELECT k FROM log LIMIT 1;', state => '' },
	'refresh of a stopped table' => { sql => "SELECT upsert_kafka.refresh('stopped');", state => '55000' },
	'wait_for of a stopped table' => { sql => "SELECT upsert_kafka.wait_for('stopped');", state => '55000' });

sub figures
{
	my ($shell) = @_;
	return { threads => scalar(threads($shell->{pid})), fds => descriptors($shell->{pid}), kb => resident_kb($shell->{pid}) };
}
# Clients that were given up end on their own; wait for it.
sub settled
{
	my ($shell, $threads, $seconds) = @_;
	my $until = time + $seconds;
	sleep(0.1) while time < $until && scalar(threads($shell->{pid})) > $threads;
	return figures($shell);
}

foreach my $kind (values %kinds)
{
	$kind->{shell} = open_shell($node, "SET upsert_kafka.idle_timeout = '3s';", $kind->{before} || ());
	$kind->{start} = figures($kind->{shell});
}
shell_send($_->{shell}, ($_->{sql}) x 20) foreach values %kinds;
foreach my $kind (values %kinds)
{
	shell_wait($kind->{shell});
	$kind->{warm} = settled($kind->{shell}, 16, 1);
}
my $since = time;
shell_send($_->{shell}, ($_->{sql}) x $statements) foreach values %kinds;
my %most;
foreach my $name (sort keys %kinds)
{
	my $kind = $kinds{$name};
	# threads while it is at work, too
	while ($kind->{shell}{out} !~ /DONE \d+\n$/)
	{
		foreach my $other (keys %kinds)
		{
			my $threads = threads($kinds{$other}{shell}{pid});
			$most{$other} = $threads if $threads > ($most{$other} || 0);
		}
		IPC::Run::pump_nb($_->{shell}{run}) foreach values %kinds;
		sleep(0.05);
	}
	shell_wait($kind->{shell});
	my $states = () = $kind->{state} ne '' ? $kind->{shell}{err} =~ /(?:ERROR|WARNING):  $kind->{state}:/g : ();
	is($states, $kind->{state} eq '' ? 0 : $statements, "$name: $statements times");
	my $end = settled($kind->{shell}, $kind->{warm}{threads}, 60);
	note sprintf('%s: threads %d -> %d (most %d), descriptors %d -> %d, memory %d -> %d kB', $name, $kind->{warm}{threads}, $end->{threads}, $most{$name},
		$kind->{warm}{fds}, $end->{fds}, $kind->{warm}{kb}, $end->{kb});
	cmp_ok($end->{threads}, '<=', $kind->{warm}{threads}, "$name: threads");
	cmp_ok($most{$name}, '<=', 60, "$name: threads while at work");
	cmp_ok($end->{fds}, '<=', $kind->{warm}{fds} + 2, "$name: descriptors");
	# a client that is kept may have read ahead, which is 20 MB of this topic
	cmp_ok($end->{kb}, '<=', $kind->{warm}{kb} + 24 * 1024, "$name: memory");
}
note sprintf('%d statements of each kind in %.1f s', $statements, time - $since);

# === idle clients are closed ===================================================================
foreach my $name (sort keys %kinds)
{
	my $kind = $kinds{$name};
	my $idle = settled($kind->{shell}, 0, 60);
	is($idle->{threads}, 0, "$name: no thread is left after idle_timeout")
	  or diag(join(' ', threads($kind->{shell}{pid})));
	cmp_ok($idle->{fds}, '<=', $kind->{start}{fds} + 3, "$name: nor a socket");
	note sprintf('%s: memory %d kB before the first client, %d kB now', $name, $kind->{start}{kb}, $idle->{kb});
	# what was read ahead, once, may stay with malloc where something small lies behind it
	cmp_ok($idle->{kb}, '<=', $kind->{start}{kb} + 24 * 1024, "$name: nor much memory");
	close_shell($kind->{shell});
}

# === threads and signals ======================================================================
# I03: with the broker frozen in the middle of a scan all threads there are stand still
my $shell = open_shell($node, "SET upsert_kafka.queue_size = '1MB';");
shell($shell, 'BEGIN;', 'DECLARE c CURSOR FOR SELECT * FROM slow;', 'FETCH 1 FROM c;');
my %blocked;
foreach my $task (glob("/proc/$shell->{pid}/task/*"))
{
	my $status = eval { slurp_file("$task/status") } or next;
	my ($name) = $status =~ /^Name:\s+(\S+)/m;
	my ($mask) = $status =~ /^SigBlk:\s+([0-9a-f]+)/m;
	next if $task =~ m{/\Q$shell->{pid}\E$};
	$blocked{$name} = $mask;
}
cmp_ok(scalar keys %blocked, '>=', 2, 'there are threads: ' . join(' ', sort keys %blocked));
# all but KILL and STOP, which cannot be, and 32 and 33, which are libc's own
is_deeply([ grep { $blocked{$_} !~ /^fffffff[ef]7ffbfeff$/ } sort keys %blocked ], [], 'all of them block every signal');
shell($shell, 'ROLLBACK;');

# I01: neither the postmaster nor the launcher has any
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
is(join(' ', threads($postmaster)), '', 'no thread in the postmaster');
my $launcher = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka launcher'");
is(join(' ', threads($launcher)), '', 'no thread in the launcher');

# A thousand signals while scans run, and as many to the worker that follows a table
$node->safe_psql('postgres', "SELECT upsert_kafka.materialize('state', target => 'followed'); SELECT upsert_kafka.wait_for('followed')");
my $worker = $node->safe_psql('postgres', "SELECT worker FROM upsert_kafka.progress WHERE target = 'followed'::regclass LIMIT 1");
shell_send($shell, ('SELECT count(v) FROM log;', 'SELECT count(v) FROM state;') x 400);
my @signals = ('USR1', 'HUP', 'INT', 'USR1');
foreach my $i (1 .. 1000)
{
	kill($signals[ $i % 4 ], $shell->{pid});
	kill($signals[ $i % 2 ], $worker);
	usleep(3000);
	IPC::Run::pump_nb($shell->{run}) if $i % 20 == 0;
}
kill('INT', $shell->{pid}) while !eval { IPC::Run::pump_nb($shell->{run}); usleep(20_000); $shell->{out} =~ /DONE \d+\n$/ };
shell_wait($shell);
my $cancelled = () = $shell->{err} =~ /57014/g;
cmp_ok($cancelled, '>', 20, 'many scans were cancelled');
unlike($shell->{err}, qr/(?:ERROR|FATAL|PANIC):  (?!57014)/, 'and none failed otherwise');
is(shell($shell, 'SELECT count(v) FROM log;'), '40000', 'the next scan is whole');
is(shell($shell, 'SELECT pg_backend_pid();'), $shell->{pid}, 'in the same process');
produce($topic, '{"k":-1}|{"v":"last"}');
is(shell($shell, "SELECT upsert_kafka.wait_for('followed');"), 't', 'the worker goes on');
is($node->safe_psql('postgres', "SELECT worker FROM upsert_kafka.progress WHERE target = 'followed'::regclass LIMIT 1"), $worker, 'it is the same one');
cmp_ok(scalar(threads($worker)), '<=', 16, 'with few threads');
close_shell($shell);

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
$node->stop;
stop_proxy($proxy);
done_testing();
