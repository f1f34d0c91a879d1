// The batch that an update learns from: its rows are transitions of the replay buffer, in every
// dimension, and the buffer has room for as many as were asked for.
#include <doctest/doctest.h>

#include <cstdint>

#include "line_experiments.h"
#include "point_experiments.h"
#include "rltools/devices/generic.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

using Slots = Replay<LineSac>;

// Observation number n, and what was done there: each value is another one.
float observation_of(int n) { return static_cast<float>(n); }
float action_of(int n, int i) { return static_cast<float>(-4 * n - i) / 1024; }
float reward_of(int n) { return static_cast<float>(n) + 0.5f; }
bool is_terminated(int n) { return n % 3 == 0; }

}  // namespace

TEST_CASE("a batch's rows are transitions of the buffer, in every dimension") {
  Run<LineSac> run;
  clear(run.training.replay);
  constexpr int kObservations = 50;
  for (int n = 0; n < kObservations; n++) {
    *advance(run.training.replay) = observation_of(n);
    const float action[2] = {action_of(n, 0), action_of(n, 1)};
    if (n < kObservations - 1) record(run.training.replay, action, reward_of(n), is_terminated(n));
  }
  run.learner->progress.updates = 7;
  gather_batch(Generic{}, run.training);
  const auto& scratch = *run.scratch;
  for (int sample = 0; sample < LineSac::kBatchSize; sample++) {
    const int n = static_cast<int>(scratch.observation(sample, 0));
    CAPTURE(n);
    REQUIRE((n >= 0 && n < kObservations - 1));
    CHECK(scratch.observation_action(sample, 0) == observation_of(n));
    for (int i = 0; i < 2; i++) {
      CHECK(scratch.observation_action(sample, 1 + i) == action_of(n, i));
    }
    CHECK(scratch.next_observation(sample, 0) == observation_of(n + 1));
    CHECK(scratch.reward(sample, 0) == reward_of(n));
    CHECK(scratch.not_terminated(sample, 0) == (is_terminated(n) ? 0.0f : 1.0f));
  }
}

TEST_CASE("critics see an observation and every dimension of the action beside it") {
  Run<LineSac> run;
  Matrix<float, LineSac::kTileRows, 1> observation;
  for (int row = 0; row < LineSac::kTileRows; row++) {
    observation(row, 0) = observation_of(row);
    for (int i = 0; i < 2; i++) run.scratch->action(row, i) = action_of(row, i);
  }
  set_critic_input(Generic{}, run.training, observation);
  for (int row = 0; row < LineSac::kTileRows; row++) {
    CAPTURE(row);
    CHECK(run.scratch->critic_input(row, 0) == observation_of(row));
    for (int i = 0; i < 2; i++) CHECK(run.scratch->critic_input(row, 1 + i) == action_of(row, i));
  }
}

TEST_CASE("the buffer keeps kReplayCapacity transitions where no episode ends early") {
  Run<LineSac> run;
  auto& replay = run.training.replay;
  clear(replay);
  advance(replay);
  const float action[2] = {};
  for (int step = 1; step <= 3 * LineSac::kReplayCapacity; step++) {
    record(replay, action, 0.0f, false);
    advance(replay);
    if (step % LineSac::kEpisodeSteps == 0) advance(replay);
    int transitions = 0;
    for (std::uint32_t slot = 0; slot < replay.size; slot++) {
      transitions += (replay.flags[slot] & Slots::kTransition) != 0;
    }
    const int kept = step < LineSac::kReplayCapacity ? step : LineSac::kReplayCapacity;
    REQUIRE(transitions >= kept);
  }
}
