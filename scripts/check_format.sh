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
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)
find lib apps test -type f \( -name '*.h' -o -name '*.cpp' \) -print0 2>/dev/null | xargs -0 -r "$tool" "${mode[@]}" || {
  echo "check_format: 'make format' mends the lines above" >&2
  exit 1
}
