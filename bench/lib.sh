# lib.sh: shared by the commands of this folder, sourced by each.
#   N, K   messages and keys of the data set (1000000, 100000)
#   RUNS   how often each task runs; the median is printed (3)
# A PostgreSQL and a Kafka of their own are started (test/lab, beside the one of the tests) and left running;
# `bench/all down` stops them.  Results need an idle machine.
set -euo pipefail
bench=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
root=$(dirname "$bench")
N=${N:-1000000}
K=${K:-100000}
RUNS=${RUNS:-3}
work=$bench/work
missed=0

# what the servers get: no fsync for either side of a comparison, nothing in the background that varies
export UPSERT_KAFKA_LAB=${UPSERT_KAFKA_LAB:-$(env -u UPSERT_KAFKA_LAB "$root/test/lab" dir)-bench}
export UPSERT_KAFKA_LAB_BUFFERS=${UPSERT_KAFKA_LAB_BUFFERS:-2GB} UPSERT_KAFKA_LAB_HEAP=1g UPSERT_KAFKA_LAB_TIER=4 COPT=
export UPSERT_KAFKA_LAB_CONF=${UPSERT_KAFKA_LAB_CONF:-"work_mem = '64MB'
max_wal_size = '8GB'
checkpoint_timeout = '30min'
synchronous_commit = off
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0"}

bench_up() {
	"$root/test/setup" >&2
	"$root/test/lab" up >&2
	eval "$("$root/test/lab" env)"
	export PGDATABASE=bench PGOPTIONS='-c client_min_messages=warning -c datestyle=ISO -c timezone=UTC'
	make -s -C "$bench/src" BIN="$work/bin" >&2
	postmaster=$(head -n 1 "$UPSERT_KAFKA_LAB/data/postmaster.pid")
	PATH=$work/bin:$PATH
}

sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }

# A database of its own for each task, so that nothing of the last one works on in the background
fresh_database() { # fresh_database NAME
	sql -d postgres -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1"
	export PGDATABASE=$1
	sql -c 'CREATE EXTENSION upsert_kafka' \
		-c "CREATE SERVER kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '$BROKER')"
}

columns='name text, amount numeric(12,2), region text, updated_at timestamp'

source_table() { # source_table NAME TOPIC CONNECTOR
	case $3 in
	upsert-kafka) sql -c "CREATE FOREIGN TABLE $1 (id bigint OPTIONS (key 'true'), $columns) SERVER kafka
		OPTIONS (connector 'upsert-kafka', topic '$2', key_format 'json', value_format 'json')" ;;
	kafka) sql -c "CREATE FOREIGN TABLE $1 (id bigint, $columns) SERVER kafka OPTIONS (connector 'kafka', topic '$2', value_format 'json')" ;;
	esac
}

data_set() { # data_set N K: fills the topic once; sets topic and facts (messages, tombstones, rows, versions, amount)
	topic=bench_u1u_$1_$2
	eval "$(gen -n "$1" -k "$2" facts)"
	if [ "$(kt ends "$topic" 2>/dev/null | awk '{n += $3 - $2} END {print n + 0}')" != "$messages" ]; then
		kt create "$topic" -p 4 --fresh
		gen -n "$1" -k "$2" produce "$topic"
	fi
}

truth() { # truth N K: tables truth.state and truth.versions, from the generator
	sql -c 'CREATE SCHEMA truth' -c "CREATE TABLE truth.state (id bigint, $columns)" \
		-c "CREATE TABLE truth.versions (id bigint, valid_from timestamptz, valid_to timestamptz, $columns)"
	gen -n "$1" -k "$2" state | sql -c 'COPY truth.state FROM STDIN CSV'
	gen -n "$1" -k "$2" versions | sql -c 'COPY truth.versions FROM STDIN CSV'
	sql -c 'ANALYZE truth.state, truth.versions'
}

row_hash="count(*), sum(hashtextextended(concat_ws('|', id, name, amount, region, updated_at), 0)::numeric)"
version_hash="count(*), sum(hashtextextended(concat_ws('|', id, lo, hi, name, amount, region, updated_at), 0)::numeric)"

check_state() { # check_state TABLE: ok or WRONG
	[ "$(sql -c "SELECT $row_hash FROM $1")" = "$(sql -c "SELECT $row_hash FROM truth.state")" ] && echo ok || echo WRONG
}
check_history() { # check_history HISTORY-TABLE: ok or WRONG
	local ours theirs
	ours=$(sql -c "SELECT $version_hash FROM (SELECT *, lower(system_time) lo, coalesce(upper(system_time), 'infinity') hi FROM $1) v")
	theirs=$(sql -c "SELECT $version_hash FROM (SELECT *, valid_from lo, valid_to hi FROM truth.versions) v")
	[ "$ours" = "$theirs" ] && echo ok || { echo "history: $ours, expected $theirs" >&2; echo WRONG; }
}

# metered COMMAND...: runs it; wall, cpu_s and rss_mb tell its cost in the cluster; its output is in $work/out
metered() {
	meter "$postmaster" "$@" > "$work/out" || { cat "$work/out" >&2; return 1; }
	eval "$(tail -n 1 "$work/out")"
	sed -i '$d' "$work/out"
}

# Costs of several runs: add NAME after each; median NAME sets wall, cpu_s, rss_mb to those of the median run
declare -A costs=()
add() { costs[$1]="${costs[$1]:-}$wall $cpu_s $rss_mb"$'\n'; }
median() {
	local line
	line=$(printf '%s' "${costs[$1]}" | sort -n | awk '{a[NR] = $0} END {print a[int((NR + 1) / 2)]}')
	read -r wall cpu_s rss_mb <<<"$line"
}
rate() { awk -v n="$1" -v s="$2" 'BEGIN {printf "%.0f", n / s}'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}'; }

# floor VALUE OP LIMIT: prints ok or MISSED
held() {
	if awk -v a="$1" -v b="$3" "BEGIN {exit !(a $2 b)}"; then echo ok; else echo MISSED; fi
}
# on a machine that is not idle, time spent says more than time passed
line() { # line ours|limit TASK METRIC VALUE UNIT [MORE]: costs are those of wall, cpu_s, rss_mb
	local more=${6:-}
	[ "$1" != limit ] || limit_cpu=$cpu_s
	case $more in *of_limit=*) more="of_limit_cpu=$(ratio "$limit_cpu" "$cpu_s") $more" ;; esac
	echo "$1 $2 $3 $4 $5 cpu_s=$cpu_s rss_mb=$rss_mb $more" | sed 's/ *$//' | tee -a "$work/results"
	case "${6:-}" in *MISSED* | *WRONG*) missed=1 ;; esac
}

limit_consume() { # one plain consume of $topic
	local m
	m=$(limit "$topic")
	eval "$m"
	add limit
}
# what the last task's worker holds would count in the next one's memory
finish() {
	sql -d postgres -c "DROP DATABASE IF EXISTS $PGDATABASE WITH (FORCE)"
	exit "$missed"
}
mkdir -p "$work"
