#!/bin/bash
# the sources keep the house's rules: who includes what, no leftovers
set -u
cd "$(dirname "$0")/../.." || exit 1
rc=0
none() { # none TEXT GREP-ARGS...: nothing may be found
	local text=$1 found
	shift
	found=$(grep -I --exclude-dir=work "$@" 2>/dev/null) || return 0
	printf '%s:\n%s\n' "$text" "$found"
	rc=1
}
none "librdkafka is src/kafka's alone" -rnE '#include.*rdkafka\.h' src --include='*.[ch]' --exclude-dir=kafka
none "libcurl is src/registry's alone" -rnE '#include.*curl\.h' src --include='*.[ch]' --exclude-dir=registry
for f in $(grep -rlE '#include.*(rdkafka|jansson|curl)\.h' src); do
	none "headers that clash with the server's" -nH 'utils/builtins\.h' "$f"
done
none "json_object() is the server's function" -rnE '\bjson_object\s*\(' src
none "version tests belong into compat.h" -rnE 'PG_VERSION_NUM' src --include='*.h' --exclude=compat.h
none "leftovers" -rnwE 'TODO|FIXME|XXX|HACK' --exclude='layers.sh' Makefile README.md src sql specs t test/lab test/run test/kt.c test/checks bench doc upsert_kafka--1.0.sql
none "paths of a machine" -rnE '(^|[^A-Za-z0-9_.])/(root|home)/' --exclude='layers.sh' .ci Makefile README.md CHANGELOG.md src sql expected specs t test/lab test/run test/setup test/matrix test/checks bench/src doc
none "white space at the end of lines" -rnE '[ 	]+$' src test/lab test/run test/kt.c upsert_kafka--1.0.sql --include='*.[ch]' --include='*.sql' --include=lab --include=run
exit $rc
