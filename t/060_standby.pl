# A hot standby reads everything: topics, maintained tables, histories, EXPLAIN. It writes
# nothing and says so, wait_for waits for replay, and after a promotion its worker goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;
use Faults;

my $primary = start_node('primary', streaming => 1);
my $topic = create_topic(unique_topic('standby'), 1);
produce($topic,
	'[ts=2026-01-01T00:00:00Z] {"k":"a"}|{"v":1}',
	'[ts=2026-01-01T00:01:00Z] {"k":"a"}|{"v":2}',
	'[ts=2026-01-01T00:02:00Z] {"k":"b"}|{"v":3}',
	'[ts=2026-01-01T00:03:00Z] {"k":"b"}|\N',
	'[ts=2026-01-01T00:04:00Z] {"k":"c"}|{"v":"wrong"}',
	'[ts=2026-01-01T00:05:00Z] {"k":"d"}|{"v":4}');
$primary->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE log (k text OPTIONS (key 'true'), v int, "offset" bigint OPTIONS (metadata 'offset'))
		SERVER kafka OPTIONS (connector 'kafka', topic '$topic', key_format 'json', value_format 'json');
	CREATE FOREIGN TABLE state (k text OPTIONS (key 'true'), v int)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json', on_error 'skip');
	CREATE FOREIGN TABLE changes (k text OPTIONS (key 'true'), v int, kind text OPTIONS (metadata 'row_kind'))
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json', changelog 'true', on_error 'skip');
	CREATE FOREIGN TABLE bad (k text OPTIONS (key 'true'), v int)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format 'json');
	SELECT upsert_kafka.materialize('state', target => 't');
	SELECT upsert_kafka.wait_for('t');
});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# spill on disk must not need anything that a standby lacks
$standby->append_conf('postgresql.conf', "work_mem = '64kB'\n");
$standby->start;

sub on_standby { return $standby->safe_psql('postgres', $_[0]); }
sub refused
{
	my ($sql, $like, $what) = @_;
	my ($rc, $out, $err) = $standby->psql('postgres', $sql, on_error_stop => 1);
	like($err, $like, $what);
	return;
}

# === topics =============================================================================
is(on_standby('SELECT k, "offset" FROM log WHERE "offset" BETWEEN 2 AND 4 ORDER BY 2'), "b|2\nb|3\nc|4", 'append');
is(on_standby('SELECT * FROM state ORDER BY k'), "a|2\nd|4", 'current state; on_error skip');
is(on_standby('SELECT kind, k, v FROM changes'), "+I|a|1\n-U|a|1\n+U|a|2\n+I|b|3\n-D|b|3\n+I|d|4", 'changelog');
refused('SELECT * FROM bad', qr/invalid input for column "v" of foreign table "bad"/, 'on_error stop');
is(on_standby('SELECT l.k, s.v FROM log l JOIN LATERAL (SELECT v FROM state s WHERE s.k = l.k) s ON true ORDER BY l."offset"'), "a|2\na|2\nd|4", 'rescans');
is(on_standby("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT v FROM state ORDER BY k; FETCH 1 FROM c; FETCH 1 FROM c; COMMIT"), "2\n4", 'a cursor');
like(on_standby('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k FROM log WHERE "offset" > 3'), qr/Offsets: 0 \[4,6\).*Messages: 2/s, 'EXPLAIN ANALYZE');
like(on_standby("SELECT row_to_json(d) FROM upsert_kafka.decode(NULL::state, '{\"k\":\"x\"}', '{\"v\":7}') d"), qr/"v":7/, 'decode()');
{
	# many keys, little memory
	my $many = create_topic(unique_topic('standby_many'), 2);
	produce($many, map { sprintf('[p=%d] {"k":"key%d"}|{"v":%d}', $_ % 2, $_ % 5000, $_) } 1 .. 15000);
	$primary->safe_psql('postgres', qq{CREATE FOREIGN TABLE many (k text OPTIONS (key 'true'), v int)
		SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$many', key_format 'json', value_format 'json')});
	$primary->wait_for_catchup($standby, 'replay');
	is(on_standby('SELECT count(*), sum(v) FROM many'), '5000|62502500', 'a state that needs the disk');
}

# === maintained tables ====================================================================
is(on_standby('SELECT * FROM t ORDER BY k'), "a|2\nd|4", 'current table');
is(on_standby("SELECT k, v FROM t__as_of('2026-01-01 00:02:30Z') ORDER BY k"), "a|2\nb|3", 'AS OF');
is(on_standby("SELECT v FROM t__as_of('2026-01-01 00:00:30Z', 'a')"), '1', 'AS OF of a key');
is(on_standby("SELECT l.m, r.v FROM (VALUES ('2026-01-01 00:00:30Z'::timestamptz), ('2026-01-01 00:02:30Z')) l(m) LEFT JOIN LATERAL t__as_of(l.m) r ON r.k = 'b' ORDER BY 1"),
	"2026-01-01 00:00:30+00|\n2026-01-01 00:02:30+00|3", 'temporal join') if on_standby('SHOW timezone') =~ /UTC|GMT/;
is(on_standby('SELECT count(*) FROM t_history'), '4', 'history');
like(on_standby("EXPLAIN (COSTS OFF) SELECT * FROM t_history WHERE k = 'a' AND system_time @> now()"), qr/Foreign Scan on t_history/, 'EXPLAIN of the history');
is(on_standby("SELECT state, errors FROM upsert_kafka.tables"), 'live|1', 'views');
is(on_standby("SELECT convert_from(raw_value, 'UTF8') FROM upsert_kafka.errors"), '{"v":"wrong"}', 'recorded errors');
is(on_standby("SELECT position FROM upsert_kafka.progress"), '6', 'progress');
is(on_standby("SELECT next_offset FROM upsert_kafka.position('t')"), '6', 'position()');

# === wait_for waits for replay =============================================================
produce($topic, '{"k":"e"}|{"v":5}');
is(on_standby("SELECT upsert_kafka.wait_for('t'); SELECT v FROM t WHERE k = 'e'"), "t\n5", 'wait_for');
on_standby('SELECT pg_wal_replay_pause()');
wait_until($standby, 'SELECT pg_get_wal_replay_pause_state()', 'paused', 'replay is paused');
produce($topic, '{"k":"e"}|{"v":6}');
{
	my ($seconds, $state, $said) = timed($standby, "SELECT upsert_kafka.wait_for('t', '500ms')");
	is($state, '57014', 'wait_for ends by its timeout while replay is paused');
	like($said, qr/position 7, end 8, 1 to go/, 'and tells what is missing');
	my $session = start_session($standby, "SELECT upsert_kafka.wait_for('t')");
	my $pid = session_pid($session, "state = 'active' AND now() - query_start > '200 ms'");
	my $since = Time::HiRes::time();
	on_standby("SELECT pg_cancel_backend($pid)");
	ok(end_session($session, $since) < 30 && $session->{err} =~ /57014/, 'and can be cancelled');
}
on_standby('SELECT pg_wal_replay_resume()');
is(on_standby("SELECT upsert_kafka.wait_for('t'); SELECT v FROM t WHERE k = 'e'"), "t\n6", 'and goes on with replay');

# === nothing is written =======================================================================
foreach my $call ("refresh('t')", "pause('t')", "resume('t')", "skip('t', 0, 4)", "retry_errors('t')", "rebuild('t')")
{
	my ($name) = $call =~ /^(\w+)/;
	refused("SELECT upsert_kafka.$call", qr/cannot execute upsert_kafka\.$name\(\) in a read-only transaction/, "$name() is refused");
}
refused("SELECT upsert_kafka.materialize('state', target => 'u')", qr/cannot execute .* (?:in a read-only transaction|during recovery)/, 'materialize() is refused');
refused(q{SELECT upsert_kafka."drop"('t')}, qr/cannot execute .* (?:in a read-only transaction|during recovery)/, 'drop() is refused');
refused('ANALYZE log', qr/cannot execute ANALYZE during recovery/, 'ANALYZE is refused');
refused('IMPORT FOREIGN SCHEMA x FROM SERVER kafka INTO public', qr/cannot execute IMPORT FOREIGN SCHEMA/, 'IMPORT is refused');
is(on_standby("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'upsert_kafka%'"), '0', 'no worker runs there');

# === promotion ==================================================================================
$primary->stop('immediate');
produce($topic, '{"k":"f"}|{"v":7}');
$standby->promote;
wait_until($standby, 'SELECT pg_is_in_recovery()', 'f', 'promoted');
is(on_standby("SELECT upsert_kafka.wait_for('t'); SELECT v FROM t WHERE k = 'f'"), "t\n7", 'its worker goes on');
is(on_standby("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'upsert_kafka apply worker'"), '1', 'there is one');
is(on_standby('SELECT count(*) FROM upsert_kafka.errors'), '1', 'nothing was applied twice');
unlike(slurp_file($_->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed') foreach $primary, $standby;
$standby->stop;
done_testing();
