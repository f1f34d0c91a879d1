// Acrobot-v1 with PPO: sixteen environments in lanes, two hidden layers of 32. Every scalar is in
// ppo.h's list; those that differ here keep the policy trying until it first gets there. Before
// that each step costs the same, so advantages are the critic's errors alone: normalized, that
// noise would move the policy as far as a success does.
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/acrobot.h"

namespace rlt {

struct AcrobotPpo : TaskExperiment<Ppo, Acrobot<float>, 32, 32> {
  static constexpr const char* kName = "acrobot-ppo";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 200000;
      eval_freq = 40000;
      learning_rate = 1e-3f;
      lr_end_factor = 0.1f;
      gae_lambda = 0.98f;
      ent_coef = 0.03f;
      reward_scale = 0.1f;
      normalize_advantage = 0;
    }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kRolloutSteps = 128;
  static constexpr int kBatchSize = 256;
  static constexpr int kTileRows = 16;
};

}  // namespace rlt
