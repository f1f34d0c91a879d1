// CartPole-v1 with DQN: two hidden layers of 64, one environment. Every scalar is in dqn.h's list.
#pragma once

#include "rltools/rl/algorithms/dqn.h"
#include "rltools/rl/environments/cart_pole.h"

namespace rlt {

struct CartpoleDqn : TaskExperiment<Dqn, CartPole<float>, 64, 64> {
  static constexpr const char* kName = "cartpole-dqn";
  struct Hyperparameters : DqnHyperparameters {
    Hyperparameters() {
      steps = 50000;
      eval_freq = 5000;
      train_freq = 2;
    }
  };
  static constexpr int kBatchSize = 64;
  static constexpr int kTileRows = 16;
  static constexpr int kReplayCapacity = 10000;
};

}  // namespace rlt
