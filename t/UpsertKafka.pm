# What the TAP tests share: a node with the extension, topics, foreign tables.
package UpsertKafka;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_node create_topic produce unique_topic broker wait_until);

sub broker { return $ENV{BROKER} || '127.0.0.1:9092'; }

my $kt = $ENV{KT} || 'test/kt';
my $counter = 0;

# A topic name that no other run uses.
sub unique_topic
{
	my ($name) = @_;
	return sprintf('tap_%s_%d_%d_%d', $name, $$, time(), $counter++);
}

sub create_topic
{
	my ($topic, $partitions, @options) = @_;
	system($kt, '-b', broker(), 'create', $topic, '-p', $partitions || 1, @options) == 0
	  or die "cannot create topic $topic";
	return $topic;
}

# Lines in kt's form, see test/kt --help.
sub produce
{
	my ($topic, @lines) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $kt, '-b', broker(), 'produce', $topic ], '<', \(join("\n", @lines) . "\n"), '>', \$out, '2>', \$err)
	  or die "cannot produce to $topic: $err";
	return;
}

# A running server with the extension and a foreign server "kafka"; preload => 0: no workers.
sub start_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => $options{streaming} || 0, extra => [ '--encoding=UTF8', '--no-locale' ]);
	$node->append_conf('postgresql.conf', "max_worker_processes = 20\n");
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'upsert_kafka'\n")
	  if !defined $options{preload} || $options{preload};
	$node->append_conf('postgresql.conf', $options{conf}) if $options{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION upsert_kafka');
	$node->safe_psql('postgres',
		"CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '" . broker() . "')");
	return $node;
}

# Poll a query until it gives what is expected: for what has no wait_for.
sub wait_until
{
	my ($node, $query, $expected, $what) = @_;
	my $got = $node->poll_query_until('postgres', $query, $expected);
	ok($got, $what);
	return $got;
}

1;
