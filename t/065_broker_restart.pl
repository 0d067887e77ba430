# The library's own log and errors, all of them (debug 'all'), while brokers come and go during
# scans: they are lines of the server's log, never raw output of a thread, and nothing crashes (I02).
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

my $node = start_node('restart', conf => "log_min_messages = debug2\nlog_statement = none\nlog_line_prefix = '%m [%p] '\nupsert_kafka.wait_timeout = 3min\n");
my $proxy = start_proxy();
my $topic = create_topic(unique_topic('restart'), 4);
produce($topic, map { sprintf('[p=%d] {"k":%d}|{"v":"%s"}', $_ % 4, $_, 'x' x 80) } 1 .. 40_000);
$node->safe_psql('postgres', qq{
	CREATE SERVER chatty FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$proxy->{address}', timeout '2s', debug 'all');
	CREATE FOREIGN TABLE log (k int OPTIONS (key 'true'), v text) SERVER chatty
		OPTIONS (connector 'kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE state (k int OPTIONS (key 'true'), v text) SERVER chatty
		OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('state', target => 't');
});
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('t'); SELECT count(*) FROM t"), "t\n40000", 'a table follows');

# scans without end in two sessions, one with a small queue, so that it is always fetching
my @shells = map { open_shell($node, 'SET client_min_messages = warning;', $_) } "SET upsert_kafka.queue_size = '1MB';", "SET upsert_kafka.idle_timeout = 0;";
my ($scans, $whole, $failed) = (0, 0, 0);
sub step
{
	foreach my $shell (@shells)
	{
		IPC::Run::pump_nb($shell->{run});
		next if $shell->{busy} && $shell->{out} !~ /DONE \d+\n$/;
		if ($shell->{busy})
		{
			my $out = shell_wait($shell);
			$scans++;
			if ($out =~ /^4000[01]$/) { $whole++ }
			elsif ($shell->{err} =~ /ERROR:  08\w{3}:/) { $failed++ }
			else { fail("a scan gave: $out $shell->{err}") }
		}
		shell_send($shell, $scans % 2 ? 'SELECT count(v) FROM log;' : 'SELECT count(v) FROM state;');
		$shell->{busy} = 1;
	}
	return;
}
foreach my $round (1 .. 6)
{
	# the first time until a scan has gone through, however slow they are
	my $begun = time;
	my $until = $begun + 0.7;
	while (time < $until || (!$whole && time < $begun + 120)) { step(); sleep(0.01); }
	if ($round % 2)
	{
		# killed in the middle of a scan, back a moment later
		stop_proxy($proxy);
		$until = time + 0.5;
		while (time < $until) { step(); sleep(0.01); }
		$proxy = start_proxy($proxy->{port});
	}
	else
	{
		# once until a scan has given up, and shorter than that
		freeze($proxy);
		$until = time + ($round == 2 ? 60 : 0.5);
		while (time < $until && !($round == 2 && $failed)) { step(); sleep(0.01); }
		thaw($proxy);
	}
}
# once more with everything in order
foreach my $shell (@shells) { shell_wait($shell); $shell->{busy} = 0; }
note "$scans scans, $whole whole, $failed failed";
cmp_ok($whole, '>', 0, 'scans went through');
cmp_ok($failed, '>', 0, 'scans failed with class 08');
is(shell($_, 'SELECT count(v) FROM state;'), '40000', 'and go through afterwards') foreach @shells;
produce($topic, '{"k":-1}|{"v":"last"}');
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('t'); SELECT count(*) FROM t"), "t\n40001", 'the worker goes on, too');
close_shell($_) foreach @shells;
$node->stop;

my $log = slurp_file($node->logfile);
my @raw = grep { !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+ \[\d+\] / && !/^\t/ && !/^$/ } split /\n/, $log;
is_deeply([ @raw[ 0 .. ($#raw < 4 ? $#raw : 4) ] ], [], 'every line of the log is the server\'s');
like($log, qr/DEBUG:  librdkafka: FAIL: .*\Q$proxy->{address}\E.*(?:refused|Disconnected|closed)/i, 'broken connections are in it');
like($log, qr/DEBUG:  librdkafka: FETCH: /, "as is what debug 'all' tells");
unlike($log, qr/terminated by signal|PANIC|TRAP|Assertion/, 'no process crashed');
stop_proxy($proxy);
done_testing();
