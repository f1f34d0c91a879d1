// Generalized advantages by hand: what follows a step, a terminal state, and an episode that was
// cut off; their moments, and the variance that the values explain.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rltools/rl/advantages.h"

using namespace rlt;

namespace {

// Four steps of two environments; everything is a multiple of a power of two, so that no sum is
// rounded.
using Rollout = RolloutBuffer<double, 4, 2, 1, 1, 4>;
constexpr double kPresentValue[2] = {16, 24};
constexpr double kFinalValue = 64;

struct Case {
  Rollout rollout{};
  double value[8];
  std::vector<std::pair<int, int>> asked;  // final values: environment, step

  // Rewards are 1, 2, 3, 4 and 10, 20, 30, 40; values 1 to 4 and 5 to 8.
  Case() {
    clear(rollout);
    for (int step = 0; step < 4; step++) {
      rollout.reward[step * 2] = step + 1;
      rollout.reward[step * 2 + 1] = 10 * (step + 1);
      value[step * 2] = step + 1;
      value[step * 2 + 1] = step + 5;
    }
    rollout.size = 4;
  }

  void compute(double gamma, double lambda, double reward_scale = 1) {
    compute_advantages(rollout, AdvantageParameters<double>{gamma, lambda, reward_scale}, value,
                       kPresentValue, [&](int environment, int step) {
                         asked.push_back({environment, step});
                         return kFinalValue + environment + step;
                       });
  }

  void check(int environment, const std::vector<double>& advantages) const {
    for (int step = 0; step < 4; step++) {
      CAPTURE(step);
      const int row = step * 2 + environment;
      CHECK(rollout.advantage[row] == advantages[static_cast<std::size_t>(step)]);
      CHECK(rollout.target[row] == rollout.advantage[row] + value[row]);
    }
  }
};

}  // namespace

TEST_CASE("an episode that goes on") {
  Case c;
  c.compute(0.5, 0.5);
  // delta: 4 + 8 - 4 = 8; 3 + 2 - 3 = 2; 2 + 1.5 - 2 = 1.5; 1 + 1 - 1 = 1. Decay: a quarter.
  c.check(0, {1 + (1.5 + 4.0 / 4) / 4, 1.5 + 4.0 / 4, 2 + 8.0 / 4, 8});
  // delta: 40 + 12 - 8 = 44; 30 + 4 - 7 = 27; 20 + 3.5 - 6 = 17.5; 10 + 3 - 5 = 8
  c.check(1, {8 + (17.5 + 38.0 / 4) / 4, 17.5 + 38.0 / 4, 27 + 44.0 / 4, 44});
  CHECK(c.asked.empty());
}

TEST_CASE("nothing comes after a terminal state") {
  Case c;
  c.rollout.done[1 * 2 + 0] = Rollout::kTerminated;
  c.compute(0.5, 0.5);
  // Step 1: 2 - 2 = 0, whatever came after; step 0: 1 + 1 - 1 = 1.
  c.check(0, {1, 0, 4, 8});
  c.check(1, {8 + 27.0 / 4, 27, 38, 44});  // of the other environment nothing changes
  CHECK(c.asked.empty());
}

TEST_CASE("after a truncated episode comes its last state's value, and nothing else") {
  Case c;
  c.rollout.done[1 * 2 + 0] = Rollout::kTruncated;
  c.rollout.done[3 * 2 + 0] = Rollout::kTruncated;
  c.rollout.done[0 * 2 + 1] = Rollout::kTruncated;
  c.rollout.done[3 * 2 + 1] = Rollout::kTerminated;
  c.compute(0.5, 0.5);
  // Step 3: 4 + 67 / 2 - 4; step 2: 3 + 2 - 3, and a quarter of step 3; step 1: 2 + 65 / 2 - 2.
  c.check(0, {1 + 32.5 / 4, 32.5, 2 + 33.5 / 4, 33.5});
  // Step 3: 40 - 8; step 2: 27 and a quarter; step 1: 17.5 and a quarter; step 0: 10 + 65 / 2 - 5.
  c.check(1, {37.5, 17.5 + 35.0 / 4, 35, 32});
  CHECK(c.asked == std::vector<std::pair<int, int>>{{0, 3}, {0, 1}, {1, 0}});
}

TEST_CASE("a step that was lost has no advantage, and its state cuts off the episode before it") {
  Case c;
  c.rollout.done[2 * 2 + 0] = Rollout::kLost;
  c.rollout.done[3 * 2 + 1] = Rollout::kLost;
  c.compute(0.5, 0.5);
  // Step 1: 2 + 3 / 2 - 2, and nothing of later steps.
  c.check(0, {1 + 1.5 / 4, 1.5, 0, 8});
  // Step 2: 30 + 8 / 2 - 7 ends there.
  c.check(1, {8 + (17.5 + 27.0 / 4) / 4, 17.5 + 27.0 / 4, 27, 0});
  CHECK(c.asked.empty());
}

TEST_CASE("lambda is the share of later steps, and rewards are scaled, not values") {
  Case one_step, all_steps, scaled;
  one_step.compute(0.5, 0);
  one_step.check(0, {1, 1.5, 2, 8});
  all_steps.compute(1, 1);
  // The sum of rewards and the value behind them, without the state's own.
  all_steps.check(0, {10 + 16 - 1, 9 + 16 - 2, 7 + 16 - 3, 4 + 16 - 4});
  scaled.compute(0.5, 0, 0.25);
  scaled.check(0, {0.25 + 1 - 1, 0.5 + 1.5 - 2, 0.75 + 2 - 3, 1 + 8 - 4});
}

TEST_CASE("moments are mean and population variance") {
  const double values[] = {1, 3, 5, 7};
  CHECK(moments(values, 4).mean == 4);
  CHECK(moments(values, 4).variance == 5);
  const float shifted[] = {1000001, 1000003, 1000005, 1000007};  // without cancellation
  CHECK(moments(shifted, 4).mean == 1000004);
  CHECK(moments(shifted, 4).variance == 5);
}

TEST_CASE("the explained variance is what the values leave") {
  Case c;
  for (int row = 0; row < 8; row++) {
    c.rollout.target[row] = row;                        // variance 5.25
    c.rollout.advantage[row] = 3 + (row % 2 ? 1 : -1);  // variance 1
  }
  CHECK(explained_variance(c.rollout) == doctest::Approx(1 - 1 / 5.25));
  for (double& target : c.rollout.target) target = 2;
  CHECK(std::isnan(explained_variance(c.rollout)));
}

TEST_CASE("truncations are counted before a step, and have an observation each") {
  Case c;
  auto& rollout = c.rollout;
  for (const int step : {0, 2, 3}) rollout.done[step * 2 + 1] = Rollout::kTruncated;
  rollout.done[1 * 2 + 1] = Rollout::kTerminated;
  rollout.done[1 * 2 + 0] = Rollout::kTruncated;
  const int before[2][5] = {{0, 0, 1, 1, 1}, {0, 1, 1, 2, 3}};
  for (int environment = 0; environment < 2; environment++) {
    for (int step = 0; step <= 4; step++) {
      CHECK(truncations_before(rollout, environment, step) == before[environment][step]);
    }
  }
  CHECK(final_observation(rollout, 0, 0) == rollout.final_observation);
  CHECK(final_observation(rollout, 0, 3) == rollout.final_observation + 3);
  CHECK(final_observation(rollout, 1, 2) == rollout.final_observation + 6);
}

TEST_CASE("what no rollout can have is refused") {
  Case c;
  auto& rollout = c.rollout;
  // Episodes of three steps; environment 0's was cut off after step 1, when it had three.
  constexpr std::uint32_t kEpisodeSteps = 3;
  rollout.done[1 * 2 + 0] = Rollout::kTruncated;
  rollout.done[0 * 2 + 1] = Rollout::kTerminated;
  rollout.done[3 * 2 + 1] = Rollout::kTruncated;
  const auto is_rollout = [&](std::uint32_t size, std::uint32_t first, std::uint32_t second) {
    rollout.size = size;
    const std::uint32_t episode_step[2] = {first, second};
    return is_consistent(rollout, episode_step, kEpisodeSteps);
  };
  CHECK(is_rollout(4, 2, 0));
  CHECK(is_rollout(3, 1, 2));
  CHECK(is_rollout(2, 0, 1));
  CHECK(is_rollout(1, 1, 0));
  CHECK(is_rollout(1, 2, 0));  // one step before the rollout
  CHECK(is_rollout(0, 0, 2));
  SUBCASE("more steps than there are") {
    rollout.done[1 * 2 + 0] = Rollout::kRunning;
    rollout.done[2 * 2 + 0] = Rollout::kTruncated;
    CHECK(is_rollout(4, 1, 0));
    CHECK_FALSE(is_rollout(5, 2, 1));  // as if both went on
  }
  SUBCASE("an episode that has had other steps") {
    CHECK_FALSE(is_rollout(4, 1, 0));
    CHECK_FALSE(is_rollout(4, 2, 1));
    CHECK_FALSE(is_rollout(1, 0, 0));  // fewer than the rollout has of it
    CHECK_FALSE(is_rollout(0, 0, 3));  // as many as would have ended it
    CHECK_FALSE(is_rollout(0, 4000000000u, 0));
  }
  SUBCASE("an done of no kind, also in rows that are yet to come") {
    rollout.done[7] = 3;
    CHECK_FALSE(is_rollout(4, 2, 0));
    CHECK_FALSE(is_rollout(1, 1, 0));
  }
  SUBCASE("a truncation after too few steps") {
    rollout.done[2 * 2 + 0] = Rollout::kTruncated;
    CHECK_FALSE(is_rollout(4, 1, 0));
  }
  SUBCASE("an episode that went on for too long") {
    rollout.done[3 * 2 + 1] = Rollout::kRunning;
    CHECK_FALSE(is_rollout(4, 2, 3));
    CHECK_FALSE(is_rollout(4, 2, 0));
  }
  SUBCASE("one that went on before the rollout, too") {
    for (auto& done : rollout.done) done = Rollout::kRunning;
    CHECK(is_rollout(2, 2, 2));
    CHECK_FALSE(is_rollout(3, 3, 3));
    CHECK_FALSE(is_rollout(3, 0, 0));
    rollout.done[3 * 2 + 0] = rollout.done[2 * 2 + 1] = Rollout::kTruncated;
    CHECK_FALSE(is_rollout(4, 0, 1));  // environment 0's had four steps
  }
}

TEST_CASE("a cleared rollout is empty") {
  Rollout rollout;
  __builtin_memset(static_cast<void*>(&rollout), 0x55, sizeof rollout);
  clear(rollout);
  CHECK(rollout.size == 0);
  for (const double value : rollout.observation) CHECK(value == 0);
  for (const double value : rollout.action) CHECK(value == 0);
  for (const double value : rollout.mean) CHECK(value == 0);
  for (const double value : rollout.reward) CHECK(value == 0);
  for (const std::uint8_t value : rollout.done) CHECK(value == Rollout::kRunning);
  for (const double value : rollout.advantage) CHECK(value == 0);
  for (const double value : rollout.target) CHECK(value == 0);
  for (const double value : rollout.current_observation) CHECK(value == 0);
  for (const double value : rollout.final_observation) CHECK(value == 0);
}
