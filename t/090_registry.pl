# Format avro-confluent against a registry that is down, slow, wrong, or protected: what it
# doesn't tell is tried again, and no message is skipped for it (G01, G02).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use FakeRegistry;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UpsertKafka;

my $log = PostgreSQL::Test::Utils::tempdir() . '/requests';
my $order1 = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]},{"name":"amt","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}}]}';
my $order2 = '{"type":"record","name":"Order","fields":[{"name":"extra","type":"string"},{"name":"amt","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}},{"name":"name","type":"string"},{"name":"id","type":"int"}]}';
my %schemas = (41 => '"string"', 42 => $order1, 43 => $order2);
my $registry = FakeRegistry->start(schemas => \%schemas, log => $log);
my $url = $registry->url;

my $node = start_node('registry');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD registry_url '$url', ADD timeout '2s')");

sub sql { my ($query) = @_; return $node->safe_psql('postgres', $query); }

sub error_of
{
	my ($query) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$query", on_error_stop => 0);
	return $err;
}

my $topic = create_topic(unique_topic('registry'), 1);

# [key, value] in hexadecimal, undef for Kafka's null
sub produce_hex
{
	my (@messages) = @_;
	produce($topic, map { my ($k, $v) = @$_; "x'$k'|" . (defined $v ? "x'$v'" : '\N') } @messages);
	return;
}

sql(qq{CREATE FOREIGN TABLE orders (k text OPTIONS (key 'true'), id bigint, name text, amt numeric(9,2))
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'avro-confluent', value_format 'avro-confluent')});

# === framed key and value (G01) ===
my $decode = sub { my ($key, $value) = @_; return "SELECT * FROM upsert_kafka.decode(NULL::orders, '\\x$key', " . (defined $value ? "'\\x$value'" : 'NULL') . ')'; };
my $key = '0000000029' . '06616263';
is(sql($decode->($key, '000000002a' . '0e' . '02085a6fc3ab' . '0404d2')), "abc|7|Zo\xc3\xab|12.34", 'a record by its schema');
is(sql($decode->($key, '000000002a' . '0e' . '00' . '0404d2')), 'abc|7||12.34', 'the null branch');
is(sql($decode->($key, '000000002b' . '0278' . '043039' . '0279' . '0e')), 'abc|7|y|12.35', 'another version: order, types, scale; a field that no column has');
is(sql($decode->($key, undef)), 'abc|||', 'a tombstone');
like(error_of($decode->($key, '000000002a' . '0e02')), qr/22P03.*orders.*the Avro data ends too early/s, 'a value cut short');

# === no frame, and frames of others (G02) ===
like(error_of($decode->($key, '0e02085a6fc3ab0404d2')), qr/22P03.*magic byte 0x00 expected, found 0x0e/s, 'bare Avro');
like(error_of($decode->($key, '000000002a000000002a0e000404d2')), qr/22P0[23].*orders/s, 'framed twice');
like(error_of($decode->($key, '0002085a6fc3ab0404d2')), qr/08000.*does not know schema 34101871/s, 'bare Avro that begins with a zero: the id it was taken for');
like(error_of($decode->('616263', undef)), qr/22P03.*invalid key.*magic byte/s, 'a bare key on a tombstone is an error');

# === an id is asked for once in a session ===
my @before = $registry->requests;
sql(join(';', ($decode->($key, undef)) x 20));
is(scalar($registry->requests) - scalar(@before), 1, 'twenty statements, one request');

# === what a registry can do wrong ===
like(error_of($decode->('0000000063' . '00', undef)), qr/08000.*does not know schema 99.*40403|08000.*does not know schema 99.*Schema not found/s, 'an unknown id');
$registry->restart(mode => 'busy');
like(error_of($decode->($key, undef)), qr/08006.*status 503: not ready/s, 'not ready');
# a long text ends with a whole character, and is one of the database's encoding
$registry->restart(mode => 'wordy');
like(error_of($decode->($key, undef)), qr/08006.*status 503: x(\xc3\xbc){149}\.\n/s, 'a long text ..');
$node->safe_psql('postgres', "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'");
$node->safe_psql('ascii', "CREATE EXTENSION upsert_kafka; CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'localhost:1', registry_url '$url');
	CREATE FOREIGN TABLE orders (id bigint) SERVER kafka OPTIONS (connector 'kafka', topic 'x', value_format 'avro-confluent')");
my ($rc, undef, $said) = $node->psql('ascii', "\\set VERBOSITY verbose\nSELECT * FROM upsert_kafka.decode(NULL::orders, NULL, '\\x000000002a')");
like($said, qr/08006.*status 503: x\?{149}\.\n/s, '.. also where the database has other characters');
$registry->restart(mode => 'html');
like(error_of($decode->($key, undef)), qr/08006.*gives no JSON/s, 'something else than a registry');
$registry->restart(mode => 'torn');
like(error_of($decode->($key, undef)), qr/08006.*gives no JSON.*near '"\{\\\?'/s, 'what its parser says of half a character');
$registry->restart(mode => 'redirect');
like(error_of($decode->($key, undef)), qr/08006.*status 302.*Redirects are not followed/s, 'redirects');
$registry->restart(mode => 'hang');
my $begin = time();
like(error_of($decode->($key, undef)), qr/08006.*does not answer/s, 'one that hangs ..');
cmp_ok(time() - $begin, '<', 10, '.. is waited for no longer than the timeout');
$begin = time();
like(error_of("SET statement_timeout = '300ms'; " . $decode->($key, undef)), qr/57014/, 'the wait can be cancelled ..');
cmp_ok(time() - $begin, '<', 1.9, '.. at once');
$registry->restart(mode => '', schemas => { %schemas, 44 => { schema => '{}', schemaType => 'JSON' }, 45 => '{"type":"record"}', 46 => 'no json' });
like(error_of($decode->('000000002c' . '00', undef)), qr/22P03.*schema 44 of the registry is of type JSON/s, 'a JSON schema');
like(error_of($decode->('000000002d' . '00', undef)), qr/22P03.*schema 45 of the registry is no Avro schema/s, 'a schema that is none');
like(error_of($decode->('000000002e' . '00', undef)), qr/22P03.*schema 46 of the registry is no Avro schema/s, 'a schema that is no JSON');

# references: types of other subjects
$registry->restart(
	schemas => { %schemas, 50 => { schema => '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"name","type":"com.Name"}]}',
			references => [ { name => 'com.Name', subject => 'names', version => 3 } ] } },
	subjects => { 'names/3' => '{"type":"enum","name":"Name","namespace":"com","symbols":["X","Y"]}' });
is(sql($decode->($key, '0000000032' . '0e' . '02')), 'abc|7|Y|', 'a type of another subject');

# === authentication, from the user mapping ===
$registry->restart(auth => 'Basic bWU6cDpzcw==');
like(error_of($decode->($key, undef)), qr/28000.*refuses access/s, 'no user');
sql("CREATE USER MAPPING FOR CURRENT_USER SERVER kafka OPTIONS (registry_username 'me', registry_password 'wrong')");
my $err = error_of($decode->($key, undef));
like($err, qr/28000.*refuses access.*registry_username/s, 'a wrong password ..');
unlike($err, qr/wrong|me:/, '.. is not shown');
sql("ALTER USER MAPPING FOR CURRENT_USER SERVER kafka OPTIONS (SET registry_password 'p:ss')");
is(sql($decode->($key, undef)), 'abc|||', 'basic authentication');
$registry->restart(auth => 'Bearer abc.def');
sql("DROP USER MAPPING FOR CURRENT_USER SERVER kafka; CREATE USER MAPPING FOR CURRENT_USER SERVER kafka OPTIONS (registry_token 'abc.def')");
is(sql($decode->($key, undef)), 'abc|||', 'a bearer token');
sql("DROP USER MAPPING FOR CURRENT_USER SERVER kafka");

# === a maintained table: the registry is down, and nothing is lost ===
$registry->stop;
produce_hex([ $key, '000000002a0e000404d2' ], [ $key, '000000002a1000020a' ]);
sql("ALTER FOREIGN TABLE orders OPTIONS (ADD on_error 'skip')");
sql("SELECT upsert_kafka.materialize('orders', 'orders_kept')");
wait_until($node, "SELECT last_error LIKE '%does not answer%' FROM upsert_kafka.progress WHERE target = 'orders_kept'::regclass", 't', 'the table says what it waits for');
is(sql("SELECT count(*) FROM upsert_kafka.errors"), 0, 'no message is to blame');
$registry->restart(auth => undef, schemas => \%schemas);
wait_until($node, "SELECT count(*) = 1 AND min(id) = 8 AND min(amt) = 0.10 FROM orders_kept", 't', 'it goes on by itself');
# a new version while it runs, and one that the registry has not got yet
produce_hex([ '000000002906646566', '000000002b' . '0278' . '043039' . '0279' . '0e' ]);
wait_until($node, "SELECT count(*) = 2 FROM orders_kept", 't', 'a new schema version');
produce_hex([ '000000002906676869', '000000002f' . '0e' . '00' . '0404d2' ], [ '000000002906646566', undef ]);
wait_until($node, "SELECT last_error LIKE '%does not know schema 47%' FROM upsert_kafka.progress WHERE target = 'orders_kept'::regclass", 't', 'an id that is not known yet ..');
is(sql("SELECT count(*) FROM orders_kept") , 2, '.. holds the table where it is');
$registry->restart(schemas => { %schemas, 47 => $order1 });
wait_until($node, "SELECT count(*) = 2 AND max(k) = 'ghi' FROM orders_kept", 't', '.. until it is');
is(sql("SELECT count(*) FROM upsert_kafka.errors"), 0, 'and no message was skipped');

# === writing: the schema is registered, once ===
my $out = create_topic(unique_topic('registry_out'), 1);
sql(qq{CREATE FOREIGN TABLE pageviews_per_region (region text OPTIONS (key 'true'), pv bigint, uv bigint)
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$out', key_format 'avro-confluent', value_format 'avro-confluent')});
@before = $registry->requests;
is(sql("SELECT encode(key, 'hex'), encode(value, 'hex') FROM (VALUES ('europe', 4, 3), ('asia', 2, NULL)) v (r, p, u), upsert_kafka.encode(ROW(r, p, u)::pageviews_per_region)"),
	"00000000650c6575726f7065|00000000660c6575726f706502080206\n00000000650861736961|000000006608617369610204" . "00", 'framed with the ids that the registry gave');
my @new = ($registry->requests)[ scalar(@before) .. scalar($registry->requests) - 1 ];
is(scalar(@new), 2, 'one request for the key, one for the value');
like($new[0], qr{^POST /subjects/\Q$out\E-key/versions }, 'the key under its subject');
like($new[1], qr{^POST /subjects/\Q$out\E-value/versions .*\Q\"name\":\"pv\",\"type\":[\"null\",\"long\"],\"default\":null}, 'the value as Flink derives it');
is(sql("SELECT * FROM upsert_kafka.decode(NULL::pageviews_per_region, '\\x00000000650c6575726f7065', '\\x00000000660c6575726f706502080206')"), 'europe|4|3', 'and read again');
# S5: the aggregate is written as upserts, and read by whoever knows the registry
sql("INSERT INTO pageviews_per_region VALUES ('europe', 4, 3), ('asia', 2, 1), ('africa', 1, 1)");
sql("UPDATE pageviews_per_region SET pv = pv + 1 WHERE region = 'europe'; DELETE FROM pageviews_per_region WHERE region = 'africa'");
is(sql("TABLE pageviews_per_region ORDER BY 1"), "asia|2|1\neurope|5|3", 'page views per region, through Kafka');
sql("SELECT upsert_kafka.materialize('pageviews_per_region', 'per_region'); SELECT upsert_kafka.wait_for('per_region')");
is(sql("TABLE per_region ORDER BY 1"), "asia|2|1\neurope|5|3", 'and kept as a table');
# several topics: each has its own subjects
my @several = map { create_topic(unique_topic("registry_several_$_"), 1) } qw(a b);
my $list = join(';', @several);
sql(qq{CREATE FOREIGN TABLE several (region text OPTIONS (key 'true'), pv bigint, topic text OPTIONS (metadata 'topic'))
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$list', key_format 'avro-confluent', value_format 'avro-confluent')});
@before = $registry->requests;
sql("INSERT INTO several VALUES ('europe', 4, '$several[0]'), ('asia', 2, '$several[1]'), ('africa', 1, '$several[0]')");
my %subjects = map { m{^POST /subjects/(\S+)/versions } ? ($1 => 1) : () } ($registry->requests)[ scalar(@before) .. scalar($registry->requests) - 1 ];
is(join(' ', sort keys %subjects), join(' ', sort map { ("$_-key", "$_-value") } @several), 'subjects of each topic');
is(sql("SELECT region, pv FROM several ORDER BY 1"), "africa|1\nasia|2\neurope|4", 'and all is read again');
like(error_of("SELECT upsert_kafka.encode(ROW('asia', 1, NULL)::several)"), qr/HV002.*subject of a schema is not known/s, 'a dry run needs the subject');

$registry->restart(refuse => 1);
like(error_of("SELECT upsert_kafka.encode(ROW('asia', 1, 1)::pageviews_per_region)"), qr/HV000.*refuses a schema for subject.*incompatible with an earlier schema/s, 'a schema that is refused');


# a schema is registered by those who may write, not by those who may look
sql("CREATE ROLE reader; GRANT USAGE ON FOREIGN SERVER kafka TO reader; GRANT SELECT ON pageviews_per_region TO reader");
like(error_of("SET ROLE reader; SELECT upsert_kafka.encode(ROW('asia', 1, 1)::pageviews_per_region)"), qr/42501.*permission denied/s, 'who may only read registers nothing');

$node->stop;
done_testing();
