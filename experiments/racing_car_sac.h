// RacingCar with SAC: one environment, two hidden layers of 64. Every scalar is in sac.h's list.
// Observations are normalized, the replay buffer holds the whole run, and the policy is the actor's
// average: docs/experiments.md, "Off-policy", has the figures.
// Requires: hosted
#pragma once

#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/environments/racing_car/racing_car.h"

namespace rlt {

struct RacingCarSac : TaskExperiment<Sac, RacingCar<float>, 64, 64> {
  static constexpr const char* kName = "racing-car-sac";
  struct Hyperparameters : SacHyperparameters {
    Hyperparameters() {
      steps = 50000;
      eval_freq = 5000;
    }
  };
  static constexpr int kBatchSize = 100;
  static constexpr int kTileRows = 20;
  static constexpr int kReplayCapacity = 50000;
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 5000;
};

}  // namespace rlt
