#!/usr/bin/env bash
# Multi-query associative recall against width, state and pairs, as the paper on Gated Slot Attention tells it
# (arXiv:2409.07146): two layers, T of 64 and 256 with T/16 pairs, best of four learning rates, then two more seeds.
#   mqar.sh FOLDER [OPTIONS OF recall-bench sweep]    goes on where it was stopped
# FOLDER gets a sweep for each T: its results.tsv, costs.tsv and recall.svg. WIDTHS="64 128", LENGTHS="64 256" and
# MIXERS choose parts of the grid. One thread a cell; --jobs N runs N cells at a time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${QUIPU_BIN:-$here/../../build/bin}
folder=${1:?a folder}
shift
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
mkdir -p "$folder"
mixers=${MIXERS:-attention gsa gla retnet hgrn2 mamba}

own=()
[ "$mixers" = mamba ] || own+=(--set use_short_conv=true)  # Mamba has its own
# A head of RetNet forgets at a fixed pace, one alone within some thirty tokens.
[[ " $mixers " != *" retnet "* ]] || own+=(--set retnet.heads=4)

for length in ${LENGTHS:-64 256}; do
  # A step has 2,048 tokens with 128 queries. 64 keys and 64 values, one head, no channel mixer: a step costs little.
  # Everywhere a convolution of four tokens stands before the memory.
  "$bin/recall-bench" sweep "$folder/$length" --task mqar --vocab 128 --length "$length" --pairs $((length / 16)) \
    --train 200000 --mixer "${mixers// /,}" --dim "$(tr ' ' , <<<"${WIDTHS:-64 128}")" --layers 2 --heads 1 \
    --channel-mixer none "${own[@]}" --lr 5e-4,1e-3,2e-3,4e-3 --seeds 1,2,3 \
    --batch $((2048 / length)) --steps 2000 --warmup 100 --eval-every 200 --stop-below 0.003 \
    --plot "$folder/recall-$length.svg" "$@"
done
