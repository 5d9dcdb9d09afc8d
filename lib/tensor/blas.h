#pragma once
#include <string>

#include "tensor/view.h"

/// Matrix products: the only door to OpenBLAS. Large products are threaded by BLAS itself; inside a parallel region
/// (one head's chunk) a call runs on its own thread.
namespace quipu::inline QUIPU_REAL_NS::blas {

/// Who computes large products outside parallel regions; all others are OpenBLAS's.
enum class Library { openblas, onednn };

/// For the whole process; call before work starts. Throws UsageError where oneDNN is not built in.
void use(Library library);
/// The faster one as measured: oneDNN where it is built in and the CPU has AVX-512.
Library fastest_library();
Library library();

/// c = alpha a b + beta c;  a: [m,k], b: [k,n], c: [m,n].
void multiply(Matrix c, Matrix a, Matrix b, Real beta = 0, Real alpha = 1);
/// c = alpha a b^T + beta c;  a: [m,k], b: [n,k].
void multiply_bt(Matrix c, Matrix a, Matrix b, Real beta = 0, Real alpha = 1);
/// c = alpha a^T b + beta c;  a: [k,m], b: [k,n].
void multiply_at(Matrix c, Matrix a, Matrix b, Real beta = 0, Real alpha = 1);
/// y = alpha a x + beta y;  a: [m,n], x: [n], y: [m].
void multiply_vector(Real* y, Matrix a, const Real* x, Real beta = 0, Real alpha = 1);
/// x = l^-1 x by forward substitution;  l: [m,m], of which only the part below the diagonal is read: the diagonal is
/// taken as 1, what is above as 0;  x: [m,n].
void solve_unit_lower(Matrix l, Matrix x);
/// x = l^-T x, likewise.
void solve_unit_lower_t(Matrix l, Matrix x);

/// The kernel that OpenBLAS chose for this CPU, such as "SkylakeX".
std::string kernel_name();
/// Who computes products: "OpenBLAS, SkylakeX kernels", and oneDNN where it is in use.
std::string product_names();
/// Version and build options, such as "OpenBLAS 0.3.21 ...".
std::string version();
/// A line of advice where a wide CPU runs a narrow kernel, else empty.
std::string narrow_kernel_advice();
/// Throws InternalError unless this is the OpenMP build and a few odd shapes give what a plain loop gives: some
/// versions compute wrong results on some CPUs.
void require_sound();

}  // namespace quipu::inline QUIPU_REAL_NS::blas
