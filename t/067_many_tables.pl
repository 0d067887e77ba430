# Many tables and several workers: those that come take tables over from those that are there, whose clients are closed
# while a question to the broker is still open. No process crashes, and no message is applied twice or not at all (I01, I04).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my $tables = 60;
my $node = start_node('many', conf => "upsert_kafka.max_workers = 8\n");
my $topic = create_topic(unique_topic('many'), 2);
sub sql { return $node->safe_psql('postgres', $_[0]); }

produce($topic, map { '[p=' . $_ % 2 . "] {\"id\":$_}|{\"v\":0}" } 1 .. 10);
sql("CREATE FOREIGN TABLE source (id int OPTIONS (key 'true'), v int)
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')");
sql("SELECT upsert_kafka.materialize('source', 'kept_' || i, history => false) FROM generate_series(1, $tables) i");
sql("SELECT upsert_kafka.wait_for(('kept_' || i)::regclass) FROM generate_series(1, $tables) i");

my $workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'";
foreach my $round (1 .. 8)
{
	sql('ALTER SYSTEM SET upsert_kafka.workers = off');
	$node->reload;
	wait_until($node, $workers, '0', "round $round: no worker");
	produce($topic, "[p=0] {\"id\":2}|{\"v\":$round}");
	sql('ALTER SYSTEM RESET upsert_kafka.workers');
	$node->reload;
	wait_until($node, "SELECT count(DISTINCT target) FILTER (WHERE worker IS NOT NULL) = $tables FROM upsert_kafka.progress", 't', "round $round: workers serve all tables");
	is(sql("SELECT count(*) FROM generate_series(1, $tables) i WHERE upsert_kafka.wait_for(('kept_' || i)::regclass)"), $tables, "round $round: and follow");
}
is(sql('SELECT count(*), sum(v) FROM (' . join(' UNION ALL ', map { "SELECT * FROM kept_$_" } 1 .. $tables) . ') t'), $tables * 10 . '|' . $tables * 8,
	'every table has every message');

$node->stop('fast');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
done_testing();
