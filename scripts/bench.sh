#!/usr/bin/env bash
# scripts/bench.sh [NAME...]: runs test/bench/NAME.sh, or all of them; each says what it measures and against what.
set -euo pipefail
cd "$(dirname "$0")/.."
QUIPU_BIN=${QUIPU_BIN:-$PWD/build/bin}
export QUIPU_BIN QUIPU_SOURCE_DIR=$PWD

shopt -s nullglob
if [ $# -gt 0 ]; then
  scripts=("${@/#/test/bench/}")
  scripts=("${scripts[@]/%/.sh}")
else
  scripts=(test/bench/*.sh)
fi
[ ${#scripts[@]} -gt 0 ] || { echo "bench: test/bench has no scripts" >&2; exit 1; }
for script in "${scripts[@]}"; do
  echo "bench: $script"
  bash "$script"
done
