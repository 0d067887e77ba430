# Format protobuf-confluent and a registry: reading asks for nothing, writing names a schema by
# a number that is given, registered or looked up.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use FakeRegistry;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my $source = <<'P';
syntax = "proto3";
package shop;
message Key { string region = 1; }
message Views { string region = 1; int64 pv = 2; optional int64 uv = 3; }
P
my $descriptor = 'CocBCgt2aWV3cy5wcm90bxIEc2hvcCIdCgNLZXkSFgoGcmVnaW9uGAEgASgJUgZyZWdpb24iSwoFVmlld3MSFgoGcmVnaW9uGAEgASgJUgZyZWdpb24SDgoCcHYYAiABKANSAnB2EhMKAnV2GAMgASgDSABSAnV2iAEBQgUKA191dmIGcHJvdG8z';

my $log = PostgreSQL::Test::Utils::tempdir() . '/requests';
my $registry = FakeRegistry->start(log => $log);
my $url = $registry->url;
my $node = start_node('registry_protobuf');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD registry_url '$url', ADD timeout '4s')");

sub sql { my ($query) = @_; return $node->safe_psql('postgres', $query); }

sub error_of
{
	my ($query) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$query", on_error_stop => 0);
	return $err;
}

my $topic = create_topic(unique_topic('registry_protobuf'), 1);
sql(qq{CREATE FOREIGN TABLE views (region text OPTIONS (key 'true'), pv bigint, uv bigint)
	SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'protobuf-confluent', value_format 'protobuf-confluent',
		key_protobuf_confluent_descriptor '$descriptor', key_protobuf_confluent_message 'shop.Key', key_protobuf_confluent_schema '$source',
		value_protobuf_confluent_descriptor '$descriptor', value_protobuf_confluent_message 'shop.Views', value_protobuf_confluent_schema '$source')});

# === reading: the descriptor knows all ===
my $decode = "SELECT * FROM upsert_kafka.decode(NULL::views, '\\x0000000063000a0161', '\\x0000000063020210051806')";
is(sql($decode), 'a|5|6', 'a schema that no registry knows');
my @none = $registry->requests;
is(scalar(@none), 0, 'no request');

# === writing: the source is registered, once in a session ===
is(sql("SELECT encode(key, 'hex'), encode(value, 'hex') FROM (VALUES ('asia', 2, NULL), ('asia', 0, 0)) v (r, p, u), upsert_kafka.encode(ROW(r, p, u)::views)"),
	"0000000065000a0461736961|000000006602020a04617369611002\n0000000065000a0461736961|000000006602020a04617369611800", 'framed with the ids that the registry gave');
my @new = $registry->requests;
is(scalar(@new), 2, 'one request for the key, one for the value');
like($new[0], qr{^POST /subjects/\Q$topic\E-key/versions }, 'the key under its subject');
like($new[1], qr{^POST /subjects/\Q$topic\E-value/versions .*"schemaType":\s*"PROTOBUF"}, 'the value, as a protobuf schema ..');
like($new[1], qr{message Views \{ string region = 1;}, '.. by its source');
sql("INSERT INTO views VALUES ('europe', 4, 3), ('asia', 2, 1), ('africa', 1, 1); UPDATE views SET pv = pv + 1 WHERE region = 'europe'; DELETE FROM views WHERE region = 'africa'");
is(sql("TABLE views ORDER BY 1"), "asia|2|1\neurope|5|3", 'through Kafka');
sql("SELECT upsert_kafka.materialize('views', 'kept'); SELECT upsert_kafka.wait_for('kept')");
is(sql("TABLE kept ORDER BY 1"), "asia|2|1\neurope|5|3", 'and kept as a table');
$registry->restart(refuse => 1);
like(error_of("SELECT upsert_kafka.encode(ROW('a', 1, 1)::views)"), qr/HV000.*refuses a schema for subject.*incompatible with an earlier schema/s, 'a schema that is refused');

# === the subject's latest ===
sql("ALTER FOREIGN TABLE views OPTIONS (DROP key_protobuf_confluent_schema, ADD key_protobuf_confluent_schema_id '7', DROP value_protobuf_confluent_schema, ADD value_protobuf_confluent_subject 'other/value')");
$registry->restart(refuse => 0, subjects => { 'other%2Fvalue/latest' => { subject => 'other/value', id => 258, version => 3, schemaType => 'PROTOBUF', schema => $source } });
my $encode = "SELECT encode(key, 'hex'), encode(value, 'hex') FROM upsert_kafka.encode(ROW('a', 1, NULL)::views)";
@new = $registry->requests;
is(sql($encode), '0000000007000a0161|000000010202020a01611001', 'its number, and the one that is given for the key');
is(scalar($registry->requests) - @new, 1, 'by one request');
$registry->restart(subjects => { 'other%2Fvalue/latest' => { subject => 'other/value', id => 258, version => 3, schema => '"string"' } });
like(error_of($encode), qr/HV000.*is of type AVRO, not PROTOBUF/s, 'a subject of Avro schemas');
$registry->restart(subjects => {});
like(error_of($encode), qr/08000.*does not know the latest schema of subject "other\/value"/s, 'a subject that there is not');
$registry->restart(mode => 'busy');
like(error_of($encode), qr/08006.*status 503: not ready/s, 'not ready');
$registry->stop;
like(error_of($encode), qr/08006.*does not answer/s, 'down ..');
is(sql($decode), 'a|5|6', '.. and reading goes on');
sql("ALTER FOREIGN TABLE views OPTIONS (ADD value_protobuf_confluent_schema_id '8')");
is(sql($encode), '0000000007000a0161|000000000802020a01611001', 'with numbers, so does writing');

# === where requests go is the server's to say ===
like(error_of("ALTER FOREIGN TABLE views OPTIONS (DROP value_protobuf_confluent_schema_id, ADD value_protobuf_confluent_url 'http://169.254.169.254'); $encode"),
	qr/HV024.*is not the registry_url of server "kafka"/s, 'another address');

$node->stop;
done_testing();
