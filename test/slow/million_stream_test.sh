#!/usr/bin/env bash
# A million tokens through eval-ppl and generate, with small trained models of fixed memory: the beginning of the King
# James Bible, over and over with markers, one byte a token. Resident memory at the end is that at ten thousand tokens
# to 1 %, the processor's time per token does not grow, all losses are finite, the last thousand are those of the double
# build to 1e-4 nats, and the state after a million tokens is as large as that after ten thousand. Prints a table.
# QUIPU_MILLION=100000 makes it a tenth as long, too short to judge the time.
source "$(dirname "$0")/../apps/frame.sh"
tokens=${QUIPU_MILLION:-1000000}
early=10000 late=$((tokens - 10000))  # where the memory is compared; the tools are still at work there
span=$((tokens / 10))                 # over which times are compared
loss_bound=1e-4                       # nats, of one token, float against double
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
[ -x "$bin/train" ] && [ -x "$bin/generate" ] || { echo "skipped: no tools to make and run a model with"; exit 77; }

zcat "$root/data/kjv.txt.gz" >bible.txt
head -c 190000 bible.txt >book.txt
for reading in $(seq 1 $((tokens / 190000 + 1))); do
  echo "=== reading $reading ==="
  cat book.txt
done >readings.txt
head -c "$tokens" readings.txt >stream.txt
"$bin/convert" text --quiet -o book.h5 --valid 0.05 book.txt
"$bin/convert" text --quiet -o stream.h5 --test stream.txt book.txt
train() {
  "$bin/train" book.h5 --quiet -o "$1.h5" --layers 2 --dim 64 --heads 2 --steps 300 --batch 8 --lr 3e-3 --warmup 30 \
    "${@:2}" >log 2>&1 || fail "train $1: $(cat log)"
}
train rmt --mixer attention --memory-tokens 8 --seq-len 80 --segments 2
train gsa --mixer gsa --set slots=16 --seq-len 128
train rwkv7 --mixer rwkv7 --seq-len 128

# sample(): resident kB, and the processor's seconds, of the process `pid`.
tick=$(getconf CLK_TCK)
sampler='function sample(line, f, rss) {
  while ((getline line <("/proc/" pid "/status")) > 0) if (line ~ /^VmRSS/) { split(line, f, " "); rss = f[2] }
  close("/proc/" pid "/status")
  getline line <("/proc/" pid "/stat"); close("/proc/" pid "/stat")
  sub(/.*\) /, "", line); split(line, f, " ")
  return rss " " (f[12] + f[13]) / tick
}'
# at FILE TOKENS COLUMN: of the samples "tokens rss cpu".
at() { awk -v t="$2" -v c="$3" '$1 == t { print $c }' "$1"; }
key() { grep -oE "\"$1\":[^,}]*" "$2" | head -n 1 | cut -d: -f2; }
over() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.4f", a / b }'; }
within() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x >= low && x <= high) }' || fail "$4: $1 is not $2 to $3"; }

# A line of losses that comes through the pipe tells where the tool stands, but for what a pipe and a batch hold.
evaluate() {
  rm -f pipe && mkfifo pipe
  "$bin/eval-ppl" "$1.h5" stream.h5 --protocol stream --per-token --json >pipe 2>"$1.json" &
  local tool=$!
  awk -v pid=$tool -v tick="$tick" -v n="$tokens" -v samples="$1.eval" "$sampler"'
    NR % 10000 == 0 && NR <= n - 10000 { print NR, sample() >samples }
    NR >= n - 1000 { print $1 "\t" $NF }' pipe >"$1.losses"
  wait $tool || fail "eval-ppl $1: $(cat "$1.json")"
  [ "$(wc -l <"$1.losses")" = 1000 ] || fail "eval-ppl $1: $(wc -l <"$1.losses") last losses"
  "$bin/eval-ppl" "$1.h5" stream.h5 --protocol stream --json >"$1.json" || fail "eval-ppl $1"
}

# max_error MODEL: of the last losses, against those in double.
max_error() {
  QUIPU_MILLION_MODEL=$1.h5 QUIPU_MILLION_TEXT=stream.txt QUIPU_MILLION_LOSSES=$1.double \
    "$bin/quipu_test_double" --no-skip -tc='million:*' >log || fail "$1 in double: $(cat log)"
  paste "$1.losses" "$1.double" | awk -F'\t' '$1 != $3 { exit 1 } { d = $2 - $4; if (d < 0) d = -d; if (d > m) m = d }
    END { printf "%.1e", m }' || fail "$1: the losses are not of the same tokens"
}

# What has gone into the pipe tells where the tool stands, but for what the pipe holds.
read_book() {
  rm -f pipe && mkfifo pipe
  "$bin/generate" "$1.h5" - --tokens 100 --json <pipe >"$1.text" 2>log &
  local tool=$! next
  exec 3>pipe
  for next in $(seq 10000 10000 "$late"); do
    dd if=stream.txt bs=10000 skip=$((next / 10000 - 1)) count=1 status=none >&3
    if [ "$next" = $early ] || [ "$next" = "$late" ]; then sleep 1; fi  # until it has read that
    echo "$next $(awk -v pid=$tool -v tick="$tick" "$sampler"'BEGIN { print sample() }')" >>"$1.read"
  done
  tail -c +$((late + 1)) stream.txt >&3
  exec 3>&-
  wait $tool || fail "generate $1: $(cat log)"
  [ "$(key stream_tokens "$1.text")" = $((tokens + 100)) ] || fail "generate $1: $(cat "$1.text")"

  "$bin/generate" "$1.h5" --prompt-file stream.txt --tokens 0 --state-out "$1.state.h5" --state-every $((tokens / 100)) \
    --json >"$1.text" || fail "generate $1 --state-every"
  local sizes
  sizes=$(stat -c %s "$(printf '%s.state-%09d.h5' "$1" $((tokens / 100)))" "$(printf '%s.state-%09d.h5' "$1" "$tokens")")
  [ "$(uniq <<<"$sizes" | wc -l)" = 1 ] || fail "$1: state files early and late have $sizes bytes"
}

# row TOOL MODEL SAMPLES SECONDS STATE-BYTES LOSS-ERROR
row() {
  local first last memory time
  first=$(at "$3" $early 2) last=$(at "$3" $late 2)
  memory=$(over "$last" "$first")
  # Of the second and the last tenth, so that what the pipe holds is the same at all four ends.
  time=$(awk -v a="$(at "$3" $span 3)" -v b="$(at "$3" $((2 * span)) 3)" -v c="$(at "$3" $((late - 10000 - span)) 3)" \
    -v d="$(at "$3" $((late - 10000)) 3)" 'BEGIN { printf "%.3f", (d - c) / (b - a) }')
  printf '%-9s %-6s %8s %7.1f %8s %8s %8s %7s %8s %11s\n' "$1" "$2" "$tokens" "$4" "$first" "$last" "$memory" "$time" "$5" "$6"
  within "$memory" 0.99 1.01 "$1 $2: resident memory at $late tokens against that at $early"
  [ "$tokens" -lt 1000000 ] || within "$time" 0.7 1.4 "$1 $2: time per token at the end against that at the beginning"
}

printf '%-9s %-6s %8s %7s %8s %8s %8s %7s %8s %11s\n' tool model tokens seconds "kB early" "kB late" memory time "state B" "loss error"
for model in rmt gsa rwkv7; do
  evaluate $model
  error=-
  if [ -x "$bin/quipu_test_double" ]; then
    error=$(max_error $model)
    within "$error" 0 $loss_bound "$model: losses at the end, float against double"
  fi
  read_book $model
  state=$(key state_bytes $model.text)
  row eval-ppl $model $model.eval "$(key wall_s $model.json)" "$state" "$error"
  row generate $model $model.read "$(over "$(key prompt_tokens $model.text)" "$(key prompt_tokens_per_s $model.text)")" "$state" -
done
echo "million_stream_test: passed"
