#!/usr/bin/env bash
# eval-ppl as a user runs it, on a model of a few training steps: its figures agree with each other however they are
# asked for, lines are answered while the input is open, and every way in which it refuses.
source "$(dirname "$0")/frame.sh"
[ -x "$bin/train" ] || { echo "skipped: no train to make a model with"; exit 77; }
export OMP_NUM_THREADS=1
# key NAME [FILE]: the value of a key of JSON.
key() { grep -oE "\"$1\":[^,}]*" "${2:-out}" | head -n 1 | cut -d: -f2; }
# near A B: equal but for rounding.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= 1e-5 * (b < 0 ? -b : b) + 1e-9) }'; }

for i in $(seq 1 120); do echo "This is line $i of a small text, and it says $((i * i))."; done >book.txt
"$bin/convert" text --quiet -o data.h5 --valid 0.2 book.txt
"$bin/convert" text --quiet -o lines.h5 --documents line --test book.txt book.txt
for mixer in gsa attention; do
  "$bin/train" data.h5 --quiet -o $mixer.h5 --mixer $mixer --layers 2 --dim 16 --heads 2 --steps 5 --batch 4 --seq-len 32 \
    >log 2>&1 || fail "train: $(cat log)"
done

# The same tokens whichever the protocol; the keys of the report; figures that follow from each other.
valid=$("$bin/convert" show --json data.h5 | grep -oE '"valid_bytes":[0-9]+' | cut -d: -f2)
for protocol in stream blocks:32 slide:32:8 last:16/32; do
  status 0 "$bin/eval-ppl" gsa.h5 data.h5 --json --protocol $protocol
  [ "$(wc -l <out)" = 1 ] || fail "not one object"
  [ "$(key schema)" = '"quipu-eval-ppl-1"' ] || fail "schema $(key schema)"
  [ "$(key protocol)" = "\"${protocol%%:*}" ] || [ "$(key protocol)" = "\"$protocol\"" ] || fail "protocol $(key protocol)"
  [ "$(key tokens)" = $((valid - 1)) ] || fail "$protocol scores $(key tokens) of $valid tokens"
  [ "$(key unscored)" = 1 ] || fail "$protocol leaves out $(key unscored)"
  near "$(key perplexity_per_token)" "$(awk -v n="$(key nll_sum_nats)" -v t="$(key tokens)" 'BEGIN { print exp(n / t) }')" ||
    fail "$protocol: perplexity_per_token does not follow from the sum"
  near "$(key bits_per_byte)" "$(awk -v n="$(key nll_sum_nats)" -v b="$(key bytes)" 'BEGIN { print n / b / log(2) }')" ||
    fail "$protocol: bits_per_byte does not follow from the sum"
done
status 0 "$bin/eval-ppl" gsa.h5 data.h5
said "^protocol +stream" out
said "^data +data.h5, split valid" out
status 0 "$bin/eval-ppl" attention.h5 data.h5
said "^protocol +blocks:32" out

# A text is scored like the dataset that is made of it; from a pipe, gzip and stdin too.
status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --json
sum=$(key nll_sum_nats) tokens=$(key tokens) bytes=$(key bytes)
[ "$tokens" = $(($(wc -c <book.txt) - 120)) ] || fail "lines: $tokens tokens"
gzip -k book.txt
for text in book.txt book.txt.gz; do
  status 0 "$bin/eval-ppl" gsa.h5 "$text" --documents line --json
  near "$(key nll_sum_nats)" "$sum" && [ "$(key tokens)" = "$tokens" ] && [ "$(key bytes)" = "$bytes" ] ||
    fail "$text: $(key nll_sum_nats) instead of $sum"
done
"$bin/eval-ppl" gsa.h5 --documents line --json <book.txt >out
near "$(key nll_sum_nats)" "$sum" || fail "stdin: $(key nll_sum_nats) instead of $sum"
status 0 "$bin/eval-ppl" gsa.h5 <(cat book.txt) --documents line --json
near "$(key nll_sum_nats)" "$sum" || fail "a pipe: $(key nll_sum_nats) instead of $sum"
"$bin/eval-ppl" gsa.h5 - --json <lines.h5 >out
near "$(key nll_sum_nats)" "$sum" || fail "a dataset on stdin: $(key nll_sum_nats) instead of $sum"
"$bin/eval-ppl" - lines.h5 --json <gsa.h5 >out
near "$(key nll_sum_nats)" "$sum" || fail "a model on stdin: $(key nll_sum_nats) instead of $sum"
status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --json --prefix $'\n'
[ "$(key tokens)" = "$(wc -c <book.txt)" ] && [ "$(key unscored)" = 0 ] || fail "--prefix: $(key tokens) tokens"

# Tokens as TSV: they add up to the sum; loss by position: the tokens add up.
status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --per-token --json
[ "$(wc -l <out)" = "$tokens" ] || fail "--per-token: $(wc -l <out) lines for $tokens tokens"
near "$(awk -F'\t' '{ s += $NF } END { printf "%.9g", s }' out)" "$sum" || fail "--per-token does not add up to $sum"
near "$(key nll_sum_nats err)" "$sum" || fail "--per-token: no report on stderr"
awk -F'\t' 'NF != 4 || $1 <= last { exit 1 } { last = $1 }' last=-1 out || fail "--per-token: not four columns in order"
head -n 1 out | grep -q "^1	104	h	" || fail "--per-token: $(head -n 1 out)"
grep -q "	10	\\\\n	" out || fail "--per-token: newlines are not escaped"
status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --by-position
said "^ +1 +1 +120 " out
status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --by-position --json
[ "$(grep -oE '"context_from":[0-9]+,"context_to":[0-9]+,"tokens":[0-9]+' out | sed 's/.*://' | awk '{ s += $1 } END { print s }')" = "$tokens" ] ||
  fail "--by-position: the tokens do not add up"

# The plot: the same bins, drawn; refused before any work where it cannot be drawn.
bins=$(grep -o '"by_position":.*' out)
grep -q '"standard_error_nats":0\.' out || fail "--by-position: no standard error: $bins"
refused 2 "is drawn as .svg or .png" "$bin/eval-ppl" none.h5 none.txt --plot bad
refused 2 "is drawn as .svg or .png" "$bin/eval-ppl" none.h5 none.txt --plot ""
refused 2 "--plot" "$bin/eval-ppl" gsa.h5 book.txt --plot a.svg --per-line
mkdir no_programs
refused 1 "install the package gnuplot-nox" env PATH="$folder/no_programs" "$bin/eval-ppl" gsa.h5 lines.h5 --plot bad.svg
[ ! -e bad.svg ] || fail "a plot without gnuplot"
if command -v gnuplot >/dev/null; then
  for ending in svg png; do
    status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --json --plot loss.$ending
    [ "$(grep -o '"by_position":.*' out | sed 's/,"wall_s.*//')" = "$bins" ] || fail "--plot: other bins: $(cat out)"
  done
  grep -q 'loss (nats per token)' loss.svg && grep -q '</svg>' loss.svg || fail "--plot: no loss.svg"
  [ "$(head -c 4 loss.png | tail -c 3)" = PNG ] || fail "--plot: no loss.png"
  status 0 "$bin/eval-ppl" gsa.h5 lines.h5 --plot loss.svg
  said "^context from +to +tokens +nats per token +standard error +perplexity" out
  ln -s /dev/full full.svg
  refused 1 "full.svg: cannot write" "$bin/eval-ppl" gsa.h5 lines.h5 --plot full.svg
  refused 1 "nowhere/loss.svg" "$bin/eval-ppl" gsa.h5 lines.h5 --plot nowhere/loss.svg
else
  echo "eval_test: no gnuplot here; --plot is not tried"
fi

# Lines: as many answers as lines, and each before the next line comes.
status 0 "$bin/eval-ppl" gsa.h5 book.txt --per-line --quiet
[ "$(wc -l <out)" = 120 ] || fail "--per-line: $(wc -l <out) answers"
near "$(awk -F'\t' '{ s += $3 } END { printf "%.9g", s }' out)" "$sum" || fail "--per-line does not add up to $sum"
mkfifo to from
"$bin/eval-ppl" gsa.h5 - --per-line --quiet <to >from &
tool=$!
exec 3>to 4<from
for line in "a line" "" "another one"; do
  echo "$line" >&3
  IFS= read -r -t 60 answer <&4 || fail "--per-line does not answer '$line' while the input is open"
  [ "$(cut -f 2 <<<"$answer")" = "${#line}" ] || fail "--per-line: '$line' has the answer $answer"
done
printf 'no end' >&3
exec 3>&-
IFS= read -r -t 60 answer <&4 && [ "$(cut -f 1,2 <<<"$answer")" = "4	5" ] || fail "--per-line: the last line: $answer"
wait $tool || fail "--per-line: status $?"
exec 4<&-
printf 'x\n\nabc\n' | "$bin/eval-ppl" gsa.h5 - --per-line --json 2>err >out
[ "$(grep -c '"schema":"quipu-eval-ppl-line-1"' out)" = 3 ] && grep -q '"perplexity":null' out || fail "$(cat out)"

# Gates and refusals.
status 3 "$bin/eval-ppl" gsa.h5 data.h5 --max-ppl 1.5
said "above --max-ppl 1.5" err
said "perplexity per token" out
status 0 "$bin/eval-ppl" gsa.h5 data.h5 --max-ppl 1e9
"$bin/convert" text --quiet -o words.h5 --tokenizer words book.txt
refused 1 "words.h5: its tokenizer is words" "$bin/eval-ppl" gsa.h5 words.h5
refused 1 "split" "$bin/eval-ppl" gsa.h5 data.h5 --split none
refused 2 "has no splits" "$bin/eval-ppl" gsa.h5 book.txt --split test
refused 2 "not both" "$bin/eval-ppl" - -
refused 2 "--per-line: reads a text" "$bin/eval-ppl" gsa.h5 data.h5 --per-line
refused 2 "--protocol" "$bin/eval-ppl" gsa.h5 data.h5 --protocol blocks
refused 1 "data.h5" "$bin/eval-ppl" data.h5 data.h5
refused 1 "none.h5: cannot read" "$bin/eval-ppl" none.h5 data.h5
refused 1 "none.txt: cannot read" "$bin/eval-ppl" gsa.h5 none.txt
: >empty.txt
refused 1 "empty.txt: is empty" "$bin/eval-ppl" gsa.h5 empty.txt
printf x >one.txt
refused 1 "one.txt: holds 1 tokens" "$bin/eval-ppl" gsa.h5 one.txt
head -c 5000 gsa.h5 >cut.h5
refused 1 "cut.h5: " "$bin/eval-ppl" cut.h5 data.h5
got=0; "$bin/eval-ppl" gsa.h5 data.h5 2>err >/dev/full || got=$?
[ "$got" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "/dev/full: status $got, $(cat err)"
{ "$bin/eval-ppl" gsa.h5 lines.h5 --per-token 2>err; echo $? >code; } | head -n 1 >out
[ "$(cat code)" = 0 ] && [ ! -s err ] || fail "a closed pipe is no quiet end: $(cat code) $(cat err)"

# The mean of a model and itself is the model.
"$bin/convert" average gsa.h5 gsa.h5 -o mean.h5
status 0 "$bin/eval-ppl" mean.h5 lines.h5 --json
near "$(key nll_sum_nats)" "$sum" || fail "the mean of a model and itself is another one"
refused 1 "configuration" "$bin/convert" average gsa.h5 attention.h5 -o bad.h5
status 0 "$bin/convert" show gsa.h5
said "^config.mixer +gsa" out
said "^progress.step +5" out
echo "eval_test: passed"
