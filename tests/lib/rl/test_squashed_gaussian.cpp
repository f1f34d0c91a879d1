// SAC's squashed Gaussian far from the middle; its density and gradients: test_pytorch.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "rltools/rl/squashed_gaussian.h"

using namespace rlt;

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
