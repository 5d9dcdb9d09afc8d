#!/bin/bash
# Training throughput against PyTorch, each pair measured in turn in one run: forward, backward and AdamW, vocabulary 8192,
# batch 8 x 512, 2 threads, and the same frame on both sides (GPT-2's; RWKV-4 with its own channel mixing).
#
#   train_vs_torch.sh [CELL]...     (default: all)   REPEATS=3 STEPS=4
#
# Cells: attention-256 (4 layers, 4 heads), attention-512 (8 layers, 8 heads), the same in bf16 (bf16-256, bf16-512),
# linear-256, and against loops over time: rwkv4-256, rwkv4-512, gla-256, gsa-256 (the last two at 4 x 256).
# Sides: `tuned` is PyTorch as fast as it goes (peer_torch.sh), with our OpenBLAS kernels; `plain` as it is installed, with
# the same kernels; `haswell` the same with AVX2 kernels; `naive` is tuned with a loop that slices every step out of its
# tensors, as recurrences are usually published, where the others take all steps apart at once.
# Prints every cell as JSON on stderr; then a table of medians and ratios, with the share of what the products alone would
# allow at the rate of a large product, measured in the same run (`ceiling`).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${QUIPU_BUILD:-$here/../../build}
repeats=${REPEATS:-3} steps=${STEPS:-4}
export OMP_NUM_THREADS=2 OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}
cmake --build "$build" --target train_speed >/dev/null
cells=$(mktemp)
trap 'rm -f "$cells"' EXIT

number() { sed -E "s/.*\"$1\": *([0-9.]+).*/\1/" <<<"$2"; }
# record SIDE JSON: tokens per second (median), peak memory, and the share of the ceiling of a cell, for the table.
record() {
  echo "$2" >&2
  local share=0
  case $2 in *ceiling_share*) share=$(number ceiling_share "$2") ;; esac
  echo "$1 $(number tokens_per_s_median "$2") $(number peak_rss_bytes "$2") $share" >>"$cells"
}
ours() { record ours "$("$build/bench/train_speed" --steps "$steps" --warmup 1 "$@")"; }
torch() {
  local side=$1 variant=$1 kernels=$OPENBLAS_CORETYPE loop=()
  shift
  case $side in
    haswell) variant=plain kernels=Haswell ;;
    naive) variant=tuned loop=(--loop slices) ;;
  esac
  local result
  result=$(OPENBLAS_CORETYPE=$kernels "$here/peer_torch.sh" "$variant" "$@" "${loop[@]}" --steps "$steps" --warmup 1 | tail -n 1)
  record "$side" "$result"
}

# median SIDE COLUMN
median() { awk -v side="$1" -v c="$2" '$1==side{print $c}' "$cells" | sort -n | awk '{a[NR]=$1} END{print a[int((NR+1)/2)]}'; }

table() {
  local side
  for side in tuned naive plain haswell; do
    grep -q "^$side " "$cells" || continue
    awk -v what="$1" -v side="$side" -v a="$(median ours 2)" -v b="$(median $side 2)" -v ma="$(median ours 3)" \
      -v mb="$(median $side 3)" -v share="$(median ours 4)" 'BEGIN {
        printf "%-14s ours %7.0f tokens/s, torch %-7s %7.0f: x%.2f;  %3.0f %% of the ceiling;  peak memory %.2f against %.2f GB: %.0f %%\n",
          what, a, side, b, a / b, 100 * share, ma / 1e9, mb / 1e9, 100 * ma / mb }'
  done
}

[ $# -gt 0 ] || set -- attention-256 attention-512 bf16-256 bf16-512 linear-256 rwkv4-256 rwkv4-512 gla-256 gsa-256
small=(--dim 256 --layers 4 --heads 4) large=(--dim 512 --layers 8 --heads 8)
for cell in "$@"; do
  shape=("${small[@]}")
  [[ $cell == *-512 ]] && shape=("${large[@]}")
  frame=(--channel-mixer mlp --norm layernorm --positions learned --head tied)
  sides="tuned plain" theirs=() mine=()
  case $cell in
    attention-*) mine=(--preset gpt2) sides="tuned plain haswell" ;;
    bf16-*) mine=(--preset gpt2 --bf16) theirs=(--bf16) sides=tuned ;;
    linear-256) mine=(--mixer linear_attention "${frame[@]}") theirs=(--model linear_attention) ;;
    rwkv4-*) mine=(--mixer rwkv4 --channel-mixer rwkv_channel --head tied) theirs=(--model rwkv4) ;;
    gla-256 | gsa-256)
      mine=(--mixer "${cell%-*}" "${frame[@]}" --batch 4 --length 256) theirs=(--model "${cell%-*}" --batch 4 --length 256)
      sides="tuned naive plain"
      ;;
    *) echo "train_vs_torch: $cell: no such cell; see the head of this script" >&2 && exit 2 ;;
  esac
  : >"$cells"
  for _ in $(seq "$repeats"); do
    ours "${mine[@]}" "${shape[@]}"
    for side in $sides; do torch "$side" "${theirs[@]}" "${shape[@]}"; done
  done
  table "$cell"
done
