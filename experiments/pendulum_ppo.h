// Pendulum-v1 with PPO: eight environments, networks as in pendulum_td3.h. Every scalar is in
// ppo.h's list; those that differ here suit a task of 20 Hz whose rewards are between -16 and 0.
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct PendulumPpo : TaskExperiment<Ppo, Pendulum<float>, 64, 64> {
  static constexpr const char* kName = "pendulum-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 100000;
      eval_freq = 10000;
      learning_rate = 1e-3f;
      gamma = 0.97f;
      gae_lambda = 0.9f;
      n_epochs = 10;
      reward_scale = 0.1f;
      adam_beta1 = 0.8f;
    }
  };
  static constexpr int kEnvironments = 8;
  static constexpr int kRolloutSteps = 256;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 16;
};

}  // namespace rlt
