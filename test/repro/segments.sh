#!/usr/bin/env bash
# Memory across segments: trains one cell of the published synthetic tasks on rows that grow from one segment to many, and
# prints a line of TSV for each seed: cell, seed, CPU seconds, accuracy on the test split, its 95 % interval.
#   segments.sh CELL [SEED..]     in an empty folder, or where it was stopped: what is trained is not trained again
# STAGES="SIZE:STEPS[:SEGMENT] .." trains by other stages than the cell's own; a stage may have segments of its own length.
# Cells: TASK-MODEL, tasks copy12 reverse12 associative4 copy40, models none xl rmt. See README.md beside this script.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${QUIPU_BIN:-$here/../../build/bin}
cell=${1:?a cell, such as copy12-rmt}
shift
[ $# -gt 0 ] || set -- 1
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi

# Of each task: its segment, the options that grow stage by stage with the steps of each, and the cache or the memory.
case ${cell%-*} in
  copy12) task=copy length=12 cache=12 memory=6 stages="4:400 8:600 16:1200 24:1500" ;;
  reverse12) task=reverse length=12 cache=12 memory=6 stages="6:400 12:800 24:6000" ;;
  associative4) task=associative length=4 cache=4 memory=4 stages="1:300 2:4000 4:6000" ;;
  copy40) task=copy length=40 cache=40 memory=40 stages="20:400 40:800 80:400 120:300" ;;
  *) echo "segments.sh: no task ${cell%-*}" >&2 && exit 2 ;;
esac
lr=5e-4 batch=32
model=(--layers 4 --dim 128 --heads 4)
case ${cell##*-} in
  none) model+=(--mixer transformer_xl --set memory=0) ;;
  xl)  # no gradient reaches its cache: it needs longer
    model+=(--mixer transformer_xl --set "memory=$cache")
    [ $task != copy ] || [ $length != 12 ] || stages="8:600 12:1500 16:2500 20:3000 24:6000"
    lr=3e-4
    ;;
  rmt)
    model+=(--mixer attention --memory-tokens $memory)
    if [ $task = associative ]; then  # first in one segment, then the query alone in the next, then pairs apart too
      stages="4:400:10 4:800:8 4:6000"
      lr=1e-3 batch=128
      model+=(--set use_short_conv=true)
    fi
    ;;
  *) echo "segments.sh: no model ${cell##*-}" >&2 && exit 2 ;;
esac
grows=--count
[ $task = associative ] && grows=--pairs

stages=${STAGES:-$stages}
for seed in "$@"; do
  from=() cpu=0
  for stage in $stages; do
    IFS=: read -r size steps segment <<<"$stage"
    data=$task$size.h5 out=$cell-$seed-$size${segment:+-in-$segment}.h5
    [ -e "$data" ] || "$bin/recall-bench" make $task $grows "$size" -o "$data" --quiet >/dev/null
    if [ ! -e "$out.done" ]; then
      /usr/bin/time -a -f "%U %S" -o "$out.time" "$bin/train" "$data" -o "$out" "${from[@]}" "${model[@]}" \
        --seq-len "${segment:-$length}" --batch $batch --lr $lr --schedule constant --warmup 50 --steps "$steps" \
        --eval-every 100 --log "$out.jsonl" --seed "$seed" --quiet >/dev/null
      mv "$out.time" "$out.done"
    fi
    cpu=$(awk -v sum="$cpu" '/^[0-9.]+ [0-9.]+$/ { sum += $1 + $2 } END { print sum }' "$out.done")  # of all its runs
    from=(--init "${out%.h5}.best.h5")
  done
  result=$("$bin/recall-bench" run "${from[1]}" "$data" --json)
  figure() { grep -oE "\"$1\":[0-9.e-]+" <<<"$result" | head -n 1 | cut -d: -f2; }
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$cell" "$seed" "$cpu" "$(figure accuracy)" "$(figure accuracy_low)" \
    "$(figure accuracy_high)"
done
