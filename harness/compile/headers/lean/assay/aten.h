// Tensor and what nearly every kernel file uses, from the installed torch's own headers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <math.h>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

// Operators one by one: assay/operators.h includes those that the source names.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <c10/util/Logging.h>
#include <c10/util/irange.h>

namespace torch {
using Deleter = std::function<void(void*)>;
} // namespace torch

namespace torch::assay {
// What torch's factories do with their result: requires_grad is an attribute of the variable, not of the data.
inline at::Tensor variable(at::Tensor data, bool requires_grad) {
  return requires_grad ? data.set_requires_grad(true) : data;
}
} // namespace torch::assay
