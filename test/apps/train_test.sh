#!/usr/bin/env bash
# train as a user runs it: stops and resumes, refuses what cannot be, and never spoils a checkpoint.
set -uo pipefail
root=${QUIPU_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
bin=${QUIPU_BIN:-$root/build/bin}
for tool in convert train; do
  [ -x "$bin/$tool" ] || { echo "skipped: $bin/$tool is not built"; exit 77; }
done
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export OMP_NUM_THREADS=1 SOURCE_DATE_EPOCH=1700000000
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# refuses STATUS TEXT COMMAND...: the command ends with that status and one line that holds the text.
refuses() {
  local status=$1 text=$2
  shift 2
  "$@" >out 2>err
  local got=$?
  [ "$got" = "$status" ] || fail "$*: status $got, expected $status: $(tail -n 1 err)"
  grep -qF -- "$text" err || fail "$*: says '$(tail -n 1 err)', expected '$text'"
  [ "$(grep -c '^train: ' err)" = 1 ] || fail "$*: is not one line: $(cat err)"
}
timeless() { sed -E 's/"(tokens_per_s|memory_bytes)":[-+0-9.e]+//g' "$1"; }

for i in $(seq 1500); do echo "line $i of a text with $((i * i % 97)) and $((i * 7 % 31)) in it"; done >text.txt
"$bin/convert" text -o data.h5 --valid 0.1 text.txt >/dev/null 2>&1 || fail "convert"
# (In the background the tool itself is started, so that $! is its process.)
train() { "$bin/train" "$@"; }
tiny=(--layers 1 --dim 16 --heads 2 --set slots=4 --batch 2 --seq-len 16)

# A run that is stopped by a signal ends with 75 and, started again, is the run that nobody stopped.
run=("${tiny[@]}" --steps 4000 --log-every 200 --eval-every 2000 --eval-tokens 2000)
train data.h5 -o whole.h5 --log whole.jsonl "${run[@]}" --json >whole.json 2>/dev/null || fail "a plain run: status $?"
grep -q '"schema":"quipu-train-1"' whole.json || fail "--json: $(cat whole.json)"
[ "$(wc -l <whole.jsonl)" = 20 ] || fail "the log has $(wc -l <whole.jsonl) lines, expected 20"
grep -q valid_loss_nats whole.jsonl || fail "the log has no validation loss"
for signal in TERM USR1 INT; do
  rm -f cut.* && : >cut.jsonl
  "$bin/train" data.h5 -o cut.h5 --log cut.jsonl "${run[@]}" >/dev/null 2>err &
  child=$!
  for _ in $(seq 600); do [ "$(wc -l <cut.jsonl)" -ge 3 ] && break; sleep 0.02; done
  kill -s $signal $child
  wait $child
  status=$?
  [ $status = 75 ] || [ $status = 0 ] || fail "SIG$signal: status $status: $(tail -n 1 err)"
  [ $status = 75 ] && { grep -q "stopped by SIG$signal" err || fail "SIG$signal: $(tail -n 1 err)"; }
  train data.h5 -o cut.h5 --log cut.jsonl "${run[@]}" >/dev/null 2>err || fail "resume after SIG$signal: status $?"
  [ $status = 0 ] || grep -q "goes on from cut.h5" err || fail "resume: $(cat err)"
  diff <(timeless whole.jsonl) <(timeless cut.jsonl) >/dev/null || fail "SIG$signal: the log is another one"
  cmp -s <("$bin/convert" show whole.h5 --json | grep -o '"parameter_digest[^,]*') \
    <("$bin/convert" show cut.h5 --json | grep -o '"parameter_digest[^,]*') || fail "SIG$signal: other weights"
done

# A time limit likewise; a signal in the first moments loses nothing either.
train data.h5 -o limit.h5 "${tiny[@]}" --steps 1e7 --time-limit 1s >/dev/null 2>err
[ $? = 75 ] || fail "--time-limit: no status 75: $(tail -n 1 err)"
grep -q "stopped by the time limit" err || fail "--time-limit: $(tail -n 1 err)"
"$bin/train" data.h5 -o early.h5 "${tiny[@]}" --steps 1e7 >/dev/null 2>err &
child=$!
for _ in $(seq 600); do [ -e early.h5.lock ] && break; sleep 0.01; done
kill -TERM $child
wait $child
[ $? = 75 ] || fail "an early SIGTERM: no status 75: $(tail -n 1 err)"
[ -s early.h5 ] || fail "an early SIGTERM: nothing is saved"

# A twin on the same output is refused while the first lives; the output of a dead one is free.
"$bin/train" data.h5 -o twin.h5 "${tiny[@]}" --steps 1e7 >/dev/null 2>&1 &
child=$!
for _ in $(seq 600); do [ -e twin.h5 ] && break; sleep 0.02; done
refuses 1 "twin.h5" train data.h5 -o twin.h5 "${tiny[@]}" --steps 1e7
kill -KILL $child
wait $child 2>/dev/null
train data.h5 -o twin.h5 "${tiny[@]}" --steps 1e7 --time-limit 1s >/dev/null 2>&1
[ $? = 75 ] || fail "after a killed twin: no status 75"

# What cannot be, in one line each, with its status.
refuses 2 "--heads 3: does not divide the width 16 (--dim)" train data.h5 -o x.h5 --dim 16 --heads 3
refuses 2 "--mixer gas: is unknown" train data.h5 -o x.h5 --mixer gas
refuses 2 "--set slotz=4: no mixer of this model has such an option" train data.h5 -o x.h5 --set slotz=4
refuses 2 "--lerning-rate" train data.h5 -o x.h5 --lerning-rate 1
refuses 2 "--steps" train data.h5 -o x.h5 --steps -5
refuses 2 "--output: is missing" train data.h5
refuses 2 "DATA.h5: is missing" train -o x.h5
refuses 1 "nothere.h5" train nothere.h5 -o x.h5
refuses 1 "text.txt" train text.txt -o x.h5
refuses 1 "a window and its last target need 100001" train data.h5 -o x.h5 --seq-len 100000
refuses 4 "lower --lr" train data.h5 -o nan.h5 "${tiny[@]}" --lr 1e30 --warmup 0 --steps 50
[ -s nan.h5 ] || fail "a NaN: the checkpoint before it is gone"
[ -e x.h5 ] && fail "a refused run left x.h5"
ls ./*.lock >/dev/null 2>&1 && fail "a lock was left behind: $(ls ./*.lock)"

# A checkpoint of another model is not overwritten, unless that is asked for.
cp whole.h5 before.h5
refuses 2 "whole.h5: is a model with --dim 16, this run has 32" \
  train data.h5 -o whole.h5 "${run[@]}" --dim 32
refuses 2 "whole.h5: was trained with --lr 0.001, this run has 0.002" train data.h5 -o whole.h5 "${run[@]}" --lr 2e-3
cmp -s whole.h5 before.h5 || fail "a refused run changed the checkpoint"
train data.h5 -o whole.h5 "${run[@]}" --steps 20 --dim 32 --resume never >/dev/null 2>&1 || fail "--resume never: status $?"

# The configuration file: options as on the command line, which wins; unknown keys are errors.
cat >good.toml <<END
layers = 1
dim = 16
heads = 2
set = ["slots=4"]
batch = 2
seq-len = 16
steps = 10
END
train data.h5 -o config.h5 --config good.toml --steps 12 --json 2>/dev/null | grep -q '"step":12' || fail "--config"
echo 'lerning-rate = 1' >bad.toml
refuses 2 "lerning-rate" train data.h5 -o x.h5 --config bad.toml

# Output that cannot be written.
if [ "$(id -u)" != 0 ]; then
  mkdir readonly && chmod a-w readonly
  refuses 1 "readonly" train data.h5 -o readonly/m.h5 "${tiny[@]}" --steps 2
fi
refuses 1 "nofolder" train data.h5 -o nofolder/m.h5 "${tiny[@]}" --steps 2
refuses 1 "/dev/full" train data.h5 -o /dev/full "${tiny[@]}" --steps 2

# What it says without training: needs, mixers, options.
train data.h5 "${tiny[@]}" --dry-run --json 2>/dev/null | grep -q '"total_bytes":[0-9]' || fail "--dry-run"
train --list-mixers --json 2>/dev/null | grep -q '"name":"gsa".*"memory":"fixed","state":"[^"]*","state_bytes_per_layer":[0-9]' ||
  fail "--list-mixers: $(train --list-mixers --json 2>&1)"
train --describe-mixer gsa 2>/dev/null | grep -q '^slots *64 *memory slots' || fail "--describe-mixer"
refuses 2 "--mixer nomixer: is unknown" train --describe-mixer nomixer

# The log takes the place of nothing that is read.
cp data.h5 kept.h5
refuses 1 "kept.h5: is read, and the output would take its place" train kept.h5 -o bad.h5 "${tiny[@]}" --log kept.h5
cmp -s data.h5 kept.h5 || fail "the dataset is gone"

# Through pipes: the dataset from one, the checkpoint into another.
train - -o - "${tiny[@]}" --steps 3 <data.h5 2>/dev/null >piped.h5 || fail "pipes: status $?"
"$bin/convert" show piped.h5 >/dev/null 2>&1 || fail "pipes: no checkpoint came out"

[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
