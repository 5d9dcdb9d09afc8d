#!/usr/bin/env bash
# Every token mixer of the registry on the same data and budget: 2 layers of width 128, 300 steps of 8 x 256 bytes of the
# sample corpus (the King James Bible and Pride and Prejudice), Persuasion held out. Prints a table in Markdown; JSON
# lines on stderr. MIXERS="gsa gla" takes these alone. About 20 s a mixer on 2 cores.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$here/../../data
PATH=${QUIPU_BIN:-$here/../../build/bin}:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=${STEPS:-300}

# field NAME: the number of that name in the JSON line on stdin.
field() { sed "s/.*\"$1\":\([-0-9.e+]*\).*/\1/"; }

convert text --quiet -o "$work/books.h5" --tokenizer bytes --valid "$data/persuasion.txt.gz" \
  "$data/pride_and_prejudice.txt.gz" "$data/kjv.txt.gz"
mixers=${MIXERS:-$(train --list-mixers | awk '$2 == "tokens" { print $1 }')}
echo "| mixer | parameters | state bytes | bits per byte | training, tokens/s | generation, tokens/s |"
echo "|---|---|---|---|---|---|"
for mixer in $mixers; do
  rm -f "$work"/m.* "$work/log.jsonl"
  train "$work/books.h5" -o "$work/m.h5" --mixer "$mixer" --layers 2 --dim 128 --batch 8 --seq-len 256 --steps "$steps" \
    --lr 2e-3 --warmup $((steps / 10)) --eval-every "$steps" --log "$work/log.jsonl" --log-every 1 --quiet --json >"$work/train.json"
  # Generation within the length that all can read: 16 bytes of prompt, 200 more.
  generate "$work/m.best.h5" "And it came to p" --tokens 200 --quiet --json >"$work/generate.json"
  speed=$(field tokens_per_s <"$work/log.jsonl" | sort -g | awk '{ s[NR] = $1 } END { print s[int((NR + 1) / 2)] }')
  printf '{"mixer":"%s","train":%s,"generate":%s}\n' "$mixer" "$(cat "$work/train.json")" \
    "$(sed 's/"text":".*","tokens":/"tokens":/' "$work/generate.json")" >&2
  LC_ALL=C printf "| \`%s\` | %d | %d | %.3f | %.0f | %.0f |\n" "$mixer" "$(field parameters <"$work/train.json")" \
    "$(field state_bytes <"$work/generate.json")" "$(field best_valid_bits_per_byte <"$work/train.json")" "$speed" \
    "$(field tokens_per_s <"$work/generate.json")"
done
