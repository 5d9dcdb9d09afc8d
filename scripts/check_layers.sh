#!/usr/bin/env bash
# scripts/check_layers.sh [ROOT]: reads the includes of lib/ and apps/ and fails, naming file and line, where one goes
# up (a folder includes only what stands below it) or where a dependency comes in through another door than its own.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t sources < <(find lib apps -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.def' -o -name '*.inc' \) 2>/dev/null | sort)
[ ${#sources[@]} -gt 0 ] || { echo "check_layers: $PWD: no sources in lib and apps" >&2; exit 1; }
folders=$(find lib -mindepth 1 -maxdepth 1 -type d -printf '%f ')

awk -v folders="$folders" '
BEGIN {
  # The direction: a folder includes its own files and those of a lower floor. tensor and text share a floor.
  floor["base"] = 0; floor["tensor"] = floor["text"] = 1; floor["grad"] = 2; floor["scan"] = 3; floor["mixers"] = 4
  floor["models"] = 5; floor["store"] = 6; floor["exchange"] = 7; floor["train"] = 8; floor["profile"] = 9
  floor["cli"] = 10; floor["apps"] = 11
  # The doors: headers that match the first may be included only by files that match the second.
  door["^(cblas|lapacke|openblas_config|f77blas)\\.h$"] = "^lib/tensor/blas"
  door["^(oneapi/dnnl/)?dnnl.*\\.hp?p?$"] = "^lib/tensor/onednn"
  door["^(hdf5|hdf5_hl|H5[A-Za-z]*)\\.h$"] = "^lib/store/hdf5"
  door["^mpi\\.h$"] = "^lib/train/mpi_comm"
  door["^CLI/"] = "^(lib/cli|apps)/"
  door["^doctest(/|\\.h$)"] = "^test/"
  count = split(folders, present, " ")
  for (i = 1; i <= count; ++i)
    if (!(present[i] in floor)) fail("lib/" present[i], "this folder has no floor; give it one in scripts/check_layers.sh")
}
function fail(where, what) { print where ": " what; bad = 1 }
function where() { return FILENAME ":" FNR }

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  target = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", target)
  sub(/[">].*$/, "", target)
  split(FILENAME, path, "/")
  mine = path[1] == "apps" ? "apps" : path[2]
  if (target ~ /(^|\/)\.\.?\//) fail(where(), "includes \"" target "\"; name it from lib/, as in \"base/error.h\"")
  for (header in door)
    if (target ~ header && FILENAME !~ door[header])
      fail(where(), "includes <" target ">, whose door is " substr(door[header], 2))
  theirs = target
  if (!sub(/\/.*$/, "", theirs) || !(theirs in floor) || theirs == mine || mine == "apps" && theirs != "apps") next
  if (!(mine in floor)) next
  if (floor[theirs] > floor[mine]) fail(where(), mine " includes \"" target "\", which goes up")
  else if (floor[theirs] == floor[mine]) fail(where(), mine " includes \"" target "\"; the two stand side by side")
}
END { exit bad }
' "${sources[@]}" >&2 || { echo "check_layers: the includes above break the direction of lib/" >&2; exit 1; }
