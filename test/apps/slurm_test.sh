#!/usr/bin/env bash
# The job scripts of data/slurm, run by a stand-in for the scheduler (fake_slurm/): a job that is signalled before its
# time limit is requeued until done and loses nothing; a cancelled one saves and stays away; an array fills its table.
set -euo pipefail
root=${QUIPU_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
export QUIPU_BIN=${QUIPU_BIN:-$root/build/bin}
for tool in convert train eval-ppl; do
  [ -x "$QUIPU_BIN/$tool" ] || { echo "skipped: $QUIPU_BIN/$tool is not built"; exit 77; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export FAKE_SLURM=$folder/slurm OMP_NUM_THREADS=1
PATH=$root/test/apps/fake_slurm:$QUIPU_BIN:$PATH

fail() {
  echo "FAILED: $*" >&2
  tail -n 20 ./*.log >&2 || true
  exit 1
}
expect() { [ "$2" = "$3" ] || fail "$1: is '$2', expected '$3'"; }
job_state() { cat "$FAKE_SLURM/jobs/$1"; }
logged_steps() { grep -o '"step": *[0-9]*' "$1" | grep -o '[0-9]*$' || true; }
nll() { eval-ppl "$1" data.h5 --split valid --json | tr -d '\n' | grep -oE '"nll_sum_nats": *[-+0-9.eE]+'; }

gzip -dc "$root/data/persuasion.txt.gz" | head -c 30000 >book.txt || true
convert text -o data.h5 --tokenizer bytes --valid 0.1 book.txt >convert.log 2>&1
model=(--mixer gsa --layers 1 --dim 16 --heads 2 --batch 2 --seq-len 16 --threads 1)
budget=(--steps 2000 --log-every 10 --eval-every 400)

# One job, signalled in its first and in its second run once that has logged two lines or more; the third ends.
signal_when() {
  local run=${SLURM_RESTART_COUNT:-0} lines
  [ "$run" -le 1 ] || return 1
  lines=$(logged_steps "$1" 2>/dev/null | wc -l)
  [ -e "$1.run$run" ] || echo "$lines" >"$1.run$run"
  [ "$lines" -ge $(($(cat "$1.run$run") + 2)) ]
}
export -f signal_when logged_steps
job=$(FAKE_SLURM_LIMIT_WHEN='signal_when requeued.jsonl' sbatch --parsable "$root/data/slurm/train.sbatch" \
  data.h5 requeued.h5 "${model[@]}" "${budget[@]}")
log=quipu-train-$job.log
expect "the state of the requeued job" "$(job_state "$job")" "COMPLETED 0"
expect "the runs of the requeued job" "$(grep -c "^train.sbatch: job $job, run" "$log")" 3
expect "the requeues" "$(grep -c 'back into the queue' "$log")" 2
expect "the last step" "$(logged_steps requeued.jsonl | tail -n 1)" 2000

# Nothing is lost or done twice: the uninterrupted run logs the same steps and ends with the same model.
train data.h5 -o straight.h5 --log straight.jsonl "${model[@]}" "${budget[@]}" >straight.log 2>&1
expect "the logged steps" "$(logged_steps requeued.jsonl)" "$(logged_steps straight.jsonl)"
expect "the loss of the requeued model" "$(nll requeued.h5)" "$(nll straight.h5)"

# A cancelled job (TERM) saves, ends with 75, and is not requeued; submitted again, it goes on.
job=$(FAKE_SLURM_LIMIT_WHEN='signal_when cancelled.jsonl' sbatch --parsable --signal=B:TERM@120 \
  "$root/data/slurm/train.sbatch" data.h5 cancelled.h5 "${model[@]}" "${budget[@]}")
expect "the state of the cancelled job" "$(job_state "$job")" "FAILED 75"
job=$(sbatch --parsable "$root/data/slurm/train.sbatch" data.h5 cancelled.h5 "${model[@]}" "${budget[@]}")
expect "the state of the job submitted again" "$(job_state "$job")" "COMPLETED 0"
expect "the loss of the model taken up again" "$(nll cancelled.h5)" "$(nll straight.h5)"

# A job that fails is not requeued, and says so.
job=$(sbatch --parsable "$root/data/slurm/train.sbatch" absent.h5 model.h5 "${model[@]}")
expect "the state of the failed job" "$(job_state "$job")" "FAILED 1"

# A run that never gets to its end gives up.
job=$(QUIPU_MAX_RESTARTS=0 FAKE_SLURM_LIMIT_WHEN='signal_when endless.jsonl' sbatch --parsable \
  "$root/data/slurm/train.sbatch" data.h5 endless.h5 "${model[@]}" "${budget[@]}")
expect "the state of the job that gave up" "$(job_state "$job")" "FAILED 1"

# An array over two mixers and two seeds. Each cell's first run stops at once (LIMIT), so that each is requeued.
mkdir stopping
cat >stopping/train <<'STOP'
#!/usr/bin/env bash
[ -n "${SLURM_RESTART_COUNT:-}" ] || exit 75
exec "$REAL_TRAIN" "$@"
STOP
chmod +x stopping/train
for tool in convert eval-ppl; do ln -s "$QUIPU_BIN/$tool" "stopping/$tool"; done
export MIXERS="linear_attention gsa" SEEDS="1 2" LIMIT=10m
small=(--layers 1 --dim 16 --heads 2 --batch 2 --seq-len 16 --threads 1 --steps 100 --eval-every 50)
export REAL_TRAIN=$QUIPU_BIN/train
job=$(QUIPU_BIN=$folder/stopping sbatch --parsable --array=0-3 \
  "$root/data/slurm/sweep.sbatch" data.h5 sweep "${small[@]}")
for task in 0 1 2 3; do
  expect "the state of task $task" "$(job_state "${job}_$task")" "COMPLETED 0"
  expect "the runs of task $task" "$(grep -c "^sweep.sbatch: task ${job}_$task, run" "quipu-sweep-${job}_$task.log")" 2
done
summary=$(sbatch --parsable --dependency=afterany:"$job" "$root/data/slurm/summary.sh" sweep)
expect "the state of the summary" "$(job_state "$summary")" "COMPLETED 0"
expect "the mixers of the table" "$(tail -n +2 sweep/summary.tsv | cut -f 1 | sort | paste -sd ' ')" "gsa linear_attention"
expect "the seeds of the table" "$(tail -n +2 sweep/summary.tsv | cut -f 2 | paste -sd ' ')" "2 2"
awk -F '\t' 'NR > 1 && !($3 > 0 && $3 < 8.5 && $5 > 1) { exit 1 }' sweep/summary.tsv || fail "$(cat sweep/summary.tsv)"

# A cell without a result is named; an array of the wrong size is refused.
rm sweep/gsa-2.json
if bash "$root/data/slurm/summary.sh" sweep >summary.log 2>&1; then fail "a missing cell went unnoticed"; fi
grep -q 'without a result: gsa-2' summary.log || fail "the missing cell is not named"
job=$(sbatch --parsable --array=0-2 "$root/data/slurm/sweep.sbatch" data.h5 sweep "${small[@]}")
expect "the state of a task of a wrong array" "$(job_state "${job}_0")" "FAILED 2"
echo "slurm_test: passed"
