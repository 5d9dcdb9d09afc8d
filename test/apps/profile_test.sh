#!/usr/bin/env bash
# profile as a user runs it: its tables agree with each other, states and verdicts are those of the mixers, what cannot
# be measured is noted, a signal keeps what was measured, and every way in which it refuses.
source "$(dirname "$0")/frame.sh"
[ -x "$bin/profile" ] || { echo "skipped: no profile yet"; exit 77; }
export OMP_NUM_THREADS=1
profile=("$bin/profile" --quiet --time 0.05s)
small=(--layers 1 --dim 16 --heads 2 --vocab 64)
# column NAME FILE: the column of a table with tabs.
column() { awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } /^$/ { exit } { print $at }' "$2"; }

# The same models in the forms of the report: a fixed memory and a growing one.
status 0 "${profile[@]}" --mixer gsa,attention "${small[@]}" --set gsa.slots=4 --lengths 16:64 --tsv -o cost.h5
[ "$(column mixer out | tr '\n' ' ')" = "gsa gsa gsa attention attention attention " ] || fail "$(cat out)"
[ "$(column length out | tr '\n' ' ')" = "16 32 64 16 32 64 " ] || fail "$(cat out)"
# 2 heads x 8 channels x 4 slots, twice, in 4 bytes, and the position; keys and values of n tokens, a count, the position.
[ "$(column state_bytes out | tr '\n' ' ')" = "520 520 520 2064 4112 8208 " ] || fail "$(column state_bytes out)"
column seconds_per_token out | awk '!($1 > 0 && $1 < 1) { exit 1 }' || fail "seconds: $(cat out)"
column resident_bytes out | awk '!($1 > 100000 && $1 < 1e9) { exit 1 }' || fail "memory: $(cat out)"
column ceiling_share out | awk '!($1 > 0) { exit 1 }' || fail "ceiling: $(cat out)"
[ "$(column note out | tr -d '\n')" = "" ] || fail "$(cat out)"
"$bin/convert" show cost.h5 >out || fail "convert show: $(cat out)"
said "a profile \(quipu-profile, version 1\)" out
said "mixers +gsa, attention" out
said "rows +6" out

status 0 "${profile[@]}" --mixer gsa,attention "${small[@]}" --set gsa.slots=4 --lengths 16,64 --mode prefill
said "^gsa: state constant: yes \(520 bytes\); time per token: " out
said "^attention: state constant: no \(2,064 bytes at 16, 8,208 at 64\); time per token: " out
said "^ceiling with 1 thread: .*FLOP/s" out

status 0 "${profile[@]}" --mixer gsa "${small[@]}" --mode train --lengths 16 --batch 2 --by-op --json
[ "$(wc -l <out)" = 1 ] && grep -q '"schema":"quipu-profile-1"' out || fail "$(cat out)"
for part in '"op":"outer scan","pass":"backward"' '"op":"optimizer"' '"op":"other"' '"mode":"train"' '"batch":2'; do
  grep -qF "$part" out || fail "$part is not in $(cat out)"
done
awk 'BEGIN { RS = "\"share\":" } NR > 1 { sum += $1 + 0 } END { exit !(sum > 0.999 && sum < 1.001) }' out ||
  fail "the shares do not add up to 1: $(cat out)"
status 0 "${profile[@]}" --mixer gsa "${small[@]}" --lengths 16 --by-op --threads 1,2
said "^gsa, 2 threads: state: " out
said "^token mixing +[0-9.]+ +[0-9.]+" out
said "^all +100.0 " out

# A checkpoint; a hybrid; a file on standard output; a plot.
for i in $(seq 1 60); do echo "This is line $i of a small text, and it says $((i * i))."; done >book.txt
"$bin/convert" text --quiet -o data.h5 book.txt
"$bin/train" data.h5 --quiet -o model.h5 --mixer linformer --layers 1 --dim 16 --heads 2 --steps 2 --batch 2 --seq-len 32 \
  --set k=4 >log 2>&1 || fail "train: $(cat log)"
status 0 "${profile[@]}" model.h5 --mode prefill --lengths 16,32,33
said "^linformer at 33: not measured: the model's context is 32 tokens" out
said "^linformer: state constant: yes .*from 16 to 32" out
status 0 "${profile[@]}" --mixer gsa+attention --layers 2 --dim 16 --heads 2 --vocab 64 --lengths 16 -o -
said "gsa.attention: state: " err
mv out streamed.h5
"$bin/convert" show streamed.h5 >out || fail "not a file: $(cat out)"
if command -v gnuplot >/dev/null; then
  status 0 "${profile[@]}" --mixer gsa,attention "${small[@]}" --lengths 16,32 --plot cost.svg
  for text in "time per token, decode" "peak memory" gsa attention; do grep -q "$text" cost.svg || fail "no $text in the plot"; done
fi

# More than the memory holds is a note; where nothing else was asked for, nothing was measured.
status 1 "${profile[@]}" --mixer gsa --layers 1 --dim 4096 --vocab 64 --mode train --lengths 16777216 --tsv
column note out | grep -q "memory" || fail "no note: $(cat out)"

# A signal: what was measured is reported.
"$bin/profile" --mixer gsa "${small[@]}" --lengths 16,1000000000 --tsv >out 2>err </dev/null &
pid=$!
sleep 6
kill -TERM $pid
got=0
wait $pid || got=$?
[ $got = 75 ] || fail "status $got after SIGTERM: $(cat err)"
[ "$(column length out)" = 16 ] || fail "$(cat out)"
said "stopped by SIGTERM after 1 of 2 cells" err

refused 2 "MODEL.h5: is missing" "${profile[@]}"
refused 2 "give one of them" "${profile[@]}" model.h5 --mixer gsa
refused 2 "--mixer nothing: is unknown" "${profile[@]}" --mixer nothing
refused 2 "--mode: \"sleep\" is not a choice" "${profile[@]}" --mixer gsa --mode sleep
refused 2 "--precision bf16: is of training; give --mode train" "${profile[@]}" --mixer gsa --precision bf16
refused 2 "--lengths 8:4" "${profile[@]}" --mixer gsa --lengths 8:4
refused 2 "--threads" "${profile[@]}" --mixer gsa --threads 1,0
refused 2 "--tsv and --json" "${profile[@]}" --mixer gsa --tsv --json
refused 2 "unknown option --colour" "${profile[@]}" --mixer gsa --colour
refused 2 "with a shape of its own" "${profile[@]}" model.h5 --dim 32
refused 2 "with a shape of its own" "${profile[@]}" model.h5 --vocab 32
cp model.h5 copy.h5
refused 1 "copy.h5: is read, and the output would take its place" "${profile[@]}" copy.h5 -o copy.h5 --lengths 8
cmp -s model.h5 copy.h5 || fail "the model is gone"
status 1 "${profile[@]}" model.h5 --mode prefill --lengths 64 -o cost.h5
said "nothing was measured, so nothing is written" err
"$bin/convert" show cost.h5 | grep -q "rows  *6" || fail "an empty profile in the place of one"
refused 2 "-: every cell reads the model anew" "${profile[@]}" -
refused 1 "absent.h5" "${profile[@]}" absent.h5
refused 1 "no/such/cost.h5" "${profile[@]}" --mixer gsa -o no/such/cost.h5
refused 2 "cost.pdf: a plot is drawn as .svg or .png" "${profile[@]}" --mixer gsa --plot cost.pdf
echo "profile_test: passed"
