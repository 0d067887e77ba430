# H08: exactly once, whatever dies when.  10,000 messages over 3 partitions and 100 keys,
# tombstones among them, are applied while the worker or the whole server is killed ten
# times and a standby takes over in the end; the result equals that of an undisturbed run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use UpsertKafka;

my $seed = $ENV{UPSERT_KAFKA_SEED} || (time() ^ $$);
note "UPSERT_KAFKA_SEED=$seed";
srand($seed);

my $node = start_node('primary', streaming => 1, conf => "upsert_kafka.batch_rows = 50\nrestart_after_crash = on\n");
my $topic = create_topic(unique_topic('crash'), 3);
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE source (id int OPTIONS (key 'true'), v text, n numeric, et timestamptz)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('source', target => 'disturbed', event_time => 'et');
	SELECT upsert_kafka.wait_for('disturbed');
});

my $i = 0;
sub messages
{
	my ($n) = @_;
	my @lines;
	foreach (1 .. $n)
	{
		my $id = int(rand(100));
		my $ts = 1_700_000_000_000 + $i * 10 - int(rand(200));
		my $head = sprintf('[p=%d ts=%d] {"id":%d}', $id % 3, $ts, $id);
		push @lines, rand() < 0.1
		  ? "$head|\\N"
		  : sprintf('%s|{"v":"v%d","n":%d.50,"et":"2026-01-01 00:%02d:%02d"}', $head, $i, $i, ($i / 60) % 60, ($i + int(rand(5))) % 60);
		$i++;
	}
	return @lines;
}

sub worker_pid
{
	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka apply%' LIMIT 1");
}

foreach my $round (1 .. 10)
{
	produce($topic, messages(1000));
	usleep(int(rand(150_000)));
	if ($round % 3 == 0)
	{
		$node->stop('immediate');
		$node->start;
	}
	elsif ($round % 3 == 1)
	{
		# the worker alone: the postmaster then restarts everything
		my $pid = worker_pid();
		if ($pid)
		{
			kill('KILL', $pid);
			$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
		}
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka apply%'");
	}
	is($node->safe_psql('postgres', 'SELECT 1'), '1', "round $round: the server is there");
}

# a standby takes over in the middle
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
produce($topic, messages(1000));
usleep(int(rand(200_000)));
$node->stop('immediate');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
produce($topic, messages(200));
$standby->safe_psql('postgres', "SELECT upsert_kafka.wait_for('disturbed', '3 min')");

# the same messages once more, in one go
$standby->safe_psql('postgres', q{
	SELECT upsert_kafka.materialize('source', target => 'undisturbed', event_time => 'et');
	SELECT upsert_kafka.wait_for('undisturbed', '3 min');
});
foreach my $what ('', '_history')
{
	is($standby->safe_psql('postgres', "SELECT count(*) > 50 FROM disturbed$what"), 't', "there is something in disturbed$what");
	is($standby->safe_psql('postgres', "(TABLE disturbed$what EXCEPT ALL TABLE undisturbed$what) UNION ALL (TABLE undisturbed$what EXCEPT ALL TABLE disturbed$what) LIMIT 5"),
		'', "disturbed$what equals undisturbed$what");
}
is($standby->safe_psql('postgres', "SELECT string_agg(p::text, ' ' ORDER BY p::text) FROM upsert_kafka.position('disturbed') p"),
	$standby->safe_psql('postgres', "SELECT string_agg(p::text, ' ' ORDER BY p::text) FROM upsert_kafka.position('undisturbed') p"), 'positions are equal');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM upsert_kafka.errors'), '0', 'no errors');
done_testing();
