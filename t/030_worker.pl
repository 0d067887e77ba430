# Workers: they start at commit, come back after a crash, leave what is dropped, and one
# table's trouble is never another's (B14, B15, H03, H04, H05, J01, J02).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;
use Faults;

my $node = start_node('worker', conf => "upsert_kafka.max_workers = 3\nupsert_kafka.wait_timeout = 2min\n");

sub source
{
	my ($db, $name, $topic) = @_;
	$node->safe_psql($db, qq{
		CREATE FOREIGN TABLE ${name}_topic (k text OPTIONS (key 'true'), v int)
			SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json')});
}

# n messages k<from> .. with v = number
sub numbers
{
	my ($from, $to) = @_;
	return map { qq({"k":"k$_"}|{"v":$_}) } $from .. $to;
}

my $workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'";

sub fails
{
	my ($sql, $like, $what) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1);
	like("$rc $err", $like, $what);
}

# === start ==========================================================================
# A rolled back materialize starts nothing; a committed one starts at once.
my $a = create_topic(unique_topic('worker_a'), 2);
source('postgres', 'a', $a);
produce($a, numbers(1, 10));
$node->safe_psql('postgres', "BEGIN; SELECT upsert_kafka.materialize('a_topic', target => 'a'); ROLLBACK");
is($node->safe_psql('postgres', $workers), '0', 'no worker after a rollback');
$node->safe_psql('postgres', "SELECT upsert_kafka.materialize('a_topic', target => 'a')");
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*), sum(v) FROM a"), "t\n10|55", 'first load');
is($node->safe_psql('postgres', $workers), '1', 'one worker');
wait_until($node, "SELECT query FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'", 'following public.a', 'pg_stat_activity tells what it does');

# messages that come later
produce($a, numbers(11, 20));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*), sum(v) FROM a"), "t\n20|210", 'steady');
wait_until($node, "SELECT sum(lag_messages) = 0 AND bool_and(phase = 'live') AND sum(position) >= 20 AND bool_and(position = end_offset) FROM upsert_kafka.progress WHERE target = 'a'::regclass",
	't', 'progress knows the end');

# === death and return ===============================================================
my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
produce($a, numbers(21, 30));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n30", 'a terminated worker comes back');
$pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'upsert_kafka launcher'");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_until($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'upsert_kafka launcher' AND pid <> $pid", 't', 'so does the launcher');
is($node->safe_psql('postgres', $workers), '1', 'which leaves the worker alone');
$node->restart;
produce($a, numbers(31, 40));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n40", 'a server restart');

# === several tables ===================================================================
# Three tables, three slots, the last one free for loads: two workers, each table served by one.
foreach my $t ('b', 'c')
{
	my $topic = create_topic(unique_topic("worker_$t"), 1);
	source('postgres', $t, $topic);
	produce($topic, numbers(1, 5));
	$node->safe_psql('postgres', "SELECT upsert_kafka.materialize('${t}_topic', target => '$t')");
	is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('$t'); SELECT count(*) FROM $t"), "t\n5", "table $t");
}
wait_until($node, "SELECT ($workers) = 2 AND count(DISTINCT worker) = 2 AND count(DISTINCT target) = 3 AND bool_and(worker IS NOT NULL) FROM upsert_kafka.progress",
	't', 'two workers share three tables');

# === one table's trouble ==============================================================
# B14: a message that cannot be decoded stops its table there, everything before it is in.
produce($a, numbers(41, 45), '{"k":"bad"}|{"v":"abc"}', numbers(46, 50));
fails("SELECT upsert_kafka.wait_for('a')", qr/its state is "stopped".*invalid input syntax for type integer: "abc"/s, 'wait_for tells why');
is($node->safe_psql('postgres', "SELECT count(*) FROM a"), '45', 'up to the bad one');
my $at = $node->safe_psql('postgres', "SELECT error_partition || ',' || error_offset FROM upsert_kafka.tables WHERE target = 'a'::regclass");
is($node->safe_psql('postgres', "SELECT convert_from(raw_value, 'UTF8') FROM upsert_kafka.errors WHERE (partition || ',' || \"offset\") = '$at'"),
	'{"v":"abc"}', 'its bytes are in errors');
produce($node->safe_psql('postgres', "SELECT topic FROM upsert_kafka.tables WHERE target = 'b'::regclass"), numbers(6, 10));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('b'); SELECT count(*) FROM b"), "t\n10", 'the others go on');
fails("SELECT upsert_kafka.skip('a', 0, 0)", qr/has not stopped at partition 0, offset 0/, 'skip is exact');
$node->safe_psql('postgres', "SELECT upsert_kafka.skip('a', $at)");
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n50", 'and passes one message');

# B15: what the database refuses is narrowed to one message, and on_error does not cover it.
$node->safe_psql('postgres', "ALTER TABLE a ADD CONSTRAINT nice CHECK (v <> 57)");
produce($a, numbers(51, 60));
fails("SELECT upsert_kafka.wait_for('a')", qr/its state is "stopped".*violates check constraint "nice"/s, 'a constraint stops the table');
is($node->safe_psql('postgres', "SELECT count(*), max(v) FROM a"), '56|56', 'at one message');
is($node->safe_psql('postgres', "SELECT error_sqlstate FROM upsert_kafka.tables WHERE target = 'a'::regclass"), '23514', 'with its SQLSTATE');
$node->safe_psql('postgres', "ALTER TABLE a DROP CONSTRAINT nice; SELECT upsert_kafka.resume('a')");
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n60", 'resume tries it again');

# DDL that comes between messages in hand and their application, and that makes the table impossible:
# no message is to blame, none is passed by, nothing crashes, and the repair is found.
{
	my $topic = create_topic(unique_topic('worker_ddl'), 1);
	source('postgres', 'ddl', $topic);
	produce($topic, numbers(1, 3));
	$node->safe_psql('postgres', "SELECT upsert_kafka.materialize('ddl_topic', target => 'ddl'); SELECT upsert_kafka.wait_for('ddl')");
	my $n = 3;
	foreach my $case (
		[ "ALTER FOREIGN TABLE ddl_topic OPTIONS (SET topic '$topic;${topic}_missing')", "ALTER FOREIGN TABLE ddl_topic OPTIONS (SET topic '$topic')", 'does not exist' ],
		[ "ALTER FOREIGN TABLE ddl_topic ALTER COLUMN k OPTIONS (DROP key)", "ALTER FOREIGN TABLE ddl_topic ALTER COLUMN k OPTIONS (ADD key 'true')", 'has no key column' ])
	{
		my ($break, $mend, $error) = @$case;
		my $shell = open_shell($node);
		shell($shell, 'BEGIN;', 'LOCK TABLE ddl;');
		produce($topic, numbers($n + 1, $n + 20));
		wait_until($node, "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'applying \\d+ messages to public.ddl\$'", '1', 'a worker has messages in hand');
		shell($shell, "$break;", 'COMMIT;');
		wait_until($node, "SELECT bool_or(last_error LIKE '%$error%') FROM upsert_kafka.progress WHERE target = 'ddl'::regclass", 't', "it finds out: $error");
		shell($shell, "$mend;");
		close_shell($shell);
		$n += 20;
		is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('ddl'); SELECT count(*), max(v) FROM ddl"), "t\n$n|$n", 'and loses nothing');
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM upsert_kafka.errors WHERE target = 'ddl'::regclass"), '0', 'no message was at fault');
	$node->safe_psql('postgres', "SELECT upsert_kafka.drop('ddl')");
}

# === pause, refresh, off ================================================================
$node->safe_psql('postgres', "SELECT upsert_kafka.pause('a')");
produce($a, numbers(61, 65));
fails("SELECT upsert_kafka.wait_for('a')", qr/its state is "paused"/, 'a paused table does not move');
fails("SELECT upsert_kafka.refresh('a')", qr/paused/, 'nor by refresh');
$node->safe_psql('postgres', "BEGIN; SELECT upsert_kafka.resume('a'); ROLLBACK");
fails("SELECT upsert_kafka.wait_for('a')", qr/its state is "paused"/, 'nor by a resume that was rolled back');
$node->safe_psql('postgres', "SELECT upsert_kafka.resume('a')");
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n65", 'resume');

$node->safe_psql('postgres', "ALTER SYSTEM SET upsert_kafka.workers = off");
$node->reload;
wait_until($node, "$workers", '0', 'workers = off ends them');
produce($a, numbers(66, 70));
fails("SELECT upsert_kafka.wait_for('a')", qr/no worker keeps table "a" up to date.*upsert_kafka\.workers.*refresh/s, 'wait_for says so');
is($node->safe_psql('postgres', "SELECT upsert_kafka.refresh('a'); SELECT count(*) FROM a"), "5\n70", 'refresh does it by hand');
$node->safe_psql('postgres', "ALTER SYSTEM RESET upsert_kafka.workers");
$node->reload;
produce($a, numbers(71, 75));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n75", 'workers = on brings them back');

# === wait_for ============================================================================
fails("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT upsert_kafka.wait_for('a')", qr/cannot run in a transaction with isolation level "repeatable read"/, 'not where the result would stay unseen');
$node->safe_psql('postgres', "CREATE ROLE reader LOGIN");
fails("SET ROLE reader; SELECT upsert_kafka.wait_for('a')", qr/permission denied for table a/, 'the right to read is needed');
$node->safe_psql('postgres', "GRANT SELECT ON a TO reader");
is($node->safe_psql('postgres', "SET ROLE reader; SELECT upsert_kafka.wait_for('a')"), 't', 'and enough');
fails("SET ROLE reader; SELECT upsert_kafka.pause('a')", qr/must be owner of table a/, 'but not for steering');

# a lock that the caller holds: 40P01 for the caller, and the worker goes on afterwards
{
	my ($rc, $out, $err) = $node->psql('postgres', "BEGIN; LOCK TABLE a; \\! " .
		"printf '{\"k\":\"k76\"}|{\"v\":76}\\n' | " . ($ENV{KT} || 'test/kt') . " -b " . broker() . " produce $a\nSELECT upsert_kafka.wait_for('a')", on_error_stop => 1);
	like($err, qr/waits for a lock of this transaction/, '40P01 instead of waiting for ever');
}
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n76", 'and on after it');

# === DDL while messages flow (J02) ========================================================
produce($a, numbers(77, 80));
$node->safe_psql('postgres', "BEGIN; DROP TABLE b; SELECT 1; ROLLBACK");
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('b'); SELECT count(*) FROM b"), "t\n10", 'a drop that was rolled back');
$node->safe_psql('postgres', "DROP TABLE b");
wait_until($node, "SELECT count(*) FROM upsert_kafka.worker_progress()", '2', 'a dropped table is let go');
$node->safe_psql('postgres', "ALTER TABLE c RENAME TO d");
my $c = $node->safe_psql('postgres', "SELECT topic FROM upsert_kafka.tables WHERE target = 'd'::regclass");
produce($c, numbers(6, 7));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('d'); SELECT count(*) FROM d"), "t\n7", 'a renamed table goes on');

# the extension: dropped for a while with messages coming in, rolled back, dropped for good
my $produce = "\\! printf '{\"k\":\"k81\"}|{\"v\":81}\\n' | " . ($ENV{KT} || 'test/kt') . ' -b ' . broker() . " produce $a\n";
$node->safe_psql('postgres', "BEGIN;\nDROP EXTENSION upsert_kafka CASCADE;\n${produce}SELECT pg_sleep(1.2);\nROLLBACK");
produce($a, numbers(82, 85));
is($node->safe_psql('postgres', "SELECT upsert_kafka.wait_for('a'); SELECT count(*) FROM a"), "t\n85", 'DROP EXTENSION rolled back');
$node->safe_psql('postgres', "DROP EXTENSION upsert_kafka CASCADE");
wait_until($node, $workers, '0', 'DROP EXTENSION: the workers end');

# === DROP DATABASE (J01) ==================================================================
my $e = create_topic(unique_topic('worker_e'), 1);
foreach my $db ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, "CREATE EXTENSION upsert_kafka; CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '" . broker() . "')");
	source($db, 'e', $e);
	$node->safe_psql($db, "SELECT upsert_kafka.materialize('e_topic', target => 'e'); SELECT upsert_kafka.wait_for('e')");
}
is($node->safe_psql('postgres', $workers), '2', 'a worker in each database');
is($node->safe_psql('postgres', "CREATE DATABASE three TEMPLATE one; SELECT 1"), '1', 'a database with a worker can be copied');
is($node->safe_psql('three', "SELECT state FROM upsert_kafka.tables"), 'restored', 'the copy does not act');
produce($e, numbers(1, 5));
is($node->safe_psql('one', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n5", 'the original goes on');
is($node->safe_psql('three', "SELECT count(*) FROM e"), '0', 'the copy stays as it was');
$node->safe_psql('three', "SELECT upsert_kafka.resume('e')");
is($node->safe_psql('three', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n5", 'until resume');
$node->safe_psql('postgres', "ALTER DATABASE two RENAME TO zwei");
produce($e, numbers(6, 10));
is($node->safe_psql('zwei', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n10", 'a renamed database goes on');
$node->safe_psql('postgres', "DROP DATABASE zwei");
$node->safe_psql('postgres', "DROP DATABASE three WITH (FORCE)");
wait_until($node, $workers, '1', 'DROP DATABASE takes its worker along');

# a command that fails leaves things as they were
my ($rc, $out, $err) = $node->psql('postgres', "CREATE ROLE nobody; SET ROLE nobody; DROP DATABASE one");
like($err, qr/must be owner of database one/, 'not the owner');
is($node->safe_psql('postgres', $workers), '1', 'nobody was disturbed');

# === the topic's life =====================================================================
# H05: partitions that are added are found and read from their start
my $kt = $ENV{KT} || 'test/kt';
system($kt, '-b', broker(), 'grow', $e, 3) == 0 or die "cannot grow $e";
produce($e, '[p=2] {"k":"new"}|{"v":1}');
is($node->safe_psql('one', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n11", 'a new partition');

# H03: messages deleted before they were read: a state, and an explicit way on
$node->safe_psql('one', "SELECT upsert_kafka.pause('e')");
produce($e, numbers(11, 20));
system($kt, '-b', broker(), 'trim', $e, 0, 15) == 0 or die "cannot trim $e";
$node->safe_psql('one', "SELECT upsert_kafka.resume('e')");
($rc, $out, $err) = $node->psql('one', "SELECT upsert_kafka.wait_for('e')");
like($err, qr/its state is "data_lost".*accept_data_loss/s, 'lost messages stop the table');
($rc, $out, $err) = $node->psql('one', "SELECT upsert_kafka.resume('e')");
like($err, qr/data_lost/, 'resume alone is not enough');
$node->safe_psql('one', "SELECT upsert_kafka.resume('e', accept_data_loss => true)");
is($node->safe_psql('one', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n16", 'goes on with what there is');

# H04: a topic that is made anew
system($kt, '-b', broker(), 'create', $e, '-p', 1, '--fresh') == 0 or die "cannot recreate $e";
produce($e, numbers(1, 3));
ok($node->poll_query_until('one', "SELECT state = 'topic_changed' FROM upsert_kafka.tables"), 'a recreated topic is noticed');
$node->safe_psql('one', "SELECT upsert_kafka.rebuild('e', discard_history => true)");
is($node->safe_psql('one', "SELECT upsert_kafka.wait_for('e'); SELECT count(*) FROM e"), "t\n3", 'and read by rebuild');

# nothing of all this was a crash
my $log = slurp_file($node->logfile);
unlike($log, qr/terminated by signal|PANIC|TRAP/, 'no process crashed');

$node->stop;
done_testing();
