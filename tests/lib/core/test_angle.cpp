// Angles: the same direction, within half a turn.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/core/angle.h"

namespace math = rlt::math;

TEST_CASE_TEMPLATE("the angle is normalized to half a turn on either side, after many turns", T,
                   float, double) {
  constexpr double kPi = math::kPi<double>;
  const double largest = sizeof(T) == 4 ? 1000 : 1e6;
  const T step = static_cast<T>(largest / 5003);
  for (int i = -5003; i <= 5003; i++) {
    const T angle = static_cast<T>(i) * step;
    const double normalized = math::normalized_angle(angle);
    CHECK(std::abs(normalized) <= kPi * (1 + 1e-6));
    // It is the same direction.
    CHECK(std::abs(std::remainder(normalized - static_cast<double>(angle), 2 * kPi)) <=
          (sizeof(T) == 4 ? 1e-6 : 1e-9));
  }
}
