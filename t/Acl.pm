# Rights of Kafka users, given and taken through the broker's own protocol (KIP-140, requests of
# version 1): the library that the tests' tool is built with knows no transactional ids.
package Acl;

use strict;
use warnings;
use Exporter 'import';
use IO::Socket::INET;
use UpsertKafka;

our @EXPORT = qw(allow forbid);

my %kinds = (topic => 2, group => 3, id => 5);
my %operations = (Read => 3, Write => 4, Describe => 8);
my ($any, $literal, $prefixed, $permit) = (1, 3, 4, 3);

sub string
{
	my ($text) = @_;
	return pack('n/a*', $text);
}

# One request; dies unless its first result is without error.
sub request
{
	my ($key, $body) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => broker()) or die "no connection to Kafka: $!";
	print $socket pack('N/a*', pack('nnN', $key, 1, 1) . string('acl') . $body);
	my $answer = '';
	$socket->flush;
	while (length($answer) < 4 || length($answer) < 4 + unpack('N', $answer))
	{
		sysread($socket, $answer, 65536, length $answer) or die 'Kafka has closed the connection';
	}
	# length, correlation, throttle, count; then the first result
	my ($count, $error) = unpack('x12Nn', $answer);
	die "Kafka's answer to request $key: $error" if $count < 1 || $error != 0;
	return;
}

# allow('bob', topic => 'name', 'Write', ..); a name that ends with * stands for all that begin so.
sub allow
{
	my ($user, $kind, $name, @operations) = @_;
	my $pattern = $name =~ s/\*$// ? $prefixed : $literal;
	request(30, pack('N', scalar @operations)
		  . join('', map { pack('C', $kinds{$kind}) . string($name) . pack('C', $pattern) . string("User:$user") . string('*') . pack('CC', $operations{$_}, $permit) } @operations));
	return;
}

# Take back whatever a user may do with what has this name, or one operation of it.
sub forbid
{
	my ($user, $kind, $name, $operation) = @_;
	my $pattern = $name =~ s/\*$// ? $prefixed : $literal;
	request(31, pack('N', 1) . pack('C', $kinds{$kind}) . string($name) . pack('C', $pattern) . string("User:$user") . string('*')
		  . pack('CC', defined $operation ? $operations{$operation} : $any, $permit));
	return;
}

1;
