#!/bin/bash
# every format has its page: options, a table of types, errors and an example
set -u
cd "$(dirname "$0")/../.." || exit 1
rc=0
say() { echo "$*"; rc=1; }
names=$(sed -nE 's/^	\.name = "([a-z-]+)",$/\1/p' src/format/*.c)
[ -n "$names" ] || say "no format is found in src/format"
for name in $names; do
	page=$(grep -E "^\| \`$name\` \|" doc/reference/formats.md | grep -oE '\([a-z0-9-]+\.md\)' | head -n 1 | tr -d '()')
	[ -n "$page" ] || { say "format $name has no line in doc/reference/formats.md that names its page"; continue; }
	page=doc/reference/$page
	[ -f "$page" ] || { say "format $name: there is no $page"; continue; }
	for part in '^## .*[Oo]ptions' '^## Types|^## Which column' '^## .*[Ee]rrors' '^```sql'; do
		grep -qE "$part" "$page" || say "format $name: $page has no part $part"
	done
	# every option of the format's own list stands there
	file=$(grep -lE "^	\.name = \"$name\"," src/format/*.c | head -n 1)
	for option in $(sed -nE 's/^	\{"([a-z_]+)", "(bool|int|text|regex|char|[A-Za-z0-9_|-]+)", ".*/\1/p' "$file"); do
		grep -qE "\`$option\`" "$page" || say "format $name: $page does not tell of option $option"
	done
done
exit $rc
