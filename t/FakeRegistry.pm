# As much of a schema registry as tests need, in a process of its own: schemas by id,
# registering, authentication, and the ways in which one can fail.
package FakeRegistry;

use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();

# schemas => {id => JSON text}, subjects => {'subject/version' => JSON text, or an answer's members}, auth => what the header Authorization must be,
# mode => 'hang' | 'redirect' | 'html' | 'torn' | 'busy' | 'wordy', wrong_path => 1: 404 of something else, port => the same as before
sub start
{
	my ($class, %options) = @_;
	my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', LocalPort => $options{port} || 0, ReuseAddr => 1)
	  or die "cannot listen: $!";
	my $self = bless { port => $listen->sockport, options => \%options, log => $options{log} }, $class;
	my $pid = fork();
	die "cannot fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		# prove waits for whoever has these
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', '/dev/null');
		serve($listen, \%options);
		POSIX::_exit(0);
	}
	close($listen);
	$self->{pid} = $pid;
	return $self;
}

sub url { my ($self) = @_; return "http://127.0.0.1:$self->{port}"; }

sub stop
{
	my ($self) = @_;
	return unless $self->{pid};
	# at the end of a test $? is its exit status
	local $?;
	kill 'KILL', $self->{pid};
	waitpid($self->{pid}, 0);
	delete $self->{pid};
	return;
}

# The same address, with other options
sub restart
{
	my ($self, %options) = @_;
	$self->stop;
	my $new = FakeRegistry->start(%{ $self->{options} }, port => $self->{port}, %options);
	%$self = %$new;
	$new->{pid} = undef;
	return;
}

# The requests so far, one a line: method, path, body
sub requests
{
	my ($self) = @_;
	open(my $file, '<', $self->{log}) or return ();
	my @lines = <$file>;
	chomp @lines;
	return @lines;
}

sub DESTROY { my ($self) = @_; $self->stop; return; }

sub answer
{
	my ($client, $status, $body, @headers) = @_;
	print $client join("\r\n", "HTTP/1.1 $status X", "Content-Length: " . length($body), "Connection: close", @headers, '', $body);
	return;
}

sub serve
{
	my ($listen, $options) = @_;
	my (%ids, %versions);
	$SIG{PIPE} = 'IGNORE';
	while (my $client = $listen->accept)
	{
		my ($request, $length, $auth, $body) = ('', 0, '', '');
		$request = <$client> // '';
		while (my $line = <$client>)
		{
			last if $line =~ /^\r?\n$/;
			$length = $1 if $line =~ /^Content-Length: (\d+)/i;
			$auth = $1 if $line =~ /^Authorization: ([^\r\n]*)/i;
		}
		read($client, $body, $length) if $length;
		my ($method, $path) = $request =~ /^(\S+) (\S+)/ or next;
		if ($options->{log})
		{
			open(my $file, '>>', $options->{log}) or die;
			print $file "$method $path $body\n";
			close($file);
		}
		my $mode = $options->{mode} || '';
		if ($mode eq 'hang') { sleep 60; next; }
		elsif ($mode eq 'redirect') { answer($client, 302, '', "Location: http://127.0.0.1:9/elsewhere"); }
		elsif ($mode eq 'html') { answer($client, 200, '<html>', 'Content-Type: text/html'); }
		elsif ($mode eq 'torn') { answer($client, 200, '{"schema":"{\\' . "\xc3\xbc" . '"}'); }
		elsif ($mode eq 'busy') { answer($client, 503, '{"error_code":50301,"message":"not ready"}'); }
		elsif ($mode eq 'wordy') { answer($client, 503, '{"error_code":50301,"message":"x' . "\xc3\xbc" x 400 . '"}'); }
		elsif ($options->{auth} && $auth ne $options->{auth}) { answer($client, 401, '{"error_code":401,"message":"Unauthorized"}'); }
		elsif ($path =~ m{^/schemas/ids/(\d+)$} && $options->{schemas}{$1})
		{
			my $schema = $options->{schemas}{$1};
			answer($client, 200, encode_json(ref $schema ? $schema : { schema => $schema }));
		}
		elsif ($path =~ m{^/subjects/([^/]+)/versions/(\d+|latest)$} && $options->{subjects}{"$1/$2"})
		{
			my $schema = $options->{subjects}{"$1/$2"};
			answer($client, 200, encode_json({ subject => $1, version => $2 eq 'latest' ? 9 : $2 + 0, id => 1, ref $schema ? %$schema : (schema => $schema) }));
		}
		elsif ($method eq 'POST' && $path =~ m{^/subjects/([^/]+)(/versions)?$})
		{
			# registers, or says what is registered
			my ($subject, $new) = ($1, $2);
			my $posted = decode_json($body);
			my $references = JSON::PP->new->canonical->encode($posted->{references} || []);
			my $known = $ids{"$subject $posted->{schema} $references"};
			if ($new && $options->{refuse}) { answer($client, 409, '{"error_code":409,"message":"incompatible with an earlier schema"}'); }
			elsif (!$new && !$known) { answer($client, 404, '{"error_code":40403,"message":"Schema not found"}'); }
			else
			{
				if (!$known)
				{
					$known = { subject => $subject, id => 101 + scalar(keys %ids), version => 1 + grep { /^\Q$subject\E \d+$/ } keys %versions };
					$ids{"$subject $posted->{schema} $references"} = $known;
					$versions{"$subject $known->{version}"} = 1;
					$options->{schemas}{ $known->{id} } = $posted;
					$options->{subjects}{"$subject/$known->{version}"} = { %$posted, %$known };
				}
				answer($client, 200, encode_json($new ? { id => $known->{id} } : { %$posted, %$known }));
			}
		}
		elsif ($options->{wrong_path}) { answer($client, 404, '<html>not found'); }
		else { answer($client, 404, '{"error_code":40403,"message":"Schema not found"}'); }
		close($client);
	}
	return;
}

1;
