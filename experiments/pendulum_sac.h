// Pendulum-v1 with SAC, networks and batches as in pendulum_td3.h. Every scalar is in sac.h's list,
// where these are the defaults.
#pragma once

#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct PendulumSac : TaskExperiment<Sac, Pendulum<float>, 64, 64> {
  static constexpr const char* kName = "pendulum-sac";
  using Hyperparameters = SacHyperparameters;
  static constexpr int kBatchSize = 100;
  static constexpr int kTileRows = 20;
  static constexpr int kReplayCapacity = 10000;
};

}  // namespace rlt
