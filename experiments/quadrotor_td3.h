// The task of quadrotor_sac.h with TD3: normalised and mirrored as there.
// Requires: hosted
// Gate: hover
#pragma once

#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"

namespace rlt {

struct QuadrotorTd3 {
  static constexpr const char* kName = "quadrotor-td3";
  using Scalar = float;
  using Environment = WithActionHistory<Quadrotor<Scalar>, 3>;
  using Algorithm = Td3;
  using Actor =
      Mlp<Scalar, Dimensions<Environment::kObservationDim, 64, 64, Environment::kActionDim>,
          Activation::relu, Activation::tanh>;
  using Critic =
      Mlp<Scalar,
          Dimensions<kCriticObservationDim<Environment> + Environment::kActionDim, 64, 64, 1>,
          Activation::relu, Activation::identity>;
  struct Hyperparameters : Td3Hyperparameters {
    Hyperparameters() {
      steps = 480000;
      eval_every = 120000;
      eval_episodes = 100;
      report_every = 30000;
      learning_rate = 0.002f;
      gamma = 0.97f;
      tau = 0.06f;
      action_noise = 0.2f;
      policy_noise = 0.1f;
    }
  };
  struct EnvironmentSettings : quadrotor::TrainingSettings {
    EnvironmentSettings() { reward_alive = 1.7f; }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 128;
  static constexpr int kTileRows = 128;
  static constexpr int kReplayCapacity = 480000;
  static constexpr bool kNormalised = true, kMirrored = true;
  static constexpr int kAveragedUpdates = 5000;
};

}  // namespace rlt
