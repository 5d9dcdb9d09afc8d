#!/usr/bin/env bash
# scripts/check_readme.sh [--update] BIN: the list of mixers in README.md is what `train --list-mixers` prints;
# --update puts it there.
set -euo pipefail
cd "$(dirname "$0")/.."
update=false
[[ ${1:-} == --update ]] && update=true && shift
bin=${1:-build/bin}
if $update; then
  new=$(mktemp)
  trap 'rm -f "$new"' EXIT
  awk -v list="$("$bin/train" --list-mixers)" '
    /^\$ train --list-mixers$/ { print; print list; skip = 1; next }
    /^```$/ { skip = 0 }
    !skip' README.md >"$new"
  cat "$new" >README.md
elif ! diff <(awk '/^\$ train --list-mixers$/{on=1; next} /^```$/{on=0} on' README.md) <("$bin/train" --list-mixers); then
  echo "check_readme: README.md lists other mixers than $bin/train --list-mixers prints (above);" \
    "scripts/check_readme.sh --update puts that there" >&2
  exit 1
fi
