// A quadrotor that holds a position, with PPO: many environments in lanes, on this machine.
// Requires: hosted
#pragma once

#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/quadrotor.h"

namespace rlt {

struct QuadrotorPpo {
  static constexpr const char* kName = "quadrotor-ppo";
  using Scalar = float;
  using Environment = Quadrotor<Scalar>;
  using Algorithm = Ppo;
  using Actor =
      Mlp<Scalar, Dimensions<Environment::kObservationDim, 64, 64, Environment::kActionDim>,
          Activation::relu, Activation::identity>;
  using Critic = Mlp<Scalar, Dimensions<kCriticObservationDim<Environment>, 64, 64, 1>,
                     Activation::relu, Activation::identity>;
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 1000000;
      eval_every = 250000;
      learning_rate = 1e-3f;
      initial_log_std = -1.5f;
    }
  };
  static constexpr int kEnvironments = 128;
  static constexpr int kRolloutSteps = 32;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 1024;
  static constexpr int kTileRows = 256;
};

}  // namespace rlt
