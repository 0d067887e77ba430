# Format debezium-avro-confluent: events in Avro as Connect's converter writes them, schemas that
# change while a table follows, and writing as Flink's sink does.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use FakeRegistry;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

# === Avro's encoding, as far as it is needed: values in hexadecimal ===
sub long
{
	my ($n) = @_;
	my $zigzag = $n < 0 ? ((-$n) << 1) - 1 : $n << 1;
	my $hex = '';
	while ($zigzag > 0x7f) { $hex .= sprintf('%02x', ($zigzag & 0x7f) | 0x80); $zigzag >>= 7; }
	return $hex . sprintf('%02x', $zigzag);
}
sub bytes { my ($hex) = @_; return long(length($hex) / 2) . $hex; }
sub string { my ($text) = @_; return bytes(unpack('H*', $text)); }
sub double { my ($value) = @_; return unpack('H*', pack('d<', $value)); }
my $null = '00';
sub some { my ($hex) = @_; return defined $hex ? "02$hex" : $null; }    # ["null", type]

# === the schemas, as Connect's Avro converter made them of Debezium's ===
my $date = '{"type":"int","connect.version":1,"connect.name":"io.debezium.time.Date"}';
sub envelope
{
	my (%more) = @_;
	my $fields = '{"name":"id","type":"int"},' . join(',', map { qq({"name":"$_->[0]","type":["null",$_->[1]],"default":null}) }
		[ name => '"string"' ],
		[ price => '{"type":"bytes","scale":2,"precision":10,"connect.version":1,"connect.parameters":{"scale":"2","connect.decimal.precision":"10"},"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}' ],
		[ any => '{"type":"record","name":"VariableScaleDecimal","namespace":"io.debezium.data","fields":[{"name":"scale","type":"int"},{"name":"value","type":"bytes"}],"connect.doc":"Variable scaled decimal","connect.version":1,"connect.name":"io.debezium.data.VariableScaleDecimal"}' ],
		[ day => $date ],
		[ at => '{"type":"long","connect.version":1,"connect.name":"io.debezium.time.MicroTimestamp"}' ],
		[ zoned => '{"type":"string","connect.version":1,"connect.name":"io.debezium.time.ZonedTimestamp"}' ],
		[ bits => '{"type":"bytes","connect.version":1,"connect.parameters":{"length":"5"},"connect.name":"io.debezium.data.Bits"}' ],
		[ small => '{"type":"int","connect.type":"int16"}' ],
		[ days => qq({"type":"array","items":["null",$date]}) ],
		[ tags => '{"type":"map","values":["null","string"]}' ],
		[ p => '{"type":"record","name":"Point","namespace":"io.debezium.data.geometry","fields":[{"name":"x","type":"double"},{"name":"y","type":"double"},{"name":"wkb","type":["null","bytes"],"default":null},{"name":"srid","type":["null","int"],"default":null}],"connect.doc":"Geometry (POINT)","connect.version":1,"connect.name":"io.debezium.data.geometry.Point"}' ],
		[ raw => '"bytes"' ],
		@{ $more{fields} || [] });
	return '{"type":"record","name":"Envelope","namespace":"shop.public.t","fields":[{"name":"before","type":["null",{"type":"record","name":"Value","fields":[' . $fields .
	  '],"connect.name":"shop.public.t.Value"}],"default":null},{"name":"after","type":["null","Value"],"default":null},{"name":"source","type":{"type":"record","name":"Source","namespace":"io.debezium.connector.postgresql","fields":[{"name":"version","type":"string"},{"name":"ts_ms","type":"long"},{"name":"db","type":"string"},{"name":"schema","type":"string"},{"name":"table","type":"string"},{"name":"lsn","type":["null","long"],"default":null}],"connect.name":"io.debezium.connector.postgresql.Source"}},{"name":"op","type":"string"},{"name":"ts_ms","type":["null","long"],"default":null}],"connect.version":2,"connect.name":"shop.public.t.Envelope"}';
}
my $key_schema = '{"type":"record","name":"Key","namespace":"shop.public.t","fields":[{"name":"id","type":"int"}],"connect.name":"shop.public.t.Key"}';
my %schemas = (
	40 => $key_schema, 41 => envelope(), 42 => envelope(fields => [ [ extra => '"string"' ] ]), 43 => '{"type":"record","name":"R","fields":[{"name":"id","type":"int"}]}', 44 => '"string"',
	45 => '["null",{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":[{"name":"before","type":["null",{"type":"record","name":"record_before","fields":[{"name":"id","type":"int"},{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null}]}],"default":null},{"name":"after","type":["null",{"type":"record","name":"record_after","fields":[{"name":"id","type":"int"},{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null}]}],"default":null},{"name":"op","type":["null","string"],"default":null}]}]');
my $log = PostgreSQL::Test::Utils::tempdir() . '/requests';
my $registry = FakeRegistry->start(schemas => \%schemas, log => $log);

sub key { my ($id) = @_; return '0000000028' . long($id); }
my @columns = qw(name price any day at zoned bits small days tags p raw);
sub image { my ($id, %v) = @_; return long($id) . join('', map { some($v{$_}) } @columns) . (exists $v{extra} ? some($v{extra}) : ''); }
my $source = string('3.5.0.Final') . long(1700000001234) . string('shop') . string('public') . string('t') . some(long(42));
sub event
{
	my ($op, $before, $after, $id) = @_;
	return sprintf('00%08x', $id || 41) . some($before) . some($after) . $source . string($op) . some(long(1700000005678));
}

my $node = start_node('debezium_avro');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD registry_url '" . $registry->url . "', ADD timeout '5s'); ALTER DATABASE postgres SET timezone = 'UTC'");
sub sql { my ($query) = @_; return $node->safe_psql('postgres', $query); }
sub error_of
{
	my ($query) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$query", on_error_stop => 0);
	return $err;
}
my $topic = create_topic(unique_topic('debezium_avro'), 1);
my $fields = 'name text, price numeric(10,2), "any" numeric, day date, at timestamp, zoned timestamptz, bits bit(5), small smallint, days date[], tags jsonb, p point, raw bytea, extra text';
my $options = "SERVER kafka OPTIONS (connector '%s', topic '$topic', %svalue_format 'debezium-avro-confluent')";
sql("CREATE FOREIGN TABLE t (id int OPTIONS (key 'true'), $fields) " . sprintf($options, 'upsert-kafka', "key_format 'avro-confluent', "));
sql("CREATE FOREIGN TABLE t_log (id int, $fields, kind text OPTIONS (metadata 'row_kind')) " . sprintf($options, 'kafka', ''));
sub decode
{
	my ($table, $columns, $value, $id) = @_;
	return "SELECT $columns FROM upsert_kafka.decode(NULL::$table, " . ($table eq 't' ? "'\\x" . key($id || 1) . "'" : 'NULL') . ', ' . (defined $value ? "'\\x$value'" : 'NULL') . ')';
}
sub one { my ($column, $hex) = @_; return sql(decode('t', $column, event('c', undef, image(1, $column =~ /(\w+)/ => $hex)))); }

# === events and rows ===
my ($a, $b) = (image(1, name => string('a')), image(1, name => string('b')));
is(sql(decode('t', 'id, name', event('c', undef, $a))), '1|a', 'c, keyed by the message key');
is(sql(decode('t', 'id, name', event('u', $a, $b))), '1|b', 'u');
is(sql(decode('t', 'id, name', undef)), '1|', 'a tombstone');
is(sql(decode('t', 'id, name', event('d', $a, undef))), '1|', 'd');
is(sql(decode('t_log', 'id, name, kind', event('r', undef, $a))), '1|a|+I', 'r in a log of changes');
is(sql(decode('t_log', 'id, name, kind', event('u', $a, $b))), "1|a|-U\n1|b|+U", 'u is two rows');
is(sql(decode('t_log', 'id, name, kind', event('d', $a, undef))), '1|a|-D', 'd');
is(sql(decode('t_log', 'id, name, kind', event('m', undef, undef))), '', 'm is no row');
like(error_of(decode('t_log', 'id', event('d', undef, undef))), qr/22004.*has no "before".*REPLICA IDENTITY FULL/s, 'd without a row');
like(error_of(decode('t', 'id', event('x', undef, $a))), qr/22P02.*unknown "op" of a change event: "x"/s, 'an unknown operation');
like(error_of(decode('t', 'id', event('t', undef, undef))), qr/22023.*the source table was truncated/s, 'TRUNCATE');
like(error_of(decode('t', 'id', '000000002b02')), qr/22P02.*without a member "op".*avro-confluent|22P02.*Debezium/s, 'a record that is no event');
like(error_of(decode('t', 'id', '000000002c0261')), qr/22P03.*no record.*avro-confluent/s, 'a value that is none');
like(error_of(decode('t', 'id', substr(event('c', undef, $a), 0, 40))), qr/22P03.*ends too early/s, 'cut short');
like(error_of(decode('t', 'id', event('c', undef, $a) . '00')), qr/22P03.*1 bytes follow/s, 'too long');
like(error_of(decode('t', 'id', '7b226f70223a2263227d')), qr/22P03.*magic byte.*JSON/s, 'JSON');
is(sql(decode('t', 'id, name', '000000002d00')), '1|', 'the null of a schema that has one is a tombstone');
is(sql(decode('t', 'id, at', '000000002d02' . $null . '02' . long(1) . some(long(1709296496789012)) . '02' . string('c'))), '1|2024-03-01 12:34:56.789012', "Flink's schema");

# === values, the same as with debezium-json's schema ===
is(one('price', bytes('01e240')), '1234.56', 'Decimal');
is(one('"any"', long(3) . bytes('01e240')), '123.456', 'VariableScaleDecimal');
is(one('day', long(18263)), '2020-01-02', 'Date');
is(one('day', long(-2147472692)), 'infinity', 'an infinite date (X07)');
is(one('at', long(-1)), '1969-12-31 23:59:59.999999', 'MicroTimestamp');
is(one('at', long(9223372036825200000)), 'infinity', 'an infinite timestamp');
is(one('zoned', string('2024-03-01T12:00:00.000000+05:30')), '2024-03-01 06:30:00+00', 'ZonedTimestamp');
is(one('zoned', string('-0043-03-15T12:00:00.000000Z')), '0044-03-15 12:00:00+00 BC', '.. before Christ');
is(one('bits', bytes('16')), '10110', 'Bits');
is(one('small', long(-32768)), '-32768', 'int16');
is(one('days', long(2) . some(long(18263)) . $null . '00'), '{2020-01-02,NULL}', 'an array of dates');
is(one('tags', long(2) . string('k "1"') . some(string("tab\t\xc3\xbc")) . string('n') . $null . '00'), qq({"n": null, "k \\"1\\"": "tab\\t\xc3\xbc"}), 'a map');
is(one('p', double(1.5) . double(-2.25) . some(bytes('00ff')) . $null), '(1.5,-2.25)', 'a point');
is(one('raw', bytes('00ff7f')), '\x00ff7f', 'bytes');
is(one('name', string(qq(quote " backslash \\ \xe2\x98\x83))), qq(quote " backslash \\ \xe2\x98\x83), 'text is as it is');
like(error_of(decode('t', 'id', event('c', undef, image(1, name => bytes('ff'))))), qr/22021/, 'no UTF-8');
like(error_of(decode('t', 'id', event('c', undef, image(1, name => string("a\0b"))))), qr/22021/, 'NUL in text ..');
sql("ALTER FOREIGN TABLE t OPTIONS (ADD value_debezium_avro_confluent_nul_handling 'strip')");
is(one('name', string("a\0b")), 'ab', '.. may be dropped');
sql("ALTER FOREIGN TABLE t OPTIONS (DROP value_debezium_avro_confluent_nul_handling)");
like(error_of(decode('t', 'id', event('c', undef, image(1, day => long(2147483647))))), qr/22008.*column "day".*out of range for io.debezium.time.Date/s, 'a date out of range ..');
sql("ALTER FOREIGN TABLE t OPTIONS (ADD value_debezium_avro_confluent_ignore_parse_errors 'true')");
is(sql(decode('t', 'id, day, name', event('c', undef, image(1, day => long(2147483647), name => string('x'))))), '1||x', '.. is NULL with ignore_parse_errors');
sql("ALTER FOREIGN TABLE t OPTIONS (DROP value_debezium_avro_confluent_ignore_parse_errors)");

# === metadata ===
sql("CREATE FOREIGN TABLE m (id int, source_ts timestamptz OPTIONS (metadata 'value.source.timestamp'), seen timestamp(3) OPTIONS (metadata 'value.ingestion-timestamp'),
	db text OPTIONS (metadata 'value.source.database'), sc text OPTIONS (metadata 'value.source.schema'), tb text OPTIONS (metadata 'value.source.table'),
	props jsonb OPTIONS (metadata 'value.source.properties')) " . sprintf($options, 'kafka', ''));
is(sql("SELECT * FROM upsert_kafka.decode(NULL::m, NULL, '\\x" . event('c', undef, $a) . "')"),
	'1|2023-11-14 22:13:21.234+00|2023-11-14 22:13:25.678|shop|public|t|{"db": "shop", "lsn": 42, "table": "t", "ts_ms": 1700000001234, "schema": "public", "version": "3.5.0.Final"}', 'metadata of the source');
like(error_of("ALTER FOREIGN TABLE m ADD COLUMN x text OPTIONS (metadata 'value.schema')"), qr/has no metadata "value.schema"/, 'the schema is not in the message');

# === a maintained table: left out values, a new schema, a registry that is away ===
my $unavailable = '__debezium_unavailable_value';
my $clock = 1700000000000;
sub produce_hex { my (@messages) = @_; produce($topic, map { my ($k, $v, $header) = @$_; "[ts=" . $clock++ . ($header ? " h=$header" : '') . "] x'$k'|" . (defined $v ? "x'$v'" : '\N') } @messages); return; }
produce_hex(
	[ key(1), event('r', undef, image(1, name => string('large'), raw => bytes('cafe'), small => long(1))) ],
	[ key(1), event('u', undef, image(1, name => string($unavailable), raw => string($unavailable), small => long(2))) ],
	[ key(2), event('c', undef, image(2, name => string('two'))) ],
	[ key(3), event('c', undef, image(3)) ], [ key(3), event('d', image(3), undef) ], [ key(3), undef ]);
sql("SELECT upsert_kafka.materialize('t', 'kept', on_error => 'skip'); SELECT upsert_kafka.wait_for('kept')");
is(sql('SELECT id, name, raw, small, extra FROM kept ORDER BY id'), "1|large|\\xcafe|2|\n2|two|||", 'values that did not change are kept (C09), the deleted row is gone (A11)');
produce_hex([ key(2), event('u', image(2, name => string('two'), extra => undef), image(2, name => string('zwei'), extra => string('new')), 42) ]);
sql("SELECT upsert_kafka.wait_for('kept')");
is(sql('SELECT id, name, extra FROM kept WHERE id = 2'), '2|zwei|new', 'a column that a new schema has');
produce_hex([ key(1), event('u', undef, image(1, name => string($unavailable), raw => string($unavailable), small => long(3))) ],
	[ key(4), event('c', undef, image(4, name => string('four'), extra => string('e')), 46) ]);
wait_until($node, "SELECT last_error LIKE '%does not know schema 46%' FROM upsert_kafka.progress WHERE target = 'kept'::regclass", 't', 'a schema that is not known yet ..');
is(sql('SELECT count(*) FROM upsert_kafka.errors'), 0, '.. is not the message to blame');
$registry->restart(schemas => { %schemas, 46 => $schemas{42} });
wait_until($node, "SELECT count(*) = 3 FROM kept", 't', '.. and it goes on when it is');
is(sql('SELECT id, name, small, extra FROM kept ORDER BY id'), "1|large|3|\n2|zwei||new\n4|four||e", 'old and new schemas side by side');
is(sql("SELECT string_agg(coalesce(small::text, '-'), ',' ORDER BY system_time) FROM kept_history WHERE id = 1"), '1,2,3', 'and in its history');

# a key's change: the header is JSON, whatever keys and values are
produce_hex([ key(4), event('d', image(4), undef), '__debezium.newkey:{"id":5}' ], [ key(4), undef ],
	[ key(5), event('c', undef, image(5, name => string($unavailable), raw => string($unavailable), small => long(5))), '__debezium.oldkey:{"id":4}' ]);
sql("SELECT upsert_kafka.wait_for('kept')");
is(sql('SELECT id, name, small FROM kept WHERE id > 3'), '5|four|5', 'a row whose key changed keeps its values');

# === TRUNCATE, applied (X10) ===
my $truncated = create_topic(unique_topic('debezium_avro_truncate'), 1);
sql("CREATE FOREIGN TABLE tr (id int OPTIONS (key 'true'), name text) SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$truncated', key_format 'avro-confluent',
	value_format 'debezium-avro-confluent', value_debezium_avro_confluent_truncate 'apply')");
produce($truncated, map { my ($k, $v) = @$_; "[ts=" . $clock++ . "] " . (defined $k ? "x'$k'" : '\N') . '|' . (defined $v ? "x'$v'" : '\N') }
	[ key(1), event('c', undef, image(1, name => string('a'))) ], [ key(2), event('c', undef, image(2, name => string('b'))) ], [ key(2), undef ],
	[ undef, event('t', undef, undef) ], [ key(3), event('c', undef, image(3, name => string('c'))) ]);
sql("SELECT upsert_kafka.materialize('tr', 'tr_kept'); SELECT upsert_kafka.wait_for('tr_kept')");
is(sql('TABLE tr; TABLE tr_kept; SELECT id, upper_inf(system_time) FROM tr_kept_history ORDER BY id'), "3|c\n3|c\n1|f\n2|f\n3|t", 'all rows before it are gone, their versions are kept');

# === writing, as Flink does it ===
my $out = create_topic(unique_topic('debezium_avro_out'), 1);
sql("CREATE FOREIGN TABLE w (id int OPTIONS (key 'true') NOT NULL, name text, at timestamp(3), price numeric(9,2)) SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$out', key_format 'avro-confluent', value_format 'debezium-avro-confluent')");
my @before = $registry->requests;
my $row = '0e' . some(string('x')) . some(long(1709296496789)) . some(bytes('0929'));
is(sql("SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(7, 'x', '2024-03-01 12:34:56.789', 23.45)::w)"), '0000000066' . '02' . '00' . "02$row" . '02' . string('c'), 'an insert');
my @new = ($registry->requests)[ scalar(@before) .. scalar($registry->requests) - 1 ];
my $image = '"fields":[{"name":"id","type":"int"},{"name":"name","type":["null","string"],"default":null},{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}],"default":null}]}],"default":null}';
my $wanted = '["null",{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":[{"name":"before","type":["null",{"type":"record","name":"record_before",' . $image .
  ',{"name":"after","type":["null",{"type":"record","name":"record_after",' . $image . ',{"name":"op","type":["null","string"],"default":null}]}]';
like($new[1], qr{^POST /subjects/\Q$out\E-value/versions }, 'its schema is registered under the value\'s subject ..');
$wanted =~ s/"/\\"/g;
like($new[1], qr{\Q$wanted\E}, ".. letter for letter Flink's");
is(sql("SELECT value IS NULL FROM upsert_kafka.encode(ROW(7, 'x', NULL, NULL)::w, '-D')"), 't', 'a delete of an upsert table is a tombstone');
sql("CREATE FOREIGN TABLE w_log (id int NOT NULL, name text, at timestamp(3), price numeric(9,2)) SERVER kafka OPTIONS (connector 'kafka', topic '$out', value_format 'debezium-avro-confluent')");
is(sql("SELECT k, encode(value, 'hex') FROM unnest('{+I,-U,+U,-D}'::text[]) k, upsert_kafka.encode(ROW(7, 'x', '2024-03-01 12:34:56.789', 23.45)::w_log, k)"),
	join("\n", map { "$_->[0]|" . '0000000066' . '02' . ($_->[1] eq 'c' ? "0002$row" : "02${row}00") . '02' . string($_->[1]) } [ '+I', 'c' ], [ '-U', 'd' ], [ '+U', 'c' ], [ '-D', 'd' ]),
	'in a log of changes updates are deletes and inserts');
sql("INSERT INTO w VALUES (1, 'a', '2024-03-01 12:00', 1), (2, 'b', NULL, NULL); UPDATE w SET name = 'c' WHERE id = 1; DELETE FROM w WHERE id = 2");
is(sql('TABLE w'), '1|c|2024-03-01 12:00:00|1.00', 'what was written is read again');
like(error_of(q{ALTER FOREIGN TABLE w OPTIONS (ADD value_debezium_avro_confluent_schema '"string"'); SELECT upsert_kafka.encode(ROW(7, 'x', NULL, NULL)::w)}), qr/HV024.*no schema of change events/s, 'a schema of something else');

$node->stop;
done_testing();
