// A Crazyflie, by the first of the published tables, that comes back from any attitude and holds
// its position after some seconds of training, with PPO: 256 environments in lanes, an action each
// 20 ms, episodes of a second. The policy sees its last six actions; critics also see the rotors'
// speeds, the wind and the dynamics. Both are the same in the drone's two mirrors.
//
// Large steps at first, each row learned from once, and a learning rate that ends at a hundredth of
// that: docs/experiments.md, "A quadrotor", has the figures. For other drones, and
// for many at once, quadrotor_ppo.h is made.
// Requires: hosted
// Gate: hover-nominal
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/symmetry/symmetry.h"

namespace rlt {

struct CrazyfliePpo : TaskExperiment<Ppo, WithActionHistory<Quadrotor<float, 10, 2>, 6>, 32, 32> {
  static constexpr const char* kName = "crazyflie-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 4000000;
      eval_freq = 1000000;
      n_eval_episodes = 100;
      report_every = 100000;
      learning_rate = 8e-3f;
      lr_end_factor = 0.01f;
      gamma = 0.96f;
      gae_lambda = 0.975f;
      n_epochs = 1;
      vf_coef = 2.0f;
      target_kl = 0.09f;
      log_std_init = -0.6f;
      reward_scale = 0.1f;
      adam_beta2 = 0.99f;
    }
  };
  struct EnvironmentSettings : quadrotor::TrainingSettings {
    EnvironmentSettings() {
      latency_ms = 15.0f;
      noise = 2.0f;
      gust_m_s2 = 0.4f;
      cost_change = 0.05f;
      // Mirrors forbid a place beside the target, and none above or below it. Where a drone is to
      // the side, the distance hardly shows its height.
      cost_position = 0.8f;
      cost_height = 1.0f;
      reward_alive = 2.5f;
      cost_limit = 60.0f;  // so that flips do not fail for what the height costs
    }
  };
  static constexpr int kEnvironments = 256;
  static constexpr int kRolloutSteps = 16;
  static constexpr int kEpisodeSteps = 50;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 256;
  static constexpr bool kMirrored = true;
};

}  // namespace rlt
