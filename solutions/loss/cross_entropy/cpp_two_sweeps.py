"""Maximum and sum of exponentials of each row in C++, for the CPU, without storing the log-softmax.

A row stays in cache between its two sweeps, and the exponential is a polynomial that vectorises. 4 bytes and about 20
FLOP for each logit, where eager also writes and reads back as many. Limit: the exponentials.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// exp(x) for x <= 0, to about two units in the last place.
inline Floats exp_nonpositive(Floats x) {
  x = x < -87.0f ? Floats{} - 87.0f : x;  // next to the maximum's 1 it is nothing
  const Ints n = __builtin_convertvector(x * 1.44269504f - 0.5f, Ints);  // truncation rounds to nearest, since x <= 0
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln(2) in two parts, the first exact
  Floats p = 1.9841270e-4f * r + 1.3888889e-3f;                          // 1/k!
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * (Floats)((n + 127) << 23);
}

float row_loss(const float* row, int64_t n, int64_t target) {
  Floats best = Floats{} - std::numeric_limits<float>::infinity(), sums = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats x = load(row + i);
    best = x > best ? x : best;
  }
  float top = i < n ? *std::max_element(row + i, row + n) : row[0];
  for (int64_t l = 0; l < kLanes; ++l) top = std::max(top, best[l]);
  for (i = 0; i + kLanes <= n; i += kLanes) sums += exp_nonpositive(load(row + i) - top);
  float sum = 0;
  for (; i < n; ++i) sum += std::exp(row[i] - top);
  for (int64_t l = 0; l < kLanes; ++l) sum += sums[l];
  return std::log(sum) - (row[target] - top);
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  TORCH_CHECK_NOT_IMPLEMENTED(logits.is_cpu() && logits.scalar_type() == at::kFloat && logits.is_contiguous() &&
                                  target.scalar_type() == at::kLong && target.is_contiguous(),
                              "takes contiguous float32 logits and int64 targets on the CPU");
  TORCH_CHECK(logits.dim() == 2 && target.numel() == logits.size(0), "expected (samples, classes) and (samples,)");
  const int64_t samples = logits.size(0), classes = logits.size(1);
  at::Tensor loss = at::empty({samples}, at::kFloat);
  const float* data = logits.const_data_ptr<float>();
  const int64_t* chosen = target.const_data_ptr<int64_t>();
  float* out = loss.mutable_data_ptr<float>();
  for (int64_t s = 0; s < samples; ++s)
    TORCH_CHECK(chosen[s] >= 0 && chosen[s] < classes, "target ", chosen[s], " of ", classes, " classes");
  at::parallel_for(0, samples, 8, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) out[s] = row_loss(data + s * classes, classes, chosen[s]);
  });
  return loss;
}
"""

extension = load_inline(
    "assay_cross_entropy_cpp",
    CPP_SOURCE,
    functions=["cross_entropy"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return extension.cross_entropy(logits, target)
