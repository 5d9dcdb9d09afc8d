#!/usr/bin/env bash
# Memory across segments, from beginning to end: memory tokens learn to copy what stands in earlier segments, where the same
# Transformer without a memory stays at chance. The first stages of test/repro/segments.sh copy12-rmt and copy12-none.
source "$(dirname "$0")/../apps/frame.sh"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} QUIPU_BIN=$bin STAGES="4:400 8:600"
bash "$root/test/repro/segments.sh" copy12-rmt 1 2>err | tee rmt.tsv || fail "$(cat err)"
bash "$root/test/repro/segments.sh" copy12-none 1 2>err | tee none.tsv || fail "$(cat err)"
# 8 symbols said again twice, 24 tokens in segments of 12: all that is scored lies in sight but the first symbols, which
# are in the segment before.
within() { awk -v x="$(cut -f4 "$1")" -v low="$2" -v high="$3" 'BEGIN { exit !(x >= low && x <= high) }' || fail "$1: $(cat "$1")"; }
within rmt.tsv 0.99 1
within none.tsv 0.05 0.65
echo "segments_test: passed"
