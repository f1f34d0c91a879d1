// The learning rate that follows a divergence, and its schedule.
#include <doctest/doctest.h>

#include <initializer_list>

#include "rltools/rl/learning_rate.h"

using namespace rlt;

TEST_CASE("the learning rate shrinks above twice the target, and grows below half of it") {
  constexpr float kTarget = 0.01f;
  CHECK(adapted_rate(3e-4f, 0.0201f, kTarget) == 3e-4f / 1.5f);
  CHECK(adapted_rate(3e-4f, 0.02f, kTarget) == 3e-4f);
  CHECK(adapted_rate(3e-4f, 0.005f, kTarget) == 3e-4f);
  CHECK(adapted_rate(3e-4f, 0.0049f, kTarget) == 3e-4f * 1.5f);
  CHECK(adapted_rate(3e-4f, 0.0f, kTarget) == 3e-4f * 1.5f);
  CHECK(adapted_rate(3e-4f, -1e-8f, kTarget) == 3e-4f * 1.5f);  // by rounding
}

TEST_CASE("the learning rate stays within its bounds") {
  constexpr float kTarget = 0.01f;
  CHECK(adapted_rate(1.2e-6f, 1.0f, kTarget) == 1e-6f);
  CHECK(adapted_rate(9e-3f, 0.0f, kTarget) == 1e-2f);
  CHECK(adapted_rate(1e-6f, 1.0f, kTarget) == 1e-6f);
  CHECK(adapted_rate(1e-2f, 0.0f, kTarget) == 1e-2f);
}

TEST_CASE("the schedule leads evenly from 1 to its end, and leaves all as it is where that is 1") {
  for (const float share : {0.0f, 0.3f, 0.7f, 1.0f}) CHECK(rate_factor(1.0f, share) == 1.0f);
  CHECK(rate_factor(0.25f, 0.0f) == 1.0f);
  CHECK(rate_factor(0.25f, 0.5f) == 0.625f);
  CHECK(rate_factor(0.25f, 1.0f) == 0.25f);
  CHECK(rate_factor(0.0f, 1.0f) == 0.0f);
  CHECK(scheduled_divergence(0.008f, 1.0f) == 0.008f);
  CHECK(scheduled_divergence(0.008f, 0.5f) == 0.002f);
}
