#!/usr/bin/env bash
# recall-bench as a user runs it: tasks are the same to the last byte, a small model learns one and is found to know it,
# questions in JSON lines are scored, and every way in which it refuses.
source "$(dirname "$0")/frame.sh"
[ -x "$bin/train" ] || { echo "skipped: no train to make a model with"; exit 77; }
export OMP_NUM_THREADS=1
bench=$bin/recall-bench
# key NAME [FILE]: the value of a key of JSON.
key() { grep -oE "\"$1\":[^,}]*" "${2:-out}" | head -n 1 | cut -d: -f2; }
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# Every task is listed, made, audited, and the same when it is made again, with other threads, elsewhere.
status 0 "$bench" list
for task in mqar associative induction copy reverse selective-copy sort parity passkey needle babilong; do
  said "^$task " out
done
for task in mqar associative induction copy reverse selective-copy sort parity passkey; do
  case $task in associative | copy | reverse | sort) length=() ;; *) length=(--length 128) ;; esac
  status 0 "$bench" make $task -o a.h5 --train 300 --valid 20 --test 40 "${length[@]}"
  said "^audit of 360: overlap 0, re-binding 0, wrong answers 0$" out
  status 0 "$bench" make $task -o b.h5 --train 300 --valid 20 --test 40 "${length[@]}" --threads 2 --json
  [ "$(key overlap)" = 0 ] && [ "$(key rebinding)" = 0 ] && [ "$(key wrong_answers)" = 0 ] || fail "$task: $(cat out)"
  cmp a.h5 b.h5 || fail "$task: two files of one command differ"
  status 0 "$bench" make $task -o c.h5 --train 300 --valid 20 --test 40 "${length[@]}" --seed 2
  ! cmp -s a.h5 c.h5 || fail "$task: the seed changes nothing"
done
"$bench" make reverse -o - --train 300 --valid 20 --test 40 2>err >piped.h5
"$bench" make reverse -o file.h5 --train 300 --valid 20 --test 40 >out
cmp piped.h5 file.h5 || fail "standard output gets another file"
said "^audit of 360: overlap 0" err

# A model that learns a task in seconds, and is measured by both forms.
status 0 "$bench" make mqar -o mqar.h5 --vocab 16 --length 8 --pairs 2 --train 4000 --valid 200 --test 400
"$bin/train" mqar.h5 -o gsa.h5 --quiet --mixer gsa --set use_short_conv=true --set slots=8 --layers 2 --dim 32 \
  --heads 1 --batch 64 --steps 150 --lr 1e-2 --seed 3 >log 2>&1 || fail "train: $(cat log)"
status 0 "$bench" run gsa.h5 mqar.h5 --json --min-accuracy 0.9
[ "$(wc -l <out)" = 1 ] && [ "$(key schema)" = '"quipu-recall-bench-1"' ] || fail "$(cat out)"
[ "$(key n)" = 800 ] && [ "$(key examples)" = 400 ] && [ "$(key chance)" = 0.125 ] && [ "$(key ceiling)" = 1.0 ] ||
  fail "$(cat out)"
above "$(key accuracy)" 0.9 && above "$(key accuracy)" "$(key accuracy_low)" && above "$(key accuracy_high)" "$(key accuracy)" ||
  fail "accuracy $(key accuracy)"
accuracy=$(key accuracy)
[ "$(key disagreeing)" = 0 ] && above "$(key state_bytes)" 1000 && [ "$(key seed)" = 1 ] || fail "$(cat out)"
digest=$("$bin/convert" show --json mqar.h5 | grep -oE '"content_digest":"[^"]*"' | cut -d: -f2)
[ "$(key task_digest)" = "$digest" ] || fail "digest $(key task_digest) instead of $digest"
status 0 "$bench" run gsa.h5 mqar.h5
said "^distance from +to +n" out
said "^two forms +accuracy .* 0 predictions differ" out
for options in "--batch 1" "--batch-tokens 3" "--threads 2"; do
  status 0 "$bench" run gsa.h5 mqar.h5 --json $options
  awk -v a="$(key accuracy)" -v b="$accuracy" 'BEGIN { d = a - b; exit !(d * d < 1e-5) }' || fail "$options: $(key accuracy)"
done
"$bench" run - mqar.h5 --json <gsa.h5 >out && [ "$(key n)" = 800 ] || fail "a model on stdin"
"$bench" run gsa.h5 - --json <mqar.h5 >out && [ "$(key n)" = 800 ] || fail "a task on stdin"
status 0 "$bench" run gsa.h5 mqar.h5 --json --split valid --max-examples 100
[ "$(key examples)" = 100 ] && [ "$(key split)" = '"valid"' ] || fail "$(cat out)"
status 3 "$bench" run gsa.h5 mqar.h5 --min-accuracy 1
said "is below --min-accuracy 1" err
said "^accuracy " out

# Tasks in a text, and JSON lines, of a model of bytes.
for i in $(seq 1 300); do echo "This is line $i of a small text, and it says $((i * i))."; done >book.txt
gzip -k book.txt
"$bin/convert" text --quiet -o data.h5 book.txt
"$bin/train" data.h5 --quiet -o bytes.h5 --mixer gsa --layers 1 --dim 16 --heads 2 --steps 5 --batch 4 --seq-len 32 >log 2>&1
"$bin/train" data.h5 --quiet -o fixed.h5 --mixer synthesizer --layers 1 --dim 16 --heads 2 --steps 2 --batch 4 --seq-len 32 >log 2>&1
status 0 "$bench" make needle -o needle.h5 --text book.txt.gz --length 500 --depth 0.3 --test 6 --tokenizer bytes.h5
status 0 "$bench" run bytes.h5 needle.h5 --json
[ "$(key n)" = 6 ] && [ "$(key metric)" = '"examples"' ] && [ "$(key longest_example)" = 500 ] || fail "$(cat out)"
grep -q '"distance_from":256' out || fail "no distance: $(cat out)"
printf '1 Ann went home.\n2 Where is Ann?\thome\t1\n3 Ann went out.\n4 Where is Ann?\tout\t3\n' >babi.txt
status 0 "$bench" make babilong -o babi.h5 --text book.txt --babi babi.txt --length 200 --train 30 --test 0
said "chance 0.5" out
ln -s book.txt same.txt
refused 1 "book.txt: is read, and the output would take its place" "$bench" make passkey -o book.txt --text book.txt --test 3
refused 1 "book.txt: is read, and the output" "$bench" make babilong -o same.txt --text book.txt --babi same.txt
refused 1 "bytes.h5: is read, and the output" "$bench" make passkey -o bytes.h5 --tokenizer bytes.h5 --test 3
grep -q "line 300 of a small text" book.txt || fail "the text is gone"
printf '1 Ann went home, and there she sat and read a book of many hundreds of pages until it was late in the evening, and not before.\n2 Where is Ann?\thome\t1\n' >long.txt
status 0 "$bench" make babilong -o babi.h5 --text book.txt --babi babi.txt --babi long.txt --length 120 --test 5
said "1 of 3 questions have longer stories and are left out" err
refused 2 "has no {k}, which the answer" "$bench" make needle -o bad.h5 --text book.txt --needle "no number"
refused 2 "has 'This is line' in it" "$bench" make needle -o bad.h5 --text book.txt --needle "This is line {k}."
echo '{"question": "Is it a line?", "choices": ["yes", "no", "perhaps"], "label": 0}' >choices.jsonl
echo '{"question": "What?", "choices": ["this", "that"], "label": 1}' >>choices.jsonl
gzip -k choices.jsonl
status 0 "$bench" run bytes.h5 choices.jsonl.gz --json
[ "$(key n)" = 2 ] && [ "$(key task)" = '"multiple choice"' ] && above "$(key chance)" 0.41 || fail "$(cat out)"
mv out gzipped
status 0 "$bench" run bytes.h5 choices.jsonl --json --max-examples 1
said '"n":1,' out
status 0 "$bench" run bytes.h5 choices.jsonl --json
[ "$(key accuracy)$(key task_digest)" = "$(key accuracy gzipped)$(key task_digest gzipped)" ] || fail "gzip: $(cat out)"
status 0 "$bench" run gsa.h5 choices.jsonl --json
said "cannot write 2 of the first 2 lines as they stand" err
echo '{"context": "The line says 4.", "question": "What does it say?", "answers": ["4", "four"]}' >answers.jsonl
status 0 "$bench" run bytes.h5 answers.jsonl --json --answer-tokens 8
for name in contains contains_as_is exact_match exact_match_as_is f1 answer_in_context; do
  [ -n "$(key $name)" ] || fail "no $name: $(cat out)"
done
[ "$(key answer_in_context)" = 1.0 ] && [ "$(key truncated)" = 0 ] || fail "$(cat out)"
status 0 "$bench" run bytes.h5 answers.jsonl --json --answer-tokens 8 --max-tokens 40
[ "$(key answer_in_context)" = 0.0 ] && [ "$(key truncated)" = 1 ] || fail "$(cat out)"
echo '{"text": "it says four"}' >words.jsonl
status 0 "$bench" run bytes.h5 words.jsonl
said "^perplexity " out
status 3 "$bench" run bytes.h5 words.jsonl --min-accuracy 1

# Refusals.
refused 2 "is unknown; there are mqar" "$bench" make mqr -o bad.h5
refused 2 "--pairs: copy has no such parameter" "$bench" make copy -o bad.h5 --pairs 3
refused 2 "take 68 tokens" "$bench" make mqar -o bad.h5 --pairs 17
refused 2 "too few different ones" "$bench" make parity -o bad.h5 --length 3
refused 2 "--text: needle hides something" "$bench" make needle -o bad.h5
refused 2 "--babi:" "$bench" make babilong -o bad.h5 --text book.txt
refused 2 "no text stands in it" "$bench" make copy -o bad.h5 --text book.txt
refused 1 "line 1: does not begin with" "$bench" make babilong -o bad.h5 --text book.txt --babi book.txt
refused 2 "no example is asked for" "$bench" make copy -o bad.h5 --train 0 --valid 0 --test 0
status 0 "$bench" make mqar -o large.h5 --vocab 300 --train 5 --valid 0 --test 5
refused 1 "a vocabulary of 300 tokens, the model bytes.h5 of 256" "$bench" run bytes.h5 large.h5
refused 1 "and the model can read 32" "$bench" run fixed.h5 needle.h5
refused 1 "line 1: has 54 tokens, and the model can read 32" "$bench" run fixed.h5 answers.jsonl --answer-tokens 2
refused 1 "no split none" "$bench" run gsa.h5 mqar.h5 --split none
refused 1 "holds a text, not a task" "$bench" run bytes.h5 data.h5
refused 1 "mqar.h5: " "$bench" run mqar.h5 mqar.h5
head -c 30 choices.jsonl >choices.bad
refused 1 "choices.bad: line 1: is no JSON at byte" "$bench" run bytes.h5 choices.bad
: >empty.jsonl
refused 1 "empty.jsonl: is empty" "$bench" run bytes.h5 empty.jsonl
refused 2 "not both" "$bench" run - -
status 0 "$bench" run bytes.h5 mqar.h5
said "its tokens are not those of bytes.h5" err
got=0; "$bench" run gsa.h5 mqar.h5 2>err >/dev/full || got=$?
[ "$got" = 1 ] || fail "/dev/full: status $got"
echo "recall_test: passed"
