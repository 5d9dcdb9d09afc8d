#!/usr/bin/env bash
# scripts/check_manuals.sh BIN: every tool has a man page that equals what its parser prints (`TOOL --dump-man`), and
# that groff reads without a warning.
set -euo pipefail
bin=$(cd "${1:?the folder of the tools}" && pwd)
cd "$(dirname "$0")/.."

bad=0
shopt -s nullglob
for source in apps/*.cpp; do
  tool=$(basename "$source" .cpp)
  page=man/$tool.1
  if [ ! -f "$page" ]; then
    echo "$page: missing; make it: $tool --dump-man > $page" >&2
    bad=1
  elif ! "$bin/$tool" --dump-man | diff -u --label "$page" "$page" --label "$tool --dump-man" - >&2; then
    echo "$page: not in step with the parser; renew it: $tool --dump-man > $page" >&2
    bad=1
  fi
done
if command -v groff >/dev/null; then
  for page in man/*.1; do
    warnings=$(groff -Tutf8 -man -ww -z "$page" 2>&1)
    [ -z "$warnings" ] || { echo "$warnings" >&2; bad=1; }
  done
else
  echo "check_manuals: man pages not read for warnings: no groff here (Debian package groff-base)" >&2
fi
exit $bad
