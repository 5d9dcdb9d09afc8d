#!/usr/bin/env bash
# scripts/check_sizes.sh [ROOT]: no source above 500 lines, no main above 120. A longer file has a seam to cut along.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

bad=0
while IFS= read -r file; do
  limit=500
  [[ $file != apps/*.cpp ]] || limit=120
  lines=$(wc -l <"$file")
  if [ "$lines" -gt "$limit" ]; then
    echo "$file:$lines: has $lines lines, $limit is the most; split it" >&2
    bad=1
  fi
done < <(for folder in lib apps test; do
  [ ! -d "$folder" ] || find "$folder" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.def' -o -name '*.inc' -o -name '*.sh' \)
done | sort)
exit $bad
