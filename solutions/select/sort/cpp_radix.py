"""Radix sort of each row in three passes of eleven bits, in C++ for the CPU.

Floats become integers of the same order; all three histograms are counted in one sweep, then each pass moves every
element once. No comparison is made, where eager compares and also keeps the positions. About 40 bytes of cache traffic
for each element. Limit: scattered stores.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

constexpr int kBits = 11, kBins = 1 << kBits, kPasses = 3;

// Unsigned integers in the order of the floats; NaN, of either sign, last.
inline uint32_t key(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value) return 0xffffffffu;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

inline float value(uint32_t key) {
  const uint32_t bits = key == 0xffffffffu ? 0x7fc00000u : key & 0x80000000u ? key ^ 0x80000000u : ~key;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

inline uint32_t bin_of(uint32_t key, int pass) { return key >> (pass * kBits) & (kBins - 1); }

void sort_row(const float* row, float* out, uint32_t* keys, uint32_t* moved, int64_t n) {
  std::array<std::array<uint32_t, kBins>, kPasses> begins = {};
  for (int64_t i = 0; i < n; ++i) {
    keys[i] = key(row[i]);
    for (int pass = 0; pass < kPasses; ++pass) ++begins[pass][bin_of(keys[i], pass)];
  }
  for (auto& counts : begins) {
    uint32_t begin = 0;
    for (uint32_t& count : counts) begin += std::exchange(count, begin);
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    for (int64_t i = 0; i < n; ++i) moved[begins[pass][bin_of(keys[i], pass)]++] = keys[i];
    std::swap(keys, moved);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = value(keys[i]);
}

at::Tensor sort_rows(const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on the CPU");
  const int64_t n = x.size(1);
  at::Tensor out = at::empty_like(x);
  const float* data = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), 4, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> keys(n), moved(n);
    for (int64_t r = begin; r < end; ++r) sort_row(data + r * n, to + r * n, keys.data(), moved.data(), n);
  });
  return out;
}
"""

extension = load_inline(
    "assay_sort_cpp",
    CPP_SOURCE,
    functions=["sort_rows"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.sort_rows(x)
