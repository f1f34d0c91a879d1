// The drone and the task of crazyflie_ppo.h with XQC, from the samples of one drone: 100,000 steps
// of 20 ms, 2,000 s of flight. Living is rewarded less than there, so that the critics' bins tell
// distances apart: docs/experiments.md, "XQC", has the figures.
// Requires: hosted
// Gate: hover-nominal
#pragma once

#include "rltools/rl/algorithms/xqc.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"

namespace rlt {

struct CrazyflieXqc : TaskExperiment<Xqc, WithActionHistory<Quadrotor<float, 10, 2>, 6>, 64, 64> {
  static constexpr const char* kName = "crazyflie-xqc";
  struct Hyperparameters : XqcHyperparameters {
    Hyperparameters() {
      steps = 100000;
      eval_freq = 20000;
      n_eval_episodes = 100;
      report_every = 5000;
      learning_starts = 1000;
      learning_rate = 0.001f;
      gamma = 0.97f;
      tau = 0.02f;
      policy_delay = 2;
    }
  };
  struct EnvironmentSettings : quadrotor::TrainingSettings {
    EnvironmentSettings() {
      latency_ms = 15.0f;
      noise = 2.0f;
      gust_m_s2 = 0.4f;
      cost_change = 0.05f;
      cost_position = 0.8f;
      cost_height = 1.0f;
      reward_alive = 1.7f;
      cost_limit = 60.0f;
    }
  };
  static constexpr int kEpisodeSteps = 100;
  static constexpr int kBatchSize = 128;
  static constexpr int kReplayCapacity = 100000;
};

}  // namespace rlt
