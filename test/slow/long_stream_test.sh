#!/usr/bin/env bash
# Streams of 100,000 tokens and extreme inputs through every mixer of fixed memory: float against double.
set -euo pipefail
QUIPU_STREAMS=$(mktemp -d)
export QUIPU_STREAMS
trap 'rm -rf "$QUIPU_STREAMS"' EXIT
for precision in double float; do
  "$QUIPU_BIN/quipu_test_$precision" --no-skip -tc='streams:*'
done
