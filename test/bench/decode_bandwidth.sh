#!/usr/bin/env bash
# Decoding speed as a fraction of the read bandwidth, for the shape of RWKV-4 169M in every number format. Arguments go to
# decode_bandwidth (its first lines say which). OpenBLAS runs its AVX-512 kernels where the CPU has them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench=${QUIPU_BENCH:-$here/../../build/bench}
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
exec "$bench/decode_bandwidth" "$@"
