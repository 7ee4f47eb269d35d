"""One pass over the heads in C++, for the CPU, widening to float32 on the way.

Eager rounds and stores four products and two sums as tensors of their own; here a row is read and written once. The
inner loop is plain enough for the compiler to vectorise. 8 bytes for each pair, 6 FLOP. Limit: conversions, then
memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

// 16 halves at `from` as floats, and back.
#ifdef __AVX512F__
using Floats = __m512;
inline Floats load(const at::Half* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline void store(Floats value, at::Half* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(value, 0));
}
#endif

void turn(const at::Half* x, const at::Half* cos, const at::Half* sin, at::Half* out, int64_t half) {
  int64_t d = 0;
#ifdef __AVX512F__
  for (; d + 16 <= half; d += 16) {
    const Floats a = load(x + d), b = load(x + half + d), c = load(cos + d), s = load(sin + d);
    store(a * c - b * s, out + d);
    store(b * c + a * s, out + half + d);
  }
#endif
  for (; d < half; ++d) {
    const float a = x[d], b = x[half + d], c = cos[d], s = sin[d];
    out[d] = a * c - b * s;
    out[half + d] = b * c + a * s;
  }
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cpu() && x.scalar_type() == at::kHalf && x.is_contiguous() &&
                                  cos.is_contiguous() && sin.is_contiguous(),
                              "takes contiguous float16 on the CPU");
  const int64_t half = x.size(-1) / 2, sequence = x.size(-2), rows = x.numel() / (2 * half);
  TORCH_CHECK(cos.numel() == sequence * half && sin.numel() == sequence * half, "expected cos and sin (", sequence,
              ", ", half, "), got ", cos.sizes(), " and ", sin.sizes());
  at::Tensor out = at::empty_like(x);
  const at::Half *in = x.const_data_ptr<at::Half>(), *c = cos.const_data_ptr<at::Half>(),
                 *s = sin.const_data_ptr<at::Half>();
  at::Half* to = out.mutable_data_ptr<at::Half>();
  at::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t angle = r % sequence * half;
      turn(in + 2 * r * half, c + angle, s + angle, to + 2 * r * half, half);
    }
  });
  return out;
}
"""

# -fopenmp to the compiler only: linking a second OpenMP runtime beside PyTorch's would double the worker threads.
extension = load_inline(
    "assay_rotary_cpp",
    CPP_SOURCE,
    functions=["rotate"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return extension.rotate(x, cos, sin)
