# A broker that gives a sign of life and then no answer costs the other tables of its worker a few
# seconds, whatever the server's timeout: in a transaction a worker is patient for so long only.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;
use Faults;

# one worker for both tables, and one slot for loads
my $node = start_node('half', conf => "upsert_kafka.max_workers = 2\nupsert_kafka.wait_timeout = 2min\n");
my $proxy = start_proxy();

sub sql { return $node->safe_psql('postgres', $_[0]); }

my $topic = create_topic(unique_topic('half'), 1);
sql("CREATE SERVER proxy FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$proxy->{address}', timeout '10min')");
foreach my $server ('proxy', 'kafka')
{
	sql("CREATE FOREIGN TABLE ${server}_topic (k int OPTIONS (key 'true'), v int) SERVER $server OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
		SELECT upsert_kafka.materialize('${server}_topic', target => 'by_$server'); SELECT upsert_kafka.wait_for('by_$server')");
}
is(sql("SELECT count(DISTINCT worker) FROM upsert_kafka.progress"), '1', 'one worker for both tables');

# a following worker looks where the topic ends; then, a feed that opens does
withhold_ends($proxy);
my $errors = "SELECT count(*) FROM upsert_kafka.progress WHERE target = 'by_proxy'::regclass AND last_error ~ 'did not answer within";
wait_until($node, "$errors 2000 ms'", '1', 'the look at the topic gives up');
foreach my $n (1 .. 3)
{
	produce($topic, qq({"k":$n}|{"v":$n}));
	is(sql("SELECT upsert_kafka.wait_for('by_kafka'); SELECT count(*) FROM by_kafka"), "t\n$n", "the other table goes on: $n");
}
wait_until($node, "$errors (4|8|16|32|60)000 ms'", '1', 'a broker that may only be slow gets more time with each failure');

give_ends($proxy);
is(sql("SELECT upsert_kafka.wait_for('by_proxy'); SELECT count(*) FROM by_proxy"), "t\n3", 'the table goes on when the broker does');

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed');
stop_proxy($proxy);
$node->stop;
done_testing();
