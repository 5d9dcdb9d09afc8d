#!/usr/bin/env bash
# A model of ours, trained on some books and articles, measured on questions that other people wrote.
#   real.sh FOLDER     QUIPU_REAL_DATA is the folder with lm/, choices/ and recall/; what is in FOLDER already is not made again
# Writes a line of JSON for each task to FOLDER/results.jsonl, and a table.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${QUIPU_BIN:-$here/../../build/bin}
real=${QUIPU_REAL_DATA:-$here/../../../shared/real}
folder=${1:?a folder}
[ -d "$real/choices" ] || { echo "real.sh: $real/choices: is not there; set QUIPU_REAL_DATA" >&2; exit 2; }
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
precision=f32
! grep -q avx512_bf16 /proc/cpuinfo || precision=bf16
mkdir -p "$folder"

[ -f "$folder/books.h5" ] || "$bin/convert" text "$real"/lm/enwiki_sample.clean.txt.gz "$real"/lm/austen_*.txt.gz \
  "$real"/lm/botchan.txt "$real"/lm/canterbury_lcet10.txt "$real"/lm/kjv.txt.gz --valid "$real"/lm/wikitext2-raw.valid.txt \
  --tokenizer bpe:4096 -o "$folder/books.h5"
[ -f "$folder/lm.best.h5" ] || "$bin/train" "$folder/books.h5" -o "$folder/lm.h5" --mixer gsa --dim 256 --layers 4 --batch 8 \
  --seq-len 512 --steps 1500 --lr 2e-3 --warmup 100 --eval-every 500 --eval-tokens 50000 --precision $precision

tasks=("$real"/choices/arc_easy_test.jsonl.gz "$real"/choices/arc_challenge_test.jsonl.gz "$real"/choices/piqa_valid.jsonl.gz
  "$real"/choices/winogrande_dev.jsonl.gz "$real"/recall/xquad_en_flat.jsonl.gz)
for task in "${tasks[@]}"; do "$bin/recall-bench" run "$folder/lm.best.h5" "$task" --json --quiet; done >"$folder/results.jsonl"
figure() { sed -nE "s/.*\"$1\":\"?([^,\"}]*).*/\1/p" <<<"$line"; }
while read -r line; do
  printf '%-28s n %5s  accuracy %.3f (%.3f to %.3f)  chance %.3f\n' "$(basename "$(figure data)")" "$(figure n)" \
    "$(figure accuracy)" "$(figure accuracy_low)" "$(figure accuracy_high)" "$(figure chance)"
done <"$folder/results.jsonl"
