# What the tests of the tools share: source it first. It goes into an empty folder, which is removed at the end, and
# sets root (the sources), bin (the tools) and real (real data, if there).
set -euo pipefail
root=${QUIPU_SOURCE_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
bin=${QUIPU_BIN:-$root/build/bin}
real=${QUIPU_REAL_DATA:-$root/../shared/real}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*" >&2 && exit 1; }
# status WANTED COMMAND..: the command ends with this status; its streams stay in `out` and `err`.
status() {
  local wanted=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$wanted" ] || fail "status $got instead of $wanted: $*: $(cat err)"
}
# refused WANTED TEXT COMMAND..: one line on stderr that holds TEXT, no output called bad or bad.h5.
refused() {
  local wanted=$1 text=$2
  shift 2
  status "$wanted" "$@"
  [ "$(wc -l <err)" = 1 ] || fail "not one line of error: $*: $(cat err)"
  grep -qF -- "$text" err || fail "'$text' is not in: $(cat err)"
  if [ -e bad ] || [ -e bad.h5 ]; then fail "a file is left: $*"; fi
}
# said REGEX FILE: the file has it.
said() { grep -qE -- "$1" "$2" || fail "'$1' is not in: $(cat "$2")"; }
