// Test: -Og all
// TD3, SAC, DQN and PPO on a block of a GPU's threads have the reference's bits, whichever thread
// goes first: a barrier that is missing would change them.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "cartpole_dqn.h"
#include "crazyflie_ppo.h"
#include "pendulum_ppo_masked.h"
#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"
#include "quadrotor_ppo.h"
#include "rltools/devices/block.h"
#include "training_run.h"

using namespace rlt;
using training_run::hash_after;

namespace {

template <class E>
void require_same_bits(std::uint32_t steps) {
  const std::string expected = hash_after<E>(Generic{}, steps);
  for (const bool is_reversed : {false, true}) {
    block::threads.is_reversed = is_reversed;
    CHECK(hash_after<E>(Block{}, steps) == expected);
    CHECK(block::threads.is_reversed == is_reversed);  // no phase writes behind the block's memory
  }
}

template <class E>
struct SoonLearning : E {
  struct Hyperparameters : E::Hyperparameters {
    Hyperparameters() { this->learning_starts = 20; }
  };
};

// Episodes end within a rollout, are cut off there, and some observations are masked.
struct ShortQuadrotorPpo : QuadrotorPpo {
  static constexpr int kEnvironments = 40, kRolloutSteps = 8, kBatchSize = 80, kTileRows = 40;
  static constexpr int kEpisodeSteps = 6;
};

// Its networks are learned as symmetric ones.
struct ShortCrazyfliePpo : CrazyfliePpo {
  static constexpr int kEnvironments = 40, kRolloutSteps = 8, kBatchSize = 80, kTileRows = 40;
};

// Rows and columns of which some are their own images, or their own opposites.
struct Images {
  Mirrored row(int i) const { return i < 2 ? Mirrored{1 - i, -1} : Mirrored{i, i == 2 ? 1 : -1}; }
  Mirrored column(int o) const {
    return o < 4 ? Mirrored{o ^ 1, o < 2 ? 1 : -1} : Mirrored{o, o == 4 ? 1 : -1};
  }
};

}  // namespace

TEST_CASE("means over images in a block") {
  constexpr int kRows = 4, kColumns = 6;
  static float expected[kRows * kColumns], own[kRows * kColumns];
  for (const bool is_reversed : {false, true}) {
    block::threads.is_reversed = is_reversed;
    for (int i = 0; i < kRows * kColumns; i++) {
      expected[i] = own[i] = i % 5 == 0 ? 0.0f : 1.0f / static_cast<float>(i) - 0.1f;
    }
    average_with_images<kRows, kColumns>(Generic{}, expected, Images{});
    average_with_images<kRows, kColumns>(Block{}, own, Images{});
    CHECK(std::memcmp(own, expected, sizeof own) == 0);
  }
}

// Two of them at once would take each other's results for what was there before.
TEST_CASE("no two threads write an element of the means over images") {
  constexpr int kRows = 4, kColumns = 6, kCount = kRows * kColumns;
  int writers[kCount] = {};
  for (int thread = 0; thread < kCount; thread++) {
    float before[kCount], after[kCount];
    for (int i = 0; i < kCount; i++) before[i] = after[i] = static_cast<float>(1 + i * i);
    block::average_element<kColumns>(thread, after, Images{});
    for (int i = 0; i < kCount; i++) writers[i] += after[i] != before[i];
  }
  for (const int count : writers) CHECK(count <= 1);
}

TEST_CASE("what a block notes of its environments' steps") {
  using E = ShortQuadrotorPpo;
  constexpr int kCount = E::kEnvironments;
  static Transition<float> transitions[kCount];
  static float action[kCount * E::Environment::kActionDim];
  for (int i = 0; i < kCount; i++) {
    transitions[i].terminated = i % 5 == 0;
    transitions[i].truncated = i % 7 == 3;
    transitions[i].episode_return = static_cast<float>(i) - 20.0f;
    transitions[i].episode_steps = static_cast<std::uint32_t>(i);
  }
  struct {
    int at;
    float episode_return, reward;
    bool non_finite;
  } const wrong[] = {{-1, 0.0f, 0.0f, false},
                     {1, math::kInfinity, 0.0f, false},
                     {17, 3.0f, math::kQuietNan, true},
                     {kCount - 1, 3.0f, 0.0f, true}};
  for (const auto& each : wrong) {
    CAPTURE(each.at);
    if (each.at >= 0) {
      transitions[each.at].episode_return = each.episode_return;
      transitions[each.at].reward = each.reward;
      transitions[each.at].non_finite = each.non_finite;
    }
    Progress<float> expected{}, own{};
    StepReport<E> expected_report, report;
    note_transitions(Generic{}, expected, transitions, action, expected_report);
    note_transitions(Block{}, own, transitions, action, report);
    CHECK(expected_report.finite == (each.at < 0));
    CHECK(report.finite == expected_report.finite);
    CHECK(report.non_finite.environment == expected_report.non_finite.environment);
    CHECK(report.non_finite.is_reward == expected_report.non_finite.is_reward);
    CHECK(report.episodes_ended == expected_report.episodes_ended);
    CHECK(report.episode_returns == expected_report.episode_returns);
    CHECK(report.episode_steps == expected_report.episode_steps);
    CHECK(std::memcmp(&own, &expected, sizeof own) == 0);
    if (each.at >= 0) transitions[each.at] = {};
  }
}

TEST_CASE("TD3 in a block") { require_same_bits<SoonLearning<PendulumTd3>>(60); }
TEST_CASE("SAC in a block") { require_same_bits<SoonLearning<PendulumSac>>(60); }
TEST_CASE("XQC in a block") { require_same_bits<SoonLearning<PendulumXqc>>(30); }
TEST_CASE("DQN in a block") { require_same_bits<SoonLearning<CartpoleDqn>>(200); }
TEST_CASE("PPO in a block") { require_same_bits<ShortQuadrotorPpo>(30); }
TEST_CASE("PPO of symmetric networks in a block") { require_same_bits<ShortCrazyfliePpo>(30); }
TEST_CASE("PPO of a recurrent network in a block") {
  require_same_bits<PendulumPpoMasked>(PendulumPpoMasked::kRolloutSteps + 3);
}

namespace {

struct Pair {
  float values[2 * block::kThreads];
};

}  // namespace

TEST_CASE("a task on the leader's stack is refused, and a missing barrier is found") {
  // Each thread needs what the one before it has written: the order of the threads shows.
  static Pair pair;
  const auto run = [](bool is_reversed) {
    block::threads.is_reversed = is_reversed;
    for (float& value : pair.values) value = 1.0f;
    Pair* all = &pair;
    Block{}.threads->run(
        [all](int thread) { all->values[thread + 1] = all->values[thread] + 1.0f; });
    return pair.values[block::kThreads];
  };
  CHECK(run(false) != run(true));
  float own[64] = {};
  CHECK(block::Threads::is_private(own));
  CHECK_FALSE(block::Threads::is_private(&pair));
}
