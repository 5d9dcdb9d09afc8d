#!/usr/bin/env bash
# Reading speed of prompts against the size of their chunks, on one thread and on two: see prompt_chunks.cpp.
set -euo pipefail
bench=${QUIPU_BENCH:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/bench}
for threads in 1 2; do
  echo "threads: $threads"
  OMP_NUM_THREADS=$threads "$bench/prompt_chunks" "$@"
done
