#!/usr/bin/env bash
# scripts/fuzz.sh BUILD [SECONDS [NAME..]]: runs the fuzzers in BUILD/bin (or those named: gguf, pickle, ...), each for
# SECONDS (60), from the seeds that make_corpus writes and what earlier runs found in BUILD/corpus. Time, memory and
# single allocations are bounded. What breaks a reader is kept in BUILD/findings; the status is then 1.
set -euo pipefail
build=${1:?the build folder}
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
root=$(cd "$(dirname "$0")/.." && pwd)
"$build/bin/make_corpus" "$build/corpus" "$root/test/store/foreign"
mkdir -p "$build/findings"
[ $# -gt 0 ] || set -- $(cd "$build/bin" && ls | sed -n 's/_fuzz$//p')
bad=0
for name in "$@"; do
  echo "fuzz: $name, $seconds s" >&2
  nice -n 19 "$build/bin/${name}_fuzz" "$build/corpus/$name" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
    -rss_limit_mb=1024 -malloc_limit_mb=64 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$build/findings/$name-" || bad=1
done
exit $bad
