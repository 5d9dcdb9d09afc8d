#!/usr/bin/env bash
# Who multiplies, and in which numbers: --blas and --precision as a user meets them.
source "$(dirname "${BASH_SOURCE[0]}")/frame.sh"
cat "$root"/lib/*/*.h >text.txt  # any text
"$bin/convert" text text.txt -o data.h5 --valid 0.05 --quiet
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run=(--mixer gsa --layers 2 --dim 64 --heads 2 --batch 8 --seq-len 64 --steps 60 --lr 3e-3 --json --quiet)
figure() { sed -E "s/.*\"$1\":([^,}]*).*/\1/" "$2"; }
near() { awk -v a="$1" -v b="$2" -v r="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= r * b) }' || fail "$4: $1 is not $2"; }

status 0 "$bin/train" data.h5 -o float.h5 "${run[@]}" --blas openblas
cp out float.json
built=$("$bin/train" --version | sed -n 's/^oneDNN  *//p')
if [ "$built" = none ]; then
  refused 2 "libdnnl-dev" "$bin/train" data.h5 -o bad.h5 "${run[@]}" --blas onednn
  refused 2 "libdnnl-dev" "$bin/train" data.h5 -o bad.h5 "${run[@]}" --precision bf16
  echo "precision_test: passed, without oneDNN" && exit 0
fi

status 0 "$bin/train" data.h5 -o onednn.h5 "${run[@]}" --blas onednn
near "$(figure valid_loss_nats out)" "$(figure valid_loss_nats float.json)" 1e-3 "the loss with oneDNN's products"
status 0 "$bin/eval-ppl" onednn.h5 data.h5 --split valid --json --blas onednn
refused 2 "--blas" "$bin/eval-ppl" onednn.h5 data.h5 --split valid --blas mkl

# A CPU without the instructions, as oneDNN is told to see it.
export DNNL_MAX_CPU_ISA=AVX512_CORE
refused 2 "no bf16 instructions" "$bin/train" data.h5 -o bad.h5 "${run[@]}" --precision bf16
measured=("$bin/profile" --mixer gsa --dim 64 --layers 1 --vocab 64 --mode train --lengths 64 --batch 2 --time 0.05s --quiet)
refused 2 "no bf16 instructions" "${measured[@]}" --precision bf16
unset DNNL_MAX_CPU_ISA
case $built in *without*) echo "precision_test: passed, without bf16" && exit 0 ;; esac

status 0 "$bin/train" data.h5 -o bf16.h5 "${run[@]}" --precision bf16
near "$(figure valid_loss_nats out)" "$(figure valid_loss_nats float.json)" 0.01 "the loss in bf16"
[ "$(figure valid_loss_nats out)" != "$(figure valid_loss_nats float.json)" ] || fail "bf16 changed nothing"
cp out bf16.json
status 0 "${measured[@]}" --precision bf16
said "^ceiling .*linear layers in bf16" out
# It goes on exactly, and not in other numbers.
run+=(--schedule constant --warmup 1)
status 0 "$bin/train" data.h5 -o whole.h5 "${run[@]}" --precision bf16
cp out whole.json
status 0 "$bin/train" data.h5 -o cut.h5 "${run[@]}" --precision bf16 --steps 30
refused 2 "--precision" "$bin/train" data.h5 -o cut.h5 "${run[@]}"
status 0 "$bin/train" data.h5 -o cut.h5 "${run[@]}" --precision bf16
[ "$(figure valid_loss_nats out)" = "$(figure valid_loss_nats whole.json)" ] || fail "goes on otherwise: $(cat out) $(cat whole.json)"
echo "precision_test: passed"
