// Ant-v4 with PPO: 64 environments, networks of two layers of 256.
// Requires: mujoco
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/mujoco/ant.h"

namespace rlt {

struct AntPpo : TaskExperiment<Ppo, Ant<float>, 256, 256> {
  static constexpr const char* kName = "ant-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 1000000;
      eval_freq = 100000;
      reward_scale = 0.1f;
      log_std_init = -0.7f;  // deviations of 0.5
    }
  };
  static constexpr int kEnvironments = 64;
  static constexpr int kRolloutSteps = 32;
  static constexpr int kBatchSize = 1024;
  static constexpr int kTileRows = 256;
};

}  // namespace rlt
