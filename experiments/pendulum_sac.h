// Pendulum-v1 with SAC, networks and batches as in pendulum_td3.h. Every scalar is in sac.h's list,
// where these are the defaults.
#pragma once

#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct PendulumSac {
  static constexpr const char* kName = "pendulum-sac";
  using Scalar = float;
  using Environment = Pendulum<Scalar>;
  using Algorithm = Sac;
  using Actor =
      Mlp<Scalar, Dimensions<Environment::kObservationDim, 64, 64, 2 * Environment::kActionDim>,
          Activation::relu, Activation::identity>;
  using Critic =
      Mlp<Scalar, Dimensions<Environment::kObservationDim + Environment::kActionDim, 64, 64, 1>,
          Activation::relu, Activation::identity>;
  using Hyperparameters = SacHyperparameters;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 100;
  static constexpr int kTileRows = 20;
  static constexpr int kReplayCapacity = 10000;
};

}  // namespace rlt
