# What the TAP tests share: a node with the extension, topics, foreign tables.
package UpsertKafka;

use strict;
use warnings;
use Exporter 'import';
use IO::Select;
use IO::Socket::INET;
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_node create_topic produce unique_topic broker wait_until start_proxy);

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
	$node->init(allows_streaming => $options{streaming} || 0);
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

# Copies bytes between clients and the broker, and writes its own port where the broker names one of a
# local address, so that clients stay with it. Frozen: kill STOP => pid; gone: kill KILL => pid.
sub run_proxy
{
	my ($listener) = @_;
	my $port = pack('N', $listener->sockport);
	my $select = IO::Select->new($listener);
	my %peer;
	while (my @ready = $select->can_read)
	{
		foreach my $from (@ready)
		{
			if ($from == $listener)
			{
				my $client = $listener->accept or next;
				my $server = IO::Socket::INET->new(PeerAddr => broker()) or do { close $client; next; };
				$peer{$client} = [ $server, 0 ];
				$peer{$server} = [ $client, 1 ];
				$select->add($client, $server);
				next;
			}
			next unless $peer{$from};
			my ($to, $is_answer) = @{ $peer{$from} };
			my $n = sysread($from, my $bytes, 1 << 16);
			if ($n)
			{
				$bytes =~ s/(127\.0\.0\.1|localhost)\x00\x00[\x04-\xff]./$1$port/gs if $is_answer;
				my $sent = 0;
				while ($sent < length $bytes)
				{
					my $m = syswrite($to, $bytes, length($bytes) - $sent, $sent) or last;
					$sent += $m;
				}
				next;
			}
			$select->remove($from, $to);
			delete @peer{ $from, $to };
			close $from;
			close $to;
		}
	}
	return;
}

# Returns ("127.0.0.1:port", pid); the proxy ends with the test.
my @proxies;
sub start_proxy
{
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die "cannot listen: $!";
	my $pid = fork() // die "cannot fork: $!";
	if ($pid == 0)
	{
		$SIG{PIPE} = 'IGNORE';
		eval { run_proxy($listener); };
		POSIX::_exit(0);
	}
	push @proxies, $pid;
	return ('127.0.0.1:' . $listener->sockport, $pid);
}

END
{
	my $status = $?;
	kill 'KILL', @proxies if @proxies;
	$? = $status;
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
