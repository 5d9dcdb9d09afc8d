#!/usr/bin/env bash
# Models and windows of several segments as a user trains them: exact on resume, the same however they are cut, and
# refused in one line where the options do not go together.
. "$(dirname "$0")/frame.sh"
for tool in convert train eval-ppl generate; do
  [ -x "$bin/$tool" ] || { echo "skipped: $bin/$tool is not built"; exit 77; }
done
export OMP_NUM_THREADS=1
for i in $(seq 1500); do echo "line $i of a text with $((i * i % 97)) and $((i * 7 % 31)) in it"; done >text.txt
status 0 "$bin/convert" text -o data.h5 --valid 0.1 text.txt
tiny=(--layers 1 --dim 16 --heads 2 --batch 2 --seq-len 12 --eval-tokens 2000)
weights() { "$bin/convert" show "$1" --json | grep -o '"parameter_digest[^,]*'; }

# Stopped halfway and gone on: the run that nobody stopped, with a growing number of segments, and with carried lanes.
exact() {
  local name=$1
  shift
  status 0 "$bin/train" data.h5 -o "$name-whole.h5" "$@" --steps 40
  status 75 env QUIPU_NONE= timeout -s TERM 60 "$bin/train" data.h5 -o "$name-cut.h5" "$@" --steps 40 --time-limit 0.001s
  status 0 "$bin/train" data.h5 -o "$name-cut.h5" "$@" --steps 40
  [ "$(weights "$name-whole.h5")" = "$(weights "$name-cut.h5")" ] || fail "$name: resumed weights differ"
}
exact curriculum "${tiny[@]}" --mixer attention --memory-tokens 3 --curriculum 1,2,4 --checkpoint-activations
exact depth "${tiny[@]}" --mixer gsa --segments 3 --bptt-depth 1
exact carried "${tiny[@]}" --mixer gsa --memory-tokens 2 --segments 2 --carry-state --detach-every 1

# Kept or recomputed activations: the same loss to rounding.
for how in "" --checkpoint-activations "--bptt-depth 3"; do
  # shellcheck disable=SC2086
  status 0 "$bin/train" data.h5 -o how.h5 "${tiny[@]}" --mixer gsa --segments 4 --steps 10 --resume never --json $how
  grep -o '"valid_loss_nats":[0-9.]*' out | cut -d: -f2 | cut -c1-6 >>losses
done
[ "$(sort -u losses | wc -l)" = 1 ] || fail "losses differ: $(tr '\n' ' ' <losses)"

# The model cuts its own segments: however much is read at a time, and token by token from a state.
score() { "$bin/eval-ppl" curriculum-whole.h5 text.txt --protocol stream --batch-tokens "$1" --json | grep -o '"perplexity_per_token":[0-9.]*' | cut -c1-30; }
[ "$(score 4096)" = "$(score 7)" ] || fail "perplexity depends on the pieces: $(score 4096) and $(score 7)"
prompt="line 12 of a text with 47 and 22 in it, and some more of it"
status 0 "$bin/generate" curriculum-whole.h5 "$prompt" --tokens 50 --no-echo && cp out whole.out
status 0 "$bin/generate" curriculum-whole.h5 "${prompt:0:17}" --tokens 0 --state-out part.h5
status 0 "$bin/generate" curriculum-whole.h5 "${prompt:17}" --tokens 50 --no-echo --state-in part.h5
cmp -s whole.out out || fail "another text from a saved state: $(cat out)"
status 0 "$bin/train" data.h5 -o depth-whole.h5 "${tiny[@]}" --mixer gsa --segments 3 --bptt-depth 1 --steps 40

# Transformer-XL: trained over a short cache, scored over a longer one in which every token sees as many.
status 0 "$bin/train" data.h5 -o xl.h5 "${tiny[@]}" --mixer transformer_xl --set memory=6 --segments 2 --steps 20
bits() { "$bin/eval-ppl" xl.h5 data.h5 --json "$@" | grep -o '"bits_per_byte":[0-9.]*'; }
[ "$(bits)" != "$(bits --set memory=24 --set same_length=true)" ] || fail "another cache, the same bits per byte"
refused 2 "--set slots=4" "$bin/eval-ppl" xl.h5 data.h5 --set slots=4
refused 1 "the model's is [" "$bin/eval-ppl" depth-whole.h5 data.h5 --set slots=5

refused 2 "give one of them" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --segments 4 --bptt-depth 1 --detach-every 2
refused 2 "--curriculum" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --curriculum 1,,2
refused 2 "--curriculum" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --curriculum 1,2 --carry-state
refused 2 "--bptt-depth" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --bptt-depth none
refused 2 "--memory-mask blocks" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --mixer gsa --memory-tokens 2 --memory-mask blocks
refused 2 "--memory-state kept" "$bin/train" data.h5 -o bad.h5 "${tiny[@]}" --mixer gsa --memory-tokens 2 --memory-state kept
refused 2 "--memory-tokens" "$bin/train" data.h5 -o depth-whole.h5 "${tiny[@]}" --mixer gsa --segments 3 --bptt-depth 1 --memory-tokens 2 --steps 40
echo "segments: all good"
