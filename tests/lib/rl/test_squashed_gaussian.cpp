// Test: address
// SAC's squashed Gaussian: its density, its gradients, and numbers far from the middle.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/squashed_gaussian.h"

using namespace rlt;

namespace {

// Five samples of three actions, with the noise that makes u = mean + std noise reach beyond 10.
constexpr int kRows = 5, kAction = 3;
struct Samples {
  std::vector<double> output = numeric::random_values(kRows * 2 * kAction, 1, -1.5, 1.5);
  std::vector<double> noise = numeric::random_values(kRows * kAction, 2, -3.0, 3.0);
  double action[kRows * kAction], log_probability[kRows];

  void draw() {
    sample_actions<kRows, kAction>(Generic{}, output.data(), noise.data(), action, log_probability);
  }
  double& mean(int row, int i) { return output[row * 2 * kAction + i]; }
  double& log_std(int row, int i) { return output[row * 2 * kAction + kAction + i]; }
};

}  // namespace

TEST_CASE("a sample's log-probability is the density of the squashed Gaussian") {
  Samples samples;
  samples.draw();
  for (int row = 0; row < kRows; row++) {
    double expected = 0;
    for (int i = 0; i < kAction; i++) {
      const double noise = samples.noise[row * kAction + i];
      const double std = std::exp(samples.log_std(row, i));
      const double action = samples.action[row * kAction + i];
      CHECK(action ==
            doctest::Approx(std::tanh(samples.mean(row, i) + std * noise)).epsilon(1e-14));
      const double density = std::exp(-noise * noise / 2) / (std * std::sqrt(2 * std::acos(-1.0)));
      expected += std::log(density / (1 - action * action));  // change of variables
    }
    CHECK(samples.log_probability[row] == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("the density of the squashed Gaussian integrates to one") {
  // Over noise, of which the action is a monotone function: the integral of pi(action) d action.
  constexpr int kSteps = 4000;
  for (const double mean : {-1.5, 0.0, 0.75}) {
    for (const double log_std : {-3.0, -0.5, 1.0}) {
      double integral = 0, previous_action = -1, previous_density = 0;
      for (int k = 0; k <= kSteps; k++) {
        const double noise = -8 + 16.0 * k / kSteps;
        double action, log_probability;
        squash_gaussian(mean, log_std, noise, action, log_probability);
        const double density = std::exp(log_probability);
        integral += (density + previous_density) / 2 * (action - previous_action);
        previous_action = action;
        previous_density = density;
      }
      CAPTURE(mean);
      CAPTURE(log_std);
      CHECK(integral == doctest::Approx(1).epsilon(1e-3));
    }
  }
}

TEST_CASE("log-probability and action are finite, and not cancelled, however large u is") {
  for (const float mean : {-1e4f, -100.0f, 100.0f, 1e4f}) {
    for (const float log_std : {-1e3f, -20.0f, 2.0f, 1e3f}) {
      for (const float noise : {-6.76f, 0.0f, 6.76f}) {
        float action, log_probability;
        squash_gaussian(mean, log_std, noise, action, log_probability);
        double precise_action, precise;
        squash_gaussian<double>(mean, log_std, noise, precise_action, precise);
        CHECK(std::abs(action) == 1.0f);
        CHECK(log_probability == doctest::Approx(precise).epsilon(1e-6));
        // u dominates: log pi = 2 |u| - log 4 - ..., since 1 - tanh(u)^2 = 4 exp(-2 |u|)
        const double bounded = std::min(std::max(log_std, -20.0f), 2.0f);
        const double u = mean + std::exp(bounded) * noise;
        const double expected = -0.5 * noise * noise - bounded -
                                0.5 * std::log(2 * std::acos(-1.0)) + 2 * std::abs(u) -
                                std::log(4.0);
        CHECK(precise == doctest::Approx(expected).epsilon(1e-12));
      }
    }
  }
  float action, log_probability;
  squash_gaussian(math::kQuietNan, 0.0f, 0.0f, action, log_probability);
  CHECK(action != action);
  CHECK(log_probability != log_probability);
}

TEST_CASE("the gradient of actions and log-probability is that of numeric differentiation") {
  Samples samples;
  const std::vector<double> weight = numeric::random_values(kRows * kAction, 3);
  constexpr double kLogProbabilityWeight = 0.37;
  // A loss that depends on every action and log-probability: as J does, with weights for dQ / d
  // action.
  const auto loss = [&] {
    samples.draw();
    double sum = 0;
    for (int k = 0; k < kRows * kAction; k++) sum += weight[k] * samples.action[k];
    for (int row = 0; row < kRows; row++) {
      sum += kLogProbabilityWeight * samples.log_probability[row];
    }
    return sum;
  };
  samples.draw();
  std::vector<double> gradient(samples.output.size()), expected(samples.output.size());
  sample_actions_backward<kRows, kAction>(Generic{}, samples.output.data(), samples.noise.data(),
                                          samples.action, weight.data(), kLogProbabilityWeight,
                                          gradient.data());
  for (std::size_t k = 0; k < expected.size(); k++) {
    expected[k] = numeric::derivative(samples.output[k], loss);
  }
  CHECK(numeric::relative_difference(gradient, expected) <= numeric::kTolerance);
}

TEST_CASE("beyond its bounds log_std neither counts nor has a gradient") {
  for (const double log_std : {-25.0, 3.0}) {
    const double bound = log_std < 0 ? -20.0 : 2.0;
    double action, log_probability, bounded_action, bounded_log_probability;
    squash_gaussian(0.25, log_std, 0.125, action, log_probability);
    squash_gaussian(0.25, bound, 0.125, bounded_action, bounded_log_probability);
    CHECK(action == doctest::Approx(bounded_action).epsilon(1e-14));
    CHECK(log_probability == doctest::Approx(bounded_log_probability).epsilon(1e-14));
    double mean_gradient, log_std_gradient;
    squash_gaussian_backward(log_std, 0.125, action, 1.0, 1.0, mean_gradient, log_std_gradient);
    CHECK(log_std_gradient == 0);
    CHECK(mean_gradient != 0);
    squash_gaussian_backward(bound, 0.125, action, 1.0, 1.0, mean_gradient, log_std_gradient);
    CHECK(log_std_gradient != 0);
  }
}
