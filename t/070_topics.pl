# Maintained tables over several topics while a worker runs: topics appear, are deleted and made
# anew, the worker is killed; the result equals that of one undisturbed load.
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

my $kt = $ENV{KT} || 'test/kt';
my $node = start_node('several', conf => "upsert_kafka.batch_rows = 50\nrestart_after_crash = on\n");
my $prefix = unique_topic('several');
my %partitions;

sub sql { return $node->safe_psql('postgres', shift); }

sub new_topic
{
	my ($name, $partitions) = @_;
	$partitions{$name} = $partitions;
	return create_topic("${prefix}_$name", $partitions);
}

sub delete_topic
{
	my ($name) = @_;
	delete $partitions{$name};
	system($kt, '-b', broker(), 'delete', "${prefix}_$name") == 0 or die "cannot delete $name";
	return;
}

# Every message has a time of its own, so that what holds is no matter of numbers.
my $i = 0;
sub write_some
{
	my ($name, $n) = @_;
	my @lines;
	foreach (1 .. $n)
	{
		my $id = int(rand(60));
		my $head = sprintf('[p=%d ts=%d] {"id":%d}', $id % $partitions{$name}, 1_700_000_000_000 + $i * 10 + int(rand(10)), $id);
		push @lines, rand() < 0.1 ? "$head|\\N" : sprintf('%s|{"v":"%s%d"}', $head, $name, $i);
		$i++;
	}
	produce("${prefix}_$name", @lines);
	return;
}

sub worker_pid
{
	return sql("SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka apply%' LIMIT 1");
}

# === a pattern that matches nothing yet ===
sql(qq{
	CREATE FOREIGN TABLE matching (id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic'), part int OPTIONS (metadata 'partition'))
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic_pattern '${prefix}_[a-z]+', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('matching', target => 'kept');
	SELECT upsert_kafka.materialize('matching', target => 'current', history => false);
	SELECT upsert_kafka.wait_for('kept');
	SELECT upsert_kafka.wait_for('current');
});
is(sql('SELECT count(*) FROM kept'), 0, 'nothing matches');

# === topics come while it runs; it is killed; wait_for covers them all ===
foreach my $name (qw(one two three four five six))
{
	new_topic($name, 1 + int(rand(3)));
	write_some($name, 100);
	write_some((keys %partitions)[ rand keys %partitions ], 200);
	usleep(int(rand(200_000)));
	if ($name eq 'two' || $name eq 'five')
	{
		my $pid = worker_pid();
		kill('KILL', $pid) if $pid;
		$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)") if $pid;
	}
	elsif ($name eq 'four')
	{
		$node->stop('immediate');
		$node->start;
	}
	is(sql("SELECT upsert_kafka.wait_for('$_', '3 min')"), 't', "topic $name is found for $_") foreach qw(kept current);
}
is(sql("SELECT count(DISTINCT topic) FROM kept_history"), 6, 'all topics are in');

sql(q{
	SELECT upsert_kafka.materialize('matching', target => 'undisturbed');
	SELECT upsert_kafka.wait_for('undisturbed', '3 min');
});
foreach my $pair ([ 'kept', 'undisturbed' ], [ 'kept_history', 'undisturbed_history' ], [ 'kept', 'matching' ], [ 'current', 'matching' ])
{
	my ($left, $right) = @$pair;
	is(sql("SELECT count(*) > 20 FROM $left"), 't', "there is something in $left");
	is(sql("(TABLE $left EXCEPT ALL TABLE $right) UNION ALL (TABLE $right EXCEPT ALL TABLE $left) LIMIT 5"), '', "$left equals $right");
}
is(sql(q{
	SELECT count(*) FROM (SELECT topic, partition, position FROM upsert_kafka.progress WHERE target = 'kept'::regclass
		EXCEPT SELECT topic, partition, position FROM upsert_kafka.progress WHERE target = 'undisturbed'::regclass) d}), 0, 'positions are equal');
is(sql("SELECT bool_and(end_offset = position AND lag_messages = 0) FROM upsert_kafka.progress WHERE target = 'kept'::regclass"), 't', 'progress by topic');
# moments of the past, in both
is(sql(q{SELECT count(*) FROM generate_series(1700000000, 1700000018) s, LATERAL (
	(SELECT * FROM kept__as_of(to_timestamp(s)) EXCEPT SELECT * FROM undisturbed__as_of(to_timestamp(s)))
	UNION ALL (SELECT * FROM undisturbed__as_of(to_timestamp(s)) EXCEPT SELECT * FROM kept__as_of(to_timestamp(s)))) d}), 0, 'AS OF is equal');
sql("SELECT upsert_kafka.drop('undisturbed'); SELECT upsert_kafka.drop('current')");

# numbers were given once and for all
my $numbers = "SELECT string_agg(source || '=' || topic || ':' || partition, ' ' ORDER BY source) FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass AND NOT given_up";
my $before = sql($numbers);
$node->restart;
is(sql($numbers), $before, 'numbers are the same after a restart');

# === a topic is deleted when all of it was applied: nothing is lost, and nothing stops ===
write_some('one', 10);
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'all is applied');
wait_until($node, "SELECT bool_and(end_offset = position) AND count(*) > 0 FROM upsert_kafka.progress WHERE target = 'kept'::regclass AND worker IS NOT NULL", 't', 'and the worker has seen so');
my $rows = sql("SELECT count(*) FROM kept_history WHERE topic = '${prefix}_two'");
delete_topic('two');
wait_until($node, "SELECT bool_and(given_up) FROM upsert_kafka.progress WHERE target = 'kept'::regclass AND topic = '${prefix}_two'", 't', 'a topic that was applied is given up');
write_some('one', 10);
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'the others go on');
is(sql("SELECT count(*) FROM kept_history WHERE topic = '${prefix}_two'"), $rows, 'its rows stay');
like(slurp_file($node->logfile), qr/topic "${prefix}_two" of maintained table "kept" was deleted/, 'the log tells');

# it comes again, as another one
new_topic('two', 2);
write_some('two', 50);
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'a topic of its name is another one');
is(sql("SELECT string_agg(given_up::text, ' ' ORDER BY source) FROM upsert_kafka.topic_source WHERE target = 'kept'::regclass AND topic = '${prefix}_two' AND partition = 0"),
	'true false', 'with a number of its own');

# === deleted while nobody looked: a state, since messages may have gone with it ===
sql("SELECT upsert_kafka.pause('kept')");
write_some('three', 10);
delete_topic('three');
sql("SELECT upsert_kafka.resume('kept')");
wait_until($node, "SELECT state FROM upsert_kafka.tables WHERE target = 'kept'::regclass", 'topic_changed', 'a topic that went away unseen stops the table');
my ($rc, $out, $err) = $node->psql('postgres', "SELECT upsert_kafka.refresh('kept')");
like($err, qr/its state is "topic_changed".*"${prefix}_three" does not exist any more.*accept_data_loss/s, 'the error says so');
is(sql("SELECT error_topic FROM upsert_kafka.tables WHERE target = 'kept'::regclass"), "${prefix}_three", 'which topic it was');
sql("SELECT upsert_kafka.resume('kept', accept_data_loss => true)");
write_some('one', 10);
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'it goes on when told to');
$node->stop;
delete_topic('four');
$node->start;
wait_until($node, "SELECT state FROM upsert_kafka.tables WHERE target = 'kept'::regclass", 'topic_changed', 'nor is it known after a restart what a topic held');
sql("SELECT upsert_kafka.resume('kept', accept_data_loss => true)");

# === H04: made anew behind its back, with more messages than before ===
write_some('five', 5);
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'all is applied');
sql("SELECT upsert_kafka.pause('kept')");
system($kt, '-b', broker(), 'create', "${prefix}_five", '-p', $partitions{five}, '--fresh') == 0 or die;
write_some('five', 2000);
sql("SELECT upsert_kafka.resume('kept')");
wait_until($node, "SELECT state FROM upsert_kafka.tables WHERE target = 'kept'::regclass", 'topic_changed', 'a topic that was made anew is noticed');
like(sql("SELECT error_message FROM upsert_kafka.tables WHERE target = 'kept'::regclass"), qr/^Topic "${prefix}_five"/, 'by its own messages');
sql("SELECT upsert_kafka.resume('kept', accept_data_loss => true)");
is(sql("SELECT upsert_kafka.wait_for('kept', '3 min')"), 't', 'it is read as a new one');
is(sql("SELECT sum(position) FROM upsert_kafka.progress WHERE target = 'kept'::regclass AND topic = '${prefix}_five' AND NOT given_up"), 2000, 'from its beginning');

# === a topic joins a list, and nothing comes of the others ===
sql(qq{
	CREATE FOREIGN TABLE listed (id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic'))
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '${prefix}_one', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('listed', target => 'list');
	SELECT upsert_kafka.wait_for('list');
	ALTER FOREIGN TABLE listed OPTIONS (SET topic '${prefix}_six;${prefix}_one');
});
is(sql("SELECT upsert_kafka.wait_for('list', '3 min')"), 't', 'a topic joins a list');
is(sql('(TABLE list EXCEPT ALL TABLE listed) UNION ALL (TABLE listed EXCEPT ALL TABLE list) LIMIT 5'), '', 'the table is the topics\' state');
# one that is not there yet is waited for, and says so
sql("ALTER FOREIGN TABLE listed OPTIONS (SET topic '${prefix}_six;${prefix}_one;${prefix}_late')");
wait_until($node, "SELECT bool_or(last_error LIKE '%${prefix}_late%does not exist%') FROM upsert_kafka.progress WHERE target = 'list'::regclass", 't', 'a missing topic is told');
is(sql("SELECT state FROM upsert_kafka.tables WHERE target = 'list'::regclass"), 'live', 'and is no state');
new_topic('late', 1);
write_some('late', 5);
is(sql("SELECT upsert_kafka.wait_for('list', '3 min')"), 't', 'it is found when it comes');

# === looking for new topics can be put off ===
sql(qq{
	CREATE FOREIGN TABLE seldom (id int OPTIONS (key 'true'), v text, topic text OPTIONS (metadata 'topic'))
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic_pattern '${prefix}_(one|seldom[abc])', key_format 'json', value_format 'json', "scan.topic-partition-discovery.interval" '0');
	SELECT upsert_kafka.materialize('seldom', target => 'sel');
	SELECT upsert_kafka.wait_for('sel');
});
# what begins to read looks, whatever the option says: another worker may take the table over meanwhile
foreach my $name (qw(seldoma seldomb seldomc))
{
	new_topic($name, 1);
	write_some($name, 5);
	($rc, $out, $err) = $node->psql('postgres', "SELECT upsert_kafka.wait_for('sel', '12 s')");
	last if $err ne '';
}
like($err, qr/topic "${prefix}_seldom[abc]": position 0, end 5, 5 to go/, 'nothing is looked for with 0');
sql("ALTER FOREIGN TABLE seldom OPTIONS (SET \"scan.topic-partition-discovery.interval\" '6s')");
is(sql("SELECT upsert_kafka.wait_for('sel', '3 min')"), 't', 'and found when it is');

unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'no assertion failed');
$node->stop;
foreach my $name (keys %partitions)
{
	delete_topic($name);
}
done_testing();
