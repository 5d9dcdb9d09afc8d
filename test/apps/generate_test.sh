#!/usr/bin/env bash
# generate as a user runs it: prompts, seeds, states, stops, pipes, signals and errors.
set -uo pipefail
export LC_ALL=C
bin=${QUIPU_BIN:?}
for tool in convert train generate; do
  [ -x "$bin/$tool" ] || { echo "skipped: no $tool yet"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "FAILED: $*" >&2; exit 1; }
generate() { "$bin/generate" --threads 1 "$@"; }
# same WHAT FILE FILE
same() { cmp -s "$2" "$3" || fail "$1: $(head -c 200 "$2" | tr '\n' '~') / $(head -c 200 "$3" | tr '\n' '~')"; }
# refused STATUS WORDS ARGUMENTS..: one line on stderr with WORDS in it
refused() {
  local wanted=$1 words=$2 status=0
  shift 2
  generate "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$wanted" ] || fail "generate $*: status $status, not $wanted: $(cat err)"
  [ "$(wc -l <err)" = 1 ] || fail "generate $*: not one line: $(cat err)"
  grep -q "^generate: .*$words" err || fail "generate $*: does not say '$words': $(cat err)"
}

for i in $(seq 300); do echo "The old man sat by the sea and said that $i ships had gone by, each as grand as a house."; done >text
"$bin/convert" text -o data.h5 text >log 2>&1 || fail "convert: $(cat log)"
for mixer in gsa attention; do
  "$bin/train" data.h5 -o $mixer.h5 --mixer $mixer --dim 32 --layers 2 --heads 2 --seq-len 64 --batch 4 --steps 60 \
    --lr 3e-3 --threads 1 >log 2>&1 || fail "train: $(cat log)"
done

# Prompts: shown when they come from the command line, read alike wherever they come from.
generate gsa.h5 "The old " --tokens 40 >a || fail "a prompt"
[ "$(head -c 8 a)" = "The old " ] || fail "the prompt is not shown: $(cat a)"
[ "$(wc -c <a)" = 48 ] || fail "40 bytes were asked for: $(wc -c <a) with the prompt"
generate gsa.h5 "The old " --tokens 40 --no-echo >b && tail -c 40 a | cmp -s - b || fail "--no-echo"
printf 'The old ' | generate gsa.h5 - --tokens 40 >c && same "a prompt from stdin" b c
printf 'The old ' >prompt
generate gsa.h5 --prompt-file prompt --tokens 40 --echo >c && same "a prompt from a file" a c
generate - "The old " --tokens 40 <gsa.h5 >c && same "a model from stdin" a c
generate gsa.h5 --tokens 10 >c && [ "$(wc -c <c)" = 10 ] || fail "no prompt"

# Seeds.
sampled=(--temperature 1.1 --top-k 40 --top-p 0.95 --min-p 0.01 --repetition-penalty 1.1)
generate gsa.h5 "The" --seed 3 "${sampled[@]}" >a && generate gsa.h5 "The" --seed 3 "${sampled[@]}" >b && same "a seed" a b
generate gsa.h5 "The" --seed 4 "${sampled[@]}" >c && ! cmp -s a c || fail "another seed gives the same text"
generate gsa.h5 "The" --top-k 40 --seed 3 >b && generate gsa.h5 "The" >c && ! cmp -s b c || fail "--top-k alone does not draw"
generate gsa.h5 "The" --temperature 0 --top-k 40 >b && same "temperature 0 is greedy" b c

# States.
for model in gsa attention; do
  generate $model.h5 "The man " --tokens 60 "${sampled[@]}" >whole || fail "$model"
  generate $model.h5 "The man " --tokens 25 "${sampled[@]}" --state-out s1 >parts &&
    generate $model.h5 --tokens 35 "${sampled[@]}" --state-in s1 >>parts && same "$model: a state" whole parts
  generate $model.h5 "The man " --tokens 0 --no-echo --state-out s0 >none && [ ! -s none ] || fail "--tokens 0"
  { printf 'The man ' && generate $model.h5 --tokens 60 "${sampled[@]}" --state-in s0; } >parts && same "$model: a read state" whole parts
  generate $model.h5 " by" --state-in s1 >a && generate $model.h5 " by" --state-in s1 >b && same "$model: a state twice" a b
done
refused 1 "s1: is the state of another model" gsa.h5 --state-in s1
head -c 1500 s0 >cut && refused 1 "cut: " attention.h5 --state-in cut
refused 1 "text: " gsa.h5 --state-in text

# States at several points of one reading: files that sort, each the state of a prompt that ends there.
"$bin/train" data.h5 -o rmt.h5 --mixer attention --memory-tokens 4 --dim 32 --layers 2 --heads 2 --seq-len 48 --batch 4 \
  --steps 20 --threads 1 >log 2>&1 || fail "train: $(cat log)"
head -c 1000 text >book
for model in gsa attention rmt; do
  rm -f b.x*.h5
  generate $model.h5 - --tokens 20 --state-out b.x.h5 --state-every 400 --json <book >made || fail "$model: --state-every"
  grep -qF '"states":["b.x-000000400.h5","b.x-000000800.h5","b.x.h5"]' made || fail "$model: --json: $(cat made)"
  [ "$(ls b.x*.h5 | wc -l)" = 3 ] || fail "$model: $(ls b.x*)"
  for tokens in 400 800; do
    head -c $tokens book | generate $model.h5 - --tokens 0 --state-out part.h5
    for state in part.h5 b.x-000000$tokens.h5; do generate $model.h5 --state-in $state --tokens 30 "${sampled[@]}" >text-$state; done
    same "$model: the state at $tokens" text-part.h5 text-b.x-000000$tokens.h5
  done
  generate $model.h5 - --tokens 20 <book >plain && generate $model.h5 - --tokens 20 --state-out b --state-every 300 <book >marked
  same "$model: the text after a reading with states" plain marked
  [ -s b-000000900 ] && rm b b-0* || fail "a state file without an ending: $(ls b*)"
done
if [ -w /dev/full ]; then
  ln -s /dev/full full-000000600.h5
  refused 1 "full-000000600.h5: cannot write: No space left" gsa.h5 --prompt-file book --state-out full.h5 --state-every 300
  [ -s full-000000300.h5 ] && [ ! -e full.h5 ] || fail "a full disk: $(ls full*)"
fi
refused 2 "state-every.*state-out" gsa.h5 "Hi" --state-every 10
refused 2 "state-every" gsa.h5 "Hi" --state-out s9 --state-every 0

# Stop texts end the output before them.
generate gsa.h5 "The " --tokens 80 --no-echo >a
stop=$(tail -c +30 a | head -c 4)
generate gsa.h5 "The " --tokens 80 --no-echo --stop "never
found" --stop "$stop" >b
text=$(cat a; echo .) && printf '%s' "${text%%"$stop"*}" >c && same "--stop '$stop'" b c
generate gsa.h5 "The " --tokens 80 --stop "$stop" --json >b && grep -q '"end":"stop_text"' b || fail "--json: $(cat b)"
for key in text tokens tokens_per_s prompt_tokens prompt_tokens_per_s stream_tokens state_bytes; do
  grep -q "\"$key\":" b || fail "--json: no $key: $(cat b)"
done
[ "$(wc -l <b)" = 1 ] || fail "--json: not one object"

# Pipes, devices, signals.
generate gsa.h5 "The " --tokens 100M --state-out piped 2>err | head -c 10 >c
status=${PIPESTATUS[0]}
[ "$status" = 0 ] && [ ! -s err ] && [ "$(wc -c <c)" = 10 ] || fail "a closed pipe: status $status: $(cat err)"
generate gsa.h5 --state-in piped --tokens 5 >c && [ "$(wc -c <c)" = 5 ] || fail "the state after a closed pipe"
if [ -w /dev/full ]; then
  status=0
  generate gsa.h5 "The " >/dev/full 2>err || status=$?
  [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "/dev/full: status $status: $(cat err)"
fi
for signal in TERM INT; do
  rm -f long  # the last one's text is no sign of life
  "$bin/generate" --threads 1 gsa.h5 "The " --tokens 100M --state-out "at$signal" >long 2>err &
  running=$!
  for _ in $(seq 200); do [ -s long ] && break; sleep 0.05; done
  kill -s $signal $running
  status=0
  wait $running || status=$?
  [ "$status" = 75 ] && grep -q "SIG$signal" err || fail "SIG$signal: status $status: $(cat err)"
  generate gsa.h5 --state-in "at$signal" --tokens 5 --json >c && grep -q '"stream_tokens":[0-9]*[0-9]' c || fail "the state after SIG$signal"
done

# Errors.
refused 2 "MODEL.h5"
refused 1 "missing.h5" missing.h5 "Hi"
refused 1 "text: " text "Hi"
refused 2 "temperature" gsa.h5 "Hi" --temperature -1
refused 2 "top-p" gsa.h5 "Hi" --top-p 0
refused 2 "top-k" gsa.h5 "Hi" --top-k -3
refused 2 "repetition-penalty" gsa.h5 "Hi" --repetition-penalty 0
refused 2 "stop" gsa.h5 "Hi" --stop ""
refused 2 "prompt-file" gsa.h5 "Hi" --prompt-file prompt
refused 2 "standard input" - -
refused 2 "state-out" gsa.h5 "Hi" --state-out -
refused 1 "gsa.h5: is read, and the output would take its place" gsa.h5 "Hi" --tokens 3 --state-out gsa.h5
refused 1 "empty" gsa.h5 -
refused 1 "nowhere" gsa.h5 "Hi" --tokens 3 --state-out nowhere/s.h5
if command -v script >/dev/null; then
  script -qec "$bin/generate gsa.h5 -; echo status \$?" /dev/null </dev/null >typed 2>&1
  grep -q "status 2" typed || fail "a terminal as stdin: $(cat typed)"
fi
exit 0
