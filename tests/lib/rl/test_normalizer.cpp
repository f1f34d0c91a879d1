// The running normalizer against statistics in two passes over all observations, in long double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "rltools/core/random.h"
#include "rltools/rl/normalizer.h"

using namespace rlt;

namespace {

constexpr int kDimension = 3, kRows = 1000;

struct Statistics {
  long double mean[kDimension] = {}, variance[kDimension] = {};
};

template <class T>
Statistics two_passes(const std::vector<T>& observations) {
  const auto rows = static_cast<long double>(observations.size() / kDimension);
  Statistics result;
  for (std::size_t i = 0; i < observations.size(); i++) {
    result.mean[i % kDimension] += static_cast<long double>(observations[i]) / rows;
  }
  for (std::size_t i = 0; i < observations.size(); i++) {
    const long double difference =
        static_cast<long double>(observations[i]) - result.mean[i % kDimension];
    result.variance[i % kDimension] += difference * difference / rows;
  }
  return result;
}

// One element about a million with a deviation of a quarter, one about zero, one that never varies.
template <class T>
std::vector<T> observations() {
  std::vector<T> values(kRows * kDimension);
  fill_standard_normal<T>(Generic{}, {1, Purpose::observation, 2}, values.data(),
                          kRows * kDimension);
  for (int row = 0; row < kRows; row++) {
    T* observation = values.data() + row * kDimension;
    observation[0] = T(1e6) + T(0.25) * observation[0];
    observation[1] *= T(100) * static_cast<T>(row) / T(kRows);  // other parts vary otherwise
    observation[2] = T(-7.5);
  }
  return values;
}

// Takes in the rows in batches of these sizes, one after another and from the first again.
template <class T>
Normalizer<T, kDimension> taken_in(const std::vector<T>& values, const std::vector<int>& sizes) {
  Normalizer<T, kDimension> normalizer;
  initialize(normalizer);
  int row = 0;
  for (std::size_t batch = 0; row < kRows; batch++) {
    const int rows = std::min(sizes[batch % sizes.size()], kRows - row);
    update_moments(Generic{}, normalizer, values.data() + row * kDimension, rows);
    row += rows;
  }
  return normalizer;
}

template <class T>
void check_against_two_passes() {
  const auto values = observations<T>();
  const Statistics expected = two_passes(values);
  for (const auto& sizes : std::vector<std::vector<int>>{{kRows}, {1}, {100}, {7, 1, 300}}) {
    CAPTURE(sizes[0]);
    const auto normalizer = taken_in(values, sizes);
    CHECK(normalizer.count == kRows);
    for (int i = 0; i < kDimension; i++) {
      CAPTURE(i);
      const auto mean = static_cast<double>(expected.mean[i]);
      const auto variance = static_cast<double>(expected.variance[i]);
      CHECK(std::abs(normalizer.mean[i] - mean) <= 1e-15 * std::abs(mean) + 1e-12);
      // The mean of a batch about 1e6 is rounded to 1e-10 of it, and differences of means thus to
      // some 1e-9 of a deviation.
      CHECK(std::abs(normalizer.sum_of_squares[i] / kRows - variance) <= 1e-9 * variance + 1e-30);
      CHECK(normalizer.shift[i] == static_cast<T>(normalizer.mean[i]));
      const double scale = 1 / std::sqrt(variance + 1e-4);
      CHECK(static_cast<double>(normalizer.scale[i]) ==
            doctest::Approx(scale).epsilon(sizeof(T) == 4 ? 1e-7 : 1e-9));
    }
    CHECK(normalizer.scale[2] == static_cast<T>(100));  // the bound
  }
}

}  // namespace

TEST_CASE("mean and variance are those of all observations, however they are batched") {
  check_against_two_passes<float>();
  check_against_two_passes<double>();
}

TEST_CASE("a constant observation is normalized to zero, and one that moves off it by 100 times") {
  Normalizer<float, 1> normalizer;
  initialize(normalizer);
  const float values[] = {3, 3, 3};
  update_moments(Generic{}, normalizer, values, 3);
  float normalized;
  normalize(normalizer, values, &normalized);
  CHECK(normalized == 0);
  const float moved = 3.25f;
  normalize(normalizer, &moved, &normalized);
  CHECK(normalized == 25);
}
