# librdkafka inside of PostgreSQL's processes: no thread where none was asked for (I01), what the library says goes through
# the server's log and never past it (I02), and signals reach the main thread only (I03).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use UpsertKafka;

plan skip_all => 'needs /proc' unless -r "/proc/$$/task/$$/status";

my $node = start_node('threads', conf => "log_min_messages = debug2\nlog_line_prefix = '%m [%p] '\n");
my $topic = create_topic(unique_topic('threads'), 2);
produce($topic, map { "[p=" . $_ % 2 . "] {\"id\":$_}|{\"v\":$_}" } 1 .. 1000);
$node->safe_psql('postgres', qq{
CREATE FOREIGN TABLE t_topic (id int OPTIONS (key 'true'), v int)
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
SELECT upsert_kafka.materialize('t_topic', 't');
SELECT upsert_kafka.wait_for('t');
});
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '1000', 'a worker applies');

# threads of a process: id => [name, blocked signals as a number]
sub threads
{
	my ($pid) = @_;
	my %threads;
	foreach my $status (glob "/proc/$pid/task/*/status")
	{
		# a thread may have ended meanwhile
		my $text = eval { slurp_file($status) } or next;
		my ($tid) = $status =~ m{task/(\d+)/};
		my ($name) = $text =~ /^Name:\s+(.*)$/m;
		my ($blocked) = $text =~ /^SigBlk:\s+([0-9a-f]+)$/m;
		$threads{$tid} = [ $name, hex($blocked) ];
	}
	return %threads;
}

# HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD, the ones that PostgreSQL lives by
my $ours = 0;
$ours |= 1 << ($_ - 1) foreach (1, 2, 3, 10, 12, 13, 14, 15, 17);

sub library_threads_block_signals
{
	my ($pid, $what) = @_;
	my %threads = threads($pid);
	delete $threads{$pid};
	my @open = grep { ($threads{$_}[1] & $ours) != $ours } keys %threads;
	cmp_ok(scalar(keys %threads), '>', 0, "$what has threads of the library");
	is("@open", '', "$what: all of them block signals") or diag(map { "$_ $threads{$_}[0]\n" } @open);
	return;
}

# === I01: threads are made in the process that uses them ===
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my %threads = threads($postmaster);
is(scalar(keys %threads), 1, 'none in the postmaster, though workers and sessions have some');
my $launcher = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka launcher'");
%threads = threads($launcher);
is(scalar(keys %threads), 1, 'none in the launcher');

# === I03: signals are the main thread's ===
my $worker = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka apply%'");
library_threads_block_signals($worker, 'a worker');

# a session that scans, and is cancelled, told to reload and signalled all the time
my ($in, $out, $err) = ('', '', '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err,
	IPC::Run::timeout(900));
$in .= "SELECT count(*) FROM t_topic; SELECT 'pid ' || pg_backend_pid();\n";
$session->pump until $out =~ /pid (\d+)\n/;
my ($backend) = $out =~ /pid (\d+)\n/;
library_threads_block_signals($backend, 'a session');
$in .= "SELECT 'rows ' || count(*) FROM t_topic;\n" x 500;
$in .= "\\echo over\n";
$session->pump_nb;
my $sent = 0;
while ($out !~ /over/)
{
	# in no order, so that some scans have the time to go through however slow they are
	kill $_, $backend foreach (rand() < 0.04 ? ('INT') : (), 'HUP', 'USR1');
	kill 'HUP', $worker;
	$sent++;
	usleep(1000);
	$session->pump_nb;
}
$in .= "SELECT 'at last rows ' || count(*) FROM t_topic;\n\\q\n";
$session->finish;
cmp_ok($sent, '>', 100, 'signals were sent');
like($err, qr/canceling statement due to user request/, 'scans were cancelled');
like($out, qr/^rows 1000$/m, 'others went through');
unlike($out, qr/rows (?!1000$)/m, 'with every row');
like($out, qr/at last rows 1000/, 'and the session is fine');
produce($topic, '[p=0] {"id":1001}|{"v":1}');
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('t'); SELECT count(*) FROM t"), "t\n1001", 'so is the worker');

# === I02: the library's own messages, all of them ===
$node->safe_psql('postgres', q{ALTER SERVER kafka OPTIONS (ADD debug 'all')});
my $from = -s $node->logfile;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t_topic'), '1001', 'a scan with debug = all');
produce($topic, '[p=1] {"id":1002}|{"v":1}');
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('t'); SELECT count(*) FROM t"), "t\n1002", 'a worker with debug = all');
$node->safe_psql('postgres', q{ALTER SERVER kafka OPTIONS (DROP debug)});
my $log = slurp_file($node->logfile, $from);
like($log, qr{^\d{4}-\d\d-\d\d .*librdkafka: FETCH}m, 'come out as lines of the server log');
unlike($log, qr/^%\d\|/m, 'and never past it');

$node->stop('fast');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
done_testing();
