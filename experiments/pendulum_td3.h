// Pendulum-v1 with TD3, in the setting of the paper's figure 1 (arXiv 2306.03530, section 4.1):
// 10,000 steps, two hidden layers of 64, batches of 100. Every scalar is in td3.h's list, where
// these are the defaults.
#pragma once

#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct PendulumTd3 : TaskExperiment<Td3, Pendulum<float>, 64, 64> {
  static constexpr const char* kName = "pendulum-td3";
  using Hyperparameters = Td3Hyperparameters;
  static constexpr int kBatchSize = 100;
  static constexpr int kTileRows = 20;
  static constexpr int kReplayCapacity = 10000;
};

}  // namespace rlt
