// Operations on arrays whose elements are independent of each other: a device with threads shares
// them out by an overload of its own. Here is the reference.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// result = source
template <int Count, class T>
Generic copy(Generic device, const T* source, T* result) {
  for (int i = 0; i < Count; i++) result[i] = source[i];
  return device;
}

// result = value
template <int Count, class T>
Generic fill(Generic device, T value, T* result) {
  for (int i = 0; i < Count; i++) result[i] = value;
  return device;
}

// value *= factor
template <int Count, class T>
Generic scale(Generic device, T factor, T* value) {
  for (int i = 0; i < Count; i++) value[i] *= factor;
  return device;
}

// value += factor x
template <int Count, class T>
Generic add_scaled(Generic device, T factor, const T* x, T* value) {
  for (int i = 0; i < Count; i++) value[i] = math::fma(factor, x[i], value[i]);
  return device;
}

}  // namespace rlt
