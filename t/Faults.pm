# What the tests of trouble share: a way to the broker that can be frozen, cut and
# mended; sessions in the background; what /proc tells of a process.
package Faults;

use strict;
use warnings;
use Exporter 'import';
use IO::Select;
use IO::Socket::INET;
use IPC::Run;
use POSIX qw(_exit);
use Time::HiRes qw(sleep time);
use UpsertKafka;

our @EXPORT = qw(start_proxy stop_proxy freeze thaw withhold_ends give_ends
  start_session end_session session_pid timed
  open_shell shell_send shell_wait shell close_shell
  threads descriptors resident_kb);

# --- a broker that can be frozen -------------------------------------------------------

# Every address that the broker tells for itself becomes the proxy's, in both encodings of
# strings that the protocol has, so that clients come here for all they want.
sub rewrite
{
	my ($frame, $host, $port, $ours) = @_;
	my $to = '127.0.0.1';
	my $tail = pack('N', $port);
	my $new = pack('N', $ours);

	$frame =~ s/\Q${\ (pack('n', length $host) . $host . $tail)}\E/pack('n', length $to) . $to . $new/ge;
	$frame =~ s/\Q${\ (chr(1 + length $host) . $host . $tail)}\E/chr(1 + length $to) . $to . $new/ge;
	return $frame;
}

# Takes the whole frames out of a buffer.
sub frames
{
	my ($buffer) = @_;
	my @frames;

	while (length $$buffer >= 4)
	{
		my $size = unpack('N', $$buffer);
		last if length $$buffer < 4 + $size;
		push @frames, substr($$buffer, 4, $size);
		substr($$buffer, 0, 4 + $size) = '';
	}
	return @frames;
}

my $LIST_OFFSETS = 2;		# the API's key, which a request begins with
my $withholding = 0;

sub serve
{
	my ($listener, $host, $port, $ours) = @_;
	my $select = IO::Select->new($listener);
	my (%other, %pending, %is_broker);

	local $SIG{USR1} = sub { $withholding = 1 };
	local $SIG{USR2} = sub { $withholding = 0 };

	while (1)
	{
		foreach my $socket ($select->can_read)
		{
			if ($socket == $listener)
			{
				my $client = $listener->accept or next;
				my $broker = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp');
				if (!$broker) { close($client); next; }
				$other{$client} = $broker;
				$other{$broker} = $client;
				$is_broker{$broker} = 1;
				$pending{$broker} = $pending{$client} = '';
				$select->add($client, $broker);
				next;
			}
			my $peer = $other{$socket} or next;
			my $got = sysread($socket, my $data, 262144);
			if ($got)
			{
				# whole frames only: an address must not be cut in two
				$pending{$socket} .= $data;
				$data = '';
				foreach my $frame (frames(\$pending{$socket}))
				{
					# messages need no look
					$frame = rewrite($frame, $host, $port, $ours) if $is_broker{$socket} && length $frame < 65536;
					next if !$is_broker{$socket} && $withholding && unpack('n', $frame) == $LIST_OFFSETS;
					$data .= pack('N', length $frame) . $frame;
				}
			}
			for (my $done = 0; $got && $done < length $data;)
			{
				my $n = syswrite($peer, $data, length($data) - $done, $done);
				if (!defined $n) { $got = 0; last; }
				$done += $n;
			}
			next if $got;
			$select->remove($socket, $peer);
			delete @other{$socket, $peer};
			delete @pending{$socket, $peer};
			close($socket);
			close($peer);
		}
	}
}

# Starts a process through which the broker can be reached at $proxy->{address}.
sub start_proxy
{
	my ($port) = @_;
	my ($host, $broker_port) = UpsertKafka::broker() =~ /^(.*):(\d+)/;
	my $listener;
	foreach (1 .. 100)
	{
		$listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port || 0, Listen => 64, ReuseAddr => 1, Proto => 'tcp') and last;
		# the port it had before may be somebody's own end of a connection for a moment
		sleep(0.1);
	}
	die "cannot listen: $!" unless $listener;
	$port = $listener->sockport;
	my $pid = fork();
	die "cannot fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		$SIG{PIPE} = 'IGNORE';
		$SIG{USR1} = $SIG{USR2} = 'IGNORE';
		$SIG{TERM} = 'DEFAULT';
		open(STDIN, '<', '/dev/null');
		# prove waits for whoever has these
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', '/dev/null');
		eval { serve($listener, $host, $broker_port, $port) };
		_exit(1);
	}
	close($listener);
	return bless { pid => $pid, port => $port, address => "127.0.0.1:$port" }, 'Faults::Proxy';
}

# Like a broker that is killed: connections break, nobody listens.
sub stop_proxy
{
	my ($proxy) = @_;
	return unless $proxy->{pid};
	kill('KILL', $proxy->{pid});
	waitpid($proxy->{pid}, 0);
	$proxy->{pid} = 0;
	return;
}

# Like a broker under SIGSTOP: connections are made and stay, nothing is answered.
sub freeze { kill('STOP', $_[0]->{pid}); return; }
sub thaw { kill('CONT', $_[0]->{pid}); return; }

# Like one that freezes between two questions: whoever asks where partitions end gets no answer, all
# other questions get theirs.
sub withhold_ends { kill('USR1', $_[0]->{pid}); return; }
sub give_ends { kill('USR2', $_[0]->{pid}); return; }

sub Faults::Proxy::DESTROY
{
	local ($?, $!, $@);
	my ($proxy) = @_;
	kill('KILL', $proxy->{pid}) if $proxy->{pid};
	return;
}

# --- sessions in the background -------------------------------------------------------

my $sessions = 0;

# Commands, SQL or psql's, one after another in one session; the first error ends it.
sub start_session
{
	my ($node, @commands) = @_;
	my $session = { name => 'session_' . $$ . '_' . $sessions++, node => $node, out => '', err => '' };
	local $ENV{PGAPPNAME} = $session->{name};
	$session->{started} = time;
	$session->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-d', $node->connstr($node->{uk_database} || 'postgres'),
			map { ('-c', $_) } @commands ],
		'<', \'', '>', \$session->{out}, '2>', \$session->{err}, IPC::Run::timeout(300));
	return $session;
}

# The server's process, once it is at work; 0 if the session has ended before.
sub session_pid
{
	my ($session, $condition) = @_;
	$condition ||= "state = 'active'";
	foreach (1 .. 600)
	{
		my $pid = $session->{node}->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE application_name = '$session->{name}' AND $condition");
		return $pid if $pid;
		return 0 unless IPC::Run::pumpable($session->{run});
		IPC::Run::pump_nb($session->{run});
		sleep(0.02);
	}
	return 0;
}

# Waits for the end and returns the seconds since $since (default: its start).
sub end_session
{
	my ($session, $since) = @_;
	IPC::Run::finish($session->{run});
	return time - ($since || $session->{started});
}

# Runs a statement; returns seconds, SQLSTATE ('' for success), and all that psql said.
sub timed
{
	my ($node, @commands) = @_;
	my $session = start_session($node, @commands);
	my $seconds = end_session($session);
	my ($state) = $session->{err} =~ /(?:ERROR|FATAL):  ([0-9A-Z]{5}):/;
	return ($seconds, $state || '', $session->{err} . $session->{out});
}

# --- sessions that stay ------------------------------------------------------------------

# A psql that goes on after errors; $shell->{pid} is its backend.
sub open_shell
{
	my ($node, @settings) = @_;
	my $shell = { in => '', out => '', err => '', commands => 0 };
	$shell->{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres') ],
		'<', \$shell->{in}, '>', \$shell->{out}, '2>', \$shell->{err}, IPC::Run::timeout(900));
	shell($shell, $_) foreach @settings;
	$shell->{pid} = shell($shell, 'SELECT pg_backend_pid();');
	return $shell;
}

# Sends lines, each a whole command, and does not wait.
sub shell_send
{
	my ($shell, @lines) = @_;
	$shell->{commands}++;
	$shell->{out} = $shell->{err} = '';
	$shell->{in} .= join('', map { "$_\n" } @lines) . "\\echo DONE $shell->{commands}\n";
	IPC::Run::pump_nb($shell->{run});
	return;
}

# Waits until they are done; returns their output, errors are in $shell->{err}.
sub shell_wait
{
	my ($shell) = @_;
	my $end = "DONE $shell->{commands}\n";
	IPC::Run::pump($shell->{run}) until $shell->{out} =~ /\Q$end\E$/;
	IPC::Run::pump_nb($shell->{run});
	(my $out = $shell->{out}) =~ s/\n?\Q$end\E$//;
	return $out;
}

sub shell
{
	my ($shell, @lines) = @_;
	shell_send($shell, @lines);
	return shell_wait($shell);
}

sub close_shell
{
	my ($shell) = @_;
	$shell->{in} .= "\\q\n";
	IPC::Run::finish($shell->{run});
	return;
}

# --- processes --------------------------------------------------------------------------

# Names of a process' threads, the main one left out.
sub threads
{
	my ($pid) = @_;
	my @names;
	foreach my $task (glob("/proc/$pid/task/*"))
	{
		next if $task =~ m{/\Q$pid\E$};
		open(my $f, '<', "$task/comm") or next;
		chomp(my $name = <$f> // '');
		push @names, $name;
	}
	return @names;
}

sub descriptors
{
	my ($pid) = @_;
	my @fds = glob("/proc/$pid/fd/*");
	return scalar @fds;
}

# Anonymous memory that is in use: what a process has for itself.
sub resident_kb
{
	my ($pid) = @_;
	open(my $f, '<', "/proc/$pid/status") or return 0;
	while (<$f>) { return $1 if /^RssAnon:\s+(\d+)/; }
	return 0;
}

1;
