"""Blocked attention in C++ for the CPU, on the matrix units where the CPU has them.

One task per (batch, head): K and V are repacked once, then each block of 64 queries goes through product, softmax and
product while its scores stay in cache. Halves are multiplied as they are where the CPU has fp16 matrix units
(AMX-FP16), else widened to float32; sums are float32 either way, and the division by the row sum waits for the output.
4·B·H·S²·D FLOP, and each input and output byte moved once. Limit: at small sizes packing and exponentials, at large
ones the products.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace blas = at::native::cpublas;
using at::Half;

#ifdef __AVX512F__
constexpr int64_t kLanes = 16;
#define RIFFLE_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define RIFFLE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#else
constexpr int64_t kLanes = 8;
#define RIFFLE_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define RIFFLE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#endif
constexpr int64_t kQueryBlock = 64;

// Vectors in the compilers' own notation (GCC, Clang), as wide as the CPU's registers.
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef float Eight __attribute__((vector_size(8 * sizeof(float))));

template <typename T>
inline T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline void store(Floats value, float* out) { std::memcpy(out, &value, sizeof(value)); }

inline void store(Floats value, Half* out) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtps_ph(reinterpret_cast<__m512>(value), 0));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(reinterpret_cast<__m256>(value), 0));
#else
  for (int64_t i = 0; i < kLanes; ++i) out[i] = value[i];
#endif
}

// 2^x for x <= 0. Relative error under 3e-6, far inside the half that the result is rounded to or weighed against.
inline Floats exp2_nonpositive(Floats x) {
  x = x < -126.0f ? Floats{} - 126.0f : x;  // no normal float below; next to the row's maximum, 1, it is nothing
  const Ints n = __builtin_convertvector(x - 0.5f, Ints);  // truncation rounds to nearest, since x <= 0
  const Floats f = x - __builtin_convertvector(n, Floats);
  Floats p = 1.3333558e-3f * f + 9.6181291e-3f;  // ln(2)^k / k!
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  return p * (Floats)((n + 127) << 23);
}

// (rows, cols) -> (cols, rows) for elements of four bytes.
template <typename T>
void transpose(const T* in, T* out, int64_t rows, int64_t cols) {
  int64_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    int64_t col = 0;
    for (; col + kLanes <= cols; col += kLanes) {
      Ints tile[kLanes], next[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) tile[i] = load<Ints>(in + (row + i) * cols + col);
      for (int64_t width = kLanes; width > 1; width /= 2) {  // a riffle turns the index (row, column) left by one bit
        for (int64_t i = 0; i < kLanes / 2; ++i) {
          const Ints a = tile[i], b = tile[i + kLanes / 2];
          next[2 * i] = __builtin_shufflevector(a, b, RIFFLE_LOW);
          next[2 * i + 1] = __builtin_shufflevector(a, b, RIFFLE_HIGH);
        }
        std::copy_n(next, kLanes, tile);
      }
      for (int64_t i = 0; i < kLanes; ++i) std::memcpy(out + (col + i) * rows + row, &tile[i], sizeof(Ints));
    }
    for (; col < cols; ++col)
      for (int64_t i = 0; i < kLanes; ++i) out[col * rows + row + i] = in[(row + i) * cols + col];
  }
  for (; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col) out[col * rows + row] = in[row * cols + col];
}

// The matrix units take their right operand with the two halves of a pair of rows side by side ("VNNI" order).
// For Kᵀ that is a transpose of 32-bit pairs, for V an interleaving of neighbouring rows.
const Half* pack_keys(const Half* k, Half* out, int64_t keys, int64_t dim) {
  transpose(reinterpret_cast<const uint32_t*>(k), reinterpret_cast<uint32_t*>(out), keys, dim / 2);
  return out;
}
const Half* pack_values(const Half* v, Half* out, int64_t keys, int64_t dim) {
  auto* in = reinterpret_cast<const uint16_t*>(v);
  auto* pairs = reinterpret_cast<uint32_t*>(out);
  for (int64_t s = 0; s < keys; s += 2)
    for (int64_t d = 0; d < dim; ++d)
      pairs[s / 2 * dim + d] = in[s * dim + d] | static_cast<uint32_t>(in[(s + 1) * dim + d]) << 16;
  return out;
}

// Without matrix units, plain row-major float32.
const float* pack_keys(const float* k, float* out, int64_t keys, int64_t dim) {
  transpose(k, out, keys, dim);
  return out;
}
const float* pack_values(const float* v, float*, int64_t, int64_t) { return v; }

// All lanes of `v` combined.
template <typename Op>
inline float fold(Floats v, Op op) {
  Eight all = load<Eight>(&v);
  for (int64_t i = 8; i < kLanes; i += 8) all = op(all, load<Eight>(reinterpret_cast<float*>(&v) + i));
  all = op(all, __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3));
  all = op(all, __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5));
  all = op(all, __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6));
  return all[0];
}

// Unnormalised probabilities of a row of scores; returns their sum. `n` is a multiple of kLanes, filled up with -inf.
template <typename T>
float softmax_row(const float* row, T* out, int64_t n, float scale) {
  auto larger = [](auto a, auto b) { return a > b ? a : b; };
  Floats best = load<Floats>(row), sum = {};
  for (int64_t i = kLanes; i < n; i += kLanes) best = larger(load<Floats>(row + i), best);
  const float top = fold(best, larger);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Floats weight = exp2_nonpositive((load<Floats>(row + i) - top) * scale);
    sum += weight;
    store(weight, out + i);
  }
  return fold(sum, [](auto a, auto b) { return a + b; });
}

void write_row(const float* sums, float factor, Half* out, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load<Floats>(sums + i) * factor, out + i);
  for (; i < n; ++i) out[i] = sums[i] * factor;
}

template <typename T>  // what the products multiply: Half or float
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  static constexpr bool packed = std::is_same_v<T, Half>;
  const int64_t heads = q.size(0) * q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  const int64_t pitch = (keys + kLanes - 1) / kLanes * kLanes;
  const float scale = 1.44269504f / std::sqrt(static_cast<float>(dim));  // log2(e)/sqrt(D): the softmax works in base 2
  at::Tensor out = at::empty(q.sizes(), at::kHalf);
  const T *q_data = q.const_data_ptr<T>(), *k_data = k.const_data_ptr<T>(), *v_data = v.const_data_ptr<T>();
  Half* out_data = out.mutable_data_ptr<Half>();
  at::parallel_for(0, heads, 1, [&](int64_t begin, int64_t end) {
    // Scratch as tensors: aligned to cache lines, which std::vector is not.
    const at::Tensor k_buffer = at::empty({keys * dim}, q.options()), v_buffer = at::empty({keys * dim}, q.options()),
                     p_buffer = at::empty({kQueryBlock * pitch}, q.options()),
                     s_buffer = at::full({kQueryBlock * pitch}, -std::numeric_limits<float>::infinity(), at::kFloat),
                     o_buffer = at::empty({kQueryBlock * dim}, at::kFloat);
    T* p = p_buffer.mutable_data_ptr<T>();
    float *scores = s_buffer.mutable_data_ptr<float>(), *sums = o_buffer.mutable_data_ptr<float>();
    float totals[kQueryBlock];
    for (int64_t head = begin; head < end; ++head) {
      const T* kt = pack_keys(k_data + head * keys * dim, k_buffer.mutable_data_ptr<T>(), keys, dim);
      const T* vp = pack_values(v_data + head * keys * dim, v_buffer.mutable_data_ptr<T>(), keys, dim);
      for (int64_t first = 0; first < queries; first += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, queries - first), offset = (head * queries + first) * dim;
        blas::brgemm(rows, keys, dim, dim, keys, pitch, false, q_data + offset, kt, scores, packed);
        for (int64_t r = 0; r < rows; ++r) totals[r] = softmax_row(scores + r * pitch, p + r * pitch, pitch, scale);
        blas::brgemm(rows, dim, keys, pitch, dim, dim, false, p, vp, sums, packed);
        for (int64_t r = 0; r < rows; ++r)
          write_row(sums + r * dim, 1.0f / totals[r], out_data + offset + r * dim, dim);
      }
    }
    blas::brgemm_release(packed);
  });
  return out;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK_NOT_IMPLEMENTED(q.is_cpu() && k.is_cpu() && v.is_cpu(), "cpp_blocked runs on CPU tensors only");
  TORCH_CHECK_NOT_IMPLEMENTED(
      q.scalar_type() == at::kHalf && k.scalar_type() == at::kHalf && v.scalar_type() == at::kHalf,
      "cpp_blocked takes float16 only");
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) &&
                  q.size(1) == k.size(1) && q.size(3) == k.size(3),
              "expected Q (B, H, S, D) and K, V (B, H, T, D), got ", q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  const bool packable = k.size(2) % 2 == 0 && q.size(3) % 2 == 0 && blas::could_pack(at::kHalf);
  if (packable) return attend<Half>(q.contiguous(), k.contiguous(), v.contiguous());
  auto widened = [](const at::Tensor& x) { return x.to(at::kFloat).contiguous(); };
  return attend<float>(widened(q), widened(k), widened(v));
}
"""

# -fopenmp to the compiler only: linking a second OpenMP runtime beside PyTorch's would double the worker threads.
extension = load_inline(
    name="assay_sdpa_cpp_blocked",
    cpp_sources=CPP_SOURCE,
    functions=["attention"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
