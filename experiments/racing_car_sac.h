// RacingCar with SAC: one environment, two hidden layers of 64. Every scalar is in sac.h's list.
// Its replay buffer is larger than a microcontroller's memory.
// Requires: hosted
#pragma once

#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/environments/racing_car.h"

namespace rlt {

struct RacingCarSac {
  static constexpr const char* kName = "racing-car-sac";
  using Scalar = float;
  using Environment = RacingCar<Scalar>;
  using Algorithm = Sac;
  using Actor = ReluMlp<Scalar, Activation::identity, Environment::kObservationDim, 64, 64,
                        2 * Environment::kActionDim>;
  using Critic = ReluMlp<Scalar, Activation::identity,
                         Environment::kObservationDim + Environment::kActionDim, 64, 64, 1>;
  struct Hyperparameters : SacHyperparameters {
    Hyperparameters() {
      steps = 50000;
      eval_every = 5000;
    }
  };
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 100;
  static constexpr int kTileRows = 20;
  static constexpr int kReplayCapacity = 10000;
};

}  // namespace rlt
