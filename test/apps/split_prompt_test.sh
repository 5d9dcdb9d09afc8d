#!/usr/bin/env bash
# generate writes the same text greedily however its prompt was read: at once, token by token, or up to any place and on
# from a saved state. With small models made here, and with rwkv.cpp's RWKV-6 and RWKV-7 where they are.
source "$(dirname "$0")/frame.sh"
generate() { "$bin/generate" --threads 1 --no-echo "$@"; }

# read_in MODEL STATE FILE..: STATE after these texts, one after the other.
read_in() {
  local model=$1 state=$2 from=()
  shift 2
  for part in "$@"; do
    generate "$model" --prompt-file "$part" --tokens 0 "${from[@]}" --state-out "$state" >out 2>err || fail "$part: $(cat err)"
    [ ! -s out ] || fail "$model: text before it was asked for"
    from=(--state-in "$state")
  done
}
# check MODEL PROMPT-FILE PLACE..: 200 tokens after the prompt, read at once, split at each place, and byte by byte.
check() {
  local model=$1 prompt=$2 place
  shift 2
  generate "$model" --prompt-file "$prompt" --tokens 200 >whole 2>err || fail "$model: $(cat err)"
  [ "$(wc -c <whole)" = 200 ] || fail "$model: $(wc -c <whole) bytes instead of 200"
  for place in "$@"; do
    head -c "$place" "$prompt" >head
    tail -c +$((place + 1)) "$prompt" >tail
    read_in "$model" half head
    generate "$model" --prompt-file tail --state-in half --tokens 200 >split 2>err || fail "$model: $(cat err)"
    cmp -s whole split || fail "$model: split at byte $place of $(wc -c <"$prompt"), another text: $(cmp whole split 2>&1)"
  done
  if [ "$(wc -c <"$prompt")" -le 100 ]; then
    rm -f byte.*
    split -b 1 -a 4 "$prompt" byte.
    read_in "$model" all byte.*
    generate "$model" --state-in all --tokens 200 >split 2>err || fail "$model: $(cat err)"
    cmp -s whole split || fail "$model: byte by byte, another text: $(cmp whole split 2>&1)"
  fi
  # The text itself may be cut as well.
  generate "$model" --prompt-file "$prompt" --tokens 77 --state-out half >split 2>err || fail "$model: $(cat err)"
  generate "$model" --state-in half --tokens 123 >>split 2>err || fail "$model: $(cat err)"
  cmp -s whole split || fail "$model: the text cut at token 77, another text: $(cmp whole split 2>&1)"
}

printf '"in' >short
printf 'It was a bright cold day in April, and the clocks were striking thirteen; "in the end", she said, no' >long
for i in $(seq 12); do printf 'Line %d: what was read before is in the state, and in nothing else.\n' "$i"; done >longer

for i in $(seq 200); do echo "The man by the sea said that $i ships went by, each as grand as a house \"in May\"."; done >text
"$bin/convert" text -o data.h5 text 2>err || fail "convert: $(cat err)"
for mixer in rwkv6 rwkv7; do
  "$bin/train" data.h5 -o $mixer.h5 --mixer $mixer --dim 32 --heads 2 --layers 2 --seq-len 32 --batch 4 --steps 40 \
    --lr 5e-3 >out 2>err || fail "train: $(cat err)"
  check $mixer.h5 short 1 2
  check $mixer.h5 long 1 32 33 99
done
check rwkv7.h5 longer 255 256 512 513

if [ -e "$real/checkpoints/rwkv.cpp" ]; then
  for name in 6v0-3m-Q5_1 7v0-834K-FP32; do
    "$bin/convert" model "$real/checkpoints/rwkv.cpp/tiny-rwkv-$name.bin" -o "$name.h5" 2>err || fail "$name: $(cat err)"
    check "$name.h5" short 1 2
    check "$name.h5" long $(seq 1 14 99)
  done
else
  echo "split_prompt_test: no files of rwkv.cpp; that part is skipped"
fi
echo "split_prompt_test: passed"
