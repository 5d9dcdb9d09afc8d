#!/bin/bash
# The pages in man/ are what the tools print with --dump-man, and they render without a warning.
# To write them anew: for tool in ...; do build/bin/$tool --dump-man > man/$tool.1; done
set -u
cd "$QUIPU_SOURCE_DIR" || exit 1
status=77
for page in man/*.1; do
  [[ -e $page ]] || continue
  tool=$(basename "$page" .1)
  [[ $status == 77 ]] && status=0
  if ! diff -u "$page" <("$QUIPU_BIN/$tool" --dump-man); then
    echo "$page: is not what $tool --dump-man prints; write it anew"
    status=1
  fi
  if command -v groff >/dev/null; then
    warnings=$(groff -man -Tutf8 -ww -rLL=90n "$page" 2>&1 >/dev/null)
    [[ -z $warnings ]] || { echo "$warnings"; status=1; }
  fi
done
# Every tool has its page once there is one.
if [[ $status != 77 ]]; then
  for source in apps/*.cpp; do
    page=man/$(basename "$source" .cpp).1
    [[ -e $page ]] || { echo "$page: is missing; write it with --dump-man"; status=1; }
  done
fi
exit $status
