#!/usr/bin/env bash
# The same programs on a processor with AVX2 and nothing wider, which an emulator stands in for: it stops at the first
# instruction that such a processor does not have. Training, evaluation and drawing give what they give here.
# shellcheck source=test/apps/frame.sh
source "$(dirname "$0")/../apps/frame.sh"
command -v qemu-x86_64 >/dev/null || { echo "skipped: no qemu-x86_64 (package qemu-user)"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: not an x86-64 machine"; exit 77; }
unset OPENBLAS_CORETYPE
narrow() { qemu-x86_64 -cpu Haswell-noTSX "$@" 2> >(grep -v '^qemu-x86_64: warning' >&2); }
export OMP_NUM_THREADS=1

narrow "$bin/train" --version >version
said "^SIMD +AVX2 " version
said "^BLAS .* Haswell kernels" version

for _ in $(seq 40); do echo "The quick brown fox jumps over the lazy dog, and the dog sleeps."; done >text.txt
"$bin/convert" text text.txt --valid 0.1 -o text.h5 >/dev/null 2>&1
for mixer in gsa rwkv7 attention; do
  run=(--mixer $mixer --dim 32 --layers 1 --heads 2 --batch 2 --seq-len 32 --steps 3 --quiet --json)
  "$bin/train" text.h5 -o here.h5 "${run[@]}" >here.json
  narrow "$bin/train" text.h5 -o narrow.h5 "${run[@]}" >narrow.json
  for tool in "eval-ppl here.h5 text.h5 --split valid" "eval-ppl narrow.h5 text.h5 --split valid"; do
    # shellcheck disable=SC2086
    "$bin"/$tool --json --quiet >"ppl.$(cut -d' ' -f2 <<<"$tool")"
  done
  # shellcheck disable=SC2086
  narrow "$bin"/eval-ppl narrow.h5 text.h5 --split valid --json --quiet >ppl.narrow
  nats() { grep -oE '"nats_per_token":[^,}]*' "$1" | head -n 1 | cut -d: -f2; }
  for other in ppl.narrow.h5 ppl.narrow; do
    awk -v a="$(nats ppl.here.h5)" -v b="$(nats $other)" 'BEGIN { exit !(a > 1 && (a - b) ^ 2 < 1e-6) }' ||
      fail "$mixer: $(nats ppl.here.h5) here, $(nats $other) in $other"
  done
  draw=(here.h5 "The quick" --tokens 8 --temperature 0)
  "$bin/generate" "${draw[@]}" >here.txt 2>err || fail "$(cat err)"
  narrow "$bin/generate" "${draw[@]}" >narrow.txt 2>err || fail "$(cat err)"
  cmp here.txt narrow.txt || fail "$mixer draws another text"
  rm -f here.h5 narrow.h5
done
echo "avx2_test: passed"
