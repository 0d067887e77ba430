# Exactly once, whatever dies when: transactions of two writers, some rolled back, go through
# the outbox while its sender or the whole server is killed, or cut off from Kafka, at random points. In the end a
# read_committed consumer has seen each message of each committed transaction once, keys in
# the order of commits, nothing that was rolled back; and never part of a transaction.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use Faults;
use UpsertKafka;

my $seed = $ENV{UPSERT_KAFKA_SEED} || (time() ^ $$);
note "UPSERT_KAFKA_SEED=$seed";
srand($seed);

my $kt = $ENV{KT} || 'test/kt';
my $node = start_node('primary', conf => "restart_after_crash = on\n");
my $proxy = start_proxy();
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET bootstrap_servers '$proxy->{address}')");
my $many = create_topic(unique_topic('once'), 3);
my $one = create_topic(unique_topic('once_single'), 1);
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE many (id int OPTIONS (key 'true'), version int, tx text, n int)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$many', key_format 'json', value_format 'json', delivery_guarantee 'exactly-once');
	CREATE FOREIGN TABLE one (tx text, i int, n int)
		SERVER kafka OPTIONS (connector 'kafka', topic '$one', value_format 'json', delivery_guarantee 'exactly-once');
	-- what was committed, and in which order for each key: the row locks decide
	CREATE TABLE committed (tx text PRIMARY KEY, n int);
	CREATE TABLE versions (id int PRIMARY KEY, version int NOT NULL);
	INSERT INTO versions SELECT i, 0 FROM generate_series(1, 20) i;
});

sub consume
{
	my ($topic) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $kt, '-b', broker(), 'consume', $topic ], '>', \$out, '2>', \$err) or die "cannot consume: $err";
	return split /\n/, $out;
}

# Statements of n transactions with names of their own.
my $count = 0;
sub transactions
{
	my ($n) = @_;
	my $sql = '';
	foreach (1 .. $n)
	{
		my $tx = 'tx' . $count++;
		my $rollback = rand() < 0.2;
		my $rows = 1 + int(rand(6));
		my $first = 1 + int(rand(15));
		$tx = "undone$tx" if $rollback;
		$sql .= "BEGIN;\n"
		  . "INSERT INTO committed VALUES ('$tx', $rows);\n"
		  . "WITH v AS (UPDATE versions SET version = version + 1 WHERE id IN (SELECT id FROM versions WHERE id BETWEEN $first AND $first + $rows - 1 ORDER BY id FOR UPDATE) RETURNING id, version)\n"
		  . " INSERT INTO many SELECT id, version, '$tx', $rows FROM v;\n";
		$sql .= "SAVEPOINT s; INSERT INTO one VALUES ('undone', 0, 0); ROLLBACK TO s;\n" if rand() < 0.2;
		$sql .= "INSERT INTO one SELECT '$tx', i, $rows FROM generate_series(1, $rows) i;\n"
		  . ($rollback ? "ROLLBACK;\n" : "COMMIT;\n");
	}
	return $sql;
}

# Only whole transactions may be seen, at any time.
sub check_whole
{
	my ($what) = @_;
	my (%seen, %n);
	foreach (consume($one))
	{
		my ($tx, $n) = /"tx":"(\w+)","i":\d+,"n":(\d+)/ or die "not a message of ours: $_";
		$seen{$tx}++;
		$n{$tx} = $n;
	}
	my @partly = grep { $seen{$_} != $n{$_} } sort keys %seen;
	is("@partly", '', "$what: no transaction is seen in part");
	return \%seen;
}

# A psql that runs beside us, whatever becomes of it.
sub in_background
{
	my (@arguments) = @_;
	my $pid = fork();
	die "cannot fork: $!" if !defined $pid;
	return $pid if $pid;
	open(STDOUT, '>', '/dev/null');
	open(STDERR, '>', '/dev/null');
	exec('psql', '-X', '-q', '-d', $node->connstr('postgres'), @arguments) or die "cannot run psql: $!";
}

sub sender_pid
{
	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka outbox sender' LIMIT 1");
}

foreach my $round (1 .. 12)
{
	my @writers;
	foreach my $w (1, 2)
	{
		my $script = "$PostgreSQL::Test::Utils::tmp_check/writer$w.sql";
		open(my $fh, '>', $script) or die $!;
		print $fh transactions(150);
		close $fh;
		push @writers, in_background('-f', $script);
	}
	usleep(50_000 + int(rand(400_000)));
	my $how = $round % 4;
	if ($how == 0)
	{
		$node->stop('immediate');
		$node->start;
	}
	elsif ($how == 3)
	{
		# nobody knows what became of a commit whose answer is lost
		foreach (1 .. 3)
		{
			stop_proxy($proxy);
			usleep(int(rand(100_000)));
			$proxy = start_proxy($proxy->{port});
			usleep(200_000 + int(rand(1_500_000)));
		}
	}
	else
	{
		my $pid = sender_pid();
		if ($pid)
		{
			if ($how == 1)
			{
				# the postmaster then restarts everything
				kill('KILL', $pid);
				usleep(100_000);
				$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
			}
			else
			{
				$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
			}
		}
	}
	waitpid($_, 0) foreach @writers;
	check_whole("round $round");
}

# the worst moment: Kafka has committed and PostgreSQL does not know it yet. Whoever may not
# change the sender's state is there.
foreach my $round (13 .. 15)
{
	# it has work, and so its state says already that Kafka may know more
	$node->safe_psql('postgres', transactions(20));
	wait_until($node, 'SELECT sum(waiting_rows) FROM upsert_kafka.outbox_status', '0', "round $round: a sender runs");
	my $locker = in_background('-c', 'BEGIN; LOCK TABLE upsert_kafka.outbox_stream IN SHARE MODE; SELECT pg_sleep(600); ROLLBACK');
	$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'upsert_kafka.outbox_stream'::regclass AND mode = 'ShareLock' AND granted)");
	my $tx = 'tx' . $count++;
	$node->safe_psql('postgres', "BEGIN; INSERT INTO committed VALUES ('$tx', 2); UPDATE versions SET version = version + 1 WHERE id IN (1, 2);"
		. " INSERT INTO many SELECT id, version, '$tx', 2 FROM versions WHERE id IN (1, 2); INSERT INTO one SELECT '$tx', i, 2 FROM generate_series(1, 2) i; COMMIT");
	my $arrived = 0;
	foreach (1 .. 600)
	{
		$arrived = grep { /"$tx"/ } consume($one);
		last if $arrived;
		usleep(100_000);
	}
	is($arrived, 2, "round $round: Kafka has it");
	is($node->safe_psql('postgres', 'SELECT sum(waiting_rows) > 0 FROM upsert_kafka.outbox_status'), 't', 'and PostgreSQL does not know');
	if ($round == 13)
	{
		my $pid = sender_pid() || $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
		kill('KILL', $pid);
		usleep(100_000);
		$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
	}
	elsif ($round == 14)
	{
		$node->stop('immediate');
		$node->start;
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka outbox sender' OR query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
	}
	waitpid($locker, 0);
	wait_until($node, 'SELECT sum(waiting_rows) FROM upsert_kafka.outbox_status', '0', "round $round: now it does");
}

wait_until($node, 'SELECT sum(waiting_rows) FROM upsert_kafka.outbox_status', '0', 'everything is sent');
my %committed = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT tx, n FROM committed');
note scalar(keys %committed) . ' transactions';
cmp_ok(scalar(keys %committed), '>', 100, 'there is something');

my $seen = check_whole('in the end');
is(join(' ', grep { !$seen->{$_} } sort keys %committed), '', 'nothing committed is missing in one topic');
is(join(' ', grep { !$committed{$_} } sort keys %$seen), '', 'and nothing is there that was not committed');

my (%rows, %last, @disorder);
foreach (consume($many))
{
	my ($id, $version, $tx) = /"id":(\d+),"version":(\d+),"tx":"(\w+)"/ or die "not a message of ours: $_";
	$rows{$tx}++;
	# twice the same would be out of order, too
	push @disorder, "key $id: $version after $last{$id}" if defined $last{$id} && $version != $last{$id} + 1;
	$last{$id} = $version;
}
is("@disorder", '', 'each key was written in the order of commits, without gap or repetition');
is(join(' ', grep { ($rows{$_} || 0) != $committed{$_} } sort keys %committed), '', 'all rows of all transactions are in the other topic');
is(join(' ', grep { !$committed{$_} } sort keys %rows), '', 'and nothing else');
my $versions = $node->safe_psql('postgres', "SELECT string_agg(id || ':' || version, ' ' ORDER BY id) FROM versions WHERE version > 0");
is(join(' ', map { "$_:$last{$_}" } sort { $a <=> $b } keys %last), $versions, 'the last message of each key is its last version');
done_testing();
