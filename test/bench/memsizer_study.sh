#!/usr/bin/env bash
# MemSizer's own studies (arXiv:2203.12644, figure 2 and appendix C), small: validation perplexity against the number of
# slots, the number of heads, and where the keys come from. 2 layers of width 128, 1,000 steps of 8 x 256 bytes of the
# sample corpus, Persuasion held out. Prints tables in Markdown; JSON lines on stderr. SEEDS="1 2" by default: a cell is
# their mean, with half their range. About 20 minutes on 2 cores.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$here/../../data
PATH=${QUIPU_BIN:-$here/../../build/bin}:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=${STEPS:-1000}

convert text --quiet -o "$work/books.h5" --tokenizer bytes --valid "$data/persuasion.txt.gz" \
  "$data/pride_and_prejudice.txt.gz" "$data/kjv.txt.gz"

# cell OPTIONS...: mean and half the range of the validation perplexity over the seeds.
cell() {
  for seed in ${SEEDS:-1 2}; do
    rm -f "$work"/m.*
    train "$work/books.h5" -o "$work/m.h5" --mixer memsizer --layers 2 --dim 128 --batch 8 --seq-len 256 --steps "$steps" \
      --lr 2e-3 --warmup 50 --eval-every "$steps" --seed "$seed" --quiet --json "$@" |
      sed "s/^{/{\"options\":\"$*\",\"seed\":$seed,/" | tee /dev/stderr
  done | sed 's/.*"best_valid_perplexity":\([0-9.]*\).*/\1/' |
    awk '{ s += $1; if (NR == 1 || $1 < lo) lo = $1; if ($1 > hi) hi = $1 } END { printf "%.3f +- %.3f", s / NR, (hi - lo) / 2 }'
}

# table NAME FIXED_OPTION... -- VALUES, the value taking the place of %.
table() {
  local name=$1 options=() value
  shift
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  shift
  printf '\n| %s | perplexity per byte |\n|---|---|\n' "$name"
  for value; do printf '| %s | %s |\n' "$value" "$(cell "${options[@]//%/$value}")"; done
}

table slots --heads 4 --set slots=% -- 4 8 16 32 64
table heads --heads % --set slots=32 -- 1 2 4 8
table keys --heads 4 --set slots=32 --set keys=% -- learned fixed input
