#!/bin/bash
# without libcurl there is a module, too; formats that ask a registry say what is missing
set -eu
cd "$(dirname "$0")/../.."
# the one file that libcurl makes a difference to
gcc=${CC:-$("$PG_CONFIG" --cc)}
object=$UPSERT_KAFKA_OUT/no_curl.o
# shellcheck disable=SC2046,SC2086
$gcc $("$PG_CONFIG" --cppflags) -Isrc -I"$("$PG_CONFIG" --includedir-server)" -O1 -fPIC -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
	-c src/registry/http.c -o "$object"
if nm --undefined-only "$object" | grep curl_; then exit 1; fi
grep -aq 'was built without libcurl' "$object"
