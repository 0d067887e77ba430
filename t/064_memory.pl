# Memory is bounded whatever the topic holds: no process of the server has more than 300 MB of its
# own, for many partitions of big messages, one huge message, and batches that were compressed to
# almost nothing (I05). Scans, first loads, and following with a backlog.
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

my $limit_mb = 300;
my $kt = $ENV{KT} || 'test/kt';
my $node = start_node('memory', conf => "log_statement = none\njit = off\nupsert_kafka.wait_timeout = 3min\n");
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

sub fill
{
	my ($topic, $write) = @_;
	open(my $pipe, '|-', $kt, '-b', broker(), 'produce', $topic) or die "cannot run kt: $!";
	$write->($pipe);
	close($pipe) or die "cannot produce to $topic";
	return;
}

# The biggest process of the server while the commands run
sub peak
{
	my ($what, @commands) = @_;
	my $session = start_session($node, @commands);
	my %most;
	while (IPC::Run::pumpable($session->{run}))
	{
		IPC::Run::pump_nb($session->{run});
		my %parent;
		foreach my $stat (glob('/proc/[0-9]*/stat'))
		{
			open(my $f, '<', $stat) or next;
			my ($pid, $rest) = (<$f> // '') =~ /^(\d+) \(.*\) \S (\d+) / or next;
			next unless $rest == $postmaster;
			my $kb = resident_kb($pid);
			$most{$pid} = $kb if $kb > ($most{$pid} || 0);
		}
		sleep(0.03);
	}
	my $seconds = end_session($session);
	my ($most) = sort { $b <=> $a } values %most;
	note sprintf('%s: %.0f MB at most, %.1f s', $what, $most / 1024, $seconds);
	cmp_ok($most / 1024, '<', $limit_mb, "$what: memory") or diag($session->{err});
	is($session->{err}, '', "$what: no error");
	(my $out = $session->{out}) =~ s/\s+$//;
	return $out;
}

sub tables
{
	my ($name, $topic) = @_;
	$node->safe_psql('postgres', qq{
		CREATE FOREIGN TABLE ${name}_log (k int OPTIONS (key 'true'), v text)
			SERVER kafka OPTIONS (connector 'kafka', topic '$topic', key_format 'json', value_format 'json');
		CREATE FOREIGN TABLE ${name}_state (k int OPTIONS (key 'true'), v text)
			SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')});
	return;
}

# === 64 partitions, messages of 1 kB that don't compress ====================================
my $n = 150_000;
my $wide = create_topic(unique_topic('memory_wide'), 64);
my $random = join('', map { chr(33 + int(rand(94))) } 1 .. 20_000);
$random =~ tr/"\\|/abc/;
sub messages
{
	my ($pipe, $from, $to) = @_;
	printf $pipe "[p=%d] {\"k\":%d}|{\"v\":\"%s\"}\n", $_ % 64, $_ % 50_000, substr($random, ($_ * 7919) % 19_000, 1000) foreach $from .. $to;
	return;
}
fill($wide, sub { messages($_[0], 1, $n) });
tables('wide', $wide);
is(peak('scan', 'SELECT count(*), sum(length(v)) FROM wide_log'), "$n|" . $n * 1000, 'all of it');
is(peak('scan with a slow reader', 'BEGIN', 'DECLARE c CURSOR FOR SELECT v FROM wide_log', 'MOVE 10 IN c', 'SELECT pg_sleep(2)', 'MOVE 10 IN c', 'SELECT 1'), "\n1", 'a cursor that rests');
is(peak('current state', 'SELECT count(*), sum(length(v)) FROM wide_state'), '50000|50000000', 'the last of each key');
peak('materialize', "SELECT upsert_kafka.materialize('wide_state', target => 'wide')");
is(peak('first load', "SELECT upsert_kafka.wait_for('wide')", 'SELECT count(*) FROM wide'), "t\n50000", 'loaded');
fill($wide, sub { messages($_[0], 1, 60_000) });
is(peak('following', "SELECT upsert_kafka.wait_for('wide')", 'SELECT count(*) FROM wide_history'), "t\n" . ($n + 60_000), 'followed');

# === one huge message ========================================================================
my $huge = create_topic(unique_topic('memory_huge'), 1, '-c', 'max.message.bytes=31457280');
fill($huge, sub { my $pipe = shift; print $pipe '{"k":1}|{"v":"', 'y' x 20_000_000, "\"}\n"; print $pipe qq({"k":2}|{"v":"x"}\n) });
tables('huge', $huge);
is(peak('scan of a huge message', 'SELECT k, length(v) FROM huge_log ORDER BY k'), "1|20000000\n2|1", 'read');
is(peak('current state with a huge message', 'SELECT k, length(v) FROM huge_state ORDER BY k'), "1|20000000\n2|1", 'read');
peak('materialize', "SELECT upsert_kafka.materialize('huge_state', target => 'huge')");
is(peak('first load with a huge message', "SELECT upsert_kafka.wait_for('huge')", 'SELECT k, length(v) FROM huge ORDER BY k'), "t\n1|20000000\n2|1", 'loaded');

# === batches that were compressed to a twentieth =====================================================
my $tight = create_topic(unique_topic('memory_tight'), 8, '-c', 'compression.type=gzip');
fill($tight, sub {
	my $pipe = shift;
	printf $pipe "[p=%d] {\"k\":%d}|{\"v\":\"%s%s\"}\n", int($_ / 20_000) % 8, $_ % 50_000, substr($random, ($_ * 7919) % 19_000, 60), 'z' x 1440 foreach 1 .. 300_000;
});
tables('tight', $tight);
is(peak('scan of compressed batches', 'SELECT count(*), sum(length(v)) FROM tight_log'), '300000|450000000', 'read');
is(peak('slow scan of compressed batches', 'BEGIN', 'DECLARE c CURSOR FOR SELECT v FROM tight_log', 'MOVE 10 IN c', 'SELECT pg_sleep(2)', 'MOVE ALL IN c', 'SELECT 1'), "\n1", 'a cursor that rests');
is(peak('current state of compressed batches', 'SELECT count(*), sum(length(v)) FROM tight_state'), '50000|75000000', 'read');
peak('materialize', "SELECT upsert_kafka.materialize('tight_state', target => 'tight')");
is(peak('first load of compressed batches', "SELECT upsert_kafka.wait_for('tight')", 'SELECT count(*) FROM tight'), "t\n50000", 'loaded');

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP|out of memory/, 'no process crashed');
$node->stop;
# these topics are big
system($kt, '-b', broker(), 'delete', $_) foreach $wide, $huge, $tight;
done_testing();
