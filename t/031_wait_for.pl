# wait_for and workers where there is no worker to be had: without preload, on a standby,
# with too few processes, with a broker that is not there.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

sub source
{
	my ($node, $db, $name, $topic, $server) = @_;
	$server ||= 'kafka';
	$node->safe_psql($db, qq{
		CREATE FOREIGN TABLE ${name}_topic (k text OPTIONS (key 'true'), v int)
			SERVER $server OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')});
}

sub numbers
{
	my ($from, $to) = @_;
	return map { qq({"k":"k$_"}|{"v":$_}) } $from .. $to;
}

sub fails
{
	my ($node, $db, $sql, $like, $what) = @_;
	my ($rc, $out, $err) = $node->psql($db, $sql, on_error_stop => 1);
	like($err, $like, $what);
}

# === without preload ==================================================================
my $a = create_topic(unique_topic('wait_a'), 2);
my $plain = start_node('plain', preload => 0);
source($plain, 'postgres', 'a', $a);
$plain->safe_psql('postgres', "SELECT upsert_kafka.materialize('a_topic', target => 'a')");
produce($a, numbers(1, 5));
fails($plain, 'postgres', "SELECT upsert_kafka.wait_for('a')", qr/no worker keeps table "a" up to date.*shared_preload_libraries.*refresh/s, 'no preload, no worker');
is($plain->safe_psql('postgres', "SELECT upsert_kafka.refresh('a'); SELECT count(*) FROM a"), "5\n5", 'refresh needs none');
is($plain->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a')"), 't', 'nothing to wait for');
is($plain->safe_psql('postgres', "SELECT sum(position), count(worker), bool_or(rows_per_second IS NOT NULL) FROM upsert_kafka.progress"), '5|0|f', 'progress knows what is durable');
produce($a, numbers(6, 8));
is($plain->safe_psql('postgres', "BEGIN; SELECT upsert_kafka.refresh('a'); SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a; ROLLBACK; SELECT count(*) FROM a"),
	"3\nt\n8\n5", 'a refresh is part of its transaction');
$plain->stop;

# === standby ==========================================================================
my $b = create_topic(unique_topic('wait_b'), 1);
my $primary = start_node('primary', streaming => 1, conf => "upsert_kafka.max_workers = 1\n");
source($primary, 'postgres', 'b', $b);
$primary->safe_psql('postgres', "SELECT upsert_kafka.materialize('b_topic', target => 'b'); SELECT upsert_kafka.wait_for('b')");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
produce($b, numbers(1, 5));
is($standby->safe_psql('postgres', "SELECT upsert_kafka.wait_for('b'); SELECT count(*) FROM b"), "t\n5", 'a standby waits for replay');
$standby->safe_psql('postgres', "SELECT pg_wal_replay_pause()");
produce($b, numbers(6, 9));
fails($standby, 'postgres', "SELECT upsert_kafka.wait_for('b', '300ms')", qr/57014|timed out waiting for table "b"\nDETAIL:  Partition 0 of topic "$b": position 5, end 9, 4 to go/, 'and says what is missing');
$standby->safe_psql('postgres', "SELECT pg_wal_replay_resume()");
fails($standby, 'postgres', "SELECT upsert_kafka.pause('b')", qr/cannot execute upsert_kafka.pause\(\) in a read-only transaction/, 'no steering there');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka%'"), '0', 'no worker either');
$standby->stop;

# === one slot for everything ==========================================================
# max_workers = 1: the first load and the next table are the leader's; databases take turns.
my $c = create_topic(unique_topic('wait_c'), 1);
source($primary, 'postgres', 'c', $c);
produce($c, numbers(1, 3));
$primary->safe_psql('postgres', "SELECT upsert_kafka.materialize('c_topic', target => 'c')");
is($primary->safe_psql('postgres', "SELECT upsert_kafka.wait_for('c'); SELECT count(*) FROM c"), "t\n3", 'a load without a process of its own');

$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('other', "CREATE EXTENSION upsert_kafka; CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '" . broker() . "')");
source($primary, 'other', 'c', $c);
# a turn of 10 s that has just begun
my $apply = "FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'";
my $earlier = $primary->safe_psql('postgres', "SELECT pid $apply");
$primary->safe_psql('postgres', "SELECT pg_terminate_backend($earlier)");
$primary->poll_query_until('postgres', "SELECT EXISTS (SELECT $apply AND pid <> $earlier)");
my $turn = time;
my $offset = -s $primary->logfile;
$primary->safe_psql('other', "SELECT upsert_kafka.materialize('c_topic', target => 'c')");
ok($primary->wait_for_log(qr/no upsert_kafka worker is left for database \d+/, $offset), 'a database without a slot is named in the log')
  if $primary->can('wait_for_log');
{
	my ($rc, $out, $err) = $primary->psql('other', "SELECT upsert_kafka.wait_for('c', '500ms')");
	# on a machine on which all this has taken longer than the turn somebody may be serving it already
	ok($err =~ /timed out waiting.*No worker is serving/s || time - $turn >= 9, 'and by wait_for') or diag($err);
}
is($primary->safe_psql('other', "SELECT upsert_kafka.wait_for('c', '2min'); SELECT count(*) FROM c"), "t\n3", 'its turn comes');
produce($c, numbers(4, 4));
is($primary->safe_psql('postgres', "SELECT upsert_kafka.wait_for('c', '2min'); SELECT count(*) FROM c"), "t\n4", 'and that of the first one again');
$primary->safe_psql('other', "SELECT upsert_kafka.pause('c')");

# === no broker ============================================================================
# A table whose broker is gone waits, and says so; its neighbours go on.
$primary->safe_psql('postgres', "CREATE SERVER gone FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:1')");
source($primary, 'postgres', 'gone', 'nothing', 'gone');
$primary->safe_psql('postgres', "SELECT upsert_kafka.materialize('gone_topic', target => 'gone')");
ok($primary->poll_query_until('postgres', "SELECT phase = 'backfill' AND last_error IS NOT NULL FROM upsert_kafka.progress WHERE target = 'gone'::regclass"), 'the error is in progress');
produce($c, numbers(5, 6));
is($primary->safe_psql('postgres', "SELECT upsert_kafka.wait_for('c', '2min'); SELECT count(*) FROM c"), "t\n6", 'the others go on');
fails($primary, 'postgres', "SELECT upsert_kafka.wait_for('gone')", qr/ERROR/, 'wait_for asks Kafka itself');
$primary->safe_psql('postgres', qq{SELECT upsert_kafka."drop"('gone')});

# === two-phase commit =======================================================================
$primary->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
$primary->restart;
$primary->safe_psql('postgres', "SELECT upsert_kafka.pause(target) FROM upsert_kafka.tables");
$primary->safe_psql('postgres', "BEGIN; SELECT upsert_kafka.resume('b'); PREPARE TRANSACTION 'p'");
$primary->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($primary->safe_psql('postgres', "SELECT upsert_kafka.wait_for('b'); SELECT count(*) FROM b"), "t\n9", 'COMMIT PREPARED wakes, too');

my $log = slurp_file($primary->logfile);
unlike($log, qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
$primary->stop;
done_testing();
