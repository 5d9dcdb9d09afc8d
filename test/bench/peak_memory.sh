#!/usr/bin/env bash
# Peak memory of generate, eval-ppl and convert model against the bytes of the weights, in every number format, for random
# weights of RWKV-4 169M's shape or another one.   peak_memory.sh [MIXER LAYERS DIM VOCAB]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench=${QUIPU_BENCH:-$here/../../build/bench}
bin=${QUIPU_BIN:-$here/../../build/bin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bench/random_model" "$folder/f32.h5" "$@"
for i in $(seq 1 20); do echo "This is line $i of a text that is a prompt."; done >"$folder/text"

# peak COMMAND..: its largest resident set, in bytes, text and code of libraries included.
peak() {
  /usr/bin/time -f %M -o "$folder/peak" "$@" >"$folder/out" 2>"$folder/err" </dev/null || { cat "$folder/err" >&2 && exit 1; }
  echo $(($(tail -n 1 "$folder/peak") * 1024))
}
row() { # what, bytes of weights, bytes at the peak
  awk -v what="$1" -v weights="$2" -v peak="$3" \
    'BEGIN { printf "| %s | %.1f | %.1f | %.3f |\n", what, weights / 1e6, peak / 1e6, peak / weights }'
}
weights() { "$bin/convert" show --json "$1" | grep -oE '"parameter_bytes":[0-9]+' | cut -d: -f2; }

echo "| | weights, MB | peak, MB | times the weights |"
echo "|---|---|---|---|"
for format in f32 bf16 q8 q4; do
  model=$folder/$format.h5
  [ $format = f32 ] || row "convert model --dtype $format" "$(weights "$folder/f32.h5")" \
    "$(peak "$bin/convert" model "$folder/f32.h5" -o "$model" --dtype $format)"
  bytes=$(weights "$model")
  row "generate, 100 tokens, $format" "$bytes" "$(peak "$bin/generate" "$model" "The" --tokens 100)"
  row "generate, a prompt of 900 bytes, $format" "$bytes" \
    "$(peak "$bin/generate" "$model" --prompt-file "$folder/text" --tokens 8)"
  row "eval-ppl of 900 bytes, $format" "$bytes" "$(peak "$bin/eval-ppl" "$model" "$folder/text")"
done
if [ "${1:-rwkv4}" = rwkv4 ]; then
  row "convert model --format published, q4" "$(weights "$folder/q4.h5")" \
    "$(peak "$bin/convert" model "$folder/q4.h5" -o "$folder/published" --format published)"
  for format in f32 q4; do
    row "convert model of safetensors, to $format" "$(weights "$folder/$format.h5")" \
      "$(peak "$bin/convert" model "$folder/published" -o "$folder/back.h5" --dtype $format --tokenizer bytes)"
  done
fi
