"""Library product, then batch statistics, affine and softmax in one C++ call, for the CPU.

The product is PyTorch's own. One parallel loop over features makes mean, variance and running statistics; one over rows
applies BatchNorm and scale as a multiply-add and the softmax while the row is in cache, in place. 2·N·I·O FLOP in the
product; the tail touches N·O floats twice for the statistics and once for the rest, where eager makes about eight
passes and three temporaries. Limit: the product; only the tail is there to be won.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#ifdef __AVX512F__
constexpr int64_t kLanes = 16;
#else
constexpr int64_t kLanes = 8;
#endif
constexpr int64_t kFeatureBlock = 64;

// Vectors in the compilers' own notation (GCC, Clang), as wide as the CPU's registers.
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
inline void store(Floats value, float* to) { std::memcpy(to, &value, sizeof(value)); }

// exp(x) for x <= 0, to about two units in the last place.
inline Floats exp_nonpositive(Floats x) {
  x = x < -87.0f ? Floats{} - 87.0f : x;  // no normal float below; next to the row's maximum, 1, it is nothing
  const Ints n = __builtin_convertvector(x * 1.44269504f - 0.5f, Ints);  // truncation rounds to nearest, since x <= 0
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln(2) in two parts, the first exact
  Floats p = 1.9841270e-4f * r + 1.3888889e-3f;  // 1/k!
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * (Floats)((n + 127) << 23);
}

// Mean and biased variance of `width` features over all rows: two passes, double sums, so that neither many rows nor a
// mean large against the spread costs digits.
void batch_statistics(const float* y, int64_t rows, int64_t features, int64_t width, float* mean, float* variance) {
  double sum[kFeatureBlock] = {}, squares[kFeatureBlock] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t f = 0; f < width; ++f) sum[f] += y[r * features + f];
  for (int64_t f = 0; f < width; ++f) mean[f] = sum[f] / rows;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t f = 0; f < width; ++f) {
      const float d = y[r * features + f] - mean[f];
      squares[f] += double{d} * d;
    }
  for (int64_t f = 0; f < width; ++f) variance[f] = squares[f] / rows;
}

// All lanes of `v` combined.
template <typename Op>
inline float fold(Floats v, Op op) {
  float all = v[0];
  for (int64_t i = 1; i < kLanes; ++i) all = op(all, v[i]);
  return all;
}

// softmax of `logits` into `out`. The logits are filled up with -inf to whole vectors.
void softmax_row(float* logits, float* out, int64_t n) {
  Floats best = load(logits), sum = {};
  for (int64_t i = kLanes; i < n; i += kLanes) {
    const Floats x = load(logits + i);
    best = x > best ? x : best;
  }
  const float top = fold(best, [](float a, float b) { return a > b ? a : b; });
  for (int64_t i = 0; i < n; i += kLanes) {
    const Floats weight = exp_nonpositive(load(logits + i) - top);
    store(weight, logits + i);
    sum += weight;
  }
  const float inverse = 1.0f / fold(sum, [](float a, float b) { return a + b; });
  for (int64_t i = 0; i < n; ++i) out[i] = logits[i] * inverse;
}

void check(const at::Tensor& t, const char* name, int64_t numel) {
  TORCH_CHECK_NOT_IMPLEMENTED(t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous(),
                              "cpp_fused_tail takes contiguous float32 tensors on the CPU; ", name, " is not one");
  TORCH_CHECK(t.numel() == numel, name, " has ", t.numel(), " elements where ", numel, " were expected");
}

// softmax(scale * batch_norm(y)), written over y (rows, features).
at::Tensor tail_(at::Tensor y, const at::Tensor& weight, const at::Tensor& bias, at::Tensor running_mean,
                 at::Tensor running_var, const at::Tensor& scale, double eps, double momentum, bool training) {
  TORCH_CHECK(y.dim() == 2, "expected (rows, features), got ", y.sizes());
  const int64_t rows = y.size(0), features = y.size(1), pitch = (features + kLanes - 1) / kLanes * kLanes;
  TORCH_CHECK(rows > 1 || !training, "training mode needs at least two rows to tell a variance, got ", rows);
  check(y, "y", rows * features);
  check(weight, "weight", features);
  check(bias, "bias", features);
  check(running_mean, "running_mean", features);
  check(running_var, "running_var", features);
  check(scale, "scale", scale.numel() == 1 ? 1 : features);  // one value, or one per feature
  float *data = y.mutable_data_ptr<float>(), *run_mean = running_mean.mutable_data_ptr<float>(),
        *run_var = running_var.mutable_data_ptr<float>();
  const float *gamma = weight.const_data_ptr<float>(), *beta = bias.const_data_ptr<float>(),
              *scales = scale.const_data_ptr<float>();
  const int64_t scale_step = scale.numel() > 1;
  const float step = momentum, unbiased = training ? static_cast<float>(rows) / (rows - 1) : 1.0f;

  // logit = (y - mean) * factor + shift
  std::vector<float> mean(features), variance(features), factor(features), shift(features);
  const int64_t blocks = (features + kFeatureBlock - 1) / kFeatureBlock;
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kFeatureBlock, end = std::min(begin + kFeatureBlock, features);
      if (training) batch_statistics(data + begin, rows, features, end - begin, &mean[begin], &variance[begin]);
      for (int64_t f = begin; f < end; ++f) {
        if (training) {
          run_mean[f] += step * (mean[f] - run_mean[f]);
          run_var[f] += step * (variance[f] * unbiased - run_var[f]);
        } else {
          mean[f] = run_mean[f];
          variance[f] = run_var[f];
        }
        const float s = scales[f * scale_step];
        factor[f] = s * gamma[f] / std::sqrt(variance[f] + static_cast<float>(eps));
        shift[f] = s * beta[f];
      }
    }
  });
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    std::vector<float> logits(pitch, -std::numeric_limits<float>::infinity());
    for (int64_t r = begin; r < end; ++r) {
      float* row = data + r * features;
      std::fill(logits.begin() + features, logits.end(), -std::numeric_limits<float>::infinity());
      for (int64_t f = 0; f < features; ++f) logits[f] = (row[f] - mean[f]) * factor[f] + shift[f];
      softmax_row(logits.data(), row, features);
    }
  });
  return y;
}
"""

# -fopenmp to the compiler only: linking a second OpenMP runtime beside PyTorch's would double the worker threads.
extension = load_inline(
    name="assay_cpp_fused_tail",
    cpp_sources=CPP_SOURCE,
    functions=["tail_"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bn_eps: float = 1e-5,
        bn_momentum: float = 0.1,
        scale_shape: tuple[int, ...] = (1,),
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.scale = nn.Parameter(torch.ones(scale_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, self.linear.weight, self.linear.bias)
        bn = self.bn
        if self.training:
            bn.num_batches_tracked.add_(1)
        return extension.tail_(
            y, bn.weight, bn.bias, bn.running_mean, bn.running_var, self.scale, bn.eps, bn.momentum, self.training
        )
