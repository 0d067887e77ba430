# pg_dump writes column options as ALTERs after the table: a restore must neither fail nor warn
# half-way, and a second dump must be the same.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my $node = start_node('options', preload => 0);

$node->safe_psql('postgres', q{
CREATE TYPE header AS (name text, value bytea);
CREATE USER MAPPING FOR PUBLIC SERVER kafka OPTIONS (sasl_password 'it''s secret');
CREATE FOREIGN TABLE upserts (id int OPTIONS (key 'true'), "Mixed Case" text OPTIONS (field 'it''s'), gone int,
	o bigint OPTIONS (metadata 'offset'), h header[] OPTIONS (metadata 'headers')) SERVER kafka
	OPTIONS (connector 'upsert-kafka', topic 't', key_format 'json', "value.format" 'json', "value.json.fail-on-missing-field" 'true');
ALTER FOREIGN TABLE upserts DROP COLUMN gone;
CREATE FOREIGN TABLE log (id int, v text) SERVER kafka
	OPTIONS (connector 'kafka', topic 't', key_format 'json', key_fields 'id', format 'json',
		scan_startup_mode 'timestamp', scan_startup_timestamp_millis '1');
});

# The dump without the random words that newer versions put into it.
sub dump_of
{
	my ($database) = @_;
	my ($dump, $err) = run_command([ 'pg_dump', '-h', $node->host, '-p', $node->port, $database ]);
	is($err, '', "pg_dump $database says nothing");
	$dump =~ s/^\\(un)?restrict .*$//mg;
	return $dump;
}

my $first = dump_of('postgres');
my $file = $node->basedir . '/dump.sql';
append_to_file($file, $first);
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my ($out, $err) = run_command([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '--single-transaction',
	'-h', $node->host, '-p', $node->port, '-f', $file, 'restored' ]);
is($err, '', 'the restore neither fails nor warns');
is(dump_of('restored'), $first, 'a dump of the copy is the same');

is($node->safe_psql('restored', q{SELECT id, "Mixed Case" FROM upsert_kafka.decode(NULL::upserts, '{"id": 1}', '{"it''s": "there"}')}),
	'1|there', 'the copy works');

$node->stop;
done_testing();
