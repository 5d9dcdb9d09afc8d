#!/usr/bin/env bash
# Models in bf16, q8 and q4 as a user meets them: made, shown, evaluated, run with a state, trained further, expanded,
# exported; and what the CPU's features are said to be.
source "$(dirname "$0")/frame.sh"
fact() { "$bin/convert" show --json "$1" | grep -oE "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2; }
# bits MODEL TEXT: a byte
bits() { "$bin/eval-ppl" "$1" "$2" --json 2>>notes | grep -oE '"bits_per_byte":[^,}]*' | cut -d: -f2; }
# near A B SHARE WHAT: they differ by no more than a share of the first.
near() { awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN { exit !(a > 0 && b > 0 && a - b <= s * a && b - a <= s * a) }' || fail "$4: $1 and $2"; }

for i in $(seq 1 300); do echo "This is line $i of a small text, and $((i * i)) is its square."; done >book.txt
head -n 30 book.txt >page.txt
"$bin/convert" text -o book.h5 book.txt 2>err

# share FORMAT: by how much the bits may change.
share() { case $1 in bf16) echo 0.001 ;; q8) echo 0.003 ;; q4) echo 0.03 ;; esac; }

# check MODEL TEXT: in every format it predicts nearly as well, takes fewer bytes, and goes on from a state.
check() {
  local model=$1 text=$2 exact bytes format
  exact=$(bits "$model" "$text") bytes=$(fact "$model" parameter_bytes)
  for format in bf16 q8 q4; do
    status 0 "$bin/convert" model "$model" -o packed.h5 --dtype $format
    said "[0-9]+ arrays in f32 \(.*\), [0-9]+ matrices in" err
    [ "$(fact packed.h5 number_formats | tr -d '"' | grep -c "f32 and")" = 1 ] || fail "$model: $(fact packed.h5 number_formats)"
    [ "$(fact packed.h5 parameter_bytes)" -lt "$((bytes * 4 / 5))" ] || fail "$model in $format: no smaller"
    [ "$(fact packed.h5 parameters)" = "$(fact "$model" parameters)" ] || fail "$model in $format: other parameters"
    near "$exact" "$(bits packed.h5 "$text")" "$(share $format)" "$model in $format: bits a byte"
    # A saved state goes on as one process would.
    status 0 "$bin/generate" packed.h5 "This is" --tokens 40 --no-echo
    mv out whole
    status 0 "$bin/generate" packed.h5 "This is" --tokens 15 --no-echo --state-out state.h5
    mv out first
    status 0 "$bin/generate" packed.h5 --state-in state.h5 --tokens 25
    cat first out | cmp - whole || fail "$model in $format: a saved state goes on otherwise"
    # It is a state of this model alone, not of the one in another format.
    refused 1 "is the state of another model" "$bin/generate" "$model" --state-in state.h5 --tokens 3
    # Expanded again, the same model, and a larger file.
    status 0 "$bin/convert" model packed.h5 -o wide.h5 --dtype f32
    [ "$(fact wide.h5 number_formats)" = '"f32"' ] || fail "$model in $format: is not expanded"
    near "$(bits packed.h5 "$text")" "$(bits wide.h5 "$text")" 0.0005 "$model in $format: expanded"
    # Without --dtype it stays as it is, to the last bit.
    status 0 "$bin/convert" model packed.h5 -o same.h5
    [ "$(fact same.h5 parameter_digest)" = "$(fact packed.h5 parameter_digest)" ] || fail "$model in $format: has changed"
  done
}

for mixer in gsa rwkv7 mamba2 rwkv6,attention; do
  "$bin/train" book.h5 -o m.h5 --mixer $mixer --dim 64 --heads 2 --layers 2 --steps 12 --batch 4 --seq-len 32 \
    --resume never >out 2>err || fail "train $mixer: $(cat err)"
  check m.h5 page.txt
done

# In words.
"$bin/train" book.h5 -o gsa.h5 --mixer gsa --dim 64 --heads 2 --layers 2 --steps 4 --batch 2 --seq-len 32 --head untied \
  >out 2>err || fail "train: $(cat err)"
status 0 "$bin/convert" model gsa.h5 -o q8.h5 --dtype q8
status 0 "$bin/convert" show q8.h5
said "^number_formats +f32 and q8" out
said "^parameter_bytes +[0-9,]+" out
said "^q8_bytes +[0-9,]+" out
status 0 "$bin/convert" show --verbose q8.h5
said "layers.0.mixer.q_proj.weight +q8 \[64, 64\]" out

# Out of the house in f32, and in again in few bits.
status 0 "$bin/convert" model q8.h5 --format published -o published
said "its [0-9]+ matrices of fewer bits are expanded to f32" err
status 0 "$bin/convert" model published -o again.h5 --tokenizer q8.h5 --dtype q8
near "$(bits q8.h5 book.txt)" "$(bits again.h5 book.txt)" 0.002 "out and in again"
refused 2 "a published model is written in f32" "$bin/convert" model gsa.h5 --format published -o bad --dtype q8
refused 2 "--dtype" "$bin/convert" model gsa.h5 -o bad.h5 --dtype q5

# Training starts from the expanded numbers, says so, and cannot go on where there was none.
status 0 "$bin/train" book.h5 -o further.h5 --init q8.h5 --steps 3 --batch 2 --seq-len 32
said "--init q8.h5: is in f32 and q8; its matrices are expanded to f32" err
[ "$(fact further.h5 number_formats)" = '"f32"' ] || fail "a trained model is in $(fact further.h5 number_formats)"
refused 1 "q8.h5: holds a model without its training; start from its weights with --init" \
  "$bin/train" book.h5 -o bad.h5 --mixer gsa --dim 64 --heads 2 --layers 2 --steps 6 --batch 2 --seq-len 32 \
  --head untied --resume q8.h5

# What computes is told in one line.
status 0 "$bin/generate" q8.h5 "This" --tokens 1 --verbose
[ "$(grep -cE 'BLAS OpenBLAS .*, [A-Za-z0-9]+ kernels; .*SIMD [A-Z0-9_]+ \(Highway\)' err)" = 1 ] || fail "no line of features: $(cat err)"

# Published models of rwkv.cpp, where they are.
if [ -e "$real/checkpoints/rwkv.cpp" ]; then
  head -c 2000 "$root/README.md" >readme
  for name in 4v0-660K-FP32 5v2-730K-FP32 7v0-834K-FP32 6v0-3m-Q5_1; do
    status 0 "$bin/convert" model "$real/checkpoints/rwkv.cpp/tiny-rwkv-$name.bin" -o tiny.h5
    check tiny.h5 readme
    status 0 "$bin/convert" model "$real/checkpoints/rwkv.cpp/tiny-rwkv-$name.bin" -o direct.h5 --dtype q4
    [ "$(fact direct.h5 parameter_digest)" = "$(fact packed.h5 parameter_digest)" ] || fail "$name: rounded otherwise"
  done
else
  echo "packed_model_test: no files of rwkv.cpp; that part is skipped"
fi
echo "packed_model_test: passed"
