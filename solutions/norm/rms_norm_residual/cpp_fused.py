"""Sum, squares and result row by row in C++, for the CPU.

A row's sum stays in cache between the two loops over it, and no temporary of the whole size is made. bfloat16 is the
upper half of a float, so widening is a shift that the compiler vectorises. 8 bytes for each element. Limit: memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

inline float widen(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// To nearest, ties to even; a NaN stays one.
inline uint16_t narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return value == value ? rounded : 0x7fc0;
}

// out = total * scale * weight for total = x + residual, a row of n.
void add_norm_row(const uint16_t* x, const uint16_t* residual, const float* weight, uint16_t* out, uint16_t* total,
                  float* row, int64_t n, float eps) {
  constexpr int64_t kLanes = 16;  // sums side by side, which the compiler may put into one register
  float squares[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    total[i] = narrow(widen(x[i]) + widen(residual[i]));
    row[i] = widen(total[i]);
  }
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) squares[l] += row[i + l] * row[i + l];
  for (; i < n; ++i) squares[0] += row[i] * row[i];
  float sum = 0;
  for (const float part : squares) sum += part;
  const float scale = 1.0f / std::sqrt(sum / n + eps);
  for (int64_t h = 0; h < n; ++h) out[h] = narrow(row[h] * scale * weight[h]);
}

std::tuple<at::Tensor, at::Tensor> add_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                            double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cpu() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
                                  residual.is_contiguous() && x.dim() == 2,
                              "takes contiguous bfloat16 (tokens, hidden) on the CPU");
  TORCH_CHECK(residual.sizes() == x.sizes(), "x is ", x.sizes(), ", residual ", residual.sizes());
  const int64_t n = x.size(1);
  at::Tensor out = at::empty_like(x), total = at::empty_like(x), wide = weight.to(at::kFloat);
  auto bits = [](const at::Tensor& t) { return static_cast<uint16_t*>(t.data_ptr()); };
  const uint16_t *a = bits(x), *b = bits(residual);
  uint16_t *to = bits(out), *sum = bits(total);
  const float* w = wide.const_data_ptr<float>();
  at::parallel_for(0, x.size(0), 16, [&](int64_t begin, int64_t end) {
    std::vector<float> row(n);
    for (int64_t r = begin; r < end; ++r)
      add_norm_row(a + r * n, b + r * n, w, to + r * n, sum + r * n, row.data(), n, eps);
  });
  return {out, total};
}
"""

extension = load_inline(
    "assay_add_rms_norm_cpp",
    CPP_SOURCE,
    functions=["add_norm"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return extension.add_norm(x, residual, self.weight, self.eps)
