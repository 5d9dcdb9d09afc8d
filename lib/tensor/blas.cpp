#include "tensor/blas.h"

#include <cblas.h>
#include <omp.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "tensor/onednn.h"

namespace quipu::inline QUIPU_REAL_NS::blas {
namespace {

#ifdef QUIPU_DOUBLE
constexpr auto kGemm = cblas_dgemm;
constexpr auto kGemv = cblas_dgemv;
constexpr auto kTrsm = cblas_dtrsm;
#else
constexpr auto kGemm = cblas_sgemm;
constexpr auto kGemv = cblas_sgemv;
constexpr auto kTrsm = cblas_strsm;
#endif

blasint to_int(Index n) { return static_cast<blasint>(n); }

std::atomic<Library> chosen = Library::openblas;

/// oneDNN takes products that are large enough for its overhead, and simple ones.
bool onednn_takes(Index work, Real beta, Real alpha) {
  constexpr Index kLeastWork = Index{1} << 21;
  return chosen.load(std::memory_order_relaxed) == Library::onednn && work >= kLeastWork && alpha == 1 &&
         (beta == 0 || beta == 1) && !omp_in_parallel();
}

void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index inner, Matrix c, Matrix a, Matrix b, Real beta, Real alpha) {
  if (c.rows == 0 || c.cols == 0) return;
  if (onednn_takes(c.rows * c.cols * inner, beta, alpha))
    return onednn::multiply(c, a, ta == CblasTrans, b, tb == CblasTrans, beta != 0);
  kGemm(CblasRowMajor, ta, tb, to_int(c.rows), to_int(c.cols), to_int(inner), alpha, a.data, to_int(a.stride), b.data,
        to_int(b.stride), beta, c.data, to_int(c.stride));
}

void trsm(CBLAS_TRANSPOSE transpose, Matrix l, Matrix x) {
  if (x.rows == 0 || x.cols == 0) return;
  kTrsm(CblasRowMajor, CblasLeft, CblasLower, transpose, CblasUnit, to_int(x.rows), to_int(x.cols), 1, l.data,
        to_int(l.stride), x.data, to_int(x.stride));
}

}  // namespace

void use(Library library) {
  if (library == Library::onednn && !onednn::is_built_in())
    throw UsageError("--blas: onednn was not there when this was built (libdnnl-dev); use openblas");
  chosen = library;
}

Library fastest_library() {
  return onednn::is_built_in() && __builtin_cpu_supports("avx512f") ? Library::onednn : Library::openblas;
}

Library library() { return chosen; }

void multiply(Matrix c, Matrix a, Matrix b, Real beta, Real alpha) {
  gemm(CblasNoTrans, CblasNoTrans, a.cols, c, a, b, beta, alpha);
}

void multiply_bt(Matrix c, Matrix a, Matrix b, Real beta, Real alpha) {
  gemm(CblasNoTrans, CblasTrans, a.cols, c, a, b, beta, alpha);
}

void multiply_at(Matrix c, Matrix a, Matrix b, Real beta, Real alpha) {
  gemm(CblasTrans, CblasNoTrans, a.rows, c, a, b, beta, alpha);
}

void multiply_vector(Real* y, Matrix a, const Real* x, Real beta, Real alpha) {
  kGemv(CblasRowMajor, CblasNoTrans, to_int(a.rows), to_int(a.cols), alpha, a.data, to_int(a.stride), x, 1, beta, y, 1);
}

void solve_unit_lower(Matrix l, Matrix x) { trsm(CblasNoTrans, l, x); }

void solve_unit_lower_t(Matrix l, Matrix x) { trsm(CblasTrans, l, x); }

std::string kernel_name() { return openblas_get_corename(); }
std::string product_names() {
  const std::string ours = fmt::format("OpenBLAS, {} kernels", kernel_name());
  return library() == Library::onednn ? fmt::format("{}; {}", onednn::version(), ours) : ours;
}

std::string version() { return openblas_get_config(); }

std::string narrow_kernel_advice() {
  const std::string kernel = kernel_name();
  const bool wide = kernel == "SkylakeX" || kernel == "Cooperlake" || kernel == "Sapphirerapids" || kernel == "Zen4";
  if (wide || !__builtin_cpu_supports("avx512f")) return "";
  return fmt::format(
      "this CPU has AVX-512 but OpenBLAS runs its {} kernel; OPENBLAS_CORETYPE=SkylakeX is often faster here", kernel);
}

void require_sound() {
  if (openblas_get_parallel() != 2)
    throw InputError("OpenBLAS: {} is not its OpenMP build; install libopenblas0-openmp", version());
  for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{3, 5, 7}, {17, 33, 65}, {64, 64, 64}, {129, 31, 200}}) {
    std::vector<Real> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
        c(static_cast<std::size_t>(m * n));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<Real>((i * 7 + 3) % 11) - 5;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<Real>((i * 5 + 1) % 13) - 6;
    multiply({c.data(), m, n, n}, {a.data(), m, k, k}, {b.data(), k, n, n});
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        Real wanted = 0;  // small integers: exact in float
        for (Index s = 0; s < k; ++s)
          wanted += a[static_cast<std::size_t>(i * k + s)] * b[static_cast<std::size_t>(s * n + j)];
        if (c[static_cast<std::size_t>(i * n + j)] != wanted)
          throw InputError("OpenBLAS: its {} kernel computes wrong products on this CPU; set OPENBLAS_CORETYPE=Haswell",
                           kernel_name());
      }
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::blas
