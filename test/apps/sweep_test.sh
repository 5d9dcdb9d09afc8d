#!/usr/bin/env bash
# recall-bench sweep: a grid is trained and measured; cut into parts, stopped and taken up again, it gives the same bytes.
# shellcheck source=test/apps/frame.sh
source "$(dirname "$0")/frame.sh"
bench=$bin/recall-bench
for tool in recall-bench train; do
  [ -x "$bin/$tool" ] || { echo "skipped: $bin/$tool is not built"; exit 77; }
done
export OMP_NUM_THREADS=1
task=(--task mqar --vocab 16 --length 8 --pairs 2 --train 400 --valid 50 --test 60)
grid=(--mixer "gsa,linear_attention" --set slots=4 --dim 16 --lr 1e-2,1e-3 --seeds 1,2 --layers 1 --heads 1)
budget=(--steps 20 --batch 16 --eval-every 10)
count() { grep -c "$1" "$2" || true; }
lines_of() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# The whole grid at once: two models, each with two rates on the first seed and the better one on the second.
plot=()
! command -v gnuplot >/dev/null || plot=(--plot recall.svg)
status 0 "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --jobs 2 --threads 2 "${plot[@]}"
said "^mqar, filler=blank length=8 pairs=2 .*; chance 0.125$" out
said "^gsa slots=4, 1 layers +0\.[0-9]{4} \+-0\.[0-9]{4}$" out
said "^linear_attention, 1 layers " out
said "audit: overlap 0, re-binding 0, wrong answers 0$" err
[ "$(wc -l <whole/results.tsv)" = 7 ] && [ "$(wc -l <whole/results.jsonl)" = 6 ] || fail "$(cat whole/results.tsv)"
[ "$(head -n 1 whole/results.tsv | cut -f 1-3)" = "cell	outcome	chosen" ] || fail "$(head -n 1 whole/results.tsv)"
[ "$(cut -f 3 whole/results.tsv | count true /dev/stdin)" = 4 ] || fail "chosen: $(cut -f 1-3 whole/results.tsv)"
grep -q '"schema":"quipu-recall-sweep-1".*"mixer":"gsa","options":"slots=4","layers":1,"dim":16' whole/results.jsonl ||
  fail "$(cat whole/results.jsonl)"
[ "$(awk -F '\t' 'NR > 1 && $2 > 0 && $3 > 0 && $4 > 1e6' whole/costs.tsv | wc -l)" = 6 ] || fail "$(cat whole/costs.tsv)"
[ -z "${plot[*]}" ] || grep -q '</svg>' recall.svg || fail "no plot"
cell=whole/cells/mqar_length8_pairs2_vocab16-gsa_slots4-dim16-layers1-lr0.01-seed1
[ -f "$cell/model.best.h5" ] && [ ! -e "$cell/model.h5" ] || fail "$(ls "$cell")"
"$bench" run "$cell/model.best.h5" whole/tasks/mqar_length8_pairs2_vocab16.h5 --json >out
accuracy=$(grep -oE '"accuracy":[^,]*' out | head -n 1 | cut -d: -f2)
grep -q "lr0.01-seed1.*\"mixer\":\"gsa\".*\"accuracy\":$accuracy," whole/results.jsonl || fail "$accuracy: $(cat whole/results.jsonl)"

# What is done is not done again; --list-cells and --collect run nothing.
cp -r whole/results.tsv whole/costs.tsv whole/results.jsonl .
status 0 "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --json
[ "$(count '"schema":"quipu-recall-sweep-point-1"' out)" = 2 ] || fail "$(cat out)"
rm whole/results.tsv
status 0 "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --collect
for name in results.tsv results.jsonl costs.tsv; do cmp $name "whole/$name" || fail "$name changes"; done
status 0 "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --list-cells
[ "$(count ' done  ' out)" = 6 ] || fail "$(cat out)"
status 0 "$bench" sweep absent "${task[@]}" "${grid[@]}" "${budget[@]}" --list-cells
[ "$(count ' open  ' out)" = 4 ] && [ "$(count 'waits for its rate  .*-lrbest-seed2$' out)" = 2 ] || fail "$(cat out)"
[ ! -e absent ] || fail "--list-cells makes a folder"

# Two shares at the same time, which both want the task, equal the whole.
parts=()
for share in 1/2 2/2; do
  "$bench" sweep parts "${task[@]}" "${grid[@]}" "${budget[@]}" --cells $share >"part${share%/*}" 2>&1 &
  parts+=($!)
done
for part in "${parts[@]}"; do wait "$part" || fail "a share: $(cat part1 part2)"; done
cmp results.tsv parts/results.tsv || fail "shares give other results"
[ "$(cat part1 part2 | grep -c ' examples; audit')" = 1 ] || fail "the task was made twice: $(cat part1 part2)"

# Single cells: a further seed waits until all rates are tried.
one=(--mixer linear_attention --dim 16 --lr 1e-2,1e-3 --seeds 1,2 --layers 1)
status 75 "$bench" sweep single "${task[@]}" "${one[@]}" "${budget[@]}" --cell 3
said "0 of 1 cells done; 0 failed, .* 1 wait for a rate" err
status 0 "$bench" sweep single "${task[@]}" "${one[@]}" "${budget[@]}" --cell 2,1
status 0 "$bench" sweep single "${task[@]}" "${one[@]}" "${budget[@]}" --cell 3
[ "$(wc -l <single/results.tsv)" = 4 ] || fail "$(cat single/results.tsv)"

# Heads of one mixer stand beside those of all.
heads=(--mixer gsa,linear_attention --set gsa.heads=2 --heads 1 --dim 16 --lr 1e-2 --layers 1)
status 0 "$bench" sweep heads "${task[@]}" "${heads[@]}" "${budget[@]}"
for model in gsa_gsa.heads2:2 linear_attention:1; do
  "$bin/convert" show heads/cells/mqar_length8_pairs2_vocab16-"${model%:*}"-dim16-layers1-lr0.01-seed1/model.best.h5 >out
  said "^config.heads +${model#*:}$" out
done
status 2 "$bench" sweep heads "${task[@]}" "${heads[@]}" --set gla.heads=2
said "set gla.heads: none of the mixers has this option" err

# Stopped by a signal in the middle of training, and by its time limit: 75, and the same command ends with the same bytes.
long=(--mixer gsa --dim 16 --layers 1 --heads 1 --lr 1e-2 --batch 16 --steps 700 --eval-every 100 --threads 1)
status 0 "$bench" sweep straight "${task[@]}" "${long[@]}"
for signal in TERM INT USR1; do
  log=stopped/cells/mqar_length8_pairs2_vocab16-gsa-dim16-layers1-lr0.01-seed1/train.jsonl
  before=$(lines_of "$log")
  "$bench" sweep stopped "${task[@]}" "${long[@]}" >out 2>err &
  sweep=$!
  for _ in $(seq 500); do
    [ "$(lines_of "$log")" -lt $((before + 2)) ] || break
    sleep 0.02
  done
  kill -s $signal $sweep
  got=0; wait $sweep || got=$?
  [ "$got" = 75 ] || fail "status $got at $signal: $(cat err)"
  said "stopped by SIG$signal with 0 of 1 cells done" err
done
[ "$(wc -l <"$log")" -lt 100 ] || fail "it was not stopped"
status 75 "$bench" sweep stopped "${task[@]}" "${long[@]}" --time-limit 0.05s
status 0 "$bench" sweep stopped "${task[@]}" "${long[@]}"
said "accuracy" out
for name in results.tsv results.jsonl; do cmp "straight/$name" "stopped/$name" || fail "stopping changes $name"; done
[ "$(grep -o '"step":[0-9]*' "$log")" = "$(grep -o '"step":[0-9]*' "${log/stopped/straight}")" ] || fail "other steps"

# A job array, of which each task takes a share and requeues itself when its time is up: in its first run, at once.
mkdir stopping
cat >stopping/recall-bench <<'STOP'
#!/usr/bin/env bash
[ -n "${SLURM_RESTART_COUNT:-}" ] || set -- "$@" --time-limit 0.2s
exec "$REAL_BENCH" "$@"
STOP
chmod +x stopping/recall-bench
export FAKE_SLURM=$folder/slurm REAL_BENCH=$bench LIMIT=10m
job=$(QUIPU_BIN=$folder/stopping PATH=$root/test/apps/fake_slurm:$PATH sbatch --parsable --array=1-2 "$root/data/slurm/recall.sbatch" \
  array "${task[@]}" "${grid[@]}" "${budget[@]}")
for share in 1 2; do
  [ "$(cat "$FAKE_SLURM/jobs/${job}_$share")" = "COMPLETED 0" ] || fail "$(cat ./quipu-recall-*.log)"
  said "share $share/2 of array, run 1, on" "quipu-recall-${job}_$share.log"
  said "run 2, on" "quipu-recall-${job}_$share.log"
done
cmp results.tsv array/results.tsv || fail "the array gives other results"

# A cell that fails is said in a line, the others go on; a rate that diverges is out.
status 1 "$bench" sweep failing "${task[@]}" --mixer linear_attention --dim 15,16 --heads 2 --layers 1 "${budget[@]}"
said "dim15-layers1-lr0.001-seed1: train: .*15" err
said "1 of 2 cells done; 1 failed" err
[ "$(wc -l <failing/results.tsv)" = 2 ] || fail "$(cat failing/results.tsv)"
status 0 "$bench" sweep diverging "${task[@]}" --mixer linear_attention --dim 16 --lr 1e38,1e-3 --seeds 1,2 --layers 1 "${budget[@]}" --clip 0
said "lr1e\+38-seed1: train: step " err
said "lr1e\+38-seed1	diverged	false" diverging/results.tsv
said "lr0.001-seed2	done	true" diverging/results.tsv

# Other options for what is there, and what cannot be.
refused 2 "was begun with --batch 16, this sweep has 17" "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --batch 17
refused 2 "--train 400" "$bench" sweep whole "${task[@]}" "${grid[@]}" "${budget[@]}" --train 401
cmp results.tsv whole/results.tsv || fail "a refusal changes results"
refused 2 "--length has 2 values and --pairs has 3" "$bench" sweep bad --task mqar --length 64,128 --pairs 2,3,4
refused 2 "--set slots: none of the mixers" "$bench" sweep bad "${task[@]}" --mixer linear_attention --set slots=4
refused 2 "glu" "$bench" sweep bad "${task[@]}" --mixer gsa,glu
refused 2 "--cells 3/2: is no share" "$bench" sweep bad "${task[@]}" --cells 3/2
refused 2 "--cell: 2 is above 1" "$bench" sweep bad "${task[@]}" --cell 2
refused 2 "exclude each other" "$bench" sweep bad "${task[@]}" --cell 2 --cells 1/2
refused 2 "no examples to choose by" "$bench" sweep bad "${task[@]}" --valid 0
refused 2 "--task is missing" "$bench" sweep bad
refused 1 "has no cells to collect" "$bench" sweep bad "${task[@]}" --collect
refused 1 "/dev/null/sweep/cells: cannot make the folder" "$bench" sweep /dev/null/sweep "${task[@]}"
refused 2 "ends so" "$bench" sweep bad "${task[@]}" --plot recall.pdf
echo "sweep_test: passed"
