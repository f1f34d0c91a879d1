// Generalized advantages by hand: what follows a terminal state, and an episode that was cut off or
// lost. Those of an episode that goes on: test_pytorch.cpp.
#include <doctest/doctest.h>

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
