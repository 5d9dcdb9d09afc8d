#!/bin/bash
# Training throughput of attention, linear attention and Gated Slot Attention in the same block as the length grows:
# d=256, 4 layers, 4 heads, vocabulary 8192, 4096 tokens a step or one sequence, 2 threads. JSON lines on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${QUIPU_BUILD:-$here/../../build}
export OMP_NUM_THREADS=2 OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}
cmake --build "$build" --target train_speed >/dev/null
printf '%-8s %-18s %12s %14s\n' length mixer tokens/s "of attention's"
for length in ${LENGTHS:-512 2048 8192}; do
  attention=
  for mixer in attention linear_attention gsa; do
    batch=$((length < 4096 ? 4096 / length : 1))
    options=(--channel-mixer mlp --norm layernorm --positions learned --head tied)
    [[ $mixer == attention ]] && options=(--preset gpt2)
    line=$("$build/bench/train_speed" --mixer $mixer "${options[@]}" --batch $batch --length "$length" --steps 4 --warmup 1)
    echo "$line" >&2
    speed=$(sed 's/.*"tokens_per_s_median": *\([0-9.]*\).*/\1/' <<<"$line")
    attention=${attention:-$speed}
    printf '%-8s %-18s %12s %14s\n' "$length" "$mixer" "$speed" "x$(awk "BEGIN{printf \"%.2f\", $speed / $attention}")"
  done
done
