#!/bin/bash
# Training throughput of PyTorch, the peer: one line of JSON per cell on stdout.
#
#   peer_torch.sh plain|tuned [OPTIONS OF peer_torch.py]   one cell, e.g. `tuned --dim 512 --layers 8 --heads 8`
#   peer_torch.sh [table [OPTIONS]]                         all cells that the results compare with
#
# plain: as a Debian user has it: the pthread build of OpenBLAS and nothing set (OPENBLAS_CORETYPE stays as found).
# tuned: the OpenMP build, wide kernels in BLAS and in PyTorch, and a malloc that keeps its memory in huge pages.
# OPENBLAS_PTHREAD_DIR and OPENBLAS_OPENMP_DIR name the folders of the two builds where they lie elsewhere.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-/usr/bin/python3}
libraries=/usr/lib/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)

fail() {
  echo "peer_torch: $*" >&2
  exit 2
}

# folder KIND: where that build of OpenBLAS lies.
folder() {
  local variable=OPENBLAS_${1^^}_DIR
  local dir=${!variable:-$libraries/openblas-$1}
  [[ -e $dir/libblas.so.3 ]] || fail "$dir: no libblas.so.3; apt-get install libopenblas0-$1, or set $variable"
  echo "$dir"
}

cell() {
  local variant=$1
  shift
  local dir
  case $variant in
    plain)
      dir=$(folder pthread)
      env -u ATEN_CPU_CAPABILITY -u GLIBC_TUNABLES LD_LIBRARY_PATH="$dir" OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 \
        "$python" "$here/peer_torch.py" --variant plain --require-blas pthread "$@"
      ;;
    tuned)
      dir=$(folder openmp)
      local malloc=glibc.malloc
      LD_LIBRARY_PATH="$dir" OMP_NUM_THREADS=2 OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx512 \
        GLIBC_TUNABLES="$malloc.hugetlb=1:$malloc.mmap_threshold=8589934592:$malloc.trim_threshold=17179869184:$malloc.top_pad=268435456" \
        "$python" "$here/peer_torch.py" --variant tuned --require-blas openmp "$@"
      ;;
    *) fail "no variant is called '$variant'; choose plain, tuned or table" ;;
  esac
}

"$python" -c 'import torch' 2>/dev/null || fail "$python has no torch; apt-get install python3-torch"
if [[ ${1:-table} == table ]]; then
  shift $(($# > 0))
  for variant in plain tuned; do
    cell $variant --dim 256 --layers 4 --heads 4 "$@"
    cell $variant --dim 512 --layers 8 --heads 8 --warmup 1 "$@"
  done
  cell tuned --model linear_attention "$@"
  cell plain --model gsa --warmup 1 --steps 3 "$@"
  cell tuned --model gsa --warmup 1 --steps 3 "$@"
else
  cell "$@"
fi
