// RacingCar with PPO: sixteen environments, two hidden layers of 64. Every scalar is in ppo.h's
// list.
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/racing_car/racing_car.h"

namespace rlt {

struct RacingCarPpo : TaskExperiment<Ppo, RacingCar<float>, 64, 64> {
  static constexpr const char* kName = "racing-car-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 200000;
      eval_freq = 25000;
      learning_rate = 1e-3f;
      lr_end_factor = 0.1f;
      log_std_init = -0.7f;
    }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kRolloutSteps = 128;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 16;
};

}  // namespace rlt
