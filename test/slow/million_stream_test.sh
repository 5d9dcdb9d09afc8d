#!/usr/bin/env bash
# A million tokens through eval-ppl and generate, with small trained models of fixed memory: the beginning of the King
# James Bible, over and over with markers, one byte a token. Resident memory at the end is that at ten thousand tokens
# to 1 %, the processor's time per token does not grow, all losses are finite, the last thousand are those of the double
# build, and the state after a million tokens is as large as that after ten thousand. Prints a table.
# QUIPU_MILLION=100000 makes it a tenth as long, too short to judge the time.
source "$(dirname "$0")/../apps/frame.sh"
tokens=${QUIPU_MILLION:-1000000}
early=10000 late=$((tokens - 10000))  # where samples are taken; at the last one the tools are still at work
span=$((tokens / 10))                 # over which times are compared
loss_bound=1e-3                       # nats, of one token, float against double
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
train() {
  "$bin/train" book.h5 --quiet -o "$1.h5" --layers 2 --dim 64 --heads 2 --steps 300 --batch 8 --lr 3e-3 --warmup 30 \
    "${@:2}" >log 2>&1 || fail "train $1: $(cat log)"
}
train rmt --mixer attention --memory-tokens 8 --seq-len 80 --segments 2
train gsa --mixer gsa --set slots=16 --seq-len 128
train rwkv7 --mixer rwkv7 --seq-len 128

# sample(): resident kB, the processor's seconds, and the clock's seconds of the process `pid`.
awk_sample='function sample(line, f, rss) {
  while ((getline line <("/proc/" pid "/status")) > 0) if (line ~ /^VmRSS/) { split(line, f, " "); rss = f[2] }
  close("/proc/" pid "/status")
  getline line <("/proc/" pid "/stat"); close("/proc/" pid "/stat")
  sub(/.*\) /, "", line); split(line, f, " "); line = (f[12] + f[13]) / tick
  getline f[0] <"/proc/uptime"; close("/proc/uptime"); sub(/ .*/, "", f[0])
  return rss " " line " " f[0]
}'
tick=$(getconf CLK_TCK)
# at FILE TOKENS COLUMN: of the samples "tokens rss cpu clock", the first with so many tokens.
at() { awk -v t="$2" -v c="$3" '$1 >= t { print $c; exit }' "$1"; }
checked() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x >= low && x <= high) }' || fail "$4: $1 is not $2 to $3"; }
key() { grep -oE "\"$1\":[^,}]*" "$2" | head -n 1 | cut -d: -f2; }
# seconds_of FILE COLUMN FROM TO: per million tokens.
seconds_of() {
  awk -v a="$(at "$1" "$3" "$2")" -v b="$(at "$1" "$4" "$2")" -v n=$(($(at "$1" "$4" 1) - $(at "$1" "$3" 1))) \
    'BEGIN { printf "%.3f", (b - a) / n * 1e6 }'
}

# A line of losses that comes through the pipe tells where the tool stands, but for what a pipe and a batch hold.
evaluate() {
  rm -f pipe && mkfifo pipe
  "$bin/eval-ppl" "$1.h5" stream.txt --protocol stream --per-token --json >pipe 2>"$1.json" &
  local tool=$!
  awk -v pid=$tool -v tick="$tick" -v n="$tokens" -v samples="$1.eval" "$awk_sample"'
    NR % 10000 == 0 && NR <= n - 10000 { print NR, sample() >samples }
    NR >= n - 1000 { print $1 "\t" $NF }' pipe >"$1.losses"
  wait $tool || fail "eval-ppl $1: $(cat "$1.json")"
  [ "$(wc -l <"$1.losses")" = 1000 ] || fail "eval-ppl $1: $(wc -l <"$1.losses") last losses"
}

# The states of a reading tell where it stands; the text made behind it keeps the tool at work until the last is seen.
read_book() {
  "$bin/generate" "$1.h5" --prompt-file stream.txt --state-out "$1.state.h5" --state-every 10000 --tokens 2000 \
    --json >"$1.text" 2>log &
  local tool=$! last=0 now
  while kill -0 $tool 2>/dev/null; do
    now=$(find . -name "$1.state-*.h5" | sort | tail -n 1 | sed 's/.*-0*\([0-9]*\)\.h5/\1/')
    if [ "${now:-0}" != "$last" ]; then
      last=$now
      echo "$now $(awk -v pid=$tool -v tick="$tick" "$awk_sample"'BEGIN { print sample() }')" >>"$1.read"
    fi
    sleep 0.02
  done
  wait $tool || fail "generate $1: $(cat log)"
  [ "$(key tokens "$1.text")" = 2000 ] && [ "$(key stream_tokens "$1.text")" = $((tokens + 2000)) ] || fail "$(cat "$1.text")"
}

# row TOOL MODEL SAMPLES LOSS-ERROR STATE-BYTES
row() {
  local first last memory time
  first=$(at "$3" $early 2) last=$(at "$3" $late 2)
  memory=$(awk -v a="$first" -v b="$last" 'BEGIN { printf "%.4f", b / a }')
  time=$(awk -v a="$(seconds_of "$3" 3 $early $((early + span)))" -v b="$(seconds_of "$3" 3 $((late - span)) $late)" \
    'BEGIN { printf "%.3f", b / a }')
  printf '%-9s %-6s %9s %7.1f %9s %9s %8s %8s %9s %12s\n' "$1" "$2" "$tokens" "$(seconds_of "$3" 4 $early $late)" \
    "$first" "$last" "$memory" "$time" "$5" "$4"
  checked "$memory" 0.99 1.01 "$1 $2: resident memory at the end against that at $early tokens"
  [ "$tokens" -lt 1000000 ] || checked "$time" 0.5 1.5 "$1 $2: time per token in the last tenth against the first"
}

printf '%-9s %-6s %9s %7s %9s %9s %8s %8s %9s %12s\n' tool model tokens "s/1M" "kB early" "kB late" memory time "state B" "max |loss|"
for model in rmt gsa rwkv7; do
  evaluate $model
  error=-
  if [ -x "$bin/quipu_test_double" ]; then
    QUIPU_MILLION_MODEL=$model.h5 QUIPU_MILLION_TEXT=stream.txt QUIPU_MILLION_LOSSES=$model.double \
      "$bin/quipu_test_double" --no-skip -tc='million:*' >log || fail "$model in double: $(cat log)"
    error=$(paste "$model.losses" "$model.double" | awk -F'\t' '$1 != $3 { exit 1 } { d = $2 - $4; if (d < 0) d = -d; if (d > m) m = d }
      END { printf "%.2e", m }') || fail "$model: the losses are not of the same tokens"
    checked "$error" 0 $loss_bound "$model: losses at the end, float against double"
  fi
  row eval-ppl $model $model.eval "$error" -
  read_book $model
  sizes=$(stat -c %s "$(printf '%s.state-%09d.h5' $model $early)" "$(printf '%s.state-%09d.h5' $model "$tokens")")
  [ "$(uniq <<<"$sizes" | wc -l)" = 1 ] || fail "$model: state files early and late have $sizes bytes"
  row generate $model $model.read - "$(key state_bytes $model.text)"
done
echo "million_stream_test: passed"
