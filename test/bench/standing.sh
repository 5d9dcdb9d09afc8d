#!/usr/bin/env bash
# The standing benchmark: training, reading and drawing with every mixer, measured by `profile` side by side, and the peers
# that are installed (PyTorch, peer_torch.sh). d=256, 4 layers, vocabulary 8192, 2 threads; training on 8 x 512 tokens,
# reading 2,048 tokens, drawing after 2,048 tokens.
#   standing.sh      MIXERS="gsa gla" takes these alone; TIME=1s is the time for a cell's repeats; OUT=build/bench
# Writes OUT/standing-CPU.json with all figures, and OUT/standing-CPU.md, the table, which it also prints.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${QUIPU_BIN:-$here/../../build/bin}
out=${OUT:-$here/../../build/bench}
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
mixers=${MIXERS:-all}
shape=(--dim 256 --layers 4 --vocab 8192 --threads 2)
cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
cpu=${cpu:-$(uname -m)}
name=$(tr -cs 'A-Za-z0-9\n' - <<<"$cpu" | sed 's/^-//; s/-$//')
mkdir -p "$out"

# measure MODE LENGTH BATCH: a line of JSON.
measure() {
  "$bin/profile" --mixer "${mixers// /,}" "${shape[@]}" --mode "$1" --lengths "$2" --batch "$3" --time "${TIME:-1s}" --json --quiet
}
train=$(measure train 512 8)
prefill=$(measure prefill 2048 1)
decode=$(measure decode 2048 1)

peers=()
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  for peer in gpt linear_attention rwkv4 gla gsa; do
    peers+=("$("$here/peer_torch.sh" tuned --model $peer --steps 3 --warmup 1 | tail -n 1)")
  done
else
  echo "standing: no PyTorch to compare with (python3-torch)" >&2
fi
{
  printf '{"schema":"quipu-standing-1","cpu":"%s","train":%s,"prefill":%s,"decode":%s,"peers":[' "$cpu" "$train" "$prefill" "$decode"
  (IFS=, && printf '%s' "${peers[*]}")
  printf ']}\n'
} >"$out/standing-$name.json"

# figure NAME: that of each object on stdin, a line.
figure() { sed -nE "s/.*\"$1\": ?\"?([^,\"}]*).*/\1/p"; }
rows() { grep -oE '\{"mixer":[^}]*"tokens_per_s":[^}]*\}' <<<"$1"; }
row() { rows "$1" | grep -F "\"mixer\":\"$2\"," || true; }
# cell ROW: tokens/s, and the share of the ceiling.
cell() {
  [ -n "$1" ] || { echo "-" && return; }
  awk -v t="$(figure tokens_per_s <<<"$1")" -v s="$(figure ceiling_share <<<"$1")" 'BEGIN { printf "%.0f (%.0f %%)", t, 100 * s }'
}
{
  echo "| mixer | training, tokens/s | peak memory, MB | reading, tokens/s | drawing, tokens/s | state, bytes |"
  echo "|---|---|---|---|---|---|"
  rows "$train" | figure mixer | while read -r mixer; do
    t=$(row "$train" "$mixer") p=$(row "$prefill" "$mixer") d=$(row "$decode" "$mixer")
    printf '| `%s` | %s | %s | %s | %s | %s |\n' "$mixer" "$(cell "$t")" \
      "$(awk -v b="$(figure resident_bytes <<<"$t")" 'BEGIN { printf "%.0f", b / 1e6 }')" "$(cell "$p")" "$(cell "$d")" \
      "$(figure state_bytes <<<"$d")"
  done
  for peer in "${peers[@]}"; do
    printf '| PyTorch, %s%s | %.0f | %.0f | | | |\n' "$(figure model <<<"$peer")" \
      "$(grep -q '"loop": "unbind"' <<<"$peer" && echo ", a loop over time")" "$(figure tokens_per_s_median <<<"$peer")" \
      "$(figure peak_rss_bytes <<<"$peer" | awk '{ print $1 / 1e6 }')"
  done
} | tee "$out/standing-$name.md"
