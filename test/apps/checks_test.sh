#!/usr/bin/env bash
# The checks of `make check`, each fed a tree that breaks its rule: the check must fail and name file and line.
set -euo pipefail
root=${QUIPU_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { echo "FAILED: $*" >&2 && exit 1; }
# fresh: an empty tree to break a rule in, with one innocent file on each floor.
fresh() {
  rm -rf "$folder/tree"
  mkdir -p "$folder/tree/apps"
  local below=""
  for floor in base tensor text grad scan mixers models store train cli; do
    mkdir -p "$folder/tree/lib/$floor"
    printf '#pragma once\n#include <vector>\n%s' "$below" >"$folder/tree/lib/$floor/good.h"
    below=$'#include "base/good.h"\n#include "'$floor$'/good.h"\n'
    [ "$floor" != tensor ] || below=$'#include "base/good.h"\n'
  done
  printf '#include "train/good.h"\n#include <CLI/CLI.hpp>\nint main() {}\n' >"$folder/tree/apps/train.cpp"
}
# refused CHECK WHERE: the check fails on the tree and says WHERE.
refused() {
  if "$root/scripts/$1" "$folder/tree" >"$folder/said" 2>&1; then fail "$1 let pass: $2"; fi
  grep -qF -- "$2" "$folder/said" || fail "$1 does not say '$2' but: $(cat "$folder/said")"
}
accepted() { "$root/scripts/$1" "$folder/tree" >"$folder/said" 2>&1 || fail "$1 refuses: $(cat "$folder/said")"; }

fresh
accepted check_layers.sh
accepted check_sizes.sh
accepted check_paths.sh

# includes FILE LINE: a tree where the second line of FILE is LINE.
includes() {
  fresh
  printf '#pragma once\n%s\n' "$2" >"$folder/tree/$1"
}
while IFS='|' read -r file line; do
  includes "$file" "$line"
  refused check_layers.sh "$file:2: "
done <<'BAD'
lib/base/bad.h|#include "tensor/good.h"
lib/tensor/bad.h|#include "text/good.h"
lib/text/bad.h|#include "tensor/good.h"
lib/scan/bad.cpp|#include "mixers/good.h"
lib/scan/bad.cpp|  #  include <mixers/good.h>
lib/models/bad.h|#include "store/good.h"
lib/train/bad.h|#include "cli/good.h"
lib/cli/bad.h|#include "apps/train.cpp"
lib/grad/bad.h|#include "../base/good.h"
lib/grad/bad.h|#include <cblas.h>
lib/store/dataset_file.cpp|#include <hdf5.h>
lib/train/trainer.cpp|#include <mpi.h>
lib/models/config.h|#include <CLI/CLI.hpp>
lib/base/check.h|#include <doctest/doctest.h>
apps/profile.cpp|#include <H5Cpp.h>
BAD
while IFS='|' read -r file line; do
  includes "$file" "$line"
  accepted check_layers.sh
done <<'GOOD'
lib/tensor/blas.cpp|#include <cblas.h>
lib/store/hdf5.cpp|#include <hdf5.h>
lib/train/mpi_comm.cpp|#include <mpi.h>
lib/cli/options.h|#include <CLI/CLI.hpp>
lib/mixers/registry.cpp|#include "mixers/mixers.def"
lib/tensor/kernels.cpp|#include "hwy/foreach_target.h"
apps/profile.cpp|#include "cli/good.h"
GOOD
fresh
mkdir "$folder/tree/lib/misc"
refused check_layers.sh "lib/misc: "

fresh
for ((i = 0; i < 501; ++i)); do echo; done >"$folder/tree/lib/grad/long.cpp"
refused check_sizes.sh "lib/grad/long.cpp:501: "
fresh
for ((i = 0; i < 121; ++i)); do echo; done >"$folder/tree/apps/train.cpp"
refused check_sizes.sh "apps/train.cpp:121: "

fresh
slash=/
printf '#pragma once\n// see %shome/somebody/notes\n' "$slash" >"$folder/tree/lib/base/bad.h"
refused check_paths.sh "lib/base/bad.h:2:"

# A page that differs from its parser's, and a page that is missing.
mkdir -p "$folder/tree/scripts" "$folder/tree/man" "$folder/bin"
cp "$root/scripts/check_manuals.sh" "$folder/tree/scripts"
printf '#!/bin/sh\nprintf ".TH TRAIN 1\\n"\n' >"$folder/bin/train"
chmod +x "$folder/bin/train"
manuals() { "$folder/tree/scripts/check_manuals.sh" "$folder/bin" >"$folder/said" 2>&1; }
if manuals; then fail "check_manuals let a missing page pass"; fi
grep -q '^man/train.1: missing' "$folder/said" || fail "check_manuals does not name the missing page"
printf '.TH TRAIN 1\n' >"$folder/tree/man/train.1"
manuals || fail "check_manuals refuses a page in step: $(cat "$folder/said")"
printf '.TH TRAIN 8\n' >"$folder/tree/man/train.1"
if manuals; then fail "check_manuals let a page out of step pass"; fi
echo "checks_test: passed"
