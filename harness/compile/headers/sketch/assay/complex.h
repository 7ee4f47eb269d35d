// Complex numbers by name and size only, without thrust; sources that mention them are not read with the sketch.
#pragma once

#include <c10/util/Half.h>

namespace c10 {
template <class T> struct alignas(sizeof(T) * 2) complex {
  using value_type = T;
  T real_, imag_;
};
} // namespace c10
