#!/bin/bash
# builds without a warning with clang too
set -eu
cd "$(dirname "$0")/../.."
dir=$UPSERT_KAFKA_OUT/clang
mkdir -p "$dir"
cp -a --parents Makefile ./*.control ./*.sql $(find src -name '*.[ch]') "$dir/"
make -s -j"$(nproc)" -C "$dir" PG_CONFIG="$PG_CONFIG" with_llvm=no CC=clang COPT=-Werror
