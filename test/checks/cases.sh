#!/bin/bash
# doc/cases.md has every case of the field, with tests that hold its id or with a reason
set -u
cd "$(dirname "$0")/../.." || exit 1
rc=0
say() { echo "$*"; rc=1; }
cases=${CASES:-../shared/cases/cases.md}
rows=$(grep -E '^\| [A-Z][0-9]{2} \|' doc/cases.md)
while IFS='|' read -r _ id _ tests notes _; do
	id=${id// /}
	files=$(grep -oE '[a-z]+/[a-z0-9_]+\.(sql|pl|spec)' <<<"$tests")
	for f in $files; do
		grep -qE "\b$id\b" "$f" || say "$id is not in $f, which doc/cases.md names"
	done
	if [ -z "$files" ]; then
		[ -n "${notes// /}" ] || say "$id has neither a test nor a reason in doc/cases.md"
		holders=$(grep -lE "\b$id\b" sql/*.sql t/*.pl specs/*.spec)
		[ -z "$holders" ] || say "$id is in $holders, which doc/cases.md does not name"
	fi
done <<<"$rows"
if [ -f "$cases" ]; then
	for id in $(grep -oE '^### [A-Z][0-9]{2}' "$cases" | cut -c5-); do
		grep -q "^| $id |" <<<"$rows" || say "$id is not in doc/cases.md"
	done
fi
exit $rc
