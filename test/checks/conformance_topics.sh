#!/bin/bash
# what Flink's queries, metadata, scans and sinks gave over topics: equal, or explained in doc/flink.md
cd "$(dirname "$0")/../.." || exit 1
PATH=$("${PG_CONFIG:-pg_config}" --bindir):$PATH exec test/conformance_topics
