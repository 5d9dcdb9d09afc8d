#!/usr/bin/env bash
# convert as a user runs it: datasets from files and pipes, what it says of files, and every way in which it refuses.
source "$(dirname "$0")/frame.sh"
export SOURCE_DATE_EPOCH=1000000000
fact() { "$bin/convert" show --json "$1" | grep -oE "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2; }

for i in $(seq 1 100); do echo "This is line $i of a small text."; done >book.txt
bytes=$(wc -c <book.txt)

# A dataset, exact in bytes and words; the same command gives the same bytes; gzip is read as it is.
status 0 "$bin/convert" text -o a.h5 --valid 0.1 --test 0.05 book.txt
[ ! -s out ] || fail "text on stdout: $(cat out)"
said "train: .* tokens, 1 documents, .* bytes, 1.000 bytes per token" err
[ "$(fact a.h5 train_bytes)" = $((bytes * 85 / 100)) ] || fail "train has $(fact a.h5 train_bytes) bytes of $bytes"
[ $(($(fact a.h5 train_bytes) + $(fact a.h5 valid_bytes) + $(fact a.h5 test_bytes))) = "$bytes" ] || fail "bytes are lost"
cp a.h5 before.h5
status 0 "$bin/convert" text -o a.h5 --valid 0.1 --test 0.05 book.txt
cmp a.h5 before.h5 || fail "the same command gives other bytes"
gzip -k book.txt
status 0 "$bin/convert" text -o z.h5 --valid 0.1 --test 0.05 book.txt.gz
[ "$(fact z.h5 content_digest)" = "$(fact a.h5 content_digest)" ] || fail "gzip makes another dataset"

# Pipes on both ends, also where the text is read several times.
"$bin/convert" text - -o - --valid 0.1 --test 0.05 <book.txt 2>err >p.h5
[ "$(fact p.h5 content_digest)" = "$(fact a.h5 content_digest)" ] || fail "a pipe makes another dataset"
cat book.txt | "$bin/convert" text - -o - --tokenizer bpe:280 --valid 0.1 2>err | "$bin/convert" show - >out
said "^tokenizer +bpe" out
status 0 "$bin/convert" text -o f.h5 --tokenizer words --valid 0.1 <(cat book.txt)
said "tokenizer words:[0-9]+" err

# Splits by name, lines as documents, the tokenizer of another file.
status 0 "$bin/convert" text -o s.h5 --documents line --split extra=book.txt --split extra=book.txt --test book.txt book.txt
[ "$(fact s.h5 extra_documents)" = 200 ] || fail "extra has $(fact s.h5 extra_documents) documents"
status 0 "$bin/convert" text -o t.h5 --tokenizer f.h5 book.txt
[ "$(fact t.h5 vocab)" = "$(fact f.h5 vocab)" ] || fail "the tokenizer of a file has another vocabulary"
printf '[text]\ntokenizer = "bpe:280"\n' >c.toml
status 0 "$bin/convert" text -o c.h5 --config c.toml book.txt
[ "$(fact c.h5 vocab)" = 280 ] || fail "--config is not read"

# Strings that stand for special tokens are text, unless asked for; a tokenizer comes out of a checkpoint as well.
{
  printf '{"model":{"type":"BPE","vocab":{'
  # GPT-2's alphabet: the printable bytes as they are, the others from U+0100 on.
  awk 'BEGIN { n = 0; for (b = 0; b < 256; ++b) {
    plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; code = plain ? b : 256 + n++
    printf "%s\"\\u%04x\":%d", b ? "," : "", code, b } }'
  printf '},"merges":[]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},'
  printf '"added_tokens":[{"id":256,"content":"<|endoftext|>","special":true}]}'
} >tokenizer.json
printf 'one<|endoftext|>two' >special.txt  # 3 + 13 + 3 bytes, and the token that ends the document
status 0 "$bin/convert" text -o special.h5 --tokenizer tokenizer.json special.txt
[ "$(fact special.h5 train_tokens)" = 20 ] || fail "a special token is no text: $(fact special.h5 train_tokens)"
status 0 "$bin/convert" text -o special.h5 --tokenizer tokenizer.json --special-tokens special.txt
[ "$(fact special.h5 train_tokens)" = 8 ] || fail "--special-tokens: $(fact special.h5 train_tokens) tokens"
refused 2 "has no special tokens" "$bin/convert" text -o bad.h5 --special-tokens special.txt
"$bin/train" special.h5 -o model.h5 --mixer gsa --dim 8 --heads 1 --layers 1 --set gsa.slots=2 --steps 1 --batch 1 \
  --seq-len 2 >out 2>err || fail "train: $(cat err)"
status 0 "$bin/convert" text -o again.h5 --tokenizer model.h5 special.txt
[ "$(fact again.h5 vocab)" = 257 ] && [ "$(fact again.h5 train_tokens)" = 20 ] || fail "the tokenizer of a checkpoint"
status 0 "$bin/convert" text -o again.h5 --tokenizer model.h5 --special-tokens special.txt
[ "$(fact again.h5 train_tokens)" = 8 ] || fail "--special-tokens with a checkpoint: $(fact again.h5 train_tokens)"

# One long line; NUL bytes.
head -c 20000000 /dev/zero | tr '\0' 'x' >long.txt
status 0 "$bin/convert" text -o long.h5 --tokenizer bytes --documents line long.txt
[ "$(fact long.h5 train_tokens)" = 20000000 ] || fail "a long line loses tokens"
printf 'a\0b\0\r\n\377' >nul.txt
status 0 "$bin/convert" text -o nul.h5 nul.txt
[ "$(fact nul.h5 train_bytes)" = 7 ] || fail "NUL bytes are lost"

# show
status 0 "$bin/convert" show a.h5
said "^a.h5: a dataset \(quipu-dataset, version 1\)" out
said "^made by +convert text -o a.h5 --valid 0.1 --test 0.05 book.txt" out
status 0 "$bin/convert" show --verify --verbose a.h5
said "^/train/tokens +uint16 \[$((bytes * 85 / 100))\]" out
refused 1 "book.txt: " "$bin/convert" show book.txt
head -c 3000 a.h5 >cut.h5
refused 1 "cut.h5: " "$bin/convert" show cut.h5

# show, of files of other programs: PyTorch's and NumPy's, a file of one tensor in safetensors, a pickle that would run.
foreign=$root/test/store/foreign
status 0 "$bin/convert" show "$foreign/zip.pt"
said "zip.pt: a file of tensors \(PyTorch\)" out
said "^parameters +[0-9]" out
said "and 9 more; --verbose lists all" out
status 0 "$bin/convert" show --verbose "$foreign/legacy.pt"
said "^model.transposed +f32 \[6, 4\]" out
said "^step +1,234" out
cat "$foreign/stored.npz" | "$bin/convert" show --json - >out
said '"name":"fortran","type":"f64","shape":\[2,3,4\],"bytes":192' out
printf '\100\0\0\0\0\0\0\0{"w\\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}        1234' >one.bin
status 0 "$bin/convert" show --verify one.bin
said '^w\\n +f32 \[1\]' out
mkdir folder
cp one.bin folder/model.safetensors
echo '{"model_type":"gsa"}' >folder/config.json
status 0 "$bin/convert" show folder
said "^config.json.model_type +gsa" out
printf '{"weight_map":{"x":"../../etc/passwd"}}' >index.json
refused 1 "which is not beside it" "$bin/convert" show index.json
refused 1 "asks for torch.nn.modules.linear.Linear" "$bin/convert" show "$foreign/object.pt"
refused 1 "is a folder with none of" "$bin/convert" show .

# What cannot be.
: >empty.txt
refused 1 "empty.txt: is empty" "$bin/convert" text -o bad.h5 empty.txt
refused 1 "none.txt: cannot read" "$bin/convert" text -o bad.h5 none.txt
refused 1 ".: is a folder" "$bin/convert" text -o bad.h5 .
refused 1 "both the text and the output" "$bin/convert" text -o book.txt book.txt
refused 1 "both the text and the output" "$bin/convert" text -o ./book.txt --valid book.txt nul.txt
refused 2 "no training text" "$bin/convert" text -o bad.h5
refused 2 "--output" "$bin/convert" text book.txt
refused 2 "stdin 2 times" "$bin/convert" text -o bad.h5 - --valid -
refused 2 "letters" "$bin/convert" text -o bad.h5 --tokenizer letters book.txt
refused 2 "bpe" "$bin/convert" text -o bad.h5 --tokenizer bpe:90000 book.txt
refused 2 "--valid" "$bin/convert" text -o bad.h5 --valid 1.5 book.txt
refused 2 "is both" "$bin/convert" text -o bad.h5 --valid 0.1 --split valid=book.txt book.txt
refused 2 "NAME=FILE" "$bin/convert" text -o bad.h5 --split book.txt book.txt
refused 2 "--documents" "$bin/convert" text -o bad.h5 --documents page book.txt
refused 1 "book.txt" "$bin/convert" text -o bad.h5 --tokenizer ./book.txt book.txt
refused 1 "nowhere/bad.h5" "$bin/convert" text -o nowhere/bad.h5 book.txt
head -c 200 book.txt.gz >short.gz
refused 1 "cut short" "$bin/convert" text -o bad.h5 short.gz
refused 1 "/dev/full" "$bin/convert" text -o /dev/full book.txt
got=0; "$bin/convert" text -o - book.txt 2>err >/dev/full || got=$?
[ "$got" = 1 ] || fail "status $got with a full stdout"
got=0; "$bin/convert" show a.h5 2>err >/dev/full || got=$?
[ "$got" = 1 ] || fail "show: status $got with a full stdout"
{ "$bin/convert" text -o - long.txt 2>err; echo $? >code; } | head -c 10 >out
[ "$(cat code)" = 0 ] && ! grep -q "error\|closed" err || fail "a closed pipe is no quiet end: $(cat code) $(cat err)"
echo "convert_test: passed"
