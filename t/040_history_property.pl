# Random streams against the definition: decisions 5 and 6 of the design, written down once
# more in SQL over the raw log, compared with what apply made of the same messages in
# batches of 1, 2, 3 and 1000, at random moments and for the current table.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UpsertKafka;

my $seed = $ENV{UPSERT_KAFKA_SEED} || (time() ^ $$);
note "UPSERT_KAFKA_SEED=$seed";
srand($seed);

my $node = start_node('property', preload => 0);

# The definition, by the words of the design, over all messages of a log table: "at" is their
# moment, "gone" tells deletes.
$node->safe_psql('postgres', q{
CREATE FUNCTION state_at(log regclass, t timestamptz) RETURNS TABLE(id int, v text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format($q$
		WITH m AS (SELECT l.id, l.v, l.p, l.o, l.kts, l.at, l.gone FROM %s l),
		alive AS (
			SELECT * FROM m u WHERE NOT u.gone AND u.at <= $1
			AND NOT EXISTS (SELECT FROM m d WHERE d.id = u.id AND d.gone AND d.at <= $1
				AND (d.p = u.p AND d.o > u.o OR d.p <> u.p AND u.kts < d.kts))),
		latest AS (SELECT * FROM alive a WHERE a.at = (SELECT max(b.at) FROM alive b WHERE b.id = a.id)),
		last AS (SELECT * FROM latest a WHERE NOT EXISTS (SELECT FROM latest b WHERE b.id = a.id AND b.p = a.p AND b.o > a.o))
		SELECT DISTINCT ON (last.id) last.id, last.v FROM last ORDER BY last.id, last.kts DESC, last.p DESC $q$, log)
	USING t;
END $$;
CREATE FUNCTION last_word(log regclass) RETURNS TABLE(id int, v text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format($q$
		WITH m AS (SELECT * FROM %s l WHERE NOT EXISTS (SELECT FROM %s n WHERE n.id = l.id AND n.p = l.p AND n.o > l.o)),
		w AS (SELECT DISTINCT ON (m.id) * FROM m ORDER BY m.id, m.kts DESC, m.p DESC)
		SELECT w.id, w.v FROM w WHERE NOT w.gone $q$, log, log);
END $$;
});

# A message: key, partition, Kafka timestamp, event time; tombstones have no value.
my $value = 0;
sub message
{
	my (%options) = @_;
	my $id = 1 + int(rand($options{keys}));
	# one partition a key in the plain streams, any in the others
	my $partition = $options{strays} ? int(rand($options{partitions})) : $id % $options{partitions};
	my $kts = 1_700_000_000_000 + int(rand(40)) * 1000;
	my $directive = "[p=$partition ts=$kts]";
	if ($options{cdc})
	{
		# events tell the time of deletes; tombstones follow them, or come alone; large values may be left out
		my $key = "$directive {\"id\":$id}";
		my $source = '"source":{"ts_ms":' . (1_700_000_000_000 + int(rand(40)) * 1000) . '}';
		return "$key|\\N" if rand() < $options{deletes} / 2;
		my $tombstone = sprintf('[p=%d ts=%d] {"id":%d}|\N', $partition, 1_700_000_000_000 + int(rand(40)) * 1000, $id);
		return ("$key|{\"op\":\"d\",$source}", rand() < 0.6 ? $tombstone : ()) if rand() < $options{deletes};
		my $v = rand() < 0.4 ? '__debezium_unavailable_value' : 'v' . ++$value;
		return "$key|{\"op\":\"u\",\"after\":{\"id\":$id,\"v\":\"$v\"},$source}";
	}
	return "$directive {\"id\":$id}|\\N" if rand() < $options{deletes};
	my $et = 1_700_000_000 + int(rand(40));
	my @t = gmtime($et);
	my $text = sprintf('%04d-%02d-%02d %02d:%02d:%02d', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0]);
	$value++;
	return "$directive {\"id\":$id}|{\"v\":\"v$value\",\"et\":\"$text\"}";
}

my @streams = (
	{ name => 'one partition', partitions => 1, keys => 4, deletes => 0.2, strays => 0, event_time => 'et', history => 'true' },
	{ name => 'three partitions', partitions => 3, keys => 6, deletes => 0.2, strays => 0, event_time => 'et', history => 'true' },
	{ name => 'keys in several partitions', partitions => 3, keys => 4, deletes => 0.25, strays => 1, event_time => 'et', history => 'true' },
	{ name => 'Kafka time, strays', partitions => 2, keys => 4, deletes => 0.25, strays => 1, event_time => undef, history => 'true' },
	{ name => 'no history, strays', partitions => 3, keys => 5, deletes => 0.25, strays => 1, event_time => undef, history => 'false' },
	{ name => 'current by event time', partitions => 3, keys => 5, deletes => 0.2, strays => 1, event_time => 'et', history => 'true', by => 'event_time' },
	{ name => 'change events', partitions => 2, keys => 4, deletes => 0.3, strays => 0, event_time => 'et', history => 'true', cdc => 1 },
	{ name => 'change events, strays', partitions => 3, keys => 4, deletes => 0.3, strays => 1, event_time => 'et', history => 'true', cdc => 1 },
	{ name => 'change events, by event time', partitions => 1, keys => 3, deletes => 0.2, strays => 0, event_time => 'et', history => 'true', by => 'event_time', cdc => 1 },
	{ name => 'change events, no history', partitions => 3, keys => 4, deletes => 0.3, strays => 1, event_time => undef, history => 'false', cdc => 1 },
);

my $n = 0;
foreach my $stream (@streams)
{
	$n++;
	my $topic = create_topic(unique_topic("property$n"), $stream->{partitions});
	my $event_time = $stream->{event_time} ? "event_time => 'et'," : '';
	my ($format, $log_format, $metadata) = $stream->{cdc}
	  ? ('debezium-json', 'raw', "OPTIONS (metadata 'value.source.timestamp')") : ('json', 'json', '');
	my $log_columns = $stream->{cdc} ? '' : 'v text, et timestamptz,';
	$node->safe_psql('postgres', qq{
		CREATE FOREIGN TABLE topic$n (id int OPTIONS (key 'true'), v text, et timestamptz $metadata)
			SERVER kafka OPTIONS (connector 'upsert-kafka', topic '$topic', key_format 'json', value_format '$format');
		CREATE FOREIGN TABLE log$n (id int OPTIONS (key 'true'), $log_columns p int OPTIONS (metadata 'partition'),
			o bigint OPTIONS (metadata 'offset'), kts timestamptz OPTIONS (metadata 'timestamp'), raw bytea OPTIONS (metadata 'raw_value'))
			SERVER kafka OPTIONS (connector 'kafka', topic '$topic', key_format 'json', value_format '$log_format');
	});
	my $by = $stream->{by} || 'offset';
	my @sizes = (1, 2, 3, 1000);
	$node->safe_psql('postgres', join('', map {
		"SELECT upsert_kafka.materialize('topic$n', target => 't${n}_$_', $event_time history => $stream->{history}, current_by => '$by');" } @sizes));

	# random cuts: the first part is the first load's, the others are steady
	foreach my $part (1 .. 4)
	{
		produce($topic, map { message(%$stream) } 1 .. 5 + int(rand($stream->{cdc} ? 50 : 25)));
		foreach my $size (@sizes)
		{
			next if $part < 4 && rand() < 0.3;    # not all of them load at the same moment
			$node->safe_psql('postgres', "SET upsert_kafka.batch_rows = $size; SELECT upsert_kafka.refresh('t${n}_$size')");
		}
	}

	my $moment = $stream->{event_time} ? 'et' : 'kts';
	if ($stream->{cdc})
	{
		# a value that was left out is the last one since the key's last delete in its partition; a tombstone has the time of
		# the delete that it repeats: the last one with a time of its own, else that of the first tombstone in a row
		$node->safe_psql('postgres', qq{
			CREATE TABLE logged$n AS
			WITH e AS (SELECT *, convert_from(raw, 'UTF8')::json AS j FROM log$n),
			m AS (SELECT id, p, o, kts, raw IS NULL OR j->>'op' = 'd' AS gone, j->'after'->>'v' AS v,
				to_timestamp((j->'source'->>'ts_ms')::bigint / 1000) AS own FROM e),
			r AS (SELECT *, count(*) FILTER (WHERE NOT gone) OVER w AS deletes, count(*) FILTER (WHERE gone) OVER w AS life
				FROM m WINDOW w AS (PARTITION BY id, p ORDER BY o)),
			x AS (SELECT *, array_agg(own) FILTER (WHERE gone AND own IS NOT NULL) OVER d AS times, array_agg(kts) FILTER (WHERE gone) OVER d AS ktimes,
				array_agg(v) FILTER (WHERE v <> '__debezium_unavailable_value') OVER l AS values
				FROM r WINDOW d AS (PARTITION BY id, p, deletes ORDER BY o), l AS (PARTITION BY id, p, life ORDER BY o))
			SELECT id, CASE WHEN NOT gone THEN coalesce(values[cardinality(values)], 'null') END AS v, p, o, kts, gone,
				CASE WHEN NOT gone THEN own ELSE coalesce(times[cardinality(times)], ktimes[1]) END AS at FROM x});
	}
	else
	{
		$node->safe_psql('postgres', qq{
			CREATE TABLE logged$n AS SELECT id, v, p, o, kts, raw IS NULL AS gone, CASE WHEN raw IS NULL THEN kts ELSE $moment END AS at FROM log$n});
	}
	my $word = $by eq 'offset' ? "last_word('logged$n')" : "state_at('logged$n', 'infinity')";
	foreach my $size (@sizes)
	{
		my $table = "t${n}_$size";
		is($node->safe_psql('postgres', "SELECT string_agg(id || '=' || coalesce(v, 'null'), ' ' ORDER BY id) FROM $table"),
			$node->safe_psql('postgres', "SELECT string_agg(id || '=' || v, ' ' ORDER BY id) FROM $word"),
			"$stream->{name}: batches of $size: current table");
		next if $stream->{history} eq 'false';
		is($node->safe_psql('postgres', qq{
			SELECT m, id, v, w FROM generate_series('2023-11-14 22:13:18+00'::timestamptz, '2023-11-14 22:14:05+00', '1 s') m,
			LATERAL (SELECT coalesce(a.id, d.id) AS id, CASE WHEN a.id IS NOT NULL THEN coalesce(a.v, 'null') END AS v, d.v AS w FROM (SELECT * FROM ${table}__as_of(m)) a
				FULL JOIN state_at('logged$n', m) d ON a.id = d.id) x
			WHERE v IS DISTINCT FROM w LIMIT 5}), '', "$stream->{name}: batches of $size: every second as defined");
		is($node->safe_psql('postgres', qq{
			SELECT a.id, a.system_time, b.system_time FROM ${table}_history a JOIN ${table}_history b ON a.id = b.id
			WHERE a.system_time && b.system_time AND a.system_time <> b.system_time LIMIT 3}), '', "$stream->{name}: batches of $size: ranges do not overlap");
	}
}

done_testing();
