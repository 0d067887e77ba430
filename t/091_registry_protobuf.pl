# Format protobuf-confluent and a registry: reading with a descriptor asks for nothing, without one for
# each message's schema; writing names a schema by a number that is given, registered or looked up. Schemas
# that import others refer to them.
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

# === without a descriptor the registry's schemas say what messages are, with all that they import ===
my $currency = 'syntax = "proto3"; package common; message Currency { string code = 1; }';
my $money = <<'P';
// money of a currency
syntax = "proto3";
package common;
import "common/currency.proto";
message Money { int64 units = 1; Currency cur = 2; }
P
my $order = <<'P';
syntax = "proto3";
package shop.orders;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
import "google/api/annotations.proto";
option (file_option).part = { a: "}" b: [1, 2] };
/* an order
   with lines */
message Order {
  map<string, Line> lines = 1 [(custom) = {x: 1}, deprecated = true];
  reserved 15, 20 to max;
  reserved "gone";
  message Line { string sku = 1; optional int32 n = 2 [json_name = "count"]; }
  enum Kind { KIND_NONE = 0; BIG = 0x7 [(custom) = "big"]; }
  int64 id = 2;
  common.Money total = 3;
  google.protobuf.Timestamp at = 4;
  Kind kind = 5;
  oneof pay { string card = 6; Line gift = 7; }
  repeated int32 codes = 8 [packed = false];
};
service Orders { rpc Get (Order) returns (stream Order) { option (google.api.http) = { get: "/v1/{id}" }; } }
P
my $newer = <<'P';
edition = "2023";
package shop.orders;
message Note { string text = 1 [features.field_presence = IMPLICIT]; Note inner = 3 [features.message_encoding = DELIMITED]; extensions 10 to 19; }
message Order { int64 id = 2; string note = 9 [default = 'a\x62c\u00e4\n']; }
extend Note { bool sure = 10; }
P
my $old = <<'P';
syntax = "proto2";
message Old { required int32 id = 1 [default = 0x10]; optional group Part = 2 { optional bytes raw = 1 [default = "\001\"\xff"]; } optional double d = 3 [default = -inf]; repeated sint32 n = 4 [packed = true]; }
P
$registry->restart(
	mode => '',
	schemas => {
		10 => { schemaType => 'PROTOBUF', schema => $order, references => [ { name => 'common/money.proto', subject => 'money of/all', version => 3 } ] },
		11 => { schemaType => 'PROTOBUF', schema => $newer }, 12 => '"string"',
		13 => { schemaType => 'PROTOBUF', schema => "syntax = \"proto3\";\nmessage M {\n  int32 id = 1\n}" },
		14 => { schemaType => 'PROTOBUF', schema => 'syntax = "proto3"; import "other.proto"; message M { Other o = 1; }' },
		15 => { schemaType => 'PROTOBUF', schema => $old }, 16 => { schemaType => 'PROTOBUF', schema => $descriptor =~ s/^CocB//r },
		17 => { schemaType => 'PROTOBUF', schema => 'message M { /* ' }, 18 => { schemaType => 'PROTOBUF', schema => 'message M { string s = 1 [default = "x' }, 19 => { schemaType => 'PROTOBUF', schema => 'klasse M {}' },
	},
	subjects => {
		'money%20of%2Fall/3' => { schemaType => 'PROTOBUF', schema => $money, references => [ { name => 'common/currency.proto', subject => 'currency', version => 1 } ] },
		'currency/1' => { schemaType => 'PROTOBUF', schema => $currency } });
sql(qq{CREATE FOREIGN TABLE orders (id bigint, total jsonb, at timestamptz, lines jsonb, kind text, codes int[], sku text, n int, note text)
	SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent', time_zone 'UTC')});
sub decoded { my ($table, $bytes) = @_; return sql("SET timezone = 'UTC'; SELECT d.* FROM upsert_kafka.decode(NULL::$table, NULL, '\\x$bytes') d"); }
my $whole = '00' . '0a080a016112030a017810051a09080712050a0345555222020801' . '2807' . '40014002';
is(decoded('orders', "000000000a$whole"), '5|{"cur": {"code": "EUR"}, "units": 7}|1970-01-01 00:00:01+00|{"a": {"sku": "x"}}|BIG|{1,2}|||', 'references of references, and Google\'s own files');
is(decoded('orders', '000000000b0202' . '1009' . '4a0161'), '9||||||||a', 'another schema, the second type of its file');
# [0,1] is Line where a map counts as a type, as descriptors have it, [0,0] where sources are counted
is(decoded('orders', "000000000a$_" . '0a01711002'), '||||||q|2|', "a type in a type: $_") for '040002', '040000';
my $before = () = $registry->requests;
decoded('orders', "000000000a$whole");
is(scalar(() = $registry->requests) - $before, 3, 'one request for each part of a schema');
for ([ '0000000063' . '00', qr/08000.*does not know schema 99/s ], [ '000000000c00', qr/22P03.*schema 12 of the registry is of type AVRO, not PROTOBUF/s ],
	[ '000000000d00', qr/22P03.*schema 13 of the registry cannot be used.*"schema.proto", line 4: ";" expected, not "\}"/s ],
	[ '000000000e00', qr/type "Other" of field "M.o" is not there, nor is what is imported from "other.proto"/s ],
	[ '000000000a0206', qr/22P03.*schema 10 of the registry has no message type of index 3/s ], [ '000000001100', qr/line 1: a comment does not end/ ], [ '000000001200', qr/line 1: a string does not end/ ],
	[ '000000001300', qr/line 1: a statement expected, not "klasse"/ ], [ '0805', qr/magic byte 0x00 expected/ ])
{
	like(error_of("SELECT d.* FROM upsert_kafka.decode(NULL::orders, NULL, '\\x$_->[0]') d"), $_->[1], "an error: $_->[0]");
}
sql("CREATE FOREIGN TABLE news (text text, inner_text text OPTIONS (field 'inner'), sure bool OPTIONS (field '[shop.orders.sure]'))
	SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent', value_protobuf_confluent_message 'shop.orders.Note')");
is(decoded('news', '000000000b00' . '0a0161' . '1b0a01621c' . '5001'), 'a|{"text": "b"}|t', 'an edition: presence, groups, extensions');
is(decoded('news', '000000000b00'), '||', 'presence of its own');
like(error_of("SELECT d.* FROM upsert_kafka.decode(NULL::news, NULL, '\\x000000000b020208') d"), qr/22P03.*the message is of type "shop.orders.Order" \(index 1 of "schema.proto"\), not "shop.orders.Note"/s, 'another type than the one that is wanted');
like(error_of("SELECT d.* FROM upsert_kafka.decode(NULL::news, NULL, '\\x000000000a00') d"), qr/22P03.*schema 10 of the registry has no message type "shop.orders.Note"/s, 'a schema that does not have it');
sql("CREATE FOREIGN TABLE olds (id int, part jsonb, d float8, n int[]) SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent', value_protobuf_confluent_read_default_values 'true')");
is(decoded('olds', '000000000f00' . '0805' . '13' . '14' . '22020102'), '5|{"raw": "ASL/"}|-Infinity|{-1,1}', 'proto2: groups and defaults');
sql("CREATE FOREIGN TABLE bases (region text) SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent')");
is(decoded('bases', '0000000010000a0161'), 'a', 'a schema that was registered as a descriptor in base64');
like(error_of("CREATE SERVER bare FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers 'x'); CREATE FOREIGN TABLE t (a int) SERVER bare OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf-confluent'); SELECT * FROM t"),
	qr/HV002.*server "bare" has no option "registry_url".*or give the types in "descriptor"/s, 'neither registry nor descriptor');
# the registry's fault is not the message's
$registry->stop;
like(error_of("SELECT d.* FROM upsert_kafka.decode(NULL::orders, NULL, '\\x000000000a$whole') d"), qr/08006.*does not answer/s, 'down');

# === writing: imports are registered under their own names, and referred to ===
my $files = 'CkcKFWNvbW1vbi9jdXJyZW5jeS5wcm90bxIGY29tbW9uIh4KCEN1cnJlbmN5EhIKBGNvZGUYASABKAlSBGNvZGViBnByb3RvMwp+ChJjb21tb24vbW9uZXkucHJvdG8SBmNvbW1vbhoVY29tbW9uL2N1cnJlbmN5LnByb3RvIkEKBU1vbmV5EhQKBXVuaXRzGAEgASgDUgV1bml0cxIiCgNjdXIYAiABKAsyEC5jb21tb24uQ3VycmVuY3lSA2N1cmIGcHJvdG8zCv8BCh9nb29nbGUvcHJvdG9idWYvdGltZXN0YW1wLnByb3RvEg9nb29nbGUucHJvdG9idWYiOwoJVGltZXN0YW1wEhgKB3NlY29uZHMYASABKANSB3NlY29uZHMSFAoFbmFub3MYAiABKAVSBW5hbm9zQoUBChNjb20uZ29vZ2xlLnByb3RvYnVmQg5UaW1lc3RhbXBQcm90b1ABWjJnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi90aW1lc3RhbXBwYvgBAaICA0dQQqoCHkdvb2dsZS5Qcm90b2J1Zi5XZWxsS25vd25UeXBlc2IGcHJvdG8zCroBCglwYXkucHJvdG8SBHNob3AaEmNvbW1vbi9tb25leS5wcm90bxofZ29vZ2xlL3Byb3RvYnVmL3RpbWVzdGFtcC5wcm90byJqCgdQYXltZW50Eg4KAmlkGAEgASgDUgJpZBIjCgV0b3RhbBgCIAEoCzINLmNvbW1vbi5Nb25leVIFdG90YWwSKgoCYXQYAyABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wUgJhdGIGcHJvdG8z';
my $payment = <<'P';
syntax = "proto3";
package shop;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
message Payment { int64 id = 1; common.Money total = 2; google.protobuf.Timestamp at = 3; }
P
# [the requests that a query makes]
sub asked
{
	my ($query, $out) = @_;
	my $n = () = $registry->requests;
	my $result = sql($query);
	is($result, $out, 'framed with the id of the schema');
	my @all = $registry->requests;
	return @all[ $n .. $#all ];
}
$registry->restart(subjects => {}, schemas => {});
sql(qq{CREATE FOREIGN TABLE payments (id bigint, total jsonb) SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent',
	value_protobuf_confluent_descriptor '$files', value_protobuf_confluent_message 'shop.Payment', value_protobuf_confluent_schema '$payment', value_protobuf_confluent_subject 'payments')});
my $pay = "SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(1, '{\"units\": 2, \"cur\": {\"code\": \"EUR\"}}')::payments)";
my $paid = '000801' . '12090802' . '12050a03455552';
my @asked = asked($pay, "0000000067$paid");
is(join("\n", map { s/"schema":"[^"\\]*(\\.[^"\\]*)*"/"schema":".."/r } @asked) . "\n", <<'P', 'what is imported first, each with its version; Google\'s own files are nobody\'s');
POST /subjects/common%2Fcurrency.proto/versions {"schemaType":"PROTOBUF","schema":".."}
POST /subjects/common%2Fcurrency.proto {"schemaType":"PROTOBUF","schema":".."}
POST /subjects/common%2Fmoney.proto/versions {"schemaType":"PROTOBUF","schema":"..","references":[{"name":"common/currency.proto","subject":"common/currency.proto","version":1}]}
POST /subjects/common%2Fmoney.proto {"schemaType":"PROTOBUF","schema":"..","references":[{"name":"common/currency.proto","subject":"common/currency.proto","version":1}]}
POST /subjects/payments/versions {"schemaType":"PROTOBUF","schema":"..","references":[{"name":"common/money.proto","subject":"common/money.proto","version":1}]}
P
# what was registered reads without the descriptor
sql("CREATE FOREIGN TABLE paid (id bigint, total jsonb) SERVER kafka OPTIONS (connector 'kafka', topic '$topic', value_format 'protobuf-confluent')");
is(decoded('paid', "0000000067$paid"), '1|{"cur": {"code": "EUR"}, "units": 2}', 'read by the registry\'s schemas');
# the descriptor itself
sql("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_schema 'descriptor')");
@asked = asked($pay, "0000000068$paid");
like($asked[-1], qr{^POST /subjects/payments/versions .*"schema":"Cglw[A-Za-z0-9+/\\=]*","references":\[\{"name":"common/money.proto"}, 'the descriptor\'s own file');
is(decoded('paid', "0000000068$paid"), '1|{"cur": {"code": "EUR"}, "units": 2}', 'is read as well');
# without a descriptor: imports that the registry has, by their latest version; the schema that it gives back is written with
sql("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_schema '$payment', DROP value_protobuf_confluent_descriptor)");
$registry->restart(schemas => {}, subjects => { 'common%2Fmoney.proto/latest' => { schemaType => 'PROTOBUF', schema => $money, version => 4 },
	'common%2Fmoney.proto/4' => { schemaType => 'PROTOBUF', schema => $money, references => [ { name => 'common/currency.proto', subject => 'c', version => 1 } ] }, 'c/1' => { schemaType => 'PROTOBUF', schema => $currency } });
@asked = asked($pay, "0000000065$paid");
like($asked[1], qr{"references":\[\{"name":"common/money.proto","subject":"common/money.proto","version":4\}\]}, 'the latest version of an import');
is(scalar(@asked), 5, 'and the types from the registry');
sql("ALTER FOREIGN TABLE payments OPTIONS (DROP value_protobuf_confluent_schema, ADD value_protobuf_confluent_schema_id '101')");
@asked = asked($pay, "0000000065$paid");
is(scalar(@asked), 3, 'by its number');
like(error_of("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_message 'shop.Paymet'); $pay"), qr/HV000.*schema 101 of the registry cannot be written with.*Perhaps you meant "shop.Payment"/s, 'a type that it does not have');
like(error_of("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_message 'common.Money', DROP value_protobuf_confluent_schema_id, ADD value_protobuf_confluent_schema '$payment'); $pay"),
	qr/HV024.*message type "common.Money" is not in the schema's own file/s, 'a type of another file');
$registry->restart(schemas => {}, subjects => {});
like(error_of($pay), qr/HV000.*"common\/money.proto", which the schema imports, is not known.*protoc --include_imports/s, 'an import that nobody has');
like(error_of("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_schema 'message {'); $pay"), qr/HV024.*no \.proto source.*It has in line 1: a name expected, not "\{"/s, 'a source that is none');
like(error_of("ALTER FOREIGN TABLE payments OPTIONS (SET value_protobuf_confluent_schema 'descriptor')"), qr/HV024.*cannot be 'descriptor' without a descriptor/s, 'a descriptor that is none');

# === where requests go is the server's to say ===
like(error_of("ALTER FOREIGN TABLE views OPTIONS (DROP value_protobuf_confluent_schema_id, ADD value_protobuf_confluent_url 'http://169.254.169.254'); $encode"),
	qr/HV024.*is not the registry_url of server "kafka"/s, 'another address');

$node->stop;
done_testing();
