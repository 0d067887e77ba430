#!/bin/bash
# the module binds to no symbol that server and libraries both export
# jansson's json_object() would land in the server's function of that name and crash it.
set -eu
undefined=$(nm -D --undefined-only "$UPSERT_KAFKA_SO" | awk '{print $NF}' | sed 's/@.*//')
[ -n "$undefined" ]
if grep -x json_object <<<"$undefined"; then
	echo "json_object is undefined in $UPSERT_KAFKA_SO: write json_pack(\"{}\")"
	exit 1
fi
