// The task of quadrotor_sac.h with TD3: normalized and mirrored as there, with the same critics.
// Requires: hosted
// Gate: hover
#pragma once

#include "quadrotor_sac.h"
#include "rltools/rl/algorithms/td3.h"

namespace rlt {

struct QuadrotorTd3 : QuadrotorSac {
  static constexpr const char* kName = "quadrotor-td3";
  using Algorithm = Td3;
  using Actor = Td3::TaskActor<Environment, 64, 64>;
  struct Hyperparameters : Td3Hyperparameters {
    Hyperparameters() {
      steps = 480000;
      eval_freq = 120000;
      n_eval_episodes = 100;
      report_every = 30000;
      learning_rate = 0.002f;
      gamma = 0.97f;
      tau = 0.06f;
      action_noise = 0.2f;
      target_policy_noise = 0.1f;
    }
  };
  static constexpr int kReplayCapacity = 480000;
};

}  // namespace rlt
