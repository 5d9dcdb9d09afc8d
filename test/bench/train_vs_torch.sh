#!/bin/bash
# Training throughput against PyTorch, each pair measured in turn in one run: forward, backward and AdamW of the
# GPT-2-style model, vocabulary 8192, batch 8 x 512, 2 threads. `tuned` is PyTorch as fast as it goes (peer_torch.sh), with
# our OpenBLAS kernels; `plain` as it is installed, with the same kernels; `haswell` the same with AVX2 kernels.
#
#   train_vs_torch.sh [256|512|gsa]...     (default: 256 512)   REPEATS=3 STEPS=4
#
# Prints every cell as JSON on stderr and a table of medians and ratios. `gsa` compares Gated Slot Attention with its
# naive recurrence (a loop over time) at d=256.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${QUIPU_BUILD:-$here/../../build}
repeats=${REPEATS:-3} steps=${STEPS:-4}
export OMP_NUM_THREADS=2 OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}
cmake --build "$build" --target train_speed >/dev/null
cells=$(mktemp)
trap 'rm -f "$cells"' EXIT

# record SIDE JSON: tokens per second (median) and peak memory of a cell, for the table.
record() {
  echo "$2" >&2
  local number='s/.*"'
  echo "$1 $(sed "${number}tokens_per_s_median\": *\([0-9.]*\).*/\1/" <<<"$2") $(sed "${number}peak_rss_bytes\": *\([0-9.]*\).*/\1/" <<<"$2")" >>"$cells"
}
ours() { record "ours" "$("$build/bench/train_speed" --steps "$steps" --warmup 1 "$@")"; }
torch() {
  local side=$1 variant=${1/haswell/plain} kernels=$OPENBLAS_CORETYPE
  shift
  [[ $side == haswell ]] && kernels=Haswell
  record "$side" "$(OPENBLAS_CORETYPE=$kernels "$here/peer_torch.sh" "$variant" "$@" --steps "$steps" --warmup 1 | tail -n 1)"
}

# median SIDE COLUMN
median() { awk -v side="$1" -v c="$2" '$1==side{print $c}' "$cells" | sort -n | awk '{a[NR]=$1} END{print a[int((NR+1)/2)]}'; }

table() {
  local side
  for side in tuned plain haswell; do
    grep -q "^$side " "$cells" || continue
    awk -v what="$1" -v side="$side" -v a="$(median ours 2)" -v b="$(median $side 2)" -v ma="$(median ours 3)" -v mb="$(median $side 3)" \
      'BEGIN{printf "%-10s ours %7.0f tokens/s, torch %-7s %7.0f: x%.2f;  peak memory %.2f against %.2f GB: %.0f %%\n", what, a, side, b, a/b, ma/1e9, mb/1e9, 100*ma/mb}'
  done
}

for cell in "${@:-256 512}"; do
  for size in $cell; do
    : >"$cells"
    for _ in $(seq "$repeats"); do
      case $size in
        256) shape=(--dim 256 --layers 4 --heads 4) ;;
        512) shape=(--dim 512 --layers 8 --heads 8) ;;
        gsa) ;;
        *) echo "train_vs_torch: $size: no such cell; there are 256, 512, gsa" >&2; exit 2 ;;
      esac
      if [[ $size == gsa ]]; then
        ours --mixer gsa --channel-mixer mlp --norm layernorm --positions learned --head tied --batch 4 --length 256
        torch plain --model gsa --batch 4 --length 256
      else
        ours --preset gpt2 "${shape[@]}"
        for side in tuned plain haswell; do torch $side "${shape[@]}"; done
      fi
    done
    table "d=$size"
  done
done
