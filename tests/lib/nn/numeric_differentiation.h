// Central differences of fourth order in double, the yardstick for every derivative:
//   f'(x) = (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12 h
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "rltools/core/random.h"

namespace numeric {

// The truncation error is h^4 / 30 times the fifth derivative, 1e-16 of it; rounding adds about eps
// |f| / h, 1e-12 |f|.
constexpr double kStep = 0x1p-12;

// What a derivative may differ by, relative to the largest of its array: the errors above for
// functions whose fifth derivative is up to 1e5 and whose value is up to a hundred times the
// largest derivative, and a factor of ten.
constexpr double kTolerance = 1e-9;

// The derivative of function() with respect to `variable`, which the function reads and which is
// put back.
template <class Function>
double derivative(double& variable, Function&& function) {
  const double value = variable;
  const auto at = [&](double x) {
    variable = x;
    return function();
  };
  const double near = at(value + kStep) - at(value - kStep);
  const double far = at(value + 2 * kStep) - at(value - 2 * kStep);
  variable = value;
  return (8 * near - far) / (12 * kStep);
}

// The largest difference between two arrays, relative to the largest element of `expected`; NaN is
// infinitely far.
template <class A, class B>
double relative_difference(const A* actual, const B* expected, std::size_t count) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < count; i++) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    if (!std::isfinite(a) || !std::isfinite(e)) return HUGE_VAL;
    largest = std::max(largest, std::abs(e));
    difference = std::max(difference, std::abs(a - e));
  }
  return difference == 0 ? 0 : difference / largest;
}

template <class A, class B>
double relative_difference(const std::vector<A>& actual, const std::vector<B>& expected) {
  if (actual.size() != expected.size()) return HUGE_VAL;
  return relative_difference(actual.data(), expected.data(), actual.size());
}

// `count` numbers uniform in [low, high).
template <class T = double>
std::vector<T> random_values(std::size_t count, std::uint32_t stream, T low = T(-1),
                             T high = T(1)) {
  std::vector<T> values(count);
  rlt::fill_uniform<T>(rlt::Generic{}, {7, rlt::Purpose::shuffle, stream}, values.data(),
                       static_cast<int>(count), low, high);
  return values;
}

}  // namespace numeric
