# IMPORT FOREIGN SCHEMA where the server has a schema registry: its schemas decide, and
# nothing is guessed while it cannot be asked.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use FakeRegistry;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my %topics = map { $_ => create_topic(unique_topic("imp_$_"), 1) } qw(all order plain json proto named alien empty envelope);

my $all = '{"type":"record","name":"All","fields":[' . join(',', map { my ($name, $type) = @$_; qq({"name":"$name","type":$type}) } (
	[ id => '"long"' ], [ b => '["null","boolean"]' ], [ i => '["null","int"]' ], [ f => '["float","null"]' ], [ d => '"double"' ],
	[ bytes => '"bytes"' ], [ s => '"string"' ], [ e => '{"type":"enum","name":"E","symbols":["X","Y"]}' ],
	[ fix => '{"type":"fixed","name":"F","size":4}' ],
	[ dec => '["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]' ],
	[ day => '{"type":"int","logicalType":"date"}' ], [ tms => '{"type":"int","logicalType":"time-millis"}' ], [ tus => '{"type":"long","logicalType":"time-micros"}' ],
	[ ats => '{"type":"long","logicalType":"timestamp-millis"}' ], [ atu => '{"type":"long","logicalType":"timestamp-micros"}' ],
	[ lms => '{"type":"long","logicalType":"local-timestamp-millis"}' ], [ lus => '{"type":"long","logicalType":"local-timestamp-micros"}' ],
	[ u => '{"type":"string","logicalType":"uuid"}' ], [ dur => '{"type":"fixed","name":"D","size":12,"logicalType":"duration"}' ],
	[ rec => '{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}' ], [ recs => '{"type":"array","items":"R"}' ],
	[ ints => '{"type":"array","items":["null","int"]}' ], [ grid => '{"type":"array","items":{"type":"array","items":"int"}}' ],
	[ map => '{"type":"map","values":"string"}' ], [ nums => '["null","int","long"]' ], [ mixed => '["null","string","int"]' ],
	[ either => '["R",{"type":"map","values":"int"}]' ], [ nothing => '"null"' ])) . ']}';
my $order = '{"type":"record","name":"Order","namespace":"com.acme","fields":[{"name":"id","type":"long"},{"name":"item","type":["null","com.acme.Item"]},{"name":"amt","type":"double"}]}';
my %schemas = (41 => '"string"', 42 => '{"type":"record","name":"O","fields":[{"name":"id","type":"long"}]}');
my %subjects = (
	"$topics{all}-value/latest" => $all,
	"$topics{all}-key/latest" => '{"type":"record","name":"K","fields":[{"name":"id","type":"long"}]}',
	"$topics{order}-value/latest" => { schema => $order, references => [ { name => 'com.acme.Item', subject => 'items', version => 3 } ] },
	"$topics{order}-key/latest" => '"string"',
	'items/3' => '{"type":"enum","name":"Item","namespace":"com.acme","symbols":["BOOK","PEN"]}',
	"$topics{json}-value/latest" => { schemaType => 'JSON', schema => '{"type":"object","title":"T","properties":{"id":{"type":"integer"},"name":{"oneOf":[{"type":"null"},{"type":"string"}]},"ok":{"type":["null","boolean"]},"at":{"type":"string","format":"date-time"},"price":{"type":"number"},"tags":{"type":"array"},"any":{}}}' },
	"$topics{proto}-value/latest" => { schemaType => 'PROTOBUF', schema => 'syntax = "proto3"; message M { int64 id = 1; }' },
	"$topics{envelope}-value/latest" => '{"type":"record","name":"Envelope","namespace":"s.t","fields":[{"name":"before","type":["null",{"type":"record","name":"Value","fields":[{"name":"id","type":"int"},{"name":"v","type":["null","string"]},{"name":"z","type":["null",{"type":"string","connect.name":"io.debezium.time.ZonedTimestamp"}]},{"name":"b","type":["null",{"type":"bytes","connect.parameters":{"length":"5"},"connect.name":"io.debezium.data.Bits"}]},{"name":"p","type":["null",{"type":"record","name":"Point","fields":[{"name":"x","type":"double"},{"name":"y","type":"double"}],"connect.name":"io.debezium.data.geometry.Point"}]},{"name":"span","type":["null",{"type":"long","connect.name":"io.debezium.time.MicroDuration"}]}]}]},{"name":"after","type":["null","Value"]},{"name":"op","type":"string"}]}');
my $registry = FakeRegistry->start(schemas => \%schemas, subjects => \%subjects, log => PostgreSQL::Test::Utils::tempdir() . '/requests');
my $url = $registry->url;
my $node = start_node('import');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD registry_url '$url', ADD timeout '5s')");

# [what is printed on standard error]
sub import_topics
{
	my ($topics, $options) = @_;
	my $list = join(', ', map { qq{"$topics{$_}"} } split(' ', $topics));
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nIMPORT FOREIGN SCHEMA topics LIMIT TO ($list) FROM SERVER kafka INTO public" . ($options ? " OPTIONS ($options)" : ''), on_error_stop => 0);
	return $err;
}

sub columns
{
	my ($topic) = @_;
	return $node->safe_psql('postgres', qq{SELECT string_agg(format('%s %s%s%s', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN ' NOT NULL' END, ' ' || attfdwoptions::text), E'\\n' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = '$topics{$topic}'::regclass AND attnum > 0});
}

sub options_of
{
	my ($topic) = @_;
	return $node->safe_psql('postgres', qq{SELECT string_agg(o, ' ') FROM pg_foreign_table, unnest(ftoptions) o WHERE ftrelid = '$topics{$topic}'::regclass AND o !~ '^topic=|_schema='});
}

# === every type of Avro ===
is(import_topics('all'), '', 'an Avro subject with a key');
is(columns('all'), join("\n", 'id bigint {key=true}', 'b boolean', 'i integer', 'f real', 'd double precision NOT NULL', 'bytes bytea NOT NULL', 's text NOT NULL', 'e text NOT NULL', 'fix bytea NOT NULL',
	'dec numeric(9,2)', 'day date NOT NULL', 'tms time(3) without time zone NOT NULL', 'tus time without time zone NOT NULL', 'ats timestamp(3) with time zone NOT NULL', 'atu timestamp with time zone NOT NULL',
	'lms timestamp(3) without time zone NOT NULL', 'lus timestamp without time zone NOT NULL', 'u uuid NOT NULL', 'dur interval NOT NULL', 'rec jsonb NOT NULL', 'recs jsonb NOT NULL', 'ints integer[] NOT NULL',
	'grid jsonb NOT NULL', 'map jsonb NOT NULL', 'nums bigint', 'mixed text', 'either jsonb NOT NULL'), 'types, and which may be null');
is(options_of('all'), 'connector=upsert-kafka key_format=avro-confluent value_format=avro-confluent', 'an upsert table, although the topic is empty: it has a key');

# what is written has the subject's own schema, and is read again
my $row = qq{ROW(7, true, 1, 0.5, 0.25, '\\x01', 'text', 'Y', '\\x01020304', 12.34, '2026-01-31', '12:00:00.5', '12:00:00.000001', '2026-01-31 12:00:00.5+00', '2026-01-31 12:00:00.000001+00',
	'2026-01-31 12:00:00.5', '2026-01-31 12:00:00.000001', '550e8400-e29b-41d4-a716-446655440000', '1 mon 2 days', '{"x": 1}', '[{"x": 2}]', '{1,NULL}', '[[1],[2,3]]', '{"k": "v"}', 5, 'm', '{"x": 3}')};
is($node->safe_psql('postgres', qq{SET timezone = 'UTC'; INSERT INTO "$topics{all}" SELECT ($row\::"$topics{all}").*; SELECT * FROM "$topics{all}"}),
	'7|t|1|0.5|0.25|\\x01|text|Y|\\x01020304|12.34|2026-01-31|12:00:00.5|12:00:00.000001|2026-01-31 12:00:00.5+00|2026-01-31 12:00:00.000001+00|2026-01-31 12:00:00.5|2026-01-31 12:00:00.000001|550e8400-e29b-41d4-a716-446655440000|1 mon 2 days|{"x": 1}|[{"x": 2}]|{1,NULL}|[[1], [2, 3]]|{"k": "v"}|5|m|{"x": 3}', 'every one of them written and read');
my ($registered) = grep { m{^POST .*-value/versions} } $registry->requests;
like($registered, qr/\Q\"name\":\"All\"/, 'under the name that it has in the registry');

# === a key that is no record; types of other subjects ===
is(import_topics('order'), '', 'a schema that refers to another');
is(columns('order'), "key text {key=true}\nid bigint NOT NULL\nitem text\namt double precision NOT NULL", 'its types are found');
is(options_of('order'), 'connector=upsert-kafka key_format=avro-confluent value_format=avro-confluent value_fields_include=EXCEPT_KEY', 'the key is no field of the value');
is($node->safe_psql('postgres', qq{SELECT string_agg(o, ' ') FROM pg_foreign_table, unnest(ftoptions) o WHERE ftrelid = '$topics{order}'::regclass AND o ~ '_schema='}),
	'key_avro_confluent_schema="string"', 'a schema that refers to others is not in the options');
# rows of an append table have no promises: a null value is a row
is($node->safe_psql('postgres', qq{DROP FOREIGN TABLE "$topics{order}"}) . import_topics('order', "connector 'kafka'"), '', 'another connector');
is(columns('order'), "key text {key=true}\nid bigint\nitem text\namt double precision", 'an append table');

# === JSON Schema, and what cannot be proposed ===
is(import_topics('json'), '', 'a JSON schema');
is(columns('json'), "id bigint\nname text\nok boolean\nat timestamp with time zone\nprice numeric\ntags jsonb\nany text", 'types of its properties');
is(options_of('json'), 'connector=kafka value_format=json value_json_registry_framing=strip', 'its framing');
produce($topics{json}, q(∅|x'000000002a7b226964223a312c226f6b223a747275657d'));
is($node->safe_psql('postgres', qq{SELECT id, ok FROM "$topics{json}"}), '1|t', 'and it is read');
my $err = import_topics('proto plain');
like($err, qr/NOTICE: .*topic "\Q$topics{proto}\E" is not imported.*its values, \Q$topics{proto}\E-value: it is of type PROTOBUF/s, 'protobuf is left out, and says why ..');
is($node->safe_psql('postgres', qq{SELECT to_regclass('"$topics{proto}"') IS NULL, to_regclass('"$topics{plain}"') IS NOT NULL}), 't|t', '.. while others are imported');
import_topics('envelope');
like(columns('envelope'), qr/^id integer\nv text\nz timestamp with time zone\nb bit\(5\)\np point\nspan interval\nrow_kind text/, 'rows of change events, typed by the names of Connect');
is($node->safe_psql('postgres', qq{SELECT array_to_string(ftoptions, ' ') ~ 'value_format=debezium-avro-confluent' FROM pg_foreign_table WHERE ftrelid = '$topics{envelope}'::regclass}), 't', '.. in their format');

# === topics without a subject: the sample, which may name a schema itself ===
produce($topics{named}, q(x'000000002906616263'|x'000000002a0e'));
is(import_topics('named'), '', 'subjects of another name');
is(columns('named'), "key text {key=true}\nid bigint NOT NULL", 'the schemas that the messages name');
is($node->safe_psql('postgres', qq{SELECT * FROM "$topics{named}"}), 'abc|7', 'which can be read');
produce($topics{alien}, q({"id": 1}|x'00000000630e'));
$err = import_topics('alien');
like($err, qr/WARNING: .*values of topic "\Q$topics{alien}\E" look framed.*schema id, 99 .*registry of the server does not know that schema/s, 'a schema of another registry');
is(columns('alien'), "id bigint {key=true}\nvalue bytea", 'is bytes');
like(import_topics('empty'), qr/no message of topic .* was looked at/, 'neither subject nor messages');

# === nothing is guessed while the registry cannot tell ===
$node->safe_psql('postgres', qq{DROP FOREIGN TABLE "$topics{plain}", "$topics{named}"});
$registry->restart(mode => 'busy');
like(import_topics('plain'), qr/ERROR:  08006.*status 503/s, 'not ready');
$registry->restart(mode => 'html');
like(import_topics('plain'), qr/ERROR:  08006.*gives no JSON/s, 'something else than a registry');
$registry->restart(mode => '', auth => 'Bearer x');
like(import_topics('plain'), qr/ERROR:  28000.*refuses access/s, 'refused');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET registry_url '$url/elsewhere')");
$registry->restart(auth => undef, wrong_path => 1);
like(import_topics('plain'), qr/ERROR:  08000.*does not know subject/s, 'a path that is none of the registry');
$registry->stop;
like(import_topics('plain'), qr/ERROR:  08006.*does not answer/s, 'down');
is($node->safe_psql('postgres', qq{SELECT to_regclass('"$topics{plain}"') IS NULL}), 't', 'no table was made');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (DROP registry_url)");
import_topics('plain');
is(columns('plain'), 'value text', 'without a registry it is the sample');

$node->stop;
done_testing();
