// An experiment for tests: TD3 on the pendulum, small enough for hundreds of runs.
#pragma once

#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct TinyTd3 {
  static constexpr const char* kName = "tiny-td3";
  using Scalar = float;
  using Environment = Pendulum<Scalar>;
  using Algorithm = Td3;
  using Actor = Mlp<Scalar, Dimensions<3, 8, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<Scalar, Dimensions<4, 8, 1>, Activation::relu, Activation::identity>;
  using Hyperparameters = Td3Hyperparameters;
  static constexpr int kEpisodeSteps = 20;
  static constexpr int kBatchSize = 8;
  static constexpr int kTileRows = 4;
  static constexpr int kReplayCapacity = 50;
};

}  // namespace rlt
