#!/usr/bin/env bash
# scripts/check_paths.sh [ROOT]: no path of one machine (a home folder, a scratch folder) in what the project ships.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# In a checkout the tracked files count, in an unpacked archive all of them.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -n "$(git ls-files | head -n 1)" ]; then
  files=(git ls-files -z --cached --others --exclude-standard)
else
  files=(find . -type f -not -path './build*' -not -path './.git/*' -print0)
fi
pattern='(^|[^[:alnum:]_.})~-])/(home|root|work|farm|scratch|Users|tmp)/[[:alnum:]]'
if "${files[@]}" | xargs -0 -r grep -nIE "$pattern" -- /dev/null >&2; then
  echo "check_paths: the lines above name a path of one machine; use a relative path, or mktemp" >&2
  exit 1
fi
