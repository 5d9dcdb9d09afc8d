#!/usr/bin/env bash
# convert model as a user runs it: a model out, in and out again, its tokenizer, real files of rwkv.cpp where they are,
# and every way in which it refuses.
source "$(dirname "$0")/frame.sh"
export SOURCE_DATE_EPOCH=1000000000
fact() { "$bin/convert" show --json "$1" | grep -oE "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2; }

for i in $(seq 1 200); do echo "This is line $i of a small text."; done >book.txt
"$bin/convert" text -o book.h5 --valid 0.1 book.txt 2>err
"$bin/train" book.h5 -o gsa.h5 --mixer gsa --dim 16 --heads 2 --layers 2 --set gsa.slots=4 --steps 2 --batch 2 \
  --seq-len 16 >out 2>err || fail "train: $(cat err)"

# Out, in and out again: the same numbers, the same bytes; what the model writes is the same.
status 0 "$bin/convert" model gsa.h5 --format published -o published
said "published: written as gsa" err
said '"model_type": "gsa"' published/config.json
status 0 "$bin/convert" model published -o back.h5 --tokenizer gsa.h5
said "published/model.safetensors: gsa \(safetensors\), [0-9,]+ parameters" err
[ "$(fact back.h5 parameter_digest)" = "$(fact gsa.h5 parameter_digest)" ] || fail "the parameters have changed"
status 0 "$bin/convert" model --format published -o again published/model.safetensors
cmp published/model.safetensors again/model.safetensors || fail "the tensors have changed"
cmp published/config.json again/config.json || fail "the configuration has changed"
"$bin/generate" gsa.h5 "This is" --tokens 20 >one 2>err
"$bin/generate" back.h5 "This is" --tokens 20 >two 2>err
cmp one two || fail "the model writes another text"

# The tokenizer goes along where other programs have its kind: bytes as a tokenizer.json, which gives the same text.
[ -e published/tokenizer.json ] && [ -e published/tokenizer_config.json ] || fail "no tokenizer: $(ls published)"
status 0 "$bin/convert" model published -o self.h5
said "tokenizer: byte-bpe:256" err
"$bin/generate" self.h5 "This is" --tokens 20 >two 2>err
cmp one two || fail "with its published tokenizer, the model writes another text"
"$bin/convert" text -o words.h5 --tokenizer words --valid 0.1 book.txt 2>err
"$bin/train" words.h5 -o words_model.h5 --mixer gsa --dim 8 --heads 1 --layers 1 --set gsa.slots=2 --steps 1 --batch 1 \
  --seq-len 4 >out 2>err || fail "train: $(cat err)"
status 0 "$bin/convert" model words_model.h5 --format published -o words
said "its tokenizer is left out: no other program has the kind words" err
[ ! -e words/tokenizer.json ] || fail "words have become a tokenizer.json"
status 1 "$bin/convert" model words_model.h5 --format published -o published
said "published: has tokenizer.json of another model; name another folder" err
status 1 "$bin/convert" model words -o bad
said "comes without a tokenizer for its [0-9]+ tokens; give one with --tokenizer" err
[ ! -e bad ] || fail "a file is left"
status 0 "$bin/convert" model words --format published -o words
said "comes without a tokenizer; none is written" err

# A checkpoint comes through a pipe and leaves through one, its training behind it.
"$bin/convert" model - -o - <gsa.h5 2>err >own.h5
[ "$(fact own.h5 parameter_digest)" = "$(fact gsa.h5 parameter_digest)" ] || fail "a pipe changes the parameters"
[ "$(fact own.h5 optimizer_numbers)" = 0 ] || fail "the optimizer's numbers came along"
status 0 "$bin/eval-ppl" own.h5 book.h5

# What cannot be.
refused 2 "--format" "$bin/convert" model gsa.h5 -o bad --format onnx
refused 2 "is a folder; name one" "$bin/convert" model gsa.h5 -o - --format published
refused 2 "has its own" "$bin/convert" model gsa.h5 -o bad --tokenizer bytes

refused 2 "is for RWKV alone" "$bin/convert" model published -o bad --groupnorm-eps 1e-5
refused 2 "--groupnorm-eps" "$bin/convert" model published -o bad --groupnorm-eps 0
refused 1 "none: " "$bin/convert" model none -o bad
refused 1 "book.txt: " "$bin/convert" model book.txt -o bad
refused 1 "book.h5: " "$bin/convert" model book.h5 -o bad
mkdir bare
cp published/model.safetensors bare
refused 1 "model.safetensors: is read, and the output would take its place" \
  "$bin/convert" model bare/model.safetensors -o bare/model.safetensors
refused 1 "nor a config.json beside it" "$bin/convert" model bare -o bad
mkdir torn
cp published/config.json torn
head -c 3000 published/model.safetensors >torn/model.safetensors
refused 1 "torn/model.safetensors: " "$bin/convert" model torn -o bad
cp published/model.safetensors torn
sed -i 's/"num_slots": 4/"num_slots": 5/' torn/config.json
refused 1 "and [10, 16] is what its model has" "$bin/convert" model torn -o bad
"$bin/train" book.h5 -o aft.h5 --mixer aft --dim 16 --layers 1 --steps 1 --batch 2 --seq-len 16 >out 2>err || fail "$(cat err)"
refused 2 "because of the mixer aft" "$bin/convert" model aft.h5 -o bad --format published

refused 1 "published: is no checkpoint of quipu; make one of it with convert model first" "$bin/convert" average -o bad published
refused 1 "is no checkpoint of quipu" "$bin/convert" average -o bad gsa.h5 published/model.safetensors
"$bin/train" book.h5 -o rwkv.h5 --mixer rwkv4 --dim 8 --layers 1 --steps 1 --batch 2 --seq-len 16 >out 2>err || fail "$(cat err)"
status 0 "$bin/convert" model rwkv.h5 --format published -o rwkv4
cp published/config.json rwkv4
refused 1 'says model_type="gsa", and its tensors are those of RWKV' "$bin/convert" model rwkv4 -o bad

# Published models of rwkv.cpp, where they are: their own names, and back.
if [ -e "$real/checkpoints/rwkv.cpp" ]; then
  for name in 4v0-660K-FP32 5v2-730K-FP32 6v0-3m-Q5_1 7v0-834K-FP32; do
    file=$real/checkpoints/rwkv.cpp/tiny-rwkv-$name.bin
    status 0 "$bin/convert" model "$file" -o m.h5
    said "its 256 tokens are taken for bytes" err
    status 0 "$bin/convert" model m.h5 --format published -o rwkv
    [ ! -e rwkv/config.json ] || fail "RWKV has a config.json"
    status 0 "$bin/convert" model rwkv -o n.h5
    [ "$(fact n.h5 parameter_digest)" = "$(fact m.h5 parameter_digest)" ] || fail "$name: the parameters have changed"
    status 0 "$bin/generate" m.h5 '"in' --tokens 30
    mv out first
    status 0 "$bin/generate" n.h5 '"in' --tokens 30
    cmp out first || fail "$name: another text"
    rm -r rwkv
  done
  refused 2 "RWKV-4 has no such norm" "$bin/convert" model "$real/checkpoints/rwkv.cpp/tiny-rwkv-4v0-660K-FP32.bin" \
    -o bad --groupnorm-eps 1e-5
else
  echo "convert_model_test: no files of rwkv.cpp; that part is skipped"
fi
echo "convert_model_test: passed"
