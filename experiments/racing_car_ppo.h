// RacingCar with PPO: sixteen environments, two hidden layers of 64. Every scalar is in ppo.h's
// list.
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/racing_car.h"

namespace rlt {

struct RacingCarPpo {
  static constexpr const char* kName = "racing-car-ppo";
  using Scalar = float;
  using Environment = RacingCar<Scalar>;
  using Algorithm = Ppo;
  using Actor = ReluMlp<Scalar, Activation::identity, Environment::kObservationDim, 64, 64,
                        kOutputDim<Environment>>;
  using Critic = ReluMlp<Scalar, Activation::identity, Environment::kObservationDim, 64, 64, 1>;
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 200000;
      eval_every = 25000;
      learning_rate = 1e-3f;
      final_rate = 0.1f;
      initial_log_std = -0.7f;
    }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kRolloutSteps = 128;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 16;
};

}  // namespace rlt
