// Test: address
// The change of a Gaussian policy: ratio, divergence and slopes against the densities themselves,
// and exact where nothing has changed.
#include <doctest/doctest.h>

#include <cmath>

#include "numeric_differentiation.h"
#include "rltools/rl/gaussian.h"

using namespace rlt;

namespace {

constexpr int kAction = 3;

// log of a normal density
double log_density(double x, double mean, double log_std) {
  const double z = (x - mean) / std::exp(log_std);
  return -z * z / 2 - log_std - std::log(2 * M_PI) / 2;
}

// The divergence of two normal densities, by the midpoint rule.
double divergence(double mean, double log_std, double other_mean, double other_log_std) {
  const double std = std::exp(log_std), step = std / 1000;
  double sum = 0;
  for (double x = mean - 12 * std; x < mean + 12 * std; x += step) {
    const double p = log_density(x, mean, log_std);
    sum += step * std::exp(p) * (p - log_density(x, other_mean, other_log_std));
  }
  return sum;
}

struct Change {
  double before[kAction] = {0.25, -1.5, 0.75}, now[kAction] = {0.5, -1.25, -0.5};  // log std
  double action[kAction] = {1.5, -0.25, 3}, mean_before[kAction] = {1, -0.5, 0};
  double mean[kAction] = {0.5, -0.625, 1};
  double mean_slope[kAction], log_std_slope[kAction];

  LogRatioAndKl<double> compute() {
    const GaussianChange<double, kAction> change(before, now);
    return gaussian_change(change, action, mean_before, mean, mean_slope, log_std_slope);
  }
};

}  // namespace

TEST_CASE("ratio and divergence are those of the densities, summed over the dimensions") {
  Change c;
  const auto result = c.compute();
  double log_ratio = 0, kl = 0;
  for (int i = 0; i < kAction; i++) {
    log_ratio += log_density(c.action[i], c.mean[i], c.now[i]) -
                 log_density(c.action[i], c.mean_before[i], c.before[i]);
    kl += divergence(c.mean_before[i], c.before[i], c.mean[i], c.now[i]);
  }
  CHECK(result.log_ratio == doctest::Approx(log_ratio).epsilon(1e-14));
  CHECK(result.kl == doctest::Approx(kl).epsilon(1e-9));
}

TEST_CASE("the slopes are the derivatives of the log probability") {
  Change c;
  c.compute();
  for (int i = 0; i < kAction; i++) {
    const double mean_slope = c.mean_slope[i], log_std_slope = c.log_std_slope[i];
    const auto log_ratio = [&] { return c.compute().log_ratio; };
    CHECK(numeric::derivative(c.mean[i], log_ratio) ==
          doctest::Approx(mean_slope).epsilon(numeric::kTolerance));
    CHECK(numeric::derivative(c.now[i], log_ratio) ==
          doctest::Approx(log_std_slope).epsilon(numeric::kTolerance));
  }
}

TEST_CASE("a policy that has not changed has ratio 1, and no divergence") {
  for (int k = 0; k < 200; k++) {
    const auto draw = [&](std::uint32_t index, float bound) {
      return uniform<float>({4, Purpose::shuffle, static_cast<std::uint32_t>(k)}, index, -bound,
                            bound);
    };
    const float log_std[2] = {draw(0, 5), draw(1, 2)}, mean[2] = {draw(2, 1), draw(3, 100)};
    const float action[2] = {draw(4, 3), draw(5, 100)};
    float mean_slope[2], log_std_slope[2];
    const GaussianChange<float, 2> change(log_std, log_std);
    const auto result = gaussian_change(change, action, mean, mean, mean_slope, log_std_slope);
    CHECK(result.log_ratio == 0.0f);
    CHECK(math::exp(result.log_ratio) == 1.0f);
    CHECK(result.kl == 0.0f);
  }
}
