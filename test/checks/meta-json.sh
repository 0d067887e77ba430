#!/bin/bash
# META.json follows the PGXN meta spec and names this version
set -eu
cd "$(dirname "$0")/../.."
perl - <<'P'
use strict;
use JSON::PP;

sub slurp { local $/; open my $f, "<", $_[0] or die "$_[0]: $!"; return scalar <$f>; }
my $bad = 0;
sub want { my ($what, $ok) = @_; $ok or ++$bad && print "META.json: $what\n"; }
sub text { return defined $_[0] && !ref $_[0] && length $_[0]; }
my $semver = qr/^\d+\.\d+\.\d+(?:-[A-Za-z][0-9A-Za-z.-]*)?$/;

my $m = decode_json(slurp("META.json"));
want("no $_", exists $m->{$_}) for qw(abstract maintainer license provides name version meta-spec);
my %known = map { $_ => 1 } qw(abstract maintainer license provides name version meta-spec description generated_by tags
	no_index prereqs release_status resources);
want("unknown member $_", $known{$_} || scalar(/^x_/i)) for keys %$m;
want("name", scalar($m->{name} =~ m{^[A-Za-z][^\s/\\]+$}));
want("abstract", text($m->{abstract}));
want("version is not a semantic version", scalar($m->{version} =~ $semver));
want("meta-spec version", scalar($m->{"meta-spec"}{version} =~ /^1\.0\.\d+$/));
want("license", scalar($m->{license} =~ /^(?:agpl_3|apache_2_0|artistic_2|bsd|gpl_[123]|lgpl_[23]_[01]|mit|mozilla_1_[01]|open_source|postgresql)$/));
want("release_status", !exists $m->{release_status} || scalar($m->{release_status} =~ /^(?:stable|testing|unstable)$/));
want("maintainer", text($_)) for ref $m->{maintainer} ? @{$m->{maintainer}} : $m->{maintainer};
want("provides", ref $m->{provides} eq "HASH" && %{$m->{provides}});
for my $p (values %{$m->{provides} || {}}) {
	want("version of what is provided", scalar($p->{version} =~ $semver));
	want("provides without file", defined $p->{file});
	want("file $_ is not there", -f $_) for grep { defined } $p->{file}, $p->{docfile};
}
for my $phase (keys %{$m->{prereqs} || {}}) {
	want("prereqs $phase", scalar($phase =~ /^(?:configure|build|test|runtime|develop)$|^x_/i));
	want("prereqs $_", scalar(/^(?:requires|recommends|suggests|conflicts)$|^x_/i)) for keys %{$m->{prereqs}{$phase}};
}
want("tag", text($_) && length $_ <= 255) for @{$m->{tags} || []};
my ($v) = slurp("upsert_kafka.control") =~ /^default_version\s*=\s*'([^']+)/m;
want("version $m->{version} does not fit default_version $v of the control file", scalar($m->{version} =~ /^\Q$v\E(?:\.|$)/));
exit($bad != 0);
P
