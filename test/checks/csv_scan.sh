#!/bin/bash
# the splitter of CSV records reads nothing past a record's end, whatever the bytes are
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-cc} -g -O1 -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all -Isrc \
	-o "$dir/csv_scan_fuzz" test/csv_scan_fuzz.c src/format/csv_scan.c
"$dir/csv_scan_fuzz" "${RECORDS:-500000}"
