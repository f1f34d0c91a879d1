// Which numbers count as finite.
#include "rltools/core/finite.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

using namespace rlt;

TEST_CASE("infinities and NaN are not finite, the largest and the smallest numbers are") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    const T largest = static_cast<T>(std::numeric_limits<float>::max());
    for (const T value : {T(0), -T(0), Limits::denorm_min(), Limits::min(), largest, -largest}) {
      CHECK(is_finite(value));
    }
    for (const T value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                          -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
      CHECK_FALSE(is_finite(value));
    }
  };
  check(0.0f);
  check(0.0);
}

TEST_CASE("what a float cannot hold is not finite as a double either") {
  CHECK_FALSE(is_finite(1e39));
  CHECK_FALSE(is_finite(-1e39));
}

TEST_CASE("of many numbers the first that is not finite is found, wherever it stands") {
  float values[9] = {};
  CHECK(all_finite(values, 9));
  CHECK(all_finite(values, 0));
  for (std::uint64_t i = 0; i < 9; i++) {
    values[i] = math::kInfinity;
    CHECK(finite_count(values, 9) == i);
    CHECK_FALSE(all_finite(values, 9));
    CHECK(all_finite(values, i));
    values[i] = 0;
  }
}
