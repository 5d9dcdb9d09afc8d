#!/usr/bin/env bash
# scripts/check_format.sh [--fix]: clang-format 14 over lib, apps and test: fails where it would change a line, or with
# --fix changes it. Versions format differently, so where version 14 is absent the check is left out, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=""
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then tool=$candidate && break; fi
done
if [ -z "$tool" ]; then
  echo "check_format: left out: no clang-format 14 here (Debian package clang-format-14)" >&2
  [ "${1:-}" != --fix ] || exit 1
  exit 0
fi
sources() { find lib apps test -type f \( -name '*.h' -o -name '*.cpp' \) -print0 2>/dev/null; }
if [ "${1:-}" = --fix ]; then
  sources | xargs -0 -r "$tool" -i
  exit
fi
# Not --dry-run: version 14 then also reports namespace comments that it would replace by themselves.
bad=0
while IFS= read -r -d '' file; do
  "$tool" "$file" | diff -u --label "$file" "$file" --label "$file, formatted" - >&2 || bad=1
done < <(sources)
[ $bad = 0 ] || echo "check_format: 'make format' mends the lines above" >&2
exit $bad
