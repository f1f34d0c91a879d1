// CartPole-v1 with PPO: eight environments, two hidden layers of 32. Every scalar is in ppo.h's
// list; those that differ here suit episodes of 500 steps that earn 1 each. A learning rate that
// stays as large unlearns on some seeds what it could.
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/cart_pole.h"

namespace rlt {

struct CartpolePpo : TaskExperiment<Ppo, CartPole<float>, 32, 32> {
  static constexpr const char* kName = "cartpole-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 100000;
      eval_freq = 10000;
      learning_rate = 1e-3f;
      lr_end_factor = 0.1f;
    }
  };
  static constexpr int kEnvironments = 8;
  static constexpr int kRolloutSteps = 128;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 16;
};

}  // namespace rlt
