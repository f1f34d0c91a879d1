// The task of quadrotor_ppo.h with SAC: 16 environments, an update for each step of all, and ten
// seconds of training. Observations are normalized; actor and critics are the same in the drone's
// two mirrors. The actions keep noise enough to show the critics what an action changes, and living
// is rewarded less than there, so that values are no larger than what they are to tell apart. The
// replay buffer holds the whole run; steps are large, and the policy is the actor's average:
// docs/experiments.md, "Off-policy", has the figures.
// Requires: hosted
// Gate: hover
#pragma once

#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/symmetry/symmetry.h"

namespace rlt {

struct QuadrotorSac : TaskExperiment<Sac, WithActionHistory<Quadrotor<float>, 3>, 64, 64> {
  static constexpr const char* kName = "quadrotor-sac";
  struct Hyperparameters : SacHyperparameters {
    Hyperparameters() {
      steps = 460000;
      eval_freq = 115000;
      n_eval_episodes = 100;
      report_every = 30000;
      learning_rate = 0.002f;
      gamma = 0.97f;
      tau = 0.06f;
      alpha = 0.1f;
      target_entropy = -0.1f;
    }
  };
  struct EnvironmentSettings : quadrotor::TrainingSettings {
    EnvironmentSettings() { reward_alive = 1.7f; }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kBatchSize = 128;
  static constexpr int kTileRows = 128;
  static constexpr int kReplayCapacity = 460000;
  static constexpr bool kNormalized = true, kMirrored = true;
  static constexpr int kAveragedUpdates = 5000;
};

}  // namespace rlt
