// An experiment for tests: TD3 on the pendulum, small enough for hundreds of runs.
#pragma once

#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

// The pendulum, which a test may take away.
struct TinyPendulum : Pendulum<float> {
  static inline const char* missing = nullptr;
};
inline const char* unavailable(Generic, const TinyPendulum&) { return TinyPendulum::missing; }

struct TinyTd3 {
  static constexpr const char* kName = "tiny-td3";
  using Scalar = float;
  using Environment = TinyPendulum;
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
