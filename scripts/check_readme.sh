#!/usr/bin/env bash
# scripts/check_readme.sh BIN: the list of mixers in README.md is what `train --list-mixers` prints.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/bin}
if ! diff <(awk '/^\$ train --list-mixers$/{on=1; next} /^```$/{on=0} on' README.md) <("$bin/train" --list-mixers); then
  echo "check_readme: README.md lists other mixers than $bin/train --list-mixers prints (above)" >&2
  exit 1
fi
