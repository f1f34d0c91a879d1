// A quadrotor that comes back from any attitude and holds its position, with PPO: 256 environments
// in lanes, an action each 40 ms. The policy sees its last three actions; critics also see the
// rotors' speeds, the wind and the dynamics. Trained for one airframe; `--set airframe=8` draws one
// of the five Crazyflies for each episode.
// Requires: hosted
// Gate: hover
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"

namespace rlt {

struct QuadrotorPpo : TaskExperiment<Ppo, WithActionHistory<Quadrotor<float>, 3>, 64, 64> {
  static constexpr const char* kName = "quadrotor-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 4000000;
      eval_freq = 1000000;
      n_eval_episodes = 100;
      report_every = 100000;
      learning_rate = 1e-3f;
      gamma = 0.96f;
      n_epochs = 2;
      target_kl = 0.008f;
      log_std_init = -0.7f;
    }
  };
  using EnvironmentSettings = quadrotor::TrainingSettings;
  static constexpr int kEnvironments = 256;
  static constexpr int kRolloutSteps = 32;
  static constexpr int kBatchSize = 512;
  static constexpr int kTileRows = 256;
};

}  // namespace rlt
