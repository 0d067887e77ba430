#!/bin/bash
# every file of sql/ is in test/schedule and has an expected result
set -u
cd "$(dirname "$0")/../.." || exit 1
rc=0
listed=$(sed 's/#.*//' test/schedule | tr -s ' \n' '\n' | grep .)
for f in sql/*.sql; do
	n=$(basename "$f" .sql)
	grep -qx "$n" <<<"$listed" || { echo "$f is not in test/schedule"; rc=1; }
done
for n in $listed; do
	[ -f "sql/$n.sql" ] || { echo "test/schedule names $n, there is no sql/$n.sql"; rc=1; }
	[ -f "expected/$n.out" ] || { echo "no expected/$n.out"; rc=1; }
done
for f in specs/*.spec; do
	[ ! -e "$f" ] || [ -f "expected/$(basename "$f" .spec).out" ] || { echo "no expected result of $f"; rc=1; }
done
[ "$(head -n 1 <<<"$listed")" = install ] && [ "$(tail -n 1 <<<"$listed")" = uninstall ] || { echo "install is the first, uninstall the last"; rc=1; }
exit $rc
