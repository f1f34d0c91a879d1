// CartPole-v1 with DQN: two hidden layers of 64, one environment. Every scalar is in dqn.h's list.
// Observations are normalized, values are about 10, and the policy is the critic's average:
// docs/experiments.md, "Acrobot and CartPole on more seeds", has the figures.
#pragma once

#include "rltools/rl/algorithms/dqn.h"
#include "rltools/rl/environments/cart_pole.h"

namespace rlt {

struct CartpoleDqn : TaskExperiment<Dqn, CartPole<float>, 64, 64> {
  static constexpr const char* kName = "cartpole-dqn";
  struct Hyperparameters : DqnHyperparameters {
    Hyperparameters() {
      steps = 100000;
      eval_freq = 10000;
      learning_rate = 0.0005f;
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
