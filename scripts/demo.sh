#!/usr/bin/env bash
# scripts/demo.sh: the main job on the sample corpus, each command shown before it runs. `make demo` calls it.
# MIXER, TOKENIZER, LAYERS, DIM, HEADS, STEPS, BATCH, SEQ_LEN change the model; the defaults take about two minutes of
# training on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$(cd "${QUIPU_BIN:-build/bin}" && pwd):$PATH
mixer=${MIXER:-gsa} tokenizer=${TOKENIZER:-bpe:2048}
layers=${LAYERS:-4} dim=${DIM:-128} heads=${HEADS:-4}
steps=${STEPS:-600} batch=${BATCH:-8} seq_len=${SEQ_LEN:-256}
folder=${DEMO:-build/demo}
data=$folder/corpus.h5 model=$folder/$mixer.h5

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n# %s\n' "$*"; }
# Shows a command, then runs it.
run() {
  printf '$'
  printf ' %s' "${@@Q}" | sed "s/'\([-A-Za-z0-9_.,:=/%+]*\)'/\1/g"
  printf '\n'
  "$@"
}

mkdir -p "$folder"
say "1. A dataset: Pride and Prejudice and the King James Bible to train on, Persuasion held out to measure on."
run convert text -o "$data" --tokenizer "$tokenizer" --split valid=data/persuasion.txt.gz \
  data/pride_and_prejudice.txt.gz data/kjv.txt.gz
run convert show "$data"

say "2. A small model whose memory has a fixed size ($mixer), trained for about two minutes."
rm -f "$model" "$folder/$mixer.best.h5" "$folder/$mixer.jsonl"
start=$SECONDS
run train "$data" -o "$model" --mixer "$mixer" --layers "$layers" --dim "$dim" --heads "$heads" \
  --batch "$batch" --seq-len "$seq_len" --steps "$steps" --warmup $((steps / 20)) --lr 2e-3 --schedule cosine \
  --eval-every $((steps / 3)) --log "$folder/$mixer.jsonl"
echo "(trained for $((SECONDS - start)) s; the losses are in $folder/$mixer.jsonl)"

say "3. How well it predicts a book that it has not read."
run eval-ppl "$model" "$data" --split valid

say "4. What it writes, and the memory that it keeps after reading: its size does not depend on how much was read."
run generate "$model" "She was not at all" --tokens 120 --temperature 0.8 --top-p 0.95 --seed 1
echo
run generate "$model" "In the beginning God created" --tokens 60 --temperature 0.8 --top-p 0.95 --seed 2 \
  --state-out "$folder/memory.h5"
echo
run convert show "$folder/memory.h5"

say "What each step left in $folder, and what to try next"
cat <<EOF_NEXT
  $data      the dataset (tokens and tokenizer)
  $model         the model, complete: it generates, and training can go on from it
  $folder/memory.h5      what the model remembers of what it read and wrote

  generate $model --state-in $folder/memory.h5 --tokens 60     goes on where it stopped
  eval-ppl $model data/kjv.txt.gz                              scores any text
  MIXER=attention make demo                                    the Transformer, same size and budget
  MIXER=3xgsa,attention make demo                              a hybrid
  train --list-mixers                                          what else there is
  train $data -o big.h5 --mixer gsa --layers 8 --dim 512 --heads 8 --steps 20000 --time-limit 8h
  man man/train.1                                              every option
  (the tools are in ${QUIPU_BIN:-build/bin}; 'make install PREFIX=... PROGRAM_PREFIX=quipu-' installs them)
EOF_NEXT
