#include "tensor/onednn.h"

#if defined(QUIPU_ONEDNN) && !defined(QUIPU_DOUBLE)

#include <malloc.h>
#include <omp.h>

#include <dnnl.hpp>
#include <map>
#include <tuple>

namespace quipu::inline QUIPU_REAL_NS::onednn {
namespace {

using dnnl::memory;

/// Products take room to rearrange their factors from malloc and return it, a megabyte or two each time. By its own
/// rules malloc then hands that to the system and gets it back as fresh pages; told so, it keeps a few of them.
void keep_room() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine = [] {
    keep_room();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

/// A factor as oneDNN sees it.
struct Operand {
  const void* data;
  memory::data_type type;
  Index rows, cols;                 // of op(x)
  Index row_stride, column_stride;  // of op(x)

  memory::desc describe() const { return {{rows, cols}, type, {row_stride, column_stride}}; }
  auto key() const { return std::tuple(type, rows, cols, row_stride, column_stride); }
};

Operand operand(Matrix m, bool transposed) {
  if (transposed) return {m.data, memory::data_type::f32, m.cols, m.rows, 1, m.stride};
  return {m.data, memory::data_type::f32, m.rows, m.cols, m.stride, 1};
}

Operand operand(Bf16Matrix m, bool transposed) {
  if (transposed) return {m.data, memory::data_type::bf16, m.cols, m.rows, 1, m.cols};
  return {m.data, memory::data_type::bf16, m.rows, m.cols, m.cols, 1};
}

/// What is added to a product.
enum class Sum { nothing, itself, bias };

using Key = decltype(std::tuple_cat(Operand{}.key(), Operand{}.key(), std::tuple(Index{}, Sum{}, int{})));

memory::desc bias_of(Index columns) { return {{1, columns}, memory::data_type::f32, memory::dims{columns, 1}}; }

dnnl::matmul make_product(const Operand& a, const Operand& b, const memory::desc& c, Sum sum) {
  dnnl::primitive_attr attributes;
  if (sum == Sum::itself) {
    dnnl::post_ops then;
    then.append_sum(1);
    attributes.set_post_ops(then);
  }
  using Description = dnnl::matmul::desc;
  const Description description = sum == Sum::bias ? Description(a.describe(), b.describe(), bias_of(b.cols), c)
                                                   : Description(a.describe(), b.describe(), c);
  return dnnl::matmul(dnnl::matmul::primitive_desc(description, attributes, cpu()));
}

/// Products are compiled for their extents and for a number of threads, which takes longer than a small one: those of
/// this thread are kept.
const dnnl::matmul& product(const Operand& a, const Operand& b, const memory::desc& c, Index c_stride, Sum sum) {
  constexpr std::size_t kMost = 1024;
  static thread_local std::map<Key, dnnl::matmul> kept;
  const int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  const Key key = std::tuple_cat(a.key(), b.key(), std::tuple(c_stride, sum, threads));
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMost) kept.clear();
  return kept.emplace(key, make_product(a, b, c, sum)).first->second;
}

void multiply(Matrix c, const Operand& a, const Operand& b, Sum sum, const Real* bias = nullptr) {
  if (a.rows != c.rows || b.cols != c.cols || a.cols != b.rows)
    throw ShapeError("oneDNN: a product of [{}, {}] and [{}, {}] into [{}, {}]", a.rows, a.cols, b.rows, b.cols, c.rows,
                     c.cols);
  if (c.rows == 0 || c.cols == 0) return;
  try {
    static thread_local dnnl::stream stream(cpu());
    const memory::desc to({c.rows, c.cols}, memory::data_type::f32, memory::dims{c.stride, 1});
    const auto in = [](const Operand& x) { return memory(x.describe(), cpu(), const_cast<void*>(x.data)); };
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, in(a)}, {DNNL_ARG_WEIGHTS, in(b)}, {DNNL_ARG_DST, memory(to, cpu(), c.data)}};
    if (sum == Sum::bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias_of(c.cols), cpu(), const_cast<Real*>(bias)));
    product(a, b, to, c.stride, sum).execute(stream, arguments);
    stream.wait();
  } catch (const dnnl::error& error) {
    throw InternalError("oneDNN: {} in a product of [{}, {}] and [{}, {}]", error.what(), a.rows, a.cols, b.rows,
                        b.cols);
  }
}

}  // namespace

bool is_built_in() { return true; }

bool has_bf16() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16; }

std::string version() {
  const dnnl_version_t& v = *dnnl::version();
  const char* isa = has_bf16() ? "with bf16 products" : "without bf16 products";
  return fmt::format("oneDNN {}.{}.{} ({})", v.major, v.minor, v.patch, isa);
}

void multiply(Matrix c, Matrix a, bool transpose_a, Matrix b, bool transpose_b, bool add) {
  multiply(c, operand(a, transpose_a), operand(b, transpose_b), add ? Sum::itself : Sum::nothing);
}

void multiply(Matrix c, Bf16Matrix a, bool transpose_a, Bf16Matrix b, bool transpose_b, bool add) {
  multiply(c, operand(a, transpose_a), operand(b, transpose_b), add ? Sum::itself : Sum::nothing);
}

void multiply_bt(Matrix c, Bf16Matrix a, Bf16Matrix b, const Real* bias) {
  multiply(c, operand(a, false), operand(b, true), bias != nullptr ? Sum::bias : Sum::nothing, bias);
}

}  // namespace quipu::inline QUIPU_REAL_NS::onednn

#else

namespace quipu::inline QUIPU_REAL_NS::onednn {

bool is_built_in() { return false; }
bool has_bf16() { return false; }
std::string version() { return ""; }
void multiply(Matrix, Matrix, bool, Matrix, bool, bool) { throw InternalError("oneDNN is not built in"); }
void multiply(Matrix, Bf16Matrix, bool, Bf16Matrix, bool, bool) { throw InternalError("oneDNN is not built in"); }
void multiply_bt(Matrix, Bf16Matrix, Bf16Matrix, const Real*) { throw InternalError("oneDNN is not built in"); }

}  // namespace quipu::inline QUIPU_REAL_NS::onednn

#endif
