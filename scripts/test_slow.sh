#!/usr/bin/env bash
# scripts/test_slow.sh BUILD: the tests that take minutes: doctest cases marked skip() and test/slow/*_test.sh. A script
# finds the tools through QUIPU_BIN and ends with 0 (passed), 77 (skipped) or another status (failed).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
QUIPU_BIN=${QUIPU_BIN:-$PWD/$build/bin}
export QUIPU_BIN QUIPU_SOURCE_DIR=$PWD QUIPU_SLOW=1

failed=() passed=0 skipped=0
run_one() {
  local name=$1 status=0 start=$SECONDS
  shift
  echo "slow: $name"
  "$@" || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed+=("$name") ;;
  esac
  echo "slow: $name: status $status after $((SECONDS - start)) s"
}

for precision in float double; do
  run_one "unit_$precision" "$QUIPU_BIN/quipu_test_$precision" --no-skip
done
shopt -s nullglob
for script in test/slow/*_test.sh; do
  run_one "$(basename "$script" .sh)" bash "$script"
done
echo "slow: $passed passed, $skipped skipped, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} = 0 ]
