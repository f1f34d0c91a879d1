// Acrobot-v1 with DQN: two hidden layers of 64, one environment. Every scalar is in dqn.h's list.
// As in cartpole_dqn.h, observations are normalized, rewards are scaled, and the policy is the
// critic's average: docs/experiments.md, "Acrobot and CartPole on more seeds", has the figures.
#pragma once

#include "rltools/rl/algorithms/dqn.h"
#include "rltools/rl/environments/acrobot.h"

namespace rlt {

struct AcrobotDqn : TaskExperiment<Dqn, Acrobot<float>, 64, 64> {
  static constexpr const char* kName = "acrobot-dqn";
  struct Hyperparameters : DqnHyperparameters {
    Hyperparameters() {
      steps = 80000;
      eval_freq = 8000;
      lr_end_factor = 0;
      reward_scale = 0.1f;
      train_freq = 2;
    }
  };
  static constexpr int kBatchSize = 64;
  static constexpr int kTileRows = 16;
  static constexpr int kReplayCapacity = 10000;
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 4000;
};

}  // namespace rlt
