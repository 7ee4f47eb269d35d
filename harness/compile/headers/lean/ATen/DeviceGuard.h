// Every ATen/ops header includes this one, and but for cat's none needs its lists of tensors, which bring IValue: half of
// what a binding would have to instantiate. The real header where the source names what it holds.
#ifdef ASSAY_WANTS_DEVICEGUARD
#include_next <ATen/DeviceGuard.h>
#endif
#ifndef ASSAY_DEVICEGUARD
#define ASSAY_DEVICEGUARD

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <type_traits>

namespace at {
// A template, so that the real one is preferred where it comes later.
template <class T, class = std::enable_if_t<std::is_same_v<T, Tensor>>>
std::optional<Device> device_of(const T& tensor) {
  return tensor.defined() ? std::optional<Device>(tensor.device()) : std::nullopt;
}
} // namespace at

#endif
