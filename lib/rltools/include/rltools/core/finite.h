// Checks for finite numbers. Others must not reach an actuator, a checkpoint or the host.
#pragma once

#include <cstdint>

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// False for NaN, infinities and what a float cannot hold.
template <class T>
inline bool is_finite(T x) {
  return math::absolute(x) <= static_cast<T>(3.4028234663852886e38);
}

// The number of finite values before the first that is not; `count` where all are. `Values` is a
// pointer to floats or doubles.
template <class Values>
inline std::uint64_t finite_count(Values values, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; i++) {
    if (!is_finite(values[i])) return i;
  }
  return count;
}

template <class Values>
inline bool all_finite(Values values, std::uint64_t count) {
  return finite_count(values, count) == count;
}
// The same as an operation of a device, of an array.
template <int Count, class T>
bool all_finite(Generic, const T* values) {
  return all_finite(values, Count);
}
// The same of many numbers that nearly always are: no branch for each, so that compilers make
// vectors of it.
template <class Values>
inline bool all_finite_at_once(Values values, int count) {
  std::uint32_t others = 0;
  for (int i = 0; i < count; i++) others |= is_finite(values[i]) ? 0u : 1u;
  return others == 0;
}

}  // namespace rlt
