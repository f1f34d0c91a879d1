// Angles without their whole turns.
#pragma once

#include "rltools/core/math.h"

namespace rlt::math {

template <class T>
inline constexpr T kPi = static_cast<T>(3.141592653589793);

// The same direction in [-pi, pi).
template <class T>
inline T normalized_angle(T angle_rad) {
  // 2 pi as the sum of two numbers, so that turns are removed without losing the angle's last
  // digits.
  constexpr double kTwoPiHigh = 6.283185307179586, kTwoPiLow = 2.4492935982947064e-16;
  constexpr T kTwoPi = static_cast<T>(kTwoPiHigh);
  constexpr T kTwoPiRest = static_cast<T>((kTwoPiHigh - static_cast<double>(kTwoPi)) + kTwoPiLow);
  const T turns = math::floor((angle_rad + kPi<T>) / kTwoPi);
  return math::fma(-turns, kTwoPiRest, math::fma(-turns, kTwoPi, angle_rad));
}

}  // namespace rlt::math
