#!/usr/bin/env bash
# Installing, plainly and with a prefix for the names: every tool runs from its new place and has its man page and
# completion under its new name.
set -euo pipefail
root=${QUIPU_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=$(dirname "${QUIPU_BIN:-$root/build/bin}")
tools=()
for source in "$root"/apps/*.cpp; do
  [ ! -f "$source" ] || tools+=("$(basename "$source" .cpp)")
done
[ ${#tools[@]} -gt 0 ] || { echo "skipped: no tools yet"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2 && exit 1; }

for prefix in "" quipu-; do
  PROGRAM_PREFIX=$prefix cmake --install "$build" --prefix "$folder/at-$prefix" >"$folder/log" 2>&1 ||
    fail "cmake --install: $(tail -n 5 "$folder/log")"
  for tool in "${tools[@]}"; do
    name=$prefix$tool
    "$folder/at-$prefix/bin/$name" --version >"$folder/version" || fail "$name --version: status $?"
    [ -s "$folder/version" ] || fail "$name --version prints nothing"
    page=$folder/at-$prefix/share/man/man1/$name.1
    sed 's/\\-/-/g' "$page" | grep -A1 '^\.SH "\?NAME"\?$' | grep -q "^$name - " || fail "$page: its NAME is not $name"
    grep -qE "^complete .* $name\$" "$folder/at-$prefix/share/bash-completion/completions/$name" ||
      fail "the completion of $name is not for $name"
  done
  [ -x "$folder/at-$prefix/share/quipu/slurm/summary.sh" ] || fail "the job scripts are not installed"
done
[ "$(find "$folder/at-quipu-/bin" -type f ! -name 'quipu-*' | wc -l)" = 0 ] || fail "a name without the prefix"
echo "install_test: passed"
