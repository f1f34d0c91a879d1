// A mass that is moved to 0, with TD3 and small networks.
#pragma once

#include "environments/mover.h"
#include "rltools/rl/algorithms/td3.h"

namespace rlt {

struct MoverTd3 {
  static constexpr const char* kName = "mover-td3";
  using Scalar = float;
  using Environment = Mover<Scalar>;
  using Algorithm = Td3;
  using Actor =
      Mlp<Scalar, Dimensions<Environment::kObservationDim, 16, 16, Environment::kActionDim>,
          Activation::relu, Activation::tanh>;
  using Critic =
      Mlp<Scalar, Dimensions<Environment::kObservationDim + Environment::kActionDim, 16, 16, 1>,
          Activation::relu, Activation::identity>;
  using Hyperparameters = Td3Hyperparameters;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 32;
  static constexpr int kTileRows = 32;
  static constexpr int kReplayCapacity = 4000;
};

}  // namespace rlt
