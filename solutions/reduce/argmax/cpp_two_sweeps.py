"""The maximum first, then its position, in C++ for the CPU.

The maximum of a row is a loop that vectorises; searching it afterwards stops at the first hit. Both sweeps find the row
in cache, and neither carries an index along. Reads 4 * rows * columns bytes. Limit: memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

constexpr int64_t kLanes = 64;  // independent maxima, so that the compiler may use whole vectors

int64_t first_largest(const float* row, int64_t n) {
  float best[kLanes];
  std::fill_n(best, kLanes, -std::numeric_limits<float>::infinity());
  bool nan = false;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) {
      best[l] = row[i + l] > best[l] ? row[i + l] : best[l];
      nan |= row[i + l] != row[i + l];
    }
  float top = *std::max_element(best, best + kLanes);
  for (; i < n; ++i) {
    top = std::max(top, row[i]);
    nan |= row[i] != row[i];
  }
  // PyTorch counts NaN as larger than any number.
  if (nan) return std::find_if(row, row + n, [](float v) { return v != v; }) - row;
  return std::find(row, row + n, top) - row;
}

at::Tensor argmax(const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on the CPU");
  const int64_t rows = x.size(0), columns = x.size(1);
  TORCH_CHECK(columns > 0, "an empty row has no largest value");
  at::Tensor out = at::empty({rows}, at::kLong);
  const float* data = x.const_data_ptr<float>();
  int64_t* to = out.mutable_data_ptr<int64_t>();
  at::parallel_for(0, rows, std::max<int64_t>(1, 32768 / columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) to[r] = first_largest(data + r * columns, columns);
  });
  return out;
}
"""

extension = load_inline(
    "assay_argmax_cpp",
    CPP_SOURCE,
    functions=["argmax"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.argmax(x)
